"""Operations that move elements, and constants, in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.sizes import is_at_least, larger
from fxflow.export.onnx_rules.writer import Value, Writer, rule

#: The limit of a backward `Slice` that includes the first element.
_FRONT = int(np.iinfo(np.int64).min)


@rule("reshape")
def _reshape(w: Writer, x: Value, *, new_sizes: Sequence[int]) -> Value:
    return w.reshape(x, new_sizes)


@rule("transpose")
def _transpose(w: Writer, x: Value, *, permutation: Sequence[int]) -> Value:
    return w.transpose(x, permutation)


@rule("broadcast_in_dim")
def _broadcast_in_dim(
    w: Writer, x: Value, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Value:
    (aval,) = w.avals_in
    aligned = [1] * len(shape)
    for axis, length in zip(broadcast_dimensions, aval.shape, strict=False):
        aligned[axis] = length
    if aligned != list(aval.shape):
        x = w.reshape(x, aligned)
    return x if w.stays_small or aligned == list(shape) else w.expand(x, shape)


@rule("rev")
def _rev(w: Writer, x: Value, *, dimensions: Sequence[int]) -> Value:
    if not dimensions:
        return x
    count = len(dimensions)
    return w.op(
        "Slice",
        x,
        w.ints(*[-1] * count),
        w.ints(*[_FRONT] * count),
        w.ints(*dimensions),
        w.ints(*[-1] * count),
    )


def sliced(
    w: Writer,
    x: Value,
    shape: Sequence[int],
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Value:
    """Slices an array along the axes where the slice is not the whole."""
    strides = strides or [1] * len(starts)
    cut = [
        d
        for d in range(len(starts))
        if (starts[d], limits[d], strides[d]) != (0, shape[d], 1)
    ]
    if not cut:
        return x
    parts = ([given[d] for d in cut] for given in (starts, limits))
    steps = [strides[d] for d in cut]
    return w.op("Slice", x, *(w.ints(*p) for p in parts), w.ints(*cut), w.ints(*steps))


@rule("slice")
def _slice(
    w: Writer,
    x: Value,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Value:
    return sliced(w, x, w.avals_in[0].shape, start_indices, limit_indices, strides)


@rule("concatenate")
def _concatenate(w: Writer, *xs: Value, dimension: int) -> Value:
    return w.op("Concat", *xs, axis=dimension)


@rule("split")
def _split(w: Writer, x: Value, *, sizes: Sequence[int], axis: int) -> list[Value]:
    shape = w.avals_in[0].shape
    parts, start = [], 0
    for size in sizes:
        starts = [start if d == axis else 0 for d in range(len(shape))]
        limits = [start + size if d == axis else n for d, n in enumerate(shape)]
        parts.append(sliced(w, x, shape, starts, limits))
        start += size
    return parts


def padded(
    w: Writer,
    x: Value,
    shape: Sequence[int],
    value: Value,
    config: Sequence[tuple[int, int, int]],
) -> tuple[Value, list[int]]:
    """Pads an array with `value`; returns it with its shape.

    Args:
      w: the writer.
      x: the array.
      shape: the array's shape.
      value: the padding value, 0-d.
      config: low, high (negative: cropped) and interior padding of each axis.
    """
    shape = list(shape)
    for axis, (_, _, between) in enumerate(config):
        if between and not is_at_least(1, shape[axis]):
            x, shape = _spread(w, x, shape, value, axis, between)
    lows, highs = ([larger(0, c[side]) for c in config] for side in (0, 1))
    if any(lows) or any(highs):
        x = w.op("Pad", x, w.ints(*lows, *highs), value, mode="constant")
        shape = [n + a + b for n, a, b in zip(shape, lows, highs, strict=True)]
    starts = [larger(0, -c[0]) for c in config]
    limits = [n - larger(0, -c[1]) for n, c in zip(shape, config, strict=True)]
    limits = [larger(a, b) for a, b in zip(starts, limits, strict=True)]
    x = sliced(w, x, shape, starts, limits)
    return x, [b - a for a, b in zip(starts, limits, strict=True)]


def _spread(
    w: Writer, x: Value, shape: list[int], value: Value, axis: int, between: int
) -> tuple[Value, list[int]]:
    """Adds interior padding along an axis; returns the array with its shape."""
    shape = list(shape)
    x = w.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    highs = [0] * (len(shape) + 1)
    highs[axis + 1] = between
    x = w.op("Pad", x, w.ints(*[0] * len(highs), *highs), value, mode="constant")
    shape[axis] *= between + 1
    x = w.reshape(x, shape)
    limits = list(shape)
    limits[axis] -= between
    return sliced(w, x, shape, [0] * len(shape), limits), limits


@rule("pad")
def _pad(
    w: Writer, x: Value, value: Value, *, padding_config: Sequence[tuple[int, int, int]]
) -> Value:
    return padded(w, x, w.avals_in[0].shape, value, padding_config)[0]


@rule("iota")
def _iota(w: Writer, *, dtype: Any, shape: Sequence[int], dimension: int) -> Value:
    row = [1] * len(shape)
    row[dimension] = shape[dimension]
    numbers = w.arange(shape[dimension], dtype)
    return w.expand(w.reshape(numbers, row) if len(row) > 1 else numbers, shape)


@rule("dimension_size")
def _dimension_size(w: Writer, *, size: Any) -> Value:
    return w.cast(w.size(size), w.avals_out[0].dtype)


@rule("bitcast_convert_type")
def _bitcast(w: Writer, x: Value, **_: Any) -> Value:
    new = w.avals_out[0].dtype
    if x.dtype == new:
        return x
    whole = (dtypes.is_integer(d) and dtypes.bits(d) >= 8 for d in (x.dtype, new))
    if dtypes.bits(x.dtype) == dtypes.bits(new) and all(whole):
        # Casts between integers of the same size wrap around.
        return w.cast(x, new)
    raise w.refuse(f"reads {x.dtype} as {new}, but ONNX has no bitcast")
