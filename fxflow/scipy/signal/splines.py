"""Splines on evenly spaced samples, by recursive filters that run both ways.

At both ends signals go on as their mirror images, with the sample at the end twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.ndimage._splines import taps
from fxflow.scipy.ndimage.filters import correlate1d
from fxflow.scipy.signal._recursions import known, recursion

#: Poles of the filters that make samples coefficients of splines, and their gains.
_CUBIC, _QUADRATIC = math.sqrt(3) - 2, 2 * math.sqrt(2) - 3
#: Smoother splines than this have complex poles.
_REAL = 1 / 144

_docs = shared("""
    Args:
      signal: float or complex array-like[..., n]: the samples.
      precision: has no effect: the mirror image is summed as far as the signal goes.

    Source: `scipy.signal.{name}`; M. Unser, Splines: A Perfect Fit for Signal and Image
    Processing, 1999.
""")


def _signal(name: str, x: Any, ndim: int | None = None) -> Array:
    """Returns samples of an inexact dtype.

    Raises:
      ShapeError: there is no axis, or there are not `ndim`; or there is no sample.
    """
    out: Array = promote_inexact(name, x)[0]
    if not out.aval.ndim or (ndim is not None and out.aval.ndim != ndim):
        want = "at least one axis" if ndim is None else f"{ndim} axes"
        raise ShapeError(f"{name}: the signal must have {want}, got {out.aval}")
    if not all(out.aval.shape[-(ndim or 1) :]):
        raise ShapeError(f"{name}: the signal has no samples: {out.aval}")
    return out


def _require_inside(name: str, what: str, value: Any) -> None:
    pole = known(value, name)
    if pole is not None and not (abs(pole) < 1).all():
        raise ArgumentError(
            f"{name}: {what} must be less than 1 in absolute value, got {pole}"
        )


# -- filters of two poles --------------------------------------------------------------


@library()
def _first_order(x: Array, c0: Any, z1: Any) -> Array:
    n = x.aval.shape[-1]
    z = fnp.asarray(z1).astype(x.aval.dtype)
    gain = fnp.asarray(c0).astype(x.aval.dtype)
    powers = fnp.cumprod(fnp.broadcast_to(z, (n,)))
    one, zero = fnp.ones_like(z), fnp.zeros_like(z)
    b, a = fnp.stack([one, zero]), fnp.stack([one, -z])
    start = fnp.sum(powers * x, -1, keepdims=True)
    forth, _ = recursion(b, a, x, start)
    back = gain * forth[..., ::-1]
    out, _ = recursion(b, a, back, back[..., :1] * z / (1 - z))
    return out[..., ::-1]


@_docs
def symiirorder1(
    signal: ArrayLike, c0: ArrayLike, z1: ArrayLike, precision: float = -1.0
) -> Array:
    """Filters a signal along the last axis by c0 / ((1 - z1 / z) (1 - z1 z)).

    Args:
      c0: a number.
      z1: a number, |z1| < 1.

    Returns:
      Array of the shape of `signal`.

    Raises:
      ArgumentError: |z1| is at least 1.
      ShapeError: there are no samples.

    Example:
      >>> symiirorder1(np.ones(4), 0.25, 0.5).round(3)
      Array([0.979, 0.989, 0.994, 0.996], dtype=float32)
    """
    name = "symiirorder1"
    _require_inside(name, "z1", z1)
    out: Array = _first_order(_signal(name, signal), c0, z1)
    return out


@library()
def _second_order(x: Array, r: Any, omega: Any) -> Array:
    n = x.aval.shape[-1]
    real = dtypes.to_real(x.aval.dtype)
    rho, turn = (fnp.asarray(v).astype(real) for v in (r, omega))
    square = rho * rho
    a2, a3 = 2 * rho * fnp.cos(turn), -square
    cs = 1 - a2 + square
    at = np.arange(n + 2)
    # The answer of one section, and that of both.
    one = cs * rho**at * fnp.sin(turn * (at + 1)) / fnp.sin(turn)
    size = cs * cs * (1 + square) / (1 - square)
    size = size / (1 - 2 * square * fnp.cos(2 * turn) + square * square)
    lean = (1 - square) / (1 + square) / fnp.tan(turn)
    both = size * rho**at * (fnp.cos(turn * at) + lean * fnp.sin(turn * at))

    def total(weights: Array, values: Array) -> Array:
        return fnp.sum(weights * values, -1, keepdims=True)

    before = total(one[:n], x)
    earlier = total(one[: n - 1], x[..., 1:])
    unit, none = fnp.ones_like(cs), fnp.zeros_like(cs)
    b = fnp.stack([cs, none, none]).astype(x.aval.dtype)
    a = fnp.stack([unit, -a2, -a3]).astype(x.aval.dtype)

    def state(last: Array, second: Array) -> Array:
        return fnp.concatenate([a2 * last + a3 * second, a3 * last], -1).astype(x.dtype)

    forth, _ = recursion(b, a, x, state(before, earlier))
    turned = x[..., ::-1]
    last = total(both[:n] + both[1 : n + 1], turned)
    if n == 1:
        return last.astype(x.aval.dtype)
    ahead = fnp.concatenate([both[1:2], both[: n - 1]])
    second = total(ahead + both[2 : n + 2], turned)
    rest, _ = recursion(b, a, forth[..., : n - 2][..., ::-1], state(second, last))
    return fnp.concatenate([rest[..., ::-1], second, last], -1).astype(x.aval.dtype)


@_docs
def symiirorder2(
    input: ArrayLike, r: ArrayLike, omega: ArrayLike, precision: float = -1.0
) -> Array:
    """Filters a signal along the last axis by two pairs of complex poles.

    The filter is the product of cs / (1 - a2 / z - a3 / z²), where a2 = 2 r cos(omega),
    a3 = -r² and cs = 1 - a2 - a3, and of the same one backward.

    Args:
      input: float or complex array-like[..., n]: the samples.
      r: a number below 1: the absolute value of the poles.
      omega: a number: their angle, not a multiple of π.

    Returns:
      Array of the shape of `input`.

    Raises:
      ArgumentError: r is at least 1.
      ShapeError: there are no samples.

    Special cases:
      SciPy ends the sums of the mirror image earlier: at both ends its values are up to
      1e-3 apart.

    Example:
      >>> symiirorder2(np.ones(40), 0.5, 1.0)[20].round(3)
      Array(1., dtype=float32)
    """
    name = "symiirorder2"
    _require_inside(name, "r", r)
    out: Array = _second_order(_signal(name, input), r, omega)
    return out


# -- coefficients ----------------------------------------------------------------------


def _poles(name: str, lamb: float) -> tuple[float, float]:
    """Returns the absolute value and the angle of a smoothing filter's poles."""
    root = math.sqrt(3 + 144 * lamb)
    xi = 1 - 96 * lamb + 24 * lamb * root
    angle = math.atan2(math.sqrt(144 * lamb - 1), math.sqrt(xi))
    size = (24 * lamb - 1 - math.sqrt(xi)) / (24 * lamb)
    return size * math.sqrt((48 * lamb + 24 * lamb * root) / xi), angle


def _through(x: Array, gain: float, pole: float) -> Array:
    """Returns the coefficients of splines through samples along the last axis."""
    # A single sample is a constant signal.
    out: Array = x if x.aval.shape[-1] == 1 else _first_order(x, gain, pole)
    return out


def _cubic(name: str, x: Array, lamb: Any) -> Array:
    """Returns the coefficients of cubic splines along the last axis."""
    lamb = float(lamb)
    if not lamb >= 0 or math.isinf(lamb):
        raise ArgumentError(f"{name}: lamb must not be negative, got {lamb}")
    if lamb <= _REAL:
        return _through(x, -6 * _CUBIC, _CUBIC)
    smooth: Array = (
        x if x.aval.shape[-1] == 1 else _second_order(x, *_poles(name, lamb))
    )
    return smooth


@_docs
def cspline1d(signal: ArrayLike, lamb: float = 0.0) -> Array:
    """Returns the coefficients of a cubic spline on evenly spaced samples.

    Args:
      signal: float or complex array-like[n]: the samples.
      lamb: how smooth the spline is: 0, through the samples, or more than 1 / 144.

    Returns:
      Array[n]; the samples are its convolution with [1, 4, 1] / 6.

    Raises:
      ArgumentError: `lamb` is negative, or positive and not above 1 / 144.
      ShapeError: `signal` is not a vector, or empty.

    Special cases:
      The first two of SciPy's coefficients with `lamb` differ: it exchanges two
      samples. A single sample is its own coefficient, unlike SciPy's.

    Example:
      >>> cspline1d_eval(cspline1d(np.array([1.0, 3.0, 2.0, 5.0] * 4)), 5.0).round(3)
      Array(3., dtype=float32)
    """
    name = "cspline1d"
    x = _signal(name, signal, 1)
    if 0 < lamb <= _REAL:
        raise ArgumentError(f"{name}: lamb must be 0 or above 1 / 144, got {lamb}")
    return _cubic(name, x, lamb)


@_docs
def qspline1d(signal: ArrayLike, lamb: float = 0.0) -> Array:
    """Returns the coefficients of a quadratic spline on evenly spaced samples.

    Args:
      signal: float or complex array-like[n]: the samples.
      lamb: must be 0.

    Returns:
      Array[n]; the samples are its convolution with [1, 6, 1] / 8.

    Raises:
      ArgumentError: `lamb` is not 0.
      ShapeError: `signal` is not a vector, or empty.

    Special cases:
      A single sample is its own coefficient, unlike SciPy's.

    Example:
      >>> qspline1d_eval(qspline1d(np.array([1.0, 3.0, 2.0, 5.0] * 4)), 5.0).round(3)
      Array(3., dtype=float32)
    """
    name = "qspline1d"
    if lamb != 0:
        raise ArgumentError(
            f"{name}: quadratic splines have no smoothing: lamb must be 0, got {lamb}"
        )
    return _through(_signal(name, signal, 1), -8 * _QUADRATIC, _QUADRATIC)


@_docs
def cspline2d(signal: ArrayLike, lamb: float = 0.0, precision: float = -1.0) -> Array:
    """Returns the coefficients of a cubic spline on a grid of samples.

    Args:
      signal: float or complex array-like[m, n]: the samples.
      lamb: how smooth the spline is; up to 1 / 144 it goes through the samples.

    Returns:
      Array[m, n].

    Raises:
      ArgumentError: `lamb` is negative.
      ShapeError: `signal` has not two axes, or is empty.

    Example:
      >>> cspline2d(np.ones((30, 30)))[10, 10].round(3)
      Array(1., dtype=float32)
    """
    name = "cspline2d"
    x = _signal(name, signal, 2)
    return _cubic(name, _cubic(name, x, lamb).T, lamb).T


@_docs
def qspline2d(signal: ArrayLike, lamb: float = 0.0, precision: float = -1.0) -> Array:
    """Returns the coefficients of a quadratic spline on a grid of samples.

    Args:
      signal: float or complex array-like[m, n]: the samples.
      lamb: must not be positive: there is no smoothing.

    Returns:
      Array[m, n].

    Raises:
      ArgumentError: `lamb` is positive.
      ShapeError: `signal` has not two axes, or is empty.

    Example:
      >>> qspline2d(np.ones((30, 30)))[10, 10].round(3)
      Array(1., dtype=float32)
    """
    name = "qspline2d"
    if lamb > 0:
        raise ArgumentError(
            f"{name}: quadratic splines have no smoothing: lamb must not be positive, "
            f"got {lamb}"
        )
    x = _signal(name, signal, 2)
    pole = (-8 * _QUADRATIC, _QUADRATIC)
    return _through(_through(x, *pole).T, *pole).T


# -- values ----------------------------------------------------------------------------


@library("order")
def _evaluated(c: Array, x: Array, order: int) -> Array:
    last = c.aval.shape[0] - 1
    turn = max(2 * last, 1)
    x = fnp.mod(x, turn)
    x = fnp.where(x > last, 2 * last - x, x)
    first, weights = taps(x, order)
    start = first.astype(np.int32)
    out: Any = 0.0
    for k, weight in enumerate(weights):
        out = out + c[fnp.clip(start + k, 0, last)] * weight
    return fnp.where(x == x, out, fnp.nan)


def _at(name: str, cj: Any, newx: Any, dx: Any, x0: Any, order: int) -> Array:
    c, x = promote_inexact(name, cj, newx)
    if c.aval.ndim != 1 or not c.aval.size:
        raise ShapeError(f"{name}: cj must be a vector of coefficients, got {c.aval}")
    out: Array = _evaluated(c, (fnp.real(x) - x0) / dx, order)
    return out


_docs_of_values = shared("""
    Args:
      cj: float or complex array-like[n], n > 0: the coefficients.
      newx: real array-like[*s]: places.
      dx: the distance of samples.
      x0: where the first sample is.

    Returns:
      Array[*s]; beyond the samples the spline goes on as its mirror image.

    Raises:
      ShapeError: `cj` is not a vector, or empty.

    Source: `scipy.signal.{name}`.
""")


@_docs_of_values
def cspline1d_eval(
    cj: ArrayLike, newx: ArrayLike, dx: ArrayLike = 1.0, x0: ArrayLike = 0
) -> Array:
    """Returns values of a cubic spline on evenly spaced samples.

    Example:
      >>> cspline1d_eval(np.array([0.0, 0.0, 6.0, 0.0, 0.0]), np.array([1.0, 2.0, 7.0]))
      Array([1., 4., 1.], dtype=float32)
    """
    return _at("cspline1d_eval", cj, newx, dx, x0, 3)


@_docs_of_values
def qspline1d_eval(
    cj: ArrayLike, newx: ArrayLike, dx: ArrayLike = 1.0, x0: ArrayLike = 0
) -> Array:
    """Returns values of a quadratic spline on evenly spaced samples.

    Example:
      >>> qspline1d_eval(np.array([0.0, 0.0, 8.0, 0.0, 0.0]), np.array([1.0, 2.0, 7.0]))
      Array([1., 6., 1.], dtype=float32)
    """
    return _at("qspline1d_eval", cj, newx, dx, x0, 2)


@library("n")
def gauss_spline(x: ArrayLike, n: int) -> Array:
    """Returns the bell curve that is near a B-spline.

    Args:
      x: array-like[...]: places.
      n: the order of the spline.

    Returns:
      Float array[...].

    Raises:
      ArgumentError: `n` is negative.

    Example:
      >>> gauss_spline(np.array([0.0, 1.0]), 3).round(3)
      Array([0.691, 0.154], dtype=float32)

    Source: `scipy.signal.gauss_spline`.
    """
    (x,) = promote_inexact("gauss_spline", x)
    square = (natural("gauss_spline", "n", n, 0) + 1) / 12
    return fnp.exp(-(x**2) / (2 * square)) / math.sqrt(2 * math.pi * square)


# -- images ----------------------------------------------------------------------------


@library()
def sepfir2d(input: ArrayLike, hrow: ArrayLike, hcol: ArrayLike) -> Array:
    """Filters an image along its rows and its columns; edges are mirrored.

    Args:
      input: float or complex array-like[m, n].
      hrow: array-like[k]: the filter along rows, k odd.
      hcol: array-like[l]: the filter along columns, l odd.

    Returns:
      Array[m, n].

    Raises:
      ShapeError: `input` has not two axes, or a filter is not a vector of odd length.

    Example:
      >>> sepfir2d(np.eye(3), np.array([1.0, 2.0, 1.0]), np.array([1.0]))
      Array([[3., 1., 0.],
             [1., 2., 1.],
             [0., 1., 3.]], dtype=float32)

    Source: `scipy.signal.sepfir2d`.
    """
    name = "sepfir2d"
    image, rows, columns = promote_inexact(name, input, hrow, hcol)
    if image.aval.ndim != 2:
        raise ShapeError(f"{name}: input must have two axes, got {image.aval}")
    for axis, what, taken in ((1, "hrow", rows), (0, "hcol", columns)):
        if taken.aval.ndim != 1 or taken.aval.size % 2 == 0:
            raise ShapeError(
                f"{name}: {what} must be a vector of odd length, got {taken.aval}"
            )
        image = correlate1d(image, taken[::-1], axis, None, "reflect")
    return image


def spline_filter(Iin: ArrayLike, lmbda: float = 5.0) -> Array:
    """Smooths an image by a cubic spline.

    Args:
      Iin: float or complex array-like[m, n].
      lmbda: how smooth it becomes.

    Returns:
      Array[m, n].

    Raises:
      ArgumentError: `lmbda` is negative.
      ShapeError: `Iin` has not two axes, or is empty.

    Example:
      >>> spline_filter(np.ones((30, 30)))[10, 10].round(3)
      Array(1., dtype=float32)

    Source: `scipy.signal.spline_filter`.
    """
    name = "spline_filter"
    image = _signal(name, Iin, 2)
    c = _cubic(name, _cubic(name, image, lmbda).T, lmbda).T
    row = np.array([1, 4, 1]) / 6
    h = fnp.asarray(row, dtypes.to_real(c.dtype))
    out: Array = sepfir2d(c, h, h)
    return out
