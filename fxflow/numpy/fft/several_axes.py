"""Transforms along several axes."""

from __future__ import annotations

from collections.abc import Sequence

from fxflow.core.arrays.array import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.eager import library
from fxflow.numpy._operands import ArrayLike, Axes
from fxflow.numpy.fft._machine import full_transform, half_inverse, half_transform

_several_axes_docs = shared("""
    Args:
      a: array-like[...].
      s: numbers of points: axes are cut or filled up with zeros; None are their
        lengths.
      norm: which direction is divided by the number of points: "backward" (None is the
        same), "forward", or "ortho": both by its root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: there are no points.
      ArgumentError: there is no such norm, or lengths and axes do not go together.

    Source: `numpy.fft.{name}`.
""")


@library("s", "axes", "norm")
@_several_axes_docs
def fftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
    """Transforms along several axes.

    Args:
      axes: which; None is all (the last ones, if `s` is given).

    Example:
      >>> fftn(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)
    """
    return full_transform("fftn", a, s, axes, norm, forward=True)


@library("s", "axes", "norm")
@_several_axes_docs
def ifftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
    """Transforms back along several axes.

    Args:
      axes: which; None is all (the last ones, if `s` is given).

    Example:
      >>> ifftn(np.ones((2, 2)))[0, 0]
      Array(1.+0.j, dtype=complex64)
    """
    return full_transform("ifftn", a, s, axes, norm, forward=False)


@library("s", "axes", "norm")
@_several_axes_docs
def rfftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
    """Transforms real numbers along several axes.

    Args:
      a: real array-like[...].
      axes: which; None is all (the last ones, if `s` is given).

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> rfftn(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)
    """
    return half_transform("rfftn", a, s, axes, norm)


@library("s", "axes", "norm")
@_several_axes_docs
def irfftn(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = None,
    norm: str | None = None,
) -> Array:
    """Transforms half of a symmetric spectrum back along several axes.

    Args:
      s: numbers of points of the result; None are the lengths of the axes, but
        2 (m - 1) of the last one, m long.
      axes: which; None is all (the last ones, if `s` is given).

    Returns:
      Real array.

    Example:
      >>> irfftn(np.ones((2, 2)))[0, 0]
      Array(1., dtype=float32)
    """
    return half_inverse("irfftn", a, s, axes, norm)


@library("s", "axes", "norm")
@_several_axes_docs
def fft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms along two axes.

    Args:
      axes: which; not only two of them, as in NumPy (JAX refuses others).

    Example:
      >>> fft2(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)
    """
    return full_transform("fft2", a, s, axes, norm, forward=True)


@library("s", "axes", "norm")
@_several_axes_docs
def ifft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms back along two axes.

    Args:
      axes: which; not only two of them, as in NumPy (JAX refuses others).

    Example:
      >>> ifft2(np.ones((2, 2)))[0, 0]
      Array(1.+0.j, dtype=complex64)
    """
    return full_transform("ifft2", a, s, axes, norm, forward=False)


@library("s", "axes", "norm")
@_several_axes_docs
def rfft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms real numbers along two axes.

    Args:
      a: real array-like[...].
      axes: which; not only two of them, as in NumPy (JAX refuses others).

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> rfft2(np.ones((2, 2)))[0, 0]
      Array(4.+0.j, dtype=complex64)
    """
    return half_transform("rfft2", a, s, axes, norm)


@library("s", "axes", "norm")
@_several_axes_docs
def irfft2(
    a: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Transforms half of a symmetric spectrum back along two axes.

    Args:
      s: numbers of points of the result; None are the lengths of the axes, but
        2 (m - 1) of the last one, m long.
      axes: which; not only two of them, as in NumPy (JAX refuses others).

    Returns:
      Real array.

    Example:
      >>> irfft2(np.ones((2, 2)))[0, 0]
      Array(1., dtype=float32)
    """
    return half_inverse("irfft2", a, s, axes, norm)
