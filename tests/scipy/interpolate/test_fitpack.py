"""Splines as tuples beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.random(12) + 0.2)
Y = RNG.normal(size=12)
AT = np.linspace(X[0] - 0.5, X[-1] + 0.5, 33)


def close(got: Any, expected: Any, near: float = 1e-8) -> None:
    np.testing.assert_allclose(got, expected, near, near)


def test_older_names_agree_with_scipy() -> None:
    y = Y
    with fxflow.config.override(x64=True):
        for k in (2, 3, 4):
            f, g = interpolate.splrep(X, y, k=k), want.splrep(X, y, k=k)
            close(f[0], g[0])
            for ext in (0, 1, 3):
                close(interpolate.splev(AT, f, 0, ext), want.splev(AT, g, 0, ext), 1e-7)
            close(interpolate.splev(AT, f, 1), want.splev(AT, g, 1), 1e-6)
            close(interpolate.splint(AT[0], 3.0, f), want.splint(AT[0], 3.0, g))
            for name in ("splder", "splantider"):
                one, other = (
                    getattr(m, name)(s) for m, s in ((interpolate, f), (want, g))
                )
                close(interpolate.splev(AT, one), want.splev(AT, other), 1e-6)
        with pytest.raises(ArgumentError, match="lies beyond"):
            interpolate.splev(AT, f, ext=2)
        knots = np.arange(5.0)
        got = interpolate.BSpline.basis_element(knots)(knots)
        close(got, want.BSpline.basis_element(knots)(knots))


def test_bad_tuples_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: interpolate.splrep(X, Y, s=1.0), "depends on the data"),
        (ArgumentError, lambda: interpolate.splrep(X, Y, task=-1), "needs knots"),
        (ArgumentError, lambda: interpolate.splrep(X, Y, X), "give s=0"),
        (ArgumentError, lambda: interpolate.splev(0.0, (X, Y)), "tck must be"),
        (
            ArgumentError,
            lambda: interpolate.splev(0.0, interpolate.splrep(X, Y), ext=7),
            "ext must be",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
