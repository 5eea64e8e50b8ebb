"""Products of sparse matrices: their values are data, where they lie is not computed.

A matrix has *values*, in any order, and *entries*: arrays of integers that say for each
row which columns it has and where their values lie, and the same for the transposed
matrix (see `Entries`). All of them are operands of a product, and so of its
derivatives: a program does not depend on the entries of a matrix, only on their number.

On the CPU, with the extra `kernels`, machine code runs the products
(`lax/kernels/sparse`). Elsewhere they are gathers and sums of segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import ArrayType, Aval, typeof
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
from fxflow.core.ir.staging import trace_closed
from fxflow.core.runtime.eager import graph_plan
from fxflow.core.runtime.lowering import Context
from fxflow.devices import buffers
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.creation import full
from fxflow.lax.elementwise import mul
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.gather import gather
from fxflow.lax.gather_scatter.scatter import scatter_add
from fxflow.lax.kernels.native import is_enabled
from fxflow.lax.kernels.sparse import native_product
from fxflow.lax.reduction import reduce_sum
from fxflow.lax.reshaping import expand_dims, reshape


class Layout(NamedTuple):
    """What is static about the entries of a matrix.

    Attributes:
      rows: of the matrix.
      columns: of the matrix.
      size: the number of values; each entry has one, and some may have none.
      ordered: whether the values of the entries, by rows, lie in another order.
      transposed_ordered: whether those of the transposed matrix do.
    """

    rows: int
    columns: int
    size: int
    ordered: bool
    transposed_ordered: bool

    @property
    def transposed(self) -> Layout:
        """The layout of the transposed matrix."""
        return Layout(
            self.columns, self.rows, self.size, self.transposed_ordered, self.ordered
        )

    def split(self, arrays: Sequence[Any]) -> tuple[Entries, Entries]:
        """Returns the entries of a matrix and those of the transposed one."""
        count = 3 + self.ordered
        return Entries.of(arrays[:count]), Entries.of(arrays[count:])


class Entries(NamedTuple):
    """The entries of a matrix, row after row.

    Attributes:
      indptr: int32[rows + 1]: where each row begins.
      indices: int32[entries]: the columns.
      rows: int32[entries]: the rows, ascending.
      order: int32[entries]: where the values lie; None: in this order.
    """

    indptr: Any
    indices: Any
    rows: Any
    order: Any = None

    @staticmethod
    def of(arrays: Sequence[Any]) -> Entries:
        """Returns the entries of three or four arrays."""
        return Entries(*arrays)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that there are."""
        return tuple(self) if self.order is not None else tuple(self)[:3]


def _swapped(layout: Layout, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the arrays of the transposed matrix."""
    own, other = layout.split(arrays)
    return (*other.arrays, *own.arrays)


class _Product(Primitive):
    """What the two products share: two operands, linear in each, and the entries."""

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The product rule."""
        x, y, *arrays = primals
        tx, ty, *_ = tangents
        out = self.bind(x, y, *arrays, **params)
        left = None if type(tx) is Zero else self.bind(tx, y, *arrays, **params)
        right = None if type(ty) is Zero else self.bind(x, ty, *arrays, **params)
        if left is None and right is None:
            return out, Zero(typeof(out).tangent())
        return out, arith.add(left, right)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The other kind of product, or the product with the transposed matrix."""
        x, y, *arrays = args
        if type(x) is Var and type(y) is Var:
            return super().transpose(cotangent, *args, **params)
        none = [None] * len(arrays)
        if type(x) is Var:
            found = self.left(cotangent, y, arrays, **params)
            return [_summed(found, x.aval), None, *none]
        found = self.right(cotangent, x, arrays, **params)
        return [None, _summed(found, y.aval), *none]

    def left(self, ct: Any, y: Any, arrays: Values, layout: Layout) -> Any:
        """Returns the cotangent of the first operand."""
        raise NotImplementedError

    def right(self, ct: Any, x: Any, arrays: Values, layout: Layout) -> Any:
        """Returns the cotangent of the second operand."""
        raise NotImplementedError

    def _flat(
        self, size: int, x: Any, y: Any, mapped: Flags, ranks: tuple[int, int]
    ) -> tuple[Any, Any, int]:
        """Returns operands with one axis for the mapped one and the batch behind it."""
        counts = [
            typeof(v).ndim - rank - m
            for v, rank, m in zip((x, y), ranks, mapped, strict=False)
        ]
        inner = max(counts)
        length = 1
        for v, count, m in zip((x, y), counts, mapped, strict=False):
            if count:
                length = typeof(v).shape[m]
        found = []
        for v, count, m, rank in zip((x, y), counts, mapped, ranks, strict=False):
            if m or count:
                v = materialize(v, size, m)
                if inner and not count:
                    shape = typeof(v).shape
                    wide = (size, length, *shape[1:])
                    v = broadcast_in_dim(v, wide, (0, *range(2, len(wide))))
                if inner:
                    shape = typeof(v).shape
                    v = reshape(v, (size * length, *shape[2:]))
            assert typeof(v).ndim in (rank, rank + 1)
            found.append(v)
        return found[0], found[1], length if inner else 0


@register
class SparseProduct(_Product):
    """Σ over the entries of each row of value times row of the other operand.

    dtypes: numbers. The operands are values, ([batch,] size), a dense matrix,
    ([batch,] columns, width), whose batch needs one of the values, and entries. Without
    a batch, the matrix may be a vector.

    Params:
      layout: of the entries.
    """

    name = "sparse_product"
    host_kinds = frozenset()

    def abstract(
        self, values: Aval, other: Aval, *arrays: Aval, layout: Layout
    ) -> Aval:
        """[batch,] rows, width."""
        _check(self.name, values, other, arrays, layout)
        batched = values.ndim == 2
        fits = values.ndim in (1, 2) and other.ndim in (1 + batched, 2, 2 + batched)
        fits = fits and values.shape[-1] == layout.size
        is_vector = other.ndim == 1
        fits = fits and other.shape[is_vector - 2] == layout.columns
        if not fits or (other.ndim == 3 and other.shape[0] != values.shape[0]):
            raise ShapeError(
                f"{self.name}: a matrix of {layout.rows} rows and {layout.columns} "
                f"columns with {layout.size} values, got {values} and {other}"
            )
        batch = values.shape[:-1]
        width = () if is_vector else other.shape[-1:]
        return Aval((*batch, layout.rows, *width), values.dtype)

    def lower(self, ctx: Context, *operands: str, layout: Layout) -> str:
        """Products of gathered rows, and a sum of segments."""
        return ctx.compose(
            lambda values, other, *arrays: _segments(values, other, arrays, layout),
            operands,
        )[0]

    def plan(
        self, arg_types: Sequence[ArrayType], params: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """The machine code, on one CPU; None: operations on arrays."""
        where = [t.placement for t in arg_types] or [buffers.default_placement()]
        single = all(p.is_single and p.platform == "cpu" for p in where)
        if not (is_enabled() and single):
            return None
        avals = [t.aval for t in arg_types]
        call = native_call(avals, **params)
        if call is None:
            return None
        graph = trace_closed(call, avals, name=self.name)
        return graph_plan(graph, arg_types, self.name, True)

    def evaluate(self, values: Any, other: Any, *arrays: Any, layout: Layout) -> Any:
        """Adds one entry after the other."""
        if other.ndim == 1:
            other = other[:, None]
            return self.evaluate(values, other, *arrays, layout=layout)[:, 0]
        own, _ = layout.split(arrays)
        by_rows = values if own.order is None else values[..., own.order]
        products = by_rows[..., None] * other[..., own.indices, :]
        shape = (*products.shape[:-2], layout.rows, products.shape[-1])
        out = np.zeros(shape, values.dtype)
        np.add.at(np.moveaxis(out, -2, 0), own.rows, np.moveaxis(products, -2, 0))
        return out

    def left(self, ct: Any, y: Any, arrays: Values, layout: Layout) -> Any:
        """The sampled product of the cotangent and the dense matrix."""
        if typeof(y).ndim == 1:
            ct, y = expand_dims(ct, (1,)), expand_dims(y, (1,))
        return SampledProduct.bind(ct, y, *arrays, layout=layout)

    def right(self, ct: Any, x: Any, arrays: Values, layout: Layout) -> Any:
        """The product with the transposed matrix."""
        other = _swapped(layout, arrays)
        return self.bind(x, ct, *other, layout=layout.transposed)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """A batch, or more columns of the dense matrix."""
        values, other, *arrays = args
        _refuse_mapped(self.name, mapped)
        is_vector = typeof(other).ndim - mapped[1] == 1
        if not mapped[0] and is_vector:
            out = self.bind(values, transpose(other, (1, 0)), *arrays, **params)
            return transpose(out, (1, 0)), True
        if is_vector:
            other = expand_dims(other, (typeof(other).ndim,))
            out, _ = self.batch(size, (values, other, *arrays), mapped, **params)
            return reshape(out, typeof(out).shape[:-1]), True
        if not mapped[0] and typeof(values).ndim == 1:
            _, n, width = typeof(other).shape
            wide = reshape(transpose(other, (1, 0, 2)), (n, size * width))
            out = self.bind(values, wide, *arrays, **params)
            rows = typeof(out).shape[0]
            return transpose(reshape(out, (rows, size, width)), (1, 0, 2)), True
        if not mapped[0]:
            values, mapped = materialize(values, size, False), (True, *mapped[1:])
        values, other, length = self._flat(size, values, other, mapped, (1, 2))
        out = self.bind(values, other, *arrays, **params)
        if length:
            out = reshape(out, (size, length, *typeof(out).shape[1:]))
        return out, True


@register
class SampledProduct(_Product):
    """For each entry the inner product of its row of x and its column's row of y.

    dtypes: numbers. The operands are x, ([batch,] rows, width), y, ([batch,] columns,
    width), and entries. Values without an entry are 0.

    Params:
      layout: of the entries.
    """

    name = "sampled_product"
    host_kinds = frozenset()

    def abstract(self, x: Aval, y: Aval, *arrays: Aval, layout: Layout) -> Aval:
        """[batch,] size."""
        _check(self.name, x, y, arrays, layout)
        fits = x.ndim in (2, 3) and y.ndim in (2, 3)
        fits = fits and x.shape[-2:] == (layout.rows, y.shape[-1])
        fits = fits and y.shape[-2] == layout.columns
        batch = x.shape[:-2] or y.shape[:-2]
        if not fits or any(a.ndim == 3 and a.shape[:1] != batch for a in (x, y)):
            raise ShapeError(
                f"{self.name}: a matrix of {layout.rows} rows and {layout.columns} "
                f"columns, got {x} and {y}"
            )
        return Aval((*batch, layout.size), x.dtype)

    def lower(self, ctx: Context, *operands: str, layout: Layout) -> str:
        """Inner products of gathered rows."""
        return ctx.compose(
            lambda x, y, *arrays: _sampled(x, y, arrays, layout), operands
        )[0]

    def evaluate(self, x: Any, y: Any, *arrays: Any, layout: Layout) -> Any:
        """Inner products of indexed rows."""
        own, _ = layout.split(arrays)
        products = x[..., own.rows, :] * y[..., own.indices, :]
        found = products.sum(-1, dtype=x.dtype)
        if own.order is None:
            return found
        out = np.zeros((*found.shape[:-1], layout.size), x.dtype)
        out[..., own.order] = found
        return out

    def left(self, ct: Any, y: Any, arrays: Values, layout: Layout) -> Any:
        """The product of the cotangent, as values, and y."""
        return SparseProduct.bind(ct, y, *arrays, layout=layout)

    def right(self, ct: Any, x: Any, arrays: Values, layout: Layout) -> Any:
        """The product of the transposed matrix and x."""
        other = _swapped(layout, arrays)
        return SparseProduct.bind(ct, x, *other, layout=layout.transposed)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """A batch."""
        x, y, *arrays = args
        _refuse_mapped(self.name, mapped)
        x, y, length = self._flat(size, x, y, mapped, (2, 2))
        out = self.bind(x, y, *arrays, **params)
        if length:
            out = reshape(out, (size, length, *typeof(out).shape[1:]))
        return out, True


def native_call(
    in_avals: Sequence[Aval], *, layout: Layout
) -> Callable[..., list[Any]] | None:
    """Returns a function that runs a product as machine code, or None.

    Args:
      in_avals: types of the operands of `sparse_product`.
      layout: of the entries.
    """
    product: Any = SparseProduct  # `register` puts the instance in the class's place
    out = product.abstract(*in_avals, layout=layout)
    own, _ = layout.split(in_avals[2:])
    avals = [*in_avals[:2], *own.arrays]
    call = native_product(avals, out, layout.columns)
    if call is None:
        return None
    return lambda *operands: call(*operands[: len(avals)])


# -- operations on arrays --------------------------------------------------------------


def _segments(values: Any, other: Any, arrays: Values, layout: Layout) -> Any:
    if typeof(other).ndim == 1:
        out = _segments(values, expand_dims(other, (1,)), arrays, layout)
        return reshape(out, (layout.rows,))
    own, _ = layout.split(arrays)
    if own.order is not None:
        values = take(values, own.order, typeof(values).ndim - 1)
    aval = typeof(other)
    rows = take(other, own.indices, aval.ndim - 2)
    shape = (*typeof(values).shape, aval.shape[-1])
    values = broadcast_in_dim(values, shape, tuple(range(len(shape) - 1)))
    if aval.ndim < len(shape):
        rows = broadcast_in_dim(rows, shape, (1, 2))
    out = full((*shape[:-2], layout.rows, shape[-1]), 0, aval.dtype)
    return add_at(out, own.rows, mul(values, rows), len(shape) - 2)


def _sampled(x: Any, y: Any, arrays: Values, layout: Layout) -> Any:
    own, other = layout.split(arrays)
    rows, columns, order = own.rows, own.indices, own.order
    if order is not None and other.order is None:
        rows, columns, order = other.indices, other.rows, None
    x = take(x, rows, typeof(x).ndim - 2)
    y = take(y, columns, typeof(y).ndim - 2)
    shape = max((typeof(x).shape, typeof(y).shape), key=len)
    x, y = (
        v if typeof(v).ndim == len(shape) else broadcast_in_dim(v, shape, (1, 2))
        for v in (x, y)
    )
    found = reduce_sum(mul(x, y), (len(shape) - 1,))
    if order is None:
        return found
    out = full((*shape[:-2], layout.size), 0, typeof(found).dtype)
    return add_at(out, order, found, len(shape) - 2)


def take(x: Any, index: Any, axis: int) -> Any:
    """Returns the slices of an array at indices along an axis, all in bounds.

    Args:
      x: array.
      index: int32[n].
      axis: axis of the array.
    """
    shape = typeof(x).shape
    rest = tuple(i for i in range(len(shape)) if i != axis)
    sizes = tuple(1 if i == axis else n for i, n in enumerate(shape))
    count = typeof(index).shape[0]
    if not count or not shape[axis]:
        sizes = tuple(count if i == axis else n for i, n in enumerate(shape))
        return full(sizes, 0, typeof(x).dtype)
    return gather(
        x,
        reshape(index, (count, 1)),
        GatherDimensionNumbers(rest, (axis,), (axis,)),
        sizes,
        mode="promise_in_bounds",
    )


def add_at(x: Any, index: Any, updates: Any, axis: int) -> Any:
    """Returns an array with slices added at indices along an axis, all in bounds.

    Args:
      x: array.
      index: int32[n].
      updates: like `x`, of length n along the axis.
      axis: axis of the array.
    """
    rest = tuple(i for i in range(typeof(x).ndim) if i != axis)
    count = typeof(index).shape[0]
    if not count or not typeof(x).size:
        return x
    return scatter_add(
        x,
        reshape(index, (count, 1)),
        updates,
        ScatterDimensionNumbers(rest, (axis,), (axis,)),
        mode="promise_in_bounds",
    )


def _summed(found: Any, aval: Aval) -> Any:
    """Returns a cotangent as its operand is: summed over a batch that this lacks."""
    if typeof(found).ndim > aval.ndim:
        return reduce_sum(found, (0,))
    return found


def _check(name: str, x: Aval, y: Aval, arrays: Sequence[Aval], layout: Layout) -> None:
    if x.dtype != y.dtype or x.dtype.name == "bool":
        raise DtypeError(f"{name}: two operands of one dtype of numbers, got {x}, {y}")
    if len(arrays) != 6 + layout.ordered + layout.transposed_ordered:
        raise ShapeError(f"{name}: {len(arrays)} arrays of entries do not fit {layout}")


def _refuse_mapped(name: str, mapped: Flags) -> None:
    if any(mapped[2:]):
        raise ShapeError(f"{name}: vmap cannot map the entries of a matrix")
