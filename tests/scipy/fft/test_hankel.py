"""Hankel's transform and fast lengths against SciPy."""

import numpy as np
import pytest
import scipy.fft

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import fft

RNG = np.random.default_rng(27)


@pytest.mark.parametrize("n", [7, 8])
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_agree_with_scipy(n: int, bias: float) -> None:
    x = RNG.normal(size=(2, n))
    with fxflow.config.override(x64=True):
        for mu in (0.0, 1.5):
            given = (0.3, mu, 0.2, bias)
            got = fft.fht(x, *given)
            np.testing.assert_allclose(got, scipy.fft.fht(x, *given), 1e-9, 1e-10)
            np.testing.assert_allclose(
                fft.ifht(got, *given), scipy.fft.ifht(np.asarray(got), *given), 1e-9
            )
            offset = fft.fhtoffset(0.3, mu, 0.1, bias)
            want = scipy.fft.fhtoffset(0.3, mu, 0.1, bias)
            assert float(offset) == pytest.approx(want)


def test_slope_by_the_order() -> None:
    x = RNG.normal(size=7)
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(lambda mu: fnp.sum(fft.fht(x, 0.3, mu) ** 3))(0.7)
        h = 1e-5
        ends = [np.sum(scipy.fft.fht(x, 0.3, 0.7 + s) ** 3) for s in (h, -h)]
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_fast_lengths() -> None:
    for real in (False, True):
        for n in (1, 2, 13, 97, 1021, 4999):
            assert fft.next_fast_len(n, real) == scipy.fft.next_fast_len(n, real)
            assert fft.prev_fast_len(n, real) == scipy.fft.prev_fast_len(n, real)
    with pytest.raises(ArgumentError, match="positive"):
        fft.next_fast_len(0)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="real samples"):
        fft.fht(np.ones(3) * 1j, 0.1, 0.0)
    with pytest.raises(ShapeError, match="last axis"):
        fft.fht(1.0, 0.1, 0.0)
