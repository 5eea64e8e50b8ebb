"""`COO`, `CSR` and `CSC`: matrices without batches, and their functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow import tree
from fxflow.compat.jax.experimental.sparse._base import JAXSparse, Shape
from fxflow.compat.jax.experimental.sparse._bcoo import BCOO
from fxflow.compat.jax.experimental.sparse._bcsr import BCSR


class _Plain(JAXSparse):
    """A matrix as another array of the same elements.

    Attributes:
      data: the elements.
    """

    _names: tuple[str, ...] = ()

    def __init__(self, args: Any, *, shape: Sequence[int], **_: Any) -> None:
        for name, value in zip(self._names, args, strict=True):
            setattr(self, name, fnp.asarray(value))
        self.shape: Shape = tuple(shape)

    @property
    def nse(self) -> int:
        """Number of stored elements."""
        return int(self.data.shape[0])

    def tree_flatten(self) -> Any:
        """The arrays, and the shape as static data."""
        return tuple(getattr(self, name) for name in self._names), self.shape

    @classmethod
    def tree_unflatten(cls, shape: Any, children: Any) -> Any:
        """Rebuilds a matrix from the output of `tree_flatten`."""
        made = object.__new__(cls)
        for name, value in zip(cls._names, children, strict=True):
            setattr(made, name, value)
        made.shape = shape
        return made

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32"
    ) -> Any:
        return _empty(cls, shape, dtype, index_dtype)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **dtypes: Any) -> Any:
        return _eye(cls, N, M, k, **dtypes)

    def to_bcoo(self) -> BCOO:
        """The matrix as `BCOO`."""
        raise NotImplementedError

    def todense(self) -> Any:
        """The dense matrix."""
        return self.to_bcoo().todense()

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        return self.to_bcoo() @ other


def _empty(kind: Any, shape: Sequence[int], dtype: Any, index_dtype: Any) -> Any:
    """A matrix of this kind without elements."""
    if len(tuple(shape)) != 2:
        raise ValueError(f"{kind.__name__} must have ndim=2; got shape={tuple(shape)}")
    lines = {"indptr": tuple(shape)[1 if kind is CSC else 0] + 1}
    args = [fnp.zeros(0, dtype)]
    args += [fnp.zeros(lines.get(name, 0), index_dtype) for name in kind._names[1:]]
    return kind(args, shape=tuple(shape))


def _eye(
    kind: Any, N: int, M: int, k: int, dtype: Any = None, index_dtype: Any = "int32"
) -> Any:
    """Ones on a diagonal, as a matrix of this kind."""
    count = max(0, min(N + min(k, 0), M - max(k, 0)))
    row = fnp.arange(count, dtype=index_dtype) + max(-k, 0)
    col = fnp.arange(count, dtype=index_dtype) + max(k, 0)
    row, col = row.astype(index_dtype), col.astype(index_dtype)
    data = fnp.ones(count, dtype)
    if kind is COO:
        return COO((data, row, col), shape=(N, M))
    lines, first = (M, max(k, 0)) if kind is CSC else (N, max(-k, 0))
    indptr = fnp.clip(fnp.arange(lines + 1) - first, 0, count).astype(index_dtype)
    return kind((data, row if kind is CSC else col, indptr), shape=(N, M))


@tree.register_pytree_node_class
class COO(_Plain):
    """A matrix of coordinates.

    Attributes:
      row: of each element.
      col: of each element.
    """

    _names = ("data", "row", "col")
    row: Any
    col: Any

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = "int32"
    ) -> COO:
        """A dense matrix as a sparse one."""
        held = BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype)
        args = (held.data, held.indices[:, 0], held.indices[:, 1])
        return cls(args, shape=held.shape)

    def to_bcoo(self) -> BCOO:
        """The matrix as `BCOO`."""
        indices = fnp.stack([self.row, self.col], -1)
        return BCOO((self.data, indices), shape=self.shape)

    def transpose(self, axes: Any = None) -> COO:
        """The transposed matrix."""
        return COO((self.data, self.col, self.row), shape=self.shape[::-1])


@tree.register_pytree_node_class
class CSR(_Plain):
    """A matrix of compressed rows.

    Attributes:
      indices: the column of each element.
      indptr: where each row begins.
    """

    _names = ("data", "indices", "indptr")
    indices: Any
    indptr: Any

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = "int32"
    ) -> CSR:
        """A dense matrix as a sparse one."""
        held = BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype)
        return cls((held.data, held.indices, held.indptr), shape=held.shape)

    def to_bcoo(self) -> BCOO:
        """The matrix as `BCOO`."""
        args = (self.data, self.indices, self.indptr)
        return BCSR(args, shape=self.shape).to_bcoo()

    def transpose(self, axes: Any = None) -> CSC:
        """The transposed matrix."""
        args = (self.data, self.indices, self.indptr)
        return CSC(args, shape=self.shape[::-1])


@tree.register_pytree_node_class
class CSC(_Plain):
    """A matrix of compressed columns.

    Attributes:
      indices: the row of each element.
      indptr: where each column begins.
    """

    _names = ("data", "indices", "indptr")
    indices: Any
    indptr: Any

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = "int32"
    ) -> CSC:
        """A dense matrix as a sparse one."""
        turned = fnp.swapaxes(fnp.asarray(mat), 0, 1)
        return CSR.fromdense(turned, nse=nse, index_dtype=index_dtype).transpose()

    def to_bcoo(self) -> BCOO:
        """The matrix as `BCOO`."""
        return self.transpose().to_bcoo().transpose()

    def transpose(self, axes: Any = None) -> CSR:
        """The transposed matrix."""
        args = (self.data, self.indices, self.indptr)
        return CSR(args, shape=self.shape[::-1])


def coo_fromdense(mat: Any, *, nse: Any = None, index_dtype: Any = "int32") -> COO:
    """A dense matrix as a sparse one.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      nse: number of stored elements; None: as many as there are.
      index_dtype: dtype of the indices.

    Returns:
      A sparse array.
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(mat: Any, *, nse: Any = None, index_dtype: Any = "int32") -> CSR:
    """A dense matrix as a sparse one.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      nse: number of stored elements; None: as many as there are.
      index_dtype: dtype of the indices.

    Returns:
      A sparse array.
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: _Plain) -> Any:
    """The dense matrix.

    Args:
      mat: sparse array, or the dense one that becomes sparse.

    Returns:
      A dense array.
    """
    return mat.todense()


def csr_matvec(mat: _Plain, v: Any, transpose: bool = False) -> Any:
    """The product of a matrix, or the transposed one, and a dense array.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      v: dense array.
      transpose: whether the matrix is transposed.

    Returns:
      A dense array.
    """
    return (mat.T if transpose else mat) @ fnp.asarray(v)


coo_todense = csr_todense
coo_matvec = csr_matvec
coo_matmat = csr_matvec
csr_matmat = csr_matvec
