"""Mathieu functions against eigenvalues of their matrices, and against SciPy."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
M = RNG.integers(1, 20, 24)
Q = np.concatenate([RNG.uniform(-30, 20, 16), [0, -0.5, 1e-9, 60, 120, 800, 1500, -40]])
X = RNG.uniform(-200, 200, 24)


def characteristic(even: bool, m: int, q: float) -> float:
    """An eigenvalue of the matrix of the recurrence (DLMF 28.4)."""
    first = m % 2 if even else 2 - m % 2
    diagonal = (2 * np.arange(80) + first) ** 2.0
    side = np.full(79, q)
    if first == 1:
        diagonal[0] += q if even else -q
    elif first == 0:
        side[0] *= np.sqrt(2)
    index = (m - first) // 2
    only = {"eigvals_only": True, "select": "i", "select_range": (index, index)}
    return float(scipy.linalg.eigh_tridiagonal(diagonal, side, **only)[0])


@pytest.mark.parametrize("even", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_characteristic_values(even: bool) -> None:
    function = special.mathieu_a if even else special.mathieu_b
    want = [characteristic(even, m, q) for m, q in zip(M.tolist(), Q, strict=True)]
    with fxflow.config.override(x64=True):
        got = function(M, Q)
        np.testing.assert_allclose(got, want, 1e-12, 1e-11)
        np.testing.assert_array_equal(function(M, 0 * Q), M**2.0)
        h = 1e-2
        first = fxflow.grad(function, 1)
        low, at, high = (characteristic(even, 3, 5 + k * h) for k in (-1, 0, 1))
        assert float(first(3, 5.0)) == pytest.approx((high - low) / (2 * h), rel=1e-4)
        second = float(fxflow.grad(first, 1)(3, 5.0))
        assert second == pytest.approx((high - 2 * at + low) / h**2, rel=1e-3)
        bad = function(np.array([0.5, -1, 1001, 2]), np.array([1, 1, 1, 2e5]))
        assert np.isnan(bad).all()
        assert np.isnan(special.mathieu_b(0, 1.0))
    narrow = function(M, Q.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, want, 1e-5)


@pytest.mark.parametrize(
    "name", ["mathieu_cem", pytest.param("mathieu_sem", marks=pytest.mark.slow)]
)
def test_functions(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        value, slope = function(M, Q, X)
        want, want_slope = theirs(M, Q, X)
        np.testing.assert_allclose(value, want, 1e-12, 1e-12)
        scale = 1 + np.sqrt(np.abs(Q)) + M
        np.testing.assert_allclose(slope / scale, want_slope / scale, 1e-12, 1e-12)
        of = lambda q, x: function(3, q, x)[0]
        h = 1e-4
        by_q, by_x = fxflow.grad(of, (0, 1))(5.0, 30.0)
        high, low = theirs(3, 5 + h, 30)[0], theirs(3, 5 - h, 30)[0]
        assert float(by_q) == pytest.approx((high - low) / (2 * h), rel=1e-6)
        radian = float(function(3, 5.0, 30.0)[1])
        assert float(by_x) == pytest.approx(radian * np.pi / 180)
        assert np.isnan(function(0.5, 1.0, 1.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mathieu_cem", "mathieu_sem"])
def test_curvature_is_the_equation(name: str) -> None:
    with fxflow.config.override(x64=True):
        of = lambda x: getattr(special, name)(4, 7.0, x)[0]
        even = name == "mathieu_cem"
        characteristic = special.mathieu_a if even else special.mathieu_b
        bend = float(fxflow.grad(fxflow.grad(of))(25.0)) * (180 / np.pi) ** 2
        factor = 14 * np.cos(np.deg2rad(50)) - float(characteristic(4, 7.0))
        assert bend == pytest.approx(factor * float(of(25.0)), rel=1e-10)
