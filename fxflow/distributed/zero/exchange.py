"""Sums gradients over devices, so that each device gets its piece of the sum.

Each device has a gradient of every parameter. Without a code, the exchange is one
reduce-scatter. With a code (see `compression`), each device sends its rows in fewer
bits and the receiver adds them in 32 bits. The code's errors are added to the next
gradient (*error feedback*), so that they do not accumulate over the steps.
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
    """Returns whether gradients of a type are encoded: real ones are, with a code."""
    return code is not None and dtypes.is_floating(aval.dtype)


def wide(x: Any) -> Any:
    """Returns an array in a dtype that is precise enough for sums over devices."""
    dtype = typeof(x).dtype
    narrow = dtypes.is_floating(dtype) and dtype.itemsize < 4
    return x.astype(dtypes.float32) if narrow else x


def no_residual(axis: ShardAxis, aval: Aval) -> Sharded:
    """Returns the initial residual of a parameter's gradients: zeros.

    The residual of all devices together has one row for each device.
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
    """Sums gradients over the devices and returns this device's pieces.

    Args:
      axis: the devices.
      code: the code for real gradients; None to send them unchanged.
      gradients: this device's gradients, unsharded.
      residuals: the code's error for each gradient; None if it is not encoded.

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
    """Returns this device's row, `[m]`, of the sum of each `[count, m]`."""
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
    """Returns this device's row of the sum of each `f32[count, m]`, and the errors.

    Row i goes to device i. Each array and each row starts a new block of the code.
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
