"""Transforms of symmetric signals along several axes."""

from __future__ import annotations

from collections.abc import Sequence

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, Axes
from fxflow.numpy.fft._machine import (
    complex_operand,
    half_inverse,
    half_transform,
    opposite,
)

_docs = shared("""
    Args:
      x: array-like[...].
      axes: the axes.
      norm: which transform is divided by the number of points: "backward" (the same as
        None), "forward", or "ortho": both, by its square root.
      overwrite_x: has no effect.
      workers: has no effect.
      plan: None.

    Raises:
      AxisError: an axis is out of range or repeated.
      ShapeError: a transform has no points.
      ArgumentError: unknown norm, lengths and axes do not match, or `plan` is given.

    Source: `scipy.fft.{name}`.
""")

_STATIC = "s", "axes", "norm", "overwrite_x", "workers", "plan"
Lengths = Sequence[int | None] | None


def _transformed(
    name: str, x: ArrayLike, s: Lengths, axes: Axes, norm: str | None, plan: None
) -> Array:
    """Returns the real spectrum of half of a symmetric signal, or the other way."""
    if plan is not None:
        raise ArgumentError(f"{name}: plan must be None, got {plan!r}")
    # The other direction than that of irfftn and rfftn, so the other norm.
    norm = opposite(name, norm)
    if name.startswith("i"):
        return lax.conj(half_transform(name, x, s, axes, norm))
    return half_inverse(name, lax.conj(complex_operand(name, x)), s, axes, norm)


@library(*_STATIC)
@_docs
def hfft2(
    x: ArrayLike,
    s: Lengths = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: None = None,
) -> Array:
    """Transforms half of a symmetric signal to its real spectrum, along two axes.

    Args:
      s: numbers of points of the result; None means the lengths of the axes, and 2 (m -
        1) for the last one, whose length is m.

    Returns:
      Real array.

    Example:
      >>> hfft2(np.array([[1.0, 0.5], [0.0, 0.0]]))
      Array([[1.5, 0.5],
             [1.5, 0.5]], dtype=float32)
    """
    return _transformed("hfft2", x, s, axes, norm, plan)


@library(*_STATIC)
@_docs
def ihfft2(
    x: ArrayLike,
    s: Lengths = None,
    axes: Axes = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: None = None,
) -> Array:
    """Transforms a real spectrum back to half of a symmetric signal, along two axes.

    Args:
      x: real array-like[...].
      s: numbers of points: axes are truncated or padded with zeros to them; None means
        their lengths.

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> ihfft2(np.array([[2.0, 0.0], [2.0, 0.0]])).real
      Array([[1., 1.],
             [0., 0.]], dtype=float32)
    """
    return _transformed("ihfft2", x, s, axes, norm, plan)


@library(*_STATIC)
@_docs
def hfftn(
    x: ArrayLike,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: None = None,
) -> Array:
    """Transforms half of a symmetric signal to its real spectrum.

    Args:
      s: numbers of points of the result; None means the lengths of the axes, and 2 (m -
        1) for the last one, whose length is m.
      axes: the axes; None is all (the last ones, if `s` is given).

    Returns:
      Real array.

    Example:
      >>> hfftn(np.array([1.0, 1.0]))
      Array([2., 0.], dtype=float32)
    """
    return _transformed("hfftn", x, s, axes, norm, plan)


@library(*_STATIC)
@_docs
def ihfftn(
    x: ArrayLike,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: None = None,
) -> Array:
    """Transforms a real spectrum back to half of a symmetric signal.

    Args:
      x: real array-like[...].
      s: numbers of points: axes are truncated or padded with zeros to them; None means
        their lengths.
      axes: the axes; None is all (the last ones, if `s` is given).

    Returns:
      Complex array; its last axis is `n // 2 + 1` long.

    Raises:
      DtypeError: the numbers are complex.

    Example:
      >>> ihfftn(np.array([2.0, 0.0])).real
      Array([1., 1.], dtype=float32)
    """
    return _transformed("ihfftn", x, s, axes, norm, plan)
