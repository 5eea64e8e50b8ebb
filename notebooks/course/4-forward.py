# %% [markdown]
# # Lesson 4: forward derivatives
#
# A derivative is not found by differences, nor by algebra on formulas. Each operation
# knows its own derivative, and the chain rule connects them. Going forward, each value
# carries its *tangent*: how fast it changes.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fxflow
import fxflow.numpy as fnp

# %% [markdown]
# ## A value and its tangent
#
# For a sum, tangents are added. For a sine, the tangent is multiplied by the cosine.


# %%
class Dual:
    def __init__(self, value, tangent):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        other = lift(other)
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        other = lift(other)
        value, tangent = product(self.value, self.tangent, other.value, other.tangent)
        return Dual(value, tangent)

    __radd__, __rmul__ = __add__, __mul__


def lift(x):
    """A number does not change."""
    return x if isinstance(x, Dual) else Dual(x, 0.0)


def sin(x):
    return Dual(np.sin(x.value), np.cos(x.value) * x.tangent)


# %% [markdown]
# ## Exercise 1: the rule of the product
#
# Given the values and tangents of two factors, return the value and the tangent of the
# product.


# %%
# exercise 1
def product(x, dx, y, dy):
    return None


check(1, product, [(3.0, 1.0, 2.0, 0.0, (6.0, 2.0)), (3.0, 1.0, 3.0, 1.0, (9.0, 6.0))])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def product(x, dx, y, dy):
#     return x * y, dx * y + x * dy
# ```
#
# </details>

# %% [markdown]
# ## Exercise 2: a derivative
#
# Use `Dual` to return the derivative of a function of one number. It must work for the
# function below, which is made of sums, products and sines. (While exercise 1 is not
# solved, there is no derivative.)


# %%
def wave(x):
    return x * sin(x * x + 1.0)


# exercise 2
def derivative(f, x):
    return None


slope = float(fxflow.grad(lambda x: x * fnp.sin(x * x + 1.0))(1.5))
check(2, derivative, [(wave, 1.5, slope), (lambda x: 3.0 * x, 2.0, 3.0)])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def derivative(f, x):
#     return f(Dual(x, 1.0)).tangent
# ```
#
# </details>

# %% [markdown]
# ## In fxflow
#
# `jvp` does this for arrays. The graph shows values and tangents side by side; the
# tangents are a linear function of the tangent that came in.

# %%
print(
    fxflow.make_graph(lambda x, t: fxflow.jvp(fnp.sin, (x,), (t,)))(1.0, 1.0),
)

# %% [markdown]
# ## Exercise 3: a Jacobian by columns
#
# `jvp(f, (x,), (t,))` returns the value and the Jacobian times `t`. Which `t` gives a
# column? Return the whole Jacobian of `f` at `x`, a matrix with a row for each result.


# %%
# exercise 3
def jacobian(f, x):
    return None


def polar(p):
    return fnp.stack([p[0] * fnp.cos(p[1]), p[0] * fnp.sin(p[1])])


point = fnp.array([2.0, 0.5])
check(3, jacobian, [(polar, point, fxflow.jacfwd(polar)(point))])

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def jacobian(f, x):
#     columns = [fxflow.jvp(f, (x,), (t,))[1] for t in fnp.eye(len(x))]
#     return fnp.stack(columns, axis=1)
# ```
#
# </details>

# %% [markdown]
# ## Why not by differences
#
# The error of a difference quotient: too large a step is wrong by the curvature, too
# small a step by rounding. The derivative by rules has no step.

# %%
steps = 10.0 ** np.arange(-7, 0)
sines = [fnp.sin(1.0 + h) - fnp.sin(1.0) for h in steps]
errors = [abs(float(s) / h - np.cos(1.0)) for s, h in zip(sines, steps, strict=True)]
plt.loglog(steps, errors, "o-", label="differences")
exact = abs(float(fxflow.grad(fnp.sin)(1.0)) - np.cos(1.0))
plt.axhline(max(exact, 1e-9), linestyle=":", color="black", label="by rules")
plt.xlabel("step")
plt.ylabel("error, in 32 bits")
_ = plt.legend()

# %% [markdown]
# ## What to remember
#
# - Each operation has a rule: the tangent of its result from the tangents of its
#   operands.
# - One pass costs about as much as the function, and gives one column of the Jacobian.
# - For a loss of a million parameters, that is a million passes. The next lesson needs
#   one.
