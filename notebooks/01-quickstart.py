# %% [markdown]
# # Quickstart
#
# fxflow runs pure functions over immutable arrays. A function is *traced* into a
# dataflow graph; the graph is transformed (`grad`, `vmap`), compiled by XLA (`jit`) and
# run on CPU, GPU or TPU. This notebook introduces arrays, graphs, the three transforms
# and explicit state, and trains a classifier on MNIST.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random

# %% [markdown]
# ## Arrays
#
# `fxflow.numpy` follows NumPy. Two things differ: the default dtypes have 32 bits, and
# arrays are immutable. Operations return new arrays; `x.at[...].set(y)` returns a copy
# with some elements changed.

# %%
x = fnp.arange(12.0).reshape(3, 4)
x

# %%
changed = x.at[1, 2].set(-1)
print(changed)
print("the original is unchanged:", float(x[1, 2]))

# %%
try:
    x[1, 2] = -1
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# An explicit dtype is honoured, including 64 bits. Python numbers are *weak*: they take
# the dtype of the array that they are combined with.

# %%
print(fnp.arange(3).dtype, fnp.arange(3, dtype="int64").dtype)
print((fnp.ones(3, "bfloat16") * 2.5).dtype)

# %% [markdown]
# Arrays convert to NumPy arrays and back.

# %%
print(np.asarray(x).mean(), fnp.asarray(np.eye(2)).sum())

# %% [markdown]
# ## Graphs
#
# fxflow represents a function as a graph. `make_graph` calls the function once with
# placeholders that have a shape and a dtype but no value, and records each operation.


# %%
def bump(x):
    return fnp.exp(-fnp.sum(x**2))


print(fxflow.make_graph(bump)(fnp.ones(3)))

# %% [markdown]
# Read it line by line: the inputs with their types (`f32[3]` is three 32-bit floats),
# one operation on each line with the type of its result, and finally the results.
#
# Since the placeholders have no values, Python's `if` cannot test them. The error
# explains this, and suggests alternatives.

# %%
try:
    fxflow.jit(lambda x: x if x > 0 else -x)(2.0)
except TypeError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## `grad`
#
# `grad(f)` is a function that computes the derivative of `f`. It is itself an ordinary
# function: it has a graph, and a derivative.

# %%
print(fxflow.make_graph(fxflow.grad(bump))(fnp.ones(3)))

# %%
derivatives = [fnp.tanh]
for _ in range(3):
    derivatives.append(fxflow.grad(derivatives[-1]))

points = fnp.linspace(-4, 4, 201)
for order, function in enumerate(derivatives):
    plt.plot(points, fxflow.vmap(function)(points), label=f"order {order}")
plt.title("tanh and its derivatives")
_ = plt.legend()

# %% [markdown]
# Check: the derivative of tanh is 1 − tanh².

# %%
error = fxflow.vmap(derivatives[1])(points) - (1 - fnp.tanh(points) ** 2)
print(f"largest error: {float(abs(error).max()):.0e}")
assert abs(error).max() < 1e-6

# %% [markdown]
# ## `vmap`
#
# Write the function for one example; `vmap` makes a function for many. Its graph has no
# loop, only operations on larger arrays.


# %%
def distance(a, b):
    return fnp.sqrt(fnp.sum((a - b) ** 2))


a, b = fnp.arange(6.0).reshape(3, 2), fnp.ones((4, 2))
table = fxflow.vmap(fxflow.vmap(distance, (None, 0)), (0, None))(a, b)
print(table.shape)
print(fxflow.make_graph(fxflow.vmap(distance, (0, None)))(a, b[0]))

# %% [markdown]
# ## `jit`
#
# `jit(f)` compiles the graph of `f` once for each combination of shapes and dtypes;
# compiled programs are cached on disk for the next process. The `print` inside shows
# when the function is traced.


# %%
@fxflow.jit
def polynomial(x):
    print("tracing for", x.shape)
    return 1 + x * (2 + x * (3 + x * 4))


for size in (3, 3, 5, 3):
    print(polynomial(fnp.ones(size)))

# %% [markdown]
# The transforms compose in any order. Here is the Hessian of `bump`, compiled:

# %%
hessian = fxflow.jit(fxflow.hessian(bump))(fnp.zeros(3))
print(hessian)
assert np.allclose(hessian, -2 * np.eye(3))

# %% [markdown]
# ## State is explicit
#
# A pure function has no memory, so everything that changes is an argument and a result.
# This includes randomness: a *key* is an argument, and the same key always gives the
# same numbers. For new numbers, split a new key from the old one.

# %%
key = random.key(0)
key, first, second = random.split(key, 3)
print(
    random.normal(first, (2,)), random.normal(first, (2,)), random.normal(second, (2,))
)

# %% [markdown]
# Parameters are a *pytree*: dictionaries, tuples and lists of arrays, nested in any
# way. `fxflow.tree.map` maps a function over all of its arrays, and `grad` returns a
# tree of the same structure.

# %%
# The code that reads MNIST is in fxflow's repository: in a folder above this notebook,
# or where fxflow was installed from.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/mnist.py").exists()]
assert examples, "examples/mnist.py was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.datasets import load_mnist

mnist = load_mnist()
figure, axes = plt.subplots(1, 8, figsize=(9, 1.4))
for axis, image, label in zip(
    axes, mnist.train_images, mnist.train_labels, strict=False
):
    axis.imshow(image, cmap="gray_r")
    axis.set(title=int(label), xticks=[], yticks=[])


# %%
def init(key):
    keys = random.split(key)
    he = nn.initializers.he_normal()
    return {
        "hidden": {"w": he(keys[0], (784, 128)), "b": fnp.zeros(128)},
        "out": {"w": he(keys[1], (128, 10)), "b": fnp.zeros(10)},
    }


def logits(params, images):
    x = images.reshape(-1, 784) / 255
    x = nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return x @ params["out"]["w"] + params["out"]["b"]


def loss(params, images, labels):
    log_probabilities = nn.log_softmax(logits(params, images))
    return -fnp.mean(fnp.sum(nn.one_hot(labels, 10) * log_probabilities, axis=-1))


key, init_key = random.split(key)
params = init(init_key)
fxflow.tree.map(lambda leaf: leaf.shape, params)

# %% [markdown]
# An untrained net guesses: its loss is that of ten equally likely digits, ln 10 ≈ 2.3,
# plus a penalty for confident wrong answers.

# %%
images, labels = mnist.train_images[:128], mnist.train_labels[:128]
print(f"{float(loss(params, images, labels)):.2f}")

# %% [markdown]
# ## The training step
#
# One function takes the state and a batch and returns the next state. Donating the old
# state lets XLA reuse its memory for the new one.

# %%
optimizer = optim.adam(1e-3)


def step(state, images, labels):
    params, memory = state
    value, gradients = fxflow.value_and_grad(loss)(params, images, labels)
    updates, memory = optimizer.update(gradients, memory, params)
    return (optim.apply_updates(params, updates), memory), value


step = fxflow.jit(step, donate_argnums=0)
state = (params, optimizer.init(params))
losses = []
for epoch in range(6):
    order = np.asarray(random.permutation(random.fold_in(key, epoch), 60_000))
    for start in range(0, 60_000 - 127, 128):
        batch = order[start : start + 128]
        state, value = step(state, mnist.train_images[batch], mnist.train_labels[batch])
        losses.append(value)

# %%
losses = np.array([float(value) for value in losses])
smooth = np.convolve(losses, np.full(25, 1 / 25), "valid")
plt.plot(losses, alpha=0.25, linewidth=0.5)
plt.plot(np.arange(len(smooth)) + 12, smooth)
plt.yscale("log")
plt.xlabel("step")
_ = plt.ylabel("training loss")


# %% [markdown]
# The accuracy on the test set, which the net was not trained on:


# %%
@fxflow.jit
def accuracy(params, images, labels):
    return fnp.mean(fnp.argmax(logits(params, images), axis=-1) == labels)


reached = float(accuracy(state[0], mnist.test_images, mnist.test_labels))
print(f"test accuracy: {reached:.1%}")
assert reached > 0.97, reached

# %% [markdown]
# Eight correct predictions and eight mistakes; above each mistake are the prediction
# and the label:

# %%
guesses = np.asarray(fnp.argmax(logits(state[0], mnist.test_images), axis=-1))
right = np.flatnonzero(guesses == mnist.test_labels)[:8]
wrong = np.flatnonzero(guesses != mnist.test_labels)[:8]
figure, axes = plt.subplots(2, 8, figsize=(9, 3))
for axis, place in zip(axes.flat, [*right, *wrong], strict=True):
    guess, label = guesses[place], mnist.test_labels[place]
    axis.imshow(mnist.test_images[place], cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(
        f"{guess}" if guess == label else f"{guess}, not {label}",
        color="black" if guess == label else "crimson",
        fontsize=9,
    )

# %% [markdown]
# ## Next steps
#
# - `examples/mnist.py` trains a convolutional net to 99 %, with the same parts.
# - `examples/mnist_pmap.py` trains on several devices; `docs/guides/multi-host.md`
#   explains how to use several machines.
# - `fxflow.make_graph` shows the graph of any transformed function;
#   `fxflow.jit(f).lower(...)` shows the program that XLA compiles.
