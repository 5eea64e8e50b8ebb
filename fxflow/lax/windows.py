"""Windows that slide over an array, and folding over them by whole-array operations.

XLA's windowed reductions on the CPU are slow, and their derivative (a scatter) is very
slow: a max-pooling of f32[64,28,28,32] by 2×2 takes 0.19 ms, its derivative 30 ms.
Folding over the positions in the window takes 0.10 ms and 0.4 ms, since each is a
strided slice of the whole array and XLA fuses them. So on the CPU small windows are
folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval, Shape, typeof
from fxflow.core.ir import arith
from fxflow.core.sizes import is_at_least, larger
from fxflow.errors import ShapeError
from fxflow.lax.axes import int_tuple
from fxflow.lax.convolution_dims import (
    Padding,
    dilated,
    explicit_padding,
    padtype_to_pads,
    per_axis,
    strided,
)
from fxflow.lax.padding import pad
from fxflow.lax.slicing import slice as slice_

# Windows of more positions than this along an axis are left to XLA's own operation.
_FOLDED = 16


class Window(NamedTuple):
    """How a window slides.

    Attributes:
      dimensions: lengths of the window.
      strides: its steps.
      padding: of the (dilated) array.
      base_dilation: of the array: the distance between adjacent elements.
      window_dilation: of the window.
    """

    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def out_shape(self, name: str, operand: Aval) -> Shape:
        """Returns how many windows fit along each axis.

        Raises:
          ShapeError: the window has the wrong number of axes.
        """
        if len(self.dimensions) != operand.ndim:
            raise ShapeError(
                f"{name}: the window {self.dimensions} must have a length for each "
                f"axis of {operand}"
            )
        return tuple(
            strided(larger(0, dilated(n, b) + low + high), dilated(w, d), s)
            for n, w, s, (low, high), b, d in zip(operand.shape, *self, strict=True)
        )

    def attributes(self) -> str:
        """Returns the window as attributes of StableHLO's `reduce_window`."""
        pads = [list(pair) for pair in self.padding]
        parts = [
            f"{name} = array<i64: {', '.join(map(str, values))}>"
            for name, values in (
                ("window_dimensions", self.dimensions),
                ("window_strides", self.strides),
                ("base_dilations", self.base_dilation),
                ("window_dilations", self.window_dilation),
            )
        ]
        parts.append(f"padding = dense<{pads}> : tensor<{len(pads)}x2xi64>")
        return ", ".join(parts)

    def batched(self) -> Window:
        """Returns the window behind one more axis, over which it does not extend."""
        return Window(
            (1, *self.dimensions),
            (1, *self.strides),
            ((0, 0), *self.padding),
            (1, *self.base_dilation),
            (1, *self.window_dilation),
        )

    def folds(self, out: Aval) -> bool:
        """Returns whether it pays to fold, and there is a window to fold."""
        return all(is_at_least(_FOLDED, n) for n in self.dimensions) and all(
            is_at_least(n, 1) for n in out.shape
        )


# No array has as many elements, and XLA's loop over them would not end.
_LARGEST = 2**40


def make_window(
    name: str,
    shape: Shape,
    dimensions: Any,
    strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> Window:
    """Returns a window as the user describes it.

    Args:
      name: of the operation, for messages.
      shape: shape of the array.
      dimensions: lengths of the window.
      strides: its steps; None is 1.
      padding: a name or pairs.
      base_dilation: of the array; None is 1.
      window_dilation: of the window; None is 1.

    Raises:
      ArgumentError: lengths are wrong or not positive.
    """
    axes = len(shape)
    dimensions = int_tuple(name, "window_dimensions", dimensions)
    window = per_axis(name, "window_dimensions", dimensions, axes)
    if is_at_least(math.prod(window), _LARGEST + 1):
        raise ShapeError(f"{name}: a window of lengths {window} is too large")
    steps = per_axis(name, "window_strides", strides, axes)
    base = per_axis(name, "base_dilation", base_dilation, axes)
    dilation = per_axis(name, "window_dilation", window_dilation, axes)
    if isinstance(padding, str):
        lengths = [dilated(n, b) for n, b in zip(shape, base, strict=True)]
        sizes = [dilated(w, d) for w, d in zip(window, dilation, strict=True)]
        padding = padtype_to_pads(lengths, sizes, steps, padding)
    pads = explicit_padding(name, padding, axes)
    return Window(window, steps, pads, base, dilation)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Returns the shape of a windowed reduction.

    Args:
      operand_shape: shape of the array.
      window_dimensions: lengths of the window.
      window_strides: steps between windows; None is 1.
      padding: a name or a pair for each axis.
      base_dilation: of the array; None is 1.
      window_dilation: of the window; None is 1.

    Returns:
      How many windows fit along each axis.

    Raises:
      ArgumentError: lengths are wrong or not positive.

    Example:
      >>> reduce_window_shape_tuple((7, 7), (3, 3), (2, 2), "SAME")
      (4, 4)
    """
    name = "reduce_window_shape_tuple"
    shape = int_tuple(name, "operand_shape", operand_shape)
    window = make_window(
        name,
        shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return window.out_shape(name, Aval(shape, np.dtype(np.float32)))


Combine = Callable[[list[Any], list[Any]], list[Any]]


def padded(x: Any, window: Window, fill: Any) -> Any:
    """Returns an array padded and dilated as its window says."""
    config = [
        (low, high, base - 1)
        for (low, high), base in zip(window.padding, window.base_dilation, strict=True)
    ]
    if all(c == (0, 0, 0) for c in config):
        return x
    dtype = typeof(x).dtype
    value = fill if hasattr(fill, "aval") else arith.constant(fill, dtype)
    return pad(x, value, config)


def positions(x: Any, window: Window, axis: int) -> list[Any]:
    """Returns the slice of a padded array for each window position on an axis."""
    shape = typeof(x).shape
    size, stride = window.dimensions[axis], window.strides[axis]
    step = window.window_dilation[axis]
    count = strided(shape[axis], dilated(size, step), stride)
    found = []
    for k in range(size):
        start, limit, steps = [0] * len(shape), list(shape), [1] * len(shape)
        start[axis] = k * step
        limit[axis] = k * step + (count - 1) * stride + 1
        steps[axis] = stride
        found.append(slice_(x, start, limit, steps))
    return found


def fold_windows(
    values: Sequence[Any], fills: Sequence[Any], window: Window, combine: Combine
) -> list[Any]:
    """Reduces each window, axis by axis, position by position.

    Args:
      values: arrays of one shape, of at least one window.
      fills: what each is padded with.
      window: over them.
      combine: of two lists of arrays, element by element.
    """
    rows = [padded(v, window, f) for v, f in zip(values, fills, strict=True)]
    # The last axis first: of equals, the first in row-major order comes first.
    for axis in reversed(range(len(window.dimensions))):
        if window.dimensions[axis] == 1 and window.strides[axis] == 1:
            continue
        columns = [positions(row, window, axis) for row in rows]
        rows = [column[0] for column in columns]
        for k in range(1, window.dimensions[axis]):
            rows = combine(rows, [column[k] for column in columns])
    return rows


def host_windows(x: Any, window: Window, fill: Any) -> Any:
    """Returns the windows of a NumPy array, their positions in new axes behind."""
    pads = [(max(0, low), max(0, high)) for low, high in window.padding]
    shape = tuple(dilated(n, b) for n, b in zip(x.shape, window.base_dilation))
    wide = np.full(shape, fill, x.dtype)
    wide[tuple(slice(None, None, b) for b in window.base_dilation)] = x
    wide = np.pad(wide, pads, constant_values=fill) if x.ndim else wide
    cut = tuple(
        slice(max(0, -low), n - max(0, -high))
        for n, (low, high) in zip(wide.shape, window.padding)
    )
    wide = wide[cut]
    sizes = tuple(dilated(w, d) for w, d in zip(*window[::4]))
    if any(n < size for n, size in zip(wide.shape, sizes)):
        shape = window.out_shape("window", Aval(x.shape, x.dtype))
        return np.empty((*shape, *window.dimensions), x.dtype)
    if not x.ndim:
        return wide
    views = np.lib.stride_tricks.sliding_window_view(wide, sizes)
    steps = tuple(slice(None, None, s) for s in window.strides)
    inner = tuple(slice(None, None, d) for d in window.window_dilation)
    return views[steps + inner]
