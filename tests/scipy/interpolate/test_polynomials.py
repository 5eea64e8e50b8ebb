"""Polynomials and rules of intervals beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.random(9) + 0.2)
ORDER = RNG.permutation(9)
Y = RNG.normal(size=(2, 9, 3))
AT = np.r_[np.linspace(X[0] - 0.5, X[-1] + 0.5, 33), X, (X[1:] + X[:-1]) / 2, np.nan]
KINDS = [
    "linear",
    "nearest",
    "nearest-up",
    "previous",
    "next",
    "slinear",
    "cubic",
    2,
    5,
]


@pytest.mark.parametrize(
    "kind", [*KINDS[:5], *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS[5:])]
)
def test_functions_of_samples_agree_with_scipy(kind: Any) -> None:
    with fxflow.config.override(x64=True):
        for fill in (np.nan, (1.0, 2.0), "extrapolate"):
            args = (X[ORDER], Y[:, ORDER], kind, 1)
            got = interpolate.interp1d(*args, fill_value=fill)(AT)
            expected = want.interp1d(*args, bounds_error=False, fill_value=fill)(AT)
            if kind in ("nearest", "nearest-up", "previous", "next"):
                got, expected = got[:, :-1], expected[:, :-1]  # nan's neighbour
            np.testing.assert_allclose(got, expected, 1e-7, 1e-7)
        run = fxflow.jit(lambda x, y: interpolate.interp1d(x, y, kind)(X[3] + 0.1))
        expected = want.interp1d(X, Y[0, :, 0], kind)(X[3] + 0.1)
        np.testing.assert_allclose(run(X, Y[0, :, 0]), expected, 1e-7)


def test_polynomials_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        f = interpolate.BarycentricInterpolator(X, Y, 1)
        expected = want.BarycentricInterpolator(X, Y, 1)(AT)
        np.testing.assert_allclose(f(AT), expected, 1e-6, 1e-6)
        got = interpolate.barycentric_interpolate(X, Y[0], 1.7)
        np.testing.assert_allclose(
            got, want.barycentric_interpolate(X, Y[0], 1.7), 1e-8
        )
        theirs = want.BarycentricInterpolator(X, Y, 1)
        for at in (np.r_[X[2:4], 1.7, 2.9], 1.7):
            for der in (3, None):
                np.testing.assert_allclose(
                    f.derivatives(at, der), theirs.derivatives(at, der), 1e-5, 1e-5
                )
            np.testing.assert_allclose(
                f.derivative(at, 2), theirs.derivative(at, 2), 1e-6, 1e-6
            )
            for order in (1, [2, 0]):
                np.testing.assert_allclose(
                    interpolate.barycentric_interpolate(X, Y[0], at, der=order),
                    want.barycentric_interpolate(X, Y[0], at, der=order),
                    *(1e-5, 1e-5),
                )
        again = interpolate.BarycentricInterpolator(X, Y, 1, wi=f.wi)
        np.testing.assert_allclose(again(1.7), f(1.7))
        value = lambda t, y: interpolate.BarycentricInterpolator(X, y)(t)
        y = Y[0, :, 0]
        slopes = fxflow.jit(fxflow.grad(value, (0, 1)))(1.7, y)
        rise = float(value(1.7 + 1e-6, y) - value(1.7 - 1e-6, y)) / 2e-6
        assert float(slopes[0]) == pytest.approx(rise, 1e-6)
        np.testing.assert_allclose((slopes[1] * y).sum(), value(1.7, y), 1e-9)


def test_bad_samples_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: interpolate.interp1d(X, Y[0].T, "no"), "kind"),
        (
            ArgumentError,
            lambda: interpolate.interp1d(X, X, bounds_error=True),
            "bounds",
        ),
        (
            ArgumentError,
            lambda: interpolate.interp1d(X, X, fill_value="no"),
            "fill_value",
        ),
        (ShapeError, lambda: interpolate.interp1d(X, X[1:]), "as many points"),
        (ShapeError, lambda: interpolate.BarycentricInterpolator(X, X[1:]), "as many"),
        (
            ArgumentError,
            lambda: interpolate.BarycentricInterpolator(np.ones(9), X),
            "must be different",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
