"""Products of arrays."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError, AxisError, ShapeError

X, Y = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 5), "f4")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.dot(X, Y), X @ Y),
        (lambda: lax.dot(X, Y[:, 0]), X @ Y[:, 0]),
        (lambda: lax.dot(X[0], X[1]), X[0] @ X[1]),
        (lambda: lax.dot(X, X, dimension_numbers=(((1,), (-1,)), ((), ()))), X @ X.T),
        (lambda: lax.batch_matmul(X[None], Y[None]), (X @ Y)[None]),
        (lambda: lax.dot_general(X, X, (((), ()), ((0, 1), (0, 1)))), X * X),
    ],
)
def test_products_agree_with_numpy(got, expected: np.ndarray) -> None:
    np.testing.assert_allclose(got(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.dot(X, X),
            ShapeError,
            r"dot: contracting dimensions differ: lhs f32\[3,4\] axis 1 is 4, rhs "
            r"f32\[3,4\] axis 0 is 3",
        ),
        (lambda: lax.dot(X, Y[None]), ShapeError, "dot: takes vectors and matrices"),
        (lambda: lax.dot(1.0, Y), ShapeError, "dot: takes vectors and matrices"),
        (lambda: lax.batch_matmul(X, Y[None]), ShapeError, "one number of axes"),
        (
            lambda: lax.dot_general(X, Y, (((1,), (0,)), ((0,), (1,)))),
            ShapeError,
            r"batch dimensions differ: lhs f32\[3,4\] axis 0 is 3",
        ),
        (
            lambda: lax.dot_general(X, Y, (((1,), ()), ((), ()))),
            ShapeError,
            "as many contracting axes",
        ),
        (
            lambda: lax.dot_general(X, X, (((1, 1), (1, 0)), ((), ()))),
            AxisError,
            "named twice",
        ),
        (
            lambda: lax.dot_general(X, Y, (((2,), (0,)), ((), ()))),
            AxisError,
            "2 is out of range",
        ),
        (
            lambda: lax.dot_general(X, Y, (1, 0)),
            ArgumentError,
            "dimension_numbers must",
        ),
    ],
)
def test_shapes_and_dimension_numbers_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
