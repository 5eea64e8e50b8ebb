"""A transformer on a mesh with two axes: batches along one, heads along the other.

    python examples/sharded_transformer.py             # 2 × 2 host devices
    python examples/sharded_transformer.py --data 4 --model 2

The program is one jitted function of whole arrays. Batches are divided along "data";
attention heads and the hidden units of the perceptrons along "model"; Adam's state is
sharded like the parameters. The compiler inserts the collectives. The task is to
continue sequences a, a + d, a + 2d, … modulo a prime.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, nn, optim, random

Params = dict[str, Any]
PRIME = 17  # also the number of tokens
HEADS, SIZE = 4, 8  # heads and their size; the width is the product
WIDTH, HIDDEN = HEADS * SIZE, 4 * HEADS * SIZE

# The sharding of each parameter of a block.
BLOCK_SPECS = {
    "qkv": P(None, None, "model", None),  # f32[3, width, heads, size]
    "out": P("model", None, None),  # f32[heads, size, width]
    "up": P(None, "model"),  # f32[width, hidden]
    "down": P("model", None),  # f32[hidden, width]
}


class State(NamedTuple):
    """Everything that a step reads and updates."""

    params: Params
    optimizer: Any


def init(key: fxflow.Array, blocks: int, length: int) -> Params:
    """Returns initial parameters."""
    first, second, *keys = random.split(key, 2 + blocks)

    def weight(key: fxflow.Array, *shape: int, inputs: int) -> fxflow.Array:
        return random.normal(key, shape) / fnp.sqrt(inputs)

    def block(key: fxflow.Array) -> Params:
        k = random.split(key, 4)
        return {
            "qkv": weight(k[0], 3, WIDTH, HEADS, SIZE, inputs=WIDTH),
            "out": weight(k[1], HEADS, SIZE, WIDTH, inputs=WIDTH),
            "up": weight(k[2], WIDTH, HIDDEN, inputs=WIDTH),
            "down": weight(k[3], HIDDEN, WIDTH, inputs=HIDDEN),
        }

    return {
        "tokens": weight(first, PRIME, WIDTH, inputs=1),
        "places": weight(second, length, WIDTH, inputs=1),
        "blocks": [block(k) for k in keys],
    }


def specs(params: Params) -> Params:
    """Returns the partition spec of each parameter."""
    return {
        "tokens": P(),
        "places": P(),
        "blocks": [BLOCK_SPECS for _ in params["blocks"]],
    }


def apply(params: Params, tokens: fxflow.Array, where: Any = None) -> fxflow.Array:
    """Returns logits `f32[n, length, PRIME]` of tokens `i32[n, length]`.

    Args:
        params: the parameters.
        tokens: the sequences.
        where: the sharding of the activations between the blocks, or None.
    """
    x = params["tokens"][tokens] + params["places"]
    for block in params["blocks"]:
        x = lax.with_sharding_constraint(x, where)
        q, k, v = fnp.einsum("nlw,cwhs->cnlhs", nn.standardize(x), block["qkv"])
        seen = nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + fnp.einsum("nlhs,hsw->nlw", seen, block["out"])
        x = x + nn.gelu(nn.standardize(x) @ block["up"]) @ block["down"]
    return nn.standardize(x) @ params["tokens"].T / fnp.sqrt(WIDTH)


def make_loss(where: Any = None) -> Any:
    """Makes the loss: the mean cross-entropy of each token after the first two."""

    def loss(params: Params, tokens: fxflow.Array) -> fxflow.Array:
        guesses = nn.log_softmax(apply(params, tokens[:, :-1], where))
        right = nn.one_hot(tokens[:, 1:], PRIME)
        return -fnp.mean(fnp.sum(guesses * right, -1)[:, 1:])

    return loss


def make_step(loss: Any, optimizer: Any) -> Any:
    """Makes the function that runs one training step."""

    def step(state: State, tokens: fxflow.Array) -> tuple[State, fxflow.Array]:
        value, gradients = fxflow.value_and_grad(loss)(state.params, tokens)
        updates, memory = optimizer.update(gradients, state.optimizer, state.params)
        return State(optim.apply_updates(state.params, updates), memory), value

    return step


def like_params(state: State, given: Params, mesh: fxflow.Mesh) -> Any:
    """Returns the shardings of a state; Adam's state is sharded like the parameters."""
    structure = fxflow.tree.structure(state.params)
    shardings = fxflow.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        given,
        is_leaf=lambda x: isinstance(x, P),
    )

    def is_params(node: Any) -> bool:
        return fxflow.tree.structure(node) == structure

    return fxflow.tree.map(
        lambda node: shardings if is_params(node) else NamedSharding(mesh, P()),
        state,
        is_leaf=is_params,
    )


def sequences(rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    """Returns arithmetic sequences modulo PRIME, `i32[count, length]`."""
    start, step = rng.integers(0, PRIME, (2, count, 1))
    return ((start + step * np.arange(length)) % PRIME).astype(np.int32)


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Runs the example; see `run`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=int, default=2, help="devices along batches")
    parser.add_argument("--model", type=int, default=2, help="devices along heads")
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args(arguments)
    # Without accelerators, the CPU counts as this many devices. Set before first use.
    fxflow.config.num_cpu_devices = given.data * given.model
    return run(given.data, given.model, given.steps)


def run(
    data: int, model: int, steps: int, blocks: int = 2, length: int = 12
) -> tuple[float, float]:
    """Trains; returns the last loss, and the first one's difference to one device's."""
    mesh = fxflow.make_mesh((data, model), ("data", "model"))
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-2))
    params = init(random.key(0), blocks, length - 1)
    state = State(params, optimizer.init(params))
    rng = np.random.default_rng(0)
    tokens = sequences(rng, 64, length)
    alone = fxflow.jit(make_step(make_loss(), optimizer))
    _, expected = alone(state, tokens)

    where = like_params(state, specs(params), mesh)
    rows = NamedSharding(mesh, P("data"))
    step = fxflow.jit(
        make_step(make_loss(rows), optimizer),
        in_shardings=(where, rows),
        out_shardings=(where, NamedSharding(mesh, P())),
        donate_argnums=0,
    )
    state = fxflow.device_put(state, where)
    up = state.params["blocks"][0]["up"]
    part = up.addressable_shards[0].data
    print(f"up is {up.aval}, each of {data} × {model} devices has {part.aval}")
    for i in range(steps):
        state, value = step(state, tokens)
        if i == 0:
            difference = abs(float(value) - float(expected))
            print(f"difference of the first loss to one device's: {difference:.1e}")
        if i % 40 == 0 or i == steps - 1:
            print(f"step {i}: loss {float(value):.4f}")
        tokens = sequences(rng, 64, length)
    return float(value), difference


if __name__ == "__main__":
    main()
