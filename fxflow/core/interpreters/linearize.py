"""Reverse mode, first half: compute the primals, record the linear tangents.

`LinearizeTrace` runs each primitive's rule once. Operations on values go straight to
the parent interpreter; operations on tangents are written down on a `Tape`, whose nodes
hold the values they need (residuals) directly. `transpose` then walks the tape
backwards. There is no intermediate graph: under `jit`, values land in the graph being
recorded; when eager, they are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import source
from fxflow.core.arrays import Array, Aval, typeof, unwrapped
from fxflow.core.interpreters.jvp import DualTracer, cast_tangents
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import (
    Graph,
    Literal,
    Node,
    Var,
    ancestors,
    live_nodes,
    subgraphs,
)
from fxflow.core.ir.higher_order import muted
from fxflow.core.ir.primitive import Primitive, Zero, table
from fxflow.core.ir.staging import (
    GraphTrace,
    GraphTracer,
    closed,
    recording,
    trace_closed,
)
from fxflow.core.ir.trace import Trace, Tracer, state
from fxflow.core.labels import listed
from fxflow.errors import NotDifferentiableError


class TangentTracer(Tracer):
    """A tangent: a variable of the tape."""

    __slots__ = ("_var",)

    def __init__(self, trace: Tape, var: Var) -> None:
        self._trace = trace
        self._var = var
        self.aval: Aval = var.aval


class Tape(Trace):
    """Records operations on tangents; runs all others in the parent.

    Attributes:
      nodes: recorded so far; an input that is not a `Var` is a value.
      parent: the interpreter of values.
      is_split: whether an operation's own `linearize` runs, which binds operations on
        values and on tangents apart; else what is bound may mix them.
    """

    __slots__ = ("is_split", "nodes", "parent")

    parent: Trace
    is_split: bool

    def __init__(self, parent: Trace) -> None:
        self.parent = parent
        self.nodes: list[Node] = []
        self.is_split = False

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Records or runs one operation; see `Trace.process`."""
        # No tangent among the operands: then it is on values, and the parent's.
        for arg in args:
            if type(arg) is TangentTracer and arg._trace is self:
                break
        else:
            previous = state.trace
            state.trace = self.parent
            try:
                return self.parent.process(primitive, args, params)
            finally:
                state.trace = previous
        inputs = [
            a._var if type(a) is TangentTracer and a._trace is self else a for a in args
        ]
        avals = [a.aval if type(a) is Var else typeof(a) for a in inputs]
        out = primitive.types(avals, params)
        if primitive.multi and not out:
            known = [type(a) is not Var for a in inputs]
            given = primitive.without_tangents(avals, known, params)
            if given is not None:
                values = [a for a in inputs if type(a) is not Var]
                return self.process(primitive, tuple(values), given)
        elif primitive.multi and not self.is_split:
            linear = [type(a) is Var for a in inputs]
            if _has_graph(primitive, params) or not all(
                primitive.flows(linear, len(out), params)[0]
            ):
                return self._split(primitive, args, params)
        variables = [Var(aval) for aval in out] if primitive.multi else [Var(out)]
        self.nodes.append(
            Node(primitive, inputs, variables, params, state.source, state.scope)
        )
        if primitive.multi:
            return [TangentTracer(self, var) for var in variables]
        return TangentTracer(self, variables[0])

    def _split(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> list[Any]:
        """Runs what a user's rule binds to values and tangents together.

        It is linear in the tangents: with zeros for them its results are the values
        among the results, and its derivative is the operation on tangents.
        """
        mine = [type(a) is TangentTracer and a._trace is self for a in args]
        tangents = [
            a if own else Zero(typeof(a).tangent())
            for a, own in zip(args, mine, strict=True)
        ]
        primals = [
            instantiate(Zero(a.aval)) if own else a
            for a, own in zip(args, mine, strict=True)
        ]
        if any(graph.effects for _, graph in subgraphs(params)):
            params = muted(primitive, params, mine)
        self.is_split = True
        try:
            outs, out_tangents = primitive.linearize(primals, tangents, **params)
        finally:
            self.is_split = False
        # A rule may give a value a tangent of zeros, where loops or branches do not
        # tell apart what depends on what.
        linear, _ = primitive.flows(mine, len(outs), params)
        return [
            tangent if depends and self.has(tangent) else out
            for out, tangent, depends in zip(outs, out_tangents, linear, strict=True)
        ]

    # The arithmetic of tangents, for those who know that it is theirs; as in `arith`.

    def has(self, value: Any) -> bool:
        """Returns whether a value is a tangent on this tape."""
        return type(value) is TangentTracer and value._trace is self

    def neg(self, x: TangentTracer) -> TangentTracer:
        """Returns -x."""
        return self._record(table["neg"], (x._var,), x.aval)

    def mul(self, x: TangentTracer, factor: Any) -> TangentTracer:
        """Returns x times a value that does not depend on tangents."""
        return self._record(table["mul"], (x._var, factor), x.aval)

    def add(self, x: TangentTracer, y: TangentTracer) -> TangentTracer:
        """Returns x + y."""
        return self._record(table["add"], (x._var, y._var), y.aval)

    def _record(
        self, primitive: Primitive, inputs: tuple[Any, ...], aval: Aval
    ) -> TangentTracer:
        var = Var(aval)
        # No type is derived: a gradient records thousands of these.
        self.nodes.append(
            Node(primitive, inputs, (var,), {}, state.source, state.scope)
        )
        return TangentTracer(self, var)


def _splits(primitive: Primitive) -> bool:
    return type(primitive).linearize is not Primitive.linearize


def _has_graph(primitive: Primitive, params: dict[str, Any]) -> bool:
    return _splits(primitive) or isinstance(params.get("graph"), Graph)


class LinearizeTracer(DualTracer):
    """A value whose tangent is a variable of the tape."""

    __slots__ = ()
    transformation = "grad"

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        # As the base does it, without a call: a gradient makes thousands of these.
        self._trace = trace
        self.primal: Any = primal
        self.tangent: Any = tangent
        self.aval: Aval = primal.aval if isinstance(primal, Array) else typeof(primal)

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions the value is computed from."""
        trace: LinearizeTrace = self._trace
        if isinstance(self.primal, Tracer) or type(self.tangent) is not TangentTracer:
            return super().depends_on()
        return trace.depends_on(self.tangent._var)


class LinearizeTrace(Trace):
    """Runs values in the parent and records their tangents on a tape."""

    __slots__ = ("function", "inputs", "keeps_lines", "parent", "tape")

    parent: Trace
    tape: Tape
    keeps_lines: bool

    def __init__(self, parent: Trace, function: Any = None) -> None:
        self.parent = parent
        self.tape = Tape(parent)
        # For messages: what is differentiated, and the tangents of its arguments.
        self.function: Any = function
        self.inputs: list[Var | None] = []
        # The lines of a tape that is computed at once are read only after a nan.
        outermost = parent
        while outermost.parent is not None:
            outermost = outermost.parent
        searches = config.debug_nans or config.debug_infs
        self.keeps_lines = searches or isinstance(outermost, GraphTrace)

    def depends_on(self, var: Var) -> list[str]:
        """Says which arguments the value with a tangent is computed from."""
        labels = getattr(self.function, "labels", None)
        if labels is None:
            return []
        seen = ancestors(self.tape.nodes, var)
        own = [x for v, x in zip(self.inputs, labels(), strict=False) if v in seen]
        return [listed(own, self.function.name)] if own else []

    def argument(self, primal: Any) -> LinearizeTracer:
        """Returns the tracer of an argument to differentiate by."""
        var = Var(typeof(primal).tangent())
        return LinearizeTracer(self, primal, TangentTracer(self.tape, var))

    def split(self, value: Any) -> tuple[Any, Any]:
        """Returns a value and its tangent (a `Zero` for a constant)."""
        if not isinstance(value, Array):
            value = unwrapped(value)
        if type(value) is LinearizeTracer and value._trace is self:
            return value.primal, value.tangent
        return value, Zero(typeof(value).tangent())

    def join(self, primal: Any, tangent: Any) -> Any:
        """Returns the tracer of a value and its tangent."""
        if not (type(tangent) is TangentTracer and tangent._trace is self.tape):
            # A tangent that depends on no input: of a linear map, it can only be zero.
            return primal
        return LinearizeTracer(self, primal, tangent)

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Runs and records one operation; see `Trace.process`."""
        primals = []
        tangents = []
        constant = True
        for a in args:
            if not isinstance(a, Array):
                a = unwrapped(a)
            if type(a) is LinearizeTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                constant = False
            else:
                primals.append(a)
                # A `Zero` needs the type, which is not asked for where all operands are
                # constants.
                tangents.append(None)
        previous, line = state.trace, state.source
        if constant:
            state.trace = self.parent
            try:
                return self.parent.process(primitive, tuple(primals), params)
            finally:
                state.trace = previous
        # The operation's line, for all that its derivative is made of.
        if line is None and self.keeps_lines:
            state.source = source.here()
        for i, t in enumerate(tangents):
            if t is None:
                tangents[i] = Zero(typeof(primals[i]).tangent())
        # The rule's operations on values fall through the tape to the parent.
        tape = state.trace = self.tape
        outer, tape.is_split = tape.is_split, primitive.multi and _splits(primitive)
        try:
            out, out_tangent = primitive.linearize(primals, tangents, **params)
            if state.tracked:
                out_tangent = cast_tangents(primitive, out, out_tangent)
        finally:
            state.trace, state.source, tape.is_split = previous, line, outer
        if primitive.multi:
            for i, value in enumerate(out):
                if tape.has(value):
                    raise _value_of_tangents(primitive, i)
            return [self.join(p, t) for p, t in zip(out, out_tangent, strict=True)]
        return self.join(out, out_tangent)


def _value_of_tangents(primitive: Primitive, position: int) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"{primitive.name}: result {position} that the rule returns is computed from a "
        "tangent, which reverse mode (grad, vjp) does not know when it computes "
        "results: compute the results from the primals alone"
    )


@dataclass(eq=False, repr=False)
class Linearized:
    """A function at a point: its values, and its derivative there as a tape.

    Attributes:
      outs: the values.
      tangents: for each value a `Var` of the tape, or a `Zero`.
      inputs: the tape's variables for the arguments that have a tangent.
      nodes: the tape.
    """

    outs: list[Any]
    tangents: list[Any]
    inputs: list[Var]
    nodes: list[Node]


def linearize_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    active: Sequence[bool] | None = None,
) -> Linearized:
    """Linearizes a flat function under the current interpreter.

    Args:
      function: of flat values.
      primals: where.
      active: which arguments have a tangent (None: all).
    """
    parent = state.trace
    trace = LinearizeTrace(parent, function)
    if active is None:
        active = (True,) * len(primals)
    args = [
        trace.argument(p) if live else p
        for p, live in zip(primals, active, strict=True)
    ]
    inputs = [
        a.tangent._var for a in args if type(a) is LinearizeTracer and a._trace is trace
    ]
    trace.inputs = [
        a.tangent._var if live else None for a, live in zip(args, active, strict=True)
    ]
    state.trace = trace
    try:
        outs = function(*args)
        pairs = [trace.split(out) for out in outs]
    finally:
        state.trace = parent
    tangents = [t if type(t) is Zero else t._var for _, t in pairs]
    return Linearized([p for p, _ in pairs], tangents, inputs, trace.tape.nodes)


class LinearGraphs(Frozen, eq=False):
    """The derivative of a graph in two graphs.

    Attributes:
      primal: inputs `x…`, outputs `y…, r…`: the values, then the residuals that are
        neither inputs nor constants.
      tangent: inputs `r…, t…` (all residuals, then the tangents that are not zero),
        outputs the tangents that are not zero.
      residual_inputs: for each residual the position of the input it is, or None if it
        is the next extra output of `primal`.
      has_tangent: for each output of the original graph, whether it has a tangent.
    """

    primal: Graph
    tangent: Graph
    residual_inputs: list[int | None]
    has_tangent: list[bool]

    def residuals(self, inputs: Sequence[Any], extra: Sequence[Any]) -> list[Any]:
        """Returns the residuals from the inputs and the extra outputs of `primal`."""
        rest = iter(extra)
        return [next(rest) if i is None else inputs[i] for i in self.residual_inputs]


def linearize_graph(
    graph: Graph,
    nonzero: Sequence[bool],
    instantiated: Sequence[bool] | bool = False,
) -> LinearGraphs:
    """Splits a graph's derivative into the graph of values and that of tangents.

    Args:
      graph: to differentiate.
      nonzero: which inputs have a tangent.
      instantiated: which outputs must have a tangent even where it is zero.
    """
    if isinstance(instantiated, bool):
        instantiated = (instantiated,) * len(graph.outputs)
    key = ("linearize", tuple(nonzero), tuple(instantiated))
    trace = GraphTrace(graph.name)

    def record() -> LinearGraphs:
        args = [trace.argument(aval) for aval in graph.in_avals]
        lin = linearize_flat(graph.evaluate, args, nonzero)
        return _split(graph, trace, args, lin, instantiated)

    return graph.remembered(key, lambda: recording(trace, record))


def graph_without_tangents(graph: Graph, known: Sequence[bool]) -> Graph:
    """Returns the graph of the operations that read no tangents.

    Args:
      graph: without outputs.
      known: which inputs are values; the others are tangents, and left out.
    """

    def run(*values: Any) -> list[Any]:
        given, tape = iter(values), Tape(state.trace)
        args = [
            next(given) if k else TangentTracer(tape, Var(aval))
            for k, aval in zip(known, graph.in_avals, strict=True)
        ]
        previous, state.trace = state.trace, tape
        try:
            graph.evaluate(*args)
        finally:
            state.trace = previous
        return []

    avals = [a for a, k in zip(graph.in_avals, known, strict=True) if k]
    return trace_closed(run, avals, name=graph.name)


def _split(
    graph: Graph,
    trace: GraphTrace,
    args: Sequence[GraphTracer],
    lin: Linearized,
    instantiated: Sequence[bool],
) -> LinearGraphs:
    has_tangent = [
        type(t) is not Zero or bool(wanted)
        for t, wanted in zip(lin.tangents, instantiated, strict=True)
    ]
    nodes = live_nodes(lin.nodes, lin.tangents)
    # A tape over a recorded graph holds that graph's tracers as residuals.
    residuals: dict[int, tuple[GraphTracer, Var]] = {}

    def atom(value: Any) -> Any:
        if type(value) is Var or type(value) is Literal:
            return value
        # A value from outside, such as a constant of a rule, becomes one of this graph.
        if not (type(value) is GraphTracer and value._trace is trace):
            recorded = trace.atom(value)
            if type(recorded) is Literal:
                return recorded
            value = GraphTracer(trace, recorded)
        # By variable: two tracers of one variable are one residual.
        known = residuals.get(id(value._var))
        if known is None:
            known = residuals[id(value._var)] = value, Var(value.aval)
        return known[1]

    tangent_nodes = [
        node.replace(inputs=[atom(value) for value in node.inputs]) for node in nodes
    ]
    outputs: list[Any] = []
    for t, kept in zip(lin.tangents, has_tangent, strict=True):
        if kept:
            outputs.append(atom(instantiate(t)) if type(t) is Zero else t)
    positions = {id(a._var): i for i, a in enumerate(args)}
    residual_inputs: list[int | None] = []
    extra: list[Any] = []
    for value, _ in residuals.values():
        # An input need not be returned: the caller of the graph has it.
        position = positions.get(id(value._var))
        residual_inputs.append(position)
        if position is None:
            extra.append(value)
    primal = closed(*trace.finish([a._var for a in args], [*lin.outs, *extra]))
    variables = [var for _, var in residuals.values()]
    tangent = Graph(
        [*variables, *lin.inputs], tangent_nodes, outputs, f"d_{graph.name}"
    )
    return LinearGraphs(primal, tangent, residual_inputs, has_tangent)


def tape_to_graph(lin: Linearized, name: str) -> tuple[Graph, list[Any]]:
    """Returns a tape as a graph whose first inputs are its residuals, and those.

    Args:
      lin: a linearized function whose residuals are values.
      name: of the graph.
    """
    residuals: dict[int, tuple[Any, Var]] = {}

    def atom(value: Any) -> Any:
        if type(value) is Var or type(value) is Literal:
            return value
        aval = typeof(value)
        # A number that a rule wrote.
        if not aval.ndim and not isinstance(value, Array):
            return Literal(np.asarray(value, aval.dtype), aval)
        known = residuals.get(id(value))
        if known is None:
            known = residuals[id(value)] = value, Var(aval)
        return known[1]

    nodes = [
        node.replace(inputs=[atom(v) for v in node.inputs])
        for node in live_nodes(lin.nodes, lin.tangents)
    ]
    outputs = [atom(instantiate(t)) if type(t) is Zero else t for t in lin.tangents]
    variables = [var for _, var in residuals.values()]
    graph = Graph([*variables, *lin.inputs], nodes, outputs, name, len(variables))
    return graph, [value for value, _ in residuals.values()]
