"""Staging: tracing a function with abstract values to record its dataflow graph.

`GraphTrace` records each operation as a node. A value that is not its own tracer is a
constant: 0-d ones are written into the graph as literals, others become its first
inputs, which the user of the graph passes along.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fxflow._config import config
from fxflow.core import source
from fxflow.core.arrays import Array, Aval, as_array, dtypes, is_arraylike, not_an_array
from fxflow.core.arrays.array import host_of
from fxflow.core.ir.arith import is_number
from fxflow.core.ir.graph import Graph, Literal, Node, Var, ancestors, live_nodes
from fxflow.core.ir.references import GraphRef, Ref
from fxflow.core.ir.trace import Trace, Tracer, leaked, state
from fxflow.core.labels import listed
from fxflow.errors import ArgumentError, LeakedTracerError

if TYPE_CHECKING:
    from fxflow.core.ir.primitive import Primitive

T = TypeVar("T")
Labels = Sequence[str] | Callable[[], Sequence[str]]


class GraphTracer(Tracer):
    """A value in a graph that is being recorded."""

    __slots__ = ("_var",)

    _trace: GraphTrace
    _var: Var

    def __init__(self, trace: GraphTrace, var: Var) -> None:
        self._trace = trace
        self._var = var
        self.aval: Aval = var.aval

    def origin(self) -> str:
        """Names the argument, or the line that made the value."""
        return self._trace.origin(self._var)

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions the value is computed from."""
        return self._trace.depends_on(self._var)


class GraphTrace(Trace):
    """Records operations.

    Attributes:
      nodes: recorded so far.
      consts: captured values, each with its variable.
      called: what messages call the function.
      inputs: the variables of its arguments.
      labels: gives their names, when a message asks.
      literals: whether captured 0-d arrays are literals, or captured like larger ones.
    """

    def __init__(
        self,
        name: str = "graph",
        *,
        final: bool = False,
        called: str = "",
        literals: bool = True,
    ) -> None:
        self.name = name
        self.called: str = called or name
        self.literals = literals
        self.final = final
        self.nodes: list[Node] = []
        self.consts: dict[int, tuple[Var, Any, Any]] = {}
        self.inputs: list[Var] = []
        self.labels: Labels = ()
        self.open: bool = True
        self.records_refs = True

    def argument(self, aval: Aval) -> Any:
        """Returns a tracer, or a reference, for a new input."""
        var = Var(aval)
        self.inputs.append(var)
        return GraphTracer(self, var) if type(aval) is Aval else GraphRef(self, var)

    def origin(self, var: Var) -> str:
        """Says in words where a variable comes from."""
        found = " and ".join(self.depends_on(var))
        if var in self.inputs:
            return f"It is {found}."
        for node in self.nodes:
            if var in node.outputs:
                how = f"and depends on {found}" if found else f"in {self.called}"
                return (
                    f"It was computed by {node.primitive.name} at "
                    f"{source.describe(node.source)} {how}."
                )
        return f"It belongs to the trace of {self.called}."

    def depends_on(self, var: Var) -> list[str]:
        """Says which arguments, of this and of functions around it, a value is of."""
        outside = {known: value for known, _, value in self.consts.values()}
        seen = ancestors(self.nodes, var)
        found: list[str] = []
        for value in map(outside.get, seen):
            if isinstance(value, Tracer):
                found += [t for t in value.depends_on() if t not in found]
        labels = self.labels() if callable(self.labels) else self.labels
        labels = labels or [f"#{i}" for i in range(len(self.inputs))]
        own = [x for v, x in zip(self.inputs, labels, strict=False) if v in seen]
        return [listed(own, self.called), *found] if own else found

    def atom(self, value: Any, primitive: Primitive | None = None) -> Any:
        """Returns the variable or literal that stands for a value in this graph.

        Args:
          value: array-like, or a reference.
          primitive: what it is an operand of.
        """
        if type(value) is GraphTracer and value._trace is self:
            return value._var
        # A value of another interpreter, which this graph only passes on.
        if isinstance(value, Tracer):
            return self.captured(value, value)
        if isinstance(value, Ref):
            if primitive is not None and not primitive.takes_refs:
                raise not_an_array(value)
            if type(value) is GraphRef and value._trace is self:
                return value._var
            return self.captured(value, value)
        array = as_array(value)
        if isinstance(array, Tracer):  # what an object stands for
            return self.atom(array, primitive)
        # A literal holds one number, and a key is two words.
        scalar = not array.aval.ndim and not dtypes.is_key(array.aval.dtype)
        if scalar and (self.literals or value is not array or is_number(array)):
            return Literal(host_of(array), array.aval)
        return self.captured(value, array)

    def captured(self, value: Any, array: Array | Ref) -> Var:
        """Returns the variable of a value captured from outside."""
        known = self.consts.get(id(value))
        if known is None:
            # The value itself is kept as well, so that its id stays its own.
            known = self.consts[id(value)] = (Var(array.aval), array, value)
        return known[0]

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Records one operation; see `Trace.process`."""
        if not self.open:
            raise LeakedTracerError(f"{self.name} has already been traced")
        atoms = [
            a._var
            if type(a) is GraphTracer and a._trace is self
            else self.atom(a, primitive)
            for a in args
        ]
        out = primitive.types([a.aval for a in atoms], params)
        # The two cases apart: most operations have one result, and need no list.
        line = state.source or source.here()
        if primitive.multi:
            variables = [Var(aval) for aval in out]
            self.nodes.append(
                Node(primitive, atoms, variables, params, line, state.scope)
            )
            return [GraphTracer(self, var) for var in variables]
        var = Var(out)
        self.nodes.append(Node(primitive, atoms, (var,), params, line, state.scope))
        return GraphTracer(self, var)

    def finish(
        self, inputs: Sequence[Var], outputs: Sequence[Any]
    ) -> tuple[Graph, list[Any]]:
        """Closes the graph.

        Args:
          inputs: variables of the arguments, in order.
          outputs: values.

        Returns:
          The graph, whose first inputs are captured values, and those values.
        """
        atoms = [self.atom(value) for value in outputs]
        self.open = False
        # Dead-code elimination, once for all passes; constants that only dead nodes
        # used are not inputs.
        nodes = live_nodes(self.nodes, atoms)
        captured = []
        if self.consts:
            used = {id(a) for node in nodes for a in node.inputs}
            used.update(map(id, atoms))
            captured = [c for c in self.consts.values() if id(c[0]) in used]
        variables = [const[0] for const in captured]
        graph = Graph([*variables, *inputs], nodes, atoms, self.name, len(variables))
        return graph, [const[1] for const in captured]


def recording(trace: Trace, function: Callable[..., T], *arguments: Any) -> T:
    """Calls `function` with a trace that records as the current interpreter.

    The garbage collector pauses: it would scan the growing graph repeatedly. Both are
    put back in one `finally`, before any other call: an interrupt may come at the start
    of every function, also of the one that ends a `with` block.

    Args:
      trace: the interpreter.
      function: what to call.
      *arguments: its arguments.
    """
    previous, collects = state.trace, gc.isenabled()
    state.trace = trace
    try:
        gc.disable()
        return function(*arguments)
    finally:
        state.trace = previous
        if collects:
            gc.enable()


def trace_flat(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    *,
    name: str = "graph",
    labels: Labels = (),
    final: bool = False,
    called: str = "",
    literals: bool = True,
) -> tuple[Graph, list[Any]]:
    """Traces a function of flat arguments.

    Args:
      function: takes one value for each type and returns a sequence of values.
      avals: types of the arguments.
      name: of the graph.
      labels: names of the arguments in messages, or what gives them when they are
        asked for.
      final: see `Trace`.
      called: what messages call the function, if it is not `name`.
      literals: see `GraphTrace`.

    Returns:
      The graph, whose first `num_consts` inputs are captured values, and those values.

    Raises:
      LeakedTracerError: `config.check_leaks` is on and a traced value survives.
    """
    trace = GraphTrace(name, final=final, called=called, literals=literals)
    trace.labels = labels
    tracers = list(map(trace.argument, avals))
    inputs = [tracer._var for tracer in tracers]

    def record() -> tuple[Graph, list[Any]]:
        outputs = list(function(*tracers))
        require_arrays(outputs, trace.called)
        return trace.finish(inputs, outputs)

    graph, consts = recording(trace, record)
    if config.check_leaks:
        del tracers
        _check_leaks(trace)
    return graph, consts


def placing_scopes() -> tuple[str, ...]:
    """Returns the scopes that say where operations run; part of a traced body's key."""
    return tuple(name for name in state.scope if type(name) is not str)


def closed(graph: Graph, consts: Sequence[Any]) -> Graph:
    """Returns a graph with its captured values written into it as literals.

    Args:
      graph: as `trace_flat` gives it.
      consts: the captured values; none of them is traced.
    """
    if not consts:
        return graph
    for value in consts:
        if isinstance(value, Ref):
            raise ArgumentError(
                f"a rule that {graph.name} applies captures a reference {value.aval}, "
                "which it cannot here: pass the reference as an argument"
            )
    return with_literals(graph, dict(zip(graph.inputs, consts, strict=False)))


def with_literals(graph: Graph, values: Mapping[Var, Array]) -> Graph:
    """Returns a graph with literals in place of some of its inputs.

    Args:
      graph: of any operations.
      values: of the inputs that go.
    """
    literals: dict[Any, Literal] = {
        var: Literal(host_of(value), value.aval) for var, value in values.items()
    }
    nodes = [
        node
        if literals.keys().isdisjoint(node.inputs)
        else node.replace(inputs=[literals.get(a, a) for a in node.inputs])
        for node in graph.nodes
    ]
    outputs = [literals.get(a, a) for a in graph.outputs]
    inputs = [var for var in graph.inputs if var not in literals]
    return graph.replace(inputs=inputs, nodes=nodes, outputs=outputs)


def trace_closed(
    function: Callable[..., Sequence[Any]], avals: Sequence[Aval], *, name: str
) -> Graph:
    """Traces a derivative of a graph.

    A graph captures nothing, but a rule may bring an array of its own (weights of a
    Fourier transform, say), which is written into the result.

    Args:
      function: takes one value for each type and returns a sequence of values.
      avals: types of the arguments.
      name: of the graph.

    Returns:
      The graph; its inputs are the arguments alone.
    """
    return closed(*trace_flat(function, avals, name=name))


def require_arrays(outputs: Sequence[Any], name: str) -> None:
    """Checks what a function returned.

    Raises:
      ArgumentError: one of the values is not an array.
    """
    for value in outputs:
        if not isinstance(value, Array) and not is_arraylike(value):
            raise not_an_array(value, f"{name} returns")


def _check_leaks(trace: GraphTrace) -> None:
    # Tracers in cycles (an exception's traceback, say) did not leak.
    gc.collect()
    alive = [
        obj
        for obj in gc.get_objects()
        if type(obj) is GraphTracer and obj._trace is trace
    ]
    if alive:
        raise leaked(alive[0])
