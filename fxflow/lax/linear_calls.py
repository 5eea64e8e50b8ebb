"""Calls of linear functions whose transposes the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from fxflow._frozen import Frozen
from fxflow.core.arrays import Aval
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.ir.arith import add, instantiate
from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.core.ir.higher_order import (
    HigherOrder,
    chosen,
    live_flags,
    run_host,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.runtime.lowering import Context

T = TypeVar("T")


class LinearCallParams(Frozen):
    """The parameters of `LinearCall`.

    Attributes:
      graph: of the function: inputs what it captured, residuals, what it is linear in.
      transposed: of its transpose: inputs what that captured, residuals, cotangents;
        outputs a cotangent for each input that the function is linear in.
      num_consts: how many values the function captured.
      num_transposed_consts: how many values its transpose captured.
      num_residuals: the number of residuals.
    """

    graph: Graph
    transposed: Graph
    num_consts: int
    num_transposed_consts: int
    num_residuals: int

    def split(self, operands: Sequence[T]) -> list[list[T]]:
        """Returns what either graph captured, residuals, and linear operands."""
        counts = self.num_consts, self.num_transposed_consts, self.num_residuals
        return split_at(operands, *counts)

    def used(self, operands: Sequence[T]) -> list[T]:
        """Returns what the graph takes."""
        consts, _, residuals, linear = self.split(operands)
        return [*consts, *residuals, *linear]


@register
class LinearCall(HigherOrder):
    """Call of a linear graph with its transpose. dtypes: any. Lowered to a call.

    Operands are what the function captured, what its transpose captured, residuals, and
    what it is linear in.

    Params: see `LinearCallParams`.
    """

    name = "linear_call"

    def abstract(self, *avals: Aval, graph: Graph, **params: Any) -> list[Aval]:
        """The graph's own types."""
        return graph.out_avals

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """`func.call`."""
        p = LinearCallParams(**params)
        return ctx.call(p.graph, p.used(operands))

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """NumPy's evaluation of the graph."""
        p = LinearCallParams(**params)
        return run_host(p.graph, p.used(values))

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The call itself, on the tangents of what it is linear in."""
        p = LinearCallParams(**params)
        moving = live_flags(tangents)
        *_, linear = p.split(tangents)
        *values, _ = p.split(primals)
        given = [v for group in values for v in group]
        outs = self.bind(*primals, **params)
        tangents_out: list[Any] = [Zero(a.tangent()) for a in p.graph.out_avals]
        if any(live_flags(linear)):
            tangents_out = self.bind(*given, *map(instantiate, linear), **params)
        consts, _, residuals, _ = p.split(moving)
        nonzero = [*consts, *residuals, *(False for _ in linear)]
        if any(nonzero):
            # Not linear in these: the derivative of its operations.
            graph, has = jvp_graph(p.graph, nonzero)
            used = chosen(p.used(tangents), nonzero)
            found = graph.evaluate(*p.used(primals), *used)[len(outs) :]
            more = spread(found, has, [a.tangent() for a in p.graph.out_avals])
            tangents_out = [add(*pair) for pair in zip(tangents_out, more, strict=True)]
        return outs, tangents_out

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """A call of the transpose, whose transpose is the function."""
        p = LinearCallParams(**params)
        consts, others, residuals, linear = p.split(args)
        cts = self.bind(
            *others,
            *consts,
            *residuals,
            *map(instantiate, cotangent),
            graph=p.transposed,
            transposed=p.graph,
            num_consts=p.num_transposed_consts,
            num_transposed_consts=p.num_consts,
            num_residuals=p.num_residuals,
        )
        fixed = [None] * (len(args) - len(linear))
        given = [
            ct if type(a) is Var else None for a, ct in zip(linear, cts, strict=True)
        ]
        return [*fixed, *given]

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """Both graphs vectorized; all that they are linear in is mapped."""
        p = LinearCallParams(**params)
        *values, linear = p.split(args)
        *flags, linear_flags = p.split(mapped)
        of_consts, of_others, of_residuals = flags
        every = [True] * len(linear)
        graph, _ = batch_graph(
            p.graph, size, [*of_consts, *of_residuals, *every], True, axis_name
        )
        outs = [True] * len(p.graph.outputs)
        transposed, _ = batch_graph(
            p.transposed, size, [*of_others, *of_residuals, *outs], True, axis_name
        )
        rows = [
            materialize(x, size, flag)
            for x, flag in zip(linear, linear_flags, strict=True)
        ]
        given = [v for group in values for v in group]
        new = {**params, "graph": graph, "transposed": transposed}
        return self.bind(*given, *rows, **new), outs

    def dce(self, node: Node, wanted: Flags) -> Node:
        """The node: the transpose is of all operands and results."""
        return node
