"""What scopes say, and that it survives every transformation."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import dataflow, lax, make_graph
from fxflow import numpy as fnp
from fxflow.core.ir.graph import Graph
from fxflow.dataflow import DeviceSpec, Stage, on, stages
from fxflow.dataflow.scopes import where_of
from fxflow.errors import ArgumentError, PlacementError

ONE, TWO = DeviceSpec.parse("/device:cpu:1"), DeviceSpec.parse("/device:cpu:2")


def placed(graph: Graph) -> dict[str, set[Any]]:
    """Where the operations of a graph run, by name."""
    found: dict[str, set[Any]] = {}
    for node in graph.nodes:
        found.setdefault(node.primitive.name, set()).add(where_of(node.scope))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "/job:worker/task:3/device:gpu:1",
        "/job:worker",
        "/task:0",
        "/device:cpu",
        "/job:ps/task:1/device:cpu:0",
    ],
)
def test_a_name_reads_back(text: str) -> None:
    assert str(DeviceSpec.parse(text)) == text


def test_short_names_are_read_as_tensorflow_reads_them() -> None:
    assert DeviceSpec.parse("/cpu:1") == ONE
    assert DeviceSpec.parse("/device:CPU:1") == ONE
    assert DeviceSpec.parse("/replica:0/device:cpu:*") == DeviceSpec(kind="cpu")


@pytest.mark.parametrize("text", ["/", "/gpu:x", "/device:", "/task:a", "//", "/job:"])
def test_what_is_not_a_name_is_refused(text: str) -> None:
    with pytest.raises(PlacementError, match="not a device name"):
        on(text)


@pytest.mark.parametrize("where", [None, 3, "", ["cpu:1"], 1.5])
def test_on_refuses_what_is_not_a_place(where: Any) -> None:
    with pytest.raises(ArgumentError, match="on: where to run is a Device"):
        on(where)


def test_nested_names_are_merged_field_by_field() -> None:
    def f(x: Any) -> Any:
        with on("/job:worker/task:1/device:cpu:0"):
            with on("/device:gpu:2"):
                x = fnp.sin(x)
            with on("/task:3"):
                x = fnp.cos(x)
            with on("head"):
                return fnp.tanh(x)

    found = placed(make_graph(f)(1.0).graph)
    assert {str(*w) for w in [found["sin"]]} == {"/job:worker/task:1/device:gpu:2"}
    assert {str(*w) for w in [found["cos"]]} == {"/job:worker/task:3/device:cpu:0"}
    assert found["tanh"] == {"head"}


def test_a_cotangent_is_where_its_primal_was() -> None:
    def f(x: Any) -> Any:
        with on(ONE):
            y = fnp.sin(x)
        with on(TWO):
            return fnp.exp(y)

    found = placed(make_graph(fxflow.grad(f))(1.0).graph)
    assert found["sin"] == found["cos"] == {ONE}
    assert found["exp"] == {TWO}
    assert found["mul"] == {ONE, TWO}


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fxflow.jit(f),
        lambda f: fxflow.checkpoint(f),
        lambda f: fxflow.vmap(f),
        lambda f: lambda x: fxflow.jvp(f, (x,), (x,))[1],
        lambda f: lambda x: fxflow.vjp(f, x)[0],
        lambda f: fxflow.vmap(fxflow.jit(fxflow.grad(lambda x: f(x).sum()))),
    ],
)
def test_transformations_keep_scopes(transform: Any) -> None:
    @on(ONE)
    def f(x: Any) -> Any:
        return fnp.sin(x) * 2

    plan = dataflow.jit(transform(f)).plan(fnp.ones((2, 3)))
    assert [d.id for p in plan.places for d in p.devices] == [1]


def test_a_function_traced_before_is_traced_for_another_scope() -> None:
    inner = fxflow.jit(fnp.sin)

    def f(x: Any) -> Any:
        with on(ONE):
            x = inner(x)
        with on(TWO):
            return inner(x)

    plan = dataflow.jit(f).plan(1.0)
    assert [d.id for p in plan.places for d in p.devices] == [1, 2]


def test_a_loop_traced_before_is_traced_for_another_scope() -> None:
    def body(c: Any, _: Any) -> Any:
        return fnp.sin(c), None

    def f(x: Any) -> Any:
        with on(ONE):
            x = lax.scan(body, x, length=3)[0]
        with on(TWO):
            return lax.scan(body, x, length=3)[0]

    plan = dataflow.jit(f).plan(1.0)
    assert [d.id for p in plan.places for d in p.devices] == [1, 2]


def test_a_scope_changes_no_type_and_no_value() -> None:
    f = on(ONE)(lambda x: x * 2 + 1)
    assert f(1.5) == 4.0
    x = fnp.ones(3, fnp.bfloat16)
    assert fxflow.typeof(f(x)) == fxflow.typeof(x)
    assert fxflow.jit(f)(x).devices() == x.devices()


def test_an_exception_ends_the_scope() -> None:
    with pytest.raises(ZeroDivisionError), on(ONE):
        raise ZeroDivisionError
    (node,) = make_graph(fnp.sin)(1.0).graph.nodes
    assert where_of(node.scope) is None


def test_colocate_follows_a_value() -> None:
    def f(x: Any) -> Any:
        with on(ONE):
            y = fnp.sin(x)
        z = fnp.tan(y)  # follows its operand
        with dataflow.colocate(y):
            a = fnp.cos(x)
        with dataflow.colocate(z):
            b = fnp.exp(x)
        with dataflow.colocate(x):
            return a, b, z

    plan = dataflow.jit(f).plan(1.0)
    assert [d.id for p in plan.places for d in p.devices] == [1]
    with dataflow.colocate(fnp.ones(2)):
        assert fnp.sin(0.0) == 0
    with pytest.raises(ArgumentError, match="colocate"):
        dataflow.colocate("x")


def test_colocate_sees_below_derivatives_and_batches() -> None:
    def f(x: Any) -> Any:
        with on(TWO):
            y = fnp.sin(x)
        with dataflow.colocate(y):
            return (y * fnp.cos(x)).sum()

    plan = dataflow.jit(fxflow.vmap(fxflow.grad(f))).plan(fnp.ones((2, 3)))
    assert [d.id for p in plan.places for d in p.devices] == [2]


def test_a_function_that_is_traced_in_two_meshes_runs_in_both() -> None:
    own = fxflow.local_devices()
    meshes = fxflow.Mesh(own[:2], "x"), fxflow.Mesh(own[2:4], "x")
    assert str(meshes[0]) == str(meshes[1])
    inner = fxflow.jit(lambda x: fnp.sin(x) + 1)

    def f(x: Any) -> Any:
        for mesh in meshes:
            with on(mesh):
                x = inner(x)
        return x

    plan = dataflow.jit(f).plan(fnp.ones(4))
    assert [place.devices for place in plan.places] == [mesh.flat for mesh in meshes]
    scopes = [on(mesh).name for mesh in meshes]
    assert scopes[0] == on(meshes[0]).name == "on(Mesh('x': 2))"
    assert scopes[0] != scopes[1]
    assert hash(scopes[0]) == hash(scopes[1])


def test_stages() -> None:
    assert stages(3)[1] == Stage(1, 3)
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(ArgumentError, match="positive integer"):
            stages(wrong)  # type: ignore[arg-type]


def test_a_task_without_a_cluster_is_an_error_that_says_how() -> None:
    def f(x: Any) -> Any:
        with on("/job:worker/task:3/device:cpu:0"):
            return fnp.sin(x)

    with pytest.raises(PlacementError, match=r"task:3.*dataflow.jit\(devices=cluster"):
        dataflow.jit(f).plan(1.0)
