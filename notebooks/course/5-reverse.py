# %% [markdown]
# # Lesson 5: reverse derivatives
#
# A tangent says how a value changes if an input does. A *cotangent* says how the result
# changes if a value does. Cotangents go backwards, from the result to all inputs, in
# one pass.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fxflow
import fxflow.numpy as fnp

# %% [markdown]
# ## A tape
#
# Going forward, each operation writes to a tape: its operands, and a function that
# turns the cotangent of its result into those of its operands.


# %%
class Value:
    def __init__(self, number, tape):
        self.number, self.tape = number, tape

    def record(self, number, operands, pull):
        result = Value(number, self.tape)
        self.tape.append((result, operands, pull))
        return result

    def __add__(self, other):
        return self.record(self.number + other.number, (self, other), lambda c: (c, c))

    def __mul__(self, other):
        x, y = self.number, other.number
        return self.record(x * y, (self, other), lambda c: pull_product(x, y, c))


def sin(x):
    number = x.number
    return x.record(np.sin(number), (x,), lambda c: (c * np.cos(number),))


# %% [markdown]
# ## Exercise 1: the rule of the product, backwards
#
# The result is `x * y`, and its cotangent is `c`. Return the cotangents of `x` and `y`.


# %%
# exercise 1
def pull_product(x, y, c):
    return None


check(1, pull_product, [(3.0, 2.0, 1.0, (2.0, 3.0)), (3.0, 2.0, 10.0, (20.0, 30.0))])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def pull_product(x, y, c):
#     return c * y, c * x
# ```
#
# </details>

# %% [markdown]
# ## Exercise 2: back along the tape
#
# Go through the tape backwards. A value that several operations use gets a cotangent
# from each of them: add them. Return the cotangents of the inputs, 0.0 for one that is
# not used. The cotangent of the result is 1. (Values are keys of a dictionary.)


# %%
# exercise 2
def backward(tape, result, inputs):
    return None


def gradient(f, *numbers):
    tape = []
    inputs = [Value(number, tape) for number in numbers]
    result = f(*inputs)
    return backward(tape, result, inputs)


def wave(x, y):
    return x * sin(x * y) + y


slopes = fxflow.grad(lambda x, y: x * fnp.sin(x * y) + y, (0, 1))(1.5, 0.7)
check(
    2,
    gradient,
    [
        (lambda x, y: x + x, 1.0, 2.0, [2.0, 0.0]),
        (
            lambda x: sin(sin(x)),
            1.0,
            [float(fxflow.grad(lambda x: fnp.sin(fnp.sin(x)))(1.0))],
        ),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def backward(tape, result, inputs):
#     cotangents = {result: 1.0}
#     for value, operands, pull in reversed(tape):
#         if value in cotangents:
#             for operand, c in zip(operands, pull(cotangents[value])):
#                 cotangents[operand] = cotangents.get(operand, 0.0) + c
#     return [cotangents.get(value, 0.0) for value in inputs]
# ```
#
# </details>

# %% [markdown]
# With both exercises solved, this is the gradient of `wave`, and fxflow's:

# %%
if pull_product(1.0, 1.0, 1.0):
    print(gradient(wave, 1.5, 0.7))
print(slopes)

# %% [markdown]
# ## In fxflow
#
# `vjp` returns the value and the function that goes back. The graph shows what was
# kept on the way forward, the *residuals*: here the cosine.

# %%
value, pull = fxflow.vjp(lambda x: fnp.sum(fnp.sin(x)), fnp.arange(3.0))
print(value, pull(1.0))
print(fxflow.make_graph(fxflow.grad(lambda x: fnp.sum(fnp.sin(x))))(fnp.arange(3.0)))

# %% [markdown]
# ## Exercise 3: which way?
#
# A function has `n` inputs and `m` results. Forward passes give one column of the
# Jacobian each, reverse passes one row each. Return the smaller number of passes, and
# `"forward"` or `"reverse"` (if equal, `"forward"`, which keeps no residuals).


# %%
# exercise 3
def cheapest(n, m):
    return None


check(
    3,
    cheapest,
    [
        (1_000_000, 1, (1, "reverse")),
        (1, 300, (1, "forward")),
        (5, 5, (5, "forward")),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def cheapest(n, m):
#     return (n, "forward") if n <= m else (m, "reverse")
# ```
#
# </details>

# %% [markdown]
# ## The price is memory
#
# A chain of operations keeps a residual for each. `checkpoint` keeps only its argument,
# and computes the rest again on the way back.


# %%
def chain(x, times):
    for _ in range(times):
        x = fnp.sin(x)
    return fnp.sum(x)


def kept(f, times):
    graph = fxflow.make_graph(lambda x: fxflow.vjp(lambda x: f(x, times), x)[1])
    residuals = graph(fnp.ones(1000)).graph.outputs
    return sum(atom.aval.nbytes for atom in residuals if not hasattr(atom, "value"))


lengths = list(range(1, 12))
again = fxflow.checkpoint(chain, static_argnums=1)
plt.plot(lengths, [kept(chain, n) for n in lengths], "o-", label="plain")
plt.plot(lengths, [kept(again, n) for n in lengths], "o-", label="checkpoint")
plt.xlabel("operations")
plt.ylabel("bytes kept")
_ = plt.legend()

# %% [markdown]
# ## What to remember
#
# - One reverse pass gives the gradient for all inputs.
# - It needs values of the forward pass, so memory grows with the length.
# - fxflow makes the reverse pass from the forward rules: the tangents are linear, and a
#   linear function can be *transposed*.
