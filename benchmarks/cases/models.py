"""Models as pure functions of a library's namespace: one source for fxflow and JAX.

Each maker returns `(loss, params, batch)`: `loss(params, *batch)` is a scalar, `params`
and `batch` are trees of NumPy arrays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .library import Library

Tree = Any


class Model(NamedTuple):
    loss: Callable[..., Any]
    params: Tree
    batch: tuple[Any, ...]


def weights(*shape: int, seed: int = 0) -> numpy.ndarray:
    """Normal numbers `f32` scaled by the number of inputs."""
    rng = numpy.random.default_rng(seed + sum(shape))
    scale = numpy.sqrt(2 / max(1, int(numpy.prod(shape[:-1]))))
    return (rng.standard_normal(shape) * scale).astype(numpy.float32)


def zeros(*shape: int) -> numpy.ndarray:
    return numpy.zeros(shape, numpy.float32)


def integers(limit: int, *shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(0).integers(0, limit, shape).astype(numpy.int32)


def dense_params(inputs: int, outputs: int) -> Tree:
    return {"w": weights(inputs, outputs), "b": zeros(outputs)}


def dense(layer: Tree, x: Any) -> Any:
    return x @ layer["w"] + layer["b"]


def cross_entropy(library: Library, logits: Any, labels: Any) -> Any:
    chosen = library.nn.one_hot(labels, logits.shape[-1])
    return -library.np.mean(
        library.np.sum(library.nn.log_softmax(logits) * chosen, axis=-1)
    )


def conv(library: Library, x: Any, w: Any, stride: int = 1) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return library.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=layout
    )


def mlp(library: Library, batch: int = 128) -> Model:
    """784 → 256 → 128 → 10."""
    params = [dense_params(784, 256), dense_params(256, 128), dense_params(128, 10)]

    def loss(params: Tree, x: Any, labels: Any) -> Any:
        for layer in params[:-1]:
            x = library.nn.relu(dense(layer, x))
        return cross_entropy(library, dense(params[-1], x), labels)

    return Model(loss, params, (weights(batch, 784), integers(10, batch)))


def cnn(library: Library, batch: int = 64) -> Model:
    """Two strided convolutions and two dense layers, on 28 × 28 images."""
    params = {
        "conv1": weights(5, 5, 1, 16),
        "conv2": weights(5, 5, 16, 32),
        "hidden": dense_params(7 * 7 * 32, 128),
        "out": dense_params(128, 10),
    }

    def loss(params: Tree, x: Any, labels: Any) -> Any:
        x = library.nn.relu(conv(library, x, params["conv1"], 2))
        x = library.nn.relu(conv(library, x, params["conv2"], 2))
        x = library.nn.relu(dense(params["hidden"], x.reshape(batch, -1)))
        return cross_entropy(library, dense(params["out"], x), labels)

    return Model(loss, params, (weights(batch, 28, 28, 1), integers(10, batch)))


def lstm(library: Library, batch: int = 32, length: int = 32, size: int = 128) -> Model:
    """A character model: embedding, one LSTM by scan, dense."""
    symbols = 64
    params = {
        "embedding": weights(symbols, size),
        "cell": dense_params(2 * size, 4 * size),
        "out": dense_params(size, symbols),
    }
    np, nn, lax = library.np, library.nn, library.lax

    def loss(params: Tree, tokens: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            gates = dense(params["cell"], np.concatenate([x, h], axis=-1))
            i, f, g, o = np.split(gates, 4, axis=-1)
            c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * np.tanh(g)
            h = nn.sigmoid(o) * np.tanh(c)
            return (h, c), h

        x = params["embedding"][tokens[:-1]]
        start = np.zeros((batch, size)), np.zeros((batch, size))
        _, hidden = lax.scan(cell, start, x)
        return cross_entropy(library, dense(params["out"], hidden), tokens[1:])

    return Model(loss, params, (integers(symbols, length + 1, batch),))


def normalise(library: Library, layer: Tree, x: Any) -> Any:
    centred = x - library.np.mean(x, axis=-1, keepdims=True)
    variance = library.np.mean(centred * centred, axis=-1, keepdims=True)
    return centred * library.lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["bias"]


def transformer(
    library: Library,
    layers: int = 4,
    size: int = 128,
    heads: int = 4,
    batch: int = 8,
    length: int = 64,
) -> Model:
    """A decoder of pre-norm blocks with causal attention."""
    symbols = 256
    np, nn = library.np, library.nn

    def norm_params() -> Tree:
        return {"scale": numpy.ones(size, numpy.float32), "bias": zeros(size)}

    def block_params() -> Tree:
        return {
            "norm1": norm_params(),
            "qkv": dense_params(size, 3 * size),
            "proj": dense_params(size, size),
            "norm2": norm_params(),
            "up": dense_params(size, 4 * size),
            "down": dense_params(4 * size, size),
        }

    params = {
        "embedding": weights(symbols, size),
        "positions": weights(length, size),
        "blocks": [block_params() for _ in range(layers)],
        "norm": norm_params(),
        "out": dense_params(size, symbols),
    }

    def attention(block: Tree, x: Any) -> Any:
        qkv = dense(block["qkv"], x).reshape(batch, length, 3, heads, size // heads)
        q, k, v = (qkv[:, :, i] for i in range(3))
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / numpy.sqrt(size // heads).item()
        causal = np.tril(np.ones((length, length), bool))
        scores = nn.softmax(np.where(causal, scores, -1e9))
        mixed = np.einsum("bhqk,bkhd->bqhd", scores, v)
        return dense(block["proj"], mixed.reshape(batch, length, size))

    def loss(params: Tree, tokens: Any) -> Any:
        x = params["embedding"][tokens[:, :-1]] + params["positions"]
        for block in params["blocks"]:
            x = x + attention(block, normalise(library, block["norm1"], x))
            y = nn.gelu(dense(block["up"], normalise(library, block["norm2"], x)))
            x = x + dense(block["down"], y)
        logits = dense(params["out"], normalise(library, params["norm"], x))
        return cross_entropy(library, logits, tokens[:, 1:])

    return Model(loss, params, (integers(symbols, batch, length + 1),))


def resnet50(library: Library, batch: int = 2, size: int = 64) -> Model:
    """ResNet-50 with batch statistics (He et al. 2016) on images `size` wide."""
    np, nn, lax = library.np, library.nn, library.lax
    stages = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))

    def conv_params(kernel: int, inputs: int, outputs: int) -> Tree:
        return {
            "w": weights(kernel, kernel, inputs, outputs),
            "scale": numpy.ones(outputs, numpy.float32),
            "bias": zeros(outputs),
        }

    blocks, inputs = [], 64
    for width, count, _ in stages:
        for index in range(count):
            block = {
                "conv1": conv_params(1, inputs, width),
                "conv2": conv_params(3, width, width),
                "conv3": conv_params(1, width, 4 * width),
            }
            if index == 0:
                block["shortcut"] = conv_params(1, inputs, 4 * width)
            blocks.append(block)
            inputs = 4 * width
    params = {
        "stem": conv_params(7, 3, 64),
        "blocks": blocks,
        "out": dense_params(2048, 1000),
    }

    def unit(layer: Tree, x: Any, stride: int = 1) -> Any:
        x = conv(library, x, layer["w"], stride)
        mean = np.mean(x, axis=(0, 1, 2))
        variance = np.var(x, axis=(0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["bias"]

    def loss(params: Tree, x: Any, labels: Any) -> Any:
        x = nn.relu(unit(params["stem"], x, 2))
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        x = lax.reduce_window(x, -numpy.inf, lax.max, window, strides, "SAME")
        remaining = iter(params["blocks"])
        for _, count, first_stride in stages:
            for index in range(count):
                block, stride = next(remaining), first_stride if index == 0 else 1
                y = nn.relu(unit(block["conv1"], x))
                y = nn.relu(unit(block["conv2"], y, stride))
                y = unit(block["conv3"], y)
                if "shortcut" in block:
                    x = unit(block["shortcut"], x, stride)
                x = nn.relu(x + y)
        logits = dense(params["out"], np.mean(x, axis=(1, 2)))
        return cross_entropy(library, logits, labels)

    return Model(loss, params, (weights(batch, size, size, 3), integers(1000, batch)))


def word2vec(library: Library, words: int = 10_000, size: int = 64) -> Model:
    """Skip-gram with negative sampling (Mikolov et al. 2013)."""
    batch, negatives = 256, 5
    params = {"centre": weights(words, size), "context": weights(words, size)}
    np, nn = library.np, library.nn

    def loss(params: Tree, centres: Any, contexts: Any, others: Any) -> Any:
        centre = params["centre"][centres]
        near = np.sum(centre * params["context"][contexts], axis=-1)
        far = np.einsum("bd,bnd->bn", centre, params["context"][others])
        return -np.mean(nn.log_sigmoid(near) + np.sum(nn.log_sigmoid(-far), axis=-1))

    batch_arrays = (
        integers(words, batch),
        integers(words, batch)[::-1].copy(),
        integers(words, batch, negatives),
    )
    return Model(loss, params, batch_arrays)
