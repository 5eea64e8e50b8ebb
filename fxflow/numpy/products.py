"""Products of matrices and vectors, and over any axes: `matmul`, `dot`, `tensordot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import ArrayLike, DTypeLike, promote_dtypes
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.contraction import (
    labelled_product,
    lengths_differ,
    preferred_dtype,
    scaled,
)
from fxflow.numpy.ufuncs import Binary

_MATRICES = (((1,), (0,)), ((), ()))


# -- matrices --------------------------------------------------------------------------


_product_docs = shared("""
    Args:
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Raises:
      ...
      ShapeError: the lengths of the summed axes differ.
      ArgumentError: an operand is not an array.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Source: `numpy.{name}`.
""")


@_product_docs
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies matrices: the operator `@`.

    Args:
      a: array-like[..., m, k], or [k].
      b: array-like[..., k, n], or [k].

    Returns:
      Array[..., m, n] of the common dtype, the axes before broadcast; without `m` or
      `n` where that operand is a vector.

    Raises:
      ShapeError: an operand has no axes, or the shapes are incompatible.

    Example:
      >>> matmul(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    if precision is preferred_element_type is out_sharding is None:
        return matmul_operator(a, b)
    with open_layouts(out_sharding):
        out = _matmul(
            a, b, precision=precision, preferred_element_type=preferred_element_type
        )
    return out if out_sharding is None else laid_out("matmul", out, out_sharding)


@library("precision", "preferred_element_type")
def _matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    x, y = promote_dtypes("matmul", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    # The common case, without the alignment of batch axes.
    if m == n == 2 and x.aval.shape[1] == y.aval.shape[0]:
        return lax.dot_general(x, y, _MATRICES, precision, preferred)
    if not m or not n:
        raise ShapeError(
            f"matmul: operands need at least one axis, got {x.aval} and {y.aval}: use *"
        )
    xs = ("m", "k") if m > 1 else ("k",)
    ys = ("k", "n") if n > 1 else ("k",)
    core = xs[:-1] + ys[1:]
    return labelled_product("matmul", x, xs, y, ys, core, precision, preferred)


matmul_operator: Binary[Array] = Binary(_matmul, name="matmul", doc=matmul.__doc__)
"""The operator `@`: `matmul` without options, by the fast path of operators."""


_vector_docs = shared("""
    Args:
      x1: array-like[..., k].
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Raises:
      ...
      ShapeError: the shapes are incompatible.

    Source: `numpy.{name}`.
""")


@library("precision", "preferred_element_type")
@_vector_docs
def matvec(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiplies matrices by vectors.

    Args:
      x1: array-like[..., m, k].
      x2: array-like[..., k]; the axes before broadcast.

    Returns:
      Array[..., m].

    Example:
      >>> matvec(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    x, y = promote_dtypes("matvec", x1, x2)
    _require_axes("matvec", x, 2, y, 1)
    preferred = preferred_dtype(preferred_element_type)
    return labelled_product(
        "matvec", x, ("m", "k"), y, ("k",), ("m",), precision, preferred
    )


@library("precision", "preferred_element_type")
@_vector_docs
def vecmat(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiplies vectors, conjugated, by matrices.

    Args:
      x2: array-like[..., k, n]; the axes before broadcast.

    Returns:
      Array[..., n].

    Example:
      >>> vecmat(np.array([1, 10]), np.array([[1, 2], [3, 4]]))
      Array([31, 42], dtype=int32)
    """
    x, y = promote_dtypes("vecmat", x1, x2)
    _require_axes("vecmat", x, 1, y, 2)
    preferred = preferred_dtype(preferred_element_type)
    return labelled_product(
        "vecmat", _conjugate(x), ("k",), y, ("k", "n"), ("n",), precision, preferred
    )


def _require_axes(name: str, x: Any, m: int, y: Any, n: int) -> None:
    if x.aval.ndim < m or y.aval.ndim < n:
        raise ShapeError(
            f"{name}: operands need at least {m} and {n} axes, got {x.aval} and "
            f"{y.aval}"
        )


# -- vectors ---------------------------------------------------------------------------


@_product_docs
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sums products over the last axis of `a` and the last but one of `b`.

    Args:
      a: array-like[..., k], or a number.
      b: array-like[..., k, n], [k], or a number.

    Returns:
      Array of shape `a.shape[:-1] + b.shape[:-2] + b.shape[-1:]`.

    Example:
      >>> dot(np.array([1, 2, 3]), np.array([4, 5, 6]))
      Array(32, dtype=int32)
    """
    if precision is preferred_element_type is out_sharding is None:
        return _plain_dot(a, b)
    with open_layouts(out_sharding):
        out = _dot(
            a, b, precision=precision, preferred_element_type=preferred_element_type
        )
    return out if out_sharding is None else laid_out("dot", out, out_sharding)


@library("precision", "preferred_element_type")
def _dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    x, y = promote_dtypes("dot", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    if not m or not n:
        return _times_number(x, y, preferred)
    j = 0 if n == 1 else n - 2
    return _over_pairs("dot", x, (m - 1,), y, (j,), precision, preferred)


# Without options: by the fast path of operators.
_plain_dot = Binary(_dot, name="dot", doc=dot.__doc__)


def _times_number(x: Array, y: Array, preferred: Any) -> Array:
    """Returns the product of two arrays, one of which has no axes."""
    labels = tuple(range(x.aval.ndim + y.aval.ndim))
    return scaled(x, labels[: x.aval.ndim], y, labels[x.aval.ndim :], preferred)[0]


def _over_pairs(
    name: str,
    x: Array,
    left: Sequence[int],
    y: Array,
    right: Sequence[int],
    precision: Any,
    preferred: Any,
) -> Array:
    """Sums products over pairs of axes, whose lengths must be the same."""
    a, b = x.aval, y.aval
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            raise lengths_differ(name, a, i, b, j)
    numbers = ((tuple(left), tuple(right)), ((), ()))
    return lax.dot_general(x, y, numbers, precision, preferred)


@library("precision", "preferred_element_type")
@_vector_docs
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums products over the last axes of both.

    Args:
      a: array-like[..., k], or a number.
      b: array-like[..., k], or a number.

    Returns:
      Array of shape `a.shape[:-1] + b.shape[:-1]`.

    Raises:
      ShapeError: the lengths of the last axes differ.

    Example:
      >>> inner(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes("inner", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    if not m or not n:
        return _times_number(x, y, preferred)
    return _over_pairs("inner", x, (m - 1,), y, (n - 1,), precision, preferred)


@library("precision", "preferred_element_type")
@_vector_docs
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums the products of all elements, those of `a` conjugated.

    Args:
      a: array-like.
      b: array-like with as many elements.
      preferred_element_type: dtype of the result and of the sum.

    Returns:
      0-d array.

    Raises:
      ShapeError: the numbers of elements differ.

    Example:
      >>> vdot(np.array([1 + 2j]), np.array([3 + 4j]))
      Array(11.-2.j, dtype=complex64)
    """
    x, y = promote_dtypes("vdot", a, b)
    if x.aval.size != y.aval.size:
        raise ShapeError(
            f"vdot: operands need as many elements, got {x.aval} and {y.aval}"
        )
    x = lax.reshape(_conjugate(x), (x.aval.size,))
    y = lax.reshape(y, (y.aval.size,))
    preferred = preferred_dtype(preferred_element_type)
    return _over_pairs("vdot", x, (0,), y, (0,), precision, preferred)


def _conjugate(x: Any) -> Any:
    return lax.conj(x) if dtypes.is_complex(x.aval.dtype) else x


@library("axis", "precision", "preferred_element_type")
@_vector_docs
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums products along an axis, those of `x1` conjugated.

    Args:
      x2: array-like[..., k]; the other axes broadcast.
      axis: of both, before broadcasting; negative, if their numbers of axes differ.

    Returns:
      Array of the broadcast shape without the axis.

    Raises:
      AxisError: the axis is out of range.

    Example:
      >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes("vecdot", x1, x2)
    x = moveaxis(x, canonical_axis("vecdot", axis, x.aval.ndim), -1)
    y = moveaxis(y, canonical_axis("vecdot", axis, y.aval.ndim), -1)
    core = ("k",)
    preferred = preferred_dtype(preferred_element_type)
    return labelled_product(
        "vecdot", _conjugate(x), core, y, core, (), precision, preferred
    )


# -- any axes --------------------------------------------------------------------------


@_product_docs
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sums products over some axes of both.

    Args:
      a: array-like.
      b: array-like.
      axes: how many axes (the last ones of `a`, the first ones of `b`), or a pair of
        axes or of sequences of axes: those of `a`, and with which of `b`.

    Returns:
      Array with the remaining axes of `a`, then those of `b`.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: `axes` is of no such form.

    Example:
      >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), ((1, 2), (1, 0))).shape
      (2, 5)
    """
    if out_sharding is not None:
        with open_layouts(out_sharding):
            out = tensordot(
                a,
                b,
                axes,
                precision=precision,
                preferred_element_type=preferred_element_type,
            )
        return laid_out("tensordot", out, out_sharding)
    if isinstance(axes, int | np.integer):
        return _tensordot(a, b, int(axes), precision, preferred_element_type)
    try:
        left, right = axes
        fixed = tuple(
            (int(n),) if isinstance(n, int | np.integer) else tuple(int(i) for i in n)
            for n in (left, right)
        )
    except (TypeError, ValueError):
        raise ArgumentError(
            "tensordot: axes must be a number of axes or a pair of axes or of "
            f"sequences of axes, got {axes!r}"
        ) from None
    return _tensordot(a, b, fixed, precision, preferred_element_type)


@library("axes", "precision", "preferred_element_type")
def _tensordot(
    a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any
) -> Array:
    x, y = promote_dtypes("tensordot", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    if isinstance(axes, int):
        if not 0 <= axes <= min(m, n):
            raise AxisError(
                f"tensordot: cannot sum over {axes} axes of {x.aval} and {y.aval}"
            )
        axes = tuple(range(m - axes, m)), tuple(range(axes))
    left, right = axes
    if len(left) != len(right):
        raise ShapeError(
            f"tensordot: axes must name as many axes of both, got {left} and {right}"
        )
    left = tuple(canonical_axis("tensordot", i, m) for i in left)
    right = tuple(canonical_axis("tensordot", i, n) for i in right)
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise AxisError(f"tensordot: axes name an axis twice: {left}, {right}")
    preferred = preferred_dtype(preferred_element_type)
    return _over_pairs("tensordot", x, left, y, right, precision, preferred)
