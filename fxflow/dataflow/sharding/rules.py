"""Rules: which axes of an operation's operands and results are one dimension.

As in an einsum, `dot_general` of `f32[b,h]` and `f32[h,d]` has the dimensions `b`, `h`
and `d`; the devices can divide any of them. If the dimension is in the result, each
device computes its part; if it is in operands alone, the results of the devices are
parts of a sum.

The library's layout rules (`core/spmd/layouts`) already say how the division of
operands goes over to results. They are asked here, one axis at a time: an axis of an
operand is divided on trial, and the rule says which axes of the results are divided
then. They leave out what a type cannot say (a product over a divided axis), so a few
operations have rules of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.core.spmd import layouts
from fxflow.devices.meshes import AbstractMesh, AxisType, Layout
from fxflow.errors import ShardingTypeError

Axes = tuple[int | None, ...]
"""For each axis of an array the dimension of the operation that it is, or None: the
array must be whole along it (an operand) or comes out whole (a result)."""

#: Any name: layout rules of the library only pass it on.
_TRIAL = ("trial",)
_MESH: Any = AbstractMesh((1,), _TRIAL, AxisType.Explicit)

#: Operations whose results' further axes can be computed in parts: nothing that is
#: computed along them depends on all of an axis.
_FILL = frozenset({"broadcast_in_dim", "iota"})
#: Operations that rules for types allow to be divided along the axes that they work
#: along, which then takes communication.
_ALONG = frozenset({"fft", "rev"})
_SCATTERS = frozenset(
    {"scatter_add", "scatter_min", "scatter_max", "scatter_mul", "scatter"}
)
_ADDING = frozenset({"scatter_add", "scatter_min", "scatter_max", "scatter_mul"})


class Rule(NamedTuple):
    """The dimensions of an operation.

    Attributes:
      operands: for each operand the dimensions of its axes.
      results: for each result the dimensions of its axes.
      num_dims: of the dimensions, which are numbered.
      summed: the dimensions that no result has; divided, they leave parts of a sum.
    """

    operands: tuple[Axes, ...]
    results: tuple[Axes, ...]
    num_dims: int
    summed: frozenset[int]

    @property
    def is_pointwise(self) -> bool:
        """Whether operands and results have the same axes (0-d operands apart)."""
        whole = self.results[0] if self.results else ()
        rows = [row for row in (*self.operands, *self.results) if row]
        return bool(rows) and None not in whole and all(row == whole for row in rows)


class _Builder:
    """Joins axes to dimensions.

    Args:
      avals: types of the operands.
      outs: types of the results.
    """

    def __init__(self, avals: Sequence[Aval], outs: Sequence[Aval]) -> None:
        self.avals, self.outs = avals, outs
        self._operands: list[list[int | None]] = [[None] * a.ndim for a in avals]
        self._results: list[list[int | None]] = [[None] * o.ndim for o in outs]
        self._count = itertools.count()
        self._summed: set[int] = set()

    def join(
        self,
        operands: Sequence[tuple[int, int]],
        results: Sequence[tuple[int, int]],
    ) -> None:
        """Makes axes one dimension: pairs of an array's number and an axis."""
        rows = [self._operands[i] for i, _ in operands]
        rows += [self._results[i] for i, _ in results]
        axes = [axis for _, axis in (*operands, *results)]
        found = [row[a] for row, a in zip(rows, axes, strict=True)]
        known = {number for number in found if number is not None}
        number = min(known) if known else next(self._count)
        for row, axis in zip(rows, axes, strict=True):
            row[axis] = number
        others = known - {number}
        for row in (*self._operands, *self._results) if others else ():
            row[:] = [number if d in others else d for d in row]

    def add_sum(self, operands: Sequence[tuple[int, int]]) -> None:
        """Makes axes of operands one dimension that is summed over."""
        number = next(self._count)
        for i, axis in operands:
            self._operands[i][axis] = number

    def fill(self) -> None:
        """Gives each axis of a result that has none a dimension."""
        for row in self._results:
            row[:] = [next(self._count) if d is None else d for d in row]

    def rule(self) -> Rule:
        """Returns the rule, without dimensions of length 1."""
        rows = [
            (row, aval)
            for rows, avals in (
                (self._operands, self.avals),
                (self._results, self.outs),
            )
            for row, aval in zip(rows, avals, strict=True)
        ]
        for row, aval in rows:
            for axis, length in enumerate(aval.shape):
                if length in (0, 1):
                    row[axis] = None
        used = sorted({d for row, _ in rows for d in row if d is not None})
        number = {d: i for i, d in enumerate(used)}
        operands, results = (
            tuple(tuple(None if d is None else number[d] for d in row) for row in rows)
            for rows in (self._operands, self._results)
        )
        kept = {d for row in results for d in row}
        summed = frozenset(d for d in range(len(used)) if d not in kept)
        return Rule(operands, results, len(used), summed)


def rule_of(
    primitive: Any, avals: Sequence[Aval], outs: Sequence[Aval], params: dict[str, Any]
) -> Rule:
    """Returns the dimensions of an operation.

    Args:
      primitive: the operation.
      avals: types of the operands.
      outs: types of the results.
      params: as bound.
    """
    builder = _Builder(avals, outs)
    own = _OWN.get(primitive.name)
    if own is not None:
        own(builder, params)
    elif primitive.name in _SCATTERS:
        _scatter(builder, params, primitive.name in _ADDING)
    else:
        _asked(builder, primitive, params)
        if primitive.name in _FILL:
            builder.fill()
    return builder.rule()


def identity_rule(shape: Sequence[Any]) -> Rule:
    """Returns the rule of a copy of an array.

    Args:
      shape: shape of the array.
    """
    axes = _numbered(shape)
    return Rule((axes,), (axes,), _count(axes), frozenset())


def sliced_rule(shape: Sequence[Any], *, stacks: bool = False) -> Rule:
    """Returns the rule that takes an array's slices along its first axis, one by one.

    Args:
      shape: shape of the whole.
      stacks: whether the slices are put together instead.
    """
    part = _numbered(shape[1:])
    whole: Axes = (None, *part)
    before, after = (part, whole) if stacks else (whole, part)
    return Rule((before,), (after,), _count(part), frozenset())


def _numbered(shape: Sequence[Any]) -> Axes:
    number = itertools.count()
    return tuple(None if length in (0, 1) else next(number) for length in shape)


def _count(axes: Axes) -> int:
    return sum(axis is not None for axis in axes)


# -- rules of the library --------------------------------------------------------------


def _asked(builder: _Builder, primitive: Any, params: dict[str, Any]) -> None:
    """Joins the axes that the primitive's layout rule says belong together."""
    avals, outs = builder.avals, builder.outs
    rule = getattr(primitive.layout, "__func__", None)
    if rule is layouts.refused or not outs:
        return
    along = _worked_along(primitive, avals, params)
    for i, aval in enumerate(avals):
        for axis, length in enumerate(aval.shape):
            if length in (0, 1) or axis in along:
                continue
            where = _divided(primitive, avals, outs, params, i, axis)
            if where is None:
                continue
            same = primitive.name == "reshape" or all(
                outs[j].shape[at] == length for j, at in where
            )
            if where and same:
                builder.join([(i, axis)], where)
            elif not where and rule is layouts.reduction:
                _join_sum(builder, i, axis)


def _join_sum(builder: _Builder, operand: int, axis: int) -> None:
    """The operands of a reduction have the same axes."""
    if operand == 0 or builder.avals[operand].shape != builder.avals[0].shape:
        axes = [
            (i, axis)
            for i, a in enumerate(builder.avals)
            if a.shape == builder.avals[operand].shape
        ]
        builder.add_sum(axes)


def _worked_along(
    primitive: Any, avals: Sequence[Aval], params: dict[str, Any]
) -> Sequence[int]:
    if primitive.name not in _ALONG:
        return ()
    if "dimensions" in params:
        found: Sequence[int] = params["dimensions"]
        return found
    ndim = avals[0].ndim
    return range(ndim - len(params["fft_lengths"]), ndim)


def _divided(
    primitive: Any,
    avals: Sequence[Aval],
    outs: Sequence[Aval],
    params: dict[str, Any],
    operand: int,
    axis: int,
) -> list[tuple[int, int]] | None:
    """Returns the axes of results that are divided if one of an operand is.

    None: the rule refuses.
    """
    entries: list[tuple[str, ...]] = [()] * avals[operand].ndim
    entries[axis] = _TRIAL
    given = list(avals)
    given[operand] = avals[operand].update(layout=Layout(_MESH, tuple(entries)))
    try:
        found = primitive.layout(given, outs, params)
    except ShardingTypeError:
        return None
    rows = found if primitive.multi else [found]
    return [
        (j, at)
        for j, row in enumerate(rows)
        for at, entry in enumerate(row)
        if entry == _TRIAL
    ]


# -- rules of their own ----------------------------------------------------------------


def _product(builder: _Builder, params: dict[str, Any]) -> None:
    """Batch axes, what is left of either side, and the axes that are summed over."""
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    at = itertools.count()
    for i, j in zip(lb, rb, strict=True):
        builder.join([(0, i), (1, j)], [(0, next(at))])
    for operand, gone in ((0, (*lc, *lb)), (1, (*rc, *rb))):
        for axis in range(builder.avals[operand].ndim):
            if axis not in gone:
                builder.join([(operand, axis)], [(0, next(at))])
    for i, j in zip(lc, rc, strict=True):
        builder.add_sum([(0, i), (1, j)])


def _convolution(builder: _Builder, params: dict[str, Any]) -> None:
    """Batch, features, and the input features that are summed over."""
    lhs, rhs, out = params["dimension_numbers"]
    groups = params["feature_group_count"], params["batch_group_count"]
    if groups[1] == 1:
        builder.join([(0, lhs[0])], [(0, out[0])])
    if groups == (1, 1):
        builder.join([(1, rhs[0])], [(0, out[1])])
        builder.add_sum([(0, lhs[1]), (1, rhs[1])])


def _gather(builder: _Builder, params: dict[str, Any]) -> None:
    """Axes of indices, whole slices, and axes of the operand that are looked up in."""
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    x, indices = builder.avals[:2]
    batch = [i for i in range(builder.outs[0].ndim) if i not in numbers.offset_dims]
    for axis, at in zip(range(indices.ndim - 1), batch, strict=True):
        builder.join([(1, axis)], [(0, at)])
    mine = numbers.operand_batching_dims
    for i, theirs in zip(mine, numbers.start_indices_batching_dims, strict=True):
        builder.join([(0, i), (1, theirs)], [(0, batch[theirs])])
    gone = {*numbers.collapsed_slice_dims, *mine}
    kept = [i for i in range(x.ndim) if i not in gone]
    for i, at in zip(kept, numbers.offset_dims, strict=True):
        if sizes[i] == x.shape[i]:
            builder.join([(0, i)], [(0, at)])
    for i in numbers.start_index_map:
        if i in numbers.collapsed_slice_dims:
            builder.add_sum([(0, i)])


def _scatter(builder: _Builder, params: dict[str, Any], adds: bool) -> None:
    """Axes that are written whole, and where sums are written, those of the indices."""
    numbers = params["dimension_numbers"]
    x, indices, updates = builder.avals[:3]
    window, batch = numbers.update_window_dims, numbers.operand_batching_dims
    rest = [i for i in range(updates.ndim) if i not in window]
    gone = {*numbers.inserted_window_dims, *batch}
    kept = [i for i in range(x.ndim) if i not in gone]
    theirs = numbers.scatter_indices_batching_dims
    for i, axis in zip(batch, theirs, strict=True):
        builder.join([(0, i), (1, axis), (2, rest[axis])], [(0, i)])
    for i, at in zip(kept, window, strict=True):
        if x.shape[i] == updates.shape[at]:
            builder.join([(0, i), (2, at)], [(0, i)])
    for i in numbers.inserted_window_dims:
        builder.join([(0, i)], [(0, i)])
    for axis in range(indices.ndim - 1) if adds else ():
        if axis not in theirs:
            builder.add_sum([(1, axis), (2, rest[axis])])


_OWN: dict[str, Callable[[_Builder, dict[str, Any]], None]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "gather": _gather,
}
