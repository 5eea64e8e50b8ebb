"""Writing a scan as `stablehlo.while`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import split_at
from fxflow.core.runtime.lowering import TOKEN, Context
from fxflow.core.sizes import Size, is_at_least


class ScanLowering:
    """Writes one scan."""

    ctx: Context
    graph: Graph
    length: int
    reverse: bool
    carry: list[str]
    consts: list[str]
    xs: list[str]
    carry_avals: list[Aval]
    x_avals: list[Aval]
    y_avals: list[Aval]
    counter: Aval
    copies: int

    def __init__(
        self,
        ctx: Context,
        operands: Sequence[str],
        graph: Graph,
        num_consts: int,
        num_carry: int,
        length: Any,
        reverse: bool,
    ) -> None:
        self.ctx, self.graph, self.length, self.reverse = ctx, graph, length, reverse
        self.consts, self.carry, self.xs = split_at(operands, num_consts, num_carry)
        physical = [a.physical for a in graph.in_avals]
        _, self.carry_avals, self.x_avals = split_at(physical, num_consts, num_carry)
        self.y_avals = [a.physical for a in graph.out_avals[num_carry:]]
        # 64 bits only where 32 would overflow.
        open_size = type(length) is Size
        wide = is_at_least(length, 1 << 31) if open_size else length >= 1 << 31
        self.counter = Aval((), np.dtype(np.int64 if wide else np.int32))
        self.copies = 1

    def stacked(self, aval: Aval) -> Aval:
        """Returns the type of all slices together."""
        return aval.update(shape=(self.length, *aval.shape))

    def write(self, unroll: int) -> list[str]:
        """Writes the loop; returns the names of the results."""
        length: Any = self.length  # or a `Size`
        if not length:
            ys = [self.zeros(self.stacked(a)) for a in self.y_avals]
            return [*self.carry, *ys]
        if type(length) is Size:
            # Rounds that only a call counts leave no step over.
            unroll = 1
        elif length == 1 or length < 2 * unroll:
            self.copies = length
            return self.written_out()
        # Steps that do not fill a round follow the loop.
        rounds, rest = divmod(length, unroll)
        self.copies = unroll + rest
        carry, ys = self.loop(rounds * unroll, unroll)
        for step in range(rest):
            position = self.position(rounds * unroll + step)
            index = self.ctx.constant(position, self.counter)
            carry, ys = self.step(self.ctx, index, carry, ys)
        return [*carry, *ys]

    def position(self, step: int) -> int:
        """Returns which slice a step works on."""
        return self.length - 1 - step if self.reverse else step

    def zeros(self, aval: Aval) -> str:
        """Writes an array of zeros."""
        return self.ctx.constant(np.zeros((), aval.dtype), aval)

    def body(self, ctx: Context, carry: Sequence[str], slices: Sequence[str]) -> Any:
        """Writes the body: in place if once, else as a call."""
        # A body that is needed several times becomes a function, or the program would
        # grow with `unroll`.
        write = ctx.graph if self.copies == 1 else ctx.call
        outs = write(self.graph, [*self.consts, *carry, *slices])
        return split_at(outs, len(self.carry))

    def written_out(self) -> list[str]:
        """Writes all steps one after the other."""
        ctx, carry = self.ctx, self.carry
        pieces: list[list[str]] = [[""] * self.length for _ in self.y_avals]
        for step in range(self.length):
            position = self.position(step)
            slices = [
                self.fixed_slice(x, position, a)
                for x, a in zip(self.xs, self.x_avals, strict=True)
            ]
            carry, ys = self.body(ctx, carry, slices)
            for piece, y, a in zip(pieces, ys, self.y_avals, strict=True):
                piece[position] = self.reshape(ctx, y, a, (1, *a.shape))
        stacked = []
        for piece, a in zip(pieces, self.y_avals, strict=True):
            if self.length == 1:
                stacked += piece
                continue
            types = ", ".join([a.update(shape=(1, *a.shape)).mlir] * self.length)
            stacked.append(
                ctx.emit(
                    f"stablehlo.concatenate {', '.join(piece)}, dim = 0 : ({types}) -> "
                    f"{self.stacked(a).mlir}"
                )
            )
        return [*carry, *stacked]

    def loop(self, stop: int, unroll: int) -> tuple[list[str], list[str]]:
        """Writes the while loop over `stop` steps; returns its carry and outputs."""
        ctx, counter = self.ctx, self.counter
        start = ctx.constant(np.zeros((), counter.dtype))
        ys = [self.zeros(self.stacked(a)) for a in self.y_avals]
        stacked = [self.stacked(a) for a in self.y_avals]
        avals = [counter, *self.carry_avals, *stacked]
        count = len(self.carry)

        def condition(inner: Context, names: list[str]) -> list[str]:
            limit = inner.constant(stop, counter)
            return [
                inner.emit(
                    f"stablehlo.compare LT, {names[0]}, {limit} : ({counter.mlir}, "
                    f"{counter.mlir}) -> tensor<i1>"
                )
            ]

        def body(inner: Context, names: list[str]) -> list[str]:
            position, carry, outs = names[0], names[1 : 1 + count], names[1 + count :]
            one = inner.constant(np.ones((), counter.dtype))
            for _ in range(unroll):
                index = position
                if self.reverse:
                    last = inner.constant(self.length - 1, counter)
                    index = inner.emit(
                        f"stablehlo.subtract {last}, {position} : {counter.mlir}"
                    )
                carry, outs = self.step(inner, index, carry, outs)
                position = inner.emit(
                    f"stablehlo.add {position}, {one} : {counter.mlir}"
                )
            return [position, *carry, *outs]

        boolean = Aval((), np.dtype(np.bool_))
        names = while_op(
            ctx, [start, *self.carry, *ys], avals, condition, body, boolean
        )
        return names[1 : 1 + count], names[1 + count :]

    def step(
        self, ctx: Context, index: str, carry: Sequence[str], ys: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Writes one step at a position known when running."""
        slices = [
            self.slice_at(ctx, x, index, a)
            for x, a in zip(self.xs, self.x_avals, strict=True)
        ]
        carry, outs = self.body(ctx, carry, slices)
        return list(carry), [
            self.write_at(ctx, y, out, index, a)
            for y, out, a in zip(ys, outs, self.y_avals, strict=True)
        ]

    def indices(self, ctx: Context, index: str, aval: Aval) -> tuple[str, str]:
        """Returns start indices `index, 0, …` and their types."""
        names = [index]
        if aval.ndim:
            names += [ctx.constant(np.zeros((), self.counter.dtype))] * aval.ndim
        return ", ".join(names), ", ".join([self.counter.mlir] * len(names))

    def slice_at(self, ctx: Context, x: str, index: str, aval: Aval) -> str:
        """Writes the slice of a stacked array at an index."""
        starts, types = self.indices(ctx, index, aval)
        one = aval.update(shape=(1, *aval.shape))
        piece = ctx.emit(
            f"stablehlo.dynamic_slice {x}, {starts}, sizes = "
            f"[{', '.join(map(str, one.shape))}] : "
            f"({self.stacked(aval).mlir}, {types}) -> {one.mlir}"
        )
        return self.reshape(ctx, piece, one, aval.shape)

    def write_at(self, ctx: Context, ys: str, y: str, index: str, aval: Aval) -> str:
        """Writes the update of a stacked array at an index."""
        whole = self.stacked(aval)
        one = aval.update(shape=(1, *aval.shape))
        piece = self.reshape(ctx, y, aval, one.shape)
        starts, types = self.indices(ctx, index, aval)
        return ctx.emit(
            f"stablehlo.dynamic_update_slice {ys}, {piece}, {starts} : "
            f"({whole.mlir}, {one.mlir}, {types}) -> {whole.mlir}"
        )

    def fixed_slice(self, x: str, position: int, aval: Aval) -> str:
        """Writes the slice of a stacked array at a fixed position."""
        one = aval.update(shape=(1, *aval.shape))
        ranges = ", ".join(
            [f"{position}:{position + 1}", *(f"0:{n}" for n in aval.shape)]
        )
        whole = self.stacked(aval).mlir
        piece = self.ctx.emit(
            f"stablehlo.slice {x} [{ranges}] : ({whole}) -> {one.mlir}"
        )
        return self.reshape(self.ctx, piece, one, aval.shape)

    def reshape(self, ctx: Context, x: str, aval: Aval, shape: tuple[int, ...]) -> str:
        """Writes a change of shape."""
        out = aval.update(shape=shape)
        return ctx.emit(f"stablehlo.reshape {x} : ({aval.mlir}) -> {out.mlir}")


def while_op(
    ctx: Context,
    operands: Sequence[str],
    avals: Sequence[Aval],
    condition: Any,
    body: Any,
    boolean: Aval,
) -> list[str]:
    """Writes `stablehlo.while`; its regions may use names from outside.

    Args:
      ctx: to write to.
      operands: the first state.
      avals: its (physical) types.
      condition: writes the condition (see `Context.region`).
      body: writes the body.
      boolean: type of the condition's result.

    Returns:
      The names of the last state.
    """
    state = [a.mlir for a in avals]
    operands = list(operands)
    if ctx.module.ordered:
        operands.append(ctx.token)
        state.append(TOKEN)

    def ordered(write: Any) -> Any:
        """Threads the token of ordered effects through a region."""

        def written(inner: Context, names: list[str]) -> list[str]:
            if not ctx.module.ordered:
                return list(write(inner, names))
            *names, inner.token = names
            return [*write(inner, names), inner.token]

        return written

    # A region takes the whole state, the token too.
    def condition_only(inner: Context, names: list[str]) -> list[str]:
        return list(condition(inner, names[: len(avals)]))

    test = ctx.region(state, condition_only, [boolean.mlir])
    round_ = ctx.region(state, ordered(body), state)
    types = ", ".join(state)
    names = ctx.emit_many(
        len(state),
        f'"stablehlo.while"({", ".join(operands)}) ({test}, {round_}) : '
        f"({types}) -> ({types})",
    )
    if ctx.module.ordered:
        ctx.token = names.pop()
    return names
