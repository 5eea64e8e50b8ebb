"""Integrals of samples beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate as want

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import integrate

RNG = np.random.default_rng(0)


def close(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, 1e-9, 1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_integrals_agree_with_scipy(n: int) -> None:
    y = RNG.normal(size=(2, n, 3))
    x = np.sort(RNG.uniform(size=y.shape), 1)
    spacings: list[dict[str, Any]] = [{"x": x[0, :, 0]}, {"x": x}, {"dx": 0.3}]
    with fxflow.config.override(x64=True):
        for s in spacings:
            close(integrate.simpson(y, axis=1, **s), want.simpson(y, axis=1, **s))
            for initial in (None, 0):
                s["initial"] = initial
                got = integrate.cumulative_trapezoid(y, axis=1, **s)
                close(got, want.cumulative_trapezoid(y, axis=1, **s))
            for start in (None, 2.5, y[:, :1]):
                s["initial"] = start
                got = integrate.cumulative_simpson(y, axis=1, **s)
                close(got, want.cumulative_simpson(y, axis=1, **s))
        if n in (2, 3, 9):
            close(integrate.romb(y, 0.3, 1), want.romb(y, 0.3, 1))


def test_integrals_under_transforms() -> None:
    x = np.linspace(0, 1, 9) ** 2
    with fxflow.config.override(x64=True):
        # Simpson's rule is exact for parabolas, whatever the coordinates are.
        slope = fxflow.grad(lambda s: integrate.simpson(s * x**2, x))(2.0)
        np.testing.assert_allclose(slope, 1 / 3)
        each = fxflow.jit(fxflow.vmap(integrate.romb))(np.stack([x, 2 * x]))
        np.testing.assert_allclose(each, want.romb(np.stack([x, 2 * x])))
        whole = integrate.cumulative_simpson(x, x=x)[-1]
        np.testing.assert_allclose(whole, 0.5)
        by = fxflow.grad(lambda x: integrate.cumulative_trapezoid(x, x)[-1])(x)
        np.testing.assert_allclose(by, [0, 0, 0, 0, 0, 0, 0, 0, 1], atol=1e-12)


def test_bad_samples_are_refused() -> None:
    y = np.ones((2, 5))
    with pytest.raises(ShapeError, match="x must have 5 points"):
        integrate.simpson(y, np.ones(4))
    with pytest.raises(AxisError):
        integrate.simpson(y, axis=2)
    with pytest.raises(ShapeError, match="at least one sample"):
        integrate.simpson(np.ones((2, 0)))
    with pytest.raises(ArgumentError, match="initial must be 0"):
        integrate.cumulative_trapezoid(y, initial=1)
    with pytest.raises(ShapeError, match="power of 2"):
        integrate.romb(np.ones(4))
    with pytest.raises(ArgumentError, match="show"):
        integrate.romb(y, show=True)
