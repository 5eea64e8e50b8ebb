"""Diagonals and triangles of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes, typeof
from fxflow.core.arrays.aval import require_room
from fxflow.core.docs import shared
from fxflow.core.ir.arith import constant
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_symbolic, larger, smaller
from fxflow.errors import AxisError, ShapeError
from fxflow.lax.axes import canonical_axis, integer
from fxflow.numpy._operands import ArrayLike, DTypeLike, array_of, convert
from fxflow.numpy.creation import asarray, to_device, wrap_host
from fxflow.numpy.reductions import sum
from fxflow.numpy.searching import nonzero
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import ravel

# -- matrices of ones and zeros --------------------------------------------------------


def _length(name: str, what: str, value: Any) -> int:
    n = integer(name, what, value)
    if n < 0:
        raise ShapeError(f"{name}: {what} must not be negative, got {n}")
    return n


def _offsets(rows: int, columns: int) -> Any:
    """Returns column minus row for each element, as int32."""
    if state.trace is EVAL:
        require_room((rows, columns), dtypes.int32)
        grid = (
            np.arange(columns, dtype=np.int32)
            - np.arange(rows, dtype=np.int32)[:, None]
        )
        return wrap_host(grid)
    shape = (rows, columns)
    return lax.sub(
        lax.broadcasted_iota(dtypes.int32, shape, 1),
        lax.broadcasted_iota(dtypes.int32, shape, 0),
    )


def eye(
    N: int,
    M: int | None = None,
    k: Any = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
) -> Array:
    """Makes a matrix with ones on a diagonal.

    Args:
      N: number of rows.
      M: number of columns (default: `N`).
      k: which diagonal: 0 is the main one, positive ones are above it.
      dtype: dtype of the result (default: the default float).
      device: where to put it.

    Returns:
      Array of shape `(N, M)`.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> eye(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `numpy.eye`.
    """
    rows = _length("eye", "N", N)
    columns = rows if M is None else _length("eye", "M", M)
    chosen = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    # On the host: no program for a constant.
    if state.trace is EVAL and type(k) is int:
        require_room((rows, columns), chosen)
        out: Any = wrap_host(np.eye(rows, columns, k, np.bool_).astype(chosen))
    else:
        shift = k if type(k) is int else convert(array_of(k, "eye"), dtypes.int32)
        out = convert(lax.eq(_offsets(rows, columns), shift), chosen)
    return out if device is None else to_device(out, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Makes a square matrix with ones on the main diagonal.

    Args:
      n: number of rows and columns.
      dtype: dtype of the result (default: the default float).

    Returns:
      Array of shape `(n, n)`.

    Raises:
      ShapeError: `n` is negative.

    Example:
      >>> identity(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `numpy.identity`.
    """
    return eye(n, dtype=dtype)


_index_docs = shared("""
    Args:
      k: which diagonal.
      n: number of rows.
      m: number of columns (default: `n`).
      arr: array-like of two axes.

    Returns:
      Two int32 arrays.

    Source: `numpy.{name}`.
""")


@_index_docs
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """Makes a matrix with ones on a diagonal and below.

    Args:
      N: number of rows.
      M: number of columns (default: `N`).
      dtype: dtype of the result (default: the default float).

    Returns:
      Array of shape `(N, M)`.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> tri(2, 3, k=1)
      Array([[1., 1., 0.],
             [1., 1., 1.]], dtype=float32)
    """
    rows = _length("tri", "N", N)
    columns = rows if M is None else _length("tri", "M", M)
    chosen = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    return convert(lax.le(_offsets(rows, columns), operator.index(k)), chosen)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Array:
    x = array_of(m, name)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: needs two axes or more, got {x.aval}")
    below = lax.le(_offsets(*shape[-2:]), k if lower else k - 1)
    wide = lax.broadcast_in_dim(below, shape, (len(shape) - 2, len(shape) - 1))
    zero = constant(0, x.aval.dtype, x.aval.weak_type)
    return choose_between(wide, x, zero) if lower else choose_between(wide, zero, x)


@library("k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Keeps what is on a diagonal and below; the rest becomes 0.

    Args:
      m: array-like of two axes or more.
      k: which diagonal: 0 is the main one, positive ones are above it.

    Returns:
      Array of the type of `m`.

    Raises:
      ShapeError: `m` has fewer axes.

    Example:
      >>> tril(np.array([[1, 2, 3], [4, 5, 6]]), k=-1)
      Array([[0, 0, 0],
             [4, 0, 0]], dtype=int32)

    Source: `numpy.tril`.
    """
    return _triangle("tril", m, k, True)


@library("k")
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Keeps what is on a diagonal and above; the rest becomes 0.

    Args:
      m: array-like of two axes or more.
      k: which diagonal: 0 is the main one, positive ones are above it.

    Returns:
      Array of the type of `m`.

    Raises:
      ShapeError: `m` has fewer axes.

    Example:
      >>> triu(np.array([[1, 2, 3], [4, 5, 6]]), k=1)
      Array([[0, 2, 3],
             [0, 0, 6]], dtype=int32)

    Source: `numpy.triu`.
    """
    return _triangle("triu", m, k, False)


# -- diagonals -------------------------------------------------------------------------


@library("offset", "axis1", "axis2")
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Returns a diagonal of the matrices along two axes.

    Args:
      a: array-like of two axes or more.
      offset: which diagonal: 0 is the main one, positive ones are above it.
      axis1: of the rows.
      axis2: of the columns.

    Returns:
      Array without those axes, the diagonal along a new last one.

    Raises:
      ShapeError: `a` has fewer axes.
      AxisError: an axis is out of range or repeated.

    Example:
      >>> diagonal(np.array([[1, 2, 3], [4, 5, 6]]), offset=1)
      Array([2, 6], dtype=int32)

    Source: `numpy.diagonal`.
    """
    x = array_of(a, "diagonal")
    ndim = x.aval.ndim
    if ndim < 2:
        raise ShapeError(f"diagonal: needs two axes or more, got {x.aval}")
    row = canonical_axis("diagonal", axis1, ndim, "axis1")
    column = canonical_axis("diagonal", axis2, ndim, "axis2")
    if row == column:
        raise AxisError(f"diagonal: axis1 and axis2 must differ, both are {row}")
    order = [d for d in range(ndim) if d not in (row, column)] + [row, column]
    x = lax.transpose(x, order)
    *lead, rows, columns = x.aval.shape
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = larger(0, smaller(rows - first_row, columns - first_column))
    if is_symbolic((rows, columns)):
        places = lax.iota(dtypes.int32, count)
        picked: Array = x[..., places + first_row, places + first_column]
        return picked
    if not count:
        flat = lax.reshape(x, (*lead, rows * columns))
        return lax.slice_in_dim(flat, 0, 0, axis=len(lead))
    # Along the flattened matrix a diagonal is a slice with a step.
    flat = lax.reshape(x, (*lead, rows * columns))
    start = first_row * columns + first_column
    stop = start + (count - 1) * (columns + 1) + 1
    return lax.slice_in_dim(flat, start, stop, columns + 1, len(lead))


@library("k")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Returns a diagonal of a matrix, or the matrix with a vector as its diagonal.

    Args:
      v: array-like of one axis or two.
      k: which diagonal: 0 is the main one, positive ones are above it.

    Returns:
      Array of two axes or one.

    Raises:
      ShapeError: `v` has the wrong number of axes.

    Example:
      >>> diag(np.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)

    Source: `numpy.diag`.
    """
    x = array_of(v, "diag")
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ShapeError(f"diag: takes arrays of one axis or two, got {x.aval}")
    count = x.aval.size
    n = count + abs(k)
    if not count:
        return lax.full((n, n), 0, x.aval.dtype)
    # Rows of the vector's element and n zeros, read with rows one shorter.
    column = lax.reshape(x, (count, 1))
    zero = constant(0, x.aval.dtype, x.aval.weak_type)
    sheared = lax.pad(column, zero, ((0, 0, 0), (0, n, 0)))
    flat = lax.reshape(sheared, (count * (n + 1),))
    before = max(k, 0) + max(-k, 0) * n
    after = n * n - before - count * (n + 1)
    return lax.reshape(lax.pad(flat, zero, ((before, after, 0),)), (n, n))


def diagflat(v: Any, k: int = 0) -> Array:
    """Makes a matrix with the elements of an array as its diagonal.

    Args:
      v: array-like, or nested lists.
      k: which diagonal: 0 is the main one, positive ones are above it.

    Returns:
      Array of two axes.

    Example:
      >>> diagflat(np.array([1, 2]), k=1)
      Array([[0, 1, 0],
             [0, 0, 2],
             [0, 0, 0]], dtype=int32)

    Source: `numpy.diagflat`.
    """
    return diag(ravel(asarray(v)), k)


# -- indices ---------------------------------------------------------------------------


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Returns the index arrays of the main diagonal.

    Args:
      n: length of each axis.
      ndim: number of axes.

    Returns:
      `ndim` int32 arrays of shape `(n,)`.

    Raises:
      ShapeError: a number is negative.

    Example:
      >>> x = fnp.zeros((2, 2)).at[diag_indices(2)].set(1.0)
      >>> x
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `numpy.diag_indices`.
    """
    count = _length("diag_indices", "n", n)
    require_room((count,), dtypes.int32)
    index = wrap_host(np.arange(count, dtype=np.int32))
    return (index,) * _length("diag_indices", "ndim", ndim)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Returns the index arrays of the main diagonal of an array.

    Args:
      arr: array-like of two axes or more, all of one length.

    Returns:
      An int32 array for each axis.

    Raises:
      ShapeError: fewer axes, or unequal lengths.

    Example:
      >>> x = fnp.array([[1, 2], [3, 4]])
      >>> x[diag_indices_from(x)]
      Array([1, 4], dtype=int32)

    Source: `numpy.diag_indices_from`.
    """
    aval = typeof(arr)
    if aval.ndim < 2 or len(set(aval.shape)) > 1:
        raise ShapeError(
            f"diag_indices_from: needs two axes or more, all of one length, got {aval}"
        )
    return diag_indices(aval.shape[0], aval.ndim)


@_index_docs
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the index arrays of a diagonal and what is below.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> fnp.arange(4).reshape(2, 2)[tril_indices(2)]
      Array([0, 2, 3], dtype=int32)
    """
    rows = _length("tril_indices", "n", n)
    columns = rows if m is None else _length("tril_indices", "m", m)
    require_room((rows, columns), dtypes.int32)
    return _indices_of(np.tri(rows, columns, k, dtype=np.bool_))


@_index_docs
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the index arrays of a diagonal and what is above.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> fnp.arange(4).reshape(2, 2)[triu_indices(2)]
      Array([0, 1, 3], dtype=int32)
    """
    rows = _length("triu_indices", "n", n)
    columns = rows if m is None else _length("triu_indices", "m", m)
    require_room((rows, columns), dtypes.int32)
    return _indices_of(~np.tri(rows, columns, k - 1, dtype=np.bool_))


def _indices_of(mask: np.ndarray[Any, Any]) -> tuple[Array, Array]:
    rows, columns = mask.nonzero()
    return as_array(rows.astype(np.int32)), as_array(columns.astype(np.int32))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    aval = typeof(arr)
    if aval.ndim != 2:
        raise ShapeError(f"{name}: takes arrays of two axes, got {aval}")
    rows, columns = aval.shape
    return rows, columns


@_index_docs
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns the index arrays of a diagonal of a matrix and what is below.

    Raises:
      ShapeError: another number of axes.

    Example:
      >>> x = fnp.array([[1, 2], [3, 4]])
      >>> x[tril_indices_from(x)]
      Array([1, 3, 4], dtype=int32)
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


@_index_docs
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns the index arrays of a diagonal of a matrix and what is above.

    Raises:
      ShapeError: another number of axes.

    Example:
      >>> x = fnp.array([[1, 2], [3, 4]])
      >>> x[triu_indices_from(x)]
      Array([1, 2, 4], dtype=int32)
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


@_index_docs
def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Returns the index arrays of the elements that a function of matrices keeps.

    Args:
      n: number of rows and columns.
      mask_func: such as `triu`, called with a matrix of ones and `k`.
      k: passed to it.
      size: see `nonzero`.

    Example:
      >>> fnp.arange(9).reshape(3, 3)[mask_indices(3, fnp.triu, 1)]
      Array([1, 2, 5], dtype=int32)
    """
    count = _length("mask_indices", "n", n)
    ones = lax.full((count, count), 1, dtypes.int32)
    return nonzero(mask_func(ones, k), size=size)


@library("N", "increasing")
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Makes the matrix of the powers of a vector's elements.

    Args:
      x: array-like of one axis.
      N: number of columns (default: the length of `x`).
      increasing: whether powers increase from left to right.

    Returns:
      Array of shape `(len(x), N)`.

    Raises:
      ShapeError: `x` has the wrong number of axes, or `N` is negative.

    Example:
      >>> vander(np.array([1, 2, 3]), increasing=True)
      Array([[1, 1, 1],
             [1, 2, 4],
             [1, 3, 9]], dtype=int32)

    Source: `numpy.vander`.
    """
    x = array_of(x, "vander")
    if x.aval.ndim != 1:
        raise ShapeError(f"vander: takes arrays of one axis, got {x.aval}")
    count = x.aval.size if N is None else _length("vander", "N", N)
    require_room((x.aval.size, count), x.aval.dtype)
    if dtypes.is_bool(x.aval.dtype):
        x = convert(x, dtypes.default_int())
    powers = range(count) if increasing else range(count - 1, -1, -1)
    columns = [lax.reshape(lax.integer_pow(x, p), (x.aval.size, 1)) for p in powers]
    if not columns:
        return lax.full((x.aval.size, 0), 0, x.aval.dtype)
    return lax.concatenate(columns, 1)


@library("offset", "axis1", "axis2", "dtype", "out")
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sums diagonals.

    Args:
      a: array-like with at least two axes.
      offset: which diagonal: above (positive) or below the main one.
      axis1: axis of the rows.
      axis2: axis of the columns.
      dtype: dtype of the result, see `sum`.
      out: not supported: arrays are immutable.

    Returns:
      Array without the two axes.

    Raises:
      AxisError: an axis is out of range or repeated.
      ShapeError: the array has fewer than two axes.

    Example:
      >>> trace(np.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)

    Source: `numpy.trace`.
    """
    found = diagonal(array_of(a, "trace", dtype), offset, axis1, axis2)
    return sum(found, axis=-1, dtype=dtype, out=out)
