"""Classifies the sentiment of sentences with a convolutional net (Kim 2014).

    python examples/word2vec.py --save vectors       # word vectors from IMDb
    python examples/sentences.py --vectors vectors   # random, static, tuned, both
    python examples/sentences.py --channels random   # without the vectors

The vectors of a sentence's words are convolved with filters of three widths; the
largest response of each filter, at any position, is an input of a dense layer. In ten
folds, each tenth of the 8,530 sentences is tested with a net that was trained on the
others, except for a tenth of those, which selects the weights to keep.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.texts import Vocabulary, load_reviews

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random, train

PADDING = ""  # before and after a sentence, and for unknown words
CHANNELS = ("random", "static", "tuned", "both")
SPREAD = 0.25  # random vectors are uniform in ±SPREAD


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      channels: the word vectors: `random` ones that are trained; pretrained ones that
        are fixed (`static`) or trained (`tuned`); `both` of these, side by side.
      widths: widths of the filters, in words.
      filters: number of filters of each width.
      dropout: fraction of the responses that is dropped.
      batch: sentences per step.
      rate: learning rate of Adam.
      epochs: maximum number of passes over the sentences.
      folds: number of the ten folds to run.
      seed: seed of all random numbers; the folds do not depend on it.
    """

    channels: str = "random"
    widths: Sequence[int] = (3, 4, 5)
    filters: int = 100
    dropout: float = 0.5
    batch: int = 50
    rate: float = 1e-3
    epochs: int = 6
    folds: int = 10
    seed: int = 0


class Sentences(NamedTuple):
    """Words as numbers i32[n, length], 0 for padding, and labels u8[n]."""

    words: np.ndarray
    labels: np.ndarray


# -- model -----------------------------------------------------------------------------


def init(key: fxflow.Array, size: int, settings: Settings) -> dict[str, Any]:
    """Returns initial weights of the net, without word vectors."""
    keys = random.split(key, len(settings.widths) + 1)
    return {
        "filters": [
            nn.conv_init(one, size, settings.filters, (width,))
            for one, width in zip(keys[1:], settings.widths, strict=True)
        ],
        "out": nn.linear_init(keys[0], len(settings.widths) * settings.filters, 2),
    }


def logits(
    params: dict[str, Any], frozen: Sequence[Any], words: Any, key: Any, rate: float
) -> fxflow.Array:
    """Returns logits f32[n, 2] of sentences i32[n, length].

    Args:
      params: the result of `init`, and the tables `vectors` that are trained.
      frozen: tables that are not trained.
      words: the sentences.
      key: for dropout; None: no dropout.
      rate: of dropout.
    """
    channels = [
        nn.embedding({"w": table}, words, padding_id=0)
        for table in (*params["vectors"], *frozen)
    ]
    answers = []
    for filters in params["filters"]:
        # Channels are convolved with the same filters and added.
        sums = sum(nn.conv(filters, xs, padding="VALID") for xs in channels)
        answers.append(fnp.max(nn.relu(sums), axis=1))
    joined = fnp.concatenate(answers, axis=-1)
    joined = nn.dropout(key, joined, rate, deterministic=key is None)
    return nn.linear(params["out"], joined)


def tables_of(
    settings: Settings, size: int, vocabulary: int, pretrained: Any
) -> tuple[list[Any], list[Any]]:
    """Returns the tables of vectors that are trained, and those that are not."""
    key = random.key(settings.seed)
    if settings.channels == "random":
        shape = vocabulary, size
        return [random.uniform(key, shape, minval=-SPREAD, maxval=SPREAD)], []
    assert pretrained is not None, f"{settings.channels} needs vectors: --vectors"
    given = fnp.asarray(pretrained)
    return {
        "static": ([], [given]),
        "tuned": ([given], []),
        "both": ([given], [given]),
    }[settings.channels]


# -- data ------------------------------------------------------------------------------


def encoded(
    sentences: Sequence[Sequence[str]], labels: np.ndarray, widest: int
) -> tuple[Sentences, Vocabulary]:
    """Encodes sentences as numbers, padded on both sides for the widest filter."""
    known = Vocabulary(sentences, unknown=PADDING)
    length = max(map(len, sentences)) + 2 * (widest - 1)
    words = np.zeros((len(sentences), length), np.int32)
    for row, sentence in zip(words, sentences, strict=True):
        row[widest - 1 : widest - 1 + len(sentence)] = known.encode(sentence)
    return Sentences(words, labels), known


def folds(labels: np.ndarray, count: int = 10) -> np.ndarray:
    """Returns each sentence's fold, equal in all runs, with labels evenly divided."""
    rng = np.random.default_rng(2014)
    found = np.zeros(len(labels), np.int32)
    for label in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == label))
        found[places] = np.arange(len(places)) % count
    return found


def pretrained(folder: str, texts: Sequence[Sequence[str]], known: Vocabulary) -> Any:
    """Returns vectors from `word2vec.py`, scaled like random ones; draws the others."""
    rows = np.asarray(train.checkpoint.restore(folder)["in"])
    ids = Vocabulary(texts, 5).ids
    assert len(ids) == len(rows), f"{folder} has {len(rows)} vectors, not {len(ids)}"
    rng = np.random.default_rng(0)
    size = rows.shape[1]
    table = rng.uniform(-SPREAD, SPREAD, (len(known), size)).astype(np.float32)
    for word, row in known.ids.items():
        if word in ids:
            table[row] = rows[ids[word]] * SPREAD * np.sqrt(size / 3)
    return table


# -- training --------------------------------------------------------------------------


def learn(
    data: Sentences, taken: np.ndarray, tables: Any, size: int, settings: Settings
) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
    """Trains on some sentences; returns the weights, and a function that classifies."""
    learnt, frozen = tables
    key = random.key(settings.seed)
    optimizer = optim.adam(settings.rate)
    params = {**init(key, size, settings), "vectors": learnt}

    @fxflow.jit
    def step(state: Any, key: Any, words: Any, labels: Any) -> Any:
        def loss(params: Any) -> Any:
            out = logits(params, frozen, words, key, settings.dropout)
            return fnp.mean(
                optim.losses.softmax_cross_entropy_with_integer_labels(out, labels)
            )

        params, memory = state
        value, slopes = fxflow.value_and_grad(loss)(params)
        updates, memory = optimizer.update(slopes, memory, params)
        return (optim.apply_updates(params, updates), memory), value

    @fxflow.jit
    def guess(params: Any, words: Any) -> Any:
        return fnp.argmax(logits(params, frozen, words, None, 0.0), axis=-1)

    def predict(params: Any, places: np.ndarray) -> np.ndarray:
        # The last sentences are classified twice, so that all calls have one shape.
        size = min(500, len(places))
        starts = [*range(0, len(places) - size, size), len(places) - size]
        out = np.zeros(len(places), np.int64)
        for start in starts:
            chosen = slice(start, start + size)
            out[chosen] = guess(params, data.words[places[chosen]])
        return out

    rng = np.random.default_rng(settings.seed)
    held, used = np.split(rng.permutation(taken), [len(taken) // 10])
    state, number = (params, optimizer.init(params)), 0
    best, kept = -1.0, params
    for _ in range(settings.epochs):
        order = rng.permutation(used)
        for start in range(0, len(order) - settings.batch + 1, settings.batch):
            batch = order[start : start + settings.batch]
            pair = data.words[batch], data.labels[batch]
            state, _ = step(state, random.fold_in(key, number), *pair)
            number += 1
        right = float(np.mean(predict(state[0], held) == data.labels[held]))
        if right > best:
            best, kept = right, state[0]
    return kept, lambda places: predict(kept, places)


def fit(
    data: Sentences, taken: np.ndarray, tables: Any, size: int, settings: Settings
) -> Callable[[np.ndarray], np.ndarray]:
    """Trains on some sentences; returns a function that predicts labels."""
    return learn(data, taken, tables, size, settings)[1]


def accuracies(
    data: Sentences, known: Vocabulary, table: Any, size: int, settings: Settings
) -> list[float]:
    """Returns the fraction of each fold that is classified correctly."""
    fold = folds(data.labels)
    tables = tables_of(settings, size, len(known), table)
    found = []
    for number in range(settings.folds):
        predict = fit(data, np.flatnonzero(fold != number), tables, size, settings)
        tested = np.flatnonzero(fold == number)
        found.append(float(np.mean(predict(tested) == data.labels[tested])))
        print(f"{settings.channels}, fold {number}: {found[-1]:.1%}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Runs the example and returns the mean accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", metavar="FOLDER", help="of word2vec.py --save")
    parser.add_argument("--channels", nargs="*", choices=CHANNELS)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=Settings().epochs)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    settings = Settings(folds=given.folds, epochs=given.epochs, seed=given.seed)

    reviews = load_reviews()
    data, known = encoded(reviews.sentences, reviews.labels, max(settings.widths))
    table, size = None, 100
    if given.vectors:
        table = pretrained(given.vectors, reviews.texts, known)
        size = table.shape[1]
    means = {}
    for channels in given.channels or (CHANNELS if given.vectors else CHANNELS[:1]):
        started = time.perf_counter()
        chosen = settings._replace(channels=channels)
        found = accuracies(data, known, table, size, chosen)
        means[channels] = float(np.mean(found))
        print(
            f"{channels}: {means[channels]:.1%} ± {np.std(found):.1%} of "
            f"{len(found)} folds, {time.perf_counter() - started:.0f} s"
        )
    return means


if __name__ == "__main__":
    main()
