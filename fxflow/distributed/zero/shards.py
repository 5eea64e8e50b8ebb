"""Arrays that are flattened, padded, and divided evenly over devices; their sums.

A `Sharded` has the shape of the unsharded array, so that a state of `Sharded`s
describes itself. Inside a `shard_map` it holds this device's piece; outside, all pieces
concatenated. Only arrays with axes are sharded: scalars and random keys are replicated
(see `ShardAxis.shards`).

Gradients are summed so that each device gets its piece of the sum, in one
reduce-scatter. With a code (see `compression`), each device sends its rows in fewer
bits and the receiver adds them in 32 bits. The code's errors are added to the next
gradient (*error feedback*), so that they do not accumulate over the steps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.distributed.compression import Code, lost


class Sharded:
    """An array in equal pieces, one for each device. It is a pytree.

    Args:
      flat: the elements in C order, padded with zeros to a multiple of the number of
        devices; inside a `shard_map`, this device's piece of them.
      shape: the shape of the unsharded array.
    """

    __slots__ = ("flat", "shape")

    flat: Any
    shape: tuple[int, ...]

    def __init__(self, flat: Any, shape: tuple[int, ...]) -> None:
        self.flat, self.shape = flat, shape

    @property
    def size(self) -> int:
        """The number of elements of the unsharded array."""
        return math.prod(self.shape)

    @property
    def aval(self) -> Aval:
        """The type of the unsharded array."""
        aval = typeof(self.flat)
        return Aval(self.shape, aval.dtype, aval.weak_type)

    def __repr__(self) -> str:
        return f"Sharded({self.flat!r}, shape={self.shape})"


tree.register_pytree_node(
    Sharded,
    lambda x: ((x.flat,), x.shape),
    lambda shape, children: Sharded(children[0], shape),
)


def is_sharded(x: Any) -> bool:
    """Returns whether a node of a pytree is a `Sharded`."""
    return type(x) is Sharded


def type_of(x: Any) -> Aval:
    """Returns the unsharded type of an array, sharded or not."""
    return x.aval if type(x) is Sharded else typeof(x)


@dataclasses.dataclass(frozen=True)
class ShardAxis:
    """The devices along one named axis of a mesh, seen from within a `shard_map`.

    Attributes:
      name: the axis's name.
      count: the number of devices.
    """

    name: Any
    count: int

    def shards(self, aval: Aval) -> bool:
        """Returns whether arrays of a type are sharded: those with axes are."""
        return aval.ndim > 0 and aval.size > 0 and not dtypes.is_key(aval.dtype)

    def piece(self, size: int) -> int:
        """Returns the size of each device's piece of `size` elements, with padding."""
        return -(-size // self.count)

    def rows(self, x: Any) -> Any:
        """Returns an array as `[count, piece]`: one row for each device."""
        size = typeof(x).size
        flat = fnp.reshape(x, (size,))
        length = self.piece(size) * self.count
        if length != size:
            flat = fnp.pad(flat, (0, length - size))
        return fnp.reshape(flat, (self.count, self.piece(size)))

    def cut(self, x: Any) -> Sharded:
        """Returns this device's piece of a replicated array."""
        # The barrier keeps the computation of x out of the slice: jaxlib 0.11.2's XLA
        # never finishes compiling some slices of padded random numbers.
        rows = lax.optimization_barrier(self.rows(x))
        index = lax.axis_index(self.name)
        row = lax.dynamic_slice(rows, (index, 0), (1, typeof(rows).shape[1]))
        return Sharded(fnp.reshape(row, (-1,)), typeof(x).shape)

    def whole(self, x: Any) -> Any:
        """Returns a replicated array, gathering it if it is sharded."""
        return self.gather([x])[0] if type(x) is Sharded else x

    def gather(self, shards: Sequence[Sharded]) -> list[Any]:
        """Gathers arrays, with one all-gather for each dtype."""
        found: list[Any] = [None] * len(shards)
        for indices in by_dtype([s.flat for s in shards]):
            chosen = [shards[i] for i in indices]
            joined = fnp.concatenate([s.flat for s in chosen])
            rows = lax.all_gather(joined, self.name)
            for i, part in zip(indices, split(rows, [s.flat for s in chosen])):
                size = shards[i].size
                flat = fnp.reshape(part, (-1,))[:size]
                found[i] = fnp.reshape(flat, shards[i].shape)
        return found

    def filled(self, x: Sharded, value: Any) -> Any:
        """Returns this device's piece with `value` as padding."""
        (piece,) = typeof(x.flat).shape
        if piece * self.count == x.size:
            return x.flat
        index = lax.axis_index(self.name) * piece + fnp.arange(piece)
        return fnp.where(index < x.size, x.flat, value)


def by_dtype(arrays: Sequence[Any]) -> list[list[int]]:
    """Returns the indices of the arrays of each dtype."""
    indices: dict[Any, list[int]] = {}
    for i, x in enumerate(arrays):
        indices.setdefault(typeof(x).dtype, []).append(i)
    return list(indices.values())


def split(rows: Any, parts: Sequence[Any]) -> list[Any]:
    """Splits `[n, sum of lengths]` by the lengths of the last axes of `parts`."""
    found, start = [], 0
    for part in parts:
        length = typeof(part).shape[-1]
        found.append(rows[:, start : start + length])
        start += length
    return found


# -- sums of gradients -----------------------------------------------------------------


def is_coded(aval: Aval, code: Code | None) -> bool:
    """Returns whether gradients of a type are encoded: real ones are, with a code."""
    return code is not None and dtypes.is_floating(aval.dtype)


def wide(x: Any) -> Any:
    """Returns an array in a dtype that is precise enough for sums over devices."""
    dtype = typeof(x).dtype
    narrow = dtypes.is_floating(dtype) and dtype.itemsize < 4
    return x.astype(dtypes.float32) if narrow else x


def initial_residual(axis: ShardAxis, aval: Aval) -> Sharded:
    """Returns the initial residual of a parameter's gradients: zeros.

    The residual of all devices together has one row for each device.
    """
    length = axis.piece(aval.size) * axis.count
    flat = fnp.zeros(length, dtypes.float32)
    return Sharded(flat, (axis.count, length))


def sum_gradients(
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
