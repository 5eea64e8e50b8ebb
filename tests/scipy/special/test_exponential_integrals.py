"""Exponential integrals against SciPy."""

import numpy as np
import pytest
import scipy.special as want

import fxflow
from fxflow.scipy import special

X = np.array([0, 1e-5, 0.1, 0.9, 1, 1.5, 2, 3, 8, 17, 19, 39, 41, 300, np.inf, np.nan])


@pytest.mark.parametrize("name", ["exp1", "expi"])
def test_agrees_with_scipy(name: str) -> None:
    ours, theirs = getattr(special, name), getattr(want, name)
    both = np.concatenate([X, -X])
    with np.errstate(all="ignore"):
        expected = theirs(both)
        with fxflow.config.override(x64=True):
            np.testing.assert_allclose(ours(both), expected, 1e-11)
            slope = fxflow.jit(fxflow.grad(lambda x: ours(x).sum()))(X[1:-2])
        sign = -1 if name == "exp1" else 1
        np.testing.assert_allclose(slope, sign * np.exp(sign * X[1:-2]) / X[1:-2], 1e-9)
        small = X[X < 50].astype(np.float32)
        np.testing.assert_allclose(ours(small), theirs(small), 2e-5)


def test_expn() -> None:
    n, x = np.meshgrid([0, 1, 2, 3, 5, 20, 50], X)
    with np.errstate(all="ignore"):
        expected = want.expn(n, x)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(special.expn(n, x), expected, 1e-11)
        slope = fxflow.grad(lambda x: special.expn(3, x))(0.7)
        assert float(slope) == pytest.approx(-want.expn(2, 0.7))
        slope = fxflow.grad(lambda x: special.expn(0, x))(0.7)
        assert float(slope) == pytest.approx(-np.exp(-0.7) * (1 + 0.7) / 0.49)
    assert np.isnan(special.expn(1.5, 1.0)) and np.isnan(special.expn(1, -1.0))


def test_shichi() -> None:
    rng = np.random.default_rng(27)
    x = np.concatenate([rng.uniform(-40, 40, 40), 10 ** rng.uniform(-5, 2.8, 20)])
    with fxflow.config.override(x64=True):
        shi, chi = special.shichi(x)
        expected = want.shichi(x)
        np.testing.assert_allclose(shi, expected[0], 2e-15)
        np.testing.assert_allclose(chi, expected[1], 2e-15, 2e-15)
        edges = np.array([-np.inf, 0, np.inf, np.nan])
        np.testing.assert_array_equal(special.shichi(edges), want.shichi(edges))
        slope = fxflow.grad(lambda x: special.shichi(x)[0] + special.shichi(x)[1])
        np.testing.assert_allclose(slope(0.7), np.exp(0.7) / 0.7, 1e-15)
        assert float(fxflow.grad(lambda x: special.shichi(x)[0])(0.0)) == 1
