"""Transforms along one axis and along several."""

from __future__ import annotations

from collections.abc import Sequence

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, Axes
from fxflow.numpy.fft._machine import (
    complex_operand,
    full_transform,
    half_inverse,
    half_transform,
    opposite,
)


def _one(n: int | None) -> tuple[int] | None:
    """Returns the length of one axis as lengths of axes."""
    return None if n is None else (n,)


_one_axis_docs = shared("""
    Args:
      a: array-like[...].
      n: number of points: the axis is truncated or padded with zeros; None is its
        length.
      axis: the axis.
      norm: which transform is divided by the number of points: "backward" (the same as
        None), "forward", or "ortho": both, by its square root.

    Returns:
      Complex array, `n` long along the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: a transform has no points.
      ArgumentError: unknown norm.

    Source: `numpy.fft.{name}`.
""")


@library("n", "axis", "norm")
@_one_axis_docs
def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms along an axis.

    Example:
      >>> fft(np.array([1.0, 0.0]))
      Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return full_transform("fft", a, _one(n), (axis,), norm, forward=True)


@library("n", "axis", "norm")
@_one_axis_docs
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms back along an axis.

    Example:
      >>> ifft(np.array([1.0, 1.0]))
      Array([1.+0.j, 0.+0.j], dtype=complex64)
    """
    return full_transform("ifft", a, _one(n), (axis,), norm, forward=False)


@library("n", "axis", "norm")
@_one_axis_docs
def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms real numbers along an axis.

    Args:
      a: real array-like[...].

    Returns:
      Complex array, `n // 2 + 1` long along the axis: the rest is symmetric.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> rfft(np.array([1.0, 0.0]))
      Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return half_transform("rfft", a, _one(n), (axis,), norm)


@library("n", "axis", "norm")
@_one_axis_docs
def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms half of a symmetric spectrum back to real numbers.

    Args:
      n: number of points of the result; None is 2 (m - 1) of an axis m long.

    Returns:
      Real array, `n` long along the axis.

    Example:
      >>> irfft(np.array([1.0, 1.0]))
      Array([1., 0.], dtype=float32)
    """
    return half_inverse("irfft", a, _one(n), (axis,), norm)


@library("n", "axis", "norm")
@_one_axis_docs
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms half of a symmetric signal to its real spectrum.

    Args:
      n: number of points of the result; None is 2 (m - 1) of an axis m long.

    Returns:
      Real array, `n` long along the axis.

    Example:
      >>> hfft(np.array([1.0, 1.0]))
      Array([2., 0.], dtype=float32)
    """
    x = lax.conj(complex_operand("hfft", a))
    # The other direction, so the other norm.
    return half_inverse("hfft", x, _one(n), (axis,), opposite("hfft", norm))


@library("n", "axis", "norm")
@_one_axis_docs
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Transforms a real spectrum back to half of a symmetric signal.

    Args:
      a: real array-like[...].

    Returns:
      Complex array, `n // 2 + 1` long along the axis.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> ihfft(np.array([2.0, 0.0]))
      Array([1.-0.j, 1.-0.j], dtype=complex64)
    """
    # The other direction, so the other norm.
    return lax.conj(
        half_transform("ihfft", a, _one(n), (axis,), opposite("ihfft", norm))
    )


_several_axes_docs = shared("""
    Args:
      a: array-like[...].
      s: numbers of points: axes are truncated or padded with zeros to them; None means
        their lengths.
      norm: which transform is divided by the number of points: "backward" (the same as
        None), "forward", or "ortho": both, by its square root.

    Returns:
      Complex array.

    Raises:
      AxisError: an axis is out of range or repeated.
      ShapeError: a transform has no points.
      ArgumentError: unknown norm, or lengths and axes do not match.

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
      axes: the axes; None means all (the last ones, if `s` is given).

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
      axes: the axes; None means all (the last ones, if `s` is given).

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
      axes: the axes; None means all (the last ones, if `s` is given).

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
    """Inverts `rfftn`: transforms half of a Hermitian spectrum along several axes.

    Args:
      s: numbers of points of the result; None means the lengths of the axes, and 2 (m -
        1) for the last one, whose length is m.
      axes: the axes; None means all (the last ones, if `s` is given).

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
      axes: the axes; any number of them, as in NumPy (JAX requires two).

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
      axes: the axes; any number of them, as in NumPy (JAX requires two).

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
      axes: the axes; any number of them, as in NumPy (JAX requires two).

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
      s: numbers of points of the result; None means the lengths of the axes, and 2 (m -
        1) for the last one, whose length is m.
      axes: the axes; any number of them, as in NumPy (JAX requires two).

    Returns:
      Real array.

    Example:
      >>> irfft2(np.ones((2, 2)))[0, 0]
      Array(1., dtype=float32)
    """
    return half_inverse("irfft2", a, s, axes, norm)
