"""Two models answer together: a graph of inference on two devices.

    python examples/two_models.py

A perceptron and a convolutional net classify the same digits, each on its own device,
at the same time; the mean of their probabilities decides. A request that asks for one
model only is another function, whose plan has only that model's operations.
"""

import argparse
import time
from typing import Any

import numpy as np
from helpers.datasets import Mnist, load_mnist
from mnist import MODELS, Params, fit, scale

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, nn
from fxflow.dataflow import on

NAMES = ("mlp", "cnn")


def probabilities(params: dict[str, Params], images: fxflow.Array) -> Any:
    """Returns each model's probabilities `f32[n, 10]`, by name."""
    found = {}
    for name in params:
        with on(name):
            found[name] = nn.softmax(MODELS[name].apply(params[name], scale(images)))
    return found


def answer(params: dict[str, Params], images: fxflow.Array) -> fxflow.Array:
    """Returns the digits `i32[n]` that the models together find most probable."""
    found = probabilities(params, images)
    with on("mlp"):
        return fnp.argmax(sum(found.values()), -1)


def trained(data: Mnist, epochs: int) -> dict[str, Params]:
    """Returns the parameters of both models."""
    return {
        name: fit(
            MODELS[name],
            data,
            epochs=epochs,
            batch_size=min(128, len(data.train_labels)),
            learning_rate=MODELS[name].learning_rate,
            progress=False,
        )[0]
        for name in NAMES
    }


def run(data: Mnist, devices: dict[str, Any], epochs: int = 1) -> dict[str, float]:
    """Trains and answers; returns the accuracy of each model and of both."""
    params = trained(data, epochs)
    # Each model's parameters stay on its device.
    params = {n: fxflow.device_put(params[n], devices[n]) for n in NAMES}
    images, labels = data.test_images, data.test_labels
    both = dataflow.jit(answer, devices=devices)
    print(both.plan(params, images))
    found = {"both": np.asarray(both(params, images))}
    for name in NAMES:
        alone = {name: params[name]}
        where = {name: devices[name]}
        one = dataflow.jit(probabilities, devices=where)(alone, images)[name]
        found[name] = np.argmax(one, -1)
    started = time.perf_counter()
    both(params, images).block_until_ready()
    print(f"{len(labels):,} images in {time.perf_counter() - started:.3f} s")
    return {name: float((digits == labels).mean()) for name, digits in found.items()}


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Runs the example and returns the accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as two devices. Set before first use.
    fxflow.config.num_cpu_devices = 2
    devices = dict(zip(NAMES, fxflow.local_devices()[-2:], strict=True))
    reached = run(load_mnist(), devices, given.epochs)
    for name, accuracy in reached.items():
        print(f"{name}: {accuracy:.2%}")
    return reached


if __name__ == "__main__":
    main()
