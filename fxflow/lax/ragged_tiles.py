"""Ragged products as loops over tiles, in operations that every device has.

A group is a range of rows whose length only the data know. Masking a copy of the
operand for each group (one large product) would take as many times the memory and the
work as there are groups. Here a loop runs over tiles of a fixed number of rows, each
inside one group, and takes the memory of the result and of one tile, and at most about
twice the work: the last tile of a group may be partly empty. The number of tiles is
known when the loop starts, so empty groups cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Shape, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.comparison import ge, le, lt
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.cumulative import cumsum
from fxflow.lax.dot import Dims, DotGeneral, free_axes
from fxflow.lax.dynamic_slicing import dynamic_slice, dynamic_update_slice
from fxflow.lax.elementwise import add, div, max, min, mul, rem, sub
from fxflow.lax.product_precision import PrecisionPair
from fxflow.lax.reduction import ReduceSum
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import clamp, select
from fxflow.lax.slicing import slice_in_dim

# Rows of a tile: enough to fill a matrix unit, few enough to fit small groups.
_FEWEST, _MOST = 8, 512


def loop_axes(
    lhs_ndim: int, dims: Dims, ragged: int
) -> tuple[tuple[int, int | None], ...]:
    """Returns the axes (of lhs, of rhs) that lie in front of the ragged one.

    Groups may differ along them: batch axes, then what precedes the ragged axis among
    the contracting or the remaining axes of lhs.
    """
    (lc, rc), (lb, rb) = dims
    found: list[tuple[int, int | None]] = list(zip(lb, rb, strict=True))
    if ragged in lc:
        position = lc.index(ragged)
        found += zip(lc[:position], rc[:position], strict=True)
    else:
        found += [(a, None) for a in free_axes(lhs_ndim, lc, lb) if a < ragged]
    return tuple(found)


def inner_dims(dims: Dims, group: int | None) -> Dims:
    """Returns the dimension numbers of the product of one group."""
    (lc, rc), (lb, rb) = dims
    if group is not None:
        rc, rb = (tuple(a - (a > group) for a in axes) for axes in (rc, rb))
    return (lc, rc), (lb, rb)


class RaggedTile:
    """One step of the loop.

    Attributes:
      size: number of rows.
      base: its first row.
      low: the first row that counts: the last tile of an array starts before it.
      high: the row behind the last one that counts.
      group: which group it belongs to.
      positions: indices along the loop axes.
    """

    __slots__ = ("base", "group", "high", "low", "positions", "size")

    base: Any
    high: Any
    low: Any
    size: int
    group: Any
    positions: list[Any]

    def __init__(
        self, size: int, base: Any, low: Any, high: Any, positions: Sequence[Any]
    ) -> None:
        self.size, self.base, self.low, self.high = size, base, low, high
        *self.positions, self.group = positions

    def kept(self, value: Any, axis: int) -> Any:
        """Returns a value with zeros in rows that do not count."""
        aval = typeof(value)
        rows = add(broadcasted_iota(np.int32, aval.shape, axis), self.base)
        mask = bitwise_and(ge(rows, self.low), lt(rows, self.high))
        return select(mask, value, full(aval.shape, 0, aval.dtype))


def _tile_size(length: int, groups: int) -> int:
    """Returns about the rows of a group, as a power of two."""
    usual = 1 << (length // groups).bit_length() >> 1
    return int(np.clip(usual, _FEWEST, _MOST).clip(max=length))


def _number(value: int) -> Any:
    return arith.constant(value, np.dtype(np.int32))


def _element(vector: Any, at: Any) -> Any:
    return reshape(dynamic_slice(vector, (at,), (1,)), ())


def _each_tile(
    ranges: Any, length: int, start: Any, step: Callable[[Any, RaggedTile], Any]
) -> Any:
    """Returns what a step makes of a value, tile after tile."""
    lengths = typeof(ranges).shape[:-1]
    count = math.prod(lengths)
    size = _tile_size(length, lengths[-1])
    bounds = clamp(0, reshape(ranges, (count, 2)), length)
    first, last = (
        reshape(slice_in_dim(bounds, i, i + 1, axis=1), (count,)) for i in (0, 1)
    )
    tiles = div(add(max(sub(last, first), 0), size - 1), size)
    ends = cumsum(tiles, 0)
    total = _element(ends, _number(count - 1))

    def body(carry: Any) -> Any:
        i, value = carry
        behind = convert_element_type(le(ends, i), np.int32)
        # The group of tile i: as many groups end before it.
        at = ReduceSum.bind(behind, axes=(0,))
        # How many tiles of the same group came before.
        past = sub(i, sub(_element(ends, at), _element(tiles, at)))
        low = add(_element(first, at), mul(past, size))
        positions: list[Any] = []
        rest = at
        for n in reversed(lengths):
            positions.insert(0, rem(rest, n))
            rest = div(rest, n)
        # A tile at the end is moved inside; `kept` masks the rows before `low`.
        base = min(low, length - size)
        tile = RaggedTile(size, base, low, _element(last, at), positions)
        return add(i, 1), step(value, tile)

    def unfinished(carry: Any) -> Any:
        return lt(carry[0], total)

    _, out = while_loop(unfinished, body, (_number(0), start))
    return out


def _part(x: Any, starts: dict[int, Any], sizes: dict[int, int]) -> Any:
    shape = typeof(x).shape
    return dynamic_slice(
        x,
        [starts.get(d, _number(0)) for d in range(len(shape))],
        [sizes.get(d, n) for d, n in enumerate(shape)],
    )


def _add_part(out: Any, part: Any, starts: dict[int, Any]) -> Any:
    shape = typeof(part).shape
    where = [starts.get(d, _number(0)) for d in range(len(shape))]
    join = bitwise_or if dtypes.is_bool(typeof(out).dtype) else add
    new = join(dynamic_slice(out, where, shape), part)
    return dynamic_update_slice(out, new, where)


def tiled(
    lhs: Any,
    rhs: Any,
    ranges: Any,
    *,
    dims: Dims,
    ragged: int,
    group: int | None,
    precision: PrecisionPair,
    shape: Shape,
    dtype: Any,
) -> Any:
    """Returns a ragged product.

    Args:
      lhs: left operand.
      rhs: right operand.
      ranges: i32[*loop axes, groups, 2]: where groups begin and end.
      dims: dimension numbers; without the group axis of rhs.
      ragged: the axis of lhs that is in groups.
      group: the axis of rhs with one matrix for each group, or None if the ragged axis
        contracts: then the result has one for each group in front.
      precision: of the products.
      shape: shape of the result.
      dtype: dtype of the result.
    """
    (lc, rc), (lb, _) = dims
    axes = loop_axes(typeof(lhs).ndim, dims, ragged)[: typeof(ranges).ndim - 2]
    free = free_axes(typeof(lhs).ndim, lc, lb)
    contracted = rc[lc.index(ragged)] if ragged in lc else -1
    # Sums over tiles are made in 32 bits at least.
    wide = dtype
    if group is None and dtypes.is_floating(dtype) and dtypes.bits(dtype) < 32:
        wide = dtypes.float32

    front = int(group is None)
    # The axis of the result that an axis of lhs becomes.
    becomes = {axis: front + i for i, axis in enumerate((*lb, *free))}

    def step(out: Any, tile: RaggedTile) -> Any:
        starts: tuple[dict[int, Any], ...] = ({ragged: tile.base}, {}, {})
        sizes: tuple[dict[int, int], ...] = ({ragged: tile.size}, {})
        if group is not None:
            starts[1][group], sizes[1][group] = tile.group, 1
        else:
            starts[1][contracted], sizes[1][contracted] = tile.base, tile.size
        for (left, right), position in zip(axes, tile.positions, strict=True):
            starts[0][left], sizes[0][left] = position, 1
            if right is not None:
                starts[1][right], sizes[1][right] = position, 1
            if left in becomes:
                starts[2][becomes[left]] = position
        x = _part(lhs, starts[0], sizes[0])
        y = _part(rhs, starts[1], sizes[1])
        if group is None:
            # Both, since 0 · inf is nan.
            x, y = tile.kept(x, ragged), tile.kept(y, contracted)
        else:
            old = typeof(y).shape
            y = reshape(y, (*old[:group], *old[group + 1 :]))
        part = DotGeneral.bind(
            x,
            y,
            dimension_numbers=inner_dims(dims, group),
            precision=precision,
            preferred_element_type=wide,
        )
        if group is None:
            starts[2][0] = tile.group
            return _add_part(out, reshape(part, (1, *typeof(part).shape)), starts[2])
        row = becomes[ragged]
        starts[2][row] = tile.base
        return _add_part(out, tile.kept(part, row), starts[2])

    start = full(shape, 0, wide)
    out = _each_tile(ranges, typeof(lhs).shape[ragged], start, step)
    return convert_element_type(out, dtype)
