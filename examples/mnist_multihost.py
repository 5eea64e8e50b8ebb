"""Trains on MNIST with `pmap` in several processes, as on several hosts.

    fxflow launch -n 2 examples/mnist_multihost.py

Each process has two devices and calls the same mapped functions with the parts of
the batch for its own devices; the named axis covers the devices of all processes, so
`pmean` is over the whole batch. Every process keeps a copy of the parameters on each of
its devices.
"""

import functools
from typing import Any

import mnist_pmap
from helpers.datasets import load_mnist
from mnist import Model, Step, options, train
from mnist_sharded import own_part

import fxflow


def make_step(model: Model, optimizer: Any, devices: int) -> Step:
    """Compiles the functions of a training run for `devices` devices per process."""
    mapped = mnist_pmap.make_step(model, optimizer, devices)
    return Step(
        mapped.init,
        lambda state, *batch: mapped.train(state, *map(own_part, batch)),
        lambda params, *batch: mapped.correct(params, *map(own_part, batch)),
    )


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = options("Train on MNIST in several processes.", model="mlp")
    parser.add_argument("--devices", type=int, default=2, help="of each process")
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    fxflow.distributed.initialize()
    print(
        f"process {fxflow.process_index()} of {fxflow.process_count()}: "
        f"{fxflow.local_device_count()} of {fxflow.device_count()} devices"
    )
    chosen = functools.partial(make_step, devices=given.devices)
    first = fxflow.process_index() == 0
    _, curve = train(given, load_mnist(), make_step=chosen, progress=first)
    return curve.accuracies[-1]


if __name__ == "__main__":
    main()
