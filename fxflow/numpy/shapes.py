"""The same elements under another shape or order of axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow._config import config
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.aval import Aval, Shape
from fxflow.core.eager import EVAL, library, on_forget
from fxflow.core.errors import ArgumentError, AxisError, ShapeError
from fxflow.core.placed import Placed, placed_on
from fxflow.core.trace import state
from fxflow.lax.arguments import int_tuple
from fxflow.numpy._operands import array_of, joint_shape, repeated
from fxflow.numpy.creation import as_shape

_new = object.__new__

# -- axes --------------------------------------------------------------------------


def canonical_axis(name: str, axis: Any, ndim: int, what: str = "axis") -> int:
    """Returns an axis counted from the front.

    Args:
      name: of the function, for messages.
      axis: int, negative ones counted from the end.
      ndim: number of axes.
      what: of the argument, for messages.

    Raises:
      AxisError: there is no such axis.
      ArgumentError: it is no integer.
    """
    if type(axis) is not int:
        try:
            axis = operator.index(axis)
        except TypeError as error:
            if isinstance(axis, Array):
                raise
            raise ArgumentError(
                f"{name}: {what} must be an integer, got {axis!r}"
            ) from error
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{name}: {what} {axis} is out of range for an array of {ndim} "
            f"ax{'is' if ndim == 1 else 'es'}"
        )
    return int(axis + ndim if axis < 0 else axis)


def canonical_axes(name: str, axes: Any, ndim: int, what: str = "axis") -> Shape:
    """Returns distinct axes counted from the front, in the order given.

    Args:
      name: of the function, for messages.
      axes: an int, a sequence of ints, or None for all.
      ndim: number of axes.
      what: of the argument, for messages.

    Raises:
      AxisError: there is no such axis, or one is named twice.
    """
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, tuple | list | range):
        return (canonical_axis(name, axes, ndim, what),)
    found = tuple([canonical_axis(name, a, ndim, what) for a in axes])
    if len(set(found)) != len(found):
        raise AxisError(f"{name}: {what} {tuple(axes)} names an axis twice")
    return found


# -- reshape -------------------------------------------------------------------------

_reshaped: dict[Any, tuple[Shape, Placed]] = {}
on_forget(_reshaped.clear)


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """Gives an array another shape; the order of the elements stays.

    Args:
      a: array-like.
      shape: int or sequence of ints; one of them may be -1, which is inferred.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      copy: False is refused if the layout could need a copy; arrays never change, so
        it makes no other difference.

    Returns:
      Array of that shape and the dtype of `a`.

    Raises:
      ShapeError: the number of elements differs.
      ArgumentError: `order` is neither "C" nor "F".

    Example:
      >>> reshape(np.arange(4), (2, -1))
      Array([[0, 1],
             [2, 3]], dtype=int32)

    Source: `numpy.reshape`.
    """
    if type(a) is Array and order == "C" and state.trace is EVAL:
        try:
            wanted, placed = _reshaped[a._placed, shape]
            view = a._host.reshape(wanted)
        except (KeyError, TypeError, AttributeError):
            return _reshape(a, shape)
        made: Array = _new(Array)
        made._host = view
        made._placed = placed
        return made
    if order == "C":
        return _reshape(a, shape)
    if order != "F":
        raise ArgumentError(f"reshape: order must be 'C' or 'F', got {order!r}")
    a = array_of(a, "reshape")
    wanted = inferred("reshape", shape, a.aval)
    flipped = lax.reshape(transpose(a), wanted[::-1])
    return transpose(flipped)


def _reshape(a: Any, shape: Any) -> Any:
    a = array_of(a, "reshape")
    wanted = inferred("reshape", shape, a.aval)
    placed = getattr(a, "_placed", None)
    if (
        placed is not None
        and state.trace is EVAL
        and placed.placement.is_host
        and config.eager == "auto"
        and not dtypes.is_key(a.aval.dtype)
    ):
        aval = Aval(wanted, a.aval.dtype, a.aval.weak_type)
        made = placed_on(aval, placed.placement, placed.committed)
        lengths = shape if type(shape) is tuple else (shape,)
        if all(type(n) is int for n in lengths):
            if len(_reshaped) > 8192:
                _reshaped.clear()
            _reshaped[placed, shape] = wanted, made
    return lax.reshape(a, wanted)


def inferred(name: str, shape: Any, aval: Aval) -> Shape:
    """Returns a shape with -1 replaced by the length that it must be.

    Args:
      name: of the function, for messages.
      shape: int or sequence of ints.
      aval: of the array.

    Raises:
      ShapeError: the number of elements differs.
    """
    many = isinstance(shape, tuple | list) or getattr(shape, "ndim", 0) == 1
    given = int_tuple(name, "shape", shape if many else (shape,))
    if -1 not in given:
        wanted = as_shape(name, shape)
    else:
        known = math.prod(n for n in given if n != -1)
        if given.count(-1) > 1:
            raise ShapeError(f"{name}: only one length can be -1, got {tuple(given)}")
        if known == 0 or aval.size % known:
            raise ShapeError(
                f"{name}: cannot reshape {aval} to {tuple(given)}: {aval.size} "
                "elements "
                f"do not divide by {known}"
            )
        wanted = as_shape(
            name, tuple(aval.size // known if n == -1 else n for n in given)
        )
    if math.prod(wanted) != aval.size:
        raise ShapeError(
            f"{name}: cannot reshape {aval} to {wanted}: that is {math.prod(wanted)} "
            f"elements instead of {aval.size}"
        )
    return wanted


def ravel(a: Any, order: str = "C") -> Array:
    """Gives an array one axis.

    Args:
      a: array-like.
      order: "C" (last axis fastest) or "F" (first axis fastest).

    Returns:
      Array of shape `(a.size,)`.

    Raises:
      ArgumentError: `order` is neither "C" nor "F".

    Source: `numpy.ravel`.
    """
    return reshape(a, -1, order) if np.size(_length_hint(a)) else _empty_ravel(a)


def _length_hint(a: Any) -> Any:
    return 1 if getattr(a, "size", 1) else ()


def _empty_ravel(a: Any) -> Any:
    return reshape(a, (0,))


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Puts the axes in another order.

    Args:
      a: array-like.
      axes: axis `i` of the result is axis `axes[i]` of `a`. None reverses them.

    Returns:
      Array of the dtype of `a`, its lengths permuted.

    Raises:
      AxisError: `axes` does not name each axis once.

    Example:
      >>> transpose(np.zeros((2, 3))).shape
      (3, 2)

    Source: `numpy.transpose`.
    """
    if axes is not None and type(axes) is not tuple:
        axes = tuple(axes)
    return _transpose(a, axes)


@library("axes")
def _transpose(a: Any, axes: Any) -> Any:
    a = array_of(a, "transpose")
    ndim = a.aval.ndim
    if axes is None:
        order = tuple(range(ndim))[::-1]
    else:
        order = canonical_axes("transpose", axes, ndim, "axes")
        if len(order) != ndim:
            raise AxisError(
                f"transpose: axes must name each of the {ndim} axes of {a.aval} once, "
                f"got {axes}"
            )
    return lax.transpose(a, order)


def matrix_transpose(x: Any, /) -> Array:
    """Swaps the last two axes.

    Args:
      x: array-like with two axes or more.

    Returns:
      Array of shape `(..., n, m)`.

    Raises:
      ShapeError: `x` has fewer axes.

    Source: `numpy.matrix_transpose`; the array API standard.
    """
    return _matrix_transpose(x)


@library()
def _matrix_transpose(x: Any) -> Any:
    x = array_of(x, "matrix_transpose")
    ndim = x.aval.ndim
    if ndim < 2:
        raise ShapeError(f"matrix_transpose: needs two axes or more, got {x.aval}")
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@library("axis1", "axis2")
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Swaps two axes.

    Args:
      a: array-like.
      axis1: one of them.
      axis2: the other.

    Returns:
      Array.

    Raises:
      AxisError: there is no such axis.

    Source: `numpy.swapaxes`.
    """
    a = array_of(a, "swapaxes")
    order = list(range(a.aval.ndim))
    i = canonical_axis("swapaxes", axis1, a.aval.ndim, "axis1")
    j = canonical_axis("swapaxes", axis2, a.aval.ndim, "axis2")
    order[i], order[j] = j, i
    return lax.transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Moves axes to other positions; the others keep their order.

    Args:
      a: array-like.
      source: int or sequence of ints: where the axes are.
      destination: as many: where they go.

    Returns:
      Array.

    Raises:
      AxisError: there is no such axis, or one is named twice.
      ArgumentError: the numbers of axes differ.

    Example:
      >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
      (3, 4, 2)

    Source: `numpy.moveaxis`.
    """
    return _moveaxis(a, _hashable(source), _hashable(destination))


def _hashable(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, list | range) else axes


@library("source", "destination")
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    a = array_of(a, "moveaxis")
    ndim = a.aval.ndim
    old = canonical_axes("moveaxis", source, ndim, "source")
    new = canonical_axes("moveaxis", destination, ndim, "destination")
    if len(old) != len(new):
        raise ArgumentError(
            f"moveaxis: source {source} and destination {destination} must name as "
            "many "
            "axes"
        )
    order = [d for d in range(ndim) if d not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return lax.transpose(a, order)


@library("axis", "start")
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Moves an axis back until it lies before another.

    Args:
      a: array-like.
      axis: which.
      start: the axis before which it goes.

    Returns:
      Array.

    Raises:
      AxisError: there is no such axis.

    Source: `numpy.rollaxis`.
    """
    a = array_of(a, "rollaxis")
    ndim = a.aval.ndim
    axis = canonical_axis("rollaxis", axis, ndim)
    if not -ndim <= start <= ndim:
        raise AxisError(f"rollaxis: start {start} is out of range for {a.aval}")
    start = start + ndim if start < 0 else start
    if axis < start:
        start -= 1
    order = [d for d in range(ndim) if d != axis]
    order.insert(start, axis)
    return lax.transpose(a, order)


def expand_dims(a: Any, axis: Any) -> Array:
    """Adds axes of length 1.

    Args:
      a: array-like.
      axis: int or sequence of ints: where they are in the result.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range or named twice.

    Source: `numpy.expand_dims`.
    """
    return _expand_dims(a, _hashable(axis))


@library("axis")
def _expand_dims(a: Any, axis: Any) -> Any:
    a = array_of(a, "expand_dims")
    count = len(axis) if isinstance(axis, tuple) else 1
    ndim = a.aval.ndim + count
    axes = canonical_axes("expand_dims", axis, ndim)
    rest = iter(a.aval.shape)
    return lax.reshape(a, tuple(1 if d in axes else next(rest) for d in range(ndim)))


def squeeze(a: Any, axis: Any = None) -> Array:
    """Drops axes of length 1.

    Args:
      a: array-like.
      axis: int or sequence of ints; None drops all of length 1.

    Returns:
      Array.

    Raises:
      ShapeError: an axis is not of length 1.
      AxisError: an axis is out of range or named twice.

    Source: `numpy.squeeze`.
    """
    return _squeeze(a, _hashable(axis))


@library("axis")
def _squeeze(a: Any, axis: Any) -> Any:
    a = array_of(a, "squeeze")
    shape = a.aval.shape
    if axis is None:
        return lax.reshape(a, tuple(n for n in shape if n != 1))
    axes = canonical_axes("squeeze", axis, a.aval.ndim)
    for d in axes:
        if shape[d] != 1:
            raise ShapeError(
                f"squeeze: axis {d} of {a.aval} has length {shape[d]}: only axes of "
                "length 1 can be dropped"
            )
    return lax.reshape(a, tuple(n for d, n in enumerate(shape) if d not in axes))


def _at_least(name: str, ndim: int, places: tuple[tuple[int, ...], ...]) -> Any:
    @library()
    def one(a: Any) -> Any:
        a = array_of(a, name)
        if a.aval.ndim >= ndim:
            return a
        rest = iter(a.aval.shape)
        new = places[a.aval.ndim]
        return lax.reshape(a, tuple(1 if d in new else next(rest) for d in range(ndim)))

    return one


_at_least_1d = _at_least("atleast_1d", 1, ((0,),))
_at_least_2d = _at_least("atleast_2d", 2, ((0, 1), (0,)))
_at_least_3d = _at_least("atleast_3d", 3, ((0, 1, 2), (0, 2), (2,)))


def _each(function: Any, arrays: tuple[Any, ...]) -> Any:
    found = [function(a) for a in arrays]
    return found[0] if len(found) == 1 else found


def atleast_1d(*arys: Any) -> Any:
    """Gives 0-d arrays one axis.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Source: `numpy.atleast_1d`.
    """
    return _each(_at_least_1d, arys)


def atleast_2d(*arys: Any) -> Any:
    """Gives arrays two axes at least; new ones come in front.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Source: `numpy.atleast_2d`.
    """
    return _each(_at_least_2d, arys)


def atleast_3d(*arys: Any) -> Any:
    """Gives arrays three axes at least.

    A vector becomes `(1, n, 1)`, a matrix `(m, n, 1)`.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Source: `numpy.atleast_3d`.
    """
    return _each(_at_least_3d, arys)


# -- broadcasting --------------------------------------------------------------------


def broadcast_to(array: Any, shape: Any) -> Array:
    """Repeats an array to a shape.

    Args:
      array: array-like.
      shape: int or sequence of ints; counted from the last axis, each length is that of
        `array` or replaces a 1.

    Returns:
      Array of that shape.

    Raises:
      ShapeError: the array does not broadcast to the shape.

    Example:
      >>> broadcast_to(np.arange(2), (2, 2))
      Array([[0, 1],
             [0, 1]], dtype=int32)

    Source: `numpy.broadcast_to`.
    """
    return _broadcast_to(array, as_shape("broadcast_to", shape))


@library("shape")
def _broadcast_to(array: Any, shape: Shape) -> Any:
    array = array_of(array, "broadcast_to")
    aval = array.aval
    old = aval.shape
    if len(old) > len(shape) or any(
        n not in (1, m) for n, m in zip(old[::-1], shape[::-1], strict=False)
    ):
        raise ShapeError(
            f"broadcast_to: {aval} does not broadcast to shape {shape}: counted from "
            "the "
            "last axis, lengths must be equal or 1"
        )
    return repeated(array, shape)


def broadcast_shapes(*shapes: Any) -> Shape:
    """Returns the shape that arrays of these shapes broadcast to.

    Args:
      *shapes: ints or sequences of ints.

    Returns:
      A tuple of Python ints.

    Raises:
      ShapeError: two lengths differ and neither is 1.

    Example:
      >>> broadcast_shapes((2, 1), (3,))
      (2, 3)

    Source: `numpy.broadcast_shapes`.
    """
    return lax.broadcast_shapes(*(as_shape("broadcast_shapes", s) for s in shapes))


def broadcast_arrays(*args: Any) -> list[Array]:
    """Repeats arrays to the shape they broadcast to together.

    Args:
      *args: array-likes.

    Returns:
      A list of arrays of one shape, each of its own dtype.

    Raises:
      ShapeError: the shapes do not broadcast together.

    Source: `numpy.broadcast_arrays`.
    """
    return list(_broadcast_arrays(*args))


@library()
def _broadcast_arrays(*args: Any) -> Any:
    arrays = [array_of(a, "broadcast_arrays") for a in args]
    if not arrays:
        return ()
    shape = joint_shape("broadcast_arrays", [a.aval for a in arrays])
    return tuple(repeated(a, shape) for a in arrays)
