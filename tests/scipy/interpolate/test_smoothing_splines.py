"""Smoothing splines beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(33)
X = np.sort(RNG.uniform(0, 3, 40))
Y = np.sin(3 * X) + 0.2 * RNG.normal(size=40)
W = RNG.uniform(0.5, 2, 40)
AT = RNG.uniform(0, 3, 7)


def slope_is_right(run: Any, at: Any, tol: float = 1e-5) -> None:
    way = RNG.normal(size=np.shape(at))
    ends = [float(run(at + h * way)) for h in (-1e-5, 1e-5)]
    slope = fxflow.grad(run)(at)
    assert float((slope * way).sum()) == pytest.approx((ends[1] - ends[0]) / 2e-5, tol)


def test_penalized_splines_agree_with_scipy() -> None:
    many = np.stack([Y, np.cos(2 * X)])
    with fxflow.config.override(x64=True):
        for w in (None, W):
            for lam in (0.0, 1e-3, 0.5, 1e4):
                f = interpolate.make_smoothing_spline(X, Y, w, lam)
                g = want.make_smoothing_spline(X, Y, w, lam)
                np.testing.assert_allclose(f(AT), g(AT), 1e-6, 1e-6)
                np.testing.assert_allclose(f.t, g.t)
            f = interpolate.make_smoothing_spline(X, Y, w)
            g = want.make_smoothing_spline(X, Y, w)
            np.testing.assert_allclose(f(AT), g(AT), 1e-3, 1e-3)
        f = interpolate.make_smoothing_spline(X, many, lam=0.1, axis=1)
        g = want.make_smoothing_spline(X, many, lam=0.1, axis=1)
        np.testing.assert_allclose(f(AT), g(AT), 1e-7, 1e-7)


@pytest.mark.slow
def test_penalized_splines_have_derivatives() -> None:
    with fxflow.config.override(x64=True):

        def at(x: Any = X, y: Any = Y, w: Any = W, lam: Any = 0.1) -> Any:
            return (interpolate.make_smoothing_spline(x, y, w, lam)(AT) ** 2).sum()

        slope_is_right(lambda y: at(y=y), Y)
        slope_is_right(lambda w: at(w=w), W)
        slope_is_right(lambda lam: at(lam=lam), np.asarray(0.1))
        slope_is_right(lambda x: at(x=x), X)
        np.testing.assert_allclose(fxflow.jit(at)(), at(), 1e-9)
        chosen = fxflow.jit(lambda y: interpolate.make_smoothing_spline(X, y)(AT))(Y)
        np.testing.assert_allclose(
            chosen, interpolate.make_smoothing_spline(X, Y)(AT), 1e-4
        )


def test_few_knots_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for k, s, w in ((3, 1.5, None), (3, 0.5, None), (2, 2.0, W), (3, 40.0, None)):
            ours = list(interpolate.generate_knots(X, Y, w=w, k=k, s=s))
            theirs = list(want.generate_knots(X, Y, w=w, k=k, s=s))
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(one, other)
            f = interpolate.make_splrep(X, Y, w=w, k=k, s=s)
            g = want.make_splrep(X, Y, w=w, k=k, s=s)
            np.testing.assert_allclose(f(AT), g(AT), 2e-2, 2e-2)
            weights = np.ones(40) if w is None else w
            left = float(((np.asarray(f(X)) - Y) ** 2 * weights**2).sum())
            assert left == pytest.approx(s, 1e-8) or f.t.size == 2 * k + 2
        f, g = interpolate.make_splrep(X, Y), want.make_splrep(X, Y)
        np.testing.assert_allclose(f(AT), g(AT), 1e-8, 1e-8)
        curve = [np.cos(X), np.sin(X) + 0.05 * RNG.normal(size=40)]
        for s in (0, 0.1):
            f, u = interpolate.make_splprep(curve, s=s)
            g, v = want.make_splprep(curve, s=s)
            np.testing.assert_allclose(u, v)
            np.testing.assert_allclose(f(AT / 3), g(AT / 3), 2e-2, 2e-2)


@pytest.mark.slow
def test_splines_on_known_knots_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        f = interpolate.make_splrep(X, Y, s=1.5)
        run = fxflow.jit(lambda y: interpolate.make_splrep(X, y, s=1.5, t=f.t)(AT))
        np.testing.assert_allclose(run(Y), f(AT), 1e-7)
        slope_is_right(
            lambda y: (interpolate.make_splrep(X, y, s=1.5, t=f.t)(AT) ** 2).sum(),
            Y,
            1e-4,
        )


def test_bad_samples_are_refused() -> None:
    smooth, few = interpolate.make_smoothing_spline, interpolate.make_splrep
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: smooth(X, Y, lam=-1.0), "negative"),
        (ArgumentError, lambda: smooth(X, Y, 0 * W), "positive"),
        (ShapeError, lambda: smooth(X[:4], Y[:4]), "at least 5"),
        (ShapeError, lambda: smooth(X, Y, W[:3]), "shape of x"),
        (ArgumentError, lambda: few(X, Y, s=-1.0), "s must"),
        (ArgumentError, lambda: few(X, Y, w=W), "without w"),
        (ArgumentError, lambda: few(X, Y, s=1.0, bc_type="periodic"), "needs s=0"),
        (ArgumentError, lambda: few(X, Y, s=1.0, bc_type="no"), "bc_type"),
        (ArgumentError, lambda: few(X, Y, s=1.0, t=X[:8], nest=9), "either"),
        (ArgumentError, lambda: few(X, Y, s=1.0, w=-W), "weights"),
        (ShapeError, lambda: few(X, Y[:3], s=1.0), "one length"),
        (
            ConcretizationError,
            lambda: fxflow.jit(lambda y: few(X, y, s=1.0))(Y),
            "give t",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
