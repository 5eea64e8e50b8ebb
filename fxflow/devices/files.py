"""Files that are there whole or not at all, whenever the process is killed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re

#: What a file is called while it is written, which killed processes leave behind.
TEMPORARY = re.compile(r"write-\d+-\d+-[0-9a-f]{8}\.tmp")
_numbers = itertools.count()


def write(
    path: str | os.PathLike[str],
    *parts: bytes,
    mode: int = 0o666,
    durable: bool = False,
) -> None:
    """Writes a file, in place of what was there.

    Args:
      path: of the file.
      parts: its bytes, one after another.
      mode: who may do what with it, less the process's mask.
      durable: whether it survives a power cut once this returns.

    Raises:
      OSError: the file system refuses; what was there is there still.
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
            error.filename = os.fspath(path)  # write and fsync do not say it
        raise
    if durable:
        sync(folder)


def sync(path: str | os.PathLike[str]) -> None:
    """Makes what is in a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
