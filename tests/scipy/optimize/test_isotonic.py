"""Isotonic regression beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import optimize


@pytest.mark.parametrize("increasing", [True, False])
def test_blocks_are_those_of_scipy(increasing: bool) -> None:
    rng = np.random.default_rng(5)
    with fxflow.config.override(x64=True):
        run = fxflow.jit(
            lambda y, w: optimize.isotonic_regression(
                y, weights=w, increasing=increasing
            )
        )
        for k in range(6):
            y = np.round(rng.normal(size=9) + 0.1 * k * np.arange(9), 1)
            w = rng.uniform(0.5, 2, 9)
            got = run(y, w)
            exact = want.isotonic_regression(y, weights=w, increasing=increasing)
            np.testing.assert_allclose(got.x, exact.x, 1e-12)
            count = int(got.number)
            np.testing.assert_array_equal(got.blocks[: count + 1], exact.blocks)
            np.testing.assert_allclose(got.weights[:count], exact.weights)
            assert bool((got.blocks[count:] == 9).all())


def test_many_rounds_and_long_blocks() -> None:
    rng = np.random.default_rng(6)
    steps = np.arange(150.0)
    # Each round pools one element more with the last one: a stack goes on.
    slow = np.append(steps, -8000.0)
    noisy = np.sin(np.append(steps, 150.0) / 40) + rng.normal(size=151)
    both = np.where(np.append(steps, 150.0) < 60, noisy, slow)
    with fxflow.config.override(x64=True):
        run = fxflow.jit(optimize.isotonic_regression)
        for y in (slow, noisy, both, -steps[:151].repeat(2)[:151], both[::-1]):
            got, exact = run(y), want.isotonic_regression(y)
            np.testing.assert_allclose(got.x, exact.x, 1e-11, 1e-11)
            count = int(got.number)
            np.testing.assert_array_equal(got.blocks[: count + 1], exact.blocks)
            np.testing.assert_allclose(got.weights[:count], exact.weights)
            assert bool((got.blocks[count:] == 151).all())


def test_derivatives_are_those_of_the_means() -> None:
    y = fnp.asarray([1.0, 3.0, 2.0, 4.0])
    slope = fxflow.jacrev(lambda y: optimize.isotonic_regression(y).x)(y)
    pooled = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(slope, pooled)
    rows = fxflow.vmap(lambda y: optimize.isotonic_regression(y).x)(
        fnp.stack([y, y[::-1], 0 * y])
    )
    np.testing.assert_allclose(rows, [[1, 2.5, 2.5, 4], [2.5] * 4, [0] * 4])
    assert optimize.isotonic_regression(fnp.zeros(0)).x.shape == (0,)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ShapeError, match="vectors of one length"):
        optimize.isotonic_regression([1.0, 2.0], weights=[1.0])
    with pytest.raises(DtypeError, match="y must be real"):
        optimize.isotonic_regression([1j])
    with pytest.raises(ArgumentError, match="weights must be positive"):
        optimize.isotonic_regression([1.0, 2.0], weights=[1.0, 0.0])


@pytest.mark.parametrize("increasing", [True, False])
def test_many_numbers_and_their_derivatives(increasing: bool) -> None:
    rng = np.random.default_rng(8)
    y, w = rng.normal(size=700) + np.linspace(0, 3, 700), rng.uniform(0.5, 2, 700)
    with fxflow.config.override(x64=True):
        run = lambda y, w: optimize.isotonic_regression(
            y, weights=w, increasing=increasing
        )
        got = run(y, w)
        exact = want.isotonic_regression(y, weights=w, increasing=increasing)
        np.testing.assert_allclose(got.x, exact.x, 1e-12, 1e-12)
        count = int(got.number)
        np.testing.assert_array_equal(got.blocks[: count + 1], exact.blocks)
        # Each result is the mean of its block, whose weights are the derivatives.
        slopes = fxflow.grad(lambda y: run(y, w).x[350])(fnp.asarray(y))
        block = np.searchsorted(exact.blocks, 350, side="right") - 1
        begin, end = exact.blocks[block : block + 2]
        share = np.zeros(700)
        share[begin:end] = w[begin:end] / w[begin:end].sum()
        np.testing.assert_allclose(slopes, share, 1e-12, 1e-15)
