"""Scaled and complex error functions against SciPy."""

import numpy as np
import pytest
import scipy.special as want

import fxflow
from fxflow.scipy import special

X = np.concatenate([np.linspace(-6, 12, 60), [0, 1e-5, 0.19, 0.21, 30, 1e5, np.inf]])
PARTS = np.array([-7, -3, -1, 0, 0.1, 0.25, 0.5, 0.76, 1, 2, 5.9, 6.3, 10, 50, 1e5])


@pytest.mark.parametrize("name", ["erfcx", "dawsn"])
def test_agrees_with_scipy(name: str) -> None:
    ours, theirs = getattr(special, name), getattr(want, name)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(ours(X), theirs(X), 1e-12, 1e-14)
        slope = fxflow.jit(fxflow.grad(lambda x: ours(x).sum()))(X[:-1])
        flat = X[:-1]
        expected = (
            2 * flat * theirs(flat) - 2 / np.sqrt(np.pi)
            if name == "erfcx"
            else 1 - 2 * flat * theirs(flat)
        )
        np.testing.assert_allclose(slope, expected, 1e-6, 1e-9)
    small = X.astype(np.float32)
    np.testing.assert_allclose(ours(small), theirs(small), 2e-5, 1e-6)
    assert np.isnan(ours(np.nan))


def test_wofz() -> None:
    z = (PARTS[:, None] + 1j * PARTS).ravel()
    with np.errstate(all="ignore"):
        expected = want.wofz(z)
    met = np.isfinite(expected)
    with fxflow.config.override(x64=True):
        got = np.asarray(special.wofz(z))
        np.testing.assert_allclose(got[met], expected[met], 1e-12)
        slope = fxflow.grad(special.wofz, holomorphic=True)(1.0 + 2.0j)
        w = want.wofz(1 + 2j)
        assert complex(slope) == pytest.approx(2j / np.sqrt(np.pi) - 2 * (1 + 2j) * w)
