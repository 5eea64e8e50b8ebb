"""Trains on MNIST with `pmap`: each device has a copy and a part of every batch.

    python examples/mnist_pmap.py                       # 4 host devices, mlp, ≥ 97.5 %
    python examples/mnist_pmap.py --devices 2 --model cnn

A batch is divided into one part per device; each device computes the gradient of its
part, `pmean` averages these to the gradient of the whole batch, and every copy takes
the same step. So the run equals that of `mnist.py`, except for the last bits of sums.
"""

import functools
from typing import Any

import numpy as np
from helpers.datasets import load_mnist
from mnist import Model, Params, State, Step, correct_of, loss_of, options, train

import fxflow
from fxflow import lax, optim


def in_parts(count: int, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Reshapes `[n, …]` to `[count, n / count, …]`, without a copy."""
    for array in arrays:
        if len(array) % count:
            raise SystemExit(f"{len(array)} images cannot be cut into {count} parts")
    return tuple(a.reshape(count, len(a) // count, *a.shape[1:]) for a in arrays)


def make_step(model: Model, optimizer: Any, devices: int) -> Step:
    """Compiles the functions of a training run for `devices` devices.

    State and parameters have an additional first axis with a slice for each device.
    """
    loss, count = loss_of(model), correct_of(model)

    def init(key: fxflow.Array) -> State:
        params = model.init(key)
        return State(params, optimizer.init(params))

    def update(state: State, images: fxflow.Array, labels: fxflow.Array) -> Any:
        value, gradients = fxflow.value_and_grad(loss)(state.params, images, labels)
        value, gradients = lax.pmean((value, gradients), "data")
        updates, memory = optimizer.update(gradients, state.optimizer, state.params)
        return State(optim.apply_updates(state.params, updates), memory), value

    def recognised(params: Params, images: fxflow.Array, labels: fxflow.Array) -> Any:
        return lax.psum(count(params, images, labels), "data")

    # The size of the axis counts the devices of all processes.
    size = devices * fxflow.process_count()
    mapped_init = fxflow.pmap(init, in_axes=None, axis_size=size)
    # Every device has the same loss: one is returned.
    mapped_update = fxflow.pmap(update, "data", out_axes=(0, None), donate_argnums=0)
    mapped_recognised = fxflow.pmap(recognised, "data", out_axes=None)
    return Step(
        mapped_init,
        lambda state, *batch: mapped_update(state, *in_parts(devices, *batch)),
        lambda params, *batch: mapped_recognised(params, *in_parts(devices, *batch)),
    )


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = options("Train on MNIST over several devices.", model="mlp")
    parser.add_argument("--devices", type=int, default=4)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    chosen = functools.partial(make_step, devices=given.devices)
    _, curve = train(given, load_mnist(), make_step=chosen)
    return curve.accuracies[-1]


if __name__ == "__main__":
    main()
