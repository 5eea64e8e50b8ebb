"""Lowering of fragments: equal ones are one program, and tasks run programs only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, lax
from fxflow.core.arrays import ShapeDtypeStruct, as_array
from fxflow.dataflow import on
from fxflow.dataflow.lowering import described, lower
from fxflow.dataflow.tasks.devices import ClusterDevices
from fxflow.errors import PlacementError

X = ShapeDtypeStruct((4,), "float32")
CLUSTER = ClusterDevices({"worker": 1}, [["cpu"]])


def test_a_fragment_for_a_task_is_the_program_of_one_for_a_device_here() -> None:
    def f(x: Any) -> Any:
        with on("a"):
            return fnp.sin(x) @ x

    texts = []
    for device in ("cpu:1", CLUSTER.devices[0]):
        plan = dataflow.jit(f, devices={"a": device}).plan(X)
        (fragment,) = plan.fragments
        texts.append(lower(fragment, {}, plan).program.text_without_locations)
    assert texts[0] == texts[1]


def test_a_fragment_for_the_mesh_of_a_task_is_that_of_a_mesh_here() -> None:
    def f(w: Any, x: Any) -> Any:
        with on("a"):
            return fnp.tanh(x @ w)

    cluster = ClusterDevices({"worker": 1}, [["cpu", "cpu"]])
    w, x = (ShapeDtypeStruct(s, "float32") for s in ((64, 512), (8, 64)))
    for divided in (True, False):
        found = []
        for devices in (fxflow.local_devices()[:2], cluster.devices):
            mesh = fxflow.Mesh(devices, "x")
            step = dataflow.jit(f, devices={"a": mesh}, auto_sharding=divided)
            plan = step.plan(w, x)
            found.append(lower(plan.fragments[0], {}, plan))
        texts = [lowered.program.text_without_locations for lowered in found]
        assert texts[0] == texts[1]
        assert ('[{}, {"x"}]' in texts[0]) == divided
        specs = [[p.sharding.spec for p in lowered.wheres] for lowered in found]
        assert specs[0] == specs[1]
        assert (fxflow.P(None, "x") in specs[0]) == divided
        assert {p.devices for p in found[1].results} == {tuple(cluster.devices)}


def test_a_program_without_arguments_is_for_its_mesh() -> None:
    mesh = fxflow.Mesh(fxflow.local_devices()[2:4], "x")
    four = as_array(np.arange(4, dtype="float32"))
    got = dataflow.jit(on(mesh)(lambda x: four + 1))(1.0)
    assert got.devices() == set(mesh.flat)
    np.testing.assert_array_equal(got, np.arange(4) + 1)


def test_what_a_mesh_holds_in_parts_must_fit_on_each_device() -> None:
    cluster = ClusterDevices({"worker": 1}, [["cpu", "cpu"]])
    for device in cluster.devices:
        device.memory = 3000
    f = on(fxflow.Mesh(cluster.devices, "x"))(fnp.sin)
    x = ShapeDtypeStruct((1000,), "float32")
    dataflow.jit(f).plan(x)  # 2000 bytes each
    with pytest.raises(PlacementError, match="takes 4,000 bytes on each device, more"):
        dataflow.jit(f, auto_sharding=False).plan(x)


def test_equal_fragments_have_one_key() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)
        with on("/device:cpu:2"):
            b = fnp.sin(x)
        with on("/device:cpu:1"):
            return fnp.sin(b), a

    plan = dataflow.jit(f).plan(X)
    keys = [lower(fragment, {}, plan).key for fragment in plan.fragments]
    assert len(keys) == 3
    assert len(set(keys)) == 2


def test_large_captured_values_are_arguments() -> None:
    large = as_array(np.arange(4000, dtype="float32"))
    small = as_array(np.arange(4, dtype="float32"))

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            return x * fnp.sum(large) + small

    step = dataflow.jit(f)
    traced = step.trace(X)
    plan = step.plan(X)
    (fragment,) = plan.fragments
    consts = dict(zip(traced.graph.inputs, map(as_array, traced.consts)))
    found = lower(fragment, consts, plan)
    assert [v.aval.shape for v in found.constants] == [(4000,)]
    assert len(found.inputs) == 1
    assert "1 of f" not in described("f", fragment)()
    assert "fragment 0 of f on cpu:1, which begins with" in described("f", fragment)()


def printed(i: Any, x: Any) -> Any:
    fxflow.debug.print("{}", x)
    return x + 1


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda x: fxflow.pure_callback(np.sin, x, x), r"^sin, by python_callback \("),
        (
            lambda x: lax.fori_loop(0, 3, printed, x),
            r"^debug.print \(.*test_lowering.* calls Python within scan \(",
        ),
    ],
)
def test_python_does_not_run_in_tasks(body: Any, match: str) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            return body(x)

    with pytest.raises(PlacementError, match=match) as e:
        dataflow.jit(f, devices=CLUSTER).plan(X)
    assert "is on task:0 cpu:0: tasks run programs only" in str(e.value)
    assert "test_lowering.py" in str(e.value)
