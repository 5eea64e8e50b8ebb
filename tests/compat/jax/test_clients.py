"""Packages written for JAX run, where they are installed."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fxflow

ROOT = Path(fxflow.__file__).parent.parent

PROGRAMS = {
    "optax": """
        import jax, jax.numpy as jnp, optax
        opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1))
        params = {"w": jnp.zeros(3)}
        state = opt.init(params)
        x = jax.random.normal(jax.random.PRNGKey(0), (8, 3))
        @jax.jit
        def step(params, state):
            def loss(p):
                return jnp.mean((x @ p["w"] - 1) ** 2)
            value, grads = jax.value_and_grad(loss)(params)
            updates, state = opt.update(grads, state, params)
            return optax.apply_updates(params, updates), state, value
        first = None
        for _ in range(50):
            params, state, value = step(params, state)
            first = value if first is None else first
        assert value < first
    """,
    "equinox": """
        import equinox as eqx, jax, jax.numpy as jnp
        model = eqx.nn.MLP(2, 1, 8, 1, key=jax.random.PRNGKey(0))
        x = jax.random.normal(jax.random.PRNGKey(1), (16, 2))
        @eqx.filter_jit
        @eqx.filter_value_and_grad
        def loss(model):
            return jnp.mean((jax.vmap(model)(x)[:, 0] - x[:, 0]) ** 2)
        first, _ = loss(model)
        for _ in range(20):
            value, grads = loss(model)
            step = jax.tree_util.tree_map(lambda g: -0.1 * g, grads)
            model = eqx.apply_updates(model, step)
        assert value < first
    """,
    "flax": """
        import flax.linen as nn, jax, jax.numpy as jnp
        class Model(nn.Module):
            @nn.compact
            def __call__(self, x):
                return nn.RNN(nn.LSTMCell(4))(nn.relu(nn.Dense(4)(x)))
        x = jax.random.normal(jax.random.PRNGKey(1), (2, 5, 3))
        model = Model()
        params = model.init(jax.random.PRNGKey(0), x)
        grads = jax.jit(jax.grad(lambda p: jnp.sum(model.apply(p, x) ** 2)))(params)
        assert all(jnp.all(jnp.isfinite(g)) for g in jax.tree_util.tree_leaves(grads))
    """,
    "numpyro": """
        import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        from numpyro.infer import MCMC, NUTS
        def model(y):
            mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
        mcmc = MCMC(NUTS(model), num_warmup=50, num_samples=100, progress_bar=False)
        mcmc.run(jax.random.PRNGKey(0), 3.0 + jnp.zeros(20))
        assert abs(float(mcmc.get_samples()["mean"].mean()) - 3) < 0.2
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("package", PROGRAMS)
def test_client_runs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    code = textwrap.dedent(PROGRAMS[package])
    done = subprocess.run(
        [sys.executable, "-m", "fxflow.compat.jax", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
