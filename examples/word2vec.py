"""Learns word vectors from 5.8 million words of film reviews.

    python examples/word2vec.py                   # minutes; tests 40 pairs of words
    python examples/word2vec.py --logs runs/w2v   # also for TensorBoard's projector
    python examples/word2vec.py --near good actor horror

Skip-gram with negative sampling (Mikolov et al. 2013). A step takes a stretch of text:
each word predicts its neighbours, and must not predict some sampled words, the same
for the whole stretch (Ji et al. 2016), so that scores are matrix products. A step
gathers, differentiates and writes back only the rows of words that occur, in the memory
of the donated tables.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.texts import Vocabulary, load_reviews

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random, train

# Chosen before the first run: the second word should be near the first.
PAIRS = """
    good-great bad-terrible actor-actress horror-scary funny-hilarious movie-film
    boring-dull awful-terrible amazing-incredible beautiful-gorgeous stupid-dumb
    husband-wife son-daughter brother-sister mother-father man-woman boy-girl king-queen
    music-soundtrack sequel-sequels zombie-zombies vampire-vampires cop-detective
    killer-murderer french-italian three-four dvd-vhs book-novel script-screenplay
    plot-storyline excellent-superb car-truck gun-guns cat-dog alien-aliens planet-earth
    robot-robots ghost-ghosts songs-song teacher-students
"""
BLOCK = 32  # words whose scores with their neighbours are one matrix product
ANALOGIES = [("man", "king", "woman"), ("he", "his", "she"), ("good", "better", "bad")]


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      size: length of the vectors.
      window: maximum number of neighbours on each side, drawn for each word.
      stretch: words per step, a multiple of 32.
      negatives: weight of all sampled words, relative to one neighbour.
      drawn: sampled words per step.
      rate: learning rate of Adagrad.
      threshold: frequency above which occurrences of a word are skipped at random.
      epochs: passes over the text.
      seed: seed of all random numbers.
    """

    size: int = 100
    window: int = 5
    stretch: int = 1024
    negatives: int = 5
    drawn: int = 64
    rate: float = 0.1
    threshold: float = 1e-4
    epochs: int = 10
    seed: int = 0


class State(NamedTuple):
    """Two vectors for each word, and Adagrad's sums of squares for each vector."""

    tables: dict[str, fxflow.Array]
    squares: dict[str, fxflow.Array]


class Vectors:
    """Word vectors, normalized to length 1.

    Args:
      words: the word of each row.
      rows: f32[n, size].
    """

    def __init__(self, words: Sequence[str], rows: Any) -> None:
        self.words, rows = list(words), np.asarray(rows)
        self.ids = {word: i for i, word in enumerate(self.words)}
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def nearby(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """Returns the words with the largest cosine similarity to a word."""
        return self._nearest(self.rows[self.ids[word]], {word}, count)

    def analogy(
        self, a: str, b: str, c: str, count: int = 5
    ) -> list[tuple[str, float]]:
        """Returns the words that are to `c` as `b` is to `a`."""
        row = sum(s * self.rows[self.ids[w]] for s, w in ((-1, a), (1, b), (1, c)))
        return self._nearest(row / np.linalg.norm(row), {a, b, c}, count)

    def _nearest(self, row: Any, but: set[str], count: int) -> list[tuple[str, float]]:
        cosines = self.rows @ row
        order = np.argsort(-cosines)[: count + len(but)]
        found = [(self.words[i], float(cosines[i])) for i in order]
        return [(word, cosine) for word, cosine in found if word not in but][:count]


def found_pairs(vectors: Vectors, pairs: str = PAIRS) -> dict[tuple[str, str], bool]:
    """Returns for each pair whether the second word is among the ten nearest."""
    listed = [tuple(pair.split("-")) for pair in pairs.split()]
    return {(a, b): b in dict(vectors.nearby(a)) for a, b in listed}


# -- training --------------------------------------------------------------------------


def init(key: fxflow.Array, vocabulary: int, settings: Settings) -> State:
    """Returns initial vectors: random near 0 for `in`, 0 for `out`."""
    shape = vocabulary, settings.size
    bound = 0.5 / settings.size
    tables = {
        "in": random.uniform(key, shape, minval=-bound, maxval=bound),
        "out": fnp.zeros(shape),
    }
    return State(tables, {name: fnp.zeros(vocabulary) for name in tables})


def loss_of(
    rows: dict[str, fxflow.Array], taken: fxflow.Array, settings: Settings
) -> Any:
    """Returns the loss of a stretch, divided into blocks.

    Args:
      rows: the vectors `in` f32[blocks, n, size] of its words, `out` f32[blocks, m,
        size] of the words in and around each block, and `drawn` f32[k, size] of the
        sampled words.
      taken: bool[blocks, n, m], which words predict which.
      settings: the settings of the run.
    """
    scores = fnp.einsum("bns,bms->bnm", rows["in"], rows["out"])
    total = fnp.sum(fnp.where(taken, nn.log_sigmoid(scores), 0))
    against = nn.log_sigmoid(-(rows["in"].reshape(-1, settings.size) @ rows["drawn"].T))
    counts = fnp.sum(taken, axis=2, dtype="float32").reshape(-1)
    weight = settings.negatives / settings.drawn
    return -total - weight * fnp.sum(counts * fnp.sum(against, axis=1))


def neighbours(key: Any, docs: Any, settings: Settings) -> Any:
    """Returns which words of each block predict which others: bool[blocks, n, m].

    Args:
      key: the random key for the window of each word.
      docs: i32[blocks, m], the number of each word's text.
      settings: the settings of the run.
    """
    blocks, window = len(docs), settings.window
    reach = random.randint(key, (blocks, BLOCK, 1), 1, window + 1)
    own = fnp.arange(BLOCK)[:, None] + window
    distance = abs(fnp.arange(BLOCK + 2 * window) - own)
    same = docs[:, None, :] == docs[:, window:-window, None]
    return same & (distance > 0) & (distance <= reach)


def make_step(counts: np.ndarray, settings: Settings) -> Callable[..., Any]:
    """Compiles `step(state, key, words, docs) -> (state, loss)`."""
    weights = fnp.asarray(counts**0.75, "float32")

    blocks, window = settings.stretch // BLOCK, settings.window
    places = np.arange(blocks)[:, None] * BLOCK + np.arange(BLOCK + 2 * window)

    def step(state: State, key: Any, words: Any, docs: Any) -> Any:
        draw_key, reach_key = random.split(key)
        around, own = words[places], words[places[:, window:-window]]
        drawn = nn.unigram_candidates(
            draw_key, own, settings.drawn, weights, unique=False
        ).ids
        taken = neighbours(reach_key, docs[places], settings)
        tables, squares = dict(state.tables), dict(state.squares)
        rows = {
            "in": tables["in"][own],
            "out": tables["out"][around],
            "drawn": tables["out"][drawn],
        }
        loss, slopes = fxflow.value_and_grad(loss_of)(rows, taken, settings)
        slopes = {k: slope.reshape(-1, settings.size) for k, slope in slopes.items()}
        # One write into each table: a second one would make XLA copy it.
        slopes["out"] = fnp.concatenate([slopes["out"], slopes.pop("drawn")])
        written = {
            "in": own.reshape(-1),
            "out": fnp.concatenate([around.reshape(-1), drawn]),
        }
        for name, ids in written.items():
            slope = slopes[name]
            added = squares[name].at[ids].add(fnp.mean(slope**2, axis=1))
            pace = settings.rate / fnp.sqrt(added[ids] + 1e-8)
            tables[name] = tables[name].at[ids].add(-pace[:, None] * slope)
            squares[name] = added
        return State(tables, squares), loss / settings.stretch

    return fxflow.jit(step, donate_argnums=0)


def encoded(
    vocabulary: Vocabulary, texts: Sequence[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the words of all texts as i32[n], and the number of the text of each."""
    coded = [np.array(vocabulary.encode(text), np.int32) for text in texts]
    docs = np.repeat(np.arange(len(coded), dtype=np.int32), [len(t) for t in coded])
    return np.concatenate(coded), docs


def kept_fractions(counts: np.ndarray, settings: Settings) -> np.ndarray:
    """Returns the fraction f32[n] of each word's occurrences that is kept."""
    often = settings.threshold / (counts / counts.sum())
    return np.minimum(np.sqrt(often) + often, 1).astype(np.float32)


def stretches(
    ids: np.ndarray,
    docs: np.ndarray,
    keep: np.ndarray,
    settings: Settings,
    rng: np.random.Generator,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields stretches of one epoch in a random order, with frequent words left out.

    Each includes the words around it, which it predicts.
    """
    taken = rng.random(len(ids), np.float32) < keep[ids]
    ids, docs = ids[taken], docs[taken]
    length = settings.stretch + 2 * settings.window
    for start in rng.permutation(np.arange(0, len(ids) - length + 1, settings.stretch)):
        yield ids[start : start + length], docs[start : start + length]


def fit(
    texts: Sequence[Sequence[str]],
    settings: Settings,
    least: int = 5,
    log: Callable[[int, dict[str, Any]], None] | None = None,
) -> tuple[Vectors, float]:
    """Trains vectors; returns them and the speed in words/s."""
    vocabulary = Vocabulary(texts, least)
    ids, docs = encoded(vocabulary, texts)
    keep = kept_fractions(vocabulary.counts, settings)
    key = random.key(settings.seed)
    rng = np.random.default_rng(settings.seed)
    state = init(key, len(vocabulary), settings)
    step = make_step(vocabulary.counts, settings)
    length = settings.stretch + 2 * settings.window
    state, _ = step(state, key, *np.zeros((2, length), np.int32))  # compiles
    state = init(key, len(vocabulary), settings)
    number, started = 0, time.perf_counter()
    for epoch in range(settings.epochs):
        for words, where in stretches(ids, docs, keep, settings, rng):
            state, loss = step(state, random.fold_in(key, number), words, where)
            number += 1
            if log is not None and number % 100 == 0:
                log(number, {"loss": loss, "epoch": epoch})
    fxflow.block_until_ready(state)
    pace = settings.epochs * len(ids) / (time.perf_counter() - started)
    return Vectors(vocabulary.words, state.tables["in"]), pace


def options(description: str) -> argparse.ArgumentParser:
    """Returns a parser of the options of a run."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--save", metavar="FOLDER", help="a checkpoint of the vectors")
    parser.add_argument("--near", nargs="*", default=["good", "actor", "horror"])
    for name, value in Settings()._asdict().items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser


def settings_of(given: argparse.Namespace) -> Settings:
    """Returns the settings among the options."""
    return Settings(*(getattr(given, name) for name in Settings._fields))


def report(vectors: Vectors, given: argparse.Namespace) -> int:
    """Prints nearest words and analogies; returns the number of pairs found."""
    if given.save:
        train.checkpoint.save(given.save, {"in": vectors.rows})
    for word in given.near:
        listed = ", ".join(f"{w} {c:.2f}" for w, c in vectors.nearby(word))
        print(f"{word}: {listed}")
    for a, b, c in ANALOGIES:
        listed = ", ".join(w for w, _ in vectors.analogy(a, b, c))
        print(f"{a} : {b} = {c} : {listed}")
    pairs = found_pairs(vectors)
    missed = " ".join(f"{a}-{b}" for (a, b), found in pairs.items() if not found)
    print(f"{sum(pairs.values())} of {len(pairs)} pairs; not {missed or 'one missed'}")
    return sum(pairs.values())


def main(arguments: list[str] | None = None) -> int:
    """Runs the example and returns the number of pairs found."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--logs", metavar="FOLDER", help="event files for TensorBoard")
    given = parser.parse_args(arguments)
    settings = settings_of(given)

    reviews = load_reviews()
    sinks = [train.logs.terminal()]
    if given.logs:
        sinks.append(train.logs.tensorboard(given.logs))
    with train.logs.Logger(*sinks) as log:
        vectors, pace = fit(reviews.texts, settings, log=log)
        if given.logs:
            most = train.logs.Embedding(vectors.rows[:10_000], vectors.words[:10_000])
            log(0, {"words": most})
    print(f"{pace:,.0f} words/s")
    return report(vectors, given)


if __name__ == "__main__":
    main()
