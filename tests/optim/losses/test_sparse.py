"""Sparsemax and Fenchel-Young losses, compared with optax 0.2.8."""

import numpy as np
import pytest

import fxflow
from fxflow import nn
from fxflow.errors import DtypeError, ShapeError
from fxflow.optim import losses

X = np.float32([[3, 4, 1], [1, -2, 0.5]])


def test_binary_sparsemax_losses() -> None:
    logits = np.float32([-2, -1, -0.5, 0, 0.5, 1, 2])
    out = losses.sparsemax_loss(logits, np.array([1, 0, 1, 0, 0, 1, 0]))
    assert out.tolist() == [2, 0, 0.5625, 0.25, 0.5625, 0, 2]
    soft = losses.sparsemax_loss(np.float32([-3, 0.2, 3]), np.float32([0.2, 0.3, 0.9]))
    np.testing.assert_allclose(soft, [3, 0.16, 0], atol=1e-6)


def test_multiclass_sparsemax_losses() -> None:
    loss = losses.multiclass_sparsemax_loss
    labels = np.array([0, 1])
    np.testing.assert_allclose(loss(X, labels), [1, 3.0625], rtol=1e-6)
    slope = fxflow.jit(fxflow.grad(lambda x: loss(x, labels).sum()))(X)
    np.testing.assert_allclose(slope, [[-1, 1, 0], [0.75, -1, 0.25]], atol=1e-6)
    assert float(loss(X[0], np.array(2))) == 3.0
    assert loss(X[:0], labels[:0]).shape == (0,)
    curve = fxflow.hessian(lambda x: loss(x, np.array(0)))(X[1])
    np.testing.assert_allclose(curve[0], [0.5, 0, -0.5], atol=1e-6)
    with pytest.raises(DtypeError, match="labels must be integers"):
        loss(X, np.float32([0, 1]))
    with pytest.raises(ShapeError, match="with n > 0"):
        loss(X[:, :0], labels)


def test_fenchel_young_losses() -> None:
    p = np.asarray(nn.softmax(X))
    loss = losses.make_fenchel_young_loss(nn.logsumexp)
    np.testing.assert_allclose(loss(X[0], p[1]), 2.0513377, rtol=1e-5)
    np.testing.assert_allclose(
        fxflow.jit(loss)(X, p), [0.7138657, 0.7778697], rtol=1e-5
    )
    slope = fxflow.grad(loss)(X[0], p[1])
    np.testing.assert_allclose(slope, p[0] - p[1], atol=1e-6)
    with pytest.raises(ShapeError):
        loss(X, p[:1])
    with pytest.raises(ShapeError, match=r"expected scores \[\.\.\., n\]"):
        loss(X[0, 0], p[0, 0])
