"""Models of clicks: logistic regression, wide & deep, DLRM.

Each is a `Model`: tables for `train.table_trainer`, and pure functions. What the rows
of a batch are is a function of the batch alone, without weights: `ids`. The rows of all
columns are in one table, the ids of a column behind those of the one before it; columns
of more ids than `limit` are hashed.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from recommenders.clicks import NUMBERS, Batch

import fxflow.numpy as fnp
from fxflow import nn, optim, random
from fxflow.distributed.parameter_server import TableSpec


class Model(NamedTuple):
    """A model with tables.

    Attributes:
      tables: for `train.table_trainer`.
      init: `init(key) -> params`, the dense parameters.
      ids: `ids(batch) -> {table: int64[n, ...]}`, of the rows that a batch needs.
      inputs: `inputs(batch) -> pytree of arrays`, what else it needs.
      logits: `logits(params, rows, inputs) -> f32[n]`, the log-odds of clicks.
    """

    tables: list[TableSpec]
    init: Callable[[Any], Any]
    ids: Callable[[Batch], dict[str, np.ndarray]]
    inputs: Callable[[Batch], Any]
    logits: Callable[[Any, Any, Any], Any]

    def loss(self, params: Any, rows: Any, batch: Any) -> Any:
        """Returns the mean cross-entropy; `batch` is the inputs and the labels."""
        inputs, clicked = batch
        logits = self.logits(params, rows, inputs)
        return fnp.mean(nn.softplus(logits) - clicked * logits)


# -- ids and numbers -------------------------------------------------------------------


class Places(NamedTuple):
    """Where the ids of columns are in one table.

    Attributes:
      counts: int64[columns], the number of rows of each column.
      offsets: int64[columns], the first row of each.
    """

    counts: np.ndarray
    offsets: np.ndarray

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return int(self.counts.sum())

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Returns rows int64[n, columns] of ids int64[n, columns]."""
        found: np.ndarray = ids % self.counts + self.offsets
        return found


def places_of(sizes: Sequence[int], limit: int) -> Places:
    """Returns the places of columns that have at most `limit` rows each.

    Args:
      sizes: the number of different ids of each column.
      limit: the largest number of rows of a column.
    """
    counts = np.minimum(np.array(sizes, np.int64), limit)
    return Places(counts, np.cumsum(counts) - counts)


def buckets_of(numbers: np.ndarray) -> np.ndarray:
    """Returns the bucket of each number, int64, 0 to 15: 0 if it is missing."""
    steps = np.minimum(np.floor(2 * np.log1p(numbers)), 14)
    found: np.ndarray = np.where(np.isnan(numbers), 0, steps + 1).astype(np.int64)
    return found


def features_of(numbers: np.ndarray) -> np.ndarray:
    """Returns f32[n, 26]: logarithms of numbers, 0 where missing, and what is."""
    missing = np.isnan(numbers)
    logs = np.where(missing, 0, np.log1p(np.nan_to_num(numbers)) / 2 - 0.8)
    return np.concatenate([logs, missing], axis=1).astype(np.float32)


def crossed(ids: np.ndarray, pairs: np.ndarray, rows: int) -> np.ndarray:
    """Returns a row for each pair of ids, int64[n, pairs], by a hash."""
    one = ids[:, pairs[:, 0]].astype(np.uint64)
    other = ids[:, pairs[:, 1]].astype(np.uint64)
    key = (
        one * np.uint64(0x9E3779B97F4A7C15)
        + other
        + np.arange(1, len(pairs) + 1, dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)
    )
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    found: np.ndarray = ((key >> np.uint64(20)) % np.uint64(rows)).astype(np.int64)
    return found


def small_pairs(sizes: Sequence[int], number: int) -> np.ndarray:
    """Returns the pairs of columns with the fewest combinations, int64[pairs, 2]."""
    every = np.stack(np.triu_indices(len(sizes), 1), axis=1)
    combinations = np.prod(np.array(sizes, np.float64)[every], axis=1)
    return every[np.argsort(combinations, kind="stable")[:number]]


def _perceptron_init(key: Any, sizes: Sequence[int]) -> list[Any]:
    keys = random.split(key, len(sizes) - 1)
    he = nn.initializers.he_normal()
    shapes = itertools.pairwise(sizes)
    return [nn.linear_init(k, n, m, w_init=he) for k, (n, m) in zip(keys, shapes)]


def _perceptron(layers: list[Any], x: Any) -> Any:
    for layer in layers[:-1]:
        x = nn.relu(nn.linear(layer, x))
    return nn.linear(layers[-1], x)


# -- models ----------------------------------------------------------------------------


def logistic(
    sizes: Sequence[int],
    *,
    limit: int = 1_000_000,
    crosses: int = 150,
    cross_rows: int = 1 << 18,
    rate: float = 1.0,
    l1: float = 0.0,
) -> Model:
    """Returns logistic regression with FTRL: a weight for each id and cross of ids.

    Args:
      sizes: the number of ids of each column.
      limit: the largest number of weights of a column.
      crosses: the number of pairs of columns, those with the fewest combinations.
      cross_rows: the number of weights of all crosses, which share them by a hash.
      rate: the learning rate, for means over a batch.
      l1: the penalty that keeps weights of rare ids at 0.

    Source: McMahan et al. 2013, "Ad click prediction: a view from the trenches".
    """
    places, pairs = places_of(sizes, limit), small_pairs(sizes, crosses)
    first = places.rows + 16 * NUMBERS
    zeros = nn.initializers.zeros
    table = TableSpec("w", (), optim.ftrl(rate, l1=l1), zeros, rows=first + cross_rows)

    def ids(batch: Batch) -> dict[str, np.ndarray]:
        numbers = places.rows + buckets_of(batch.numbers) + 16 * np.arange(NUMBERS)
        both = first + crossed(batch.ids, pairs, cross_rows)
        return {"w": np.concatenate([places(batch.ids), numbers, both], axis=1)}

    return Model(
        [table],
        lambda key: {"b": fnp.zeros(())},
        ids,
        lambda batch: (),
        lambda params, rows, inputs: params["b"] + fnp.sum(rows["w"], axis=1),
    )


def wide_deep(
    sizes: Sequence[int],
    *,
    limit: int = 1_000_000,
    features: int = 8,
    hidden: Sequence[int] = (128, 64),
    rate: float = 0.05,
    **wide: Any,
) -> Model:
    """Returns the sum of `logistic` and of a perceptron over vectors of the ids.

    Args:
      sizes: the number of ids of each column.
      limit: the largest number of rows of a column.
      features: the length of a vector.
      hidden: the sizes of the perceptron's layers.
      rate: of Adagrad, for the vectors.
      **wide: other arguments of `logistic`.

    Source: Cheng et al. 2016, "Wide & deep learning for recommender systems".
    """
    linear = logistic(sizes, limit=limit, **wide)
    places = places_of(sizes, limit)
    inputs = len(sizes) * features + 2 * NUMBERS
    vectors = TableSpec(
        "vectors",
        features,
        optim.adagrad(rate, initial_accumulator_value=1e-6),
        nn.initializers.normal(0.05),
        rows=places.rows,
    )

    def init(key: Any) -> Any:
        return linear.init(key) | {"deep": _perceptron_init(key, [inputs, *hidden, 1])}

    def logits(params: Any, rows: Any, numbers: Any) -> Any:
        flat = rows["vectors"].reshape(len(numbers), -1)
        deep = _perceptron(params["deep"], fnp.concatenate([flat, numbers], axis=1))
        return linear.logits(params, rows, ()) + deep[:, 0]

    return Model(
        [*linear.tables, vectors],
        init,
        lambda batch: linear.ids(batch) | {"vectors": places(batch.ids)},
        lambda batch: features_of(batch.numbers),
        logits,
    )


def dlrm(
    sizes: Sequence[int],
    *,
    limit: int = 1_000_000,
    features: int = 8,
    bottom: Sequence[int] = (64,),
    top: Sequence[int] = (128, 64),
    rate: float = 0.05,
) -> Model:
    """Returns a perceptron over the products of all pairs of vectors.

    The vectors are those of the ids, and one that a perceptron makes of the numbers.

    Args:
      sizes: the number of ids of each column.
      limit: the largest number of rows of a column.
      features: the length of a vector.
      bottom: the sizes of the hidden layers for the numbers.
      top: the sizes of the hidden layers for the products.
      rate: of Adagrad, for the vectors.

    Source: Naumov et al. 2019, "Deep learning recommendation model for personalization
    and recommendation systems".
    """
    places, count = places_of(sizes, limit), len(sizes) + 1
    one, other = np.triu_indices(count, 1)
    table = TableSpec(
        "vectors",
        features + 1,  # the last number is a weight of its own
        optim.adagrad(rate, initial_accumulator_value=1e-6),
        nn.initializers.normal(0.1),
        rows=places.rows,
    )

    def init(key: Any) -> Any:
        low, high = random.split(key)
        return {
            "bottom": _perceptron_init(low, [2 * NUMBERS, *bottom, features]),
            "top": _perceptron_init(high, [features + len(one), *top, 1]),
        }

    def logits(params: Any, rows: Any, numbers: Any) -> Any:
        dense = _perceptron(params["bottom"], numbers)
        vectors, weights = rows["vectors"][..., :-1], rows["vectors"][..., -1]
        vectors = fnp.concatenate([dense[:, None], vectors], axis=1)
        products = fnp.einsum("nif,njf->nij", vectors, vectors)[:, one, other]
        both = fnp.concatenate([dense, products], axis=1)
        return _perceptron(params["top"], both)[:, 0] + fnp.sum(weights, axis=1)

    return Model(
        [table],
        init,
        lambda batch: {"vectors": places(batch.ids)},
        lambda batch: features_of(batch.numbers),
        logits,
    )


MODELS: dict[str, Callable[..., Model]] = {
    "logistic": logistic,
    "wide_deep": wide_deep,
    "dlrm": dlrm,
}
