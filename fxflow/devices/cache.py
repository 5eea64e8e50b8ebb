"""The disk cache of compiled programs.

XLA takes about 25 ms to compile the smallest program and 1 ms to load it back. By
default the cache keeps compiled programs on disk, for all processes of a user.

An entry is one file named by its key: the hash of everything that determines what the
compiler produces. The header holds the key and a hash of the payload, and the runtime
gets the payload only if both match: the runtime trusts its input, so a truncated,
damaged or foreign file must never reach it. The cache writes an entry under a temporary
name and renames it, so that other processes see a whole entry or none.

An entry is machine code. Therefore the directory and the entries must belong to the
user or to root, and must not be writable to other users: the cache does not use any
other directory (and warns once), and treats any other entry as missing. It never
touches files with other names.

``config.cache_max_bytes`` bounds the size; the least recently used entries are evicted
first. A process measures the directory once and again after each eviction; a hit
refreshes an entry's time only if that is at least an hour old. If the directory is not
writable, the cache warns once and turns itself off.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import struct
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fxflow._config import config
from fxflow.devices import clients, files, process
from fxflow.devices._jaxlib import RUNTIME_VERSION, Device, jaxlib_version

if TYPE_CHECKING:
    import hashlib

#: Incremented when the header or the meaning of the key changes.
FORMAT = 1
SUFFIX = ".fxc"
_MAGIC = b"fxflow-compiled\n"
# magic, format, key, hash of the payload, length of the payload
_HEADER = struct.Struct("<16sI32s32sQ")
#: The names of entries.
_ENTRY = r"[0-9a-f]{64}" + re.escape(SUFFIX)
#: Neither follows symbolic links nor waits for a FIFO.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: Seconds between two refreshes of an entry's time of use.
_REFRESH = 3600.0
#: Seconds after which a temporary file must come from a process that died.
_STALE = 3600.0


class CacheInfo(NamedTuple):
    """The state of the disk cache.

    Attributes:
      directory: where the entries are.
      enabled: whether entries are read and written.
      entries: number of entries on disk.
      nbytes: their total size.
      hits: number of programs that this process found.
      misses: number of programs that this process did not find.
    """

    directory: str
    enabled: bool
    entries: int
    nbytes: int
    hits: int
    misses: int


class _State:
    """The state of the directory in use, in this process."""

    def __init__(self, setting: str, path: str) -> None:
        #: ``config.cache_dir``, and the path it gave.
        self.setting, self.path = setting, path
        self.hits = self.misses = 0
        #: Whether writing is off; whether reading is off too.
        self.broken = self.refused = False
        self._checked = False
        #: Bytes on disk as far as this process knows; None before the first count.
        self.nbytes: int | None = None

    def trusted(self) -> bool:
        """Returns whether no other user can have written into the directory."""
        if not self._checked:
            try:
                fault = _fault(os.stat(self.path))
            except OSError:
                return True  # missing: this process will create and own it
            self._checked = True
            if fault:
                self.broken = self.refused = True
                warnings.warn(
                    f"fxflow's compile cache is off: {self.path} {fault}, who could "
                    "put programs there. Make it your own and writable to you alone "
                    "(chmod go-w), or set FXFLOW_CACHE_DIR to another directory.",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return not self.refused


def _fault(found: os.stat_result) -> str:
    """Returns how another user could have written a file or directory, or ""."""
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    if found.st_mode & 0o022:
        return "is writable to other users"
    return ""


_lock = threading.Lock()
_state = _State("", "")


def directory() -> Path:
    """Returns where entries are kept: ``config.cache_dir`` or the user cache folder."""
    if config.cache_dir:
        return Path(config.cache_dir).expanduser()
    if sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return base.expanduser() / "fxflow" / "compile"
    except RuntimeError:
        # No home directory. Other users could write programs to a shared one: use a
        # path that cannot be written, so that the cache warns and turns itself off.
        return Path(os.devnull) / "fxflow"


def _current() -> _State:
    """Returns the state of the directory in use; a new one if the directory changed."""
    global _state
    setting = config.cache_dir
    if not _state.path or _state.setting != setting:
        with _lock:
            _state = _State(setting, str(directory()))
    return _state


def sha256(data: bytes = b"") -> hashlib._Hash:
    """Returns the SHA-256 hash object of `data`, for `update` or `digest`."""
    # Loads OpenSSL (3 ms): at the first program rather than at the import of fxflow.
    import hashlib

    return hashlib.sha256(data)


# -- keys ------------------------------------------------------------------------------


@functools.cache
def _cpu_features() -> bytes:
    """Returns a description of this machine's instruction set and number of cores.

    Programs for the CPU hold machine code for these instructions, and divide loops
    into as many parts as the process may use cores.
    """
    parts = [sys.platform, f"{process.cores()} cores"]
    fields = process.processor()  # the first one stands for all
    names = "model name", "flags", "Features", "CPU part"
    parts += [value for name, value in fields.items() if name in names]
    if not fields:
        parts += os.uname() if hasattr(os, "uname") else []
        parts.append(os.environ.get("PROCESSOR_IDENTIFIER", ""))
    return "\n".join(parts).encode()


@functools.cache
def _device_part(device: Device) -> bytes:
    client = device.client
    return "\0".join(
        (
            f"fxflow {FORMAT}",
            f"jaxlib {jaxlib_version} {RUNTIME_VERSION}",
            str(client.platform),
            str(client.platform_version),
            str(client.runtime_type),
            str(device.device_kind),
            f"{client.device_count()} devices",
        )
    ).encode() + (_cpu_features() if device.platform == "cpu" else b"")


# The cache's keys are devices, which keep their client alive.
clients.on_clear(_device_part.cache_clear)

#: Environment variables that change what the compilers do.
_ENVIRONMENT = ("XLA_FLAGS", "TF_XLA_FLAGS", "LIBTPU_INIT_ARGS")


def key(module: str | bytes, options: bytes, device: Device, extra: str = "") -> bytes:
    """Returns the key of a program: 32 bytes.

    Args:
      module: the program.
      options: the compiler's options, serialized.
      device: the first device it is compiled for.
      extra: anything else that determines the result.
    """
    code = module.encode() if isinstance(module, str) else module
    parts = (
        _device_part(device),
        "\0".join(os.environ.get(n, "") for n in _ENVIRONMENT).encode(),
        extra.encode(),
        options,
        code,
    )
    digest = sha256()
    for part in parts:
        # The length distinguishes different splits of the same bytes.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


# -- entries ---------------------------------------------------------------------------


def _path(state: _State, key: bytes) -> str:
    return os.path.join(state.path, key.hex() + SUFFIX)


def load(key: bytes) -> bytes | None:
    """Returns the payload kept under `key`, or None.

    Removes an entry that differs from what `store` wrote.
    """
    state = _current()
    path = _path(state, key)
    if not state.trusted():
        state.misses += 1
        return None
    try:
        with open(os.open(path, _OPEN), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or _fault(found):
                state.misses += 1
                return None
            entry = file.read()
    except OSError:
        state.misses += 1
        return None
    payload = _payload(entry, key)
    if payload is None:
        state.misses += 1
        _remove(path)
        return None
    state.hits += 1
    if time.time() - found.st_mtime > _REFRESH:
        # The directory may be another user's (root's): a failed utime is ignored.
        with contextlib.suppress(OSError):
            os.utime(path)
    return payload


def _payload(entry: bytes, key: bytes) -> bytes | None:
    if len(entry) < _HEADER.size:
        return None
    magic, form, kept, digest, length = _HEADER.unpack_from(entry)
    if (magic, form, kept) != (_MAGIC, FORMAT, key):
        return None
    payload = entry[_HEADER.size :]
    if len(payload) != length or sha256(payload).digest() != digest:
        return None
    return payload


def store(key: bytes, payload: bytes) -> None:
    """Stores `payload` under `key`; a failure is not an error."""
    state = _current()
    size = _HEADER.size + len(payload)
    limit = config.cache_max_bytes
    if not state.trusted() or state.broken or size > limit:
        return
    digest = sha256(payload).digest()
    header = _HEADER.pack(_MAGIC, FORMAT, key, digest, len(payload))
    try:
        _write(state, _path(state, key), header, payload)
    except IsADirectoryError:
        return  # only this entry's path is taken
    except OSError as error:
        state.broken = True
        warnings.warn(
            f"fxflow's compile cache is off: cannot write to {state.path} "
            f"({error.strerror or error}). Set FXFLOW_CACHE_DIR to a directory that "
            "can be written, or FXFLOW_CACHE=0 to turn the cache off.",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    with _lock:
        if state.nbytes is None:
            state.nbytes = sum(size for _, size, _ in _entries(state.path))
        else:
            state.nbytes += size
        if state.nbytes > limit:
            state.nbytes = _evict(state.path, limit)


def _write(state: _State, path: str, header: bytes, payload: bytes) -> None:
    """Writes an entry; creates its directory if necessary."""
    try:
        files.write(path, header, payload, mode=0o600)
    except FileNotFoundError:
        os.makedirs(state.path, mode=0o700, exist_ok=True)
        files.write(path, header, payload, mode=0o600)


def discard(key: bytes) -> None:
    """Removes an entry that the runtime could not load."""
    state = _current()
    state.hits -= 1
    state.misses += 1
    _remove(_path(state, key))


def _remove(path: str) -> None:
    # A missing file and one that this process must not remove are both fine.
    with contextlib.suppress(OSError):
        os.unlink(path)


# -- size ------------------------------------------------------------------------------


def _entries(path: str) -> Iterator[tuple[float, int, str]]:
    """Yields time of use, bytes and path of entries; removes stale temporary files."""
    try:
        listing = os.scandir(path)
    except OSError:
        return
    with listing:
        for file in listing:
            is_entry = re.fullmatch(_ENTRY, file.name)
            if not is_entry and not files.TEMPORARY.fullmatch(file.name):
                continue
            try:
                found = file.stat(follow_symlinks=False)
            except OSError:  # another process removed it
                continue
            if not stat.S_ISREG(found.st_mode):
                continue
            if is_entry:
                yield found.st_mtime, found.st_size, file.path
            elif time.time() - found.st_mtime > _STALE:
                _remove(file.path)


def _evict(path: str, limit: int) -> int:
    """Removes the least recently used entries; returns the bytes that remain.

    Evicts down to 9/10 of the limit, so that the next entry does not evict again.
    """
    entries = sorted(_entries(path))
    total = sum(size for _, size, _ in entries)
    for _, size, file in entries:
        if total <= limit - limit // 10:
            break
        _remove(file)
        total -= size
    return total


def info() -> CacheInfo:
    """Returns the cache's directory and size, and this process's hits and misses.

    Returns:
      A named tuple; see `CacheInfo`.

    Example:
      >>> info = fxflow.devices.cache_info()
      >>> info.entries >= 0, info.nbytes >= 0
      (True, True)
    """
    state = _current()
    sizes = [size for _, size, _ in _entries(state.path)]
    return CacheInfo(
        state.path,
        config.cache and state.trusted() and not state.broken,
        len(sizes),
        sum(sizes),
        state.hits,
        state.misses,
    )


def clear() -> None:
    """Removes all entries and resets the counts."""
    global _state
    state = _current()
    for _, _, file in list(_entries(state.path)):
        _remove(file)
    with _lock:
        _state = _State(state.setting, state.path)
