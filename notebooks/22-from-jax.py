# %% [markdown]
# # From JAX, in practice
#
# A program written for JAX runs unchanged on fxflow. This notebook runs one, moves it
# to fxflow's own names line by line, checks that the numbers stay the same, and shows
# what the move gains.

# %% [markdown]
# ## Unchanged
#
# On the command line: `python -m fxflow.compat.jax program.py`. In a notebook, the
# first cell calls `install()`; then `import jax` means fxflow.

# %%
import fxflow.compat.jax

fxflow.compat.jax.install()

# %%
import jax
import jax.numpy as jnp

print(jax.__version__, jax.__file__ is not None and "compat" in jax.__file__)


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def update(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, grads)


key = jax.random.PRNGKey(0)
keys = jax.random.split(key, 4)
params = [
    (jax.random.normal(keys[0], (1, 32)), jnp.zeros(32)),
    (jax.random.normal(keys[1], (32, 1)) / 6, jnp.zeros(1)),
]
x = jax.random.uniform(keys[2], (128, 1), minval=-2.0, maxval=2.0)
y = jnp.sin(2 * x)
for _ in range(500):
    params = update(params, x, y)
jax_result = loss(params, x, y)
print(jax_result)

# %% [markdown]
# ## Line by line
#
# | JAX | fxflow |
# | --- | --- |
# | `import jax.numpy as jnp` | `import fxflow.numpy as fnp` |
# | `jax.jit`, `jax.grad`, … | `fxflow.jit`, `fxflow.grad`, … |
# | `jax.random.PRNGKey(0)` | `random.key(0)` |
# | `jax.tree_util.tree_map` | `fxflow.tree.map` |
# | `optax.adam` | `optim.adam` |
#
# [From JAX](../docs/guides/from-jax.md) has the whole table. If you use a name of JAX,
# the error gives fxflow's:

# %%
import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random

for module, name in (
    (fxflow, "make_jaxpr"),
    (random, "PRNGKey"),
    (fxflow, "tree_util"),
):
    try:
        getattr(module, name)
    except AttributeError as error:
        print(error)


# %%
def predicted(params, x):
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def error(params, x, y):
    return fnp.mean((predicted(params, x) - y) ** 2)


@fxflow.jit
def step(params, x, y):
    slope = fxflow.grad(error)(params, x, y)
    return fxflow.tree.map(lambda p, g: p - 0.05 * g, params, slope)


keys = random.split(random.key(0), 4)
params = [
    (random.normal(keys[0], (1, 32)), fnp.zeros(32)),
    (random.normal(keys[1], (32, 1)) / 6, fnp.zeros(1)),
]
x = random.uniform(keys[2], (128, 1), minval=-2.0, maxval=2.0)
y = fnp.sin(2 * x)
for _ in range(500):
    params = step(params, x, y)
print(error(params, x, y), jax_result)
assert error(params, x, y) == jax_result

# %% [markdown]
# The random numbers are JAX's, and so is the result.
#
# ## What is different
#
# An explicit 64-bit dtype is honoured, without a switch for the whole program (after
# `install()`, as here, JAX's rule holds; so this switches it off for a moment):

# %%
with fxflow.config.override(x64=True):
    print((fnp.zeros(2, "float64") + 1).dtype)

# %% [markdown]
# Errors name the argument and the line.

# %%
for wrong in (
    lambda: fxflow.jit(lambda x: x if x > 0 else -x)(1.0),
    lambda: fnp.ones((3, 4)) @ fnp.ones((5, 6)),
):
    try:
        wrong()
    except TypeError as wrong_type:
        print(f"{type(wrong_type).__name__}: {wrong_type}\n")

# %% [markdown]
# A loop of unknown length has a reverse mode, if its length has a bound. Here, the
# derivative of a square root found by Newton's steps:


# %%
def root(a):
    def close(x):
        return abs(x * x - a) > 1e-6 * a

    return fxflow.lax.while_loop(close, lambda x: 0.5 * (x + a / x), a, max_steps=50)


print(root(2.0), fxflow.grad(root)(2.0), 0.5 / 2**0.5)
assert abs(fxflow.grad(root)(2.0) - 0.5 / 2**0.5) < 1e-3

# %% [markdown]
# Functions that JAX leaves to other packages are here: splines, filters, solvers,
# distributions. A smoothing filter, differentiated with respect to its window:

# %%
import matplotlib.pyplot as plt

from fxflow.scipy import ndimage

noisy = fnp.sin(fnp.linspace(0, 6, 200)) + 0.3 * random.normal(random.key(5), (200,))


def roughness(sigma):
    return fnp.mean(fnp.diff(ndimage.gaussian_filter1d(noisy, sigma, radius=20)) ** 2)


plt.plot(noisy, alpha=0.4)
plt.plot(ndimage.gaussian_filter1d(noisy, 5.0))
plt.title(f"slope of the roughness in sigma at 5: {fxflow.grad(roughness)(5.0):.1e}")
plt.show()
assert fxflow.grad(roughness)(5.0) < 0

# %% [markdown]
# ## What to do first with a program of yours
#
# 1. Run it with `python -m fxflow.compat.jax`. If a name is missing, the error says
#    which.
# 2. Keep the packages that it uses: Optax, Flax, Equinox, NumPyro and others have been
#    run in this way ([list](../docs/compat.md)).
# 3. Move files to fxflow's names one by one: arrays and transforms are the same objects
#    under both names.
