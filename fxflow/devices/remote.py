"""Devices of processes that this one exchanges messages with, such as tasks.

This process's runtime does not know them, so no array of this process is on one. Meshes
and shardings of them say how arrays are divided there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from fxflow.errors import PlacementError

if TYPE_CHECKING:
    from fxflow.devices.buffers import Placement


class RemoteDevice:
    """Base class of devices that only messages reach.

    Attributes:
      platform: `cpu`, `gpu` or `tpu`.
      id: index among its process's devices of that platform.
    """

    __slots__ = ()

    platform: str
    id: int

    @property
    def process(self) -> Hashable:
        """What devices of one process have in common."""
        raise NotImplementedError

    @property
    def process_index(self) -> int:
        """The number of the process."""
        raise NotImplementedError

    def placement(self, sharding: Any = None) -> Placement:
        """Returns the one placement on it, or on the devices of a sharding.

        Args:
          sharding: a sharding over devices of its process; None is this device alone.
        """
        raise NotImplementedError


def require_one_process(devices: Sequence[Any], what: str) -> None:
    """Checks that remote devices that are used together belong to one process.

    Args:
      devices: of any kind.
      what: uses them, for the message.

    Raises:
      PlacementError: they belong to several processes.
    """
    processes = {d.process for d in devices if isinstance(d, RemoteDevice)}
    if not processes:
        return
    if len(processes) > 1 or not all(isinstance(d, RemoteDevice) for d in devices):
        raise PlacementError(
            f"{what} has devices of several processes: {', '.join(map(str, devices))}. "
            "The devices of a mesh belong to one task: give each task a mesh of its "
            "own. To run one program on the devices of several processes, use "
            "fxflow.jit in processes that fxflow.distributed.initialize connects"
        )


def refusal(
    devices: Sequence[Any], what: str = "arrays and programs of this process"
) -> PlacementError:
    """Returns the error for what needs devices of this process.

    Args:
      devices: that it names, which are remote.
      what: is to be there.
    """
    return PlacementError(
        f"{what} cannot be on {', '.join(map(str, devices))}: only functions of "
        "fxflow.dataflow.jit run on the devices of tasks, in scopes such as "
        "dataflow.on(device) or dataflow.on(mesh), and only their results are there"
    )
