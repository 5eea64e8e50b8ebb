# %% [markdown]
# # Lesson 3: interpreters
#
# A graph can be *interpreted*: go through its nodes, and do something for each. What is
# done may be to compute, to count, to check, to differentiate. All transformations of
# fxflow are interpreters.

# %%
import numpy as np
from checks import check

import fxflow.numpy as fnp
from fxflow import make_graph

# %% [markdown]
# ## An evaluator
#
# A table says what each operation means. Operands are variables or literals, which have
# a `value`.

# %%
MEANING = {
    "sin": lambda x: np.sin(x),
    "mul": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "reduce_sum": lambda x, axes: np.sum(x, axes),
}


def evaluate(graph, *arguments):
    values = dict(zip(graph.inputs, arguments, strict=True))

    def read(atom):
        return atom.value if hasattr(atom, "value") else values[atom]

    for node in graph.nodes:
        operands = map(read, node.inputs)
        result = MEANING[node.primitive.name](*operands, **node.params)
        values[node.outputs[0]] = result
    return [read(atom) for atom in graph.outputs]


x = np.array([1.0, 2.0, 3.0], np.float32)
graph = make_graph(lambda x: fnp.sum(fnp.sin(x) * x) + 1.0)(x).graph
print(evaluate(graph, x), fnp.sum(fnp.sin(x) * x) + 1.0)

# %% [markdown]
# ## Exercise 1: another operation
#
# The function below also uses `tanh` and `broadcast_in_dim`. Print the graph, look at
# the parameters of `broadcast_in_dim`, and write its meaning: the operand's axis `i`
# becomes the result's axis `broadcast_dimensions[i]`, and the result has the shape
# `shape`. Reshape the operand to the right number of axes first.

# %%
spread = make_graph(lambda x: fnp.tanh(x)[:, None] * fnp.ones((3, 2)) * x[:, None])(x)
print(spread)


# %%
# exercise 1
def broadcast_in_dim(x, shape, broadcast_dimensions):
    return None


check(
    1,
    broadcast_in_dim,
    [
        (x, (3, 2), (0,), np.stack([x, x], 1)),
        (x, (2, 3), (1,), np.stack([x, x], 0)),
        (np.float32(2.0), (2, 2), (), np.full((2, 2), 2.0)),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def broadcast_in_dim(x, shape, broadcast_dimensions):
#     lengths = [1] * len(shape)
#     for axis, length in zip(broadcast_dimensions, np.shape(x)):
#         lengths[axis] = length
#     return np.broadcast_to(np.reshape(x, lengths), shape)
# ```
#
# </details>

# %% [markdown]
# ## Exercise 2: an interpreter that counts
#
# Another interpreter does not compute, but counts multiplications and additions. An
# elementwise operation costs one for each element of its result; `reduce_sum` one for
# each element of its operand. A variable has a type: `atom.aval.size`.


# %%
# exercise 2
def cost(graph):
    return None


long = make_graph(lambda x: fnp.sum(x * x + 1.0))(fnp.ones((10, 10))).graph
check(2, cost, [(graph, 3 + 3 + 3 + 1), (long, 300)])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def cost(graph):
#     total = 0
#     for node in graph.nodes:
#         reduced = node.primitive.name == "reduce_sum"
#         total += (node.inputs if reduced else node.outputs)[0].aval.size
#     return total
# ```
#
# </details>

# %% [markdown]
# ## Exercise 3: how much memory
#
# A value is needed from the node that makes it to the last node that reads it. Return
# the largest number of bytes that are alive while a node runs: its operands, its
# result, and every earlier value that a later node or the output reads. Inputs of the
# graph count while they are needed; literals do not count. (`aval.nbytes`)


# %%
# exercise 3
def peak(graph):
    return None


chain = make_graph(lambda x: fnp.sin(fnp.sin(fnp.sin(x))))(fnp.ones(100)).graph
both = make_graph(lambda x: fnp.sin(fnp.sin(fnp.sin(x))) * x)(fnp.ones(100)).graph
check(3, peak, [(chain, 800), (both, 1200)])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def peak(graph):
#     last = {}
#     for number, node in enumerate(graph.nodes):
#         for atom in node.inputs:
#             if not hasattr(atom, "value"):
#                 last[atom] = number
#     for atom in graph.outputs:
#         last[atom] = len(graph.nodes)
#     alive, largest = set(graph.inputs), 0
#     for number, node in enumerate(graph.nodes):
#         alive = {atom for atom in alive if last.get(atom, -1) >= number}
#         alive.update(node.outputs)
#         largest = max(largest, sum(atom.aval.nbytes for atom in alive))
#     return largest
# ```
#
# </details>

# %% [markdown]
# ## What to remember
#
# - One graph, many interpreters: values, costs, memory, derivatives.
# - An operation is described once, in a table of rules. In fxflow the rules of an
#   operation are methods of its class.
# - XLA plans memory like this; `jit(f).lower(x).compile().memory_analysis()` shows it.
