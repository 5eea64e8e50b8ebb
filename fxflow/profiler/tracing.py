"""Profiles in files: traces, annotations, the server, device memory."""

from __future__ import annotations

import functools
import gzip
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fxflow.devices import clients, profiling
from fxflow.devices.profiling import ProfileOptions, ProfilerServer, TraceMe
from fxflow.errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")

#: Where Perfetto's page may fetch a file from: it refuses other ports of localhost.
_PERFETTO_PORT = 9001
# Seconds for which a visitor may neither ask nor read.
_PATIENCE = 30.0


class _Running:
    """The profile of this process: the runtime records one at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: profiling.ProfilerSession | None = None
        self.folder = ""
        self.perfetto = self.link = False
        self.server: ProfilerServer | None = None


_running = _Running()


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Starts to record what the host and the devices do, until `stop_trace`.

    `tensorboard --logdir log_dir` shows it on the page Profile (with the package xprof
    beside TensorBoard).

    Args:
      log_dir: gets `plugins/profile/<time>/<host>.xplane.pb`, for TensorBoard, and
        `<host>.trace.json.gz`, which also https://ui.perfetto.dev opens.
      create_perfetto_link: whether `stop_trace` prints a link under which Perfetto
        opens the trace from this machine, and waits until it has been followed.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` as well: the
        trace under a name that is the same each time.
      profiler_options: what is recorded.

    Raises:
      RuntimeError: a profile is being recorded: there is one at a time.
    """
    # Devices are in a profile if they are known when it begins.
    clients.default_backend()
    with _running.lock:
        if _running.session is not None:
            raise RuntimeError(
                f"start_trace: a profile is being recorded for {_running.folder}, and "
                "there is one at a time: call stop_trace first"
            )
        folder = os.fspath(log_dir)
        os.makedirs(folder, exist_ok=True)
        _running.session = profiling.ProfilerSession(profiler_options)
        _running.folder = folder
        _running.perfetto = create_perfetto_trace or create_perfetto_link
        _running.link = create_perfetto_link


def stop_trace() -> None:
    """Ends the profile that `start_trace` began, and writes it.

    Raises:
      RuntimeError: none is being recorded.
    """
    with _running.lock:
        session, _running.session = _running.session, None
        if session is None:
            raise RuntimeError("stop_trace: no profile is being recorded: start_trace")
        folder = _running.folder
        before = set(_traces(folder))
        session.export(session.stop(), folder)
        perfetto, link = _running.perfetto, _running.link
    if perfetto:
        new = sorted(set(_traces(folder)) - before)
        if new:
            target = new[-1].with_name("perfetto_trace.json.gz")
            shutil.copyfile(new[-1], target)
            if link:
                _serve_once(target)


def record(
    what: str, function: Callable[[], R], options: ProfileOptions
) -> tuple[R, profiling.ProfileData]:
    """Calls a function; returns what it returns, and a profile of it.

    Args:
      what: records, for messages.
      function: to be called.
      options: what is recorded.

    Raises:
      RuntimeError: a profile is being recorded.
    """
    with _running.lock:
        if _running.session is not None:
            raise RuntimeError(
                f"{what}: a profile is being recorded, and there is one at a time: "
                "call stop_trace first"
            )
        session = profiling.ProfilerSession(options)
        try:
            result = function()
        finally:
            recorded = session.stop()
    return result, profiling.ProfileData.from_serialized_xspace(recorded)


def _traces(folder: str) -> list[Path]:
    return list(Path(folder).glob("plugins/profile/*/*.trace.json.gz"))


def _serve_once(path: Path) -> None:
    """Prints a link to Perfetto, and gives it the file when it asks."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        timeout = _PATIENCE

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

        def do_GET(self) -> None:
            # Who stops reading or goes away does not have it: the next one gets it.
            with suppress(OSError):
                super().do_GET()
                server.found = True

        def log_message(self, *args: object) -> None:
            pass

    class Server(http.server.HTTPServer):
        found = False
        allow_reuse_address = True

    handler = functools.partial(Handler, directory=str(path.parent))
    with Server(("127.0.0.1", _PERFETTO_PORT), handler) as server:
        at = f"http://127.0.0.1:{_PERFETTO_PORT}/{path.name}"
        print(f"Open https://ui.perfetto.dev/#!/?url={at}", flush=True)
        while not server.found:
            server.handle_request()


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Records what happens within a `with` block; see `start_trace`.

    Computations go on after the call that started them: wait for results inside.

    Args:
      log_dir: where the profile is written.
      create_perfetto_link: see `start_trace`.
      create_perfetto_trace: see `start_trace`.
      profiler_options: what is recorded.

    Returns:
      A context manager.

    Raises:
      RuntimeError: a profile is being recorded: there is one at a time.

    Example:
      >>> folder = tempfile.mkdtemp()
      >>> with fxflow.profiler.trace(folder):
      ...     for step in range(3):
      ...         with fxflow.profiler.StepTraceAnnotation("train", step_num=step):
      ...             done = fnp.sum(fnp.ones(8)).block_until_ready()
      >>> sorted(p.suffix for p in pathlib.Path(folder).rglob("*.*") if p.is_file())
      ['.gz', '.pb']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


# -- annotations -----------------------------------------------------------------------


class TraceAnnotation(TraceMe):
    """Names a stretch of the host's time in profiles.

    Args:
      name: of it.
      **kwargs: numbers and texts that are shown with it.

    Example:
      >>> with fxflow.profiler.TraceAnnotation("load", file="a.npz"):
      ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"TraceAnnotation: the name is a text, got {name!r}")
        super().__init__(name, **kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """Marks a step, so that TensorBoard can say what each step spends its time on.

    Args:
      name: such as `"train"`.
      **kwargs: `step_num=`, and what else is shown with it.

    Example:
      >>> with fxflow.profiler.StepTraceAnnotation("train", step_num=3):
      ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        # Profiles call what has `_r` a root: a step.
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: Any
) -> Callable[P, R]:
    """Names the calls of a function in profiles; a decorator.

    Args:
      func: the function.
      name: None means its own.
      **decorator_kwargs: shown with each call.

    Returns:
      A function of the same arguments.

    Example:
      >>> @fxflow.profiler.annotate_function
      ... def load(path):
      ...     return path
      >>> load("a.npz")
      'a.npz'
    """
    label = name or str(getattr(func, "__qualname__", type(func).__name__))

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return call


# -- from outside ----------------------------------------------------------------------


def start_server(port: int, requires_backend: bool = True) -> ProfilerServer:
    """Lets TensorBoard's button *Capture profile* record this process.

    Args:
      port: to listen at.
      requires_backend: whether the devices are started, which a profile of them needs.

    Returns:
      The server, which `stop_server` ends.

    Raises:
      RuntimeError: there is one in this process.
    """
    if requires_backend:
        clients.default_backend()
    with _running.lock:
        if _running.server is not None:
            raise RuntimeError("start_server: there is one: call stop_server first")
        _running.server = profiling.start_server(port)
        return _running.server


def stop_server() -> None:
    """Ends the server of `start_server`.

    Raises:
      RuntimeError: there is none.
    """
    with _running.lock:
        if _running.server is None:
            raise RuntimeError("stop_server: there is none: call start_server")
        _running.server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Adds what a subprocess records to the profiles of this process.

    Args:
      pid: of the subprocess, which has called `start_server`.
      port: of that server.

    Returns:
      A function that ends this.
    """
    return profiling.register_subprocess(pid, port)


# -- memory ----------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """Returns what holds device memory: arrays and programs.

    Args:
      backend: such as `"cpu"`; None is the default one.

    Returns:
      A file for `pprof` (https://github.com/google/pprof), compressed by gzip.

    Example:
      >>> fxflow.profiler.device_memory_profile()[:2].hex()
      '1f8b'
    """
    (device, *_) = clients.local_devices(backend=backend)
    return gzip.compress(profiling.heap_profile(device.client))


def save_device_memory_profile(
    filename: str | os.PathLike[str], backend: str | None = None
) -> None:
    """Writes `device_memory_profile` to a file.

    Args:
      filename: such as `memory.prof`, for `pprof --web memory.prof`.
      backend: such as `"cpu"`; None is the default one.
    """
    Path(filename).write_bytes(device_memory_profile(backend))
