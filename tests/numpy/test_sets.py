"""Set functions against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ConcretizationError
from tests.numpy.oracle import arrays, check, quick, same

RNG = np.random.default_rng(0)
X = RNG.integers(0, 4, (5, 6))
Y = RNG.integers(2, 7, 9)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(axis: Any) -> None:
    x = np.stack([X[0] % 2, X[1] % 2, X[0] % 2])
    for flags in ((), (True,), (True, True, True), (False, False, True)):
        check("unique", x, *flags, axis=axis, compiled=False)
    with pytest.raises(AxisError):
        fnp.unique(x, axis=2)


def test_unique_edges() -> None:
    nan = np.array([np.nan, 1.0, np.nan], np.float32)
    check("unique", nan, compiled=False)
    check("unique", nan, equal_nan=False, compiled=False)
    check("unique", np.zeros(0, np.float32), True, True, True, compiled=False)
    check("unique", np.array(3), True, True, True, compiled=False)
    check("unique", np.array([True, False, True]), compiled=False)
    check("unique", np.array([1 + 1j, 1, 1 + 1j], np.complex64), compiled=False)
    check("unique", np.zeros((3, 0)), axis=0, compiled=False)


@quick
@given(arrays(dtype=np.int8))
def test_unique_anywhere(x: Any) -> None:
    check("unique", x, True, True, True, compiled=False)


def test_unique_with_size() -> None:
    x = np.array([3, 1, 3, 5])
    run = fxflow.jit(lambda x: fnp.unique(x, True, True, True, size=5))
    values, index, inverse, counts = run(x)
    assert same(np.array([1, 3, 5, 1, 1]), values)
    assert same(np.array([1, 0, 3, 1, 1]), index)
    assert same(np.array([1, 0, 1, 2]), inverse)
    assert same(np.array([1, 2, 1, 0, 0]), counts)
    got = fxflow.jit(lambda x: fnp.unique(x, size=2, fill_value=-1))(x)
    assert same(np.array([1, 3]), got)
    got = fnp.unique(x, size=4, fill_value=-1)
    assert same(np.array([1, 3, 5, -1]), got)
    rows = fnp.unique(x.reshape(2, 2), axis=0, size=3, fill_value=0)
    assert same(np.array([[3, 1], [3, 5], [0, 0]]), rows)
    with pytest.raises(ConcretizationError, match="size="):
        fxflow.jit(fnp.unique)(x)


@pytest.mark.parametrize("what", ["all", "counts", "inverse", "values"])
def test_unique_functions_of_the_array_standard(what: str) -> None:
    check(f"unique_{what}", X, compiled=False)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_two(name: str) -> None:
    check(name, X, Y, compiled=False)
    check(name, Y, X, compiled=False)
    check(name, X, np.zeros(0, int), compiled=False)
    check(name, np.zeros(0, int), X, compiled=False)
    want = getattr(np, name)(X, Y)
    got = fxflow.jit(lambda x, y: getattr(fnp, name)(x, y, size=9, fill_value=-1))(X, Y)
    assert same(np.r_[want, np.full(9 - len(want), -1)], got)


def test_intersection_indices() -> None:
    x, y = np.array([3, 1, 2, 3]), np.array([2, 3, 3, 7])
    check("intersect1d", x, y, return_indices=True, compiled=False)
    got = fnp.intersect1d(x, y, return_indices=True, size=3, fill_value=0)
    assert same((np.array([2, 3, 0]), np.array([2, 0, 4]), np.array([0, 1, 4])), got)
    check("setdiff1d", y, x, assume_unique=True, compiled=False)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin(method: str) -> None:
    for invert in (False, True):
        assert same(
            np.isin(X, Y, invert=invert), fnp.isin(X, Y, invert=invert, method=method)
        )
        many = np.arange(3, 40)
        assert same(np.isin(X, many), fnp.isin(X, many, method=method))
    assert same(np.isin(X, []), fnp.isin(X, np.zeros(0), method=method))
    nan = np.array([np.nan, 1.0])
    assert same(np.isin(nan, nan), fnp.isin(nan, nan, method=method))
    with pytest.raises(ArgumentError, match="method"):
        fnp.isin(X, Y, method="magic")


def test_a_complex_number_is_nan_if_a_part_is() -> None:
    nan = np.nan
    x = np.array([complex(a, b) for a in (1, 0, nan) for b in (nan, 0)], np.complex64)
    values, places, inverse, counts = fnp.unique(x, True, True, True)
    np.testing.assert_array_equal(values, [0, 1, nan])
    assert places.tolist() == [3, 1, 0]
    assert inverse.tolist() == [2, 1, 2, 0, 2, 2]
    assert counts.tolist() == [1, 1, 4]
    assert fnp.unique(x, equal_nan=False).size == 6
    assert fnp.intersect1d(x, x).tolist() == [0, 1]
    assert fnp.setdiff1d(x, x).size == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_nan_in_sets(dtype: str) -> None:
    x = fnp.asarray([np.nan, 1, np.nan, 0], dtype)
    assert fnp.unique(x).size == 3
    assert fnp.unique(x, equal_nan=False).size == 4
    assert fnp.unique_counts(x).counts.tolist() == [1, 1, 1, 1]
    # The nan of each array, as no array contains it.
    assert fnp.setxor1d(x, x).size == 2
    assert fnp.union1d(x, x).size == 3


def test_differences_keep_the_dtype_of_the_first() -> None:
    x, y = np.array([1, 44, 2], np.int8), np.array([1, 300], np.int16)
    assert fnp.setdiff1d(x, y).dtype == np.int8
    assert fnp.setdiff1d(x, y).tolist() == [2, 44]
    assert fnp.setdiff1d(x, np.array([1.0])).dtype == np.int8
    assert fnp.intersect1d(x, y).dtype == np.int16


def test_results_of_fixed_size_are_filled_up() -> None:
    x, y = np.array([5, 3, 4, 6]), np.array([5, 6, 9])
    assert fnp.intersect1d(x, y, size=4).tolist() == [5, 6, 5, 5]
    assert fnp.intersect1d(x, y + 100, size=2).tolist() == [0, 0]
    assert fnp.setdiff1d(x, y, size=4).tolist() == [3, 4, 0, 0]
    assert fnp.setdiff1d(x, y, size=4, fill_value=8).tolist() == [3, 4, 8, 8]
    assert fnp.setdiff1d(x, y, True, size=3).tolist() == [3, 4, 0]
    assert fnp.setxor1d(x, y, size=5).tolist() == [3, 4, 9, 3, 3]
    assert fnp.setxor1d(x, x, size=2).tolist() == [0, 0]
    assert fnp.union1d(x, y, size=6).tolist() == [3, 4, 5, 6, 9, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_subnormal_numbers_are_distinct(dtype: str) -> None:
    part = fnp.finfo(dtype).dtype
    least = float(ml_dtypes.finfo(part).smallest_subnormal)
    x = fnp.asarray(np.array([2, 0, -1, 1, -0.0, 2]) * least, part).astype(dtype)
    unique = lambda x: fnp.unique(x, size=4, return_counts=True)
    for run in (unique, fxflow.jit(unique)):
        values, counts = run(x)
        assert (np.asarray(values.real, "f8") / least).tolist() == [-1, 0, 1, 2]
        assert counts.tolist() == [1, 2, 1, 2]
