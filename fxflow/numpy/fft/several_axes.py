"""Transforms along several axes."""

from __future__ import annotations

from collections.abc import Sequence

from fxflow.core.arrays.array import Array
from fxflow.core.runtime.eager import library
from fxflow.numpy._operands import ArrayLike, Axes
from fxflow.numpy.fft._machine import full_transform, half_inverse, half_transform


@library("s", "axes", "norm")
def fftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
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
    return full_transform("fftn", a, s, axes, norm, forward=True)


@library("s", "axes", "norm")
def ifftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
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
    return full_transform("ifftn", a, s, axes, norm, forward=False)


@library("s", "axes", "norm")
def rfftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
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
    return half_transform("rfftn", a, s, axes, norm)


@library("s", "axes", "norm")
def irfftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
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
    return half_inverse("irfftn", a, s, axes, norm)


@library("s", "axes", "norm")
def fft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms along two axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; not only two of them, as in NumPy (JAX refuses others).
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
    return full_transform("fft2", a, s, axes, norm, forward=True)


@library("s", "axes", "norm")
def ifft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms back along two axes.

    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; not only two of them, as in NumPy (JAX refuses others).
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
    return full_transform("ifft2", a, s, axes, norm, forward=False)


@library("s", "axes", "norm")
def rfft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms real numbers along two axes.

    Args:
      a: real array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      axes: which; not only two of them, as in NumPy (JAX refuses others).
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
    return half_transform("rfft2", a, s, axes, norm)


@library("s", "axes", "norm")
def irfft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms half of a symmetric spectrum back along two axes.

    Args:
      a: array-like[...].
      s: numbers of points of the result; None are the lengths of the axes, but
        2 (m - 1) of the last one, m long.
      axes: which; not only two of them, as in NumPy (JAX refuses others).
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
    return half_inverse("irfft2", a, s, axes, norm)
