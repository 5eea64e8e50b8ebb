"""`jax.interpreters.partial_eval`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from fxflow.compat.jax._jaxprs import Jaxpr, jaxpr_of
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.extend.linear_util import WrappedFun
from fxflow.core.arrays import typeof
from fxflow.core.ir.graph import Graph, Literal
from fxflow.core.ir.staging import GraphTrace, GraphTracer, recording, trace_flat
from fxflow.core.ir.trace import Trace, state


class PartialVal(tuple[Any, Any]):
    """`(None, value)` of what is known, `(type, None)` of what is not."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Makes one that is known."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """Makes one of which the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Returns whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Returns the value, or None."""
        return self[1]

    def get_aval(self) -> Any:
        """Returns the type."""
        return typeof(self[1]) if self[0] is None else self[0]


class PartialTrace(GraphTrace):
    """Records what depends on its own tracers; the rest runs as it would outside."""

    __slots__ = ("parent",)

    def __init__(self, name: str, parent: Trace) -> None:
        super().__init__(name)
        self.parent: Trace = parent

    def process(self, primitive: Any, args: Any, params: dict[str, Any]) -> Any:
        """Interprets one operation; see `Trace.process`."""
        if any(self._mine(a) for a in args):
            return super().process(primitive, args, params)
        before = state.trace
        state.trace = self.parent
        try:
            return self.parent.process(primitive, args, params)
        finally:
            state.trace = before

    def _mine(self, value: Any) -> bool:
        return type(value) is GraphTracer and value._trace is self


def trace_to_jaxpr_nounits(
    fun: WrappedFun,
    pvals: Sequence[PartialVal],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluates a function as far as its arguments are known; the rest is a jaxpr.

    Args:
      fun: of flat values.
      pvals: one for each argument.
      instantiate: which results shall be results of the jaxpr though they are known.

    Returns:
      The jaxpr of what is unknown, what is known of each result, and the values of the
      jaxpr's constants.
    """
    trace = PartialTrace(fun.__name__, state.trace)
    tracers = [p[1] if p.is_known() else trace.argument(p[0]) for p in pvals]
    inputs = [t._var for t, p in zip(tracers, pvals, strict=True) if not p.is_known()]
    found: list[PartialVal] = []

    def record() -> tuple[Graph, list[Any]]:
        outs = list(fun.call_wrapped(*tracers))
        wanted = (
            [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        )
        unknown = []
        for out, keep in zip(outs, wanted, strict=True):
            if keep or trace._mine(out):
                unknown.append(out)
                found.append(PartialVal.unknown(typeof(out)))
            else:
                found.append(PartialVal.known(out))
        return trace.finish(inputs, unknown)

    graph, consts = recording(trace, record)
    return jaxpr_of(graph), found, consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Any], **options: Any
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Traces a function for arguments of given types.

    Args:
      fun: of flat values.
      in_avals: their types.
      **options: JAX's, which have no effect.

    Returns:
      The jaxpr, the types of its results, the values of its constants.
    """
    graph, consts = trace_flat(fun.call_wrapped, list(in_avals), name=fun.__name__)
    return jaxpr_of(graph), graph.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: bool | Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool]]:
    """Returns a jaxpr of some of its results only, and which arguments it takes.

    Args:
      jaxpr: a jaxpr.
      used_outputs: which results are wanted.
      instantiate: which arguments it takes whether they are needed or not.
    """

    def each(value: bool | Sequence[bool], count: int) -> list[bool]:
        return [value] * count if isinstance(value, bool) else list(value)

    wanted = each(used_outputs, len(jaxpr.outvars))
    outvars = list(compress(jaxpr.outvars, wanted))
    needed = {v for v in outvars if not isinstance(v, Literal)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not needed.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    kept = each(instantiate, len(jaxpr.invars))
    kept = [keep or v in needed for keep, v in zip(kept, jaxpr.invars, strict=True)]
    invars = list(compress(jaxpr.invars, kept))
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns[::-1]), kept


def dce_jaxpr_consts(
    jaxpr: Jaxpr,
    used_outputs: bool | Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Does what `dce_jaxpr` does, and leaves out constants that are not needed.

    Args:
      jaxpr: a jaxpr.
      used_outputs: which results are wanted.
      instantiate: which arguments it takes whether they are needed or not.

    Returns:
      The jaxpr, and which constants and arguments it takes.
    """
    new, used_inputs = dce_jaxpr(jaxpr, used_outputs, instantiate)
    atoms = [*new.outvars, *(atom for eqn in new.eqns for atom in eqn.invars)]
    needed = {atom for atom in atoms if not isinstance(atom, Literal)}
    used_consts = [v in needed for v in jaxpr.constvars]
    constvars = list(compress(jaxpr.constvars, used_consts))
    return new.replace(constvars=constvars), used_consts, used_inputs


JaxprTracer = DynamicJaxprTracer = GraphTracer

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "dce_jaxpr",
    "dce_jaxpr_consts",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

listen(globals())
