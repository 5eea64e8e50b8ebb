"""Bessel functions of the orders 0 and 1 against mpmath, to their last digits."""

from typing import Any

import mpmath
import numpy as np
import pytest

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
X = np.concatenate(
    [10 ** RNG.uniform(-4, 2.5, 20), RNG.uniform([7, 1.8], [9, 2.2], (4, 2)).ravel()]
)
EDGES = np.array([0.0, -1.0, np.inf, np.nan])
THEIRS: dict[str, Any] = {
    "j": mpmath.besselj,
    "y": mpmath.bessely,
    "k": mpmath.besselk,
    "ke": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", THEIRS)
def test_agree_with_mpmath(kind: str, order: int) -> None:
    function = getattr(special, f"{kind[0]}{order}{kind[1:]}")
    theirs = THEIRS[kind]
    want = np.array([float(theirs(order, x)) for x in X])
    size = np.abs(want)
    if kind in "jy":  # relative to the amplitude, where it oscillates
        other = np.array(
            [float(THEIRS["yj"["yj".index(kind) - 1]](order, x)) for x in X]
        )
        size = np.maximum(size, np.minimum(np.abs(other), 1))
    with fxflow.config.override(x64=True):
        got = np.asarray(function(X))
        kept = size > 1e-300
        np.testing.assert_allclose((got / size)[kept], (want / size)[kept], 0, 2e-15)
        slope, bend = fxflow.grad(function), fxflow.grad(fxflow.grad(function))
        for x in (0.7, 11.0):
            f = lambda x: theirs(order, x)
            assert float(slope(x)) == pytest.approx(float(mpmath.diff(f, x)), rel=1e-12)
            want2 = float(mpmath.diff(f, x, 2))
            assert float(bend(x)) == pytest.approx(want2, rel=1e-11)
        ends = {
            "j": [1.0 - order, (0.7651976865579666, -0.44005058574493355)[order], 0],
            "y": [-np.inf, np.nan, 0],
        }.get(kind, [np.inf, np.nan, 0])
        np.testing.assert_allclose(function(EDGES), [*ends, np.nan], 1e-15)
    narrow = function(X.astype(np.float32))
    assert narrow.dtype == np.float32


def test_derivatives_at_0() -> None:
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(special.j1)
        assert float(slope(0.0)) == pytest.approx(0.5, rel=1e-14)
        third = fxflow.grad(fxflow.grad(slope))
        assert float(third(0.0)) == pytest.approx(-3 / 8)
        assert float(fxflow.grad(fxflow.grad(special.j0))(0.0)) == pytest.approx(-0.5)
