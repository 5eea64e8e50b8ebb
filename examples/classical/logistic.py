"""Logistic regression with several classes, by L-BFGS with a line search.

    model = fit(x, labels, classes=10)
    predict(model, x)

The loss is strictly convex, so every optimizer that converges finds the same solution.
"""

import functools
from typing import NamedTuple

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, optim


class Model(NamedTuple):
    """Weights `f32[d, classes]` and biases `f32[classes]`."""

    w: Array
    b: Array


def logits(model: Model, x: Array) -> Array:
    """Returns logits `f32[n, classes]` of points `x: f32[n, d]`."""
    return x @ model.w + model.b


def loss(model: Model, x: Array, labels: Array, c: float) -> Array:
    """Returns the mean cross entropy plus the squared weights over `2 c n`."""
    entropy = optim.losses.softmax_cross_entropy_with_integer_labels(
        logits(model, x), labels
    )
    return entropy.mean() + (model.w**2).sum() / (2 * c * len(x))


@functools.partial(fxflow.jit, static_argnames=("classes", "limit"))
def fit(
    x: Array, labels: Array, *, classes: int, c: float = 1.0, limit: int = 300
) -> Model:
    """Minimizes until the gradient is below 1e-5 (float32 hardly gets lower)."""
    tx = optim.lbfgs()
    start = Model(fnp.zeros((x.shape[1], classes)), fnp.zeros(classes))
    f = lambda model: loss(model, x, labels, c)

    def step(carry: tuple) -> tuple:
        model, state, _, count = carry
        value, grad = optim.value_and_grad_from_state(f)(model, state=state)
        updates, state = tx.update(
            grad, state, model, value=value, grad=grad, value_fn=f
        )
        steep = optim.tree.norm(optim.tree.get(state, "grad", filtering=searched))
        return optim.apply_updates(model, updates), state, steep, count + 1

    def unfinished(carry: tuple) -> Array:
        return (carry[2] > 1e-5) & (carry[3] < limit)

    begin = start, tx.init(start), fnp.asarray(fnp.inf), fnp.asarray(0)
    return lax.while_loop(unfinished, step, begin)[0]


def searched(path: tuple, part: object) -> bool:
    """Returns whether this part of the optimizer's state is the line search's."""
    return path[-1].tuple_name == "ScaleByZoomLinesearchState"


@fxflow.jit
def predict(model: Model, x: Array) -> Array:
    """Returns the likeliest class of each row, `i32[n]`."""
    return logits(model, x).argmax(1)
