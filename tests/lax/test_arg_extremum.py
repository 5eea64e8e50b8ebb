"""Positions of extrema."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import AxisError, DtypeError, ShapeError

X = np.array([[3, 1, 3], [np.nan, 2, np.nan]], "f4")


def test_first_of_equals_and_first_nan() -> None:
    np.testing.assert_array_equal(lax.argmax(X, 1, "int32"), [0, 0])
    np.testing.assert_array_equal(lax.argmin(X, -1, "int32"), [1, 0])
    assert lax.argmax(X, 0, np.uint8).dtype == np.uint8


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.argmax(X, 2, "int32"), AxisError, "axis 2 is out of range"),
        (lambda: lax.argmin(X, 0, "float32"), DtypeError, "index_dtype must be"),
        (lambda: lax.argmax(X * 1j, 0, "int32"), DtypeError, "argmax: takes"),
        (lambda: lax.argmax(X[:0], 0, "int32"), ShapeError, r"axis 0 of f32\[0,3\] is"),
    ],
)
def test_errors(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
