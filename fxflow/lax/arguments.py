"""Shapes and axes as users give them, made canonical; keys seen as words.

What the public functions of all families share: a shape becomes a tuple of Python
ints, a negative axis counts from the end, and a mistake is reported with the type it
was made about.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Aval, Shape
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import Tracer
from fxflow.core.source import of_rank
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError


def int_tuple(name: str, what: str, values: Any) -> tuple[int, ...]:
    """Returns a sequence of integers as a tuple of Python ints.

    Args:
      name: of the function, for the message.
      what: the argument's name.
      values: any iterable of integers.

    Raises:
      ArgumentError: it is no sequence of integers.
    """
    if isinstance(values, Array) and not isinstance(values, Tracer) and values.ndim:
        values = values.tolist()  # its items would be traced
    try:
        if isinstance(values, bytes):  # whose items would be integers
            raise TypeError
        return tuple(map(operator.index, values))
    except ConcretizationError:
        raise
    except (TypeError, ArgumentError):
        raise ArgumentError(
            f"{name}: {what} must be a sequence of integers, got {values!r}"
        ) from None


def integer(name: str, what: str, value: Any) -> int:
    """Returns an integer as a Python int.

    Raises:
      ArgumentError: it is none.
    """
    try:
        return operator.index(value)
    except ConcretizationError:
        raise
    except (TypeError, ArgumentError):
        raise ArgumentError(
            f"{name}: {what} must be an integer, got {value!r}"
        ) from None


def pair(name: str, what: str, value: Any) -> tuple[Any, Any]:
    """Returns a pair as a tuple.

    Raises:
      ArgumentError: it is none.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{name}: {what} must be a pair, got {value!r}")
    return value[0], value[1]


def number(name: str, what: str, value: Any) -> float:
    """Returns a real number as a Python float.

    Raises:
      ArgumentError: it is none.
    """
    try:
        return float(value)
    except ConcretizationError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name}: {what} must be a real number, got {value!r}"
        ) from None


def shape_tuple(name: str, shape: Any, what: str = "shape") -> Shape:
    """Returns a shape as a tuple of Python ints.

    Raises:
      ArgumentError: it is no sequence of integers.
      ShapeError: a length is negative.
    """
    lengths = int_tuple(name, what, shape)
    if lengths and min(lengths) < 0:
        raise ShapeError(
            f"{name}: lengths in {what} may not be negative, got {lengths}"
        )
    return lengths


def axis_index(name: str, axis: Any, ndim: int, what: str = "axis") -> int:
    """Returns an axis counted from the front.

    Args:
      name: of the function, for the message.
      axis: may be negative.
      ndim: number of axes.
      what: the argument's name.

    Raises:
      AxisError: there is no such axis.
    """
    index = integer(name, what, axis)
    if -ndim <= index < ndim:
        return index + ndim if index < 0 else index
    hint = f"expected {-ndim} to {ndim - 1}" if ndim else "a 0-d array has no axes"
    raise AxisError(
        f"{name}: {what} {index} is out of range for {ndim} "
        f"{'axis' if ndim == 1 else 'axes'}: {hint}{of_rank(ndim)}"
    )


def axis_indices(
    name: str, axes: Any, ndim: int, what: str = "dimensions"
) -> tuple[int, ...]:
    """Returns distinct axes counted from the front, in the order given.

    Raises:
      AxisError: there is no such axis, or one is named twice.
    """
    found = tuple(axis_index(name, a, ndim, what) for a in int_tuple(name, what, axes))
    if len(set(found)) != len(found):
        raise AxisError(f"{name}: {what} {tuple(axes)} name an axis twice")
    return found


def is_words(aval: Aval) -> bool:
    """Returns whether a type is of keys, which operations see as words."""
    return dtypes.is_key(aval.dtype)


def on_words(function: Callable[..., Any], *keys: Any) -> Any:
    """Returns keys made by an operation on the words of keys.

    Args:
      function: from the words `u32[..., 2]` of each operand to those of the result (or
        a list of results).
      *keys: of one key dtype.

    Raises:
      DtypeError: the operands are not all keys of one kind.
    """
    dtype = typeof(keys[0]).dtype
    out = function(*map(table["random_unwrap"].bind, keys))
    wrap = table["random_wrap"].bind
    if isinstance(out, list):
        return [wrap(o, dtype=dtype) for o in out]
    return wrap(out, dtype=dtype)


def check(primitive: Any, *avals: Aval, **params: Any) -> Any:
    """Returns the type an operation would give, having checked the operands' types.

    Keys go through this, since their words would make an error hard to understand.
    """
    return primitive.abstract(*avals, **params)


def all_weak(avals: Iterable[Aval]) -> bool:
    """Returns whether every type is weak."""
    return all(a.weak_type for a in avals)


def listed(values: Sequence[int]) -> str:
    """Returns integers as StableHLO writes them: `[0, 1]`."""
    return f"[{', '.join(map(str, values))}]"
