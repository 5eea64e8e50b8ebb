"""What an index says, and which mistakes it can hold."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    BooleanIndexError,
    ConcretizationError,
    DtypeError,
    OutOfRangeError,
)

A = np.array


SHAPE = (4, 5, 6)


X = np.arange(120, dtype=np.float32).reshape(SHAPE)


MASK = (X.astype(int) * 7) % 5 > 2


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (4, OutOfRangeError, r"index 4 is out of range for axis 0 of f32\[4,5,6\]"),
        ((0, -6), IndexError, "index -6 is out of range for axis 1"),
        ((0, 0, 0, 0), OutOfRangeError, "4 indices for f32.*has 3 axes"),
        ((..., ...), OutOfRangeError, "one Ellipsis"),
        (1.5, ArgumentError, "got 1.5 of type float"),
        ("a", ArgumentError, "got 'a' of type str"),
        (
            [0, 1],
            ArgumentError,
            r"a list is not an index: use x\[fnp.array\(\[0, 1\]\)\]",
        ),
        (np.ones(2), DtypeError, "must be of integers or bools"),
        (slice(1.5), ArgumentError, "bounds of a slice must be integers"),
        (slice(None, None, 0), ArgumentError, "must not be 0"),
        (A([True, False]), OutOfRangeError, "mask has length 2 along axis 0"),
        ((A([0, 1]), A([0, 1, 2])), OutOfRangeError, "do not broadcast together"),
    ],
)
def test_invalid_indices_are_refused_eagerly_and_in_jit(
    index: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        fnp.asarray(X)[index]
    with pytest.raises(error, match=text):
        fxflow.jit(lambda x: x[index])(X)


def test_what_tracing_cannot_know() -> None:
    with pytest.raises(BooleanIndexError, match=r"x.at\[mask\].set"):
        fxflow.jit(lambda x: x[x > 2])(X)
    with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
        fxflow.jit(lambda x, i: x[i : i + 2])(X, 1)


@pytest.mark.parametrize(
    "index",
    [
        np.s_[:, [0, 2]],
        ([0, 1], [1, 2]),
        ((0, 1), (1, 2)),
        np.s_[1, [0, 2], :],
        np.s_[:, [[0, 1], [2, 3]]],
        np.s_[..., [], 0],
        np.s_[[], []],
        np.s_[:, [True, False, True, False, True]],
        ([-1],),
    ],
    ids=repr,
)
def test_a_list_in_a_tuple_is_an_array(index: Any) -> None:
    want = X[index]
    for got in (fnp.asarray(X)[index], fxflow.jit(lambda x: x[index])(X)):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    zeroed = X.copy()
    zeroed[index] = 0
    np.testing.assert_array_equal(fnp.asarray(X).at[index].set(0), zeroed)


def test_lists_may_hold_traced_integers() -> None:
    got = fxflow.jit(lambda x, i: x[:, [i, 2]])(X, 4)
    np.testing.assert_array_equal(got, X[:, [4, 2]])


@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 5), (4, 0, 6), (0, 0, 0)])
def test_a_mask_of_no_elements_fits_everywhere(shape: tuple[int, ...]) -> None:
    mask = np.zeros(shape, bool)
    x = fnp.asarray(X)
    assert x[mask].shape == X[mask].shape
    np.testing.assert_array_equal(x.at[mask].set(1), X)
    np.testing.assert_array_equal(x.at[mask].set(fnp.ones(X[mask].shape)), X)


def test_a_mask_has_the_lengths_of_its_axes_or_none() -> None:
    for shape in ((5, 0), (0, 4), (0, 5, 6, 1)):
        with pytest.raises(IndexError):
            X[np.zeros(shape, bool)]
        with pytest.raises(OutOfRangeError):
            fnp.asarray(X)[np.zeros(shape, bool)]
