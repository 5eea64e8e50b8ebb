# %% [markdown]
# # Lesson 8: loops, and many devices
#
# Two ways to make a program larger than its text: repeat it in time, with `scan`, and
# in space, on several devices.

# %%
import os

os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "4")

import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fxflow
import fxflow.numpy as fnp
from fxflow import Mesh, NamedSharding, P, lax

# %% [markdown]
# ## A loop is an operation
#
# `lax.scan(step, start, xs)` is one node, whose parameter is the graph of the step.

# %%
print(
    fxflow.make_graph(
        lambda xs: lax.scan(lambda c, x: (0.5 * c + x, c), 0.0, xs),
    )(fnp.ones(5))
)

# %% [markdown]
# ## Exercise 1: what `scan` means
#
# Write it in Python. `step` takes the carry and an element of `xs`, and returns the
# next carry and an output. Return the last carry, and the list of outputs.


# %%
# exercise 1
def scan(step, carry, xs):
    return None


check(
    1,
    scan,
    [
        (lambda c, x: (c + x, c), 0, [1, 2, 3], (6, [0, 1, 3])),
        (lambda c, x: (x, c * x), 5, [2, 4], (4, [10, 8])),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def scan(step, carry, xs):
#     outputs = []
#     for x in xs:
#         carry, output = step(carry, x)
#         outputs.append(output)
#     return carry, outputs
# ```
#
# </details>

# %% [markdown]
# ## The derivative of a loop
#
# ... is two loops. The first also stacks the residuals of each step; the second goes
# through the stack in reverse. See both:

# %%
print(
    fxflow.make_graph(
        fxflow.grad(lambda x: lax.scan(lambda c, _: (c * x, None), 1.0, length=3)[0])
    )(2.0)
)

# %% [markdown]
# ## Arrays on several devices
#
# A CPU can count as several devices, so programs for many are tried on a laptop. An
# array is divided along a *mesh* of devices; the program stays the same, and XLA's
# partitioner adds the communication.

# %%
mesh = Mesh(fxflow.devices()[:4], ("i",))
x = fxflow.device_put(fnp.arange(16.0).reshape(8, 2), NamedSharding(mesh, P("i")))
for shard in x.addressable_shards:
    print(shard.device, shard.data.tolist())
print("mean", fxflow.jit(fnp.mean)(x))

# %% [markdown]
# ## Exercise 2: the shape of a part
#
# An array has a shape, and a spec names for each axis the axis of the mesh that divides
# it, or None. Given the sizes of the mesh's axes as a dictionary, return the shape of
# the part on each device.


# %%
# exercise 2
def part(shape, spec, sizes):
    return None


check(
    2,
    part,
    [
        ((8, 2), ("i", None), {"i": 4}, (2, 2)),
        ((8, 6), ("i", "j"), {"i": 4, "j": 2}, (2, 3)),
        ((8, 6), (None, None), {"i": 4}, (8, 6)),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def part(shape, spec, sizes):
#     return tuple(
#         length // sizes[axis] if axis else length
#         for length, axis in zip(shape, spec)
#     )
# ```
#
# </details>

# %% [markdown]
# ## Collectives
#
# In `shard_map` a function sees the part of its device, and says what is exchanged:
# `psum` gives all devices the sum of their values.

# %%
whole = fxflow.shard_map(
    lambda part: lax.psum(fnp.sum(part), "i"), mesh=mesh, in_specs=P("i"), out_specs=P()
)
print(whole(x), x.sum())

# %% [markdown]
# ## Exercise 3: an all-reduce on a ring
#
# Each device can send to its right neighbour only. After `n - 1` rounds, in which each
# device passes on what it got last and adds it to its own sum, all devices have the
# sum. Return a list of lists: the sums of the devices after each round. (The first
# round sends the devices' own values.)


# %%
# exercise 3
def ring(values):
    return None


check(
    3,
    ring,
    [
        ([1, 2], [[3, 3]]),
        ([1, 2, 3], [[4, 3, 5], [6, 6, 6]]),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def ring(values):
#     sent, sums, rounds = list(values), list(values), []
#     for _ in range(len(values) - 1):
#         sent = sent[-1:] + sent[:-1]
#         sums = [a + b for a, b in zip(sums, sent)]
#         rounds.append(list(sums))
#     return rounds
# ```
#
# </details>

# %% [markdown]
# ## What it costs
#
# This ring sends whole arrays `n - 1` times. If each device sends only a part of its
# array in each round, first to add and then to spread, it sends `2 (n - 1) / n` arrays,
# which does not grow with the number of devices:

# %%
n = np.arange(2, 33)
plt.plot(n, n - 1, label="whole arrays")
plt.plot(n, 2 * (n - 1) / n, label="in parts")
plt.xlabel("devices")
plt.ylabel("arrays sent by each device")
_ = plt.legend()

# %% [markdown]
# ## The end of the course
#
# You have built a tracer, an evaluator, forward and reverse derivatives, batching, a
# pass, a lowering, loops and a ring. The [tour](../../docs/tour.md) shows where each is
# in fxflow; begin with the files that it names.
