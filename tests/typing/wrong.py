"""A program with mistakes: type checkers find each, and nothing else.

A line that ends in `# mistake` must be reported by mypy and by pyright.
"""

from __future__ import annotations

from typing import NamedTuple

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, optim, random


class Params(NamedTuple):
    weights: Array
    bias: Array


@fxflow.jit
def predict(params: Params, x: Array) -> Array:
    return x @ params.weights + params.bias


@fxflow.jit(static_argnames="power")
def raised(x: Array, power: int = 2) -> Array:
    return x**power


@fxflow.checkpoint
def block(x: Array) -> Array:
    return fnp.sin(x)


@fxflow.custom_vjp
def same(x: Array) -> Array:
    return x


@fxflow.custom_jvp
def twice(x: Array) -> Array:
    return x + x


class Layer:
    @fxflow.jit
    def forward(self, x: Array) -> Array:
        return x


def loss(params: Params, x: Array) -> Array:
    return fnp.mean(predict(params, x))


def with_count(params: Params, x: Array) -> tuple[Array, int]:
    return loss(params, x), x.size


def step(carry: Array, x: Array) -> tuple[Array, Array]:
    return carry + x, x


def to_text(carry: Array) -> str:
    return str(carry)


def pair(carry: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
    return carry, x


key = random.key(0)
x = fnp.ones((2, 3))
params = Params(fnp.ones((3, 2)), fnp.zeros(2))

# names
fxflow.nosuch(x)  # mistake
fnp.nosuch(x)  # mistake
lax.sinus(x)  # mistake
random.PRNGKey(0)  # mistake
x.nosuch()  # mistake
fxflow.devices.nosuch()  # mistake

# arguments of the library's functions
fnp.sum(x, axes=0)  # mistake
fnp.sum(x, axis="0")  # mistake
fnp.zeros()  # mistake
fnp.linspace(0, 1, count=3)  # mistake
random.normal(shape=(3,))  # mistake
optim.adam(rate=1e-3)  # mistake
optim.adam(1e-3).update(params)  # mistake
optim.scale(1.0).update(params, (), value=x)  # mistake
fxflow.jit(predict, static_argnum=0)  # mistake
fxflow.jit("predict")  # mistake
fxflow.grad(loss, argnums="params")  # mistake
fxflow.vmap(loss, axes=0)  # mistake
fxflow.devices(0)  # mistake
fxflow.tree.map(x)  # mistake

# arguments of transformed functions
predict(params)  # mistake
predict(params, x, x)  # mistake
predict(x, params)  # mistake
raised(x, power="2")  # mistake
block(x, x)  # mistake
same()  # mistake
twice("text")  # mistake
Layer().forward(x, x)  # mistake
fxflow.grad(loss)(params)  # mistake
fxflow.value_and_grad(loss)(x, x)  # mistake
fxflow.vmap(predict)(params, x, x)  # mistake
fxflow.pmap(predict)(params)  # mistake

# results
wrong: str = predict(params, x)  # mistake
count: int = fxflow.value_and_grad(loss)(params, x)[0]  # mistake
both: Array = fxflow.value_and_grad(with_count, has_aux=True)(params, x)[0]  # mistake
values: list[Array] = fxflow.vjp(loss, params, x)  # mistake
bias: str = fxflow.grad(loss)(params, x).bias  # mistake
fxflow.grad(loss)(params, x).slope  # mistake
fxflow.value_and_grad(loss)(params, x)[1].slope  # mistake
fxflow.tree.map(block, params).slope  # mistake
optim.apply_updates(params, params).slope  # mistake
device: str = fxflow.devices()[0]  # mistake
shape: int = x.shape  # mistake
name: str = x.dtype  # mistake

# arrays
x + "text"  # mistake
x @ [1.0]  # mistake
x.at[0].put(1.0)  # mistake
x.at[0].set()  # mistake
x.at.set(1.0)  # mistake
x[0] = 1.0  # mistake
x.astype()  # mistake
x.sum(axes=0)  # mistake

# loops
lax.scan(step, (x, x), x)  # mistake
lax.scan(pair, 0.0, x)  # mistake
lax.while_loop(lambda c: True, to_text, x)  # mistake
lax.fori_loop(0, 3, step, x)  # mistake
total: str = lax.scan(step, 0.0, x)[0]  # mistake
text: str = lax.cond(True, block, same, x)  # mistake
lax.fori_loop(0, 3, body=lambda i, c: c, init_val=x)  # mistake
