"""Joining and splitting."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.array import as_array
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.lax.key_arrays import keys, words

X = np.arange(6, dtype="f4").reshape(2, 3)


def test_concatenate() -> None:
    out = lax.concatenate([X, X[:, :1]], -1)
    np.testing.assert_array_equal(out, np.concatenate([X, X[:, :1]], -1))
    x = as_array(X)
    assert lax.concatenate([x], 0) is x


def test_weakness_survives_only_if_all_are_weak() -> None:
    weak = lax.broadcast(1.0, (2,))
    assert lax.concatenate([weak, weak], 0).weak_type
    assert not lax.concatenate([weak, np.ones(2, "f4")], 0).weak_type


def test_split_and_unstack() -> None:
    left, nothing, right = lax.split(X, (1, 0, 2), axis=-1)
    np.testing.assert_array_equal(left, X[:, :1])
    assert nothing.shape == (2, 0)
    np.testing.assert_array_equal(right, X[:, 1:])
    for i, column in enumerate(lax.unstack(X, axis=1)):
        np.testing.assert_array_equal(column, X[:, i])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.concatenate([], 0), ArgumentError, "at least one array"),
        (lambda: lax.concatenate([X, X], 2), AxisError, "dimension 2 is out of range"),
        (
            lambda: lax.concatenate([X, X[:1]], 1),
            ShapeError,
            r"only along axis 1, got f32\[2,3\], f32\[1,3\]",
        ),
        (lambda: lax.concatenate([X, X[0]], 0), ShapeError, "differ in length only"),
        (
            lambda: lax.concatenate([X, X.astype("i4")], 0),
            DtypeError,
            r"one dtype, got f32\[2,3\], i32\[2,3\]",
        ),
        (lambda: lax.split(X, (1, 1), 1), ShapeError, "add up to 2, but axis 1 .* 3"),
        (lambda: lax.split(X, (4, -1), 1), ShapeError, "must not be negative"),
        (lambda: lax.split(X, (2,), 2), AxisError, "split: axis 2 is out of range"),
        (lambda: lax.unstack(np.float32(0)), AxisError, "0-d array has no axes"),
    ],
)
def test_shapes_dtypes_and_sizes_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x = keys(2, 3)
    w = words(x)
    joined = lax.concatenate([x, x], 0)
    np.testing.assert_array_equal(words(joined), np.concatenate([w, w]))
    left, right = lax.split(x, (1, 2), 1)
    np.testing.assert_array_equal(words(left), w[:, :1])
    np.testing.assert_array_equal(words(right), w[:, 1:])
    with pytest.raises(DtypeError, match=r"one dtype, got key<fry>\[2,3\], u32\[2,3\]"):
        lax.concatenate([x, X.astype("u4")], 0)


def test_stack() -> None:
    x = np.arange(6, dtype="i4").reshape(2, 3)
    for axis in (0, 1, 2, -1):
        np.testing.assert_array_equal(
            lax.stack([x, x + 1], axis), np.stack([x, x + 1], axis)
        )
    with pytest.raises(ShapeError, match=r"one shape, got i32\[2,3\] and i32\[3\]"):
        lax.stack([x, x[0]])
    with pytest.raises(AxisError, match="stack: axis 3 is out of range"):
        lax.stack([x], 3)
    with pytest.raises(ArgumentError, match="at least one"):
        lax.stack([])
