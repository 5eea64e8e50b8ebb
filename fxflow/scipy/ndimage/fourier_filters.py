"""Filters of the Fourier coefficients of an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, integer
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.ndimage.filters import _each, _result
from fxflow.scipy.special import j1

_docs = shared("""
    Args:
      input: array-like[...]: Fourier coefficients.
      n: -1, `input` is a complex transform; else it is that of real numbers, whose axis
        `axis` was `n` long.
      axis: axis of a transform of real numbers.
      output: dtype of the result; None: that of the product.

    Returns:
      Float or complex array of the shape of `input`.

    Raises:
      ArgumentError: there are neither one nor as many numbers as axes, or `output` is
        an array.
      AxisError: an axis is out of range.

    Source: `scipy.ndimage.{name}`.
""")


def _numbers(name: str, what: str, value: Any, x: Array) -> list[Array]:
    """Returns a number for each axis, of the precision of an array."""
    real = dtypes.to_real(x.aval.dtype)
    given = _each(name, what, value, x.aval.ndim)
    out = [fnp.asarray(v, real) for v in given]
    for one in out:
        if one.aval.ndim:
            raise ArgumentError(
                f"{name}: {what} must be one number or {x.aval.ndim}, one for each "
                f"axis, got {one.aval}"
            )
    return out


def _frequencies(
    name: str, x: Array, n: Any, axis: Any, along: int, signed: bool = False
) -> tuple[np.ndarray[Any, Any], int]:
    """Returns the waves of each coefficient of an axis, and of how many elements."""
    length = x.aval.shape[along]
    k = np.arange(length, dtype=float)
    half = integer(name, "n", n)
    if half >= 0 and canonical_axis(name, axis, x.aval.ndim) == along:
        return k, half
    # `signed`: the middle one of an even number is a negative frequency.
    middle = (length + 1) // 2 if signed else length // 2 + 1
    return np.where(k < middle, k, k - length), length


def _filtered(
    name: str,
    input: Any,
    n: Any,
    axis: Any,
    output: Any,
    what: str,
    value: Any,
    factor: Callable[[Any, Any], Any],
    signed: bool = False,
) -> Array:
    """Multiplies coefficients by a factor for each axis.

    Args:
      name: of the function, for messages.
      input: the coefficients.
      n: see the functions.
      axis: likewise.
      output: likewise.
      what: the name of the argument that has a number for each axis.
      value: the argument.
      factor: the factors of an axis, of frequencies in waves an element and a number.
      signed: whether the middle of an even number of frequencies is a negative one.
    """
    (x,) = promote_inexact(name, input)
    axis = canonical_axis(name, axis, x.aval.ndim) if x.aval.ndim else 0
    numbers = _numbers(name, what, value, x)
    out = x
    for along, number in enumerate(numbers):
        waves, length = _frequencies(name, x, n, axis, along, signed)
        real = dtypes.to_real(x.aval.dtype)
        f = fnp.asarray(waves / max(length, 1), real)
        factors = factor(f, number)
        if dtypes.is_complex(factors.aval.dtype):
            out = convert(out, dtypes.to_complex(out.aval.dtype))
        shape = [1] * x.aval.ndim
        shape[along] = x.aval.shape[along]
        out = out * fnp.reshape(convert(factors, out.aval.dtype), shape)
    return _result(name, out, output)


@library("n", "axis", "output")
@_docs
def fourier_gaussian(
    input: ArrayLike,
    sigma: Any,
    n: int = -1,
    axis: int = -1,
    output: Any = None,
) -> Array:
    """Multiplies coefficients by those of a Gaussian.

    Args:
      sigma: standard deviation in elements, a number or one for each axis; it may be
        traced and differentiated.

    Example:
      >>> spectrum = fnp.fft.fft(np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
      >>> fnp.fft.ifft(fourier_gaussian(spectrum, 1.0)).real.round(2)
      Array([0.06, 0.24, 0.4 , 0.24, 0.06], dtype=float32)
    """

    def factor(f: Any, sigma: Any) -> Any:
        return fnp.exp(-2 * np.pi**2 * fnp.square(f * sigma))

    return _filtered("fourier_gaussian", input, n, axis, output, "sigma", sigma, factor)


@library("n", "axis", "output")
@_docs
def fourier_uniform(
    input: ArrayLike,
    size: Any,
    n: int = -1,
    axis: int = -1,
    output: Any = None,
) -> Array:
    """Multiplies coefficients by those of a box.

    Args:
      size: size of the box in elements, a number or one for each axis; it may be traced
        and differentiated.

    Example:
      >>> spectrum = fnp.fft.fft(np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
      >>> fnp.fft.ifft(fourier_uniform(spectrum, 3)).real.round(2)
      Array([0.02, 0.31, 0.34, 0.31, 0.02], dtype=float32)
    """

    def factor(f: Any, size: Any) -> Any:
        return fnp.sinc(f * size)

    return _filtered("fourier_uniform", input, n, axis, output, "size", size, factor)


@library("n", "axis", "output")
@_docs
def fourier_shift(
    input: ArrayLike,
    shift: Any,
    n: int = -1,
    axis: int = -1,
    output: Any = None,
) -> Array:
    """Multiplies coefficients so that the array is moved.

    Args:
      shift: by how many elements, a number or one for each axis; it may be traced and
        differentiated.

    Returns:
      Complex array of the shape of `input`.

    Example:
      >>> spectrum = fnp.fft.fft(np.array([0.0, 1.0, 0.0, 0.0]))
      >>> abs(fnp.fft.ifft(fourier_shift(spectrum, 2))).round(2)
      Array([0., 0., 0., 1.], dtype=float32)
    """

    def factor(f: Any, shift: Any) -> Any:
        angle = -2 * np.pi * (f * shift)
        return lax.complex(lax.cos(angle), lax.sin(angle))

    return _filtered(
        "fourier_shift", input, n, axis, output, "shift", shift, factor, signed=True
    )


def _disc(square: Array) -> Array:
    """Returns 2 J₁(r) / r of r²."""
    zero = square == 0
    r = fnp.sqrt(fnp.where(zero, 1, square))
    return fnp.where(zero, 1, 2 * j1(r) / r)


def _ball(square: Array) -> Array:
    """Returns 3 (sin r - r cos r) / r³ of r²."""
    near = square < 1
    r = fnp.sqrt(fnp.where(near, 1, square))
    far = 3 * (fnp.sin(r) - r * fnp.cos(r)) / (r * r * r)
    series = fnp.zeros_like(square)
    small = fnp.where(near, square, 0)
    for k in range(9, -1, -1):
        term = 3 * (-1) ** k * (2 * k + 2) / math.factorial(2 * k + 3)
        series = series * small + term
    return fnp.where(near, series, far)


@library("n", "axis", "output")
@_docs
def fourier_ellipsoid(
    input: ArrayLike,
    size: Any,
    n: int = -1,
    axis: int = -1,
    output: Any = None,
) -> Array:
    """Multiplies coefficients by those of an interval, an ellipse or an ellipsoid.

    Args:
      input: array-like of one, two or three axes: Fourier coefficients.
      size: the lengths of its axes in elements, a number or one for each; it may be
        traced and differentiated.

    Raises:
      ShapeError: `input` has more than three axes, or none.

    Example:
      >>> fourier_ellipsoid(np.ones((2, 2)), 1.0).round(3)
      Array([[1.   , 0.722],
             [0.722, 0.498]], dtype=float32)
    """
    name = "fourier_ellipsoid"
    (x,) = promote_inexact(name, input)
    ndim = x.aval.ndim
    if ndim not in (1, 2, 3):
        raise ShapeError(f"{name}: takes one, two or three axes, got {x.aval}")
    axis = canonical_axis(name, axis, ndim)
    square = fnp.zeros(x.aval.shape, dtypes.to_real(x.aval.dtype))
    for along, number in enumerate(_numbers(name, "size", size, x)):
        waves, length = _frequencies(name, x, n, axis, along)
        f = np.expand_dims(
            waves / max(length, 1), [k for k in range(ndim) if k != along]
        )
        angle = np.pi * number * fnp.asarray(f, square.aval.dtype)
        square = square + angle * angle
    if ndim == 1:
        factors = fnp.sinc(angle / np.pi)
    else:
        factors = _disc(square) if ndim == 2 else _ball(square)
    return _result(name, x * convert(factors, x.aval.dtype), output)
