"""A transformer in stages: the layers of a language model on several devices.

    python examples/pipeline_transformer.py                    # 2 host devices
    python examples/pipeline_transformer.py --devices 4 --schedule zb-h1
    python examples/pipeline_transformer.py --tasks 2          # 2 processes
    fxflow launch --tasks 2 examples/pipeline_transformer.py   # here, or on a cluster

The model predicts the next character of Shakespeare. Scopes (`on`) name the stage of
each block; the first stage also has the embedding, the last one the head, and both use
the same table. A batch is divided into microbatches, whose gradients are added: while
one stage works on a microbatch, the next stage works on the one before. Weights,
gradients and Adam's state stay in their stage.
"""

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from helpers.texts import load_shakespeare

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, nn, optim, random, train
from fxflow.dataflow import on

Params = dict[str, Any]


class Settings(NamedTuple):
    """The settings of a run.

    Attributes:
      width: of the activations.
      heads: of each attention.
      blocks: of the transformer.
      length: characters of each text in a batch.
      batch: texts in a step.
      microbatches: parts of a batch.
      rate: learning rate of Adam.
      steps: of training.
    """

    width: int = 64
    heads: int = 4
    blocks: int = 4
    length: int = 64
    batch: int = 32
    microbatches: int = 8
    rate: float = 3e-3
    steps: int = 300


class State(NamedTuple):
    """Everything that a step reads and updates."""

    params: Params
    optimizer: Any


# -- model -----------------------------------------------------------------------------


def init(key: fxflow.Array, symbols: int, settings: Settings) -> Params:
    """Returns initial parameters."""
    first, second, *keys = random.split(key, 2 + settings.blocks)
    width = settings.width

    def weight(key: fxflow.Array, inputs: int, outputs: int) -> fxflow.Array:
        return random.normal(key, (inputs, outputs)) / fnp.sqrt(inputs)

    def block(key: fxflow.Array) -> Params:
        k = random.split(key, 4)
        return {
            "qkv": weight(k[0], width, 3 * width),
            "out": weight(k[1], width, width),
            "up": weight(k[2], width, 4 * width),
            "down": weight(k[3], 4 * width, width),
        }

    return {
        "table": random.normal(first, (symbols, width)),
        "places": random.normal(second, (settings.length, width)),
        "blocks": [block(k) for k in keys],
    }


def block(params: Params, x: fxflow.Array, heads: int) -> fxflow.Array:
    """Applies causal attention and a perceptron to `x: f32[n, length, width]`."""
    n, length, width = x.shape
    qkv = (nn.standardize(x) @ params["qkv"]).reshape(n, length, 3, heads, -1)
    q, k, v = fnp.moveaxis(qkv, (2, 3), (0, 2))
    seen = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + fnp.moveaxis(seen, 1, 2).reshape(n, length, width) @ params["out"]
    return x + nn.gelu(nn.standardize(x) @ params["up"]) @ params["down"]


def make_loss(
    heads: int, cuts: Sequence[int], stages: Sequence[Any]
) -> Callable[[Params, fxflow.Array], fxflow.Array]:
    """Makes the loss: the mean cross-entropy of the next symbol.

    Args:
        heads: of each attention.
        cuts: the number of blocks of each stage.
        stages: where they run.
    """
    stage_of = [s for s, count in zip(stages, cuts, strict=True) for _ in range(count)]

    def loss(params: Params, tokens: fxflow.Array) -> fxflow.Array:
        known, following = tokens[:, :-1], tokens[:, 1:]
        with on(stages[0]):
            x = params["table"][known] + params["places"]
        for stage, weights in zip(stage_of, params["blocks"], strict=True):
            with on(stage):
                x = block(weights, x, heads)
        with on(stages[-1]):
            scale = fnp.sqrt(x.shape[-1])
            log_p = nn.log_softmax(nn.standardize(x) @ params["table"].T / scale)
            return -fnp.mean(fnp.take_along_axis(log_p, following[..., None], -1))

    return loss


def make_step(loss: Any, optimizer: Any, microbatches: int) -> Any:
    """Makes the function that runs one training step."""
    gradient = train.accumulate_gradients(loss, microbatches)

    def step(state: State, tokens: fxflow.Array) -> tuple[State, fxflow.Array]:
        value, gradients = gradient(state.params, tokens)
        updates, memory = optimizer.update(gradients, state.optimizer, state.params)
        return State(optim.apply_updates(state.params, updates), memory), value

    return step


def even(blocks: int, stages: int) -> list[int]:
    """Returns the number of blocks of each stage, as equal as possible."""
    return [(i + 1) * blocks // stages - i * blocks // stages for i in range(stages)]


# -- data ------------------------------------------------------------------------------


def characters(texts: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[str]]:
    """Returns the characters of texts as numbers, and the characters by number."""
    text = "\n".join(" ".join(words) for words in texts)
    symbols = sorted(set(text))
    number = np.zeros(1 + max(map(ord, symbols)), np.int32)
    number[[ord(symbol) for symbol in symbols]] = np.arange(len(symbols))
    return number[np.frombuffer(text.encode("utf-32-le"), np.uint32)], symbols


def batches(text: np.ndarray, settings: Settings, seed: int = 0) -> Iterator[Any]:
    """Yields batches `i32[batch, length + 1]` of pieces of the text."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(settings.length + 1)
    while True:
        start = rng.integers(0, len(text) - settings.length, settings.batch)
        yield text[start[:, None] + offsets]


# -- training --------------------------------------------------------------------------


def fit(
    text: np.ndarray, symbols: int, settings: Settings, devices: Any, schedule: str
) -> tuple[list[float], Any]:
    """Trains; returns the losses and the plan of a step."""
    parts = dataflow.stages(len(devices))
    loss = make_loss(settings.heads, even(settings.blocks, len(parts)), parts)
    optimizer = optim.adam(settings.rate)
    step = dataflow.jit(
        make_step(loss, optimizer, settings.microbatches),
        devices=devices,
        schedule=schedule,
        donate_argnums=0,
    )
    params = init(random.key(0), symbols, settings)
    state = State(params, optimizer.init(params))
    source = batches(text, settings)
    plan = step.plan(state, next(source))
    losses = []
    for _ in range(settings.steps):
        state, value = step(state, next(source))
        losses.append(value)
    return [float(value) for value in losses], plan


@contextlib.contextmanager
def devices_of(tasks: int, devices: int) -> Iterator[Sequence[Any]]:
    """Yields the devices of tasks, which are processes, or of this process."""
    if tasks or "FXFLOW_DATAFLOW_TASKS" in os.environ:  # set by fxflow launch --tasks
        found = dataflow.local_cluster(tasks) if tasks else dataflow.connect()
        with found as cluster:
            yield cluster.devices
    else:
        # Without accelerators, the CPU counts as this many devices. Set before first
        # use.
        fxflow.config.num_cpu_devices = devices
        yield fxflow.local_devices()[:devices]


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the mean of the last losses, in bits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=0, help="processes to start here")
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--steps", type=int, default=Settings().steps)
    parser.add_argument("--blocks", type=int, default=Settings().blocks)
    parser.add_argument("--microbatches", type=int, default=Settings().microbatches)
    given = parser.parse_args(arguments)
    settings = Settings(
        blocks=given.blocks, microbatches=given.microbatches, steps=given.steps
    )
    text, symbols = characters(load_shakespeare())
    print(f"{len(text):,} characters, {len(symbols)} different ones")
    started = time.perf_counter()
    with devices_of(given.tasks, given.devices) as devices:
        losses, plan = fit(text, len(symbols), settings, devices, given.schedule)
    pace = given.steps / (time.perf_counter() - started)
    timeline = plan.simulate()
    print(timeline.to_text(name=lambda place: str(place.device)))
    print(f"{len(plan.fragments)} fragments, bubble {timeline.bubble:.0%} by flops")
    bits = float(np.mean(losses[-20:])) / np.log(2)
    print(f"{pace:.1f} steps/s, at the end {bits:.2f} bits per character")
    return bits


if __name__ == "__main__":
    main()
