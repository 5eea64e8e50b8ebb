"""Kelvin's functions against mpmath, and SciPy's K of complex numbers."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)
X = np.concatenate([10 ** RNG.uniform(-9, 0.5, 3), RNG.uniform(2, 40, 3), [3.0]])
NAMES = ("ber", "bei", "ker", "kei")


def test_agree_with_mpmath() -> None:
    exact = [
        lambda z: mpmath.besseli(0, z),
        lambda z: scipy.special.kv(0, complex(z)),
        lambda z: turn * mpmath.besseli(1, z),
        lambda z: -turn * scipy.special.kv(1, complex(z)),
    ]
    with fxflow.config.override(x64=True), mpmath.workdps(45):
        turn = mpmath.expjpi(mpmath.mpf(1) / 4)
        for k, (got, function) in enumerate(zip(special.kelvin(X), exact, strict=True)):
            want = np.array([complex(function(turn * mpmath.mpf(x))) for x in X])
            assert (abs(np.asarray(got) - want) < 1e-14 * abs(want)).all()
            small = X < 1  # each part by itself, of I
            for part in (np.real, np.imag) if k in (0, 2) else ():
                np.testing.assert_allclose(
                    part(np.asarray(got))[small], part(want)[small], 2e-15
                )


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_and_limits(name: str) -> None:
    function, slope = getattr(special, name), getattr(special, f"{name}p")
    with fxflow.config.override(x64=True):
        exact = getattr(mpmath, name)
        rates = [float(mpmath.diff(lambda x: exact(0, x), 2, k)) for k in (1, 2)]
        assert float(slope(2.0)) == pytest.approx(rates[0], rel=1e-13)
        assert float(fxflow.grad(function)(2.0)) == pytest.approx(rates[0], rel=1e-13)
        assert float(fxflow.grad(slope)(2.0)) == pytest.approx(rates[1], rel=1e-12)
        edges = np.asarray(function(np.array([-2.0, 0, np.inf, np.nan])))
        two = float(exact(0, 2))
        want = {
            "ber": [two, 1, np.nan, np.nan],
            "bei": [two, 0, np.nan, np.nan],
            "ker": [np.nan, np.inf, 0, np.nan],
            "kei": [np.nan, -np.pi / 4, 0, np.nan],
        }
        np.testing.assert_allclose(edges, want[name], 1e-14)
        if name[0] == "b":
            assert float(slope(-2.0)) == -float(slope(2.0))
            second = fxflow.grad(fxflow.grad(function))(0.0)
            assert float(second) == (0.5 if name == "bei" else 0)
