"""Kinds of memory that a device can reach, and names for them.

A device has memory of its own, where programs compute, and may reach others: host
memory that is pinned for it (`"pinned_host"`), for what does not fit. Everywhere in
this package None stands for the device's own memory, whatever its kind is called.
"""

from __future__ import annotations

import enum

from fxflow.devices._jaxlib import Device, RuntimeFailure
from fxflow.errors import PlacementError

#: Host memory that devices read and write directly.
HOST = "pinned_host"


class Space(enum.Enum):
    """A memory, whatever device and layout an array has: where `device_put` may put it.

    Attributes:
      Device: the device's own memory.
      Host: memory of the host that the device reaches.
    """

    Device = 1
    Host = 2

    def __repr__(self) -> str:
        return f"Space.{self.name}"


def kinds_of(device: Device) -> list[str]:
    """Returns the kinds of memory a device reaches; none, if it does not say."""
    return [str(memory.kind) for memory in device.addressable_memories()]


def usual_kind(device: Device) -> str:
    """Returns the kind of a device's own memory."""
    try:
        return str(device.default_memory().kind)
    except RuntimeFailure:  # of a described GPU, which is not here
        return "device"


def check_kind(device: Device, kind: str | None) -> str | None:
    """Returns a kind of memory, None if it is the device's own.

    Raises:
      PlacementError: the device has no such memory.
    """
    if kind is None:
        return None
    known = kinds_of(device)
    if not isinstance(kind, str) or (known and kind not in known):
        raise PlacementError(
            f"memory_kind: {device} has no memory of kind {kind!r}; it has "
            f"{', '.join(known)}"
        )
    return None if kind == usual_kind(device) else kind


def kind_of(space: Space, device: Device) -> str | None:
    """Returns the kind of memory that a space is on a device, None for its own.

    Raises:
      PlacementError: the device reaches no host memory.
    """
    if space is Space.Device:
        return None
    known = kinds_of(device)
    for kind in (HOST, "unpinned_host"):
        if not known or kind in known:
            return check_kind(device, kind)
    raise PlacementError(f"{device} reaches no host memory; it has {', '.join(known)}")
