"""Calls of functions whose derivatives the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from fxflow._frozen import Frozen
from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import BatchTrace, batch_graph
from fxflow.core.interpreters.calls import transposed, with_terms
from fxflow.core.interpreters.jet import jet_graph, listed_terms
from fxflow.core.interpreters.jvp import JVPTrace
from fxflow.core.interpreters.linearize import LinearizeTrace
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir.graph import Graph, Node, forwarded
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carries_tangent,
    chosen,
    flow_through,
    live_flags,
    run_host,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.ir.trace import Tracer, state, under
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import Rewritten
from fxflow.errors import NotDifferentiableError
from fxflow.lax.custom_rules import (
    Backward,
    BatchedBackward,
    BatchedJVPRule,
    BatchedVJPRule,
    JVPRule,
    MaskedJVPRule,
    MaskedVJPRule,
    VJPRule,
    memo_beside,
    rule_name,
)

T = TypeVar("T")


class CustomCallParams(Frozen):
    """The parameters of `CustomJVPCall` and `CustomVJPCall`.

    Attributes:
      graph: of the function: inputs what it captured, then the arguments.
      num_consts: how many values the function captured.
      num_rule_consts: how many values the rule captured.
      rule: the derivative.
    """

    graph: Graph
    num_consts: int
    num_rule_consts: int
    rule: Any

    def split(self, operands: Sequence[T]) -> list[list[T]]:
        """Returns what the graph captured, what the rule captured, and arguments."""
        return split_at(operands, self.num_consts, self.num_rule_consts)

    def used(self, operands: Sequence[T]) -> list[T]:
        """Returns what the graph takes."""
        consts, _, arguments = self.split(operands)
        return [*consts, *arguments]


class CustomCall(HigherOrder):
    """A call of a graph with a derivative of its own.

    Operands are what the function captured, what the rule captured, and the arguments.

    Params: see `CustomCallParams`.
    """

    inlines = True
    batched_rule: ClassVar[type[BatchedJVPRule | BatchedVJPRule]]
    masked_rule: ClassVar[type[MaskedJVPRule | MaskedVJPRule]]

    def abstract(self, *avals: Aval, graph: Graph, **params: Any) -> list[Aval]:
        """The graph's own types."""
        return graph.out_avals

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """The graph, in place."""
        p = CustomCallParams(**params)
        return ctx.graph(p.graph, p.used(operands))

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """NumPy's evaluation of the graph."""
        p = CustomCallParams(**params)
        return run_host(p.graph, p.used(values))

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """The transpose of the graph, if that is linear."""
        p = CustomCallParams(**params)
        cts = transposed(Graph.evaluate, p.graph, cotangent, p.used(args))
        consts, rest = split_at(cts, p.num_consts)
        return [*consts, *[None] * p.num_rule_consts, *rest]

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """The rule, with the references themselves, or the function's operations."""
        p = CustomCallParams(**params)
        trace = state.trace
        mine = any(isinstance(a, Tracer) and a._trace is trace for a in args)
        if mine and isinstance(trace, JVPTrace | LinearizeTrace):
            return trace.process(self, tuple(args), params)  # type: ignore[no-any-return]
        if mine and isinstance(trace, BatchTrace):
            around: Any = trace.parent
            while around is not None:
                if isinstance(around, JVPTrace | LinearizeTrace):
                    raise NotDifferentiableError(
                        f"{self.name}: {p.graph.name} is given a reference in a vmap "
                        "that is being differentiated, where its rule cannot be "
                        "vectorized: differentiate inside of the vmap"
                    )
                around = around.parent
        elif trace.parent is not None and not mine:
            return under(trace.parent, self.bind, *args, **params)  # type: ignore[no-any-return]
        return p.graph.evaluate(*p.used(args))

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The graph's; what the rule captured is not used any more."""
        p = CustomCallParams(**node.params)
        _, captured, _ = p.split(kinds)
        graph, wanted, outs = layout.call(p.graph, p.used(kinds))
        consts, rest = split_at(wanted, p.num_consts)
        return Rewritten(
            [*consts, *captured, *rest], outs, vars(p.replace(graph=graph))
        )

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """The vectorized function with the vectorized rule."""
        p = CustomCallParams(**params)
        graph, used = p.graph, p.used(mapped)
        memo = memo_beside(p.rule, graph)
        key = (size, tuple(mapped), axis_name)
        batched = memo.get(key)
        if batched is None:
            _, have = batch_graph(graph, size, used, axis_name=axis_name)
            batched = self.batched_rule(
                p.rule, size, mapped[p.num_consts :], axis_name, have
            )
            avals = [typeof(a) for a in args[p.num_consts :]]
            # Within a rule that calls its own function the answer is not final.
            if batched.settle(graph, avals, p.num_rule_consts):
                memo[key] = batched
        out_mapped = batched.out_mapped
        derived, _ = batch_graph(graph, size, used, out_mapped, axis_name)
        new = p.replace(graph=derived, rule=batched)
        return self.bind(*args, **vars(new)), out_mapped

    def planned(self, params: dict[str, Any]) -> dict[str, Any]:
        """No rule: nothing is differentiated any more."""
        return {**params, "rule": None}

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """The masked function, with the masked rule."""
        p = CustomCallParams(**params)
        consts, captured, arguments = p.split(args)
        new = CustomCallParams(
            graph=masked_graph(p.graph),
            num_consts=p.num_consts + 1,
            num_rule_consts=p.num_rule_consts + 1,
            rule=self.masked_rule(p.rule),
        )
        return self.bind(active, *consts, active, *captured, *arguments, **vars(new))

    def forwarded(self, **params: Any) -> list[int | None]:
        """The graph's."""
        p = CustomCallParams(**params)
        return [
            f if f is None or f < p.num_consts else f + p.num_rule_consts
            for f in forwarded(p.graph)
        ]

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the graph."""
        p = CustomCallParams(**params)
        used = p.used(sources)
        return flow_through(p.graph, used), [used]

    def require_constants(self, graph: Graph, tangents: Values) -> None:
        """Checks that nothing the function captured is being differentiated.

        Raises:
          NotDifferentiableError: the rule says nothing about it.
        """
        for t in tangents:
            if type(t) is not Zero:
                raise NotDifferentiableError(
                    f"{self.name}: {graph.name} closes over a value {typeof(t)} that "
                    "is being differentiated, but custom rules cover arguments only: "
                    "pass the value as an argument"
                )

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The rule by its name."""
        return {"graph": params["graph"], "rule": rule_name(params["rule"])}


@register
class CustomJVPCall(CustomCall):
    """Call with a forward derivative by the user. dtypes: any. Lowered in place."""

    name = "custom_jvp"
    batched_rule = BatchedJVPRule
    masked_rule = MaskedJVPRule

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The user's rule."""
        p = CustomCallParams(**params)
        _, captured, arguments = p.split(primals)
        const_tangents, _, arg_tangents = p.split(tangents)
        self.require_constants(p.graph, const_tangents)
        # Nothing is differentiated: the rule need not run.
        if not any(live_flags(arg_tangents)):
            outs = self.bind(*primals, **params)
            return outs, [Zero(a.tangent()) for a in p.graph.out_avals]
        rule: JVPRule = p.rule
        return rule(captured, arguments, arg_tangents)


@register
class CustomVJPCall(CustomCall):
    """Call with a reverse derivative by the user. dtypes: any. Lowered in place."""

    name = "custom_vjp"
    has_jet = True
    batched_rule = BatchedVJPRule
    masked_rule = MaskedVJPRule

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Raises: the user gave no forward derivative."""
        raise NotDifferentiableError(
            f"custom_vjp: {params['graph'].name} cannot be differentiated in forward "
            "mode (jvp, jacfwd), because its rule is for reverse mode only: use "
            "custom_jvp, which serves both, or jacrev"
        )

    def jet(
        self, primals: Values, series: Values, order: int, /, **params: Any
    ) -> Dual:
        """The function's own Taylor coefficients, in place: the rule has none."""
        p = CustomCallParams(**params)
        used = p.used(series)
        nonzero = live_flags(used)
        derived, has = jet_graph(p.graph, order, nonzero)
        terms = listed_terms(used, nonzero, order)
        outs = derived.evaluate(*p.used(primals), *terms)
        return with_terms(outs, p.graph.out_avals, has, order)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The user's forward pass; a linear operation that knows the backward pass."""
        p = CustomCallParams(**params)
        _, captured, arguments = p.split(primals)
        const_tangents, _, arg_tangents = p.split(tangents)
        self.require_constants(p.graph, const_tangents)
        active = live_flags(arg_tangents)
        if not any(active):
            outs = self.bind(*primals, **params)
            return outs, [Zero(a.tangent()) for a in p.graph.out_avals]
        rule: VJPRule = p.rule
        outs, residuals, backward = rule.forward(captured, arguments, active)
        avals = [typeof(o).tangent() for o in outs]
        has = [carries_tangent(typeof(o)) for o in outs]
        results = CustomLinear.bind(
            *residuals,
            *chosen(arg_tangents, active),
            backward=backward,
            num_residuals=len(residuals),
            active=tuple(active),
            outs=tuple(avals),
            name=p.graph.name,
        )
        return outs, spread(results, has, avals)


def _no_forward(name: str) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"custom_vjp: the derivative of {name} cannot be applied to tangents, because "
        "its rule is for reverse mode only: use vjp or grad, or custom_jvp"
    )


@register
class CustomLinear(MultipleResults):
    """The derivative of a `custom_vjp` function: known by its transpose alone.

    dtypes: all.

    Operands are what the backward pass needs, and tangents; it is recorded on tapes and
    never runs forwards.

    Params:
      backward: the user's backward pass (see `custom_rules`).
      num_residuals: how many operands are not tangents.
      active: which arguments of the function have a tangent.
      outs: types of the tangents of all the function's results.
      name: of the function.
    """

    name = "custom_vjp_linear"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    types_inside = True

    def abstract(
        self, *avals: Aval, outs: tuple[Aval, ...], **params: Any
    ) -> list[Aval]:
        """Types of the tangents that are not of integers."""
        return [a for a in outs if carries_tangent(a)]

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """Raises: there is no forward rule."""
        raise _no_forward(params["name"])

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """Raises: there is no forward rule."""
        raise _no_forward(params["name"])

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Raises: there is no forward rule."""
        raise _no_forward(params["name"])

    def transpose(
        self,
        cotangent: Values,
        *args: Any,
        backward: Backward,
        num_residuals: int,
        active: tuple[bool, ...],
        outs: tuple[Aval, ...],
        **_: Any,
    ) -> Values:
        """The user's backward pass."""
        given = iter(cotangent)
        cts = [next(given) if carries_tangent(a) else Zero(a) for a in outs]
        results = backward(args[:num_residuals], cts)
        return [*[None] * num_residuals, *chosen(results, active)]

    def batch(
        self,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        backward: Backward,
        num_residuals: int,
        active: tuple[bool, ...],
        outs: tuple[Aval, ...],
        name: str,
    ) -> Batched:
        """The vectorized backward pass; all results are mapped."""
        tangents_mapped = iter(mapped[num_residuals:])
        primals_mapped = [live and next(tangents_mapped) for live in active]
        batched = BatchedBackward(
            backward,
            size,
            mapped[:num_residuals],
            [True] * len(outs),
            primals_mapped,
            None,
        )
        results = self.bind(
            *args,
            backward=batched,
            num_residuals=num_residuals,
            active=active,
            outs=tuple(a.update(shape=(size, *a.shape)) for a in outs),
            name=name,
        )
        return results, [True] * len(results)
