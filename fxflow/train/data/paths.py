"""Names of files, on this machine or at URLs, and opening them."""

from __future__ import annotations

import glob
import gzip
import os
from typing import IO, Any, NamedTuple, cast

from fxflow.errors import DataError

Path = str | os.PathLike[str]


def names(name: str, paths: Any, *, absent: bool = False) -> list[str]:
    """Returns names of files, or those that match a pattern, sorted.

    Args:
      name: the caller's, for messages.
      paths: names, or one pattern, which may be a URL.
      absent: whether files may be absent yet.

    Raises:
      DataError: no file matches.
    """
    if not isinstance(paths, (str, os.PathLike)):
        return [os.fspath(path) for path in paths]
    pattern = os.fspath(paths)
    if "://" in pattern:
        system, inner = _system(pattern)
        found = sorted(map(system.unstrip_protocol, system.glob(inner)))
    elif os.path.exists(pattern):
        found = [pattern]
    else:
        found = sorted(glob.glob(pattern, recursive=True))
    if not found and not absent:
        raise DataError(f"{name}: no file matches {pattern!r}")
    return cast(list[str], found)


def opened(path: str) -> IO[bytes]:
    """Returns a file opened for reading, decompressed if its name ends in `.gz`."""
    if "://" in path:
        compression = "gzip" if path.endswith(".gz") else None
        file = _fsspec().open(path, "rb", compression=compression).open()
        return cast(IO[bytes], file)
    return cast(
        IO[bytes], gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    )


class Stamp(NamedTuple):
    """What a file is known by: that of a file that was rewritten differs.

    Attributes:
      size: in bytes.
      file: which file it is on this machine; 0 for URLs.
      modified: when, in ns; 0 for URLs.
    """

    size: int
    file: int
    modified: int


def stamp(path: str) -> Stamp:
    """Returns what a file is known by.

    Raises:
      OSError: there is none, or it cannot be read.
    """
    if "://" in path:
        system, inner = _system(path)
        system.invalidate_cache()
        return Stamp(int(system.size(inner)), 0, 0)
    found = os.stat(path)
    return Stamp(found.st_size, found.st_ino, found.st_mtime_ns)


def _system(url: str) -> tuple[Any, str]:
    system, inner = _fsspec().core.url_to_fs(url)
    return system, inner


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise ImportError(
            "files at URLs need fsspec: pip install 'fxflow[data]'"
        ) from None
    return fsspec
