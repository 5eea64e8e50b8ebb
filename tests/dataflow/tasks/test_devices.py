"""Devices of tasks: names, places and plans, without a process."""

import copy
import gc
import pickle
import weakref

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.core.arrays import ShapeDtypeStruct
from fxflow.core.arrays.aval import everywhere
from fxflow.dataflow import DeviceSpec, on, stages
from fxflow.dataflow.placing import place_name
from fxflow.dataflow.tasks.devices import ClusterDevices, TaskPlace, cluster_among
from fxflow.errors import ArgumentError, PlacementError

X = ShapeDtypeStruct((4, 4), "float32")


def described() -> ClusterDevices:
    return ClusterDevices({"worker": 2, "ps": 1}, [["cpu", "cpu"], ["cpu"], ["gpu"]])


def test_devices_are_numbered_by_task_and_platform() -> None:
    names = [str(device.spec) for device in described().devices]
    assert names == [
        "/job:worker/task:0/device:cpu:0",
        "/job:worker/task:0/device:cpu:1",
        "/job:worker/task:1/device:cpu:0",
        "/job:ps/task:0/device:gpu:0",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/job:worker/task:0/device:cpu:1", "job:worker task:0 cpu:1"),
        ("/task:1", "job:worker task:1 cpu:0"),
        ("/job:ps", "job:ps task:0 gpu:0"),
        ("/job:ps/device:cuda:0", "job:ps task:0 gpu:0"),
    ],
)
def test_a_name_may_leave_parts_open(name: str, expected: str) -> None:
    assert str(described().device_named(DeviceSpec.parse(name))) == expected


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("/job:worker/task:2", "no task 2 in job 'worker': .* 2 of job 'worker', 1 of"),
        ("/job:master", "no task 0 in job 'master'"),
        ("/task:1/device:cpu:1", "job:worker task:1 has cpu:0"),
        ("/job:ps/device:cpu:0", "no device .* has gpu:0"),
    ],
)
def test_an_unknown_device_names_those_that_exist(name: str, match: str) -> None:
    with pytest.raises(PlacementError, match=match):
        described().device_named(DeviceSpec.parse(name))


def test_devices_are_unknown_before_a_task_tells() -> None:
    with pytest.raises(PlacementError, match="connect first"):
        _ = ClusterDevices({"worker": 1}).devices


def test_a_place_is_its_devices_own() -> None:
    first, second = described().devices[:2]
    assert type(first.place) is TaskPlace
    assert first.place.same_layout(first.place, 1)
    assert not first.place.same_layout(second.place, 1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(first)
    with pytest.raises(TypeError, match="cannot be pickled"):
        copy.deepcopy(first)


def test_places_of_two_clusters_are_refused() -> None:
    one, other = described(), described()
    assert cluster_among([d.place for d in one.devices]) is one
    assert cluster_among([]) is None
    with pytest.raises(ArgumentError, match="several clusters"):
        cluster_among([one.devices[0].place, other.devices[0].place])


def test_a_plan_needs_no_process() -> None:
    def loss(params: list[fxflow.Array], x: fxflow.Array) -> fxflow.Array:
        for stage, w in zip(stages(2), params):
            with on(stage):
                x = fnp.tanh(x @ w)
        return fnp.mean(x**2)

    cluster = ClusterDevices({"worker": 2}, [["cpu"], ["cpu"]])
    plan = dataflow.jit(fxflow.grad(loss), devices=cluster).plan([X, X], X)
    assert {str(place) for place in plan.places} == {"task:0 cpu:0", "task:1 cpu:0"}
    assert "task:1 cpu:0" in str(plan)


def test_scopes_name_tasks_part_by_part() -> None:
    def f(x: fxflow.Array) -> fxflow.Array:
        with on("/job:worker"), on("/task:1"), on("/device:cpu:0"):
            y = fnp.sin(x)
        with on("/device:cpu:0"):  # of this process
            return y @ y

    plan = dataflow.jit(f, devices=described()).plan(X)
    assert list(map(str, plan.places)) == ["job:worker task:1 cpu:0", "cpu:0"]


def test_a_device_is_a_scope_and_a_stage() -> None:
    first, _, third, _ = described().devices

    def f(x: fxflow.Array) -> fxflow.Array:
        with on("a"):
            y = fnp.sin(x)
        with on(third):
            return y @ y

    for devices in ({"a": first}, [first]):
        step = dataflow.jit(f, devices=devices)
        if isinstance(devices, dict):
            assert [p.device for p in step.plan(X).places] == [first, third]
        else:
            with pytest.raises(PlacementError, match="no device for the label 'a'"):
                step.plan(X)


def test_the_device_of_a_task_is_a_scope_without_its_cluster() -> None:
    cluster = described()
    first = cluster.devices[0]

    def f(x: fxflow.Array) -> fxflow.Array:
        with on(first):
            y = fnp.sin(x)
            with on("/device:cpu:1"):
                return y @ y

    # This process is task 0 of a job "worker", too, and has such devices.
    plan = dataflow.jit(f).plan(X)
    assert [place.device for place in plan.places] == cluster.devices_of(0)
    assert first.spec.merge(DeviceSpec(task=1)).cluster is cluster


def test_a_scope_that_no_task_has_names_the_line() -> None:
    def f(x: fxflow.Array) -> fxflow.Array:
        with on("/job:worker/task:7"):
            return fnp.sin(x)

    with pytest.raises(PlacementError, match=r"no task 7 .*test_devices\.py"):
        dataflow.jit(f, devices=described()).plan(X)


def mesh_of(cluster: ClusterDevices) -> fxflow.Mesh:
    return fxflow.Mesh(cluster.devices_of(0), "x")


def test_a_mesh_of_a_task_is_a_place() -> None:
    cluster = described()
    mesh = mesh_of(cluster)
    place = everywhere(mesh)
    assert type(place) is TaskPlace
    assert not place.is_single
    assert place is cluster.place_of(fxflow.NamedSharding(mesh, fxflow.P()))
    assert place is everywhere(mesh_of(cluster))
    assert str(place) == "job:worker task:0 mesh of cpu:0 cpu:1"
    assert cluster_among([place]) is cluster
    divided = cluster.place_of(fxflow.NamedSharding(mesh, fxflow.P("x")))
    assert divided is not place
    assert not divided.same_layout(place, 1)
    with pytest.raises(PlacementError, match="arrays of this process cannot be on"):
        divided.runtime(1)


def test_a_cluster_is_freed_after_its_meshes_were_used() -> None:
    def planned() -> weakref.ref[ClusterDevices]:
        cluster = described()

        def f(x: fxflow.Array) -> fxflow.Array:
            with on(cluster.devices[1]):
                x = fnp.cos(x)
            with on(mesh_of(cluster)):
                return fnp.sin(x)

        step = dataflow.jit(f)
        assert cluster_among(step.plan(X).places) is cluster
        return weakref.ref(cluster)

    made = planned()
    gc.collect()
    assert made() is None


def test_meshes_are_stages_and_labels() -> None:
    cluster = ClusterDevices({"worker": 2}, [["cpu", "cpu"]] * 2)
    meshes = [fxflow.Mesh(cluster.devices_of(task), "x") for task in range(2)]

    def f(x: fxflow.Array) -> fxflow.Array:
        for stage in stages(2):
            with on(stage):
                x = fnp.sin(x) @ x
        with on("a"):
            return x + 1

    named = dict(zip(stages(2), meshes)) | {"a": meshes[0]}
    plan = dataflow.jit(f, devices=named).plan(X)
    assert list(map(place_name, plan.places)) == [
        "task:0 mesh of cpu:0 cpu:1",
        "task:1 mesh of cpu:0 cpu:1",
    ]
    assert "task:1 mesh of cpu:0 cpu:1: " in str(plan)
    alone = dataflow.jit(lambda x: f(x), devices=meshes)
    with pytest.raises(PlacementError, match="no device for the label 'a'"):
        alone.plan(X)
