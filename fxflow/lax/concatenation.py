"""Joining and splitting: arrays one behind the other along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import (
    Batched,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, canonical_shape
from fxflow.lax.families import MOVED, Linear
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.reshaping import expand_dims, squeeze


@register
class Concatenate(Linear):
    """Arrays one behind the other along an axis. All dtypes. StableHLO: concatenate."""

    name = "concatenate"
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.elementwise
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, *avals: Aval, dimension: int) -> Aval:
        """The lengths along the axis added up."""
        first = avals[0]
        shape = first.shape
        rest = shape[:dimension] + shape[dimension + 1 :]
        total = 0
        for aval in avals:
            other = aval.shape
            if len(other) != len(shape) or (
                other[:dimension] + other[dimension + 1 :] != rest
            ):
                raise ShapeError(
                    "concatenate: operands may differ in length only along axis "
                    f"{dimension}, got {', '.join(map(str, avals))}"
                )
            if aval.dtype != first.dtype:
                raise DtypeError(
                    "concatenate: operands must have one dtype, got "
                    f"{', '.join(map(str, avals))}: convert some with .astype(...), or "
                    "use fxflow.numpy.concatenate, which promotes"
                )
            total += other[dimension]
        shape = (*shape[:dimension], total, *shape[dimension + 1 :])
        return Aval(shape, first.dtype, all(a.weak_type for a in avals))

    def lower(self, ctx: Context, *operands: str, dimension: int) -> str:
        """`concatenate`."""
        types = ", ".join(a.mlir for a in ctx.avals_in)
        return ctx.emit(
            f"stablehlo.concatenate {', '.join(operands)}, dim = {dimension} : "
            f"({types}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, *values: Any, dimension: int) -> Any:
        """`np.concatenate`."""
        return np.concatenate(values, dimension)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.concatenate`."""
        dimension = params["dimension"]
        join = np.concatenate
        return lambda *values: join(values, dimension)

    def transpose(self, cotangent: Any, *args: Any, dimension: int) -> Values:
        """The pieces."""
        sizes = tuple(typeof(a).shape[dimension] for a in args)
        pieces = Split.bind(cotangent, sizes=sizes, axis=dimension)
        return [
            p if type(a) is Var else None for p, a in zip(pieces, args, strict=True)
        ]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One axis further back."""
        wide = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*wide, dimension=params["dimension"] + 1), True


def concatenate(operands: Values, dimension: int) -> Array:
    """Joins arrays along an axis.

    Args:
      operands: arrays of one dtype whose shapes agree apart from `dimension`.
      dimension: the axis.

    Returns:
      Array whose length along `dimension` is the sum of theirs.

    Raises:
      ArgumentError: there are no operands.
      AxisError: the axis is out of range.
      ShapeError: they differ in the length of another axis.
      DtypeError: dtypes differ.

    Example:
      >>> concatenate([np.ones(1, "f4"), np.zeros(2, "f4")], 0)
      Array([1., 0., 0.], dtype=float32)

    Source: StableHLO `concatenate`.
    """
    values = list(operands)
    if not values:
        raise ArgumentError("concatenate: needs at least one array, got none")
    aval = typeof(values[0])
    axis = canonical_axis("concatenate", dimension, aval.ndim, "dimension")
    # Arrays are immutable: there is nothing to copy.
    if len(values) == 1 and isinstance(values[0], Array):
        return values[0]
    if dtypes.is_key(aval.dtype):
        check(Concatenate, *map(typeof, values), dimension=axis)
        keys: Array = map_key_data(
            lambda *w: Concatenate.bind(*w, dimension=axis), *values
        )
        return keys
    return Concatenate.bind(*values, dimension=axis)


def stack(operands: Values, axis: int = 0) -> Array:
    """Joins arrays along a new axis.

    Args:
      operands: arrays of one dtype and shape.
      axis: where the new axis is in the result.

    Returns:
      Array with one axis more, as long as there are operands.

    Raises:
      ArgumentError: there are no operands.
      AxisError: there is no such position.
      ShapeError: shapes differ.
      DtypeError: dtypes differ.

    Example:
      >>> stack([np.ones(2, "f4"), np.zeros(2, "f4")])
      Array([[1., 1.],
             [0., 0.]], dtype=float32)

    Source: StableHLO `concatenate`; `numpy.stack`.
    """
    values = list(operands)
    if not values:
        raise ArgumentError("stack: needs at least one array, got none")
    aval = typeof(values[0])
    for value in values:
        if typeof(value).shape != aval.shape:
            raise ShapeError(
                f"stack: arrays must have one shape, got {aval} and {typeof(value)}"
            )
    at = canonical_axis("stack", axis, aval.ndim + 1)
    return concatenate([expand_dims(v, (at,)) for v in values], at)


@register
class Split(Linear, MultipleResults):
    """Consecutive pieces along an axis. All dtypes. StableHLO: slice, one for each."""

    name = "split"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.parts

    def abstract(self, x: Aval, *, sizes: tuple[int, ...], axis: int) -> list[Aval]:
        """One type for each piece."""
        if sum(sizes) != x.shape[axis]:
            raise ShapeError(
                f"split: sizes {sizes} add up to {sum(sizes)}, but axis {axis} of {x} "
                f"has length {x.shape[axis]}"
            )
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        return [Aval((*before, n, *after), x.dtype, x.weak_type) for n in sizes]

    def lower(
        self, ctx: Context, x: str, *, sizes: tuple[int, ...], axis: int
    ) -> list[str]:
        """One `slice` for each piece."""
        aval = ctx.avals_in[0]
        names = []
        start = 0
        for n, out in zip(sizes, ctx.avals_out, strict=True):
            ranges = [f"0:{length}" for length in aval.shape]
            ranges[axis] = f"{start}:{start + n}"
            start += n
            names.append(
                ctx.emit(
                    f"stablehlo.slice {x} [{', '.join(ranges)}] : ({aval.mlir}) -> "
                    f"{out.mlir}"
                )
            )
        return names

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Indexing by prepared slices."""
        whole = (slice(None),) * params["axis"]
        indices = []
        start = 0
        for n in params["sizes"]:
            indices.append((*whole, slice(start, start + n)))
            start += n
        return lambda x: [x[index] for index in indices]

    def transpose(self, cotangent: Any, x: Any, *, axis: int, **_: Any) -> Values:
        """The pieces joined."""
        return [
            Concatenate.bind(*map(arith.instantiate, cotangent), dimension=axis)
            if cotangent
            else Zero(x.aval)
        ]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One axis further back."""
        sizes = params["sizes"]
        pieces = self.bind(args[0], sizes=sizes, axis=params["axis"] + 1)
        return pieces, [True] * len(sizes)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cuts an array into consecutive pieces along an axis.

    Args:
      operand: array of any dtype.
      sizes: lengths of the pieces; they add up to the length of the axis.
      axis: the axis.

    Returns:
      One array for each piece.

    Raises:
      ShapeError: the lengths do not add up.
      AxisError: an axis is out of range.

    Example:
      >>> [piece.shape for piece in split(np.zeros(5, "f4"), (2, 3))]
      [(2,), (3,)]

    Source: StableHLO `slice`.
    """
    aval = typeof(operand)
    at = canonical_axis("split", axis, aval.ndim)
    lengths = canonical_shape("split", sizes, "sizes")
    if dtypes.is_key(aval.dtype):
        check(Split, aval, sizes=lengths, axis=at)
        pieces = map_key_data(lambda w: Split.bind(w, sizes=lengths, axis=at), operand)
    else:
        pieces = Split.bind(operand, sizes=lengths, axis=at)
    return list(pieces)


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """Returns the slices of an array along an axis, which disappears.

    Args:
      x: array of any dtype.
      axis: the axis.

    Returns:
      As many arrays as the axis is long.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> unstack(np.array([1, 2], "i4"))
      (Array(1, dtype=int32), Array(2, dtype=int32))

    Source: the array API standard, `unstack`.
    """
    aval = typeof(x)
    at = canonical_axis("unstack", axis, aval.ndim)
    # One node for all slices, whose transpose is one concatenation.
    pieces = split(x, (1,) * aval.shape[at], at)
    return tuple(squeeze(piece, (at,)) for piece in pieces)
