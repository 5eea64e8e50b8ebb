"""Places the processes of a model on accelerators and cores.

A device is ``cuda:1`` (or ``cuda:0,1``, ``rocm:0``), the only accelerator that the
process then sees, whatever library it uses; or ``cpu``; or ``cpu:0-3`` for some of the
cores, so that processes do not compete for them.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from fxflow.errors import ServeError

_VARIABLES = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}
_DEVICE = re.compile(r"(cuda|rocm):(\d+(?:,\d+)*)|cpu(?::(\d[\d,-]*))?")


class ProcessPlacement(NamedTuple):
    """The accelerators and cores of a process.

    Attributes:
      environment: environment variables that select the visible accelerators.
      cores: cores that the process may use; empty: all.
    """

    environment: dict[str, str]
    cores: frozenset[int]


def placement_of(device: str) -> ProcessPlacement:
    """Returns the placement for a device's name.

    Args:
      device: a name such as ``cuda:0`` or ``cpu:0-3``; empty: the server's own devices.

    Returns:
      The placement.

    Raises:
      ServeError: `device` is not a device's name.

    Example:
      >>> placement_of("cuda:1")
      ProcessPlacement(environment={'CUDA_VISIBLE_DEVICES': '1'}, cores=frozenset())
      >>> sorted(placement_of("cpu:0-2,5").cores)
      [0, 1, 2, 5]
    """
    if not device:
        return ProcessPlacement({}, frozenset())
    match = _DEVICE.fullmatch(device)
    cores: set[int] = set()
    for part in (match[3] or "").split(",") if match else ():
        if span := re.fullmatch(r"(\d+)(?:-(\d+))?", part):
            cores |= set(range(int(span[1]), int(span[2] or span[1]) + 1))
        elif part:
            match = None
    if match is None or (match[3] and not cores):
        raise ServeError(
            "a device must be like 'cuda:0', 'cuda:0,1', 'rocm:0', 'cpu' or 'cpu:0-3', "
            f"got {device!r}"
        )
    if match[1]:
        return ProcessPlacement({_VARIABLES[match[1]]: match[2]}, frozenset())
    return ProcessPlacement(dict.fromkeys(_VARIABLES.values(), ""), frozenset(cores))


def move(pid: int, placement: ProcessPlacement) -> None:
    """Restricts a process to its cores, if the system supports it.

    Args:
      pid: id of a process that has just started.
      placement: its placement.

    Raises:
      ServeError: there are no such cores.
    """
    if not placement.cores or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(pid, placement.cores)
    except ProcessLookupError:
        return  # `Replica` handles its exit
    except OSError as error:
        raise ServeError(
            f"the process cannot run on cores {sorted(placement.cores)}: "
            f"{error.strerror}"
        ) from None
