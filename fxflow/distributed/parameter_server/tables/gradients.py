"""Gradients with respect to the rows of a table that a batch uses.

A batch names rows by ids, with repetitions. The loss is a function of the few distinct
rows, and not of the table:

    distinct, inverse = unique_rows(batch.words)
    rows = pad_rows(table.pull(real_ids(distinct)), len(distinct))

    def loss(params, rows, inverse, batch):
        words = rows[inverse]                  # f32[*batch.words.shape, width]
        ...

    value, (of_params, of_rows) = value_and_grad(loss, (0, 1))(params, rows, ...)
    table.push(real_ids(distinct), of_rows[: len(real_ids(distinct))])

`rows` and `inverse` are ordinary arrays, so `jit`, `vmap` and `scan` know nothing of
tables. The number of distinct ids is padded to a power of two, so that `jit` compiles
few programs; nothing reads the padding rows, and their gradients are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.distributed.parameter_server.tables.memory import NONE, Ids
from fxflow.errors import ArgumentError, OutOfRangeError, ShapeError

# Fewer rows would not make a program faster.
_LEAST = 32
# A round with fewer ids, or a smaller fraction of them, costs more than single ids.
_FEW, _MANY = 8, 1024


def sum_rows(ids: Ids, gradients: npt.NDArray[Any]) -> tuple[Ids, npt.NDArray[Any]]:
    """Adds the gradients of repeated ids, in the given order.

    Args:
      ids: int64[n].
      gradients: float[n, ...].

    Returns:
      The distinct ids in increasing order, and a sum for each.

    Example:
      >>> ids, sums = sum_rows(np.array([5, 2, 5]), np.array([[1.0], [2.0], [3.0]]))
      >>> ids.tolist(), sums.tolist()
      ([2, 5], [[2.0], [4.0]])
    """
    if bool(np.all(ids[1:] > ids[:-1])):
        return ids, gradients
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    counts = np.diff(np.r_[starts, len(ids)])
    sums = gradients[order[starts]]
    # Round n adds the nth gradient of each id; few ids have many.
    again = np.flatnonzero(counts > 1)
    nth = 1
    while len(again) > max(_FEW, len(ids) // _MANY):
        sums[again] += gradients[order[starts[again] + nth]]
        nth += 1
        again = again[counts[again] > nth]
    for i in again.tolist():
        rest = gradients[order[starts[i] + nth : starts[i] + counts[i]]]
        # Not `sum`, which adds pairwise, in another order.
        sums[i] = np.add.accumulate(np.concatenate([sums[i : i + 1], rest]))[-1]
    return ids[starts], sums


def unique_rows(
    ids: Any, size: int | None = None, *, caller: str = "unique_rows"
) -> tuple[Any, Any]:
    """Returns the distinct ids of a batch, and the index of each id among them.

    Args:
      ids: integers, of any shape; on the host, of up to 64 bits.
      size: number of distinct ids to return; required if `ids` is traced. None: the
        least power of two ≥ 32 that suffices.
      caller: name of the caller, for error messages.

    Returns:
      `(distinct, inverse)`: int64[size], in increasing order, then −1 (under `jit`, in
      the dtype of `ids`); int32, in the shape of `ids`, with
      `distinct[inverse] == ids`.

    Raises:
      ArgumentError: `ids` are not integers, or traced without `size`.
      OutOfRangeError: there are more distinct ids than `size`, or one is negative or
        at least 2**63. Not under `jit`, which drops the largest, like `fnp.unique`.

    Example:
      >>> distinct, inverse = unique_rows([[7, 2], [7, 9]], size=4)
      >>> distinct.tolist(), inverse.tolist()
      ([2, 7, 9, -1], [[1, 0], [1, 2]])
    """
    if isinstance(ids, Tracer):
        if size is None:
            raise ArgumentError(
                "unique_rows: under jit the number of distinct ids must be known: give "
                "size="
            )
        distinct, inverse = fnp.unique(
            ids, return_inverse=True, size=size, fill_value=NONE
        )
        return distinct, inverse.astype(dtypes.int32)
    given = np.asarray(ids)
    if given.dtype.kind not in "iu" and given.size:
        raise ArgumentError(
            f"{caller}: ids must be integers, got {dtypes.short_name(given.dtype)}"
        )
    found, inverse = np.unique(given.astype(np.int64), return_inverse=True)
    if len(found) and found[0] < 0:
        wrong = given[given.astype(np.int64) < 0].flat[0]
        raise OutOfRangeError(f"{caller}: ids must be from 0 to 2**63 - 1, got {wrong}")
    if size is None:
        size = max(_LEAST, 1 << (len(found) - 1).bit_length())
    if len(found) > size:
        raise OutOfRangeError(
            f"{caller}: {len(found)} distinct ids are more than size={size}"
        )
    distinct = np.full(size, NONE, np.int64)
    distinct[: len(found)] = found
    return distinct, inverse.reshape(given.shape).astype(np.int32)


def real_ids(distinct: Any) -> Ids:
    """Returns the ids that `unique_rows` found, without padding.

    Args:
      distinct: the first result of `unique_rows`.

    Returns:
      int64[n].

    Example:
      >>> real_ids(unique_rows([5, 3, 5])[0]).tolist()
      [3, 5]
    """
    ids = np.asarray(distinct).astype(np.int64, copy=False)
    real: Ids = ids[ids != NONE]
    return real


def pad_rows(rows: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Returns rows followed by zeros.

    Args:
      rows: `[n, ...]`.
      size: length of the result.

    Returns:
      `[size, ...]`.

    Raises:
      ShapeError: there are more rows.

    Example:
      >>> pad_rows(np.ones((1, 2)), 2).tolist()
      [[1.0, 1.0], [0.0, 0.0]]
    """
    if len(rows) > size:
        raise ShapeError(f"pad_rows: {len(rows)} rows are more than size={size}")
    padded = np.zeros((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
