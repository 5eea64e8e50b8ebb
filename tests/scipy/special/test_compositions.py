"""Compositions of special functions against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
X = np.concatenate([RNG.normal(size=20), [0.0, 1e-9, -1e-9, 20.0, -20.0]])
POSITIVE = RNG.uniform(0.1, 9, (2, 25))
CASES: dict[str, Any] = {
    "exprel": (X,),
    "exp10": (X,),
    "erfi": (X,),
    "inv_boxcox": (POSITIVE[0], np.linspace(0, 2, 25)),
    "inv_boxcox1p": (POSITIVE[0], np.linspace(0, 2, 25)),
    "binom": (POSITIVE[0], POSITIVE[1]),
    "voigt_profile": (X, *POSITIVE),
    "agm": (*POSITIVE,),
}


@pytest.mark.parametrize("name", CASES)
def test_agree_with_scipy(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    args = CASES[name]
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(function(*args), theirs(*args), 2e-13, 1e-15)
        at = [float(a[0]) for a in args]
        slopes = fxflow.grad(function, tuple(range(len(at))))(*at)
        for i, slope in enumerate(slopes):
            h = 1e-6
            ends = [theirs(*at[:i], at[i] + s, *at[i + 1 :]) for s in (h, -h)]
            want = (ends[0] - ends[1]) / (2 * h)
            assert float(slope) == pytest.approx(want, rel=1e-5, abs=1e-8)


def test_edges_are_those_of_scipy() -> None:
    edges = np.array([-np.inf, np.inf, np.nan, 0.0])
    for name in ("exprel", "exp10", "erfi"):
        want = getattr(scipy.special, name)(edges)
        np.testing.assert_array_equal(getattr(special, name)(edges), want)
    width = np.array([0.0, 0, 1, -1, 2])
    with fxflow.config.override(x64=True):
        got = special.voigt_profile(0.5, width, np.array([1.0, 0, 0, 1, -1]))
        want = scipy.special.voigt_profile(0.5, width, np.array([1.0, 0, 0, 1, -1]))
        np.testing.assert_allclose(got[:3], want[:3], 1e-13)
        assert np.isnan(got[3:]).all()
        signs = np.array([-1.0, -1, 0, 3, np.inf])
        got, want = special.agm(signs, -2.0), scipy.special.agm(signs, -2.0)
        np.testing.assert_allclose(got[:3], want[:3], 1e-14)
        assert float(special.binom(30, 15)) == 155117520
        np.testing.assert_array_equal(
            special.binom(np.array([-2.0, 3]), 5.0), [np.nan, 0]
        )
