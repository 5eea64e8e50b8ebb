"""Signals at other rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact
from fxflow.scipy.signal._polyphase import polyphase
from fxflow.scipy.signal._windows import window_of
from fxflow.scipy.signal.filter_design import cheby1
from fxflow.scipy.signal.filtering import sosfilt, sosfiltfilt
from fxflow.scipy.signal.fir_design import firwin

# -- filters between two rates ---------------------------------------------------------

# What numpy.pad calls the ways in which a signal goes on.
_MODES = {
    "constant": "constant",
    "symmetric": "symmetric",
    "reflect": "reflect",
    "wrap": "wrap",
    "edge": "edge",
}
_LEVELS: dict[str, Any] = {
    "mean": fnp.mean,
    "median": fnp.median,
    "minimum": fnp.min,
    "maximum": fnp.max,
}


@library("up", "down", "axis", "mode")
def upfirdn(
    h: ArrayLike,
    x: ArrayLike,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: ArrayLike = 0,
) -> Array:
    """Puts zeros between samples, filters, and keeps one sample of several.

    Only products that count are computed. It is differentiable in `h`, `x` and `cval`.

    Args:
      h: float or complex array-like[m]: the filter's coefficients.
      x: array-like[...]: the signal.
      up: how many samples one becomes, the others being 0.
      down: of how many samples one is kept.
      axis: the axis of time.
      mode: how the signal goes on at its ends: "constant", `cval`; "edge", the last
        sample; "symmetric", "reflect" or "wrap", as in `numpy.pad`.
      cval: a number.

    Returns:
      Float or complex array with ceil(((n - 1) up + m) / down) samples along `axis`.

    Raises:
      ArgumentError: `up` or `down` is not positive, or the mode is unknown.
      ShapeError: `h` is not a vector.

    Example:
      >>> upfirdn(np.array([1.0, 1.0]), np.array([1.0, 2.0]), 2)
      Array([1., 1., 2., 2.], dtype=float32)

    Source: `scipy.signal.upfirdn`.
    """
    name = "upfirdn"
    h, x = promote_inexact(name, h, x)
    up, down = natural(name, "up", up), natural(name, "down", down)
    if h.aval.ndim != 1 or not h.aval.size:
        raise ShapeError(f"{name}: h must be a vector of coefficients, got {h.aval}")
    if mode not in _MODES:
        known = ", ".join(f'"{m}"' for m in _MODES)
        raise ArgumentError(f"{name}: mode must be one of {known}, got {mode!r}")
    axis = canonical_axis(name, axis, x.aval.ndim)
    x = fnp.moveaxis(x, axis, -1)
    n, taps = x.aval.shape[-1], h.aval.size
    if not n:
        raise ShapeError(f"{name}: x must have samples along the axis, got {x.aval}")
    total = (n - 1) * up + taps
    # Samples beyond the ends that the filter sees, unless they are 0.
    before, after = -(-(taps - 1) // up), -(-(taps - 1) // up)
    zero = mode == "constant" and not isinstance(cval, Array) and cval == 0
    if zero:
        before = after = 0
    else:
        pads = [(0, 0)] * (x.aval.ndim - 1) + [(before, after)]
        if mode == "constant":
            x = fnp.pad(x, pads, constant_values=convert(fnp.asarray(cval), x.dtype))
        else:
            x = fnp.pad(x, pads, _MODES[mode])
    out = polyphase(h, x, up, down, before * up, -(-total // down))
    return fnp.moveaxis(out, -1, axis)


def resample_poly(
    x: ArrayLike,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: ArrayLike | None = None,
) -> Array:
    """Changes the rate of a signal by a ratio, with a filter without feedback.

    Args:
      x: array-like[...]: the signal.
      up: the ratio's numerator.
      down: its denominator.
      axis: the axis of time.
      window: of the lowpass: its name, a tuple of it and its parameters, or
        array-like[m], the lowpass itself.
      padtype: what the signal is beyond its ends: "constant", `cval`; "mean", "median",
        "minimum" or "maximum" of it; or a mode of `upfirdn`.
      cval: a number, for "constant": None is 0.

    Returns:
      Float or complex array with ceil(n up / down) samples along `axis`.

    Raises:
      ArgumentError: `up` or `down` is not positive, there is no such window or
        `padtype`, or `cval` is given for another one.
      ShapeError: the lowpass is not a vector.

    Example:
      >>> resample_poly(np.ones(6, np.float32), 1, 2, padtype="edge").round(3)
      Array([1., 1., 1.], dtype=float32)

    Source: `scipy.signal.resample_poly`.
    """
    name = "resample_poly"
    up, down = natural(name, "up", up), natural(name, "down", down)
    if cval is not None and padtype != "constant":
        raise ArgumentError(f"{name}: cval has no meaning with padtype={padtype!r}")
    if padtype not in _LEVELS and padtype not in _MODES:
        known = ", ".join(f'"{m}"' for m in (*_MODES, *_LEVELS))
        raise ArgumentError(f"{name}: padtype must be one of {known}, got {padtype!r}")
    (x,) = promote_inexact(name, x)
    common = math.gcd(up, down)
    up, down = up // common, down // common
    axis = canonical_axis(name, axis, x.ndim)
    if up == down == 1:
        return x
    if isinstance(window, str | tuple | float | int):
        half = 10 * max(up, down)
        h = firwin(2 * half + 1, 1 / max(up, down), window=window)
    else:
        h = fnp.asarray(window)
        if h.ndim != 1:
            raise ShapeError(f"{name}: window must be a vector, got {h.aval}")
        half = (h.shape[0] - 1) // 2
    h = convert(h, x.dtype) if not dtypes.is_complex(h.dtype) else h
    return _resampled(x, h, up, down, axis, padtype, 0 if cval is None else cval, half)


@library("up", "down", "axis", "padtype", "half")
def _resampled(
    x: Any, h: Any, up: int, down: int, axis: int, padtype: str, cval: Any, half: int
) -> Array:
    n = x.aval.shape[axis]
    count = -(-n * up // down)
    # Zeros before the filter put its middle on a kept sample.
    early = down - half % down
    first = (half + early) // down
    h = fnp.pad(h * up, (early, 0))
    late = 0
    while -(-((n - 1) * up + h.aval.size + late) // down) < count + first:
        late += 1
    h = fnp.pad(h, (0, late))
    if padtype in _LEVELS:
        level = _LEVELS[padtype](x, axis=axis, keepdims=True)
        out = upfirdn(h, x - level, up, down, axis)
        out = lax.slice_in_dim(out, first, first + count, axis=axis)
        return fnp.add(out, level)
    out = upfirdn(h, x, up, down, axis, padtype, cval)
    return lax.slice_in_dim(out, first, first + count, axis=axis)


def decimate(
    x: ArrayLike,
    q: int,
    n: int | None = None,
    ftype: str = "iir",
    axis: int = -1,
    zero_phase: bool = True,
) -> Array:
    """Filters a signal and keeps one sample of `q`.

    Args:
      x: array-like[...]: the signal.
      q: the factor.
      n: the filter's order; None is 8 for "iir" and 20 q for "fir".
      ftype: "iir", a Chebyshev filter, or "fir", a Hamming window's.
      axis: the axis of time.
      zero_phase: whether nothing is delayed: a recursive filter runs forward and
        backward, the other one is centered.

    Returns:
      Float or complex array with ceil(m / q) samples along `axis`.

    Raises:
      ArgumentError: `q` or `n` is not positive, or there is no such `ftype`.
      AxisError: an axis is out of range.

    Example:
      >>> decimate(np.ones(60, np.float32), 20).round(1)
      Array([1., 1., 1.], dtype=float32)

    Source: `scipy.signal.decimate`.
    """
    name = "decimate"
    q = natural(name, "q", q)
    if n is not None:
        n = natural(name, "n", n, 0)
    (x,) = promote_inexact(name, x)
    axis = canonical_axis(name, axis, x.ndim)
    real = dtypes.to_real(x.dtype)
    if ftype == "fir":
        taps = convert(firwin((20 * q if n is None else n) + 1, 1 / q), real)
        if zero_phase:
            return resample_poly(x, 1, q, axis, taps)
        kept = -(-x.shape[axis] // q)
        out = upfirdn(taps, x, 1, q, axis)
        return lax.slice_in_dim(out, 0, kept, axis=axis)
    if ftype != "iir":
        raise ArgumentError(f'{name}: ftype must be "iir" or "fir", got {ftype!r}')
    sos = cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    run = sosfiltfilt if zero_phase else sosfilt
    out = run(convert(sos, real), x, axis=axis)
    return lax.slice_in_dim(out, 0, out.shape[axis], q, axis)


# -- by spectra ------------------------------------------------------------------------


def resample(
    x: ArrayLike,
    num: int,
    t: ArrayLike | None = None,
    axis: int = 0,
    window: Any = None,
    domain: str = "time",
) -> Any:
    """Changes the number of samples of a periodic signal by its spectrum.

    Args:
      x: array-like[...]: the signal.
      num: the number of samples of the result.
      t: real array-like[n]: times of the samples.
      axis: the axis of time.
      window: what the spectrum is multiplied by: a window's name, or a tuple of it and
        its parameters; array-like[n]; a function of the frequencies; None is nothing.
      domain: "time", or "freq" if `x` is a spectrum.

    Returns:
      Float or complex array with `num` samples along `axis`; if `t` is given, a tuple
      of it and the new times.

    Raises:
      ArgumentError: `num` is not positive, or there is no such domain or window.
      ShapeError: the window has the wrong length.

    Example:
      >>> resample(np.array([1.0, 0.0, -1.0, 0.0]), 8).round(3)[::2]
      Array([ 1.,  0., -1.,  0.], dtype=float32)

    Source: `scipy.signal.resample`.
    """
    name = "resample"
    num = natural(name, "num", num)
    if domain not in ("time", "freq"):
        raise ArgumentError(f'{name}: domain must be "time" or "freq", got {domain!r}')
    x = array_of(x, name)
    axis = canonical_axis(name, axis, x.ndim)
    n = x.shape[axis]
    if callable(window):
        weights = window(np.fft.fftfreq(n))
    elif isinstance(window, str | tuple | float | int):
        weights = np.fft.fftshift(window_of(name, window, n))
    else:
        weights = window
    if weights is not None:
        weights = fnp.asarray(weights)
        if weights.shape != (n,):
            raise ShapeError(
                f"{name}: window must have {n} values, one for each frequency, got "
                f"{weights.aval}"
            )
    out = _by_spectrum(x, weights, num, axis, domain)
    if t is None:
        return out
    (times,) = promote_inexact(name, t)
    step = (times[1] - times[0]) * (n / num)
    return out, times[0] + step * fnp.arange(num, dtype=times.dtype)


@library("num", "axis", "domain")
def _by_spectrum(x: Any, weights: Any, num: int, axis: int, domain: str) -> Array:
    (x,) = promote_inexact("resample", x)
    x = fnp.moveaxis(x, axis, -1)
    n = x.aval.shape[-1]
    real = domain == "time" and not dtypes.is_complex(x.aval.dtype)
    m = min(num, n)
    if not x.aval.size:
        out = fnp.zeros((*x.aval.shape[:-1], num), x.aval.dtype)
        return fnp.moveaxis(out, -1, axis)
    if real:
        spectrum = fnp.fft.rfft(x)
        bins = spectrum.aval.shape[-1]
        if weights is not None:
            # A real signal's window is the mean of both sides.
            turned = fnp.roll(fnp.flip(weights), 1)
            spectrum = spectrum * ((weights + turned) / 2)[:bins]
        spectrum = spectrum[..., : m // 2 + 1]
        if m % 2 == 0 and num != n:
            factor = np.ones(m // 2 + 1)
            factor[-1] = 2 if num < n else 0.5
            spectrum = spectrum * fnp.asarray(factor, x.aval.dtype)
        out = fnp.fft.irfft(spectrum, num) * (num / n)
        return fnp.moveaxis(out.astype(x.aval.dtype), -1, axis)
    spectrum = fnp.fft.fft(x) if domain == "time" else x
    if weights is not None:
        spectrum = spectrum * weights
    half = m // 2 + 1
    first = spectrum[..., :half]
    last = spectrum[..., n - (m - half) :] if m > half else spectrum[..., :0]
    zeros = fnp.zeros((*x.aval.shape[:-1], num - m), spectrum.aval.dtype)
    if m % 2 == 0 and num != n:
        middle = first[..., -1:]
        if num < n:
            other = spectrum[..., n - m // 2 : n - m // 2 + 1]
            first = fnp.concatenate([first[..., :-1], middle + other], -1)
        else:
            first = fnp.concatenate([first[..., :-1], middle / 2], -1)
            zeros = fnp.concatenate([zeros[..., 1:], middle / 2], -1)
    out = fnp.fft.ifft(fnp.concatenate([first, zeros, last], -1)) * (num / n)
    return fnp.moveaxis(out, -1, axis)
