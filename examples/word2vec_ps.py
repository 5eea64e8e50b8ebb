"""Learns word vectors on a parameter server: servers keep the tables' rows.

    fxflow launch --ps 2 --workers 3 examples/word2vec_ps.py
    python examples/word2vec_ps.py --epochs 1      # the server is this process

The model, the text and the pairs of words are those of `word2vec.py`. Each worker reads
its share of the reviews at its own pace. For a stretch of text it pulls the rows of the
words that occur in it and of some sampled words, and pushes their gradients; the
servers create rows when they are first used, and update each one separately. Only the
servers have a table.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from helpers.texts import Vocabulary, load_reviews
from word2vec import (
    BLOCK,
    Settings,
    Vectors,
    encoded,
    kept_fractions,
    loss_of,
    neighbours,
    options,
    report,
    settings_of,
    stretches,
)

import fxflow.numpy as fnp
from fxflow import nn, optim, random
from fxflow.distributed import parameter_server as ps
from fxflow.distributed.parameter_server import parameter_server


def row_adagrad(rate: float) -> optim.GradientTransformation:
    """Returns Adagrad with one sum of squares per row, as in `word2vec.py`."""

    def init(row: Any) -> Any:
        return fnp.zeros((), row.dtype)

    def update(slope: Any, total: Any, row: Any = None) -> Any:
        total = total + fnp.mean(slope**2)
        return -rate * slope / fnp.sqrt(total + 1e-8), total

    return optim.GradientTransformation(init, update)


def tables_of(settings: Settings) -> list[ps.TableSpec]:
    """Returns tables of two vectors per word: random near 0 for `in`, 0 for `out`."""
    bound = 0.5 / settings.size

    def drawn(key: Any, shape: Any, dtype: Any = fnp.float32) -> Any:
        return random.uniform(key, shape, dtype, minval=-bound, maxval=bound)

    optimizer = row_adagrad(settings.rate)
    first = {"in": drawn, "out": nn.initializers.zeros}
    return [
        ps.TableSpec(name, settings.size, optimizer, init, seed=settings.seed)
        for name, init in first.items()
    ]


class Stretches:
    """Batches of a worker: the rows that each stretch of text needs.

    Args:
      counts: the number of occurrences of each word.
      settings: the settings of the run.
    """

    def __init__(self, counts: np.ndarray, settings: Settings) -> None:
        blocks, self.window = settings.stretch // BLOCK, settings.window
        width = BLOCK + 2 * self.window
        self.places = np.arange(blocks)[:, None] * BLOCK + np.arange(width)
        self.drawn = settings.drawn
        self.cumulative = np.cumsum(counts**0.75) / np.sum(counts**0.75)

    def ids(self, words: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
        """Returns each table's rows for a stretch, with those of sampled words."""
        around = words[self.places]
        drawn = np.searchsorted(self.cumulative, rng.random(self.drawn))
        own = around[:, self.window : -self.window]
        return {"in": own, "out": np.concatenate([around.reshape(-1), drawn])}


def make_loss(settings: Settings) -> Callable[..., Any]:
    """Makes `loss(params, rows, (key, docs))`, for the rows of `Stretches.ids`."""

    def loss(params: Any, rows: dict[str, Any], batch: Any) -> Any:
        key, docs = batch
        around = rows["out"][: docs.size].reshape(*docs.shape, settings.size)
        parts = {"in": rows["in"], "out": around, "drawn": rows["out"][docs.size :]}
        taken = neighbours(key, docs, settings)
        return loss_of(parts, taken, settings)

    return loss


def fit(
    texts: Sequence[Sequence[str]],
    settings: Settings,
    least: int = 5,
    log: Callable[[int, dict[str, Any]], None] | None = None,
) -> tuple[Vectors, float]:
    """Trains as one of the workers; returns the vectors and the speed in words/s.

    Each of n workers takes every n-th text. The vectors are the servers' when this
    worker finishes: the result of the run is that of the last worker.
    """
    cluster = ps.cluster_of(None)
    index, workers = (cluster.rank, len(cluster.trainers) or 1) if cluster else (0, 1)
    vocabulary = Vocabulary(texts, least)
    ids, docs = encoded(vocabulary, texts[index::workers])
    keep = kept_fractions(vocabulary.counts, settings)
    key = random.fold_in(random.key(settings.seed), index)
    rng = np.random.default_rng([settings.seed, index])
    rows = Stretches(vocabulary.counts, settings)
    server = parameter_server(
        make_loss(settings),
        optim.sgd(0.0),  # there are no dense parameters
        consistency=ps.asynchronous(rate="fixed"),
        tables=tables_of(settings),
    )
    state = server.init({})
    number, started = 0, time.perf_counter()
    for epoch in range(settings.epochs):
        for words, where in stretches(ids, docs, keep, settings, rng):
            batch = random.fold_in(key, number), where[rows.places]
            state, metrics = server.step(state, batch, ids=rows.ids(words, rng))
            number += 1
            if log is not None and number % 100 == 0:
                log(number, {"loss": metrics.loss / settings.stretch, "epoch": epoch})
    pace = settings.epochs * len(ids) / (time.perf_counter() - started)
    table = server.rows({"in": np.arange(len(vocabulary))})["in"]
    server.close()
    return Vectors(vocabulary.words, table), pace


def main(arguments: list[str] | None = None) -> int:
    """Runs the example and returns the number of pairs found."""
    parser = options(__doc__.splitlines()[0])
    given = parser.parse_args(arguments)
    vectors, pace = fit(load_reviews().texts, settings_of(given))
    print(f"{pace:,.0f} words/s")
    return report(vectors, given)


if __name__ == "__main__":
    main()
