# %% [markdown]
# # Kernels
#
# A kernel is a function on *blocks* of arrays. A grid of programs runs it, each on its
# own blocks. This notebook writes a softmax, looks at what it computes, differentiates
# it, lets the checker find a mistake, and ends with an attention that never stores the
# array of queries times keys, and whose block lengths are chosen by measuring.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax, nn, random

x = random.normal(random.key(0), (1024, 1024))

# %% [markdown]
# ## One line says how arrays are divided
#
# In the notation, `i:8` is an axis in blocks of eight rows: each of the 128 programs
# gets one block. `v` is a whole axis. The body gets references: it reads `z[...]` and
# writes `o[...]`.


# %%
@kernels.kernel("i:8 v -> i:8 v", out=lambda z: z)
def softmax(z, o):
    rows = z[...]
    e = fnp.exp(rows - fnp.max(rows, 1, keepdims=True))
    o[...] = e / fnp.sum(e, 1, keepdims=True)


print("largest difference:", float(fnp.max(fnp.abs(softmax(x) - nn.softmax(x)))))
print(kernels.explain(softmax, x))

# %% [markdown]
# ## Derivatives and batches
#
# A kernel is a function like any other. The gradient is a kernel too: its programs read
# their blocks again, so nothing is stored between the forward and the backward pass.
# `vmap` adds an axis to the grid.


# %%
def entropy(z):
    p = softmax(z)
    return -fnp.sum(p * fnp.log(p))


def plain_entropy(z):
    p = nn.softmax(z)
    return -fnp.sum(p * fnp.log(p))


slope, plain_slope = fxflow.grad(entropy)(x), fxflow.grad(plain_entropy)(x)
print("gradients differ by", float(fnp.max(fnp.abs(slope - plain_slope))))
print("batched:", fxflow.vmap(softmax)(fnp.stack([x, 2 * x])).shape)

# %% [markdown]
# ## Finding a mistake
#
# 21 rows are two blocks of eight and a block of five. Past the end of the array, the
# last block reads zeros. A maximum over *rows* sees these zeros, and is wrong where all
# numbers are negative. The checker compares a kernel with `reference=`.


# %%
def tops(z):
    return kernels.like(z, shape=z.shape[1:])


def whole_max(z):
    return fnp.max(z, 0)


@kernels.kernel("i:8 v -> v", out=tops, in_order="i", reference=whole_max)
def column_max(z, o):
    @kernels.when(kernels.program_id(0) == 0)
    def _():
        o[...] = fnp.full(o.shape, -fnp.inf)

    o[...] = fnp.maximum(o[...], fnp.max(z[...], 0))


negative = -1 - fnp.abs(x[:21, :4])
try:
    kernels.check(column_max, negative)
except fxflow.errors.KernelError as error:
    print(error)


# %%
@kernels.kernel("i:8 v -> v", out=tops, in_order="i", reference=whole_max)
def column_max(z, o, *, rows):
    i = kernels.program_id(0)

    @kernels.when(i == 0)
    def _():
        o[...] = fnp.full(o.shape, -fnp.inf)

    inside = i * 8 + fnp.arange(8) < rows
    block = fnp.where(inside[:, None], z[...], -fnp.inf)
    o[...] = fnp.maximum(o[...], fnp.max(block, 0))


kernels.check(lambda z: column_max(z, rows=z.shape[0]), negative)

# %% [markdown]
# ## An attention without the array of scores
#
# Each program has some of the queries and processes the keys in parts. It keeps the
# maximum and the sum of the softmax so far, and rescales when the maximum grows.
# `reference=` is the plain formula: `check` compares the kernel with it, and it runs in
# place of a kernel that cannot be compiled.


# %%
def attention(q, k, v):
    scores = fnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    return fnp.einsum("hqk,hkd->hqd", nn.softmax(scores), v)


NOTATION = "h:1 q:rows d, h:1 k d, h:1 k d -> h:1 q:rows d"


@kernels.kernel(NOTATION, out=lambda q, k, v: q, reference=attention)
def flash(q, k, v, o, *, rows=kernels.tune(16, 32, 64), keys=kernels.tune(32, 128)):
    x = q[0] * q.shape[-1] ** -0.5

    def step(j, carry):
        top, total, acc = carry
        at = kernels.ds(j * keys, keys)
        inside = j * keys + fnp.arange(keys) < k.shape[1]
        s = fnp.where(inside, kernels.dot(x, k[0, at].T), -fnp.inf)
        new = fnp.maximum(top, s.max(1))
        p, scale = fnp.exp(s - new[:, None]), fnp.exp(top - new)
        acc = acc * scale[:, None] + kernels.dot(p, v[0, at])
        return new, total * scale + p.sum(1), acc

    rows_of = fnp.zeros(x.shape[0])
    start = rows_of - fnp.inf, rows_of, fnp.zeros(x.shape)
    rounds = kernels.cdiv(k.shape[1], keys)
    _, total, acc = lax.fori_loop(0, rounds, step, start)
    o[0] = acc / total[:, None]


q, k, v = random.normal(random.key(1), (3, 4, 500, 64))
print("differs by", float(fnp.max(fnp.abs(flash(q, k, v) - attention(q, k, v)))))

# %% [markdown]
# `kernels.tune` names candidates, `kernels.tuned` measures them on this machine and
# keeps the choice for these types on disk. Until `tuned` has run, the first candidate
# is used, so that a program gives the same numbers everywhere.

# %%
kernels.tuned(flash, q, k, v)


# %%
def milliseconds(function, *arguments):
    jitted = fxflow.jit(function)
    fxflow.block_until_ready(jitted(*arguments))
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        fxflow.block_until_ready(jitted(*arguments))
        times.append(1e3 * (time.perf_counter() - begin))
    return np.min(times)


lengths = [250, 500, 1000]
found = {"plain": [], "kernel": []}
for length in lengths:
    heads = random.normal(random.key(2), (3, 4, length, 64))
    kernels.tuned(flash, *heads)
    found["plain"].append(milliseconds(attention, *heads))
    found["kernel"].append(milliseconds(flash, *heads))
figure, axes = plt.subplots(figsize=(6, 3))
for name, times in found.items():
    axes.plot(lengths, times, "o-", label=name)
axes.set(xlabel="queries and keys", ylabel="ms", title="attention, 4 heads of 64")
axes.legend()
plt.show()
