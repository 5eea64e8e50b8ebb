"""The logarithm of the gamma function beside SciPy's."""

from typing import Any

import numpy as np
import scipy.special as want

import fxflow
from fxflow.scipy.special import loggamma

RNG = np.random.default_rng(0)
GRID = RNG.uniform(-12, 12, 300) + 1j * RNG.uniform(-12, 12, 300)
CUT = [complex(x, s) for x in (-2.5, -0.5, -7.25, 0.49) for s in (0.0, -0.0, 1e-9)]
Z = np.concatenate([GRID, 1 + GRID / 30, 2 + GRID / 30, GRID * 1e4, CUT])


def test_complex() -> None:
    expected = want.loggamma(Z)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(loggamma(Z), expected, 1e-12)
        inside = GRID[:40]
        slope = fxflow.vmap(fxflow.grad(loggamma, holomorphic=True))(inside)
        np.testing.assert_allclose(slope, want.psi(inside), 1e-9)
    single = Z.astype(np.complex64)
    close: Any = np.abs(loggamma(single) - want.loggamma(single.astype(complex)))
    assert (close <= 4e-6 * (1 + np.abs(expected))).all()
    assert np.isnan(loggamma(np.array([0, -1, -7, np.nan, np.inf * 1j]))).all()


def test_real() -> None:
    x = np.array([1e-30, 0.3, 0.9, 1, 1.01, 1.7, 2, 2.1, 3, 50, 1e30])
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(loggamma(x), want.loggamma(x), 1e-13)
        slope = fxflow.vmap(fxflow.grad(loggamma))(x)
        np.testing.assert_allclose(slope, want.psi(x), 1e-10)
        bend = fxflow.vmap(fxflow.grad(fxflow.grad(loggamma)))(x[1:-1])
        np.testing.assert_allclose(bend, want.polygamma(1, x[1:-1]), 1e-9)
        edges = np.array([-np.inf, -1.5, -1.0, -0.0, 0.0, np.inf, np.nan])
        np.testing.assert_array_equal(loggamma(edges), want.loggamma(edges))
    single = loggamma(x.astype(np.float32))
    np.testing.assert_allclose(single, want.loggamma(x.astype(np.float32)), 1e-5)
    assert loggamma(3).dtype == np.float32
    assert loggamma(np.float16(3)).dtype == np.float16
