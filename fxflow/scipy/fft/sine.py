"""Discrete sine transforms, of types I to IV."""

from __future__ import annotations

from collections.abc import Sequence

from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.fft.cosine import TRANSFORM_DOCS, Kind, of_axes, transformed

_docs = shared(TRANSFORM_DOCS + "\n    Source: `scipy.fft.{name}`.\n")


@library("type", "n", "axis", "overwrite_x", "workers", "orthogonalize")
@_docs
def dst(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns the discrete sine transform along an axis.

    Example:
      >>> dst(np.array([1.0, 2.0, 3.0])).round(3)
      Array([ 8.   , -3.464,  4.   ], dtype=float32)
    """
    kind = Kind("dst", type, norm, False, orthogonalize, sine=True)
    return transformed(kind, x, n, axis)


@library("type", "s", "axes", "overwrite_x", "workers", "orthogonalize")
@_docs
def dstn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns the discrete sine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    kind = Kind("dstn", type, norm, False, orthogonalize, sine=True)
    return of_axes(kind, x, s, axes)


@library("type", "n", "axis", "overwrite_x", "workers", "orthogonalize")
@_docs
def idst(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns what has a discrete sine transform along an axis.

    Example:
      >>> idst(dst(np.array([1.0, 2.0, 3.0]))).round(3)
      Array([1., 2., 3.], dtype=float32)
    """
    kind = Kind("idst", type, norm, True, orthogonalize, sine=True)
    return transformed(kind, x, n, axis)


@library("type", "s", "axes", "overwrite_x", "workers", "orthogonalize")
@_docs
def idstn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns what has a discrete sine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    kind = Kind("idstn", type, norm, True, orthogonalize, sine=True)
    return of_axes(kind, x, s, axes)
