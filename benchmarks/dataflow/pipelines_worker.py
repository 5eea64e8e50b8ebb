"""One process of a system in `pipelines.py`: reads names of models, prints seconds.

    pipelines_worker.py SYSTEM RANK ADDRESS

Requests and answers are JSON, one a line: the name of a model, and the seconds of a
step with the loss; other ranks than 0 answer as well. Measurements are loops of a
fixed number of steps, since all processes of a system make the same calls.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pipeline_models as models
from pipeline_models import MICROBATCHES, SHAPES, STAGES, Parts

REPEATS = 3


def fxflow_parts(name: str) -> tuple[Any, Parts, Any]:
    """Returns the shape, the functions and the parameters of the stages."""
    import fxflow.numpy as fnp

    shape = SHAPES[name]
    stages = models.staged(shape, models.weights(shape), shape.cut)
    return shape, Parts(shape, fnp), stages


def whole(name: str) -> Callable[[], float]:
    """One program of fxflow in one process."""
    import fxflow
    from fxflow import train

    shape, parts, stages = fxflow_parts(name)
    scopes = [contextlib.nullcontext] * STAGES

    def loss(stages: Any, batch: Any) -> Any:
        return models.chain(parts, stages, *batch, scopes)

    step = fxflow.jit(train.accumulate_gradients(loss, MICROBATCHES))
    stages, batch = fxflow.device_put((stages, models.batch(shape)))

    def run() -> float:
        value, _ = fxflow.block_until_ready(step(stages, batch))
        return float(value)

    return run


def tasks(name: str, cluster: Any) -> Callable[[], float]:
    """A pipeline of fxflow over the tasks of a cluster."""
    import fxflow
    from fxflow import dataflow, train
    from fxflow.dataflow import on

    shape, parts, stages = fxflow_parts(name)
    labels = dataflow.stages(STAGES)
    scopes = [lambda label=label: on(label) for label in labels]

    def loss(stages: Any, batch: Any) -> Any:
        return models.chain(parts, stages, *batch, scopes)

    accumulated = train.accumulate_gradients(loss, MICROBATCHES)
    step = dataflow.jit(accumulated, devices=cluster, schedule="1f1b")

    def held(stages: Any, batch: Any) -> Any:
        """Returns the arguments where they are used: results stay in their task."""
        placed = []
        for label, *values in zip(labels, stages, batch, strict=True):
            with on(label):
                placed.append(fxflow.tree.map(lambda a: a * 1, values))
        return [part[0] for part in placed], [part[1] for part in placed]

    held = dataflow.jit(held, devices=cluster)
    stages, batch = held(stages, models.batch(shape))

    def run() -> float:
        value, grads = step(stages, batch)
        fxflow.block_until_ready((value, grads))
        return float(value)

    return run


def pinned_cluster() -> Any:
    """Returns a cluster of tasks that are pinned to a core each."""
    from fxflow import dataflow

    folder = Path(tempfile.mkdtemp())
    addresses = [str(folder / f"task-{i}") for i in range(STAGES)]
    for i, address in enumerate(addresses):
        task = [sys.executable, "-m", "fxflow.dataflow.tasks", "--once"]
        task += ["--job", "worker", "--index", str(i), "--address", address]
        environment = {**os.environ, "FXFLOW_NUM_CPU_DEVICES": "1"}
        subprocess.Popen(["taskset", "-c", str(i), *task], env=environment)
    return dataflow.Cluster(addresses, devices=1).connect()


def spmd(name: str) -> Callable[[], float]:
    """The pipeline of `examples/pipeline_parallel.py`: one program on all devices.

    Each device has equally many blocks, since one program needs equal stages; the
    embedding and the head are computed on all devices.
    """
    import fxflow
    import fxflow.numpy as fnp
    from fxflow import P, lax

    shape, parts, _ = fxflow_parts(name)
    params = models.weights(shape)
    blocks = params.pop("blocks")
    each = -(-len(blocks) // STAGES)
    # Blocks that are missing are zeros, which change nothing.
    zero = fxflow.tree.map(fnp.zeros_like, blocks[0])
    blocks += [zero] * (each * STAGES - len(blocks))
    stacked = fxflow.tree.map(lambda *rows: fnp.stack(rows), *blocks)
    mesh = fxflow.make_mesh((STAGES,), ("stage",))

    def stage(own: Any, rest: Any, xs: Any, ys: Any) -> Any:
        place = lax.axis_index("stage")
        xs = parts.embed(rest.get("table"), xs)

        def tick(arrived: Any, t: Any) -> Any:
            new = lax.dynamic_index_in_dim(
                xs, fnp.minimum(t, MICROBATCHES - 1), keepdims=False
            )
            x = fnp.where(place == 0, new, arrived)
            x, _ = lax.scan(lambda x, w: (parts.block(w, x), None), x, own)
            return lax.ppermute(x, "stage", [(0, 1)]), x

        ticks = fnp.arange(MICROBATCHES + STAGES - 1)
        start = lax.pcast(fnp.zeros_like(xs[0]), "stage", to="varying")
        _, outs = lax.scan(tick, start, ticks)
        done = lax.psum(fnp.where(place == STAGES - 1, outs[STAGES - 1 :], 0), "stage")
        losses = [
            parts.loss(rest.get("head"), done[i], ys[i]) for i in range(MICROBATCHES)
        ]
        return sum(losses) / MICROBATCHES

    mapped = fxflow.shard_map(
        stage, mesh=mesh, in_specs=(P("stage"), P(), P(), P()), out_specs=P()
    )
    step = fxflow.jit(fxflow.value_and_grad(mapped, (0, 1)))
    x, y = map(models.micro, models.batch(shape))

    def put(tree: Any, spec: Any) -> Any:
        where = fxflow.NamedSharding(mesh, spec)
        return fxflow.tree.map(
            lambda a: fxflow.make_array_from_callback(
                a.shape, where, lambda index: fnp.asarray(a)[index]
            ),
            tree,
        )

    arguments = put(stacked, P("stage")), put(params, P()), put(x, P()), put(y, P())

    def run() -> float:
        value, _ = fxflow.block_until_ready(step(*arguments))
        return float(value.addressable_shards[0].data)

    return run


def jax_loop(name: str) -> Callable[[], float]:
    """JAX: compiled stages, moved between two CPU devices by `device_put`."""
    import jax
    import jax.numpy as jnp

    shape = SHAPES[name]
    parts = Parts(shape, jnp)
    devices = jax.devices()[:STAGES]
    params = models.staged(shape, models.weights(shape), shape.cut)
    params = [jax.device_put(p, d) for p, d in zip(params, devices, strict=True)]

    def first(params: Any, x: Any) -> Any:
        x = parts.embed(params.get("table"), x)
        for w in params["blocks"]:
            x = parts.block(w, x)
        return x

    def last(params: Any, x: Any, y: Any) -> Any:
        for w in params["blocks"]:
            x = parts.block(w, x)
        return parts.loss(params.get("head"), x, y)

    @jax.jit
    def forward(params: Any, x: Any) -> Any:
        return jax.vjp(lambda p: first(p, x), params)

    @jax.jit
    def both(total: Any, params: Any, x: Any, y: Any) -> Any:
        value, (grads, for_x) = jax.value_and_grad(last, (0, 1))(params, x, y)
        return jax.tree.map(jnp.add, total, (value, grads)), for_x

    @jax.jit
    def backward(total: Any, pull: Any, for_x: Any) -> Any:
        return jax.tree.map(jnp.add, total, pull(for_x)[0])

    x, y = map(models.micro, models.batch(shape))
    xs = [jax.device_put(part, devices[0]) for part in x]
    ys = [jax.device_put(part, devices[1]) for part in y]
    zeros = [jax.tree.map(jnp.zeros_like, p) for p in params]
    zero = jax.device_put(jnp.zeros(()), devices[1])

    def run() -> float:
        of_first, of_last = zeros[0], (zero, zeros[1])
        coming = forward(params[0], xs[0])
        for i in range(MICROBATCHES):
            out, pull = coming
            out = jax.device_put(out, devices[1])
            if i + 1 < MICROBATCHES:
                coming = forward(params[0], xs[i + 1])
            of_last, for_x = both(of_last, params[1], out, ys[i])
            for_x = jax.device_put(for_x, devices[0])
            of_first = backward(of_first, pull, for_x)
        jax.block_until_ready((of_first, of_last))
        return float(of_last[0]) / MICROBATCHES

    return run


def torch_pipeline(name: str, rank: int) -> Callable[[], float]:
    """PyTorch's `torch.distributed.pipelining` over gloo."""
    import torch
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    shape = SHAPES[name]
    module = models.torch_stages(shape)[rank]
    stage = PipelineStage(module, rank, STAGES, torch.device("cpu"))
    loss = models.torch_loss(shape)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=loss)
    x, y = map(torch.from_numpy, models.batch(shape))

    def run() -> float:
        module.zero_grad()
        if rank == 0:
            schedule.step(x)
            return 0.0
        losses: list[Any] = []
        schedule.step(target=y, losses=losses)
        return float(sum(part.item() for part in losses)) / MICROBATCHES

    return run


def builder(system: str, rank: int, address: str) -> Callable[[str], Any]:
    """Joins the other processes; returns what makes a step of a model."""
    if system == "jax":
        return jax_loop
    if system == "torch":
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://{address}", rank=rank, world_size=STAGES
        )
        return lambda name: torch_pipeline(name, rank)
    import fxflow

    if system == "spmd":
        fxflow.distributed.initialize(address, STAGES, rank)
        return spmd
    if system == "whole":
        return whole
    cluster = pinned_cluster()
    return lambda name: tasks(name, cluster)


def main() -> None:
    system, rank, address = sys.argv[1:]
    # Answers go through a private copy of stdout: gloo prints its connections.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    make = builder(system, int(rank), address)
    prepared: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in prepared:
            prepared[name] = make(name)
            for _ in range(2):
                prepared[name]()
        seconds = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            value = prepared[name]()
            seconds.append(time.perf_counter() - started)
        answers.write(json.dumps([min(seconds), value]) + "\n")


if __name__ == "__main__":
    main()
