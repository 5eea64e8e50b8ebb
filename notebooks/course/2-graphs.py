# %% [markdown]
# # Lesson 2: from a function to a graph
#
# To compile a function, call it once with placeholders instead of arrays, and write
# down what is done to them. This is *tracing*. In this lesson you build a tracer.

# %%
from checks import check

import fxflow
import fxflow.numpy as fnp
from fxflow import make_graph

# %% [markdown]
# ## A tracer in twenty lines
#
# A placeholder has a name and no value. Each operation on it adds a line to a list, and
# returns a new placeholder.


# %%
class Placeholder:
    def __init__(self, name, lines):
        self.name, self.lines = name, lines

    def record(self, operation, *operands):
        result = Placeholder(f"v{len(self.lines)}", self.lines)
        self.lines.append((result.name, operation, *map(name_of, operands)))
        return result

    def __add__(self, other):
        return self.record("add", self, other)

    def __mul__(self, other):
        return self.record("mul", self, other)


def name_of(operand):
    return operand.name if isinstance(operand, Placeholder) else repr(operand)


def trace(f, *names):
    lines = []
    result = f(*(Placeholder(name, lines) for name in names))
    return lines, name_of(result)


print(trace(lambda x, y: x * x + y * 3.0, "x", "y"))

# %% [markdown]
# fxflow does the same. Its placeholders have a type, and are arrays for Python
# (`isinstance(x, fxflow.Array)`), so that library functions take them:

# %%
print(make_graph(lambda x, y: x * x + y * 3.0)(1.0, 2.0))

# %% [markdown]
# ## Exercise 1: what happens while tracing
#
# Which lines does `trace` record for this function? Python's `for` runs while tracing,
# so the graph has no loop. Return the number of lines for `n`.


# %%
def power(x, n):
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


# exercise 1
def lines_of_power(n):
    return None


check(1, lines_of_power, [(1, 0), (2, 1), (10, 9)])
print(len(trace(lambda x: power(x, 10), "x")[0]))

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def lines_of_power(n):
#     return n - 1
# ```
#
# </details>

# %% [markdown]
# ## Exercise 2: a better power
#
# `n` is known while tracing, so Python may choose what to record. Write a function that
# records at most `2 log2(n)` products: square the result, and multiply once more where
# `n` has a bit. (The check traces your function and counts.)


# %%
# exercise 2
def fast_power(x, n):
    return None


def value_and_lines(n):
    result = fast_power(2.0, n)
    if result is None:
        return None
    lines, _ = trace(lambda x: fast_power(x, n), "x")
    return result, len(lines) <= 2 * n.bit_length()


check(
    2, value_and_lines, [(1, (2.0, True)), (13, (8192.0, True)), (64, (2.0**64, True))]
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def fast_power(x, n):
#     result = x
#     for bit in bin(n)[3:]:
#         result = result * result
#         if bit == "1":
#             result = result * x
#     return result
# ```
#
# </details>

# %% [markdown]
# ## A graph is data
#
# The graph has `inputs`, `nodes` and `outputs`. A node has a `primitive`, whose `name`
# says what it does, `inputs`, `outputs`, and `params`.

# %%
graph = make_graph(lambda x: fnp.sum(fnp.sin(x) * x))(fnp.ones(3)).graph
for node in graph.nodes:
    print(node.primitive.name, node.inputs, node.outputs, node.params)

# %% [markdown]
# ## Exercise 3: what is needed
#
# A compiler drops what no result needs. Go backwards through the lines of `trace`, and
# return the names of the lines that the result needs, in order.


# %%
# exercise 3
def needed(lines, result):
    return None


def wasteful(x, y):
    unused = x * y
    unused = unused + 1.0
    return x * 2.0 + y


check(
    3,
    needed,
    [
        (*trace(wasteful, "x", "y"), ["v2", "v3"]),
        (*trace(lambda x: x, "x"), []),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def needed(lines, result):
#     names, kept = {result}, []
#     for name, operation, *operands in reversed(lines):
#         if name in names:
#             names.update(operands)
#             kept.insert(0, name)
#     return kept
# ```
#
# </details>

# %% [markdown]
# ## What to remember
#
# - Tracing runs the Python code once. `if`, `for` and `print` happen then.
# - A graph is a list of typed operations: data that can be read, changed, compiled.
# - What no result needs is dropped.

# %%
kept = make_graph(lambda x: (fnp.exp(x), x + 1.0)[1])(1.0)
print(kept, len(fxflow.jit(lambda x: (fnp.exp(x), x + 1.0)[1]).lower(1.0).as_text()))
