"""Primitives of JAX that are functions of several operations in fxflow.

A client can import one, key a table of rules by it and bind it with JAX's parameters.
Binding records the operations that it is made of, so no jaxpr has an equation of it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, as_array, dtypes, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError


def stage(x: Any, /) -> Array:
    """Lifts a value into the current trace.

    Args:
      x: array, or what may stand for one.

    Returns:
      A traced array in a function that is being traced, else an array.
    """
    return x if isinstance(x, Tracer) else lax.optimization_barrier(as_array(x))


def ds(start: Any, size: Any = None, stride: int = 1) -> Any:
    """Returns an index for a part of an axis of a reference: `ref[ds(start, size)]`.

    Args:
      start: an int, or a 0-d integer array.
      size: the length, an int.
      stride: the distance of the elements.

    Returns:
      An index for one axis. A start that is an array is moved so that the part is
      inside, as JAX does it outside of kernels; an int has to be right.
    """
    # Kernels are imported when something of them is used.
    pallas = importlib.import_module(f"{__package__}.experimental.pallas")
    item = pallas.ds(start, size, stride)
    return item.replace(clamps=True) if type(item) is pallas.Slice else item


def dce_sink(_: Any) -> None:
    """Keeps a value from being removed, which fxflow does only in compiled programs.

    Args:
      _: has no effect.
    """


def create_token(_: Any = None) -> Array:
    """Returns a token, which orders what takes it.

    fxflow has no infeed or outfeed, which JAX orders by tokens: a token is an array
    without elements, and what depends on it is up to `lax.optimization_barrier`.

    Args:
      _: has no effect.

    Returns:
      bool[0].
    """
    return fnp.zeros(0, bool)


def after_all(*operands: Any) -> Array:
    """Returns a token that depends on other tokens.

    Args:
      *operands: tokens.

    Returns:
      bool[0].

    Raises:
      ArgumentError: an operand is not a token.
    """
    for operand in operands:
        if not dtypes.is_bool(typeof(operand).dtype) or typeof(operand).shape != (0,):
            raise ArgumentError(f"after_all takes tokens, got {typeof(operand)}")
    if not operands:
        return create_token()
    token: Array = lax.optimization_barrier(operands)[0]
    return token


def rng_uniform(a: Any, b: Any, shape: Any) -> Array:
    """Draws numbers that are uniform between two, from hidden state.

    The state is NumPy's, of this process, not XLA's: other numbers in each call.

    Args:
      a: scalar, float or integer: the least.
      b: scalar of the same dtype: numbers are less than it.
      shape: shape of the result.

    Returns:
      Array[*shape] of their dtype.

    Raises:
      TypeError: they are not scalars of one dtype of floats or integers.
    """
    low, high = typeof(a), typeof(b)
    if low.shape or high.shape or low.dtype != high.dtype:
        raise TypeError(
            f"rng_uniform: takes two scalars of one dtype, got {low} and {high}"
        )
    floats = dtypes.is_floating(low.dtype)
    if not floats and not dtypes.is_integer(low.dtype):
        raise TypeError(f"rng_uniform: takes floats or integers, got {low}")
    like = fxflow.ShapeDtypeStruct(tuple(shape), low.dtype)

    def draw(a: Any, b: Any) -> Any:
        generator = np.random.default_rng()
        if floats:
            wide = generator.uniform(float(a), float(b), like.shape)
            return np.asarray(wide, like.dtype)
        return generator.integers(a, b, like.shape, like.dtype)

    out: Array = fxflow.io_callback(draw, like, a, b)
    return out


def shape_as_value(shape: Any) -> Array:
    """Returns a shape as an array.

    Args:
      shape: integers, or sizes of a function that is exported for open sizes.

    Returns:
      int32[n].
    """
    sizes = [fnp.asarray(n).astype(np.int32) for n in shape]
    return fnp.stack(sizes) if sizes else fnp.zeros(0, np.int32)


def _in_total_order(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Makes a comparison one by IEEE's total order: -nan, -inf, …, -0, 0, …, nan."""

    def key(x: Any) -> Any:
        dtype = typeof(x).dtype
        if not dtypes.is_floating(dtype):
            return x
        bits = lax.bitcast_convert_type(x, np.dtype(f"i{dtype.itemsize}"))
        # Negative floats grow with their bits' magnitude downwards.
        return fnp.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)

    return lambda x, y: compare(key(x), key(y))


def _random_seed(seeds: Any, *, impl: Any = None) -> Any:
    make: Callable[[Any], Any] = functools.partial(fxflow.random.key, impl=impl)
    for _ in range(typeof(seeds).ndim):
        make = fxflow.vmap(make)
    return make(seeds)


def _scatter_sub(operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
    # JAX also has the subtraction itself as parameters.
    known = {n: v for n, v in params.items() if not n.startswith("update_")}
    return lax.scatter_sub(operand, indices, updates, **known)


def _linalg(name: str) -> Callable[..., Any]:
    """Returns a function that imports `lax.linalg` when it is called."""
    return lambda *args, **params: getattr(lax.linalg, name)(*args, **params)


functions: dict[str, Callable[..., Any]] = {
    "add_jaxvals": lambda x, y: x + y,
    "after_all": after_all,
    "cholesky_update": _linalg("cholesky_update"),
    "create_token": create_token,
    "eq_to": _in_total_order(lax.eq),
    "le_to": _in_total_order(lax.le),
    "lt_to": _in_total_order(lax.lt),
    "lu_pivots_to_permutation": _linalg("lu_pivots_to_permutation"),
    "mulhi": lambda x, y: lax.mulhi(x, y),
    "random_seed": _random_seed,
    "rng_uniform": lambda a, b, *, shape: rng_uniform(a, b, shape),
    "scatter_sub": _scatter_sub,
    "sharding_constraint": lambda x, *, sharding, **_: lax.with_sharding_constraint(
        x, sharding
    ),
    "squeeze": lambda x, *, dimensions: lax.squeeze(x, dimensions),
    "stack": lambda *operands, axis: lax.stack(operands, axis),
    "stage": stage,
    "symmetric_product": _linalg("symmetric_product"),
    "tile": lambda x, *, reps: lax.tile(x, reps),
    "unstack": lambda x, *, axis: list(lax.unstack(x, axis)),
}
"""By the primitive's name without its ending: what `bind` calls."""
