"""Losses against optax; special cases and slopes."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.optim import losses
from tests.optim.golden import DATA, LOSS_INPUTS

LOSSES = DATA["losses"]
P, T = LOSS_INPUTS["p"], LOSS_INPUTS["t"]


@pytest.mark.parametrize("name", LOSSES)
def test_as_optax(name: str) -> None:
    value = LOSSES[name]
    out = eval(value["call"], {"L": losses, **LOSS_INPUTS})
    assert list(out.shape) == value["shape"]
    np.testing.assert_allclose(
        np.asarray(out).ravel(), value["values"], rtol=1e-5, atol=2e-6
    )


def test_large_logits() -> None:
    logits = np.array([[1e4, 0.0], [0.0, 1e4]], np.float32)
    labels = np.array([0, 0])
    integer = losses.softmax_cross_entropy_with_integer_labels
    np.testing.assert_allclose(integer(logits, labels), [0.0, 1e4])
    binary = losses.sigmoid_binary_cross_entropy
    np.testing.assert_allclose(binary(np.array([1e4, -1e4]), 1.0), [0.0, 1e4])
    np.testing.assert_allclose(losses.log_cosh(np.array([1e4])), [1e4 - np.log(2)])


def test_integer_and_dense_labels_agree() -> None:
    labels = np.array([[1, 0], [3, 2]])
    logits = np.random.default_rng(0).normal(size=(2, 2, 4)).astype(np.float32)
    dense = fxflow.nn.one_hot(labels, 4)
    integer = losses.softmax_cross_entropy_with_integer_labels
    np.testing.assert_allclose(
        integer(logits, labels), losses.softmax_cross_entropy(logits, dense), rtol=1e-5
    )
    moved = np.moveaxis(logits, -1, 0)
    np.testing.assert_allclose(
        integer(moved, labels, axis=0), integer(logits, labels), rtol=1e-5
    )
    slope = fxflow.grad(lambda x: integer(x, labels).sum())(logits)
    want = np.asarray(fxflow.nn.softmax(logits)) - np.asarray(dense)
    np.testing.assert_allclose(slope, want, atol=1e-6)


def test_slopes_at_special_points() -> None:
    zero = np.zeros(3, np.float32)

    def similarity(x: Any) -> Any:
        return losses.cosine_similarity(x, zero + 1, epsilon=1e-3)

    assert np.isfinite(np.asarray(fxflow.grad(similarity)(zero))).all()

    def divergence(y: Any) -> Any:
        return losses.kl_divergence(np.log(np.full(3, 1 / 3, np.float32)), y)

    assert np.isfinite(np.asarray(fxflow.grad(divergence)(zero))).all()
    slopes = fxflow.vmap(fxflow.grad(losses.huber_loss))(np.array([-3.0, 0.5, 1.0]))
    np.testing.assert_allclose(slopes, [-1.0, 0.5, 1.0])


def test_errors() -> None:
    with pytest.raises(
        ShapeError, match=r"must have one shape, got f32\[3,4\] and f32"
    ):
        losses.l2_loss(P, T[:1])
    with pytest.raises(
        DtypeError, match=r"l2_loss: predictions must be floats, got i32"
    ):
        losses.l2_loss(np.arange(3), np.arange(3))
    with pytest.raises(ArgumentError, match=r"predictions is .* of type list"):
        losses.huber_loss([1.0])
    integer = losses.softmax_cross_entropy_with_integer_labels
    with pytest.raises(ShapeError, match=r"labels must have the shape of the logits"):
        integer(P, np.arange(4))
    with pytest.raises(DtypeError, match=r"labels must be integers, got f32\[3,4\]"):
        integer(P, T)
    with pytest.raises(AxisError, match=r"there is no axis 2 in logits f32\[3,4\]"):
        integer(P, np.arange(3), axis=2)
    with pytest.raises(AxisError, match=r"smooth_labels: there is no axis 5"):
        losses.smooth_labels(P, 0.1, axis=5)
