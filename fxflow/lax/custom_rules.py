"""Derivatives given by the user, as objects that operations carry.

A *JVP rule* is called as `rule(consts, primals, tangents)` and returns `(outs,
out_tangents)`. A *VJP rule* has `forward(consts, primals, active)`, which returns
`(outs, residuals, backward)`; `backward(residuals, cotangents)` returns a cotangent for
each primal. All are flat; a tangent or cotangent known to be zero is a `Zero`. `consts`
are values that the rule captured, if it was traced.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import batch_flat, materialize
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, forwarded
from fxflow.core.ir.higher_order import (
    carries_tangent,
    chosen,
    live_flags,
    split_at,
    spread,
    with_consts,
)
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.padding import pad
from fxflow.lax.reshaping import expand_dims
from fxflow.lax.slicing import index_in_dim

Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class JVPRule(Protocol):
    """See the module."""

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Returns results and their tangents."""


class VJPRule(Protocol):
    """See the module."""

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """Returns results, what the backward pass needs, and the backward pass."""


# -- vectorized ------------------------------------------------------------------------


class BatchedJVPRule:
    """A JVP rule on whole batches.

    Args:
      rule: of one slice.
      size: length of the mapped axis.
      mapped: which of consts and primals are mapped; a tangent is if its primal is.
      axis_name: name of the axis, or None.
      out_mapped: which results the function has mapped.

    Attributes:
      out_mapped: which results are mapped; a tangent is if its result is.
    """

    axis_name: Any
    rule: JVPRule
    size: int
    mapped: list[bool]
    out_mapped: list[bool]

    def __init__(
        self,
        rule: JVPRule,
        size: int,
        mapped: Sequence[bool],
        axis_name: Any,
        out_mapped: Sequence[bool],
    ) -> None:
        self.rule, self.size, self.axis_name = rule, size, axis_name
        self.mapped = list(mapped)
        self.out_mapped = list(out_mapped)

    def settle(self, graph: Graph, avals: Sequence[Aval], num_consts: int) -> bool:
        """Has those results mapped too whose tangents are.

        Only the rule can tell: a function may be constant with a derivative that is
        not. So it is traced, unless all results are mapped anyway.

        Args:
          graph: of the function of one slice.
          avals: types of consts and primals on whole batches.
          num_consts: how many of them are consts.

        Returns:
          Whether it is known for good. While the rule of another function is traced
          for this purpose, all results are mapped: rules may refer to ever new ones.
        """
        if all(self.out_mapped):
            return True
        identity = getattr(_innermost(self.rule), "key", self.rule)
        key = identity, self.size, self.mapped, self.axis_name, list(avals)
        # The rule calls its own function: what the outer call has found so far holds
        # there.
        for known, rule in _settling.rules:
            if known == key:
                self.out_mapped = rule.out_mapped
                return False
        if _settling.rules:
            self.out_mapped = [True] * len(self.out_mapped)
            return False
        _settling.rules.append((key, self))
        try:
            found: list[bool] = []
            # To a fixed point: where the rule calls its own function, these flags are
            # those of the inner call's results.
            while found != self.out_mapped:
                found = self.out_mapped
                have = self._tangents_mapped(avals, num_consts)
                self.out_mapped = [a or b for a, b in zip(found, have, strict=True)]
        finally:
            _settling.rules.pop()
        return True

    def _tangents_mapped(self, avals: Sequence[Aval], num_consts: int) -> list[bool]:
        """Returns which tangents are mapped, by tracing the rule."""
        found: list[bool] = []
        tangent_avals = [a.tangent() for a in avals[num_consts:]]
        active = [carries_tangent(a) for a in tangent_avals]

        def run(*values: Any) -> list[Any]:
            consts, primals, given = split_at(values, num_consts, len(active))
            tangents = spread(given, active, tangent_avals)
            _, have, has = self._run(consts, primals, tangents)
            rest = iter(have[len(has) :])
            found[:] = [live and next(rest) for live in has]
            return []

        try:
            trace_flat(run, [*avals, *chosen(tangent_avals, active)], name="rule")
        except Exception:
            # It may never be asked for; if it is, it will say what is wrong.
            return [True] * len(self.out_mapped)
        return found

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """See `JVPRule`."""
        results, have, has = self._run(consts, primals, tangents)
        wanted = [*self.out_mapped, *chosen(self.out_mapped, has)]
        full = [
            _mapped_as(r, self.size, m, w)
            for r, m, w in zip(results, have, wanted, strict=True)
        ]
        outs = full[: len(has)]
        zeros = [typeof(o).tangent() for o in outs]
        return outs, spread(full[len(has) :], has, zeros)

    def _run(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[bool], list[bool]]:
        """Returns results and tangents, which are mapped, and which have a tangent."""
        first, count = len(consts), len(consts) + len(primals)
        live = live_flags(tangents)
        has: list[bool] = []

        def one(*values: Any) -> list[Any]:
            zeros = [t.aval if type(t) is Zero else None for t in tangents]
            given = iter(values[count:])
            slices = [
                next(given) if z is None else Zero(_row(z, m))
                for z, m in zip(zeros, self.mapped[first:], strict=True)
            ]
            outs, out_tangents = self.rule(values[:first], values[first:count], slices)
            has[:] = live_flags(out_tangents)
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        mapped = self.mapped + chosen(self.mapped[first:], live)
        args = [*consts, *primals, *(t for t in tangents if type(t) is not Zero)]
        results, have = batch_flat(one, self.size, args, mapped, self.axis_name)
        return results, have, has


class BatchedVJPRule:
    """A VJP rule on whole batches; see `BatchedJVPRule`."""

    axis_name: Any
    rule: VJPRule
    size: int
    mapped: list[bool]
    out_mapped: list[bool]
    collected: list[bool]

    def __init__(
        self,
        rule: VJPRule,
        size: int,
        mapped: Sequence[bool],
        axis_name: Any,
        out_mapped: Sequence[bool],
    ) -> None:
        self.rule, self.size, self.axis_name = rule, size, axis_name
        self.mapped = list(mapped)
        self.out_mapped = list(out_mapped)
        self.collected = [False] * len(self.out_mapped)

    def settle(self, graph: Graph, avals: Sequence[Aval], num_consts: int) -> bool:
        """Notes which results are what all slices have collected.

        Which are mapped is known: cotangents are as their results.
        """
        if self.axis_name is not None:
            self.collected = [f is None for f in forwarded(graph)]
        return True

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """See `VJPRule`."""
        first = len(consts)
        backwards: list[Backward] = []

        def one(*values: Any) -> list[Any]:
            outs, residuals, backward = self.rule.forward(
                values[:first], values[first:], active
            )
            backwards.append(backward)
            return [*outs, *residuals]

        results, have = batch_flat(
            one, self.size, [*consts, *primals], self.mapped, self.axis_name
        )
        count = len(self.out_mapped)
        outs = [
            _mapped_as(r, self.size, m, w)
            for r, m, w in zip(results, have, self.out_mapped, strict=False)
        ]
        backward = BatchedBackward(
            backwards[0],
            self.size,
            have[count:],
            self.out_mapped,
            self.mapped[first:],
            self.axis_name,
            self.collected,
        )
        return outs, results[count:], backward


class BatchedBackward:
    """A backward pass on whole batches.

    Args:
      backward: of one slice.
      size: length of the mapped axis.
      residuals_mapped: which residuals are mapped.
      cotangents_mapped: which cotangents are mapped.
      primals_mapped: which primals were; the cotangents of the others are summed.
      axis_name: name of the axis, or None.
      collected: which results that are not mapped are a collective's: each slice has
        the whole cotangent. That of any other is the first slice's, as if the result
        had been taken from there.
    """

    axis_name: Any
    backward: Backward
    size: int
    residuals_mapped: list[bool]
    cotangents_mapped: list[bool]
    collected: list[bool]
    primals_mapped: list[bool]

    def __init__(
        self,
        backward: Backward,
        size: int,
        residuals_mapped: Sequence[bool],
        cotangents_mapped: Sequence[bool],
        primals_mapped: Sequence[bool],
        axis_name: Any,
        collected: Sequence[bool] = (),
    ) -> None:
        self.backward, self.size, self.axis_name = backward, size, axis_name
        self.residuals_mapped = list(residuals_mapped)
        self.cotangents_mapped = list(cotangents_mapped)
        self.collected = list(collected) or [False] * len(self.cotangents_mapped)
        self.primals_mapped = list(primals_mapped)

    def __call__(
        self, residuals: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        """Returns a cotangent for each primal."""
        count = len(residuals)
        ways = zip(cotangents, self.cotangents_mapped, self.collected, strict=True)
        # A cotangent without a batch axis counts once for the whole batch: it becomes
        # the first slice's.
        alone = [not (m or c or type(ct) is Zero) for ct, m, c in ways]
        cotangents = [
            self._in_first(ct) if a else ct
            for ct, a in zip(cotangents, alone, strict=True)
        ]
        cts_mapped = [
            a or b for a, b in zip(self.cotangents_mapped, alone, strict=True)
        ]
        live = live_flags(cotangents)
        zeros: list[Zero | None] = []

        def one(*values: Any) -> list[Any]:
            given = iter(values[count:])
            slices = [
                Zero(_row(ct.aval, m)) if type(ct) is Zero else next(given)
                for ct, m in zip(cotangents, cts_mapped, strict=True)
            ]
            cts = self.backward(values[:count], slices)
            zeros[:] = [ct if type(ct) is Zero else None for ct in cts]
            return [ct for ct in cts if type(ct) is not Zero]

        mapped = self.residuals_mapped + chosen(cts_mapped, live)
        args = [*residuals, *(ct for ct in cotangents if type(ct) is not Zero)]
        results, have = batch_flat(one, self.size, args, mapped, self.axis_name)
        rest = iter(zip(results, have, strict=True))
        out: list[Any] = []
        for zero, is_mapped in zip(zeros, self.primals_mapped, strict=True):
            if zero is not None:
                shape = (self.size, *zero.shape) if is_mapped else zero.shape
                out.append(Zero(zero.aval.update(shape=shape)))
                continue
            value, have_axis = next(rest)
            value = materialize(value, self.size, have_axis)
            out.append(value if is_mapped else arith.reduce_sum(value, (0,)))
        return out

    def _in_first(self, cotangent: Any) -> Any:
        """Returns a batch of zeros, but for the first slice."""
        row = expand_dims(cotangent, (0,))
        config = [(0, 0, 0)] * typeof(row).ndim
        config[0] = (0, self.size - 1, 0)
        return pad(row, arith.constant(0, typeof(row).dtype), config)


def _mapped_as(value: Any, size: int, is_mapped: bool, wanted: bool) -> Any:
    """Returns a rule's result mapped as the function's, which it is equal to."""
    if is_mapped and not wanted:
        return index_in_dim(value, 0, keepdims=False)
    return materialize(value, size, is_mapped) if wanted else value


def _innermost(rule: Any) -> Any:
    """Returns the rule that others were made of."""
    while hasattr(rule, "rule"):
        rule = rule.rule
    return rule


def memo_beside(rule: Any, graph: Graph) -> dict[Any, Any]:
    """Returns what is remembered of a rule and a graph, as long as both are there.

    A graph may be shared by functions with other rules, and outlive them and the arrays
    that they close over: so it is the rule that remembers.
    """
    table = vars(rule).setdefault("_memo", weakref.WeakKeyDictionary())
    memo: dict[Any, Any] = table.setdefault(graph, {})
    return memo


def rule_name(rule: Any) -> str:
    """Returns the name of a rule."""
    rule = _innermost(rule)
    return str(getattr(rule, "name", type(rule).__name__))


class _Settling(threading.local):
    """The rules that this thread is tracing to see what they have mapped."""

    def __init__(self) -> None:
        self.rules: list[tuple[Any, BatchedJVPRule]] = []


_settling = _Settling()


def _row(aval: Aval, mapped: bool) -> Aval:
    return aval.update(shape=aval.shape[1:]) if mapped else aval


# -- traced ----------------------------------------------------------------------------


class TracedJVPRule:
    """A JVP rule as a graph, because it captured traced values.

    Args:
      rule: to trace.
      avals: types of the primals.

    Attributes:
      consts: what the rule captured: pass them on as operands.
    """

    avals: list[Aval]
    rule: JVPRule
    active: list[bool]
    graph: Graph
    has_tangent: list[bool]

    def __init__(self, rule: JVPRule, avals: Sequence[Aval]) -> None:
        self.rule, self.avals = rule, list(avals)
        self.active = [carries_tangent(a) for a in avals]
        self.consts: list[Any] = []
        self.trace()

    def trace(self) -> None:
        """Traces the rule, again if it now calls itself as traced."""
        count = len(self.avals)
        tangent_avals = [a.tangent() for a in self.avals]
        has: list[bool] = []

        def flat(*values: Any) -> list[Any]:
            tangents = spread(values[count:], self.active, tangent_avals)
            outs, out_tangents = self.rule([], values[:count], tangents)
            has[:] = live_flags(out_tangents)
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        avals = [*self.avals, *chosen(tangent_avals, self.active)]
        graph, consts = trace_flat(flat, avals, name="custom_jvp")
        self.consts = _union(self.consts, consts)
        self.graph, self.has_tangent = with_consts(graph, consts, self.consts), has

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """See `JVPRule`."""
        # The graph was traced with every tangent: zeros need elements.
        live = [arith.instantiate(t) for t in chosen(tangents, self.active)]
        results = self.graph.evaluate(*consts, *primals, *live)
        count = len(self.has_tangent)
        outs = results[:count]
        zeros = [typeof(o).tangent() for o in outs]
        return outs, spread(results[count:], self.has_tangent, zeros)


class TracedVJPRule:
    """A VJP rule as two graphs, because it captured traced values.

    Args:
      rule: to trace.
      avals: types of the primals.
      out_avals: types of the results.

    Attributes:
      consts: what the rule captured: pass them on as operands.
    """

    avals: list[Aval]
    out_avals: list[Aval]
    rule: VJPRule
    graph: Graph
    backward: _TracedBackward

    def __init__(
        self, rule: VJPRule, avals: Sequence[Aval], out_avals: Sequence[Aval]
    ) -> None:
        self.rule, self.avals, self.out_avals = rule, list(avals), list(out_avals)
        self.consts: list[Any] = []
        self.trace()

    def trace(self) -> None:
        """Traces the rule, again if it now calls itself as traced."""
        count = len(self.out_avals)
        active = [carries_tangent(a) for a in self.avals]
        backwards: list[Backward] = []

        def forward(*values: Any) -> list[Any]:
            outs, residuals, backward = self.rule.forward([], values, active)
            backwards.append(backward)
            return [*outs, *residuals]

        graph, forward_consts = trace_flat(forward, self.avals, name="custom_fwd")
        residual_avals = graph.out_avals[count:]
        tangent_avals = [a.tangent() for a in self.out_avals]
        live = [carries_tangent(a) for a in self.out_avals]
        zeros: list[Zero | None] = []

        def backward(*values: Any) -> list[Any]:
            residuals = values[: len(residual_avals)]
            cts = spread(values[len(residual_avals) :], live, tangent_avals)
            results = backwards[0](residuals, cts)
            zeros[:] = [ct if type(ct) is Zero else None for ct in results]
            return [ct for ct in results if type(ct) is not Zero]

        pullback, backward_consts = trace_flat(
            backward,
            [*residual_avals, *chosen(tangent_avals, live)],
            name="custom_bwd",
        )
        self.consts = _union(_union(self.consts, forward_consts), backward_consts)
        self.graph = with_consts(graph, forward_consts, self.consts)
        self.backward = _TracedBackward(
            with_consts(pullback, backward_consts, self.consts), live, zeros
        )

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """See `VJPRule`."""
        results = self.graph.evaluate(*consts, *primals)
        count = len(self.out_avals)
        return results[:count], [*consts, *results[count:]], self.backward


class DeferredRule:
    """A rule that is traced when it is first used, because it captured traced values.

    Args:
      make: traces it.
      captured: those values: pass them on as operands.
    """

    def __init__(self, make: Callable[[], Any], captured: Sequence[Any]) -> None:
        self._make, self._captured = make, list(captured)
        self._rule: Any = None

    def _traced(self, consts: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Returns the traced rule and what it captured, as operands are here."""
        if self._rule is None:
            self._rule = self._make()
        given = dict(zip(map(id, self._captured), consts, strict=True))
        return self._rule, [given.get(id(c), c) for c in self._rule.consts]

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """See `JVPRule`."""
        rule, consts = self._traced(consts)
        outs: tuple[list[Any], list[Any]] = rule(consts, primals, tangents)
        return outs

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """See `VJPRule`."""
        rule, consts = self._traced(consts)
        outs: tuple[list[Any], list[Any], Backward]
        outs = rule.forward(consts, primals, active)
        return outs


# -- masked ----------------------------------------------------------------------------


def _with_mask(
    function: Callable[..., list[Any]], active: Any, values: Sequence[Any]
) -> list[Any]:
    """Runs a flat function; its effects happen where `active` holds."""
    graph, captured = trace_flat(function, list(map(typeof, values)), name="rule")
    return masked_graph(graph).evaluate(active, *captured, *values)


class MaskedJVPRule:
    """A JVP rule whose effects happen where its first constant holds (bool[])."""

    rule: JVPRule

    def __init__(self, rule: JVPRule) -> None:
        self.rule = rule

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """See `JVPRule`."""
        active, *consts = consts
        live = live_flags(tangents)
        has: list[bool] = []
        avals = [t.aval if type(t) is Zero else typeof(t) for t in tangents]
        out_avals: list[Aval] = []

        def flat(*values: Any) -> list[Any]:
            own, args, given = split_at(values, len(consts), len(primals))
            outs, out_tangents = self.rule(own, args, spread(given, live, avals))
            has[:] = live_flags(out_tangents)
            out_avals[:] = [typeof(o).tangent() for o in outs]
            return [*outs, *chosen(out_tangents, has)]

        values = [*consts, *primals, *chosen(tangents, live)]
        results = _with_mask(flat, active, values)
        count = len(out_avals)
        return results[:count], spread(results[count:], has, out_avals)


class MaskedVJPRule:
    """A VJP rule whose effects happen where its first constant holds (bool[])."""

    rule: VJPRule

    def __init__(self, rule: VJPRule) -> None:
        self.rule = rule

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """See `VJPRule`."""
        mask, *consts = consts
        backwards: list[Backward] = []
        counts: list[int] = []

        def flat(*values: Any) -> list[Any]:
            own, args = split_at(values, len(consts))
            outs, residuals, backward = self.rule.forward(own, args, active)
            backwards.append(backward)
            counts.append(len(outs))
            return [*outs, *residuals]

        results = _with_mask(flat, mask, [*consts, *primals])
        outs, residuals = split_at(results, counts[0])
        return outs, [mask, *residuals], _MaskedBackward(backwards[0])


class _MaskedBackward:
    def __init__(self, backward: Backward) -> None:
        self.backward = backward

    def __call__(
        self, residuals: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        mask, *residuals = residuals
        live = live_flags(cotangents)
        avals = [t.aval if type(t) is Zero else typeof(t) for t in cotangents]
        zeros: list[Zero | None] = []

        def flat(*values: Any) -> list[Any]:
            own, given = split_at(values, len(residuals))
            cts = self.backward(own, spread(given, live, avals))
            zeros[:] = [ct if type(ct) is Zero else None for ct in cts]
            return [ct for ct in cts if type(ct) is not Zero]

        values = [*residuals, *chosen(cotangents, live)]
        results = iter(_with_mask(flat, mask, values))
        return [next(results) if zero is None else zero for zero in zeros]


class _TracedBackward:
    def __init__(
        self, graph: Graph, live: Sequence[bool], zeros: Sequence[Zero | None]
    ) -> None:
        self.graph: Graph = graph
        self.live: Sequence[bool] = live
        self.zeros: Sequence[Zero | None] = zeros

    def __call__(
        self, residuals: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        cts = [arith.instantiate(ct) for ct in chosen(cotangents, self.live)]
        results = iter(self.graph.evaluate(*residuals, *cts))
        return [next(results) if zero is None else zero for zero in self.zeros]


def _union(values: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Returns the first values, then those of the second that are new objects."""
    return list({id(v): v for v in (*values, *more)}.values())
