"""Extremes and where they lie, and replaced diagonals, against NumPy and SciPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError

FORMATS = ("coo", "csr", "csc", "bsr", "dia")


def dense(seed: int, shape: tuple[int, int] = (5, 7), kind: str = "f4") -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, size=shape) * (rng.random(shape) < 0.6)
    values[1] = np.abs(values[1]) + 1  # without a gap
    values[2] = -np.abs(values[2])
    values[3] = 0
    return values.astype(kind)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
def test_extremes_are_those_of_the_dense_array(name: str, axis: int | None) -> None:
    for seed, format in enumerate(FORMATS):
        for kind in ("f4", "i4"):
            x = dense(seed, kind=kind)
            array = sparse.csr_array(x).asformat(format)
            want = getattr(np, name)(x, axis)
            np.testing.assert_array_equal(getattr(array, name)(axis), want)
    x = dense(9)
    x[0, 0], x[2, 3] = np.nan, np.nan
    got = getattr(sparse.csr_array(x), name)(axis)
    np.testing.assert_array_equal(got, getattr(np, name)(x, axis))


def test_places_within_jit_and_vmap() -> None:
    array = sparse.csr_array(dense(0))
    found = fxflow.jit(lambda a: a.argmax(1))(array)
    np.testing.assert_array_equal(found, dense(0).argmax(1))
    both = fxflow.vmap(lambda v: sparse.SparseArray(array.pattern, v).argmin(0))(
        fnp.stack([array.values, -array.values])
    )
    np.testing.assert_array_equal(both[1], (-dense(0)).argmin(0))


def test_entries_alone() -> None:
    array = sparse.csr_array(np.array([[0, -2.0, -1], [3, 0, 0]]))
    assert array.argmax(1, explicit=True).tolist() == [2, 0]
    assert (
        int(array.argmin(explicit=True)) == 1 and float(array.max(explicit=True)) == 3
    )
    with pytest.raises(ArgumentError, match="entry in each"):
        sparse.csr_array(np.diag([1.0, 0])).argmax(1, explicit=True)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_extremes_without_nan(axis: int | None) -> None:
    x = np.array([[np.nan, -1.0, 0], [np.nan, np.nan, np.nan], [np.nan, -2, -3]])
    array = sparse.csr_array(x.astype("f4"))
    np.testing.assert_array_equal(array.nanmax(axis), np.nanmax(x, axis))
    np.testing.assert_array_equal(array.nanmin(axis), np.nanmin(x, axis))
    assert array.nanmin(explicit=True) == -3
    whole = sparse.csr_array(dense(1, kind="i4"))
    np.testing.assert_array_equal(whole.nanmax(axis), dense(1).max(axis))


@pytest.mark.parametrize("k", [0, 2, -1])
@pytest.mark.parametrize("format", FORMATS)
def test_replaced_diagonals(format: str, k: int) -> None:
    x = dense(4)
    array = sparse.csr_array(x).asformat(format)
    for values in (9.0, np.arange(1.0, 3), np.arange(1.0, 20)):
        want = array.to_scipy().tolil()
        want.setdiag(values, k)
        found = array.setdiag(values, k)
        np.testing.assert_array_equal(found.todense(), want.toarray())
    assert found.format == ("csr" if format in ("bsr", "dia") else format)


def test_derivative_of_a_replaced_diagonal() -> None:
    array = sparse.csr_array(dense(4))

    def loss(a: Any, d: Any) -> Any:
        return fnp.sum((a.setdiag(d) @ fnp.ones(7)) ** 2)

    by_a, by_d = fxflow.grad(loss, (0, 1))(array, fnp.ones(5))
    changed = dense(4)
    np.fill_diagonal(changed, 1)
    rows = 2 * changed.sum(1)
    np.testing.assert_allclose(by_d, rows)
    mask = (dense(4) != 0) & ~np.eye(5, 7, dtype=bool)
    np.testing.assert_allclose(by_a.todense(), rows[:, None] * mask)


def test_bad_input() -> None:
    array = sparse.csr_array(dense(0))
    with pytest.raises(ArgumentError, match="axis"):
        array.argmax(2)
    with pytest.raises(ShapeError, match="no elements"):
        sparse.csr_array(np.zeros((0, 3))).argmax()
    with pytest.raises(ArgumentError, match="outside"):
        array.setdiag(1.0, 7)
    with pytest.raises(ShapeError, match="vector"):
        array.setdiag(np.ones((2, 2)))


OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("sign", OPERATORS)
def test_comparisons(format: str, sign: str) -> None:
    compare = OPERATORS[sign]
    x, y = dense(5), dense(6)
    a, b = (sparse.csr_array(v).asformat(format) for v in (x, y))
    np.testing.assert_array_equal(compare(a, y), compare(x, y))
    for number in (-1, 0, 2, 1.5):
        if compare(0, number):
            with pytest.raises(ArgumentError, match=f"elements are 0, beside {number}"):
                compare(a, number)
        else:
            found = compare(a, number)
            assert found.dtype == bool and found.format == format
            np.testing.assert_array_equal(found.todense(), compare(x, number))
    if "=" in sign and sign != "!=":
        with pytest.raises(ArgumentError, match="True where both are 0"):
            compare(a, b)
    else:
        for other in (b, b.to_scipy(), a):
            z = np.asarray(other.toarray())
            found = fxflow.jit(lambda a, o=other: compare(a, o))(a)
            assert found.dtype == bool
            np.testing.assert_array_equal(found.todense(), compare(x, z))


def test_comparisons_with_something_else() -> None:
    a = sparse.csr_array(dense(5))
    assert (a == "x") is False and (a != None) is True  # noqa: E711
    with pytest.raises(TypeError, match="not supported"):
        a < "x"
    with pytest.raises(ArgumentError, match="a known number, got a traced i32"):
        fxflow.jit(lambda n: a > n)(2)
    with pytest.raises(ShapeError, match="must be the same"):
        a > a.T
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
