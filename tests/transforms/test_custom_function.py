"""What the two kinds of functions with a derivative of their own share."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fxflow import custom_jvp, custom_vjp, grad, jit, typeof
from fxflow.core.arrays.aval import Aval
from fxflow.core.tree import structure
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.transforms import custom_function
from fxflow.transforms.custom_function import captures_tracers

F32 = Aval((2,), np.dtype(np.float32))


def test_positions():
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

        found["closure"] = captures_tracers(plain)
        found["list"] = captures_tracers(lambda: listed)
        found["nested"] = captures_tracers(lambda: plain)
        found["default"] = captures_tracers(default)
        found["partial"] = captures_tracers(functools.partial(max, x))
        found["nothing"] = captures_tracers(lambda: found)
        found["method"] = captures_tracers(Owner().method)
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
