"""Choosing elements: by conditions, by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.arith import constant, repeated
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    broadcast,
    convert,
    joint_shape,
    no_out,
    promote_dtypes,
)
from fxflow.numpy.comparisons import truth


@library()
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array:
    """Takes elements from `x` where a condition is true; see `fxflow.numpy.where`.

    Args:
      condition: array-like.
      x: array-like.
      y: array-like.

    Returns:
      Array.
    """
    return choose_between(truth("where", condition), *promote_dtypes("where", x, y))


def choose_between(condition: Array, x: Array, y: Array) -> Array:
    """Returns `x` where a condition is true, `y` elsewhere, all broadcast.

    Args:
      condition: bool array or tracer.
      x: array or tracer.
      y: array or tracer of the same dtype.
    """
    shape = condition.aval.shape
    if x.aval.shape != shape or y.aval.shape != shape:
        shape = joint_shape("where", [condition.aval, x.aval, y.aval])
        final = state.trace.final
        if condition.aval.ndim:
            condition = repeated(condition, shape)
        is_key = dtypes.is_key(x.aval.dtype)
        x, y = (
            repeated(a, shape)
            if a.aval.ndim or is_key or not (final or not isinstance(a, Tracer))
            else a
            for a in (x, y)
        )
        if not condition.aval.ndim and shape and not (x.aval.ndim or y.aval.ndim):
            x = repeated(x, shape)
    if dtypes.is_key(x.aval.dtype):
        return lax.select(condition, x, y)
    return table["select_n"].bind(condition, y, x)


def select(
    condlist: Sequence[ArrayLike] | Array,
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
) -> Array:
    """Takes each element from the first choice whose condition is true.

    Args:
      condlist: sequence of boolean array-likes.
      choicelist: as many array-likes.
      default: array-like, where no condition is true.

    Returns:
      Array of the shape to which all broadcast and the common dtype.

    Raises:
      ArgumentError: the sequences differ in length or are empty.
      DtypeError: a condition is not boolean.

    Example:
      >>> x = np.arange(5)
      >>> select([x < 2, x > 3], [x, 10 * x], default=-1)
      Array([ 0,  1, -1, -1, 40], dtype=int32)

    Source: `numpy.select`.
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(
            f"select: needs as many choices as conditions, and at least one, got "
            f"{len(choices)} and {len(conditions)}"
        )
    return _select(conditions, choices, default)


@library()
def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any) -> Array:
    masks = [array_of(c, "select") for c in conditions]
    for mask in masks:
        if not dtypes.is_bool(mask.aval.dtype):
            raise DtypeError(f"select: conditions must be boolean, got {mask.aval}")
    *values, out = promote_dtypes("select", *choices, default)
    # From the last to the first, so that the first true condition wins.
    for mask, value in zip(masks[::-1], values[::-1], strict=True):
        out = choose_between(mask, value, out)
    return out


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike] | Array,
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluates a function that is defined by pieces.

    Args:
      x: array-like.
      condlist: sequence of boolean array-likes of the shape of `x`, or one of them.
      funclist: for each condition a function of the array, or a number; one more is for
        where no condition is true (default: 0). Each function is applied to all of `x`.
      *args: passed to the functions.
      **kw: passed to the functions.

    Returns:
      Array of the shape and dtype of `x`. The last of several true conditions counts.

    Raises:
      ArgumentError: the numbers of conditions and functions do not fit.

    Example:
      >>> x = np.array([-2.0, 0.0, 3.0])
      >>> piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v * v])
      Array([2., 0., 9.], dtype=float32)

    Source: `numpy.piecewise`.
    """
    x = array_of(x, "piecewise")
    if (isinstance(condlist, Array | np.ndarray) and condlist.ndim <= x.ndim) or (
        not isinstance(condlist, Array | np.ndarray)
        and (not len(condlist) or (np.isscalar(condlist[0]) and x.ndim))
    ):
        condlist = cast(Any, [condlist])
    conditions = [
        truth(
            "piecewise",
            array_of(np.asarray(c) if isinstance(c, list) else c, "piecewise"),
        )
        for c in condlist
    ]
    functions = list(funclist)
    if len(functions) == len(conditions):
        default: Any = 0
    elif len(functions) == len(conditions) + 1:
        default = functions.pop()
    else:
        raise ArgumentError(
            f"piecewise: {len(conditions)} conditions need as many functions, or one "
            f"more, got {len(functions)}"
        )

    def value_of(piece: Any) -> Any:
        value = piece(x, *args, **kw) if callable(piece) else piece
        return convert(array_of(value, "piecewise"), x.aval.dtype)

    out = value_of(default)
    for condition, piece in zip(conditions, functions, strict=True):
        out = choose_between(condition, value_of(piece), out)
    return repeated(out, x.aval.shape)


def choose(
    a: ArrayLike,
    choices: Sequence[ArrayLike] | Array,
    out: None = None,
    mode: str = "raise",
) -> Array:
    """Takes each element from the choice that an array of integers names.

    Args:
      a: array-like of integers.
      choices: sequence of array-likes, or an array that stands for its slices.
      out: not supported; arrays never change.
      mode: what integers out of range mean: "wrap" (modulo), "clip", or "raise", an
        error, for which `a` must be concrete.

    Returns:
      Array of the shape to which all broadcast.

    Raises:
      ArgumentError: unknown mode, `out` is given, or an integer is out of range.
      DtypeError: `a` is not of integers.

    Example:
      >>> choose(np.array([1, 0, 1]), [np.array([1, 2, 3]), np.array([10, 20, 30])])
      Array([10,  2, 30], dtype=int32)

    Source: `numpy.choose`.
    """
    no_out("choose", out)
    which = array_of(a, "choose")
    if not (dtypes.is_integer(which.aval.dtype) or dtypes.is_bool(which.aval.dtype)):
        raise DtypeError(f"choose: takes integers, got {which.aval}")
    cases = list(choices)
    if mode == "raise":
        values = np.asarray(which)
        if values.size and not (values.min() >= 0 and values.max() < len(cases)):
            raise ArgumentError(
                f"choose: an integer is out of range for {len(cases)} choices: pass "
                "mode='clip' or mode='wrap'"
            )
    elif mode not in ("wrap", "clip"):
        raise ArgumentError(
            f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}"
        )
    return _choose(which, cases, mode)


@library()
def _choose(which: Any, cases: Sequence[Any], mode: str) -> Array:
    values = promote_dtypes("choose", *cases)
    count = len(values)
    which = convert(which, dtypes.int32)
    if mode == "wrap":
        rest = lax.rem(which, count)
        which = lax.select(lax.lt(rest, 0), lax.add(rest, count), rest)
    shape = joint_shape("choose", [which.aval, *(v.aval for v in values)])
    values = [repeated(v, shape) for v in values]
    return lax.select_n(repeated(which, shape), *values) if count > 1 else values[0]


# -- bounds ----------------------------------------------------------------------------


def clip(
    arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Moves elements that are outside of bounds to the bounds.

    Args:
      arr: array-like of a real dtype.
      min: array-like, the least value; None for no bound.
      max: array-like, the largest value; None for no bound. It wins over `min`.

    Returns:
      Array of the broadcast shape and the common dtype.

    Raises:
      DtypeError: an operand is complex.
      OverflowError: no number of the integer dtype of `arr` is inside of a bound that
        is a Python number.
      ShapeError: the shapes do not broadcast.

    Special cases:
      nan, in the array or a bound, gives nan. A bound that is a Python number outside
      of the range of the integer dtype of `arr` is not: -1 of unsigned integers.

    Example:
      >>> clip(np.array([-1, 0, 5]), 0, 3)
      Array([0, 0, 3], dtype=int32)

    Source: `numpy.clip`.
    """
    if type(min) is int or type(max) is int:
        min, max = _reachable(arr, min, False), _reachable(arr, max, True)
    return _clipped(arr, min, max)


def _reachable(x: Any, bound: Any, upper: bool) -> Any:
    """Returns a bound, or None for a number beyond all those of an integer dtype."""
    if type(bound) is not int or not is_arraylike(x):
        return bound
    dtype = typeof(x).dtype
    if not dtypes.is_integer(dtype):
        return bound
    limits = dtypes.iinfo(dtype)
    beyond = bound > limits.max if upper else bound < limits.min
    if beyond:
        return None
    dtypes.of_python(bound, dtype)
    # A Python number passes as one of the default dtype, which may be too small.
    return np.asarray(bound, dtype) if dtypes.is_unsigned(dtype) else bound


@library()
def _clipped(arr: Any, min: Any, max: Any) -> Array:
    given = [a for a in (arr, min, max) if a is not None]
    x, *bounds = promote_dtypes("clip", *given)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"clip: complex numbers have no order, got {x.aval}")
    if min is not None:
        x = table["max"].bind(*broadcast("clip", (x, bounds.pop(0))))
    if max is not None:
        x = table["min"].bind(*broadcast("clip", (x, bounds.pop(0))))
    return x


@library("copy")
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Any = None,
    neginf: Any = None,
) -> Array:
    """Replaces nan and infinities by numbers.

    Args:
      x: array-like.
      copy: without meaning; arrays never change.
      nan: what nan becomes.
      posinf: what inf becomes (default: the largest number).
      neginf: what -inf becomes (default: the smallest number).

    Returns:
      Array of the shape and dtype of `x`.

    Raises:
      ArgumentError: `x` is not an array.

    Example:
      >>> nan_to_num(np.array([1.0, np.nan, -np.inf]), nan=0.0, neginf=-9.0)
      Array([ 1.,  0., -9.], dtype=float32)

    Source: `numpy.nan_to_num`.
    """
    array = array_of(x, "nan_to_num")
    dtype = array.aval.dtype
    if dtypes.is_complex(dtype):
        parts = [
            nan_to_num(part, copy, nan, posinf, neginf)
            for part in (lax.real(array), lax.imag(array))
        ]
        return lax.complex(*parts)
    if not dtypes.is_floating(dtype):
        if dtypes.is_key(dtype):
            raise DtypeError(f"nan_to_num: takes numbers, got {array.aval}")
        return array
    limits = dtypes.finfo(dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf

    def value(number: Any) -> Any:
        if isinstance(number, int | float):
            return constant(number, dtype)
        return convert(array_of(number, "nan_to_num"), dtype)

    infinity = constant(float("inf"), dtype)
    array = choose_between(lax.ne(array, array), value(nan), array)
    array = choose_between(lax.eq(array, infinity), value(high), array)
    return choose_between(lax.eq(array, lax.neg(infinity)), value(low), array)
