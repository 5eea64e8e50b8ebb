"""Reshaping, transposing, broadcasting."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import arrays, check, quick, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("shape", (24, -1, (4, 6), (2, -1), (-1, 2, 3), [6, 4]))
@pytest.mark.parametrize("order", ("C", "F"))
def test_reshape(shape: Any, order: str) -> None:
    want = X.reshape(shape, order=order)
    x = fnp.asarray(X)
    for _ in range(2):  # made, then remembered
        assert same(want, fnp.reshape(x, shape, order))
        assert same(want, x.reshape(shape, order=order))
    assert same(want, fxflow.jit(lambda a: fnp.reshape(a, shape, order))(X))


def test_reshape_method_takes_numbers() -> None:
    assert fnp.asarray(X).reshape(4, -1).shape == (4, 6)
    assert fnp.zeros((0, 3)).reshape(3, 0).shape == (3, 0)


@quick
@given(x=arrays())
def test_ravel_and_back(x: np.ndarray) -> None:
    check("ravel", x, compiled=False)
    check("ravel", x, order="F", compiled=False)
    a = fnp.asarray(x)
    assert same(x, a.ravel().reshape(x.shape)) and same(x.flatten(), a.flatten())


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((5, 5), r"reshape: cannot reshape f32\[2,3,4\] to \(5, 5\): that is 25"),
        ((-1, 5), "24 elements do not divide by 5"),
        ((-1, -1), "only one length can be -1"),
        ((-2, 12), "lengths in shape must not be negative"),
        ((-1, 0), "do not divide by 0"),
    ],
)
def test_shapes_that_do_not_fit(shape: Any, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        fnp.reshape(X, shape)


def test_reshape_of_unknown_order() -> None:
    with pytest.raises(ArgumentError, match="order must be 'C' or 'F'"):
        fnp.reshape(X, -1, "K")


def test_axes_of_length_one() -> None:
    check("expand_dims", X, 0)
    check("expand_dims", X, (0, -1))
    check("squeeze", X[:, :1, None])
    check("squeeze", X[:, :1], 1)
    check("squeeze", X[None, :, :1], (0, 2), compiled=False)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for x in (X, X[0, 0], X[0], X[0, 0, 0]):
            check(name, np.asarray(x), compiled=False)
        assert len(getattr(fnp, name)(X, 1.0)) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.squeeze(X, 0), ShapeError, "axis 0 of f32.2,3,4. has length 2"),
        (lambda: fnp.expand_dims(X, 5), AxisError, "axis 5 is out of range"),
        (lambda: fnp.expand_dims(X, "a"), ArgumentError, "must be an integer"),
        (lambda: fnp.reshape([1, 2], 2), ArgumentError, "reshape: got a list"),
    ],
)
def test_invalid_axes_and_lists_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
