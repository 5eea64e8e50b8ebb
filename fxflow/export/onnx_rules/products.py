"""Matrix products and convolutions in ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.sizes import is_symbolic
from fxflow.export.onnx_rules.elementwise import number
from fxflow.export.onnx_rules.movement import padded
from fxflow.export.onnx_rules.writer import Value, Writer, rule
from fxflow.lax.convolution_dims import ConvDimensionNumbers


def _summed_in(*given: Any) -> Any:
    """Returns the dtype in which products are summed: the widest of those given."""
    widest = max(given, key=lambda d: (dtypes.bits(d), dtypes.is_floating(d)))
    return np.dtype(np.float32) if str(widest) == "bfloat16" else widest


@rule("dot_general")
def _dot_general(
    w: Writer,
    x: Value,
    y: Value,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    **_: Any,
) -> Value:
    (sums_x, sums_y), (batch_x, batch_y) = dimension_numbers
    (out,) = w.avals_out
    wide = _summed_in(x.dtype, y.dtype, out.dtype)
    if wide == np.bool_:
        wide = np.dtype(np.int32)
    shape_x, shape_y = (a.shape for a in w.avals_in)
    x, rows = _side(w, w.cast(x, wide), shape_x, batch_x, sums_x, last=True)
    y, columns = _side(w, w.cast(y, wide), shape_y, batch_y, sums_y, last=False)
    product = w.op("MatMul", x, y)
    batch = [shape_x[d] for d in batch_x]
    # `_side` joined the free axes of each operand into one; split them again.
    if len(rows) != 1 or len(columns) != 1:
        product = w.reshape(product, [*batch, *rows, *columns])
    return w.cast(product, out.dtype)


def _side(
    w: Writer,
    x: Value,
    shape: Sequence[int],
    batch: Sequence[int],
    sums: Sequence[int],
    last: bool,
) -> tuple[Value, list[int]]:
    """Returns an operand as a stack of matrices, and the lengths of its free axes.

    Args:
      w: the writer.
      x: the operand.
      shape: the operand's shape.
      batch: batch axes.
      sums: contracting axes, which are joined into one.
      last: whether the contracting axis comes last.
    """
    free = [d for d in range(len(shape)) if d not in (*batch, *sums)]
    lengths = [shape[d] for d in free]
    order = [*batch, *free, *sums] if last else [*batch, *sums, *free]
    x = w.transpose(x, order)
    if len(free) != 1 or len(sums) != 1:
        inner = [math.prod(lengths), math.prod(shape[d] for d in sums)]
        sides = inner if last else inner[::-1]
        x = w.reshape(x, [*(shape[d] for d in batch), *sides])
    return x, lengths


@rule("conv_general_dilated")
def _conv(
    w: Writer,
    x: Value,
    kernel: Value,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **_: Any,
) -> Value:
    (out,) = w.avals_out
    if not dtypes.is_floating(x.dtype):
        raise w.refuse(f"of {x.dtype}: ONNX only convolves floats, use .astype")
    wide = _summed_in(x.dtype, kernel.dtype, out.dtype)
    lhs, rhs, outs = dimension_numbers
    shape = [w.avals_in[0].shape[d] for d in lhs]
    window = [w.avals_in[1].shape[d] for d in rhs]
    x = w.transpose(w.cast(x, wide), lhs)
    kernel = w.transpose(w.cast(kernel, wide), rhs)
    spatial = len(window) - 2
    if not spatial:
        # A matrix product, as a convolution over a single position.
        x, kernel = w.reshape(x, [*shape, 1]), w.reshape(kernel, [*window, 1])
        shape, window = [*shape, 1], [*window, 1]
        window_strides = lhs_dilation = rhs_dilation = [1]
        padding = [(0, 0)]
    if is_symbolic(window[2:]):
        raise w.refuse(f"by a kernel of symbolic size ({w.avals_in[1]})")
    # `Conv` supports only static, non-negative padding.
    plain = not any(is_symbolic(pair) or min(pair) < 0 for pair in padding)
    if any(d > 1 for d in lhs_dilation) or not plain:
        config = [(0, 0, 0), (0, 0, 0)]
        config += [(a, b, d - 1) for (a, b), d in zip(padding, lhs_dilation)]
        x, shape = padded(w, x, shape, number(w, 0, x), config)
        padding = [(0, 0)] * len(padding)
    settings = {
        "kernel_shape": window[2:],
        "strides": list(window_strides),
        "dilations": list(rhs_dilation),
        "pads": [a for a, _ in padding] + [b for _, b in padding],
        "group": feature_group_count,
    }
    if not math.prod(out.shape) or not math.prod(shape) or not math.prod(window):
        return w.constant(np.zeros((), out.dtype), out)
    # Each batch group has separate output features.
    groups = batch_group_count
    parts = [(x, kernel)]
    if groups > 1:
        parts = list(
            zip(_cut(w, x, shape[0], groups), _cut(w, kernel, window[0], groups))
        )
    made = [w.op("Conv", *pair, **settings) for pair in parts]
    result = w.op("Concat", *made, axis=1) if groups > 1 else made[0]
    if not spatial:
        result = w.reshape(result, [out.shape[d] for d in outs])
    back = [list(outs).index(d) for d in range(len(outs))]
    return w.cast(w.transpose(result, back), out.dtype)


def _cut(w: Writer, x: Value, length: int, count: int) -> list[Value]:
    """Returns equal parts of an array along its first axis."""
    size = length // count
    made = [x.dtype] * count
    return w.ops("Split", [x, w.ints(*[size] * count)], made, axis=0)
