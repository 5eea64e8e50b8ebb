"""The primitives of `checkpoint`: a call that recomputes, and a name for a value.

The derivative of a checkpointed call keeps the call's arguments and the intermediate
values that its policy wants kept; all else is computed again when the tangents, or
their transpose, are. That second computation hides behind `optimization_barrier`, or
the compiler would see that it is the same as the first and keep the values after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.core.interpreters.calls import GraphCall, with_tangents
from fxflow.core.interpreters.linearize import LinearGraphs, linearize_graph
from fxflow.core.ir.graph import (
    Graph,
    Literal,
    Node,
    Var,
    live_nodes,
    renamed,
)
from fxflow.core.ir.higher_order import (
    chosen,
    live_flags,
)
from fxflow.core.ir.primitive import Dual, Flags, Values, register, table
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import Going, settled
from fxflow.core.spmd.memories import kept as kept_where
from fxflow.lax.calls import JitCall
from fxflow.lax.families import MOVED, Structural


class Offload(NamedTuple):
    """What a policy says of values to keep in another memory.

    Attributes:
      src: kind of the memory they are computed in and come back to.
      dst: kind of the memory they are kept in.
    """

    src: str
    dst: str


Policy = Callable[..., bool | Offload]


@register
class Name(Structural):
    """Gives a value a name for policies of `checkpoint`. dtypes: any. No operation."""

    name = "name"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.partly
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, aval: Aval, *, label: str) -> Aval:
        """The operand's type."""
        return aval

    def lower(self, ctx: Context, operand: str, *, label: str) -> str:
        """The operand itself."""
        return operand

    def evaluate(self, value: Any, *, label: str) -> Any:
        """The operand itself."""
        return value

    def transpose(self, cotangent: Any, *args: Any, label: str) -> Values:
        """The cotangent itself."""
        return [cotangent]

    def jvp(self, primals: Values, tangents: Values, *, label: str) -> Dual:
        """The tangent has no name."""
        return self.bind(*primals, label=label), tangents[0]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The operand's."""
        return kept_where(node, kinds)

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """The same name for all slices together."""
        return params


@register
class Checkpoint(GraphCall):
    """Call whose intermediate values are computed again. dtypes: any. Lowered in place.

    Params:
      graph: what is called.
      policy: which intermediate values to keep (see `transforms/checkpoint`), or None
        for none.
      prevent_cse: whether to keep the compiler from merging both computations.
      again: whether this is a second computation.
    """

    name = "checkpoint"
    inlines = True

    def lower(
        self,
        ctx: Context,
        *operands: str,
        graph: Graph,
        prevent_cse: bool,
        again: bool,
        **_: Any,
    ) -> list[str]:
        """The graph in place, behind a barrier if it is a second computation."""
        if again and prevent_cse and operands:
            types = ", ".join(a.mlir for a in graph.in_avals)
            operands = tuple(
                ctx.emit_many(
                    len(operands),
                    f"stablehlo.optimization_barrier {', '.join(operands)} : {types}",
                )
            )
        return ctx.graph(graph, operands)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The call for values and what is kept; a call that recomputes the rest."""
        graph: Graph = params["graph"]
        nonzero = live_flags(tangents)
        split = split_for(graph, nonzero, params["policy"])
        outs = self.bind(*primals, **params | {"graph": split.primal})
        count = len(graph.outputs)
        kept = split.residuals(primals, outs[count:])
        results: list[Any] = []
        if any(split.has_tangent):
            tangent = settled(split.primal, split.tangent, primals)
            params |= {"graph": tangent, "again": True}
            results = self.bind(*kept, *chosen(tangents, nonzero), **params)
        outs = [*outs[:count], *results]
        return with_tangents(outs, graph.out_avals, split.has_tangent)


# -- what is kept ----------------------------------------------------------------------


def split_for(graph: Graph, nonzero: Flags, policy: Policy | None) -> LinearGraphs:
    """Returns the derivative of a graph, split so that a policy decides what is kept.

    Args:
      graph: to differentiate.
      nonzero: which inputs have a tangent.
      policy: called with a primitive, the types of its operands and its parameters;
        whether its results may be kept, or an `Offload`. None keeps nothing.

    Returns:
      As `linearize_graph`, but `tangent` first computes again what is not kept.
    """
    key = ("checkpoint", tuple(nonzero), policy)
    known = graph.remembered(
        key,
        lambda: _split(
            linearize_graph(inlined(graph), nonzero), len(graph.outputs), policy
        ),
    )
    return known


def _split(split: LinearGraphs, count: int, policy: Policy | None) -> LinearGraphs:
    primal, tangent = split.primal, split.tangent
    inputs = {var: i for i, var in enumerate(primal.inputs)}
    residuals = residuals_of(split, count)
    choose = getattr(policy, "choose", None)
    keepable = _keepable(primal, policy) if choose is None else choose(split, count)
    needed = {a for a in residuals if type(a) is Var}
    kept: list[Var] = []
    again: list[Node] = []
    # Backwards: what a node reads is needed only if the node is computed again.
    for node in reversed(primal.nodes):
        wanted = [v for v in node.outputs if v in needed]
        if not wanted:
            continue
        if node.primitive.name != Name.name and wanted[0] in keepable:
            kept += wanted
            continue
        again.append(node)
        needed.update(a for a in node.inputs if type(a) is Var)
    again.reverse()
    kept.reverse()
    given = [v for v in primal.inputs if v in needed]
    # What is kept elsewhere leaves by one move and comes back by another.
    away: list[Node] = []
    back: list[Node] = []
    stored, held = list(kept), list(kept)
    for i, var in enumerate(kept):
        verdict = keepable.get(var)
        if isinstance(verdict, Offload):
            stored[i], held[i] = Var(var.aval), Var(var.aval)
            away.append(_put(var, stored[i], verdict.dst))
            back.append(_put(held[i], var, verdict.src))
    outputs = [*primal.outputs[:count], *stored]
    forward = primal.replace(
        nodes=live_nodes([*primal.nodes, *away], outputs), outputs=outputs
    )
    # The tangent's own names of the residuals become what they stand for.
    stands_for = dict(zip(tangent.inputs, residuals, strict=False))

    def read(atom: Any) -> Any:
        return stands_for.get(atom, atom) if type(atom) is Var else atom

    nodes = [
        node.replace(inputs=[read(a) for a in node.inputs]) for node in tangent.nodes
    ]
    backward = Graph(
        [*given, *held, *tangent.inputs[len(residuals) :]],
        [*back, *again, *nodes],
        [read(a) for a in tangent.outputs],
        tangent.name,
    )
    positions: list[int | None] = [inputs[v] for v in given]
    positions += [None] * len(kept)
    return LinearGraphs(forward, backward, positions, split.has_tangent)


def residuals_of(split: LinearGraphs, count: int) -> list[Any]:
    """Returns what the graph of tangents reads of that of values, in its order.

    Args:
      split: the derivative.
      count: how many results the function has.
    """
    extras = iter(split.primal.outputs[count:])
    return [
        split.primal.inputs[i] if i is not None else next(extras)
        for i in split.residual_inputs
    ]


def _put(source: Var, target: Var, kind: str) -> Node:
    """Returns a node that moves a value to a kind of memory."""
    kind_there = None if kind == "device" else kind
    params = {"to": None, "memory": Going(kind_there)}
    return Node(table["device_put"], [source], [target], params)


def _keepable(graph: Graph, policy: Policy | None) -> dict[Var, bool | Offload]:
    """Returns the variables that a policy lets us keep, with its verdict.

    A `name` node and what it names are one value: kept if either may be, unless the
    policy excludes the name.
    """
    if policy is None:
        return {}
    excluded: frozenset[str] = getattr(policy, "excluded", frozenset())
    keepable: dict[Var, bool | Offload] = {}
    for node in graph.nodes:
        avals = [a.aval for a in node.inputs]
        verdict = policy(node.primitive, *avals, **_shown(node))
        if not verdict:
            continue
        named = node.primitive.name == Name.name
        for var in (*node.outputs, *(_roots(graph, node) if named else ())):
            keepable[var] = verdict
    for node in graph.nodes:
        if node.primitive.name == Name.name and node.params["label"] in excluded:
            for var in (*node.outputs, *_roots(graph, node)):
                keepable.pop(var, None)
    return keepable


def _shown(node: Node) -> dict[str, Any]:
    """Returns a node's parameters as policies see them."""
    if node.primitive.name == Name.name:
        return {"name": node.params["label"]}
    return node.params


def _roots(graph: Graph, node: Node) -> list[Var]:
    """Returns the variables that a `name` node names, through other such nodes."""
    makers = {
        v: n for n in graph.nodes for v in n.outputs if n.primitive.name == Name.name
    }
    found = []
    atom = node.inputs[0]
    while type(atom) is Var:
        found.append(atom)
        maker = makers.get(atom)
        if maker is None:
            break
        atom = maker.inputs[0]
    return found


# -- calls within ----------------------------------------------------------------------


#: Names of calls of functions with a derivative of their own, which has done its work
#: in a graph that is about to be compiled.
CUSTOM_CALLS = frozenset({"custom_jvp", "custom_vjp"})
#: These, and jitted calls.
CALLS = CUSTOM_CALLS | {JitCall.name}
_JITTED = frozenset({JitCall.name})


def inlined(graph: Graph, calls: frozenset[str] = _JITTED) -> Graph:
    """Returns a graph with calls written out.

    Args:
      graph: whose nodes are looked at; not those of graphs inside of others.
      calls: names of their primitives; jitted calls alone, for derivatives.
    """
    if not any(node.primitive.name in calls for node in graph.nodes):
        return graph

    def write() -> Graph:
        nodes: list[Node] = []
        names: dict[Any, Any] = {}
        _inline(graph, calls, nodes, names)
        outputs = renamed(graph.outputs, names)
        return graph.replace(nodes=nodes, outputs=outputs)

    return graph.remembered(("inlined", calls), write)


def _inline(
    graph: Graph, calls: frozenset[str], nodes: list[Node], names: dict[Any, Any]
) -> None:
    """Appends the nodes of a graph; `names` says what its variables are called now."""
    for node in graph.nodes:
        inputs = renamed(node.inputs, names)
        if node.primitive.name not in calls:
            same = inputs == [*node.inputs]
            nodes.append(node if same else node.replace(inputs=inputs))
            continue
        called: Graph = node.params["graph"]
        if node.primitive.name in CUSTOM_CALLS:  # without what the rule captured
            start = node.params["num_consts"]
            stop = start + node.params["num_rule_consts"]
            inputs = [*inputs[:start], *inputs[stop:]]
        # A graph may be called more than once, so each call has variables of its own.
        inner: dict[Any, Any] = dict(zip(called.inputs, inputs, strict=True))
        copied = []
        for part in called.nodes:
            outputs = [Var(v.aval) for v in part.outputs]
            inner.update(zip(part.outputs, outputs, strict=True))
            inside = renamed(part.inputs, inner)
            scope = part.scope or node.scope
            copied.append(part.replace(inputs=inside, outputs=outputs, scope=scope))
        results = renamed(called.outputs, inner)
        written = Graph(inputs_of(inputs), copied, results)
        _inline(written, calls, nodes, names)
        names.update(zip(node.outputs, renamed(results, names), strict=True))


def inputs_of(atoms: Sequence[Var | Literal]) -> list[Var]:
    """Returns the variables among some atoms."""
    return [a for a in atoms if type(a) is Var]
