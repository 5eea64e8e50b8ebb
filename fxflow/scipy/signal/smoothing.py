"""Smoothing by local polynomials, and the analytic signal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.ndimage.filters import correlate1d

_MODES = ("mirror", "constant", "nearest", "wrap", "interp")


def _weights(
    name: str, window_length: Any, polyorder: Any, deriv: Any, delta: float, pos: Any
) -> Any:
    """Returns what the samples of a window are multiplied by and added."""
    n = natural(name, "window_length", window_length)
    order = natural(name, "polyorder", polyorder, 0)
    deriv = natural(name, "deriv", deriv, 0)
    if order >= n:
        raise ArgumentError(
            f"{name}: polyorder must be less than window_length, got {order} and {n}"
        )
    middle = (n - 1) / 2 if pos is None else number(name, "pos", pos)
    if pos is not None and not 0 <= middle < n:
        raise ArgumentError(f"{name}: pos must lie in 0 … {n - 1}, got {pos}")
    if deriv > order:
        return np.zeros(n)
    # In a unit of half the window the powers have like sizes.
    scale = max(n / 2, 1.0)
    x = (np.arange(n) - middle) / scale
    powers = x ** np.arange(order + 1)[:, None]
    row = np.linalg.pinv(powers.T)[deriv]
    return row * (math.factorial(deriv) / (delta * scale) ** deriv)


def savgol_coeffs(
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    pos: float | None = None,
    use: str = "conv",
) -> Array:
    """Returns the coefficients of a filter that fits a polynomial to each window.

    Args:
      window_length: number of samples in a window.
      polyorder: degree of the polynomial, less than `window_length`.
      deriv: which derivative is evaluated; 0 is the polynomial.
      delta: the distance of samples.
      pos: where in the window it is evaluated; None is its middle.
      use: "conv", for a convolution, or "dot", for a product with the window.

    Returns:
      Float array[window_length], computed on the host.

    Raises:
      ArgumentError: a length or degree does not fit, or there is no such `use`.

    Example:
      >>> savgol_coeffs(3, 1)
      Array([0.33333334, 0.33333334, 0.33333334], dtype=float32)

    Source: `scipy.signal.savgol_coeffs`. A. Savitzky and M. J. E. Golay, Smoothing and
    Differentiation of Data by Simplified Least Squares Procedures, 1964.
    """
    if use not in ("conv", "dot"):
        raise ArgumentError(f'savgol_coeffs: use must be "conv" or "dot", got {use!r}')
    row = _weights("savgol_coeffs", window_length, polyorder, deriv, delta, pos)
    return fnp.asarray(row[::-1].copy() if use == "conv" else row)


@library(*("window_length", "polyorder", "deriv", "delta", "axis", "mode"))
def savgol_filter(
    x: ArrayLike,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: ArrayLike = 0.0,
) -> Array:
    """Smooths a signal by a polynomial fitted to each window.

    Args:
      x: array-like[...]: the signal.
      window_length: number of samples in a window.
      polyorder: degree of the polynomial, less than `window_length`.
      deriv: which derivative is evaluated; 0 is the polynomial.
      delta: the distance of samples.
      axis: the axis of time.
      mode: the ends: "interp", the polynomials of the first and last window; "mirror",
        "nearest", "wrap" or "constant", as in `scipy.ndimage`.
      cval: a number, for "constant".

    Returns:
      Float or complex array of the shape of `x`.

    Raises:
      ArgumentError: a length or degree does not fit, or there is no such mode.
      AxisError: there is no such axis.
      ShapeError: for "interp" the signal is shorter than a window.

    Example:
      >>> savgol_filter(np.arange(5.0), 3, 1)
      Array([0., 1., 2., 3., 4.], dtype=float32)

    Source: `scipy.signal.savgol_filter`.
    """
    name = "savgol_filter"
    if mode not in _MODES:
        listed = ", ".join(f'"{m}"' for m in _MODES)
        raise ArgumentError(f"{name}: mode must be one of {listed}, got {mode!r}")
    (x,) = promote_inexact(name, x)
    axis = canonical_axis(name, axis, x.aval.ndim)
    n, length = x.aval.shape[axis], window_length
    row = _weights(name, length, polyorder, deriv, delta, None)
    if mode == "interp" and n < length:
        raise ShapeError(
            f'{name}: mode="interp" needs at least window_length = {length} samples, '
            f"got {n}"
        )
    dtype = dtypes.to_real(x.aval.dtype)
    weights = fnp.asarray(row, dtype)
    # An even window's middle lies between two samples: as a convolution places it.
    origin = 0 if length % 2 else -1
    if mode != "interp":
        return correlate1d(x, weights, axis, None, mode, cval, origin)
    out = correlate1d(x, weights, axis, None, "nearest", 0.0, origin)
    out = fnp.moveaxis(out, axis, -1)
    lines = fnp.moveaxis(x, axis, -1)
    half = length // 2
    if not half:
        return fnp.moveaxis(out, -1, axis)

    def fitted(places: range) -> Array:
        rows = [_weights(name, length, polyorder, deriv, delta, p) for p in places]
        return fnp.asarray(np.stack(rows).T, dtype)

    before, after = fitted(range(half)), fitted(range(length - half, length))
    first = fnp.matmul(lines[..., :length], before, precision="highest")
    last = fnp.matmul(lines[..., n - length :], after, precision="highest")
    out = fnp.concatenate([first, out[..., half : n - half], last], -1)
    return fnp.moveaxis(out, -1, axis)


@library("N", "axis")
def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """Returns the analytic signal, whose negative frequencies are 0.

    Args:
      x: real array-like[...]: the signal.
      N: number of points of the transforms; None is the signal's.
      axis: the axis of time.

    Returns:
      Complex array, `N` long along the axis: the signal, and 90° behind it as the
      imaginary part.

    Raises:
      ArgumentError: `N` is not positive.
      AxisError: there is no such axis.
      DtypeError: `x` is complex.

    Example:
      >>> abs(hilbert(np.cos(np.arange(4) * np.pi / 2)).round(3))
      Array([1., 1., 1., 1.], dtype=float32)

    Source: `scipy.signal.hilbert`.
    """
    (x,) = promote_inexact("hilbert", x)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"hilbert: x must be real, got {x.aval}")
    axis = canonical_axis("hilbert", axis, x.aval.ndim)
    n = natural("hilbert", "N", x.aval.shape[axis] if N is None else N)
    spectrum = fnp.fft.fft(x, n, axis)
    gain = np.zeros(n)
    gain[0] = 1
    gain[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        gain[n // 2] = 1
    shape = [1] * x.aval.ndim
    shape[axis] = n
    return fnp.fft.ifft(spectrum * gain.reshape(shape).astype(x.aval.dtype), n, axis)
