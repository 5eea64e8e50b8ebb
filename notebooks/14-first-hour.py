# %% [markdown]
# # The first hour
#
# From arrays to a model of your own: fit a curve through noisy measurements by a small
# neural network, written and trained without a framework on top. Each step uses one
# idea. Change the function `signal` below, and the rest of the notebook still works.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import optim, random, train

# %% [markdown]
# ## 1. Arrays
#
# `fxflow.numpy` has NumPy's functions. An array cannot be changed: an operation returns
# a new one.

# %%
x = fnp.linspace(-3, 3, 7)
print(x**2)
print(x.at[0].set(100.0))
print(x)

# %% [markdown]
# ## 2. Random numbers
#
# A random function takes a *key*. The same key gives the same numbers, and `split`
# makes new keys from one. So a program gives the same result whenever it is run.


# %%
def signal(x):
    return fnp.sin(2 * x) + 0.3 * x


keys = random.split(random.key(0), 4)
xs = random.uniform(keys[0], (200,), minval=-3.0, maxval=3.0)
ys = signal(xs) + 0.2 * random.normal(keys[1], (200,))
plt.scatter(xs, ys, s=8)
plt.title("200 measurements")
plt.show()

# %% [markdown]
# ## 3. A model is a function of parameters
#
# The parameters are a dictionary of arrays (any nest of dictionaries, lists and tuples
# will do: a *pytree*). The model takes one number and returns one number. It knows
# nothing about batches.


# %%
def init(key, width=32):
    first, second, third = random.split(key, 3)
    return {
        "in": {"w": random.normal(first, (width,)), "b": fnp.zeros(width)},
        "mid": {
            "w": random.normal(second, (width, width)) / width**0.5,
            "b": fnp.zeros(width),
        },
        "out": {"w": random.normal(third, (width,)) / width**0.5, "b": fnp.zeros(())},
    }


def model(params, x):
    hidden = fnp.tanh(params["in"]["w"] * x + params["in"]["b"])
    hidden = fnp.tanh(hidden @ params["mid"]["w"] + params["mid"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


params = init(keys[2])
print(model(params, 0.5))
print(fxflow.tree.map(lambda leaf: leaf.shape, params))

# %% [markdown]
# ## 4. `vmap`: from one example to many
#
# `vmap(model, (None, 0))` uses the same parameters for each of many numbers.


# %%
def loss(params, xs, ys):
    guesses = fxflow.vmap(model, in_axes=(None, 0))(params, xs)
    return fnp.mean((guesses - ys) ** 2)


print(loss(params, xs, ys))

# %% [markdown]
# ## 5. `grad`: which way is down
#
# `grad(loss)` is a function that returns the derivative with respect to the first
# argument, in the shape of that argument. To check it, move one parameter a little and
# compare:

# %%
slope = fxflow.grad(loss)(params, xs, ys)
step = 1e-2
up, down = params.copy(), params.copy()
up["out"] = {**params["out"], "b": params["out"]["b"] + step}
down["out"] = {**params["out"], "b": params["out"]["b"] - step}
difference = (loss(up, xs, ys) - loss(down, xs, ys)) / (2 * step)
print(f"grad {slope['out']['b']:.4f}, by differences {difference:.4f}")
assert abs(slope["out"]["b"] - difference) < 1e-3

# %% [markdown]
# ## 6. `jit`: one compiled step
#
# `optim.adam` is a pair of functions: `init` makes the optimizer's memory, `update`
# turns a gradient into a change. The whole step becomes one compiled program. It is
# traced in its first call, which is therefore slower than the others.

# %%
optimizer = optim.adam(3e-3)


@fxflow.jit
def train_step(params, memory, xs, ys):
    value, slope = fxflow.value_and_grad(loss)(params, xs, ys)
    change, memory = optimizer.update(slope, memory, params)
    return optim.apply_updates(params, change), memory, value


memory = optimizer.init(params)
losses = []
for _ in range(1500):
    params, memory, value = train_step(params, memory, xs, ys)
    losses.append(float(value))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.semilogy(losses)
left.set(xlabel="step", ylabel="loss")
grid = fnp.linspace(-3, 3, 300)
right.scatter(xs, ys, s=8, alpha=0.4)
right.plot(grid, fxflow.vmap(model, (None, 0))(params, grid), label="model")
right.plot(grid, signal(grid), "--", label="truth")
right.legend()
plt.show()

# %% [markdown]
# ## 7. Save it, and read it again

# %%
folder = Path(tempfile.mkdtemp()) / "model"
train.checkpoint.save(folder, params)
again = train.checkpoint.restore(folder, like=params)
assert model(again, 0.5) == model(params, 0.5)

# %% [markdown]
# ## Result
#
# The noise has variance 0.04, so no model can have a smaller loss on new data. Ours
# comes close:

# %%
new_xs = random.uniform(keys[3], (1000,), minval=-3.0, maxval=3.0)
noise = 0.2 * random.normal(random.fold_in(keys[3], 1), (1000,))
reached = float(loss(params, new_xs, signal(new_xs) + noise))
print(f"loss on new data: {reached:.3f}")
assert reached < 0.06

# %% [markdown]
# Next: an [image classifier](01-quickstart.ipynb), or a
# [small GPT](15-gpt.ipynb).
