"""Where operations run that no scope places."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import on

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
