"""Binary and grayscale erosion and dilation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axes, hashable, integer, natural
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.scipy.ndimage._neighbourhoods import (
    bits_of,
    footprint_of,
    host,
    neighbourhood,
    real_operand,
    views,
)
from fxflow.scipy.ndimage.filters import _result, by_axis
from fxflow.scipy.ndimage.rank_filters import maximum_filter, minimum_filter

_docs = shared("""
    Args:
      input: real array-like[...]; for binary images, nonzero elements are the
        foreground.
      structure: for binary images a bool array-like, True at the neighbours to include;
        None is an element and those that share a side with it. For grayscale images a
        real array-like, which is added or subtracted.
      iterations: how often; less than 1 is until nothing changes.
      mask: bool array-like of the shape of `input`: only elements where it is True may
        change.
      output: dtype of the result; None is bool for binary images, and that of `input`
        for grayscale ones.
      border_value: the value beyond the edges.
      brute_force: has no effect.
      size: size of a flat structure: one or one for each of `axes`.
      footprint: bool array-like, True at the elements of the neighbourhood, in place of
        `size`.
      mode: how the array is extended beyond its edges, as for `correlate`.
      cval: a number, for "constant".
      origin: offset of the structure in elements: one or one for each axis.
      axes: the axes; None is all.

    Returns:
      Array of the shape of `input`.

    Raises:
      ArgumentError: a structure is traced, has no elements, or is missing.
      AxisError: an axis is out of range.
      DtypeError: `input` is complex.
      ShapeError: the structure has the wrong number of axes, or the mask has the wrong
        shape.

    Source: `scipy.ndimage.{name}`.
""")


# -- structures ------------------------------------------------------------------------


def generate_binary_structure(rank: int, connectivity: int) -> Array:
    """Returns the structure of an element and its neighbours.

    Args:
      rank: number of axes.
      connectivity: along how many axes a neighbour may differ: 1 are those that share a
        side, `rank` all.

    Returns:
      bool[3, …, 3], or a number for no axes.

    Raises:
      ArgumentError: an argument is not an integer.

    Example:
      >>> generate_binary_structure(1, 1)
      Array([ True,  True,  True], dtype=bool)

    Source: `scipy.ndimage.generate_binary_structure`.
    """
    name = "generate_binary_structure"
    rank = max(integer(name, "rank", rank), 0)
    near = max(integer(name, "connectivity", connectivity), 1)
    return fnp.asarray(_structure(rank, near))


def _structure(rank: int, near: int) -> np.ndarray[Any, Any]:
    if not rank:
        return np.array(True)
    return np.asarray(np.abs(np.indices([3] * rank) - 1).sum(0) <= near)


def iterate_structure(structure: Any, iterations: int, origin: Any = None) -> Any:
    """Returns the structure that dilates as another one does several times.

    Args:
      structure: bool array-like.
      iterations: how often, at least 1.
      origin: one integer or one for each axis.

    Returns:
      bool array; if `origin` is given, also a list of the origins for it.

    Raises:
      ArgumentError: `structure` is traced.

    Example:
      >>> iterate_structure(np.array([True, True, True]), 2)
      Array([ True,  True,  True,  True,  True], dtype=bool)

    Source: `scipy.ndimage.iterate_structure`.
    """
    name = "iterate_structure"
    bits = host(name, "structure", structure).astype(bool)
    count = integer(name, "iterations", iterations)
    if count < 2:
        out = fnp.asarray(bits)
    else:
        more = count - 1
        wide = np.zeros([n + more * (n - 1) for n in bits.shape], bool)
        wide[tuple(slice(more * (n // 2), more * (n // 2) + n) for n in bits.shape)] = (
            bits
        )
        out = binary_dilation(wide, bits, iterations=more)
    if origin is None:
        return out
    each = by_axis(name, "origin", origin, range(bits.ndim), bits.ndim, 0)
    return out, [max(count, 1) * o for o in each]


# -- shapes ----------------------------------------------------------------------------


@library("footprint", "origins", "iterations", "output", "dilate")
def _eroded(
    name: str,
    input: Any,
    footprint: Any,
    origins: Any,
    iterations: int,
    mask: Any,
    output: Any,
    border: Any,
    dilate: bool,
) -> Array:
    """Erodes a shape, or what is not the shape: this dilates it."""
    x = real_operand(name, input) != 0
    if mask is not None:
        mask = array_of(mask, name) != 0
        if mask.aval.shape != x.aval.shape:
            raise ShapeError(
                f"{name}: mask must have the shape of input, got {mask.aval} for "
                f"{x.aval}"
            )
    beyond = (array_of(border, name) != 0) ^ dilate
    x = x ^ dilate

    def step(x: Array) -> Array:
        rows = views(name, x, footprint, origins, "constant", beyond)
        new = functools.reduce(operator.and_, rows)
        return new if mask is None else fnp.where(mask, new, x)

    if not any(footprint[1]):
        x = fnp.ones_like(x) if mask is None else fnp.where(mask, True, x)
    elif not x.aval.size:
        pass
    elif iterations >= 1:
        x = step(x)
        if iterations > 1:
            x = lax.fori_loop(1, iterations, lambda _, x: step(x), x)
    else:

        def several(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            # A test costs as much as a step: one for every eight.
            x = carry[0]
            for _ in range(8):
                x = step(x)
            return x, fnp.any(x != carry[0])

        x = lax.while_loop(lambda c: c[1], several, (x, fnp.asarray(True)))[0]
    return _result(name, x ^ dilate, output)


def _binary(
    name: str,
    input: Any,
    structure: Any,
    iterations: Any,
    mask: Any,
    output: Any,
    border_value: Any,
    origin: Any,
    axes: Any,
    dilate: bool,
) -> Array:
    ndim = array_of(input, name).ndim
    along = canonical_axes(name, hashable(axes), ndim, "axes")
    if structure is None:
        structure = _structure(len(along), 1)
    shape, packed = footprint_of(name, "structure", structure, along, ndim)
    origins = list(by_axis(name, "origin", origin, along, ndim, 0))
    if dilate:
        packed = packed[::-1]
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, shape, strict=True)]
    count = integer(name, "iterations", iterations)
    return _eroded(
        *(name, input, (shape, packed), tuple(origins), count, mask, output),
        *(border_value, dilate),
    )


@_docs
def binary_erosion(
    input: ArrayLike,
    structure: Any = None,
    iterations: int = 1,
    mask: ArrayLike | None = None,
    output: Any = None,
    border_value: int = 0,
    origin: int | Sequence[int] = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Array:
    """Keeps the elements of a shape all of whose neighbours belong to it.

    Example:
      >>> binary_erosion(np.array([0, 1, 1, 1, 0]))
      Array([False, False,  True, False, False], dtype=bool)
    """
    options = (structure, iterations, mask, output, border_value, origin, axes)
    return _binary("binary_erosion", input, *options, False)


@_docs
def binary_dilation(
    input: ArrayLike,
    structure: Any = None,
    iterations: int = 1,
    mask: ArrayLike | None = None,
    output: Any = None,
    border_value: int = 0,
    origin: int | Sequence[int] = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Array:
    """Adds to a shape the neighbours of its elements.

    Example:
      >>> binary_dilation(np.array([0, 0, 1, 0, 0]))
      Array([False,  True,  True,  True, False], dtype=bool)
    """
    options = (structure, iterations, mask, output, border_value, origin, axes)
    return _binary("binary_dilation", input, *options, True)


@_docs
def binary_opening(
    input: ArrayLike,
    structure: Any = None,
    iterations: int = 1,
    output: Any = None,
    origin: int | Sequence[int] = 0,
    mask: ArrayLike | None = None,
    border_value: int = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Array:
    """Erodes and then dilates a shape: what is thinner than the structure vanishes.

    Example:
      >>> binary_opening(np.array([0, 1, 0, 1, 1, 1, 0]))
      Array([False, False, False,  True,  True,  True, False], dtype=bool)
    """
    rest = (border_value, origin, axes)
    name = "binary_opening"
    out = _binary(name, input, structure, iterations, mask, None, *rest, False)
    return _binary(name, out, structure, iterations, mask, output, *rest, True)


@_docs
def binary_closing(
    input: ArrayLike,
    structure: Any = None,
    iterations: int = 1,
    output: Any = None,
    origin: int | Sequence[int] = 0,
    mask: ArrayLike | None = None,
    border_value: int = 0,
    brute_force: bool = False,
    *,
    axes: Any = None,
) -> Array:
    """Dilates and then erodes a shape: gaps that are thinner than the structure close.

    Example:
      >>> binary_closing(np.array([0, 1, 1, 0, 1, 1, 0]))
      Array([False,  True,  True,  True,  True,  True, False], dtype=bool)
    """
    rest = (border_value, origin, axes)
    name = "binary_closing"
    out = _binary(name, input, structure, iterations, mask, None, *rest, True)
    return _binary(name, out, structure, iterations, mask, output, *rest, False)


@_docs
def binary_propagation(
    input: ArrayLike,
    structure: Any = None,
    mask: ArrayLike | None = None,
    output: Any = None,
    border_value: int = 0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Dilates a shape within a mask until nothing changes.

    Example:
      >>> binary_propagation(np.array([0, 1, 0, 0]), mask=np.array([1, 1, 1, 0]))
      Array([ True,  True,  True, False], dtype=bool)
    """
    options = (structure, -1, mask, output, border_value, origin, axes)
    return _binary("binary_propagation", input, *options, True)


@_docs
def binary_fill_holes(
    input: ArrayLike,
    structure: Any = None,
    output: Any = None,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Adds to a shape what no path of neighbours connects with the edges.

    Example:
      >>> binary_fill_holes(np.array([0, 1, 0, 0, 1, 0]))
      Array([False,  True,  True,  True,  True, False], dtype=bool)
    """
    name = "binary_fill_holes"
    shape = real_operand(name, input)
    empty = fnp.zeros(shape.aval.shape, bool)
    outer = _binary(name, empty, structure, -1, shape == 0, None, 1, origin, axes, True)
    return _result(name, ~outer, output)


@_docs
def binary_hit_or_miss(
    input: ArrayLike,
    structure1: Any = None,
    structure2: Any = None,
    output: Any = None,
    origin1: int | Sequence[int] = 0,
    origin2: int | Sequence[int] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """Finds a pattern: where some neighbours belong to a shape and others do not.

    Args:
      structure1: bool array-like, True at the neighbours that must belong to it.
      structure2: bool array-like, True at those that must not; None is all others.
      origin1: offset of the first structure in elements.
      origin2: by how many the second one is; None is `origin1`.

    Example:
      >>> binary_hit_or_miss(np.array([0, 1, 0, 1, 1]), np.array([0, 1, 0]))
      Array([False,  True, False, False, False], dtype=bool)
    """
    name = "binary_hit_or_miss"
    x = real_operand(name, input)
    along = canonical_axes(name, hashable(axes), x.ndim, "axes")
    first = _structure(len(along), 1)
    if structure1 is not None:
        first = host(name, "structure1", structure1).astype(bool)
    second = ~first if structure2 is None else structure2
    origin2 = origin1 if origin2 is None else origin2
    hit = _binary(name, x, first, 1, None, None, 0, origin1, axes, False)
    # What must not belong: a dilation by the second structure says where one does.
    bits = host(name, "structure2", second).astype(bool)[
        (slice(None, None, -1),) * len(along)
    ]
    moved = by_axis(name, "origin2", origin2, range(len(along)), len(along), 0)
    turned = [-o - (n % 2 == 0) for o, n in zip(moved, bits.shape, strict=True)]
    miss = _binary(name, x, bits, 1, None, None, 0, turned, axes, True)
    return _result(name, hit & ~miss, output)


# -- grey levels -----------------------------------------------------------------------


@library("name", "footprint", "origins", "modes", "output", "dilate")
def _grey(
    name: str,
    x: Any,
    structure: Any,
    footprint: Any,
    origins: Any,
    modes: Any,
    cval: Any,
    output: Any,
    dilate: bool,
) -> Array:
    """Returns the least or greatest of neighbours plus or minus a structure."""
    dtype = x.aval.dtype
    rows = views(name, x, footprint, origins, modes, cval)
    if not x.aval.size:
        return _result(name, x, output)
    heights = array_of(structure, name)
    at = np.argwhere(bits_of(footprint)).tolist()
    parts = [
        row + heights[tuple(k)] if dilate else row - heights[tuple(k)]
        for row, k in zip(rows, at, strict=True)
    ]
    out = functools.reduce(fnp.maximum if dilate else fnp.minimum, parts)
    return _result(name, convert(out, dtype), output)


def _level(
    name: str,
    input: Any,
    size: Any,
    footprint: Any,
    structure: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    dilate: bool,
) -> Array:
    x = real_operand(name, input)
    along = canonical_axes(name, hashable(axes), x.ndim, "axes")
    if structure is None and footprint is None and size is None:
        raise ArgumentError(f"{name}: give size, footprint or structure")
    heights = None if structure is None else fnp.asarray(structure)
    if heights is not None and heights.ndim != len(along):
        raise ShapeError(
            f"{name}: structure must have {len(along)} axes, got {heights.aval}"
        )
    if footprint is not None:
        footprint = host(name, "footprint", footprint).astype(bool)
        if footprint.ndim != len(along):
            raise ShapeError(
                f"{name}: footprint must have {len(along)} axes, got {footprint.ndim}"
            )
    elif heights is not None:
        footprint = np.ones(heights.shape, bool)
    if dilate:
        # A dilation sees its structure from the other side.
        turn = (slice(None, None, -1),) * len(along)
        lengths: list[int]
        if footprint is not None:
            footprint = footprint[turn]
            lengths = list(footprint.shape)
        else:
            sizes = by_axis(name, "size", size, range(len(along)), len(along), 1)
            lengths = [natural(name, "size", n) for n in sizes]
        if heights is not None:
            heights = heights[turn]
        moved = by_axis(name, "origin", origin, range(len(along)), len(along), 0)
        origin = [
            -integer(name, "origin", o) - (n % 2 == 0)
            for o, n in zip(moved, lengths, strict=False)
        ]
    if heights is None:
        flat = maximum_filter if dilate else minimum_filter
        return flat(x, size, footprint, output, mode, cval, origin, axes=axes)
    around = neighbourhood(name, x, axes, None, footprint, origin, mode)
    others = [k for k in range(x.ndim) if k not in along]
    return _grey(
        name, x, fnp.expand_dims(heights, others), *around, cval, output, dilate
    )


@_docs
def grey_erosion(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the least of the neighbours minus a structure.

    Example:
      >>> grey_erosion(np.array([3, 1, 4, 4, 5]), 3)
      Array([1, 1, 1, 4, 4], dtype=int32)
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _level("grey_erosion", input, *options, False)


@_docs
def grey_dilation(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the greatest of the neighbours plus a structure.

    Example:
      >>> grey_dilation(np.array([3, 1, 4, 1, 1]), 3)
      Array([3, 4, 4, 4, 1], dtype=int32)
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _level("grey_dilation", input, *options, True)


@_docs
def grey_opening(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Erodes and then dilates a grayscale image: narrow peaks vanish.

    Example:
      >>> grey_opening(np.array([1, 1, 5, 1, 3, 3, 3]), 3)
      Array([1, 1, 1, 1, 3, 3, 3], dtype=int32)
    """
    rest = (mode, cval, origin, axes)
    name = "grey_opening"
    out = _level(name, input, size, footprint, structure, None, *rest, False)
    return _level(name, out, size, footprint, structure, output, *rest, True)


@_docs
def grey_closing(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Dilates and then erodes a grayscale image: narrow valleys vanish.

    Example:
      >>> grey_closing(np.array([5, 5, 1, 5, 3, 3, 3]), 3)
      Array([5, 5, 5, 5, 3, 3, 3], dtype=int32)
    """
    rest = (mode, cval, origin, axes)
    name = "grey_closing"
    out = _level(name, input, size, footprint, structure, None, *rest, True)
    return _level(name, out, size, footprint, structure, output, *rest, False)


@_docs
def morphological_gradient(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns a dilation minus an erosion.

    Example:
      >>> morphological_gradient(np.array([1, 1, 4, 4]), 3)
      Array([0, 3, 3, 0], dtype=int32)
    """
    options = (size, footprint, structure, None, mode, cval, origin, axes)
    name = "morphological_gradient"
    high, low = (_level(name, input, *options, dilate) for dilate in (True, False))
    return _result(name, high - low, output)


@_docs
def morphological_laplace(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns a dilation plus an erosion minus twice the array.

    Example:
      >>> morphological_laplace(np.array([1, 1, 4, 4]), 3)
      Array([ 0,  3, -3,  0], dtype=int32)
    """
    options = (size, footprint, structure, None, mode, cval, origin, axes)
    name = "morphological_laplace"
    x = real_operand(name, input)
    high, low = (_level(name, x, *options, dilate) for dilate in (True, False))
    return _result(name, high + low - 2 * x, output)


def _difference(name: str, high: Array, low: Array, output: Any) -> Array:
    """Returns what an opening or a closing has changed."""
    if high.aval.dtype == dtypes.bool_:
        return _result(name, high ^ low, output)
    return _result(name, high - low, output)


@_docs
def white_tophat(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns an array minus its opening: the narrow peaks.

    Example:
      >>> white_tophat(np.array([1, 1, 5, 1, 3, 3, 3]), 3)
      Array([0, 0, 4, 0, 0, 0, 0], dtype=int32)
    """
    x = real_operand("white_tophat", input)
    options = (size, footprint, structure, None, mode, cval, origin)
    return _difference("white_tophat", x, grey_opening(x, *options, axes=axes), output)


@_docs
def black_tophat(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the closing of an array minus the array: the narrow valleys.

    Example:
      >>> black_tophat(np.array([5, 5, 1, 5, 3, 3, 3]), 3)
      Array([0, 0, 4, 0, 0, 0, 0], dtype=int32)
    """
    x = real_operand("black_tophat", input)
    options = (size, footprint, structure, None, mode, cval, origin)
    return _difference("black_tophat", grey_closing(x, *options, axes=axes), x, output)
