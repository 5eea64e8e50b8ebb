"""Reading under tracing, out of range, and as operations."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import OutOfRangeError
from tests.numpy.oracle import same

A = np.array


SHAPE = (4, 5, 6)


X = np.arange(120, dtype=np.float32).reshape(SHAPE)


def test_traced_integers() -> None:
    at = fxflow.jit(
        lambda x, i, j: (x[i], x[i, j], x[:, i], x[i, 1:3, ::2], x[i, None])
    )
    want = X[1], X[1, -2], X[:, 1], X[1, 1:3, ::2], X[1, None]
    assert same(want, at(X, 1, -2))
    assert same((X[3], X[0]), fxflow.jit(lambda x, i: (x[i], x[-i]))(X, 9))


def test_a_traced_integer_is_a_dynamic_slice() -> None:
    text = str(fxflow.make_graph(lambda x, i: x[i, 1:3])(X, 1))
    assert "dynamic_slice" in text and "gather" not in text


def test_arrays_out_of_range_are_clipped() -> None:
    x = fnp.arange(5.0)
    picks = A([10, -7, -1])
    for index in (picks, fnp.asarray(picks)):
        assert x[index].tolist() == [4, 0, 4]
        assert fxflow.jit(lambda a, i: a[i])(x, index).tolist() == [4, 0, 4]


@pytest.mark.parametrize(
    ("mode", "fill", "want"),
    [
        (None, None, [4, 0, 4]),
        ("clip", None, [4, 0, 4]),
        ("fill", -1.0, [-1, -1, 4]),
        ("promise_in_bounds", None, [4, 0, 4]),
    ],
)
def test_modes_treat_indices_out_of_bounds(
    mode: Any, fill: Any, want: list[float]
) -> None:
    x = fnp.arange(5.0)
    picks = A([10, -7, -1])
    assert x.at[picks].get(mode=mode, fill_value=fill).tolist() == want


def test_fill_of_scalars_and_without_wrapping() -> None:
    x = fnp.arange(5.0)
    assert np.isnan(float(fxflow.jit(lambda a, i: a.at[i].get(mode="fill"))(x, 7)))
    got = x.at[A([-1])].get(mode="fill", wrap_negative_indices=False, fill_value=9.0)
    assert got.tolist() == [9]


def test_small_index_dtypes_do_not_overflow() -> None:
    x = fnp.arange(200)
    assert x[A([-1], np.int8)].tolist() == [199]
    assert x[fnp.asarray([250], "uint8")].tolist() == [199]


def test_picking_from_nothing() -> None:
    empty = fnp.zeros((0, 3))
    assert empty[A([], dtype=int)].shape == (0, 3)
    with pytest.raises(
        OutOfRangeError, match=r"cannot index axis 0 of .*: its length is 0"
    ):
        empty[A([0])]
