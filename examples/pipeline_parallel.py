"""A perceptron whose layers are on different devices: `shard_map` and `ppermute`.

    python examples/pipeline_parallel.py               # 4 host devices, a layer each

A batch is divided into microbatches that pass from device to device. In tick t, device
s runs its layer on microbatch t − s and sends the result to the next device; m
microbatches take m + n − 1 ticks on n devices. The derivative of the pipeline is a
pipeline in reverse, because the transpose of `ppermute` sends in the other direction.
"""

import argparse
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, nn, random

Params = dict[str, fxflow.Array]


def init(key: fxflow.Array, layers: int, width: int) -> Params:
    """Returns parameters of `layers` layers, stacked along the first axis."""
    he = nn.initializers.he_normal(in_axis=1, out_axis=2, batch_axis=0)
    return {"w": he(key, (layers, width, width)), "b": fnp.zeros((layers, width))}


def layer(params: Params, x: fxflow.Array) -> fxflow.Array:
    """Applies one layer to `x: f32[n, width]`."""
    return x + nn.gelu(x @ params["w"] + params["b"])


def sequential(params: Params, x: fxflow.Array) -> fxflow.Array:
    """Applies all layers, one after the other."""
    return lax.scan(lambda x, one: (layer(one, x), None), x, params)[0]


def pipeline(params: Params, x: fxflow.Array, mesh: fxflow.Mesh, parts: int) -> Any:
    """Applies all layers in parallel, each to another microbatch.

    Args:
        params: the parameters of one layer per device.
        x: `f32[n, width]`.
        mesh: with the axis "stage".
        parts: the number of microbatches, which divides n.

    Returns:
        The result of `sequential`.
    """
    stages = mesh.shape["stage"]

    def stage(own: Params, micro: fxflow.Array) -> fxflow.Array:
        """Runs one device's layer on `micro: f32[parts, n / parts, width]`."""
        own = fxflow.tree.map(lambda p: p[0], own)
        place = lax.axis_index("stage")

        def tick(arrived: fxflow.Array, t: fxflow.Array) -> Any:
            # The first device takes new microbatches; after the last one it repeats
            # it, and the results are not used.
            new = lax.dynamic_index_in_dim(
                micro, fnp.minimum(t, parts - 1), keepdims=False
            )
            out = layer(own, fnp.where(place == 0, new, arrived))
            on = [(i, i + 1) for i in range(stages - 1)]
            return lax.ppermute(out, "stage", on), out

        _, outs = lax.scan(
            tick, fnp.zeros_like(micro[0]), fnp.arange(parts + stages - 1)
        )
        done = outs[stages - 1 :]  # valid on the last device, which broadcasts it
        return lax.psum(fnp.where(place == stages - 1, done, 0), "stage")

    mapped = fxflow.shard_map(
        stage, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P()
    )
    micro = x.reshape(parts, -1, x.shape[-1])
    return mapped(params, micro).reshape(x.shape)


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the largest difference of a gradient."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.devices
    return run(given.devices, given.microbatches, given.steps)


def run(devices: int, parts: int, steps: int, width: int = 32) -> float:
    """Trains through the pipeline; returns the largest difference of a gradient."""
    mesh = fxflow.make_mesh((devices,), ("stage",))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16 * parts, width)).astype(np.float32)
    y = np.roll(x, 1, axis=1)

    def loss(params: Params, model: Any) -> fxflow.Array:
        return fnp.mean((model(params, x) - y) ** 2)

    def piped(params: Params) -> fxflow.Array:
        return loss(params, lambda p, x: pipeline(p, fnp.asarray(x), mesh, parts))

    params = init(random.key(0), devices, width)
    expected = fxflow.jit(fxflow.grad(lambda p: loss(p, sequential)))(params)
    params = fxflow.device_put(params, NamedSharding(mesh, P("stage")))
    gradient = fxflow.jit(fxflow.value_and_grad(piped))
    _, found = gradient(params)
    differences = fxflow.tree.map(
        lambda a, b: float(np.max(np.abs(np.asarray(a) - np.asarray(b)))),
        expected,
        found,
    )
    largest = max(fxflow.tree.leaves(differences))
    print(f"largest difference of a gradient to the sequential one: {largest:.1e}")

    @fxflow.jit
    def step(params: Params) -> Any:
        value, gradients = fxflow.value_and_grad(piped)(params)
        return fxflow.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    for i in range(steps):
        params, value = step(params)
        if i % 20 == 0 or i == steps - 1:
            print(f"step {i}: loss {float(value):.5f}")
    idle = (devices - 1) / (parts + devices - 1)
    print(f"each of {devices} devices is idle {idle:.0%} of the time")
    return largest


if __name__ == "__main__":
    main()
