"""Probabilities of classical distributions against SciPy."""

import warnings

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
K = RNG.integers(0, 8, 12).astype(float)
N = K + RNG.integers(1, 20, 12)
POSITIVE = RNG.uniform(0.3, 20, (2, 12))
UNIT = RNG.uniform(0.01, 0.99, 12)
ARGUMENTS = {
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri"), (K, N, UNIT)),
    **dict.fromkeys(("nbdtr", "nbdtrc", "nbdtri"), (K, N, UNIT)),
    **dict.fromkeys(("pdtr", "pdtrc"), (K, POSITIVE[0])),
    "pdtri": (K, UNIT),
    **dict.fromkeys(("fdtr", "fdtrc"), (*POSITIVE, 3 * UNIT)),
    "fdtri": (*POSITIVE, UNIT),
    **dict.fromkeys(("gdtr", "gdtrc"), (*POSITIVE, UNIT)),
    "gdtria": (UNIT, *POSITIVE),
    "gdtrix": (*POSITIVE, UNIT),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_agree_with_scipy(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    args = ARGUMENTS[name]
    with fxflow.config.override(x64=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(function(*args), theirs(*args), 2e-12)
        bad = [*(a[:1] for a in args[:-1]), np.array([-0.5, np.nan])]
        odd = np.isnan(function(*bad))
        assert odd[1]
        assert odd[0] == (name != "gdtria")  # whose x may be negative, as SciPy's


@pytest.mark.parametrize("name", ARGUMENTS)
def test_agree_with_scipy_outside_of_ranges(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    odd = np.array([-3.0, -2.5, -0.3, 0.3, 1.0, 1.5, 2.0, 3.7, 1e3, np.nan])
    args = [a.ravel() for a in np.meshgrid(*[odd] * len(ARGUMENTS[name]))]
    with fxflow.config.override(x64=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = np.asarray(function(*args)), theirs(*args)
    if name == "nbdtri":  # SciPy's is 1 there even without successes
        args[1], want = np.trunc(args[1]), np.where(args[1] < 1, np.nan, want)
    np.testing.assert_allclose(got, want, 1e-9, 1e-15)


def test_infinite_and_zero_parameters() -> None:
    with fxflow.config.override(x64=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        odd = np.array([0.0, 1.0, np.inf])
        for name, count in [("gdtr", 3), ("gdtrc", 3), ("nbdtr", 3), ("fdtr", 3)]:
            args = [a.ravel() for a in np.meshgrid(*[odd] * count)]
            got, want = getattr(special, name)(*args), getattr(scipy.special, name)
            np.testing.assert_allclose(got, want(*args), 1e-12)
        assert np.isnan(special.gdtria(0.3, 1.5, 0.0))
        assert np.isnan(special.gdtrix(np.inf, 1.5, 0.3))


def test_edges_of_counts() -> None:
    with fxflow.config.override(x64=True):
        got = special.bdtr(np.array([-1.0, 0.7, 3.0, 4.0]), 3.0, 0.25)
        np.testing.assert_allclose(got, [np.nan, 0.75**3, 1, np.nan])
        got = special.bdtrc(np.array([-1.0, 0.7, 3.0, 4.0]), 3.0, 0.25)
        np.testing.assert_allclose(got, [1, 1 - 0.75**3, 0, np.nan])
        # The upper tail keeps its digits.
        tail = float(special.fdtrc(3.0, 10.0, 1e60))
        assert tail == pytest.approx(scipy.special.fdtrc(3, 10, 1e60), rel=1e-9)


def test_slope_by_the_parameters() -> None:
    with fxflow.config.override(x64=True):
        got = fxflow.grad(special.fdtr, 2)(3.0, 5.0, 0.7)
        theirs = scipy.special.fdtr
        want = (theirs(3, 5, 0.7 + 1e-6) - theirs(3, 5, 0.7 - 1e-6)) / 2e-6
        assert float(got) == pytest.approx(want, rel=1e-7)
