"""Taking and putting elements by index, and ways to write an index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.ir.arith import constant, repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy import index_plans, index_reading
from fxflow.numpy._operands import ArrayLike, array_of, convert, no_out
from fxflow.numpy.comparisons import truth
from fxflow.numpy.creation import asarray
from fxflow.numpy.index_update import At
from fxflow.numpy.searching import nonzero, nonzero_mask
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import ravel, reshape

# -- picking ---------------------------------------------------------------------------


_TAKE_MODES = {None: "fill", "fill": "fill", "clip": "clip", "wrap": "wrap"}


def take(
    a: ArrayLike,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Picks elements along an axis.

    Args:
      a: array-like.
      indices: integers, of any shape.
      axis: the axis; None flattens `a` first.
      out: not supported; arrays never change.
      mode: what indices that are out of range give: "fill" (the default), "clip" (the
        nearest; negative ones do not count from the end then) or "wrap" (modulo).
      unique_indices: a promise that no index comes twice.
      indices_are_sorted: a promise that the indices are sorted.
      fill_value: for "fill" (default: nan, or the extreme integer).

    Returns:
      Array of shape `(*a.shape[:axis], *indices.shape, *a.shape[axis + 1:])`.

    Raises:
      DtypeError: `indices` are not integers.
      ArgumentError: unknown mode, or `out` is given.
      AxisError: an axis is out of range.
      IndexError: something is taken from an axis of length 0.

    Example:
      >>> take(np.array([1.0, 2.0]), np.array([1, 0, 5]))
      Array([ 2.,  1., nan], dtype=float32)

    Source: `numpy.take`.
    """
    no_out("take", out)
    if mode not in _TAKE_MODES and mode != "promise_in_bounds":
        raise ArgumentError(
            f"take: mode must be 'fill', 'clip', 'wrap' or 'promise_in_bounds', got "
            f"{mode!r}"
        )
    if isinstance(indices, list | tuple):
        raise ArgumentError(
            f"take: indices must be an array, got a {type(indices).__name__}: convert "
            "it "
            "with fnp.asarray"
        )
    return _take(
        a,
        indices,
        axis,
        _TAKE_MODES.get(mode, mode),
        unique_indices,
        indices_are_sorted,
        fill_value,
    )


@library("axis", "mode", "unique", "sorted_", "fill_value")
def _take(
    a: Any,
    indices: Any,
    axis: int | None,
    mode: str | None,
    unique: bool,
    sorted_: bool,
    fill_value: Any,
) -> Array:
    a, indices = array_of(a, "take"), array_of(indices, "take")
    if axis is None:
        a, axis = lax.reshape(a, (a.aval.size,)), 0
    axis = canonical_axis("take", axis, a.aval.ndim)
    if not dtypes.is_integer(indices.aval.dtype):
        raise DtypeError(f"take: indices must be integers, got {indices.aval}")
    length = a.aval.shape[axis]
    if not length and indices.aval.size:
        raise OutOfRangeError(f"take: axis {axis} of {a.aval} is empty")
    if mode == "wrap":
        rest = lax.rem(indices, length or 1)
        indices = lax.select(lax.lt(rest, 0), lax.add(rest, length), rest)
        mode = "promise_in_bounds"
    static: tuple[Any, ...] = ((None, None, None),) * axis
    static += (index_plans.ARRAY if indices.aval.ndim else index_plans.SCALAR,)
    return index_reading.get(
        a, [indices], static, mode, fill_value, unique, sorted_, mode != "clip"
    )


def take_along_axis(
    arr: ArrayLike,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Picks one element for each index, in the slice along an axis that it stands in.

    Args:
      arr: array-like.
      indices: integers, with as many axes; other axes broadcast against `arr`.
      axis: the axis; None flattens `arr` first.
      mode: what indices that are out of range give: "fill" (the default), "clip" or
        "promise_in_bounds".
      fill_value: for "fill" (default: nan, or the extreme integer).
      wrap_negative_indices: whether negative ones count from the end; None is True.

    Returns:
      Array of the shape of `indices`, broadcast.

    Raises:
      DtypeError: `indices` are not integers.
      ShapeError: the numbers of axes differ, or the lengths do not broadcast.
      AxisError: an axis is out of range.

    Example:
      >>> x = np.array([[3, 1, 2], [9, 8, 7]])
      >>> take_along_axis(x, np.argsort(x, axis=1), axis=1)
      Array([[1, 2, 3],
             [7, 8, 9]], dtype=int32)

    Source: `numpy.take_along_axis`.
    """
    wrap = wrap_negative_indices is None or bool(wrap_negative_indices)
    return _take_along_axis(arr, indices, axis, mode, fill_value, wrap)


@library("axis", "mode", "fill_value", "wrap")
def _take_along_axis(
    arr: Any, indices: Any, axis: int | None, mode: Any, fill_value: Any, wrap: bool
) -> Array:
    a, indices = array_of(arr, "take_along_axis"), array_of(indices, "take_along_axis")
    if axis is None:
        a, axis = lax.reshape(a, (a.aval.size,)), 0
    axis = canonical_axis("take_along_axis", axis, a.aval.ndim)
    a, indices, shape = _along("take_along_axis", a, indices, axis)
    picked = index_reading.index_operand(indices, a.aval.shape[axis], wrap)
    chosen = "fill" if mode is None else mode
    ndim = a.aval.ndim
    others = tuple(d for d in range(ndim) if d != axis)
    # Axes of length 1 in `arr` broadcast: they are cut off before.
    thin = tuple(d for d in others if a.aval.shape[d] == 1 and shape[d] != 1)
    kept = tuple(d for d in others if d not in thin)
    if not a.aval.shape[axis] and all(shape):
        raise OutOfRangeError(f"take_along_axis: axis {axis} of {a.aval} is empty")
    if not all(shape):  # an axis of no elements has no slice of length 1 to take
        return lax.full(shape, 0, a.aval.dtype)
    vectors = lax.reshape(picked, (*shape, 1))
    return lax.gather(
        a,
        vectors,
        lax.GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=tuple(sorted((axis, *thin))),
            start_index_map=(axis,),
            operand_batching_dims=kept,
            start_indices_batching_dims=kept,
        ),
        (1,) * ndim,
        mode=chosen,
        fill_value=fill_value,
    )


def _along(
    name: str, a: Any, indices: Any, axis: int
) -> tuple[Any, Any, tuple[int, ...]]:
    """Returns an array and indices that fit but for `axis`, and the indices' shape."""
    if not dtypes.is_integer(indices.aval.dtype):
        raise DtypeError(f"{name}: indices must be integers, got {indices.aval}")
    if indices.aval.ndim != a.aval.ndim:
        raise ShapeError(
            f"{name}: indices must have as many axes as the array, got {indices.aval} "
            f"and {a.aval}"
        )
    shape = []
    for d, (n, m) in enumerate(zip(a.aval.shape, indices.aval.shape, strict=True)):
        if d == axis or n == 1 or n == m:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ShapeError(
                f"{name}: {indices.aval} does not broadcast against {a.aval} along "
                "axis "
                f"{d}: lengths must be equal or 1"
            )
    return a, repeated(indices, tuple(shape)), tuple(shape)


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Array:
    """Picks the elements where a condition is true, along one axis.

    Args:
      condition: array-like of the size of `arr`.
      arr: array-like.
      size: the number to pick, so that the shape is known when tracing.
      fill_value: for those that are missing.

    Returns:
      Array of shape `(size,)`.

    Raises:
      ConcretizationError: `condition` is traced and `size` is not given.

    Example:
      >>> extract(np.array([True, False, True]), np.array([1, 2, 3]), size=2)
      Array([1, 3], dtype=int32)

    Source: `numpy.extract`.
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: Any,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """Picks the slices along an axis where a condition is true.

    Args:
      condition: array-like of one axis, not longer than the axis.
      a: array-like.
      axis: the axis; None flattens `a` first.
      size: the number to pick, so that the shape is known when tracing.
      fill_value: for those that are missing.
      out: not supported; arrays never change.

    Returns:
      Array.

    Raises:
      ConcretizationError: `condition` is traced and `size` is not given.
      ShapeError: `condition` does not have one axis, or is too long.

    Example:
      >>> compress([True, False, True], np.array([[1, 2], [3, 4], [5, 6]]), axis=0)
      Array([[1, 2],
             [5, 6]], dtype=int32)

    Source: `numpy.compress`.
    """
    no_out("compress", out)
    mask = truth("compress", asarray(condition))
    x = array_of(a, "compress")
    if mask.ndim != 1:
        raise ShapeError(f"compress: condition must have one axis, got {mask.aval}")
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("compress", axis, x.ndim)
    if mask.size > x.shape[axis] and (
        isinstance(mask, Tracer) or np.asarray(mask)[x.shape[axis] :].any()
    ):
        raise ShapeError(
            f"compress: condition {mask.aval} is longer than axis {axis} of {x.aval}"
        )
    if size is None:
        known = np.flatnonzero(np.asarray(nonzero_mask("compress", mask)))
        return take(x, known.astype(np.int32), axis)
    (indices,) = nonzero(mask, size=size, fill_value=x.shape[axis])
    if not x.shape[axis]:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return lax.full(shape, fill_value, x.dtype)
    return take(x, indices, axis, mode="fill", fill_value=fill_value)


# -- putting ---------------------------------------------------------------------------


def _not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ArgumentError(
            f"{name}: arrays never change: pass inplace=False, and use the result"
        )


def put(
    a: ArrayLike, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Returns an array with elements replaced, counted along one axis.

    Args:
      a: array-like.
      ind: integers.
      v: values, which are repeated if they are too few.
      mode: what integers that are out of range do: "clip" (the default: the nearest),
        "wrap" (modulo) or "drop".
      inplace: must be False, as arrays never change.

    Returns:
      Array of the type of `a`.

    Raises:
      ArgumentError: `inplace` is not False, or unknown mode.

    Example:
      >>> put(fnp.arange(4), np.array([0, 2]), np.array([7, 8]), inplace=False)
      Array([7, 1, 8, 3], dtype=int32)

    Source: `numpy.put`.
    """
    _not_in_place("put", inplace)
    x = array_of(a, "put")
    indices, values = ravel(array_of(ind, "put")), ravel(array_of(v, "put"))
    if not indices.size or not values.size:
        return x
    if mode not in (None, "clip", "wrap", "drop"):
        raise ArgumentError(f"put: mode must be 'clip', 'wrap' or 'drop', got {mode!r}")
    times = -(-indices.size // values.size)
    if times > 1:
        values = reshape(
            lax.broadcast_in_dim(values, (times, values.size), (1,)), (-1,)
        )
    values = values[: indices.size]
    if dtypes.bits(indices.dtype) < 32:
        indices = convert(indices, dtypes.int32)
    if mode == "wrap":
        indices = indices % x.size
    how = "drop" if mode == "drop" else "clip"
    if how == "clip" and mode != "wrap" and dtypes.is_signed(indices.dtype):
        # Beyond the first element it is clipped to that, and not counted from the end.
        indices = choose_between(indices < -x.size, constant(0, indices.dtype), indices)
    flat = At(ravel(x))[indices].set(values, mode=how)
    return reshape(flat, x.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: Any, *, inplace: bool = True) -> Array:
    """Returns an array with elements replaced where a mask is true, by values in turn.

    Args:
      arr: array-like.
      mask: array-like of the same size.
      vals: values, which are repeated if they are too few.
      inplace: must be False, as arrays never change.

    Returns:
      Array of the type of `arr`.

    Raises:
      ArgumentError: `inplace` is not False, or there are no values.
      ShapeError: the sizes differ.

    Example:
      >>> chosen = np.array([True, False, True, False])
      >>> place(fnp.arange(4), chosen, np.array([7, 8]), inplace=False)
      Array([7, 1, 8, 3], dtype=int32)

    Source: `numpy.place`.
    """
    _not_in_place("place", inplace)
    x = array_of(arr, "place")
    chosen = truth("place", array_of(mask, "place"))
    values = ravel(array_of(vals, "place"))
    if chosen.size != x.size:
        raise ShapeError(f"place: mask {chosen.aval} and array {x.aval} differ in size")
    if not values.size:
        if not x.size:
            return x
        raise ArgumentError("place: needs at least one value")
    flat = ravel(chosen)
    # The k-th true element takes the k-th value.
    order = lax.sub(lax.cumsum(lax.convert_element_type(flat, dtypes.int32), 0), 1)
    turn = lax.rem(lax.max(order, 0), values.size)
    new = convert(values, x.aval.dtype, x.aval.weak_type)[turn]
    return reshape(choose_between(flat, new, ravel(x)), x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: Any,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Any = None,
) -> Array:
    """Returns an array with one element replaced for each index; see `take_along_axis`.

    Args:
      arr: array-like.
      indices: integers, with as many axes; other axes broadcast against `arr`.
      values: array-like that broadcasts to the shape of `indices`.
      axis: the axis; None flattens `arr` first.
      inplace: must be False, as arrays never change.
      mode: see `x.at`.

    Returns:
      Array of the type of `arr`.

    Raises:
      ArgumentError: `inplace` is not False.
      ShapeError: the shapes are incompatible.

    Example:
      >>> columns = np.array([[0], [2]])
      >>> put_along_axis(fnp.zeros((2, 3)), columns, 1.0, axis=1, inplace=False)
      Array([[1., 0., 0.],
             [0., 0., 1.]], dtype=float32)

    Source: `numpy.put_along_axis`.
    """
    _not_in_place("put_along_axis", inplace)
    x = array_of(arr, "put_along_axis")
    index = array_of(indices, "put_along_axis")
    if axis is None:
        flat = At(ravel(x))[index].set(values, mode=mode)
        return reshape(flat, x.shape)
    axis = canonical_axis("put_along_axis", axis, x.ndim)
    x, index, shape = _along("put_along_axis", x, index, axis)
    grid = [
        index if d == axis else _axis_numbers(n, d, x.ndim) for d, n in enumerate(shape)
    ]
    return At(x)[tuple(grid)].set(values, mode=mode)


def _axis_numbers(length: int, axis: int, ndim: int) -> Any:
    shape = tuple(length if d == axis else 1 for d in range(ndim))
    return as_array(np.arange(length, dtype=np.int32).reshape(shape))


def fill_diagonal(
    a: ArrayLike, val: Any, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Returns an array with its main diagonal replaced.

    Args:
      a: array-like of two axes or more; more than two must be of one length.
      val: number, or array whose elements are used in turn.
      wrap: of a tall matrix, whether the diagonal starts anew below the square.
      inplace: must be False, as arrays never change.

    Returns:
      Array of the type of `a`.

    Raises:
      ArgumentError: `inplace` is not False.
      ShapeError: fewer than two axes, or unequal lengths.

    Example:
      >>> fill_diagonal(fnp.zeros((2, 2)), 5.0, inplace=False)
      Array([[5., 0.],
             [0., 5.]], dtype=float32)

    Source: `numpy.fill_diagonal`.
    """
    _not_in_place("fill_diagonal", inplace)
    x = array_of(a, "fill_diagonal")
    if x.ndim < 2:
        raise ShapeError(f"fill_diagonal: needs two axes or more, got {x.aval}")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ShapeError(f"fill_diagonal: axes must be of one length, got {x.aval}")
    n = min(x.shape)
    if x.ndim == 2 and wrap:
        step, end = x.shape[1] + 1, x.size
    else:
        # One further along every axis, in row-major order.
        step = 1 + sum(math.prod(x.shape[d:]) for d in range(1, x.ndim))
        end = step * n
    index = np.arange(0, min(end, x.size), step)
    if x.ndim == 2 and not wrap:
        index = index[:n]
    values = array_of(val, "fill_diagonal")
    if values.ndim:
        turn = np.arange(len(index)) % max(values.size, 1)
        values = ravel(values)[turn]
    return reshape(At(ravel(x))[index].set(values), x.shape)


# -- ways to write an index ------------------------------------------------------------


class _IndexExpression:
    """`s_[...]` and `index_exp[...]` give back what stands between the brackets."""

    def __init__(self, as_tuple: bool) -> None:
        self.as_tuple = as_tuple

    def __getitem__(self, index: Any) -> Any:
        return index if isinstance(index, tuple) or not self.as_tuple else (index,)


s_: _IndexExpression = _IndexExpression(False)


index_exp: _IndexExpression = _IndexExpression(True)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Makes index arrays that pick all combinations.

    Args:
      *args: sequences of integers, or of bools, which become the indices
        of their true elements.

    Returns:
      For each an array with its length along its own axis and 1 along the others.

    Raises:
      ShapeError: a sequence does not have one axis.

    Example:
      >>> x = np.arange(12).reshape(3, 4)
      >>> x[ix_([0, 2], [1, 3])]
      array([[ 1,  3],
             [ 9, 11]])

    Source: `numpy.ix_`.
    """
    out = []
    for d, arg in enumerate(args):
        a = asarray(arg)
        if a.ndim != 1:
            raise ShapeError(f"ix_: takes sequences of one axis, got {a.aval}")
        if dtypes.is_bool(a.dtype):
            (a,) = nonzero(a)
        elif not a.size:
            a = convert(a, dtypes.default_int())
        out.append(reshape(a, tuple(a.size if i == d else 1 for i in range(len(args)))))
    return tuple(out)
