"""`custom_gradient` and `closure_convert`."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fxflow
from fxflow import closure_convert, custom_gradient, custom_vjp, jit, lax, vmap
from fxflow.errors import ArgumentError, TreeError

XS = np.arange(3.0, dtype=np.float32)


def test_custom_gradient():
    @custom_gradient
    def f(x, y):
        return lax.mul(x, y), lambda ct: (lax.mul(ct, 10.0), lax.mul(ct, x))

    assert float(f(2.0, 3.0)) == 6.0
    by_x, by_y = jit(fxflow.grad(f, (0, 1)))(2.0, 3.0)
    assert (float(by_x), float(by_y)) == (10.0, 2.0)
    assert vmap(fxflow.grad(f, 1))(XS, XS).tolist() == XS.tolist()
    assert float(fxflow.grad(fxflow.grad(f, 1))(2.0, 3.0)) == 1.0


def test_custom_gradient_of_one_argument_and_trees():
    @custom_gradient
    def f(d):
        return {"y": d["x"]}, lambda ct: {"x": lax.mul(ct["y"], 7.0)}

    assert float(fxflow.grad(lambda d: f(d)["y"])({"x": 2.0})["x"]) == 7.0


def test_custom_gradient_error():
    f = custom_gradient(lambda x: x)
    with pytest.raises(
        ArgumentError, match=r"must return a pair \(result, vjp function"
    ):
        f(1.0)


def test_closure_convert_with_an_adjoint():
    # A fixed argument that captures something to differentiate by.
    def solve(f, x, y):
        converted, captured = closure_convert(f, x)
        return _solve(converted, x, y, *captured)

    @functools.partial(custom_vjp, nondiff_argnums=(0,))
    def _solve(f, x, y, *captured):
        return lax.mul(f(x, *captured), y)

    def fwd(f, x, y, *captured):
        return _solve(f, x, y, *captured), (x, y, captured)

    def bwd(f, kept, ct):
        x, y, captured = kept
        _, back = fxflow.vjp(lambda *c: lax.mul(f(x, *c), y), *captured)
        return (None, None, *back(ct))

    _solve.defvjp(fwd, bwd)
    total = lambda w: solve(lambda x: lax.mul(lax.sin(w), x), 2.0, 3.0)
    for gradient in (fxflow.grad(total), jit(fxflow.grad(total))):
        np.testing.assert_allclose(float(gradient(0.5)), 6 * np.cos(0.5), rtol=1e-6)


def test_closure_convert_hoists_only_what_is_traced_and_inexact():
    big = np.ones((3,), np.float32)

    def run(w, n):
        f = lambda x: lax.add(
            lax.mul(x, lax.mul(w, lax.convert_element_type(n, np.float32))),
            lax.reduce_sum(big, (0,)),
        )
        converted, captured = closure_convert(f, 1.0)
        assert [str(c.aval) for c in captured] == ["f32[]"]
        return converted(2.0, *captured)

    assert float(jit(run)(np.float32(3.0), np.int32(2))) == 15.0
    converted, captured = closure_convert(lambda x: lax.mul(x, 2.0), 1.0)
    assert captured == []
    assert float(converted(4.0)) == 8.0
    with pytest.raises(TreeError, match="converted for arguments of the structure"):
        converted((4.0,))


def test_converted_closures_capture_nothing():
    from fxflow.transforms.custom_function import captured_tracers

    def f(x):
        converted, captured = fxflow.closure_convert(lambda y: x * y, 1.0)
        assert len(captured) == 1 and not captured_tracers(converted)
        return converted(2.0, *captured)

    assert fxflow.grad(f)(3.0) == 2.0
