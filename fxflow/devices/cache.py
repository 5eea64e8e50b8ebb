"""The disk cache of compiled programs.

Compiling the smallest program takes XLA about 25 ms; loading it back takes 1 ms. So
compiled programs are kept on disk, on by default, for all processes of a user.

An entry is one file named by its key: the hash of everything that decides what the
compiler would produce. Its header holds the key and a hash of the payload, and the
payload is handed to the runtime only if all of it fits: the runtime trusts its input,
so a truncated, damaged or foreign file must never reach it. Entries are written under
a temporary name and renamed, so that another process sees a whole entry or none.

An entry is machine code. So neither the directory nor an entry may be writable to other
users, nor belong to one (but to root, who may write anywhere): such a directory is not
used, with one warning, and such an entry counts as missing. Files of other names are
never touched.

The size is bounded (``config.cache_max_bytes``); the least recently used entries go
first. The directory is counted once a process and again after each eviction; a hit
refreshes an entry's time only when that is an hour old. If the directory cannot be
written the cache turns itself off with one warning.
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
from fxflow.devices import clients, files
from fxflow.devices._jaxlib import RUNTIME_VERSION, Device, jaxlib_version

if TYPE_CHECKING:
    import hashlib

#: Raised whenever the header or the meaning of the key changes.
FORMAT = 1
SUFFIX = ".fxc"
_MAGIC = b"fxflow-compiled\n"
# magic, format, key, hash of the payload, length of the payload
_HEADER = struct.Struct("<16sI32s32sQ")
#: The files that are ours: entries, and what is to become one.
_ENTRY = r"[0-9a-f]{64}" + re.escape(SUFFIX)
#: Neither a symbolic link is followed nor a FIFO waited for.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: Seconds between two refreshes of an entry's time of use.
_REFRESH = 3600.0
#: Temporary files older than this were left behind by a process that died.
_STALE = 3600.0


class CacheInfo(NamedTuple):
    """What `info` returns.

    Attributes:
      directory: where the entries are.
      enabled: whether entries are read and written.
      entries: number of entries on disk.
      nbytes: their size.
      hits: programs this process found.
      misses: programs this process looked for in vain.
    """

    directory: str
    enabled: bool
    entries: int
    nbytes: int
    hits: int
    misses: int


class _State:
    """What this process knows about the directory it uses."""

    def __init__(self, setting: str, path: str) -> None:
        #: ``config.cache_dir`` that led to `path`.
        self.setting, self.path = setting, path
        self.hits = self.misses = 0
        #: Whether nothing can be written, and whether nothing is read either.
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
                return True  # not there yet; made by us, it will be ours
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
    """Returns why a file or directory may hold what another user wrote, or ""."""
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
        # No home directory. A shared one would let others plant programs, so this is
        # one that cannot be written: the cache will say so and be off.
        return Path(os.devnull) / "fxflow"


def _current() -> _State:
    """Returns the state for the directory in use, a new one if that changed."""
    global _state
    setting = config.cache_dir
    if not _state.path or _state.setting != setting:
        with _lock:
            _state = _State(setting, str(directory()))
    return _state


def sha256(data: bytes = b"") -> hashlib._Hash:
    """Returns a hash of some bytes; more can be added to it."""
    # Loads OpenSSL (3 ms): put off from the import of fxflow to its first program.
    import hashlib

    return hashlib.sha256(data)


# -- keys ------------------------------------------------------------------------------


@functools.cache
def _cpu_features() -> bytes:
    """Returns what tells this machine's instruction set from another's.

    Programs for the CPU hold machine code made for the instructions found here.
    """
    parts = [sys.platform]
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:  # the first processor stands for all
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "flags", "Features", "CPU part"):
                    parts.append(value.strip())
                if not line.strip():
                    break
    except OSError:
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


# It holds devices, which hold their client.
clients.on_clear(_device_part.cache_clear)

#: Environment variables that change what the compilers do.
_ENVIRONMENT = ("XLA_FLAGS", "TF_XLA_FLAGS", "LIBTPU_INIT_ARGS")


def key(module: str | bytes, options: bytes, device: Device, extra: str = "") -> bytes:
    """Returns the key of a program: 32 bytes.

    Args:
      module: the program.
      options: the compiler's options, serialised.
      device: the first device it is compiled for.
      extra: whatever else decides the result.
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
        # The length keeps two different splittings of the same bytes apart.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


# -- entries ---------------------------------------------------------------------------


def _path(state: _State, key: bytes) -> str:
    return os.path.join(state.path, key.hex() + SUFFIX)


def load(key: bytes) -> bytes | None:
    """Returns the payload kept under `key`, or None.

    An entry that is not exactly what `store` wrote is removed.
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
    """Keeps `payload` under `key`; failing to is not an error."""
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
        return  # in this one entry's place
    except OSError as error:
        state.broken = True
        warnings.warn(
            f"fxflow's compile cache is off: cannot write to {state.path} "
            f"({error.strerror or error}). Set FXFLOW_CACHE_DIR to a directory that "
            "can be written, or FXFLOW_CACHE=0 to do without.",
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
    """Writes an entry, and makes its folder if need be."""
    try:
        files.write(path, header, payload, mode=0o600)
    except FileNotFoundError:
        os.makedirs(state.path, mode=0o700, exist_ok=True)
        files.write(path, header, payload, mode=0o600)


def discard(key: bytes) -> None:
    """Removes an entry: the runtime could not load it."""
    state = _current()
    state.hits -= 1
    state.misses += 1
    _remove(_path(state, key))


def _remove(path: str) -> None:
    # Gone already, or not ours to remove: both are fine.
    with contextlib.suppress(OSError):
        os.unlink(path)


# -- size ------------------------------------------------------------------------------


def _entries(path: str) -> Iterator[tuple[float, int, str]]:
    """Yields (time of use, bytes, path) of each entry and of what dead writers left."""
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
    """Removes the least recently used entries; returns the bytes that are left.

    Goes down to 9/10 of the limit, so that the next entry does not evict again.
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
    """Returns where the cache is, how full, and how often this process found things.

    Returns:
      A named tuple; see `CacheInfo`.
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
    """Removes all entries and starts counting anew."""
    global _state
    state = _current()
    for _, _, file in list(_entries(state.path)):
        _remove(file)
    with _lock:
        _state = _State(state.setting, state.path)
