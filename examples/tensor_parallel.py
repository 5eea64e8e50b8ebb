"""A perceptron whose matrices are divided over devices: `jit` and `NamedSharding`.

    python examples/tensor_parallel.py                 # 4 host devices

The first matrix of each pair is divided by columns, the second by rows: each device has
a slice of the hidden units, and one all-reduce gives the result. The code of the model
does not change: `jit` gets the shardings of the parameters, and the compiler inserts
the all-reduces; the text of the program shows their number.
"""

import argparse
import re
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, nn, random

Params = list[dict[str, fxflow.Array]]
SPECS = {
    "up": P(None, "model"),  # f32[width, hidden], by columns
    "bias": P("model"),  # f32[hidden]
    "down": P("model", None),  # f32[hidden, width], by rows
}


def init(key: fxflow.Array, layers: int, width: int, hidden: int) -> Params:
    """Returns parameters of residual blocks `x + down(gelu(up(x)))`."""
    he = nn.initializers.he_normal()
    params = []
    for one in random.split(key, layers):
        up, down = random.split(one)
        params.append(
            {
                "up": he(up, (width, hidden)),
                "bias": fnp.zeros(hidden),
                "down": he(down, (hidden, width)),
            }
        )
    return params


def apply(params: Params, x: fxflow.Array) -> fxflow.Array:
    """Applies all blocks to `x: f32[n, width]`."""
    for layer in params:
        x = x + nn.gelu(x @ layer["up"] + layer["bias"]) @ layer["down"]
    return x


def loss(params: Params, x: fxflow.Array, y: fxflow.Array) -> fxflow.Array:
    """Returns the mean squared error."""
    return fnp.mean((apply(params, x) - y) ** 2)


def step(params: Params, x: fxflow.Array, y: fxflow.Array) -> Any:
    """Runs one step of gradient descent; returns new parameters and the loss."""
    value, gradients = fxflow.value_and_grad(loss)(params, x, y)
    return fxflow.tree.map(lambda p, g: p - 0.05 * g, params, gradients), value


def examples(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns vectors and their images under a fixed rotation."""
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((width, width)))
    x = rng.standard_normal((count, width)).astype(np.float32)
    return x, (x @ turn).astype(np.float32)


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the largest difference to one device's training."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    return run(given.devices, given.steps)


def run(devices: int, steps: int, width: int = 32, hidden: int = 256) -> float:
    """Trains on one device and on many; returns the largest difference."""
    mesh = fxflow.make_mesh((devices,), ("model",))
    layers = [{name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}] * 2
    everywhere = NamedSharding(mesh, P())
    alone = fxflow.jit(step)
    together = fxflow.jit(
        step,
        in_shardings=(layers, everywhere, everywhere),
        out_shardings=(layers, everywhere),
    )

    one = init(random.key(0), 2, width, hidden)
    many = fxflow.device_put(one, layers)
    x, y = examples(128, width)
    text = together.lower(many, x, y).compile().as_text()
    sums = len(re.findall(r" all-reduce(?:-start)?\(", text))
    part = many[0]["up"].addressable_shards[0].data
    print(f"up is {many[0]['up'].aval}, each of {devices} devices has {part.aval}")
    print(f"the compiled step has {sums} all-reduces")
    for i in range(steps):
        one, value = alone(one, x, y)
        many, divided_value = together(many, x, y)
        if i % 20 == 0 or i == steps - 1:
            print(f"step {i}: loss {float(value):.5f} {float(divided_value):.5f}")
    differences = fxflow.tree.map(
        lambda a, b: float(np.max(np.abs(np.asarray(a) - np.asarray(b)))), one, many
    )
    largest = max(fxflow.tree.leaves(differences))
    print(f"largest difference of a parameter: {largest:.1e}")
    return largest


if __name__ == "__main__":
    main()
