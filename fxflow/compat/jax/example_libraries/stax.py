"""`jax.example_libraries.stax`: layers as pairs of functions.

A layer is `(init, apply)`: `shape, params = init(key, input_shape)` and
`y = apply(params, x)`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import ShapeDtypeStruct, eval_shape, lax, nn, random
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.nn import elu as elu
from fxflow.nn import gelu as gelu
from fxflow.nn import leaky_relu as leaky_relu
from fxflow.nn import log_softmax
from fxflow.nn import relu as relu
from fxflow.nn import selu as selu
from fxflow.nn import sigmoid as sigmoid
from fxflow.nn import softmax as softmax
from fxflow.nn import softplus as softplus
from fxflow.nn import standardize as standardize
from fxflow.nn.initializers import glorot_normal, normal, ones, zeros

glorot: Callable[..., Any] = glorot_normal
randn: Callable[..., Any] = normal
logsoftmax: Callable[..., Any] = log_softmax

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


# -- convolutions ----------------------------------------------------------------------


def _shape_of(apply: Callable[..., Any], *shapes: Any) -> tuple[int, ...]:
    """Returns the shape of a result for float arrays of these shapes."""
    structs = [ShapeDtypeStruct(tuple(shape), fnp.float32) for shape in shapes]
    return tuple(eval_shape(apply, *structs).shape)


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    init_weights = W_init or glorot(rhs.index("I"), rhs.index("O"))
    init_bias = b_init or randn(1e-6)
    bias_shape = [out_chan if c == "C" else 1 for c in out]

    def run(inputs: Any, weights: Any) -> Any:
        return convolve(
            inputs, weights, steps, padding, dimension_numbers=dimension_numbers
        )

    def init(rng: Any, input_shape: Any) -> Any:
        sizes = iter(filter_shape)
        named = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        shape = tuple(named[c] if c in named else next(sizes) for c in rhs)
        first, second = random.split(rng)
        params = init_weights(first, shape), init_bias(second, bias_shape)
        return _shape_of(run, input_shape, shape), params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return run(inputs, weights) + bias

    return init, apply


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Makes a convolution, `lax.conv_general_dilated`, plus a bias."""
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides,
        padding, W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Makes a transposed convolution, `lax.conv_transpose`, plus a bias."""
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides,
        padding, W_init, b_init,
    )  # fmt: skip


_IMAGES = ("NHWC", "HWIO", "NHWC")
Conv: Callable[..., Layer] = functools.partial(GeneralConv, _IMAGES)
ConvTranspose: Callable[..., Layer] = functools.partial(GeneralConvTranspose, _IMAGES)
Conv1DTranspose: Callable[..., Layer] = functools.partial(
    GeneralConvTranspose, ("NHC", "HIO", "NHC")
)


def _pooling(
    start: float, combine: Callable[..., Any], average: bool = False
) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int],
        strides: Any = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """Makes a layer of the largest, the sums or the means of windows."""
        layout = spec or f"N{'HWD'[: len(window_shape)]}C"

        def over(sizes: Sequence[int]) -> tuple[int, ...]:
            rest = iter(sizes)
            return tuple(1 if c in "NC" else next(rest) for c in layout)

        window = over(window_shape)
        steps = over(strides or (1,) * len(window_shape))

        def run(inputs: Any) -> Any:
            def reduced(x: Any) -> Any:
                return lax.reduce_window(x, start, combine, window, steps, padding)

            out = reduced(inputs)
            return out / reduced(fnp.ones_like(inputs)) if average else out

        return (
            lambda rng, input_shape: (_shape_of(run, input_shape), ()),
            lambda params, inputs, **kwargs: run(inputs),
        )

    return pool


MaxPool: Callable[..., Layer] = _pooling(-math.inf, lax.max)
SumPool: Callable[..., Layer] = _pooling(0.0, lax.add)
AvgPool: Callable[..., Layer] = _pooling(0.0, lax.add, average=True)


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Makes a layer that standardizes a batch along axes, then scales and moves it."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Any) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        out = nn.standardize(x, axes, epsilon=epsilon)
        if scale:
            out = out * fnp.expand_dims(gamma, axes)
        return out + fnp.expand_dims(beta, axes) if center else out

    return init, apply


Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: fnp.reshape(inputs, (inputs.shape[0], -1)),
)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Makes a layer that keeps each element with the probability `rate`, in training.

    Its function takes the key as `rng=`.
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument"
                ": apply_fun(params, inputs, rng=key)"
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return fnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


# -- without parameters ----------------------------------------------------------------


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


def FanInConcat(axis: int = -1) -> Layer:
    """Makes a layer that concatenates its inputs."""

    def init(rng: Any, input_shape: Any) -> Any:
        shape = list(input_shape[0])
        shape[axis] = sum(one[axis] for one in input_shape)
        return tuple(shape), ()

    return init, lambda params, inputs, **kwargs: fnp.concatenate(inputs, axis)


def FanOut(num: int) -> Layer:
    """Makes a layer that gives its input several times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Makes a layer that is known when the shape of its input is."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](
            params, inputs, **kwargs
        ),
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
