"""Ragged products: matrices of groups of rows, of lengths that only the data know.

As in a mixture of experts, where each row of `lhs` goes to one of several matrices:
`ragged_dot` multiplies sorted rows with the matrix of their group, and its derivative
with respect to the matrices contracts over the rows of each group.

The primitive takes groups as ranges of rows, i32[..., groups, 2]: where each begins and
ends. Its derivatives are ragged products as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.library import library
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, int_tuple
from fxflow.lax.axis_order import transpose
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.cumulative import cumsum
from fxflow.lax.dot import (
    Dims,
    DotDimensionNumbers,
    DotGeneral,
    canonical_dims,
    check_lengths,
    dot_general,
    free_axes,
    raised,
)
from fxflow.lax.dynamic_slicing import dynamic_slice_in_dim
from fxflow.lax.elementwise import sub
from fxflow.lax.padding import pad
from fxflow.lax.product_precision import (
    PrecisionPair,
    canonical_precision,
    product_dtype,
)
from fxflow.lax.ragged_tiles import inner_dims, loop_axes, tiled
from fxflow.lax.reshaping import expand_dims, reshape
from fxflow.lax.transfer import laid_out


def _with_axis(ranges: Any, position: int, size: int, mapped: bool) -> Any:
    """Returns ranges with a mapped axis (in front, or none yet) at a position."""
    shape = typeof(ranges).shape
    if not mapped:
        wide = (*shape[:position], size, *shape[position:])
        kept = tuple(d for d in range(len(wide)) if d != position)
        return broadcast_in_dim(ranges, wide, kept)
    order = list(range(1, len(shape)))
    order.insert(position, 0)
    return transpose(ranges, order)


@register
class RaggedDot(Primitive):
    """Products of groups of rows, summed over contracting axes. dtypes: as dot_general.

    With `group`, rows of lhs in range g are multiplied with matrix g of rhs, and others
    give 0. Without, the ragged axis contracts, and the result has one product for each
    group in front. Linear in lhs and in rhs.

    Params:
      dimension_numbers: ((contracting lhs, rhs), (batch lhs, rhs)).
      ragged: the axis of lhs that is in groups.
      group: the axis of rhs with one matrix for each, or None.
      precision: pair of `Precision`, a `DotAlgorithmPreset` or None.
      preferred_element_type: dtype of the result, or None for that of the operands.
    """

    name = "ragged_dot"

    def abstract(
        self,
        lhs: Aval,
        rhs: Aval,
        ranges: Aval,
        *,
        dimension_numbers: Dims,
        ragged: int,
        group: int | None,
        precision: PrecisionPair,
        preferred_element_type: Any,
    ) -> Aval:
        """Groups or none, batch axes, then what is left of each operand."""
        (lc, rc), (lb, rb) = dimension_numbers
        check_lengths(self.name, lhs, rhs, dimension_numbers)
        dtype = product_dtype(self.name, lhs, rhs, preferred_element_type)
        groups = ranges.shape[-2]
        if group is not None and rhs.shape[group] != groups:
            raise ShapeError(
                f"{self.name}: axis {group} of rhs {rhs} has one matrix for each of "
                f"{groups} groups, got {rhs.shape[group]}"
            )
        taken = [] if group is None else [group]
        shape: Shape = () if taken else (groups,)
        shape += tuple(lhs.shape[i] for i in lb)
        shape += tuple(lhs.shape[i] for i in free_axes(lhs.ndim, lc, lb))
        shape += tuple(rhs.shape[i] for i in free_axes(rhs.ndim, rc, rb, taken))
        return Aval(shape, dtype)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """A loop over tiles of rows."""
        (out,) = ctx.avals_out
        if not out.size or not ctx.avals_in[2].size or not ctx.avals_in[0].size:
            return ctx.constant(np.zeros((), out.dtype), out)
        return ctx.compose(
            lambda x, y, ranges: tiled(
                x,
                y,
                ranges,
                dims=params["dimension_numbers"],
                ragged=params["ragged"],
                group=params["group"],
                precision=params["precision"],
                shape=out.shape,
                dtype=out.dtype,
            ),
            operands,
        )[0]

    def evaluate(self, lhs: Any, rhs: Any, ranges: Any, **params: Any) -> Any:
        """One product after the other."""
        dims, ragged = params["dimension_numbers"], params["ragged"]
        group = params["group"]
        (lc, rc), (lb, _) = dims
        aval = self.abstract(
            *(Aval(a.shape, a.dtype) for a in (lhs, rhs, ranges)), **params
        )
        out = np.zeros(aval.shape, aval.dtype)
        axes = loop_axes(lhs.ndim, dims, ragged)[: ranges.ndim - 2]
        free = free_axes(lhs.ndim, lc, lb)
        # `register` puts the instance in the class's place.
        dot: Any = DotGeneral
        multiply = dot.host_function(
            dimension_numbers=inner_dims(dims, group),
            precision=None,
            preferred_element_type=aval.dtype,
        )
        for position in np.ndindex(*ranges.shape[:-1]):
            # Ranges are data: nothing keeps them within the rows.
            low, high = np.clip(ranges[position], 0, lhs.shape[ragged])
            rows = slice(low, max(low, high))
            left: list[Any] = [slice(None)] * lhs.ndim
            right: list[Any] = [slice(None)] * rhs.ndim
            there: list[Any] = [slice(None)] * out.ndim
            at = {**dict(zip(axes, position[:-1], strict=True)), (ragged, None): rows}
            for (i, j), index in at.items():
                left[i] = index if i == ragged else slice(index, index + 1)
                if j is not None:
                    right[j] = slice(index, index + 1)
                front = int(group is None)
                if i in lb:
                    there[front + lb.index(i)] = left[i]
                elif i in free:
                    there[front + len(lb) + free.index(i)] = left[i]
            if group is None:
                right[rc[lc.index(ragged)]] = rows
                there[0] = position[-1]
            else:
                right[group] = position[-1]
            out[tuple(there)] += multiply(lhs[tuple(left)], rhs[tuple(right)])
        return out

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The product rule."""
        x, y, ranges = primals
        tx, ty, _ = tangents
        out = self.bind(x, y, ranges, **params)
        left = None if type(tx) is Zero else self.bind(tx, y, ranges, **params)
        right = None if type(ty) is Zero else self.bind(x, ty, ranges, **params)
        if left is None and right is None:
            return out, Zero(typeof(out).tangent())
        return out, arith.add(left, right)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """Products of the cotangent and the other operand."""
        x, y, ranges = args
        if type(x) is Var and type(y) is Var:
            return super().transpose(cotangent, *args, **params)
        if type(x) is Var:
            return [self._left(cotangent, y, ranges, x.aval, **params), None, None]
        return [None, self._right(cotangent, x, ranges, y.aval, **params), None]

    def _left(self, ct: Any, y: Any, ranges: Any, aval: Aval, **params: Any) -> Any:
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        group, batch = params["group"], tuple(range(len(lb)))
        left = free_axes(aval.ndim, lc, lb)
        if group is None:
            axes = (*lb, *lc, *left)
            return self._of_groups(ct, y, ranges, rb, rc, left, axes, aval, **params)
        right = free_axes(typeof(y).ndim, rc, rb, (group,))
        start = len(batch) + len(left)
        dims = ((tuple(range(start, start + len(right))), right), (batch, rb))
        ragged = len(batch) + left.index(params["ragged"])
        axes = (*lb, *left, *(lc[rc.index(c)] for c in sorted(rc)))
        return self._cotangent(ct, y, ranges, dims, ragged, group, axes, aval, params)

    def _right(self, ct: Any, x: Any, ranges: Any, aval: Aval, **params: Any) -> Any:
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        group, batch = params["group"], tuple(range(len(lb)))
        if group is None:
            right = free_axes(aval.ndim, rc, rb)
            axes = (*rb, *rc, *right)
            return self._of_groups(ct, x, ranges, lb, lc, None, axes, aval, **params)
        left = free_axes(typeof(x).ndim, lc, lb)
        right = free_axes(aval.ndim, rc, rb, (group,))
        start = len(batch)
        dims = ((left, tuple(range(start, start + len(left)))), (lb, batch))
        axes = (group, *rb, *(rc[lc.index(c)] for c in sorted(lc)), *right)
        ragged = params["ragged"]
        return self._cotangent(x, ct, ranges, dims, ragged, None, axes, aval, params)

    def _of_groups(
        self,
        ct: Any,
        value: Any,
        ranges: Any,
        batch: Sequence[int],
        contracting: Sequence[int],
        left: Sequence[int] | None,
        axes: tuple[int, ...],
        aval: Aval,
        **params: Any,
    ) -> Any:
        """Returns rows of an operand times the cotangent of their group's product.

        Args:
          ct: cotangent [groups, batch axes, rest of lhs, rest of rhs].
          value: the other operand.
          ranges: of the groups.
          batch: batch axes of the value.
          contracting: its contracting axes.
          left: rest of lhs, or None if the value is lhs.
          axes: axes of the operand, for each axis of the product.
          aval: type of the operand.
          **params: of the original product.
        """
        ndim, count = typeof(value).ndim, len(batch)
        rest = free_axes(ndim, batch, contracting)
        # Groups may differ along the contracting axes in the order they are named in.
        value = transpose(value, (*batch, *contracting, *rest))
        own = 1 + count
        if left is not None:
            own += len(left)
        theirs = tuple(range(own, own + len(rest)))
        dims = (
            (tuple(range(ndim - len(rest), ndim)), theirs),
            (tuple(range(count)), tuple(range(1, 1 + count))),
        )
        (lc, _), _ = params["dimension_numbers"]
        ragged = count + lc.index(params["ragged"])
        return self._cotangent(value, ct, ranges, dims, ragged, 0, axes, aval, params)

    def _cotangent(
        self,
        x: Any,
        y: Any,
        ranges: Any,
        dims: Any,
        ragged: int,
        group: int | None,
        axes: tuple[int, ...],
        aval: Aval,
        params: dict[str, Any],
    ) -> Any:
        """Returns a product with its axes and dtype as an operand's.

        Args:
          x: left operand.
          y: right operand; one of the two is the cotangent.
          ranges: of the groups.
          dims: dimension numbers.
          ragged: of the product.
          group: of the product.
          axes: axes of the original operand, for each axis of the product.
          aval: type of the original operand.
          params: of the original product.
        """
        # The cotangent may be the wider of the two.
        dtypes_ = [typeof(v).dtype for v in (x, y)]
        wide = max(dtypes_, key=dtypes.bits)
        x, y = (
            v if d == wide else convert_element_type(v, wide)
            for v, d in zip((x, y), dtypes_, strict=True)
        )
        out = self.bind(
            x,
            y,
            ranges,
            dimension_numbers=dims,
            ragged=ragged,
            group=group,
            precision=params["precision"],
            preferred_element_type=None,
        )
        if axes != tuple(range(len(axes))):
            out = transpose(out, tuple(int(i) for i in np.argsort(axes)))
        return out if wide == aval.dtype else convert_element_type(out, aval.dtype)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more free axis of the operand that is mapped, or one more batch axis."""
        x, y, ranges = args
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        group, count = params["group"], len(lb)
        front = int(group is None)
        left, right, own = mapped
        inner = typeof(ranges).ndim - 2 - own > count
        free = len(free_axes(typeof(x).ndim - left, lc, lb))
        # Only the matrices differ: one more free axis of theirs.
        if right and not left and not own:
            position = front + count + free
        elif not right and ((left and not own and not inner) or group is not None):
            x = materialize(x, size, left)
            left, position = True, front + count
            if own or inner:
                # Groups differ along the new axis, which comes behind the batch axes.
                while typeof(ranges).ndim - 2 - own < count:
                    at = typeof(ranges).ndim - 2 - own
                    n = typeof(x).shape[lb[at] + 1]
                    ranges = _with_axis(ranges, at + own, n, False)
                ranges = _with_axis(ranges, count, size, own)
        else:
            # Else all differ together: one more batch axis.
            x, y = materialize(x, size, left), materialize(y, size, right)
            if not own and typeof(ranges).ndim > 2:
                ranges = _with_axis(ranges, 0, size, False)
            left = right = True
            position = front
        if left:
            lc, lb = raised(lc), raised(lb)
            params["ragged"] += 1
        if right:
            rc, rb = raised(rc), raised(rb)
            params["group"] = None if group is None else group + 1
        if left and right:
            lb, rb = (0, *lb), (0, *rb)
        params["dimension_numbers"] = ((lc, rc), (lb, rb))
        out = self.bind(x, y, ranges, **params)
        if position:
            others = (d for d in range(typeof(out).ndim) if d != position)
            out = transpose(out, (position, *others))
        return out, True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Two operations a product, as if every row were in a group."""
        (lc, _), _ = params["dimension_numbers"]
        out = self.abstract(*avals, **params)
        flops = 2.0 * out.size
        if params["group"] is None:
            flops /= out.shape[0] or 1
        for axis in lc:
            flops *= avals[0].shape[axis]
        return {**super().cost(*avals, **params), "flops": flops}


# -- public ----------------------------------------------------------------------------


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """How the axes of a ragged product correspond.

    Attributes:
      dot_dimension_numbers: as for `dot_general`.
      lhs_ragged_dimensions: the one axis of lhs that is in groups. If it contracts, the
        result has an axis of groups in front; if it is a batch axis, the product is an
        ordinary one.
      rhs_group_dimensions: the one axis of rhs with one matrix for each group; none if
        the ragged axis contracts or is a batch axis.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        name = type(self).__name__
        try:
            pairs = tuple(tuple(map(tuple, p)) for p in self.dot_dimension_numbers)
        except TypeError:
            raise ArgumentError(
                f"{name}: dot_dimension_numbers must be ((contracting axes of lhs, of "
                "rhs), (batch axes of lhs, of rhs)), got "
                f"{self.dot_dimension_numbers!r}"
            ) from None
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        for field in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(
                self, field, int_tuple(name, field, getattr(self, field))
            )


def _only(name: str, what: str, axes: Sequence[int], aval: Aval) -> int:
    if len(axes) != 1:
        raise ArgumentError(f"{name}: {what} names one axis of {aval}, got {axes}")
    return canonical_axis(name, axes[0], aval.ndim, what)


def _group_ranges(
    name: str, group_sizes: Any, offset: Any, groups: int | None, lengths: Sequence[int]
) -> Any:
    """Returns where groups begin and end: i32[..., groups, 2].

    Args:
      name: of the function, for messages.
      group_sizes: integers [g] or [*lengths, g].
      offset: the first group that is computed, or None for 0.
      groups: how many are computed, or None for all.
      lengths: of the axes along which groups may differ.
    """
    aval = typeof(group_sizes)
    if not dtypes.is_integer(aval.dtype):
        raise DtypeError(f"{name}: group_sizes must be integers, got {aval}")
    if not aval.ndim or aval.shape[:-1] not in ((), tuple(lengths)):
        either = f" or [{', '.join(map(str, lengths))}, g]" if lengths else ""
        raise ShapeError(
            f"{name}: group_sizes must be [g]{either} for g groups, got {aval}"
        )
    total, last = aval.shape[-1], aval.ndim - 1
    if groups is None:
        groups = total
    if groups != total and (offset is None or groups > total):
        raise ShapeError(
            f"{name}: rhs has {groups} matrices and group_sizes {aval} are of {total} "
            "groups: give as many, or say by group_offset which groups those of rhs are"
        )
    sizes = convert_element_type(group_sizes, np.int32)
    ends = cumsum(sizes, last)
    sides = [expand_dims(side, (last + 1,)) for side in (sub(ends, sizes), ends)]
    ranges = concatenate(sides, last + 1)
    if offset is None:
        return ranges
    at = typeof(offset)
    if not dtypes.is_integer(at.dtype) or at.shape not in ((), (1,)):
        raise ShapeError(f"{name}: group_offset must be one integer [1], got {at}")
    # Groups behind the last one are empty.
    config = [(0, groups if d == last else 0, 0) for d in range(last + 2)]
    ranges = pad(ranges, arith.constant(0, np.dtype(np.int32)), config)
    return dynamic_slice_in_dim(ranges, reshape(offset, ()), groups, last)


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies groups of rows (or sums over groups) of lengths that only data know.

    Args:
      lhs: bool or numeric[...]; its ragged axis holds the groups one after the other.
      rhs: of the same dtype.
      group_sizes: int[g], or int[..., g] with the axes of lhs that lie before the
        ragged one: the batch axes, then, if it contracts, the contracting axes named
        before it, else the remaining axes before it.
      ragged_dot_dimension_numbers: how the axes correspond.
      precision: as for `dot_general`.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      group_offset: int[1]: the first group that is computed, such as where rhs holds
        the matrices of some of the groups only; None is 0.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      If the ragged axis is not contracted, an array with the batch axes, then the rest
      of lhs, then the rest of rhs; 0 in rows that belong to no group of rhs. If it is
      contracted, an array with one axis more in front: one product for each group, from
      `group_offset` on (0 for groups without rows). If it is a batch axis, the ordinary
      product: groups do not matter.

    Raises:
      ShapeError: lengths of paired axes differ, or group sizes are incompatible.
      AxisError: an axis is out of range or repeated.
      DtypeError: dtypes differ, the preferred one does not hold products, or group
        sizes are not integers.
      ArgumentError: dimension numbers or precision make no sense.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Special cases:
      Groups that reach beyond the axis are cut off there.

    Example:
      >>> x, w = np.ones((3, 2), "f4"), np.float32([[[1], [1]], [[5], [5]]])
      >>> numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
      >>> ragged_dot_general(x, w, np.array([1, 2], "i4"), numbers)
      Array([[ 2.],
             [10.],
             [10.]], dtype=float32)

    Source: CHLO `ragged_dot`.
    """
    out = _ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers,
        precision,
        preferred_element_type,
        group_offset,
    )
    if out_sharding is not None:
        return laid_out("ragged_dot_general", out, out_sharding)
    return out


@library("ragged_dot_dimension_numbers", "precision", "preferred_element_type")
def _ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
    group_offset: Any,
) -> Array:
    name = "ragged_dot_general"
    numbers = ragged_dot_dimension_numbers
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise ArgumentError(
            f"{name}: ragged_dot_dimension_numbers must be RaggedDotDimensionNumbers, "
            f"got {numbers!r}"
        )
    left, right = typeof(lhs), typeof(rhs)
    dims = canonical_dims(name, numbers.dot_dimension_numbers, left, right)
    ragged = _only(name, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, left)
    (lc, rc), (lb, rb) = dims
    group = None
    if ragged in lc or ragged in lb:
        if numbers.rhs_group_dimensions:
            raise ArgumentError(
                f"{name}: rhs has an axis of groups only if the ragged axis of lhs is "
                f"neither contracted nor a batch axis, got {numbers}"
            )
    else:
        group = _only(name, "rhs_group_dimensions", numbers.rhs_group_dimensions, right)
        if group in rc or group in rb:
            raise AxisError(
                f"{name}: axis {group} of {right} cannot hold the groups and be a "
                f"contracting or batch axis, got {numbers}"
            )
    lengths = [left.shape[a] for a, _ in loop_axes(left.ndim, dims, ragged)]
    if ragged in lb:
        lengths = [left.shape[a] for a in lb[: lb.index(ragged)]]
    groups = None if group is None else right.shape[group]
    ranges = _group_ranges(name, group_sizes, group_offset, groups, lengths)
    if ragged in lb:
        return dot_general(lhs, rhs, dims, precision, preferred_element_type)
    return RaggedDot.bind(
        lhs,
        rhs,
        ranges,
        dimension_numbers=dims,
        ragged=ragged,
        group=group,
        precision=canonical_precision(name, precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.dtype(preferred_element_type),
    )


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies each group of rows with its own matrix.

    Args:
      lhs: bool or numeric[m, k]: rows, those of one group after the other.
      rhs: of the same dtype, [g, k, n]: one matrix for each group.
      group_sizes: int[g]: how many rows belong to each.
      precision: as for `dot_general`.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      group_offset: int[1]: the group that the first matrix of rhs is for, where rhs
        holds those of some groups only; None is 0.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      An array [m, n]; 0 in rows that belong to no group of rhs.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ, the preferred one does not hold products, or group
        sizes are not integers.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Special cases:
      Groups that reach beyond the last row are cut off there.

    Example:
      >>> x, w = np.ones((3, 2), "f4"), np.float32([[[1], [1]], [[5], [5]]])
      >>> ragged_dot(x, w, np.array([1, 1], "i4"))
      Array([[ 2.],
             [10.],
             [ 0.]], dtype=float32)

    Source: CHLO `ragged_dot`.
    """
    left, right = typeof(lhs), typeof(rhs)
    if left.ndim != 2 or right.ndim != 3:
        raise ShapeError(
            "ragged_dot: takes rows [m, k] and matrices [g, k, n], got "
            f"{left} and {right}: use ragged_dot_general"
        )
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )
