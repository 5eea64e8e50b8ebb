"""Running reductions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow import lax
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.errors import AxisError, DtypeError
from tests.conformance.harness import array

X = np.array([[1, 3, 2], [4, 0, 5]], "f4")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.cumsum(X), np.cumsum(X, 0)),
        (lambda: lax.cumsum(X, -1, reverse=True), [[6, 5, 2], [9, 5, 5]]),
        (lambda: lax.cumprod(X, 1), np.cumprod(X, 1)),
        (lambda: lax.cummax(X, 1), [[1, 3, 3], [4, 4, 5]]),
        (lambda: lax.cummin(X, 1, True), [[1, 2, 2], [0, 0, 5]]),
        (lambda: lax.cumsum(np.int8([100, 100]), 0), np.int8([100, -56])),
    ],
)
def test_agrees_with_numpy_in_both_directions(got, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got(), expected)


def test_logarithms_of_nothing_and_of_everything() -> None:
    x = np.array([-np.inf, -np.inf, 1000.0, 1000.0, np.inf, np.nan], "f4")
    with np.errstate(all="ignore"):
        out = np.asarray(lax.cumlogsumexp(x))
    expected = [-np.inf, -np.inf, 1000, 1000 + np.log(2), np.inf, np.nan]
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_derivative_of_a_product_is_right_at_zeros() -> None:
    x = array(np.float32([2, 0, 3, 0]))
    ones = array(np.ones(4, "f4"))
    _, (t,) = jvp_flat(lambda v: [lax.cumprod(v)], [x], [ones])
    np.testing.assert_array_equal(t, [1, 2, 6, 0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12), st.booleans())
def test_reverse_is_the_mirror_image(values: list[int], reverse: bool) -> None:
    x = np.array(values, "f4")
    for name in ("cumsum", "cummax", "cummin"):
        function = getattr(lax, name)
        forward = np.asarray(function(x[::-1].copy(), 0, not reverse))
        np.testing.assert_array_equal(function(x, 0, reverse), forward[::-1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.cumsum(X, 2), AxisError, "cumsum: axis 2 is out of range"),
        (lambda: lax.cumprod(X > 1), DtypeError, r"cumprod: takes .* bool\[2,3\]"),
        (lambda: lax.cumlogsumexp(X.astype("i4")), DtypeError, "cumlogsumexp: takes"),
    ],
)
def test_invalid_axes_and_dtypes_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_complex_extrema_by_real_then_imaginary_part() -> None:
    z = np.array([1 + 2j, 1 + 1j, 0, 1 + 3j, np.nan, 5], np.complex64)
    np.testing.assert_array_equal(
        np.asarray(lax.cummax(z))[:4], np.maximum.accumulate(z)[:4]
    )
    assert np.isnan(np.asarray(lax.cummax(z))[4:]).all()
