"""Spectra along spirals and in a part of the frequencies: the chirp z-transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal.convolution import _fast_length


def _powers(w: Any, at: np.ndarray[Any, Any], m: int) -> Any:
    """Returns powers of a number on the host: of the m-th root of 1 without one."""
    if w is None:
        # The exponents are reduced first: their angles stay exact.
        return np.exp(-2j * math.pi * np.mod(at, m) / m)
    return np.asarray(w, np.complex128) ** at


def czt_points(m: int, w: complex | None = None, a: complex = 1 + 0j) -> Array:
    """Returns the points at which `czt` evaluates a signal.

    Args:
      m: number of points.
      w: the ratio of two points, inverted; None is that of `m` points around a circle.
      a: the first point.

    Returns:
      Complex array[m].

    Raises:
      ArgumentError: `m` is not positive.

    Example:
      >>> czt_points(2).real
      Array([ 1., -1.], dtype=float32)

    Source: `scipy.signal.czt_points`.
    """
    m = natural("czt_points", "m", m)
    return fnp.asarray(a * _powers(w, -np.arange(m), m))


def czt(
    x: ArrayLike,
    m: int | None = None,
    w: complex | None = None,
    a: complex = 1 + 0j,
    *,
    axis: int = -1,
) -> Array:
    """Evaluates a signal's z-transform at points of a spiral.

    Args:
      x: array-like[...]: the signal.
      m: number of points; None: that of the samples.
      w: the ratio of two points, inverted; None is that of `m` points around a circle.
      a: the first point.
      axis: the axis of time.

    Returns:
      Complex array with `m` points along `axis`: for each point z the sum of
      x[n] z^-n.

    Raises:
      ArgumentError: `m` is not positive.
      AxisError: an axis is out of range.
      ShapeError: there are no samples.

    Example:
      >>> abs(czt(np.ones(4, np.float32))).round(3)
      Array([4., 0., 0., 0.], dtype=float32)

    Source: `scipy.signal.czt`; L. R. Rabiner, R. W. Schafer and C. M. Rader, The Chirp
    z-Transform Algorithm, 1969.
    """
    (x,) = promote_inexact("czt", x)
    axis = canonical_axis("czt", axis, x.ndim)
    n = x.shape[axis]
    if not n:
        raise ShapeError(f"czt: x must have samples along the axis, got {x.aval}")
    m = n if m is None else natural("czt", "m", m)
    k = np.arange(max(m, n), dtype=np.float64)
    # w^(k² / 2): of a root of unity w = e^(-2πi / m) it has the period 2 m in k².
    if w is None:
        chirp = np.exp(-1j * math.pi * np.mod(k * k, 2 * m) / m)
    else:
        chirp = np.asarray(w, np.complex128) ** (k * k / 2)
    return _transformed(x, chirp, complex(a), m, axis)


def _transformed(
    x: Array, chirp: np.ndarray[Any, Any], a: complex, m: int, axis: int
) -> Array:
    n = x.shape[axis]
    before = np.asarray(a, np.complex128) ** -np.arange(n) * chirp[:n]
    length = _fast_length(n + m - 1)
    kernel = np.fft.fft(1 / np.concatenate([chirp[n - 1 : 0 : -1], chirp[:m]]), length)
    dtype = dtypes.to_complex(x.dtype)
    first, middle, last = (fnp.asarray(v, dtype) for v in (before, kernel, chirp[:m]))
    return _bluestein(x, first, middle, last, n, m, length, axis)


@library("n", "m", "length", "axis")
def _bluestein(
    x: Any, before: Any, kernel: Any, after: Any, n: int, m: int, length: int, axis: int
) -> Array:
    (x,) = promote_inexact("czt", x)
    rows = fnp.moveaxis(x, axis, -1)
    out = fnp.fft.ifft(fnp.fft.fft(rows * before, length) * kernel)
    return fnp.moveaxis(out[..., n - 1 : n + m - 1] * after, -1, axis)


def zoom_fft(
    x: ArrayLike,
    fn: Any,
    m: int | None = None,
    *,
    fs: float = 2,
    endpoint: bool = False,
    axis: int = -1,
) -> Array:
    """Returns a signal's spectrum at the frequencies of an interval alone.

    Args:
      x: array-like[...]: the signal.
      fn: the interval: its ends, or the upper one, the lower one being 0.
      m: number of frequencies; None: that of the samples.
      fs: the sampling rate.
      endpoint: whether the upper end is one of them.
      axis: the axis of time.

    Returns:
      Complex array with `m` frequencies along `axis`.

    Raises:
      ArgumentError: `fn` is neither a number nor a pair, or `m` is not positive.
      AxisError: an axis is out of range.

    Example:
      >>> x = np.cos(np.arange(64.0) * 0.3 * np.pi)
      >>> int(fnp.argmax(abs(zoom_fft(x, (0.2, 0.4), 21, endpoint=True))))
      10

    Source: `scipy.signal.zoom_fft`.
    """
    name = "zoom_fft"
    (x,) = promote_inexact(name, x)
    at = canonical_axis(name, axis, x.ndim)
    ends = np.atleast_1d(np.asarray(fn, np.float64))
    if ends.shape not in ((1,), (2,)):
        raise ArgumentError(f"{name}: fn must be a number or a pair, got {fn!r}")
    first, last = (0.0, ends[0]) if ends.size == 1 else ends
    rate = number(name, "fs", fs)
    count = x.shape[at] if m is None else natural(name, "m", m)
    gaps = max(count - 1, 1) if endpoint else count
    step = 2 * math.pi * (last - first) / (rate * gaps)
    k = np.arange(max(count, x.shape[at]), dtype=np.float64)
    chirp = np.exp(-0.5j * step * k * k)
    return _transformed(x, chirp, np.exp(2j * math.pi * first / rate), count, at)


class CZT:
    """The chirp z-transform of signals of a length, with what it needs prepared.

    Args:
      n: the length of the signals.
      m: number of points; None is `n`.
      w: the ratio of two points, inverted; None is that of `m` points around a circle.
      a: the first point.

    Attributes:
      n: as given.
      m: number of points.
      w: as given.
      a: as given.

    Raises:
      ArgumentError: `n` or `m` is not positive.

    Example:
      >>> abs(CZT(4)(np.ones(4, np.float32))).round(3)
      Array([4., 0., 0., 0.], dtype=float32)

    Source: `scipy.signal.CZT`.
    """

    def __init__(
        self,
        n: int,
        m: int | None = None,
        w: complex | None = None,
        a: complex = 1 + 0j,
    ) -> None:
        self.n = natural("CZT", "n", n)
        self.m = self.n if m is None else natural("CZT", "m", m)
        self.w, self.a = w, a

    def __call__(self, x: ArrayLike, *, axis: int = -1) -> Array:
        """Evaluates the z-transform of a signal.

        Args:
          x: array-like[...], `n` long along the axis.
          axis: the axis of time.

        Returns:
          Complex array with `m` points along `axis`.

        Raises:
          AxisError: an axis is out of range.
          ShapeError: `x` has the wrong length.
        """
        (x,) = promote_inexact("CZT", x)
        _require_length("CZT", x, self.n, axis)
        return czt(x, self.m, self.w, self.a, axis=axis)

    def points(self) -> Array:
        """Returns the points at which the transform is evaluated, complex array[m]."""
        return czt_points(self.m, self.w, self.a)


class ZoomFFT:
    """The spectrum of signals of a length in an interval of frequencies.

    Args:
      n: the length of the signals.
      fn: the interval: its ends, or the upper one, the lower one being 0.
      m: number of frequencies; None is `n`.
      fs: the sampling rate.
      endpoint: whether the upper end is one of them.

    Attributes:
      n: as given.
      m: number of frequencies.
      fn: as given.
      fs: as given.
      endpoint: as given.

    Raises:
      ArgumentError: `n` or `m` is not positive.

    Example:
      >>> abs(ZoomFFT(4, 2.0)(np.ones(4, np.float32))).round(3)
      Array([4., 0., 0., 0.], dtype=float32)

    Source: `scipy.signal.ZoomFFT`.
    """

    def __init__(
        self,
        n: int,
        fn: Any,
        m: int | None = None,
        *,
        fs: float = 2,
        endpoint: bool = False,
    ) -> None:
        self.n = natural("ZoomFFT", "n", n)
        self.m = self.n if m is None else natural("ZoomFFT", "m", m)
        self.fn, self.fs, self.endpoint = fn, fs, endpoint

    def __call__(self, x: ArrayLike, *, axis: int = -1) -> Array:
        """Returns the spectrum of a signal.

        Args:
          x: array-like[...], `n` long along the axis.
          axis: the axis of time.

        Returns:
          Complex array with `m` frequencies along `axis`.

        Raises:
          ArgumentError: `fn` is neither a number nor a pair.
          AxisError: an axis is out of range.
          ShapeError: `x` has the wrong length.
        """
        (x,) = promote_inexact("ZoomFFT", x)
        _require_length("ZoomFFT", x, self.n, axis)
        options: dict[str, Any] = {"fs": self.fs, "endpoint": self.endpoint}
        return zoom_fft(x, self.fn, self.m, axis=axis, **options)

    def points(self) -> Array:
        """Returns the points at which the transform is evaluated, complex array[m]."""
        ends = np.atleast_1d(np.asarray(self.fn, np.float64))
        first, last = (0.0, ends[0]) if ends.size == 1 else ends
        at = np.linspace(first, last, self.m, endpoint=self.endpoint)
        return fnp.asarray(np.exp(2j * math.pi * at / self.fs))


def _require_length(name: str, x: Array, n: int, axis: int) -> None:
    at = canonical_axis(name, axis, x.ndim)
    if x.shape[at] != n:
        raise ShapeError(f"{name}: x must be {n} long along axis {axis}, got {x.aval}")
