"""Operations that move or reduce elements of `BCOO`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.compat.jax.experimental.sparse._base import Shape, axes_of, inside, masked
from fxflow.compat.jax.experimental.sparse._bcoo import (
    BCOO,
    _flattened,
    _full_batch,
    _raveled,
    bcoo_transpose,
    sparse_sparse,
    with_data,
)
from fxflow.core.arrays import typeof


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      axes: which are summed.

    Returns:
      A sparse array.
    """
    axes = axes_of(axes, mat.ndim)
    held = _full_batch(mat) if mat.n_batch else mat
    b, s = held.n_batch, held.n_sparse
    if any(a < b for a in axes):
        held = _flattened(held)
        b, s = 0, held.n_sparse
    dense = tuple(a for a in axes if a >= b + s)
    data = held.data
    if dense:
        data = fnp.sum(data, tuple(a - s + 1 for a in dense), dtype=data.dtype)
    kept = [k for k in range(s) if b + k not in axes]
    indices = held.indices[..., kept]
    if len(kept) < s:
        # Padding stays padding, also where no sparse axis is left.
        fits = inside(held.indices, held.shape[b : b + s])
        data = masked(data, fits)
        out = fnp.asarray([held.shape[b + k] for k in kept], indices.dtype)
        indices = fnp.where(fits[..., None], indices, out)
    shape = tuple(n for i, n in enumerate(held.shape) if i not in axes)
    return BCOO((data, indices), shape=shape)


def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: Any = None,
) -> BCOO:
    """The array with another shape.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      new_sizes: shape of the result.
      dimensions: axes.
      sharding: has no effect.

    Returns:
      A sparse array.
    """
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = tuple(map(operator.index, new_sizes))
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes = tuple(mat.size // max(rest, 1) if n == -1 else n for n in sizes)
    if math.prod(sizes) != mat.size:
        raise TypeError(f"cannot reshape array of shape {mat.shape} into {sizes}")
    flat = _flattened(mat)
    fits = inside(flat.indices, mat.shape)
    number = _raveled(flat.indices, mat.shape)
    parts = []
    for n in sizes[::-1]:
        parts.append(number % max(n, 1))
        number = number // max(n, 1)
    kind = flat.indices.dtype
    indices = (
        fnp.stack(parts[::-1], -1).astype(kind)
        if parts
        else fnp.zeros((flat.nse, 0), kind)
    )
    indices = fnp.where(fits[:, None], indices, fnp.asarray(sizes, kind))
    data = masked(flat.data, fits)
    return BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without axes of length 1.

    Args:
      arr: array.
      dimensions: axes.

    Returns:
      A sparse array.
    """
    axes = axes_of(dimensions, arr.ndim)
    if any(arr.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: {dimensions=} of {arr.shape} are not 1")
    held, b, s = _full_batch(arr), arr.n_batch, arr.n_sparse
    data = fnp.squeeze(held.data, tuple(a if a < b else a - s + 1 for a in axes
                                        if a < b or a >= b + s))  # fmt: skip
    fits = inside(held.indices, arr.shape[b : b + s])
    kept = [k for k in range(s) if b + k not in axes]
    out = fnp.asarray([arr.shape[b + k] for k in kept], held.indices.dtype)
    indices = fnp.where(fits[..., None], held.indices[..., kept], out)
    indices = fnp.squeeze(indices, tuple(a for a in axes if a < b))
    if len(kept) < s:
        data = masked(data, fnp.squeeze(fits, tuple(a for a in axes if a < b)))
    shape = tuple(n for i, n in enumerate(arr.shape) if i not in axes)
    return BCOO((data, indices), shape=shape)


def bcoo_broadcast_in_dim(
    mat: BCOO,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: Any = None,
) -> BCOO:
    """The array with more, or longer, axes.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      shape: of the result.
      broadcast_dimensions: axes of the result for those of the array.
      sharding: has no effect.

    Returns:
      A sparse array.
    """
    flat = _flattened(mat)
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    new = [i for i in range(len(shape)) if i not in dims]
    grown = [d for k, d in enumerate(dims) if mat.shape[k] == 1 and shape[d] != 1]
    repeated = sorted([*new, *grown])
    lengths = tuple(shape[i] for i in repeated)
    count = math.prod(lengths)
    kind = flat.indices.dtype
    total = flat.nse * count
    fits = inside(flat.indices, mat.shape)
    parts: list[Any] = []
    for i in range(len(shape)):
        if i in repeated:
            axis = repeated.index(i)
            own = lax.broadcasted_iota(kind, (flat.nse, *lengths), 1 + axis)
            parts.append(fnp.reshape(own, (total,)))
        else:
            parts.append(fnp.repeat(flat.indices[:, dims.index(i)], count))
    indices = fnp.stack(parts, -1) if parts else fnp.zeros((total, 0), kind)
    keep = fnp.repeat(fits, count)
    indices = fnp.where(keep[:, None], indices, fnp.asarray(shape, kind))
    return BCOO((fnp.repeat(flat.data, count), indices), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other.

    Args:
      operands: sparse arrays.
      dimension: along which.

    Returns:
      A sparse array.
    """
    if not operands:
        raise ValueError("bcoo_concatenate: operands should not be empty")
    dimension = axes_of(dimension, operands[0].ndim)[0]
    layouts = {(m.n_batch, m.n_sparse, m.n_dense) for m in operands}
    if len(layouts) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching layouts")
    rests = {(*m.shape[:dimension], *m.shape[dimension + 1 :]) for m in operands}
    if len(rests) > 1:
        raise ValueError(
            f"bcoo_concatenate: shapes differ: {[m.shape for m in operands]}"
        )
    b = operands[0].n_batch
    length = sum(m.shape[dimension] for m in operands)
    shape = list(operands[0].shape)
    shape[dimension] = length
    if not (b <= dimension < b + operands[0].n_sparse):
        operands = [_flattened(m) for m in operands]
        b = 0
    else:
        operands = [_full_batch(m) for m in operands]
    places, offset = [], 0
    kind = operands[0].indices.dtype
    for m in operands:
        fits = inside(m.indices, m.shape[b : b + m.n_sparse])
        moved = m.indices.at[..., dimension - b].add(offset)
        out = fnp.asarray(shape[b : b + m.n_sparse], kind)
        places.append(fnp.where(fits[..., None], moved, out).astype(kind))
        offset += m.shape[dimension]
    data = fnp.concatenate([m.data for m in operands], b)
    return BCOO((data, fnp.concatenate(places, b)), shape=tuple(shape))


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """The elements between bounds.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      start_indices: where the slice begins.
      limit_indices: where it ends.
      strides: steps.

    Returns:
      A sparse array.
    """
    steps = [1] * mat.ndim if strides is None else list(strides)
    if len(start_indices) != mat.ndim or len(limit_indices) != mat.ndim:
        raise ValueError("bcoo_slice: indices must have the rank of the array")
    starts, stops = list(start_indices), list(limit_indices)
    for i, n in enumerate(mat.shape):
        if not 0 <= starts[i] <= stops[i] <= n or steps[i] < 1:
            raise ValueError(
                f"bcoo_slice: {start_indices=}, {limit_indices=} for {mat.shape}"
            )
    shape = tuple(
        -(-(e - a) // k) for a, e, k in zip(starts, stops, steps, strict=True)
    )
    held, b, s = _full_batch(mat), mat.n_batch, mat.n_sparse

    def cut(i: int) -> slice:
        return slice(starts[i], stops[i], steps[i])

    front = tuple(cut(i) for i in range(b))
    back = tuple(cut(i) for i in range(b + s, mat.ndim))
    data = held.data[(*front, slice(None), *back)]
    indices = held.indices[front]
    low = fnp.asarray(starts[b : b + s], indices.dtype)
    high = fnp.asarray(stops[b : b + s], indices.dtype)
    step = fnp.asarray(steps[b : b + s], indices.dtype)
    keep = fnp.all(
        (indices >= low) & (indices < high) & ((indices - low) % step == 0), -1
    )
    moved = (indices - low) // step
    out = fnp.asarray(shape[b : b + s], indices.dtype)
    indices = fnp.where(keep[..., None], moved, out)
    return BCOO((masked(data, keep), indices), shape=shape)


def bcoo_dynamic_slice(
    mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]
) -> BCOO:
    """The elements of a block with a computed start.

    Args:
      mat: sparse array, or the dense one that becomes sparse.
      start_indices: where the slice begins.
      slice_sizes: shape of the result.

    Returns:
      A sparse array.
    """
    flat, sizes = _flattened(mat), tuple(slice_sizes)
    kind = flat.indices.dtype
    most = [n - k for n, k in zip(mat.shape, sizes, strict=True)]
    starts = fnp.stack([
        fnp.clip(fnp.asarray(i), 0, m).astype(kind)
        for i, m in zip(start_indices, most, strict=True)
    ])  # fmt: skip
    moved = flat.indices - starts
    keep = fnp.all(moved >= 0, -1) & inside(moved, sizes)
    keep = keep & inside(flat.indices, mat.shape)
    indices = fnp.where(keep[:, None], moved, fnp.asarray(sizes, kind))
    return BCOO((masked(flat.data, keep), indices), shape=sizes)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with axes in reverse.

    Args:
      operand: sparse array.
      dimensions: axes.

    Returns:
      A sparse array.
    """
    axes = axes_of(dimensions, operand.ndim)
    held, b, s = _full_batch(operand), operand.n_batch, operand.n_sparse
    data = fnp.flip(held.data, tuple(
        a if a < b else a - s + 1 for a in axes if a < b or a >= b + s
    ))  # fmt: skip
    indices = fnp.flip(held.indices, tuple(a for a in axes if a < b))
    fits = inside(indices, operand.shape[b : b + s])
    for k in range(s):
        if b + k in axes:
            turned = operand.shape[b + k] - 1 - indices[..., k]
            indices = indices.at[..., k].set(
                fnp.where(fits, turned, operand.shape[b + k])
            )
    return with_data(BCOO((held.data, indices), shape=operand.shape), data)


def bcoo_gather(operand: BCOO, start_indices: Any, *args: Any, **more: Any) -> Any:
    """Slices at computed indices, as a dense array.

    Args:
      operand: sparse array.
      start_indices: where the slice begins.
      *args: as for `lax.gather`.
      **more: further options.

    Returns:
      A dense array.
    """
    return lax.gather(operand.todense(), start_indices, *args, **more)


def bcoo_conv_general_dilated(lhs: BCOO, rhs: BCOO, **options: Any) -> BCOO:
    """A convolution of one spatial axis, of the dense arrays.

    Args:
      lhs: left operand.
      rhs: right operand.
      **options: as for `lax.conv_general_dilated`.

    Returns:
      A sparse array.
    """
    from_dense = BCOO.fromdense
    out = lax.conv_general_dilated(lhs.todense(), rhs.todense(), **options)
    return from_dense(out, nse=typeof(out).size)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of elements of two sparse arrays of one shape.

    Args:
      lhs: left operand.
      rhs: right operand.

    Returns:
      A sparse array.
    """
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    if shape != lhs.shape or shape != rhs.shape:
        lhs, rhs = (_stretched(x, shape) for x in (lhs, rhs))
    axes = tuple(range(len(shape)))
    product = sparse_sparse(lhs, rhs, (), (), axes, axes)
    return product


def _stretched(mat: BCOO, shape: Shape) -> BCOO:
    missing = len(shape) - mat.ndim
    dims = tuple(range(missing, len(shape)))
    return bcoo_broadcast_in_dim(
        _flattened(mat), shape=shape, broadcast_dimensions=dims
    )
