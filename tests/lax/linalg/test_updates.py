"""Factors of matrices that change, and products with themselves."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax import linalg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 5, 5))
SPD = A @ np.swapaxes(A, -1, -2) + np.eye(5)
R = np.swapaxes(np.linalg.cholesky(SPD), -1, -2)
W = RNG.normal(size=(3, 5))


def test_cholesky_update() -> None:
    with fxflow.config.override(x64=True):
        changed = SPD + W[..., :, None] * W[..., None, :]
        expected = np.swapaxes(np.linalg.cholesky(changed), -1, -2)
        for function in (linalg.cholesky_update, fxflow.jit(linalg.cholesky_update)):
            np.testing.assert_allclose(function(R, W), expected, 1e-10, 1e-12)
        one = linalg.cholesky_update(R[0], W[0])
        np.testing.assert_allclose(one, expected[0], 1e-10, 1e-12)
        each = fxflow.vmap(linalg.cholesky_update)(R, W)
        np.testing.assert_allclose(each, expected, 1e-10, 1e-12)
        total = lambda w: (linalg.cholesky_update(R, w) ** 2).sum()
        # Its square is the trace of the changed matrices.
        np.testing.assert_allclose(fxflow.grad(total)(W), 2 * W, 1e-9)
    assert not linalg.cholesky_update(fnp.zeros((2, 2)), fnp.zeros(2)).any()
    assert linalg.cholesky_update(fnp.zeros((0, 0)), fnp.zeros(0)).shape == (0, 0)


def test_symmetric_product() -> None:
    b = RNG.normal(size=(3, 5, 2))
    with fxflow.config.override(x64=True):
        got = linalg.symmetric_product(b, SPD, alpha=2.0, beta=0.5)
        expected = 2 * b @ np.swapaxes(b, -1, -2) + SPD / 2
        np.testing.assert_allclose(got, expected, 1e-12)
        even = linalg.symmetric_product(b, A, beta=1.0, symmetrize_output=True)
        np.testing.assert_array_equal(even, np.swapaxes(even, -1, -2))
        full = np.tril(b @ np.swapaxes(b, -1, -2) + A)
        np.testing.assert_allclose(np.tril(even), full, 1e-12)
        slope = fxflow.grad(lambda b: linalg.symmetric_product(b, SPD).sum())(b)
        np.testing.assert_allclose(slope, 2 * b.sum(1)[:, None].repeat(5, 1))


def test_operands_of_a_wrong_shape_or_dtype_are_refused() -> None:
    x = fnp.ones((2, 2))
    with pytest.raises(ShapeError, match="vector"):
        linalg.cholesky_update(x, fnp.ones(3))
    with pytest.raises(DtypeError, match="same"):
        linalg.cholesky_update(x, fnp.ones(2, complex))
    with pytest.raises(DtypeError, match="real"):
        linalg.symmetric_product(x * 1j, x * 1j)
    with pytest.raises(ShapeError, match="c_matrix"):
        linalg.symmetric_product(fnp.ones((3, 2)), x)
    with pytest.raises(DtypeError):
        linalg.symmetric_product(x.astype(int), x.astype(int))
