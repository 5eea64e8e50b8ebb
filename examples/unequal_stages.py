"""Stages of unequal work: where to cut a model whose head is larger than its blocks.

    python examples/unequal_stages.py
    python examples/unequal_stages.py --vocabulary 8000 --blocks 8

The transformer of `pipeline_transformer.py`, on words. With a vocabulary of thousands,
the head takes as much work as several blocks. Equal numbers of blocks would leave the
first device waiting for the last one. Making a plan compiles nothing, so the program
plans every cut, simulates it, and runs the one that takes the least time.
"""

import argparse
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from helpers.texts import Vocabulary, load_shakespeare
from pipeline_transformer import (
    Settings,
    State,
    batches,
    even,
    init,
    make_loss,
    make_step,
)

import fxflow
from fxflow import dataflow, optim, random


def step_of(cuts: Sequence[int], settings: Settings, devices: Sequence[Any]) -> Any:
    """Returns a training step with these numbers of blocks in the stages."""
    loss = make_loss(settings.heads, cuts, dataflow.stages(len(cuts)))
    step = make_step(loss, optim.adam(settings.rate), settings.microbatches)
    return dataflow.jit(step, devices=devices, donate_argnums=0)


def cuts_of(blocks: int, stages: int) -> list[tuple[int, ...]]:
    """Returns all ways to divide consecutive blocks among stages."""
    bounds = itertools.combinations_with_replacement(range(blocks + 1), stages - 1)
    return [
        tuple(b - a for a, b in itertools.pairwise((0, *inner, blocks)))
        for inner in bounds
    ]


def predictions(
    state: Any, tokens: Any, settings: Settings, devices: Sequence[Any]
) -> dict[tuple[int, ...], float]:
    """Returns the simulated seconds of a step for each cut, the fastest first."""
    kinds = fxflow.eval_shape(lambda *args: args, state, tokens)
    seconds = {
        cuts: step_of(cuts, settings, devices).plan(*kinds).simulate().seconds
        for cuts in cuts_of(settings.blocks, len(devices))
    }
    return dict(sorted(seconds.items(), key=lambda item: item[1]))


def main(arguments: list[str] | None = None) -> tuple[int, ...]:
    """Runs the example and returns the number of blocks of each stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    devices = fxflow.local_devices()[: given.devices]
    settings = Settings(blocks=given.blocks, length=32, steps=given.steps)
    texts = load_shakespeare()
    known = Vocabulary(texts, most=given.vocabulary, unknown="<unknown>")
    words = np.array([n for text in texts for n in known.encode(text)], np.int32)
    return run(words, len(known), settings, devices)


def run(
    words: np.ndarray, vocabulary: int, settings: Settings, devices: Sequence[Any]
) -> tuple[int, ...]:
    """Chooses a cut and trains; returns the number of blocks of each stage."""
    params = init(random.key(0), vocabulary, settings)
    state = State(params, optim.adam(settings.rate).init(params))
    source = batches(words, settings)
    tokens = next(source)
    seconds = predictions(state, tokens, settings, devices)
    best = next(iter(seconds))
    equal = tuple(even(settings.blocks, len(devices)))
    for cuts in dict.fromkeys((best, equal)):
        plan = step_of(cuts, settings, devices).plan(state, tokens)
        timeline = plan.simulate()
        print(f"blocks of the stages: {cuts}, bubble {timeline.bubble:.0%} by flops")
        print(timeline.to_text(name=lambda place: str(place.device)))
    print(f"predicted speed-up over equal stages: {seconds[equal] / seconds[best]:.2f}")
    step, losses = step_of(best, settings, devices), []
    started = time.perf_counter()
    for _ in range(settings.steps):
        state, value = step(state, next(source))
        losses.append(value)
    first, last = float(losses[0]), float(losses[-1])
    pace = settings.steps / (time.perf_counter() - started)
    print(f"{pace:.1f} steps/s, loss {first:.2f} → {last:.2f}")
    return best


if __name__ == "__main__":
    main()
