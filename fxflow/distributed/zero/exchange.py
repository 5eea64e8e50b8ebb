"""How each device gets its piece of the summed gradients: uncoded, or coded.

Each device has a gradient of every parameter; the sum over the devices is wanted in
pieces, one at each. Uncoded that is one reduce-scatter. Coded (see `compression`), each
device sends its rows in fewer bits and the receiver adds them in 32. What the code
loses is remembered and added to the next gradient (*error feedback*), so that the
losses do not add up over the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.distributed.compression import Code, lost
from fxflow.distributed.zero.shards import (
    ShardAxis,
    Sharded,
    by_dtype,
    split,
)


def is_coded(aval: Aval, code: Code | None) -> bool:
    """Returns whether gradients of a type are coded: real ones are."""
    return code is not None and dtypes.is_floating(aval.dtype)


def wide(x: Any) -> Any:
    """Returns an array whose dtype is good enough to add up many of them."""
    dtype = typeof(x).dtype
    narrow = dtypes.is_floating(dtype) and dtype.itemsize < 4
    return x.astype(dtypes.float32) if narrow else x


def no_residual(axis: ShardAxis, aval: Aval) -> Sharded:
    """Returns the error of a parameter's gradients before the first one: zeros.

    The error of all devices together has as many rows as there are devices.
    """
    length = axis.piece(aval.size) * axis.count
    flat = fnp.zeros(length, dtypes.float32)
    return Sharded(flat, (axis.count, length))


def push(
    axis: ShardAxis,
    code: Code | None,
    gradients: Sequence[Any],
    residuals: Sequence[Sharded | None],
) -> tuple[list[Sharded], list[Sharded | None]]:
    """Sums gradients over the devices; each gets its piece.

    Args:
      axis: the devices.
      code: for real gradients; None: as they are.
      gradients: this device's, whole.
      residuals: what the code lost of each so far; None where it is not coded.

    Returns:
      The sums' pieces, at least 32 bits wide, and the new residuals.
    """
    rows = [wide(axis.rows(g)) for g in gradients]
    kept: list[Sharded | None] = [None] * len(rows)
    sums: list[Any] = [None] * len(rows)
    plain = [i for i, r in enumerate(residuals) if r is None]
    for i, part in zip(plain, _reduce_scatter(axis, [rows[i] for i in plain])):
        sums[i] = part
    coded = {i: r for i, r in enumerate(residuals) if r is not None}
    if coded and code is not None:
        full = [
            rows[i].astype(dtypes.float32) + fnp.reshape(r.flat, typeof(rows[i]).shape)
            for i, r in coded.items()
        ]
        parts, rests = _coded_sums(axis, code, full)
        for (i, r), part, rest in zip(coded.items(), parts, rests):
            sums[i] = part.astype(typeof(rows[i]).dtype)
            kept[i] = Sharded(fnp.reshape(rest, (-1,)), r.shape)
    shapes = [typeof(g).shape for g in gradients]
    return [Sharded(s, shape) for s, shape in zip(sums, shapes)], kept


def _reduce_scatter(axis: ShardAxis, rows: Sequence[Any]) -> list[Any]:
    """Returns for each `[count, m]` the sum of this device's rows, `[m]`."""
    found: list[Any] = [None] * len(rows)
    for indices in by_dtype(rows):
        chosen = [rows[i] for i in indices]
        own = lax.psum_scatter(fnp.concatenate(chosen, 1), axis.name)
        for i, part in zip(indices, split(own[None], chosen)):
            found[i] = part[0]
    return found


def _coded_sums(
    axis: ShardAxis, code: Code, rows: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Returns for each `f32[count, m]` this device's row of the sum, and what was lost.

    Row i goes to device i. No block of the code has numbers of two arrays or two rows.
    """
    block = code.block_size
    blocks = []
    for x in rows:
        count, size = typeof(x).shape
        padded = fnp.pad(x, ((0, 0), (0, -size % block)))
        blocks.append(fnp.reshape(padded, (count, -1, block)))
    sent = fnp.concatenate(blocks, 1)
    packed = code.encode(sent, None)
    residual = lost(sent, code.decode(packed))
    arrived = code.decode(lax.all_to_all(packed, axis.name, 0, 0))
    total = fnp.sum(arrived, axis=0, keepdims=True)

    def unpacked(whole: Any) -> list[Any]:
        count = typeof(whole).shape[0]
        found, start = [], 0
        for x, own in zip(rows, blocks):
            stop = start + typeof(own).shape[1]
            part = fnp.reshape(whole[:, start:stop], (count, -1))
            found.append(part[:, : typeof(x).shape[1]])
            start = stop
        return found

    return [part[0] for part in unpacked(total)], unpacked(residual)
