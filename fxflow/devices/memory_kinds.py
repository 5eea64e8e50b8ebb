"""Kinds of memory that a device can address.

A device has a default memory, in which programs compute, and may address others: pinned
host memory (`"pinned_host"`), for arrays that do not fit. Everywhere in this package
None stands for the device's default memory, whatever the name of its kind.
"""

from __future__ import annotations

import enum

from fxflow.devices._jaxlib import Device, RuntimeFailure
from fxflow.devices.remote import RemoteDevice
from fxflow.errors import PlacementError

#: Host memory that devices read and write directly.
HOST = "pinned_host"


class Space(enum.Enum):
    """A target of `device_put`: another memory, on the same devices in the same layout.

    Attributes:
      Device: the device's default memory.
      Host: host memory that the device can address.
    """

    Device = 1
    Host = 2

    def __repr__(self) -> str:
        return f"Space.{self.name}"


def kinds_of(device: Device) -> list[str]:
    """Returns the kinds of memory that a device can address; empty if unknown."""
    if isinstance(device, RemoteDevice):
        return [default_kind(device)]
    return [str(memory.kind) for memory in device.addressable_memories()]


def default_kind(device: Device) -> str:
    """Returns the kind of a device's default memory."""
    if isinstance(device, RemoteDevice):
        return "device"
    try:
        return str(device.default_memory().kind)
    except RuntimeFailure:  # a GPU of a topology
        return "device"


def check_kind(device: Device, kind: str | None) -> str | None:
    """Returns a kind of memory, None if it is the device's default.

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
    return None if kind == default_kind(device) else kind


def kind_of(space: Space, device: Device) -> str | None:
    """Returns the kind of memory of a space on a device, None for the default.

    Raises:
      PlacementError: the device cannot address host memory.
    """
    if space is Space.Device:
        return None
    known = kinds_of(device)
    for kind in (HOST, "unpinned_host"):
        if not known or kind in known:
            return check_kind(device, kind)
    raise PlacementError(
        f"{device} cannot address host memory; it has {', '.join(known)}"
    )
