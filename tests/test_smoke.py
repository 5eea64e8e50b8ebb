"""Twenty seconds that touch everything: select with `-m smoke`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, nn, optim, random, value_and_grad, vmap

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parent.parent


def test_eager():
    x = fnp.arange(6.0).reshape(2, 3)
    assert (x + 1)[1, ::-1].tolist() == [6.0, 5.0, 4.0]
    assert fnp.where(x > 2, x, 0).sum() == 12
    np.testing.assert_allclose(fnp.exp(x), np.exp(np.arange(6.0).reshape(2, 3)))
    np.testing.assert_allclose(x @ x.T, np.asarray(x) @ np.asarray(x).T)
    assert x.at[0, 1].set(9.0)[0].tolist() == [0.0, 9.0, 2.0]
    assert (x.astype("int8") // 2).dtype == np.int8
    assert np.asarray(fnp.asarray([1, 2, 3])).tolist() == [1, 2, 3]


def test_large_eager_operations():
    x = fnp.ones((512, 512))
    assert float((x @ x)[3, 3]) == 512.0
    assert float(fnp.sum(x * 2)) == 2 * 512 * 512


def test_jit():
    traces = []

    @jit
    def fun(x, y):
        traces.append(1)
        return {"sum": x + y, "product": x * y}

    for _ in range(3):
        out = fun(fnp.ones(3), 2.0)
    assert out["sum"].tolist() == [3.0] * 3 and len(traces) == 1
    donated = jit(lambda s: s + 1, donate_argnums=0)
    state = jit(lambda: fnp.zeros(100))()
    for _ in range(3):
        state = donated(state)
    assert float(state[0]) == 3.0


def test_gradient_and_hessian_agree_with_formulas():
    def fun(x):
        return fnp.sum(fnp.sin(x) ** 2)

    x = fnp.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(grad(fun)(x), np.sin(2 * np.asarray(x)), atol=1e-6)
    hessian = fxflow.hessian(fun)(x)
    np.testing.assert_allclose(
        hessian, np.diag(2 * np.cos(2 * np.asarray(x))), atol=1e-5
    )
    out, tangent = fxflow.jvp(fun, (x,), (fnp.ones(5),))
    assert float(tangent) == pytest.approx(float(grad(fun)(x).sum()), rel=1e-5)
    assert float(out) == pytest.approx(float(fun(x)))


def test_vmap_agrees_with_numpy():
    rows = fnp.arange(12.0).reshape(4, 3)
    norms = vmap(lambda r: fnp.sqrt(fnp.sum(r * r)))(rows)
    np.testing.assert_allclose(norms, np.linalg.norm(np.asarray(rows), axis=1))
    shares = vmap(lambda r: r / lax.psum(r, "i"), axis_name="i")(rows + 1)
    np.testing.assert_allclose(np.asarray(shares).sum(0), 1.0, rtol=1e-6)


def test_control_flow():
    carry, ys = jit(lambda xs: lax.scan(lambda c, x: (c + x, c * x), 0.0, xs))(
        fnp.arange(5.0)
    )
    assert float(carry) == 10.0 and ys.shape == (5,)
    assert int(lax.while_loop(lambda n: n < 100, lambda n: n * 2, 1)) == 128
    assert float(lax.cond(True, lambda x: x, lambda x: -x, 3.0)) == 3.0
    assert float(lax.fori_loop(0, 4, lambda i, x: x + i, 0.0)) == 6.0
    slope = grad(
        lambda w: lax.scan(lambda c, x: (c * w + x, None), 0.0, fnp.ones(3))[0]
    )
    assert float(slope(2.0)) == 5.0


def test_random():
    key = random.key(42)
    first, second = random.split(key)
    draws = random.normal(first, (2000,))
    assert abs(float(draws.mean())) < 0.1 and abs(float(draws.std()) - 1) < 0.1
    assert random.normal(first, (2000,)).tolist() == draws.tolist()
    assert random.uniform(second, (3,)).tolist() != random.uniform(key, (3,)).tolist()
    # Random123's known answer for Threefry-2x32 of 20 rounds.
    zeros = np.zeros(1, np.uint32)
    bits = lax.threefry2x32(zeros, zeros, zeros, zeros)
    assert [int(b[0]) for b in bits] == [0x6B200159, 0x99BA4EFE]


def test_training():
    """A small net learns a function: every part of a training step."""
    key = random.key(0)
    init = nn.initializers.glorot_normal()
    k1, k2, k3 = random.split(key, 3)
    params = {
        "w1": init(k1, (2, 16), fnp.float32),
        "b1": fnp.zeros(16),
        "w2": init(k2, (16, 2), fnp.float32),
    }
    x = random.uniform(k3, (64, 2), minval=-1.0, maxval=1.0)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)

    def loss(params):
        hidden = nn.relu(x @ params["w1"] + params["b1"])
        logits = hidden @ params["w2"]
        picked = nn.log_softmax(logits) * nn.one_hot(y, 2)
        return -fnp.mean(fnp.sum(picked, -1))

    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.02))

    @jit
    def step(params, state):
        value, gradient = value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    values = []
    for _ in range(80):
        params, state, value = step(params, state)
        values.append(float(value))
    assert values[-1] < 0.5 * values[0]


def test_printing():
    graph = fxflow.make_graph(lambda x: fnp.sin(x) * 2)(1.0)
    assert "sin" in str(graph) and "mul" in str(graph)


PROGRAM = """
import fxflow, fxflow.numpy as fnp
step = fxflow.jit(fxflow.grad(lambda w: fnp.sum(fnp.tanh(w @ w) ** 2)))
out = step(fnp.eye(4) * 0.5)
print(float(out[0, 0]))
"""


def test_disk_cache_across_two_processes(tmp_path):
    cache = tmp_path / "cache"
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FXFLOW_CACHE_DIR": str(cache),
        "FXFLOW_CACHE": "1",
    }

    def run():
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def entries():
        return {
            str(p.relative_to(cache)): p.stat().st_size
            for p in cache.rglob("*")
            if p.is_file()
        }

    first = run()
    stored = entries()
    assert stored
    assert run() == first
    assert entries() == stored  # nothing was compiled again
    for path in cache.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run() == first  # truncated entries are ignored
