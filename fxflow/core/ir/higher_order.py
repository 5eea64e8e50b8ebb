"""Operations whose parameters hold graphs: branches, loops, custom derivatives.

A graph in a parameter captures nothing: what the user's function captured comes in as
leading operands. Here is what the rules of all such operations need: which results
depend on which inputs, other orders of inputs, evaluation with NumPy, effects and named
axes of what is inside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import REFS, require_distinct
from fxflow.core.ir.graph import (
    Graph,
    Node,
    Var,
    has_refs,
    interpret,
    subgraphs,
    with_graphs,
)
from fxflow.core.ir.primitive import (
    CHECK,
    DEBUG,
    IO,
    ORDERED,
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    table,
)
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state
from fxflow.errors import ArgumentError

T = TypeVar("T")


class HigherOrder(MultipleResults):
    """Holds graphs in its parameters; gives a list of results.

    Subclasses write `batch_over` in place of `batch` and `batch_named`.

    Attributes:
      has_jet: whether there is a rule `jet`; else coefficients follow from `jvp`.
    """

    host_kinds: ClassVar[frozenset[str]] = frozenset()
    types_inside = True
    takes_refs = True
    has_jet: ClassVar[bool] = False

    if not TYPE_CHECKING:

        def bind(self, *args: Any, **params: Any) -> list[Any]:
            """See `Primitive.bind`; references only where they are recorded."""
            trace = state.trace
            if trace.records_refs or REFS.isdisjoint(map(type, args)):
                return trace.process(self, args, params)
            for operands in self.operands_of_graphs(args, params):
                require_distinct(operands, self.name)
            return self.discharge(args, params)

    def operands_of_graphs(self, args: Values, params: dict[str, Any]) -> list[Values]:
        """Returns the operands that go into one graph together."""
        return [args]

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """Runs the operation with contents in place of references, and writes back."""
        raise ArgumentError(
            f"{self.name}: a reference has no place in its functions: read it before, "
            "and pass the value on"
        )

    def effects(self, **params: Any) -> frozenset[Any]:
        """Those of the graphs."""
        return frozenset().union(*(graph.effects for _, graph in subgraphs(params)))

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Those of the graphs together, each run once."""
        with self.inside(params):
            return _sums(graph_cost(graph) for _, graph in subgraphs(params))

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Whether any operation inside names the axis."""
        return any(uses_axis(graph, axis_name) for _, graph in subgraphs(params))

    def jet(
        self, primals: Values, series: Values, order: int, /, **params: Any
    ) -> Dual:
        """Returns the results and their Taylor coefficients; compare `jvp`.

        Args:
          primals: values.
          series: for each a list of its `order` coefficients, or `Zero`.
          order: how many there are behind a value.
          **params: as bound.
        """
        raise NotImplementedError

    def batch(
        self, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        """See `batch_over`."""
        return self.batch_over(None, size, args, mapped, **params)

    def batch_named(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        """See `batch_over`."""
        return self.batch_over(axis_name, size, args, mapped, **params)

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        """The operation on vectorized graphs; `axis_name` is None or named inside."""
        raise NotImplementedError


def uses_axis(graph: Graph, axis_name: Any) -> bool:
    """Returns whether any operation of a graph names the axis."""
    key = ("uses_axis", axis_name)
    return graph.remembered(
        key,
        lambda: any(n.primitive.uses_axis(axis_name, n.params) for n in graph.nodes),
    )


# -- graphs ----------------------------------------------------------------------------


def graph_cost(graph: Graph) -> dict[str, float]:
    """Returns an estimate of the work of a graph: `flops` and `bytes`.

    Loops that end on a condition count as one round.
    """

    def total() -> dict[str, float]:
        return _sums(
            n.primitive.cost(*[a.aval for a in n.inputs], **n.params)
            for n in graph.nodes
        )

    return dict(graph.remembered("cost", total))


def _sums(costs: Iterable[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {"flops": 0.0, "bytes": 0.0}
    for cost in costs:
        for key, value in cost.items():
            total[key] = total.get(key, 0.0) + value
    return total


def with_consts(graph: Graph, consts: Values, wanted: Values) -> Graph:
    """Returns a graph that takes more, or reordered, captured values.

    Args:
      graph: whose first inputs are captured values.
      consts: those values.
      wanted: the values it shall take first; the same objects and others.
    """
    if len(consts) == len(wanted) and all(
        a is b for a, b in zip(consts, wanted, strict=True)
    ):
        return graph
    variables = {id(value): var for value, var in zip(consts, graph.inputs)}
    first = [variables.get(id(v)) or Var(typeof(v)) for v in wanted]
    return graph.replace(inputs=[*first, *graph.inputs[len(consts) :]])


def carries_tangent(aval: Aval) -> bool:
    """Returns whether values of a type have derivatives."""
    return bool(aval.tangent().dtype != dtypes.float0)


def flow(
    graph: Graph, sources: Flags, where: Callable[[Aval], bool] | None = None
) -> list[bool]:
    """Returns which outputs may depend on the chosen inputs.

    Args:
      graph: to look at.
      sources: the chosen inputs.
      where: that of derivatives: only passed on by values of such types, and not by
        what derivatives take for a constant (None: any dependence).
    """
    live = {v for v, chosen in zip(graph.inputs, sources, strict=True) if chosen}
    for node in graph.nodes:
        if where is not None and node.primitive.is_constant:
            continue
        if any(type(a) is Var and a in live for a in node.inputs):
            live.update(v for v in node.outputs if where is None or where(v.aval))
    return [type(a) is Var and a in live for a in graph.outputs]


def carry_flow(
    graph: Graph,
    sources: Flags,
    start: int,
    count: int,
    where: Callable[[Aval], bool] | None = None,
) -> list[bool]:
    """Returns which parts of a loop's carry come to depend on the chosen inputs.

    Args:
      graph: of the body; its first `count` outputs are the next carry.
      sources: the chosen inputs.
      start: position of the carry among the inputs.
      count: length of the carry.
      where: see `flow`.
    """
    sources = list(sources)
    # A part of the carry may depend on the inputs only after several rounds of the
    # loop. Each round here adds one part or more, so it ends.
    while True:
        reached = flow(graph, sources, where)[:count]
        grown = [
            a or b for a, b in zip(sources[start : start + count], reached, strict=True)
        ]
        if grown == sources[start : start + count]:
            return grown
        sources[start : start + count] = grown


def flow_through(graph: Graph, sources: Flags) -> list[bool]:
    """Returns which outputs may depend on the chosen inputs, as `Primitive.flows` says.

    Unlike `flow`, it looks into calls, loops and branches.

    Args:
      graph: to look at.
      sources: the chosen inputs.
    """
    if has_refs(graph.in_avals):
        return [any(sources)] * len(graph.outputs)

    def find() -> list[bool]:
        live = _reached(graph, sources)
        return [type(a) is Var and a in live for a in graph.outputs]

    return graph.remembered(("flow_through", tuple(sources)), find)


def loop_flow(graph: Graph, sources: Flags, start: int, count: int) -> list[bool]:
    """Returns which inputs of a loop's body come to depend on the chosen ones.

    Args:
      graph: of the body; its first `count` outputs are the next carry.
      sources: the chosen inputs.
      start: position of the carry among the inputs.
      count: length of the carry.
    """
    flags, stop = list(sources), start + count
    while True:
        reached = flow_through(graph, flags)[:count]
        grown = [a or b for a, b in zip(flags[start:stop], reached, strict=True)]
        if grown == flags[start:stop]:
            return flags
        flags[start:stop] = grown


def _reached(graph: Graph, sources: Flags) -> set[Var]:
    live = {v for v, source in zip(graph.inputs, sources, strict=True) if source}
    for node in graph.nodes:
        flags = [type(a) is Var and a in live for a in node.inputs]
        if any(flags):
            outs, _ = node.primitive.flows(flags, len(node.outputs), node.params)
            live.update(chosen(node.outputs, outs))
            # What is written to a reference may be read from it.
            live.update(a for a in node.inputs if has_refs([a.aval]))
    return live


def muted(primitive: Any, params: dict[str, Any], sources: Flags) -> dict[str, Any]:
    """Returns parameters whose graphs do not show what depends on some operands.

    Args:
      primitive: whose parameters they are.
      params: as bound.
      sources: the operands whose values mean nothing.
    """
    _, each = primitive.flows(sources, 0, params)
    flags = iter(each)
    return with_graphs(params, lambda g: _muted(g, next(flags))) if each else params


def _muted(graph: Graph, sources: Flags) -> Graph:
    if not graph.effects or not any(sources):
        return graph

    def derive() -> Graph:
        live = _reached(graph, sources)
        nodes = []
        for node in graph.nodes:
            flags = [type(a) is Var and a in live for a in node.inputs]
            kept: Node | None = node
            if any(flags) and node.effects:
                kept = _muted_node(node, flags)
            if kept is not None:
                nodes.append(kept)
        return graph.replace(nodes=nodes)

    return graph.remembered(("muted", tuple(sources)), derive)


def _muted_node(node: Node, flags: Flags) -> Node | None:
    params = muted(node.primitive, node.params, flags)
    if params is not node.params:
        return node.replace(params=params)
    if node.outputs or not node.effects <= _SHOWS:
        return node
    known = [not flag for flag in flags]
    avals = [a.aval for a in node.inputs]
    given = node.primitive.without_tangents(avals, known, node.params)
    if given is None:
        return None
    return node.replace(inputs=chosen(node.inputs, known), params=given)


_SHOWS = frozenset({IO, ORDERED, DEBUG, CHECK})


def append_zeros(graph: Graph, avals: Sequence[Aval]) -> tuple[list[Node], list[Any]]:
    """Returns nodes that make zeros of these types, and the atoms of the zeros.

    Args:
      graph: that they are meant for; it is not changed.
      avals: types, keys included.
    """
    made, consts = trace_flat(
        lambda: [arith.zeros(aval) for aval in avals], [], name=graph.name
    )
    # 0-d zeros are literals, and larger ones are broadcast from those.
    assert not consts
    return made.nodes, made.outputs


def zeros_graph(graph: Graph) -> Graph:
    """Returns a graph of the same inputs whose outputs are zeros of the same types."""
    nodes, zeros = append_zeros(graph, graph.out_avals)
    return graph.replace(nodes=nodes, outputs=zeros)


class _Watch(threading.local):
    """What looks at the operations that `run_host` runs in this thread.

    Attributes:
      see: gets each node and its operands before it is run; None: nothing looks.
      run: stands in for `run_host`; None: nothing does.
    """

    see: Callable[[Node, list[Any]], None] | None = None
    run: Callable[[Graph, Iterable[Any]], list[Any]] | None = None


watch: _Watch = _Watch()


def run_host(graph: Graph, values: Iterable[Any]) -> list[Any]:
    """Evaluates a graph with the NumPy rules of its operations.

    Args:
      graph: to run.
      values: NumPy arrays, one for each input.
    """
    see = watch.see
    if watch.run is not None:
        return watch.run(graph, values)

    def step(node: Node, operands: list[Any]) -> Values:
        if see is not None:
            see(node, operands)
        out = node.primitive.evaluate(*operands, **node.params)
        return out if node.primitive.multi else (out,)

    return interpret(graph, values, step, attrgetter("value"))


# -- values ----------------------------------------------------------------------------


def move_axis(value: Any, source: int, target: int) -> Any:
    """Returns `value` with one axis moved; both are counted from the front."""
    aval = typeof(value)
    if source == target:
        return value
    if dtypes.is_key(aval.dtype):
        data = move_axis(table["random_unwrap"].bind(value), source, target)
        return table["random_wrap"].bind(data, dtype=aval.dtype)
    order = [i for i in range(aval.ndim) if i != source]
    order.insert(target, source)
    return table["transpose"].bind(value, permutation=tuple(order))


def live_flags(tangents: Values) -> list[bool]:
    """Returns which tangents or cotangents are not known to be zero."""
    return [type(t) is not Zero for t in tangents]


def chosen(items: Sequence[T], flags: Flags) -> list[T]:
    """Returns the items whose flag is set."""
    return [item for item, flag in zip(items, flags, strict=True) if flag]


def spread(values: Values, flags: Flags, avals: Sequence[Aval]) -> Any:
    """Returns one value or `Zero` for each flag.

    Args:
      values: as many as flags are set.
      flags: where they belong.
      avals: types of the `Zero`s.
    """
    rest = iter(values)
    return [
        next(rest) if flag else Zero(aval)
        for flag, aval in zip(flags, avals, strict=True)
    ]


def cotangents_for(
    args: Values, values: Iterable[Any], flags: Iterable[bool]
) -> list[Any]:
    """Returns what `transpose` does: a cotangent, `Zero` or None for each operand.

    Args:
      args: operands; those it is linear in are `Var`s.
      values: the cotangents that there are.
      flags: for each `Var`, whether it has one.
    """
    given, have = iter(values), iter(flags)
    return [
        (next(given) if next(have) else Zero(a.aval)) if type(a) is Var else None
        for a in args
    ]


def split_at(items: Sequence[T], *counts: int) -> list[list[T]]:
    """Returns consecutive parts of the given lengths, and the rest."""
    parts = []
    start = 0
    for count in counts:
        parts.append(list(items[start : start + count]))
        start += count
    parts.append(list(items[start:]))
    return parts
