"""Kinds of memory of devices, and the kinds of spaces."""

import pytest

from fxflow.devices import PlacementError, local_devices
from fxflow.devices._jaxlib import RuntimeFailure
from fxflow.devices.memory_kinds import (
    Space,
    check_kind,
    default_kind,
    kind_of,
    kinds_of,
)


class Memory:
    def __init__(self, kind):
        self.kind = kind


class Device:
    """A device with the given kinds of memory; the first is its default."""

    def __init__(self, *kinds):
        self.kinds = kinds

    def addressable_memories(self):
        return [Memory(kind) for kind in self.kinds]

    def default_memory(self):
        if not self.kinds:
            raise RuntimeFailure("UNIMPLEMENTED")
        return Memory(self.kinds[0])

    def __repr__(self):
        return "Device(0)"


def test_the_cpu():
    device = local_devices()[0]
    assert default_kind(device) == "device"
    assert {"device", "pinned_host"} <= {*kinds_of(device)}
    assert check_kind(device, None) is check_kind(device, "device") is None
    assert check_kind(device, "pinned_host") == "pinned_host"
    assert kind_of(Space.Device, device) is None
    assert kind_of(Space.Host, device) == "pinned_host"
    with pytest.raises(PlacementError, match="no memory of kind 'hbm'; it has device"):
        check_kind(device, "hbm")


@pytest.mark.parametrize(
    ("kinds", "usual", "host"),
    [
        (("device", "pinned_host"), "device", "pinned_host"),
        (("device", "unpinned_host"), "device", "unpinned_host"),
        # Its default memory is host memory, where the array already is.
        (("unpinned_host",), "unpinned_host", None),
        # A GPU of a topology does not list its memories.
        ((), "device", "pinned_host"),
    ],
)
def test_memory_kinds_of_accelerators(kinds, usual, host):
    device = Device(*kinds)
    assert default_kind(device) == usual
    assert kind_of(Space.Host, device) == host
    assert check_kind(device, usual) is None


def test_a_device_without_host_memory():
    with pytest.raises(
        PlacementError, match=r"Device\(0\) cannot address host memory.*hbm"
    ):
        kind_of(Space.Host, Device("hbm"))
