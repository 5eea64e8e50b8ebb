"""`scatter_apply`: a function applied to elements of an array at computed indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, as_array, host_of, put_host, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values, register
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import under
from fxflow.core.runtime.eager import interpreter
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_shape
from fxflow.lax.families import ANY, require_kind
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.scatter_family import (
    check_scatter,
    scatter_params,
    scatter_positions,
    scatter_text,
)


@register
class ScatterApply(Primitive):
    """Applies a graph to elements at computed indices. All dtypes. StableHLO: scatter.

    Params:
      graph: from one element to one of the same type.
      update_shape: what the shape of updates would be.
    """

    name = "scatter_apply"
    nondifferentiable = (
        "an index may come several times; gather the elements, apply the function "
        "and scatter the results instead"
    )
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def abstract(
        self, x: Aval, indices: Aval, *, update_shape: Shape, **params: Any
    ) -> Aval:
        """The type of the array."""
        updates = Aval(update_shape, x.dtype)
        check_scatter(self.name, x, indices, updates, params["dimension_numbers"])
        return x

    def lower(
        self,
        ctx: Context,
        x: str,
        indices: str,
        *,
        graph: Graph,
        update_shape: Shape,
        **params: Any,
    ) -> str:
        """`scatter` that looks at the old elements only."""
        aval, index_aval = ctx.avals_in
        scalar = Aval((), aval.dtype)
        updates = Aval(update_shape, aval.dtype)
        # StableHLO's scatter wants updates; the combination does not look at them.
        nothing = ctx.constant(np.zeros((), aval.dtype), scalar)
        nothing = ctx.broadcast(nothing, scalar, update_shape)

        def combine(inner: Context, names: list[str]) -> Sequence[str]:
            return inner.graph(graph, names[:1])

        operands, avals = (x, indices, nothing), (aval, index_aval, updates)
        return scatter_text(ctx, operands, avals, combine, **params)

    def evaluate(
        self,
        x: Any,
        indices: Any,
        *,
        graph: Graph,
        update_shape: Shape,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        **_: Any,
    ) -> Any:
        """The graph run for one element after the other."""
        out = np.array(x)
        clip = mode is GatherScatterMode.CLIP
        index, values = scatter_positions(
            dimension_numbers, x, indices, np.zeros(update_shape, x.dtype), clip
        )
        if not values.size:
            return out
        columns = [np.broadcast_to(i, values.shape).ravel() for i in index]
        for position in zip(*columns, strict=True) if columns else [()]:
            element = put_host(np.array(out[position]), Aval((), x.dtype))
            # Eagerly, whatever is being traced around this.
            (new,) = under(interpreter(), graph.evaluate, element)
            out[position] = host_of(as_array(new))
        return out

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of the slices, or one batching dimension."""
        x, indices = args
        params["dimension_numbers"] = params["dimension_numbers"].batched(
            True, mapped[1]
        )
        params["update_shape"] = (size, *params["update_shape"])
        if mapped[1]:
            params["indices_are_sorted"] = False
        return self.bind(materialize(x, size, mapped[0]), indices, **params), True


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Applies a function to elements of an array at computed indices.

    Args:
      operand: array.
      scatter_indices: `int[..., n]`: index vectors along the last axis.
      func: from one element (0-d) to one of the same dtype. It may not use traced
        values from outside.
      dimension_numbers: how the axes correspond.
      update_shape: the shape that updates would have, see `scatter`.
      indices_are_sorted: see `scatter`.
      unique_indices: see `scatter`.
      mode: see `scatter`.

    Returns:
      Array of the type of `operand`; an index that comes several times has the
      function applied as often. There is no derivative.

    Raises:
      ShapeError, AxisError: the shapes and dimension numbers are inconsistent, or
        `func` does not return one element.
      DtypeError: `func` changes the dtype, or indices are not integers.
      ArgumentError: unknown mode, or `func` uses a value from outside.

    Example:
      >>> from fxflow.lax import mul
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> x, at = np.array([1, 2], "i4"), np.array([[1], [1]])
      >>> scatter_apply(x, at, lambda e: mul(e, -2), numbers, update_shape=(2,))
      Array([1, 8], dtype=int32)

    Source: StableHLO `scatter`.
    """
    params = scatter_params(
        "scatter_apply", dimension_numbers, indices_are_sorted, unique_indices, mode
    )
    aval = typeof(operand)
    require_kind("scatter_apply", aval, ANY)
    scalar = Aval((), aval.dtype)
    graph, consts = trace_flat(
        lambda element: [func(element)],
        [scalar],
        name=getattr(func, "__name__", "func"),
        labels=("element",),
    )
    if consts:
        raise ArgumentError(
            "scatter_apply: func uses "
            f"{', '.join(str(typeof(c)) for c in consts)} from outside, which the "
            "combination inside a scatter cannot see: use Python numbers"
        )
    (out,) = graph.out_avals
    if out.shape:
        raise ShapeError(f"scatter_apply: func must return one element, got {out}")
    if out.dtype != aval.dtype:
        raise DtypeError(
            f"scatter_apply: func must keep the dtype of {scalar}, it returns {out}"
        )
    return ScatterApply.bind(
        operand,
        scatter_indices,
        graph=graph,
        update_shape=canonical_shape("scatter_apply", update_shape, "update_shape"),
        **params,
    )
