"""Inverses of the incomplete gamma functions against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
A = 10 ** RNG.uniform(-1.5, 5, 120)
Y = np.concatenate([RNG.uniform(0, 1, 70), 10 ** RNG.uniform(-60, 0, 50)])


@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv", "chdtri"])
def test_agree_with_scipy_and_undo_the_function(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    back = scipy.special.gammainc if name == "gammaincinv" else scipy.special.gammaincc
    with fxflow.config.override(x64=True):
        x = np.asarray(function(A, Y))
        want = theirs(A, Y)
        usual = want > 1e-290
        np.testing.assert_allclose(x[usual], want[usual], 1e-9)
        half = 0.5 if name == "chdtri" else 1
        again = back(A * half, x * half)
        # As far as the rounding of x moves the value.
        density = np.exp(
            A * half * np.log(np.maximum(x * half, 1e-300))
            - x * half
            - scipy.special.gammaln(A * half)
        )
        moves = 1e-14 * (1 + density / Y) + 1e-13 * np.sqrt(A)
        assert (abs(again / Y - 1)[usual] < (20 * moves + 1e-11)[usual]).all()
        edges = np.array([0.0, 1.0, -0.1, 1.1, np.nan])
        np.testing.assert_array_equal(function(2.0, edges), theirs(2.0, edges))
    got = function(A.astype(np.float32)[:70], Y.astype(np.float32)[:70])
    assert got.dtype == np.float32
    wide = theirs(
        A.astype(np.float32)[:70].astype(float), Y.astype(np.float32)[:70].astype(float)
    )
    np.testing.assert_allclose(got, wide, 1e-6, 1e-37)


@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv"])
def test_derivatives(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    h = 1e-5
    with fxflow.config.override(x64=True):
        for a, y in ((0.4, 0.7), (2.5, 0.3), (30.0, 0.9)):
            by_a, by_y = fxflow.grad(function, (0, 1))(a, y)
            want = (theirs(a + h, y) - theirs(a - h, y)) / (2 * h)
            assert float(by_a) == pytest.approx(want, rel=1e-7)
            want = (theirs(a, y + h) - theirs(a, y - h)) / (2 * h)
            assert float(by_y) == pytest.approx(want, rel=1e-6)
        twice = fxflow.grad(fxflow.grad(function, 1), 1)(2.5, 0.6)
        h = 1e-4
        want = theirs(2.5, 0.6 + h) - 2 * theirs(2.5, 0.6) + theirs(2.5, 0.6 - h)
        assert float(twice) == pytest.approx(want / h**2, rel=1e-4, abs=1e-7)


def test_chi_square() -> None:
    v, x = np.array([0.5, 1, 2, 10.0])[:, None], np.array([-1.0, 0.0, 0.3, 4.0, 50.0])
    with fxflow.config.override(x64=True):
        got, want = special.chdtr(v, x), scipy.special.chdtr(v, x)
        np.testing.assert_allclose(got, want, 1e-13)
        got, want = special.chdtrc(v, x), scipy.special.chdtrc(v, x)
        np.testing.assert_allclose(got, want, 1e-13)
        slope = fxflow.grad(special.chdtr, 1)(2.0, 3.0)
        assert float(slope) == pytest.approx(np.exp(-1.5) / 2)


def test_shapes() -> None:
    assert special.gammaincinv(np.ones((2, 1)), np.full(3, 0.5)).shape == (2, 3)
    assert special.gammainccinv(np.zeros((0, 2)), 0.5).shape == (0, 2)
    with pytest.raises(DtypeError, match="real"):
        special.gammaincinv(1j, 0.5)


def test_ends_of_zero_and_infinite_parameters() -> None:
    a, y = np.array([0, 0, np.inf, np.inf, 0.0]), np.array([0, 1, 0, 1, 0.5])
    want = scipy.special.gammaincinv(a, y)
    np.testing.assert_array_equal(special.gammaincinv(a, y), want)
    want = scipy.special.gammainccinv(a, y)
    np.testing.assert_array_equal(special.gammainccinv(a, y), want)
