"""`custom_vjp`: how passes are given and called, and what is said of wrong ones."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fxflow
from fxflow import custom_vjp, jit, lax, vmap
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.transforms.custom_function import SymbolicZero
from fxflow.transforms.custom_vjp import matched_leaves

XS = np.arange(3.0, dtype=np.float32)


def test_gradient_clipping():
    @functools.partial(custom_vjp, nondiff_argnums=(0, 1))
    def clip(low, high, x):
        return x

    clip.defvjp(
        lambda low, high, x: (x, None),
        lambda low, high, _, ct: (lax.clamp(low, ct, high),),
    )
    f = lambda x: lax.mul(clip(-1.0, 1.0, x), 5.0)
    assert float(fxflow.grad(f)(2.0)) == float(jit(fxflow.grad(f))(2.0)) == 1.0
    assert vmap(fxflow.grad(f))(XS).tolist() == [1.0] * 3


def test_trees_none_and_what_is_kept():
    class Note:
        pass

    note = Note()

    @custom_vjp
    def f(params, n):
        return {"y": lax.mul(params["a"], params["b"][0])}

    def fwd(params, n):
        return f(params, n), {"kept": params, "note": note, "factor": 3.0}

    def bwd(kept, ct):
        assert kept["note"] is note
        assert kept["factor"] == 3.0
        by_a = lax.mul(ct["y"], kept["kept"]["b"][0])
        return {"a": by_a, "b": (None,)}, None

    f.defvjp(fwd, bwd)
    params = {"a": 2.0, "b": (3.0,)}
    gradient = fxflow.grad(lambda p: f(p, 4)["y"])
    for out in (gradient(params), jit(gradient)(params)):
        assert (float(out["a"]), float(out["b"][0])) == (3.0, 0.0)


def test_symbolic_zeros():
    seen = []

    @custom_vjp
    def f(x, y):
        return lax.mul(x, 1.0), lax.mul(y, 1.0)

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), None

    def bwd(_, cts):
        seen.append(tuple(type(ct) is SymbolicZero for ct in cts))
        return tuple(
            None if type(ct) is SymbolicZero else lax.mul(ct, 3.0) for ct in cts
        )

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(fxflow.grad(lambda x: f(x, 2.0)[0])(1.0)) == 3.0
    assert seen == [(True, False), (False, True)]


def test_integer_arguments_and_results():
    f = custom_vjp(lambda x, n: (lax.mul(x, 2.0), n))
    f.defvjp(lambda x, n: (f(x, n), None), lambda _, ct: (lax.mul(ct[0], 3.0), ct[1]))
    gradient = fxflow.grad(lambda x: f(x, 4)[0])
    assert float(gradient(1.0)) == float(jit(gradient)(1.0)) == 3.0


def test_backward_pass_is_differentiated_again():
    f = custom_vjp(lambda x: lax.mul(x, x))
    f.defvjp(lambda x: (lax.mul(x, x), x), lambda x, ct: (lax.mul(ct, lax.sin(x)),))
    np.testing.assert_allclose(
        float(fxflow.grad(fxflow.grad(f))(0.3)), np.cos(0.3), rtol=1e-6
    )
    np.testing.assert_allclose(
        float(fxflow.jacfwd(fxflow.grad(f))(0.3)), np.cos(0.3), rtol=1e-6
    )


def test_not_called_twice_without_derivatives():
    calls = []

    @custom_vjp
    def f(x):
        calls.append("f")
        return x

    f.defvjp(lambda x: (calls.append("fwd"), None) and (x, None), lambda _, ct: (ct,))
    f(1.0)
    assert calls == ["f"]


def wrong(fwd=None, bwd=None):
    f = custom_vjp(lambda x, y: lax.mul(x, y))
    f.defvjp(
        fwd or (lambda x, y: (lax.mul(x, y), (x, y))),
        bwd or (lambda kept, ct: (ct, ct)),
    )
    return lambda: fxflow.vjp(f, XS, XS)[1](XS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            wrong(fwd=lambda x, y: x),
            ArgumentError,
            "forward pass of <lambda> at .* must return a",
        ),
        (
            wrong(fwd=lambda x, y: ((x,), None)),
            TreeError,
            "forward pass of <lambda> at .* returns must have the structure of the",
        ),
        (
            wrong(fwd=lambda x, y: (lax.reduce_sum(x, (0,)), None)),
            ShapeError,
            r"must be f32\[3\], got f32\[\]",
        ),
        (wrong(bwd=lambda _, ct: ct), TreeError, "a tuple of 2 entries"),
        (
            wrong(bwd=lambda _, ct: (ct,)),
            TreeError,
            r"cotangents of its arguments, got",
        ),
        (
            wrong(bwd=lambda _, ct: ((ct,), ct)),
            TreeError,
            "for argument 0 must be an array, got a tuple",
        ),
        (
            wrong(bwd=lambda _, ct: (lax.reduce_sum(ct, (0,)), ct)),
            ShapeError,
            r"must be f32\[3\], got f32\[\]",
        ),
        (
            wrong(bwd=lambda _, ct: (lax.convert_element_type(ct, np.float16), ct)),
            DtypeError,
            r"must be f32\[3\], got f16\[3\]",
        ),
        (lambda: custom_vjp(lax.sin)(1.0), ArgumentError, "has no rule: set one with"),
        (
            lambda: custom_vjp(lax.sin).defvjp(1, 2),
            ArgumentError,
            "defvjp of sin: fwd must be a function",
        ),
    ],
)
def test_passes_with_wrong_results_or_cotangents_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_none_stands_for_a_subtree():
    treedef = fxflow.tree.structure({"a": (0, 0), "b": 0})
    assert matched_leaves(treedef, None, "ct") == [None] * 3
    assert matched_leaves(treedef, {"a": None, "b": 1}, "ct") == [None, None, 1]
    assert matched_leaves(treedef, {"a": (1, None), "b": 2}, "ct") == [1, None, 2]
    with pytest.raises(TreeError, match="ct must have the structure"):
        matched_leaves(treedef, {"a": [1, 2], "b": 2}, "ct")


def test_an_array_for_a_class_around_one() -> None:
    """As programs write that keep each parameter in an object."""

    @fxflow.tree.register_pytree_node_class
    class Parameter:
        def __init__(self, value):
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    @fxflow.custom_vjp
    def f(p):
        return p.value * 2

    f.defvjp(lambda p: (p.value * 2, None), lambda _, ct: (ct * 3,))
    assert fxflow.grad(lambda p: f(p))(Parameter(1.0)).value == 3


def test_a_cotangent_of_an_argument_that_is_none_is_dropped() -> None:
    @fxflow.custom_vjp
    def scaled(x, bias):
        return 2 * x if bias is None else 2 * x + bias

    scaled.defvjp(lambda x, bias: (scaled(x, bias), None), lambda _, g: (2 * g, g))
    assert float(fxflow.grad(lambda x: scaled(x, None))(3.0)) == 2.0
