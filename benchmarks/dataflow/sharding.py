"""Shardings that are chosen by cost beside those of the examples, written by hand.

    FXFLOW_NUM_CPU_DEVICES=4 python benchmarks/dataflow/sharding.py
    python benchmarks/dataflow/sharding.py --rounds 50 --layers 12 96

Both programs of an example run in turns in one process. The second table has the time
that planning takes, for a training step of a transformer on eight devices that compute
and communicate as an accelerator's; nothing of it is run.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "8")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import fxflow  # noqa: E402
from fxflow import NamedSharding, P, optim, random  # noqa: E402
from fxflow.dataflow import auto_sharding  # noqa: E402
from tests.dataflow.sharding import networks  # noqa: E402


class Case(NamedTuple):
    """A training step, divided by hand.

    Attributes:
      name: of the example.
      mesh: the devices.
      hand: the step with constraints as the example has them.
      step: the same without.
      shardings: of the arguments, by hand.
      args: of the step.
    """

    name: str
    mesh: fxflow.Mesh
    hand: Callable[..., Any]
    step: Callable[..., Any]
    shardings: tuple[Any, ...]
    args: tuple[Any, ...]


def everywhere(mesh: fxflow.Mesh, tree: Any, spec: P) -> Any:
    """Returns one sharding for all leaves of a tree."""
    return fxflow.tree.map(lambda _: NamedSharding(mesh, spec), tree)


def transformer() -> Case:
    """`examples/sharded_transformer.py`: batches and heads are divided."""
    import sharded_transformer as example

    mesh = fxflow.make_mesh((2, 2), ("data", "model"))
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-2))
    params = example.init(random.key(0), 2, 11)
    state = example.State(params, optimizer.init(params))
    tokens = example.sequences(np.random.default_rng(0), 64, 12)
    rows = NamedSharding(mesh, P("data"))
    where = example.like_params(state, example.specs(params), mesh)
    hand = example.make_step(example.make_loss(rows), optimizer)
    step = example.make_step(example.make_loss(), optimizer)
    args = state, tokens
    return Case("sharded_transformer", mesh, hand, step, (where, rows), args)


def perceptron(width: int, hidden: int, count: int) -> Case:
    """`examples/tensor_parallel.py`: hidden units are divided."""
    import tensor_parallel as example

    mesh = fxflow.make_mesh((4,), ("model",))
    params = example.init(random.key(0), 2, width, hidden)
    layer = {k: NamedSharding(mesh, spec) for k, spec in example.SPECS.items()}
    whole = NamedSharding(mesh, P())
    x, y = example.examples(count, width)
    name = f"tensor_parallel ({width}, {hidden}, {count} rows)"
    shardings = [layer] * 2, whole, whole
    return Case(name, mesh, example.step, example.step, shardings, (params, x, y))


def batches(count: int) -> Case:
    """The perceptron of `tensor_parallel` with the batch divided."""
    import tensor_parallel as example

    mesh = fxflow.make_mesh((4,), ("data",))
    params = example.init(random.key(0), 2, 64, 256)
    x, y = example.examples(count, 64)
    rows = NamedSharding(mesh, P("data"))
    shardings = everywhere(mesh, params, P()), rows, rows
    name = f"data parallel (64, 256, {count} rows)"
    return Case(name, mesh, example.step, example.step, shardings, (params, x, y))


def run(case: Case, rounds: int) -> list[str]:
    """Returns a row: both times, their ratio, and what the model says."""
    plan = auto_sharding(case.step, case.mesh)(*case.args)
    by_hand = fxflow.jit(case.hand, in_shardings=case.shardings)
    calls = []
    for jitted, shardings in ((by_hand, case.shardings), (plan.jit(), None)):
        where = plan.in_shardings if shardings is None else shardings
        args = fxflow.device_put(case.args, where)
        fxflow.block_until_ready(jitted(*args))
        calls.append((jitted, args))
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for (jitted, args), found in zip(calls, times, strict=True):
            start = time.perf_counter()
            fxflow.block_until_ready(jitted(*args))
            found.append(1e3 * (time.perf_counter() - start))
    given = fxflow.jit(case.step, in_shardings=case.shardings)
    hand = auto_sharding(given, case.mesh)(*case.args)
    cells = [f"{min(t):.2f} / {statistics.median(t):.2f}" for t in times]
    ratios = min(times[1]) / min(times[0]), plan.seconds / hand.seconds
    differ = f"{plan.check().error:.1%}"
    return [case.name, *cells, *(f"{r:.2f}" for r in ratios), differ]


def planning(layers: int, rounds: int) -> list[str]:
    """Returns a row: milliseconds of tracing, of the model, and of solving."""
    from fxflow.dataflow.sharding.dimensions import dimensions_of
    from fxflow.dataflow.sharding.model import MeshCosts, Model
    from fxflow.dataflow.sharding.program import program_of
    from fxflow.dataflow.sharding.solving import solve
    from fxflow.dataflow.sharding.tying import tied

    mesh = fxflow.make_mesh((2, 4), ("data", "model"))
    costs = MeshCosts(mesh, networks.accelerator())
    params = networks.transformer_types(layers, 768, 12, 3072, 50304, 1024)
    tokens = networks.token_types(16, 1025)
    best = [float("inf")] * 3
    for _ in range(rounds):
        times = [time.perf_counter()]
        graph = fxflow.make_graph(networks.step)(params, tokens).graph
        times.append(time.perf_counter())
        dims = dimensions_of(program_of(graph))
        model = Model(dims, tied(dims), costs)
        times.append(time.perf_counter())
        solution = solve(model)
        times.append(time.perf_counter())
        spent = np.diff(times) * 1e3
        best = [min(a, float(b)) for a, b in zip(best, spent, strict=True)]
    sizes = len(dims.program.ops), dims.count, len(model.choices)
    gap = f"{solution.seconds / solution.bound - 1:.1%}"
    return [str(layers), *map(str, sizes), *(f"{b:.0f}" for b in best), gap]


def show(head: list[str], rows: list[list[str]]) -> None:
    """Prints a Markdown table."""
    for row in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(row), "|")
    print()


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--layers", type=int, nargs="*", default=[12, 24, 48, 96])
    given = parser.parse_args()
    cases = [
        transformer(),
        perceptron(32, 256, 128),
        perceptron(512, 2048, 64),
        batches(4096),
    ]
    head = ["step", "by hand, ms", "chosen, ms", "chosen / by hand"]
    head += ["the same, predicted", "bytes sent that differ from the model"]
    show(head, [run(case, given.rounds) for case in cases])
    planning(2, 1)  # imports SciPy
    head = ["layers", "operations", "dimensions", "decisions"]
    head += ["tracing, ms", "model, ms", "solving, ms", "above the bound"]
    show(head, [planning(layers, 3) for layers in given.layers])


if __name__ == "__main__":
    main()
