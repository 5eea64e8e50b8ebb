"""Arrays with their axes in another order."""

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import check, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_transposes() -> None:
    check("transpose", X)
    check("transpose", X, (1, 2, 0))
    check("transpose", X, (-1, 0, 1), compiled=False)
    check("swapaxes", X, 0, -1)
    check("matrix_transpose", X)
    x = fnp.asarray(X)
    assert same(X.T, x.T) and same(X.mT, x.mT)
    assert same(X.transpose(2, 0, 1), x.transpose(2, 0, 1))
    assert same(X.transpose((2, 0, 1)), x.transpose((2, 0, 1)))
    assert same(X.T, x.transpose())


@pytest.mark.parametrize(
    ("source", "destination"), [(0, -1), (2, 0), ((0, 1), (-1, 0)), ([1], [2])]
)
def test_moveaxis(source: Any, destination: Any) -> None:
    check("moveaxis", X, source, destination)


def test_rollaxis() -> None:
    for axis in range(-3, 3):
        for start in range(-3, 4):
            check("rollaxis", X, axis, start, compiled=False)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.transpose(X, (0, 1)), AxisError, "each of the 3 axes"),
        (lambda: fnp.transpose(X, (0, 1, 1)), AxisError, "repeated axis"),
        (lambda: fnp.swapaxes(X, 0, 3), AxisError, "axis2 3 is out of range"),
        (lambda: fnp.moveaxis(X, 0, (1, 2)), ArgumentError, "as many axes"),
        (lambda: fnp.moveaxis(X, 3, 0), IndexError, "source 3 is out of range"),
        (lambda: fnp.rollaxis(X, 0, 5), AxisError, "start 5"),
        (lambda: fnp.matrix_transpose(X[0, 0]), ShapeError, "two axes or more"),
    ],
)
def test_axes_that_are_out_of_range_or_repeated_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
