"""Reductions of segments: rows that have the same number are combined.

Sums are scatters into zeros, so they are differentiable, and fast where the numbers are
promised to be sorted or unique.
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import integer
from fxflow.lax.gather_scatter.dimension_numbers import GatherScatterMode
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import ArrayLike, array_of

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_docs = shared("""
    Args:
      data: array-like[n, ...].
      segment_ids: int array-like[n]: the segment of each row; not sorted, unless
        `indices_are_sorted` says so.
      num_segments: the number of segments; None is the greatest number plus 1, which
        has to be known: under `jit` give it.
      indices_are_sorted: a promise that makes it faster.
      unique_indices: a promise that makes it faster: no two rows have one number.
      bucket_size: how many rows are combined at a time, the results then with one
        another: of many floats the sum is more accurate. None is all of them.
      mode: what happens to rows whose number is not in 0 … num_segments - 1: "drop" or
        "fill" (the default: they do not count), "clip" (they go to the nearest
        segment), "promise_in_bounds".
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array[num_segments, ...] of the dtype of `data`.

    Raises:
      ArgumentError: `num_segments` is negative, `bucket_size` not positive, or the mode
        is unknown.
      DtypeError: `segment_ids` are not integers.
      ShapeError: `segment_ids` are not one number for each row.

    Source: `jax.ops.{name}`.
""")


@_docs
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
) -> Array:
    """Returns the sum of the rows of each segment; 0 where it has none.

    Example:
      >>> segment_sum(fnp.arange(5), np.array([0, 0, 1, 1, 2]))
      Array([1, 5, 4], dtype=int32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _segments(
        "sum", data, segment_ids, num_segments, *options, out_sharding=out_sharding
    )


@_docs
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
) -> Array:
    """Returns the product of the rows of each segment; 1 where it has none.

    Example:
      >>> segment_prod(fnp.arange(5), np.array([0, 0, 1, 1, 2]))
      Array([0, 6, 4], dtype=int32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _segments(
        "prod", data, segment_ids, num_segments, *options, out_sharding=out_sharding
    )


@_docs
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
) -> Array:
    """Returns the greatest elements of each segment.

    Special cases:
      -inf, the least integer or False where a segment has no row.

    Example:
      >>> segment_max(fnp.arange(5), np.array([0, 0, 1, 1, 2]))
      Array([1, 3, 4], dtype=int32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _segments(
        "max", data, segment_ids, num_segments, *options, out_sharding=out_sharding
    )


@_docs
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
) -> Array:
    """Returns the least elements of each segment.

    Special cases:
      inf, the greatest integer or True where a segment has no row.

    Example:
      >>> segment_min(fnp.arange(5), np.array([0, 0, 1, 1, 2]))
      Array([0, 2, 4], dtype=int32)
    """
    options = indices_are_sorted, unique_indices, bucket_size, mode
    return _segments(
        "min", data, segment_ids, num_segments, *options, out_sharding=out_sharding
    )


# How rows are combined in an array of segments.
_METHODS = {"sum": "add", "prod": "multiply", "max": "max", "min": "min"}


def _segments(
    kind: str,
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: str | GatherScatterMode | None,
    *,
    out_sharding: Any,
) -> Array:
    name = f"segment_{kind}"
    x, ids = array_of(data, name), array_of(segment_ids, name)
    if not dtypes.is_integer(ids.aval.dtype):
        raise DtypeError(f"{name}: segment_ids must be integers, got {ids.aval}")
    if not x.aval.ndim and not ids.aval.ndim:
        x, ids = x[None], ids[None]
    rows = x.aval.shape[:1]
    if not rows or ids.aval.shape != rows:
        raise ShapeError(
            f"{name}: segment_ids must be one integer for each row of data, got "
            f"{ids.aval} for {x.aval}"
        )
    if num_segments is None:
        num_segments = int(fnp.max(ids, initial=-1)) + 1
    count = integer(name, "num_segments", num_segments)
    if count < 0:
        raise ArgumentError(f"{name}: num_segments must not be negative, got {count}")
    if bucket_size is not None and bucket_size < 1:
        raise ArgumentError(f"{name}: bucket_size must be positive, got {bucket_size}")
    out: Array = _combined(
        x, ids, kind, count, bucket_size, mode, unique_indices, indices_are_sorted
    )
    return out if out_sharding is None else laid_out(name, out, out_sharding)


@library("kind", "count", "bucket", "mode", "unique", "is_sorted")
def _combined(
    x: Any,
    ids: Any,
    kind: str,
    count: int,
    bucket: int | None,
    mode: Any,
    unique: bool,
    is_sorted: bool,
) -> Array:
    reduction: Any = table[f"reduce_{kind}"]
    dtype, (rows, *rest) = x.aval.dtype, x.aval.shape
    shape, index = (count, *rest), ids
    if bucket is not None:
        shape = (-(-rows // bucket), *shape)
        index = (lax.iota(dtypes.int32, rows) // bucket, ids)
    start = lax.full(shape, reduction.identity(dtype), dtype)
    out: Array = getattr(start.at[index], _METHODS[kind])(
        x,
        mode=mode,
        unique_indices=unique,
        indices_are_sorted=is_sorted,
        wrap_negative_indices=False,
    )
    return out if bucket is None else reduction.bind(out, axes=(0,))


_public(globals(), __all__)
