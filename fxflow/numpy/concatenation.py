"""Joining arrays and taking them apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof, unwrapped
from fxflow.core.boundary import shown
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_at_least
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    array_of,
    no_out,
    promote_dtypes,
)
from fxflow.numpy.creation import asarray, astype_array
from fxflow.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, reshape

# -- joining ---------------------------------------------------------------------------


def _sequence(name: str, arrays: Any, second: Any = None) -> list[Any]:
    """Returns the arrays to be joined as a list; an array is taken along its axis 0.

    Args:
      name: of the function, for messages.
      arrays: the argument that holds them.
      second: the argument after it: an array there was meant to be joined.
    """
    if isinstance(second, Array | np.ndarray | list):
        raise ArgumentError(
            f"{name}: takes the arrays as one sequence, got {shown(arrays)} and "
            f"{shown(second)} as two arguments: write {name}([a, b])"
        )
    if isinstance(arrays, Array | np.ndarray):
        if not arrays.ndim:
            raise ArgumentError(f"{name}: takes a sequence of arrays, got a 0-d array")
        return list(arrays)
    if isinstance(arrays, str) or not hasattr(arrays, "__iter__"):
        raise ArgumentError(f"{name}: takes a sequence of arrays, got {arrays!r}")
    found = list(arrays)
    if not found:
        raise ArgumentError(f"{name}: needs at least one array, got none")
    return found


def _one_dtype(name: str, arrays: Sequence[Any], dtype: Any) -> list[Any]:
    if dtype is None:
        return promote_dtypes(name, *arrays)
    return [astype_array(array_of(a, name, dtype), dtype) for a in arrays]


def concatenate(
    arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays along an axis that they have.

    Args:
      arrays: sequence of array-likes, equal in length along the other axes; an array
        stands for its slices.
      axis: the axis; None flattens each of them first.
      dtype: dtype of the result (default: the common dtype).

    Returns:
      Array.

    Raises:
      ShapeError: the other lengths differ, or an array is 0-d.
      AxisError: an axis is out of range.
      ArgumentError: there are no arrays.

    Example:
      >>> concatenate([np.arange(2), np.arange(3)])
      Array([0, 1, 0, 1, 2], dtype=int32)

    Source: `numpy.concatenate`.
    """
    found = _sequence("concatenate", arrays, axis)
    return _concatenate(found, axis, None if dtype is None else dtypes.dtype(dtype))


@library("axis", "dtype")
def _concatenate(arrays: Sequence[Any], axis: int | None, dtype: Any) -> Array:
    parts = _one_dtype("concatenate", arrays, dtype)
    if axis is None:
        parts = [lax.reshape(p, (p.aval.size,)) for p in parts]
        axis = 0
    first = parts[0].aval
    if not first.ndim:
        raise ShapeError(
            "concatenate: 0-d arrays have no axis to be joined along: use stack"
        )
    axis = canonical_axis("concatenate", axis, first.ndim)
    for i, part in enumerate(parts):
        aval = part.aval
        if aval.ndim != first.ndim or any(
            n != m
            for d, (n, m) in enumerate(zip(aval.shape, first.shape, strict=True))
            if d != axis
        ):
            raise ShapeError(
                f"concatenate: arrays[0] is {first}, arrays[{i}] is {aval}: arrays may "
                f"differ only in the length of axis {axis}"
            )
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, axis)


def stack(
    arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays along a new axis.

    Args:
      arrays: sequence of array-likes of one shape.
      axis: where the new axis is in the result.
      out: not supported: arrays are immutable.
      dtype: dtype of the result (default: the common dtype).

    Returns:
      Array with one axis more.

    Raises:
      ShapeError: the shapes differ.
      AxisError: an axis is out of range.
      ArgumentError: there are no arrays, or `out` is given.

    Example:
      >>> stack([np.array([1, 2]), np.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)

    Source: `numpy.stack`.
    """
    no_out("stack", out)
    found = _sequence("stack", arrays, axis)
    return _stack(found, axis, None if dtype is None else dtypes.dtype(dtype))


@library("axis", "dtype")
def _stack(arrays: Sequence[Any], axis: int, dtype: Any) -> Array:
    parts = _one_dtype("stack", arrays, dtype)
    shape = parts[0].aval.shape
    axis = canonical_axis("stack", axis, len(shape) + 1)
    for i, part in enumerate(parts):
        if part.aval.shape != shape:
            raise ShapeError(
                f"stack: arrays[0] is {parts[0].aval}, arrays[{i}] is {part.aval}: "
                "arrays must have one shape to be stacked"
            )
    long = (*shape[:axis], 1, *shape[axis:])
    parts = [lax.reshape(p, long) for p in parts]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, axis)


_stack_docs = shared("""
    Args:
      tup: sequence of array-likes.
      dtype: dtype of the result (default: the common dtype).

    Raises:
      ShapeError: the other lengths differ.

    Source: `numpy.{name}`.
""")


@_stack_docs
def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Joins arrays row by row: along axis 0, vectors being rows.

    Returns:
      Array of two axes or more.

    Example:
      >>> vstack([np.array([1, 2]), np.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    rows = [atleast_2d(a) for a in _sequence("vstack", tup, dtype)]
    return concatenate(rows, 0, dtype)


@_stack_docs
def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Joins arrays column by column: along axis 1, vectors along their only axis.

    Returns:
      Array.

    Example:
      >>> hstack([np.array([1, 2]), np.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    parts = [atleast_1d(a) for a in _sequence("hstack", tup, dtype)]
    return concatenate(parts, 1 if parts and parts[0].ndim > 1 else 0, dtype)


@_stack_docs
def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Joins arrays in depth: along axis 2.

    Returns:
      Array of three axes or more.

    Example:
      >>> dstack([np.array([1, 2]), np.array([3, 4])])
      Array([[[1, 3],
              [2, 4]]], dtype=int32)
    """
    return concatenate(
        [atleast_3d(a) for a in _sequence("dstack", tup, dtype)], 2, dtype
    )


def column_stack(tup: Any) -> Array:
    """Joins vectors as columns, and matrices by their columns.

    Args:
      tup: sequence of array-likes of one or two axes.

    Returns:
      Array of two axes.

    Raises:
      ShapeError: the lengths differ.

    Example:
      >>> column_stack([np.array([1, 2]), np.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)

    Source: `numpy.column_stack`.
    """
    columns = []
    for a in _sequence("column_stack", tup):
        a = atleast_1d(a)
        columns.append(a if a.ndim > 1 else reshape(a, (-1, 1) if a.size else (0, 1)))
    return concatenate(columns, 1)


def block(arrays: Any) -> Array:
    """Joins nested lists of arrays: the innermost along the last axis, and so on.

    Args:
      arrays: an array-like, or nested lists of them, of one depth everywhere.

    Returns:
      Array.

    Raises:
      ArgumentError: the depths differ, or a list is empty.
      ShapeError: the lengths differ.

    Example:
      >>> block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]])
      Array([[1., 0., 0.],
             [0., 1., 0.],
             [1., 1., 1.]], dtype=float32)

    Source: `numpy.block`.
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _leaves(arrays, leaves)
    ndim = max(depth, *(leaf.ndim for leaf in leaves))
    return _joined(arrays, depth, ndim)


def _depth(node: Any) -> int:
    if isinstance(node, tuple):
        raise ArgumentError("block: takes nested lists, got a tuple")
    if not isinstance(node, list):
        return 0
    if not node:
        raise ArgumentError("block: a list is empty")
    depths = {_depth(item) for item in node}
    if len(depths) > 1:
        raise ArgumentError(
            f"block: lists must be nested equally deep everywhere, got depths {depths}"
        )
    return depths.pop() + 1


def _leaves(node: Any, out: list[Any]) -> None:
    if isinstance(node, list):
        for item in node:
            _leaves(item, out)
    else:
        out.append(asarray(node))


def _joined(node: Any, depth: int, ndim: int) -> Array:
    if not isinstance(node, list):
        a = asarray(node)
        return reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    return concatenate([_joined(item, depth - 1, ndim) for item in node], -depth)


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Joins values to the end of an array.

    Args:
      arr: array-like.
      values: array-like, equal in length along the other axes.
      axis: the axis; None flattens both first.

    Returns:
      Array.

    Raises:
      ShapeError: the other lengths differ.

    Example:
      >>> append(np.array([[1, 2]]), np.array([[3, 4]]), axis=0)
      Array([[1, 2],
             [3, 4]], dtype=int32)

    Source: `numpy.append`.
    """
    return concatenate([asarray(arr), asarray(values)], axis)


# -- taking apart ----------------------------------------------------------------------


def _cuts(name: str, length: int, sections: Any, even: bool) -> list[int]:
    """Returns where pieces of an axis begin and end."""
    sections = unwrapped(sections)
    if isinstance(sections, Array | np.ndarray) and np.ndim(sections):
        sections = [int(i) for i in np.asarray(sections)]
    if isinstance(sections, list | tuple):
        # As bounds of slices: negative from the end, cut off beyond it.
        inner = [range(length)[slice(None, int(i))].stop for i in sections]
        return [0, *inner, length]
    count = int(sections)
    if count <= 0:
        raise ArgumentError(f"{name}: needs at least one section, got {count}")
    if even and length % count:
        raise ArgumentError(
            f"{name}: an axis of length {length} does not divide into {count} equal "
            "parts: use array_split"
        )
    # The first ones are longer by one, where they are not all alike.
    sizes = [(length + i) // count for i in reversed(range(count))]
    return [*accumulate(sizes[:-1], initial=0), length]


def _split(name: str, ary: Any, sections: Any, axis: int, even: bool) -> list[Any]:
    if isinstance(ary, list | tuple):
        ary = asarray(ary)
    shape = array_of(ary, name).aval.shape
    axis = canonical_axis(name, axis, len(shape))
    cuts = tuple(_cuts(name, shape[axis], sections, even))
    return list(_pieces(ary, cuts, axis))


@library("cuts", "axis")
def _pieces(ary: Any, cuts: tuple[int, ...], axis: int) -> Any:
    ary = array_of(ary, "split")
    sizes = [stop - start for start, stop in pairwise(cuts)]
    if all(is_at_least(n, 0) for n in sizes):
        # One node for all pieces, whose transpose is one concatenation.
        return tuple(lax.split(ary, sizes, axis))
    return tuple(
        lax.slice_in_dim(ary, start, max(start, stop), axis=axis)
        for start, stop in pairwise(cuts)
    )


_split_docs = shared("""
    Args:
      indices_or_sections: see `split`.
      axis: the axis.

    Returns:
      A list of arrays.

    Source: `numpy.{name}`.
""")


@_split_docs
def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | Array, axis: int = 0
) -> list[Array]:
    """Takes an array apart along an axis.

    Args:
      ary: array-like.
      indices_or_sections: the number of equal parts, or the indices to split at.

    Raises:
      ArgumentError: the axis does not divide into that many equal parts.
      AxisError: an axis is out of range.

    Example:
      >>> [p.shape for p in split(np.zeros((4, 6)), [1, 5], axis=1)]
      [(4, 1), (4, 4), (4, 1)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


@_split_docs
def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | Array, axis: int = 0
) -> list[Array]:
    """Takes an array apart along an axis; parts may differ by one in length.

    Args:
      ary: array-like.
      indices_or_sections: the number of parts, or the indices to split at.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> array_split(np.arange(5), 2)
      [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


@_split_docs
def vsplit(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | Array
) -> list[Array]:
    """Takes an array apart along axis 0.

    Args:
      ary: array-like of two axes or more.

    Raises:
      ShapeError: the array has fewer axes.

    Example:
      >>> vsplit(np.arange(4).reshape(2, 2), 2)
      [Array([[0, 1]], dtype=int32), Array([[2, 3]], dtype=int32)]
    """
    _require_axes("vsplit", ary, 2)
    return _split("vsplit", ary, indices_or_sections, 0, True)


@_split_docs
def hsplit(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | Array
) -> list[Array]:
    """Takes an array apart along axis 1, a vector along axis 0.

    Args:
      ary: array-like of one axis or more.

    Raises:
      ShapeError: the array is 0-d.

    Example:
      >>> hsplit(np.arange(4), 2)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    _require_axes("hsplit", ary, 1)
    axis = 0 if typeof(ary).ndim == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, True)


@_split_docs
def dsplit(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | Array
) -> list[Array]:
    """Takes an array apart along axis 2.

    Args:
      ary: array-like of three axes or more.

    Raises:
      ShapeError: the array has fewer axes.

    Example:
      >>> [part.shape for part in dsplit(np.zeros((1, 2, 4)), 2)]
      [(1, 2, 2), (1, 2, 2)]
    """
    _require_axes("dsplit", ary, 3)
    return _split("dsplit", ary, indices_or_sections, 2, True)


def _require_axes(name: str, ary: Any, ndim: int) -> None:
    aval = array_of(asarray(ary) if isinstance(ary, list | tuple) else ary, name).aval
    if aval.ndim < ndim:
        raise ShapeError(f"{name}: needs {ndim} axes or more, got {aval}")


@library("axis")
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Takes an array apart into its slices along an axis.

    Args:
      x: array-like.
      axis: the axis, which is removed.

    Returns:
      A tuple of arrays.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: `x` is 0-d.

    Example:
      >>> [x.tolist() for x in unstack(np.array([[1, 2], [3, 4]]), axis=1)]
      [[1, 3], [2, 4]]

    Source: `numpy.unstack`; the array API standard, 2023.12.
    """
    x = array_of(x, "unstack")
    if not x.aval.ndim:
        raise ShapeError(f"unstack: a 0-d array has no axes, got {x.aval}")
    return lax.unstack(x, axis)
