"""Models that find items for people: two towers, and a transformer over histories.

Both learn from the order in which people chose items, and give each state of a person
and each item a vector; the product of two is an item's score. So the vectors of items
can be computed once, and the best items of a person are found by a search of nearest
neighbours.

The last item of each person is for testing.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from helpers.ratings import Ratings
from recommenders.training import trainer_of

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random
from fxflow.distributed import parameter_server as ps
from fxflow.distributed.parameter_server import TableSpec
from fxflow.train import metrics


class Histories(NamedTuple):
    """What people chose, person by person, in chronological order.

    Attributes:
      items: i64[n], from 1; id 0 is padding.
      starts: i64[people + 1], where the items of each person begin.
      shares: f32[items + 1], how often each item was chosen, of all; at least once.
    """

    items: np.ndarray
    starts: np.ndarray
    shares: np.ndarray

    @property
    def count(self) -> int:
        """The number of items, with the padding."""
        return len(self.shares)


def histories_of(ratings: Ratings) -> Histories:
    """Returns the films that people rated."""
    people = int(ratings.people.max()) + 1
    starts = np.searchsorted(ratings.people, np.arange(people + 1))
    items = ratings.films + 1
    learned = np.delete(items, starts[1:] - 1)
    counts = np.maximum(np.bincount(learned, minlength=int(items.max()) + 1), 1)
    return Histories(items, starts, (counts / counts.sum()).astype(np.float32))


def before(histories: Histories, places: np.ndarray, length: int) -> np.ndarray:
    """Returns the items before some places, i64[n, length]; 0 where there are none.

    Args:
      histories: what people chose.
      places: i64[n], of items.
      length: the number of items, the last ones.
    """
    first = histories.starts[
        np.searchsorted(histories.starts, places, side="right") - 1
    ]
    seen = places[:, None] - np.arange(length, 0, -1)
    real = seen >= first[:, None]
    found: np.ndarray = np.where(real, histories.items[np.maximum(seen, 0)], 0)
    return found


class Retrieval(NamedTuple):
    """A model of the next item.

    Attributes:
      table: the rows of the items.
      init: `init(key) -> params`, the dense parameters.
      batch: `batch(histories, rng, size) -> (ids, inputs)`, a batch for training.
      loss: `loss(params, rows, inputs)`.
      person: `person(params, rows[n, length, ...], real bool[n, length]) -> f32[n, f]`.
      item: `item(params, rows[m, ...]) -> f32[m, f]`.
      length: the number of items of a history.
    """

    table: TableSpec
    init: Callable[[Any], Any]
    batch: Callable[[Histories, np.random.Generator, int], tuple[Any, Any]]
    loss: Callable[[Any, Any, Any], Any]
    person: Callable[[Any, Any, Any], Any]
    item: Callable[[Any, Any], Any]
    length: int


def _places(histories: Histories, rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws items that are not a person's first one, nor the last one: those test."""
    inner = np.ones(len(histories.items), bool)
    inner[histories.starts[:-1]] = inner[histories.starts[1:] - 1] = False
    return rng.choice(np.flatnonzero(inner), size)


# -- two towers ------------------------------------------------------------------------


def two_towers(
    count: int,
    *,
    length: int = 30,
    features: int = 32,
    hidden: int = 64,
    others: int = 256,
    temperature: float = 0.1,
    rate: float = 0.1,
) -> Retrieval:
    """Returns a tower for the items that a person chose, and one for an item.

    The negatives of a person are the right items of the others in the batch, and some
    that are drawn uniformly. The softmax corrects for how often each is expected.

    Args:
      count: the number of items, with the padding.
      length: the number of items of a history.
      features: the length of vectors.
      hidden: the size of the towers' hidden layer.
      others: the number of items that are drawn for a batch.
      temperature: that the cosines are divided by.
      rate: of Adagrad, for the rows of items.

    Source: Yi et al. 2019, "Sampling-bias-corrected neural modeling for large corpus
    item recommendations".
    """
    table = TableSpec(
        "items",
        features,
        optim.adagrad(rate, initial_accumulator_value=1e-6),
        nn.initializers.normal(0.1),
        rows=count,
    )

    def init(key: Any) -> Any:
        keys = iter(random.split(key, 4))
        tower = lambda: [
            nn.linear_init(next(keys), features, hidden),
            nn.linear_init(next(keys), hidden, features),
        ]
        return {"person": tower(), "item": tower(), "age": fnp.zeros(length)}

    def tower(layers: Any, x: Any) -> Any:
        x = x + nn.linear(layers[1], nn.relu(nn.linear(layers[0], x)))
        return x / fnp.sqrt(fnp.sum(x**2, axis=-1, keepdims=True) + 1e-6)

    def person(params: Any, rows: Any, real: Any) -> Any:
        # A mean that may prefer what was chosen last.
        weights = nn.softmax(fnp.where(real, params["age"], -1e9), axis=-1)
        mean = fnp.einsum("nl,nlf->nf", weights, rows)
        return tower(params["person"], mean) / temperature

    def item(params: Any, rows: Any) -> Any:
        return tower(params["item"], rows)

    def batch(
        histories: Histories, rng: np.random.Generator, size: int
    ) -> tuple[Any, Any]:
        places = _places(histories, rng, size)
        seen = before(histories, places, length)
        drawn = rng.integers(1, histories.count, others)
        which = np.concatenate([histories.items[places], drawn])
        expected = size * histories.shares[which] + others / (histories.count - 1)
        inputs = {
            "real": seen > 0,
            "which": which.astype(np.int32),
            "log_expected": np.log(expected).astype(np.float32),
        }
        return {"items": np.concatenate([seen.reshape(-1), which])}, inputs

    def loss(params: Any, rows: Any, inputs: Any) -> Any:
        real = inputs["real"]
        seen, own = rows["items"][: real.size], rows["items"][real.size :]
        losses = nn.in_batch_softmax_loss(
            person(params, seen.reshape(*real.shape, features), real),
            item(params, own),
            ids=inputs["which"],
            log_expected=inputs["log_expected"],
        )
        return fnp.mean(losses)

    return Retrieval(table, init, batch, loss, person, item, length)


# -- sequences -------------------------------------------------------------------------


def sequence(
    count: int,
    *,
    length: int = 30,
    features: int = 48,
    heads: int = 2,
    blocks: int = 2,
    others: int = 256,
    rate: float = 0.003,
) -> Retrieval:
    """Returns a causal transformer that predicts the next item at each position.

    The loss is a softmax over the next item and those that are drawn for the batch.

    Args:
      count: the number of items, with the padding.
      length: the number of items of a history.
      features: the length of vectors.
      heads: of the attention.
      blocks: the number of blocks.
      others: the number of items that are drawn for a batch.
      rate: of Adam, for the rows of items.

    Source: Kang and McAuley 2018, "Self-attentive sequential recommendation".
    """
    small = nn.initializers.normal(0.02)
    table = TableSpec("items", features, optim.adam(rate), small, rows=count)

    def init(key: Any) -> Any:
        keys = iter(random.split(key, 4 * blocks + 1))
        linear = lambda n, m: nn.linear_init(next(keys), n, m)
        return {
            "places": small(next(keys), (length, features)),
            "norm": nn.layer_norm_init(features),
            "blocks": [
                {
                    "norms": [nn.layer_norm_init(features) for _ in range(2)],
                    "heads": linear(features, 3 * features),
                    "joined": linear(features, features),
                    "up": linear(features, 2 * features),
                    "down": linear(2 * features, features),
                }
                for _ in range(blocks)
            ],
        }

    def states(params: Any, rows: Any, real: Any) -> Any:
        n = len(rows)
        x = fnp.where(real[..., None], rows * features**0.5 + params["places"], 0)
        # A position sees itself, even if it is padding, so that a softmax has terms.
        mask = fnp.tril(fnp.ones((length, length), bool)) & real[:, None, :]
        mask = (mask | fnp.eye(length, dtype=bool))[:, None]
        for block in params["blocks"]:
            inner = nn.linear(block["heads"], nn.layer_norm(block["norms"][0], x))
            parts = fnp.split(inner.reshape(n, length, heads, -1), 3, axis=-1)
            seen = nn.dot_product_attention(*parts, mask=mask, implementation="xla")
            x = x + nn.linear(block["joined"], seen.reshape(n, length, features))
            inner = nn.linear(block["up"], nn.layer_norm(block["norms"][1], x))
            x = x + nn.linear(block["down"], nn.relu(inner))
        return nn.layer_norm(params["norm"], x)

    def person(params: Any, rows: Any, real: Any) -> Any:
        return states(params, rows, real)[:, -1]

    def batch(
        histories: Histories, rng: np.random.Generator, size: int
    ) -> tuple[Any, Any]:
        places = _places(histories, rng, size)
        seen = before(histories, places + 1, length + 1)
        drawn = rng.integers(1, histories.count, others)
        ids = np.concatenate([seen.reshape(-1), drawn])
        return {"items": ids}, {"ids": ids.astype(np.int32), "real": seen > 0}

    def loss(params: Any, rows: Any, inputs: Any) -> Any:
        real = inputs["real"]
        n = real.size
        table = rows["items"][:n].reshape(*real.shape, features)
        x = states(params, table[:, :-1], real[:, :-1]).reshape(-1, features)
        right = inputs["ids"][:n].reshape(real.shape)[:, 1:].reshape(-1)
        drawn = fnp.where(
            right[:, None] == inputs["ids"][n:], -fnp.inf, x @ rows["items"][n:].T
        )
        # All are drawn equally often, `others / (count - 1)` times.
        own = fnp.sum(x * table[:, 1:].reshape(-1, features), axis=-1)
        own = own + fnp.log(others / (count - 1))
        losses = nn.logsumexp(fnp.c_[own, drawn], axis=1) - own
        weights = (real[:, :-1] & real[:, 1:]).reshape(-1)
        return fnp.sum(losses * weights) / fnp.maximum(fnp.sum(weights), 1)

    return Retrieval(
        table, init, batch, loss, person, lambda params, rows: rows, length
    )


MODELS: dict[str, Callable[..., Retrieval]] = {
    "two_towers": two_towers,
    "sequence": sequence,
}


# -- evaluation ------------------------------------------------------------------------


class Ranking(NamedTuple):
    """The quality of lists of items: metrics, which add up over batches.

    Attributes:
      recall: the share of right items among the best ones.
      ndcg: the same, if an item counts more the higher it is.
      k: the number of items of a list.
    """

    recall: metrics.Mean
    ndcg: metrics.Mean
    k: int

    def __str__(self) -> str:
        recall, ndcg = float(self.recall.compute()), float(self.ndcg.compute())
        return f"recall@{self.k} {recall:.4f}, NDCG@{self.k} {ndcg:.4f}"


def ranking_of(
    histories: Histories, score: Callable[[np.ndarray], Any], k: int = 10
) -> Ranking:
    """Returns how well the last item of each person is found among all items.

    Args:
      histories: what people chose; what they chose before is not recommended again.
      score: `score(places) -> f32[n, items]`, of what comes at these places.
      k: the number of items of a list.
    """
    recall, ndcg = metrics.Mean.empty(), metrics.Mean.empty()
    ends = histories.starts[1:] - 1
    for places in np.split(ends, range(128, len(ends), 128)):
        scores = np.array(score(places))
        scores[:, 0] = -np.inf
        right = np.zeros(scores.shape, bool)
        for row, place in enumerate(places):
            first = histories.starts[
                np.searchsorted(histories.starts, place, "right") - 1
            ]
            scores[row, histories.items[first:place]] = -np.inf
            right[row, histories.items[place]] = True
        recall = recall.merge(metrics.recall_at_k(scores, right, k))
        ndcg = ndcg.merge(metrics.ndcg_at_k(scores, right, k))
    return Ranking(recall, ndcg, k)


def popular(histories: Histories, k: int = 10) -> Ranking:
    """Returns the quality of recommending what most people chose."""
    return ranking_of(
        histories, lambda places: np.tile(histories.shares, (len(places), 1)), k
    )


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      steps: of each worker.
      batch: people of a step.
      rate: of Adam, for the dense parameters.
      report: steps between two reports.
      seed: of parameters and batches.
    """

    steps: int = 2000
    batch: int = 128
    rate: float = 0.001
    report: int = 200
    seed: int = 0


def fit(
    model: Retrieval,
    histories: Histories,
    settings: Settings,
    *,
    consistency: str = "none",
    cluster: ps.Cluster | None = None,
) -> Ranking:
    """Trains as the only process, or as one of the workers, and returns the quality.

    Args:
      model: the model.
      histories: what people chose.
      settings: the settings of the run.
      consistency: a name of `training.CONSISTENCIES`; "none": no servers.
      cluster: the servers; None, with a consistency: one in this process.
    """
    trainer, index, _ = trainer_of(
        model.loss, [model.table], settings.rate, consistency, cluster
    )
    state = trainer.init(model.init(random.key(settings.seed)))
    rng = np.random.default_rng([settings.seed, index])
    started, losses = time.perf_counter(), []
    for number in range(1, settings.steps + 1):
        ids, inputs = model.batch(histories, rng, settings.batch)
        state, done = trainer.step(state, inputs, ids=ids)
        losses.append(done.loss)
        if number % settings.report == 0:
            mean, losses = float(fnp.mean(fnp.stack(losses))), []
            seconds = time.perf_counter() - started
            print(f"{number:6,} steps, {seconds:6.1f} s: loss {mean:.4f}", flush=True)
    found = ranking_of(histories, scorer(model, trainer, state, histories))
    trainer.close()
    return found


def scorer(
    model: Retrieval, trainer: Any, state: Any, histories: Histories
) -> Callable[[np.ndarray], Any]:
    """Returns `score(places) -> f32[n, items]`, with the vectors of all items."""
    params = trainer.params(state)
    every = {"items": np.arange(histories.count)}
    items = model.item(params, trainer.rows(every, state)["items"])
    person = fxflow.jit(model.person)

    def score(places: np.ndarray) -> Any:
        seen = before(histories, places, model.length)
        rows = trainer.rows({"items": seen}, state)["items"]
        return person(params, rows, seen > 0) @ items.T

    return score
