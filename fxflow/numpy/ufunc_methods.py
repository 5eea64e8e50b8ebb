"""`reduce`, `accumulate`, `outer`, `at` and `reduceat` of ufuncs.

Sums, products, extremes and the like have primitives of their own; any other function
of two arguments is applied in a loop along the axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.boundary import boundary
from fxflow.core.ir.arith import repeated
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy._operands import ArrayLike, Axes, DTypeLike, array_of, convert, no_out
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.comparisons import truth
from fxflow.numpy.creation import asarray, astype_array
from fxflow.numpy.index_update import At
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import reshape
from fxflow.numpy.ufuncs import ufunc
from fxflow.transforms.inspection import eval_shape

_REDUCE: dict[str, Callable[..., Array]] = {
    "add": lax.reduce_sum,
    "multiply": lax.reduce_prod,
    "maximum": lax.reduce_max,
    "minimum": lax.reduce_min,
    "logical_and": lax.reduce_and,
    "logical_or": lax.reduce_or,
    "logical_xor": lax.reduce_xor,
    "bitwise_and": lax.reduce_and,
    "bitwise_or": lax.reduce_or,
    "bitwise_xor": lax.reduce_xor,
}
#: Their names in `lax`, which imports them when first used.
_ACCUMULATE = {
    "add": "cumsum",
    "multiply": "cumprod",
    "maximum": "cummax",
    "minimum": "cummin",
}
_AT = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "maximum": "max",
    "minimum": "min",
}


def _of_two(self: ufunc[Any], method: str) -> None:
    if self.nin != 2 or self.nout != 1:
        raise ArgumentError(
            f"{self.__name__}.{method}: only functions of two arguments with one "
            "result "
            f"have it; this one has {self.nin} and {self.nout}"
        )


def _operand(self: ufunc[Any], a: Any, dtype: Any) -> Array:
    """Returns what is reduced; sums of small integers are of the default integer."""
    x = array_of(asarray(a) if isinstance(a, list | tuple) else a, self.__name__)
    if dtype is not None:
        return astype_array(x, dtypes.dtype(dtype))
    if self.__name__.startswith("logical"):
        return truth(self.__name__, x)
    if self.__name__ in ("add", "multiply"):
        kind = x.aval.dtype
        if dtypes.is_bool(kind):
            return convert(x, dtypes.default_int())
        default = (
            dtypes.default_uint() if dtypes.is_unsigned(kind) else dtypes.default_int()
        )
        if dtypes.is_integer(kind) and dtypes.bits(kind) < dtypes.bits(default):
            return convert(x, default)
    elif self.__name__ not in _REDUCE:
        # What comes out is what goes in at the next step.
        kind = eval_shape(self.function, x, x).dtype
        return convert(x, kind, x.aval.weak_type)
    return x


def reduce(
    self: ufunc[Any],
    a: ArrayLike,
    axis: Axes = 0,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Applies the function between all elements along axes.

    Args:
      self: function of two arguments.
      a: array-like.
      axis: int, tuple of ints, or None for all.
      dtype: dtype of the computation (default: that of `a`; sums and products of bools
        and small integers are of the default integer).
      out: not supported; arrays never change.
      keepdims: whether the axes stay, with length 1.
      initial: what to start with (default: the identity, or the first element).
      where: bools that broadcast to `a`: elements to leave out are False.

    Returns:
      Array without those axes.

    Raises:
      ArgumentError: the function does not have two arguments, or there is nothing to
        start with.
      AxisError: an axis is out of range.

    Source: `numpy.ufunc.reduce`.
    """
    _of_two(self, "reduce")
    no_out(f"{self.__name__}.reduce", out)
    x = _operand(self, a, dtype)
    axes = canonical_axes(f"{self.__name__}.reduce", axis, x.aval.ndim)
    shape = x.aval.shape
    start = initial
    if start is None and self.identity is not None:
        start = self.identity
    count = int(np.prod([shape[d] for d in axes]))
    mask = None if where is None else truth(self.__name__, array_of(where, "where"))
    extreme = self.__name__ in ("maximum", "minimum")
    if start is None and (mask is not None or not count):
        raise ArgumentError(
            f"{self.__name__}.reduce: has no identity, so it needs `initial` for "
            f"{'a mask' if count else f'the empty axes of {x.aval}'}"
        )
    known = _REDUCE.get(self.__name__)
    if known is not None and not (extreme and not count):
        if mask is not None:
            # Extremes have no identity; for them any start does, as often as it comes.
            neutral = start if self.identity is None else self.identity
            fill = convert(array_of(neutral, self.__name__), x.aval.dtype)
            x = choose_between(mask, x, fill)
        result = known(x, axes)
        if initial is not None:
            begin = convert(array_of(initial, self.__name__), result.aval.dtype)
            result = self.function(begin, result)
    else:
        result = _folded(self, x, axes, start, mask)
    if keepdims:
        kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
        result = lax.reshape(result, kept)
    return result


def _in_front(x: Any, axes: tuple[int, ...]) -> Any:
    """Returns the array with some axes joined into one, in front."""
    shape = x.aval.shape
    rest = tuple(d for d in range(len(shape)) if d not in axes)
    x = lax.transpose(x, (*axes, *rest))
    count = int(np.prod([shape[d] for d in axes]))
    return lax.reshape(x, (count, *(shape[d] for d in rest)))


def _folded(
    self: ufunc[Any], x: Array, axes: tuple[int, ...], start: Any, mask: Any
) -> Array:
    if not axes:
        return x
    if mask is not None:
        mask = _in_front(repeated(mask, x.aval.shape), axes)
    rows = _in_front(x, axes)
    shape = rows.aval.shape[1:]
    if start is None:
        # Without an identity the first row is the start.
        carry = lax.index_in_dim(rows, 0, 0, keepdims=False)
        rows = lax.slice_in_dim(rows, 1, rows.aval.shape[0])
    else:
        begin = array_of(start, self.__name__)
        carry = repeated(convert(begin, x.aval.dtype), shape)

    def step(total: Any, item: Any) -> Any:
        row, keep = item
        new = convert(self.function(total, row), total.aval.dtype, total.aval.weak_type)
        return (new if keep is None else choose_between(keep, new, total)), None

    total: Array = lax.scan(step, carry, (rows, mask))[0]
    return total


def accumulate(
    self: ufunc[Any],
    a: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Applies the function between all elements along an axis, keeping what comes out.

    Args:
      self: function of two arguments.
      a: array-like.
      axis: the axis.
      dtype: dtype of the computation, see `reduce`.
      out: not supported; arrays never change.

    Returns:
      Array of the shape of `a`.

    Raises:
      ArgumentError: the function does not have two arguments.
      AxisError: an axis is out of range.

    Source: `numpy.ufunc.accumulate`.
    """
    _of_two(self, "accumulate")
    no_out(f"{self.__name__}.accumulate", out)
    x = _operand(self, a, dtype)
    axis = canonical_axis(f"{self.__name__}.accumulate", axis, x.aval.ndim)
    known = _ACCUMULATE.get(self.__name__)
    if known is not None:
        scan: Callable[..., Array] = getattr(lax, known)
        return scan(x, axis)
    if not x.aval.size:
        return x
    rows = moveaxis(x, axis, 0)
    first = lax.index_in_dim(rows, 0, 0, keepdims=False)

    def step(total: Any, row: Any) -> Any:
        new = convert(self.function(total, row), total.aval.dtype, total.aval.weak_type)
        return new, new

    rest = lax.scan(step, first, lax.slice_in_dim(rows, 1, rows.shape[0]))[1]
    joined = lax.concatenate([lax.reshape(first, (1, *first.aval.shape)), rest], 0)
    return moveaxis(joined, 0, axis)


def outer(self: ufunc[Any], A: ArrayLike, B: ArrayLike, /) -> Array:
    """Applies the function to all pairs of elements.

    Args:
      self: function of two arguments.
      A: array-like.
      B: array-like.

    Returns:
      Array of shape `A.shape + B.shape`.

    Raises:
      ArgumentError: the function does not have two arguments.

    Source: `numpy.ufunc.outer`.
    """
    if self.nin != 2:
        raise ArgumentError(f"{self.__name__}.outer: takes functions of two arguments")
    x, y = array_of(A, self.__name__), array_of(B, self.__name__)
    x = reshape(x, x.shape + (1,) * y.ndim)
    pairs: Array = self(x, y)
    return pairs


def at(
    self: ufunc[Any],
    a: ArrayLike,
    indices: Any,
    b: Any = None,
    /,
    *,
    inplace: bool = True,
) -> Array:
    """Returns an array with the function applied at indices, which may repeat.

    Args:
      self: function of one argument or two.
      a: array-like.
      indices: see indexing.
      b: the second argument: array-like that broadcasts to the shape of `a[indices]`.
      inplace: must be False, as arrays never change.

    Returns:
      Array of the type of `a`.

    Raises:
      ArgumentError: `inplace` is not False, or the number of arguments is wrong.

    Source: `numpy.ufunc.at`.
    """
    if inplace:
        raise ArgumentError(
            f"{self.__name__}.at: arrays never change: pass inplace=False, and use the "
            "result"
        )
    if self.nin != (1 if b is None else 2):
        raise ArgumentError(
            f"{self.__name__}.at: takes {self.nin - 1} second arguments"
        )
    x = array_of(a, self.__name__)
    if self.__name__ in _AT:
        changed: Array = getattr(At(x)[indices], _AT[self.__name__])(b)
        return changed
    # One index after another: so an index that repeats is changed each time.
    numbers = as_array(np.arange(x.size, dtype=np.int32).reshape(x.shape))
    positions = numbers[indices]
    count = positions.size
    flat = reshape(x, (x.size,))
    others = None
    if b is not None:
        others = reshape(
            repeated(array_of(b, self.__name__), positions.shape), (count,)
        )

    def step(now: Any, item: Any) -> Any:
        position, other = item
        old = now[position]
        new = self.function(old) if other is None else self.function(old, other)
        return At(now)[position].set(new), None

    done = lax.scan(step, flat, (reshape(positions, (count,)), others))[0]
    return reshape(done, x.shape)


def reduceat(
    self: ufunc[Any],
    a: ArrayLike,
    indices: Any,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Applies the function between the elements of pieces along an axis.

    Piece `i` runs from `indices[i]` to `indices[i + 1]` (the last one to the end);
    where that does not come later, it is the one element at `indices[i]`.

    Args:
      self: function of two arguments.
      a: array-like.
      indices: integers.
      axis: the axis.
      dtype: dtype of the computation, see `reduce`.
      out: not supported; arrays never change.

    Returns:
      Array with `len(indices)` elements along the axis.

    Raises:
      ArgumentError: the function does not have two arguments.
      AxisError: an axis is out of range.

    Source: `numpy.ufunc.reduceat`.
    """
    _of_two(self, "reduceat")
    no_out(f"{self.__name__}.reduceat", out)
    x = _operand(self, a, dtype)
    axis = canonical_axis(f"{self.__name__}.reduceat", axis, x.aval.ndim)
    starts = convert(asarray(indices), dtypes.int32)
    rows = moveaxis(x, axis, 0)
    length, count = rows.shape[0], starts.size
    stops = lax.concatenate([starts[1:], lax.full((1,), length, dtypes.int32)], 0)
    # As in NumPy: where an index is not below the next one, the piece is that element.
    stops = lax.max(stops, lax.add(starts, 1))
    shape = (count, *rows.shape[1:])
    wide = (count,) + (1,) * (rows.ndim - 1)
    first, last = lax.reshape(starts, wide), lax.reshape(stops, wide)
    carry = lax.full(shape, 0, x.aval.dtype)

    def step(total: Any, item: Any) -> Any:
        index, row = item
        row = repeated(row, shape)
        new = convert(self.function(total, row), total.aval.dtype, total.aval.weak_type)
        # Pieces may overlap, so each row is offered to all of them.
        inside = (index > first) & (index < last)
        total = choose_between(inside, new, total)
        return choose_between(index == first, row, total), None

    order = lax.iota(dtypes.int32, length)
    return moveaxis(lax.scan(step, carry, (order, rows))[0], 0, axis)


def install() -> None:
    """Puts the methods on `ufunc`."""
    for method in (reduce, accumulate, outer, at, reduceat):
        setattr(ufunc, method.__name__, boundary(method))


install()
