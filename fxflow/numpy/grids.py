"""Grids of coordinates, and arrays of functions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.arrays.promotion import result_type
from fxflow.core.boundary import guard_methods
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike, ShapeLike, array_of
from fxflow.numpy.concatenation import concatenate, stack
from fxflow.numpy.creation import asarray
from fxflow.numpy.ranges import arange, linspace
from fxflow.numpy.shapes import atleast_1d, reshape
from fxflow.transforms.vmap import vmap


@library("copy", "sparse", "indexing")
def _meshgrid(arrays: Sequence[Any], sparse: bool, indexing: str) -> Any:
    given = [array_of(a, "meshgrid") for a in arrays]
    for a in given:
        if a.aval.ndim > 1:
            raise ShapeError(f"meshgrid: takes arrays of one axis, got {a.aval}")
    count = len(given)
    lengths = [a.aval.size for a in given]
    order = list(range(count))
    if indexing == "xy" and count > 1:
        # Cartesian indexing: x runs along columns, y along rows.
        order[0], order[1] = 1, 0
    shape = tuple(lengths[order[d]] for d in range(count))
    out = []
    for i, a in enumerate(given):
        axis = order.index(i)
        thin = tuple(lengths[i] if d == axis else 1 for d in range(count))
        a = lax.reshape(a, thin)
        out.append(a if sparse else lax.broadcast_in_dim(a, shape, tuple(range(count))))
    return tuple(out)


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Makes coordinate arrays of a grid.

    Args:
      *xi: array-likes of one axis: the coordinates along each axis.
      copy: without meaning; arrays never change.
      sparse: whether the other axes have length 1.
      indexing: "xy": the first coordinate runs along the columns; "ij": along the rows.

    Returns:
      A list of as many arrays.

    Raises:
      ArgumentError: unknown `indexing`.
      ShapeError: an argument has more axes.

    Example:
      >>> x, y = meshgrid(np.arange(2), np.arange(3), indexing="ij")
      >>> y
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)

    Source: `numpy.meshgrid`.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(
            f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}"
        )
    return list(_meshgrid(list(xi), bool(sparse), indexing))


def indices(
    dimensions: Any, dtype: DTypeLike | None = None, sparse: bool = False
) -> Any:
    """Makes arrays of the indices along each axis.

    Args:
      dimensions: lengths of the axes.
      dtype: dtype of the result (default: the default integer).
      sparse: whether to return a tuple of arrays whose other axes have length 1.

    Returns:
      Array of shape `(len(dimensions), *dimensions)`, or the tuple.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> indices((2, 3))[1]
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)

    Source: `numpy.indices`.
    """
    shape = shape_or_length("indices", dimensions)
    chosen = dtypes.default_int() if dtype is None else dtypes.dtype(dtype)
    if sparse:
        return tuple(
            reshape(
                lax.iota(chosen, n),
                tuple(n if i == d else 1 for i in range(len(shape))),
            )
            for d, n in enumerate(shape)
        )
    if not shape:
        return lax.full((0,), 0, chosen)
    return stack([lax.broadcasted_iota(chosen, shape, d) for d in range(len(shape))])


def fromfunction(
    function: Callable[..., Any],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float,
    **kwargs: Any,
) -> Any:
    """Makes an array by calling a function with the indices of each element.

    Args:
      function: of one 0-d array for each axis. It is vectorized.
      shape: int or sequence of ints.
      dtype: dtype of the indices.
      **kwargs: passed to the function.

    Returns:
      Array of that shape (with more axes if the function returns arrays).

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=fnp.int32)
      Array([[ 0,  1,  2],
             [10, 11, 12]], dtype=int32)

    Source: `numpy.fromfunction`.
    """
    lengths = shape_or_length("fromfunction", shape)
    mapped: Callable[..., Any] = lambda *at: function(*at, **kwargs)
    # vmap puts its axis in front, so the last axis is mapped first.
    for d in reversed(range(len(lengths))):
        axes = tuple(0 if i == d else None for i in range(len(lengths)))
        mapped = vmap(mapped, in_axes=axes)
    return mapped(*(arange(n, dtype=dtype) for n in lengths))


# -- grids written as slices -----------------------------------------------------------


def _along_slice(s: slice) -> Array:
    """Returns the numbers a slice stands for; a complex step is their number."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if s.stop is None:
        raise ArgumentError("grid: a slice needs a stop, as in fnp.mgrid[0:5]")
    if isinstance(step, complex):
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


def _numbers(key: Any) -> tuple[list[Array], bool]:
    single = isinstance(key, slice)
    parts = [_along_slice(s) for s in ((key,) if single else key)]
    dtype = result_type(*parts) if parts else dtypes.default_int()
    return [p.astype(dtype) for p in parts], single


@guard_methods
class _DenseGrid:
    """`mgrid[0:3, 0:1:5j]`: dense coordinate arrays; a complex step is a count.

    Source: `numpy.mgrid`.
    """

    def __getitem__(self, key: Any) -> Array:
        parts, single = _numbers(key)
        if single:
            return parts[0]
        if not parts:
            return lax.full((0,), 0, dtypes.default_int())
        return stack(meshgrid(*parts, indexing="ij"))


@guard_methods
class _OpenGrid:
    """`ogrid[0:3, 0:1:5j]`: coordinate arrays whose other axes have length 1.

    Source: `numpy.ogrid`.
    """

    def __getitem__(self, key: Any) -> Any:
        parts, single = _numbers(key)
        return parts[0] if single else meshgrid(*parts, indexing="ij", sparse=True)


@guard_methods
class _Concatenator:
    """`r_[1:4, 0, x]`, `c_[x, y]`: joins slices, numbers and arrays.

    A string first gives the axis, the number of axes, and where the new ones go, as in
    NumPy: `r_["1,2,0", ...]`.

    Source: `numpy.r_`, `numpy.c_`.
    """

    def __init__(self, axis: int, ndmin: int, trans1d: int) -> None:
        self.defaults: tuple[int, int, int] = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.defaults
        if items and isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):
                # A matrix of one row; of one column, where vectors are joined.
                joined = self[tuple(items)]
                if joined.ndim > 1:
                    return joined
                return reshape(joined, (1, -1) if directive == "r" else (-1, 1))
            try:
                numbers = [int(n) for n in directive.split(",")]
            except ValueError:
                raise ArgumentError(
                    f"r_: a string must be up to three integers 'axis,ndmin,trans1d', "
                    f"got {directive!r}"
                ) from None
            axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
        parts = []
        for item in items:
            a = _along_slice(item) if isinstance(item, slice) else asarray(item)
            missing = ndmin - max(a.ndim, 1)
            a = atleast_1d(a)
            if missing > 0:
                # The old axes start at `trans1d`; -1 is at the end.
                before = trans1d if trans1d >= 0 else ndmin + trans1d - a.ndim + 1
                before = min(max(before, 0), missing)
                shape = (1,) * before + a.shape + (1,) * (missing - before)
                a = reshape(a, shape)
            parts.append(a)
        return concatenate(parts, axis)


mgrid: _DenseGrid = _DenseGrid()
ogrid: _OpenGrid = _OpenGrid()
r_: _Concatenator = _Concatenator(0, 1, -1)
c_: _Concatenator = _Concatenator(-1, 2, 0)
