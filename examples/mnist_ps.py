"""Trains on MNIST with a parameter server; each worker runs at its own pace.

    fxflow launch --ps 1 --workers 2 examples/mnist_ps.py --consistency asynchronous
    python examples/mnist_ps.py --consistency local_sgd --exchange int8

Servers are processes that keep the parameters; each worker pushes gradients of its own
share of the images. Without `fxflow launch`, this process is the server and the only
worker.
"""

import time
from collections.abc import Callable
from typing import Any

from helpers.datasets import load_mnist
from mnist import MODELS, Step, accuracy, batches, correct_of, loss_of, options

import fxflow
from fxflow import optim, random
from fxflow.distributed import parameter_server as ps
from fxflow.distributed.parameter_server import parameter_server
from fxflow.train import logs

#: Each consistency as a function of the number of workers.
CONSISTENCIES: dict[str, Callable[[int], ps.Consistency]] = {
    "bsp": lambda workers: ps.bsp(),
    "ssp": lambda workers: ps.ssp(4),
    "asynchronous": lambda workers: ps.asynchronous(),
    "backup": lambda workers: ps.backup(max(1, workers - 1), min(1, workers - 1)),
    "softsync": lambda workers: ps.softsync(1),
    "local_sgd": lambda workers: ps.local_sgd(10),
    "elastic_averaging": lambda workers: ps.elastic_averaging(10, 0.9 / workers),
}
#: Consistencies in which each push is a separate update.
UPDATE_EACH = ("ssp", "asynchronous")


def work(given: Any) -> float:
    """Trains on this worker's share of the images, and returns the test accuracy."""
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
    """Runs the example and returns the test accuracy."""
    parser = options("Train on MNIST with a parameter server.", model="mlp")
    parser.add_argument("--exchange", choices=["f32", "bf16", "int8"], default="f32")
    parser.add_argument("--consistency", choices=CONSISTENCIES, default="asynchronous")
    parser.add_argument("--logdir", metavar="FOLDER", help="logs for TensorBoard")
    return work(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
