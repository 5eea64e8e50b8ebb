"""Linear recurrences."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.lax.recurrence import accumulator, tree_scan

A, U = np.float32([np.nan, 2, 3]), np.float32([1, 1, 1])


def test_the_first_coefficient_is_not_used() -> None:
    np.testing.assert_array_equal(lax.linear_recurrence(A, U), [1, 3, 10])
    back = lax.linear_recurrence(A[::-1].copy(), U, reverse=True)
    np.testing.assert_array_equal(back, [10, 3, 1])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
def test_the_tree_is_what_accelerators_run(length: int) -> None:
    x = np.arange(2 * length, dtype="f4").reshape(length, 2)

    def total(a, b):
        return [lax.add(a[0], b[0])]

    np.testing.assert_array_equal(tree_scan(total, [x], 0, False)[0], np.cumsum(x, 0))
    (back,) = tree_scan(total, [x], 0, True)
    np.testing.assert_array_equal(back, np.cumsum(x[::-1], 0)[::-1])


def test_narrow_dtypes_accumulate_in_wider_ones() -> None:
    assert accumulator(np.dtype("f2")) == np.float32
    assert accumulator(np.dtype("i1")) == np.int8


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.linear_recurrence(A[:2], U), ShapeError, "must have one shape"),
        (
            lambda: lax.linear_recurrence(A.astype("f2"), U),
            DtypeError,
            "must have one dtype",
        ),
        (
            lambda: lax.linear_recurrence(U.astype("i4"), U.astype("i4")),
            DtypeError,
            "takes floating point",
        ),
        (lambda: lax.linear_recurrence(A, U, 1), AxisError, "axis 1 is out of range"),
    ],
)
def test_operands_that_differ_in_shape_or_dtype_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
