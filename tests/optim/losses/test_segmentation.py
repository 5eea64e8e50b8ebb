"""Losses of overlap, compared with optax 0.2.8."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, ShapeError
from fxflow.optim import losses

_rng = np.random.default_rng(0)
X = _rng.normal(size=(2, 2, 3, 4)).astype(np.float32)
Y = np.eye(4, dtype=np.float32)[_rng.integers(0, 4, (2, 2, 3))]
B = np.float32([[0.3, -1, 2], [1, 0.5, -0.2]])[..., None]
T = np.float32([[1, 0, 1], [0, 1, 1]])[..., None]
EACH = [
    [0.4595565, 0.5587685, 0.4391521, 0.4983147],
    [0.5648209, 0.4535707, 0.4133684, 0.3821407],
]
WEIGHTS = np.float32([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, [0.4889479, 0.4534752]),
        ({"reduction": "none"}, EACH),
        ({"reduction": "sum"}, [1.9557917, 1.8139007]),
        ({"class_weights": WEIGHTS}, [1.2219522, 1.0601575]),
        ({"alpha": 0.3, "beta": 0.7, "smooth": 0.1}, [0.7839425, 0.7296515]),
        (
            {"ignore_background": True, "reduction": "none"},
            [EACH[0][1:], EACH[1][1:]],
        ),
        (
            {"axis": (0, 1, 2), "reduction": "none"},
            [0.6348984, 0.636237, 0.5980161, 0.5296586],
        ),
    ],
)
def test_dice_losses_match_optax(options: dict[str, Any], want: Any) -> None:
    out = losses.dice_loss(X, Y, **options)
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_losses_of_each_class_and_without_softmax() -> None:
    assert losses.dice_loss(X, Y, axis=1, reduction="none").shape == (2, 3, 4)
    flat = losses.dice_loss(X[0, 0], Y[0, 0], reduction="none")
    np.testing.assert_allclose(
        flat[0], [0.2399346, 0.0802981, 0.158988, 0.0996338], 1e-5
    )
    p = np.asarray(nn.softmax(X))
    plain = losses.dice_loss(p, Y, apply_softmax=False)
    np.testing.assert_allclose(plain, [0.4889479, 0.4534752], rtol=1e-5)
    many = fxflow.jit(fxflow.vmap(losses.dice_loss))(X[None], Y[None])
    np.testing.assert_allclose(many[0], plain, rtol=1e-5)
    with pytest.raises(ShapeError, match="dice_loss: expected arrays of one shape"):
        losses.dice_loss(X, Y[:1])
    with pytest.raises(ArgumentError, match='"mean", "sum" or "none", got \'x\''):
        losses.dice_loss(X, Y, reduction="x")


def test_generalized_dice_losses_match_optax() -> None:
    loss = losses.multiclass_generalized_dice_loss
    np.testing.assert_allclose(loss(X, Y), 0.4262603, rtol=1e-5)
    some = loss(X, Y, smooth=0.1, ignore_background=True)
    np.testing.assert_allclose(some, 1.1749824, rtol=1e-5)
    assert np.isfinite(np.asarray(fxflow.grad(loss)(X, Y))).all()
    # Now all classes occur in the batch.
    full = np.eye(4, dtype=np.float32)[np.arange(12).reshape(2, 2, 3) % 4]
    np.testing.assert_allclose(loss(X, full), 0.4464972, rtol=1e-5)


def test_binary_dice_losses_match_optax() -> None:
    want = [0.1421517, 0.2857553]
    for x, y in ((B, T), (B[..., 0], T[..., 0])):
        np.testing.assert_allclose(losses.binary_dice_loss(x, y), want, rtol=1e-5)
    p = np.asarray(nn.sigmoid(B))
    plain = losses.binary_dice_loss(p, T, apply_sigmoid=False)
    np.testing.assert_allclose(plain, want, rtol=1e-5)
    sharp = losses.binary_dice_loss(B, T, smooth=0.0)
    np.testing.assert_allclose(sharp, [0.2184915, 0.4360071], rtol=1e-5)
    vector = losses.binary_dice_loss(B[0, :, 0], T[0, :, 0])
    np.testing.assert_allclose(vector, [0.1190556, 0.1185316, 0.0307161], rtol=1e-5)


def test_classes_without_points_have_finite_losses() -> None:
    x = fnp.zeros((1, 4, 2))
    cost = lambda p: losses.dice_loss(p, x, smooth=0.0, apply_softmax=False)
    assert cost(x).tolist() == [0.0]
    assert np.isfinite(np.asarray(fxflow.grad(lambda p: cost(p)[0])(x))).all()
    # In float16 the weight of a class without points, 1 / 1e-7, would overflow.
    narrow = losses.multiclass_generalized_dice_loss(*[x.astype("float16")] * 2)
    assert np.isfinite(float(narrow))
