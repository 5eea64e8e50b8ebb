"""Gaussian process regression; the covariance's parameters maximize the evidence.

    model = fit(x, y)
    mean, deviation = predict(model, x, y, new)

Rasmussen and Williams 2006, algorithm 2.1.
"""

import functools
from typing import NamedTuple

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, optim
from fxflow.scipy import linalg


class Model(NamedTuple):
    """Logarithms of the length scale and of the signal's and noise's deviations."""

    length: Array
    signal: Array
    noise: Array


def covariance(model: Model, a: Array, b: Array) -> Array:
    """Returns the squared exponential covariance, `f32[n, m]`."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    scaled = fnp.maximum(squares, 0) * fnp.exp(-2 * model.length)
    return fnp.exp(2 * model.signal - 0.5 * scaled)


def factor(model: Model, x: Array, y: Array) -> tuple[Array, Array]:
    """Returns the Cholesky factor of the covariance C of `y`, and `C⁻¹ y`."""
    noise = fnp.exp(2 * model.noise) + 1e-6
    root = fnp.linalg.cholesky(covariance(model, x, x) + noise * fnp.eye(len(x)))
    return root, linalg.cho_solve((root, True), y)


def evidence(model: Model, x: Array, y: Array) -> Array:
    """Returns the log marginal likelihood of `y`, integrated over all functions."""
    root, weights = factor(model, x, y)
    log_root = fnp.log(fnp.diagonal(root)).sum()
    return -0.5 * y @ weights - log_root - 0.5 * len(y) * fnp.log(2 * fnp.pi)


@functools.partial(fxflow.jit, static_argnames=("steps",))
def fit(x: Array, y: Array, *, steps: int = 12) -> Model:
    """Maximizes the evidence by L-BFGS, from several length scales, with `vmap`."""
    tx = optim.lbfgs()
    loss = lambda model: -evidence(model, x, y) / len(y)

    def run(length: Array) -> tuple[Model, Array]:
        model = Model(length, fnp.zeros(()), fnp.log(0.5))

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            model, state = carry
            value, grad = optim.value_and_grad_from_state(loss)(model, state=state)
            updates, state = tx.update(
                grad, state, model, value=value, grad=grad, value_fn=loss
            )
            return (optim.apply_updates(model, updates), state), None

        (model, _), _ = lax.scan(step, (model, tx.init(model)), length=steps)
        return model, loss(model)

    models, losses = fxflow.vmap(run)(fnp.log(fnp.array([1.0, 3.0, 10.0])))
    best = fnp.nanargmin(losses)
    return Model(*(part[best] for part in models))


@fxflow.jit
def predict(model: Model, x: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Returns means and deviations of the function at new points, `f32[m]` each."""
    root, weights = factor(model, x, y)
    across = covariance(model, x, new)
    mean = across.T @ weights
    part = linalg.solve_triangular(root, across, lower=True)
    variance = fnp.exp(2 * model.signal) - (part**2).sum(0)
    return mean, fnp.sqrt(fnp.maximum(variance, 0))
