"""Trains on MNIST with a sharded optimizer: devices share parameters and Adam's state.

    python examples/mnist_sharded.py                             # 4 host devices
    python examples/mnist_sharded.py --exchange int8 --model cnn
    fxflow launch -n 2 examples/mnist_sharded.py --devices 2

A device keeps a piece of each parameter and of Adam's state: with four devices, a
quarter of each. A step gathers the parameters, computes the gradient of each device's
part of the batch, sums each piece on its device, and updates the pieces. The run equals
that of `mnist.py`, except for the last bits of sums.
"""

import functools
import os
from typing import Any

import numpy as np
from helpers.datasets import load_mnist
from mnist import Model, Params, Step, correct_of, loss_of, options, train

import fxflow
from fxflow.distributed import sharded_optimizer


def own_part(array: np.ndarray) -> np.ndarray:
    """Returns the part of a batch that this process gives to its devices."""
    count = fxflow.process_count()
    if len(array) % count:
        raise SystemExit(
            f"{len(array)} images cannot be divided among {count} processes"
        )
    size = len(array) // count
    return array[fxflow.process_index() * size :][:size]


def make_step(model: Model, optimizer: Any, exchange: str = "f32") -> Step:
    """Compiles the functions of a training run for all devices."""
    loss, count = loss_of(model), correct_of(model)
    sharded = sharded_optimizer(
        lambda params, batch: loss(params, *batch), optimizer, exchange=exchange
    )
    init = fxflow.jit(model.init)

    def update(state: Any, images: np.ndarray, labels: np.ndarray) -> Any:
        batch = own_part(images), own_part(labels)
        state, metrics = sharded.step(state, batch)
        return state, metrics.loss

    def here(state: Any) -> Params:
        """Returns the parameters on one device of this process, for the test images."""
        params = fxflow.device_get(sharded.params(state))
        return fxflow.device_put(params, fxflow.local_devices()[0])

    return Step(
        lambda key: sharded.init(fxflow.device_get(init(key))),
        update,
        fxflow.jit(count),
        here,
    )


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = options("Train on MNIST with a sharded optimizer.", model="mlp")
    parser.add_argument("--devices", type=int, default=4, help="of each process")
    parser.add_argument("--exchange", choices=["f32", "bf16", "int8"], default="f32")
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    if "FXFLOW_NUM_PROCESSES" in os.environ:  # started by `fxflow launch`
        fxflow.distributed.initialize()
    chosen = functools.partial(make_step, exchange=given.exchange)
    first = fxflow.process_index() == 0
    _, curve = train(given, load_mnist(), make_step=chosen, progress=first)
    return curve.accuracies[-1]


if __name__ == "__main__":
    main()
