"""Slices with static bounds: views on the host."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Node
from fxflow.core.ir.primitive import Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import larger
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import part
from fxflow.errors import ShapeError
from fxflow.lax.axes import canonical_axis, int_tuple, integer
from fxflow.lax.families import MOVED, Structural
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.padding import Pad
from fxflow.lax.reshaping import squeeze


@register
class Slice(Structural):
    """The elements between two corners, perhaps in steps. All dtypes.

    StableHLO: slice.
    """

    name = "slice"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.partly

    def abstract(
        self,
        x: Aval,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> Aval:
        """One length for each pair of corners."""
        ndim = x.ndim
        steps = strides or (1,) * ndim
        if not len(start_indices) == len(limit_indices) == len(steps) == ndim:
            raise ShapeError(
                f"slice: {x} needs one start, limit and stride for each axis, got "
                f"start_indices {start_indices}, limit_indices {limit_indices}, "
                f"strides {strides}"
            )
        shape = []
        for d, (n, start, limit, step) in enumerate(
            zip(x.shape, start_indices, limit_indices, steps, strict=True)
        ):
            if not (0 <= start <= limit <= n and step > 0):
                raise ShapeError(
                    f"slice: along axis {d} of {x}, start {start} to limit {limit} in "
                    f"steps of {step} does not lie in 0 to {n} (negative numbers do "
                    "not count from the end here: see slice_in_dim)"
                )
            shape.append((limit - start + step - 1) // step)
        return Aval(tuple(shape), x.dtype, x.weak_type)

    def lower(
        self,
        ctx: Context,
        x: str,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> str:
        """`slice`."""
        ranges = ", ".join(
            f"{a}:{b}:{c}"
            for a, b, c in zip(
                start_indices,
                limit_indices,
                strides or (1,) * len(start_indices),
                strict=True,
            )
        )
        return ctx.emit(
            f"stablehlo.slice {x} [{ranges}] : ({ctx.avals_in[0].mlir}) -> "
            f"{ctx.avals_out[0].mlir}"
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """A view: indexing by prepared slices."""
        starts, limits = params["start_indices"], params["limit_indices"]
        strides = params["strides"] or (None,) * len(starts)
        return itemgetter(tuple(map(builtins.slice, starts, limits, strides)))

    def transpose(
        self,
        cotangent: Any,
        x: Any,
        *,
        start_indices: tuple[int, ...],
        limit_indices: tuple[int, ...],
        strides: tuple[int, ...] | None,
    ) -> Values:
        """Zeros around and between."""
        ct = typeof(cotangent)
        config = []
        for old, new, start, step in zip(
            x.aval.shape,
            ct.shape,
            start_indices,
            strides or (1,) * ct.ndim,
            strict=True,
        ):
            covered = new + larger(new - 1, 0) * (step - 1)
            config.append((start, old - start - covered, step - 1))
        zero = arith.constant(0, ct.dtype)
        return [Pad.bind(cotangent, zero, padding_config=tuple(config))]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Only the part is read."""
        return part(node, kinds)

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """All of axis 0."""
        strides = params["strides"]
        return {
            "start_indices": (0, *params["start_indices"]),
            "limit_indices": (size, *params["limit_indices"]),
            "strides": None if strides is None else (1, *strides),
        }


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Returns the elements between two corners.

    Args:
      operand: array of any dtype.
      start_indices: for each axis the first index.
      limit_indices: for each axis the index behind the last.
      strides: for each axis the step (None: 1).

    Returns:
      Array of lengths `ceil((limit - start) / stride)`.

    Raises:
      ShapeError: there is not one number for each axis, or a corner lies outside.

    Example:
      >>> slice(np.array([0, 1, 2, 3], "i4"), (1,), (4,), (2,))
      Array([1, 3], dtype=int32)

    Source: StableHLO `slice`.
    """
    starts = int_tuple("slice", "start_indices", start_indices)
    limits = int_tuple("slice", "limit_indices", limit_indices)
    steps = None if strides is None else int_tuple("slice", "strides", strides)
    # One spelling of unit strides: equal slices have equal parameters.
    if steps is not None and all(s == 1 for s in steps) and len(steps) == len(starts):
        steps = None
    aval = typeof(operand)
    if dtypes.is_key(aval.dtype):
        check(Slice, aval, start_indices=starts, limit_indices=limits, strides=steps)
        inner = aval.dtype.suffix
        keys: Array = map_key_data(
            lambda w: Slice.bind(
                w,
                start_indices=starts + (0,) * len(inner),
                limit_indices=limits + inner,
                strides=None if steps is None else steps + (1,) * len(inner),
            ),
            operand,
        )
        return keys
    return Slice.bind(
        operand, start_indices=starts, limit_indices=limits, strides=steps
    )


def slice_in_dim(
    operand: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slices along one axis, as `operand[..., start:limit:stride, ...]` does.

    Args:
      operand: array of any dtype.
      start_index: the first index; negative ones count from the end (None: 0).
      limit_index: the index behind the last, likewise (None: the end).
      stride: a positive step.
      axis: the axis.

    Returns:
      Array that differs from `operand` in the length of `axis`.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: a corner lies outside.

    Example:
      >>> slice_in_dim(np.array([0, 1, 2, 3], "i4"), -3, None)
      Array([1, 2, 3], dtype=int32)

    Source: StableHLO `slice`.
    """
    aval = typeof(operand)
    at = canonical_axis("slice_in_dim", axis, aval.ndim)
    n = aval.shape[at]
    step = integer("slice_in_dim", "stride", stride)
    start = 0 if start_index is None else _from_front(start_index, n)
    limit = n if limit_index is None else _from_front(limit_index, n)
    starts, limits, steps = [0] * aval.ndim, list(aval.shape), [1] * aval.ndim
    starts[at], limits[at], steps[at] = start, limit, step
    return slice(operand, starts, limits, steps)


def _from_front(index: Any, length: int) -> int:
    known = integer("slice_in_dim", "indices", index)
    return known + length if known < 0 else known


def index_in_dim(
    operand: Any, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """Returns one static index along an axis.

    Args:
      operand: array of any dtype.
      index: which; a negative one counts from the end.
      axis: the axis.
      keepdims: whether to keep the reduced axis, with length 1.

    Returns:
      Array whose `axis` has length 1 or is removed.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: the index is out of range.

    Example:
      >>> index_in_dim(np.array([5, 6], "i4"), -1, keepdims=False)
      Array(6, dtype=int32)

    Source: StableHLO `slice`.
    """
    aval = typeof(operand)
    at = canonical_axis("index_in_dim", axis, aval.ndim)
    n = aval.shape[at]
    known = integer("index_in_dim", "index", index)
    if not -n <= known < n:
        raise ShapeError(
            f"index_in_dim: index {known} is out of range for axis {at} of {aval}"
        )
    known %= n
    out = slice_in_dim(operand, known, known + 1, axis=at)
    return out if keepdims else squeeze(out, (at,))
