"""Sums, means and maxima of the embeddings in bags of ids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.gallery.bags import Bags, bag_of, rows_of, sums_of_rows
from fxflow.lax.axes import integer
from fxflow.nn._layers import array, weights
from fxflow.numpy._operands import ArrayLike

_MODES = ("sum", "mean", "max")


def embedding_bag(
    params: Mapping[str, ArrayLike],
    ids: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    mode: str = "mean",
    factors: ArrayLike | None = None,
    include_last_offset: bool = False,
    padding_id: int | None = None,
) -> Array:
    """Looks up the vectors of ids, and combines those of each bag.

    It is `mean(embedding(params, ids), -2)` without an array of all vectors. The
    gradient is one pass over the ids.

    Args:
      params: weights, as `embedding_init` makes them.
      ids: int[..., k], one bag in each row; or int[m], bags one after the other that
        `offsets` divide.
      offsets: int[bags], ascending: where each bag begins in `ids`; the last one ends
        where `ids` do. None: the rows of `ids` are bags.
      mode: "sum", "mean" or "max" of the vectors of a bag.
      factors: float, shaped like `ids`: what each vector is multiplied by; for sums
        only. PyTorch calls them `per_sample_weights`.
      include_last_offset: whether the last offset is the end of the last bag.
      padding_id: one whose vectors do not count, also not in a mean, and do not learn;
        None: there is none.

    Returns:
      float[..., features], or float[bags, features].

    Raises:
      ArgumentError: the params are not a dict of the table, the mode is not one of
        these, there are factors but no sums, or an argument is not an array.
      DtypeError: ids or offsets are not integers, or the factors not floats.
      ShapeError: the shapes are incompatible.

    Special cases:
      A bag without ids gives 0. An id outside of the table gives nan. Negative ones
      count from the end.

    Example:
      >>> params = {"w": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])}
      >>> nn.embedding_bag(params, np.array([[0, 1], [2, 2]]))
      Array([[2., 3.],
             [5., 6.]], dtype=float32)
      >>> nn.embedding_bag(params, np.array([0, 1, 2]), np.array([0, 0]), mode="sum")
      Array([[ 0.,  0.],
             [ 9., 12.]], dtype=float32)

    Source: `torch.nn.functional.embedding_bag`.
    """
    (given,) = weights("embedding_bag", params, w="vocabulary features")
    table = fnp.asarray(given)
    ids = fnp.asarray(array("embedding_bag", "ids", ids, "integers"))
    aval = ids.aval
    if mode not in _MODES:
        listed = ", ".join(map(repr, _MODES))
        raise ArgumentError(
            f"embedding_bag: mode must be one of {listed}, got {mode!r}"
        )
    if factors is not None:
        factors = _factors(factors, aval, mode)
    if offsets is None:
        if not aval.ndim:
            raise ShapeError(
                "embedding_bag: ids must be int[..., k], one bag in each row, got "
                f"{aval}"
            )
        if include_last_offset:
            raise ArgumentError(
                "embedding_bag: include_last_offset=True needs offsets, got None"
            )
        width: int | None = aval.shape[-1]
        count = math.prod(aval.shape[:-1])
        starts = fnp.multiply(fnp.arange(count, dtype=dtypes.int32), width)
        stops = fnp.add(starts, width)
        shape = (*aval.shape[:-1], table.shape[1])
    else:
        width = None
        starts, stops = _bounds(offsets, aval, include_last_offset)
        shape = (*starts.shape, table.shape[1])
    flat = fnp.reshape(ids, (-1,)).astype(dtypes.int32)
    rows = table.shape[0]
    if not rows:
        raise ShapeError(f"embedding_bag: the table has no vectors: {table.aval}")
    counts = fnp.full(flat.shape, True)
    if padding_id is not None:
        padded = integer("embedding_bag", "padding_id", padding_id)
        counts = fnp.not_equal(flat, padded)
    outside = fnp.logical_or(fnp.less(flat, -rows), fnp.greater_equal(flat, rows))
    place = fnp.where(fnp.less(flat, 0), fnp.add(flat, rows), flat)
    place = fnp.where(counts, fnp.clip(place, 0, rows - 1), -1)
    scale = fnp.where(outside, math.nan, 1).astype(table.dtype)
    if factors is not None:
        scale = fnp.multiply(scale, fnp.reshape(factors, (-1,)).astype(table.dtype))
    bags = Bags(place, starts, stops)
    if mode == "max":
        out = _largest(table, bags, scale, width)
    else:
        out = sums_of_rows(table, bags, scale, width=width)
    if mode == "mean":
        number = _numbers(bags, counts, width)
        out = fnp.divide(out, fnp.maximum(number, 1).astype(out.dtype)[:, None])
    return fnp.reshape(out, shape)


def _factors(factors: Any, ids: Any, mode: str) -> Any:
    """Returns the factors of vectors, checked."""
    factors = fnp.asarray(array("embedding_bag", "factors", factors, "floats"))
    if factors.shape != ids.shape:
        raise ShapeError(
            f"embedding_bag: factors must have the shape of ids, {ids}, got "
            f"{typeof(factors)}"
        )
    if mode != "sum":
        raise ArgumentError(
            f'embedding_bag: factors are for sums: pass mode="sum", got {mode!r}'
        )
    return factors


def _bounds(offsets: Any, ids: Any, has_last: bool) -> tuple[Any, Any]:
    """Returns where bags begin and end."""
    offsets = fnp.asarray(array("embedding_bag", "offsets", offsets, "integers"))
    if offsets.ndim != 1 or ids.ndim != 1 or (has_last and not offsets.shape[0]):
        raise ShapeError(
            "embedding_bag: with offsets int[bags], ids are int[m], got offsets "
            f"{typeof(offsets)} and ids {ids}"
        )
    # Kernels walk from start to stop, so these must be places in `ids`.
    offsets = fnp.clip(offsets, 0, ids.shape[0]).astype(dtypes.int32)
    if has_last:
        return offsets[:-1], offsets[1:]
    end = fnp.full((1,), ids.shape[0], dtypes.int32)
    return offsets, fnp.concatenate([offsets[1:], end])


def _largest(table: Any, bags: Bags, scale: Any, width: int | None) -> Any:
    """Returns the largest of the vectors of each bag, number by number."""
    rows, inside = rows_of(table, bags.ids)
    bag, known = bag_of(bags, width)
    inside = fnp.logical_and(inside, known)
    rows = fnp.where(inside[:, None], fnp.multiply(rows, scale[:, None]), -fnp.inf)
    count, features = bags.starts.shape[0], table.shape[1]
    if width is not None:
        shape = count, width, features
        out = fnp.max(fnp.reshape(rows, shape), 1, initial=-fnp.inf)
    else:
        out = fnp.full((count, features), -fnp.inf, table.dtype)
        out = out.at[fnp.clip(bag, 0, None)].max(rows)
    return fnp.where((_numbers(bags, inside, width) > 0)[:, None], out, 0)


def _numbers(bags: Bags, counts: Any, width: int | None) -> Any:
    """Returns how many ids of each bag count."""
    if width is not None:
        return fnp.sum(fnp.reshape(counts, (bags.starts.shape[0], width)), 1)
    before = fnp.concatenate([fnp.zeros(1, dtypes.int32), fnp.cumsum(counts)])
    return fnp.subtract(before[bags.stops], before[bags.starts])
