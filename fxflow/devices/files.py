"""Atomic writes: a file is complete or absent, even if the process is killed."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: The name of a file while it is written; killed processes leave such files.
TEMPORARY = re.compile(r"write-\d+-\d+-[0-9a-f]{8}\.tmp")
_numbers = itertools.count()


def write(
    path: str | os.PathLike[str],
    *parts: bytes | memoryview,
    mode: int = 0o666,
    durable: bool = False,
) -> None:
    """Writes a file atomically; replaces an existing one.

    Args:
      path: path of the file.
      parts: its bytes, to be concatenated.
      mode: the permissions, restricted by the process's umask.
      durable: whether the file survives a power cut after this returns.

    Raises:
      OSError: the file cannot be written; an existing file is unchanged.
    """
    folder = os.path.dirname(os.path.abspath(path))
    name = f"write-{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}.tmp"
    temporary = os.path.join(folder, name)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = os.fspath(path)  # write and fsync do not name it
        raise
    if durable:
        sync(folder)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Writes a folder that appears whole, under its name; replaces an existing one.

    Args:
      path: path of the folder, which is replaced when the block ends. If the block
        raises, an existing folder is unchanged.

    Yields:
      An empty folder to write to.
    """
    import shutil  # not at start-up
    import tempfile

    # The folder before waits beside it.
    beside = Path(tempfile.mkdtemp(prefix="write-", dir=path.parent))
    new, old = beside / "new", beside / "old"
    try:
        new.mkdir()
        yield new
        if os.path.lexists(path):
            os.rename(path, old)
        os.rename(new, path)
    finally:
        if os.path.lexists(old) and not os.path.lexists(path):
            os.rename(old, path)
        shutil.rmtree(beside, ignore_errors=True)
    sync(path.parent)


def sync(path: str | os.PathLike[str]) -> None:
    """Flushes a file's content, or a directory's entries, to the disk.

    Windows flushes neither through a descriptor that only reads.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def mapped(path: str | os.PathLike[str]) -> memoryview:
    """Returns the bytes of a file, which are read when they are used.

    Args:
      path: path of the file.

    Raises:
      OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def lock(descriptor: int) -> None:
    """Locks an open file until it is closed or the process ends, however that happens.

    Raises:
      BlockingIOError: another process, or another descriptor, has locked it.
      OSError: the file system has no locks.
    """
    if sys.platform == "win32":
        # Windows locks bytes, against readers too: one that no file has.
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, "the file is locked") from None
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
