"""Signals at other rates beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 31))
Z = X + 1j * RNG.normal(size=X.shape)


def close(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, 1e-8, 1e-9)


@pytest.mark.parametrize("domain", ["time", "freq"])
def test_resampled_signals_agree_with_scipy(domain: str) -> None:
    with fxflow.config.override(x64=True):
        for x, n, num in itertools.product((X, Z), (30, 31), (7, 8, 30, 31, 32, 61)):
            for window in (None, ("kaiser", 3.0)):
                s: dict[str, Any] = {"window": window, "domain": domain, "axis": 1}
                close(
                    signal.resample(x[:, :n], num, **s),
                    want.resample(x[:, :n], num, **s),
                )
        got = signal.resample(X, 8, np.arange(3.0), window=lambda f: 1 - abs(f))
        expected = want.resample(X, 8, np.arange(3.0), window=lambda f: 1 - abs(f))
        close(got[0], expected[0])
        close(got[1], expected[1])


MODES = ["constant", "symmetric", "reflect", "wrap", "edge"]


@pytest.mark.parametrize(
    "mode",
    ["constant", "wrap", "median"]
    + [
        pytest.param(m, marks=pytest.mark.slow)
        for m in ("symmetric", "reflect", "edge", "mean", "minimum", "maximum")
    ],
)
def test_ratios_agree_with_scipy(mode: str) -> None:
    with fxflow.config.override(x64=True):
        for up, down in ((1, 2), (3, 2), (2, 3), (5, 1), (4, 6)):
            got = signal.resample_poly(X, up, down, 1, padtype=mode)
            close(got, want.resample_poly(X, up, down, 1, padtype=mode))
            if mode in MODES:
                h = RNG.normal(size=7)
                got = signal.upfirdn(h, Z, up, down, 1, mode)
                close(got, want.upfirdn(h, Z, up, down, 1, mode))
        own = np.array([1.0, 2.0, 1.0, 0.5])
        close(
            signal.resample_poly(X, 2, 3, 1, own), want.resample_poly(X, 2, 3, 1, own)
        )
        close(
            signal.upfirdn(own, X, 3, 2, cval=1.5), want.upfirdn(own, X, 3, 2, cval=1.5)
        )


@pytest.mark.slow
def test_decimated_signals_agree_with_scipy() -> None:
    x = RNG.normal(size=(2, 200))
    with fxflow.config.override(x64=True):
        for kind, still in itertools.product(("iir", "fir"), (True, False)):
            s: dict[str, Any] = {"ftype": kind, "zero_phase": still}
            close(signal.decimate(x, 3, **s), want.decimate(x, 3, **s))
            close(
                signal.decimate(x.T, 4, 5, axis=0, **s),
                want.decimate(x.T, 4, 5, axis=0, **s),
            )


def test_resampling_is_linear_in_the_signal() -> None:
    with fxflow.config.override(x64=True):
        for run in (
            lambda x: signal.resample(x, 12),
            lambda x: signal.resample_poly(x, 3, 2, padtype="reflect"),
            lambda x: signal.decimate(x, 2, 3),
        ):
            x = X[0]
            rows = fxflow.jit(fxflow.jacrev(run))(x)
            close(rows @ x, run(x))
            close(fxflow.vmap(run)(X)[2], run(X[2]))


def test_bad_rates_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.resample(X, 0), "num must be at least 1"),
        (ArgumentError, lambda: signal.resample(X, 9, domain="space"), "domain"),
        (ShapeError, lambda: signal.resample(X, 9, window=np.ones(2)), "3 values"),
        (ArgumentError, lambda: signal.resample_poly(X, 0, 1), "up must be"),
        (ArgumentError, lambda: signal.resample_poly(X, 2, 1, padtype="no"), "padtype"),
        (
            ArgumentError,
            lambda: signal.resample_poly(X, 2, 1, 0, "hann", "mean", 1),
            "cval",
        ),
        (ArgumentError, lambda: signal.decimate(X, 2, ftype="no"), "ftype"),
        (ArgumentError, lambda: signal.upfirdn(np.ones(2), X, mode="no"), "mode"),
        (ShapeError, lambda: signal.upfirdn(X, X), "vector of coefficients"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    "taps, up, down", [(1, 3, 2), (9, 1, 1), (40, 7, 3), (700, 1, 4)]
)
def test_filters_of_any_reach_agree_with_scipy(taps: int, up: int, down: int) -> None:
    h = RNG.normal(size=taps)
    with fxflow.config.override(x64=True):
        for n in (1, 33, 600):
            x = RNG.normal(size=(2, n))
            close(signal.upfirdn(h, x, up, down), want.upfirdn(h, x, up, down))
            close(signal.lfilter(h, [1.0], x), want.lfilter(h, [1.0], x))
