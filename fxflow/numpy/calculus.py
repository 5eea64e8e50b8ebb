"""Differences, gradients, integrals and interpolation of sampled functions."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
)
from fxflow.numpy.arithmetic import absolute, remainder
from fxflow.numpy.index_functions import take
from fxflow.numpy.reductions import sum
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import ravel
from fxflow.numpy.sorting import searchsorted
from fxflow.transforms.custom_jvp import custom_jvp

# -- differences -----------------------------------------------------------------------


def _step(x: Any, axis: int) -> Any:
    """Returns the differences of neighbours along an axis."""
    n = x.aval.shape[axis]
    if not n:
        return x
    one = lax.slice_in_dim(x, 1, n, axis=axis)
    two = lax.slice_in_dim(x, 0, n - 1, axis=axis)
    if dtypes.is_bool(x.aval.dtype):
        return lax.ne(one, two)
    return lax.sub(one, two)


@library("n", "axis")
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Returns differences of neighbours along an axis.

    Args:
      a: array-like[...].
      n: how many times differences are taken.
      axis: the axis.
      prepend: array-like put before the first elements; a number is put before all.
      append: array-like put after the last elements.

    Returns:
      Array with `n` elements fewer along the axis.

    Raises:
      AxisError: the axis is out of range.
      ArgumentError: `n` is negative.
      ShapeError: `a` is a number.

    Example:
      >>> diff(np.array([1, 4, 9, 16]), n=2)
      Array([2, 2], dtype=int32)

    Source: `numpy.diff`.
    """
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    given = [a, *(p for p in (prepend, append) if p is not None)]
    array, *extra = promote_dtypes("diff", *given)
    if not array.aval.ndim:
        raise ShapeError("diff: a number has no neighbours: give an array with an axis")
    axis = canonical_axis("diff", axis, array.aval.ndim)
    if not n:
        return array
    edge = (*array.aval.shape[:axis], 1, *array.aval.shape[axis + 1 :])
    extra = [repeated(e, edge) if not e.aval.ndim else e for e in extra]
    parts = [array]
    if prepend is not None:
        parts.insert(0, extra.pop(0))
    parts += extra
    if len(parts) > 1:
        array = lax.concatenate(parts, axis)
    for _ in range(min(n, array.aval.shape[axis])):
        array = _step(array, axis)
    return array


@library()
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Returns differences of neighbouring elements, in one axis.

    Args:
      ary: array-like.
      to_end: array-like to put after the differences.
      to_begin: array-like to put before them.

    Returns:
      Array with one axis.

    Raises:
      ArgumentError: an argument is not an array.

    Example:
      >>> ediff1d(np.array([1, 4, 9]), to_end=np.array([0]))
      Array([3, 5, 0], dtype=int32)

    Source: `numpy.ediff1d`.
    """
    array = ravel(array_of(ary, "ediff1d"))
    dtype = array.aval.dtype
    parts = [_step(array, 0)]
    if to_begin is not None:
        parts.insert(0, convert(ravel(array_of(to_begin, "ediff1d")), dtype))
    if to_end is not None:
        parts.append(convert(ravel(array_of(to_end, "ediff1d")), dtype))
    return lax.concatenate(parts, 0)


@library("axis", "edge_order")
def gradient(
    f: ArrayLike, *varargs: Any, axis: Any = None, edge_order: int | None = None
) -> Any:
    """Returns derivatives of a sampled function, by central differences.

    Args:
      f: array-like[...]: values.
      *varargs: distance of the samples, one for all axes or one for each: a number, or
        array[n] of coordinates.
      axis: int or tuple of ints; None is all axes.
      edge_order: 1 or 2: order of the differences at the two ends.

    Returns:
      Array of the shape of `f`; a list of them, if there are several axes.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: the number of distances or `edge_order` is wrong.
      ShapeError: an axis is too short, or coordinates do not fit.

    Example:
      >>> gradient(np.array([1.0, 2.0, 4.0, 7.0]))
      Array([1. , 1.5, 2.5, 3. ], dtype=float32)

    Source: `numpy.gradient`.
    """
    (array,) = promote_inexact("gradient", f)
    ndim = array.aval.ndim
    axes = canonical_axes("gradient", axis, ndim)
    if edge_order not in (None, 1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(
            f"gradient: one distance or {len(axes)} are needed, got {len(varargs)}"
        )
    steps: list[Any] = list(varargs) or [1.0]
    if len(steps) == 1:
        steps *= len(axes)
    out = []
    for i, step in zip(axes, steps, strict=True):
        step = convert(array_of(step, "gradient"), dtypes.to_real(array.aval.dtype))
        if step.aval.ndim > 1 or (
            step.aval.ndim and step.aval.shape[0] != array.aval.shape[i]
        ):
            raise ShapeError(
                f"gradient: coordinates along axis {i} of {array.aval} must be a "
                f"number or as long as the axis, got {step.aval}"
            )
        if array.aval.shape[i] < (edge_order or 1) + 1:
            raise ShapeError(
                f"gradient: axis {i} of {array.aval} needs at least "
                f"{(edge_order or 1) + 1} elements"
            )
        out.append(_derivative(array, step, i, edge_order == 2))
    return out[0] if len(out) == 1 else out


def _derivative(f: Any, step: Any, axis: int, second: bool) -> Any:
    n, ndim = f.aval.shape[axis], f.aval.ndim

    def at(start: int, stop: int) -> Any:
        return lax.slice_in_dim(f, start, stop, axis=axis)

    if step.aval.ndim:
        shape = [1] * ndim
        shape[axis] = n - 1
        gaps = lax.reshape(_step(step, 0), tuple(shape))
    else:
        gaps = repeated(step, (1,) * axis + (n - 1,) + (1,) * (ndim - axis - 1))

    def gap(start: int, stop: int) -> Any:
        return convert(lax.slice_in_dim(gaps, start, stop, axis=axis), f.aval.dtype)

    parts = []
    if n > 2 and not step.aval.ndim:
        # The middle has no part in it, whatever it is.
        parts.append((at(2, n) - at(0, n - 2)) / convert(2 * step, f.aval.dtype))
    elif n > 2:
        a, b = gap(0, n - 2), gap(1, n - 1)
        left, middle, right = at(0, n - 2), at(1, n - 1), at(2, n)
        # Differences of second order for gaps a and b, as `numpy.gradient` has them.
        inner = (
            left * (-b / (a * (a + b)))
            + middle * ((b - a) / (a * b))
            + right * (a / (b * (a + b)))
        )
        parts.append(inner)
    if second:
        a, b = gap(0, 1), gap(1, 2)
        first = (
            at(0, 1) * (-(2 * a + b) / (a * (a + b)))
            + at(1, 2) * ((a + b) / (a * b))
            - at(2, 3) * (a / (b * (a + b)))
        )
        a, b = gap(n - 3, n - 2), gap(n - 2, n - 1)
        last = (
            at(n - 3, n - 2) * (b / (a * (a + b)))
            - at(n - 2, n - 1) * ((a + b) / (a * b))
            + at(n - 1, n) * ((2 * b + a) / (b * (a + b)))
        )
    else:
        first = (at(1, 2) - at(0, 1)) / gap(0, 1)
        last = (at(n - 1, n) - at(n - 2, n - 1)) / gap(n - 2, n - 1)
    return lax.concatenate([first, *parts, last], axis)


# -- integrals -------------------------------------------------------------------------


@library("axis")
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: Any = 1.0, axis: int = -1
) -> Array:
    """Integrates a sampled function by the trapezoidal rule.

    Args:
      y: array-like[...]: values.
      x: array-like of coordinates: one axis, or as many as `y` along the axis, and
        otherwise of a shape that broadcasts with that of `y`; None is evenly spaced.
      dx: the distance, if `x` is None.
      axis: the axis.

    Returns:
      Float array without the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: the coordinates have incompatible shapes.

    Example:
      >>> trapezoid(np.array([1.0, 2.0, 3.0]))
      Array(4., dtype=float32)

    Source: `numpy.trapezoid`.
    """
    given = axis
    if x is None:
        values, distance = promote_inexact("trapezoid", y, dx)
        axis = canonical_axis("trapezoid", axis, values.aval.ndim)
    else:
        values, points = promote_inexact("trapezoid", y, x)
        axis = canonical_axis("trapezoid", axis, values.aval.ndim)
        if points.aval.ndim == 1:
            shape = [1] * values.aval.ndim
            shape[axis] = points.aval.shape[0]
            points = lax.reshape(points, tuple(shape))
        along = canonical_axis("trapezoid", given, points.aval.ndim)
        if points.aval.shape[along] != values.aval.shape[axis]:
            raise ShapeError(
                f"trapezoid: coordinates {points.aval} do not fit axis {axis} of "
                f"{values.aval}"
            )
        distance = _step(points, along)
    n = values.aval.shape[axis]
    both = lax.slice_in_dim(values, min(1, n), n, axis=axis) + lax.slice_in_dim(
        values, 0, max(n - 1, 0), axis=axis
    )
    return sum(both * distance, axis=given) * 0.5


# -- interpolation ---------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Array:
    """Interpolates a sampled function of one variable linearly.

    Args:
      x: real array-like[...]: where.
      xp: real array-like[n], ascending: coordinates of the samples.
      fp: array-like[n]: their values.
      left: value below the first sample; None is the first value, "extrapolate" goes on
        along the line.
      right: value above the last sample, in the same way.
      period: of the function; `xp` need not be sorted then.

    Returns:
      Float array of the shape of `x`.

    Raises:
      ShapeError: `xp` and `fp` have not one axis of the same length.
      ArgumentError: `left` or `right` is another string.
      DtypeError: the coordinates are complex.

    Example:
      >>> interp(np.array([1.5]), np.array([1.0, 2.0]), np.array([10.0, 20.0]))
      Array([15.], dtype=float32)

    Source: `numpy.interp`.
    """
    for side in (left, right):
        if isinstance(side, str) and side != "extrapolate":
            raise ArgumentError(
                f'interp: left and right are numbers or "extrapolate", got {side!r}'
            )
    return _interp(x, xp, fp, left, right, period)


@library()
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Array:
    coords, points = promote_inexact("interp", x, xp)
    values = array_of(fp, "interp")
    if points.aval.ndim != 1 or values.aval.shape != points.aval.shape:
        raise ShapeError(
            "interp: xp and fp must have one axis of one length, got "
            f"{points.aval} and {values.aval}"
        )
    if not points.aval.size:
        raise ShapeError("interp: there are no samples")
    if dtypes.is_complex(coords.aval.dtype):
        raise DtypeError(f"interp: coordinates must be real, got {coords.aval}")
    (values,) = promote_inexact("interp", values)
    _, values = promote_dtypes("interp", points, values)
    dtype = values.aval.dtype
    n = points.aval.shape[0]
    if period is not None:
        width = absolute(convert(array_of(period, "interp"), coords.aval.dtype))
        coords, points = remainder(coords, width), remainder(points, width)
        order = lax.argsort(points)
        points, values = take(points, order), take(values, order)
        # One more sample on either side, a period away.
        points = lax.concatenate([points[-1:] - width, points, points[:1] + width], 0)
        values = lax.concatenate([values[-1:], values, values[:1]], 0)
        n += 2
    if n == 1:
        out = 0 * convert(coords, dtype) + values[0]
    else:
        i = searchsorted(points, coords, "right")
        # Beyond the samples the first and the last interval are extended.
        i = lax.min(lax.max(i, lax.full_like(i, 1)), lax.full_like(i, n - 1))
        x0, x1 = take(points, i - 1, mode="clip"), take(points, i, mode="clip")
        y0, y1 = take(values, i - 1, mode="clip"), take(values, i, mode="clip")
        # Nothing may be divided by an interval of no length, which would make
        # derivatives nan.
        flat = x1 - x0 == 0
        zero = lax.full_like(x0, 0)
        x, x0 = choose_between(flat, zero, coords), choose_between(flat, zero, x0)
        x1 = choose_between(flat, lax.full_like(x1, 1), x1)
        out = choose_between(flat, y0, _between(x, x0, x1, y0, y1))
    if period is not None:
        return out
    first, last = points[0], points[n - 1]
    if not isinstance(left, str):
        below = values[0] if left is None else convert(array_of(left, "interp"), dtype)
        out = choose_between(coords < first, below, out)
    if not isinstance(right, str):
        over = (
            values[n - 1]
            if right is None
            else convert(array_of(right, "interp"), dtype)
        )
        out = choose_between(coords > last, over, out)
    return out


@custom_jvp
def _between(x: Any, x0: Any, x1: Any, y0: Any, y1: Any) -> Array:
    """Returns the value at x of the line through two points."""
    out: Array = y0 + convert((x - x0) / (x1 - x0), y0.aval.dtype) * (y1 - y0)
    return out


@_between.defjvp
def _slope_between(primals: Any, tangents: Any) -> Any:
    x, x0, x1, y0, y1 = primals
    dx, dx0, dx1, dy0, dy1 = tangents
    dtype = y0.aval.dtype
    part = (x - x0) / (x1 - x0)
    # The slope before anything else: of points that are close together, neither the
    # inverse of the distance nor its square need be finite.
    slope = (y1 - y0) / convert(x1 - x0, dtype)
    along = convert(dx - dx0 - part * (dx1 - dx0), dtype)
    across = dy0 + convert(part, dtype) * (dy1 - dy0)
    return _between(*primals), across + slope * along


@library("axis")
def unwrap(
    p: ArrayLike, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi
) -> Array:
    """Takes jumps out of angles by adding whole periods.

    Args:
      p: real array-like[...].
      discont: least jump that is taken out; None is half a period.
      axis: the axis.
      period: of the angles.

    Returns:
      Array of the shape of `p`.

    Raises:
      AxisError: the axis is out of range.
      DtypeError: the angles are complex.

    Example:
      >>> unwrap(np.array([0, 1, 2, 7]), period=4)
      Array([0, 1, 2, 3], dtype=int32)

    Source: `numpy.unwrap`.
    """
    angles, width = promote_dtypes("unwrap", p, period)
    angles = convert(angles, angles.aval.dtype)
    if dtypes.is_complex(angles.aval.dtype):
        raise DtypeError(f"unwrap: angles must be real, got {angles.aval}")
    axis = canonical_axis("unwrap", axis, angles.aval.ndim)
    if not angles.aval.shape[axis]:
        return angles
    steps = _step(angles, axis)
    integer = dtypes.is_integer(angles.aval.dtype)
    half = width // 2 if integer else width / 2
    low = -half
    inside = remainder(steps - low, width) + low
    # A jump by exactly half a period keeps its direction.
    edge = (inside == low) & (steps > 0)
    if integer:
        edge = edge & (remainder(width, 2) == 0)
    inside = choose_between(edge, repeated(half, inside.aval.shape), inside)
    change = inside - steps
    least = half if discont is None else array_of(discont, "unwrap")
    change = choose_between(absolute(steps) < least, lax.full_like(change, 0), change)
    first = lax.slice_in_dim(angles, 0, 1, axis=axis)
    rest = lax.slice_in_dim(angles, 1, angles.aval.shape[axis], axis=axis)
    return lax.concatenate([first, rest + lax.cumsum(change, axis)], axis)
