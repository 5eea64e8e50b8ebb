"""Slices of an array at many computed places."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.array import Array, as_array, host_of
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.gather_scatter.gather import take_along
from tests.lax.key_arrays import keys, words

X = np.arange(5, dtype="f4") + 1
M = np.arange(12, dtype="i4").reshape(3, 4)
Numbers = lax.GatherDimensionNumbers
ELEMENTS = Numbers((), (0,), (0,))
ROWS = Numbers((1,), (0,), (0,))


def at(*indices: int) -> np.ndarray:
    return np.array(indices, "i4")[:, None]


def test_modes_treat_indices_out_of_bounds() -> None:
    indices = at(0, 7, -2, 4)

    def got(**options: object) -> list[float]:
        return np.asarray(lax.gather(X, indices, ELEMENTS, (1,), **options)).tolist()

    assert got(mode="clip") == [1, 5, 1, 5]
    assert got(fill_value=-1) == [1, -1, -1, 5]
    assert got() == [1, 5, 1, 5]
    np.testing.assert_array_equal(got(mode="fill"), [1, np.nan, np.nan, 5])
    assert got(mode="promise_in_bounds")[::3] == [1, 5]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", True),
        ("uint8", 255),
        ("int8", -128),
        ("int32", -(2**31)),
        ("float16", np.nan),
        ("complex64", complex(np.nan, 0)),
    ],
)
def test_default_fill(dtype: str, expected: object) -> None:
    x = X.astype(dtype)
    out = np.asarray(lax.gather(x, at(9), ELEMENTS, (1,), mode="fill"))
    np.testing.assert_array_equal(out, np.array([expected], dtype))


def test_fill_values_that_compare_equal_are_kept_apart() -> None:
    fills = (0.0, -0.0, 0.0)
    outs = [lax.gather(X, at(9), ELEMENTS, (1,), fill_value=v) for v in fills]
    assert [bool(np.signbit(np.asarray(o))[0]) for o in outs] == [False, True, False]
    out = lax.gather(X, at(9), ELEMENTS, (1,), fill_value=np.nan)
    assert np.isnan(np.asarray(out)).all()


def test_a_slice_that_lies_partly_outside_is_filled_as_a_whole() -> None:
    numbers = Numbers((1,), (), (0,))
    out = lax.gather(X, at(3, 4), numbers, (2,), fill_value=0)
    np.testing.assert_array_equal(out, [[4, 5], [0, 0]])
    out = lax.gather(X, at(3, 4), numbers, (2,), mode="clip")
    np.testing.assert_array_equal(out, [[4, 5], [4, 5]])


def test_batch_axes_and_slice_axes_interleave() -> None:
    indices = np.array([[[0], [3]], [[1], [1]]], "i4")
    out = lax.gather(M, indices, Numbers((1,), (1,), (1,)), (3, 1))
    np.testing.assert_array_equal(out, M[:, [[0, 3], [1, 1]]].transpose(1, 0, 2))


def test_take_along() -> None:
    order = np.argsort(-M, axis=1).astype("i4")
    out = take_along(as_array(M), as_array(order), 1)
    np.testing.assert_array_equal(out, np.take_along_axis(M, order, 1))


@pytest.mark.parametrize("index", ["i1", "u1", "i8", "u8", "u4"])
def test_index_dtypes(index: str) -> None:
    long = np.arange(300, dtype="i4")
    indices = np.array([[100], [127]], index)
    out = lax.gather(long, indices, ELEMENTS, (1,))
    np.testing.assert_array_equal(out, [100, 127])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.gather(X, np.ones((1, 1), "f4"), ELEMENTS, (1,)),
            DtypeError,
            r"gather: indices must be integers, got f32\[1,1\]",
        ),
        (
            lambda: lax.gather(X, np.ones((1, 2), "i4"), ELEMENTS, (1,)),
            ShapeError,
            r"last axis of the indices i32\[1,2\] must have length 1",
        ),
        (lambda: lax.gather(X, at(0), ELEMENTS, (6,)), ShapeError, "do not fit f32"),
        (lambda: lax.gather(X, at(0), ELEMENTS, (1, 1)), ShapeError, "do not fit f32"),
        (lambda: lax.gather(X, at(0), ELEMENTS, (2,)), ShapeError, "must be 1 along"),
        (
            lambda: lax.gather(M, at(0), ELEMENTS, (1, 4)),
            ShapeError,
            r"keeps 1 axes, but offset_dims \(\) have 0",
        ),
        (
            lambda: lax.gather(M, at(0), Numbers((3,), (0,), (0,)), (1, 4)),
            AxisError,
            "offset_dims must be distinct increasing axes from 0 to 1",
        ),
        (
            lambda: lax.gather(X, at(0), Numbers((), (0,), (1,)), (1,)),
            AxisError,
            "start_index_map must be distinct axes",
        ),
        (
            lambda: lax.gather(M, at(0), Numbers((), (0, 1), (0,), (1,), (0,)), (1, 1)),
            AxisError,
            r"operand_batching_dims \(1,\) may not have another role",
        ),
        (
            lambda: lax.gather(M, at(0), Numbers((), (1,), (1,), (0,), (0,)), (1, 1)),
            ShapeError,
            "batching dimensions must agree in number and length",
        ),
        (
            lambda: lax.gather(X, at(0), ELEMENTS, (1,), mode="wrap"),
            ArgumentError,
            "unknown mode 'wrap'",
        ),
        (
            lambda: lax.gather(X, at(0), ELEMENTS, (1,), fill_value="x"),
            ArgumentError,
            "fill_value must be a number, got 'x'",
        ),
        (
            lambda: lax.gather(X, at(0), (0,), (1,)),
            ArgumentError,
            "dimension_numbers must be GatherDimensionNumbers",
        ),
    ],
)
def test_indices_sizes_and_axes_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_result_is_read_only_memory_of_its_own() -> None:
    x = as_array(X)
    out: Array = lax.gather(x, at(1), ELEMENTS, (1,))
    assert not np.shares_memory(host_of(out), host_of(x))


def test_keys_move_as_words() -> None:
    x = keys(3, 4)
    w = words(x)
    out = lax.gather(x, at(2, 0), ROWS, (1, 4), mode="clip")
    np.testing.assert_array_equal(words(out), w[[2, 0]])
    out = lax.gather(x, at(2, 9), ROWS, (1, 4), fill_value=7)
    np.testing.assert_array_equal(words(out), np.stack([w[2], np.full((4, 2), 7)]))
    with pytest.raises(ArgumentError, match="fill_value must be a number"):
        lax.gather(x, at(2), ROWS, (1, 4), fill_value=x[0, 0])
