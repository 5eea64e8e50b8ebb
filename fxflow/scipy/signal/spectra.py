"""Spectra of segments that overlap: Welch's estimates, short-time transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.core.source import warn
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.signal._extensions import extended
from fxflow.scipy.signal._windows import window_of
from fxflow.scipy.signal.trends import detrend as without_trend

# A window's name, the name with its parameters, a Kaiser window's shape, or values.
Window = str | tuple[Any, ...] | float | ArrayLike
# A kind of trend, False for none, or a function of segments along the last axis.
Detrend = str | bool | Callable[[Array], Array]


@dataclass(frozen=True)
class _Segments:
    """How a signal is cut: lengths of segments, steps and transforms; the window."""

    length: int
    step: int
    nfft: int
    window: Array


def _segments(
    name: str,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    n: int | None,
    default: int,
    dtype: Any,
) -> _Segments:
    """Returns the cut that arguments describe.

    Args:
      name: of the function, for messages.
      window: as given.
      nperseg: as given.
      noverlap: as given.
      nfft: as given.
      n: length of the signal; None if any will do.
      default: `nperseg` where neither it nor an array says it.
      dtype: dtype of the window.
    """
    if nperseg is not None:
        nperseg = int(nperseg)
        if nperseg < 1:
            raise ArgumentError(f"{name}: nperseg must be positive, got {nperseg}")
    if isinstance(window, str | tuple | int | float):
        length = default if nperseg is None else nperseg
        if n is not None and length > n:
            warn(
                f"{name}: nperseg={length} is longer than the signal: {n} it is",
            )
            length = n
        values = fnp.asarray(window_of(name, window, length), dtype)
    else:
        (values,) = promote_inexact(name, fnp.asarray(window))
        values = convert(values, dtype)
        if values.aval.ndim != 1:
            raise ShapeError(f"{name}: a window has one axis, got {values.aval}")
        length = values.aval.shape[0]
        if nperseg not in (None, length):
            raise ArgumentError(
                f"{name}: nperseg={nperseg} is not the length of window, {length}"
            )
        if n is not None and length > n:
            raise ShapeError(
                f"{name}: window, {length}, is longer than the signal, {n}"
            )
    overlap = length // 2 if noverlap is None else int(noverlap)
    if not 0 <= overlap < length:
        raise ArgumentError(
            f"{name}: noverlap must be in 0 … nperseg - 1 = {length - 1}, got {overlap}"
        )
    points = length if nfft is None else int(nfft)
    if points < length:
        raise ArgumentError(
            f"{name}: nfft must be at least nperseg = {length}, got {points}"
        )
    return _Segments(length, length - overlap, points, values)


def _frequencies(cut: _Segments, fs: Any, onesided: bool, dtype: Any) -> Array:
    make = np.fft.rfftfreq if onesided else np.fft.fftfreq
    return fnp.asarray(fs, dtype) * fnp.asarray(make(cut.nfft), dtype)


def _transformed(x: Array, cut: _Segments, detrend: Detrend, onesided: bool) -> Array:
    """Returns the spectra of windowed segments, [..., segment, frequency]."""
    count = max((x.aval.shape[-1] - cut.length) // cut.step + 1, 0)
    starts = np.arange(count)[:, None] * cut.step
    parts = x[..., starts + np.arange(cut.length)]
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = without_trend(parts, type=cast(str, detrend))
    parts = parts * cut.window
    return fnp.fft.rfft(parts, cut.nfft) if onesided else fnp.fft.fft(parts, cut.nfft)


def _signal(name: str, x: Any, axis: Any) -> Array:
    (x,) = promote_inexact(name, x)
    if not x.aval.ndim:
        raise ShapeError(f"{name}: a signal has at least one axis, got {x.aval}")
    dtype = x.aval.dtype
    if dtypes.bits(dtype) < 32:  # transforms have at least as many
        x = convert(x, dtypes.float32)
    return fnp.moveaxis(x, canonical_axis(name, axis, x.aval.ndim), -1)


def _both_sides(cut: _Segments, dtype: Any) -> Array:
    """Returns what powers at frequencies are multiplied by for those below 0."""
    twice = np.full(cut.nfft // 2 + 1, 2.0)
    # 0 and the highest of an even number have none.
    twice[0] = 1
    if cut.nfft % 2 == 0:
        twice[-1] = 1
    return fnp.asarray(twice, dtype)


def _one_sided(name: str, asked: bool, *signals: Array) -> bool:
    mixed = any(dtypes.is_complex(s.aval.dtype) for s in signals)
    if asked and mixed:
        warn(
            f"{name}: the signal is complex, so the spectrum has both sides "
            "(return_onesided=False)",
        )
    return asked and not mixed


def _median_bias(n: int) -> float:
    """Returns the median of `n` exponential variables over their mean."""
    pairs = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (pairs + 1) - 1 / pairs))


def _cross_spectrum(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Detrend,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Array, Array]:
    if scaling not in ("density", "spectrum"):
        raise ArgumentError(
            f'{name}: scaling must be "density" or "spectrum", got {scaling!r}'
        )
    if average not in ("mean", "median"):
        raise ArgumentError(
            f'{name}: average must be "mean" or "median", got {average!r}'
        )
    same = y is None or y is x
    a = _signal(name, x, axis)
    b = a if same else _signal(name, y, axis)
    n = max(a.aval.shape[-1], b.aval.shape[-1])
    outer = fnp.broadcast_shapes(a.aval.shape[:-1], b.aval.shape[:-1])
    if 0 in (*outer, a.aval.shape[-1], b.aval.shape[-1]):
        least = min(a.aval.shape[-1], b.aval.shape[-1])
        real = dtypes.to_real(a.aval.dtype)
        nothing = fnp.moveaxis(fnp.zeros((*outer, least), real), -1, axis)
        return nothing, nothing
    onesided = _one_sided(name, return_onesided, a, b)
    dtype = dtypes.to_real(promote_inexact(name, a, b)[0].aval.dtype)
    cut = _segments(name, window, nperseg, noverlap, nfft, n, 256, dtype)
    spectra = []
    for signal in (a,) if same else (a, b):
        short = n - signal.aval.shape[-1]
        pads = [(0, 0)] * (signal.aval.ndim - 1) + [(0, short)]
        whole = fnp.pad(signal, pads) if short else signal
        spectra.append(_transformed(whole, cut, detrend, onesided))
    first, last = spectra[0], spectra[-1]
    if same:
        power = fnp.square(fnp.real(first)) + fnp.square(fnp.imag(first))
    else:
        power = fnp.conj(first) * last
    if scaling == "density":
        scale = 1 / (fnp.asarray(fs, dtype) * fnp.sum(cut.window * cut.window))
    else:
        scale = 1 / fnp.square(fnp.sum(cut.window))
    power = power * scale
    if onesided:
        power = power * _both_sides(cut, dtype)
    if average == "mean":
        out = fnp.mean(power, -2)
    else:
        out = fnp.median(fnp.real(power), -2)
        if not same:
            out = out + 1j * fnp.median(fnp.imag(power), -2)
        out = out / _median_bias(power.aval.shape[-2])
    return _frequencies(cut, fs, onesided, dtype), fnp.moveaxis(out, -1, axis)


_docs = shared("""
    Args:
      x: array-like[..., n]: the signal.
      fs: real number: samples per unit of time.
      window: its name, "hann" and the like; a tuple of a name and parameters, such as
        ("tukey", 0.25); a number, a Kaiser window's shape; or array-like[nperseg].
      nperseg: points of a segment: None is the window's, or else 256.
      noverlap: points that two segments share: None is half of them.
      nfft: points of a transform, zeros at the end: None is `nperseg`.
      detrend: "constant" or "linear": what is taken out of each segment; False for
        nothing; or a function of the segments, whose points are the last axis.
      return_onesided: whether spectra of real signals leave out those below 0.
      scaling: "density", power per unit of frequency, or "spectrum", power.
      axis: the axis of time.
      average: "mean" or "median" of the segments.

    Raises:
      ArgumentError: unknown window, scaling or average, or the lengths of segments,
        overlaps and transforms do not fit.
      ShapeError: the window is longer than the signal, or has not one axis.
      AxisError: an axis is out of range.

    Source: `scipy.signal.{name}`; results have at least 32 bits. P. Welch, The Use of
    Fast Fourier Transform for the Estimation of Power Spectra, 1967.
""")


@_docs
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimates the cross spectrum of two signals by Welch's method.

    Args:
      y: array-like[..., m]: the other signal: None is `x`; the shorter one gets zeros.

    Returns:
      The frequencies, float array[f], and the spectrum, complex array[..., f], real if
      `y` is `x` or None.

    Example:
      >>> x = np.sin(np.arange(512.0))
      >>> f, spectrum = csd(x, 2 * x)
      >>> float(f[fnp.argmax(abs(spectrum))])
      0.16015625
    """
    return _cross_spectrum(
        "csd",
        x,
        y,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


@_docs
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimates the power spectrum of a signal by Welch's method.

    Returns:
      The frequencies, float array[f], and the spectrum, float array[..., f].

    Example:
      >>> f, power = welch(np.sin(np.arange(512.0)))
      >>> float(f[fnp.argmax(power)])
      0.16015625
    """
    return _cross_spectrum(
        "welch",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


@_docs
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Array, Array, Array]:
    """Returns the short-time Fourier transform of a signal.

    Args:
      boundary: what is at the ends, for half a segment: "zeros", "even" (mirrored),
        "odd" (mirrored through the end), "constant" (the last point); None for nothing.
      padded: whether zeros at the end fill up the last segment.
      scaling: "spectrum", amplitudes, or "psd", roots of a power density.

    Returns:
      The frequencies, float array[f]; the times, float array[t]; the transform, complex
      array[..., f, t], `f` where `axis` was.

    Raises:
      ShapeError: the window is longer than the signal, or has not one axis.

    Example:
      >>> f, t, z = stft(np.sin(np.arange(512.0)))
      >>> z.shape, t.shape
      ((129, 5), (5,))

    Source: `scipy.signal.stft`; results have at least 32 bits.
    """
    signal = _signal("stft", x, axis)
    n, dtype = signal.aval.shape[-1], dtypes.to_real(signal.aval.dtype)
    if not signal.aval.size:
        nothing = fnp.zeros(signal.aval.shape, dtype)
        return nothing, nothing, nothing
    onesided = _one_sided("stft", return_onesided, signal)
    if window is not None and not isinstance(window, str | tuple | int | float):
        nperseg = None if nperseg == 256 else nperseg  # type: ignore[assignment]
    cut = _segments("stft", window, nperseg, noverlap, nfft, n, 256, dtype)
    signal = extended("stft", signal, boundary, cut.length // 2)
    if padded:
        missing = -(signal.aval.shape[-1] - cut.length) % cut.step % cut.length
        signal = fnp.pad(signal, [(0, 0)] * (signal.aval.ndim - 1) + [(0, missing)])
    out = _transformed(signal, cut, detrend, onesided)
    out = out * _amplitude("stft", cut, fs, scaling)
    first = 0.0 if boundary is not None else cut.length / 2
    times = first + cut.step * np.arange(out.aval.shape[-2])
    out = fnp.moveaxis(out, -1, axis - 1 if axis < 0 else axis)
    return (
        _frequencies(cut, fs, onesided, dtype),
        fnp.asarray(times, dtype) / fnp.asarray(fs, dtype),
        out,
    )


def _amplitude(name: str, cut: _Segments, fs: Any, scaling: str) -> Array:
    """Returns what a short-time transform is multiplied by."""
    if scaling == "spectrum":
        return 1 / fnp.sum(cut.window)
    if scaling == "psd":
        power = fnp.sum(cut.window * cut.window)
        return 1 / fnp.sqrt(fnp.asarray(fs, power.dtype) * power)
    raise ArgumentError(f'{name}: scaling must be "spectrum" or "psd", got {scaling!r}')


@_docs
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Array, Array]:
    """Returns the signal of a short-time Fourier transform.

    Args:
      Zxx: complex array-like[..., f, t].
      nperseg: points of a segment: None is what the number of frequencies says.
      nfft: points of a transform: None is likewise.
      input_onesided: whether frequencies below 0 are left out.
      boundary: whether half a segment was added at the ends.
      time_axis: the axis of times.
      freq_axis: the axis of frequencies.
      scaling: "spectrum" or "psd", as for `stft`.

    Returns:
      The times, float array[n], and the signal, float array[..., n], complex if both
      sides are given. Where windows do not overlap enough to know a point, 0 (SciPy
      warns).

    Raises:
      ShapeError: there are fewer than two axes.

    Example:
      >>> x = np.sin(np.arange(512.0, dtype=np.float32))
      >>> t, y = istft(stft(x)[2])
      >>> bool(fnp.allclose(x, y, atol=1e-6))
      True

    Source: `scipy.signal.istft`; D. Griffin and J. Lim, Signal Estimation from Modified
    Short-Time Fourier Transform, 1984.
    """
    (z,) = promote_inexact("istft", Zxx)
    z = convert(z, dtypes.to_complex(z.aval.dtype))
    dtype, ndim = dtypes.to_real(z.aval.dtype), z.aval.ndim
    if ndim < 2:
        raise ShapeError(f"istft: a transform has at least two axes, got {z.aval}")
    times_at = canonical_axis("istft", time_axis, ndim, "time_axis")
    values_at = canonical_axis("istft", freq_axis, ndim, "freq_axis")
    if times_at == values_at:
        raise ArgumentError(f"istft: time_axis and freq_axis are both {time_axis}")
    z = fnp.moveaxis(z, (times_at, values_at), (-2, -1))
    count, bins = z.aval.shape[-2:]
    default = 2 * (bins - 1) if input_onesided else bins
    if nfft is None and nperseg is not None:
        odd = input_onesided and nperseg == default + 1
        nfft = nperseg if odd else default
    cut = _segments("istft", window, nperseg, noverlap, nfft, None, default, dtype)
    inverse: Callable[..., Array] = fnp.fft.irfft if input_onesided else fnp.fft.ifft
    parts = inverse(z, cut.nfft)[..., : cut.length]
    parts = parts * (cut.window / _amplitude("istft", cut, fs, scaling))
    total = cut.length + (count - 1) * cut.step
    at = np.arange(count)[:, None] * cut.step + np.arange(cut.length)
    out = fnp.zeros((*z.aval.shape[:-2], total), parts.dtype).at[..., at].add(parts)
    square = fnp.broadcast_to(cut.window * cut.window, at.shape)
    norm = fnp.zeros(total, dtype).at[at].add(square)
    if boundary:
        half = cut.length // 2
        out, norm = out[..., half : total - half], norm[half : total - half]
    out = out / fnp.where(norm > 1e-10, norm, 1)
    if ndim > 2 and times_at != ndim - 1:
        out = fnp.moveaxis(out, -1, times_at - (values_at < times_at))
    step = fnp.arange(norm.aval.shape[0], dtype=dtype)
    return step / fnp.asarray(fs, dtype), out


# -- more of the same ------------------------------------------------------------------


@_docs
def periodogram(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "boxcar",
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Array, Array]:
    """Estimates the power spectrum of a signal from all of it.

    Args:
      nfft: points of the transform: zeros are added, or the signal is cut; None is all.

    Returns:
      The frequencies, float array[f], and the spectrum, float array[..., f].

    Example:
      >>> f, power = periodogram(np.sin(np.arange(512.0)))
      >>> round(float(f[fnp.argmax(power)]), 2)
      0.16
    """
    (x,) = promote_inexact("periodogram", x)
    at = canonical_axis("periodogram", axis, x.ndim)
    n = x.shape[at]
    if nfft is not None:
        points = natural("periodogram", "nfft", nfft)
        if points < n:
            x = lax.slice_in_dim(x, 0, points, axis=at)
            n = points
    options = (detrend, return_onesided, scaling, axis)
    return welch(x, fs, window, n or None, 0, nfft if n else None, *options)


@_docs
def coherence(
    x: ArrayLike,
    y: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    axis: int = -1,
) -> tuple[Array, Array]:
    """Estimates how well one signal follows from another at each frequency.

    Args:
      y: array-like[..., m]: the other signal.

    Returns:
      The frequencies, float array[f], and float array[..., f] in [0, 1]: the square of
      the cross spectrum over the product of both spectra.

    Example:
      >>> x = np.sin(np.arange(512.0))
      >>> bool(fnp.allclose(coherence(x, 2 * x, nperseg=64)[1], 1, atol=1e-3))
      True
    """
    x, y = promote_inexact("coherence", x, y)
    onesided = not dtypes.is_complex(x.dtype)
    cut = (window, nperseg, noverlap, nfft, detrend, onesided)
    f, first = welch(x, fs, *cut, axis=axis)
    last = welch(y, fs, *cut, axis=axis)[1]
    both = csd(x, y, fs, *cut, axis=axis)[1]
    power = fnp.square(fnp.real(both)) + fnp.square(fnp.imag(both))
    return f, power / first / last


_SPECTROGRAMS = ("psd", "complex", "magnitude", "angle", "phase")


@_docs
def spectrogram(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Array, Array, Array]:
    """Returns spectra of a signal's segments, one after the other.

    Args:
      noverlap: points that two segments share: None is an eighth of them.
      mode: "psd", powers; "complex", as `stft` has them; "magnitude", "angle" or
        "phase", the angle without jumps.

    Returns:
      The frequencies, float array[f]; the times, float array[t]; and array[..., f, t],
      `f` where `axis` was.

    Raises:
      ArgumentError: unknown mode, window or scaling, or the lengths of segments,
        overlaps and transforms do not fit.

    Example:
      >>> f, t, power = spectrogram(np.sin(np.arange(1024.0)))
      >>> power.shape, t.shape
      ((129, 4), (4,))
    """
    name = "spectrogram"
    if mode not in _SPECTROGRAMS:
        known = ", ".join(f'"{m}"' for m in _SPECTROGRAMS)
        raise ArgumentError(f"{name}: mode must be one of {known}, got {mode!r}")
    if scaling not in ("density", "spectrum"):
        raise ArgumentError(
            f'{name}: scaling must be "density" or "spectrum", got {scaling!r}'
        )
    signal = _signal(name, x, axis)
    n, dtype = signal.aval.shape[-1], dtypes.to_real(signal.aval.dtype)
    if not signal.aval.size:
        nothing = fnp.zeros(signal.aval.shape, dtype)
        return nothing, nothing, nothing
    cut = _segments(name, window, nperseg, 0, nfft, n, 256, dtype)
    shared = cut.length // 8 if noverlap is None else noverlap
    values = cut.window
    cut = _segments(name, values, cut.length, shared, nfft, n, 256, dtype)
    onesided = _one_sided(name, return_onesided, signal)
    out = _transformed(signal, cut, detrend, onesided)
    amplitude = _amplitude(name, cut, fs, "psd" if scaling == "density" else scaling)
    out = out * amplitude
    if mode == "psd":
        out = fnp.square(fnp.real(out)) + fnp.square(fnp.imag(out))
        if onesided:
            out = out * _both_sides(cut, dtype)
    elif mode == "magnitude":
        out = fnp.abs(out)
    elif mode != "complex":
        out = fnp.angle(out)
    times = cut.length / 2 + cut.step * np.arange(out.aval.shape[-2])
    out = fnp.moveaxis(out, -1, axis - 1 if axis < 0 else axis)
    if mode == "phase":
        out = fnp.unwrap(out, axis=axis - 1 if axis < 0 else axis)
    return (
        _frequencies(cut, fs, onesided, dtype),
        fnp.asarray(times, dtype) / fnp.asarray(fs, dtype),
        out,
    )


@library("normalize", "floating_mean")
def lombscargle(
    x: ArrayLike,
    y: ArrayLike,
    freqs: ArrayLike,
    *,
    normalize: bool | str = False,
    weights: ArrayLike | None = None,
    floating_mean: bool = False,
) -> Array:
    """Returns the spectrum of samples at uneven times, by least squares.

    Args:
      x: real array-like[n]: the times.
      y: real array-like[n]: the samples.
      freqs: real array-like[f]: angular frequencies, not 0.
      normalize: False or "power"; True or "normalize", as a part of the power of the
        samples; "amplitude", complex amplitudes of the best fit.
      weights: real array-like[n] of the samples; None is that all are equal.
      floating_mean: whether a constant is fitted, too.

    Returns:
      Float array[f], complex for "amplitude".

    Raises:
      ArgumentError: there is no such `normalize`.
      ShapeError: arguments are not vectors, or differ in length.

    Example:
      >>> t = np.array([0.0, 0.7, 1.1, 2.5, 3.2, 4.4, 5.1, 6.0])
      >>> w = np.array([0.5, 1.0, 2.0])
      >>> int(fnp.argmax(lombscargle(t, np.sin(2 * t), w)))
      2

    Source: `scipy.signal.lombscargle`. M. Zechmeister and M. Kürster, The Generalised
    Lomb-Scargle Periodogram, 2009.
    """
    name = "lombscargle"
    kinds = {False: "power", True: "normalize"}
    kind = kinds.get(normalize, normalize) if isinstance(normalize, bool) else normalize
    if kind not in ("power", "normalize", "amplitude"):
        raise ArgumentError(
            f'{name}: normalize must be a bool, "power", "normalize" or "amplitude", '
            f"got {normalize!r}"
        )
    given = [x, y, freqs] if weights is None else [x, y, freqs, weights]
    t, values, omega, *rest = promote_inexact(name, *given)
    w = rest[0] if rest else fnp.ones_like(values)
    shapes = {a.aval.shape for a in (t, values, w)}
    if len(shapes) > 1 or t.aval.ndim != 1 or omega.aval.ndim != 1 or not t.aval.size:
        raise ShapeError(
            f"{name}: x, y and weights must be vectors of one length and freqs a "
            f"vector, got {t.aval}, {values.aval}, {w.aval} and {omega.aval}"
        )
    w = w / fnp.sum(w)
    angles = omega * t[:, None]

    def mean(rows: Array) -> Array:
        """Returns the weighed means of the samples' rows."""
        return fnp.matmul(w, rows, precision="highest")

    level = fnp.sum(w * values)

    def moments(angles: Array) -> tuple[Array, ...]:
        c, s = fnp.cos(angles), fnp.sin(angles)
        cc, cs = mean(c * c), mean(c * s)
        ss = 1 - cc
        yc, ys = mean(values[:, None] * c), mean(values[:, None] * s)
        if floating_mean:
            first, second = mean(c), mean(s)
            cc, ss = cc - first * first, ss - second * second
            cs = cs - first * second
            yc, ys = yc - level * first, ys - level * second
        return cc, ss, cs, yc, ys

    cc, ss, cs, _, _ = moments(angles)
    tau = 0.5 * fnp.arctan2(2 * cs, cc - ss)
    cc, ss, _, yc, ys = moments(angles - tau)
    least = float(np.finfo(values.aval.dtype).epsneg)
    cc, ss = fnp.maximum(cc, least), fnp.maximum(ss, least)
    a, b = yc / cc, ys / ss
    if kind == "amplitude":
        return lax.complex(a, b) * fnp.exp(1j * tau)
    power = 2 * (a * yc + b * ys)
    if kind == "power":
        return power * (t.aval.size / 4)
    whole = fnp.sum(w * values * values)
    if floating_mean:
        whole = whole - level * level
    return power * (0.5 / whole)
