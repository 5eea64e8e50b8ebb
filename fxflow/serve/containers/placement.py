"""Where the processes of a model run: which accelerator each sees, on which cores.

A device is ``cuda:1`` (or ``cuda:0,1``, ``rocm:0``), which is then the only one that
the process sees, whatever library it uses; or ``cpu``, or ``cpu:0-3`` for some of the
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
    """Where a process runs.

    Attributes:
      environment: variables that say which accelerators it sees.
      cores: on which it runs; empty: on any.
    """

    environment: dict[str, str]
    cores: frozenset[int]


def placement_of(device: str) -> ProcessPlacement:
    """Returns what a device's name stands for.

    Args:
      device: such as ``cuda:0`` or ``cpu:0-3``; empty: what the server itself sees.

    Returns:
      Where a process runs.

    Raises:
      ServeError: it is not such a name.

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
            f"a device is 'cuda:0', 'cuda:0,1', 'rocm:0', 'cpu' or 'cpu:0-3', got "
            f"{device!r}"
        )
    if match[1]:
        return ProcessPlacement({_VARIABLES[match[1]]: match[2]}, frozenset())
    return ProcessPlacement(dict.fromkeys(_VARIABLES.values(), ""), frozenset(cores))


def move(pid: int, placement: ProcessPlacement) -> None:
    """Lets a process run on its cores alone, as far as the system can.

    Args:
      pid: of a process that has just begun.
      placement: where it is to run.

    Raises:
      ServeError: there are no such cores.
    """
    if not placement.cores or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(pid, placement.cores)
    except ProcessLookupError:
        return  # that it has ended is noticed elsewhere
    except OSError as error:
        raise ServeError(
            f"it cannot run on cores {sorted(placement.cores)}: {error.strerror}"
        ) from None
