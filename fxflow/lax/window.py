"""Windowed reductions: pooling, moving sums, and any associative computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, put_host, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph
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
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.convolution_dims import dilated
from fxflow.lax.custom_reduction import (
    GraphReduction,
    checked_operands,
    fold_on_host,
    is_identity,
    named_operation,
    scalar_graph,
)
from fxflow.lax.families import ANY, NUMERIC, Kinds, Linear, kind, require_kind
from fxflow.lax.padding import pad
from fxflow.lax.reduction import (
    NATIVE,
    Maximum,
    Minimum,
    Monoid,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Sum,
)
from fxflow.lax.select import select
from fxflow.lax.tree_reduction import apply_elements
from fxflow.lax.window_selection import SelectAndGatherAdd
from fxflow.lax.windows import (
    Window,
    fold_windows,
    host_windows,
    make_window,
    padded,
    positions,
)


class WindowReduction(Monoid, Primitive):
    """Combines the elements of each window.

    Attributes:
      kinds: dtypes it takes.
    """

    kinds: ClassVar[Kinds] = ANY
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.windowed

    def abstract(self, operand: Aval, *, window: Window) -> Aval:
        """As many elements as windows."""
        if kind(operand.dtype) not in self.kinds:
            require_kind(self.name, operand, self.kinds)
        return Aval(window.out_shape(self.name, operand), operand.dtype)

    def lower(self, ctx: Context, *operands: str, window: Window) -> str:
        """A fold on the CPU, else `reduce_window`."""
        (operand,) = ctx.avals_in
        (out,) = ctx.avals_out
        if not out.size:
            return ctx.constant(np.zeros((), out.dtype), out)
        if not out.ndim:
            return operands[0]
        fill = self.identity(operand.dtype)
        if ctx.platform == "cpu" and window.folds(out):
            (folded,) = ctx.compose(
                lambda x: fold_windows(
                    [x], [fill], window, lambda a, b: [self.combine(a[0], b[0])]
                ),
                operands,
            )
            return str(folded)
        return self.window_text(ctx, operands[0], operand, out, window.attributes())

    def evaluate(self, operand: Any, *, window: Window) -> Any:
        """The ufunc's `reduce` over views of the windows."""
        dtype = operand.dtype
        wide = dtype
        if dtype.char not in NATIVE:
            wide = np.dtype(np.float32 if dtypes.is_floating(dtype) else np.int32)
        fill = np.asarray(self.identity(dtype)).astype(wide)
        views = host_windows(operand.astype(wide), window, fill)
        axes = tuple(range(operand.ndim, 2 * operand.ndim))
        return np.asarray(self.ufunc.reduce(views, axes, wide)).astype(dtype)

    def batch(
        self, size: int, args: Values, mapped: Flags, *, window: Window
    ) -> Batched:
        """One more axis, over which the window does not extend."""
        return self.bind(args[0], window=window.batched()), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """One operation for each element of each window."""
        out = self.abstract(*avals, **params)
        positions = int(np.prod(params["window"].dimensions))
        return {**super().cost(*avals, **params), "flops": float(out.size * positions)}


@register
class ReduceWindowSum(Sum, WindowReduction, Linear):
    """Sum of each window. dtypes: numeric. StableHLO: reduce_window, add."""

    name = "reduce_window_sum"
    kinds = NUMERIC

    def transpose(self, cotangent: Any, *args: Any, window: Window) -> Values:
        """Window sums of the cotangent spread out by the strides."""
        (operand,) = args
        shape = operand.aval.shape
        if not typeof(cotangent).size or not operand.aval.size:
            return [Zero(operand.aval)]
        config = []
        for n, length, w, s, (low, _), b, d in zip(
            shape, typeof(cotangent).shape, *window, strict=True
        ):
            size = dilated(w, d)
            # The full window sum, less the padding of the forward one.
            before = size - 1 - low
            after = dilated(n, b) + size - 1 - dilated(length, s) - before
            config.append((before, after, s - 1))
        spread = pad(cotangent, arith.constant(0, operand.aval.dtype), config)
        back = Window(
            window.dimensions,
            window.base_dilation,
            ((0, 0),) * len(shape),
            (1,) * len(shape),
            window.window_dilation,
        )
        return [self.bind(spread, window=back)]


class WindowExtremum(WindowReduction):
    """Extremum of each window."""

    greatest: ClassVar[bool]

    def jvp(self, primals: Values, tangents: Values, *, window: Window) -> Dual:
        """The tangent of the first element that is the extremum."""
        (x,), (t,) = primals, tangents
        out = self.bind(x, window=window)
        return out, SelectAndGatherAdd.bind(t, x, greatest=self.greatest, window=window)


@register
class ReduceWindowMax(Maximum, WindowExtremum):
    """Maximum of each window. dtypes: all. StableHLO: reduce_window, maximum."""

    name = "reduce_window_max"
    greatest = True


@register
class ReduceWindowMin(Minimum, WindowExtremum):
    """Minimum of each window. dtypes: all. StableHLO: reduce_window, minimum."""

    name = "reduce_window_min"
    greatest = False


# -- any associative computation -------------------------------------------------------


@register
class ReduceWindow(GraphReduction):
    """Windowed reduction by a given computation. dtypes: all. StableHLO: reduce_window.

    Padding is left out.

    Params:
      graph: takes two elements of each array, gives one of each.
      window: how the window slides.
    """

    name = "reduce_window"
    layout: Callable[..., Any] = layouts.windowed

    def abstract(self, *avals: Aval, graph: Graph, window: Window) -> list[Aval]:
        """As many elements as windows."""
        count = len(avals) // 2
        return [Aval(window.out_shape(self.name, a), a.dtype) for a in avals[:count]]

    def lower(
        self, ctx: Context, *operands: str, graph: Graph, window: Window
    ) -> list[str]:
        """`reduce_window` with the graph as its region."""
        count = len(operands) // 2
        if not ctx.avals_out[0].size:
            return [ctx.constant(np.zeros((), a.dtype), a) for a in ctx.avals_out]
        if not ctx.avals_out[0].ndim:
            return ctx.graph(graph, [*operands[count:], *operands[:count]])
        scalars = [Aval((), a.dtype) for a in ctx.avals_in[count:]]
        region = ctx.region(
            [*scalars, *scalars],
            lambda inner, names: inner.graph(graph, names),
            scalars,
        )
        ins = ", ".join(a.mlir for a in ctx.avals_in)
        outs = ", ".join(a.mlir for a in ctx.avals_out)
        return ctx.emit_many(
            count,
            f'"stablehlo.reduce_window"({", ".join(operands)}) ({region}) '
            f"{{{window.attributes()}}} : ({ins}) -> ({outs})",
        )

    def evaluate(
        self, *values: Any, graph: Graph, window: Window
    ) -> list[np.ndarray[Any, Any]]:
        """One element after the other."""
        count = len(values) // 2
        inits = values[count:]
        views = [
            host_windows(v, window, i)
            for v, i in zip(values[:count], inits, strict=True)
        ]
        shape = views[0].shape[: values[0].ndim]
        size = int(np.prod(window.dimensions))
        rows = [v.reshape(*shape, size) for v in views]
        # Padding takes no part: an initial value need not be an identity.
        present = host_windows(np.ones(values[0].shape, bool), window, False)
        present = present.reshape(*shape, size)
        return fold_on_host(graph, rows, inits, present)

    def fold(self, values: Values, *, graph: Graph, window: Window) -> list[Any]:
        """One window position after another."""
        return _fold(graph, values, window)

    def batched_params(self, *, window: Window, **params: Any) -> dict[str, Any]:
        """One more axis."""
        return {**params, "window": window.batched()}


def _fold(graph: Graph, values: Values, window: Window) -> list[Any]:
    """Reduces all windows side by side, position by position, as XLA does.

    A position where a window has no element, in padding or between dilated elements, is
    left out.
    """
    count = len(values) // 2
    operand = typeof(values[0])
    shape = window.out_shape("reduce_window", operand)
    outs = [broadcast_in_dim(i, shape, ()) for i in values[count:]]
    if not all(shape):
        return outs
    columns = []
    for value, init in zip(values[:count], values[count:], strict=True):
        rows = [padded(value, window, init)]
        for axis in range(len(shape)):
            rows = [part for row in rows for part in positions(row, window, axis)]
        columns.append(rows)
    present = host_windows(np.ones(operand.shape, bool), window, False)
    present = present.reshape(*shape, len(columns[0]))
    for i, elements in enumerate(zip(*columns, strict=True)):
        mask = present[..., i]
        if not mask.any():
            continue
        new = apply_elements(graph, [*outs, *elements])
        if not mask.all():
            here = put_host(np.ascontiguousarray(mask), Aval(shape, mask.dtype))
            new = [select(here, n, o) for n, o in zip(new, outs, strict=True)]
        outs = new
    return outs


# -- public ----------------------------------------------------------------------------

_NAMED: dict[str, tuple[Any, Any]] = {
    "add": (ReduceWindowSum, ReduceSum),
    "max": (ReduceWindowMax, ReduceMax),
    "min": (ReduceWindowMin, ReduceMin),
}


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduces each window of an array by an associative computation.

    Args:
      operand: pytree of arrays of one shape.
      init_value: pytree of 0-d values that each reduction starts with; these must be
        identities of the computation, since the compiler decides how often they enter.
      computation: takes two pytrees of 0-d values and returns one; associative.
      window_dimensions: length of the window along each axis.
      window_strides: steps between windows; None is 1.
      padding: `"SAME"`, `"SAME_LOWER"`, `"VALID"` or a pair for each axis.
      base_dilation: distance between neighbouring elements of the array; None is 1.
      window_dilation: distance between neighbouring elements of the window; None is 1.

    Returns:
      A pytree of arrays with one element for each window.

    Raises:
      ArgumentError: lengths are wrong, or the computation captures arrays.
      ShapeError, DtypeError: operands and initial values are incompatible.

    Special cases:
      The derivative of a maximum goes to the first of equal elements.

    Example:
      >>> x = np.float32([1, 5, 2, 4])
      >>> print(reduce_window(x, -np.inf, lambda a, b: lax.max(a, b), (2,)))
      [5. 5. 4.]

    Source: StableHLO reduce_window.
    """
    name = "reduce_window"
    arrays, inits, treedef = checked_operands(name, operand, init_value)
    window = make_window(
        name,
        typeof(arrays[0]).shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    scalars = [Aval((), typeof(a).dtype) for a in arrays]
    graph = scalar_graph(name, computation, scalars, treedef)
    named = _NAMED.get(named_operation(graph) or "")
    if named is not None and is_identity(named[1], inits[0]):
        out: Array = named[0].bind(arrays[0], window=window)
        return treedef.unflatten([out])
    return treedef.unflatten(
        ReduceWindow.bind(*arrays, *inits, graph=graph, window=window)
    )
