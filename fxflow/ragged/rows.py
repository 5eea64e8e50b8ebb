"""Functions of whole rows: vectorized over padded rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.nn import attention as nn_attention
from fxflow.ragged.array import RaggedArray, row_length, same_lengths
from fxflow.ragged.construction import from_padded
from fxflow.transforms.vmap import vmap


def map_rows(
    function: Callable[..., Any],
    *arrays: Any,
    length: int | None = None,
    ragged: bool = False,
) -> Any:
    """Applies a function to each row, vectorized over the rows.

    Args:
      function: `function(*rows, where)`: takes of each ragged array a row padded with 0
        to `length`, of each other array its slice along axis 0, and a mask,
        bool[length], of which values there are; returns a pytree of arrays.
      *arrays: ragged arrays of the same lengths, or pytrees of arrays[rows, ...]; the
        first one must be ragged.
      length: length of the padded rows; None: that of the longest, which must be known.
      ragged: whether the results are rows, array[length, ...], to be ragged as well.

    Returns:
      The function's results stacked along a new axis 0; ragged arrays if `ragged`.

    Raises:
      ArgumentError: the first array is not ragged, lengths differ, or a row is longer
        than `length`.
      ShapeError: with `ragged`, a result has another length.

    Example:
      >>> x = RaggedArray(fnp.arange(5.0), [2, 3])
      >>> map_rows(lambda row, where: fnp.median(row[:2]), x).tolist()
      [0.5, 2.5]
      >>> map_rows(lambda row, where: fnp.max(row, where=where, initial=0), x).tolist()
      [1.0, 4.0]
    """
    if not arrays or not isinstance(arrays[0], RaggedArray):
        raise ArgumentError("map_rows: the first array must be ragged")
    first = arrays[0]
    length = row_length("map_rows", first, length)
    given = []
    for x in arrays:
        if isinstance(x, RaggedArray):
            if x.rows != first.rows or not same_lengths(x, first):
                raise ArgumentError(
                    f"map_rows: ragged arrays must have the same lengths, got "
                    f"{first!r} and {x!r}"
                )
            x = x.to_padded(length)
        given.append(x)
    where = fnp.arange(length, dtype=np.int32) < first.lengths[:, None]
    out = vmap(function)(*given, where)
    if not ragged:
        return out

    def packed(rows: Any) -> RaggedArray:
        if rows.ndim < 2 or rows.shape[1] != length:
            raise ShapeError(
                f"map_rows: with ragged=True the function must return arrays of "
                f"{length} values, got rows of {typeof(rows)}"
            )
        return from_padded(rows, first.lengths, first.capacity)

    return tree.map(packed, out)


def dot_product_attention(
    query: RaggedArray,
    key: RaggedArray,
    value: RaggedArray,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    length: int | None = None,
    key_length: int | None = None,
    implementation: str | None = None,
) -> RaggedArray:
    """Attends within each row: `nn.dot_product_attention` by the rows' lengths.

    Args:
      query: float, values [capacity, N, H].
      key: float, values [capacity, K, H]; as many rows as `query`, of any lengths.
      value: float, values [capacity, K, H], of the lengths of `key`.
      scale: of the products; None means 1 / √H.
      is_causal: whether a value sees only itself and earlier ones of its row.
      length: the longest row of `query`; None: it must be known.
      key_length: the longest row of `key`; None is `length`, if that is given.
      implementation: see `nn.dot_product_attention`.

    Returns:
      A ragged array, values [capacity, N, H], of the lengths of `query`; 0 where the
      row of `key` is empty.

    Raises:
      ArgumentError: an argument is not ragged, lengths differ, or a row is longer than
        `length`.

    Source: Vaswani et al., "Attention is all you need", 2017.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, RaggedArray):
            raise ArgumentError(
                f"ragged.dot_product_attention: {name} must be a ragged array, got "
                f"{x!r}"
            )
    alike = key.rows == query.rows and value.rows == key.rows
    if not alike or not same_lengths(key, value):
        raise ArgumentError(
            "ragged.dot_product_attention: there must be as many rows of queries, keys "
            f"and values, and keys and values of the same lengths, got {query!r}, "
            f"{key!r}, {value!r}"
        )
    of_keys = length if key_length is None else key_length
    length = row_length("ragged.dot_product_attention", query, length)
    of_keys = row_length("ragged.dot_product_attention", key, of_keys)
    out = nn_attention.dot_product_attention(
        query.to_padded(length),
        key.to_padded(of_keys),
        value.to_padded(of_keys),
        scale=scale,
        is_causal=is_causal,
        query_seq_lengths=query.lengths,
        key_value_seq_lengths=key.lengths,
        implementation=implementation,
    )
    return from_padded(out, query.lengths, query.capacity)
