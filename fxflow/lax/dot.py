"""Products of arrays: `dot_general` and what is said in its terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.primitive import Batched, Flags, Values, register
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.partition import constrained
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.axis_order import transpose
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.families import Bilinear
from fxflow.lax.product_precision import (
    PrecisionPair,
    canonical_precision,
    precision_text,
    product_dtype,
)
from fxflow.lax.transfer import laid_out

# (contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
_Pair = tuple[tuple[int, ...], tuple[int, ...]]
Dims = tuple[_Pair, _Pair]

# What NumPy multiplies in its own precision and fast enough.
_NATIVE = frozenset("bhilqBHILQfdFD")


def check_lengths(name: str, lhs: Aval, rhs: Aval, numbers: Dims) -> None:
    """Raises `ShapeError` if the lengths of paired axes differ."""
    for what, (left, right) in zip(("contracting", "batch"), numbers, strict=True):
        for i, j in zip(left, right, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                raise ShapeError(
                    f"{name}: {what} dimensions differ: lhs {lhs} axis {i} "
                    f"is {lhs.shape[i]}, rhs {rhs} axis {j} is {rhs.shape[j]}"
                )


@register
class DotGeneral(Bilinear):
    """Product summed over contracting axes, for each index of the batch axes.

    dtypes: bool and numeric. StableHLO: dot_general. Axes of the result: batch, rest of
    lhs, rest of rhs.

    Params:
      dimension_numbers: ((contracting lhs, rhs), (batch lhs, rhs)).
      precision: pair of `Precision`, a `DotAlgorithmPreset`, a `DotAlgorithm` or None.
      preferred_element_type: dtype of the result, or None for that of the operands.
    """

    name = "dot_general"
    layout: Callable[..., Any] = layouts.product

    def abstract(
        self,
        lhs: Aval,
        rhs: Aval,
        *,
        dimension_numbers: Dims,
        precision: PrecisionPair,
        preferred_element_type: Any,
    ) -> Aval:
        """Batch axes, then what is left of each operand."""
        (lc, rc), (lb, rb) = dimension_numbers
        check_lengths(self.name, lhs, rhs, dimension_numbers)
        dtype = product_dtype(self.name, lhs, rhs, preferred_element_type)
        shape = tuple(lhs.shape[i] for i in lb)
        shape += tuple(lhs.shape[i] for i in free_axes(lhs.ndim, lc, lb))
        shape += tuple(rhs.shape[i] for i in free_axes(rhs.ndim, rc, rb))
        weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
        return Aval(shape, dtype, weak)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`dot_general`."""
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        batching = f"batching_dims = {list(lb)} x {list(rb)}, " if lb else ""
        ins = ", ".join(a.mlir for a in ctx.avals_in)
        summed = None
        if ctx.unreduced is not None:
            summed = layouts.contracted(ctx.avals_in, lc, rc)
        if summed:
            operands = tuple(
                constrained(ctx, x, a, a.layout)
                for x, a in zip(operands, ctx.avals_in, strict=True)
            )
        name = ctx.emit(
            f"stablehlo.dot_general {', '.join(operands)}, {batching}"
            f"contracting_dims = {list(lc)} x {list(rc)}"
            f"{precision_text(params['precision'], *ctx.avals_in)} : "
            f"({ins}) -> {ctx.avals_out[0].mlir}"
        )
        if summed:
            ctx.contracted[name] = summed
        return name

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`numpy.matmul` of the operands with their axes in its order."""
        dims: Dims = params["dimension_numbers"]
        preferred = params["preferred_element_type"]
        (lc, rc), (lb, _) = dims
        plain = not lb and len(lc) == 1

        def call(x: Any, y: Any) -> Any:
            if (
                plain
                and preferred is None
                and x.dtype.char in _NATIVE
                and x.ndim <= 2
                and y.ndim <= 2
            ):
                return np.dot(x if lc[0] == x.ndim - 1 else x.T, y.T if rc[0] else y)
            out_dtype = x.dtype if preferred is None else preferred
            wide = out_dtype
            if x.dtype.char not in _NATIVE or wide.char not in _NATIVE:
                wide = _accumulator(x.dtype, out_dtype)
            out = _matmul(x.astype(wide, copy=False), y.astype(wide, copy=False), dims)
            return np.asarray(out).astype(out_dtype, copy=False)

        return call

    def transpose_left(self, ct: Any, y: Any, x_aval: Aval, **params: Any) -> Any:
        """Product of the cotangent and the right operand."""
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        batch = tuple(range(len(lb)))
        left, right = free_axes(x_aval.ndim, lc, lb), free_axes(typeof(y).ndim, rc, rb)
        start = len(batch) + len(left)
        dims = ((tuple(range(start, start + len(right))), right), (batch, rb))
        # The product has y's free axes in y's order; each stands for its partner in x.
        axes = (*lb, *left, *(lc[rc.index(c)] for c in sorted(rc)))
        return _cotangent(ct, y, dims, axes, x_aval, params, ct_first=True)

    def transpose_right(self, ct: Any, x: Any, y_aval: Aval, **params: Any) -> Any:
        """Product of the left operand and the cotangent."""
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        batch = tuple(range(len(lb)))
        left, right = free_axes(typeof(x).ndim, lc, lb), free_axes(y_aval.ndim, rc, rb)
        start = len(batch)
        dims = ((left, tuple(range(start, start + len(left)))), (lb, batch))
        # The product has x's free axes in x's order; each stands for its partner in y.
        axes = (*rb, *(rc[lc.index(c)] for c in sorted(lc)), *right)
        return _cotangent(ct, x, dims, axes, y_aval, params, ct_first=False)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more batch axis, or one more free axis of the mapped operand."""
        x, y = args
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        left, right = mapped
        if left:
            lc, lb = raised(lc), raised(lb)
        if right:
            rc, rb = raised(rc), raised(rb)
        if left and right:
            lb, rb = (0, *lb), (0, *rb)
        params = {**params, "dimension_numbers": ((lc, rc), (lb, rb))}
        out = self.bind(x, y, **params)
        if left and right:
            return out, True
        # The mapped axis is the first free one of its operand.
        position = len(lb)
        if right:
            position += len(free_axes(typeof(x).ndim, lc, lb))
        if position:
            ndim = typeof(out).ndim
            others = tuple(i for i in range(ndim) if i != position)
            out = transpose(out, (position, *others))
        return out, True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Two operations a product."""
        (lc, _), _ = params["dimension_numbers"]
        out = self.abstract(*avals, **params)
        flops = 2.0 * out.size
        for axis in lc:
            flops *= avals[0].shape[axis]
        return {**super().cost(*avals, **params), "flops": flops}


def free_axes(ndim: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes that are not taken, in order."""
    used = {i for axes in taken for i in axes}
    return tuple(i for i in range(ndim) if i not in used)


def raised(axes: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes behind a new first one."""
    return tuple(i + 1 for i in axes)


def _accumulator(dtype: Any, out_dtype: Any) -> Any:
    if dtypes.is_floating(dtype):
        wide = dtypes.bits(out_dtype) == 64
        return np.dtype(np.float64 if wide else np.float32)
    if dtypes.is_bool(dtype):
        return out_dtype
    return np.dtype(np.int32) if out_dtype.char not in _NATIVE else out_dtype


def _matmul(x: Any, y: Any, dims: Dims) -> Any:
    (lc, rc), (lb, rb) = dims
    left, right = free_axes(x.ndim, lc, lb), free_axes(y.ndim, rc, rb)
    batch = tuple(x.shape[i] for i in lb)
    rows = tuple(x.shape[i] for i in left)
    columns = tuple(y.shape[i] for i in right)
    inner = math.prod(x.shape[i] for i in lc)
    a = x.transpose(*lb, *left, *lc).reshape(*batch, math.prod(rows), inner)
    b = y.transpose(*rb, *rc, *right).reshape(*batch, inner, math.prod(columns))
    return np.matmul(a, b).reshape(batch + rows + columns)


def _cotangent(
    ct: Any,
    value: Any,
    dims: Any,
    axes: tuple[int, ...],
    aval: Aval,
    params: dict[str, Any],
    *,
    ct_first: bool,
) -> Any:
    """Returns a cotangent as a product, its axes and dtype as the operand's.

    Args:
      ct: cotangent of the result.
      value: the other operand.
      dims: dimension numbers of the product.
      axes: axes of the operand, for each axis of the product.
      aval: type of the operand.
      params: of the original product.
      ct_first: whether the cotangent is the left operand.
    """
    dtype = typeof(ct).dtype
    if typeof(value).dtype != dtype:
        value = convert_element_type(value, dtype)
    pair = (ct, value) if ct_first else (value, ct)
    out = DotGeneral.bind(
        *pair,
        dimension_numbers=dims,
        precision=params["precision"],
        preferred_element_type=None,
    )
    if axes != tuple(range(len(axes))):
        out = transpose(out, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return out if dtype == aval.dtype else convert_element_type(out, aval.dtype)


# -- public ----------------------------------------------------------------------------


def canonical_dims(name: str, numbers: Any, lhs: Aval, rhs: Aval) -> Dims:
    """Returns dimension numbers as tuples of axes counted from the front.

    Raises:
      ArgumentError: they are not made of two pairs.
      ShapeError: as many axes of one operand as of the other are needed.
      AxisError: an axis is out of range or repeated.
    """
    try:
        (lc, rc), (lb, rb) = numbers
        groups = [tuple(g) for g in (lc, rc, lb, rb)]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: dimension_numbers must be ((contracting axes of lhs, of rhs), "
            f"(batch axes of lhs, of rhs)), got {numbers!r}"
        ) from None
    for what, left, right in (
        ("contracting", groups[0], groups[1]),
        ("batch", groups[2], groups[3]),
    ):
        if len(left) != len(right):
            raise ShapeError(
                f"{name}: as many {what} axes of lhs as of rhs are needed, got "
                f"{left} of {lhs} and {right} of {rhs}"
            )
    found = []
    for group, aval in zip(groups, (lhs, rhs, lhs, rhs), strict=True):
        found.append(tuple(canonical_axis(name, a, aval.ndim) for a in group))
    for aval, used in ((lhs, found[0] + found[2]), (rhs, found[1] + found[3])):
        if len(set(used)) != len(used):
            raise AxisError(
                f"{name}: an axis of {aval} is named twice in dimension_numbers "
                f"{numbers}: an axis contracts once, or is a batch axis"
            )
    return (found[0], found[1]), (found[2], found[3])


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Multiplies arrays and sums over contracting axes, for each batch index.

    Args:
      lhs: bool or numeric[...].
      rhs: of the same dtype.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: a `Precision` or its name, a pair of them, or a `DotAlgorithmPreset`;
        None is `config.default_matmul_precision`.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      An array with the batch axes, then the rest of lhs, then the rest of rhs.

    Raises:
      ShapeError: lengths of paired axes differ.
      AxisError: an axis is out of range or repeated.
      DtypeError: dtypes differ, or the preferred one does not hold products.
      ArgumentError: dimension numbers or precision make no sense.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Special cases:
      Integers wrap around. A contraction over nothing gives 0.

    Example:
      >>> x, y = np.ones((5, 2, 3), "f4"), np.ones((5, 3, 4), "f4")
      >>> dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
      (5, 2, 4)

    Source: StableHLO dot_general.
    """
    left, right = typeof(lhs), typeof(rhs)
    dims = canonical_dims("dot_general", dimension_numbers, left, right)
    with open_layouts(out_sharding):
        result: Array = DotGeneral.bind(
            lhs,
            rhs,
            dimension_numbers=dims,
            precision=canonical_precision("dot_general", precision),
            preferred_element_type=None
            if preferred_element_type is None
            else dtypes.dtype(preferred_element_type),
        )
    if out_sharding is not None:
        return laid_out("dot_general", result, out_sharding)
    return result


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies vectors and matrices.

    Args:
      lhs: bool or numeric[k] or [m, k] (any, with `dimension_numbers`).
      rhs: of the same dtype, [k] or [k, n].
      dimension_numbers: as for `dot_general`; None contracts the last axis of lhs with
        the first of rhs.
      precision: as for `dot_general`.
      preferred_element_type: as for `dot_general`.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      An array with the remaining axis of each: [], [m], [n] or [m, n].

    Raises:
      ShapeError: an operand is not a vector or matrix, or lengths differ.
      DtypeError: dtypes differ.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> print(dot(np.float32([1, 2]), np.float32([3, 4])))
      11.0

    Source: StableHLO dot_general.
    """
    if dimension_numbers is None:
        left, right = typeof(lhs), typeof(rhs)
        if left.ndim not in (1, 2) or right.ndim not in (1, 2):
            raise ShapeError(
                f"dot: takes vectors and matrices, got {left} and {right}: use "
                "dot_general, batch_matmul or fxflow.numpy.matmul"
            )
        if left.shape[-1] != right.shape[0]:
            raise ShapeError(
                f"dot: contracting dimensions differ: lhs {left} axis {left.ndim - 1} "
                f"is {left.shape[-1]}, rhs {right} axis 0 is {right.shape[0]}"
            )
        dimension_numbers = (((left.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision,
        preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Multiplies matrices in the last two axes, pair by pair.

    Args:
      lhs: bool or numeric[..., m, k].
      rhs: of the same dtype and number of axes, [..., k, n].
      precision: as for `dot_general`.

    Returns:
      An array [..., m, n].

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ.

    Example:
      >>> batch_matmul(np.ones((5, 2, 3), "f4"), np.ones((5, 3, 4), "f4")).shape
      (5, 2, 4)

    Source: StableHLO dot_general.
    """
    left, right = typeof(lhs), typeof(rhs)
    if left.ndim < 2 or right.ndim != left.ndim:
        raise ShapeError(
            "batch_matmul: operands need one number of axes, at least 2, got "
            f"{left} and {right}: use fxflow.numpy.matmul, which broadcasts"
        )
    batch = tuple(range(left.ndim - 2))
    dims = (((left.ndim - 1,), (right.ndim - 2,)), (batch, batch))
    return dot_general(lhs, rhs, dims, precision)
