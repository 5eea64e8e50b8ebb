"""Axes, shapes and integers as users give them, made tuples of Python ints.

Every public function that takes an axis or a shape goes through this module: a negative
axis counts from the end, no axis may come twice, no length may be negative.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, cast

from fxflow.core.arrays import Array, Shape
from fxflow.core.arrays.array import kind_of
from fxflow.core.ir.trace import Tracer
from fxflow.core.sizes import is_symbolic, length_of
from fxflow.core.source import of_rank
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError


def int_tuple(name: str, what: str, values: Any) -> tuple[int, ...]:
    """Returns a sequence of integers as a tuple of Python ints.

    Args:
      name: of the function, for the message.
      what: the argument's name.
      values: any iterable of integers.

    Raises:
      ArgumentError: it is not a sequence of integers.
    """
    if isinstance(values, Array) and not isinstance(values, Tracer) and values.ndim:
        values = values.tolist()  # its items would be traced
    try:
        if isinstance(values, bytes):  # whose items would be integers
            raise TypeError
        return tuple(map(operator.index, values))
    # It says which argument is traced, which the message below cannot.
    except ConcretizationError:
        if isinstance(values, tuple | list) and is_symbolic(values):
            return tuple(map(length_of, values))
        raise
    except (TypeError, ArgumentError):
        raise ArgumentError(
            f"{name}: {what} must be a sequence of integers, got {values!r}"
        ) from None


def integer(name: str, what: str, value: Any) -> int:
    """Returns an integer as a Python int.

    Raises:
      ArgumentError: it is not an integer.
    """
    try:
        return operator.index(value)
    except ConcretizationError:
        if is_symbolic((value,)):
            return cast(int, value)
        raise
    except (TypeError, ArgumentError):
        raise ArgumentError(
            f"{name}: {what} must be an integer, got {value!r}"
        ) from None


def natural(name: str, what: str, value: Any, least: int = 1) -> int:
    """Returns `value` as an integer of at least `least`, or says what is wrong."""
    checked = integer(name, what, value)
    if checked < least:
        raise ArgumentError(f"{name}: {what} must be at least {least}, got {checked}")
    return checked


def pair(name: str, what: str, value: Any) -> tuple[Any, Any]:
    """Returns a pair as a tuple.

    Raises:
      ArgumentError: it is not a pair.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{name}: {what} must be a pair, got {kind_of(value)}")
    return value[0], value[1]


def number(name: str, what: str, value: Any) -> float:
    """Returns a real number as a Python float.

    Raises:
      ArgumentError: it is not a real number.
    """
    try:
        return float(value)
    except ConcretizationError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name}: {what} must be a real number, got {value!r}"
        ) from None


# -- axes ------------------------------------------------------------------------------


def canonical_axis(name: str, axis: Any, ndim: int, what: str = "axis") -> int:
    """Returns an axis counted from the front.

    Args:
      name: of the function, for the message.
      axis: may be negative.
      ndim: number of axes.
      what: the argument's name.

    Raises:
      AxisError: an axis is out of range.
      ArgumentError: it is not an integer.
    """
    if type(axis) is not int:
        axis = integer(name, what, axis)
    if not -ndim <= axis < ndim:
        hint = f"expected {-ndim} to {ndim - 1}" if ndim else "a 0-d array has no axes"
        raise AxisError(
            f"{name}: {what} {axis} is out of range for {ndim} "
            f"ax{'is' if ndim == 1 else 'es'}: {hint}{of_rank(ndim)}"
        )
    return int(axis + ndim if axis < 0 else axis)


def distinct_axes(
    name: str, axes: Any, ndim: int, what: str = "dimensions"
) -> tuple[int, ...]:
    """Returns a sequence of distinct axes counted from the front, in its order.

    Args:
      name: of the function, for the message.
      axes: any iterable of integers.
      ndim: number of axes.
      what: the argument's name.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: it is not a sequence of integers.
    """
    given = int_tuple(name, what, axes)
    found = tuple([canonical_axis(name, a, ndim, what) for a in given])
    if len(set(found)) != len(found):
        raise AxisError(f"{name}: repeated axis in {what} {given}")
    return found


def canonical_axes(name: str, axes: Any, ndim: int, what: str = "axis") -> Shape:
    """Returns axes as NumPy takes them: an int, a sequence of ints, or None for all.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: it is neither an integer nor a sequence of integers.
    """
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, tuple | list | range):
        return (canonical_axis(name, axes, ndim, what),)
    return distinct_axes(name, axes, ndim, what)


def hashable(axes: Any) -> Any:
    """Returns axes as a static argument: a list or range as a tuple."""
    return tuple(axes) if isinstance(axes, list | range) else axes


# -- shapes ----------------------------------------------------------------------------


def canonical_shape(name: str, shape: Any, what: str = "shape") -> Shape:
    """Returns a sequence of lengths as a tuple of Python ints.

    Args:
      name: of the function, for the message.
      shape: any iterable of integers.
      what: the argument's name.

    Raises:
      ArgumentError: it is not a sequence of integers.
      ShapeError: a length is negative.
    """
    lengths = int_tuple(name, what, shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(
            f"{name}: lengths in {what} must not be negative, got {lengths}"
        )
    return lengths


def shape_or_length(name: str, shape: Any, what: str = "shape") -> Shape:
    """Returns a shape as NumPy takes it: a sequence of lengths, or one length.

    Args:
      name: of the function, for the message.
      shape: an integer or an iterable of integers.
      what: the argument's name.

    Raises:
      ArgumentError: it is neither an integer nor a sequence of integers.
      ShapeError: a length is negative.
    """
    if type(shape) is not tuple:
        if hasattr(shape, "__index__") and not getattr(shape, "ndim", 0):
            shape = (shape,)
        elif isinstance(shape, str) or not isinstance(shape, Iterable):
            raise ArgumentError(
                f"{name}: {what} must be an integer or a sequence of integers, got "
                f"{shape!r}"
            )
    return canonical_shape(name, shape, what)


def without(shape: Shape, axes: Sequence[int]) -> Shape:
    """Returns a shape without some of its axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def kept_axes(ndim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes that are not among `axes`."""
    return tuple(i for i in range(ndim) if i not in axes)
