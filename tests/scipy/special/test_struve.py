"""Struve's functions against mpmath."""

from typing import Any

import mpmath
import numpy as np
import pytest

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
V, X = RNG.uniform(-0.4, 12, 12), 10 ** RNG.uniform(-1, 2, 12)
THEIRS: dict[str, Any] = {"struve": mpmath.struveh, "modstruve": mpmath.struvel}


@pytest.mark.parametrize("name", THEIRS)
def test_agree_with_mpmath(name: str) -> None:
    function, theirs = getattr(special, name), THEIRS[name]
    with fxflow.config.override(x64=True):
        want = np.array([float(theirs(v, x)) for v, x in zip(V, X, strict=True)])
        scale = np.abs(want)
        if name == "struve":  # relative to the amplitude where it oscillates
            other = [abs(mpmath.bessely(v, x)) for v, x in zip(V, X, strict=True)]
            scale = np.maximum(scale, np.array(other, float))
        got = np.asarray(function(V, X))
        np.testing.assert_allclose(got / scale, want / scale, 2e-14, 2e-14)
        edges = np.array([0.0, -2.0, np.nan])
        got = np.asarray(function(1.0, edges))
        assert got[0] == 0 and got[1] == pytest.approx(float(theirs(1, 2)))
        assert np.isnan(got[2])
        assert np.isnan(function(0.5, -2.0)) and np.isnan(function(-0.7, 2.0))
        slopes = fxflow.grad(function, (0, 1))(1.3, 5.0)
        rates = (
            mpmath.diff(lambda v: theirs(v, 5), 1.3),
            mpmath.diff(lambda x: theirs(mpmath.mpf(1.3), x), 5),
        )
        np.testing.assert_allclose(slopes, [float(r) for r in rates], 1e-9)
