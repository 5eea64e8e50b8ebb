"""Slices at computed positions in ONNX: gather, scatter and dynamic slices.

Taking along an axis is `Gather`. Everything else uses positions in the flattened array:
the start of each slice plus the offset of each element in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.export.onnx_rules.elementwise import number
from fxflow.export.onnx_rules.writer import RULES, Value, Writer, rule
from fxflow.lax.gather_scatter.dimension_numbers import (
    DimensionNumbers,
    GatherDimensionNumbers,
    GatherScatterMode,
)
from fxflow.lax.gather_scatter.gather import fill_scalar

_BOOL = np.dtype(bool)
_INT64 = np.dtype(np.int64)
_FILL = GatherScatterMode.FILL_OR_DROP


def _wide(w: Writer, indices: Value) -> Value:
    """Returns indices as int64, clamping those above its range."""
    if indices.dtype == np.uint64:
        most = number(w, np.iinfo(np.int64).max, indices)
        indices = w.op("Min", indices, most)
    return w.cast(indices, _INT64)


def _clamped(w: Writer, x: Value, highest: Any) -> Value:
    """Clamps int64 to 0 … `highest` (along the last axis)."""
    zero = w.constant(np.int64(0))
    top = w.ints(*highest) if isinstance(highest, list) else w.size(highest)
    return w.op("Min", w.op("Max", x, zero), top)


class _Places:
    """Positions of the elements of slices in the flattened array.

    Attributes:
      flat: int64[*batch, *kept]: positions, with slices moved in bounds.
      inside: bool[*batch, *ones]: whether each slice was in bounds; None if unchecked.
    """

    def __init__(
        self,
        w: Writer,
        indices: Value,
        batch: Sequence[int],
        shape: Sequence[int],
        sizes: Sequence[int],
        numbers: DimensionNumbers,
        checks: bool,
    ) -> None:
        _, _, index_map, batching, indices_batching = numbers.axes
        kept = [d for d in range(len(shape)) if d not in numbers.dropped]
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        inner = [1] * len(kept)
        starts = _wide(w, indices)
        highest = [shape[d] - sizes[d] for d in index_map]
        self.inside: Value | None = None
        terms = []
        if index_map:
            moved = _clamped(w, starts, highest)
            if checks:
                same = w.op("Equal", moved, starts, dtype=_BOOL)
                flags = w.op(
                    "ReduceMin",
                    w.cast(same, np.dtype(np.int32)),
                    w.ints(-1),
                    keepdims=0,
                )
                self.inside = w.cast(w.reshape(flags, [*batch, *inner]), _BOOL)
            steps = w.ints(*(strides[d] for d in index_map))
            row = w.op("ReduceSum", w.op("Mul", moved, steps), w.ints(-1), keepdims=0)
            terms.append(w.reshape(row, [*batch, *inner]))
        for i, d in enumerate(kept):
            if sizes[d] != 1:
                along = w.arange(sizes[d], np.int64, strides[d])
                terms.append(w.reshape(along, [-1, *inner[i + 1 :]]))
        for d, axis in zip(batching, indices_batching, strict=True):
            along = w.arange(batch[axis], np.int64, strides[d])
            after = [1] * (len(batch) - axis - 1)
            terms.append(w.reshape(along, [-1, *after, *inner]))
        flat = w.constant(np.int64(0))
        for term in terms:
            flat = w.op("Add", flat, term) if term is not terms[0] else term
        self.flat = w.expand(flat, [*batch, *(sizes[d] for d in kept)])


# -- gather ----------------------------------------------------------------------------


def _axis_taken(
    numbers: GatherDimensionNumbers,
    shape: Sequence[int],
    sizes: Sequence[int],
    rank: int,
) -> int | None:
    """Returns the axis along which whole slices are taken, or None."""
    offset, dropped, index_map, batching, _ = numbers.axes
    if batching or len(index_map) != 1 or dropped != index_map:
        return None
    (axis,) = index_map
    whole = all(k == n for d, (k, n) in enumerate(zip(sizes, shape)) if d != axis)
    wanted = [*range(axis), *range(axis + rank, len(shape) - 1 + rank)]
    return axis if whole and list(offset) == wanted else None


@rule("gather")
def _gather(
    w: Writer,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    mode: GatherScatterMode,
    fill_value: Any,
    **_: Any,
) -> Value:
    (aval, index_aval), (out,) = w.avals_in, w.avals_out
    shape, batch = aval.shape, index_aval.shape[:-1]
    fill = w.constant(np.asarray(fill_scalar(fill_value, out.dtype), out.dtype))
    if not math.prod(out.shape) or not math.prod(shape):
        return w.expand(fill, out.shape)
    fills = mode is _FILL and bool(dimension_numbers.start_index_map)
    rank = len(batch)
    axis = _axis_taken(dimension_numbers, shape, slice_sizes, rank)
    if axis is not None:
        # `Gather` would count negative indices from the end.
        given = w.reshape(_wide(w, indices), batch)
        moved = _clamped(w, given, shape[axis] - 1)
        taken = w.op("Gather", x, moved, axis=axis)
        if not fills:
            return taken
        same = w.op("Equal", moved, given, dtype=_BOOL)
        inside = w.reshape(same, [*batch, *[1] * (len(shape) - axis - 1)])
        return w.op("Where", inside, taken, fill)
    places = _Places(w, indices, batch, shape, slice_sizes, dimension_numbers, fills)
    row = w.reshape(x, [-1])
    taken = w.op("Gather", row, places.flat, axis=0)
    if places.inside is not None:
        taken = w.op("Where", places.inside, taken, fill)
    # From (batch axes, slice axes) to the order of the result.
    slices, front = iter(range(rank, len(out.shape))), iter(range(rank))
    inner = set(dimension_numbers.offset_dims)
    order = [next(slices if d in inner else front) for d in range(len(out.shape))]
    return w.transpose(taken, order)


@rule("dynamic_slice")
def _dynamic_slice(
    w: Writer, x: Value, *starts: Value, slice_sizes: Sequence[int]
) -> Value:
    shape = w.avals_in[0].shape
    cut = [d for d in range(len(shape)) if slice_sizes[d] != shape[d]]
    if not cut:
        return x
    low = _starts(w, [starts[d] for d in cut], [shape[d] - slice_sizes[d] for d in cut])
    high = w.op("Add", low, w.ints(*(slice_sizes[d] for d in cut)))
    part = w.op("Slice", x, low, high, w.ints(*cut))
    # Declare the static sizes, which shape inference cannot derive.
    return w.reshape(part, slice_sizes)


def _starts(w: Writer, starts: Sequence[Value], highest: Sequence[int]) -> Value:
    """Returns 0-d starts as a vector, moved in bounds."""
    parts = [w.reshape(_wide(w, s), [1]) for s in starts]
    row = w.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
    return _clamped(w, row, highest)


# -- scatter ---------------------------------------------------------------------------

#: Operation → `reduction` of `ScatterElements`.
_COMBINED: Mapping[str, str] = {
    "scatter": "none",
    "scatter_add": "add",
    "scatter_mul": "mul",
    "scatter_min": "min",
    "scatter_max": "max",
}


def _scattering(combine: str) -> Any:
    def write(
        w: Writer,
        x: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: Any,
        mode: GatherScatterMode,
        **_: Any,
    ) -> Value:
        aval, index_aval, update_aval = w.avals_in
        if not math.prod(update_aval.shape) or not math.prod(aval.shape):
            return x
        numbers = dimension_numbers
        shape, batch = aval.shape, index_aval.shape[:-1]
        window = set(numbers.update_window_dims)
        sizes = numbers.window_sizes(len(shape), update_aval.shape)
        front = [d for d in range(len(update_aval.shape)) if d not in window]
        order = [*front, *sorted(window)]
        drops = mode is not GatherScatterMode.CLIP
        places = _Places(w, indices, batch, shape, sizes, numbers, drops)
        row, size = w.reshape(x, [-1]), math.prod(shape)
        positions = places.flat
        if places.inside is not None:
            # Updates out of bounds go to an extra element at the end.
            extra = w.size(size)
            positions = w.op("Where", places.inside, positions, extra)
            row = w.op("Concat", row, w.constant(np.zeros(1, x.dtype)), axis=0)
        changed = _put(w, row, positions, w.transpose(updates, order), combine)
        if places.inside is not None:
            changed = w.op("Slice", changed, w.ints(0), w.ints(size))
        return w.reshape(changed, shape)

    return write


def _put(
    w: Writer, row: Value, positions: Value, updates: Value, combine: str
) -> Value:
    settings = {} if combine == "none" else {"reduction": combine}
    own = row.dtype
    if settings and own.name in ("bool", "bfloat16", "float16"):
        # Runtimes scatter these dtypes, but do not reduce them.
        wide = np.dtype(np.int32 if own == _BOOL else np.float32)
        row, updates = w.cast(row, wide), w.cast(updates, wide)
    changed = w.op(
        "ScatterElements",
        row,
        w.reshape(positions, [-1]),
        w.reshape(updates, [-1]),
        axis=0,
        **settings,
    )
    return w.cast(changed, own)


RULES.update({name: _scattering(combine) for name, combine in _COMBINED.items()})


@rule("dynamic_update_slice")
def _dynamic_update_slice(w: Writer, x: Value, update: Value, *starts: Value) -> Value:
    shape, sizes = (a.shape for a in w.avals_in[:2])
    if not shape or not math.prod(sizes):
        return x if shape else update
    highest = [n - k for n, k in zip(shape, sizes, strict=True)]
    low = _starts(w, starts, highest)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    flat = w.op("ReduceSum", w.op("Mul", low, w.ints(*strides)), w.ints(0), keepdims=0)
    for d, size in enumerate(sizes):
        along = w.arange(size, np.int64, strides[d])
        ones = [1] * (len(sizes) - d - 1)
        flat = w.op("Add", flat, w.reshape(along, [-1, *ones]))
    changed = _put(w, w.reshape(x, [-1]), w.expand(flat, sizes), update, "none")
    return w.reshape(changed, shape)
