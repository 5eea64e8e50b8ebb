"""Reductions against NumPy: values, dtypes, axes, masks, derivatives."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.numpy.oracle import BFLOAT16, arrays, check, quick, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
AXES = [None, 0, -1, (0, 2), (), (2, 1, 0)]
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "float32", "complex64"]
SUMS = ["sum", "prod", "mean", "var", "std"]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", [*SUMS, "max", "min", "ptp", "all", "any"])
def test_axes_and_keepdims_agree_with_numpy(
    name: str, axis: Any, keepdims: bool
) -> None:
    check(name, X, axis=axis, keepdims=keepdims, tol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*SUMS, "max", "min", "all", "any", "count_nonzero"])
def test_dtypes_agree_with_numpy(name: str, dtype: str) -> None:
    x = np.array([[1, 0, 1], [1, 1, 0], [2, 3, 1]]).astype(dtype)
    check(name, x, axis=1, tol=1e-2 if dtype == "float16" else 1e-5)


@quick
@given(arrays(), st.sampled_from(["sum", "mean", "var", "prod", "all", "any"]))
def test_any_shape(x: Any, name: str) -> None:
    if name == "prod":  # what is too large for f32 on the way may meet a zero
        x = x / max(1.0, float(np.abs(x).max(initial=0)))
    got = getattr(fnp, name)(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(np, name)(x.astype(np.float64))
    if np.abs(want) < 1e30:
        assert same(want, got, 1e-3 * max(1.0, float(np.abs(x).max(initial=0)) ** 2))


@quick
@given(arrays(dtype=np.int32), st.sampled_from(["sum", "any", "all", "count_nonzero"]))
def test_any_integers(x: Any, name: str) -> None:
    check(name, x, compiled=False)


def test_dtype_of_results() -> None:
    assert fnp.sum(np.ones(3, np.int8)).dtype == np.int32
    assert fnp.sum(np.ones(3, np.uint8)).dtype == np.uint32
    assert fnp.sum(np.ones(3, np.int8), promote_integers=False).dtype == np.int8
    assert fnp.sum(np.ones(3, bool)).dtype == np.int32
    assert fnp.sum(np.ones(3, np.float16)).dtype == np.float16
    assert fnp.sum(fnp.ones(3, fnp.int64)).dtype == np.int64
    assert fnp.sum(np.ones(3, np.int32), dtype="float32").dtype == np.float32
    assert fnp.mean(np.ones(3, np.int32)).dtype == np.float32
    assert fnp.mean(np.ones(3, BFLOAT16)).dtype == BFLOAT16
    assert fnp.var(np.ones(3, np.complex64)).dtype == np.float32
    assert fnp.argmax(np.ones(3)).dtype == np.int32


def test_half_precision_is_added_up_in_32_bits() -> None:
    x = np.ones(4096, np.float16)
    assert float(fnp.sum(x)) == 4096
    assert float(fnp.mean(np.full(4096, 100, np.float16))) == 100


@pytest.mark.parametrize("name", SUMS[2:] + ["sum", "prod", "all", "any"])
def test_masks_agree_with_numpy(name: str) -> None:
    mask = np.random.default_rng(1).random((3, 4, 5)) < 0.6
    mask[:, 0] = True
    check(name, X, axis=(0, 1), where=mask, tol=1e-4)
    check(name, X, axis=1, where=mask[:, :, :1], keepdims=True, tol=1e-4)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial_and_where(name: str) -> None:
    mask = X > 0.2
    check(name, X, axis=1, initial=0.5, where=mask, tol=1e-5)
    check(name, np.zeros((0, 3), np.float32), axis=0, initial=2.0)
    check(name, np.array([5, 7], np.int8), initial=6)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema(name: str) -> None:
    check(name, np.array([1.0, np.nan, 3.0], np.float32))
    check(name, np.array([True, False]))
    check(name, np.array([1 + 2j, 1 - 1j, 0 + 9j, 1 + 5j], np.complex64))
    check(name, np.array([1 + 2j, 1 + 1j], np.complex64), initial=1 + 5j)
    with pytest.raises(ShapeError, match="no elements"):
        getattr(fnp, name)(np.zeros((2, 0)), axis=1)
    assert getattr(fnp, name)(np.zeros((2, 0)), axis=0).shape == (0,)


def test_array_methods_agree_with_numpy() -> None:
    x = fnp.asarray(X)
    for name in ("sum", "prod", "mean", "max", "min", "var", "std", "argmax", "argmin"):
        assert same(getattr(X, name)(axis=1), getattr(x, name)(axis=1), 1e-5)
    assert (x > 0).any() and not (x > 0).all()
    assert same(np.ptp(X, 0), x.ptp(0))


def test_gradients_agree_with_formulas() -> None:
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    assert same(np.ones((2, 3)), fxflow.grad(fnp.sum)(x))
    assert same(np.full((2, 3), 1 / 6), fxflow.grad(fnp.mean)(x))
    assert same((x - x.mean()) / 3, fxflow.grad(fnp.var)(x), 1e-5)
    assert same(x.prod() / x, fxflow.grad(fnp.prod)(x), 1e-4)
    assert same(x == x.max(), fxflow.grad(fnp.max)(x) == 1)
    shared = fxflow.grad(fnp.max)(np.array([1.0, 2.0, 2.0]))
    assert same(np.array([0, 0.5, 0.5]), shared)


def test_vmap_agrees_with_numpy() -> None:
    got = fxflow.vmap(lambda r: fnp.var(r, axis=0, keepdims=True))(X)
    assert same(X.var(axis=1, keepdims=True), got, 1e-5)
    assert same(X.argmax(2), fxflow.vmap(lambda r: fnp.argmax(r, 1))(X))


def test_invalid_axes_masks_and_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="sum"):
        fnp.sum([1, 2])  # type: ignore[arg-type]
    with pytest.raises(AxisError, match=r"sum: axis 3 is out of range"):
        fnp.sum(X, axis=3)
    with pytest.raises(AxisError, match="repeated axis"):
        fnp.sum(X, axis=(0, -3))
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.sum(X, out=X)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="where= needs initial="):
        fnp.max(X, where=X > 0)
    with pytest.raises(DtypeError, match="bool"):
        fnp.sum(X, where=np.ones(5, int))
    with pytest.raises(ShapeError, match="broadcast"):
        fnp.sum(X, where=np.ones((7, 3, 4, 5), bool))
    with pytest.raises(ShapeError, match="number"):
        fnp.sum(X, initial=np.ones(3))


def test_sums_and_products_of_bools() -> None:
    x = np.array([0.0, 2.0, -2.0], np.float32)
    assert fnp.sum(x, dtype=bool).tolist() is True
    assert fnp.sum(x[:1], dtype=bool, initial=True).tolist() is True
    assert fnp.prod(x, dtype=bool).tolist() is False
    assert fnp.sum(x > 0, promote_integers=False).dtype == "int32"


def test_initial_and_where_of_64_bits() -> None:
    x = fnp.asarray(np.array([1 << 40, 3]), "int64")
    mask = np.array([True, False])
    assert int(fnp.max(x, where=mask, initial=1)) == 1 << 40
    assert int(fnp.min(x, where=mask, initial=1 << 41)) == 1 << 40
    assert fnp.sum(np.full(3, 0.1), dtype="float64") == fnp.float64(0.1 + 0.1 + 0.1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_of_extrema(name: str) -> None:
    for axis in (None, 0, -1):
        check(name, X, axis=axis)
        check(name, X, axis=axis, keepdims=True)
    check(name, np.array([1.0, np.nan, 5.0, np.nan], np.float32))
    check(name, np.array([2, 2, 1, 1]))
    with pytest.raises(ShapeError, match="empty"):
        getattr(fnp, name)(np.zeros((0,)))


@pytest.mark.parametrize("name", ("argmax", "argmin", "nanargmax"))
def test_indices_of_complex_extrema(name) -> None:
    z = np.array([[1 + 2j, 1 + 3j, -2, 1 + 3j], [0, -2 - 1j, -2, 1]], np.complex64)
    for axis in (None, 0, 1):
        check(name, z, axis=axis)
    if name != "nanargmax":
        z[0, 1] = complex(0, np.nan)
        check(name, z, axis=1)
