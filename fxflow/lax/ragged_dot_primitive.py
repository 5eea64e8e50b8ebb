"""The primitive of ragged products.

Groups are given as ranges of rows, i32[..., groups, 2]: where each begins and ends. Its
derivatives are ragged products as well: of rows and matrices that of rows, that with
respect to the matrices a contraction over the rows of each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval, Shape
from fxflow.core.arrays.convert import typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Primitive, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.dot import Dims, DotGeneral, check_lengths, free_axes, raised
from fxflow.lax.product_precision import PrecisionPair, product_dtype
from fxflow.lax.ragged_tiles import inner_dims, loop_axes, tiled


def _with_axis(ranges: Any, place: int, size: int, mapped: bool) -> Any:
    """Returns ranges with a mapped axis (in front, or none yet) at a place."""
    shape = typeof(ranges).shape
    if not mapped:
        wide = (*shape[:place], size, *shape[place:])
        kept = tuple(d for d in range(len(wide)) if d != place)
        return broadcast_in_dim(ranges, wide, kept)
    order = list(range(1, len(shape)))
    order.insert(place, 0)
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
        (name,) = ctx.compose(
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
        )
        return str(name)

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
        for place in np.ndindex(*ranges.shape[:-1]):
            low, high = np.clip(ranges[place], 0, lhs.shape[ragged])
            rows = slice(low, max(low, high))
            left: list[Any] = [slice(None)] * lhs.ndim
            right: list[Any] = [slice(None)] * rhs.ndim
            there: list[Any] = [slice(None)] * out.ndim
            at = {**dict(zip(axes, place[:-1], strict=True)), (ragged, None): rows}
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
                there[0] = place[-1]
            else:
                right[group] = place[-1]
            out[tuple(there)] += multiply(lhs[tuple(left)], rhs[tuple(right)])
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The product rule."""
        x, y, ranges = primals
        tx, ty, _ = tangents
        out = self.bind(x, y, ranges, **params)
        left = None if type(tx) is Zero else self.bind(tx, y, ranges, **params)
        right = None if type(ty) is Zero else self.bind(x, ty, ranges, **params)
        if left is None and right is None:
            return out, Zero(typeof(out).tangent())
        return out, arith.add(left, right)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
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
          axes: of the operand, for each axis of the product.
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
          axes: of the original operand, for each axis of the product.
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

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
        """One more free axis of the operand that is mapped, or one more batch axis."""
        x, y, ranges = args
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        group, count = params["group"], len(lb)
        front = int(group is None)
        left, right, own = mapped
        inner = typeof(ranges).ndim - 2 - own > count
        free = len(free_axes(typeof(x).ndim - left, lc, lb))
        if right and not left and not own:
            place = front + count + free
        elif not right and ((left and not own and not inner) or group is not None):
            x = materialize(x, size, left)
            left, place = True, front + count
            if own or inner:
                # Groups differ along the new axis, which comes behind the batch axes.
                while typeof(ranges).ndim - 2 - own < count:
                    at = typeof(ranges).ndim - 2 - own
                    n = typeof(x).shape[lb[at] + 1]
                    ranges = _with_axis(ranges, at + own, n, False)
                ranges = _with_axis(ranges, count, size, own)
        else:
            x, y = materialize(x, size, left), materialize(y, size, right)
            if not own and typeof(ranges).ndim > 2:
                ranges = _with_axis(ranges, 0, size, False)
            left = right = True
            place = front
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
        if place:
            others = (d for d in range(typeof(out).ndim) if d != place)
            out = transpose(out, (place, *others))
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
