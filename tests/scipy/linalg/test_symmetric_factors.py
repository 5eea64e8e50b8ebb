"""Factors of indefinite matrices, against LAPACK's and in derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("kind", ["real", "hermitian", "symmetric"])
def test_factors_are_those_of_lapack(n: int, lower: bool, kind: str) -> None:
    """Also with a diagonal of 0, where blocks of size 2 are needed."""
    a = RNG.normal(size=(n, n))
    if kind != "real":
        a = a + 1j * RNG.normal(size=(n, n))
    hermitian = kind != "symmetric"
    a = a + (a.conj().T if hermitian else a.T)
    if n > 2:
        np.fill_diagonal(a, 0)
    want = scipy.linalg.ldl(a, lower, hermitian)
    # The other triangle is not read.
    part = (np.tril if lower else np.triu)(a)
    with fxflow.config.override(x64=True):
        factor, diagonal, order = linalg.ldl(part, lower, hermitian)
    np.testing.assert_allclose(factor, want[0], 1e-9, 1e-11)
    np.testing.assert_allclose(diagonal, want[1], 1e-9, 1e-11)
    np.testing.assert_array_equal(order, want[2])


def test_derivatives_at_blocks_of_two() -> None:
    a, move = RNG.normal(size=(2, 4, 4))
    a, move = a + a.T, move + move.T
    np.fill_diagonal(a, 0)
    with fxflow.config.override(x64=True):

        def total(t: fxflow.Array) -> fxflow.Array:
            factor, diagonal, _ = linalg.ldl(a + t * move)
            return fnp.sum(fnp.sin(factor)) + fnp.sum(fnp.cos(diagonal))

        h = 1e-6
        want = (float(total(h)) - float(total(-h))) / (2 * h)
        assert float(fxflow.grad(total)(0.0)) == pytest.approx(want, rel=1e-5)
        slope = fxflow.grad(total)
        second = (float(slope(h)) - float(slope(-h))) / (2 * h)
        assert float(fxflow.grad(slope)(0.0)) == pytest.approx(second, rel=1e-5)


def test_batches_empty_matrices_and_shapes() -> None:
    a = RNG.normal(size=(2, 3, 4, 4)).astype("f")
    factor, diagonal, order = fxflow.jit(linalg.ldl)(a)
    assert factor.shape == diagonal.shape == a.shape and order.shape == (2, 3, 4)
    low = np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)
    whole = factor @ diagonal @ fnp.matrix_transpose(factor)
    np.testing.assert_allclose(whole, low, 1e-3, 1e-4)
    assert linalg.ldl(np.zeros((0, 0)))[2].shape == (0,)
    with pytest.raises(ShapeError, match="ldl: takes square matrices"):
        linalg.ldl(np.zeros((2, 3)))
