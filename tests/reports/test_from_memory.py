"""Programs as someone who knows JAX and optax writes them from memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random
from fxflow.compat.jax.experimental.ode import odeint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(32, 3)).astype(np.float32)
W = np.array([1.0, -2.0, 0.5], np.float32)
Y = X @ W + 0.7


def fitted(loss: Any, params: Any, rate: float, steps: int) -> tuple[Any, float]:
    tx = optim.adam(rate)

    @fxflow.jit
    def step(params: Any, state: Any) -> Any:
        value, grads = fxflow.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    state = tx.init(params)
    for _ in range(steps):
        params, state, value = step(params, state)
    return params, float(value)


def test_linear_regression() -> None:
    def loss(params: Any) -> Any:
        return fnp.mean((X @ params["w"] + params["b"] - Y) ** 2)

    params, value = fitted(loss, {"w": fnp.zeros(3), "b": fnp.zeros(())}, 0.1, 200)
    np.testing.assert_allclose(params["w"], W, 0.02)
    np.testing.assert_allclose(params["b"], 0.7, 0.02)
    assert value < 1e-3


def test_perceptron_learns_xor() -> None:
    x = fnp.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    labels = fnp.array([0, 1, 1, 0])
    keys = random.split(random.key(1))
    params = [
        {"w": random.normal(keys[0], (2, 16)), "b": fnp.zeros(16)},
        {"w": random.normal(keys[1], (16, 2)) / 4, "b": fnp.zeros(2)},
    ]

    def logits(params: Any) -> Any:
        hidden = nn.relu(x @ params[0]["w"] + params[0]["b"])
        return hidden @ params[1]["w"] + params[1]["b"]

    def loss(params: Any) -> Any:
        losses = optim.losses.softmax_cross_entropy_with_integer_labels
        return losses(logits(params), labels).mean()

    params, value = fitted(loss, params, 0.05, 150)
    assert value < 0.05
    assert (fnp.argmax(logits(params), -1) == labels).all()


def test_gaussian_process() -> None:
    x = fnp.linspace(0, 3, 12)
    kernel = lambda a, b: fnp.exp(-0.5 * (a[:, None] - b[None]) ** 2)
    factor = fnp.linalg.cholesky(kernel(x, x) + 1e-4 * fnp.eye(12))
    weights = fxflow.scipy.linalg.cho_solve((factor, True), fnp.sin(x))
    at = fnp.array([0.4, 1.7, 2.6])
    np.testing.assert_allclose(kernel(at, x) @ weights, np.sin(at), atol=5e-3)


def test_differential_equation() -> None:
    def slope(y: Any, t: Any, rate: Any) -> Any:
        return -rate * y

    end = lambda rate: odeint(slope, fnp.array(1.0), fnp.array([0.0, 2.0]), rate)[-1]
    np.testing.assert_allclose(end(0.5), np.exp(-1), 1e-4)
    np.testing.assert_allclose(fxflow.grad(end)(0.5), -2 * np.exp(-1), 1e-3)


def test_hamiltonian_monte_carlo() -> None:
    density = lambda q: -0.5 * fnp.sum((q - 1.0) ** 2)
    grad = fxflow.grad(density)

    def step(q: Any, key: Any) -> Any:
        first, second = random.split(key)
        p = random.normal(first, q.shape)

        def leap(state: Any, _: Any) -> Any:
            q, p = state
            p = p + 0.1 * grad(q)
            q = q + 0.2 * p
            return (q, p + 0.1 * grad(q)), None

        (new, end), _ = lax.scan(leap, (q, p), None, length=8)
        gain = density(new) - density(q) + 0.5 * (fnp.sum(p**2) - fnp.sum(end**2))
        q = fnp.where(fnp.log(random.uniform(second)) < gain, new, q)
        return q, q

    keys = random.split(random.key(0), 600)
    _, drawn = fxflow.jit(lambda keys: lax.scan(step, fnp.zeros(2), keys))(keys)
    np.testing.assert_allclose(drawn[50:].mean(0), 1.0, atol=0.2)
    np.testing.assert_allclose(drawn[50:].std(0), 1.0, atol=0.2)


def test_k_means() -> None:
    truth = np.array([[0.0, 0], [5, 0], [0, 5]], np.float32)
    points = np.concatenate([t + 0.3 * RNG.normal(size=(20, 2)) for t in truth])
    points = fnp.asarray(points, fnp.float32)

    @fxflow.jit
    def step(_: Any, centers: Any) -> Any:
        away = fnp.linalg.norm(points[:, None] - centers[None], axis=-1)
        near = nn.one_hot(fnp.argmin(away, axis=1), 3)
        return near.T @ points / fnp.maximum(near.sum(0), 1)[:, None]

    centers = lax.fori_loop(0, 5, step, points[fnp.array([0, 20, 40])])
    np.testing.assert_allclose(centers, truth, atol=0.3)


def test_custom_vjp_clips_a_gradient() -> None:
    @fxflow.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, ()), lambda _, g: (fnp.clip(g, -1, 1),))
    assert fxflow.grad(lambda x: 5 * clipped(x))(2.0) == 1.0


def test_bfloat16_with_float32_parameters() -> None:
    def loss(w: Any) -> Any:
        out = X.astype(fnp.bfloat16) @ w.astype(fnp.bfloat16)
        return fnp.mean((out.astype(fnp.float32) - X @ W) ** 2)

    w, _ = fitted(loss, fnp.zeros(3), 0.1, 150)
    assert w.dtype == fnp.float32
    np.testing.assert_allclose(w, W, atol=0.05)


def test_private_gradients() -> None:
    tx = optim.contrib.differentially_private_aggregate(1.0, 0.0, random.key(0))
    one = lambda w, x, y: (x @ w - y) ** 2
    grads = fxflow.vmap(fxflow.grad(one), (None, 0, 0))(fnp.zeros(3), X, Y)
    got, _ = tx.update(grads, tx.init(fnp.zeros(3)))
    sizes = np.linalg.norm(grads, axis=1, keepdims=True)
    np.testing.assert_allclose(got, (grads / np.maximum(sizes, 1)).mean(0), 1e-4, 1e-6)


def test_causal_attention_does_not_look_ahead() -> None:
    q, k, v = random.normal(random.key(0), (3, 1, 6, 2, 4))
    attend = fxflow.jit(lambda v: nn.dot_product_attention(q, k, v, is_causal=True))
    changed = attend(v.at[:, 3:].set(9.0)) != attend(v)
    assert not changed[:, :3].any() and changed[:, 3:].any()
