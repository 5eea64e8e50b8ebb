"""Legendre functions beside SciPy's and mpmath's."""

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
N, M = RNG.integers(0, 15, 80), RNG.integers(-10, 11, 80)
X, THETA = RNG.uniform(-1, 1, 80), RNG.uniform(-1, 4, 80)
Z = X + 1j * RNG.normal(size=80)


def close(got: Any, expected: Any) -> None:
    scale = np.maximum(1, np.abs(expected))
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(got) / scale, expected / scale, 1e-9, 1e-11)


def test_polynomials() -> None:
    with fxflow.config.override(x64=True):
        close(special.legendre_p(N, X, diff_n=2), want.legendre_p(N, X, diff_n=2))
        close(
            special.legendre_p_all(6, X, diff_n=1), want.legendre_p_all(6, X, diff_n=1)
        )
        # SciPy does not take complex numbers; a negative degree is n = -4.
        close(special.legendre_p(N, Z)[0], want.assoc_legendre_p(N, 0, Z)[0])
        close(special.legendre_p(-4, X), special.legendre_p(3, X))


@pytest.mark.parametrize(
    ("cut", "norm"),
    [
        (2, False),
        pytest.param(3, True, marks=pytest.mark.slow),
        pytest.param(3, False, marks=pytest.mark.slow),
        pytest.param(2, True, marks=pytest.mark.slow),
    ],
)
def test_associated_functions(cut: int, norm: bool) -> None:
    given: dict[str, Any] = {"branch_cut": cut, "norm": norm, "diff_n": 2}
    real = X if cut == 2 else 1 + 2 * np.abs(X)
    with fxflow.config.override(x64=True):
        for z in (real, Z):
            got = special.assoc_legendre_p(N, M, z, **given)
            close(got, want.assoc_legendre_p(N, M, z, **given))
        got = special.assoc_legendre_p_all(4, 2, Z, **given)
        close(got, want.assoc_legendre_p_all(4, 2, Z, **given))
        outside = special.assoc_legendre_p(3, np.arange(3), 2.0 if cut == 2 else -2.0)
        assert np.isfinite(outside[0, 0]) and np.isnan(outside[0, 1:]).all()


def test_ends_of_the_interval() -> None:
    with fxflow.config.override(x64=True):
        got = special.assoc_legendre_p(3, np.arange(4), 1.0, diff_n=1)
        np.testing.assert_allclose(got, [[1, 0, 0, 0], [6, np.inf, -30, 0]], 1e-15)
        # SciPy 1.17 has those of `norm=False` there.
        norm = special.assoc_legendre_p(3, 0, -1.0, norm=True)
        assert float(norm[0]) == pytest.approx(-np.sqrt(3.5))


def test_spherical_functions() -> None:
    with fxflow.config.override(x64=True):
        got = special.sph_legendre_p(N, M, THETA, diff_n=2)
        close(got, want.sph_legendre_p(N, M, THETA, diff_n=2))
        got = special.sph_legendre_p_all(4, 5, THETA, diff_n=2)
        close(got, want.sph_legendre_p_all(4, 5, THETA, diff_n=2))
        harmonics = special.sph_harm_y_all(4, 3, THETA, X, diff_n=2)
        expected = want.sph_harm_y_all(4, 3, THETA, X, diff_n=2)
        for one, other in zip(harmonics, expected, strict=True):
            close(one, other)
        close(special.sph_harm_y_all(2, 1, THETA, X), expected[0][:3, [0, 1, -1]])


def test_real_degrees() -> None:
    m, v = RNG.integers(-4, 5, 40), RNG.uniform(-3, 12, 40)
    x = X[:40]
    with fxflow.config.override(x64=True):
        exact = [
            float(mpmath.legenp(a if a > -0.5 else -a - 1, int(b), c).real)
            for a, b, c in zip(v, m, x, strict=True)
        ]
        np.testing.assert_allclose(special.lpmv(m, v, x), exact, 1e-11)
        got = special.lpmv(np.abs(M), N, X)
        np.testing.assert_allclose(got, want.lpmv(np.abs(M), N, X), 1e-9)
        # Where SciPy returns nan.
        below = float(mpmath.legenp(2, -3, 0.3).real)
        assert float(special.lpmv(-3, 2, 0.3)) == pytest.approx(below)
        assert np.isnan(special.lpmv(1, 2.5, 1.5)) and np.isnan(special.lpmv(0.5, 2, 0))


@pytest.mark.slow
def test_derivatives_by_the_degree() -> None:
    with fxflow.config.override(x64=True):
        for degree in (2.5, 3.0):
            got = fxflow.grad(special.lpmv, 1)(1, degree, 0.3)
            rate = mpmath.diff(lambda v: mpmath.legenp(v, 1, 0.3), degree)
            assert float(got) == pytest.approx(float(rate), rel=1e-9)


def test_derivatives_and_batches() -> None:
    with fxflow.config.override(x64=True):
        _, slope, bend = special.assoc_legendre_p(5, 3, 0.3, diff_n=2)
        of = lambda z: special.assoc_legendre_p(5, 3, z)[0]
        in_all = lambda z: special.assoc_legendre_p_all(5, 3, z)[0, 5, 3]
        for function in (of, in_all):
            first = fxflow.grad(function)
            assert float(first(0.3)) == pytest.approx(float(slope))
            assert float(fxflow.grad(first)(0.3)) == pytest.approx(float(bend))
        rows = fxflow.vmap(special.legendre_p)(fnp.asarray(N), fnp.asarray(X))
        np.testing.assert_allclose(rows[:, 0], special.legendre_p(N, X)[0])
    narrow = special.legendre_p(np.int32([2, 3]), np.float32(0.5))
    assert narrow.dtype == np.float32 and narrow.shape == (1, 2)
    assert special.legendre_p_all(3, np.zeros((0, 2))).shape == (1, 4, 0, 2)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(DtypeError, match="n must be integers"):
        special.legendre_p(2.5, 0.5)
    with pytest.raises(ArgumentError, match="diff_n must be from 0 to 2"):
        special.legendre_p(2, 0.5, diff_n=3)
    with pytest.raises(ArgumentError, match="branch_cut must be 2 or 3"):
        special.assoc_legendre_p(2, 1, 0.5, branch_cut=4)
    with pytest.raises(ArgumentError, match="n must be from 0"):
        special.legendre_p_all(-1, 0.5)
