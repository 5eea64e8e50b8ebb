"""Operations that move or reduce elements of `BCOO`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.compat.jax.experimental.sparse._base import (
    Shape,
    axes_of,
    inside,
    masked,
    over_batch,
)
from fxflow.compat.jax.experimental.sparse._bcoo import (
    BCOO,
    _flattened,
    _full_batch,
    _raveled,
    bcoo_fromdense,
    bcoo_sum_duplicates,
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
    held, axes = _merged_batch(held, axes)
    b, s = held.n_batch, held.n_sparse
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


def _merged_batch(mat: BCOO, axes: Shape) -> tuple[BCOO, Shape]:
    """The array without the batch axes that are summed, and the other axes.

    Their elements stand one after the other: they have the same places.
    """
    b = mat.n_batch
    summed = [a for a in axes if a < b]
    if not summed:
        return mat, axes
    kept = [a for a in range(b) if a not in summed]
    count = mat.nse * math.prod(mat.shape[a] for a in summed)

    def moved(x: Any) -> Any:
        rest = range(b + 1, typeof(x).ndim)
        x = fnp.transpose(x, (*kept, *summed, b, *rest))
        front, back = x.shape[: len(kept)], x.shape[b + 1 :]
        return fnp.reshape(x, (*front, count, *back))

    shape = (*(mat.shape[a] for a in kept), *mat.shape[b:])
    made = BCOO((moved(mat.data), moved(mat.indices)), shape=shape)
    return made, tuple(a - len(summed) for a in axes if a >= b)


def _bounded(mat: BCOO) -> BCOO:
    """The array with no more elements than there are places."""
    b, s = mat.n_batch, mat.n_sparse
    most = math.prod(mat.shape[b : b + s])
    if mat.nse <= most:
        return mat
    found = bcoo_sum_duplicates(mat, nse=most, remove_zeros=False)
    return BCOO((found.data, found.indices), shape=mat.shape)


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
    b, s = mat.n_batch, mat.n_sparse
    batch, mid, back = mat.shape[:b], mat.shape[b : b + s], mat.shape[b + s :]
    front = _length(sizes, batch, "batch", mat, True)
    dense = _length(sizes[::-1], back[::-1], "dense", mat, False)
    middle = sizes[front : len(sizes) - dense]
    if math.prod(middle) != math.prod(mid):
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix sparse and other dimensions; got "
            f"shape={mat.shape} new_shape={sizes}"
        )
    held = _full_batch(mat)
    fits = inside(held.indices, mid)
    number = _raveled(held.indices, mid)
    parts = []
    for n in middle[::-1]:
        parts.append(number % max(n, 1))
        number = number // max(n, 1)
    kind = held.indices.dtype
    none = fnp.zeros((*typeof(number).shape, 0), kind)
    indices = fnp.stack(parts[::-1], -1).astype(kind) if parts else none
    indices = fnp.where(fits[..., None], indices, fnp.asarray(middle, kind))
    data = masked(held.data, fits)
    ends = sizes[:front], sizes[len(sizes) - dense :]
    data = fnp.reshape(data, (*ends[0], mat.nse, *ends[1]))
    indices = fnp.reshape(indices, (*ends[0], mat.nse, len(middle)))
    return BCOO((data, indices), shape=sizes)


def _length(sizes: Shape, old: Shape, kind: str, mat: BCOO, ones: bool) -> int:
    """How many of the first new axes are those that were of one kind.

    Args:
      sizes: new ones.
      old: of the axes of this kind.
      kind: for the message.
      mat: the array.
      ones: whether new axes of length 1 behind them count.
    """
    total, count = math.prod(old), 0
    if not old and not ones:
        return 0
    product = 1
    while count < len(sizes) and (product != total or not count):
        if product == total and sizes[count] != 1:
            break
        product *= sizes[count]
        count += 1
    while ones and count < len(sizes) and sizes[count] == 1:
        count += 1
    if product != total:
        given = {"n_batch": mat.n_batch} if ones else {"n_dense": mat.n_dense}
        pair = "batch and sparse" if ones else "sparse and dense"
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix {pair} dimensions; got "
            f"shape={mat.shape} new_shape={sizes} with {given}"
        )
    return count


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without axes of length 1.

    Args:
      arr: array.
      dimensions: axes.

    Returns:
      A sparse array.
    """
    axes = axes_of(dimensions, arr.ndim)
    if not axes:
        return arr
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
      shape: shape of the result.
      broadcast_dimensions: axes of the result for those of the array.
      sharding: has no effect.

    Returns:
      A sparse array.
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    kept = _widened(mat, shape, dims)
    if kept is not None:
        return kept
    flat = _flattened(mat)
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


def _widened(mat: BCOO, shape: Shape, dims: Shape) -> BCOO | None:
    """The array with new batch and dense axes; None: an axis between them grows."""
    b, s, d = mat.n_batch, mat.n_sparse, mat.n_dense
    if list(dims) != sorted(dims):
        return None
    sparse = dims[b : b + s]
    end = len(shape)
    first = sparse[0] if s else (dims[b + s] if d else end)
    last = dims[b + s] if d else (end if s else first)
    inner = range(first, last)
    if any(i not in sparse and shape[i] != 1 for i in inner):
        return None
    if any(shape[i] != mat.shape[b + k] for k, i in enumerate(sparse)):
        return None
    held = _full_batch(mat)
    front, back = shape[:first], shape[last:]

    def grown(x: Any, tail: Shape, places: Shape) -> Any:
        own = typeof(x).shape
        wide = [1] * first + [mat.nse]
        for k, i in enumerate(dims[:b]):
            wide[i] = own[k]
        rest = [1] * len(tail)
        for k, i in enumerate(places):
            rest[i] = own[b + 1 + k]
        return fnp.broadcast_to(
            fnp.reshape(x, (*wide, *rest)), (*front, mat.nse, *tail)
        )

    data = grown(held.data, back, tuple(i - last for i in dims[b + s :]))
    columns = [
        held.indices[..., sparse.index(i)]
        if i in sparse
        else fnp.zeros_like(held.indices[..., 0])
        for i in inner
    ]
    indices = held.indices
    if len(columns) != s:
        # Padding stays out of bounds in its own axes.
        indices = fnp.stack(columns, -1)
    tail = (len(columns),)
    return BCOO((data, grown(indices, tail, (0,))), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other.

    Args:
      operands: sparse arrays.
      dimension: the axis.

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
        raise TypeError(
            f"bcoo_concatenate: shapes differ: {[m.shape for m in operands]}"
        )
    b = operands[0].n_batch
    length = sum(m.shape[dimension] for m in operands)
    shape = list(operands[0].shape)
    shape[dimension] = length
    if dimension < b:
        most = max(m.nse for m in operands)
        padded = [_padded(_full_batch(m), most) for m in operands]
        data = fnp.concatenate([m.data for m in padded], dimension)
        indices = fnp.concatenate([m.indices for m in padded], dimension)
        return BCOO((data, indices), shape=tuple(shape))
    if dimension >= b + operands[0].n_sparse:
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


def _padded(mat: BCOO, nse: int) -> BCOO:
    """The array with room for more elements."""
    b, s = mat.n_batch, mat.n_sparse
    more = nse - mat.nse
    if not more:
        return mat
    rest = [(0, 0)] * mat.n_dense
    data = fnp.pad(mat.data, [*[(0, 0)] * b, (0, more), *rest])
    sizes = fnp.asarray(mat.shape[b : b + s], mat.indices.dtype)
    out = fnp.broadcast_to(sizes, (*mat.shape[:b], more, s))
    return BCOO((data, fnp.concatenate([mat.indices, out], b)), shape=mat.shape)


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
    return _bounded(BCOO((masked(data, keep), indices), shape=shape))


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
    sizes = tuple(map(operator.index, slice_sizes))
    held, b, s = _full_batch(mat), mat.n_batch, mat.n_sparse
    kind = held.indices.dtype
    starts = [
        fnp.clip(fnp.asarray(i), 0, n - k).astype(kind)
        for i, n, k in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    zero = fnp.zeros((), kind)
    front, back = sizes[:b], sizes[b + s :]
    at = (*starts[:b], zero, *starts[b + s :])
    data = lax.dynamic_slice(held.data, at, (*front, mat.nse, *back))
    at = (*starts[:b], zero, zero)
    indices = lax.dynamic_slice(held.indices, at, (*front, mat.nse, s))
    mid = sizes[b : b + s]
    begin = fnp.stack(starts[b : b + s]) if s else fnp.zeros(0, kind)
    moved = indices - begin
    keep = fnp.all(moved >= 0, -1) & inside(moved, mid)
    keep = keep & inside(indices, mat.shape[b : b + s])
    indices = fnp.where(keep[..., None], moved, fnp.asarray(mid, kind))
    return _bounded(BCOO((masked(data, keep), indices), shape=sizes))


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


def bcoo_gather(operand: BCOO, start_indices: Any, *args: Any, **more: Any) -> BCOO:
    """Slices at computed indices.

    Args:
      operand: sparse array.
      start_indices: where the slice begins.
      *args: as for `lax.gather`.
      **more: further options.

    Returns:
      A sparse array with a place for each element.
    """
    out = lax.gather(operand.todense(), start_indices, *args, **more)
    return bcoo_fromdense(out, nse=max(typeof(out).size, 1))


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
    if (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        axes = tuple(range(len(shape)))
        return sparse_sparse(lhs, rhs, (), (), axes, axes)
    lhs, rhs = _full_batch(lhs), _full_batch(rhs)
    b, s = lhs.n_batch, lhs.n_sparse
    sizes = shape[b : b + s]
    pairs = lhs.nse * rhs.nse

    def one(x: Any, at: Any, y: Any, other: Any) -> Any:
        match = fnp.all(at[:, None] == other[None], -1) & inside(at, sizes)[:, None]
        keep = fnp.reshape(match, (pairs,))
        data = x[:, None] * y[None]
        data = fnp.reshape(data, (pairs, *typeof(data).shape[2:]))
        indices = fnp.repeat(at, rhs.nse, axis=0)
        out = fnp.asarray(sizes, indices.dtype)
        return masked(data, keep), fnp.where(keep[:, None], indices, out)

    made = over_batch(one, b)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    return _bounded(BCOO(made, shape=shape))


def _stretched(mat: BCOO, shape: Shape) -> BCOO:
    missing = len(shape) - mat.ndim
    dims = tuple(range(missing, len(shape)))
    return bcoo_broadcast_in_dim(
        _flattened(mat), shape=shape, broadcast_dimensions=dims
    )
