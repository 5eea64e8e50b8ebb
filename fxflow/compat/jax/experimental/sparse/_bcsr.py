"""`BCSR`: batched compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow import tree
from fxflow.compat.jax.experimental.sparse._base import (
    JAXSparse,
    Shape,
    broadcast_front,
    over_batch,
    rank_of,
    vmapped_shape,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    BCOO,
    bcoo_dot_general,
    bcoo_extract,
    bcoo_fromdense,
)
from fxflow.compat.jax.experimental.sparse._bcoo_shapes import bcoo_concatenate
from fxflow.core.arrays import Array, typeof


@tree.register_pytree_node_class
class BCSR(JAXSparse):
    """An array of batch axes, rows and columns, and dense axes.

    Attributes:
      data: [batch, nse, dense axes].
      indices: [batch, nse]: columns; those out of bounds are padding.
      indptr: [batch, rows + 1]: where each row begins.
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
        data, indices, indptr = map(fnp.asarray, args)
        self.data: Any = data
        self.indices: Array = indices
        self.indptr: Array = indptr
        self.shape: Shape = tuple(shape)
        self.indices_sorted: bool = indices_sorted
        self.unique_indices: bool = unique_indices
        _check(self)

    @property
    def nse(self) -> int:
        """Number of stored elements of each batch."""
        return int(typeof(self.indices).shape[-1])

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return typeof(self.indices).ndim - 1

    @property
    def n_sparse(self) -> int:
        """2: rows and columns."""
        return 2

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return typeof(self.data).ndim - 1 - self.n_batch

    def tree_flatten(self) -> Any:
        """The arrays, and the rest as static data."""
        rest = (self.shape, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices, self.indptr), rest

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> BCSR:
        """Rebuilds an array from the output of `tree_flatten`."""
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        shape, made.indices_sorted, made.unique_indices = rest
        rank = rank_of(made.data, made.indices, 1, 2)
        made.shape = vmapped_shape(shape, made.data, rank)
        return made

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """See `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """An array of SciPy's."""
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError(
                "BCSR from_scipy_sparse with nonzero n_dense/n_batch."
            )
        if mat.ndim != 2:
            raise ValueError(f"BCSR from_scipy_sparse requires 2D array; {mat.ndim=}")
        held = mat.tocsr()
        dtype = np.dtype(np.int32) if index_dtype is None else index_dtype
        indices, indptr = held.indices.astype(dtype), held.indptr.astype(dtype)
        return cls((held.data, indices, indptr), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """A BCOO array of two sparse axes."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; {arr=}")
        held = arr if arr.indices_sorted else arr.sort_indices()
        m = arr.shape[arr.n_batch]

        def starts(indices: Any) -> Any:
            lines = fnp.arange(m + 1, dtype=indices.dtype)
            return fnp.searchsorted(indices[:, 0], lines).astype(indices.dtype)

        indptr = over_batch(starts, arr.n_batch)(held.indices)
        return cls(
            (held.data, held.indices[..., 1], indptr),
            shape=arr.shape,
        )

    def to_bcoo(self) -> BCOO:
        """The array in coordinates."""
        m, n = self.shape[self.n_batch : self.n_batch + 2]

        def rows(indices: Any, indptr: Any) -> Any:
            at = fnp.arange(typeof(indices).shape[0], dtype=indptr.dtype)
            row = fnp.searchsorted(indptr, at, side="right") - 1
            row = row.astype(indices.dtype)
            last = at >= indptr[-1]
            return fnp.stack([fnp.where(last, m, row), fnp.where(last, n, indices)], -1)

        indices = over_batch(rows, self.n_batch)(self.indices, self.indptr)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Any:
        """The dense array."""
        return self.to_bcoo().todense()

    def transpose(self, axes: Any = None) -> BCSR:
        """The array with its axes in another order."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with equal places added."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def astype(self, dtype: Any) -> BCSR:
        """The array with another dtype."""
        args = (self.data.astype(dtype), self.indices, self.indptr)
        return BCSR(args, shape=self.shape)

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
    ) -> BCSR:
        options: dict[str, Any] = {"dtype": dtype, "index_dtype": index_dtype}
        made = BCOO._empty(shape, n_dense=n_dense, n_batch=n_batch, nse=nse, **options)
        return cls.from_bcoo(made)


def _check(mat: BCSR) -> None:
    data, indices, indptr = (typeof(x) for x in (mat.data, mat.indices, mat.indptr))
    n_batch = indices.ndim - 1
    n_dense = data.ndim - 1 - n_batch
    fits = n_batch >= 0 and indptr.ndim == n_batch + 1
    fits = fits and n_dense >= 0 and len(mat.shape) == n_batch + 2 + n_dense
    fits = fits and data.shape[n_batch] == indices.shape[-1]
    fits = fits and indptr.shape[-1] == mat.shape[n_batch] + 1
    if not fits:
        raise ValueError(
            f"BCSR: data {data}, indices {indices} and indptr {indptr} do not fit "
            f"{mat.shape=}"
        )


def bcsr_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = "int32",
) -> BCSR:
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
    if typeof(mat).ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    return BCSR.from_bcoo(
        bcoo_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )
    )


def bcsr_todense(mat: BCSR) -> Any:
    """The dense array.

    Args:
      mat: sparse array, or the dense one that becomes sparse.

    Returns:
      A dense array.
    """
    return mat.todense()


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, **more: Any) -> Any:
    """A contraction of which one operand, or both, are sparse.

    Args:
      lhs: left operand.
      rhs: right operand.
      dimension_numbers: ((contracting, contracting), (batch, batch)).
      **more: further options.

    Returns:
      A sparse array of two sparse operands, else a dense one.
    """
    left = lhs.to_bcoo() if isinstance(lhs, BCSR) else lhs
    right = rhs.to_bcoo() if isinstance(rhs, BCSR) else rhs
    return bcoo_dot_general(left, right, dimension_numbers=dimension_numbers, **more)


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """Elements of a dense array at the places of a sparse one.

    Args:
      indices: of the elements.
      indptr: where each row begins.
      mat: sparse array, or the dense one that becomes sparse.

    Returns:
      A dense array.
    """
    shape = typeof(fnp.asarray(mat)).shape
    places = typeof(fnp.asarray(indices)).shape
    zeros = fnp.zeros((*places, *shape[len(places) + 1 :]), bool)
    held = BCSR((zeros, indices, indptr), shape=shape).to_bcoo()
    return bcoo_extract(held, mat, assume_unique=True).data


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> BCSR:
    """The array with more batch axes in front.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      shape: shape of the result.
      broadcast_dimensions: axes of the result for those of the array.

    Returns:
      A sparse array.
    """
    front = tuple(shape)[: len(shape) - len(mat.shape)]
    if tuple(broadcast_dimensions) != tuple(range(len(front), len(shape))):
        raise NotImplementedError("bcsr_broadcast_in_dim: new axes come first")

    def wide(x: Any) -> Any:
        return broadcast_front(fnp.reshape(x, (*(1,) * len(front), *x.shape)), front)

    args = tuple(map(wide, (mat.data, mat.indices, mat.indptr)))
    return BCSR(args, shape=tuple(shape))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays one below the other.

    Args:
      operands: sparse arrays.
      dimension: the axis.

    Returns:
      A sparse array.
    """
    held = [m.to_bcoo() for m in operands]
    return BCSR.from_bcoo(bcoo_concatenate(held, dimension=dimension))


def bcsr_sum_duplicates(
    mat: BCSR, nse: int | None = None, remove_zeros: bool = True
) -> BCSR:
    """The array with equal places added; `nse` is needed if it is traced.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      nse: number of stored elements; None: as many as there are.
      remove_zeros: whether elements that are 0 are left out.

    Returns:
      A sparse array.
    """
    return mat.sum_duplicates(nse, remove_zeros)
