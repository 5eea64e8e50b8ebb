"""Elementwise roots and minima beside SciPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.optimize.elementwise as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy.optimize import elementwise


def _cubic(x: Any, c: Any) -> Any:
    return x**3 - 2 * x - c


def test_roots_beside_those_of_scipy() -> None:
    c = np.array([[5.0], [1.0], [-3.0]])
    ends = np.array([-5.0, 3.0]), np.array([4.0, 7.0])
    with fxflow.config.override(x64=True):
        got = fxflow.jit(lambda c: elementwise.find_root(_cubic, ends, args=(c,)))(c)
        exact = want.find_root(_cubic, ends, args=(c,))
        assert got.x.shape == (3, 2)
        np.testing.assert_array_equal(got.success, exact.success)
        np.testing.assert_array_equal(got.status, exact.status)
        np.testing.assert_allclose(got.x, exact.x, 1e-12)
        slope = fxflow.grad(
            lambda c: elementwise.find_root(_cubic, (-5.0, 4.0), args=(c,)).x
        )(5.0)
        x = float(elementwise.find_root(_cubic, (-5.0, 4.0), args=(5.0,)).x)
        np.testing.assert_allclose(slope, 1 / (3 * x**2 - 2), 1e-9)


def test_tolerances_of_values() -> None:
    loose = elementwise.find_root(
        lambda x: x - 1, (0.0, 3.7), tolerances={"fatol": 0.5}
    )
    assert loose.success and abs(loose.f_x) <= 0.5 and loose.nit <= 3
    none = elementwise.find_root(lambda x: x * x + 1, (0.0, 1.0))
    assert none.status == -1 and fnp.isnan(none.x)
    few = elementwise.find_root(lambda x: x**9, (-1.1, 3.0), maxiter=2)
    assert few.status == -2


def test_minima_beside_those_of_scipy() -> None:
    c = np.array([0.2, 1.0, -2.0])
    bowl = lambda m: lambda x, c: m.cosh(x - c) + 0.1 * x
    with fxflow.config.override(x64=True):
        init = -8.0, 0.0, 8.0
        got = elementwise.find_minimum(bowl(fnp), init, args=(c,))
        exact = want.find_minimum(bowl(np), init, args=(c,))
        assert bool(got.success.all())
        np.testing.assert_allclose(got.x, exact.x, 1e-7)
        np.testing.assert_allclose(got.f_x, exact.f_x, 1e-12)
        slope = fxflow.grad(
            lambda c: elementwise.find_minimum(bowl(fnp), init, args=(c,)).x
        )(0.2)
        np.testing.assert_allclose(slope, 1, 1e-6)
        bad = elementwise.find_minimum(bowl(fnp), (1.0, 2.0, 3.0), args=(0.0,))
        assert bad.status == -1


def test_callbacks_of_roots_and_minima() -> None:
    seen: list[Any] = []
    c = fnp.array([2.0, 9.0])

    @fxflow.jit
    def root(c: Any) -> Any:
        return elementwise.find_root(
            lambda x, c: x**2 - c, (0.0, 4.0), args=(c,), callback=seen.append
        )

    found = root(c)
    assert len(seen) == int(found.nit.max()) + 1
    assert seen[0].nit.tolist() == [0, 0] and seen[0].status.tolist() == [1, 1]
    np.testing.assert_array_equal(seen[-1].x, found.x)
    np.testing.assert_array_equal(seen[-1].nfev, found.nfev)
    seen.clear()
    low = elementwise.find_minimum(
        lambda x, c: (x - c) ** 2, (-9.0, 0.0, 9.0), args=(c / 3,), callback=seen.append
    )
    assert len(seen) == int(low.nit.max()) + 1
    np.testing.assert_array_equal(seen[-1].x, low.x)
    np.testing.assert_array_equal(seen[-1].nfev, low.nfev)
    assert all(bool(fnp.all(b.f_x <= a.f_x)) for a, b in itertools.pairwise(seen))
    with pytest.raises(ArgumentError, match="find_root: callback must be a function"):
        elementwise.find_root(fnp.sin, (3.0, 4.0), callback=3)  # type: ignore[arg-type]


def test_brackets_of_roots() -> None:
    c = np.array([3.0, 30.0, -200.0, 0.5])
    with fxflow.config.override(x64=True):
        for settings in ({}, {"xmin": -500.0}, {"xmin": -500.0, "xmax": 400.0}):
            got = elementwise.bracket_root(
                lambda x, c: x - c, 0.0, args=(c,), **settings
            )
            assert bool(got.success.all())
            low, high = got.bracket
            assert bool(fnp.all((low <= c) & (c <= high)))
            np.testing.assert_allclose(got.f_bracket[0], low - c)
            exact = want.bracket_root(lambda x, c: x - c, 0.0, args=(c,), **settings)
            np.testing.assert_allclose(got.bracket, exact.bracket)
        outside = elementwise.bracket_root(
            lambda x: x - 9, 0.0, 1.0, xmax=5.0, maxiter=60
        )
        assert outside.status == -2
        assert elementwise.bracket_root(lambda x: x, 2.0, 1.0).status == -1


def test_brackets_of_minima() -> None:
    c = np.array([3.0, 30.0, -200.0, 0.1])
    bowl = lambda x, c: (x - c) ** 2
    with fxflow.config.override(x64=True):
        for settings in ({}, {"xmin": -300.0}, {"xmin": -300.0, "xmax": 400.0}):
            got = elementwise.bracket_minimum(bowl, 0.0, args=(c,), **settings)
            assert bool(got.success.all())
            low, middle, high = got.bracket
            assert bool(fnp.all((low < c) & (c < high)))
            assert bool(fnp.all((low < middle) & (middle < high)))
            found = elementwise.find_minimum(bowl, got.bracket, args=(c,))
            np.testing.assert_allclose(found.x, c, 1e-6)
        fall = elementwise.bracket_minimum(lambda x: -x, 0.0, xmax=5.0, maxiter=60)
        assert fall.status == -2


def test_bad_problems_are_refused() -> None:
    with pytest.raises(ArgumentError, match="init must be a pair"):
        elementwise.find_root(fnp.sin, (1.0,))
    with pytest.raises(ArgumentError, match="init must be three points"):
        elementwise.find_minimum(fnp.sin, (1.0, 2.0))
    with pytest.raises(ArgumentError, match="tolerances are xatol, xrtol, fatol"):
        elementwise.find_root(fnp.sin, (3.0, 4.0), tolerances={"tol": 1.0})
    with pytest.raises(ArgumentError, match="must not be negative"):
        elementwise.find_minimum(fnp.cos, (3.0, 4.0, 5.0), tolerances={"xatol": -1.0})
    with pytest.raises(DtypeError, match="expected real numbers"):
        elementwise.bracket_root(fnp.sin, 1j)
    with pytest.raises(ShapeError, match="f must return"):
        elementwise.bracket_minimum(lambda x: fnp.ones(3), 1.0)
