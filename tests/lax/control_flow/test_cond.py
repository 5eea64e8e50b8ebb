"""`cond` and `switch`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import config, jit, lax, make_graph, vmap
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError

XS = np.array([-1.0, 0.5, 2.0], np.float32)


def piecewise(x: Any) -> Any:
    return lax.cond(lax.gt(x, 1.0), lambda x: lax.mul(x, x), lambda x: lax.neg(x), x)


def test_values_and_derivatives_in_all_modes() -> None:
    want, slope = [1.0, -0.5, 4.0], [-1.0, -1.0, 4.0]
    gradient = fxflow.grad(piecewise)
    for x, y, dy in zip(XS, want, slope, strict=True):
        assert float(piecewise(x)) == float(jit(piecewise)(x)) == y
        assert float(gradient(x)) == float(jit(gradient)(x)) == dy
        assert float(fxflow.grad(jit(piecewise))(x)) == dy
        assert float(fxflow.jvp(jit(piecewise), (x,), (1.0,))[1]) == dy
    assert vmap(piecewise)(XS).tolist() == want
    assert vmap(gradient)(XS).tolist() == slope
    assert jit(vmap(jit(gradient)))(XS).tolist() == slope


def test_only_the_chosen_branch_runs() -> None:
    run = jit(lambda p, x: lax.cond(p, lax.sin, lax.cos, x))
    text = run.lower(True, 1.0).as_text()
    assert text.count("stablehlo.case") == 1
    assert "stablehlo.select" not in text
    assert "stablehlo.case" not in jit(vmap(run)).lower(XS > 0, XS).as_text()


def test_known_condition_leaves_one_branch() -> None:
    graph = make_graph(lambda x: lax.cond(True, lax.sin, lax.cos, x))(1.0)
    assert [n.primitive.name for n in graph.nodes] == ["sin"]


@pytest.mark.parametrize("pred", [1, 0, 2.5, np.int32(7), np.bool_(False)])
def test_numbers_as_conditions(pred: Any) -> None:
    want = 1.0 if pred else 2.0
    run = lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0)
    assert float(run(pred)) == float(jit(run)(pred)) == want


def test_switch_clamps() -> None:
    branches = [lambda x: x, lambda x: lax.mul(x, 10.0), lambda x: lax.mul(x, 100.0)]
    run = lambda i, x: lax.switch(i, branches, x)
    for i, want in ((-5, 1.0), (0, 1.0), (1, 10.0), (2, 100.0), (9, 100.0)):
        assert float(run(i, 1.0)) == float(jit(run)(i, 1.0)) == want
    assert float(jit(run)(np.uint8(200), 1.0)) == 100.0
    indices = np.array([0, 1, 2, 3], np.int32)
    out = vmap(run, (0, None))(indices, 1.0)
    assert out.tolist() == [1.0, 10.0, 100.0, 100.0]
    assert float(lax.switch(3, [lambda x: x], 2.0)) == 2.0


def test_captured_values_and_trees() -> None:
    def run(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(
            p,
            lambda d: {"a": lax.mul(d["v"], x), "b": (x,)},
            lambda d: {"a": d["v"], "b": (y,)},
            {"v": lax.add(x, y)},
        )

    out = jit(run)(True, 2.0, 3.0)
    assert (float(out["a"]), float(out["b"][0])) == (10.0, 2.0)
    gradient = jit(fxflow.grad(lambda x, y: run(lax.gt(x, 1.0), x, y)["a"], (0, 1)))
    assert tuple(map(float, gradient(2.0, 3.0))) == (7.0, 2.0)
    assert tuple(map(float, gradient(0.0, 3.0))) == (1.0, 1.0)


def test_weak_and_strong_results_become_strong() -> None:
    run = lambda p, x: lax.cond(p, lambda: 1.0, lambda: x)
    for out in (run(True, XS[0]), jit(run)(True, XS[0])):
        assert not out.weak_type


def test_tangent_slots_are_shared_between_branches() -> None:
    x = np.ones((4,), np.float32)

    def run(p: Any, x: Any) -> Any:
        return lax.reduce_sum(
            lax.cond(p, lambda: lax.sin(lax.exp(x)), lambda: lax.cos(lax.tanh(x))), (0,)
        )

    graph = make_graph(fxflow.grad(run, 1))(True, x)
    forward = next(n for n in graph.nodes if n.primitive.name == "cond")
    stored = [v for v in forward.outputs if v.aval.shape == (4,)]
    assert len(stored) == 2, "two values of f32[4] for either branch"


def test_unwanted_results_are_dropped() -> None:
    def run(p: Any, x: Any, y: Any) -> Any:
        branches = [lambda: (lax.sin(x), lax.cos(y)), lambda: (x, y)]
        return lax.cond(p, *branches)[0]

    node = make_graph(run)(True, 1.0, 2.0).nodes[-1]
    assert len(node.outputs) == 1
    assert len(node.inputs) == 2, "index and x"


def test_disable_jit() -> None:
    with config.override(disable_jit=True):
        assert lax.cond(True, lambda: "any", lambda: 0) == "any"
        assert lax.switch(5, [lambda: 1, lambda: "last"]) == "last"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.cond(np.ones(2), lax.sin, lax.cos, 1.0),
            ShapeError,
            r"pred must be a scalar, got f32\[2\].*\.any\(\)",
        ),
        (
            lambda: lax.cond("yes", lax.sin, lax.cos, 1.0),
            ArgumentError,
            "pred is 'yes'",
        ),
        (lambda: lax.cond(1j, lax.sin, lax.cos, 1.0), DtypeError, "real number"),
        (lambda: lax.cond(True, 1.0, lax.cos, 1.0), ArgumentError, "true_fun must be"),
        (
            lambda: lax.cond(True, lambda x: (x,), lambda x: x, 1.0),
            TreeError,
            "branches must return one structure, but true_fun differs from false_fun",
        ),
        (
            lambda: lax.cond(
                True, lambda x: x, lambda x: lax.convert_element_type(x, np.int32), 1.0
            ),
            DtypeError,
            r"false_fun returns i32\[\] and true_fun returns f32\[\]",
        ),
        (
            lambda: lax.cond(
                True, lambda x: {"a": x}, lambda x: {"a": lax.broadcast(x, (2,))}, 1.0
            ),
            ShapeError,
            r"false_fun returns f32\[2\].* and true_fun returns f32\[\].* at \['a'\]",
        ),
        (lambda: lax.switch(0, [], 1.0), ArgumentError, "at least one branch"),
        (lambda: lax.switch(0, [1.0], 1.0), ArgumentError, r"branches\[0\] must be"),
        (
            lambda: lax.switch(1.5, [lax.sin, lax.cos], 1.0),
            DtypeError,
            r"index must be an integer, got f32\[\]",
        ),
        (
            lambda: lax.cond(True, lax.sin, lax.cos, "x"),
            ArgumentError,
            "cond: operands",
        ),
    ],
)
def test_invalid_predicates_and_branches_that_differ_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


class Wrapper:
    """Stands for an array; as an object it is true."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __fxflow_array__(self) -> object:
        return fxflow.numpy.asarray(self.value)


def test_objects_that_stand_for_conditions() -> None:
    for value in (True, False):
        assert int(lax.cond(Wrapper(value), lambda: 1, lambda: 0)) == value
    assert int(lax.switch(Wrapper(2), [lambda i=i: i for i in range(4)])) == 2
    assert int(lax.fori_loop(Wrapper(1), Wrapper(4), lambda i, x: x + 1, 0)) == 3
