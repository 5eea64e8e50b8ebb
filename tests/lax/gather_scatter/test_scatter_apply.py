"""A function applied to elements at computed indices."""

import numpy as np
import pytest

from fxflow import lax
from fxflow._config import config
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
)

NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))
AT = np.array([[1], [1], [2], [9]], "i4")
OUTSIDE = np.ones(2, "f4")


def squares(x: np.ndarray, **options: object) -> np.ndarray:
    out = lax.scatter_apply(
        x, AT, lambda e: lax.mul(e, e), NUMBERS, update_shape=(4,), **options
    )
    return np.asarray(out)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_the_function_applies_to_indexed_elements_only(dtype: str) -> None:
    x = np.array([2, 3, 4], dtype)
    if dtype == "f8":
        x = lax.full((3,), 0, "float64")
        x = lax.scatter(x, np.array([[0], [1], [2]]), lax.iota("float64", 3), NUMBERS)
        np.testing.assert_array_equal(squares(x), [0, 1, 4])
        return
    np.testing.assert_array_equal(squares(x), [2, 81, 16])
    np.testing.assert_array_equal(squares(x, mode="clip"), [2, 81, 256])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: lax.broadcast(e, (2,)), ShapeError, r"one element, got f32\[2\]"),
        (lambda e: lax.eq(e, e), DtypeError, r"must keep the dtype of f32\[\]"),
        (
            lambda e: lax.concatenate([lax.reshape(e, (1,)), OUTSIDE], 0),
            ArgumentError,
            r"uses f32\[2\] from outside",
        ),
    ],
)
def test_invalid_functions_are_refused(call, error, message) -> None:
    x = np.zeros(3, "f4")
    with pytest.raises(error, match=message):
        lax.scatter_apply(x, AT, call, NUMBERS, update_shape=(4,))


def test_shape_of_updates_is_checked() -> None:
    with pytest.raises(ShapeError, match=r"need the batch axes \(4,\) of the indices"):
        lax.scatter_apply(np.zeros(3, "f4"), AT, lax.neg, NUMBERS, update_shape=(3,))


def test_there_is_no_derivative() -> None:
    x = np.zeros(3, "f4")
    with pytest.raises(NotDifferentiableError, match="scatter the results instead"):
        jvp_flat(
            lambda y: [lax.scatter_apply(y, AT, lax.neg, NUMBERS, update_shape=(4,))],
            [x],
            [x],
        )


def test_compiled_and_evaluated_agree() -> None:
    x = np.array([2, 3, 4], "f4")
    with config.override(eager="xla"):
        np.testing.assert_array_equal(squares(x), [2, 81, 16])
