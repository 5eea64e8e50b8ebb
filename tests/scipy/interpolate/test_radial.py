"""Sums of radial functions beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.interpolate import Rbf

RNG = np.random.default_rng(0)
X, Y, V = RNG.random((3, 20))
AT = RNG.random((2, 4, 3))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"function": "Inverse", "epsilon": 0.3},
        {"function": "gaussian", "smooth": 0.1},
        {"function": "thin_plate"},
        {"function": "quintic", "norm": "cityblock"},
        {"function": lambda r: r**3},
        {"function": lambda self, r: r / self.epsilon},
    ],
    ids=[
        *("default", "inverse", "gaussian", "thin_plate", "quintic"),
        *("function", "method"),
    ],
)
def test_values_agree_with_scipy(settings: dict[str, Any]) -> None:
    with fxflow.config.override(x64=True):
        ours, theirs = Rbf(X, Y, V, **settings), want.Rbf(X, Y, V, **settings)
        np.testing.assert_allclose(ours.epsilon, theirs.epsilon)
        np.testing.assert_allclose(ours(*AT), theirs(*AT), 1e-6, 1e-7)


def test_vectors_and_derivatives() -> None:
    with fxflow.config.override(x64=True):
        both = np.stack([V, X], 1)
        ours, theirs = (s(X, Y, both, mode="N-D") for s in (Rbf, want.Rbf))
        np.testing.assert_allclose(ours(*AT), theirs(*AT), 1e-6, 1e-7)
        assert ours.N == 20
        run = lambda x, v: (Rbf(x, Y, v)(*AT[:, 0]) ** 2).sum()
        slopes = fxflow.jit(fxflow.grad(run, (0, 1)))(X, V)
        ways = RNG.normal(size=(2, 20))
        ends = [float(run(X + e * ways[0], V + e * ways[1])) for e in (1e-6, -1e-6)]
        got = sum(float((s * w).sum()) for s, w in zip(slopes, ways, strict=True))
        assert got == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-4)


def test_bad_arguments_are_refused() -> None:
    f = Rbf(X, Y, V)
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: Rbf(X, Y, V, function="no"), "function"),
        (ArgumentError, lambda: Rbf(X, Y, V, function=3), "function"),
        (ArgumentError, lambda: Rbf(X, Y, V, mode="2-D"), "mode"),
        (ArgumentError, lambda: Rbf(X), "coordinates"),
        (ArgumentError, lambda: Rbf(X, V, function=lambda r: r[0]), "like its"),
        (ShapeError, lambda: Rbf(X, Y[1:], V), "one size"),
        (ShapeError, lambda: Rbf(X, Y, V, mode="N-D"), "one size"),
        (ShapeError, lambda: f(X), "2 coordinates"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
