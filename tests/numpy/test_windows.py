"""Windows against NumPy."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from tests.numpy.oracle import check, same


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
def test_windows(name: str, count: int) -> None:
    check(name, count, tol=1e-6)
    assert getattr(fnp, name)(count).dtype == np.float32


def test_kaiser() -> None:
    for count in (0, 1, 2, 9):
        check("kaiser", count, 3.5, tol=1e-5)
    got = fxflow.jit(lambda b: fnp.kaiser(5, b))(3.5)
    assert same(np.kaiser(5, 3.5), got, 1e-5)


def test_i0() -> None:
    check("i0", np.linspace(-8, 8, 33).astype(np.float32), tol=1e-4)
    check("i0", np.arange(4), tol=1e-5)


def test_a_length_that_is_not_an_integer_is_refused() -> None:
    with pytest.raises(ArgumentError, match="integer"):
        fnp.hamming(3.5)  # type: ignore[arg-type]


def test_slope_of_i0_at_zero() -> None:
    assert float(fxflow.grad(fnp.i0)(0.0)) == float(fxflow.jacfwd(fnp.i0)(0.0)) == 0
    assert float(fxflow.grad(fxflow.grad(fnp.i0))(0.0)) == pytest.approx(0.5)
