"""`BCOO`: batched coordinates. Indices are arrays, which may be traced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax, tree
from fxflow import numpy as fnp
from fxflow.compat.jax.experimental.sparse._base import (
    JAXSparse,
    Shape,
    SparseEfficiencyError,
    axes_of,
    broadcast_front,
    inside,
    masked,
    over_batch,
    rank_of,
    vmapped_shape,
)
from fxflow.core.arrays import Array, typeof
from fxflow.core.ir.trace import Tracer


@tree.register_pytree_node_class
class BCOO(JAXSparse):
    """An array of batch axes, sparse axes and dense axes, in this order.

    Attributes:
      data: [batch, nse, dense axes].
      indices: [batch, nse, sparse axes]; what is out of bounds is padding.
      shape: shape of the array.
    """

    def __init__(
        self,
        args: Any,
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices = args
        self.data: Any = fnp.asarray(data)
        self.indices: Array = fnp.asarray(indices)
        self.shape: Shape = tuple(shape)
        self.indices_sorted: bool = indices_sorted
        self.unique_indices: bool = unique_indices
        _check(self)

    @property
    def nse(self) -> int:
        """Number of stored elements of each batch."""
        return int(typeof(self.indices).shape[-2])

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return typeof(self.indices).ndim - 2

    @property
    def n_sparse(self) -> int:
        """Number of sparse axes."""
        return int(typeof(self.indices).shape[-1])

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return typeof(self.data).ndim - 1 - self.n_batch

    def tree_flatten(self) -> Any:
        """The arrays, and the rest as static data."""
        rest = (self.shape, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices), rest

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> BCOO:
        """Rebuilds an array from the output of `tree_flatten`."""
        made = object.__new__(cls)
        made.data, made.indices = children
        shape, made.indices_sorted, made.unique_indices = rest
        rank = rank_of(made.data, made.indices, 2, None)
        made.shape = vmapped_shape(shape, made.data, rank)
        return made

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """See `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """An array of SciPy's."""
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCOO fromscipy with nonzero n_dense/n_batch")
        held = mat.tocoo()
        dtype = np.dtype(np.int32) if index_dtype is None else index_dtype
        indices = np.column_stack((held.row, held.col)).astype(dtype)
        return cls((held.data, indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}"
            )
        batch, mid = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
        data = fnp.zeros((*batch, nse, *shape[n_batch + n_sparse :]), dtype)
        indices = fnp.broadcast_to(
            fnp.asarray(mid, index_dtype), (*batch, nse, n_sparse)
        )
        return cls(
            (data, indices), shape=shape, indices_sorted=True, unique_indices=True
        )

    def todense(self) -> Any:
        """See `bcoo_todense`."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """See `bcoo_transpose`."""
        order = range(self.ndim)[::-1] if axes is None else axes
        if tuple(order) == tuple(range(self.ndim)):
            return self
        return bcoo_transpose(self, permutation=tuple(order))

    def sort_indices(self) -> BCOO:
        """See `bcoo_sort_indices`."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """See `bcoo_sum_duplicates`."""
        return bcoo_sum_duplicates(self, nse=nse, remove_zeros=remove_zeros)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """See `bcoo_update_layout`."""
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def astype(self, dtype: Any) -> BCOO:
        """The array with another dtype."""
        return with_data(self, self.data.astype(dtype))


def _check(mat: BCOO) -> None:
    data, indices = typeof(mat.data), typeof(mat.indices)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim > 1 else 0
    if n_batch < 0 or data.ndim < n_batch + 1:
        raise ValueError(
            f"BCOO: data {data} and indices {indices} must have [batch, nse] in front"
        )
    n_dense = data.ndim - 1 - n_batch
    if n_batch + n_sparse + n_dense != len(mat.shape):
        raise ValueError(
            f"BCOO: data {data} and indices {indices} do not fit {mat.shape=}"
        )
    batch = mat.shape[:n_batch]
    for array in (data, indices):
        if any(n not in (1, m) for n, m in zip(array.shape, batch, strict=False)):
            raise ValueError(f"BCOO: batch axes of {array} do not fit {mat.shape=}")
    if data.shape[n_batch] != indices.shape[n_batch]:
        raise ValueError(f"BCOO: data {data} and indices {indices} differ in nse")
    if data.shape[n_batch + 1 :] != mat.shape[n_batch + n_sparse :]:
        raise ValueError(f"BCOO: dense axes of {data} do not fit {mat.shape=}")


def with_data(mat: BCOO, data: Any) -> BCOO:
    """An array with other data at the same places."""
    return BCOO(
        (data, mat.indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _sizes(mat: BCOO) -> Shape:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def _full_batch(mat: BCOO) -> BCOO:
    """The array with all batch axes at their length."""
    batch = mat.shape[: mat.n_batch]
    data, indices = (broadcast_front(x, batch) for x in (mat.data, mat.indices))
    return BCOO(
        (data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


# -- dense arrays ----------------------------------------------------------------------


def bcoo_todense(mat: BCOO) -> Any:
    """The dense array.

    Args:
      mat: sparse array, or the dense one that becomes sparse.

    Returns:
      A dense array.
    """
    held, sizes = _full_batch(mat), _sizes(mat)
    dense = held.shape[held.n_batch + held.n_sparse :]

    def fill(data: Any, indices: Any) -> Any:
        was_bool = data.dtype == bool
        data = data.astype("int32") if was_bool else data
        zeros = fnp.zeros((*sizes, *dense), data.dtype)
        if not sizes:
            out = zeros + fnp.sum(data, 0, dtype=data.dtype)
        else:
            out = zeros.at[tuple(fnp.moveaxis(indices, -1, 0))].add(data, mode="drop")
        return out != 0 if was_bool else out

    return over_batch(fill, held.n_batch)(held.data, held.indices)


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = "int32",
) -> BCOO:
    """A dense array as a sparse one; `nse` is needed if it is traced.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      nse: number of stored elements; None: as many as there are.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      index_dtype: dtype of the indices.

    Returns:
      A sparse array.
    """
    mat = fnp.asarray(mat)
    index_dtype = "int32" if index_dtype is None else index_dtype
    n_sparse = typeof(mat).ndim - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"invalid {n_batch=}, {n_dense=} for {typeof(mat)}")
    shape = typeof(mat).shape
    mask = mat != 0
    if n_dense:
        mask = fnp.any(mask, tuple(range(mask.ndim - n_dense, mask.ndim)))
    if nse is None:
        if isinstance(mat, Tracer):
            raise ValueError("bcoo_fromdense: nse must be given for a traced array")
        axes = tuple(range(n_batch, n_batch + n_sparse))
        counts = np.asarray(mask).sum(axes)
        nse = int(counts.max(initial=0)) if counts.ndim else int(counts)
    count, sizes = int(nse), shape[n_batch : n_batch + n_sparse]

    def find(mat: Any, mask: Any) -> Any:
        if not sizes:
            at = fnp.zeros((count, 0), index_dtype)
            data = fnp.broadcast_to(mat, (count, *typeof(mat).shape))
            return masked(data, fnp.arange(count) == 0), at
        fill = tuple(sizes)
        found = fnp.nonzero(mask, size=count, fill_value=fill)
        indices = fnp.stack(found, -1).astype(index_dtype)
        data = masked(mat.at[found].get(mode="clip"), inside(indices, sizes))
        return data, indices

    data, indices = over_batch(find, n_batch)(mat, mask)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """Elements of a dense array at the places of a sparse one.

    Args:
      sparr: sparse array.
      arr: array.
      assume_unique: whether no place is there twice; None: as the array says.

    Returns:
      A sparse array.
    """
    arr = fnp.asarray(arr)
    if typeof(arr).shape != sparr.shape:
        raise ValueError(f"shape mismatch: {sparr.shape=} {typeof(arr)}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    held, sizes = _full_batch(sparr), _sizes(sparr)
    fresh = None if unique else _marked(held)

    def take(indices: Any, arr: Any) -> Any:
        if not sizes:
            return fnp.broadcast_to(arr, (held.nse, *typeof(arr).shape))
        found = arr.at[tuple(fnp.moveaxis(indices, -1, 0))].get(mode="clip")
        return masked(found, inside(indices, sizes))

    data = over_batch(take, held.n_batch)(held.indices, arr)
    if fresh is not None:
        # The first of equal places has the element, others 0.
        data = masked(data, fresh)
    return with_data(_full_batch(sparr), data)


def _marked(mat: BCOO) -> Any:
    """Whether an element is the first at its place: bool[batch, nse]."""

    def first(indices: Any) -> Any:
        n = typeof(indices).shape[0]
        if not typeof(indices).shape[1]:
            return fnp.arange(n) == 0
        order = fnp.lexsort(tuple(fnp.moveaxis(indices, -1, 0))[::-1])
        ordered = indices[order]
        fresh = fnp.any(ordered[1:] != ordered[:-1], -1)
        fresh = fnp.concatenate([fnp.ones(min(n, 1), bool), fresh])
        return fnp.zeros(n, bool).at[order].set(fresh)

    return over_batch(first, mat.n_batch)(mat.indices)


# -- order and layout ------------------------------------------------------------------


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its elements in order.

    Args:
      mat: sparse array, or the dense one that becomes sparse.

    Returns:
      A sparse array.
    """

    def order(data: Any, indices: Any) -> Any:
        if not typeof(indices).shape[1]:
            return data, indices
        at = fnp.lexsort(tuple(fnp.moveaxis(indices, -1, 0))[::-1])
        return data[at], indices[at]

    held = _full_batch(mat)
    data, indices = over_batch(order, mat.n_batch)(held.data, held.indices)
    return BCOO(
        (data, indices),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=mat.unique_indices,
    )


def bcoo_sum_duplicates(
    mat: BCOO, nse: int | None = None, remove_zeros: bool = True
) -> BCOO:
    """The array with equal places added; `nse` is needed if it is traced.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      nse: number of stored elements; None: as many as there are.
      remove_zeros: whether elements that are 0 are left out.

    Returns:
      A sparse array.
    """
    held, sizes = bcoo_sort_indices(mat), _sizes(mat)

    def groups(data: Any, indices: Any) -> Any:
        fits = inside(indices, sizes)
        fresh = fnp.any(indices[1:] != indices[:-1], -1)
        fresh = fnp.concatenate([fnp.ones(min(held.nse, 1), bool), fresh])
        if not sizes:
            fresh = fnp.arange(held.nse) == 0
        number = fnp.cumsum(fnp.logical_and(fresh, fits)) - 1
        if remove_zeros:
            wide = typeof(data).ndim - 1
            total = fnp.zeros((held.nse, *typeof(data).shape[1:]), data.dtype)
            if data.dtype != bool:
                total = total.at[number].add(masked(data, fits), mode="drop")
                kept = fnp.any(total != 0, tuple(range(1, 1 + wide))) if wide else (
                    total != 0
                )  # fmt: skip
                keep = fnp.logical_and(fits, kept[fnp.clip(number, 0)])
                start = fnp.logical_and(fnp.logical_and(fresh, fits), keep)
                number = fnp.cumsum(start) - 1
                fits = keep
        return fnp.where(fits, number, held.nse), fits

    number, fits = over_batch(groups, held.n_batch)(held.data, held.indices)
    if nse is None:
        if isinstance(number, Tracer):
            raise ValueError("bcoo_sum_duplicates: nse must be given under jit")
        kept = np.where(np.asarray(fits), np.asarray(number) + 1, 0)
        nse = int(kept.max(initial=0))
    count = int(nse)

    def collect(data: Any, indices: Any, number: Any) -> Any:
        was_bool = data.dtype == bool
        data = data.astype("int32") if was_bool else data
        out = fnp.zeros((count, *typeof(data).shape[1:]), data.dtype)
        out = out.at[number].add(data, mode="drop")
        at = fnp.broadcast_to(fnp.asarray(sizes, indices.dtype), (count, len(sizes)))
        return out != 0 if was_bool else out, at.at[number].set(indices, mode="drop")

    data, indices = over_batch(collect, held.n_batch)(held.data, held.indices, number)
    return BCOO(
        (data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True
    )


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The array with other numbers of batch and dense axes.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      on_inefficient: "error", "warn" or None: what happens where more memory is needed.

    Returns:
      A sparse array.
    """
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    n_sparse = mat.ndim - n_batch - n_dense
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"{on_inefficient=} expected one of ['error', 'warn', None].")
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(f"invalid {n_batch=}, {n_dense=} for {mat}")
    grows = n_batch > mat.n_batch or n_dense > mat.n_dense
    if grows and on_inefficient == "error":
        raise SparseEfficiencyError(
            f"bcoo_update_layout: {n_batch=} and {n_dense=} need more memory than {mat}"
        )
    flat = _flattened(mat)
    if not (n_batch or n_dense):
        return flat
    # Each element goes to its batch, behind all others: batches pad with zeros.
    indices, data = flat.indices, flat.data
    stop = n_batch + n_sparse
    batch, mid, dense = mat.shape[:n_batch], mat.shape[n_batch:stop], mat.shape[stop:]
    total = math.prod(batch)
    fits = inside(indices, mat.shape)
    number = _raveled(indices[:, :n_batch], batch)
    count = flat.nse
    at = fnp.arange(count)
    places = fnp.broadcast_to(fnp.asarray(mid, indices.dtype), (total, count, n_sparse))
    where = fnp.where(fits, number, total)
    places = places.at[where, at].set(indices[:, n_batch:stop], mode="drop")
    values = fnp.zeros((total, count, *dense), data.dtype)
    index = (where, at, *fnp.moveaxis(indices[:, stop:], -1, 0))
    values = values.at[index].set(data, mode="drop")
    made = BCOO(
        (
            fnp.reshape(values, (*batch, count, *dense)),
            fnp.reshape(places, (*batch, count, n_sparse)),
        ),
        shape=mat.shape,
    )
    return made


def _raveled(indices: Any, sizes: Sequence[int]) -> Any:
    out = fnp.zeros(typeof(indices).shape[:-1], indices.dtype)
    for i, n in enumerate(sizes):
        out = out * n + indices[..., i]
    return out


def _flattened(mat: BCOO) -> BCOO:
    """The array with sparse axes only."""
    if not (mat.n_batch or mat.n_dense):
        return mat
    held = _full_batch(mat)
    b, s, sizes = mat.n_batch, mat.n_sparse, _sizes(mat)
    batch, dense = mat.shape[:b], mat.shape[b + s :]
    shape = (*batch, mat.nse, *dense)
    total = math.prod(shape)
    kind = mat.indices.dtype
    parts = [lax.broadcasted_iota(kind, shape, axis) for axis in range(b)]
    for k in range(s):
        own = fnp.reshape(held.indices[..., k], (*batch, mat.nse, *(1,) * len(dense)))
        parts.append(fnp.broadcast_to(own, shape))
    axes = range(b + 1, b + 1 + len(dense))
    parts += [lax.broadcasted_iota(kind, shape, axis) for axis in axes]
    indices = (
        fnp.stack([fnp.reshape(p, (total,)) for p in parts], -1)
        if parts
        else fnp.zeros((total, 0), kind)
    )
    # Padding of a batch is padding in all axes.
    fits = inside(indices[:, b : b + s], sizes)
    out = fnp.broadcast_to(fnp.asarray(mat.shape, kind), typeof(indices).shape)
    indices = fnp.where(fits[:, None], indices, out)
    return BCOO(
        (fnp.reshape(held.data, (total,)), indices),
        shape=mat.shape,
        unique_indices=mat.unique_indices,
    )


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes in another order; kinds of axes stay apart.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      permutation: order of the axes.

    Returns:
      A sparse array.
    """
    order = axes_of(permutation, mat.ndim)
    if sorted(order) != list(range(mat.ndim)):
        raise TypeError(f"{permutation=} is not an order of {mat.ndim} axes")
    b, s = mat.n_batch, mat.n_sparse
    front, mid, back = order[:b], order[b : b + s], order[b + s :]
    shape = tuple(mat.shape[i] for i in order)
    apart = sorted(front) == list(range(b)) and sorted(mid) == list(range(b, b + s))
    if not apart:
        raise NotImplementedError(
            "bcoo_transpose: batch, sparse and dense axes cannot be exchanged: "
            "update_layout makes them sparse"
        )
    data = fnp.transpose(mat.data, (*front, b, *(i - s + 1 for i in back)))
    indices = fnp.transpose(mat.indices, (*front, b, b + 1))
    indices = indices[..., [i - b for i in mid]]
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


# -- products --------------------------------------------------------------------------

Dims = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def _dims(dimension_numbers: Any, left: int, right: int) -> Any:
    (lc, rc), (lb, rb) = dimension_numbers
    return axes_of(lc, left), axes_of(rc, right), axes_of(lb, left), axes_of(rb, right)


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """A contraction in which one or both operands are sparse.

    Args:
      lhs: left operand.
      rhs: right operand.
      dimension_numbers: ((contracting, contracting), (batch, batch)).
      precision: has no effect.
      preferred_element_type: dtype of the result.
      out_sharding: has no effect.

    Returns:
      A sparse array of two sparse operands, else a dense one.
    """
    left, right = isinstance(lhs, BCOO), isinstance(rhs, BCOO)
    if not (left or right):
        return lax.dot_general(
            lhs,
            rhs,
            dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    lc, rc, lb, rb = _dims(dimension_numbers, len(lhs.shape), len(rhs.shape))
    for i, j in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
        if lhs.shape[i] != rhs.shape[j]:
            raise TypeError(
                f"dot_general requires contracting and batch dimensions of equal "
                f"size, got {lhs.shape} and {rhs.shape} with {dimension_numbers}"
            )
    out: Any
    if left and right:
        out = sparse_sparse(lhs, rhs, lc, rc, lb, rb)
    elif left:
        out = _sparse_dense(lhs, fnp.asarray(rhs), lc, rc, lb, rb)
    else:
        out = _sparse_dense(rhs, fnp.asarray(lhs), rc, lc, rb, lb)
        nb = len(lb)
        free = rhs.ndim - nb - len(rc)
        rest = fnp.ndim(out) - nb - free
        order = (
            *range(nb),
            *range(nb + free, nb + free + rest),
            *range(nb, nb + free),
        )
        out = fnp.transpose(out, order)
    if preferred_element_type is not None:
        out = out.astype(preferred_element_type)
    return out


def _sparse_dense(
    lhs: BCOO, rhs: Any, lc: Shape, rc: Shape, lb: Shape, rb: Shape
) -> Any:
    flat = _flattened(lhs)
    free = tuple(i for i in range(lhs.ndim) if i not in (*lc, *lb))
    other = tuple(i for i in range(typeof(rhs).ndim) if i not in (*rc, *rb))
    dtype = fnp.result_type(flat.data, rhs)
    data, rhs = flat.data.astype(dtype), rhs.astype(dtype)
    fits = inside(flat.indices, lhs.shape)
    columns = [flat.indices[:, i] for i in range(lhs.ndim)]
    moved = fnp.transpose(rhs, (*rb, *rc, *other))
    index = tuple(columns[i] for i in (*lb, *lc))
    rows = moved.at[index].get(mode="clip") if index else fnp.broadcast_to(
        moved, (flat.nse, *typeof(moved).shape)
    )  # fmt: skip
    rest = typeof(rows).shape[1:]
    data = fnp.reshape(masked(data, fits), (flat.nse, *(1,) * len(rest)))
    products = masked(data * rows, fits)
    shape = tuple(lhs.shape[i] for i in (*lb, *free))
    out = fnp.zeros((*shape, *rest), dtype)
    place = tuple(columns[i] for i in (*lb, *free))
    if not place:
        return fnp.sum(products, 0, dtype=dtype)
    return out.at[place].add(products, mode="drop")


def sparse_sparse(
    lhs: BCOO, rhs: BCOO, lc: Shape, rc: Shape, lb: Shape, rb: Shape
) -> BCOO:
    a, b = _flattened(lhs), _flattened(rhs)
    dtype = fnp.result_type(a.data, b.data)
    pairs = (a.nse, b.nse)
    match = inside(a.indices, a.shape)[:, None] & inside(b.indices, b.shape)[None]
    for i, j in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
        match = match & (a.indices[:, i][:, None] == b.indices[:, j][None])
    left = tuple(i for i in range(a.ndim) if i not in (*lc, *lb))
    right = tuple(j for j in range(b.ndim) if j not in (*rc, *rb))
    shape = (
        *(a.shape[i] for i in lb),
        *(a.shape[i] for i in left),
        *(b.shape[j] for j in right),
    )
    parts = [fnp.broadcast_to(a.indices[:, i][:, None], pairs) for i in (*lb, *left)]
    parts += [fnp.broadcast_to(b.indices[:, j][None], pairs) for j in right]
    total = a.nse * b.nse
    kind = a.indices.dtype
    indices = (
        fnp.stack([fnp.reshape(p.astype(kind), (total,)) for p in parts], -1)
        if parts
        else fnp.zeros((total, 0), kind)
    )
    keep = fnp.reshape(match, (total,))
    outside = fnp.broadcast_to(fnp.asarray(shape, kind), typeof(indices).shape)
    indices = fnp.where(keep[:, None], indices, outside)
    data = a.data.astype(dtype)[:, None] * b.data.astype(dtype)[None]
    data = masked(fnp.reshape(data, (total,)), keep)
    made = BCOO((data, indices), shape=shape)
    most = math.prod(shape)
    if total > most and shape:
        return bcoo_sum_duplicates(made, nse=most, remove_zeros=False)
    return made


def bcoo_dot_general_sampled(
    A: Any, B: Any, indices: Any, *, dimension_numbers: Any
) -> Any:
    """Elements of a product of dense arrays at some places.

    Args:
      A: left operand.
      B: right operand.
      indices: of the elements.
      dimension_numbers: ((contracting, contracting), (batch, batch)).

    Returns:
      A dense array.
    """
    full = lax.dot_general(fnp.asarray(A), fnp.asarray(B), dimension_numbers)
    indices = fnp.asarray(indices)
    n_batch = typeof(indices).ndim - 2

    def take(full: Any, indices: Any) -> Any:
        return full[tuple(fnp.moveaxis(indices, -1, 0))]

    return over_batch(take, n_batch)(full, indices)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The elements times those of a dense array that broadcasts to them.

    Args:
      sp_mat: sparse array.
      v: dense array.

    Returns:
      A dense array.
    """
    v = fnp.asarray(v)
    if typeof(v).ndim == 0:
        return sp_mat.data * v
    wide = fnp.broadcast_to(v, sp_mat.shape)
    held = _full_batch(sp_mat)
    return held.data * bcoo_extract(held, wide, assume_unique=True).data
