"""What runs of fxflow where the names that Windows lacks are missing.

A program: it removes them from the standard library, imports every module, and trains.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import importlib
import multiprocessing
import os
import pkgutil
import select
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import types
import uuid
from pathlib import Path

import jaxlib.xla_client  # before the names go, as it uses those of its own system
import numpy as np

#: POSIX names of each module that CPython's documentation excludes from Windows.
ABSENT: dict[types.ModuleType, str] = {
    os: """fork forkpty register_at_fork killpg getpgid getpgrp setpgid setsid getsid
        getuid geteuid getgid getegid getgroups setuid sysconf pathconf confstr nice
        sched_getaffinity sched_setaffinity sched_getscheduler sched_setscheduler
        sched_yield sched_param memfd_create posix_fallocate posix_fadvise posix_spawn
        uname mkfifo mknod wait wait3 wait4 waitid pread pwrite preadv pwritev readv
        writev sendfile statvfs fstatvfs getloadavg chown fchmod fchown lchown
        openpty ttyname ctermid sync fdatasync eventfd pidfd_open splice getrandom
        copy_file_range O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC
        WNOHANG WIFSIGNALED WTERMSIG SCHED_BATCH RTLD_NOLOAD RTLD_GLOBAL""",
    signal: """SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGPIPE SIGQUIT SIGSTOP
        SIGCONT SIGTSTP SIGTTIN SIGTTOU SIGXCPU pthread_sigmask pthread_kill sigwait
        sigtimedwait sigpending siginterrupt alarm setitimer pause SIG_BLOCK SIG_UNBLOCK
        SIG_SETMASK""",
    socket: "AF_UNIX SO_REUSEPORT SO_PEERCRED MSG_DONTWAIT MSG_NOSIGNAL send_fds",
    select: "poll epoll POLLIN POLLOUT POLLHUP POLLERR",
    time: "clock_gettime clock_gettime_ns pthread_getcpuclockid tzset",
}
MODULES = ["fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"]


class Missing:
    """Finds no module that Windows lacks."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _fill(status: ctypes.Array[ctypes.c_uint64]) -> int:
    status[1] = 1 << 34
    return 1


def remove() -> None:
    """Takes the names away, and says that this is Windows."""
    for module, names in ABSENT.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())
    sys.modules["msvcrt"] = msvcrt = types.ModuleType("msvcrt")
    vars(msvcrt).update(LK_NBLCK=2, locking=lambda descriptor, mode, size: None)
    kernel = types.SimpleNamespace(GlobalMemoryStatusEx=_fill)
    vars(ctypes)["windll"] = types.SimpleNamespace(kernel32=kernel)
    sys.platform = "win32"


def main() -> None:
    used = (
        asyncio,
        concurrent.futures,
        multiprocessing,
        selectors,
        ssl,
        subprocess,
        uuid,
    )
    assert all(used)
    for name in ("grpc", "uvicorn", "starlette", "scipy.special", "scipy.stats", "zmq"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)  # these too use names of their own system
    folder = tempfile.mkdtemp()
    remove()

    import fxflow
    import fxflow.numpy as fnp
    from fxflow import optim, random, train

    count = 0
    for found in pkgutil.walk_packages(fxflow.__path__, "fxflow."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            if not error.name or error.name.partition(".")[0] in ("fxflow", *MODULES):
                raise
        count += 1

    key = random.key(0)
    x = random.normal(key, (64, 3))
    y = x @ fnp.array([1.0, 2.0, 3.0])
    adam = optim.adam(0.1)

    @fxflow.jit
    def step(w, state):  # type: ignore[no-untyped-def]
        loss = lambda w: fnp.mean((x @ w - y) ** 2)
        change, state = adam.update(fxflow.grad(loss)(w), state, w)
        return optim.apply_updates(w, change), state

    w = fnp.zeros(3)
    state = adam.init(w)
    for _ in range(200):
        w, state = step(w, state)
    np.testing.assert_allclose(w, [1, 2, 3], atol=0.05)
    path = Path(folder) / "step"
    train.checkpoint.save(path, {"w": w})
    again = train.checkpoint.restore(path)
    np.testing.assert_array_equal(again["w"], w)
    try:
        from fxflow.distributed.processes import Process

        Process([sys.executable, "-c", ""])
    except OSError as error:
        assert "needs POSIX" in str(error)
    else:
        raise AssertionError("a process was started by POSIX calls")
    print(f"{count} modules; jaxlib {jaxlib.__version__}")


if __name__ == "__main__":
    main()
