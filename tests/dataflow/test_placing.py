"""Where operations run that no scope places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P, dataflow, lax
from fxflow import numpy as fnp
from fxflow.core.arrays.aval import everywhere
from fxflow.dataflow import on, stages
from fxflow.dataflow.placing import Places, place_order
from fxflow.dataflow.tasks.devices import ClusterDevices
from fxflow.errors import PlacementError

DEVICES = fxflow.local_devices()


def places(f: Any, *args: Any) -> dict[str, list[int]]:
    """The ids of the devices that run each operation."""
    found: dict[str, list[int]] = {}
    for fragment in dataflow.jit(f).plan(*args).fragments:
        for node in fragment.graph.nodes:
            ids = found.setdefault(node.primitive.name, [])
            ids.append(fragment.place.device.id)
    return found


def test_an_operation_follows_most_of_its_bytes() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            small = fnp.sin(x[0])
        with on("/device:cpu:2"):
            large = fnp.cos(x)
        return small + large

    found = places(f, fnp.ones((4, 3)))
    # A broadcast runs where its larger result is used.
    assert found["add"] == found["broadcast_in_dim"] == [2]


def test_what_depends_on_arguments_alone_follows_its_uses() -> None:
    def f(x: Any) -> Any:
        y = fnp.sin(x)
        with on("/device:cpu:3"):
            return fnp.exp(y)

    assert places(f, 1.0) == {"sin": [3], "exp": [3]}


def test_what_is_small_and_used_twice_is_computed_twice() -> None:
    def f(x: Any) -> Any:
        y = fnp.sin(x)
        with on("/device:cpu:1"):
            a = fnp.exp(y)
        with on("/device:cpu:2"):
            return a, fnp.tan(y)

    assert sorted(places(f, fnp.ones(3))["sin"]) == [1, 2]
    assert places(f, fnp.ones(3000))["sin"] == [1]
    plan = dataflow.jit(f).plan(fnp.ones(3))
    assert all(edge.source is None for edge in plan.edges)


def test_the_rest_runs_where_the_arguments_are_committed() -> None:
    x = fxflow.device_put(1.0, DEVICES[2])
    assert places(fnp.sin, fnp.float32(1)) == {"sin": [0]}
    assert dataflow.jit(fnp.sin)(x).devices() == {DEVICES[2]}


def test_a_scope_goes_before_a_device_put() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fxflow.device_put(fnp.sin(x), DEVICES[2])
        return fnp.cos(y)

    assert places(f, 1.0)["cos"] == [1]


def test_a_loop_whose_scopes_agree_runs_there() -> None:
    @on("/device:cpu:2")
    def body(i: Any, x: Any) -> Any:
        return fnp.sin(x) + i

    def f(x: Any) -> Any:
        return fxflow.lax.fori_loop(0, 3, body, x)

    assert {i for ids in places(f, 1.0).values() for i in ids} == {2}


def test_scopes_inside_called_functions_are_followed() -> None:
    @fxflow.custom_jvp
    def square(x: Any) -> Any:
        with on("/device:cpu:1"):
            return x * x

    square.defjvp(lambda p, t: (square(*p), 2 * p[0] * t[0]))

    @fxflow.jit
    def inner(x: Any) -> Any:
        with on("/device:cpu:2"):
            return fnp.sin(square(x))

    def f(x: Any) -> Any:
        return fnp.exp(inner(x))

    assert places(f, 2.0) == {"mul": [1], "sin": [2], "exp": [2]}


MESH = fxflow.make_mesh((2,), ("d",), devices=DEVICES[1:3])
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def halves(x: Any) -> Any:
    return fxflow.shard_map(
        lambda part: lax.psum(part, "d"), mesh=MESH, in_specs=P("d"), out_specs=P()
    )(x)


@pytest.mark.parametrize("scoped", [False, True])
def test_a_shard_map_runs_on_its_mesh(scoped: bool) -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:3"):
            x = fnp.sin(x)
        if scoped:
            with on(MESH):
                x = halves(x)
        else:
            x = halves(x)
        with on("/device:cpu:3"):
            return x + 1

    split = dataflow.jit(f)
    want = np.sin(X)
    np.testing.assert_allclose(split(X), want[:2] + want[2:] + 1, rtol=1e-6)
    devices = [sorted(d.id for d in place.devices) for place in split.plan(X).places]
    assert devices == [[3], [1, 2]]


@pytest.mark.parametrize("auto_sharding", [False, True])
def test_operations_without_a_scope_run_where_a_divided_argument_is(
    auto_sharding: bool,
) -> None:
    x = fxflow.device_put(X, NamedSharding(MESH, P("d")))
    step = dataflow.jit(lambda x: (fnp.sum(x), x.T), auto_sharding=auto_sharding)
    (place,) = step.plan(x).places
    assert place is everywhere(MESH)
    total, turned = step(x)
    assert float(total) == X.sum()
    np.testing.assert_array_equal(turned, X.T)


def test_a_sequence_may_name_meshes_for_the_stages() -> None:
    other = fxflow.Mesh([DEVICES[0], DEVICES[3]], "d")

    def f(x: Any) -> Any:
        for stage in dataflow.stages(2):
            with on(stage):
                x = fnp.sin(x @ x.T)
        return x

    plan = dataflow.jit(f, devices=[other, MESH]).plan(X)
    assert plan.places == [everywhere(other), everywhere(MESH)]


def test_a_sharding_and_a_device_map_run_on_their_meshes() -> None:
    def constrained(x: Any) -> Any:
        where = NamedSharding(MESH, P("d"))
        return lax.with_sharding_constraint(fnp.sin(x), where) * 2

    np.testing.assert_allclose(dataflow.jit(constrained)(X), np.sin(X) * 2, rtol=1e-6)

    def mapped(x: Any) -> Any:
        with on("/device:cpu:3"):
            x = fnp.sin(x)
        return fxflow.pmap(lambda v: v * 2, devices=DEVICES[:4])(x)

    np.testing.assert_allclose(dataflow.jit(mapped)(X), np.sin(X) * 2, rtol=1e-6)


def test_a_shard_map_in_another_scope_is_an_error() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:3"):
            return halves(x)

    with pytest.raises(PlacementError, match=r"shard_map \(.*runs on the devices of"):
        dataflow.jit(f).plan(X)


def test_scopes_inside_a_shard_map_are_not_followed() -> None:
    @on("/device:cpu:3")
    def inner(x: Any) -> Any:
        return fnp.sin(x)

    def f(x: Any) -> Any:
        specs: Any = {"mesh": MESH, "in_specs": P("d"), "out_specs": P("d")}
        return fxflow.shard_map(inner, **specs)(x)

    split = dataflow.jit(f)
    np.testing.assert_allclose(split(X), np.sin(X), rtol=1e-6)
    assert "each device of its mesh runs all of it" in str(split.plan(X))
    with pytest.raises(PlacementError, match="put the scopes outside of it"):
        dataflow.jit(f, strict=True).plan(X)


CLUSTER = ClusterDevices({"worker": 2}, [["cpu"], ["cpu"]])


@pytest.mark.parametrize("place", ["scopes", "cost"])
def test_prints_of_values_of_tasks_run_here(place: str) -> None:
    def f(x: Any) -> Any:
        with on("/task:0"):
            y = fnp.sin(x)
        fxflow.debug.print("{}", y)
        with on("/task:1"):
            fxflow.debug.callback(print, y)
            y = fnp.cos(y)
        return fxflow.io_callback(np.sin, y, y)

    plan = dataflow.jit(f, devices=CLUSTER, place=place).plan(fnp.ones(3))
    where = {
        node.primitive.name: str(fragment.place.device)
        for fragment in plan.fragments
        for node in fragment.graph.nodes
    }
    assert where == {
        "sin": "task:0 cpu:0", "cos": "task:1 cpu:0", "python_callback": str(DEVICES[0])
    }  # fmt: skip
    if place == "scopes":
        (note,) = plan.notes
        assert "print (" in note and "this process, not on task:1 cpu:0" in note
        with pytest.raises(PlacementError, match="tasks run programs only"):
            dataflow.jit(f, devices=CLUSTER, strict=True).plan(fnp.ones(3))


def test_a_loop_that_prints_runs_here_and_the_plan_says_so() -> None:
    def body(i: Any, x: Any) -> Any:
        fxflow.debug.print("{}", x)
        return x + 1

    def f(x: Any) -> Any:
        with on("/task:0"):
            x = fnp.sin(x)
        return lax.fori_loop(0, 3, body, x)

    plan = dataflow.jit(f, devices=CLUSTER).plan(fnp.ones(3))
    assert str(plan.fragments[-1].place.device) == str(DEVICES[0])
    assert "runs in this process as a whole, since it calls Python" in plan.notes[0]


@pytest.mark.parametrize("place", ["scopes", "cost"])
@pytest.mark.parametrize("devices", [None, {"a": "rocm:0"}])
def test_a_platform_that_is_absent_is_refused_with_the_line(
    place: str, devices: Any
) -> None:
    def f(x: Any) -> Any:
        with on("/device:rocm:0" if devices is None else "a"):
            return fnp.sin(x)

    match = "(?s)^no device .*rocm.*test_placing.py:"
    if devices:
        match = r"(?s)^devices\['a'\]: no device 'rocm:0': platform 'rocm'"
    with pytest.raises(PlacementError, match=match):
        dataflow.jit(f, devices=devices, place=place).plan(1.0)


@pytest.mark.parametrize(
    ("devices", "match"),
    [
        ({"encodr": "cpu:1", "head": "cpu:0"}, "names 'encodr', .* 'encoder', 'head'"),
        ({"encoder": "cpu:1", "head": "cpu:0", stages(3)[0]: "cpu:2"}, "stage:0/3"),
        ({"encoder": "cpu:1", "head": "cpu:0", 3: "cpu:2"}, "names 3, and"),
    ],
)
def test_labels_that_no_scope_has_are_refused(devices: Any, match: str) -> None:
    def f(x: Any) -> Any:
        with on("encoder"):
            y = fnp.sin(x)
            with on("/device:cpu:2"):
                z = fnp.cos(x)
        for stage in stages(2):
            with on(stage):
                z = z + y
        with on("head"):
            return lax.cond(z > 0, lambda z: z, on("inner")(fnp.exp), z)

    with pytest.raises(PlacementError, match=match) as found:
        dataflow.jit(f, devices=devices).plan(1.0)
    assert "and the stages of stages(2)" in str(found.value)
    known = {
        "encoder": "cpu:1",
        "head": "cpu:0",
        "inner": "cpu:0",
        "stage:1/2": "cpu:0",
    }
    assert len(
        dataflow.jit(f, devices=known | {stages(2)[0]: "cpu:1"}).plan(1.0).places
    )


def test_the_order_of_places() -> None:
    mesh = everywhere(fxflow.make_mesh((2,), ("d",)))
    tasks = [device.place for device in CLUSTER.devices]
    here = [Places(DEVICES).of_device(device) for device in DEVICES[:2]]
    assert sorted([*tasks[::-1], mesh, *here[::-1]], key=place_order) == [
        *here, mesh, *tasks
    ]  # fmt: skip
