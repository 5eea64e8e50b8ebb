"""Programs written for JAX that `clients.py` times: `clients_worker.py NAME STARTED`.

Each is a generator that stops where a stage ends. What is printed is, for each stage,
the wall time since STARTED (of the parent's clock) and the processor time so far.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

STAGES = ("import", "build", "first step", "100 steps")
STEPS = 100


def trained(step: Callable[..., Any], params: Any, state: Any) -> Iterator[None]:
    """The first step, then `STEPS` more."""
    params, state, value = step(params, state)
    value.block_until_ready()
    yield
    for _ in range(STEPS):
        params, state, value = step(params, state)
    value.block_until_ready()
    yield


def flax() -> Iterator[None]:
    import flax.linen as nn
    import jax
    import optax

    yield

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            for features in (8, 16):
                x = nn.relu(nn.Conv(features, (3, 3))(x))
                x = nn.avg_pool(x, (2, 2), strides=(2, 2))
            x = nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1)))
            return nn.Dense(10)(nn.LayerNorm()(x))

    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (16, 16, 16, 1))
    y = jax.random.randint(key, (16,), 0, 10)
    model, optimizer = Model(), optax.adam(1e-3)
    params = model.init(key, x)
    state = optimizer.init(params)
    jax.block_until_ready(params)
    yield

    @jax.jit
    def step(params, state):
        def loss(params):
            logits = model.apply(params, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    yield from trained(step, params, state)


def equinox() -> Iterator[None]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    yield
    key, data = jax.random.split(jax.random.PRNGKey(0))
    model = eqx.nn.MLP(16, 4, 64, 3, key=key)
    x = jax.random.normal(data, (64, 16))
    y = x[:, :4] ** 2
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    jax.block_until_ready(y)
    yield

    @eqx.filter_jit
    def step(model, state):
        def loss(model):
            return jnp.mean((jax.vmap(model)(x) - y) ** 2)

        value, grads = eqx.filter_value_and_grad(loss)(model)
        arrays = eqx.filter(model, eqx.is_array)
        updates, state = optimizer.update(grads, state, arrays)
        return eqx.apply_updates(model, updates), state, value

    model, state, value = step(model, state)
    value.block_until_ready()
    yield
    for _ in range(STEPS):
        model, state, value = step(model, state)
    value.block_until_ready()
    yield


def haiku() -> Iterator[None]:
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax

    yield

    def forward(x):
        series, _ = hk.dynamic_unroll(hk.LSTM(32), x, hk.LSTM(32).initial_state(16))
        return hk.nets.MLP([64, 10])(series[-1])

    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (20, 16, 8))
    y = jax.random.randint(key, (16,), 0, 10)
    model = hk.without_apply_rng(hk.transform(forward))
    optimizer = optax.adam(1e-3)
    params = model.init(key, x)
    state = optimizer.init(params)
    jax.block_until_ready(params)
    yield

    @jax.jit
    def step(params, state):
        def loss(params):
            logits = jax.nn.log_softmax(model.apply(params, x))
            return -jnp.mean(logits[jnp.arange(16), y])

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    yield from trained(step, params, state)


def numpyro() -> Iterator[None]:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    yield
    x = jax.random.normal(jax.random.PRNGKey(0), (100, 5))
    y = x @ jnp.arange(5.0) + jax.random.normal(jax.random.PRNGKey(1), (100,))

    def model(x, y):
        weights = numpyro.sample("w", dist.Normal(jnp.zeros(5), 1.0).to_event(1))
        scale = numpyro.sample("s", dist.HalfNormal(1.0))
        with numpyro.plate("n", 100):
            numpyro.sample("y", dist.Normal(x @ weights, scale), obs=y)

    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(2), x, y)
    jax.block_until_ready(svi.get_params(state))
    yield
    step = jax.jit(svi.update)
    state, value = step(state, x, y)
    value.block_until_ready()
    yield
    for _ in range(STEPS):
        state, value = step(state, x, y)
    value.block_until_ready()
    yield


PROGRAMS = {"flax": flax, "equinox": equinox, "haiku": haiku, "numpyro": numpyro}


def main(name: str, started: str) -> None:
    marks = [
        (time.time() - float(started), time.process_time()) for _ in PROGRAMS[name]()
    ]
    print(json.dumps(marks))


if __name__ == "__main__":
    main(*sys.argv[1:])
