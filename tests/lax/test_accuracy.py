"""accuracy= of elementary functions."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import ArgumentError
from fxflow.lax import AccuracyMode, Tolerance

NAMES = [
    *("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt"),
    *("sin", "sqrt", "tan", "tanh"),
]
X = np.array([0.1, 0.5, 1.0], "f4")


@pytest.mark.parametrize("accuracy", [AccuracyMode.HIGHEST, Tolerance(1e-6, ulps=4)])
def test_values_and_derivatives(accuracy: AccuracyMode | Tolerance) -> None:
    """All of them in one program; the derivative is that of the function."""

    def total(x, accuracy=None):
        return sum(getattr(lax, name)(x, accuracy=accuracy).sum() for name in NAMES)

    both = fxflow.value_and_grad(total)
    for call in (both, fxflow.jit(both, static_argnums=1)):
        got, slope = call(X, accuracy)
        want, expected = both(X)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_allclose(slope, expected, rtol=1e-5)
    rows = fxflow.vmap(lambda x: lax.exp(x, accuracy=accuracy))(X)
    np.testing.assert_allclose(rows, np.exp(X), rtol=1e-6)


def test_programs() -> None:
    def text(accuracy):
        return fxflow.jit(lambda x: lax.sin(x, accuracy=accuracy)).lower(X).as_text()

    assert "result_accuracy_mode<HIGHEST>" in text(AccuracyMode.HIGHEST)
    tolerance = text(Tolerance(rtol=1e-3, ulps=2))
    assert "rtol = 1.0" in tolerance and "ulps = 2, mode" in tolerance
    assert "result_accuracy" not in text(None) + text(AccuracyMode.DEFAULT)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"exp: accuracy must be a lax\.Tolerance"):
        lax.exp(X, accuracy="highest")
    with pytest.raises(ArgumentError, match="give one of"):
        Tolerance()
    for wrong in ({"atol": -1}, {"ulps": 1.5}, {"rtol": "x"}, {"atol": float("nan")}):
        with pytest.raises(ArgumentError, match="must be numbers from 0 on"):
            Tolerance(**wrong)
