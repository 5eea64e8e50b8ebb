"""Networks as types, and the devices that the tests plan for."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import nn
from fxflow import numpy as fnp
from fxflow.dataflow.costs import Costs, Link, Rates, kind_of

Params = dict[str, Any]


def struct(*shape: int, dtype: str = "float32") -> fxflow.ShapeDtypeStruct:
    """The type of an array."""
    return fxflow.ShapeDtypeStruct(shape, dtype)


def accelerator(
    latency: float = 1e-6, bandwidth: float = 2e11, operation: float = 4e-6
) -> Costs:
    """CPU devices that compute as an accelerator does, with links of some speed."""
    flops = {"dot": 3e14, "elementwise": 2e12}
    rates = Rates(flops, {"elementwise": 2.5e12}, 1e-5, operation, 1e-5)
    kind = kind_of(fxflow.devices("cpu")[0])
    return Costs(rates={kind: rates}, links={"cpu cpu": Link(latency, bandwidth)})


# -- a perceptron ----------------------------------------------------------------------


def perceptron(params: Params, x: Any) -> Any:
    """Two layers."""
    return nn.gelu(x @ params["up"] + params["bias"]) @ params["down"]


def perceptron_loss(params: Params, x: Any, y: Any) -> Any:
    """The mean squared error."""
    return fnp.mean((perceptron(params, x) - y) ** 2)


def perceptron_step(params: Params, x: Any, y: Any) -> Any:
    """One step of gradient descent."""
    value, gradients = fxflow.value_and_grad(perceptron_loss)(params, x, y)
    return fxflow.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def perceptron_types(width: int, hidden: int) -> Params:
    """Types of its parameters."""
    return {
        "up": struct(width, hidden),
        "bias": struct(hidden),
        "down": struct(hidden, width),
    }


# -- a transformer ---------------------------------------------------------------------


def block(params: Params, x: Any) -> Any:
    """Attention and a perceptron."""
    normal = nn.standardize(x)
    q, k, v = fnp.einsum("bsd,cdhe->cbshe", normal, params["qkv"])
    seen = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + fnp.einsum("bshe,hed->bsd", seen, params["out"])
    return x + nn.gelu(nn.standardize(x) @ params["up"]) @ params["down"]


def transformer(params: Params, tokens: Any) -> Any:
    """Logits; the embedding is the last layer, too."""
    x = params["tokens"][tokens] + params["places"]
    for layer in params["blocks"]:
        x = block(layer, x)
    return nn.standardize(x) @ params["tokens"].T


def loss(params: Params, tokens: Any) -> Any:
    """The mean cross-entropy of the next token."""
    logits = transformer(params, tokens[:, :-1])
    right = nn.one_hot(tokens[:, 1:], logits.shape[-1])
    return -fnp.mean(fnp.sum(nn.log_softmax(logits) * right, -1))


def step(params: Params, tokens: Any) -> Any:
    """One step of gradient descent."""
    value, gradients = fxflow.value_and_grad(loss)(params, tokens)
    return fxflow.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def transformer_types(
    layers: int, width: int, heads: int, hidden: int, vocabulary: int, length: int
) -> Params:
    """Types of its parameters."""
    size = width // heads
    layer = {
        "qkv": struct(3, width, heads, size),
        "out": struct(heads, size, width),
        "up": struct(width, hidden),
        "down": struct(hidden, width),
    }
    return {
        "tokens": struct(vocabulary, width),
        "places": struct(length, width),
        "blocks": [dict(layer) for _ in range(layers)],
    }


def token_types(count: int, length: int) -> fxflow.ShapeDtypeStruct:
    """The type of a batch of sequences."""
    return struct(count, length, dtype="int32")


# -- experts ---------------------------------------------------------------------------


def experts(params: Params, x: Any) -> Any:
    """A layer whose tokens go to one of several perceptrons each, by a mask."""
    chosen = nn.one_hot(fnp.argmax(x @ params["gate"], -1), params["gate"].shape[1])
    inputs = fnp.einsum("te,td->etd", chosen, x)
    hidden = nn.relu(fnp.einsum("etd,edh->eth", inputs, params["up"]))
    return fnp.einsum("eth,ehd,te->td", hidden, params["down"], chosen)
