# %% [markdown]
# # Lesson 6: vectorization
#
# Write a function for one example, and use it for a thousand. `vmap` does not loop: it
# gives each operation a rule for a batch, and the result is a graph of the same length.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fxflow
import fxflow.numpy as fnp

# %% [markdown]
# ## Rules for batches
#
# Convention: a mapped value has its batch axis first. A rule gets the operands and, for
# each, whether it is mapped. Elementwise operations need only line up the axes.


# %%
def batched_add(x, y, x_mapped, y_mapped):
    rank = max(np.ndim(x) - x_mapped, np.ndim(y) - y_mapped)
    return line_up(x, x_mapped, rank) + line_up(y, y_mapped, rank)


# %% [markdown]
# ## Exercise 1: line up the axes
#
# A mapped operand of shape `(batch, 3)` and an unmapped one of shape `(2, 3)` must
# combine to `(batch, 2, 3)`: so the first one needs an axis after the batch. Return `x`
# with axes of length 1 after the batch axis, so that without the batch axis it has
# `rank` axes. An unmapped `x` stays as it is.


# %%
# exercise 1
def line_up(x, mapped, rank):
    return None


check(
    1,
    line_up,
    [
        (np.ones((5, 3)), True, 2, np.ones((5, 1, 3))),
        (np.ones((2, 3)), False, 2, np.ones((2, 3))),
        (np.ones(5), True, 2, np.ones((5, 1, 1))),
        (np.ones((5, 2, 3)), True, 2, np.ones((5, 2, 3))),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def line_up(x, mapped, rank):
#     if not mapped:
#         return x
#     missing = rank - (x.ndim - 1)
#     return x.reshape(x.shape[:1] + (1,) * missing + x.shape[1:])
# ```
#
# </details>

# %% [markdown]
# ## Exercise 2: the rule of a sum
#
# `reduce_sum` sums over `axes`, counted in the example. In the mapped operand each axis
# is one further. Return the sums of all examples.


# %%
# exercise 2
def batched_sum(x, axes):
    return None


some = np.arange(24.0).reshape(2, 3, 4)
check(2, batched_sum, [(some, (0,), some.sum(1)), (some, (0, 1), some.sum((1, 2)))])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def batched_sum(x, axes):
#     return np.sum(x, tuple(axis + 1 for axis in axes))
# ```
#
# </details>

# %% [markdown]
# ## In fxflow
#
# A product of a matrix and a vector becomes one of two matrices, if the vector is
# mapped: the rule of `dot_general` chooses. Compare the graphs.

# %%
matrix, vectors = fnp.ones((4, 3)), fnp.ones((8, 3))
print(fxflow.make_graph(fnp.dot)(matrix, vectors[0]))
print(fxflow.make_graph(fxflow.vmap(fnp.dot, (None, 0)))(matrix, vectors))

# %% [markdown]
# ## Exercise 3: all pairs
#
# `distance` takes two points. Use `fxflow.vmap` twice to return the matrix of the
# distances between all rows of `a` and all rows of `b`.


# %%
def distance(p, q):
    return fnp.sqrt(fnp.sum((p - q) ** 2))


# exercise 3
def distances(a, b):
    return None


a, b = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
expected = np.sqrt(((a[:, None] - b[:4]) ** 2).sum(-1))
check(3, distances, [(a, b[:4], expected)])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def distances(a, b):
#     row = fxflow.vmap(distance, (None, 0))
#     return fxflow.vmap(row, (0, None))(a, b)
# ```
#
# </details>

# %% [markdown]
# ## Branches
#
# In a batch, some rows may take a branch and others not. Then both sides are computed,
# and `select_n` chooses for each row. (The second graph, `guarded`, is that for
# derivatives.)


# %%
def branch(x):
    return fxflow.lax.cond(x > 0, fnp.sin, fnp.cos, x)


print(fxflow.make_graph(fxflow.vmap(branch))(fnp.ones(3)))

# %% [markdown]
# ## The time
#
# A loop in Python against `vmap`, for the norms of many vectors:


# %%
def seconds(function):
    fxflow.block_until_ready(function())
    start = time.perf_counter()
    fxflow.block_until_ready(function())
    return time.perf_counter() - start


norm = fxflow.jit(fnp.linalg.norm)
many = fxflow.jit(fxflow.vmap(fnp.linalg.norm))
counts, loop, batch = [10, 30, 100, 300, 1000], [], []
for count in counts:
    rows = fnp.ones((count, 10))
    parts = list(rows)
    loop.append(seconds(lambda parts=parts: [norm(part) for part in parts]))
    batch.append(seconds(lambda rows=rows: many(rows)))
plt.loglog(counts, loop, "o-", label="loop")
plt.loglog(counts, batch, "o-", label="vmap")
plt.xlabel("vectors")
plt.ylabel("seconds")
_ = plt.legend()

# %% [markdown]
# ## What to remember
#
# - `vmap` changes operations, not the number of them.
# - What is the same for all examples is not copied.
# - It composes: `vmap(grad(loss))` is a gradient for each example.
