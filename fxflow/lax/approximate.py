"""Approximate extrema: the k largest or smallest elements, as fast as TPUs find them.

A TPU folds an axis to a short line by taking the best of every few elements, and sorts
that line: an element is lost where two of the best fell into one bin, and
`recall_target` bounds how often. Other devices have no such instruction; there the
result is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, typeof
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, integer, number
from fxflow.lax.elementwise import neg
from fxflow.lax.families import FLOAT, require_kind
from fxflow.lax.gather_scatter.gather import take_along
from fxflow.lax.sort import TopK

# Elements that a TPU folds at once: a vector register of a line, a row of it otherwise.
_REGISTER, _ROW = 1024, 128


def folded_length(
    size: int, rank: int, k: int, recall_target: float, override: int = -1
) -> int:
    """Returns the length of the line that an axis is folded to.

    With L bins for `k` elements, one of them is expected to be alone in its bin
    with probability (1 - 1 / L) ** (k - 1): L ≥ (1 - k) / log(recall_target). Folding
    halves the axis as often as leaves that many, and in whole registers.

    Args:
      size: length of the axis.
      rank: number of axes of the operand.
      k: how many elements are wanted.
      recall_target: expected share of them that is found.
      override: length to count the bins for, if it is not that of the axis.

    Source: Chern et al. 2022, "TPU-KNN: K nearest neighbor search at peak FLOP/s";
    XLA's `ApproxTopKReductionOutputSize`.
    """
    tile = _REGISTER if rank == 1 else _ROW
    if size <= tile:
        return size
    tiles = -(-size // tile)
    # The best of all wins its bin, however many elements share it.
    if k == 1:
        return tile
    if recall_target == 1:
        return size
    # In 32 bits as XLA does it: the result is part of the operation's type.
    target = math.log(np.float32(recall_target))
    # With L bins the expected recall is about exp((1 - k) / L) (Chern et al., 2022).
    bins = max(int(np.float32((1 - k) / target)), tile)
    whole = size if override < 0 else override
    halvings = (whole // bins).bit_length() - 1
    if halvings <= 0:
        return size
    halvings = min(halvings, (size // tile - 1).bit_length())
    return -(-tiles // (1 << halvings)) * tile


@register
class ApproxTopK(MultipleResults):
    """About the k largest (smallest) elements along an axis. dtypes: floating.

    TPU: ApproxTopK. CHLO: top_k elsewhere.

    Params:
      k: the number of elements to return.
      axis: the axis.
      length: length of the result along the axis: k, or that of the folded line.
      largest: whether the largest are wanted.
      recall_target: expected share of them that a TPU finds.
      override: length of the whole axis where this one is a part of it, or -1.
    """

    name = "approx_top_k"
    layout: Callable[..., Any] = layouts.along

    def abstract(
        self, x: Aval, *, k: int, axis: int, length: int, **params: Any
    ) -> list[Aval]:
        """Values, and i32 indices."""
        require_kind(self.name, x, FLOAT)
        if not 0 < k <= x.shape[axis]:
            raise ShapeError(
                f"{self.name}: k must be from 1 to the length {x.shape[axis]} of axis "
                f"{axis} of {x}, got {k}"
            )
        shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
        return [Aval(shape, x.dtype, x.weak_type), Aval(shape, np.dtype(np.int32))]

    def lower(self, ctx: Context, x: str, **params: Any) -> list[str]:
        """XLA's own on TPUs, the exact ones elsewhere."""
        if ctx.platform == "tpu" and ctx.avals_in[0].size:
            return _folded_text(ctx, x, **params)
        return ctx.compose(
            lambda x: _exact(x, params["length"], params["axis"], params["largest"]),
            [x],
        )

    def evaluate(
        self, x: Any, *, axis: int, length: int, largest: bool, **params: Any
    ) -> list[Any]:
        """The exact ones."""
        # `register` puts the instance in the class's place.
        exact: Any = TopK
        values, order = exact.evaluate(x if largest else -x, k=length, axis=axis)
        return [values if largest else -values, order]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangents of the chosen elements."""
        values, order = self.bind(*primals, **params)
        moved = take_along(tangents[0], order, params["axis"])
        return [values, order], [moved, Zero(typeof(order).tangent())]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One axis further back."""
        params["axis"] += 1
        return self.bind(args[0], **params), [True, True]


def _exact(x: Any, k: int, axis: int, largest: bool) -> list[Any]:
    values, order = TopK.bind(x if largest else neg(x), k=k, axis=axis)
    return [values if largest else neg(values), order]


def _folded_text(
    ctx: Context,
    x: str,
    *,
    k: int,
    axis: int,
    length: int,
    largest: bool,
    recall_target: float,
    override: int,
) -> list[str]:
    """Writes `ApproxTopK`, which needs to know what is better than what."""
    aval = ctx.avals_in[0]
    size = aval.shape[axis]
    index = aval.update(dtype=np.dtype(np.int32), weak_type=False)
    one, position = aval.update(shape=()), index.update(shape=())
    direction = "GT" if largest else "LT"
    comparator = ctx.module.helper(
        ("approx_top_k", direction, one),
        "better",
        lambda name: (
            f"func.func private @{name}(%a: {one.mlir}, %b: {one.mlir}, "
            f"%i: {position.mlir}, %j: {position.mlir}) -> tensor<i1> {{\n"
            f"%0 = stablehlo.compare {direction}, %a, %b, FLOAT : "
            f"({one.mlir}, {one.mlir}) -> tensor<i1>\n"
            "return %0 : tensor<i1>\n}\n"
        ),
    )
    positions = ctx.emit(f"stablehlo.iota dim = {axis} : {index.mlir}")
    worst = ctx.constant(np.asarray(-np.inf if largest else np.inf, aval.dtype), one)
    nowhere = ctx.constant(np.int32(-1), position)
    aggregate = length == k
    found = k
    if not aggregate:
        # XLA folds by the number of axes there are now: under vmap, one more.
        found = folded_length(size, aval.ndim, k, recall_target, override)
    outs = [
        a.update(shape=(*a.shape[:axis], found, *a.shape[axis + 1 :]))
        for a in ctx.avals_out
    ]
    names = ctx.emit_many(
        2,
        f"stablehlo.custom_call @ApproxTopK({x}, {positions}, {worst}, {nowhere}) "
        f'{{backend_config = "", called_computations = [@{comparator}], '
        "mhlo.backend_config = {aggregate_to_topk = "
        f"{str(aggregate).lower()}, recall_target = {float(recall_target)!r} : f32, "
        f"reduction_dim = {axis} : i64, "
        f"reduction_input_size_override = {override} : i64, top_k = {k} : i64}}}} : "
        f"({aval.mlir}, {index.mlir}, {one.mlir}, {position.mlir}) -> "
        f"({outs[0].mlir}, {outs[1].mlir})",
    )
    if found == length:
        return names
    high = [length - found if d == axis else 0 for d in range(aval.ndim)]
    none = [0] * aval.ndim
    return [
        ctx.emit(
            f"stablehlo.pad {name}, {fill}, low = {none}, high = {high}, "
            f"interior = {none} : ({old.mlir}, {scalar.mlir}) -> {new.mlir}"
        )
        for name, fill, old, scalar, new in zip(
            names, (worst, nowhere), outs, (one, position), ctx.avals_out, strict=True
        )
    ]


# -- public ----------------------------------------------------------------------------


def _approx_top_k(
    name: str,
    operand: Any,
    k: Any,
    reduction_dimension: Any,
    recall_target: float,
    reduction_input_size_override: Any,
    aggregate_to_topk: bool,
    largest: bool,
) -> tuple[Array, Array]:
    aval = typeof(operand)
    require_kind(name, aval, FLOAT)
    axis = canonical_axis(name, reduction_dimension, aval.ndim, "reduction_dimension")
    count = integer(name, "k", k)
    size = aval.shape[axis]
    if not 0 < count <= size:
        raise ShapeError(
            f"{name}: k must be from 1 to the length {size} of axis {axis} of {aval}, "
            f"got {count}"
        )
    if not 0 < number(name, "recall_target", recall_target) <= 1:
        raise ArgumentError(
            f"{name}: recall_target is a share above 0 and at most 1, got "
            f"{recall_target!r}"
        )
    override = integer(
        name, "reduction_input_size_override", reduction_input_size_override
    )
    if override != -1 and override < size:
        raise ArgumentError(
            f"{name}: reduction_input_size_override is the length of the whole axis "
            f"that axis {axis} of {aval} is a part of, so at least {size} (or -1), got "
            f"{override}"
        )
    length = count
    if not aggregate_to_topk:
        length = folded_length(size, aval.ndim, count, recall_target, override)
    values, order = ApproxTopK.bind(
        operand,
        k=count,
        axis=axis,
        length=length,
        largest=largest,
        recall_target=float(recall_target),
        override=override,
    )
    return values, order


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Returns about the k largest elements along an axis, largest first.

    On a TPU it is much faster than `top_k` and may miss some; elsewhere it is exact.

    Args:
      operand: floating array.
      k: how many, at least 1.
      reduction_dimension: the axis.
      recall_target: expected share of the k largest that is found on a TPU.
      reduction_input_size_override: where the operand holds a part of a longer axis
        (say one device's), the length of the whole: parts then need to find less each.
      aggregate_to_topk: whether to sort what was found and keep k. If not, the result
        is all that was found, in no order: more than k elements, of which the k largest
        are about those of the operand.

    Returns:
      Values, and `int32` indices. The axis has length `k`; without
      `aggregate_to_topk` it has the length to which a TPU folds it, on any device.

    Raises:
      ShapeError: the axis is shorter than `k`.
      AxisError: an axis is out of range.
      ArgumentError: the recall is not above 0 and at most 1, or the whole axis is
        shorter than this one.
      DtypeError: the array is not floating.

    Special cases:
      nan counts as largest; on TPUs its index is not specified. Among equal elements
      any may be chosen, on CPU and GPU those in front.

    Example:
      >>> approx_max_k(np.array([1, 3, 2], "f4"), 2)
      (Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32))

    Source: XLA `ApproxTopK`; Chern et al. 2022, "TPU-KNN".
    """
    return _approx_top_k(
        "approx_max_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
        True,
    )


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Returns about the k smallest elements along an axis, smallest first.

    On a TPU it is much faster than `top_k` and may miss some; elsewhere it is exact.

    Args:
      operand: floating array.
      k: how many, at least 1.
      reduction_dimension: the axis.
      recall_target: see `approx_max_k`.
      reduction_input_size_override: see `approx_max_k`.
      aggregate_to_topk: see `approx_max_k`.

    Returns:
      Values, and `int32` indices; see `approx_max_k`.

    Raises:
      ShapeError, AxisError, ArgumentError, DtypeError: as for `approx_max_k`.

    Special cases:
      nan whose sign is set counts as smallest; on TPUs its index is not specified.
      Among equal elements any may be chosen, on CPU and GPU those in front.

    Example:
      >>> approx_min_k(np.array([1, 3, 2], "f4"), 2)
      (Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32))

    Source: XLA `ApproxTopK`; Chern et al. 2022, "TPU-KNN".
    """
    return _approx_top_k(
        "approx_min_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
        False,
    )
