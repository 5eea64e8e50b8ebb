"""Slices at static places."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.array import as_array, host_of
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.lax.key_arrays import keys, words

X = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.slice(X, (1, 0), (3, 4)), X[1:3]),
        (lambda: lax.slice(X, (0, 1), (3, 4), (2, 3)), X[::2, 1::3]),
        (lambda: lax.slice(X, (1, 1), (1, 4)), X[1:1, 1:]),
        (lambda: lax.slice_in_dim(X, -3, -1, axis=1), X[:, -3:-1]),
        (lambda: lax.slice_in_dim(X, None, None, 2), X[::2]),
        (lambda: lax.index_in_dim(X, -1), X[-1:]),
        (lambda: lax.index_in_dim(X, 2, 1, keepdims=False), X[:, 2]),
    ],
)
def test_agrees_with_numpy_indexing(got, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got(), expected)


def test_a_slice_is_a_view() -> None:
    x = as_array(X)
    assert np.shares_memory(host_of(lax.slice(x, (1, 0), (3, 4))), host_of(x))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.slice(X, (0,), (1,)), ShapeError, "one start, limit and stride"),
        (
            lambda: lax.slice(X, (0, 0), (3, 5)),
            ShapeError,
            r"along axis 1 of f32\[3,4\], start 0 to limit 5 .* does not lie in 0 to 4",
        ),
        (lambda: lax.slice(X, (-1, 0), (3, 4)), ShapeError, "see slice_in_dim"),
        (lambda: lax.slice(X, (2, 0), (1, 4)), ShapeError, "start 2 to limit 1"),
        (lambda: lax.slice(X, (0, 0), (3, 4), (0, 1)), ShapeError, "steps of 0"),
        (lambda: lax.slice(X, (0.5, 0), (3, 4)), ArgumentError, "start_indices must"),
        (lambda: lax.slice_in_dim(X, 0, 1, axis=2), AxisError, "axis 2 is out of"),
        (lambda: lax.index_in_dim(X, 3), ShapeError, "index 3 is out of range for"),
        (lambda: lax.index_in_dim(X, -4), ShapeError, "index -4 is out of range"),
    ],
)
def test_bounds_and_axes_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x = keys(3, 4)
    w = words(x)
    got = lax.slice(x, (0, 1), (3, 4), (2, 1))
    np.testing.assert_array_equal(words(got), w[::2, 1:])
    np.testing.assert_array_equal(words(lax.index_in_dim(x, -1, keepdims=False)), w[-1])
    with pytest.raises(ShapeError, match=r"key<fry>\[3,4\] needs one start"):
        lax.slice(x, (0,), (1,))
