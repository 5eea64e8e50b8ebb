"""Arithmetic on pytrees of arrays, and access to parts of optimizer states.

Functions of two trees require the same structure. `get` and `set` find a part of a
state by the name of its field, at any depth:

    rate = optim.tree.get(state, "learning_rate")
    state = optim.tree.set(state, learning_rate=rate / 2)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core import tree as pytrees
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import ArrayLike, DTypeLike
from fxflow.numpy.elementary import flat_at_zero
from fxflow.optim.numerics import in_wide, is_double, rest_of, widened
from fxflow.optim.states import NamedTupleKey, get, get_all_with_path, map_params, set

Tree = Any

# fmt: off
__all__ = [
    "NamedTupleKey", "add", "add_scale", "allclose", "batch_shape", "bias_correction",
    "cast", "cast_like", "clip", "conj", "div", "dtype", "full_like", "get",
    "get_all_with_path", "map_params", "max", "min", "mul", "norm", "ones_like",
    "random_like", "real", "scale", "set", "size", "split_key_like", "sub", "sum",
    "unwrap_random_key_data", "update_infinity_moment", "update_moment",
    "update_moment_per_elem_norm", "vdot", "where", "zeros_like",
]
# fmt: on

_docs = shared("""
    Args:
      tree: pytree of arrays.
      tree_x: pytree of arrays.
      tree_y: pytree of the same structure.
      dtype: dtype of the result; None means those of the arrays.

    Returns:
      A pytree of the same structure.
""")


def _like(x: Any, other: Any) -> Any:
    dtype = typeof(other).dtype
    return x if typeof(x).dtype == dtype else fnp.astype(x, dtype)


# -- arithmetic ------------------------------------------------------------------------


@_docs
def add(tree_x: Tree, tree_y: Tree, *other_trees: Tree) -> Tree:
    """Returns the sums of corresponding arrays.

    Args:
      *other_trees: more summands.

    Raises:
      TreeError: the structures differ.

    Example:
      >>> float(optim.tree.add({"a": 1.0}, {"a": 2.0}, {"a": 3.0})["a"])
      6.0
    """

    def total(x: Any, *others: Any) -> Any:
        for other in others:
            x = fnp.add(x, other)
        return x

    return pytrees.map(total, tree_x, tree_y, *other_trees)


@_docs
def sub(tree_x: Tree, tree_y: Tree) -> Tree:
    """Returns the differences of corresponding arrays.

    Example:
      >>> float(optim.tree.sub({"a": 1.0}, {"a": 3.0})["a"])
      -2.0
    """
    return pytrees.map(fnp.subtract, tree_x, tree_y)


@_docs
def mul(tree_x: Tree, tree_y: Tree) -> Tree:
    """Returns the products of corresponding arrays.

    Example:
      >>> float(optim.tree.mul({"a": 2.0}, {"a": 3.0})["a"])
      6.0
    """
    return pytrees.map(fnp.multiply, tree_x, tree_y)


@_docs
def div(tree_x: Tree, tree_y: Tree) -> Tree:
    """Returns the quotients of corresponding arrays.

    Example:
      >>> float(optim.tree.div({"a": 1.0}, {"a": 2.0})["a"])
      0.5
    """
    return pytrees.map(fnp.divide, tree_x, tree_y)


@_docs
def scale(scalar: ArrayLike, tree: Tree) -> Tree:
    """Returns arrays times a number.

    Args:
      scalar: the number.

    Example:
      >>> float(optim.tree.scale(2.0, {"a": 3.0})["a"])
      6.0
    """
    return pytrees.map(lambda x: fnp.multiply(scalar, x), tree)


@_docs
def add_scale(tree_x: Tree, scalar: ArrayLike, tree_y: Tree) -> Tree:
    """Returns `tree_x + scalar * tree_y`, in the dtypes of `tree_x`.

    Args:
      scalar: the number.

    Example:
      >>> float(optim.tree.add_scale({"a": 1.0}, 2.0, {"a": 3.0})["a"])
      7.0
    """

    def one(x: Any, y: Any) -> Any:
        return _like(fnp.add(x, fnp.multiply(scalar, y)), x)

    return pytrees.map(one, tree_x, tree_y)


@_docs
def where(condition: ArrayLike, tree_x: Tree, tree_y: Tree) -> Tree:
    """Returns elements of one tree or of the other.

    Args:
      condition: bool array that broadcasts against each array.

    Example:
      >>> float(optim.tree.where(False, {"a": 1.0}, {"a": 2.0})["a"])
      2.0
    """
    return pytrees.map(lambda x, y: fnp.where(condition, x, y), tree_x, tree_y)


@_docs
def clip(
    tree: Tree,
    min_value: ArrayLike | None = None,
    max_value: ArrayLike | None = None,
) -> Tree:
    """Returns arrays with their elements clipped to two bounds.

    Args:
      min_value: the lower bound; None means no bound.
      max_value: the upper bound; None means no bound.

    Example:
      >>> optim.tree.clip({"a": fnp.array([1.0, 5.0])}, max_value=2.0)["a"].tolist()
      [1.0, 2.0]
    """
    return pytrees.map(lambda x: fnp.clip(x, min_value, max_value), tree)


@_docs
def conj(tree: Tree) -> Tree:
    """Returns complex conjugates.

    Example:
      >>> complex(optim.tree.conj([1 + 2j])[0])
      (1-2j)
    """
    return pytrees.map(fnp.conj, tree)


@_docs
def real(tree: Tree) -> Tree:
    """Returns real parts.

    Example:
      >>> float(optim.tree.real([1 + 2j])[0])
      1.0
    """
    return pytrees.map(fnp.real, tree)


# -- reductions ------------------------------------------------------------------------


def _folded(values: list[Any], fold: Callable[[Any, Any], Any], empty: Any) -> Any:
    if not values:
        return empty
    total = values[0]
    for value in values[1:]:
        total = fold(total, value)
    return total


def sum(tree: Tree, associative_reduction: bool = False) -> Any:
    """Returns the sum of all elements.

    Args:
      tree: pytree of arrays.
      associative_reduction: whether to add the arrays' sums in pairs, which is more
        accurate for many arrays.

    Returns:
      A 0-d array; 0 for an empty tree. Sums of 16-bit floats are float32.

    Example:
      >>> float(optim.tree.sum({"a": fnp.ones(3), "b": 2.0}))
      5.0
    """
    sums = [fnp.sum(widened(x)) for x in pytrees.leaves(tree)]
    while associative_reduction and len(sums) > 1:
        pairs = [fnp.add(x, y) for x, y in zip(sums[::2], sums[1::2])]
        sums = pairs + (sums[-1:] if len(sums) % 2 else [])
    return _folded(sums, fnp.add, 0)


def max(tree: Tree) -> Any:
    """Returns the largest element.

    Args:
      tree: pytree of arrays.

    Returns:
      A 0-d array; -inf for an empty tree. Empty arrays are ignored.

    Example:
      >>> float(optim.tree.max({"a": fnp.ones(3), "b": 2.0}))
      2.0
    """
    some = [fnp.max(x) for x in pytrees.leaves(tree) if typeof(x).size]
    return _folded(some, fnp.maximum, -math.inf)


def min(tree: Tree) -> Any:
    """Returns the smallest element.

    Args:
      tree: pytree of arrays.

    Returns:
      A 0-d array; inf for an empty tree. Empty arrays are ignored.

    Example:
      >>> float(optim.tree.min({"a": fnp.ones(3), "b": 2.0}))
      1.0
    """
    some = [fnp.min(x) for x in pytrees.leaves(tree) if typeof(x).size]
    return _folded(some, fnp.minimum, math.inf)


def vdot(tree_x: Tree, tree_y: Tree) -> Any:
    r"""Returns the inner product of two trees: :math:`\sum \bar x y`.

    Args:
      tree_x: pytree of arrays.
      tree_y: pytree of the same structure.

    Returns:
      A 0-d array; 0 for empty trees. Products of 16-bit floats are float32.

    Example:
      >>> float(optim.tree.vdot({"a": fnp.ones(3)}, {"a": fnp.full(3, 2.0)}))
      6.0
    """
    products = pytrees.map(
        lambda x, y: fnp.vdot(widened(x), widened(y), precision="highest"),
        tree_x,
        tree_y,
    )
    return _folded(pytrees.leaves(products), fnp.add, 0)


def norm(
    tree: Tree, ord: int | str | float | None = None, squared: bool = False
) -> Array:
    r"""Returns a norm of all elements together.

    Args:
      tree: pytree of arrays.
      ord: 1, 2 (also None) or infinity (also `"inf"`).
      squared: whether to return its square.

    Returns:
      A 0-d float array; 0 for an empty tree. Norms of 16-bit floats are float32: in
      float16 the square of 300 overflows.

    Raises:
      ArgumentError: `ord` is unknown.

    Special cases:
      The derivative of the 2-norm at 0 is 0.

    Example:
      >>> float(optim.tree.norm({"a": fnp.array([3.0]), "b": 4.0}))
      5.0
    """
    leaves = [widened(x) for x in pytrees.leaves(tree)]
    if ord is None or ord == 2:
        squares = [fnp.sum(fnp.square(fnp.abs(x))) for x in leaves]
        total = _folded(squares, fnp.add, None)
        if total is None:
            return fnp.zeros(())
        return total if squared else flat_at_zero(fnp.sqrt, total)
    if ord == 1:
        size = _folded([fnp.sum(fnp.abs(x)) for x in leaves], fnp.add, fnp.zeros(()))
    elif ord in (math.inf, "inf"):
        some = [fnp.max(fnp.abs(x)) for x in leaves if typeof(x).size]
        size = _folded(some, fnp.maximum, fnp.zeros(()))
    else:
        raise ArgumentError(f"norm: ord must be 1, 2 or inf, got {ord!r}")
    return fnp.square(size) if squared else size


def size(tree: Tree) -> int:
    """Returns the number of elements of all arrays.

    Args:
      tree: pytree of arrays.

    Returns:
      An int.

    Example:
      >>> optim.tree.size({"a": fnp.ones((2, 3)), "b": 1.0})
      7
    """
    count = 0
    for x in pytrees.leaves(tree):
        count += typeof(x).size
    return count


def allclose(
    a: Tree,
    b: Tree,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Any:
    """Returns whether all arrays are equal up to a tolerance.

    Args:
      a: pytree of arrays.
      b: pytree of the same structure.
      rtol: relative tolerance.
      atol: absolute tolerance.
      equal_nan: whether nan is equal to nan.

    Returns:
      bool[]; True for empty trees.

    Example:
      >>> bool(optim.tree.allclose({"a": 1.0}, {"a": 1.0 + 1e-7}))
      True
    """
    close = pytrees.map(lambda x, y: fnp.allclose(x, y, rtol, atol, equal_nan), a, b)
    return _folded(pytrees.leaves(close), fnp.logical_and, True)


def dtype(tree: Tree, mixed_dtype_handler: str | None = None) -> Any:
    """Returns the dtype of all arrays.

    Args:
      tree: pytree of arrays.
      mixed_dtype_handler: what to return if they have several: `"promote"` for the
        dtype that all promote to, `"lowest"` for the one that promotes to all others,
        `"highest"` for the one that all others promote to; None raises an error.

    Returns:
      A dtype; float32 for an empty tree.

    Raises:
      DtypeError: the arrays have several dtypes.
      ArgumentError: `mixed_dtype_handler` is unknown.

    Example:
      >>> optim.tree.dtype({"a": fnp.ones(2), "b": fnp.ones(2)})
      dtype('float32')
    """
    if mixed_dtype_handler not in (None, "promote", "lowest", "highest"):
        raise ArgumentError(
            'dtype: mixed_dtype_handler must be "promote", "lowest", "highest" or '
            f"None, got {mixed_dtype_handler!r}"
        )
    found = list(dict.fromkeys(typeof(x).dtype for x in pytrees.leaves(tree)))
    if not found:
        return dtypes.float32
    if len(found) == 1:
        return found[0]
    if mixed_dtype_handler is None:
        names = ", ".join(str(own) for own in found)
        raise DtypeError(
            f"dtype: the arrays have several dtypes, {names}: pass mixed_dtype_handler"
        )
    common = fnp.result_type(*found)
    if mixed_dtype_handler == "promote":
        return common
    if mixed_dtype_handler == "highest":
        chosen = [own for own in found if own == common]
    else:
        chosen = [
            own
            for own in found
            if not any(
                fnp.result_type(own, other) == own for other in found if other != own
            )
        ]
    if len(chosen) != 1:
        raise DtypeError(
            f"dtype: none of {', '.join(map(str, found))} is the {mixed_dtype_handler}"
        )
    return chosen[0]


# -- trees with the types of another ---------------------------------------------------


@_docs
def full_like(
    tree: Tree, fill_value: ArrayLike, dtype: DTypeLike | None = None
) -> Tree:
    """Returns arrays of the same types, filled with a number.

    They have the same shardings: the state of an optimizer is divided like the
    parameters.

    Args:
      fill_value: the number.

    Example:
      >>> optim.tree.full_like({"a": fnp.zeros(2)}, 3)["a"].tolist()
      [3.0, 3.0]
    """

    def full(x: Any) -> Any:
        own = typeof(x).dtype if dtype is None else dtype
        return fnp.full_like(x, fill_value, own)

    return pytrees.map(full, tree)


@_docs
def zeros_like(tree: Tree, dtype: DTypeLike | None = None) -> Tree:
    """Returns zeros of the same types.

    Example:
      >>> optim.tree.zeros_like({"a": fnp.ones(2)})["a"].tolist()
      [0.0, 0.0]
    """
    return full_like(tree, 0, dtype)


@_docs
def ones_like(tree: Tree, dtype: DTypeLike | None = None) -> Tree:
    """Returns ones of the same types.

    Example:
      >>> optim.tree.ones_like({"a": fnp.zeros(2)})["a"].tolist()
      [1.0, 1.0]
    """
    return full_like(tree, 1, dtype)


@_docs
def cast(tree: Tree, dtype: DTypeLike | None) -> Tree:
    """Returns arrays in another dtype.

    Example:
      >>> optim.tree.cast({"a": fnp.ones(2)}, "bfloat16")["a"].dtype.name
      'bfloat16'
    """
    if dtype is None:
        return tree
    chosen = dtypes.dtype(dtype)
    return pytrees.map(lambda x: fnp.astype(x, chosen), tree)


@_docs
def cast_like(tree: Tree, other_tree: Tree) -> Tree:
    """Returns arrays in the dtypes of others.

    Args:
      other_tree: pytree of the same structure.

    Example:
      >>> optim.tree.cast_like([1], [2.0])[0].dtype.name
      'float32'
    """
    return pytrees.map(_like, tree, other_tree)


@_docs
def batch_shape(tree: Tree, shape: tuple[int, ...] = ()) -> Tree:
    """Returns arrays repeated along new leading axes.

    Args:
      shape: lengths of the new axes.

    Example:
      >>> optim.tree.batch_shape({"a": fnp.ones(2)}, (3,))["a"].shape
      (3, 2)
    """
    return pytrees.map(lambda x: fnp.broadcast_to(x, (*shape, *typeof(x).shape)), tree)


def split_key_like(rng_key: Array, target_tree: Tree) -> Tree:
    """Returns a random key for each leaf of a tree.

    Args:
      rng_key: a random key.
      target_tree: pytree.

    Returns:
      A pytree of keys of the same structure.

    Example:
      >>> keys = optim.tree.split_key_like(random.key(0), {"a": 1.0, "b": 2.0})
      >>> sorted(keys)
      ['a', 'b']
    """
    leaves, treedef = pytrees.flatten(target_tree)
    keys: Any = random.split(rng_key, len(leaves)) if leaves else []
    return treedef.unflatten([keys[i] for i in range(len(leaves))])


def random_like(
    rng_key: Array,
    target_tree: Tree,
    sampler: Callable[..., Array] = random.normal,
    dtype: DTypeLike | None = None,
) -> Tree:
    """Returns random arrays of the same types.

    Args:
      rng_key: a random key.
      target_tree: pytree of arrays.
      sampler: `sampler(key, shape, dtype)`.
      dtype: dtype of the result; None means those of the arrays.

    Returns:
      A pytree of the same structure.

    Example:
      >>> optim.tree.random_like(random.key(0), {"a": fnp.ones(2)})["a"].shape
      (2,)
    """

    def one(key: Any, x: Any) -> Any:
        aval = typeof(x)
        return sampler(key, aval.shape, aval.dtype if dtype is None else dtype)

    return pytrees.map(one, split_key_like(rng_key, target_tree), target_tree)


def unwrap_random_key_data(input_tree: Tree) -> Tree:
    """Returns a tree with the bits of random keys in place of the keys.

    Args:
      input_tree: pytree of arrays, some of them keys.

    Returns:
      A pytree of the same structure.

    Example:
      >>> optim.tree.unwrap_random_key_data([random.key(7), 1.0])[0].tolist()
      [0, 7]
    """

    def one(x: Any) -> Any:
        return random.key_data(x) if typeof(x).dtype in dtypes.KEYS else x

    return pytrees.map(one, input_tree)


# -- moments ---------------------------------------------------------------------------

_moment_docs = shared("""
    Args:
      updates: pytree of gradients g.
      moments: pytree of the moments m so far.
      moment: pytree of moments that were 0 initially.
      decay: β.
      order: k.
      eps: ε.
      count: number of updates so far: int32[].

    Returns:
      A pytree of the same structure; moments of 16 bits are computed in float32.
""")


def power_sum(x: Any, decay: Any, moment: Any, order: int) -> Any:
    """Returns a moving average of powers: `decay * moment + (1 - decay) * |x|**order`.

    Args:
      x: array.
      decay: number.
      moment: the mean so far.
      order: exponent of the power; 1 keeps signs.

    Returns:
      The next mean.
    """
    if order == 1:
        term = x
    elif order == 2 and dtypes.is_complex(typeof(x).dtype):
        # Not abs, which would take a root only to square it.
        term = fnp.add(fnp.square(fnp.real(x)), fnp.square(fnp.imag(x)))
    elif order == 2:
        term = fnp.square(x)
    else:
        term = fnp.power(fnp.abs(x), order)
    return fnp.add(
        fnp.multiply(rest_of(decay, term), term), fnp.multiply(decay, moment)
    )


@_moment_docs
def update_moment(updates: Tree, moments: Tree, decay: ArrayLike, order: int) -> Tree:
    r"""Returns moving averages of powers: :math:`(1-\beta) |g|^k + \beta m`.

    Args:
      order: k; for 1, g itself.

    Example:
      >>> float(optim.tree.update_moment({"a": 4.0}, {"a": 2.0}, 0.5, 1)["a"])
      3.0
    """

    def mean(g: Any, m: Any) -> Any:
        return in_wide(lambda g, m: power_sum(g, decay, m, order), g, m)

    return pytrees.map(mean, updates, moments)


@_moment_docs
def update_moment_per_elem_norm(
    updates: Tree, moments: Tree, decay: ArrayLike, order: int
) -> Tree:
    r"""Returns `update_moment` of absolute values: :math:`(1-\beta)|g|^k + \beta m`.

    Example:
      >>> m = optim.tree.update_moment_per_elem_norm({"a": 4.0}, {"a": 2.0}, 0.5, 2)
      >>> float(m["a"])
      9.0
    """
    return update_moment(updates, moments, decay, order)


@_moment_docs
def update_infinity_moment(
    updates: Tree, moments: Tree, decay: ArrayLike, eps: ArrayLike
) -> Tree:
    r"""Returns decaying maxima: :math:`\max(|g| + \epsilon, \beta m)`.

    Example:
      >>> m = optim.tree.update_infinity_moment({"a": -1.0}, {"a": 4.0}, 0.5, 0.0)
      >>> float(m["a"])
      2.0
    """

    def largest(g: Any, m: Any) -> Any:
        return fnp.maximum(fnp.add(fnp.abs(g), eps), fnp.multiply(decay, m))

    return pytrees.map(lambda g, m: in_wide(largest, g, m), updates, moments)


def weight_held(decay: Any, count: Any, dtype: DTypeLike = float) -> Any:
    """Returns the sum of the weights of a moving average: `1 - decay**t`.

    Args:
      decay: number.
      count: t, the number of updates so far.
      dtype: dtype of the result.

    Returns:
      A number.
    """
    return fnp.subtract(1.0, fnp.power(decay, fnp.astype(count, dtype)))


@_moment_docs
def bias_correction(moment: Tree, decay: ArrayLike, count: ArrayLike) -> Tree:
    r"""Returns bias-corrected moving averages: divided by :math:`1 - \beta^t`.

    Example:
      >>> float(optim.tree.bias_correction({"a": 0.5}, 0.5, 1)["a"])
      1.0
    """
    weight = functools.cache(functools.partial(weight_held, decay, count))

    def one(m: Any) -> Any:
        real = fnp.real(m) if dtypes.is_complex(typeof(m).dtype) else m
        held = weight(dtypes.float64) if is_double(m) else weight()
        return fnp.divide(m, _like(held, real))

    return pytrees.map(lambda m: in_wide(one, m), moment)


_public(globals(), [name for name in __all__ if name != "NamedTupleKey"])
