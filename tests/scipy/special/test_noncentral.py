"""Noncentral distributions against SciPy, mpmath, and themselves inverted."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)


def _mixture(nc: float, term: object) -> float:
    """Returns Poisson's mixture of a term(j)."""
    m = mpmath.mpf(nc) / 2
    weight = lambda j: mpmath.exp(-m) * m**j / mpmath.factorial(j)
    count = int(m + 12 * mpmath.sqrt(m) + 40)
    return float(sum(weight(j) * term(j) for j in range(count)))  # type: ignore[operator]


def test_chi_square_and_f_to_their_last_digits() -> None:
    with mpmath.workdps(30), fxflow.config.override(x64=True):
        df, nc = 10 ** RNG.uniform(-1, 2, 5), 10 ** RNG.uniform(-2, 1.5, 5)
        x = (df + nc) * 10 ** RNG.uniform(-1.3, 0.4, 5)
        term = lambda df, x: (
            lambda j: mpmath.gammainc(df / 2 + j, 0, x / 2, regularized=True)
        )
        want = [_mixture(k, term(v, y)) for y, v, k in zip(x, df, nc, strict=True)]
        np.testing.assert_allclose(special.chndtr(x, df, nc), want, 1e-13)
        dfd, f = 10 ** RNG.uniform(0, 2, 5), 10 ** RNG.uniform(-1, 1, 5)
        share = lambda v, w, f: (
            lambda j: mpmath.betainc(
                v / 2 + j, w / 2, 0, v * f / (v * f + w), regularized=True
            )
        )
        rows = zip(df, dfd, nc, f, strict=True)
        want = [_mixture(k, share(v, w, y)) for v, w, k, y in rows]
        np.testing.assert_allclose(special.ncfdtr(df, dfd, nc, f), want, 1e-13)


def test_t_agrees_with_scipy() -> None:
    df, nc = 10 ** RNG.uniform(-0.5, 2, 40), RNG.uniform(-4, 4, 40)
    t = RNG.uniform(-3, 9, 40)
    with fxflow.config.override(x64=True):
        got, want = special.nctdtr(df, nc, t), scipy.special.nctdtr(df, nc, t)
        # SciPy's tails end at 1e-14.
        np.testing.assert_allclose(got, want, 1e-10, 1e-13)
        edges = special.nctdtr(3.0, 1.0, np.array([-np.inf, np.inf, np.nan]))
        np.testing.assert_array_equal(edges, [0, 1, np.nan])
        normal = scipy.special.ndtr(2.0 - 0.5)
        np.testing.assert_allclose(special.nctdtr(np.inf, 0.5, 2.0), normal, 1e-15)
        # A tail by hand: SciPy has 5 % here.
        value = float(special.nctdtr(105.0, 3.36, -4.94))
        assert value == pytest.approx(1.7794233029529657e-15, rel=1e-13)


CASES = {
    "chndtr": ((3.0, 2.0, 1.5), "chndtrix", 0),
    "ncfdtr": ((2.0, 3.0, 1.5, 1.2), "ncfdtri", 3),
    "nctdtr": ((3.0, 0.5, 1.0), "nctdtrit", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_derivatives_and_inverses(name: str) -> None:
    args, inverse, at = CASES[name]
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        value, slopes = fxflow.value_and_grad(function, tuple(range(len(args))))(*args)
        for i, slope in enumerate(slopes):
            h = 1e-5
            ends = [theirs(*args[:i], args[i] + s, *args[i + 1 :]) for s in (h, -h)]
            want = (ends[0] - ends[1]) / (2 * h)
            assert float(slope) == pytest.approx(want, rel=1e-6, abs=1e-9)
        given = [*args[:at], float(value), *args[at + 1 :]]
        if name == "chndtr":
            given = [float(value), *args[1:]]
        back, rate = fxflow.value_and_grad(getattr(special, inverse), at)(*given)
        assert float(back) == pytest.approx(args[at], rel=1e-12)
        assert float(rate) == pytest.approx(1 / float(slopes[at]), rel=1e-9)


def test_parameters_out_of_range() -> None:
    nan = np.array([-1.0, np.nan])
    assert np.isnan(special.chndtr(1.0, 2.0, nan)).all()
    assert np.isnan(special.chndtr(1.0, nan, 2.0)).all()
    np.testing.assert_array_equal(
        special.chndtr(np.array([0, -1, np.inf]), 2, 1), [0, 0, 1]
    )
    np.testing.assert_array_equal(
        special.chndtrix(np.array([0.0, 1.0, 2.0]), 2.0, 1.0), [0, np.inf, np.nan]
    )
    for name in ("chndtridf", "chndtrinc"):
        function = getattr(special, name)
        args = [3.0, 2.0, 1.0]
        p = float(special.chndtr(3.0, 2.0, 1.0))
        i = 1 if name == "chndtridf" else 2
        want, args[i] = args[i], p
        assert float(function(*args)) == pytest.approx(want, rel=1e-4)
    p = float(special.ncfdtr(2.0, 3.0, 1.5, 1.0))
    assert float(special.ncfdtrinc(2.0, 3.0, p, 1.0)) == pytest.approx(1.5, rel=1e-4)
    p = float(special.nctdtr(3.0, 0.5, 1.0))
    assert float(special.nctdtrinc(3.0, p, 1.0)) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("nc", [0.0, 1e-300, 1e-80, 1e-9])
def test_the_limit_without_noncentrality(nc: float) -> None:
    with fxflow.config.override(x64=True):
        found = special.chndtr(np.array([0.01, 3.0, 40.0]), 2.0, nc)
        want = scipy.special.chdtr(2.0, [0.01, 3.0, 40.0])
        np.testing.assert_allclose(found, want, 1e-9)
        found = special.ncfdtr(2.0, 3.0, nc, np.array([0.01, 1.5]))
        want = scipy.special.fdtr(2.0, 3.0, [0.01, 1.5])
        np.testing.assert_allclose(found, want, 1e-9)


@pytest.mark.slow
def test_degrees_of_freedom_of_f_and_t() -> None:
    with fxflow.config.override(x64=True):
        dfn, dfd, nc, f = RNG.uniform(1, 9, (4, 6)) * np.array([[1], [1], [0.2], [0.4]])
        p = special.ncfdtr(dfn, dfd, nc, f)
        for name, args in (
            ("ncfdtridfd", (dfn, p, nc, f)),
            ("ncfdtridfn", (p, dfd, nc, f)),
        ):
            root = getattr(special, name)(*args)
            at = (dfn, root, nc, f) if name == "ncfdtridfd" else (root, dfd, nc, f)
            found = np.asarray(root == root)
            assert found.sum() >= 4
            back = np.asarray(special.ncfdtr(*at))
            np.testing.assert_allclose(back[found], np.asarray(p)[found], 1e-12)
        t = np.array([2.0, 0.7, -1.5])
        p = special.nctdtr(np.array([3.0, 8.0, 2.5]), 0.5, t)
        root = special.nctdtridf(p, 0.5, t)
        np.testing.assert_allclose(root, [3, 8, 2.5], 1e-9)
        slope = fxflow.grad(special.ncfdtridfd, 1)(2.0, 0.3611, 1.5, 1.0)
        df = special.ncfdtridfd(2.0, 0.3611, 1.5, 1.0)
        rate = fxflow.grad(special.ncfdtr, 1)(2.0, df, 1.5, 1.0)
        assert float(slope) == pytest.approx(1 / float(rate), rel=1e-9)
