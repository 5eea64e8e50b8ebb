"""A program of a user's that is right: type checkers find nothing in it."""

from __future__ import annotations

import functools
from typing import NamedTuple, assert_type

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, optim, random
from fxflow.devices import Device

MYPY = False  # mypy takes it for true


class Params(NamedTuple):
    weights: Array
    bias: Array


def init(key: Array, sizes: tuple[int, int]) -> Params:
    return Params(random.normal(key, sizes), fnp.zeros(sizes[1]))


@fxflow.jit
def predict(params: Params, x: Array) -> Array:
    return fnp.tanh(x @ params.weights + params.bias)


def loss(params: Params, x: Array, y: Array) -> Array:
    return fnp.mean((predict(params, x) - y) ** 2)


def loss_and_count(params: Params, x: Array) -> tuple[Array, int]:
    return fnp.sum(predict(params, x)), x.size


optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))


@functools.partial(fxflow.jit, donate_argnums=0)
def update(params: Params, state: object, x: Array, y: Array) -> Params:
    value, gradient = fxflow.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(gradient, state, params, value=value)
    fxflow.debug.print("loss {}", value.mean())
    return optim.apply_updates(params, updates)


@fxflow.jit(static_argnames="power")
def raised(x: Array, power: int = 2) -> Array:
    return x**power


class Layer:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @fxflow.jit(static_argnums=0)
    def forward(self, x: Array) -> Array:
        return x * self.scale

    def __hash__(self) -> int:
        return hash(self.scale)


@fxflow.checkpoint
def block(x: Array) -> Array:
    return fnp.sin(x)


@fxflow.checkpoint(policy=fxflow.checkpoint_policies.dots_saveable)
def wide_block(x: Array) -> Array:
    return fnp.cos(x)


@fxflow.custom_jvp
def softplus(x: Array) -> Array:
    return fnp.log1p(fnp.exp(x))


@softplus.defjvp
def softplus_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return softplus(x), t * fxflow.nn.sigmoid(x)


@functools.partial(fxflow.custom_vjp, nondiff_argnums=(1,))
def clipped(x: Array, limit: float) -> Array:
    return x


def clipped_forward(x: Array, limit: float) -> tuple[Array, None]:
    return x, None


def clipped_backward(limit: float, _: None, cotangent: Array) -> tuple[Array]:
    return (fnp.clip(cotangent, -limit, limit),)


clipped.defvjp(clipped_forward, clipped_backward)


def step(carry: Array, x: Array) -> tuple[Array, Array]:
    return carry + x, carry * x


def count(state: tuple[Array, Array]) -> tuple[Array, Array]:
    return state[0] + 1, state[1] * 2


def reduced(part: Array) -> Array:
    return lax.psum(part, "i")


def carried(params: Params, other: Params, x: Array, y: Array) -> None:
    """What transformed functions and functions of trees return has a known type."""
    assert_type(predict(params, x), Array)
    assert_type(raised(x, power=3), Array)
    assert_type(Layer(2.0).forward(x), Array)
    assert_type(block(x), Array)
    assert_type(wide_block(x), Array)
    assert_type(fxflow.vmap(predict, in_axes=(None, 0))(params, x), Array)
    assert_type(
        fxflow.vmap(fxflow.grad(loss), in_axes=(None, 0, 0))(params, x, y), Params
    )
    assert_type(fxflow.grad(loss)(params, x, y), Params)
    assert_type(fxflow.jit(fxflow.grad(loss))(params, x, y), Params)
    assert_type(
        fxflow.grad(loss_and_count, has_aux=True)(params, x), tuple[Params, int]
    )
    assert_type(fxflow.value_and_grad(loss)(params, x, y), tuple[Array, Params])
    assert_type(
        fxflow.value_and_grad(loss_and_count, has_aux=True)(params, x),
        tuple[tuple[Array, int], Params],
    )
    assert_type(fxflow.tree.map(block, params), Params)
    assert_type(optim.apply_updates(params, params), Params)
    if not MYPY:  # to it a `partial` of an overloaded function is Any
        assert_type(update(other, optimizer.init(other), x, y), Params)
        twice = functools.partial(fxflow.jit, static_argnames="power")(raised)
        assert_type(twice(x, power=2), Array)
        assert_type(functools.partial(fxflow.vmap, in_axes=1)(block)(x), Array)
        small = functools.partial(fxflow.checkpoint, budget="1kB")(block)
        assert_type(small(x), Array)


def main() -> float:
    key, other = random.split(random.key(0))
    params = init(key, (3, 2))
    x, y = random.normal(other, (8, 3)), fnp.ones((8, 2))
    params = update(params, optimizer.init(params), x, y)
    carried(params, init(other, (3, 2)), x, y)
    rows: Array = fxflow.vmap(predict, in_axes=(None, 0))(params, x)
    assert rows.shape == (8, 2)
    assert rows.dtype == np.dtype("float32")
    changed = x.at[0, 1].set(5.0).at[fnp.arange(2)].add(1).at[::2].get(mode="fill")
    layer = Layer(2.0).forward(changed)
    (total, number), _ = fxflow.value_and_grad(loss_and_count, has_aux=True)(params, x)
    by_both = fxflow.grad(loss, argnums=(0, 1))(params, x, y)
    slope: Array = fxflow.grad(loss)(params, x, y).weights
    doubled: dict[str, object] = fxflow.tree.map(lambda leaf: leaf * 2, {"x": x})
    slope = fxflow.value_and_grad(loss)(params, x, y)[1].bias + slope.sum()
    square = fxflow.grad(lambda v: fnp.sum(v["a"] ** 2))({"a": x})["a"]
    last, steps = lax.scan(step, 0.0, fnp.arange(3.0))
    pair = lax.scan(lambda c, v: ((c[0] + v, c[1]), None), (0.0, x), fnp.ones(2))[0]
    counted = lax.while_loop(lambda s: s[0] < 3, count, (0, x))
    number += int(counted[0])
    many = lax.fori_loop(0, 3, lambda i, v: v * 2, x)
    either = lax.cond(total > 0, fnp.sin, lambda v: v * 2, x)
    chosen = lax.switch(1, [fnp.sin, fnp.cos], either)
    running = lax.associative_scan(fnp.add, many)
    mapped = lax.map(lambda row: row.sum(), x)
    out, tangent = fxflow.jvp(block, (x,), (fnp.ones_like(x),))
    out, back = fxflow.vjp(wide_block, x)
    out, derivative = fxflow.linearize(softplus, x)
    sizes = fxflow.tree.map(lambda leaf: leaf.shape, params)
    leaves, structure = fxflow.tree.flatten(params)
    params = fxflow.tree.unflatten(structure, leaves)
    largest = fxflow.tree.reduce(lambda a, b: max(a, b.size), params, 0)
    lowered = predict.lower(params, x).compile()
    device: Device = fxflow.devices()[0]
    report = fxflow.devices.doctor()
    placed = fxflow.device_put({"a": x}, device)["a"]
    host: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = fxflow.device_get(out)
    mesh = fxflow.make_mesh((1,), ("i",))
    spec = fxflow.P("i")
    whole = fxflow.shard_map(reduced, mesh=mesh, in_specs=spec, out_specs=fxflow.P())(
        fnp.ones(1)
    )
    each = fxflow.pmap(lambda v: v + 1)(fnp.ones((1, 2)))
    with fxflow.disable_jit(), fxflow.named_scope("sum"):
        total = total + raised(x, power=3).sum() + clipped(placed, 1.0).max()
    with fxflow.config.override(x64=True):
        total = -abs(1.0 - total) @ fnp.ones(()) if total.ndim else total
    print(fxflow.eval_shape(loss, params, x, y), sizes, largest, report, lowered)
    print(
        by_both,
        slope,
        doubled,
        square,
        last,
        steps,
        pair,
        running,
        mapped,
        tangent,
        layer,
    )
    print(back(out), derivative(x), host, whole, each, chosen, number)
    return float(total)


if __name__ == "__main__":
    main()
