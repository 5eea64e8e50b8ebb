"""`custom_vmap`, `sequential_vmap`."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.custom_batching import custom_vmap, sequential_vmap


def made():
    """A function whose rule is not its vectorized form, and what the rule got."""
    seen = []

    @custom_vmap
    def f(x, y):
        return fnp.sin(x) * y

    @f.def_vmap
    def rule(size, in_batched, x, y):
        seen.append((size, in_batched))
        return fnp.cos(x) * y, True

    return f, seen


def test_vmap_uses_the_rule_and_nothing_else_does():
    f, seen = made()
    np.testing.assert_allclose([f(1.0, 2.0), fxflow.jit(f)(1.0, 2.0)], 1.682942, 1e-6)
    assert not seen
    assert fxflow.vmap(f)(fnp.zeros(3), fnp.ones(3)).tolist() == [1, 1, 1]
    assert fxflow.vmap(f, (None, 0))(0.0, fnp.ones(2)).tolist() == [1, 1]
    assert fxflow.jit(fxflow.vmap(f))(fnp.zeros(2), fnp.ones(2)).tolist() == [1, 1]
    assert seen == [(3, [True, True]), (2, [False, True]), (2, [True, True])]


def test_derivatives_inside_and_around_vmap():
    f, seen = made()
    ones = fnp.ones(3)
    np.testing.assert_allclose(fxflow.grad(f)(1.0, 2.0), 2 * np.cos(1.0), rtol=1e-6)
    assert not seen
    # The derivative of the rule: forwards in either order, backwards around `vmap`.
    for fun in (
        lambda x: fxflow.vmap(lambda x: fxflow.jvp(f, (x, 1.0), (1.0, 0.0))[1])(x),
        lambda x: fxflow.jvp(lambda x: fxflow.vmap(f)(x, ones), (x,), (ones,))[1],
        fxflow.grad(lambda x: fxflow.vmap(f)(x, ones).sum()),
    ):
        np.testing.assert_allclose(fun(ones), -np.sin(np.ones(3)), rtol=1e-6)
    count = len(seen)
    # The derivative of the function: inside of `vmap`.
    out = fxflow.vmap(fxflow.grad(f))(ones, ones)
    np.testing.assert_allclose(out, np.cos(np.ones(3)), rtol=1e-6)
    assert len(seen) == count


def test_a_tangent_alone_is_mapped():
    f, seen = made()
    out = fxflow.vmap(lambda t: fxflow.jvp(f, (1.0, 1.0), (t, 0.0)))(fnp.ones(3))
    np.testing.assert_allclose(out[1], -np.sin(np.ones(3)), rtol=1e-6)
    assert seen == [(3, [True, False])]


def test_structures_and_unmapped_results():
    @custom_vmap
    def f(x):
        return {"sum": x["a"] + x["b"], "b": x["b"]}

    @f.def_vmap
    def rule(size, in_batched, x):
        (flags,) = in_batched
        return f(x), {"sum": True, "b": flags["b"]}

    x = {"a": fnp.arange(3.0), "b": 2.0}
    axes = ({"a": 0, "b": None},)
    out = fxflow.vmap(f, axes, {"sum": 0, "b": None})(x)
    assert out["sum"].tolist() == [2, 3, 4] and float(out["b"]) == 2.0
    twice = fxflow.vmap(fxflow.vmap(f, axes), ({"a": 0, "b": None},))
    assert twice({"a": fnp.ones((2, 3)), "b": 2.0})["sum"].shape == (2, 3)


def test_what_rules_return_is_checked():
    @custom_vmap
    def f(x):
        return x, {"a": x}

    x = fnp.ones(3)
    with pytest.raises(TypeError, match="f has no rule"):
        fxflow.vmap(f)(x)
    for returned, error in [
        (lambda x: x, "must return a pair"),
        (lambda x: ((x, x), True), "must have the structure of the result"),
        (lambda x: ((x, {"a": x}), (True, (True,))), "what the rule of f says is"),
        (lambda x: ((x, {"a": x}), False), r"must be f32\[\], got f32\[3\]"),
        (lambda x: ((x, {"a": x > 0}), True), r"must be f32\[3\], got bool\[3\]"),
    ]:
        f.def_vmap(lambda size, flags, x, returned=returned: returned(x))
        with pytest.raises((TypeError, ValueError), match=error):
            fxflow.vmap(f)(x)


def test_sequential():
    @sequential_vmap
    def f(x, y):
        return {"sum": x + y, "y": y}

    out = fxflow.vmap(f, (0, None))(fnp.arange(3.0), 1.0)
    assert out["sum"].tolist() == [1, 2, 3] and out["y"].tolist() == [1, 1, 1]
    nested = fxflow.vmap(fxflow.vmap(f, (0, None)), (0, 0))
    assert nested(fnp.ones((2, 3)), fnp.ones(2))["sum"].shape == (2, 3)
    gradient = fxflow.grad(lambda x: fxflow.vmap(f, (0, None))(x, 1.0)["sum"].sum())
    assert gradient(fnp.ones(3)).tolist() == [1, 1, 1]
