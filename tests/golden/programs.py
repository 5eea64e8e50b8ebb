"""Small programs whose StableHLO a refactor must leave as it is.

Each is a function and the types of its arguments. `text` is what is compared: the
module with the names of functions numbered and the locations dropped, so that a renamed
helper changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fxflow
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, grad, jit, lax, nn, random, value_and_grad, vmap

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def f32(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32")


def i32(*shape: int) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "int32")


PROGRAMS: dict[str, Program] = {}


def program(*avals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = (function, avals)
        return function

    return enter


def text(name: str) -> str:
    """Returns a program's StableHLO without what may change freely."""
    function, avals = PROGRAMS[name]
    module = jit(function).lower(*avals).as_text()
    module = re.sub(r' loc\("[^"]*"\)', "", module)
    names: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith(("@xla", "@lapack", "@Sharding", "@main")):
            return found
        return names.setdefault(found, f"@f{len(names)}")

    return re.sub(r"@[A-Za-z_]\w*", numbered, module)


# -- straight code ---------------------------------------------------------------------


@program(f32(3), f32(3))
def arithmetic(x, y):
    return (x + 2.0 * y) / (1 - x**2) - fnp.maximum(x, 0)


@program(f32(2, 1), i32(3))
def broadcasting(x, n):
    return x + n


@program(f32(4))
def transcendental(x):
    return fnp.tanh(fnp.exp(-fnp.abs(x))) + fnp.log1p(x) * fnp.sin(x)


@program(f32(3, 4))
def statistics(x):
    return fnp.mean(x, axis=0), fnp.var(x), fnp.max(x, axis=1, keepdims=True)


@program(f32(5))
def softmax(x):
    return nn.softmax(x)


@program(f32(2, 3), f32(3, 4))
def matmul(x, y):
    return x @ y


@program(f32(2, 3, 4), f32(2, 4, 5))
def einsum(x, y):
    return fnp.einsum("bij,bjk->bik", x, y)


@program(f32(1, 8, 8, 3), f32(3, 3, 3, 4))
def convolution(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@program(f32(1, 4, 4, 1))
def max_pool(x):
    return lax.reduce_window(x, -fnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@program(f32(6))
def ordering(x):
    index = lax.argmax(x, 0, fnp.int32)
    return lax.sort(x), lax.argsort(x), index, lax.cumsum(x), lax.top_k(x, 2)


@program(f32(5, 3), i32(4))
def gather(x, i):
    return x[i], x[1:4, ::-1], x[:, 0]


@program(f32(5), i32(3), f32(3))
def scatter(x, i, v):
    return x.at[i].add(v), x.at[2:4].set(0.0)


@program(f32(5), i32())
def dynamic(x, i):
    return lax.dynamic_slice(x, (i,), (2,)), lax.dynamic_update_slice(x, x[:1], (i,))


@program(f32(3), f32(3))
def selection(x, y):
    return fnp.where(x > y, x, y), fnp.clip(x, 0, 1)


@program(f32(8))
def fourier(x):
    return fnp.abs(lax.fft(x.astype("complex64"), "FFT", (8,)))


@program(i32(3))
def integers(n):
    return n // 3, n % 5, n << 2, n & 7


@program()
def constants():
    return fnp.arange(5), fnp.ones((2, 2)), fnp.eye(2), fnp.float32(0.1)


# -- random numbers --------------------------------------------------------------------


@program(f32())
def random_numbers(scale):
    key = random.key(0)
    first, second = random.split(key)
    return random.normal(first, (4,)) * scale, random.uniform(second, (2,))


# -- control flow ----------------------------------------------------------------------


@program(f32(), f32(4))
def scan(c, xs):
    return lax.scan(lambda c, x: (c * x, c + x), c, xs)


@program(f32())
def while_loop(x):
    return lax.while_loop(lambda v: v < 10, lambda v: v * 2, x)


@program(f32(3))
def fori_loop(x):
    return lax.fori_loop(0, 5, lambda i, v: v + i, x)


@program(f32(3))
def cond(x):
    return lax.cond(fnp.sum(x) > 0, lambda v: v * 2, lambda v: -v, x)


@program(i32(), f32())
def switch(i, x):
    return lax.switch(i, [lambda v: v, fnp.sin, fnp.cos], x)


@program(f32(3))
def calls(x):
    inner = jit(lambda v: fnp.sin(v) + 1)
    return inner(inner(x))


@program(f32(2))
def ordered_effects(x):
    fxflow.io_callback(print, None, x, ordered=True)
    fxflow.io_callback(print, None, x + 1, ordered=True)
    return x


# -- transformations -------------------------------------------------------------------


def mlp_loss(params, x, y):
    hidden = fnp.tanh(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"]
    return -fnp.mean(fnp.sum(nn.log_softmax(logits) * y, axis=-1))


MLP = {"w1": f32(4, 8), "b1": f32(8), "w2": f32(8, 3)}


@program(MLP, f32(5, 4), f32(5, 3))
def mlp_step(params, x, y):
    loss, gradient = value_and_grad(mlp_loss)(params, x, y)
    return loss, fxflow.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


@program(f32(3))
def hessian(x):
    return fxflow.hessian(lambda v: fnp.sum(fnp.sin(v) * v))(x)


@program(f32(), f32())
def jvp(x, t):
    return fxflow.jvp(lambda v: fnp.exp(fnp.sin(v)), (x,), (t,))


@program(f32(5, 3), f32(3))
def vmap_of_grad(rows, w):
    return vmap(grad(lambda w, x: fnp.dot(w, x) ** 2), (None, 0))(w, rows)


@program(f32(4))
def named_axis(x):
    return vmap(lambda v: v / lax.psum(v, "i"), axis_name="i")(x)


@program(f32(), f32(4))
def grad_of_scan(c, xs):
    def total(c, xs):
        return lax.scan(lambda c, x: (fnp.sin(c * x), None), c, xs)[0]

    return grad(total, (0, 1))(c, xs)


@program(f32(3))
def remat(x):
    return grad(lambda v: fnp.sum(fxflow.checkpoint(lambda u: fnp.sin(fnp.sin(u)))(v)))(
        x
    )


@program(f32(3), i32())
def references(x, n):
    """A loop that writes to a reference made inside, and one under a condition."""
    total = fxflow.new_ref(fnp.zeros(3))
    count = fxflow.new_ref(0)

    def body(i):
        total[i] += x[i]
        lax.cond(i > 1, lambda: count.addupdate(1), lambda: None)
        return i + 1

    lax.while_loop(lambda i: i < n, body, 0)
    return total[...], count[...]


@program(f32(3))
def custom_rule(x):
    @fxflow.custom_vjp
    def clipped(v):
        return v

    clipped.defvjp(lambda v: (v, None), lambda _, g: (fnp.clip(g, -1, 1),))
    return grad(lambda v: fnp.sum(clipped(v) ** 2))(x)
