"""Discrete Fourier transforms: `fnp.fft`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.convert import as_array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.fft import FftType
from fxflow.numpy._operands import array_of, convert
from fxflow.numpy.arranging import roll
from fxflow.numpy.creation import asarray
from fxflow.numpy.shapes import canonical_axes, canonical_axis

# XLA transforms at most three axes at once.
_AT_ONCE = 3


def _factor(name: str, norm: Any, count: int, *, forward: bool) -> float:
    """Returns what a transform without any factor is multiplied by."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(
            f'{name}: norm must be "backward", "ortho" or "forward", got {norm!r}'
        )
    if norm == "ortho":
        return float(count) ** -0.5
    divided = norm == "forward" if forward else norm in (None, "backward")
    return 1 / count if divided else 1.0


def _resized(x: Any, axis: int, length: int) -> Any:
    have = x.aval.shape[axis]
    if have == length:
        return x
    if have > length:
        return lax.slice_in_dim(x, 0, length, axis=axis)
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (0, length - have, 0)
    return lax.pad(x, lax.full((), 0, x.aval.dtype), config)


def _complex(name: str, a: Any) -> Any:
    x = array_of(a, name)
    dtype = dtypes.to_inexact(x.aval.dtype)
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    return convert(x, dtypes.to_complex(dtype))


def _real(name: str, a: Any) -> Any:
    x = array_of(a, name)
    dtype = dtypes.to_inexact(x.aval.dtype)
    if dtypes.is_complex(dtype):
        raise DtypeError(
            f"{name}: takes real numbers, got {x.aval}: use the complex one"
        )
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    return convert(x, dtype)


def _lengths(
    name: str, s: Any, axes: Any, shape: tuple[int, ...], half: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the axes, and their lengths in the (real) domain that is given.

    Args:
      name: of the function, for messages.
      s: lengths as the user gave them.
      axes: as the user gave them.
      shape: of the array.
      half: whether the last axis holds half of a spectrum.
    """
    ndim = len(shape)
    if axes is None:
        places = tuple(range(0 if s is None else ndim - len(s), ndim))
        if places and places[0] < 0:
            raise ShapeError(f"{name}: {len(s)} lengths for an array of {ndim} axes")
    else:
        places = canonical_axes(name, axes, ndim)
    if not places:
        raise ArgumentError(f"{name}: there is no axis to transform")
    if s is None:
        lengths = [shape[i] for i in places]
        if half:
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        if len(s) != len(places):
            raise ArgumentError(
                f"{name}: {len(s)} lengths were given for {len(places)} axes"
            )
        lengths = [
            shape[i] if n is None or n == -1 else operator.index(n)
            for n, i in zip(s, places, strict=True)
        ]
    for n in lengths:
        if n < 1:
            raise ShapeError(f"{name}: transforms have at least one point, got {n}")
    return places, tuple(lengths)


def _transformed(x: Any, kind: FftType, axes: Sequence[int], lengths: Any) -> Any:
    """Transforms some axes, which have the right lengths."""
    ndim = x.aval.ndim
    rest = [i for i in range(ndim) if i not in axes]
    order = (*rest, *axes)
    plain = order == tuple(range(ndim))
    if not plain:
        x = lax.transpose(x, order)
    x = lax.fft(x, kind, tuple(lengths))
    if not plain:
        x = lax.transpose(x, tuple(int(i) for i in np.argsort(order)))
    return x


def _complex_axes(x: Any, kind: FftType, axes: Sequence[int]) -> Any:
    for i in range(0, len(axes), _AT_ONCE):
        some = axes[i : i + _AT_ONCE]
        x = _transformed(x, kind, some, [x.aval.shape[d] for d in some])
    return x


def _scaled(x: Any, factor: float) -> Any:
    if factor == 1.0:
        return x
    real = dtypes.to_real(x.aval.dtype)
    return x * np.asarray(factor).astype(real)[()]


def _fft(name: str, a: Any, s: Any, axes: Any, norm: Any, *, forward: bool) -> Any:
    x = _complex(name, a)
    places, lengths = _lengths(name, s, axes, x.aval.shape, False)
    for i, n in zip(places, lengths, strict=True):
        x = _resized(x, i, n)
    out = _complex_axes(x, FftType.FFT if forward else FftType.IFFT, places)
    # XLA's inverse divides by the number of points already.
    count = int(np.prod(lengths))
    factor = _factor(name, norm, count, forward=forward)
    return _scaled(out, factor if forward else factor * count)


def _rfft(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    x = _real(name, a)
    places, lengths = _lengths(name, s, axes, x.aval.shape, False)
    for i, n in zip(places, lengths, strict=True):
        x = _resized(x, i, n)
    if len(places) <= _AT_ONCE:
        out = _transformed(x, FftType.RFFT, places, lengths)
    else:
        out = _transformed(x, FftType.RFFT, places[-1:], lengths[-1:])
        out = _complex_axes(out, FftType.FFT, places[:-1])
    count = int(np.prod(lengths))
    return _scaled(out, _factor(name, norm, count, forward=True))


def _irfft(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    x = _complex(name, a)
    places, lengths = _lengths(name, s, axes, x.aval.shape, True)
    for i, n in zip(places[:-1], lengths[:-1], strict=True):
        x = _resized(x, i, n)
    x = _resized(x, places[-1], lengths[-1] // 2 + 1)
    if len(places) <= _AT_ONCE:
        out = _transformed(x, FftType.IRFFT, places, lengths)
    else:
        x = _complex_axes(x, FftType.IFFT, places[:-1])
        out = _transformed(x, FftType.IRFFT, places[-1:], lengths[-1:])
    count = int(np.prod(lengths))
    return _scaled(out, _factor(name, norm, count, forward=False) * count)


@library("n", "axis", "norm")
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transforms along an axis.

    Args:
      a: array-like[...].
      n: number of points: the axis is cut or filled up with zeros; None is its length.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array, `n` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.

    Example:
      >>> fft(np.array([1.0, 0.0]))
      Array([1.+0.j, 1.+0.j], dtype=complex64)

    Source: `numpy.fft.fft`.
    """
    return _fft(  # type: ignore[no-any-return]
        "fft", a, None if n is None else (n,), (axis,), norm, forward=True
    )


@library("n", "axis", "norm")
def ifft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms back along an axis.

    Args:
      a: array-like[...].
      n: number of points: the axis is cut or filled up with zeros; None is its length.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array, `n` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.

    Example:
      >>> ifft(np.array([1.0, 1.0]))
      Array([1.+0.j, 0.+0.j], dtype=complex64)

    Source: `numpy.fft.ifft`.
    """
    return _fft(  # type: ignore[no-any-return]
        "ifft", a, None if n is None else (n,), (axis,), norm, forward=False
    )


@library("n", "axis", "norm")
def rfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms real numbers along an axis.

    Args:
      a: real array-like[...].
      n: number of points: the axis is cut or filled up with zeros; None is its length.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array, `n // 2 + 1` long along the axis: the rest is symmetric.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.
      DtypeError: the numbers are complex.

    Example:
      >>> rfft(np.array([1.0, 0.0]))
      Array([1.+0.j, 1.+0.j], dtype=complex64)

    Source: `numpy.fft.rfft`.
    """
    return _rfft(  # type: ignore[no-any-return]
        "rfft", a, None if n is None else (n,), (axis,), norm
    )


@library("n", "axis", "norm")
def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms half of a symmetric spectrum back to real numbers.

    Args:
      a: array-like[...].
      n: number of points of the result; None is 2 (m - 1) of an axis m long.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Real array, `n` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.

    Example:
      >>> irfft(np.array([1.0, 1.0]))
      Array([1., 0.], dtype=float32)

    Source: `numpy.fft.irfft`.
    """
    return _irfft(  # type: ignore[no-any-return]
        "irfft", a, None if n is None else (n,), (axis,), norm
    )


def _other(name: str, norm: Any) -> Any:
    _factor(name, norm, 1, forward=True)
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(
        norm, norm
    )


@library("n", "axis", "norm")
def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms half of a symmetric signal to its real spectrum.

    Args:
      a: array-like[...].
      n: number of points of the result; None is 2 (m - 1) of an axis m long.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Real array, `n` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.

    Example:
      >>> hfft(np.array([1.0, 1.0]))
      Array([2., 0.], dtype=float32)

    Source: `numpy.fft.hfft`.
    """
    x = lax.conj(_complex("hfft", a))
    given = None if n is None else (n,)
    # The other direction, so the other norm.
    return _irfft("hfft", x, given, (axis,), _other("hfft", norm))  # type: ignore[no-any-return]


@library("n", "axis", "norm")
def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms a real spectrum back to half of a symmetric signal.

    Args:
      a: real array-like[...].
      n: number of points: the axis is cut or filled up with zeros; None is its length.
      axis: along which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array, `n // 2 + 1` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: there are no points.
      ArgumentError: there is no such norm.
      DtypeError: the numbers are complex.

    Example:
      >>> ihfft(np.array([2.0, 0.0]))
      Array([1.-0.j, 1.-0.j], dtype=complex64)

    Source: `numpy.fft.ihfft`.
    """
    given = None if n is None else (n,)
    # The other direction, so the other norm.
    return lax.conj(_rfft("ihfft", a, given, (axis,), _other("ihfft", norm)))  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Transforms along several axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; None is all (the last ones, if `s` is given).
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> fftn(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)

    Source: `numpy.fft.fftn`.
    """
    return _fft("fftn", a, s, axes, norm, forward=True)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Transforms back along several axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; None is all (the last ones, if `s` is given).
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> ifftn(np.ones((2, 2)))[0, 0]
      Array(1.+0.j, dtype=complex64)

    Source: `numpy.fft.ifftn`.
    """
    return _fft("ifftn", a, s, axes, norm, forward=False)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Transforms real numbers along several axes.

    Args:
      a: real array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; None is all (the last ones, if `s` is given).
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.
      DtypeError: the numbers are complex.

    Example:
      >>> rfftn(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)

    Source: `numpy.fft.rfftn`.
    """
    return _rfft("rfftn", a, s, axes, norm)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Transforms half of a symmetric spectrum back along several axes.

    Args:
      a: array-like[...].
      s: numbers of points of the result; None are the lengths of the axes, but
        2 (m - 1) of the last one, m long.
      axes: which; None is all (the last ones, if `s` is given).
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Real array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> irfftn(np.ones((2, 2)))[0, 0]
      Array(1., dtype=float32)

    Source: `numpy.fft.irfftn`.
    """
    return _irfft("irfftn", a, s, axes, norm)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Transforms along two axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> fft2(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)

    Source: `numpy.fft.fft2`.
    """
    return _fft("fft2", a, s, axes, norm, forward=True)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def ifft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None
) -> Array:
    """Transforms back along two axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> ifft2(np.ones((2, 2)))[0, 0]
      Array(1.+0.j, dtype=complex64)

    Source: `numpy.fft.ifft2`.
    """
    return _fft("ifft2", a, s, axes, norm, forward=False)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def rfft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None
) -> Array:
    """Transforms real numbers along two axes.

    Args:
      a: real array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.
      DtypeError: the numbers are complex.

    Example:
      >>> rfft2(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)

    Source: `numpy.fft.rfft2`.
    """
    return _rfft("rfft2", a, s, axes, norm)  # type: ignore[no-any-return]


@library("s", "axes", "norm")
def irfft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None
) -> Array:
    """Transforms half of a symmetric spectrum back along two axes.

    Args:
      a: array-like[...].
      s: numbers of points of the result; None are the lengths of the axes, but
        2 (m - 1) of the last one, m long.
      axes: which.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Real array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Example:
      >>> irfft2(np.ones((2, 2)))[0, 0]
      Array(1., dtype=float32)

    Source: `numpy.fft.irfft2`.
    """
    return _irfft("irfft2", a, s, axes, norm)  # type: ignore[no-any-return]


# -- frequencies ---------------------------------------------------------------------


def _frequencies(
    name: str, n: Any, d: Any, dtype: Any, device: Any, numbers: Any
) -> Array:
    result = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    if isinstance(d, int | float):
        return asarray((numbers / (n * d)).astype(result), device=device)
    step = convert(array_of(d, name), result)
    return as_array(numbers.astype(result)) / (step * n)  # type: ignore[no-any-return]


def _points(name: str, n: Any) -> int:
    try:
        count = operator.index(n)
    except TypeError as error:
        raise ArgumentError(f"{name}: n must be an integer, got {n!r}") from error
    if count < 1:
        raise ArgumentError(f"{name}: n must be positive, got {count}")
    return count


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Returns the frequencies of `fft`.

    Args:
      n: number of points.
      d: distance of the points.
      dtype: of the result; None is the default float.
      device: where the result is put.

    Returns:
      Float array[n]: 0, positive, then negative frequencies, in cycles.

    Raises:
      ArgumentError: `n` is no positive integer.

    Example:
      >>> fftfreq(4)
      Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)

    Source: `numpy.fft.fftfreq`.
    """
    n = _points("fftfreq", n)
    numbers = np.r_[np.arange((n + 1) // 2), np.arange(-(n // 2), 0)].astype(np.float64)
    return _frequencies("fftfreq", n, d, dtype, device, numbers)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Returns the frequencies of `rfft`.

    Args:
      n: number of points.
      d: distance of the points.
      dtype: of the result; None is the default float.
      device: where the result is put.

    Returns:
      Float array[n // 2 + 1]: 0 and positive frequencies, in cycles.

    Raises:
      ArgumentError: `n` is no positive integer.

    Example:
      >>> rfftfreq(4)
      Array([0.  , 0.25, 0.5 ], dtype=float32)

    Source: `numpy.fft.rfftfreq`.
    """
    n = _points("rfftfreq", n)
    numbers = np.arange(n // 2 + 1).astype(np.float64)
    return _frequencies("rfftfreq", n, d, dtype, device, numbers)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Any:
    array = array_of(x, name)
    shape = array.aval.shape
    if axes is None:
        places = tuple(range(len(shape)))
    elif isinstance(axes, tuple | list):
        places = canonical_axes(name, axes, len(shape))
    else:
        places = (canonical_axis(name, axes, len(shape)),)
    steps = tuple(
        sign * shape[i] // 2 if sign > 0 else -(shape[i] // 2) for i in places
    )
    return roll(array, steps, places) if places else array


@library("axes")
def fftshift(x: Any, axes: Any = None) -> Array:
    """Moves frequency 0 to the middle.

    Args:
      x: array-like[...].
      axes: int, sequence of ints, or None for all.

    Returns:
      Array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> fftshift(np.array([0, 1, 2, -2, -1]))
      Array([-2, -1,  0,  1,  2], dtype=int32)

    Source: `numpy.fft.fftshift`.
    """
    return _shifted("fftshift", x, axes, 1)  # type: ignore[no-any-return]


@library("axes")
def ifftshift(x: Any, axes: Any = None) -> Array:
    """Moves frequency 0 from the middle to the front.

    Args:
      x: array-like[...].
      axes: int, sequence of ints, or None for all.

    Returns:
      Array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> ifftshift(np.array([-2, -1, 0, 1, 2]))
      Array([ 0,  1,  2, -2, -1], dtype=int32)

    Source: `numpy.fft.ifftshift`.
    """
    return _shifted("ifftshift", x, axes, -1)  # type: ignore[no-any-return]
