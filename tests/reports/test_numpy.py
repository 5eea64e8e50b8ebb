"""Reports on NumPy that a library with its interface could share."""

from __future__ import annotations

import math

import numpy as np

import fxflow
import fxflow.numpy as fnp
from tests.reports.modes import check_both

INF, NAN = math.inf, math.nan


def test_percentiles_beside_infinity_are_those_of_the_median() -> None:
    """A weight of 0 does not multiply infinity (numpy#12282)."""
    ask = lambda x: fnp.percentile(x, fnp.array([10.0, 50.0, 75.0, 100.0]))
    check_both(ask, [4.2, 5, INF, INF], fnp.array([INF, 5.0, 4.0]))


def test_nanmedian_averages_a_number_and_infinity() -> None:
    """The median of 4 and inf is inf, of -10 and 5 is -2.5 (numpy#8487)."""
    x = [[INF, 7, -INF, -9], [-10, NAN, NAN, 5], [4, NAN, NAN, INF]]
    check_both(lambda x: fnp.nanmedian(x, axis=-1), [-1, -2.5, INF], fnp.array(x))


def test_the_variance_of_many_halves_is_finite() -> None:
    """float16 squares are summed in float32 (numpy#21941)."""
    x = fnp.tile(fnp.array([0, 100, 200], dtype=np.float16), 30_000)
    assert fnp.var(x).dtype == np.float16
    check_both(fnp.var, 20_000 / 3, x, rtol=1e-3)


def test_hfft_pads_as_it_cuts() -> None:
    """`hfft` of 5 terms to 10 points is the sum of their waves (numpy#25679)."""
    x = np.arange(5) + 1j
    angles = 2 * np.pi * np.outer(np.arange(10), np.arange(1, 5)) / 10
    right = x[0].real + 2 * (x[1:] * np.exp(-1j * angles)).real.sum(1)
    ask = lambda x: fnp.fft.hfft(x, n=10)
    check_both(ask, right, fnp.array(x.astype(np.complex64)), rtol=1e-4)


def test_rfft_is_orthonormal_over_the_length_asked_for() -> None:
    """`norm="ortho"` divides by √n, not by the length of the operand (numpy#8444)."""

    def there_and_back(x: fnp.ndarray) -> fnp.ndarray:
        waves = fnp.fft.rfft(x, n=4, norm="ortho")
        return fnp.fft.irfft(waves, n=4, norm="ortho")

    check_both(there_and_back, [1, 1, 0, 0], fnp.array([1.0, 1.0]), atol=1e-6)


def test_cov_weighs_complex_observations() -> None:
    """Reliability weights of complex data are real factors (numpy#10666)."""
    m = np.array([[1 + 1j, 2, 3j], [0, 1j, 2]], np.complex64)
    weights = np.array([1.0, 2.0, 3.0])
    share = weights / weights.sum()
    centred = m - (m * share).sum(1, keepdims=True)
    right = (centred * share) @ centred.conj().T / (1 - (share**2).sum())
    ask = lambda m: fnp.cov(m, aweights=weights)
    check_both(ask, right, fnp.array(m), atol=1e-5)


def test_unique_keeps_the_shape_of_its_inverse() -> None:
    """`values[inverse]` is the operand, of two axes too (numpy#26753)."""
    ask = lambda x: fnp.unique(x, size=2, return_inverse=True)
    check_both(ask, ([1, 2], [[0, 1], [1, 0]]), fnp.array([[1, 2], [2, 1]]))
    check_both(lambda x: fnp.unique(x, size=1, return_inverse=True)[1], 0, fnp.array(5))


def test_large_unsigned_numbers_are_compared_exactly() -> None:
    """uint64 numbers that share a float64 differ (numpy#5746)."""
    with fxflow.config.override(x64=True):
        x = fnp.array(0x1234567890ABCDEF, dtype=np.uint64)
        ask = lambda x: (x == 0x1234567890ABCDE0, x > 0x1234567890ABCDE0)
        check_both(ask, (False, True), x)
