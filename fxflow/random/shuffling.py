"""Random orders and random selections."""

from __future__ import annotations

import math
import operator
from typing import Any, cast

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.sizes import is_symbolic
from fxflow.core.sizes.bounds import most_bits
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ShapeLike
from fxflow.random._arguments import key_data_of, parameter
from fxflow.random._layout import sampler
from fxflow.random.basic import randint
from fxflow.random.inverse import gumbel_of

# Sorting by random 32-bit numbers is biased where two are equal; sorting again makes
# that as unlikely as if the numbers had three times the logarithm of the size in bits.
_EXPONENT = 3


def _rounds(size: int) -> int:
    return math.ceil(_EXPONENT * math.log(max(1, size)) / math.log(2**32 - 1))


def _shuffled(key_data: Any, x: Any, axis: int) -> Any:
    """Sorts by random numbers, several times if there are many elements."""
    aval = typeof(x)
    open_size = is_symbolic((aval.size,))
    most = 1 << most_bits(aval.size) if open_size else aval.size
    for i in range(_rounds(most)):
        key_data, used = sampling.split(key_data, 2)

        def sort(x: Any, used: Any = used) -> Any:
            return lax.sort_key_val(sampling.bits(used, 32, aval.shape), x, axis)[1]

        if open_size and i:
            # Only a call says whether there are enough.
            least = math.floor((2**32 - 1) ** (i / _EXPONENT)) + 1
            x = lax.cond(lax.ge(aval.size, least), sort, lambda x: x, x)
        else:
            x = sort(x)
    return x


def _take(x: Any, index: Any, axis: int) -> Any:
    """Returns the slices of `x` at indices that are in bounds."""
    shape, picked = typeof(x).shape, typeof(index).ndim
    before = range(axis)
    after = range(axis + picked, picked + len(shape) - 1)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(*before, *after),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = tuple(1 if a == axis else n for a, n in enumerate(shape))
    starts = lax.reshape(index, (*typeof(index).shape, 1))
    return lax.gather(x, starts, numbers, sizes, mode="promise_in_bounds")


def _axis(name: str, axis: Any, aval: Aval) -> int:
    number = operator.index(axis)
    if not -aval.ndim <= number < aval.ndim:
        raise AxisError(f"{name}: there is no axis {number} in {aval}")
    return number % aval.ndim


def _count(name: str, what: str, value: Any) -> int | None:
    """Returns an integer given instead of an array, or None for an array."""
    if is_symbolic((value,)):
        return cast(int, value)
    if isinstance(value, int) and not isinstance(value, np.generic):
        return int(value)
    if not is_arraylike(value):
        raise not_an_array(value, f"{name}: {what} is")
    aval = typeof(value)
    if aval.ndim:
        return None
    if not dtypes.is_integer(aval.dtype):
        raise ArgumentError(
            f"{name}: {what} must be an integer or have at least one axis, got {aval}"
        )
    return operator.index(value)


def permutation(
    key: Any,
    x: Any,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws a random order of the slices of an array, or of the first integers.

    Args:
      key: one key.
      x: an array; or an integer n, which stands for 0, 1, …, n - 1.
      axis: the axis along which the order changes.
      independent: whether each vector along `axis` gets an order of its own.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      An array of the type of `x`.

    Raises:
      ArgumentError: `key` is not a key, or `x` is neither an array nor an integer.
      AxisError: an axis is out of range.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> sorted(random.permutation(random.key(0), 5).tolist())
      [0, 1, 2, 3, 4]

    Source: sorting by random 32-bit numbers, twice for at least 1626 elements.
    """
    count = _count("permutation", "x", x)
    if count is not None:
        if count < 0:
            raise ShapeError(f"permutation: x must not be negative, got {count}")
        return _order(key, count, out_sharding=out_sharding)
    axis = _axis("permutation", axis, typeof(x))
    return _permutation(key, x, axis, independent, out_sharding=out_sharding)


@sampler("count")
def _order(key: Any, count: int, *, out_sharding: Any = None) -> Array:
    key_data = key_data_of("permutation", key)
    index = lax.iota(dtypes.default_int(), count)
    drawn: Array = _shuffled(key_data, index, 0)
    return drawn


@sampler("axis", "independent")
def _permutation(
    key: Any, x: Any, axis: int, independent: bool, *, out_sharding: Any = None
) -> Array:
    key_data = key_data_of("permutation", key)
    aval = typeof(x)
    if aval.shape[axis] == 0:
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    # Keys and numbers of less than a byte are moved by their indices.
    plain = not dtypes.is_key(aval.dtype)
    if plain and (independent or aval.ndim == 1):
        drawn: Array = _shuffled(key_data, x, axis)
        return drawn
    if independent:
        raise DtypeError(f"permutation: independent=True takes numbers, got {aval}")
    index = lax.iota(dtypes.default_int(), aval.shape[axis])
    moved: Array = _take(x, _shuffled(key_data, index, 0), axis)
    return moved


def choice(
    key: Any,
    a: Any,
    shape: ShapeLike = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws slices of an array, or of the first integers.

    Args:
      key: one key.
      a: an array; or an integer n, which stands for 0, 1, …, n - 1.
      shape: shape of the array of slices drawn.
      replace: whether a slice may be drawn more than once.
      p: probabilities, of shape `(a.shape[axis],)`; None means that all are alike.
      axis: the axis along which the slices lie.
      mode: without replacement and with `p`, the mode of `gumbel`.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      An array of shape `shape`, which stands in the place of `axis` of `a`.

    Raises:
      ArgumentError: `key` is not a key, or `a` is neither an array nor an integer.
      AxisError: an axis is out of range.
      ShapeError: there is nothing to draw from, `p` has another shape, or more distinct
        slices are asked for than exist.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> random.choice(random.key(0), 5, (3,), replace=False).shape
      (3,)

    Source: uniform integers; a permutation; the inverse distribution function; Gumbel
    noise (Kool, van Hoof, Welling 2019).
    """
    wanted = shape_or_length("choice", shape)
    count = _count("choice", "a", a)
    if count is None:
        aval = typeof(a)
        axis = _axis("choice", axis, aval)
        count = aval.shape[axis]
    else:
        a = None
        _axis("choice", axis, typeof(np.zeros(1, np.int32)))
    drawn = math.prod(wanted)
    if count < 1 and drawn:
        raise ShapeError("choice: there is nothing to draw from: a is empty")
    if not replace and drawn > count:
        raise ShapeError(
            f"choice: {drawn} distinct slices of {count} cannot be drawn: use "
            "replace=True"
        )
    if p is not None:
        if not is_arraylike(p):
            raise not_an_array(p, "choice: p is")
        if typeof(p).shape != (count,):
            raise ShapeError(
                f"choice: p must have one probability for each of {count} slices, got "
                f"{typeof(p)}"
            )
    if replace and p is None and drawn:
        if a is None:
            return randint(key, wanted, 0, count, out_sharding=out_sharding)
        index = randint(key, wanted, 0, count)
        return _picked(a, index, axis, out_sharding=out_sharding)
    return _choice(
        key, a, count, wanted, replace, p, axis, mode, out_sharding=out_sharding
    )


@sampler("axis")
def _picked(a: Any, index: Any, axis: int, *, out_sharding: Any = None) -> Array:
    picked: Array = _take(a, index, axis)
    return picked


@sampler("count", "shape", "replace", "axis", "mode")
def _choice(
    key: Any,
    a: Any,
    count: int,
    shape: Any,
    replace: bool,
    p: Any,
    axis: int,
    mode: Any,
    *,
    out_sharding: Any = None,
) -> Array:
    key_data = key_data_of("choice", key)
    drawn = math.prod(shape)
    default = dtypes.default_int()
    if not drawn:
        index = lax.full(shape, 0, default)
        if a is not None and not count:
            own = typeof(a)
            full = own.shape[:axis] + shape + own.shape[axis + 1 :]
            return lax.full(full, 0, own.dtype)
    elif p is None:
        order = lax.iota(default, count)
        if a is not None and typeof(a).ndim == 1 and not dtypes.is_key(typeof(a).dtype):
            # An array of one axis is shuffled itself.
            order, a = a, None
        index = lax.reshape(
            lax.slice_in_dim(_shuffled(key_data, order, 0), 0, drawn), shape
        )
    else:
        dtype = dtypes.to_inexact(typeof(p).dtype)
        chance = parameter("choice", p, dtype)
        if replace:
            index = _by_probability(key_data, chance, shape, default)
        else:
            noise = gumbel_of(key_data, (count,), dtype, mode, "choice")
            # Gumbel top-k: the largest log p + noise are draws without replacement.
            _, top = lax.top_k(lax.add(noise, lax.log(chance)), drawn)
            index = lax.convert_element_type(lax.reshape(top, shape), default)
    return index if a is None else _take(a, index, axis)


def _by_probability(key_data: Any, p: Any, shape: Any, dtype: Any) -> Any:
    """Returns indices, each with its probability."""
    total = lax.cumsum(p, 0)
    count = typeof(p).shape[0]
    last = lax.index_in_dim(total, count - 1, 0, keepdims=False)
    # In (0, 1]: at 0 a first category of probability 0 would be drawn.
    u = lax.sub(1.0, sampling.uniform(key_data, shape, typeof(p).dtype))
    return _first_not_less(total, lax.mul(u, last), dtype)


def _first_not_less(ordered: Any, x: Any, dtype: Any) -> Any:
    """Returns how many elements of `ordered` are below each `x`, by bisection."""
    count, shape = typeof(ordered).shape[0], typeof(x).shape
    low = lax.full(shape, 0, dtype)
    high = lax.full(shape, count, dtype)
    for _ in range(most_bits(count)):
        middle = lax.div(lax.add(low, high), 2)
        inside = lax.min(middle, count - 1)
        below = lax.lt(_take(ordered, inside, 0), x)
        below = lax.bitwise_and(below, lax.lt(low, high))
        low = lax.select(below, lax.add(middle, 1), low)
        high = lax.select(below, high, middle)
    return lax.min(low, count - 1)
