"""What BCOO and BCSR share, and helpers for arrays of indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow import lax, vmap
from fxflow import numpy as fnp
from fxflow.core.arrays import typeof

Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """An operation on a sparse array that would need much memory."""


class SparseEfficiencyWarning(UserWarning):
    """An operation on a sparse array that is slow."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation that cuSPARSE does not do."""


class JAXSparse:
    """The base of sparse arrays.

    Attributes:
      shape: shape of the array.
    """

    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    data: Any
    shape: Shape
    single: Any  # without duplicates, once that is known

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the data."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """Number of stored elements."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            counts = [f"nse={self.nse}"]
            parts = {part: getattr(self, part, 0) for part in ("n_batch", "n_dense")}
            counts += [f"{part}={n}" for part, n in parts.items() if n]
            kind = f"{self.dtype}{list(self.shape)}"
        except Exception:  # in a tree of anything else
            return f"{name}(<invalid>)"
        return f"{name}({kind}, {', '.join(counts)})"

    @property
    def T(self) -> Any:
        """The transposed array."""
        return self.transpose()

    def transpose(self, axes: Any = None) -> Any:
        """The array with its axes in another order."""
        raise NotImplementedError

    def todense(self) -> Any:
        """The dense array."""
        raise NotImplementedError

    def block_until_ready(self) -> Any:
        """Waits until the data is computed."""
        self.data.block_until_ready()
        return self


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(f"{type(self)}.{name}")

    return method


_REFUSED = ("neg", "pos", "add", "radd", "sub", "rsub", "mul", "rmul", "matmul")
for _name in (*_REFUSED, "rmatmul", "getitem"):
    setattr(JAXSparse, f"__{_name}__", _refused(f"__{_name}__"))
JAXSparse.sum = _refused("sum")  # type: ignore[attr-defined]


def over_batch(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Maps a function over leading axes."""
    for _ in range(count):
        function = vmap(function)
    return function


def broadcast_front(x: Any, shape: Sequence[int]) -> Any:
    """Broadcasts the leading axes of an array."""
    rest = typeof(x).shape[len(shape) :]
    return fnp.broadcast_to(x, (*shape, *rest))


def axes_of(axes: Any, ndim: int) -> Shape:
    """Axes as non-negative numbers."""
    given = (axes,) if hasattr(axes, "__index__") else tuple(axes)
    return tuple(operator.index(a) % ndim if ndim else 0 for a in given)


def inside(indices: Any, sizes: Sequence[int]) -> Any:
    """Whether each row of indices is in bounds."""
    if not len(sizes):
        return fnp.ones(typeof(indices).shape[:-1], bool)
    return fnp.all(indices < fnp.asarray(sizes, indices.dtype), -1)


def masked(data: Any, keep: Any) -> Any:
    """The data, 0 where it does not count."""
    extra = typeof(data).ndim - typeof(keep).ndim
    keep = fnp.reshape(keep, (*typeof(keep).shape, *(1,) * extra))
    return lax.select(
        fnp.broadcast_to(keep, typeof(data).shape), data, fnp.zeros_like(data)
    )


def vmapped_shape(shape: Shape, data: Any, rank: int | None) -> Shape:
    """The shape of an array whose parts may have lost, or got, axes by `vmap`.

    Args:
      shape: before.
      data: of the array.
      rank: number of axes that the parts have; None: they are not arrays.
    """
    if rank is None:
        return shape
    extra = rank - len(shape)
    if extra > 0:
        return (*typeof(data).shape[:extra], *shape)
    return shape[-extra:]


def rank_of(data: Any, indices: Any, own: int, sparse: int | None) -> int | None:
    """The number of axes of an array of these parts, or None.

    Args:
      data: of the array.
      indices: of the array.
      own: axes of the indices that are not batch axes.
      sparse: number of sparse axes; None: the length of the last axis of the indices.
    """
    known = (fnp.ndarray, np.ndarray)
    if not (isinstance(data, known) and isinstance(indices, known)):
        return None
    if indices.ndim < own or data.ndim < indices.ndim - own + 1:
        return None
    last = int(indices.shape[-1]) if sparse is None else sparse
    return int(data.ndim) - 1 + last
