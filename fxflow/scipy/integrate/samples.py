"""Integrals of samples by Simpson's rule and Romberg's."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, promote_inexact


def _widths(name: str, y: Any, x: Any, dx: Any, axis: Any) -> tuple[Array, Array, int]:
    """Returns samples with the axis last, distances that broadcast, and the axis.

    Raises:
      ShapeError: the coordinates have incompatible shapes, or there are no samples.
    """
    y, given = promote_inexact(name, y, dx if x is None else x)
    axis = canonical_axis(name, axis, y.aval.ndim)
    n = y.aval.shape[axis]
    y = fnp.moveaxis(y, axis, -1)
    if x is None:
        h = fnp.broadcast_to(given, (max(n - 1, 0),))
        return _some(name, y), h, axis
    if given.aval.ndim > 1:
        if given.aval.ndim != y.aval.ndim:
            raise ShapeError(
                f"{name}: x must be a vector or have the shape of y, got {given.aval}"
            )
        given = fnp.moveaxis(given, axis, -1)
    if given.aval.ndim < 1 or given.aval.shape[-1] != n:
        raise ShapeError(
            f"{name}: x must have {n} points along the axis, as y, got {given.aval}"
        )
    return _some(name, y), fnp.diff(given), axis


def _some(name: str, y: Array) -> Array:
    if not y.aval.shape[-1]:
        raise ShapeError(f"{name}: there must be at least one sample, got {y.aval}")
    return y


def _trapezoids(y: Array, h: Array) -> Array:
    """Returns the integral over each interval by the trapezoidal rule."""
    return h * (y[..., 1:] + y[..., :-1]) / 2


def _parts(y: Array, h: Array) -> tuple[Array, Array]:
    """Returns integrals of parabolas through three points, over their first interval.

    Also those over the second one. Each array has one element for three points.
    """
    a, b = h[..., :-1], h[..., 1:]
    left, middle, right = y[..., :-2], y[..., 1:-1], y[..., 2:]
    whole = a + b

    def first(a: Array, b: Array, near: Array, far: Array) -> Array:
        return (
            a
            / 6
            * (
                (3 - a / whole) * near
                + (3 + a * a / (b * whole) + a / whole) * middle
                - a * a / (b * whole) * far
            )
        )

    return first(a, b, left, right), first(b, a, right, left)


@library("axis")
def simpson(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrates samples by Simpson's rule, for any number of them.

    Args:
      y: array-like[...]: values.
      x: array-like of coordinates: one axis, or the shape of `y`; None is evenly
        spaced.
      dx: the distance, if `x` is None.
      axis: the axis.

    Returns:
      Float or complex array without the axis. With an even number of samples the last
      interval is that of the parabola through the last three.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: the coordinates have incompatible shapes, or there are no samples.

    Example:
      >>> simpson(np.array([0.0, 1.0, 4.0, 9.0]))
      Array(9., dtype=float32)

    Source: `scipy.integrate.simpson`; K. V. Cartwright, Simpson's Rule Cumulative
    Integration with MS Excel and Irregularly-spaced Data, 2017.
    """
    y, h, _ = _widths("simpson", y, x, dx, axis)
    n = y.aval.shape[-1]
    if n == 1:
        return fnp.zeros_like(y[..., 0])
    if n == 2:
        return _trapezoids(y, h)[..., 0]
    first, second = _parts(y, h)
    out = fnp.sum(first[..., ::2] + second[..., ::2], -1)
    return out if n % 2 else out + second[..., -1]


@library("axis", "initial")
def cumulative_trapezoid(
    y: ArrayLike,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    initial: int | None = None,
) -> Array:
    """Integrates samples from the first one to each, by the trapezoidal rule.

    Args:
      y: array-like[...]: values.
      x: array-like of coordinates: one axis, or the shape of `y`; None is evenly
        spaced.
      dx: the distance, if `x` is None.
      axis: the axis.
      initial: 0 for a result as long as `y`, which begins with it; None for one less.

    Returns:
      Float or complex array.

    Raises:
      ArgumentError: `initial` is neither.
      AxisError: an axis is out of range.
      ShapeError: the coordinates have incompatible shapes, or there are no samples.

    Example:
      >>> cumulative_trapezoid(np.array([0.0, 1.0, 2.0]), initial=0)
      Array([0. , 0.5, 2. ], dtype=float32)

    Source: `scipy.integrate.cumulative_trapezoid`.
    """
    if initial is not None and initial != 0:
        raise ArgumentError(
            f"cumulative_trapezoid: initial must be 0 or None, got {initial!r}"
        )
    y, h, axis = _widths("cumulative_trapezoid", y, x, dx, axis)
    out = fnp.cumsum(_trapezoids(y, h), -1)
    if initial is not None:
        zeros = fnp.zeros(_one(y), out.aval.dtype)
        out = fnp.concatenate([zeros, out], -1)
    return fnp.moveaxis(out, -1, axis)


def _one(x: Array) -> tuple[int, ...]:
    return (*x.aval.shape[:-1], 1)


@library("axis")
def cumulative_simpson(
    y: ArrayLike,
    *,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    initial: ArrayLike | None = None,
) -> Array:
    """Integrates samples from the first one to each, by Simpson's rule.

    Args:
      y: array-like[...]: values.
      x: array-like of ascending coordinates: one axis, or the shape of `y`; None is
        evenly spaced.
      dx: the distance, if `x` is None.
      axis: the axis.
      initial: a number, or array-like with 1 element along the axis, that is put first
        and added to the rest; None for a result that is one shorter than `y`.

    Returns:
      Float or complex array. Each interval is that of the parabola through its ends and
      the sample behind it, of the one before it for every second one. Two samples are
      integrated by the trapezoidal rule.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: the coordinates have incompatible shapes, or there are no samples.

    Example:
      >>> cumulative_simpson(np.array([0.0, 1.0, 4.0]), initial=0.0)
      Array([0.        , 0.33333334, 2.6666667 ], dtype=float32)

    Source: `scipy.integrate.cumulative_simpson`; K. V. Cartwright, 2017.
    """
    y, h, axis = _widths("cumulative_simpson", y, x, dx, axis)
    n = y.aval.shape[-1]
    if n < 3:
        parts = _trapezoids(y, h)
    else:
        first, second = _parts(y, h)
        even = first[..., ::2]
        odd = second[..., ::2]
        if n % 2 == 0:
            even = fnp.concatenate([even, second[..., -1:]], -1)
            odd = fnp.pad(odd, [(0, 0)] * (odd.aval.ndim - 1) + [(0, 1)])
            odd = odd[..., : even.aval.shape[-1]]
        lead, pairs = even.aval.shape[:-1], even.aval.shape[-1]
        parts = fnp.reshape(fnp.stack([even, odd], -1), (*lead, 2 * pairs))
        parts = parts[..., : n - 1]
    out = fnp.cumsum(parts, -1)
    if initial is not None:
        out, start = promote_inexact("cumulative_simpson", out, initial)
        if start.aval.ndim:
            start = fnp.moveaxis(start, axis, -1)
        start = fnp.broadcast_to(start, _one(out))
        out = fnp.concatenate([start, out + start], -1)
    return fnp.moveaxis(out, -1, axis)


@library("axis", "show")
def romb(
    y: ArrayLike, dx: ArrayLike = 1.0, axis: int = -1, show: bool = False
) -> Array:
    """Integrates 2^k + 1 evenly spaced samples by Romberg's method.

    Args:
      y: array-like[...]: values.
      dx: the distance between two.
      axis: the axis.
      show: must be False: nothing is printed.

    Returns:
      Float or complex array without the axis.

    Raises:
      ArgumentError: `show` is true.
      AxisError: an axis is out of range.
      ShapeError: the number of samples is another one.

    Example:
      >>> romb(np.array([0.0, 1.0, 4.0, 9.0, 16.0]))
      Array(21.333334, dtype=float32)

    Source: `scipy.integrate.romb`.
    """
    if show:
        raise ArgumentError("romb: show must be False: compiled programs print nothing")
    y, dx = promote_inexact("romb", y, dx)
    axis = canonical_axis("romb", axis, y.aval.ndim)
    y = fnp.moveaxis(y, axis, -1)
    n = y.aval.shape[-1] - 1
    if n < 1 or n & (n - 1):
        raise ShapeError(
            f"romb: the number of samples must be a power of 2 and one, got {n + 1}"
        )
    rows: list[Array] = []
    step = n
    while step:
        taken = y[..., ::step]
        inner = fnp.sum(taken[..., 1:-1], -1)
        new = [step * dx * ((taken[..., 0] + taken[..., -1]) / 2 + inner)]
        for k, before in enumerate(rows):
            new.append(new[-1] + (new[-1] - before) / (4 ** (k + 1) - 1))
        rows = new
        step //= 2
    return rows[-1]
