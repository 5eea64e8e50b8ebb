"""Activations, layers and losses by PyTorch's formulas, in NumPy's float64.

Values and slopes at small, large and ordinary numbers; layers at 16 bits, with numbers
whose squares have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import nn
from fxflow import numpy as fnp
from fxflow.optim import losses
from tests.sweeps.sampling import sample

X = np.float32([0, 1e-30, 1e-12, 1e-5, 0.01, 0.3, 0.9, 1.5, 2.9, 4, 7, 15, 40, 80])
X = np.concatenate([-X[1:], X])
_erf = np.vectorize(math.erf)
_erfc = np.vectorize(math.erfc)


def _sigmoid(x: Any) -> Any:
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x)))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def _mish_slope(x: Any) -> Any:
    t = np.tanh(_softplus(x))
    return t + x * (1 - t) * (1 + t) * _sigmoid(x)


def _gelu_slope(x: Any) -> Any:
    return 0.5 * _erfc(-x / 2**0.5) + x * np.exp(-x * x / 2) / (2 * np.pi) ** 0.5


LAMBDA, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

#: The function, its values and its slopes.
ACTIVATIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "celu": (
        lambda x: nn.celu(x, 0.5),
        lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0) / 0.5)),
        lambda x: np.where(x > 0, 1, np.exp(np.minimum(x, 0) / 0.5)),
    ),
    "elu": (
        lambda x: nn.elu(x, 0.5),
        lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0))),
        lambda x: np.where(x > 0, 1, 0.5 * np.exp(np.minimum(x, 0))),
    ),
    "gelu": (
        lambda x: nn.gelu(x, approximate=False),
        lambda x: x * 0.5 * _erfc(-x / 2**0.5),
        _gelu_slope,
    ),
    "leaky_relu": (
        lambda x: nn.leaky_relu(x, 0.2),
        lambda x: np.where(x >= 0, x, 0.2 * x),
        lambda x: np.where(x >= 0, 1, 0.2),
    ),
    "log_sigmoid": (
        nn.log_sigmoid,
        lambda x: -_softplus(-x),
        lambda x: _sigmoid(-x),
    ),
    "mish": (nn.mish, lambda x: x * np.tanh(_softplus(x)), _mish_slope),
    "selu": (
        nn.selu,
        lambda x: LAMBDA * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
        lambda x: LAMBDA * np.where(x > 0, 1, ALPHA * np.exp(np.minimum(x, 0))),
    ),
    "sigmoid": (
        nn.sigmoid,
        _sigmoid,
        lambda x: _sigmoid(x) * _sigmoid(-x),
    ),
    "silu": (
        nn.silu,
        lambda x: x * _sigmoid(x),
        lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x)),
    ),
    "soft_sign": (
        nn.soft_sign,
        lambda x: x / (1 + abs(x)),
        lambda x: 1 / (1 + abs(x)) ** 2,
    ),
    "softplus": (nn.softplus, _softplus, _sigmoid),
    "tanh": (nn.tanh, np.tanh, lambda x: 4 * _sigmoid(2 * x) * _sigmoid(-2 * x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    function, value, slope = ACTIVATIONS[name]
    wide = X.astype(np.float64)
    close = {"rtol": 3e-6, "atol": 1e-37}
    np.testing.assert_allclose(function(X), value(wide), **close)
    found = fxflow.jit(fxflow.grad(lambda x: fnp.sum(function(x))))(X)
    # At 0 itself each slope of a kink is one.
    away = X != 0 if name in ("celu", "elu", "selu") else slice(None)
    np.testing.assert_allclose(found[away], slope(wide)[away], **close)


# -- layers ----------------------------------------------------------------------------

_rng = np.random.default_rng(4)
IMAGES = _rng.normal(size=(4, 3, 5, 6))
SCALE, BIAS = _rng.normal(size=6), _rng.normal(size=6)


def _normal(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * SCALE + BIAS


def _by_groups(x: Any, groups: int) -> Any:
    split = x.reshape(4, 15, groups, 6 // groups)
    mean, var = split.mean((1, 3), keepdims=True), split.var((1, 3), keepdims=True)
    return ((split - mean) / np.sqrt(var + 1e-5)).reshape(x.shape) * SCALE + BIAS


NORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "layer": (nn.layer_norm, lambda x: _normal(x, -1)),
    "group": (lambda p, x: nn.group_norm(p, x, 3), lambda x: _by_groups(x, 3)),
    "instance": (nn.instance_norm, lambda x: _by_groups(x, 6)),
    "batch": (
        lambda p, x: nn.batch_norm(p, nn.batch_norm_state(6), x, training=True)[1],
        lambda x: _normal(x, (0, 1, 2)),
    ),
    "rms": (
        lambda p, x: nn.rms_norm({"scale": p["scale"]}, x),
        lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * SCALE,
    ),
}
CASES = [
    (name, size, dtype)
    for name in NORMS
    for size in (1e-3, 1.0, 1e3)
    for dtype in ("float16", "bfloat16", "float32")
]


@pytest.mark.parametrize(("name", "size", "dtype"), sample(CASES, 40, "norms"))
def test_normalisation(name: str, size: float, dtype: str) -> None:
    function, formula = NORMS[name]
    digits = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5}[dtype]
    x = fnp.array((IMAGES + 1) * size, dtype)
    params = {"scale": fnp.array(SCALE), "bias": fnp.array(BIAS)}
    wide = np.asarray(x, np.float64)
    found = np.asarray(function(params, x), np.float64)
    np.testing.assert_allclose(found, formula(wide), rtol=digits, atol=digits)


# -- losses ----------------------------------------------------------------------------

_A, _B = _rng.normal(size=(5, 7)), _rng.normal(size=(5, 7))
_P = _rng.dirichlet(np.ones(7), 5)
_Y = _rng.integers(0, 7, 5)
_LOG_P = _A - np.log(np.exp(_A).sum(-1, keepdims=True))


def _smooth_l1(a: Any, b: Any, beta: float) -> Any:
    e = abs(a - b)
    return np.where(e < beta, e * e / (2 * beta), e - beta / 2)


def _smoothed(share: float) -> Any:
    one = np.eye(7)[_Y] * (1 - share) + share / 7
    return -(one * _LOG_P).sum(-1)


def _cosine(a: Any, b: Any) -> Any:
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / lengths


def _distance(a: Any, b: Any) -> Any:
    return np.linalg.norm(a - b, axis=-1)


#: What fxflow gives, and the formula, which is PyTorch's if it has such a function.
LOSSES: dict[str, tuple[Callable[..., Any], Any]] = {
    "huber_loss": (
        lambda a, b, p: losses.huber_loss(a, b, delta=0.7),
        0.7 * _smooth_l1(_A, _B, 0.7),
    ),
    "smooth_l1_loss": (
        lambda a, b, p: losses.huber_loss(a, b, delta=0.7) / 0.7,
        _smooth_l1(_A, _B, 0.7),
    ),
    "mse_loss": (lambda a, b, p: losses.squared_error(a, b), (_A - _B) ** 2),
    "binary_cross_entropy_with_logits": (
        lambda a, b, p: losses.sigmoid_binary_cross_entropy(a, p),
        (1 - _P) * _A + _softplus(-_A),
    ),
    "cross_entropy": (
        lambda a, b, p: losses.softmax_cross_entropy_with_integer_labels(a, _Y),
        _smoothed(0.0),
    ),
    "cross_entropy-smoothed": (
        lambda a, b, p: losses.softmax_cross_entropy(
            a, losses.smooth_labels(nn.one_hot(_Y, 7), 0.1)
        ),
        _smoothed(0.1),
    ),
    "cross_entropy-probabilities": (
        lambda a, b, p: losses.softmax_cross_entropy(a, p),
        -(_P * _LOG_P).sum(-1),
    ),
    "kl_div": (
        lambda a, b, p: losses.kl_divergence(nn.log_softmax(a), p),
        (_P * (np.log(_P) - _LOG_P)).sum(-1),
    ),
    "cosine_similarity": (
        lambda a, b, p: losses.cosine_similarity(a, b, epsilon=1e-8),
        _cosine(_A, _B),
    ),
    "triplet_margin_loss": (
        lambda a, b, p: losses.triplet_margin_loss(a, b, p, eps=0.0),
        np.maximum(_distance(_A, _B) - _distance(_A, _P) + 1, 0),
    ),
    "hinge": (
        lambda a, b, p: losses.hinge_loss(a, np.sign(_B).astype("float32")),
        np.maximum(1 - _A * np.sign(_B), 0),
    ),
    "crammer_singer": (
        lambda a, b, p: losses.multiclass_hinge_loss(a, _Y),
        (_A + 1 - np.eye(7)[_Y]).max(-1) - _A[np.arange(5), _Y],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    function, expected = LOSSES[name]
    arrays = [x.astype(np.float32) for x in (_A, _B, _P)]
    for f in (function, fxflow.jit(function)):
        np.testing.assert_allclose(f(*arrays), expected, rtol=1e-5, atol=1e-6)
