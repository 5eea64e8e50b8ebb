"""Packages written for JAX run, and give the numbers that they give with JAX 0.10.2.

`scripts/environment.sh` installs them (`clients.txt`) into the folder `clients` of the
environment, which these tests alone put on the path: nothing else finds them, or jax.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fxflow

ROOT = Path(fxflow.__file__).parent.parent
CLIENTS = Path(sys.prefix) / "clients"

# Each prints a list of numbers; beside it is what it prints with JAX.
# fmt: off
PROGRAMS = {
    "optax": (
        """
        import jax, jax.numpy as jnp, optax
        key = jax.random.PRNGKey(0)
        x = jax.random.normal(key, (8, 3))
        y = x @ jnp.array([1.0, -2.0, 0.5])
        def loss(params):
            return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)
        out = []
        schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 50)
        for optimizer in (
            optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)),
            optax.lbfgs(),
        ):
            params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
            state = optimizer.init(params)
            @jax.jit
            def step(params, state):
                value, grads = jax.value_and_grad(loss)(params)
                updates, state = optimizer.update(
                    grads, state, params, value=value, grad=grads, value_fn=loss
                )
                return optax.apply_updates(params, updates), state, value
            for _ in range(10):
                params, state, value = step(params, state)
            out += [float(value), *map(float, params["w"])]
        print(out)
        """,
        [2.9034855, 0.6853671, -0.6998718, 0.6532077, 0.0, 1.0, -2.0, 0.5],
    ),
    "equinox": (
        """
        import equinox as eqx, jax, jax.numpy as jnp
        model_key, key = jax.random.split(jax.random.PRNGKey(0))
        model = eqx.nn.MLP(2, 1, 8, 1, key=model_key)
        x = jax.random.normal(key, (16, 2))
        @eqx.filter_jit
        @eqx.filter_value_and_grad
        def loss(model):
            return jnp.mean((jax.vmap(model)(x)[:, 0] - x[:, 0]) ** 2)
        out = []
        for _ in range(5):
            value, grads = loss(model)
            step = jax.tree_util.tree_map(lambda g: -0.1 * g, grads)
            model = eqx.apply_updates(model, step)
            out.append(float(value))
        norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(
            2, axis_name="batch", mode="batch"
        )
        normed, state = jax.vmap(
            norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None)
        )(x, state)
        out.append(float(jnp.sum(normed**3)))
        def power(a):
            return eqx.internal.while_loop(
                lambda c: c < 10.0, lambda c: c * a, jnp.array(1.0),
                max_steps=16, kind="checkpointed",
            )
        out += [float(power(1.5)), float(jax.grad(power)(1.5))]
        print(out)
        """,
        [
            1.3750757, 0.7495673, 0.5344458, 0.4453681, 0.3933756,
            9.749649, 11.390625, 45.5625,
        ],
    ),
    "flax": (
        """
        import flax.linen as nn, jax, jax.numpy as jnp, optax
        from flax.training import train_state
        class Model(nn.Module):
            @nn.compact
            def __call__(self, x, train=True):
                x = nn.relu(nn.BatchNorm(not train)(nn.Conv(4, (3, 3))(x)))
                x = nn.avg_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
                x = nn.Dropout(0.3, deterministic=not train)(nn.Dense(8)(x))
                return nn.Dense(3)(nn.LayerNorm()(x))
        class State(train_state.TrainState):
            batch_stats: dict
        key = jax.random.PRNGKey(0)
        x = jax.random.normal(key, (8, 6, 6, 1))
        y = jax.random.randint(key, (8,), 0, 3)
        model = Model()
        variables = model.init({"params": key, "dropout": key}, x)
        state = State.create(
            apply_fn=model.apply, params=variables["params"],
            tx=optax.adam(1e-2), batch_stats=variables["batch_stats"],
        )
        @jax.jit
        def step(state, key):
            def loss(params):
                logits, updates = state.apply_fn(
                    {"params": params, "batch_stats": state.batch_stats}, x,
                    rngs={"dropout": key}, mutable=["batch_stats"],
                )
                losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
                return losses.mean(), updates["batch_stats"]
            (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
            return state.apply_gradients(grads=grads, batch_stats=stats), value
        out = []
        for i in range(4):
            state, value = step(state, jax.random.fold_in(key, i))
            out.append(float(value))
        cell = nn.RNN(nn.LSTMCell(4))
        series = jax.random.normal(key, (2, 5, 3))
        out.append(float(cell.apply(cell.init(key, series), series).sum()))
        print(out)
        """,
        [1.0765710, 0.8933518, 0.6958829, 0.9955216, 1.1196650],
    ),
    "flax.nnx": (
        """
        import jax, jax.numpy as jnp, optax
        from flax import nnx
        class Model(nnx.Module):
            def __init__(self, rngs):
                self.inner = nnx.Linear(3, 8, use_bias=False, rngs=rngs)
                self.norm = nnx.BatchNorm(8, rngs=rngs)
                self.drop = nnx.Dropout(0.2, rngs=rngs)
                self.outer = nnx.Linear(8, 1, rngs=rngs)
            def __call__(self, x):
                h = self.drop(nnx.relu(self.norm(self.inner(x))))
                return self.outer(h)[:, 0]
        x = jax.random.normal(jax.random.key(1), (16, 3))
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        @nnx.jit
        def step(model, optimizer):
            def loss(model):
                return jnp.mean((model(x) - x[:, 0]) ** 2)
            value, grads = nnx.value_and_grad(loss)(model)
            optimizer.update(model, grads)
            return value
        out = [float(step(model, optimizer)) for _ in range(4)]
        model.eval()
        out.append(float(jnp.sum(model(x))))
        @nnx.vmap(in_axes=0, out_axes=0)
        def make(key):
            return nnx.Linear(3, 3, rngs=nnx.Rngs(key))
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def through(x, layer):
            return nnx.tanh(layer(x))
        layers = make(jax.random.split(jax.random.key(2), 3))
        out.append(float(jnp.sum(through(x, layers) ** 2)))
        seen = jax.new_ref(jnp.zeros(3))
        @jax.jit
        def count(x):
            seen[...] += jnp.sum(x, 0)
        count(x)
        out += map(float, seen[...])
        print(out)
        """,
        [
            2.7981327, 2.361964, 2.4215825, 1.8271619, -0.4101807,
            6.9267015, 8.971536, 1.3736331, 4.136223,
        ],
    ),
    "numpyro": (
        """
        import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
        from numpyro.infer.autoguide import AutoNormal
        key = jax.random.PRNGKey(0)
        y = 3.0 + jax.random.normal(key, (20,))
        def model(y):
            mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
            scale = numpyro.sample("scale", dist.HalfNormal(2.0))
            numpyro.sample("y", dist.Normal(mean, scale), obs=y)
        mcmc = MCMC(NUTS(model), num_warmup=5, num_samples=4, progress_bar=False)
        mcmc.run(jax.random.PRNGKey(1), y)
        out = [float(v) for v in mcmc.get_samples()["mean"]]
        svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO())
        found = svi.run(jax.random.PRNGKey(2), 30, y, progress_bar=False)
        out += [float(v) for v in found.losses[::10]]
        dirichlet = dist.Dirichlet(jnp.ones(3))
        for d in (dist.Gamma(2.0, 3.0), dist.StudentT(4.0), dirichlet):
            out.append(float(d.log_prob(d.sample(key, (5,))).sum()))
        print(out)
        """,
        [
            -0.9384987, 0.337435, 0.3202104, 0.4562065, 9159.213, 18751.646, 8875.236,
            -2.3011692, -9.9513845, 3.46573,
        ],
    ),
}
# fmt: on

# Files of optax's own test suite, which its wheel holds.
SUITE = (
    "_src/transform_test.py", "_src/update_test.py", "_src/combine_test.py",
    "schedules/_inject_test.py", "transforms/_masking_test.py",
    "tree_utils/_tree_math_test.py",
)  # fmt: skip


def run(*arguments: str) -> str:
    if not CLIENTS.is_dir():
        pytest.skip("the packages are not installed: scripts/test.sh does that")
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{CLIENTS}"},
        cwd=CLIENTS,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", PROGRAMS)
def test_gives_the_numbers_of_jax(package):
    code, expected = PROGRAMS[package]
    out = run("-m", "fxflow.compat.jax", "-c", textwrap.dedent(code))
    np.testing.assert_allclose(json.loads(out), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_suite_of_optax():
    plugins = ("-p", "fxflow.compat.jax.pytest_plugin", "-p", "no:cacheprovider")
    own = ("-c", os.devnull, "--rootdir", str(CLIENTS))
    files = [str(CLIENTS / "optax" / name) for name in SUITE]
    out = run("-m", "pytest", "-q", "-W", "ignore", *plugins, *own, *files)
    assert " failed" not in out and int(out.split(" passed")[0].split()[-1]) > 100
