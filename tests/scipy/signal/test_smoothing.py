"""Local polynomials and analytic signals beside SciPy's."""

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
