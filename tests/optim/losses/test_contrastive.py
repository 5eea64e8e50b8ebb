"""Contrastive losses, compared with optax 0.2.8."""

import numpy as np
import pytest

import fxflow
from fxflow.errors import ShapeError
from fxflow.optim.losses import ntxent

X = np.float32([[1, 2], [2, 1], [-1, 0.5], [0.3, 0.4], [1, -1]])
LABELS = np.array([0, 0, 1, 1, 2])


def test_numbers_match_optax() -> None:
    np.testing.assert_allclose(ntxent(X, LABELS), 5.9408741, rtol=1e-5)
    other = fxflow.jit(ntxent)(X, np.array([0, 0, 1, 1, 0]), 0.5)
    np.testing.assert_allclose(other, 1.4501507, rtol=1e-5)
    slope = fxflow.grad(ntxent)(X, LABELS)
    want = [[-2.3671351, 1.1835678], [0.4168092, -0.8336184]]
    np.testing.assert_allclose(slope[:2], want, rtol=1e-4)
    many = fxflow.vmap(ntxent, (0, None))(np.stack([X, X]), LABELS)
    np.testing.assert_allclose(many, [5.9408741] * 2, rtol=1e-5)


def test_ntxent_of_zero_embeddings_and_unequal_labels() -> None:
    assert abs(float(ntxent(X, 0 * LABELS))) < 1e-6
    assert np.isnan(float(ntxent(X, np.arange(5))))
    with_zero = np.concatenate([X[:1] * 0, X[1:]])
    np.testing.assert_allclose(ntxent(with_zero, LABELS), 8.0318985, rtol=1e-5)
    assert np.isfinite(np.asarray(fxflow.grad(ntxent)(with_zero, LABELS))).all()
    assert np.isfinite(np.asarray(fxflow.grad(ntxent)(X, 0 * LABELS))).all()
    with pytest.raises(ShapeError, match=r"labels \[n\], got f32\[5,2\]"):
        ntxent(X, LABELS[:4])
