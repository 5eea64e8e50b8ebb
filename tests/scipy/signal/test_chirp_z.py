"""Spectra along spirals beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 31))


def test_spirals_agree_with_scipy() -> None:
    turn = np.exp(-0.1j)
    with fxflow.config.override(x64=True):
        for x in (X, X * 1j):
            for m in (None, 20, 50):
                for w, a in ((None, 1), (turn, 1), (0.99 * turn, 1.01 + 0.1j)):
                    got, expected = signal.czt(x, m, w, a), want.czt(x, m, w, a)
                    np.testing.assert_allclose(got, expected, 1e-7, 1e-7)
                for fn, end in ((0.5, False), ((0.2, 0.4), True)):
                    s: dict[str, Any] = {"endpoint": end, "fs": 3}
                    expected = want.zoom_fft(x, fn, m, **s)
                    np.testing.assert_allclose(
                        signal.zoom_fft(x, fn, m, **s), expected, 1e-8, 1e-8
                    )
        for args in ((9,), (9, 0.9 + 0.1j, 2)):
            np.testing.assert_allclose(
                signal.czt_points(*args), want.czt_points(*args), 1e-12
            )


def test_transforms_of_spirals() -> None:
    run = lambda x: abs(signal.zoom_fft(x, (0.2, 0.4), 7)).sum()
    with fxflow.config.override(x64=True):
        way = RNG.normal(size=31)
        rise = float(run(X[0] + 1e-6 * way) - run(X[0] - 1e-6 * way)) / 2e-6
        slope = fxflow.jit(fxflow.grad(run))(X[0])
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-6)
        got = fxflow.vmap(lambda x: signal.czt(x, 9))(X)
        np.testing.assert_allclose(got, want.czt(X, 9), 1e-8, 1e-8)


def test_bad_spirals_are_refused() -> None:
    with pytest.raises(ArgumentError, match="m must be at least 1"):
        signal.czt(X, 0)
    with pytest.raises(ShapeError, match="samples"):
        signal.czt(X[:, :0])
    with pytest.raises(ArgumentError, match="number or a pair"):
        signal.zoom_fft(X, (1, 2, 3))


def test_prepared_transforms_agree_with_scipy() -> None:
    x = np.random.default_rng(24).normal(size=(3, 8))
    with fxflow.config.override(x64=True):
        for args in ((8,), (8, 5), (8, 6, 0.9 * np.exp(0.1j), 1.1)):
            ours, theirs = signal.CZT(*args), want.CZT(*args)
            np.testing.assert_allclose(ours(x), theirs(x), 1e-9, 1e-9)
            np.testing.assert_allclose(ours.points(), theirs.points(), 1e-9, 1e-9)
        for args, options in (
            ((8, 0.5), {}),
            ((8, (0.2, 0.7), 5), {"fs": 3.0, "endpoint": True}),
        ):
            zoom, expected = (
                signal.ZoomFFT(*args, **options),
                want.ZoomFFT(*args, **options),
            )
            np.testing.assert_allclose(zoom(x), expected(x), 1e-9, 1e-9)
            np.testing.assert_allclose(zoom.points(), expected.points(), 1e-9, 1e-9)
            got = fxflow.jit(lambda x, zoom=zoom: zoom(x, axis=0))(x.T)
            np.testing.assert_allclose(got, expected(x.T, axis=0), 1e-9, 1e-9)
    with pytest.raises(ShapeError, match="8 long"):
        signal.CZT(8)(np.ones(7))
