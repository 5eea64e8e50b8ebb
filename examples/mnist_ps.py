"""Trains on MNIST with a parameter server: each device serves a share of everything.

    python examples/mnist_ps.py                                  # 4 host devices
    python examples/mnist_ps.py --exchange int8 --model cnn
    fxflow launch -n 2 examples/mnist_ps.py --devices 2
    fxflow launch --ps 1 --workers 2 examples/mnist_ps.py --consistency asynchronous

A device keeps a piece of each parameter and of Adam's memory of it: with four devices a
quarter of them each. In a step it gathers the parameters, takes the gradient of its
part of the batch, sends to each device that one's piece of it, and updates its own. The
run is the one of `mnist.py`, up to the last bits of its sums.

With `--consistency`, servers are processes, and each worker pushes gradients of its own
share of the images at its own pace. Without `fxflow launch`, the server and the only
worker are this process.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from helpers.datasets import load_mnist
from mnist import (
    MODELS,
    Model,
    Params,
    Step,
    accuracy,
    batches,
    correct_of,
    loss_of,
    options,
    train,
)

import fxflow
from fxflow import optim, random
from fxflow.distributed import parameter_server as ps
from fxflow.distributed.parameter_server import parameter_server
from fxflow.train import logs

# For so many workers.
CONSISTENCIES: dict[str, Callable[[int], ps.Consistency]] = {
    "bsp": lambda workers: ps.bsp(),
    "ssp": lambda workers: ps.ssp(4),
    "asynchronous": lambda workers: ps.asynchronous(),
    "backup": lambda workers: ps.backup(max(1, workers - 1), min(1, workers - 1)),
    "softsync": lambda workers: ps.softsync(1),
    "local_sgd": lambda workers: ps.local_sgd(10),
    "elastic_averaging": lambda workers: ps.elastic_averaging(10, 0.9 / workers),
}
#: Where each push is an update of its own.
UPDATE_EACH = ("ssp", "asynchronous")


def own_part(array: np.ndarray) -> np.ndarray:
    """The part of a batch that this process gives to its devices."""
    count = fxflow.process_count()
    if len(array) % count:
        raise SystemExit(f"{len(array)} images cannot be cut for {count} processes")
    size = len(array) // count
    return array[fxflow.process_index() * size :][:size]


def make_step(model: Model, optimizer: Any, exchange: str = "f32") -> Step:
    """Compiles what training needs for all devices."""
    loss, count = loss_of(model), correct_of(model)
    server = parameter_server(
        lambda params, batch: loss(params, *batch), optimizer, exchange=exchange
    )
    init = fxflow.jit(model.init)

    def update(state: Any, images: np.ndarray, labels: np.ndarray) -> Any:
        batch = own_part(images), own_part(labels)
        state, metrics = server.step(state, batch)
        return state, metrics.loss

    def here(state: Any) -> Params:
        """The parameters on one device of this process, for the test images."""
        params = fxflow.device_get(server.params(state))
        return fxflow.device_put(params, fxflow.local_devices()[0])

    return Step(
        lambda key: server.init(fxflow.device_get(init(key))),
        update,
        fxflow.jit(count),
        here,
    )


def work(given: Any) -> float:
    """Trains at this worker's own pace on its share, and gives the test accuracy."""
    model, data = MODELS[given.model], load_mnist()
    cluster = ps.cluster_of(None)
    index, workers = (cluster.rank, len(cluster.trainers) or 1) if cluster else (0, 1)
    images, labels = (x[index::workers] for x in data[:2])
    size = given.batch_size or model.batch_size
    epochs = given.epochs or model.epochs
    updates = len(images) // size * epochs
    if given.consistency in UPDATE_EACH:
        updates *= workers
    rate = given.learning_rate or model.learning_rate
    server = parameter_server(
        lambda params, batch: loss_of(model)(params, *batch),
        optim.adam(optim.cosine_decay_schedule(rate, updates)),
        consistency=CONSISTENCIES[given.consistency](workers),
        exchange=given.exchange,
    )
    init_key, order_key = random.split(random.key(given.seed))
    state = server.init(model.init(init_key))
    order_key = random.fold_in(order_key, index)
    started = time.perf_counter()
    sinks = [logs.tensorboard(given.logdir)] if given.logdir and index == 0 else []
    with logs.Logger(*sinks) as log:
        for epoch in range(epochs):
            keyed = random.fold_in(order_key, epoch)
            for batch in batches(keyed, images, labels, size, model.shift):
                state, metrics = server.step(state, batch)
            print(f"epoch {epoch + 1}/{epochs}: loss {float(metrics.loss):.3f}")
            log(epoch + 1, {"loss": metrics.loss})
    seconds = time.perf_counter() - started
    params = server.params(state)
    server.close()
    step = Step(model.init, server.step, fxflow.jit(correct_of(model)))
    reached = accuracy(step, params, data.test_images, data.test_labels)
    print(f"{given.consistency}: {seconds:.1f} s, test accuracy: {reached:.2%}")
    return reached


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and gives the test accuracy."""
    parser = options("Train on MNIST with a parameter server.", model="mlp")
    parser.add_argument("--devices", type=int, default=4, help="of each process")
    parser.add_argument("--exchange", choices=["f32", "bf16", "int8"], default="f32")
    parser.add_argument("--consistency", choices=CONSISTENCIES)
    parser.add_argument(
        "--logdir", metavar="FOLDER", help="with --consistency: logs for TensorBoard"
    )
    given = parser.parse_args(arguments)
    if given.consistency:
        return work(given)
    # Where there is only a CPU, it counts as so many devices. Before the first use.
    fxflow.config.num_cpu_devices = given.devices
    if "FXFLOW_NUM_PROCESSES" in os.environ:  # started by `fxflow launch`
        fxflow.distributed.initialize()
    chosen = functools.partial(make_step, exchange=given.exchange)
    first = fxflow.process_index() == 0
    _, curve = train(given, load_mnist(), make_step=chosen, progress=first)
    return curve.accuracies[-1]


if __name__ == "__main__":
    main()
