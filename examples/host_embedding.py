"""A table on the host, the rest on the accelerator, in one function.

    python examples/host_embedding.py
    python examples/host_embedding.py --rows 4000000       # a table of 1 GB

The model (Joulin et al. 2016) tells praise from blame: the mean of the vectors of a
sentence's words and pairs of words, then a small net. Pairs are hashed into a table of
many rows, which may be larger than an accelerator's memory. The scopes keep the table,
its lookups and its updates on the host; only the means, and their gradients, are sent.
Without an accelerator, two CPU devices take both parts.
"""

import argparse
import itertools
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.texts import load_reviews

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, nn, random
from fxflow.dataflow import on

LENGTH = 80  # words and pairs of a sentence; the rest is left out


class Model(NamedTuple):
    """The table `f32[rows, size]`, whose row 0 is for padding, and a small net."""

    table: fxflow.Array
    net: Any


def init(key: fxflow.Array, rows: int, size: int, hidden: int) -> Model:
    """Returns an initial model."""
    k = random.split(key, 3)
    net = {
        "hidden": nn.linear_init(k[1], size, hidden),
        "out": nn.linear_init(k[2], hidden, 2),
    }
    return Model(random.uniform(k[0], (rows, size), minval=-0.1, maxval=0.1), net)


def mean(rows: fxflow.Array, words: fxflow.Array) -> fxflow.Array:
    """Returns the mean `f32[n, size]` of the rows `f32[n, length, size]` of words."""
    known = (words > 0)[..., None]
    return fnp.sum(rows * known, 1) / fnp.maximum(fnp.sum(known, 1), 1)


def logits(net: Any, x: fxflow.Array) -> fxflow.Array:
    """Returns logits `f32[n, 2]` of the means of sentences."""
    return nn.linear(net["out"], nn.relu(nn.linear(net["hidden"], x)))


def step(model: Model, words: Any, labels: Any, rate: Any) -> tuple[Model, Any]:
    """Runs one step of gradient descent."""
    with on("host"):
        x, to_rows = fxflow.vjp(lambda rows: mean(rows, words), model.table[words])
    with on("accelerator"):

        def loss(net: Any, x: Any) -> Any:
            log_p = nn.log_softmax(logits(net, x))
            return -fnp.mean(fnp.take_along_axis(log_p, labels[:, None], 1))

        value, (for_net, for_x) = fxflow.value_and_grad(loss, (0, 1))(model.net, x)
        net = fxflow.tree.map(lambda w, g: w - rate * g, model.net, for_net)
    with on("host"):
        (for_rows,) = to_rows(for_x)
        # Only the rows of these words change; the loss is a mean over the sentences.
        table = model.table.at[words].add(-rate * len(words) * for_rows)
        return Model(table, net), value


def predict(model: Model, words: Any) -> fxflow.Array:
    """Returns labels of sentences."""
    with on("host"):
        x = mean(model.table[words], words)
    with on("accelerator"):
        return fnp.argmax(logits(model.net, x), -1)


def encoded(sentences: Sequence[Sequence[str]], rows: int) -> np.ndarray:
    """Returns the rows of words and of pairs of words, i32[n, LENGTH], 0 for none."""
    out = np.zeros((len(sentences), LENGTH), np.int32)
    for row, words in zip(out, sentences, strict=True):
        pairs = [" ".join(pair) for pair in itertools.pairwise(words)]
        found = [1 + zlib.crc32(s.encode()) % (rows - 1) for s in [*words, *pairs]]
        row[: len(found)] = found[:LENGTH]
    return out


def batches(
    rng: np.random.Generator, words: np.ndarray, labels: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the sentences in a random order, without the last, short batch."""
    order = rng.permutation(len(labels))
    for start in range(0, len(labels) - size + 1, size):
        chosen = order[start : start + size]
        yield words[chosen], labels[chosen]


def fit(
    words: np.ndarray,
    labels: np.ndarray,
    devices: dict[str, Any],
    *,
    rows: int,
    size: int = 64,
    epochs: int = 5,
    batch: int = 32,
    rate: float = 0.2,
) -> tuple[float, Any]:
    """Trains on nine tenths; returns the accuracy on the rest and a step's plan."""
    test = np.arange(len(labels)) % 10 == 0
    split_step = dataflow.jit(step, devices=devices, donate_argnums=0)
    split_predict = dataflow.jit(predict, devices=devices)
    model, rng = init(random.key(0), rows, size, 32), np.random.default_rng(0)
    plan = split_step.plan(model, words[:batch], labels[:batch], rate)
    for epoch in range(epochs):
        falling = np.float32(rate * (1 - epoch / epochs))
        for part in batches(rng, words[~test], labels[~test], batch):
            model, _ = split_step(model, *part, falling)
    right = np.asarray(split_predict(model, words[test])) == labels[test]
    return float(right.mean()), plan


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as two devices. Set before first use.
    fxflow.config.num_cpu_devices = 2
    devices = {
        "host": fxflow.local_devices(backend="cpu")[0],
        "accelerator": fxflow.local_devices()[-1],
    }
    reviews = load_reviews()
    words = encoded(reviews.sentences, given.rows)
    labels = reviews.labels.astype(np.int32)
    started = time.perf_counter()
    accuracy, plan = fit(words, labels, devices, rows=given.rows, epochs=given.epochs)
    print(plan)
    print(f"{time.perf_counter() - started:.0f} s, test accuracy: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
