"""Functions of degrees and Dirichlet's kernel against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
X = np.concatenate([RNG.uniform(-1000, 1000, 30), [0.0, 30, 45, 60, 90, 180, 270, -90]])
SLOPES = {"sindg": np.cos, "cosdg": lambda x: -np.sin(x)}


@pytest.mark.parametrize("name", ["sindg", "cosdg", "tandg", "cotdg"])
def test_degrees(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(function(X), theirs(X), 1e-13, 1e-15)
        if name in SLOPES:
            got = fxflow.vmap(fxflow.grad(function))(X)
            want = SLOPES[name](np.radians(X)) * np.pi / 180
            np.testing.assert_allclose(got, want, 1e-12, 1e-15)
        else:
            slope = float(fxflow.grad(function)(30.0)) * 180 / np.pi
            want = {"tandg": 4 / 3, "cotdg": -4}[name]
            assert slope == pytest.approx(want, rel=1e-13)


def test_radian() -> None:
    d, m, s = RNG.uniform(-90, 90, (3, 9))
    with fxflow.config.override(x64=True):
        want = scipy.special.radian(d, m, s)
        np.testing.assert_allclose(special.radian(d, m, s), want, 1e-14)


def test_dirichlet_kernel() -> None:
    x = np.concatenate([RNG.uniform(-20, 20, 30), [0, 2 * np.pi, -2 * np.pi, 1e-9]])
    n = np.concatenate([RNG.integers(1, 9, 30), [4, 4, 5, 6]]).astype(float)
    with fxflow.config.override(x64=True):
        want = scipy.special.diric(x, n)
        np.testing.assert_allclose(special.diric(x, n), want, 1e-12, 1e-15)
        assert np.isnan(special.diric(1.0, np.array([0.0, -1, 2.5]))).all()
        # Near its peak the kernel is 1 - (n² - 1) x²/24 + ….
        bend = fxflow.grad(fxflow.grad(special.diric))(0.0, 4.0)
        assert float(bend) == pytest.approx(-15 / 12)
