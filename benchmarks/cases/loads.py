"""More training steps: a linear model, recurrent ones, and two that follow no gradient.

Makers of models are like those of `models.py`. Makers of steps return `(state, step,
batch)`: `step(state, *batch)` is `(state, value)`, and the state may be donated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .library import Library
from .models import Model, Tree, cross_entropy, dense, dense_params, integers, weights

WORDS, DRAWN = 10_000, 64


class Step(NamedTuple):
    """A step that follows no gradient of a model.

    Attributes:
      state: of which each step makes the next.
      step: the function.
      batch: its other arguments.
      nbytes: of the state that a step reads and writes.
    """

    state: Tree
    step: Callable[..., Any]
    batch: tuple[Any, ...]
    nbytes: int


def softmax(library: Library, batch: int = 128) -> Model:
    """784 → 10."""

    def loss(params: Tree, x: Any, labels: Any) -> Any:
        return cross_entropy(library, dense(params, x), labels)

    return Model(
        loss, dense_params(784, 10), (weights(batch, 784), integers(10, batch))
    )


def lstm_params(inputs: int, units: int) -> Tree:
    return {
        "w": weights(inputs, 4 * units),
        "u": weights(units, 4 * units),
        "b": numpy.zeros(4 * units, numpy.float32),
    }


def lstm_over(library: Library, cell: Tree, xs: Any) -> Any:
    """The outputs of a usual cell, one product for the input and one for the state."""
    np, nn = library.np, library.nn

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        gates = x @ cell["w"] + h @ cell["u"] + cell["b"]
        i, f, g, o = np.split(gates, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * np.tanh(g)
        h = nn.sigmoid(o) * np.tanh(c)
        return (h, c), h

    zero = np.zeros((xs.shape[1], cell["u"].shape[0]), xs.dtype)
    return library.lax.scan(step, (zero, zero), xs)[1]


def lstm_layer(
    library: Library, size: int = 512, length: int = 20, batch: int = 16
) -> Model:
    """The gradient of one layer, of its weights and of its inputs."""
    params = {"cell": lstm_params(size, size), "xs": weights(length, batch, size)}

    def loss(params: Tree) -> Any:
        return library.np.sum(lstm_over(library, params["cell"], params["xs"]) ** 2)

    return Model(loss, params, ())


def language_params(size: int, units: int) -> Tree:
    return {
        "embedding": weights(WORDS, size),
        "cell": lstm_params(size, units),
        "out": weights(WORDS, units),
    }


def language_model(
    library: Library,
    size: int = 128,
    units: int = 256,
    length: int = 20,
    batch: int = 16,
) -> Model:
    """Words, with a softmax over all of them."""

    def loss(params: Tree, tokens: Any) -> Any:
        np = library.np
        hidden = lstm_over(library, params["cell"], params["embedding"][tokens[:-1]])
        logits = hidden @ params["out"].T
        # One number of each row: one-hot labels would be as large as the logits.
        right = np.take_along_axis(logits, tokens[1:, :, None], axis=-1)[..., 0]
        return np.mean(library.nn.logsumexp(logits, axis=-1) - right)

    tokens = integers(WORDS, length + 1, batch)
    return Model(loss, language_params(size, units), (tokens,))


def sampled_language_model(
    library: Library,
    size: int = 128,
    units: int = 256,
    length: int = 20,
    batch: int = 16,
) -> Model:
    """Words, each to be distinguished from 64 drawn ones."""
    np = library.np

    def loss(params: Tree, tokens: Any, drawn: Any) -> Any:
        hidden = lstm_over(library, params["cell"], params["embedding"][tokens[:-1]])
        right = np.sum(hidden * params["out"][tokens[1:]], axis=-1, keepdims=True)
        logits = np.concatenate([right, hidden @ params["out"][drawn].T], axis=-1)
        return -np.mean(library.nn.log_softmax(logits)[..., 0])

    batch_arrays = integers(WORDS, length + 1, batch), integers(WORDS, DRAWN)
    return Model(loss, language_params(size, units), batch_arrays)


def word2vec_rows(
    library: Library, words: int = 50_000, size: int = 128, batch: int = 128
) -> Step:
    """Skip-gram with negative sampling; only rows that occur are written."""
    np, nn = library.np, library.nn
    tables = {"centre": weights(words, size), "context": weights(words, size)}

    def loss(centre: Any, near: Any, far: Any) -> Any:
        right = nn.log_sigmoid(np.sum(centre * near, axis=-1))
        wrong = nn.log_sigmoid(-(centre @ far.T))
        return -np.mean(right + np.sum(wrong, axis=-1))

    def step(tables: Tree, centres: Any, contexts: Any, others: Any) -> Any:
        centre, context = tables["centre"], tables["context"]
        rows = centre[centres], context[contexts], context[others]
        value, (a, b, c) = library.root.value_and_grad(loss, argnums=(0, 1, 2))(*rows)
        centre = centre.at[centres].add(-0.1 * a)
        context = context.at[contexts].add(-0.1 * b).at[others].add(-0.1 * c)
        return {"centre": centre, "context": context}, value

    ids = integers(words, batch), integers(words, batch)[::-1].copy()
    rows = 2 * batch + DRAWN
    nbytes = 2 * rows * size * 4
    return Step(tables, step, (*ids, integers(words, DRAWN)), nbytes)


def k_means(
    library: Library, points: int = 10_000, size: int = 64, count: int = 100
) -> Step:
    """Each point goes to the nearest centre, each centre to the mean of its points."""
    np = library.np

    def step(centres: Any, x: Any) -> Any:
        far = np.sum(centres**2, axis=1) - 2 * (x @ centres.T)
        nearest = np.argmin(far, axis=1)
        sums = np.zeros_like(centres).at[nearest].add(x)
        counts = np.zeros(count, x.dtype).at[nearest].add(1.0)
        means = sums / np.maximum(counts, 1.0)[:, None]
        return np.where(counts[:, None] > 0, means, centres), np.sum(np.min(far, 1))

    x = weights(points, size) * numpy.float32(size**0.5)
    return Step(x[:count].copy(), step, (x,), 2 * count * size * 4)


MODELS = {
    "softmax": softmax,
    "LSTM layer": lstm_layer,
    "language model": language_model,
    "sampled language model": sampled_language_model,
}
STEPS = {"word2vec by rows": word2vec_rows, "k-means": k_means}
