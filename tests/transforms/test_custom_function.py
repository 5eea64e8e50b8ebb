"""What the two kinds of functions with a derivative of their own share."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fxflow
from fxflow import custom_jvp, custom_vjp, grad, jit, lax, typeof
from fxflow.core.arrays.aval import Aval
from fxflow.core.tree import structure
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.transforms import custom_function
from fxflow.transforms.custom_function import captured_tracers

F32 = Aval((2,), np.dtype(np.float32))


def test_arguments_are_ordered_by_position():
    f = custom_vjp(lambda a, b=2, *, c=3: 0, nondiff_argnums=-1)
    with pytest.raises(ArgumentError, match="c can only be given by keyword"):
        f.positional((1,), {"c": 4})
    g = custom_vjp(lambda a, b=2: 0, nondiff_argnums=-1)
    assert g.positional((1,), {}) == (1, 2)
    assert g.positional((), {"b": 5, "a": 4}) == (4, 5)
    call, leaves, body = g.traced((4, 5))
    assert (call.positions, call.fixed, leaves) == ((1,), (5,), [4])
    assert call.in_avals == body.graph.in_avals and call.out_avals == [typeof(0)]
    assert custom_vjp(max).positional((1, 2), {}) == (1, 2)
    with pytest.raises(ArgumentError, match="by position only"):
        custom_vjp(max).positional((1, 2), {"key": None})


def test_what_a_partial_has_fixed_by_keyword():
    def scaled(x, factor=1.0, *, shift=0.0):
        return x * factor + shift

    f = custom_jvp(functools.partial(scaled, factor=3.0))
    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))
    g = custom_vjp(functools.partial(scaled, factor=3.0, shift=1.0))
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (7.0 * ct,))
    for function, value in ((f, 6.0), (g, 7.0)):
        assert float(function(2.0)) == float(jit(function)(2.0)) == value
        assert float(grad(function)(2.0)) == 7.0
        with pytest.raises(ArgumentError, match="factor can only be given by keyword"):
            function(2.0, factor=1.0)


def test_captured_tracers_are_seen():
    found = {}

    def trace(x):
        plain = lambda: x
        listed = [x]
        default = lambda y=x: y

        class Owner:
            def method(self):
                return 0

        found["closure"] = bool(captured_tracers(plain))
        found["list"] = bool(captured_tracers(lambda: listed))
        found["nested"] = bool(captured_tracers(lambda: plain))
        found["default"] = bool(captured_tracers(default))
        found["partial"] = bool(captured_tracers(functools.partial(max, x)))
        found["nothing"] = bool(captured_tracers(lambda: found))
        found["method"] = bool(captured_tracers(Owner().method))
        return x

    jit(trace)(1.0)
    assert found.pop("nothing") is False
    assert found.pop("method") is False
    assert all(found.values())


def test_checks():
    x = np.ones(2, np.float32)
    assert custom_function.checked_values([x], [F32], "v") == [x]
    with pytest.raises(ShapeError, match=r"v must be f32\[2\], got f32\[1\]"):
        custom_function.checked_values([x[:1]], [F32], "v")
    with pytest.raises(DtypeError, match="astype"):
        custom_function.checked_values([x.astype("i4")], [F32], "v")
    with pytest.raises(ArgumentError, match="not an array"):
        custom_function.checked_values(["no"], [F32], "v")
    assert custom_function.same_structure(structure((0, 0)), (1, 2), "r") == [1, 2]
    with pytest.raises(TreeError, match="r must have the structure of the result"):
        custom_function.same_structure(structure((0, 0)), [1, 2], "r")


@functools.partial(fxflow.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, start):
    """The x at which `f(a, x)` is x; its backward pass is a fixed point as well."""
    going = lambda c: abs(c[0] - c[1]) > 1e-6
    step = lambda c: (c[1], f(a, c[1]))
    return lax.while_loop(going, step, (start, f(a, start)))[1]


def fixed_point_forward(f, a, start):
    found = fixed_point(f, a, start)
    return found, (a, found)


def fixed_point_backward(f, kept, ct):
    a, found = kept
    by_a = fxflow.vjp(lambda a: f(a, found), a)[1]
    start = (a, found, ct)
    total = fixed_point(functools.partial(backward_step, f), start, ct)
    return by_a(total)[0], 0 * found


def backward_step(f, packed, u):
    a, found, ct = packed
    return ct + fxflow.vjp(lambda x: f(a, x), found)[1](u)[0]


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


def root(a, one=1.0):
    return fixed_point(lambda a, x: 0.5 * (x * one + a / x), a, a)


SLOPES = {1: 0.35355339, 2: -0.08838835, 3: 0.06629126}


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_rule_that_calls_its_function_with_ever_new_functions(order):
    """They close over traced values: each rule is traced when it is used."""

    def slope(a, one):
        f = lambda a: root(a, one)
        for _ in range(order):
            f = fxflow.grad(f)
        return f(a)

    close = functools.partial(np.testing.assert_allclose, rtol=1e-4)
    close(slope(2.0, 1.0), SLOPES[order])
    close(fxflow.jit(slope)(2.0, 1.0), SLOPES[order])
    ones = np.ones(2, np.float32)
    close(fxflow.vmap(slope, (None, 0))(2.0, ones), [SLOPES[order]] * 2)
    if order == 2:
        one = lambda a: (a > 0).astype("int32")
        inner = fxflow.jit(fxflow.grad(lambda a: root(a, one(a))))
        close(fxflow.grad(inner)(2.0), SLOPES[order])
