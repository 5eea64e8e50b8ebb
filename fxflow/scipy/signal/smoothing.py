"""Smoothing by local polynomials, and the analytic signal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, integer, natural, number, pair
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.ndimage.filters import correlate1d
from fxflow.scipy.ndimage.rank_filters import median_filter, rank_filter
from fxflow.scipy.signal.resampling import resample

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
      ArgumentError: a length or degree does not fit, or the mode is unknown.
      AxisError: an axis is out of range.
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
      AxisError: an axis is out of range.
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


def _kernel(name: str, what: str, value: Any, ndim: int) -> list[int]:
    sizes = [3 if value is None else value] * ndim
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        sizes = list(value)
    if len(sizes) != ndim:
        raise ArgumentError(
            f"{name}: {what} must be one odd number or {ndim}, got {value!r}"
        )
    return [natural(name, what, n) for n in sizes]


def medfilt(volume: ArrayLike, kernel_size: Any = None) -> Array:
    """Returns the medians of neighbourhoods; zeros are beyond the edges.

    Args:
      volume: real array-like[...].
      kernel_size: the neighbourhood's length along each axis, odd: one or one for each
        axis; None is 3.

    Returns:
      Array of the shape and dtype of `volume`.

    Raises:
      ArgumentError: a size is even, or there are not as many as axes.
      DtypeError: `volume` is complex.

    Example:
      >>> medfilt(np.array([3.0, 9.0, 4.0, 5.0], np.float32))
      Array([3., 4., 5., 4.], dtype=float32)

    Source: `scipy.signal.medfilt`.
    """
    return _medians("medfilt", volume, kernel_size)


def medfilt2d(input: ArrayLike, kernel_size: Any = 3) -> Array:
    """Returns the medians of neighbourhoods of an image.

    Args:
      input: real array-like[m, n].
      kernel_size: the neighbourhood's lengths, odd: one or two.

    Returns:
      Array[m, n] of the dtype of `input`.

    Raises:
      ArgumentError: a size is even.
      ShapeError: there are not two axes.

    Example:
      >>> medfilt2d(np.ones((2, 3), np.float32), (1, 3))
      Array([[1., 1., 1.],
             [1., 1., 1.]], dtype=float32)

    Source: `scipy.signal.medfilt2d`.
    """
    if fnp.ndim(input) != 2:
        raise ShapeError(f"medfilt2d: input must have two axes, got {fnp.ndim(input)}")
    return _medians("medfilt2d", input, kernel_size)


def _medians(name: str, x: Any, kernel_size: Any) -> Array:
    sizes = _kernel(name, "kernel_size", kernel_size, fnp.ndim(x))
    if not all(n % 2 for n in sizes):
        raise ArgumentError(f"{name}: kernel_size must be odd, got {kernel_size!r}")
    return median_filter(x, tuple(sizes), mode="constant")


@library("mysize")
def _wiener(x: Any, mysize: Any, noise: Any) -> Array:
    (x,) = promote_inexact("wiener", x)
    size = float(np.prod(mysize))

    def mean(v: Array) -> Array:
        for axis, n in enumerate(mysize):
            ones = fnp.ones(n, dtypes.to_real(v.aval.dtype))
            v = correlate1d(v, ones, axis, None, "constant")
        return v / size

    level = mean(x)
    spread = mean(x * x) - level * level
    noise = fnp.mean(spread) if noise is None else fnp.asarray(noise, x.aval.dtype)
    calm = spread < noise
    share = 1 - noise / fnp.where(calm, 1, spread)
    return fnp.where(calm, level, level + (x - level) * share)


def wiener(im: ArrayLike, mysize: Any = None, noise: ArrayLike | None = None) -> Array:
    """Smooths where a neighbourhood varies as little as noise.

    Args:
      im: float array-like[...].
      mysize: the neighbourhood's length along each axis: one or one for each axis; None
        is 3.
      noise: the noise's variance; None is the mean of the neighbourhoods' variances.

    Returns:
      Float array of the shape of `im`.

    Raises:
      ArgumentError: a size is not positive, or there are not as many as axes.

    Example:
      >>> wiener(np.array([0.0, 0.0, 6.0, 6.0, 6.0], np.float32), 3, 1.0).round(2)
      Array([0.  , 0.25, 5.75, 6.  , 5.75], dtype=float32)

    Source: `scipy.signal.wiener`.
    """
    return _wiener(im, tuple(_kernel("wiener", "mysize", mysize, fnp.ndim(im))), noise)


def envelope(
    z: ArrayLike,
    bp_in: tuple[int | None, int | None] = (1, None),
    *,
    n_out: int | None = None,
    squared: bool = False,
    residual: str | None = "lowpass",
    axis: int = -1,
) -> Array:
    """Returns a signal's envelope: the magnitude of its analytic signal in a band.

    Args:
      z: array-like[...]: the signal.
      bp_in: the band: the first bin of the spectrum and the one after the last; None is
        the end of the spectrum.
      n_out: number of samples of the result; None: that of `z`.
      squared: whether the result is the envelope's square.
      residual: what else is returned: "lowpass", what lies below the band; "all", all
        that is outside of it; None for nothing.
      axis: the axis of time.

    Returns:
      Array[2, ...] of the envelope and the residual, or the envelope alone.

    Raises:
      ArgumentError: the band or `n_out` does not fit, or there is no such residual.
      AxisError: an axis is out of range.

    Example:
      >>> t = np.arange(32) * np.pi / 4
      >>> envelope(np.cos(t), residual=None).round(3)[:3]
      Array([1., 1., 1.], dtype=float32)

    Source: `scipy.signal.envelope`.
    """
    name = "envelope"
    (x,) = promote_inexact(name, z)
    axis = canonical_axis(name, axis, x.ndim)
    n = x.shape[axis]
    count = natural(name, "n_out", n if n_out is None else n_out)
    if residual not in ("lowpass", "all", None):
        raise ArgumentError(
            f'{name}: residual must be "lowpass", "all" or None, got {residual!r}'
        )
    low, high = pair(name, "bp_in", bp_in)
    low = -(n // 2) if low is None else integer(name, "bp_in[0]", low)
    high = (n + 1) // 2 if high is None else integer(name, "bp_in[1]", high)
    if not -n // 2 <= low < high <= (n + 1) // 2:
        raise ArgumentError(
            f"{name}: bp_in must be a pair that ascends from {-n // 2} to "
            f"{(n + 1) // 2}, got {bp_in!r}"
        )
    out = _enveloped(x, low, high, count, bool(squared), residual, axis)
    return out


@library("low", "high", "count", "squared", "residual", "axis")
def _enveloped(
    x: Any, low: int, high: int, count: int, squared: bool, residual: Any, axis: int
) -> Array:
    real = not dtypes.is_complex(x.aval.dtype)
    x = fnp.moveaxis(x, axis, -1)
    n = x.aval.shape[-1]
    # Bins as SciPy's slices see them: from 0, those below 0 at the end.
    bins = np.arange(n)
    spectrum = fnp.fft.fft(x)
    if real:
        # Only those above 0 are kept: twice of them where the band begins there.
        weights = np.where(bins <= n // 2, 1.0, 0.0)
        if low > 0:
            weights[low:high] *= 2
        elif high > 0:
            weights[1:high] *= 2
        spectrum = spectrum * fnp.asarray(weights, x.aval.dtype)
    scale = count / n
    if low <= 0 < high:
        order = np.fft.fftshift(bins)[low + n // 2 : high + n // 2]
    else:
        order = bins[low:high]
    band = fnp.fft.ifft(spectrum[..., order], count) * scale
    square = fnp.square(fnp.real(band)) + fnp.square(fnp.imag(band))
    out = square if squared else fnp.abs(band)
    out = fnp.moveaxis(out, -1, axis)
    if residual is None:
        return out
    keep = np.ones(n)
    keep[order] = 0
    if residual == "lowpass":
        if high > 0:
            keep[high : (n + 1) // 2] = 0
        else:
            keep[low:] = 0
            keep[: (n + 1) // 2] = 0
    rest = spectrum * fnp.asarray(keep, dtypes.to_real(x.aval.dtype))
    if not real:
        left = resample(rest, count, axis=-1, domain="freq")
        return fnp.stack([out, fnp.moveaxis(left, -1, axis)])
    m = min(n, count)
    factor = np.ones(n)
    if count != n and m % 2 == 0:
        factor[m // 2] = 2 if count < n else 0.5
    half = (rest * fnp.asarray(factor, x.aval.dtype))[..., : n // 2 + 1]
    left = fnp.fft.irfft(half, count) * scale
    return fnp.stack([out, fnp.moveaxis(left, -1, axis)])


def hilbert2(x: ArrayLike, N: Any = None, axes: tuple[int, int] = (-2, -1)) -> Array:
    """Returns the analytic signal of an image, in one quadrant of the frequencies.

    Args:
      x: real array-like[..., m, n].
      N: the lengths of the transforms, one or a pair; None is those of `x`.
      axes: the two axes.

    Returns:
      Complex array, `N` long along the axes.

    Raises:
      ArgumentError: `N` is not positive, or neither one nor two, or the axes are not
        two different ones.
      AxisError: an axis is out of range.
      DtypeError: `x` is complex.

    Example:
      >>> hilbert2(np.ones((2, 2), np.float32)).real
      Array([[1., 1.],
             [1., 1.]], dtype=float32)

    Source: `scipy.signal.hilbert2`.
    """
    name = "hilbert2"
    (x,) = promote_inexact(name, fnp.atleast_2d(fnp.asarray(x)))
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"{name}: x must be real, got {x.aval}")
    along = tuple(canonical_axis(name, axis, x.aval.ndim) for axis in axes)
    if len(along) != 2 or along[0] == along[1]:
        raise ArgumentError(f"{name}: axes must be two different axes, got {axes}")
    if N is None:
        N = tuple(x.aval.shape[axis] for axis in along)
    both = N if isinstance(N, tuple | list) else (N, N)
    if len(both) != 2:
        raise ArgumentError(f"{name}: N must be a number or a pair, got {N!r}")
    lengths = [natural(name, "N", n) for n in both]
    spectrum = fnp.fft.fftn(x, lengths, along)
    for axis, n in zip(along, lengths, strict=True):
        gain = np.zeros(n, x.aval.dtype)
        gain[: (n + 1) // 2] = 2
        gain[0] = 1
        shape = [n if i == axis else 1 for i in range(x.aval.ndim)]
        spectrum = spectrum * gain.reshape(shape)
    return fnp.fft.ifftn(spectrum, lengths, along)


def order_filter(a: ArrayLike, domain: ArrayLike, rank: int) -> Array:
    """Returns the elements of a rank in neighbourhoods; zeros are beyond the edges.

    Args:
      a: real array-like[...].
      domain: array-like of the same rank, of odd lengths: not 0 where an element is of
        the neighbourhood.
      rank: 0 is the least element.

    Returns:
      Array of the shape and dtype of `a`.

    Raises:
      ArgumentError: a length of `domain` is even, or there is no such rank.
      DtypeError: `a` is complex.

    Example:
      >>> order_filter(np.array([3.0, 9.0, 4.0], np.float32), np.ones(3), 2)
      Array([9., 9., 9.], dtype=float32)

    Source: `scipy.signal.order_filter`.
    """
    where = np.asarray(domain) != 0
    shape = where.shape
    if any(n % 2 == 0 for n in shape):
        raise ArgumentError(
            f"order_filter: domain must have odd lengths, got the shape {shape}"
        )
    return rank_filter(a, rank, footprint=where, mode="constant")
