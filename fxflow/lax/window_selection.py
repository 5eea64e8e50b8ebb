"""Taking from, and giving to, the element that wins its window.

The derivative of a windowed maximum or minimum: `select_and_gather_add` takes a tangent
from the position of each window's extremum, `select_and_scatter_add` gives a cotangent
back to it. Each is the transpose of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Aval, Shape, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import backward
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.lax.comparison import eq, gt, lt
from fxflow.lax.convolution_dims import dilated
from fxflow.lax.creation import full
from fxflow.lax.families import FLOAT, require_kind
from fxflow.lax.padding import pad
from fxflow.lax.reduction import highest, lowest
from fxflow.lax.select import select
from fxflow.lax.slicing import slice as slice_
from fxflow.lax.windows import Window, fold_windows, host_windows, padded

# Up to this many positions in a window, each is one term of the derivative, or up to
# this many if an element is in few windows; more are treated axis by axis. (8 images of
# 112 × 112 × 64, windows of 3 × 3 by steps of 2: 46 ms of CPU time axis by axis, 17 by
# terms; by steps of 1, 28 × 28 × 192: 7 and 28.)
_POSITIONS, _STRIDED_POSITIONS = 8, 32
_FEW_WINDOWS = 4


class _Selection(Primitive):
    """Linear in its first operand; the second decides and has no derivative.

    Params:
      greatest: whether the greatest element wins, or the least.
      window: how the window slides over the second operand.
    """

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The operation on the tangents."""
        moved, deciding = primals
        out = self.bind(moved, deciding, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).tangent())
        return out, self.bind(tangents[0], deciding, **params)

    layout: Callable[..., Any] = layouts.windowed

    def batch(
        self, size: int, args: Values, mapped: Flags, *, window: Window, **params: Any
    ) -> Batched:
        """One more axis, over which the window does not extend."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both, window=window.batched(), **params), True


def _never(greatest: bool, dtype: Any) -> Any:
    return lowest(dtype) if greatest else highest(dtype)


def _better(greatest: bool, new: Any, old: Any) -> Any:
    """Returns where `new` beats what came before it."""
    return gt(new, old) if greatest else lt(new, old)


def _fold(t: Any, x: Any, greatest: bool, window: Window) -> Any:
    def combine(old: list[Any], new: list[Any]) -> list[Any]:
        wins = _better(greatest, new[0], old[0])
        return [select(wins, n, o) for n, o in zip(new, old, strict=True)]

    fills = [_never(greatest, typeof(x).dtype), 0]
    return fold_windows([x, t], fills, window, combine)[1]


@register
class SelectAndGatherAdd(_Selection):
    """The element of one array where another has each window's extremum.

    dtypes: float. StableHLO: reduce_window of pairs. The first of equals.
    """

    name = "select_and_gather_add"
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def abstract(
        self, tangents: Aval, operand: Aval, *, window: Window, **_: Any
    ) -> Aval:
        """One element for each window."""
        require_kind(self.name, operand, FLOAT)
        return Aval(window.out_shape(self.name, operand), tangents.dtype)

    def lower(
        self, ctx: Context, *operands: str, greatest: bool, window: Window
    ) -> str:
        """A fold on the CPU, else `reduce_window` of both arrays."""
        tangents, operand = ctx.avals_in
        (out,) = ctx.avals_out
        if not out.size:
            return ctx.constant(np.zeros((), out.dtype), out)
        if not out.ndim:
            return operands[0]
        if ctx.platform == "cpu" and window.folds(out):
            (result,) = ctx.compose(
                lambda t, x: _fold(t, x, greatest, window), operands
            )
            return str(result)
        scalars = [Aval((), operand.dtype), Aval((), tangents.dtype)]
        inits = [
            ctx.constant(_never(greatest, operand.dtype), scalars[0]),
            ctx.constant(np.zeros((), tangents.dtype), scalars[1]),
        ]

        def pick(x: Any, t: Any, y: Any, s: Any) -> list[Any]:
            wins = _better(greatest, y, x)
            return [select(wins, y, x), select(wins, s, t)]

        region = ctx.region(
            [*scalars, *scalars],
            lambda inner, names: inner.compose(pick, names, [*scalars, *scalars]),
            scalars,
        )
        ins = ", ".join(a.mlir for a in (operand, tangents, *scalars))
        best = out.update(dtype=operand.dtype)
        names = ctx.emit_many(
            2,
            f'"stablehlo.reduce_window"({operands[1]}, {operands[0]}, '
            f"{', '.join(inits)}) ({region}) {{{window.attributes()}}} : "
            f"({ins}) -> ({best.mlir}, {out.mlir})",
        )
        return names[1]

    def evaluate(
        self, tangents: Any, operand: Any, *, greatest: bool, window: Window
    ) -> Any:
        """The position of each window's extremum, by NumPy."""
        x = host_windows(operand, window, _never(greatest, operand.dtype))
        t = host_windows(tangents, window, 0)
        shape, size = x.shape[: operand.ndim], math.prod(window.dimensions)
        flat = x.astype(np.float64).reshape(*shape, size)
        at = (np.argmax if greatest else np.argmin)(flat, -1)
        taken = np.take_along_axis(t.reshape(*shape, size), at[..., None], -1)
        return np.array(taken[..., 0])

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """Gives each window's cotangent to the position of its extremum."""
        tangents, operand = args
        if type(tangents) is not Var:
            return super().transpose(cotangent, *args)
        out = SelectAndScatterAdd.bind(cotangent, operand, **params)
        return [out, None]


@register
class SelectAndScatterAdd(_Selection):
    """Adds each window's source to the position where the operand has its extremum.

    dtypes: float. StableHLO: select_and_scatter. The first of equals.
    """

    name = "select_and_scatter_add"
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def abstract(
        self, source: Aval, operand: Aval, *, window: Window, **_: Any
    ) -> Aval:
        """The operand's shape."""
        require_kind(self.name, operand, FLOAT)
        expected = window.out_shape(self.name, operand)
        assert source.shape == expected, "one source for each window"
        return Aval(operand.shape, source.dtype)

    def lower(
        self, ctx: Context, *operands: str, greatest: bool, window: Window
    ) -> str:
        """The transpose of the fold, or `select_and_scatter` of what is padded."""
        source, operand = ctx.avals_in
        (out,) = ctx.avals_out
        if not source.size:
            return ctx.constant(np.zeros((), out.dtype), out)
        if not out.ndim:
            return operands[0]
        plain = set(window.window_dilation) <= {1}
        native = plain and source.dtype == operand.dtype and ctx.platform == "tpu"
        if (window.folds(source) and not native) or not plain:
            (result,) = ctx.compose(
                lambda s, x: give_back(s, x, greatest, window), operands
            )
            return str(result)
        return self._native(ctx, *operands, greatest=greatest, window=window)

    def _native(
        self, ctx: Context, source: str, operand: str, *, greatest: bool, window: Window
    ) -> str:
        given, x = ctx.avals_in
        never = _never(greatest, x.dtype)
        (wide_x,) = ctx.compose(lambda v: padded(v, window, never), [operand], [x])
        lengths = tuple(
            dilated(n, base) + low + high
            for n, base, (low, high) in zip(
                x.shape, window.base_dilation, window.padding, strict=True
            )
        )
        wide, scalar = x.update(shape=lengths), Aval((), x.dtype)
        zero = ctx.constant(np.zeros((), x.dtype), scalar)
        pair = f"({scalar.mlir}, {scalar.mlir}) -> tensor<i1>"
        # True keeps what is selected already: of equals the first wins, as in
        # `_better`.
        how = "GE" if greatest else "LE"
        choose = ctx.region(
            [scalar, scalar],
            lambda c, n: [c.emit(f"stablehlo.compare {how}, {n[0]}, {n[1]} : {pair}")],
            [Aval((), np.dtype(bool))],
        )
        total = ctx.region(
            [scalar, scalar],
            lambda c, n: [c.emit(f"stablehlo.add {n[0]}, {n[1]} : {scalar.mlir}")],
            [scalar],
        )
        sizes = ", ".join(map(str, window.dimensions))
        strides = ", ".join(map(str, window.strides))
        scattered = ctx.emit(
            f'"stablehlo.select_and_scatter"({wide_x}, {source}, {zero}) '
            f"({choose}, {total}) {{window_dimensions = array<i64: {sizes}>, "
            f"window_strides = array<i64: {strides}>}} : "
            f"({wide.mlir}, {given.mlir}, {scalar.mlir}) -> {wide.mlir}"
        )
        (result,) = ctx.compose(
            lambda v: _unpad(v, x.shape, window), [scattered], [wide]
        )
        return str(result)

    def evaluate(
        self, source: Any, operand: Any, *, greatest: bool, window: Window
    ) -> Any:
        """Adds one source after the other."""
        indices = np.arange(operand.size, dtype=np.int64).reshape(operand.shape)
        x = host_windows(operand, window, _never(greatest, operand.dtype))
        positions = host_windows(indices, window, -1)
        shape, size = x.shape[: operand.ndim], math.prod(window.dimensions)
        flat = x.astype(np.float64).reshape(*shape, size)
        at = (np.argmax if greatest else np.argmin)(flat, -1)
        hit = np.take_along_axis(positions.reshape(*shape, size), at[..., None], -1)[
            ..., 0
        ]
        out = np.zeros(operand.size, np.float64)
        inside = hit >= 0
        np.add.at(out, hit[inside], source.astype(np.float64)[inside])
        return out.reshape(operand.shape).astype(source.dtype)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """Takes each window's cotangent from the position of its extremum."""
        source, operand = args
        if type(source) is not Var:
            return super().transpose(cotangent, *args)
        out = SelectAndGatherAdd.bind(cotangent, operand, **params)
        return [out, None]


def give_back(source: Any, x: Any, greatest: bool, window: Window) -> Any:
    """Returns each source at the position of its winner, summed over windows."""
    windows = math.prod(
        -(-n // s) for n, s in zip(window.dimensions, window.strides, strict=True)
    )
    most = _STRIDED_POSITIONS if windows <= _FEW_WINDOWS else _POSITIONS
    if math.prod(window.dimensions) > most:
        return _transposed_fold(source, x, greatest, window)
    wide = padded(x, window, _never(greatest, typeof(x).dtype))
    shape = typeof(wide).shape
    corners = [
        tuple(k * d for k, d in zip(position, window.window_dilation, strict=True))
        for position in np.ndindex(*window.dimensions)
    ]
    lengths = typeof(source).shape
    spans = [(n - 1) * s + 1 for n, s in zip(lengths, window.strides, strict=True)]
    best = winner = None
    for k, corner in enumerate(corners):
        limit = [c + span for c, span in zip(corner, spans, strict=True)]
        value = slice_(wide, corner, limit, window.strides)
        if best is None:
            # Eight bits are enough for these positions.
            best, winner = value, full(lengths, 0, np.int8)
            continue
        wins = _better(greatest, value, best)
        best = select(wins, value, best)
        winner = select(wins, full(lengths, k, np.int8), winner)
    zero = arith.constant(0, typeof(source).dtype)
    nothing = full(lengths, 0, typeof(source).dtype)
    total = None
    for k, corner in enumerate(corners):
        part = select(eq(winner, full(lengths, k, np.int8)), source, nothing)
        config = [
            (c, n - c - span, s - 1)
            for c, n, span, s in zip(corner, shape, spans, window.strides, strict=True)
        ]
        total = arith.add(total, pad(part, zero, config))
    return _unpad(total, typeof(x).shape, window)


def _transposed_fold(source: Any, x: Any, greatest: bool, window: Window) -> Any:
    """Returns the transpose of `_fold`, applied to `source`: axis by axis."""
    zero = full(typeof(x).shape, 0, typeof(source).dtype)
    lin = linearize_flat(lambda t: [_fold(t, x, greatest, window)], [zero])
    (out,) = backward(lin.nodes, lin.inputs, lin.tangents, [source])
    return zero if type(out) is Zero else out


def _unpad(x: Any, shape: Shape, window: Window) -> Any:
    """Returns the elements that `padded` kept in their positions."""
    if all(pair == (0, 0) for pair in window.padding) and typeof(x).shape == shape:
        return x
    cut = [(-low, -high, 0) for low, high in window.padding]
    kept = pad(x, arith.constant(0, typeof(x).dtype), cut)
    lengths = typeof(kept).shape
    return slice_(kept, (0,) * len(lengths), lengths, window.base_dilation)
