"""Predicts the next word of Shakespeare with an LSTM.

    python examples/language_model.py                       # both losses, a table
    python examples/language_model.py --loss sampled
    python examples/language_model.py --vocabulary 40000 --steps 20

Back-propagation is truncated: a step processes a few words of each of many parallel
texts, and passes its state to the next. Training uses the full softmax, or a softmax
over the labels and some sampled words (Jean et al. 2015), which gathers, differentiates
and writes back only their rows. Perplexities are always those of the full softmax.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.texts import Vocabulary, load_shakespeare

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random, train, tree

UNKNOWN = "<unknown>"
HELD_OUT = 20  # the last 1/20 of each text is for testing


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      loss: `full` or `sampled`.
      vocabulary: number of known words, the most frequent ones.
      units: length of the word vectors and of the state.
      batch: number of parallel texts.
      length: words of each text in a step.
      drawn: sampled words in a step.
      rate: learning rate of Adagrad.
      dropout: fraction of the LSTM's inputs and outputs that is dropped.
      epochs: passes over the texts.
      steps: maximum number of steps in each epoch; 0: all.
      seed: seed of all random numbers.
    """

    loss: str = "sampled"
    vocabulary: int = 10_000
    units: int = 256
    batch: int = 32
    length: int = 20
    drawn: int = 512
    rate: float = 0.1
    dropout: float = 0.25
    epochs: int = 1
    steps: int = 0
    seed: int = 0


class State(NamedTuple):
    """Weights, Adagrad's sums of squares, and the state of the LSTM between steps."""

    params: dict[str, Any]
    squares: dict[str, Any]
    carry: Any


class Result(NamedTuple):
    """The result of a run: perplexity on held-out texts, words/s, ms per step."""

    perplexity: float
    pace: float
    milliseconds: float


# -- model -----------------------------------------------------------------------------


def init(key: fxflow.Array, settings: Settings) -> State:
    """Returns initial weights and an empty state."""
    keys = random.split(key, 3)
    size, units = settings.vocabulary, settings.units
    softmax = nn.linear_init(keys[2], units, size)
    params = {
        "embed": nn.embedding_init(keys[0], size, units),
        "lstm": nn.lstm_init(keys[1], units, units),
        "softmax": {"w": softmax["w"].T, "b": softmax["b"]},  # rows, one for each word
    }
    squares = tree.map(lambda w: fnp.full(w.shape, 0.01), params)
    return State(params, squares, nn.lstm_state(params["lstm"], settings.batch))


def outputs(
    lstm: Any, carry: Any, inputs: Any, key: Any, rate: float
) -> tuple[Any, fxflow.Array]:
    """Returns the LSTM's outputs for f32[time, batch, units]; no key: no dropout."""
    keys = random.split(key) if key is not None else (None, None)
    quiet = key is None
    inputs = nn.dropout(keys[0], inputs, rate, deterministic=quiet)
    carry, ys = nn.lstm(lstm, carry, inputs, time_major=True)
    ys = nn.dropout(keys[1], ys, rate, deterministic=quiet)
    return carry, ys.reshape(-1, ys.shape[-1])


def full_loss(softmax: Any, ys: Any, labels: Any) -> Any:
    """Returns cross entropies f32[n] of the full softmax."""
    return nn.linear_cross_entropy(softmax, ys, labels)


def moved(weight: Any, square: Any, slope: Any, rate: float, ids: Any = None) -> Any:
    """Returns a weight and its sum of squares after an Adagrad step on rows `ids`."""
    if ids is None:
        square = square + slope**2
        return weight - rate * slope / fnp.sqrt(square), square
    square = square.at[ids].add(slope**2)
    return weight.at[ids].add(-rate * slope / fnp.sqrt(square[ids])), square


def make_step(settings: Settings) -> Callable[..., Any]:
    """Compiles `step(state, key, words, labels) -> (state, loss)`."""
    sampled = settings.loss == "sampled"

    def step(state: State, key: Any, words: Any, labels: Any) -> Any:
        draw_key, drop_key = random.split(key)
        words, labels = words.reshape(-1), labels.reshape(-1)
        count = len(labels)
        rows: Any = None
        softmax = state.params["softmax"]
        if sampled:
            drawn = nn.log_uniform_candidates(
                draw_key, labels[:, None], settings.drawn, settings.vocabulary
            )
            rows = fnp.concatenate([labels, drawn.ids])
            softmax = {name: weight[rows] for name, weight in softmax.items()}
            # Their positions among the rows.
            here = drawn._replace(ids=count + fnp.arange(settings.drawn))
            places = fnp.arange(count)[:, None]
        taken = {
            "embed": {"w": state.params["embed"]["w"][words]},
            "lstm": state.params["lstm"],
            "softmax": softmax,
        }

        def loss(taken: Any) -> Any:
            shape = settings.length, settings.batch, settings.units
            inputs = taken["embed"]["w"].reshape(shape)
            carry, ys = outputs(
                taken["lstm"], state.carry, inputs, drop_key, settings.dropout
            )
            if sampled:
                each = nn.sampled_softmax_loss(taken["softmax"], ys, places, here)
            else:
                each = full_loss(taken["softmax"], ys, labels)
            return fnp.mean(each), carry

        (value, carry), slopes = fxflow.value_and_grad(loss, has_aux=True)(taken)
        written = {"embed": words, "lstm": None, "softmax": rows}
        params, squares = {}, {}
        for name, ids in written.items():
            old = state.params[name], state.squares[name], slopes[name]
            both = [
                moved(*leaves, settings.rate, ids)
                for leaves in zip(*map(tree.leaves, old), strict=True)
            ]
            shape = tree.structure(state.params[name])
            params[name] = tree.unflatten(shape, [new for new, _ in both])
            squares[name] = tree.unflatten(shape, [square for _, square in both])
        return State(params, squares, carry), value

    return fxflow.jit(step, donate_argnums=0)


# -- data ------------------------------------------------------------------------------


def coded(
    texts: Sequence[Sequence[str]], size: int
) -> tuple[np.ndarray, np.ndarray, Vocabulary]:
    """Returns words for training and for testing, as numbers below `size`."""
    cuts = [len(text) - len(text) // HELD_OUT for text in texts]
    pairs = list(zip(texts, cuts, strict=True))
    known = Vocabulary((t[:cut] for t, cut in pairs), most=size, unknown=UNKNOWN)
    learnt = [known.encode(text[:cut]) for text, cut in pairs]
    tested = [known.encode(text[cut:]) for text, cut in pairs]
    numbers = [np.concatenate(parts).astype(np.int32) for parts in (learnt, tested)]
    return numbers[0], numbers[1], known


def batches(
    words: np.ndarray, batch: int, length: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields words i32[length, batch] and the next words; columns continue."""
    rows = (len(words) - 1) // batch
    now = words[: rows * batch].reshape(batch, rows).T
    after = words[1 : rows * batch + 1].reshape(batch, rows).T
    for start in range(0, rows - length + 1, length):
        yield now[start : start + length], after[start : start + length]


# -- training --------------------------------------------------------------------------


def perplexity(params: Any, words: np.ndarray, settings: Settings) -> float:
    """Returns the perplexity of a text under the full softmax."""

    @fxflow.jit
    def losses(carry: Any, words: Any, labels: Any) -> Any:
        inputs = params["embed"]["w"][words]
        carry, ys = outputs(params["lstm"], carry, inputs, None, 0.0)
        return carry, fnp.sum(full_loss(params["softmax"], ys, labels.reshape(-1)))

    batch = min(settings.batch, len(words) // (settings.length + 1))
    carry, total, count = nn.lstm_state(params["lstm"], batch), 0.0, 0
    for now, after in batches(words, batch, settings.length):
        carry, loss = losses(carry, now, after)
        total, count = total + float(loss), count + after.size
    return math.exp(total / count)


def fit(
    train_words: np.ndarray,
    test_words: np.ndarray,
    settings: Settings,
    log: Callable[[int, dict[str, Any]], None] | None = None,
) -> Result:
    """Trains a model and tests it."""
    key = random.key(settings.seed)
    step, state = make_step(settings), init(key, settings)
    nothing = np.zeros((settings.length, settings.batch), np.int32)
    fxflow.block_until_ready(step(state, key, nothing, nothing))  # compiles
    state, number, started = init(key, settings), 0, time.perf_counter()
    for _ in range(settings.epochs):
        empty = nn.lstm_state(state.params["lstm"], settings.batch)
        state = state._replace(carry=empty)
        for turn, pair in enumerate(
            batches(train_words, settings.batch, settings.length)
        ):
            if settings.steps and turn == settings.steps:
                break
            state, loss = step(state, random.fold_in(key, number), *pair)
            number += 1
            if log is not None and number % 50 == 0:
                log(number, {f"{settings.loss} loss": loss})
    fxflow.block_until_ready(state)
    seconds = time.perf_counter() - started
    words = number * settings.length * settings.batch
    return Result(
        perplexity(state.params, test_words, settings),
        words / seconds,
        1000 * seconds / max(number, 1),
    )


def main(arguments: list[str] | None = None) -> dict[str, Result]:
    """Runs the example and returns the results by loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", metavar="FOLDER", help="event files for TensorBoard")
    parser.add_argument("--loss", choices=["full", "sampled", "both"], default="both")
    for name, value in Settings()._asdict().items():
        if name != "loss":
            parser.add_argument(f"--{name}", type=type(value), default=value)
    given = parser.parse_args(arguments)
    settings = Settings(**{name: getattr(given, name) for name in Settings._fields})

    train_words, test_words, known = coded(load_shakespeare(), settings.vocabulary)
    print(f"{len(train_words):,} words to learn from, {len(test_words):,} to test with")
    missing = float(np.mean(test_words == 0))
    print(f"{len(known):,} are known, {missing:.1%} of those to test with are not")
    sinks = [train.logs.terminal()]
    if given.logs:
        sinks.append(train.logs.tensorboard(given.logs))
    results = {}
    with train.logs.Logger(*sinks) as log:
        for loss in ("full", "sampled") if given.loss == "both" else (given.loss,):
            chosen = settings._replace(loss=loss)
            results[loss] = fit(train_words, test_words, chosen, log)
    print("softmax   perplexity   words/s   ms a step")
    for loss, (reached, pace, milliseconds) in results.items():
        print(f"{loss:8} {reached:11.1f} {pace:9,.0f} {milliseconds:11.1f}")
    return results


if __name__ == "__main__":
    main()
