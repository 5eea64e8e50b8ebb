"""Where operations run that no scope places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P, dataflow, lax
from fxflow import numpy as fnp
from fxflow.core.arrays.aval import everywhere
from fxflow.dataflow import on
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
