"""Trains on MNIST with replicas in one graph: losses on workers, averaged on a master.

    python examples/mnist_replicas.py                   # a master and 3 workers
    python examples/mnist_replicas.py --workers 2 --model cnn
    python examples/mnist_replicas.py --processes       # each worker is a process

One function describes the whole synchronous step: each worker computes the gradient of
its part of the batch, and the master averages them, updates the parameters and sends
these to the workers in the next step. Scopes pin the parts; the runtime sends what
passes between them. So the run equals that of `mnist.py`, except for the last bits.
"""

import contextlib
import functools
from typing import Any

from helpers.datasets import load_mnist
from mnist import Model, State, Step, correct_of, loss_of, options, train
from mnist_pmap import in_parts

import fxflow
from fxflow import dataflow, optim
from fxflow.dataflow import on


def make_step(model: Model, optimizer: Any, devices: dict[str, Any]) -> Step:
    """Compiles the functions of a training run.

    Args:
        model: the model.
        optimizer: runs on the master.
        devices: of "master", "worker 0", "worker 1", …
    """
    loss = loss_of(model)
    workers = [name for name in devices if name != "master"]

    def init(key: fxflow.Array) -> State:
        with on("master"):
            params = model.init(key)
            return State(params, optimizer.init(params))

    def update(state: State, images: fxflow.Array, labels: fxflow.Array) -> Any:
        parts = []
        for worker, *part in zip(workers, images, labels, strict=True):
            with on(worker):
                parts.append(fxflow.value_and_grad(loss)(state.params, *part))
        with on("master"):
            value, gradients = fxflow.tree.map(
                lambda *of_workers: sum(of_workers) / len(workers), *parts
            )
            updates, memory = optimizer.update(gradients, state.optimizer, state.params)
            return State(optim.apply_updates(state.params, updates), memory), value

    compiled = dataflow.jit(update, devices=devices, donate_argnums=0)
    return Step(
        dataflow.jit(init, devices={"master": devices["master"]}),
        lambda state, *batch: compiled(state, *in_parts(len(workers), *batch)),
        fxflow.jit(correct_of(model)),
    )


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = options("Train on MNIST with replicas in one graph.", model="mlp")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--processes", action="store_true")
    parser.set_defaults(batch_size=126)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = 1 + given.workers
    master, *workers = fxflow.local_devices()
    with contextlib.ExitStack() as stack:
        if given.processes:
            cluster = stack.enter_context(dataflow.local_cluster(given.workers))
            workers = cluster.devices
        devices = {f"worker {i}": device for i, device in enumerate(workers)}
        chosen = functools.partial(make_step, devices={"master": master, **devices})
        _, curve = train(given, load_mnist(), make_step=chosen)
    return curve.accuracies[-1]


if __name__ == "__main__":
    main()
