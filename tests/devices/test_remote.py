"""Devices of tasks in meshes and shardings: what they say, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import Mesh, NamedSharding, P
from fxflow.dataflow.tasks.devices import ClusterDevices
from fxflow.devices import Device, buffers, remote
from fxflow.errors import PlacementError

CLUSTER = ClusterDevices({"worker": 2}, [["cpu", "cpu"], ["cpu", "cpu"]])
MESH = Mesh(np.array(CLUSTER.devices_of(0)), ("x",))
DIVIDED = NamedSharding(MESH, P("x"))


def test_a_mesh_has_the_devices_of_one_task() -> None:
    assert MESH.flat == tuple(CLUSTER.devices_of(0))
    assert MESH.device_ids.tolist() == [0, 1]
    assert MESH.local_devices == []
    assert not MESH.is_multi_process
    assert Mesh(CLUSTER.devices_of(0), "x") == MESH
    assert Mesh(CLUSTER.devices_of(1), "x") != MESH
    assert fxflow.make_mesh((2,), ("x",), devices=CLUSTER.devices_of(0)) == MESH


@pytest.mark.parametrize(
    "devices",
    [CLUSTER.devices, [CLUSTER.devices[0], "cpu:0"]],
    ids=["two tasks", "a task and this process"],
)
def test_a_mesh_over_several_processes_is_refused(devices: list[Any]) -> None:
    match = r"several processes: task:0 cpu:0, .* give each task a mesh of its own"
    with pytest.raises(PlacementError, match=match):
        Mesh(devices, "x")


def test_two_clusters_have_different_devices() -> None:
    other = ClusterDevices({"worker": 1}, [["cpu"]])
    with pytest.raises(PlacementError, match="several processes"):
        Mesh([CLUSTER.devices[0], other.devices[0]], "x")
    remote.require_one_process(CLUSTER.devices_of(1), "a mesh")


def test_a_sharding_says_what_each_device_has() -> None:
    assert DIVIDED.shard_shape((4, 6)) == (2, 6)
    slices = [index[0] for index in DIVIDED.devices_indices_map((4,)).values()]
    assert slices == [slice(0, 2), slice(2, 4)]
    assert not DIVIDED.addressable_devices
    assert not DIVIDED.is_fully_addressable
    assert DIVIDED.memory_kind == "device"
    with pytest.raises(PlacementError, match=r"task:0 cpu:0 has no memory of kind"):
        NamedSharding(MESH, P(), memory_kind="pinned_host")


def test_a_placement_is_one_object() -> None:
    assert buffers.placement_for(DIVIDED) is buffers.placement_for(
        NamedSharding(Mesh(CLUSTER.devices_of(0), "x"), P("x", None))
    )
    (device,) = fxflow.sharding.SingleDeviceSharding(CLUSTER.devices[1]).devices
    assert buffers.placement(device) is CLUSTER.devices[1].place


def ones_on(where: Any) -> Any:
    return fxflow.device_put(np.ones(4, "float32"), where)


doubled = fxflow.shard_map(
    lambda x: x * 2, mesh=MESH, in_specs=P("x"), out_specs=P("x")
)


@pytest.mark.parametrize(
    "use",
    [
        lambda: ones_on(CLUSTER.devices[0]),
        lambda: ones_on(DIVIDED),
        lambda: fnp.zeros(4, device=DIVIDED),
        lambda: fxflow.jit(fnp.sin, in_shardings=DIVIDED)(fnp.ones(4)),
        lambda: fxflow.jit(fnp.sin, out_shardings=DIVIDED)(fnp.ones(4)),
        lambda: fxflow.jit(doubled)(fnp.ones(4)),
        lambda: doubled(fnp.ones(4)),
        lambda: fxflow.devices.set_default_device(CLUSTER.devices[0]),
    ],
)
def test_only_dataflow_functions_use_them(use: Callable[[], Any]) -> None:
    with pytest.raises(PlacementError, match=r"on task:0 cpu:0.*dataflow\.jit run on"):
        use()


def test_own_devices_are_not_remote() -> None:
    own = fxflow.local_devices()
    assert all(isinstance(d, Device) for d in own)
    with pytest.raises(NotImplementedError):
        _ = remote.RemoteDevice().process
