"""How long pipelines take whose stages sleep, compared with the laws of the schedules.

    python benchmarks/dataflow/schedules.py
    python benchmarks/dataflow/schedules.py --devices 4 --microbatches 8 --seconds 0.02

A stage's forward part, the gradient of its input and that of its weights sleep equally
long, so the devices of one process need no cores of their own. With two stages on a
device each sleeps half as long. A time is that of a step, the best of some, over the
time in which the devices are busy. Laws are those of equal stages without transfers.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "8")

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, lax
from fxflow.dataflow import on, stages

#: For each schedule: stages on each device, and the law in units of a micro-batch.
LAWS: dict[str, tuple[int, Callable[[int], float]]] = {
    "gpipe": (1, lambda p: p - 1),
    "1f1b": (1, lambda p: p - 1),
    "interleaved": (2, lambda p: (p - 1) / 2),
    "zb-h1": (1, lambda p: (p - 1) / 3),
    "zb-v": (2, lambda p: (p - 1) / 6),
}


def sleeping_stage(seconds: float) -> Callable[..., Any]:
    """Returns a stage whose forward part and two gradients sleep."""

    def sleep(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: (time.sleep(seconds), v)[1], x, x)

    @fxflow.custom_vjp
    def stage(w: Any, x: Any) -> Any:
        return sleep(x) + w * 0

    def forward(w: Any, x: Any) -> Any:
        y = stage(w, x)
        return y, y

    def backward(y: Any, g: Any) -> Any:
        # Both depend on the forward part, which would be left out otherwise.
        return sleep(g * 2 + y * 0), sleep(g + y * 0)

    stage.defvjp(forward, backward)
    return stage


def train_step(count: int, seconds: float) -> Callable[..., Any]:
    """Returns a step: the sum of the gradients of all micro-batches.

    Args:
      count: of the stages.
      seconds: that each part of a stage sleeps.
    """
    stage = sleeping_stage(seconds)

    def loss(weights: Any, x: Any) -> Any:
        for where, w in zip(stages(count), weights, strict=True):
            with on(where):
                x = stage(w, x)
        with on(stages(count)[-1]):
            return x.sum()

    def step(weights: Any, batch: Any) -> Any:
        def add(total: Any, x: Any) -> Any:
            found = fxflow.grad(loss, argnums=(0, 1))(weights, x)
            return fxflow.tree.map(fnp.add, total, found), None

        zero = [w * 0 for w in weights], batch[0] * 0
        return lax.scan(add, zero, batch)[0]

    return step


def measured(
    name: str, devices: int, microbatches: int, seconds: float, rounds: int
) -> tuple[float, float, int]:
    """Returns the time of a step, measured and simulated, in units of its busy time.

    Also returns the most activations that a device holds.
    """
    chunks, _ = LAWS[name]
    part = seconds / chunks
    step = dataflow.jit(
        train_step(chunks * devices, part),
        devices=fxflow.local_devices()[:devices],
        schedule=name,
    )
    weights = [fnp.ones(16)] * (chunks * devices)
    batch = fnp.ones((microbatches, 16))

    def sleeps(fragment: dataflow.Fragment) -> float:
        names = [node.primitive.name for node in fragment.graph.nodes]
        return part * names.count("python_callback")

    # Flops do not say how long a stage sleeps.
    plan = step.plan(weights, batch).scheduled(name, sleeps)
    timeline = plan.simulate(sleeps)
    step = dataflow.jit(train_step(chunks * devices, part), plan=plan)
    fxflow.block_until_ready(step(weights, batch))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        fxflow.block_until_ready(step(weights, batch))
        best = min(best, time.perf_counter() - start)
    busy = 3 * microbatches * seconds
    return best / busy, timeline.seconds / busy, max(timeline.activations.values())


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--microbatches", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--schedules", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    print(
        "| devices | micro-batches | schedule | law | simulated | measured | "
        "measured / law | activations |"
    )
    print("| --: | --: | --- | --: | --: | --: | --: | --: |")
    for devices in given.devices:
        for count in given.microbatches:
            for name in given.schedules:
                chunks, gaps = LAWS[name]
                law = (count + gaps(devices)) / count
                real, simulated, held = measured(
                    name, devices, count, given.seconds, given.rounds
                )
                activations = f"{held}" if chunks == 1 else f"{held} / {chunks}"
                print(
                    f"| {devices} | {count} | {name} | {law:.3f} | {simulated:.3f} | "
                    f"{real:.3f} | {real / law:.3f} | {activations} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
