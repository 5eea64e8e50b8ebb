"""Forward-mode differentiation: each primal travels with its tangent.

`JVPTrace` runs a primitive's `jvp` rule under its parent interpreter. A tangent that is
known to be zero stays symbolic, so nothing is computed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from fxflow.core.arrays import Array, Aval, typeof, unwrapped
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Primitive, Zero
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Trace, Tracer, state
from fxflow.core.spmd.varying import cast


class DualTracer(Tracer):
    """A value with its tangent.

    Attributes:
      transformation: what differentiates it, for messages.
    """

    __slots__ = ("primal", "tangent")
    transformation: ClassVar[str]
    primal: Any
    tangent: Any

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.aval: Aval = typeof(primal)

    def origin(self) -> str:
        """Says where the value comes from."""
        inner = self.primal
        if isinstance(inner, Tracer):
            return inner.origin()
        found = " and ".join(self.depends_on())
        by = f" by {found}" if found else ""
        return f"It is being differentiated ({self.transformation}){by}."

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions the value is computed from."""
        return self.primal.depends_on() if isinstance(self.primal, Tracer) else []


class JVPTracer(DualTracer):
    """A value with its tangent, which is computed beside it."""

    __slots__ = ()
    transformation = "jvp"


class JVPTrace(Trace):
    """Differentiates operations forwards.

    Attributes:
      parent: the interpreter that runs values and tangents.
    """

    __slots__ = ("parent",)

    parent: Trace

    def __init__(self, parent: Trace) -> None:
        self.parent = parent

    def split(self, value: Any) -> tuple[Any, Any]:
        """Returns a value and its tangent (a `Zero` for a constant)."""
        if not isinstance(value, Array):
            value = unwrapped(value)
        if type(value) is JVPTracer and value._trace is self:
            return value.primal, value.tangent
        return value, Zero(typeof(value).tangent())

    def join(self, primal: Any, tangent: Any) -> Any:
        """Returns the tracer of a value and its tangent."""
        if type(tangent) is Zero:
            # No tracer: what is computed from it alone goes straight to the parent.
            return primal
        return JVPTracer(self, primal, tangent)

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Differentiates one operation; see `Trace.process`."""
        # `under` is written out in every interpreter, since this runs for each
        # operation.
        pairs = [self.split(a) for a in args]
        primals = [p for p, _ in pairs]
        tangents = [t for _, t in pairs]
        previous = state.trace
        state.trace = self.parent
        try:
            # The operation need not have a rule: it may be nondifferentiable.
            if all(type(t) is Zero for t in tangents):
                return self.parent.process(primitive, tuple(primals), params)
            out, out_tangent = primitive.jvp(primals, tangents, **params)
            if state.tracked:
                out_tangent = cast_tangents(primitive, out, out_tangent)
        finally:
            state.trace = previous
        if primitive.multi:
            return [self.join(p, t) for p, t in zip(out, out_tangent, strict=True)]
        return self.join(out, out_tangent)


def cast_tangents(primitive: Primitive, out: Any, tangents: Any) -> Any:
    """Returns tangents that differ along the same axes as the values they are of."""

    def one(value: Any, tangent: Any) -> Any:
        return tangent if type(tangent) is Zero else cast(tangent, typeof(value).vma)

    if primitive.multi:
        return [one(v, t) for v, t in zip(out, tangents, strict=True)]
    return one(out, tangents)


def jvp_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Returns the results of a flat function and their tangents (perhaps `Zero`).

    Args:
      function: of flat values.
      primals: the values.
      tangents: values or `Zero`s.
    """
    parent = state.trace
    trace = JVPTrace(parent)
    state.trace = trace
    try:
        outs = function(*map(trace.join, primals, tangents))
        pairs = [trace.split(out) for out in outs]
    finally:
        state.trace = parent
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_graph(
    graph: Graph, nonzero: Sequence[bool], instantiated: Sequence[bool] | bool = False
) -> tuple[Graph, list[bool]]:
    """Returns the graph of a graph's derivative.

    Args:
      graph: with inputs `x…`.
      nonzero: which inputs have a tangent.
      instantiated: which output tangents must be arrays even where they are zero.

    Returns:
      A graph of inputs `x…, t…` (tangents only where `nonzero`) and outputs `y…, s…`
      (tangents only where the second value says so), and for each output whether it
      has a tangent.
    """
    if isinstance(instantiated, bool):
        instantiated = (instantiated,) * len(graph.outputs)
    key = ("jvp", tuple(nonzero), tuple(instantiated))

    def derive() -> tuple[Graph, list[bool]]:
        has_tangent: list[bool] = []
        count = len(graph.inputs)

        def derivative(*values: Any) -> list[Any]:
            given = iter(values[count:])
            tangents = [
                next(given) if live else Zero(var.aval.tangent())
                for var, live in zip(graph.inputs, nonzero, strict=True)
            ]
            outs, out_tangents = jvp_flat(graph.evaluate, values[:count], tangents)
            # Known only once the graph has been traced, which happens below.
            has_tangent[:] = [
                type(t) is not Zero or bool(wanted)
                for t, wanted in zip(out_tangents, instantiated, strict=True)
            ]
            live = [
                instantiate(t)
                for t, kept in zip(out_tangents, has_tangent, strict=True)
                if kept
            ]
            return [*outs, *live]

        tangent_avals = [
            a.tangent() for a, live in zip(graph.in_avals, nonzero, strict=True) if live
        ]
        derived = trace_closed(
            derivative, [*graph.in_avals, *tangent_avals], name=f"jvp_{graph.name}"
        )
        return derived, has_tangent

    return graph.remembered(key, derive)
