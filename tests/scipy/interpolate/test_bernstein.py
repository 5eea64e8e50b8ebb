"""Polynomials in Bernstein's basis beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.interpolate import BPoly, PPoly

RNG = np.random.default_rng(0)
X = np.array([0.0, 0.7, 1.0, 2.5])
C = RNG.normal(size=(5, 3, 2))
AT = np.linspace(-1, 4, 14).reshape(2, 7)


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected, 1e-9, 1e-9)


def test_polynomials_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        ours, theirs = BPoly(C, X), want.BPoly(C, X)
        close(ours(AT), theirs(AT))
        close(ours(AT, 2), theirs(AT, 2))
        close(ours(AT, 5), 0 * theirs(AT))
        close(ours(AT, extrapolate=False), theirs(AT, extrapolate=False))
        close(ours(AT, 1, "periodic"), theirs(AT, 1, "periodic"))
        close(ours.antiderivative(2)(AT), theirs.antiderivative(2)(AT))
        close(ours.derivative(-1)(AT), theirs.derivative(-1)(AT))
        for how in (True, False, "periodic"):
            close(ours.integrate(0.2, 2.2, how), theirs.integrate(0.2, 2.2, how))
        close(
            ours.integrate(3.9, -5.0, "periodic"),
            theirs.integrate(3.9, -5.0, "periodic"),
        )
        turned = np.moveaxis(C, (0, 1), (1, 2))
        close(BPoly(turned, X, axis=1)(AT), want.BPoly(turned, X, axis=1)(AT))


def test_conversions_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        close(
            BPoly.from_power_basis(PPoly(C, X)).c,
            want.BPoly.from_power_basis(want.PPoly(C, X)).c,
        )
        close(
            BPoly(C, X).to_power_basis().c,
            want.PPoly.from_bernstein_basis(want.BPoly(C, X)).c,
        )
        given: list[Any] = [[1, 2], [3, 4, 5], [2.0, 1], [1, 1.0, 4]]
        for orders in (None, 3, [3, 2, 3]):
            close(
                BPoly.from_derivatives(X, given, orders).c,
                want.BPoly.from_derivatives(X, given, orders).c,
            )
        rows = RNG.normal(size=(4, 3, 2))
        close(
            BPoly.from_derivatives(X, rows)(AT),
            want.BPoly.from_derivatives(X, rows)(AT),
        )


@pytest.mark.parametrize("kind", [BPoly, PPoly])
def test_more_intervals(kind: Any) -> None:
    with fxflow.config.override(x64=True):
        for more in (np.array([3.0, 4.0]), np.array([-2.0, -1.0])):
            theirs = getattr(want, kind.__name__)(C, X)
            # SciPy fails for lower powers before those there are.
            size = 5 if kind is PPoly and more[0] < 0 else 3
            theirs.extend(C[:size, :2], more)
            ours = kind(C, X).extend(C[:size, :2], more)
            close(ours.c, theirs.c)
            close(ours.x, theirs.x)
        assert kind(C, X).extend(C[:, :0], np.zeros(0)).c.shape == C.shape
        with pytest.raises(ArgumentError, match="ascend"):
            kind(C, X).extend(C[:, :2], np.array([0.1, 0.2]))
        with pytest.raises(ShapeError, match="each of x"):
            kind(C, X).extend(C[:, :1], np.array([5.0, 6.0]))


def test_they_have_derivatives_and_compile() -> None:
    with fxflow.config.override(x64=True):
        f = BPoly(C[..., 0], X)
        slope = fxflow.jit(fxflow.vmap(fxflow.grad(f)))(np.array([0.3, 0.8, 2.0]))
        close(slope, f(np.array([0.3, 0.8, 2.0]), 1))
        rows = RNG.normal(size=(4, 2))
        total = lambda x, y: BPoly.from_derivatives(x, y)(0.9) ** 2
        ways = RNG.normal(size=4), RNG.normal(size=(4, 2))
        got = fxflow.jit(fxflow.jvp, static_argnums=0)(total, (X, rows), ways)[1]
        ends = [
            float(total(X + e * ways[0], rows + e * ways[1])) for e in (1e-6, -1e-6)
        ]
        assert float(got) == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-5)


def test_bad_parts_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: BPoly(C[0], X), "intervals"),
        (ShapeError, lambda: BPoly(C, X[:2]), "2 intervals|1 intervals"),
        (ArgumentError, lambda: BPoly(C, X[::-1]), "ascending"),
        (ArgumentError, lambda: BPoly(C, X, "no"), "extrapolate"),
        (ArgumentError, lambda: BPoly(C, X)(AT, -1), "nu"),
        (ArgumentError, lambda: BPoly.from_power_basis(3), "PPoly"),  # type: ignore[arg-type]
        (
            ArgumentError,
            lambda: BPoly.from_derivatives(X[:2], [[1], [2]], 5),
            "takes 6",
        ),
        (ShapeError, lambda: BPoly.from_derivatives(X, [[1], [2]]), "derivatives"),
        (ShapeError, lambda: BPoly.from_derivatives(X, X), "no axis"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
