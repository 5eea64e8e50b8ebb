"""Sorting and searching against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.numpy.oracle import arrays, check, quick, same

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, (3, 4, 6)).astype(np.float32)
X[0, 0, 2] = np.nan


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sort(axis: Any) -> None:
    check("sort", X, axis=axis)
    assert same(np.argsort(X, axis, kind="stable"), fnp.argsort(X, axis))
    x = RNG.integers(-9, 9, (3, 4))
    if axis != 1 or x.ndim > 1:
        down = -np.argsort(-x, None if axis is None else axis % 2, kind="stable")
        got = fnp.argsort(x, None if axis is None else axis % 2, descending=True)
        assert same(-down, got)
        want = -np.sort(-x, None if axis is None else axis % 2)
        assert same(
            want, fnp.sort(x, None if axis is None else axis % 2, descending=True)
        )


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "complex64"])
def test_sort_dtypes(dtype: str) -> None:
    x = RNG.integers(0, 9, 12).astype(dtype)
    check("sort", x)
    check("sort_complex", x)
    assert same(np.argsort(x, kind="stable"), fnp.argsort(x))


def test_array_methods_agree_with_numpy() -> None:
    x = fnp.asarray(np.array([[3, 1], [2, 4]]))
    assert same(np.array([[1, 3], [2, 4]]), x.sort())
    assert same(np.array([[1, 0], [0, 1]]), x.argsort(axis=1))
    assert same(
        np.array([1, 2]),
        fnp.asarray(np.array([0, 1, 2])).searchsorted(np.array([1, 2])),
    )


def test_lexsort() -> None:
    a, b = RNG.integers(0, 3, (2, 5, 8))
    check("lexsort", np.stack([a, b]))
    assert same(np.lexsort((a, b), axis=0), fnp.lexsort((a, b), axis=0))
    with pytest.raises(ShapeError, match="one shape"):
        fnp.lexsort((a, b[0]))
    with pytest.raises(ArgumentError):
        fnp.lexsort(())


def test_partition() -> None:
    x = RNG.normal(size=(3, 9)).astype(np.float32)
    got = np.asarray(fnp.partition(x, 4, axis=1))
    want = np.sort(x, axis=1)
    assert (got[:, 4] == want[:, 4]).all()
    assert (got[:, :4] <= got[:, 4:5]).all()
    places = np.asarray(fnp.argpartition(x, -2, axis=1))
    assert (np.take_along_axis(x, places, 1)[:, -2] == want[:, -2]).all()
    with pytest.raises(AxisError, match="kth"):
        fnp.partition(x, 9)


METHODS = ["default", "compare_all", "scan", "scan_unrolled", "sort"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method: str, side: str) -> None:
    a = np.sort(RNG.integers(0, 9, 17)).astype(np.float32)
    v = RNG.integers(-1, 11, (3, 5)).astype(np.float32)
    want = np.searchsorted(a, v, side)
    assert same(want, fnp.searchsorted(a, v, side, method=method))
    got = fxflow.jit(lambda a, v: fnp.searchsorted(a, v, side, method=method))(a, v)
    assert same(want, got)
    shuffled = RNG.permutation(a)
    order = np.argsort(shuffled)
    got = fnp.searchsorted(shuffled, v, side, order, method=method)
    assert same(want, got)


@quick
@given(arrays(shape=st.integers(0, 9)), arrays(), st.sampled_from(METHODS))
def test_searchsorted_anywhere(a: Any, v: Any, method: str) -> None:
    a = np.sort(a)
    for side in ("left", "right"):
        assert same(
            np.searchsorted(a, v, side), fnp.searchsorted(a, v, side, method=method)
        )


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_subnormal_numbers_are_found_in_their_order(dtype: str) -> None:
    kind = fnp.dtype(dtype)
    least = float(ml_dtypes.finfo(kind).smallest_subnormal)
    a = (np.array([-3, -1, 0, 1, 2, 1e9]) * least).astype(kind)
    v = (np.array([-2, -1, -0.0, 1, 1.9999, 3, np.nan]) * least).astype(kind)
    ways = [(s, m) for s in ("left", "right") for m in ("compare_all", "scan")]
    find = lambda a, v: [fnp.searchsorted(a, v, s, method=m) for s, m in ways]
    for (side, _), got in zip(ways, fxflow.jit(find)(a, v), strict=True):
        assert same(np.searchsorted(a.astype("f8"), v.astype("f8"), side), got)


def test_searchsorted_nan() -> None:
    a = np.array([1.0, 2.0, np.nan, np.nan], np.float32)
    v = np.array([np.nan, 5.0, -np.inf], np.float32)
    for side in ("left", "right"):
        for method in METHODS:
            got = fnp.searchsorted(a, v, side, method=method)
            assert same(np.searchsorted(a, v, side), got)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: bool) -> None:
    x = RNG.integers(-1, 6, (3, 4)).astype(np.float32)
    check("digitize", x, np.array([0.0, 2.0, 2.0, 4.0], np.float32), right=right)
    check("digitize", x, np.array([4.0, 1.0, 0.0], np.float32), right=right)
    assert same(np.zeros((3, 4), int), fnp.digitize(x, np.zeros(0)))


def test_gradient_and_vmap() -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32)
    w = np.array([1.0, 10.0, 100.0], np.float32)
    g = fxflow.grad(lambda x: (fnp.sort(x) * w).sum())(x)
    assert same(np.array([100.0, 1.0, 10.0]), g)
    got = fxflow.vmap(lambda r: fnp.argsort(r, descending=True))(np.stack([x, -x]))
    assert same(np.array([[0, 2, 1], [1, 2, 0]]), got)


def test_invalid_options_shapes_and_dtypes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="kind"):
        fnp.sort(X, kind="quicksort")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="side"):
        fnp.searchsorted(X[0, 0], X, side="middle")
    with pytest.raises(ArgumentError, match="method"):
        fnp.searchsorted(X[0, 0], X, method="guess")
    with pytest.raises(ShapeError, match="one axis"):
        fnp.searchsorted(X, X)
    with pytest.raises(DtypeError):
        fnp.digitize(X * 1j, X[0, 0])
