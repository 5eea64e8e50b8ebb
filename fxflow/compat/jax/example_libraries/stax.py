"""`jax.example_libraries.stax`: layers as pairs of functions.

A layer is `(init, apply)`: `shape, params = init(key, input_shape)` and
`y = apply(params, x)`. The convolutions, poolings and norms of JAX's are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import nn, random
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.nn.initializers import glorot_normal as glorot
from fxflow.nn.initializers import normal as randn

Layer = tuple[Callable[..., Any], Callable[..., Any]]


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Makes a layer `x @ W + b`."""
    init_weights, init_bias = W_init or glorot(), b_init or randn()

    def init(rng: Any, input_shape: Any) -> Any:
        first, second = random.split(rng)
        weights = init_weights(first, (input_shape[-1], out_dim))
        bias = init_bias(second, (out_dim,))
        return (*input_shape[:-1], out_dim), (weights, bias)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return fnp.dot(inputs, weights) + bias

    return init, apply


def elementwise(fun: Callable[..., Any], **options: Any) -> Layer:
    """Makes a layer of a function without parameters."""
    return (
        lambda rng, input_shape: (input_shape, ()),
        lambda params, inputs, **kwargs: fun(inputs, **options),
    )


Tanh: Layer = elementwise(fnp.tanh)
Relu: Layer = elementwise(nn.relu)
Exp: Layer = elementwise(fnp.exp)
LogSoftmax: Layer = elementwise(nn.log_softmax, axis=-1)
Softmax: Layer = elementwise(nn.softmax, axis=-1)
Softplus: Layer = elementwise(nn.softplus)
Sigmoid: Layer = elementwise(nn.sigmoid)
Elu: Layer = elementwise(nn.elu)
LeakyRelu: Layer = elementwise(nn.leaky_relu)
Selu: Layer = elementwise(nn.selu)
Gelu: Layer = elementwise(nn.gelu)
Identity: Layer = elementwise(lambda x: x)
FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanOut(num: int) -> Layer:
    """Makes a layer that gives its input several times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def serial(*layers: Layer) -> Layer:
    """Makes a layer of several, one after the other."""

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for layer_init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = layer_init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        rngs = [None] * len(layers) if rng is None else random.split(rng, len(layers))
        for (_, layer), param, key in zip(layers, params, rngs, strict=True):
            inputs = layer(param, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Makes a layer of several side by side, each with its own input."""

    def init(rng: Any, input_shape: Any) -> Any:
        rngs = random.split(rng, len(layers))
        pairs = [
            layer_init(key, shape)
            for (layer_init, _), key, shape in zip(
                layers, rngs, input_shape, strict=True
            )
        ]
        shapes, params = zip(*pairs, strict=True)
        return list(shapes), list(params)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        rngs = [None] * len(layers) if rng is None else random.split(rng, len(layers))
        rows = zip(layers, params, inputs, rngs, strict=True)
        return [layer(p, x, rng=key, **kwargs) for (_, layer), p, x, key in rows]

    return init, apply


listen(globals())
