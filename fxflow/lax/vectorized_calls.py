"""Calls of functions whose vectorized form the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fxflow.core.arrays import AbstractRef, Aval, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.interpreters.calls import GraphCall, with_tangents
from fxflow.core.interpreters.jvp import jvp_flat, jvp_graph
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.discharge import discharge, keeps_rules
from fxflow.core.ir.graph import Graph, Node, has_refs
from fxflow.core.ir.higher_order import chosen, live_flags, split_at, spread
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.calls import JitCall
from fxflow.lax.custom_rules import memo_beside
from fxflow.lax.reduction import reduce_or


class VmapRule(Protocol):
    """See the module."""

    def __call__(
        self,
        size: int,
        mapped: Sequence[bool],
        args: Sequence[Any],
        active: Any = None,
        /,
    ) -> tuple[list[Any], list[bool]]:
        """Returns results and which of them are mapped.

        Args:
          size: length of the mapped axis.
          mapped: which arguments are mapped.
          args: the arguments, mapped axes in front.
          active: bool[size]: for which slices effects are wanted; None: all.
        """


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

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """A call of the graph of arrays, whose rule is given references."""
        graph, rule = params["graph"], params["rule"]
        count = params["num_consts"]
        if rule is None or not has_refs(graph.in_avals) or keeps_rules(graph):
            return super().discharge(args, params)
        written = discharge(graph).written
        memo = memo_beside(rule, graph)
        known = memo.get("discharged")
        if known is None:
            given = [type(a) is AbstractRef for a in graph.in_avals[count:]]
            known = memo["discharged"] = DischargedRule(
                rule, given, [i - count for i in written], graph.name
            )
        return super().discharge(args, {**params, "rule": known})

    def planned(self, params: dict[str, Any]) -> dict[str, Any]:
        """No rule: nothing is vectorized any more."""
        return {**params, "rule": None}

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """The masked function; its rule is the user's, with the flag as an argument."""
        graph, rule = params["graph"], params["rule"]
        count = params["num_consts"]
        memo = memo_beside(rule, graph)
        known = memo.get("masked")
        if known is None:
            masked = masked_graph(graph)
            flag, *inputs = masked.inputs
            inputs.insert(count, flag)
            known = masked.replace(inputs=inputs), MaskedRule(rule)
            memo["masked"] = known
        consts, arguments = split_at(list(args), count)
        given = {"graph": known[0], "num_consts": count, "rule": known[1]}
        return self.bind(*consts, active, *arguments, **given)

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


class MaskedRule:
    """A rule with one more argument in front: whether the effects of a slice happen.

    A user's rule that has an argument `active` gets it. The effects of another rule
    happen for all slices if they are wanted for one.

    Args:
      rule: the user's.
    """

    def __init__(self, rule: VmapRule) -> None:
        self._rule = rule
        self.__name__: str = getattr(rule, "__name__", type(rule).__name__)

    def __call__(
        self,
        size: int,
        mapped: Sequence[bool],
        args: Sequence[Any],
        active: Any = None,
        /,
    ) -> tuple[list[Any], list[bool]]:
        """See `VmapRule`."""
        own, *values = args
        wanted, *flags = mapped
        each = materialize(own, size, wanted)
        if active is not None:
            each = bitwise_and(each, active)
        out_mapped: list[bool] = []

        def run(each: Any, *values: Any) -> list[Any]:
            outs, out_mapped[:] = self._rule(size, flags, values, each)
            return outs

        avals = [typeof(x) for x in (each, *values)]
        graph, consts = trace_flat(run, avals, name=self.__name__)
        if not graph.effects:
            return graph.evaluate(*consts, each, *values), out_mapped
        masked, happens = masked_graph(graph), reduce_or(each, (0,))
        return masked.evaluate(happens, *consts, each, *values), out_mapped


class DischargedRule:
    """A rule that is given the contents of references, and returns what is new.

    Args:
      rule: the user's, of references to arrays with mapped axes in front.
      given: which arguments are references.
      written: those that the function writes to; negative where it captured one.
      name: of the function.
    """

    def __init__(
        self, rule: VmapRule, given: Sequence[bool], written: Sequence[int], name: str
    ) -> None:
        self._rule, self._given, self._written = rule, given, written
        self._name = name
        self.__name__: str = getattr(rule, "__name__", type(rule).__name__)

    def __call__(
        self,
        size: int,
        mapped: Sequence[bool],
        args: Sequence[Any],
        active: Any = None,
        /,
    ) -> tuple[list[Any], list[bool]]:
        """See `VmapRule`."""
        values, flags = list(args), list(mapped)
        for i in self._written:
            if i < 0:
                raise ArgumentError(
                    f"custom_vmap: {self._name} writes to a reference that it "
                    "captured: pass it as an argument"
                )
            values[i] = materialize(values[i], size, flags[i])
            flags[i] = True
        out_mapped: list[bool] = []
        masks = [] if active is None else [active]

        def run(*values: Any) -> list[Any]:
            mask, rest = split_at(list(values), len(masks))
            outs, out_mapped[:] = self._rule(size, flags, rest, *mask)
            return outs

        avals = [
            AbstractRef(typeof(x)) if is_ref else typeof(x)
            for x, is_ref in zip(values, self._given, strict=True)
        ]
        graph, consts = trace_flat(
            run, [*map(typeof, masks), *avals], name=self.__name__
        )
        before = len(consts) + len(masks)
        pure = discharge(graph, frozenset(before + i for i in self._written))
        if len(pure.written) != len(self._written):
            raise ArgumentError(
                f"custom_vmap: the rule of {self._name} writes to a reference that "
                f"{self._name} does not write to"
            )
        outs = pure.graph.evaluate(*consts, *masks, *values)
        return outs, [*out_mapped, *(True for _ in self._written)]


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
        size: int,
        mapped: Sequence[bool],
        values: Sequence[Any],
        active: Any = None,
        /,
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
            outs, out_mapped[:] = rule(size, flags, arguments, active)
            return outs

        outs, out_tangents = jvp_flat(run, primals, tangents)
        live = [instantiate(t) for t in chosen(out_tangents, has)]
        return [*outs, *live], [*out_mapped, *chosen(out_mapped, has)]

    return jvp_of_rule
