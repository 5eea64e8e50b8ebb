# %% [markdown]
# # Lesson 7: passes, programs, caches
#
# A graph is now rewritten, written as text for XLA, compiled, and kept. In this lesson
# you write a pass and a lowering, and decide when to compile again.

# %%
import time

import matplotlib.pyplot as plt
from checks import check

import fxflow
import fxflow.numpy as fnp

# %% [markdown]
# ## Lines of a program
#
# As in lesson 2, a program is a list of lines: a name, an operation, and operands.

# %%
program = [
    ("v0", "mul", "x", "y"),
    ("v1", "mul", "x", "y"),
    ("v2", "add", "v0", "v1"),
    ("v3", "sin", "v2"),
    ("v4", "sin", "v2"),
    ("v5", "add", "v3", "v4"),
]

# %% [markdown]
# ## Exercise 1: the same thing twice
#
# *Common subexpression elimination*: a line with the operation and the operands of an
# earlier line is dropped, and later lines use the earlier name. Return the new list.


# %%
# exercise 1
def without_repetition(lines):
    return None


check(
    1,
    without_repetition,
    [
        (
            program,
            [
                ("v0", "mul", "x", "y"),
                ("v2", "add", "v0", "v0"),
                ("v3", "sin", "v2"),
                ("v5", "add", "v3", "v3"),
            ],
        )
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def without_repetition(lines):
#     first, names, kept = {}, {}, []
#     for name, operation, *operands in lines:
#         operands = [names.get(operand, operand) for operand in operands]
#         names[name] = first.setdefault((operation, *operands), name)
#         if names[name] == name:
#             kept.append((name, operation, *operands))
#     return kept
# ```
#
# </details>

# %% [markdown]
# ## The text that XLA gets
#
# fxflow writes StableHLO, one line for each node:

# %%
print(fxflow.jit(lambda x, y: fnp.sin(x * y)).lower(fnp.ones(3), fnp.ones(3)).as_text())

# %% [markdown]
# ## Exercise 2: a lowering
#
# Return the text of a line of our program, for operands of type `tensor<3xf32>`:
# `("v0", "mul", "x", "y")` becomes
# `%v0 = stablehlo.multiply %x, %y : tensor<3xf32>`.


# %%
WORDS = {"mul": "multiply", "add": "add", "sin": "sine"}


# exercise 2
def lowered(line):
    return None


check(
    2,
    lowered,
    [
        (program[0], "%v0 = stablehlo.multiply %x, %y : tensor<3xf32>"),
        (program[3], "%v3 = stablehlo.sine %v2 : tensor<3xf32>"),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def lowered(line):
#     name, operation, *operands = line
#     listed = ", ".join(f"%{operand}" for operand in operands)
#     return f"%{name} = stablehlo.{WORDS[operation]} {listed} : tensor<3xf32>"
# ```
#
# </details>

# %% [markdown]
# ## What XLA does with it
#
# It fuses: operations that pass over the same elements become one loop, and the arrays
# between them are never written to memory. The optimized program shows fusions:

# %%
compiled = fxflow.jit(lambda x, y: fnp.sum(fnp.sin(x * y) + x)).lower(
    fnp.ones(1000), fnp.ones(1000)
)
text = compiled.compile().as_text()
print([line.strip()[:90] for line in text.splitlines() if "fusion(" in line])

# %% [markdown]
# ## Exercise 3: the key of a cache
#
# A compiled program is kept for the next call. For which calls is it the right one? An
# argument is an array, with `shape` and `dtype`, or a Python number. The *values* of
# arrays do not matter, and neither do those of numbers, only their class. Return the
# key of a call: the shape and dtype of each array, the class of each number.


# %%
# exercise 3
def key(*arguments):
    return None


check(
    3,
    key,
    [
        (fnp.ones(3), fnp.zeros(3), (((3,), fnp.float32(0).dtype),) * 2),
        (2.5, 1, (float, int)),
    ],
)

# %% [markdown]
# <details><summary>A solution</summary>
#
# ```python
# def key(*arguments):
#     return tuple(
#         (x.shape, x.dtype) if hasattr(x, "shape") else type(x) for x in arguments
#     )
# ```
#
# </details>

# %% [markdown]
# ## The time of each stage
#
# The stages of a first call, and a later call, of a chain of 200 operations:


# %%
def chain(x):
    for _ in range(100):
        x = fnp.sin(x) * 1.5
    return x


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    if isinstance(result, fxflow.Array):
        fxflow.block_until_ready(result)
    return result, 1000 * (time.perf_counter() - start)


x = fnp.ones(100)
with fxflow.config.override(cache=False):
    traced, trace_time = timed(fxflow.jit(chain).trace, x)
    lowered_program, lower_time = timed(traced.lower)
    executable, compile_time = timed(lowered_program.compile)
_, run_time = timed(executable, x)
times = {
    "trace": trace_time,
    "lower": lower_time,
    "compile": compile_time,
    "run": run_time,
}
plt.bar(times.keys(), times.values())
plt.yscale("log")
_ = plt.ylabel("ms")

# %% [markdown]
# ## What to remember
#
# - Graphs are rewritten before XLA sees them, and again inside it.
# - Compiling takes longest, so programs are cached: in memory by the types of the
#   arguments, on disk by the text of the program.
# - A new shape is a new program.
