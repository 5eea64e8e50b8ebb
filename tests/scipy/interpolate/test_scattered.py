"""Interpolation between scattered points beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
P = RNG.random((40, 2))
V = RNG.normal(size=(40, 3))
Q = RNG.random((50, 2)) * 1.2 - 0.1
KERNELS = [
    *("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric"),
    *("inverse_multiquadric", "inverse_quadratic", "gaussian"),
]


@pytest.mark.parametrize(
    "kernel",
    ["cubic", *(pytest.param(k, marks=pytest.mark.slow) for k in KERNELS)],
)
def test_radial_functions_agree_with_scipy(kernel: str) -> None:
    with fxflow.config.override(x64=True):
        for near, soft in ((None, 0.0), (None, 0.1), (12, 0.0)):
            args = (P, V, near, soft, kernel, 3.0)
            got = interpolate.RBFInterpolator(*args)(Q)
            np.testing.assert_allclose(got, want.RBFInterpolator(*args)(Q), 1e-5, 1e-5)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_scattered_data_agree_with_scipy(method: str) -> None:
    with fxflow.config.override(x64=True):
        for args in (
            (P * [1, 5], V, Q * [1, 5], method, 7.0, True),
            (P, V[:, 0], (Q[:9, :1], Q[None, :9, 1]), method),
            (tuple(P.T), V, Q, method),
            (P[:, 0], V[:, 0], Q[:, 0], method),
        ):
            got = interpolate.griddata(*args)  # type: ignore[arg-type]
            np.testing.assert_allclose(got, want.griddata(*args), 1e-8, 1e-8)


def test_interpolators_have_derivatives() -> None:
    inside = np.array([[0.4, 0.5], [0.6, 0.3]])
    with fxflow.config.override(x64=True):
        linear = interpolate.LinearNDInterpolator(P, V[:, 0])
        radial = lambda p, v: interpolate.RBFInterpolator(p, v)(inside).sum()
        programs: list[tuple[Any, Any]] = [
            (lambda x: linear(x).sum(), inside),
            (lambda p: radial(p, V[:, 0]), P),
            (lambda v: radial(P, v), V[:, 0]),
        ]
        for run, at in programs:
            way = RNG.normal(size=at.shape)
            rise = float(run(at + 1e-6 * way) - run(at - 1e-6 * way)) / 2e-6
            slope = fxflow.jit(fxflow.grad(run))(at)
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-4)
        each = fxflow.vmap(lambda v: interpolate.NearestNDInterpolator(P, v)(Q))(V.T)
        expected = want.NearestNDInterpolator(P, V[:, 1])(Q)
        np.testing.assert_allclose(each[1], expected)


def test_bad_points_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (
            ArgumentError,
            lambda: interpolate.RBFInterpolator(P, V, kernel="no"),
            "kernel",
        ),
        (
            ArgumentError,
            lambda: interpolate.RBFInterpolator(P, V, kernel="gaussian"),
            "eps",
        ),
        (ArgumentError, lambda: interpolate.RBFInterpolator(P[:2], V[:2]), "needs 3"),
        (ShapeError, lambda: interpolate.RBFInterpolator(P[0], V), "points"),
        (ShapeError, lambda: interpolate.RBFInterpolator(P, V)(Q[0]), "points"),
        (ShapeError, lambda: interpolate.NearestNDInterpolator(P, V[1:]), "expected"),
        (ArgumentError, lambda: interpolate.griddata(P, V, Q, "no"), "method"),
        (ShapeError, lambda: interpolate.griddata(P, V, Q[:, :1]), "2 coordinates"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(ConcretizationError, match="traced"):
        fxflow.jit(lambda p: interpolate.griddata(p, V, Q))(P)
