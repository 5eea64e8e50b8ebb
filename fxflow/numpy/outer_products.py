"""Products that sum nothing: `outer`, `kron`, and the cross product."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, broadcast, convert, no_out, promote_dtypes
from fxflow.numpy.axis_order import moveaxis


@library("out")
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiplies each element of `a` by each of `b`.

    Args:
      a: array-like with m elements.
      b: array-like with n elements.
      out: not supported: arrays are immutable.

    Returns:
      Array[m, n].

    Raises:
      ArgumentError: an operand is not an array, or `out` is given.

    Example:
      >>> outer(np.array([1, 2]), np.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)

    Source: `numpy.outer`.
    """
    no_out("outer", out)
    x, y = promote_dtypes("outer", a, b)
    m, n = x.aval.size, y.aval.size
    x = lax.broadcast_in_dim(lax.reshape(x, (m,)), (m, n), (0,))
    y = lax.broadcast_in_dim(lax.reshape(y, (n,)), (m, n), (1,))
    if dtypes.is_bool(x.aval.dtype):
        return lax.bitwise_and(x, y)
    return lax.mul(x, y)


@library()
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Returns the Kronecker product: `b` in blocks, each times an element of `a`.

    Args:
      a: array-like.
      b: array-like.

    Returns:
      Array whose axes have the products of the lengths of the axes of both.

    Raises:
      ArgumentError: an operand is not an array.

    Example:
      >>> kron(np.array([1, 10]), np.array([1, 2, 3]))
      Array([ 1,  2,  3, 10, 20, 30], dtype=int32)

    Source: `numpy.kron`.
    """
    x, y = promote_dtypes("kron", a, b)
    ndim = max(x.aval.ndim, y.aval.ndim)
    one = (1,) * (ndim - x.aval.ndim) + x.aval.shape
    two = (1,) * (ndim - y.aval.ndim) + y.aval.shape
    x = lax.reshape(x, tuple(n for d in one for n in (d, 1)))
    y = lax.reshape(y, tuple(n for d in two for n in (1, d)))
    x, y = broadcast("kron", [x, y])
    out = lax.bitwise_and(x, y) if dtypes.is_bool(x.aval.dtype) else lax.mul(x, y)
    return lax.reshape(out, tuple(m * n for m, n in zip(one, two, strict=True)))


@library("axisa", "axisb", "axisc", "axis")
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Returns the cross product of vectors of 3 (or 2) components.

    Args:
      a: array-like[..., 3] or [..., 2].
      b: array-like[..., 3] or [..., 2]; the other axes broadcast.
      axisa: axis of the components of `a`.
      axisb: axis of the components of `b`.
      axisc: axis of the components of the result.
      axis: all three of them.

    Returns:
      Array[..., 3]; for vectors of 2 components their third component, array[...].

    Raises:
      AxisError: an axis is out of range.
      ShapeError: the vectors have neither 2 nor 3 components.

    Example:
      >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)

    Source: `numpy.cross`.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (convert(v, v.aval.dtype) for v in promote_dtypes("cross", a, b))
    x = moveaxis(x, canonical_axis("cross", axisa, x.aval.ndim), -1)
    y = moveaxis(y, canonical_axis("cross", axisb, y.aval.ndim), -1)
    if x.aval.shape[-1] not in (2, 3) or y.aval.shape[-1] not in (2, 3):
        raise ShapeError(
            f"cross: vectors must have 2 or 3 components, got {x.aval} and {y.aval}"
        )

    def component(v: Array, i: int) -> Array:
        ndim = v.aval.ndim
        return lax.index_in_dim(v, i, ndim - 1, keepdims=False)

    def times(i: int, j: int) -> Array | None:
        if i >= x.aval.shape[-1] or j >= y.aval.shape[-1]:
            return None
        return lax.mul(*broadcast("cross", [component(x, i), component(y, j)]))

    def difference(p: Any, q: Any) -> Array:
        # A component that is not there is zero; one of the two is there.
        if p is None:
            return lax.neg(q)
        if q is None:
            only: Array = p
            return only
        return lax.sub(p, q)

    last = difference(times(0, 1), times(1, 0))
    if x.aval.shape[-1] == 2 and y.aval.shape[-1] == 2:
        return last
    first = difference(times(1, 2), times(2, 1))
    second = difference(times(2, 0), times(0, 2))
    ndim = last.aval.ndim
    parts = [lax.expand_dims(p, (ndim,)) for p in (first, second, last)]
    out = lax.concatenate(parts, ndim)
    return moveaxis(out, -1, canonical_axis("cross", axisc, ndim + 1))
