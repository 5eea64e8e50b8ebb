"""Axes and shapes as users give them, made tuples of Python ints."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Shape
from fxflow.core.source import of_rank
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.lax.arguments import integer


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
        axis = integer(name, what, axis)
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{name}: {what} {axis} is out of range for an array of {ndim} "
            f"ax{'is' if ndim == 1 else 'es'}{of_rank(ndim)}"
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


def hashable(axes: Any) -> Any:
    """Returns axes as a static argument: a list or range as a tuple."""
    return tuple(axes) if isinstance(axes, list | range) else axes


def as_shape(name: str, shape: Any) -> Shape:
    """Returns a shape as a tuple of Python ints.

    Args:
      name: of the function, for messages.
      shape: an int or a sequence of ints.

    Raises:
      ShapeError: a length is negative.
      ArgumentError: it is not a shape.
    """
    if type(shape) is not tuple:
        if hasattr(shape, "__index__") and not getattr(shape, "ndim", 0):
            shape = (shape,)
        elif isinstance(shape, Array | np.ndarray | list | range) or hasattr(
            shape, "__iter__"
        ):
            shape = tuple(shape)
        else:
            raise ArgumentError(
                f"{name}: shape must be an int or a sequence of ints, got {shape!r}"
            )
    out = []
    for n in shape:
        if type(n) is not int:
            try:
                n = operator.index(n)
            except TypeError as error:
                if isinstance(n, Array):
                    raise
                raise ArgumentError(
                    f"{name}: lengths must be integers, got {n!r} in shape {shape}"
                ) from error
        if n < 0:
            raise ShapeError(f"{name}: lengths must not be negative, got {shape}")
        out.append(n)
    return tuple(out)
