"""Interpolation in triangles beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.interpolate import CloughTocher2DInterpolator, LinearNDInterpolator
from fxflow.scipy.spatial import Delaunay

RNG = np.random.default_rng(2)
P, V = RNG.random((40, 2)), RNG.normal(size=(40, 2))
Q = RNG.random((30, 2)) * 1.2 - 0.1
BOTH = [LinearNDInterpolator, CloughTocher2DInterpolator]


@pytest.mark.parametrize("rescale", [pytest.param(False, marks=pytest.mark.slow), True])
def test_cubics_agree_with_scipy(rescale: bool) -> None:
    size = np.array([1.0, 20.0])
    with fxflow.config.override(x64=True):
        ours = CloughTocher2DInterpolator(P * size, V, 7.0, 1e-11, rescale=rescale)
        theirs = want.CloughTocher2DInterpolator(
            P * size, V, 7.0, 1e-13, 9999, rescale=rescale
        )
        np.testing.assert_allclose(ours(Q * size), theirs(Q * size), 1e-6, 1e-6)
        if not rescale:
            np.testing.assert_allclose(ours.grad, theirs.grad, 1e-5, 1e-6)
        one = CloughTocher2DInterpolator(P, V[:, 0])(Q[:, :1], Q[None, :9, 1])
        assert one.shape == (30, 9)


@pytest.mark.parametrize(
    "kind", [BOTH[0], pytest.param(BOTH[1], marks=pytest.mark.slow)]
)
def test_they_have_derivatives_by_points_and_values(kind: Any) -> None:
    inside = np.array([[0.4, 0.5], [0.6, 0.3]])
    with fxflow.config.override(x64=True):
        more = {} if kind is LinearNDInterpolator else {"tol": 1e-12}
        mesh = Delaunay(P)
        run = lambda p, v, x: kind(mesh.with_points(p), v, **more)(x).sum()
        args = (P, V, inside)
        slopes = fxflow.jit(fxflow.grad(run, (0, 1, 2)))(*args)
        eager = fxflow.grad(lambda p: kind(p, V, **more)(inside).sum())(P)
        np.testing.assert_allclose(eager, slopes[0], 1e-7, 1e-8)
        for k, slope in enumerate(slopes):
            way = RNG.normal(size=args[k].shape)
            ends = [
                float(run(*args[:k], args[k] + e * way, *args[k + 1 :]))
                for e in (1e-6, -1e-6)
            ]
            rise = (ends[0] - ends[1]) / 2e-6
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-4)
        each = fxflow.vmap(lambda v: kind(mesh, v, **more)(Q))(V.T)
        np.testing.assert_allclose(each[1], kind(P, V[:, 1], **more)(Q), 1e-7, 1e-9)


def test_complex_values_and_lines() -> None:
    with fxflow.config.override(x64=True):
        plane = 1 + P @ [2.0, 3j]
        f = CloughTocher2DInterpolator(P, plane, np.nan, 1e-12)
        at = P.mean(0)
        np.testing.assert_allclose(f(at), 1 + at @ [2.0, 3j], 1e-9)
        made = fxflow.jit(lambda g: g(at))(f)
        np.testing.assert_allclose(made, f(at))


def test_bad_points_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: LinearNDInterpolator(P[:, 0], V), "two coordinates"),
        (ShapeError, lambda: LinearNDInterpolator(P, V[:3]), "values"),
        (
            ShapeError,
            lambda: CloughTocher2DInterpolator(RNG.random((9, 3)), V[:9]),
            "two coordinates",
        ),
        (
            ArgumentError,
            lambda: LinearNDInterpolator(Delaunay(P), V, rescale=True),
            "rescale",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    for kind in BOTH:
        with pytest.raises(ConcretizationError, match="with_points"):
            fxflow.jit(lambda p, kind=kind: kind(p, V)(Q))(P)
