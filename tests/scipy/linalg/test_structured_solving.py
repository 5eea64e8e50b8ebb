"""Banded, Toeplitz and circulant systems against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(27)
BANDS = [(1, 1, 6), (2, 1, 5), (0, 2, 5), (2, 0, 5), (0, 0, 3)]


@pytest.mark.parametrize(("low", "up", "n"), BANDS)
def test_banded_systems_and_their_slopes(low: int, up: int, n: int) -> None:
    ab, b = RNG.normal(size=(low + up + 1, n)), RNG.normal(size=(n, 2))
    ab[up] += 2
    theirs = lambda ab: scipy.linalg.solve_banded((low, up), ab, b)
    with fxflow.config.override(x64=True):
        got = linalg.solve_banded((low, up), ab, b)
        np.testing.assert_allclose(got, theirs(ab), 1e-9)
        total = lambda ab: fnp.sum(linalg.solve_banded((low, up), ab, b) ** 2)
        slope = np.asarray(fxflow.grad(total)(ab))
        move = RNG.normal(size=ab.shape)
        h = 1e-6
        ends = [np.sum(theirs(ab + s * move) ** 2) for s in (h, -h)]
        want = (ends[0] - ends[1]) / (2 * h)
        assert np.sum(slope * move) == pytest.approx(want, rel=1e-5)


def test_a_pivot_of_zero_is_exchanged() -> None:
    ab = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    got = linalg.solve_banded((1, 1), ab, np.array([1.0, 2.0, 3.0]))
    want = scipy.linalg.solve_banded((1, 1), ab, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(got, want, 1e-6)


def test_short_and_batched_banded_systems() -> None:
    got = linalg.solve_banded((2, 1), np.array([[9.0], [2.0], [9], [9]]), np.ones(1))
    np.testing.assert_allclose(got, [0.5])
    ab = np.stack([np.ones((1, 3)), 2 * np.ones((1, 3))])
    got = linalg.solve_banded((0, 0), ab, np.ones((2, 3, 1)))
    np.testing.assert_allclose(got[:, 0, 0], [1, 0.5])
    assert linalg.solve_banded((0, 0), np.ones((1, 0)), np.ones(0)).shape == (0,)
    with pytest.raises(ShapeError, match="3 rows"):
        linalg.solve_banded((1, 1), np.ones((2, 3)), np.ones(3))
    with pytest.raises(ArgumentError, match="negative"):
        linalg.solve_banded((-1, 1), np.ones((1, 3)), np.ones(3))


@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_bands(lower: bool) -> None:
    ab = np.array([[0, 1j, 1, 2], [4, 4, 5, 6]])
    ab = np.array([[4, 4, 5, 6], [-1j, 1, 2, 0]]) if lower else ab
    b = np.arange(4.0)
    got = linalg.solveh_banded(ab, b, lower=lower)
    want = scipy.linalg.solveh_banded(ab, b, lower=lower)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def test_toeplitz_systems_and_products() -> None:
    c, r, x = RNG.normal(size=5), RNG.normal(size=5), RNG.normal(size=(5, 2))
    c[0] = 5
    z = c + 1j * r * (np.arange(5) > 0)
    with fxflow.config.override(x64=True):
        for given in (c, (c, r), z):
            product = linalg.matmul_toeplitz(given, x)
            np.testing.assert_allclose(
                product, scipy.linalg.matmul_toeplitz(given, x), 1e-10
            )
            np.testing.assert_allclose(linalg.solve_toeplitz(given, product), x, 1e-9)
        wide = linalg.matmul_toeplitz((c[:3], r), x[:, 0])
        np.testing.assert_allclose(
            wide, scipy.linalg.matmul_toeplitz((c[:3], r), x[:, 0]), 1e-10
        )
        total = lambda c: fnp.sum(linalg.solve_toeplitz((c, r), x) ** 2)
        slope = np.asarray(fxflow.grad(total)(c))
        h = 1e-6 * np.arange(1, 6)
        ends = [
            np.sum(scipy.linalg.solve_toeplitz((c + s * h, r), x) ** 2) for s in (1, -1)
        ]
        assert 2 * np.sum(slope * h) == pytest.approx(ends[0] - ends[1], rel=1e-5)


def test_circulant_systems() -> None:
    c, b = np.array([3.0, 1.0, 0.5]), RNG.normal(size=(2, 3))
    got = linalg.solve_circulant(c, b, baxis=1, outaxis=1)
    want = scipy.linalg.solve_circulant(c, b, baxis=1, outaxis=1)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    ones = np.ones(3)
    np.testing.assert_allclose(
        linalg.solve_circulant(ones, 3 * ones, singular="lstsq"), ones, 1e-6
    )
    with pytest.raises(ArgumentError, match="singular"):
        linalg.solve_circulant(ones, ones, singular="ignore")


@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_factors_of_bands(width: int, lower: bool) -> None:
    rng = np.random.default_rng(width)
    band = rng.normal(size=(width + 1, 6)) + 1j * rng.normal(size=(width + 1, 6))
    at = 0 if lower else width
    band[at] = 10 + np.abs(band[at])
    right = rng.normal(size=(6, 2))
    want = scipy.linalg.cholesky_banded(band, lower=lower)
    with fxflow.config.override(x64=True):
        got = linalg.cholesky_banded(band, lower=lower)
        x = linalg.cho_solve_banded((got, lower), right)
        for k in range(width + 1):
            # Corners outside of the matrix are not used.
            row = slice(0, 6 - k) if lower else slice(k, 6)
            d = k if lower else width - k
            np.testing.assert_allclose(got[d, row], want[d, row], 1e-12)
        np.testing.assert_allclose(
            x, scipy.linalg.cho_solve_banded((want, lower), right), 1e-10
        )
        stacked = fxflow.vmap(lambda a: linalg.cholesky_banded(a, lower=lower))
        np.testing.assert_allclose(stacked(np.stack([band, band]))[1], got, 1e-14)


def test_derivative_of_the_factor_of_bands() -> None:
    """The determinant is the product of squares of the factor's diagonal."""
    band = np.array([[4.0, 5.0, 6.0], [1.0, 2.0, 0.0]])
    with fxflow.config.override(x64=True):
        total = lambda a: 2 * fnp.sum(fnp.log(linalg.cholesky_banded(a, lower=True)[0]))
        matrix = np.diag(band[0]) + np.diag(band[1, :2], 1) + np.diag(band[1, :2], -1)
        inverse = np.linalg.inv(matrix)
        want = np.stack([np.diag(inverse), [*(2 * np.diag(inverse, 1)), 0.0]])
        np.testing.assert_allclose(fxflow.grad(total)(band), want, 1e-10, 1e-14)
        h = fxflow.hessian(total)(band)
        assert np.isfinite(np.asarray(h)).all()
    bad = linalg.cholesky_banded(np.array([[1.0, -1.0]]), lower=True)
    assert np.isnan(np.asarray(bad)[0, 1])
