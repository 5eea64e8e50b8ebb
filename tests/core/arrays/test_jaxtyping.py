"""Annotations of jaxtyping, checked by beartype: `Float[fxflow.Array, "b n"]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random

jaxtyping = pytest.importorskip("jaxtyping")
beartype = pytest.importorskip("beartype").beartype
Array = fxflow.Array
Float, Key = jaxtyping.Float, jaxtyping.Key


def checked(function: Callable[..., Any], *annotations: Any) -> Callable[..., Any]:
    """Returns the function with types for its arguments and, last, its result."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    function.__annotations__ = dict(zip([*names, "return"], annotations, strict=True))
    return jaxtyping.jaxtyped(function, typechecker=beartype)


def product() -> Callable[..., Any]:
    def product(x, w):
        return x @ w

    return checked(product, Float[Array, "b n"], Float[Array, " n"], Float[Array, " b"])


X, W = fnp.ones((2, 3)), fnp.ones(3)


@pytest.mark.parametrize(
    "transform", [lambda f: f, fxflow.jit, fxflow.checkpoint], ids=["eager", "jit", "c"]
)
def test_arguments_are_checked(transform: Callable[..., Any]) -> None:
    f = transform(product())
    np.testing.assert_array_equal(f(X, W), [3, 3])
    for wrong in [(X, fnp.ones(4)), (X.astype(int), W), (X, X)]:
        with pytest.raises(jaxtyping.TypeCheckError, match="parameters"):
            f(*wrong)


def test_numpy_arrays_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        product()(np.ones((2, 3), "f"), W)


def test_wrong_result_is_refused() -> None:
    def total(x):
        return x.sum(0)

    f = checked(total, Float[Array, "b n"], Float[Array, " b"])
    with pytest.raises(jaxtyping.TypeCheckError, match="return"):
        fxflow.jit(f)(X)


def test_tracers_of_each_transformation_are_checked() -> None:
    f = product()
    assert fxflow.vmap(f, in_axes=(0, None))(fnp.ones((5, 2, 3)), W).shape == (5, 2)
    with pytest.raises(jaxtyping.TypeCheckError):
        fxflow.vmap(f, in_axes=(0, None))(fnp.ones((5, 2)), W)
    np.testing.assert_array_equal(fxflow.grad(lambda w: f(X, w).sum())(W), [2, 2, 2])
    assert fxflow.hessian(lambda w: f(X, w).sum())(W).shape == (3, 3)
    assert fxflow.jvp(f, (X, W), (X, W))[1].shape == (2,)
    assert fxflow.eval_shape(f, X, W).shape == (2,)


def test_names_of_axes_hold_inside_of_a_loop() -> None:
    def step(carry, x):
        return carry + x, carry * x

    row = Float[Array, " n"]
    f = checked(step, row, row, tuple[row, row])
    assert lax.scan(f, W, X)[1].shape == (2, 3)
    with pytest.raises(jaxtyping.TypeCheckError):
        lax.scan(f, W, fnp.ones((2, 4)))


KINDS = {
    "bool": "Bool",
    "int4": "Int4 Int Num",
    "int32": "Int32 Int Integer Real Num",
    "uint8": "UInt8 UInt Integer Num",
    "bfloat16": "BFloat16 Float Inexact Real Num",
    "float8_e4m3fn": "Float8e4m3fn Float Num",
    "float64": "Float64 Float Num",
    "complex64": "Complex64 Complex Inexact Num",
}


@pytest.mark.parametrize("dtype", KINDS)
def test_kinds_of_dtypes(dtype: str) -> None:
    every = {name for names in KINDS.values() for name in names.split()}
    x = fnp.zeros((2,), dtype)
    kinds = {n for n in every if isinstance(x, getattr(jaxtyping, n)[Array, "2"])}
    assert set(KINDS[dtype].split()) <= kinds
    assert not kinds & {n for n in every if n[-1].isdigit()} - set(KINDS[dtype].split())
    assert isinstance(x, jaxtyping.Shaped[Array, "*any"])
    assert not isinstance(x, jaxtyping.Shaped[Array, "3"])


def test_keys_and_structs() -> None:
    key = random.key(0)
    assert isinstance(key, Key[Array, ""])
    assert isinstance(random.split(key, 3), Key[Array, "3"])
    assert not isinstance(key, Float[Array, ""])
    struct = fxflow.ShapeDtypeStruct((2, 3), "float32")
    assert isinstance(struct, Float[fxflow.ShapeDtypeStruct, "2 3"])
    assert not isinstance(struct, Float[fxflow.ShapeDtypeStruct, "3 2"])

    def draw(key):
        return random.normal(key, (4,))

    f = checked(draw, Key[Array, ""], Float[Array, "4"])
    assert fxflow.jit(f)(key).shape == (4,)
    with pytest.raises(jaxtyping.TypeCheckError):
        fxflow.jit(f)(random.split(key))
