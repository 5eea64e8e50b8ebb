"""Positions of extrema."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import jit, lax
from fxflow.errors import AxisError, DtypeError, ShapeError

X = np.array([[3, 1, 3], [np.nan, 2, np.nan]], "f4")


def test_first_of_equals_and_first_nan() -> None:
    np.testing.assert_array_equal(lax.argmax(X, 1, "int32"), [0, 0])
    np.testing.assert_array_equal(lax.argmin(X, -1, "int32"), [1, 0])
    assert lax.argmax(X, 0, np.uint8).dtype == np.uint8


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("shape", [(30,), (40, 19), (25, 6), (3, 21, 2)], ids=str)
def test_compiled_as_on_the_host(shape: tuple[int, ...], dtype: str) -> None:
    # Few different numbers: most extrema are there several times.
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(-3, 4, shape).astype(np.float32)
    if dtype != "int32":
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.05] = np.inf
        x[rng.random(shape) < 0.1] = -0.0
    x = fnp.asarray(x).astype(dtype)
    for axis in range(len(shape)):
        for call, host in ((lax.argmax, np.argmax), (lax.argmin, np.argmin)):
            out = jit(lambda x, c=call, a=axis: c(x, a, np.uint8))(x)
            expected = host(np.asarray(x).astype(np.float32), axis)
            np.testing.assert_array_equal(np.asarray(out), expected)
            assert out.dtype == np.uint8


@pytest.mark.parametrize("fill", [np.nan, np.inf, -np.inf, 0.0])
def test_all_equal(fill: float) -> None:
    x = np.full((2, 64), fill, np.float32)
    for call in (lax.argmax, lax.argmin):
        out = jit(lambda x, call=call: call(x, 1, "int32"))(x)
        np.testing.assert_array_equal(np.asarray(out), [0, 0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.argmax(X, 2, "int32"), AxisError, "axis 2 is out of range"),
        (lambda: lax.argmin(X, 0, "float32"), DtypeError, "index_dtype must be"),
        (lambda: lax.argmax(X * 1j, 0, "int32"), DtypeError, "argmax: takes"),
        (lambda: lax.argmax(X[:0], 0, "int32"), ShapeError, r"axis 0 of f32\[0,3\] is"),
    ],
)
def test_invalid_axes_and_dtypes_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
