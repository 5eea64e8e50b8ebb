"""Memory statistics of devices, and the error for running out of memory."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from collections.abc import Callable

from fxflow.devices._jaxlib import Device, RuntimeFailure, parts_of
from fxflow.devices.callbacks import on_failure
from fxflow.errors import OutOfMemoryError


def memory_stats(device: Device) -> dict[str, int]:
    """Returns a device's memory statistics in bytes.

    Accelerators report their allocator's statistics: ``bytes_in_use``,
    ``peak_bytes_in_use``, ``bytes_limit``, ``num_allocs``, ... The CPU's runtime has
    none, so on the CPU fxflow sums the live buffers: ``bytes_in_use`` and
    ``num_allocs`` count each allocation once, including NumPy memory that a buffer
    aliases. They exclude arrays that no compiled program has used, temporaries of
    running programs and freed memory that the allocator keeps. ``bytes_limit`` is the
    machine's memory.

    Args:
      device: a local device.

    Returns:
      The statistics by name; at least ``bytes_in_use``, ``num_allocs``,
      ``bytes_limit``.

    Example:
      >>> stats = fxflow.devices.memory_stats(fxflow.devices()[0])
      >>> stats["bytes_in_use"] <= stats["bytes_limit"]
      True
    """
    if not hasattr(device, "memory_stats"):
        raise TypeError(
            f"memory_stats: device must be a Device, got {type(device).__name__}"
        )
    reported = device.memory_stats()
    if reported:
        return dict(reported)
    sizes: dict[int, int] = {}
    for buffer in device.client.live_arrays():
        if buffer.is_deleted():
            continue
        for shard in parts_of(buffer):
            where = shard._sharding
            # Results on a mesh of one device have a GSPMDSharding.
            held = where._device if hasattr(where, "_device") else where._devices[0]
            if held is device:
                sizes[shard.unsafe_buffer_pointer()] = shard.on_device_size_in_bytes()
    return {
        "bytes_in_use": sum(sizes.values()),
        "num_allocs": len(sizes),
        "bytes_limit": host_memory(),
    }


def bytes_text(nbytes: float) -> str:
    """Returns a number of bytes with three digits and a unit: `12.5 MB`."""
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


@functools.cache
def memory_limit(device: Device) -> int:
    """Returns the bytes that a device's allocator may use; 0 if they are unknown."""
    if device.platform == "cpu":
        return host_memory()
    try:
        return int((device.memory_stats() or {}).get("bytes_limit", 0))
    except RuntimeFailure:  # not every plug-in has it
        return 0


@functools.cache
def host_memory() -> int:
    """Returns the machine's memory in bytes; 0 if it is unknown."""
    if sys.platform == "win32":
        # A MEMORYSTATUSEX: two numbers of 32 bits, then seven of 64.
        status = (ctypes.c_uint64 * 8)(64)
        found = ctypes.windll.kernel32.GlobalMemoryStatusEx(status)
        return status[1] if found else 0
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # not supported on this system
        return 0


#: What to do about a program that needs too much.
ADVICE = (
    "use smaller arrays or batches, donate arguments (donate_argnums), recompute with "
    "fxflow.checkpoint, or divide the arrays over more devices"
)
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_reporters: list[Callable[[float], str]] = []


def on_exhaustion(reporter: Callable[[float], str]) -> None:
    """Registers a function that may say what a device ran out of memory for.

    Args:
      reporter: takes the number of bytes that could not be allocated; returns
        sentences, or "" if it does not know.
    """
    _reporters.append(reporter)


def _explained(error: BaseException) -> BaseException:
    text = str(error)
    if "RESOURCE_EXHAUSTED" not in text:
        return error
    wanted = re.search(r"allocat(?:ing|e) ([\d.]+) ?(bytes|[KMGT]iB)", text)
    if wanted is None:
        return OutOfMemoryError(
            f"a device cannot allocate enough memory for a program: {ADVICE}"
        )
    nbytes = float(wanted[1]) * _UNITS[wanted[2]]
    needs = f"a device cannot allocate {int(nbytes):,} bytes"
    for reporter in _reporters:
        told = reporter(nbytes)
        if told:
            return OutOfMemoryError(f"{needs}. {told}")
    return OutOfMemoryError(f"{needs} for a program: {ADVICE}")


on_failure(_explained)
