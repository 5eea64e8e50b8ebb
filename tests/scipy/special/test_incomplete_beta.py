"""The incomplete beta function, its inverses and Student's t against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
A, B = 10 ** RNG.uniform(-1, 4, (2, 60))
X = RNG.uniform(0, 1, 60)
Y = np.concatenate([RNG.uniform(0, 1, 30), 10 ** RNG.uniform(-100, 0, 30)])
EDGES = np.array([0.0, 1.0, -0.1, 1.1, np.nan])


@pytest.mark.parametrize("name", ["betainc", "betaincc"])
def test_tails_agree_with_scipy(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        want = theirs(A, B, X)
        moves = 1e-13 * (1 + abs(np.log(np.maximum(want, 1e-300))) + np.sqrt(A + B))
        usual = want > 1e-290
        got = np.asarray(function(A, B, X))[usual]
        assert (abs(got / want[usual] - 1) < 20 * moves[usual]).all()
        np.testing.assert_array_equal(function(2.0, 3.0, EDGES), theirs(2, 3, EDGES))
    small = function(np.float32(2), np.float32(3), np.float32(1e-20))
    assert small.dtype == np.float32
    assert float(small) == pytest.approx(theirs(2, 3, 1e-20), rel=1e-5)


@pytest.mark.parametrize("name", ["betaincinv", "betainccinv"])
def test_inverses_undo_the_function(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        x, want = np.asarray(function(A, B, Y)), theirs(A, B, Y)
        inner = want > 1e-290
        off = abs(x[inner] / want[inner] - 1)
        # A small parameter amplifies the rounding of the probability.
        assert (off <= 1e-12 + 1e-14 / A[inner]).all(), off
        np.testing.assert_array_equal(function(2.0, 3.0, EDGES), theirs(2, 3, EDGES))
        assert np.isnan(function(-1.0, 3.0, 0.5))
        assert np.isnan(function(1.0, np.inf, 0.5))


def test_t_agrees_with_scipy_and_mpmath() -> None:
    df, t = 10 ** RNG.uniform(-1, 6, 60), RNG.normal(size=60) * 10
    with fxflow.config.override(x64=True):
        got, want = np.asarray(special.stdtr(df, t)), scipy.special.stdtr(df, t)
        np.testing.assert_allclose(got, want, 1e-11)
        far = special.stdtr(np.array([2.0, 3.0, 0.5]), np.array([-1e8, -1e100, -1e200]))
        # By mpmath.
        exact = [
            4.9999999999999996e-17,
            1.102657790843585e-300,
            3.2070097541422291e-101,
        ]
        np.testing.assert_allclose(far, exact, 1e-7)
        p = special.stdtrit(df, got)
        middle = (abs(got - 0.5) > 1e-3) & (got < 1 - 1e-6)
        np.testing.assert_allclose(np.asarray(p)[middle], t[middle], 1e-9)
        ends = np.array([np.inf, 3.0, 3.0, -1.0, 2.0])
        at = np.array([1.0, np.inf, -np.inf, 1.0, np.nan])
        np.testing.assert_allclose(
            special.stdtr(ends, at), [0.8413447460685429, 1, 0, np.nan, np.nan]
        )
        probabilities = np.array([0.0, 1.0, 0.5, 1.5, np.nan])
        want = [-np.inf, np.inf, 0, np.nan, np.nan]
        np.testing.assert_array_equal(special.stdtrit(3.0, probabilities), want)
        normal = special.stdtrit(np.inf, 0.975)
        assert float(normal) == pytest.approx(1.959963984540054)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("betainc", (2.5, 3.5, 0.3)),
        ("betaincc", (0.5, 30.0, 0.02)),
        ("betaincinv", (2.5, 3.5, 0.3)),
        ("betainccinv", (0.5, 3.5, 0.2)),
        ("stdtr", (3.5, 0.7)),
        ("stdtrit", (3.5, 0.7)),
    ],
)
@pytest.mark.slow
def test_derivatives_by_all_arguments(name: str, args: tuple[float, ...]) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(function, tuple(range(len(args)))))(*args)
        for i, slope in enumerate(slopes):
            h = 1e-5 * args[i]
            above, below = (
                theirs(*args[:i], args[i] + s, *args[i + 1 :]) for s in (h, -h)
            )
            assert float(slope) == pytest.approx((above - below) / (2 * h), rel=1e-6)


def test_derivatives_at_the_ends() -> None:
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(special.betainc, 2)
        assert float(slope(1.0, 2.0, 0.0)) == pytest.approx(2)
        slope = fxflow.grad(special.betaincinv, 2)
        assert float(slope(1.0, 2.0, 0.0)) == pytest.approx(0.5)
        assert float(slope(2.0, 2.0, 0.0)) == np.inf
        # The density in the middle.
        at_0 = fxflow.grad(special.stdtr, 1)(3.0, 0.0)
        assert float(at_0) == pytest.approx(0.3675525969478613)
        again = fxflow.grad(special.stdtrit, 1)(3.0, 0.5)
        assert float(again * at_0) == pytest.approx(1)


def test_shapes() -> None:
    assert special.betaincinv(np.ones((2, 1)), 1.0, np.full(3, 0.5)).shape == (2, 3)
    assert special.stdtrit(np.ones((0, 2)), 0.5).shape == (0, 2)
    with pytest.raises(DtypeError, match="real"):
        special.betaincc(1j, 1.0, 0.5)


def test_slow_elements_cost_the_others_no_digits() -> None:
    # The first needs thousands of terms of a series, the others few.
    a, b = np.array([1276.3, 2.0, 30.0, 494.0]), np.array([4.6e-4, 3.0, 0.5, 0.08])
    x = np.array([0.99904, 0.3, 0.6, 0.99])
    df = np.array([0.02, 2971.2080455271716, 4.0])
    p = np.array([1e-200, 1.1654609887609063e-192, 0.3])
    with fxflow.config.override(x64=True):
        tails = np.asarray(special.betainc(a, b, x))
        quantiles = np.asarray(special.stdtrit(df, p))
        for i in range(1, 4):
            alone = float(special.betainc(a[i], b[i], x[i]))
            assert tails[i] == pytest.approx(alone, rel=1e-15)
    # By mpmath.
    assert quantiles[1] == pytest.approx(-31.906657732786456, rel=2e-15)


def test_ends_of_large_and_infinite_parameters() -> None:
    inf, ends = np.inf, np.array([0.0, 1.0])
    with fxflow.config.override(x64=True):
        # There 1 / B(a, b) overflows.
        np.testing.assert_array_equal(special.betainc(1000.0, 1000.0, ends), ends)
        slope = fxflow.vmap(fxflow.grad(special.betainc, 2), (None, None, 0))
        np.testing.assert_array_equal(slope(1000.0, 1000.0, ends), [0, 0])
        np.testing.assert_array_equal(special.betaincinv(2.0, inf, ends), ends)
        np.testing.assert_array_equal(special.betainccinv(inf, 2.0, ends), 1 - ends)
