# %% [markdown]
# # Lesson 1: arrays and their types
#
# *How an array compiler works*, a course of eight lessons. Each has exercises: write
# the missing lines, run the cell, and `check` says whether the answer is right. Below
# each is a solution, folded up. The lessons follow the chapters of the
# [tour](../../docs/tour.md).
#
# A compiler does not work on numbers but on what it knows before there are any: the
# *types* of arrays. This lesson is about types.

# %%
from checks import check

import fxflow
import fxflow.numpy as fnp

# %% [markdown]
# ## What a type is
#
# A type is a shape, a dtype, and whether it is *weak*. It is what a compiled program
# depends on: for another type, the program is another one.

# %%
x = fnp.ones((3, 4))
print(fxflow.typeof(x), fxflow.typeof(2.0), fxflow.typeof(fnp.arange(5)))

# %% [markdown]
# ## Exercise 1: the size of an array
#
# How many bytes does an array of a type take? A type has `shape` and `dtype`; a dtype
# has `itemsize`.


# %%
# exercise 1
def size_in_bytes(type):
    return None


check(
    1,
    size_in_bytes,
    [
        (fxflow.typeof(fnp.ones((3, 4))), 48),
        (fxflow.typeof(fnp.ones((), "float64")), 8),
        (fxflow.typeof(fnp.zeros((5, 0, 2))), 0),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def size_in_bytes(type):
#     size = type.dtype.itemsize
#     for length in type.shape:
#         size *= length
#     return size
# ```
#
# </details>

# %% [markdown]
# ## Types follow from types
#
# The type of a result follows from the types of the operands. `eval_shape` computes it
# without computing the result: here, of a product that would need 4 TB.

# %%
big = fxflow.ShapeDtypeStruct((1_000_000, 10), "float32")
print(fxflow.eval_shape(lambda a: a @ a.T, big))

# %% [markdown]
# ## Exercise 2: broadcasting
#
# The shapes of two operands are compared from the last axis. Two lengths fit if they
# are equal or one of them is 1; a missing axis counts as 1. Return the shape of the
# result, or `"error"` if the shapes do not fit.


# %%
# exercise 2
def broadcast(a, b):
    return None


check(
    2,
    broadcast,
    [
        ((3, 1), (1, 4), (3, 4)),
        ((4,), (2, 3, 4), (2, 3, 4)),
        ((), (2,), (2,)),
        ((3,), (4,), "error"),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def broadcast(a, b):
#     rank = max(len(a), len(b))
#     a = (1,) * (rank - len(a)) + a
#     b = (1,) * (rank - len(b)) + b
#     if any(m != n and 1 not in (m, n) for m, n in zip(a, b)):
#         return "error"
#     return tuple(n if m == 1 else m for m, n in zip(a, b))
# ```
#
# </details>

# %% [markdown]
# ## Weak types
#
# Python's numbers have weak types, shown by `~`: they take the dtype of the other
# operand, so `2.5 * x` of `bfloat16` remains `bfloat16`. An array of dtype `float32`
# would not.

# %%
half = fnp.ones(3, "bfloat16")
print((2.5 * half).dtype, (fnp.float32(2.5) * half).dtype)

# %% [markdown]
# ## Exercise 3: is the result weak?
#
# Two operands, each with a *kind* (`"int"` or `"float"`, in this order of rank) and a
# flag that says whether it is weak. If both are weak, the result is weak and has the
# higher kind. If both are strong, it is strong and has the higher kind. If one is weak,
# the result has the higher kind too, and is weak only if the weak operand has the
# higher kind. (A weak float with a strong integer: no strong operand says how many bits
# the float should have.)


# %%
# exercise 3
def promote(kind_a, weak_a, kind_b, weak_b):
    return None


check(
    3,
    promote,
    [
        ("int", False, "float", False, ("float", False)),
        ("int", True, "float", False, ("float", False)),
        ("int", False, "float", True, ("float", True)),
        ("float", True, "float", False, ("float", False)),
        ("int", True, "float", True, ("float", True)),
    ],
)
print(fxflow.typeof(fnp.arange(3) * 2.5))

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def promote(kind_a, weak_a, kind_b, weak_b):
#     if kind_a == kind_b:
#         return kind_a, weak_a and weak_b
#     return "float", weak_a if kind_a == "float" else weak_b
# ```
#
# </details>

# %% [markdown]
# ## What to remember
#
# - A compiler knows types, not values.
# - The type of a result follows from the types of the operands.
# - A type is interned: equal types are one object, so comparing them is one comparison
#   of pointers.

# %%
assert fxflow.typeof(fnp.ones(3)) is fxflow.typeof(fnp.zeros(3))
