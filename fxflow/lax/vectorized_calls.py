"""Calls of functions whose vectorized form the user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.interpreters.calls import GraphCall, with_tangents
from fxflow.core.interpreters.jvp import jvp_flat, jvp_graph
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Graph, Node
from fxflow.core.ir.higher_order import chosen, live_flags, split_at, spread
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError
from fxflow.lax.calls import JitCall
from fxflow.lax.custom_rules import memo_beside

# Called with the length of the mapped axis, which arguments are mapped, and the
# arguments, mapped axes in front; returns results and which of them are mapped.
VmapRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


# `register` has made it an instance, which mypy does not see.
_call: Any = JitCall


@register
class CustomVmapCall(GraphCall):
    """Call with a vectorized form by the user. dtypes: any. Lowered to a call.

    Operands are what the function captured, and the arguments.

    Params:
      graph: of the function.
      num_consts: how many values it captured.
      rule: a `VmapRule` of the arguments.
    """

    name = "custom_vmap_call"

    def lower(
        self, ctx: Context, *operands: str, graph: Graph, **params: Any
    ) -> list[str]:
        """`func.call`."""
        return ctx.call(graph, operands)

    def jvp(
        self,
        primals: Values,
        tangents: Values,
        *,
        graph: Graph,
        num_consts: int,
        rule: VmapRule,
    ) -> Dual:
        """A call of the derivative, whose vectorized form is the rule's derivative."""
        nonzero = live_flags(tangents)
        if any(nonzero[:num_consts]):
            raise ArgumentError(
                f"custom_vmap: {graph.name} closes over a value that is being "
                "differentiated: pass it as an argument"
            )
        derived, has = jvp_graph(graph, nonzero)
        memo, key = memo_beside(rule, derived), tuple(nonzero)
        linear = memo.get(key)
        if linear is None:
            linear = memo[key] = _rule_of_jvp(rule, nonzero[num_consts:], has)
        outs = self.bind(
            *primals,
            *chosen(tangents, nonzero),
            graph=derived,
            num_consts=num_consts,
            rule=linear,
        )
        return with_tangents(outs, graph.out_avals, has)

    def linearize(
        self, primals: Values, tangents: Values, *, graph: Graph, **params: Any
    ) -> Dual:
        """The function's own: a rule of both values and tangents cannot be cut."""
        return _call.linearize(primals, tangents, graph=graph)  # type: ignore[no-any-return]

    def planned(self, params: dict[str, Any]) -> dict[str, Any]:
        """No rule: nothing is vectorized any more."""
        return {**params, "rule": None}

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> None:
        """No rule: the user's vectorized form knows of no mask."""

    def transpose(
        self, cotangent: Values, *args: Any, graph: Graph, **params: Any
    ) -> list[Any]:
        """The function's own."""
        return _call.transpose(cotangent, *args, graph=graph)  # type: ignore[no-any-return]

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        graph: Graph,
        num_consts: int,
        rule: VmapRule,
    ) -> Batched:
        """The user's rule."""
        if any(mapped[:num_consts]):
            raise ArgumentError(
                f"custom_vmap: {graph.name} closes over a value that is mapped: pass "
                "it as an argument"
            )
        return rule(size, mapped[num_consts:], args[num_consts:])

    def forwarded(self, **params: Any) -> list[int | None]:
        """None: the rule need not."""
        return []

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> None:
        """Nothing runs: the rule is of all operands."""
        return None

    def dce(self, node: Node, wanted: Flags) -> Node:
        """The node: the rule is of all operands and results."""
        return node

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The rule by its name."""
        rule = params["rule"]
        return {**params, "rule": getattr(rule, "__name__", type(rule).__name__)}


def _rule_of_jvp(
    rule: VmapRule, nonzero: Sequence[bool], has: Sequence[bool]
) -> VmapRule:
    """Returns the vectorized form of a derivative: the derivative of the rule.

    Args:
      rule: of the function.
      nonzero: which arguments have a tangent.
      has: which results have one.
    """

    def jvp_of_rule(
        size: int, mapped: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        count = len(nonzero)
        primals, given = split_at(list(values), count)
        flags, given_flags = split_at(list(mapped), count)
        types = [typeof(x).tangent() for x in primals]
        tangents = spread(given, nonzero, types)
        # A rule that has an argument mapped has its tangent mapped.
        of_tangents = spread(given_flags, nonzero, types)
        for i, flag in enumerate(of_tangents):
            if type(flag) is Zero or flag == flags[i]:
                continue
            primals[i] = materialize(primals[i], size, flags[i])
            tangents[i] = materialize(tangents[i], size, flag)
            flags[i] = True
        tangents = [
            Zero(typeof(x).tangent()) if type(t) is Zero else t
            for x, t in zip(primals, tangents, strict=True)
        ]
        out_mapped: list[bool] = []

        def run(*arguments: Any) -> list[Any]:
            outs, out_mapped[:] = rule(size, flags, arguments)
            return outs

        outs, out_tangents = jvp_flat(run, primals, tangents)
        live = [instantiate(t) for t in chosen(out_tangents, has)]
        return [*outs, *live], [*out_mapped, *chosen(out_mapped, has)]

    return jvp_of_rule
