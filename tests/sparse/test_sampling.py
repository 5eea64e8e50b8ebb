"""Products of dense arrays at the entries of a pattern."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ShapeError
from fxflow.sparse.sampling import sampled_matmul

PATTERN = sparse.random_array((5, 4), density=0.4, rng=0).pattern


def test_entries_of_a_product() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s).astype(np.float32) for s in ((5, 3), (3, 4)))
    row, col = PATTERN.coords[:2]
    got = sampled_matmul(x, y, PATTERN)
    assert got.pattern is PATTERN
    np.testing.assert_allclose(got.values, (x @ y)[row, col], rtol=1e-5)
    got = sampled_matmul(x[:, 0], y[0], PATTERN)
    np.testing.assert_allclose(got.values, x[row, 0] * y[0, col], rtol=1e-5)


def test_gradients() -> None:
    x, y = fnp.ones((5, 2)), fnp.arange(8.0).reshape(2, 4)
    row, col = PATTERN.coords[:2]

    def sparse_loss(x: fxflow.Array, y: fxflow.Array) -> fxflow.Array:
        return fnp.sum(sampled_matmul(x, y, PATTERN).values ** 3)

    def dense_loss(x: fxflow.Array, y: fxflow.Array) -> fxflow.Array:
        return fnp.sum((x @ y)[row, col] ** 3)

    got = fxflow.grad(sparse_loss, argnums=(0, 1))(x, y)
    want = fxflow.grad(dense_loss, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-4)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"not a product of the pattern's shape \[5,4\]"
    ):
        sampled_matmul(fnp.ones((5, 2)), fnp.ones((3, 4)), PATTERN)
