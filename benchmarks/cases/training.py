"""Compile time and speed of training steps."""

import contextlib
from collections.abc import Callable
from typing import Any

from . import convnets, loads, models
from .library import STEP_SECONDS, Case, Cases, Library, Timed, once, timed
from .tracing import put

MODELS = {
    "MLP": models.mlp,
    "CNN": models.cnn,
    "LSTM": models.lstm,
    "transformer": models.transformer,
    "word2vec": models.word2vec,
}
RATE = 1e-3


def step_of(library: Library, model: models.Model) -> Any:
    """One step of gradient descent; the parameters are donated."""
    root = library.root

    def step(params: Any, *batch: Any) -> Any:
        value, gradients = root.value_and_grad(model.loss)(params, *batch)
        params = root.tree.map(lambda p, g: p - RATE * g, params, gradients)
        return params, value

    return root.jit(step, donate_argnums=0)


def without_disk_cache(library: Library) -> Any:
    """A context in which a compile is a compile; JAX's cache is off by default."""
    if library.name == "fxflow":
        return library.root.config.override(cache=False)
    return contextlib.nullcontext()


def compiling(library: Library, maker: Callable[..., models.Model]) -> Any:
    model = maker(library)
    params, batch = put(library, model.params), put(library, model.batch)

    def measure() -> float:
        lowered = step_of(library, model).lower(params, *batch)
        with without_disk_cache(library):
            return once(lowered.compile)

    return measure


def stepping(library: Library, maker: Callable[..., models.Model]) -> Any:
    model = maker(library)
    params, batch = put(library, model.params), put(library, model.batch)
    nbytes = 2 * sum(x.nbytes for x in library.root.tree.leaves(params))
    return running(library, step_of(library, model), params, batch, nbytes)


def stepping_itself(library: Library, maker: Callable[..., loads.Step]) -> Any:
    state, step, batch, nbytes = maker(library)
    jitted = library.root.jit(step, donate_argnums=0)
    return running(library, jitted, put(library, state), put(library, batch), nbytes)


def running(library: Library, step: Any, params: Any, batch: Any, nbytes: int) -> Any:
    """Measures a step that gives the next step's parameters."""
    held = [params]
    work = {"flops": 0.0}
    if library.name == "fxflow":  # JAX counts otherwise; the work is the same
        work = step.lower(params, *batch).cost_analysis()
    nbytes += sum(x.nbytes for x in library.root.tree.leaves(batch))

    def call() -> Any:
        held[0], value = step(held[0], *batch)
        return value

    measure = timed(call, library.root.block_until_ready, STEP_SECONDS)
    return Timed(measure, work["flops"], nbytes)


def cases(library: Library) -> Cases:
    found = {}
    for name, maker in MODELS.items():
        found[f"compile {name}"] = Case(
            "ms", lambda maker=maker: compiling(library, maker), 1.0, most_rounds=5
        )
    for name, maker in (MODELS | loads.MODELS | convnets.MODELS).items():
        found[f"step {name}"] = Case(
            "ms",
            lambda maker=maker: stepping(library, maker),
            1.0,
            most_rounds=3 if name in convnets.MODELS else 1000,
        )
    for name, own in loads.STEPS.items():
        found[f"step {name}"] = Case(
            "ms", lambda own=own: stepping_itself(library, own), 1.0
        )
    return found
