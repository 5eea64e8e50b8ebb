"""Spherical harmonics beside SciPy's."""

import numpy as np
import pytest
import scipy.special as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError
from fxflow.scipy.special import sph_harm_y

RNG = np.random.default_rng(0)
N, M = RNG.integers(0, 12, 200), RNG.integers(-13, 13, 200)
THETA, PHI = RNG.uniform(0, 3.2, 200), RNG.uniform(-4, 8, 200)


def test_values_and_derivatives() -> None:
    with fxflow.config.override(x64=True):
        for order in (1, 2):
            got = sph_harm_y(N, M, THETA, PHI, diff_n=order)
            expected = want.sph_harm_y(N, M, THETA, PHI, diff_n=order)
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-10, 1e-10)
        plain = fxflow.jit(lambda n, a: sph_harm_y(n, M, a, PHI, n_max=15))(N, THETA)
        expected = want.sph_harm_y(N, M, THETA, PHI)
        np.testing.assert_allclose(plain, expected, 1e-11, 1e-12)
        high = sph_harm_y(200, np.array([0, 1, 100, -200]), 1.2, 0.3)
        expected = want.sph_harm_y(200, [0, 1, 100, -200], 1.2, 0.3)
        np.testing.assert_allclose(high, expected, 1e-10, 1e-12)
        # At the pole, too.
        slope = fxflow.grad(lambda a: sph_harm_y(2, 1, a, 0.0).real)(0.0)
        np.testing.assert_allclose(slope, -np.sqrt(15 / (8 * np.pi)))
        each = fxflow.vmap(lambda a, b: sph_harm_y(3, 2, a, b))(THETA, PHI)
        expected = want.sph_harm_y(3, 2, THETA, PHI)
        np.testing.assert_allclose(each, expected, 1e-11, 1e-12)


def test_dtypes_and_mistakes() -> None:
    single = sph_harm_y(2, 1, np.float32(0.3), np.float32(0.4))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, want.sph_harm_y(2, 1, 0.3, 0.4), 1e-6)
    assert sph_harm_y(fnp.zeros(0, int), 0, fnp.zeros((2, 0)), 1.0).shape == (2, 0)
    with pytest.raises(DtypeError, match="integers"):
        sph_harm_y(2.0, 1, 0.3, 0.4)
    with pytest.raises(ArgumentError, match="diff_n"):
        sph_harm_y(2, 1, 0.3, 0.4, diff_n=3)
    with pytest.raises(ConcretizationError):
        fxflow.jit(sph_harm_y)(2, 1, 0.3, 0.4)
