"""Whole lines in order, and the largest elements."""

import ml_dtypes
import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.lax.key_arrays import keys

X = np.array([[3, 1, 2], [0, 5, 4]], "i4")
SPECIAL = np.array([3, -np.nan, np.nan, -0.0, 0.0, -1, np.inf], "f4")
FLOATS = ["f4", "f2", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]


def test_sort_and_argsort_agree_with_numpy() -> None:
    np.testing.assert_array_equal(lax.sort(X), np.sort(X))
    np.testing.assert_array_equal(lax.sort(X, 0), np.sort(X, 0))
    np.testing.assert_array_equal(lax.argsort(X, -2), np.argsort(X, 0))
    assert lax.argsort(X).dtype == np.int32


def test_several_arrays() -> None:
    first = np.array([1, 0, 1, 0], "i4")
    second = np.array([2.0, 5.0, 1.0, 5.0], "f4")
    third = np.arange(4, dtype="u1")
    out = lax.sort((first, second, third), num_keys=2)
    assert isinstance(out, tuple)
    assert [np.asarray(o).tolist() for o in out] == [
        [0, 0, 1, 1],
        [5.0, 5.0, 1.0, 2.0],
        [1, 3, 2, 0],
    ]
    assert len(lax.sort([first])) == 1


def test_sort_key_val() -> None:
    names, values = lax.sort_key_val(X, X * 10, dimension=0)
    np.testing.assert_array_equal(values, np.asarray(names) * 10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_last_and_zeros_are_equal(dtype: object) -> None:
    x = SPECIAL.astype(dtype)
    np.testing.assert_array_equal(lax.argsort(x), [5, 3, 4, 0, 6, 1, 2])
    ordered = np.asarray(lax.sort(x)).astype("f4")
    assert np.signbit(ordered[1:3]).tolist() == [True, False]
    assert np.isnan(ordered[-2:]).all()


def test_complex_numbers_go_by_real_then_imaginary_part() -> None:
    nan = np.nan
    x = np.array([complex(1, nan), 2, complex(nan, 1), 1 - 2j, 1j, 0.5j], "c8")
    np.testing.assert_array_equal(lax.argsort(x), [5, 4, 3, 0, 1, 2])


@pytest.mark.parametrize("dtype", FLOATS)
def test_top_k_uses_the_total_order(dtype: object) -> None:
    values, places = lax.top_k(SPECIAL.astype(dtype), 7)
    np.testing.assert_array_equal(places, [2, 6, 0, 4, 3, 5, 1])
    expected = SPECIAL.astype(dtype)[np.asarray(places)]
    if np.dtype(dtype).itemsize > 1:
        assert np.asarray(values).tobytes() == expected.tobytes()
    # XLA converts floats of 8 bits on the way: a nan is any nan.
    np.testing.assert_array_equal(np.asarray(values, "f4"), expected.astype("f4"))
    np.testing.assert_array_equal(np.signbit(values[1:6]), np.signbit(expected[1:6]))


def test_top_k_of_equal_elements_takes_the_first() -> None:
    values, places = lax.top_k(np.array([1, 3, 3, 0, 3], "u1"), 3)
    assert np.asarray(places).tolist() == [1, 2, 4]
    assert values.dtype == np.uint8


def test_top_k_along_an_axis() -> None:
    values, places = lax.top_k(X, 1, axis=0)
    np.testing.assert_array_equal(values, [[3, 5, 4]])
    np.testing.assert_array_equal(places, [[0, 1, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.sort(()), ArgumentError, "at least one array"),
        (lambda: lax.sort(X, 2), AxisError, "dimension 2 is out of range"),
        (
            lambda: lax.sort((X, X[0])),
            ShapeError,
            r"one shape, got i32\[2,3\], i32\[3\]",
        ),
        (lambda: lax.sort((X, "a")), ArgumentError, "not an array"),
        (lambda: lax.sort(X, num_keys=2), ArgumentError, "num_keys must be from 1 to"),
        (lambda: lax.sort(X, num_keys=0), ArgumentError, "num_keys must be from 1 to"),
        (lambda: lax.sort(keys(3)), DtypeError, r"sort: takes .* got key<fry>\[3\]"),
        (lambda: lax.argsort(X, 2), AxisError, "dimension 2 is out of range"),
        (lambda: lax.top_k(X, 4), ShapeError, "k must be from 0 to the length 3"),
        (lambda: lax.top_k(X, -1), ShapeError, "k must be from 0"),
        (
            lambda: lax.top_k(X, 1.5),
            ArgumentError,
            "top_k: k must be an integer, got 1",
        ),
        (lambda: lax.top_k(X.astype("c8"), 1), DtypeError, r"takes .* got c64\[2,3\]"),
        (lambda: lax.top_k(X, 1, axis=2), AxisError, "top_k: axis 2 is out of range"),
    ],
)
def test_invalid_operands_axes_and_counts_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
