"""Index sets of results, operation by operation: all that hold no graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxflow.core.arrays import Shape, dtypes
from fxflow.core.ir.graph import Node
from fxflow.lax.convolution import ConvGeneralDilated
from fxflow.lax.dot import free_axes
from fxflow.lax.families import Elementwise, Structural
from fxflow.lax.gather_scatter.scatter_family import scatter_positions
from fxflow.lax.windows import Window, host_windows
from fxflow.sparse.index_sets import Dependence, Given, union

#: The rule of an operation: takes the node, the operands' sets and their values (NumPy
#: arrays, None where unknown); returns the results' sets.
Rule: TypeAlias = Callable[[Node, Sequence[Given], Sequence[Any]], list[Given]]


def rule_of(node: Node) -> Rule:
    """Returns the rule of a node's operation."""
    known = _RULES.get(node.primitive.name)
    if known is not None:
        return known
    if isinstance(node.primitive, Elementwise):
        return _elementwise
    if isinstance(node.primitive, Structural):
        return _moved
    return _dense


def _shape(node: Node, index: int = 0) -> Shape:
    return tuple(node.outputs[index].aval.shape)


# -- rules -----------------------------------------------------------------------------


def _dense(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """Everything depends on everything."""
    return _dense_behind(0, node, sets)


def _dense_behind(batch: int, node: Node, sets: Sequence[Given]) -> list[Given]:
    """Everything on everything, apart for each index of the first `batch` axes."""
    out: list[Given] = []
    for var in node.outputs:
        shape = tuple(var.aval.shape)
        parts = []
        for s in sets:
            if s is None:
                continue
            part = s.pooled(range(batch, len(s.shape)))
            part = part.reshaped(part.shape[:batch] + (1,) * (len(shape) - batch))
            parts.append(part.spread(shape))
        out.append(union(parts))
    return out


def _matrices(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """Dense for each matrix of a batch."""
    return _dense_behind(max(len(_shape(node)) - 2, 0), node, sets)


def _elementwise(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    shape = _shape(node)
    return [union(None if s is None else s.spread(shape) for s in sets)]


def _product(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """Elements whose factor is a known 0 depend on nothing."""
    (out,) = _elementwise(node, sets, values)
    factors = [v for s, v in zip(sets, values, strict=True) if s is None]
    if out is not None and factors and factors[0] is not None:
        factor = np.broadcast_to(factors[0], out.shape)
        if not factor.all():
            out = out.taken(np.where(factor != 0, out.ids, -1))
    return [out]


def _select(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """The chosen case, if it is known which, else all of them."""
    shape = _shape(node)
    cases = [None if s is None else s.spread(shape) for s in sets[1:]]
    which = values[0]
    if which is None:
        return [union(cases)]
    chosen = np.broadcast_to(np.clip(which, 0, len(cases) - 1), shape)
    return [
        union(
            None if c is None else c.taken(np.where(chosen == i, c.ids, -1))
            for i, c in enumerate(cases)
        )
    ]


def _moved(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """Follows the elements of operands that are only moved, by moving their numbers."""
    outs: list[list[Given]] = [[] for _ in node.outputs]
    params = dict(node.params)
    if "fill_value" in params:
        params["fill_value"] = 0
    for i, s in enumerate(sets):
        if s is None:
            continue
        operands = [
            s.ids + 1
            if j == i
            else np.zeros(a.aval.shape, np.int64)
            if value is None or sets[j] is not None or _is_data(node, j)
            else value
            for j, (a, value) in enumerate(zip(node.inputs, values, strict=True))
        ]
        moved = node.primitive.evaluate(*operands, **params)
        for k, ids in enumerate(moved if node.primitive.multi else [moved]):
            outs[k].append(s.taken(np.asarray(ids).astype(np.int64) - 1))
    return [union(parts) for parts in outs]


def _is_data(node: Node, index: int) -> bool:
    return node.inputs[index].aval.dtype in dtypes.INEXACT


def _sum(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    (s,) = sets
    assert s is not None
    return [s.pooled(node.params["axes"]).reshaped(_shape(node))]


def _running(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """All elements before it along the axis (of `linear_recurrence`, of its terms)."""
    s = sets[-1]
    if s is None or any(x is not None for x in sets[:-1]):
        return _dense(node, sets, values)
    axis, reverse = node.params["axis"], node.params["reverse"]
    n = s.shape[axis]
    i, j = np.tril_indices(n)
    targets, origins = (j, i) if reverse else (i, j)
    ids = np.moveaxis(s.ids, axis, -1)
    return [s.joined(ids[..., targets], ids[..., origins], s.shape)]


def _fft(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    return _dense_behind(
        len(_shape(node)) - len(node.params["fft_lengths"]), node, sets
    )


def _dot(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    (lc, rc), (lb, rb) = node.params["dimension_numbers"]
    shape = _shape(node)
    if None not in sets:
        return _dense(node, sets, values)
    left = sets[1] is None
    s, other = (sets[0], values[1]) if left else (sets[1], values[0])
    contracted, batch = (lc, lb) if left else (rc, rb)
    theirs, their_batch = (rc, rb) if left else (lc, lb)
    assert s is not None
    free = free_axes(len(s.shape), contracted, batch)
    ids = s.ids.transpose((*batch, *free, *contracted))
    heads = ids.shape[: len(batch)]
    rows = math.prod(s.shape[d] for d in free)
    depth = math.prod(s.shape[d] for d in contracted)
    ids = ids.reshape(math.prod(heads), rows, depth)
    aval = node.inputs[1 if left else 0].aval
    their_free = free_axes(len(aval.shape), theirs, their_batch)
    columns = math.prod(aval.shape[d] for d in their_free)
    numbers = np.arange(math.prod(shape), dtype=np.int64)
    out_ids = (
        numbers.reshape(len(ids), rows, columns)
        if left
        else numbers.reshape(len(ids), columns, rows).transpose(0, 2, 1)
    )
    if other is None:
        # What an element of the result depends on does not depend on the column.
        targets = np.arange(len(ids) * rows, dtype=np.int64).reshape(len(ids), rows, 1)
        targets = np.broadcast_to(targets, ids.shape)
        pool = s.joined(targets, ids, (len(ids), rows, 1))
        full = pool.spread((len(ids), rows, columns))
        if left:
            return [full.reshaped(shape)]
        return [full.taken(full.ids.transpose(0, 2, 1)).reshaped(shape)]
    matrix = other.transpose((*their_batch, *theirs, *their_free))
    matrix = matrix.reshape(len(ids), depth, columns)
    b, k, c = np.nonzero(matrix)
    return [s.joined(out_ids[b, :, c], ids[b, :, k], shape)]


def _windows(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    s, shape = sets[0], _shape(node)
    if s is None or any(x is not None for x in sets[1:]):
        return _dense(node, sets, values)
    return [_window_sets(s, node.params["window"], shape)]


def _window_sets(s: Dependence, window: Window, shape: Shape) -> Dependence:
    ids = host_windows(s.ids + 1, window, 0) - 1
    ids = ids.reshape((*shape, math.prod(window.dimensions)))
    targets = np.arange(math.prod(shape), dtype=np.int64).reshape((*shape, 1))
    return s.joined(np.broadcast_to(targets, ids.shape), ids, shape)


def _window_sources(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    """An element may be the one that a window that it is in selects."""
    s, shape = sets[0], _shape(node)
    if s is None or any(x is not None for x in sets[1:]):
        return _dense(node, sets, values)
    places = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    window = node.params["window"]
    ids = host_windows(places + 1, window, 0) - 1
    ids = ids.reshape((*s.shape, math.prod(window.dimensions)))
    origins = np.broadcast_to(s.ids[..., None], ids.shape)
    inside = ids >= 0
    return [s.joined(ids[inside], origins[inside], shape)]


def _convolution(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    p = node.params
    if None not in sets:
        return _dense(node, sets, values)
    lhs_spec, rhs_spec, out_spec = p["dimension_numbers"]
    lhs, rhs = (a.aval.shape for a in node.inputs)
    shape = _shape(node)
    of_features, of_batch = p["feature_group_count"], p["batch_group_count"]
    groups = of_features * of_batch  # one of them is 1
    batch, features = lhs[lhs_spec[0]] // of_batch, lhs[lhs_spec[1]] // of_features
    outs, each = rhs[rhs_spec[0]], rhs[rhs_spec[1]]
    kernel = tuple(rhs[d] for d in rhs_spec[2:])
    space = tuple(shape[d] for d in out_spec[2:])
    window = Window(
        dimensions=(1, 1, *kernel),
        strides=(1, 1, *p["window_strides"]),
        padding=((0, 0), (0, 0), *p["padding"]),
        base_dilation=(1, 1, *p["lhs_dilation"]),
        window_dilation=(1, 1, *p["rhs_dilation"]),
    )
    count = math.prod(kernel)
    numbers = np.arange(math.prod(lhs), dtype=np.int64).reshape(lhs)
    # [batch, groups, features of a group, positions, elements of the window]
    seen = host_windows(numbers.transpose(lhs_spec) + 1, window, 0) - 1
    seen = seen.reshape(of_batch, batch, of_features, features, math.prod(space), count)
    seen = seen.swapaxes(0, 1).reshape(batch, groups, *seen.shape[3:])
    # [groups, outs of a group, features of a group, elements of the window]
    taps = np.arange(math.prod(rhs), dtype=np.int64).reshape(rhs).transpose(rhs_spec)
    taps = taps.reshape(groups, outs // groups, each, count)
    out_ids = np.arange(batch * outs * math.prod(space), dtype=np.int64)
    out_ids = out_ids.reshape(batch, groups, outs // groups, math.prod(space))
    back = tuple(np.argsort(out_spec))
    ordered = (batch, outs, *space)
    if sets[0] is not None:
        s, weights = sets[0], values[1]
        used = np.ones(taps.shape, bool)
        if weights is not None:
            used = weights.transpose(rhs_spec).reshape(taps.shape) != 0
        g, o, f, k = np.nonzero(used)
        targets, origins = out_ids[:, g, o], seen[:, g, f, :, k].transpose(1, 0, 2)
    else:
        assert sets[1] is not None
        s = sets[1]
        # Elements of the window in the padding count for nothing.
        inside = (seen >= 0).any(2)  # [batch, groups, positions, elements]
        n, g, x, k = np.nonzero(inside)
        targets = out_ids[n, g, :, x][:, :, None]
        origins = taps[g, :, :, k]
        targets = np.broadcast_to(targets, origins.shape)
    found = s.joined(targets, origins, ordered)
    return [found.taken(found.ids.transpose(back)).reshaped(shape)]


def _gather(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    s = sets[0]
    if s is None or sets[1] is not None:
        return _dense(node, sets, values)
    if values[1] is None:
        # It may be any slice.
        s = s.pooled(node.params["dimension_numbers"].start_index_map).spread(s.shape)
        values = [None, np.zeros(node.inputs[1].aval.shape, np.int32)]
    return _moved(node, [s, None], values)


def _dynamic_slice(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    s, starts = sets[0], list(values[1:])
    if s is None:
        return _dense(node, sets, values)
    unknown = [
        d for d, v in enumerate(starts) if v is None and _shape(node)[d] < s.shape[d]
    ]
    s = s.pooled(unknown).spread(s.shape)
    starts = [np.zeros((), np.int32) if v is None else v for v in starts]
    return _moved(node, [s, *[None] * len(starts)], [None, *starts])


def _dynamic_update(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    s, update, *rest = sets
    starts = list(values[2:])
    shape = _shape(node)
    if all(v is not None for v in starts) and all(r is None for r in rest):
        return _moved(node, sets, values)
    if update is None:
        return [s]
    axes = [d for d, v in enumerate(starts) if v is None]
    part = update.pooled(axes)
    # Along an axis with an unknown start it may be anywhere.
    grown = tuple(n if d in axes else part.shape[d] for d, n in enumerate(shape))
    part = part.spread(grown)
    known = [np.zeros((), np.int32) if v is None else v for v in starts]
    ids = node.primitive.evaluate(np.zeros(shape, np.int64), part.ids + 1, *known)
    return [union([s, part.taken(np.asarray(ids) - 1)])]


def _scatter_add(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    s, _, updates = sets
    if updates is None:
        return [s]
    numbers, indices = node.params["dimension_numbers"], values[1]
    shape = _shape(node)
    if indices is None:
        return [union([s, _anywhere(updates, shape, numbers)])]
    clip = node.params["mode"].name == "CLIP"
    places = np.zeros(shape, np.int8)
    index, ids = scatter_positions(numbers, places, indices, updates.ids, clip)
    if not index:
        return [s]
    targets = (
        np.ravel_multi_index(tuple(np.broadcast_to(i, ids.shape) for i in index), shape)
        if shape
        else np.zeros(ids.shape, np.int64)
    )
    return [union([s, updates.joined(targets, ids, shape)])]


def _scatter(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> list[Given]:
    """What stays of the array, and the updates where they are written."""
    s, indices, _ = sets
    written = _scatter_add(node, [None, *sets[1:]], values)
    if s is not None and values[1] is not None:
        (s,) = _moved(node, [s, None, None], values)
    return [union([s, *written])] if indices is None else _dense(node, sets, values)


def _scatter_mul(
    node: Node, sets: Sequence[Given], values: Sequence[Any]
) -> list[Given]:
    return [sets[0]] if sets[2] is None else _dense(node, sets, values)


def _anywhere(updates: Dependence, shape: Shape, numbers: Any) -> Dependence:
    """Returns the sets of an array to which slices are added at unknown places."""
    free = set(numbers.scatter_dims_to_operand_dims)
    inner = numbers.update_window_dims
    kept = [d for d in range(len(shape)) if d not in numbers.dropped]
    batch = [d for d in range(len(updates.shape)) if d not in inner]
    fixed = dict(
        zip(
            numbers.operand_batching_dims,
            (batch[d] for d in numbers.scatter_indices_batching_dims),
            strict=True,
        )
    )
    fixed |= {d: a for d, a in zip(kept, inner, strict=True) if d not in free}
    pool = updates.pooled(
        [a for a in range(len(updates.shape)) if a not in fixed.values()]
    )
    index: list[Any] = [np.zeros((1,) * len(shape), np.int64) for _ in pool.shape]
    for d, axis in fixed.items():
        along = [1] * len(shape)
        along[d] = -1
        # An axis of the array may be longer than that of a slice that is at 0.
        index[axis] = np.minimum(np.arange(shape[d]), pool.shape[axis] - 1).reshape(
            along
        )
    flat = (
        np.ravel_multi_index(np.broadcast_arrays(*index), pool.shape)
        if index
        else np.zeros(shape, np.int64)
    )
    return pool.taken(np.broadcast_to(flat, shape))


_RULES: dict[str, Rule] = {
    "mul": _product,
    "div": _product,
    "select_n": _select,
    "convert_element_type": _elementwise,
    "reduce_precision": _elementwise,
    "copy": _elementwise,
    "pad": _moved,
    "concatenate": _moved,
    "split": _moved,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "scatter_mul": _scatter_mul,
    "reduce_sum": _sum,
    "cumsum": _running,
    "linear_recurrence": _running,
    "reduce_window_sum": _windows,
    "select_and_gather_add": _windows,
    "select_and_scatter_add": _window_sources,
    "dot_general": _dot,
    ConvGeneralDilated.name: _convolution,
    "fft": _fft,
    "triangular_solve": _matrices,
    "tridiagonal_solve": _matrices,
}
