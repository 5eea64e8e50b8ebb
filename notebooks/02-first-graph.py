# %% [markdown]
# # A first graph
#
# fxflow converts Python functions to dataflow graphs: nodes are operations, edges are
# arrays. This notebook makes a first graph, draws and runs it, adds state, branches and
# loops, and differentiates it. It takes ten minutes to read.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import debug, lax, random, viz

# %% [markdown]
# ## Constants and a product
#
# Two constants, a row and a column, and their product. Outside any transformation, each
# operation runs at once.

# %%
m1 = fnp.array([[6.2, 12.0, 5.9]])
m2 = fnp.array([[9.3], [1.7], [8.8]])
print(m1 @ m2)


# %% [markdown]
# To make a graph, `make_graph` calls a function once with placeholders, which have a
# type but no values, and records each operation. Nothing is computed.


# %%
def product(m1, m2):
    return m1 @ m2


graph = fxflow.make_graph(product)(m1, m2)
graph

# %% [markdown]
# You can call a graph. `jit` compiles the function's graph with XLA first, so that
# later calls are faster.

# %%
print(graph(m1, m2), fxflow.jit(product)(m1, m2))

# %% [markdown]
# `viz.graph` draws it. In a live notebook, the drawing is interactive: drag to move,
# scroll to zoom, click on an operation to see its parameters, cost and line.

# %%
viz.graph(product, m1, m2)

# %% [markdown]
# ## Feeds and fetches
#
# A graph is *fed* with the arguments of its function, and its results are *fetched*.
# There may be several of both. One run computes all results; values that no result
# needs are not in the graph.


# %%
def several(m1, m2):
    m3 = m1 @ m2
    fnp.linalg.norm(m1)  # never fetched, so never computed
    return {"m3": m3, "twice": m3 + m3}


print(fxflow.make_graph(several)(m1, m2))
results = fxflow.jit(several)(m1, m2)
print(results)

# %% [markdown]
# Feed it other numbers as often as you like. It is compiled once for each combination
# of argument types, here `f32[1,3]` and `f32[3,1]`.

# %%
fast = fxflow.jit(several)
for scale in (1, 10, 100):
    print(scale, float(fast(scale * m1, m2)["m3"][0, 0]))

# %% [markdown]
# `debug.print` shows a value inside a graph while it runs:


# %%
@fxflow.jit
def watched(x):
    y = x @ m2
    debug.print("inside: {}", y)
    return y + 1


_ = watched(m1).block_until_ready()

# %% [markdown]
# ## Variables are arguments and results
#
# A graph has no memory. A variable is an argument and a result, and the caller stores
# it. Random initial values are drawn from a key.


# %%
@fxflow.jit
def count(state):
    return state + 1


state = fnp.zeros((), int)
for _ in range(3):
    state = count(state)
print(state)

weights = random.truncated_normal(random.key(0), -2, 2, (2, 3))
print(weights)

# %% [markdown]
# If a mutable variable makes the code easier to read, use a reference:

# %%
total = fxflow.new_ref(fnp.zeros(()))


@fxflow.jit
def accumulate(x):
    total[...] += x


for x in (1.0, 2.0, 3.5):
    accumulate(x)
print(total[...])

# %% [markdown]
# ## Control flow
#
# Python's `if` and `for` run while the graph is made. For a branch or a loop *in* the
# graph, call `lax.cond`, `lax.scan` or `lax.while_loop`. This function computes square
# roots by ten steps of Newton's method:


# %%
def root(x):
    def newton(guess, _):
        with fxflow.named_scope("newton"):
            better = 0.5 * (guess + x / guess)
        return better, better

    def of_positive(x):
        return lax.scan(newton, x, length=10)

    def of_others(x):
        return fnp.zeros_like(x), fnp.zeros(10)

    return lax.cond(x > 0, of_positive, of_others, x)


value, steps = fxflow.jit(root)(fnp.float32(129.98))
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(np.arange(1, 11), np.abs(np.asarray(steps) - np.sqrt(129.98)), "o-")
axis.set(yscale="symlog", xlabel="step", ylabel="error")
axis.set_yscale("symlog", linthresh=1e-5)
print(value)

# %% [markdown]
# In the drawing of `root`, branches, loops and named scopes can be folded. Click on
# *cond*.

# %%
viz.graph(root, fnp.float32(2.0))

# %% [markdown]
# ## Graphs of graphs
#
# A transform returns another function, which has another graph. The derivative of the
# root is 1/(2√x); that of the product with respect to `m1` is `m2`.

# %%
slope = fxflow.grad(lambda x: root(x)[0])(fnp.float32(129.98))
print(float(slope), 0.5 / np.sqrt(129.98))
print(fxflow.make_graph(fxflow.grad(lambda m1: (m1 @ m2)[0, 0]))(m1))

# %% [markdown]
# To save a drawing, call `viz.graph(f, *args).save("graph.html")`; other formats are
# `.svg`, `.dot` (Graphviz) and `.mmd` (Mermaid, which Markdown can include):

# %%
print(viz.graph(product, m1, m2).mermaid())

# %% [markdown]
# The result of the product, and a check of the derivative:

# %%
answer = float(fxflow.jit(product)(m1, m2)[0, 0])
print(f"{answer:.2f}")
assert abs(answer - 129.98) < 1e-4
assert abs(float(slope) - 0.5 / np.sqrt(129.98)) < 1e-6
