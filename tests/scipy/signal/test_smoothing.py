"""Local polynomials and analytic signals beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import signal

X = np.random.default_rng(0).normal(size=(3, 20, 2))


def close(got: Any, expected: Any) -> None:
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, 1e-8, 1e-9)


@pytest.mark.parametrize("mode", ["mirror", "constant", "nearest", "wrap", "interp"])
def test_smoothing_agrees_with_scipy(mode: Any) -> None:
    with fxflow.config.override(x64=True):
        for length, order, deriv in ((1, 0, 0), (4, 2, 1), (5, 3, 0), (7, 2, 2)):
            args = (length, order, deriv, 0.3, 1, mode, 1.5)
            close(signal.savgol_filter(X, *args), want.savgol_filter(X, *args))


def test_coefficients_agree_with_scipy() -> None:
    settings: list[dict[str, Any]] = [
        {"deriv": 2, "delta": 0.4},
        {"pos": 1},
        {"pos": 1, "use": "dot"},
        {"deriv": 4},
    ]
    with fxflow.config.override(x64=True):
        for s in settings:
            close(signal.savgol_coeffs(7, 3, **s), want.savgol_coeffs(7, 3, **s))


def test_analytic_signals_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n in (None, 15, 24):
            close(signal.hilbert(X, n, 1), want.hilbert(X, n, 1))
        slope = fxflow.grad(lambda x: (abs(signal.hilbert(x)) ** 2).sum())(X[0, :, 0])
        assert np.isfinite(slope).all()
        line = fxflow.grad(lambda x: signal.savgol_filter(x, 5, 2).sum())(X[0, :, 0])
        close(line.sum(), 20.0)
        each = fxflow.jit(fxflow.vmap(lambda x: signal.savgol_filter(x, 5, 2, axis=0)))
        close(each(X), want.savgol_filter(X, 5, 2, axis=1))


def test_bad_smoothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="polyorder must be less"):
        signal.savgol_filter(X, 3, 3)
    with pytest.raises(ArgumentError, match="mode"):
        signal.savgol_filter(X, 3, 1, mode="cut")
    with pytest.raises(ShapeError, match="window_length = 5"):
        signal.savgol_filter(X, 5, 1)
    with pytest.raises(ArgumentError, match="pos"):
        signal.savgol_coeffs(5, 1, pos=7)
    with pytest.raises(ArgumentError, match="use"):
        signal.savgol_coeffs(5, 1, use="sum")
    with pytest.raises(DtypeError, match="real"):
        signal.hilbert(X * 1j)
    with pytest.raises(ArgumentError, match="N must be at least 1"):
        signal.hilbert(X, 0)


def test_medians_and_wiener_filters_agree_with_scipy() -> None:
    image = X[:, :, 0]
    with fxflow.config.override(x64=True):
        for size in (None, 3, (1, 5)):
            close(signal.medfilt(image, size), want.medfilt(image, size))
            close(signal.wiener(image, size), want.wiener(image, size))
        close(signal.wiener(image, (2, 4), 0.5), want.wiener(image, (2, 4), 0.5))
        close(signal.medfilt2d(image, (3, 5)), want.medfilt2d(image, (3, 5)))
        slope = fxflow.grad(lambda n: signal.wiener(image, 3, n).sum())(0.5)
        assert np.isfinite(slope) and slope != 0


def test_envelopes_agree_with_scipy() -> None:
    x = np.random.default_rng(1).normal(size=(2, 60))
    bands: list[Any] = [(1, None), (None, None), (3, 9), (-5, 8), (-9, -2)]
    with fxflow.config.override(x64=True):
        for signal_, n, band in itertools.product((x, x * (1 + 1j)), (59, 60), bands):
            for count, rest in ((None, "lowpass"), (40, "all"), (91, None)):
                s: dict[str, Any] = {
                    "n_out": count,
                    "residual": rest,
                    "squared": n == 59,
                }
                got = signal.envelope(signal_[:, :n], band, **s)
                close(got, want.envelope(signal_[:, :n], band, **s))


def test_bad_neighbourhoods_and_bands_are_refused() -> None:
    with pytest.raises(ArgumentError, match="odd"):
        signal.medfilt(X, 4)
    with pytest.raises(ArgumentError, match="one odd number or 3"):
        signal.medfilt(X, (3, 3))
    with pytest.raises(ShapeError, match="two axes"):
        signal.medfilt2d(X)
    with pytest.raises(ArgumentError, match="bp_in must be"):
        signal.envelope(X, (5, 2))
    with pytest.raises(ArgumentError, match="residual"):
        signal.envelope(X, residual="some")


def test_images_and_ranks_agree_with_scipy() -> None:
    rng = np.random.default_rng(22)
    x = rng.normal(size=(5, 6, 3))
    with fxflow.config.override(x64=True):
        for N, axes in ((None, (0, 1)), (7, (-2, -1)), ((4, 5), (2, 0))):
            got = signal.hilbert2(x, N, axes)
            np.testing.assert_allclose(got, want.hilbert2(x, N, axes), 1e-9, 1e-9)
        domain = rng.integers(0, 2, (3, 1, 3))
        domain[1, 0, 1] = 1
        for rank in (0, int(domain.sum()) - 1):
            got = signal.order_filter(x, domain, rank)
            np.testing.assert_allclose(got, want.order_filter(x, domain, rank))
    with pytest.raises(ArgumentError, match="odd lengths"):
        signal.order_filter(x, np.ones((2, 1, 1)), 0)
    with pytest.raises(ArgumentError, match="two different axes"):
        signal.hilbert2(x, axes=(1, 1))
    with pytest.raises(ArgumentError, match="pair"):
        signal.hilbert2(x, (1, 2, 3))
