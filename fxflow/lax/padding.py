"""Padding: elements around and between those of an array; negative amounts crop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Batched, Flags, Values, register, table
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import larger
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import int_tuple
from fxflow.lax.broadcasting import BroadcastInDim
from fxflow.lax.families import MOVED, Linear
from fxflow.lax.keys import check, map_key_data

Padding = tuple[tuple[int, int, int], ...]


@register
class Pad(Linear):
    """Elements put around and between those of an array. All dtypes.

    A negative amount takes elements away. StableHLO: pad.
    """

    name = "pad"
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.partly

    def abstract(self, x: Aval, value: Aval, *, padding_config: Padding) -> Aval:
        """Each length with what is put around and between."""
        if value.ndim:
            raise ShapeError(f"pad: padding_value must be 0-d, got {value}")
        if value.dtype != x.dtype:
            raise DtypeError(
                f"pad: operand {x} and padding_value {value} must have one dtype: "
                "convert one with .astype(...)"
            )
        if len(padding_config) != x.ndim:
            raise ShapeError(
                f"pad: padding_config must have one (low, high, interior) for each "
                f"axis of {x}, got {padding_config}"
            )
        shape = []
        for length, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            if interior < 0:
                raise ShapeError(
                    f"pad: interior padding must not be negative, got {padding_config}"
                )
            total = low + high + length + larger(length - 1, 0) * interior
            if total < 0:
                raise ShapeError(
                    f"pad: {padding_config} takes more away from {x} than there is: "
                    f"an axis would have length {total}"
                )
            shape.append(total)
        return Aval(tuple(shape), x.dtype, x.weak_type and value.weak_type)

    def lower(
        self, ctx: Context, x: str, value: str, *, padding_config: Padding
    ) -> str:
        """`pad`; of a partitioned program without negative widths.

        XLA's partitioner ends the process where a shard has nothing left to give.
        """
        widths = [(low, high) for low, high, _ in padding_config]
        if ctx.module.partitioned and any(w < 0 for pair in widths for w in pair):
            grown = tuple((max(a, 0), max(b, 0), c) for a, b, c in padding_config)

            def cut(x: Any, value: Any) -> Any:
                whole = self.bind(x, value, padding_config=grown)
                shape = typeof(whole).shape
                starts = tuple(max(-low, 0) for low, _ in widths)
                ends = tuple(n - max(-b, 0) for n, (_, b) in zip(shape, widths))
                return table["slice"].bind(
                    whole, start_indices=starts, limit_indices=ends, strides=None
                )

            return ctx.compose(cut, [x, value])[0]
        low, high, interior = ([p[i] for p in padding_config] for i in range(3))
        a, b = ctx.avals_in
        return ctx.emit(
            f"stablehlo.pad {x}, {value}, low = {low}, high = {high}, interior = "
            f"{interior} : ({a.mlir}, {b.mlir}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, x: Any, value: Any, *, padding_config: Padding) -> Any:
        """The elements written into an array that is full of the value."""
        shape = self.abstract(
            Aval(x.shape, x.dtype), Aval((), x.dtype), padding_config=padding_config
        ).shape
        out = np.empty(shape, x.dtype)
        out[...] = value
        source, target = [], []
        for length, new, (low, _, interior) in zip(
            x.shape, shape, padding_config, strict=True
        ):
            step = interior + 1
            # Element i goes to low + i * step; keep those that land inside.
            first = max(0, -(low // step))
            last = min(length, -((low - new) // step))
            if first >= last:
                return out
            source.append(slice(first, last))
            start = low + first * step
            target.append(slice(start, start + (last - first - 1) * step + 1, step))
        out[tuple(target)] = x[tuple(source)]
        return out

    def transpose(
        self, cotangent: Any, x: Any, value: Any, *, padding_config: Padding
    ) -> Values:
        """What landed inside, and the sum of everything else."""
        ct = typeof(cotangent)
        zero = arith.constant(0, ct.dtype)
        inside = Pad.bind(
            cotangent,
            zero,
            padding_config=tuple((-low, -high, 0) for low, high, _ in padding_config),
        )
        if any(interior for _, _, interior in padding_config):
            # A negative interior does not exist: a strided slice leaves out what lies
            # between.
            inside = table["slice"].bind(
                inside,
                start_indices=(0,) * ct.ndim,
                limit_indices=typeof(inside).shape,
                strides=tuple(interior + 1 for _, _, interior in padding_config),
            )
        ct_x = inside if type(x) is Var else None
        ct_value = None
        if type(value) is Var:
            everything = arith.reduce_sum(cotangent, tuple(range(ct.ndim)))
            kept = arith.reduce_sum(inside, tuple(range(ct.ndim)))
            ct_value = arith.add(everything, arith.neg(kept))
        return [ct_x, ct_value]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """No padding of axis 0; values that differ are chosen by a mask."""
        x, value = args
        config = params["padding_config"]
        if not mapped[1]:
            return Pad.bind(x, value, padding_config=((0, 0, 0), *config)), True
        slice_aval = typeof(x)
        shape = slice_aval.shape[1:] if mapped[0] else slice_aval.shape
        zero = arith.constant(0, slice_aval.dtype)
        padded = Pad.bind(
            materialize(x, size, mapped[0]), zero, padding_config=((0, 0, 0), *config)
        )
        inside = Pad.bind(
            BroadcastInDim.bind(np.True_, shape=shape, broadcast_dimensions=()),
            np.False_,
            padding_config=config,
        )
        wide = typeof(padded).shape
        mask = BroadcastInDim.bind(
            inside,
            shape=wide,
            broadcast_dimensions=tuple(range(1, len(wide))),
        )
        around = BroadcastInDim.bind(value, shape=wide, broadcast_dimensions=(0,))
        return table["select_n"].bind(mask, around, padded), True


def pad(
    operand: Any, padding_value: Any, padding_config: Sequence[Sequence[int]]
) -> Array:
    """Puts elements around and between those of an array, or takes some away.

    Args:
      operand: array of any dtype.
      padding_value: 0-d array of that dtype, or a Python scalar.
      padding_config: for each axis `(low, high, interior)`: how many in front, behind
        and between neighbours. A negative `low` or `high` takes elements away.

    Returns:
      Array of lengths `low + n + (n - 1) * interior + high`.

    Raises:
      ShapeError: not one triple for each axis, a negative `interior`, or more is taken
        away than there is.
      DtypeError: dtypes differ.

    Example:
      >>> pad(np.array([1, 2], "i4"), 0, [(1, -1, 2)])
      Array([0, 1, 0, 0], dtype=int32)

    Source: StableHLO `pad`.
    """
    aval = typeof(operand)
    try:
        config = tuple(
            int_tuple("pad", "padding_config", triple) for triple in padding_config
        )
        triples: Padding = tuple((low, high, mid) for low, high, mid in config)
    except (TypeError, ValueError):
        raise ArgumentError(
            "pad: padding_config must be a sequence of (low, high, interior), one for "
            f"each axis of {aval}, got {padding_config!r}"
        ) from None
    if dtypes.is_key(aval.dtype):
        check(Pad, aval, typeof(padding_value), padding_config=triples)
        return _pad_keys(operand, padding_value, triples)
    if isinstance(padding_value, bool | int | float | complex) and not isinstance(
        padding_value, np.generic
    ):
        padding_value = arith.constant(padding_value, aval.dtype)
    return Pad.bind(operand, padding_value, padding_config=triples)


def _pad_keys(operand: Any, value: Any, config: Padding) -> Array:
    def chosen(words: Any, fill: Any) -> Any:
        inner = typeof(fill).shape
        padded = Pad.bind(
            words,
            arith.constant(0, typeof(words).dtype),
            padding_config=config + ((0, 0, 0),) * len(inner),
        )
        shape = typeof(padded).shape
        rank = len(shape)
        inside = Pad.bind(
            BroadcastInDim.bind(
                np.True_, shape=typeof(operand).shape, broadcast_dimensions=()
            ),
            np.False_,
            padding_config=config,
        )
        mask = BroadcastInDim.bind(
            inside, shape=shape, broadcast_dimensions=tuple(range(rank - len(inner)))
        )
        around = BroadcastInDim.bind(
            fill,
            shape=shape,
            broadcast_dimensions=tuple(range(rank - len(inner), rank)),
        )
        return table["select_n"].bind(mask, around, padded)

    result: Array = map_key_data(chosen, operand, value)
    return result


def shifted(x: Any, axis: int, reverse: bool, first: Any) -> Any:
    """Returns the element before each one along an axis.

    Args:
      x: an array, not empty.
      axis: the axis.
      reverse: whether "before" is towards the end.
      first: what is before the first one.
    """
    aval = typeof(x)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, arith.constant(first, aval.dtype), config)
