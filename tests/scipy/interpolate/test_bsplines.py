"""B-splines beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow import tree
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.random(12) + 0.2)
LONG = np.cumsum(RNG.random(100) + 0.2)
Y = RNG.normal(size=(2, 12, 3))
AT = np.linspace(X[0] - 0.5, X[-1] + 0.5, 33)


def close(got: Any, expected: Any, near: float = 1e-8) -> None:
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, near, near)


@pytest.mark.parametrize(
    "k", [0, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 5))]
)
def test_splines_agree_with_scipy(k: int) -> None:
    with fxflow.config.override(x64=True):
        f = interpolate.make_interp_spline(X, Y, k, axis=1)
        g = want.make_interp_spline(X, Y, k, axis=1)
        close(f.t, g.t)
        for nu in range(k + 1):
            close(f(AT, nu), g(AT, nu), 1e-6)
        assert (f(AT, k + 1) == 0).all()
        for how in (True, False):
            close(f.integrate(AT[0], AT[-5], how), g.integrate(AT[0], AT[-5], how))
            close(f(AT, 0, how), g(AT, 0, how), 1e-7)
        close(f.antiderivative(2)(AT), g.antiderivative(2)(AT), 1e-7)
        if k > 1:
            around = np.concatenate([Y[:, :-1], Y[:, :1]], 1)
            f = interpolate.make_interp_spline(X, around, k, bc_type="periodic", axis=1)
            g = want.make_interp_spline(X, around, k, bc_type="periodic", axis=1)
            close(f(AT), g(AT), 1e-7)
            close(f.integrate(AT[0], AT[-1]), g.integrate(AT[0], AT[-1]), 1e-7)


def test_ends_agree_with_scipy() -> None:
    y = RNG.normal(size=100)
    at = np.linspace(LONG[0], LONG[-1], 40)
    ends: list[tuple[int, Any]] = [
        (3, "natural"),
        (3, "clamped"),
        (3, ("natural", "clamped")),
        (3, ([(1, 0.3)], [(2, 0.1)])),
        (5, ([(1, 0.0), (2, 0.0)], [(1, 0.0), (2, 0.0)])),
        (4, None),
    ]
    with fxflow.config.override(x64=True):
        for k, bc in ends:
            got = interpolate.make_interp_spline(LONG, y, k, bc_type=bc)(at)
            close(got, want.make_interp_spline(LONG, y, k, bc_type=bc)(at), 1e-7)
        for bc in ((None, [(1, 0.2)]), ([(2, 0.2)], None)):
            got = interpolate.make_interp_spline(LONG, y, 3, bc_type=bc)(at)
            other = [c[0] if c else "not-a-knot" for c in bc]
            close(got, want.CubicSpline(LONG, y, bc_type=other)(at), 1e-7)


def test_least_squares_agree_with_scipy() -> None:
    t = np.r_[[X[0]] * 4, X[2:-2:3], [X[-1]] * 4]
    w = RNG.random(12) + 0.1
    with fxflow.config.override(x64=True):
        expected = want.make_lsq_spline(X, Y[0], t, 3, w)(AT)
        for method in ("qr", "norm-eq"):
            got = interpolate.make_lsq_spline(X, Y[0], t, 3, w, method=method)
            close(got(AT), expected, 1e-6)
        got = interpolate.BSpline.design_matrix(X, t, 3)
        close(got, want.BSpline.design_matrix(X, t, 3).toarray())
        inner = X[2:-2:3]
        close(
            interpolate.splev(AT, interpolate.splrep(X, Y[0, :, 0], w, t=inner)),
            want.splev(AT, want.splrep(X, Y[0, :, 0], w, t=inner)),
            1e-6,
        )


@pytest.mark.slow
def test_splines_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        y = Y[0, :, 0]
        for k in (2, 3):

            def total(x: Any, y: Any, at: Any, k: int = k) -> Any:
                f = interpolate.make_interp_spline(x, y, k)
                return (f(at) ** 2).sum() + f.integrate(at[3], at[9])

            slopes = fxflow.jit(fxflow.grad(total, (0, 1, 2)))(X, y, AT)
            args = (X, y, AT)
            for i, slope in enumerate(slopes):
                way = RNG.normal(size=args[i].shape)
                ends = []
                for sign in (1, -1):
                    moved = list(args)
                    moved[i] = args[i] + sign * 1e-6 * way
                    ends.append(float(total(*moved)))
                rise = (ends[0] - ends[1]) / 2e-6
                assert float((slope * way).sum()) == pytest.approx(rise, 1e-4)
        f = interpolate.make_interp_spline(X, y)
        second = fxflow.grad(fxflow.grad(lambda t: f(t)))(X[4] + 0.1)
        close(second, f(X[4] + 0.1, 2), 1e-7)
        leaves, structure = tree.flatten(f)
        assert tree.unflatten(structure, leaves)(AT[3]) == f(AT[3])
        each = fxflow.vmap(lambda y: interpolate.make_interp_spline(X, y)(AT))(
            Y[..., 0]
        )
        close(each[1], want.make_interp_spline(X, Y[1, :, 0])(AT), 1e-7)


def test_a_spline_is_linear_in_its_values() -> None:
    with fxflow.config.override(x64=True):
        y = Y[0, :, 0]
        value = lambda y: interpolate.make_interp_spline(X, y)(X[4] + 0.1)
        slope = fxflow.jit(fxflow.grad(value))(y)
        assert float((slope * y).sum()) == pytest.approx(float(value(y)), 1e-9)


def test_bad_splines_are_refused() -> None:
    make, y = interpolate.make_interp_spline, Y[0]
    refused: list[tuple[Any, Any, str]] = [
        (
            ShapeError,
            lambda: interpolate.BSpline(np.arange(5.0), np.ones(9), 2),
            "knots",
        ),
        (ShapeError, lambda: interpolate.BSpline(X, np.ones(3), 2), "need 9 coef"),
        (ArgumentError, lambda: interpolate.BSpline(X[::-1], np.ones(9), 2), "descend"),
        (
            ArgumentError,
            lambda: interpolate.BSpline(X, np.ones(9), 2, "no"),
            "extrapolate",
        ),
        (ArgumentError, lambda: make(X[::-1], y), "ascending"),
        (ArgumentError, lambda: make(X, y, bc_type="no"), "bc_type"),
        (ArgumentError, lambda: make(X, y, bc_type="periodic"), "must be equal"),
        (ArgumentError, lambda: make(X, y, t=np.arange(9.0)), "coefficients need"),
        (ShapeError, lambda: make(X[:3], y[:3], 5), "at least 6 points"),
        (ArgumentError, lambda: make(X, y).derivative(4), "at most the degree"),
        (
            ArgumentError,
            lambda: interpolate.make_lsq_spline(X, y, X, method="no"),
            "method",
        ),
        (
            ArgumentError,
            lambda: interpolate.BSpline.design_matrix(AT, X, 2),
            "base interval",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.slow
def test_long_splines_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(size=300)) + np.arange(300) / 1000
    y = np.stack([np.sin(9 * x), np.cos(5 * x)], 1)
    with fxflow.config.override(x64=True):
        for k, bc in (
            (5, None),
            (4, None),
            (5, ([(1, [9.0, 0.0]), (2, [0.0, 0.0])],) * 2),
        ):
            exact = want.make_interp_spline(x, y, k, bc_type=bc)
            got = interpolate.make_interp_spline(x, y, k, bc_type=bc)
            close(got.c, exact.c, 1e-7)
        complex_ = interpolate.make_interp_spline(x, y[:, 0] + 1j * y[:, 1], 5)
        plain = interpolate.make_interp_spline(x, y, 5)
        close(complex_.c, np.asarray(plain.c) @ np.array([1, 1j]), 1e-12)


def test_least_squares_without_enough_digits_in_the_normal_equations() -> None:
    # Between the last knots there is nearly no weight: the condition number is 1e9.
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 0.8, 60))
    t = np.concatenate([[0.0] * 4, [0.25, 0.5, 0.75], [1.0] * 4])
    y = np.sin(5 * x)
    with fxflow.config.override(x64=True):
        exact = want.make_lsq_spline(x, y, t, 3)
        got = interpolate.make_lsq_spline(x, y, t, 3)
        rest = [np.linalg.norm(f(x) - y) for f in (exact, got)]
        assert abs(rest[1] - rest[0]) < 1e-9
