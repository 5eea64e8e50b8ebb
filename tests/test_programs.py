"""Programs made at random: however they are run or transformed, the answer is one.

Each is a straight line of smooth operations on vectors of one length with branches,
loops and calls in between. It is run operation by operation with NumPy and with XLA,
compiled whole, vectorised, and differentiated forwards and backwards in every nesting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

import fxflow
import fxflow.numpy as fnp
from fxflow import checkpoint, config, grad, jacfwd, jit, jvp, lax, vjp, vmap

Step = Callable[..., Any]


@fxflow.custom_jvp
def soft(x: Any) -> Any:
    return fnp.log1p(fnp.exp(x))


soft.defjvp(lambda p, t: (soft(*p), t[0] / (1 + fnp.exp(-p[0]))))


@fxflow.custom_vjp
def product(x: Any, y: Any) -> Any:
    return fnp.sin(x) * y


product.defvjp(
    lambda x, y: (product(x, y), (x, y)),
    lambda kept, g: (g * fnp.cos(kept[0]) * kept[1], g * fnp.sin(kept[0])),
)

UNARY: dict[str, Step] = {
    "sin": fnp.sin,
    "tanh": fnp.tanh,
    "exp": lambda x: fnp.exp(-x * x),
    "softplus": lambda x: fnp.log1p(fnp.exp(x)),
    "reverse": lambda x: x[::-1],
    "roll": lambda x: fnp.concatenate([x[1:], x[:1]]),
    "gather": lambda x: x[fnp.array([0, 0, 2])],
    "cumsum": lambda x: lax.cumsum(x) / 3,
    "center": lambda x: x - fnp.mean(x),
    "norm": lambda x: x / fnp.sqrt(1 + fnp.sum(x * x)),
    "call": jit(lambda x: fnp.cos(x) + 0.5 * x),
    "remat": checkpoint(lambda x: fnp.sin(fnp.tanh(x))),
    "custom": soft,
    "weigh": lambda x: fnp.dot(fnp.array([[1.0, 2, 0], [0, 1, 0], [0.5, 0, -1]]), x),
    "scan": lambda x: lax.scan(
        lambda c, e: (fnp.sin(c) + e, c * e), fnp.array(0.5, x.dtype), x
    )[1],
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, v: fnp.sin(v) + 0.1 * i, x),
    "cond": lambda x: lax.cond(fnp.sum(x) > 0, fnp.sin, lambda v: v * 0.5, x),
    "vmap": lambda x: vmap(lambda e: fnp.sin(e) * x[0])(x),
    "update": lambda x: x.at[1].multiply(2.0),
}
BINARY: dict[str, Step] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (2 + fnp.cos(y)),
    "outer": lambda x, y: fnp.sum(x[:, None] * y, 0) / 3,
    "custom_vjp": product,
    "smooth_max": lambda x, y: fnp.logaddexp(x, y),
    "scale": lambda x, y: x * fnp.sum(y) / 3,
}

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 5)),
        st.tuples(
            st.sampled_from(sorted(BINARY)), st.integers(0, 5), st.integers(0, 5)
        ),
    ),
    min_size=1,
    max_size=6,
)
vectors = st.lists(st.floats(-1.5, 1.5, width=32), min_size=3, max_size=3)
# The number of examples is what the suite has time for.
check = settings(
    max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def program(plan: list[Any], forward_only: bool = False) -> Step:
    def run(x: Any, y: Any) -> Any:
        values = [fnp.asarray(x), fnp.asarray(y)]
        for name, *operands in plan:
            args = [values[i % len(values)] for i in operands]
            table = UNARY if name in UNARY else BINARY
            if forward_only and name == "custom_vjp":
                name = "mul"
            values.append(table[name](*args))
        return values[-1] + 0.1 * values[-2]

    return run


def close(actual: Any, expected: Any, tol: float = 1e-9) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


@check
@given(steps, vectors, vectors)
def test_every_way_to_run(plan: Any, x: Any, y: Any) -> None:
    run = program(plan)
    with config.override(x64=True):
        x, y = np.array(x), np.array(y)
        expected = np.asarray(run(fnp.asarray(x), fnp.asarray(y)))
        close(jit(run)(x, y), expected)
        graph = fxflow.make_graph(run)(x, y)
        graph.graph.check()
        close(graph(x, y), expected)
        rows = np.stack([x, y, x - y])
        each = np.stack([run(fnp.asarray(r), fnp.asarray(y)) for r in rows])
        close(vmap(run, (0, None))(rows, y), each)
        close(jit(vmap(jit(run), (0, None)))(rows, y), each)
        close(vmap(run, (1, None), 1)(rows.T, y), each.T)


@check
@given(steps, vectors, vectors)
def test_every_way_to_differentiate(plan: Any, x: Any, y: Any) -> None:
    run = program(plan)
    forward = program(plan, forward_only=True)
    with config.override(x64=True):
        x, y = np.array(x), np.array(y)
        weights = np.array([1.0, -2.0, 0.5])
        loss = lambda u, v: fnp.sum(run(u, v) * weights)
        reverse = np.asarray(grad(loss)(x, y))
        if not any(name == "cond" for name, *_ in plan):
            steps = np.eye(3) * 1e-5
            slope = [(loss(x + h, y) - loss(x - h, y)) / 2e-5 for h in steps]
            close(reverse, np.array([float(s) for s in slope]), 1e-5)
        for other in (
            jit(grad(loss)),
            grad(jit(loss)),
            jit(grad(jit(loss))),
            grad(checkpoint(loss)),
            jit(grad(checkpoint(loss))),
        ):
            close(other(x, y), reverse)
        close(vjp(run, x, y)[1](weights)[0], reverse)
        rows = np.stack([x, y])
        each = np.stack([grad(loss)(r, y) for r in rows])
        close(vmap(grad(loss), (0, None))(rows, y), each)
        summed = lambda r: fnp.sum(vmap(loss, (0, None))(r, y))
        close(grad(summed)(rows), each)
        if run is forward or not any(name == "custom_vjp" for name, *_ in plan):
            _, tangent = jvp(lambda u: run(u, y), (x,), (weights,))
            close(tangent, np.asarray(jacfwd(run)(x, y)) @ weights)
            close(jit(jacfwd(jit(run)))(x, y).T @ weights, reverse)


@check
@given(steps, vectors, vectors)
def test_second_derivatives(plan: Any, x: Any, y: Any) -> None:
    run = program(plan, forward_only=True)
    with config.override(x64=True):
        x, y = np.array(x), np.array(y)
        loss = lambda u: fnp.sum(fnp.sin(run(u, y)))
        hessian = np.asarray(fxflow.hessian(loss)(x))
        close(hessian, hessian.T, 1e-8)
        close(fxflow.jacrev(grad(loss))(x), hessian, 1e-8)
        close(fxflow.jacrev(jacfwd(loss))(x), hessian, 1e-8)
        close(jit(jacfwd(jit(grad(jit(loss)))))(x), hessian, 1e-8)
        v = np.array([1.0, 0.5, -1.0])
        close(grad(lambda u: fnp.vdot(grad(loss)(u), v))(x), hessian @ v, 1e-8)
