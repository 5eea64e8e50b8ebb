"""`while_loop`: a loop that runs as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.arrays.array import (
    ArrayOrNumber,
    is_arraylike,
    read_only,
)
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.calls import with_terms
from fxflow.core.interpreters.jet import jet_graph, listed_terms
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import discharge, read_all, write_back
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carries_tangent,
    carry_flow,
    chosen,
    flow_through,
    live_flags,
    loop_flow,
    run_host,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, register, table
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.runtime.lowering import Context
from fxflow.core.source import name_of
from fxflow.core.spmd.memories import Rewritten
from fxflow.errors import ArgumentError, NotDifferentiableError
from fxflow.lax.comparison import lt
from fxflow.lax.control_flow import cond as _cond  # noqa: F401 (masked graphs need it)
from fxflow.lax.control_flow.bounded_while import as_scans
from fxflow.lax.control_flow.carry import (
    as_type,
    leaves_of,
)
from fxflow.lax.control_flow.rows import any_row, filled, has_loop, select_rows
from fxflow.lax.control_flow.scan import traced_with_carry
from fxflow.lax.control_flow.scan_lowering import while_op

T = TypeVar("T")
C = TypeVar("C")
N = TypeVar("N", bound=tuple[Any, ...])


class WhileParams(Frozen):
    """The parameters of `While`.

    Attributes:
      condition: graph of constants and carry to one bool.
      body: graph of constants and carry to carry.
      num_condition: how many constants the condition has.
      num_body: how many constants the body has.
      bound: the most steps, as the condition sees to; None: there is no bound.
    """

    condition: Graph
    body: Graph
    num_condition: int
    num_body: int
    bound: int | None = None

    def split(self, inputs: Sequence[T]) -> list[list[T]]:
        """Returns the parts for the condition, for the body, and for the carry."""
        return split_at(inputs, self.num_condition, self.num_body)


@register
class While(HigherOrder):
    """Loop while a condition holds. dtypes: any. StableHLO: while.

    Operands are the condition's constants, the body's constants, and the first carry;
    results are the last carry. Without a bound it is differentiable forwards only: how
    many steps there were, and so how much reverse mode would have to keep, is not known
    when compiling.

    Params: see `WhileParams`.
    """

    name = "while"
    has_jet = True

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """Types of the carry."""
        p = WhileParams(**params)
        return p.body.in_avals[p.num_body :]

    # -- values ------------------------------------------------------------------------

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """`while`, whose regions use the constants from outside."""
        p = WhileParams(**params)
        fixed_c, fixed_b, carry = p.split(operands)

        def write_condition(inner: Context, names: list[str]) -> list[str]:
            return inner.graph(p.condition, [*fixed_c, *names])

        def write_body(inner: Context, names: list[str]) -> list[str]:
            return inner.graph(p.body, [*fixed_b, *names])

        avals = [a.physical for a in p.body.in_avals[p.num_body :]]
        if not carry:
            return self._without_carry(ctx, write_condition, write_body)
        boolean = p.condition.out_avals[0]
        return while_op(ctx, carry, avals, write_condition, write_body, boolean)

    def _without_carry(self, ctx: Context, condition: Any, body: Any) -> list[str]:
        """A loop with nothing to carry still needs a state in StableHLO."""
        unit = Aval((), np.dtype(np.bool_))
        start = ctx.constant(np.zeros((), np.bool_))
        while_op(
            ctx,
            [start],
            [unit],
            lambda inner, names: condition(inner, []),
            lambda inner, names: [*body(inner, []), *names],
            unit,
        )
        return []

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """A Python loop over NumPy's evaluation of the graphs."""
        p = WhileParams(**params)
        fixed_c, fixed_b, carry = p.split(values)
        while run_host(p.condition, [*fixed_c, *carry])[0]:
            carry = run_host(p.body, [*fixed_b, *carry])
        return list(map(np.asarray, carry))

    def operands_of_graphs(self, args: Values, params: dict[str, Any]) -> list[Values]:
        """Those of the condition, those of the body."""
        p = WhileParams(**params)
        return [args[: p.num_condition], args[p.num_condition :]]

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """A loop that carries the contents of references that the body writes to."""
        p = WhileParams(**params)
        test, step = discharge(p.condition), discharge(p.body)
        if test.written:
            raise ArgumentError(
                "while_loop: cond_fun writes to a reference, but is called once more "
                "than body_fun: write in body_fun"
            )
        fixed_c, fixed_b, _ = p.split(args)
        moved = list(step.written)
        refs = [fixed_b[i] for i in moved]
        # The condition may read what the body writes: the same objects.
        of_test = {
            id(ref): var
            for ref, var in zip(fixed_c, test.graph.inputs, strict=False)
            if any(ref is r for r in refs)
        }
        stay_c = [i for i, a in enumerate(fixed_c) if id(a) not in of_test]
        stay_b = [i for i in range(p.num_body) if i not in moved]
        first, count = p.num_body, len(p.body.outputs)
        held = [of_test.get(id(r)) or Var(r.aval.inner_aval) for r in refs]
        condition = test.graph.replace(
            inputs=[
                *(test.graph.inputs[i] for i in stay_c),
                *held,
                *test.graph.inputs[p.num_condition :],
            ],
        )
        inputs, outputs = step.graph.inputs, step.graph.outputs
        order = [*stay_b, *moved, *range(first, len(inputs))]
        body = step.graph.replace(
            inputs=[inputs[i] for i in order],
            outputs=[*outputs[count:], *outputs[:count]],
        )
        values = read_all(args)
        of_body = values[p.num_condition :]
        outs = self.bind(
            *(values[i] for i in stay_c),
            *(of_body[i] for i in order),
            **vars(WhileParams(condition, body, len(stay_c), len(stay_b), p.bound)),
        )
        write_back(refs, range(len(refs)), outs[: len(refs)])
        return outs[len(refs) :]

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """Without a bound that is not there."""
        return {k: v for k, v in params.items() if k != "bound" or v is not None}

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The carry stays where the body leaves it."""
        p = WhileParams(**node.params)
        body, wanted, outs = layout.loop(
            p.body, kinds[p.num_condition :], p.num_body, len(p.body.outputs)
        )
        fixed: list[Any] = [None] * p.num_condition
        condition = layout.lay_out(p.condition, [*fixed, *outs], [None]).graph
        new = p.replace(condition=condition, body=body)
        return Rewritten([*fixed, *wanted], outs, vars(new))

    def forwarded(self, **params: Any) -> list[int | None]:
        """The parts of the carry that the body leaves as they are."""
        p = WhileParams(**params)
        return [
            p.num_condition + f if f == p.num_body + i else None
            for i, f in enumerate(forwarded(p.body))
        ]

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A loop over the body's derivative; the condition sees values only."""
        p = WhileParams(**params)
        body, num_body = p.body, p.num_body
        fixed_c, fixed_b, carry = p.split(primals)
        _, body_tangents = split_at(tangents, p.num_condition)
        nonzero = live_flags(body_tangents)
        carried = carry_flow(body, nonzero, num_body, len(carry), carries_tangent)
        nonzero[num_body:] = carried
        derived, has = jvp_graph(body, nonzero, carried)
        live = [*map(arith.instantiate, chosen(body_tangents, nonzero))]
        count = sum(nonzero[:num_body])
        fixed, moving = split_at(live, count)
        new = WhileParams(
            condition=_with_unused(p.condition, derived, carried),
            body=_jvp_order(body, derived, num_body, count),
            num_condition=p.num_condition,
            num_body=num_body + count,
            bound=p.bound,
        )
        outs = self.bind(*fixed_c, *fixed_b, *fixed, *carry, *moving, **vars(new))
        values, out_tangents = split_at(outs, len(carry))
        avals = [a.tangent() for a in body.out_avals]
        return values, spread(out_tangents, has, avals)

    def jet(
        self, primals: Values, series: Values, order: int, /, **params: Any
    ) -> Dual:
        """A loop over the body's Taylor coefficients; the condition sees values."""
        p = WhileParams(**params)
        body, num_body = p.body, p.num_body
        fixed_c, fixed_b, carry = p.split(primals)
        _, body_series = split_at(series, p.num_condition)
        nonzero = live_flags(body_series)
        carried = carry_flow(body, nonzero, num_body, len(carry), carries_tangent)
        nonzero[num_body:] = carried
        derived, has = jet_graph(body, order, nonzero, carried)
        live = listed_terms(body_series, nonzero, order)
        count = order * sum(nonzero[:num_body])
        fixed, moving = split_at(live, count)
        new = WhileParams(
            condition=_with_unused(p.condition, derived, carried, order),
            body=_jvp_order(body, derived, num_body, count),
            num_condition=p.num_condition,
            num_body=num_body + count,
            bound=p.bound,
        )
        outs = self.bind(*fixed_c, *fixed_b, *fixed, *carry, *moving, **vars(new))
        return with_terms(outs, body.out_avals, has, order)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """With a bound, scans; else the loop, and for tangents the loop over again."""
        p = WhileParams(**params)
        if p.bound is not None:
            return table["jit"].linearize(primals, tangents, graph=as_scans(**params))
        # Residuals of a number of steps that is not known cannot be stacked.
        values = self.bind(*primals, **params)
        _, out_tangents = self.jvp(primals, tangents, **params)
        return values, out_tangents

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """Raises: the number of steps is not known when compiling."""
        raise NotDifferentiableError(
            "while_loop cannot be differentiated in reverse mode (grad, vjp), because "
            "the number of its steps, whose values would have to be kept, is not known "
            "when it is compiled: give a bound, while_loop(..., max_steps=n); or use "
            "scan, or fori_loop with bounds that are Python ints; or forward mode "
            "(jvp, jacfwd); or custom_vjp"
        )

    # -- vectorization, pruning --------------------------------------------------------

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """A loop until no slice goes on; slices that are done keep their carry."""
        p = WhileParams(**params)
        fixed_c, fixed_b, carry = p.split(args)
        flags_c, flags_b, start = p.split(mapped)
        flags = list(start)
        changes = [f != p.num_body + i for i, f in enumerate(forwarded(p.body))]
        body, flags_body, each = p.body, flags_b, False
        # To a fixed point: a part of the carry that becomes mapped may make others
        # mapped.
        while True:
            test, (test_mapped,) = batch_graph(
                p.condition, size, [*flags_c, *flags], each, axis_name
            )
            if test_mapped and not each:
                # Each slice stops at a step of its own.
                each = True
                if body.effects:
                    body, flags_body = masked_graph(body), [True, *flags_b]
            step, found = batch_graph(
                body, size, [*flags_body, *flags], flags, axis_name
            )
            if each:
                found = [f or c for f, c in zip(found, changes, strict=True)]
            if found == flags:
                break
            flags = found
        carry = [
            materialize(a, size, have) if want else a
            for a, have, want in zip(carry, start, flags, strict=True)
        ]
        if not each:
            new = p.replace(condition=test, body=step)
            return self.bind(*fixed_c, *fixed_b, *carry, **vars(new)), flags
        if isinstance(size, int) and size == 0:
            # No slice takes a step. XLA's compiler crashes on such a loop if it has
            # effects.
            return list(carry), flags
        again = test
        if p.condition.effects:
            again, _ = batch_graph(
                masked_graph(p.condition),
                size,
                [True, *flags_c, *flags],
                True,
                axis_name,
            )
        new = _stopping(test, again, step, p, [*flags_b, *flags], changes, axis_name)
        (going,) = test.evaluate(*fixed_c, *carry)
        outs = self.bind(*fixed_c, *fixed_b, going, *carry, **vars(new))
        return outs[1:], flags

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """A loop of the masked condition and body."""
        p = WhileParams(**params)
        fixed_c, fixed_b, carry = p.split(args)
        new = WhileParams(
            masked_graph(p.condition),
            masked_graph(p.body),
            p.num_condition + 1,
            p.num_body + 1,
            p.bound,
        )
        return self.bind(active, *fixed_c, active, *fixed_b, *carry, **vars(new))

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the body, round after round; all, if the condition depends."""
        p = WhileParams(**params)
        fixed, rest = split_at(sources, p.num_condition)
        flags = loop_flow(p.body, rest, p.num_body, len(p.body.outputs))
        carry = flags[p.num_body :]
        asked = [*fixed, *carry]
        if any(flow_through(p.condition, asked)):
            carry = [True] * len(carry)
        return carry, [[*fixed, *carry], [*flags[: p.num_body], *carry]]

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Drops carry that serves neither the wanted results nor the condition."""
        p = WhileParams(**node.params)
        condition, body = p.condition, p.body
        num_condition, num_body = p.num_condition, p.num_body
        in_condition = used_inputs(condition)
        keep = [
            w or u for w, u in zip(wanted, in_condition[num_condition:], strict=True)
        ]
        while True:
            smaller = prune(body, keep)
            used = used_inputs(smaller)
            needed = [k or u for k, u in zip(keep, used[num_body:], strict=True)]
            if needed == keep:
                break
            keep = needed
        keep_body = [*used[:num_body], *keep]
        keep_condition = [*in_condition[:num_condition], *keep]
        if all(keep_body) and all(keep_condition):
            return node
        fixed, rest = split_at(node.inputs, num_condition)
        new = WhileParams(
            condition=condition.replace(
                inputs=chosen(condition.inputs, keep_condition)
            ),
            body=smaller.replace(inputs=chosen(body.inputs, keep_body)),
            num_condition=sum(keep_condition[:num_condition]),
            num_body=sum(keep_body[:num_body]),
            bound=p.bound,
        )
        return node.replace(
            inputs=[
                *chosen(fixed, keep_condition[:num_condition]),
                *chosen(rest, keep_body),
            ],
            outputs=chosen(node.outputs, keep),
            params=vars(new),
        )


def _jvp_order(body: Graph, derived: Graph, num_body: int, count: int) -> Graph:
    """Returns the derivative with the constants' tangents before the carry."""
    key = ("while_order", num_body)

    def derive() -> Graph:
        fixed, carry, tangents = split_at(
            derived.inputs, num_body, len(body.inputs) - num_body
        )
        return derived.replace(
            inputs=[*fixed, *tangents[:count], *carry, *tangents[count:]]
        )

    return derived.remembered(key, derive)


def _with_unused(
    condition: Graph, derived: Graph, carried: Flags, order: int = 1
) -> Graph:
    """Returns the condition with an unused input for each tangent of the carry."""
    key = ("while_unused", tuple(carried), order)

    def derive() -> Graph:
        count = len(carried)
        values = condition.in_avals[len(condition.inputs) - count :]
        unused = [
            Var(a.tangent()) for a in chosen(values, carried) for _ in range(order)
        ]
        return condition.replace(inputs=[*condition.inputs, *unused])

    return condition.remembered(key, derive)


def _stopping(
    test: Graph,
    again: Graph,
    step: Graph,
    p: WhileParams,
    mapped: Flags,
    changes: Flags,
    axis_name: Any,
) -> WhileParams:
    """Returns the parameters of a loop whose rows stop at different steps.

    It first carries which rows go on. The condition holds while any does. The body,
    whose first constants are those of the rows' condition, changes only the rows that
    go on, and of the carry only what changes at all.

    Args:
      test: the vectorized condition.
      again: the same, masked if it has effects.
      step: the vectorized body, masked if it has effects.
      p: the parameters of one row's loop.
      mapped: which inputs of the body are mapped.
      changes: which parts of the carry the body changes.
      axis_name: of the batch, if the loop names it.
    """
    key = ("while_stopping", again, step, p.num_condition, p.num_body, p.bound)

    def derive() -> WhileParams:
        # What a collective takes of the rows that have stopped stays what it is.
        guards = has_loop(p.body) and axis_name is None
        masked = bool(p.body.effects)

        def any_goes_on(going: Any, *carry: Any) -> list[Any]:
            return [any_row(going)]

        def masked_step(*values: Any) -> list[Any]:
            fixed_c, fixed_b, rest = split_at(values, p.num_condition, p.num_body)
            going, *carry = rest
            given = [*fixed_b, *carry]
            if guards:
                others = filled(going, given, mapped)
                given = [
                    select_rows(going, x, other) if m else x
                    for x, other, m in zip(given, others, mapped, strict=True)
                ]
            results = step.evaluate(*[going] * masked, *given)
            new = [
                select_rows(going, n, o) if c else o
                for n, o, c in zip(results, carry, changes, strict=True)
            ]
            (still,) = again.evaluate(*[going] * (again is not test), *fixed_c, *new)
            return [table["and"].bind(going, still), *new]

        of_test, carry_avals = split_at(test.in_avals, p.num_condition)
        of_body = step.in_avals[masked : masked + p.num_body]
        avals = [*test.out_avals, *carry_avals]
        return WhileParams(
            trace_closed(any_goes_on, avals, name=test.name),
            trace_closed(masked_step, [*of_test, *of_body, *avals], name=step.name),
            0,
            p.num_condition + p.num_body,
            p.bound,
        )

    return test.remembered(key, derive)


# -- public ----------------------------------------------------------------------------


@overload
def while_loop(
    cond_fun: Callable[[Array], Any],
    body_fun: Callable[[Array], Array],
    init_val: ArrayOrNumber,
    *,
    max_steps: int | None = None,
) -> Array: ...
@overload
def while_loop(  # type: ignore[overload-overlap]
    cond_fun: Callable[[C], Any],
    body_fun: Callable[[C], C],
    init_val: C,
    *,
    max_steps: int | None = None,
) -> C: ...
@overload
def while_loop(
    cond_fun: Callable[[N], Any],
    body_fun: Callable[[N], N],
    init_val: tuple[Any, ...],
    *,
    max_steps: int | None = None,
) -> N: ...
@boundary
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
) -> Any:
    """Applies a function again and again while a condition holds.

    It is compiled as one loop. Under `vmap` it runs until the last slice is done; a
    slice that is done keeps its carry and has no more effects (callbacks). In Python it
    would be::

        def while_loop(cond_fun, body_fun, carry):
            while cond_fun(carry):
                carry = body_fun(carry)
            return carry

    Without `max_steps` it is differentiable in forward mode (`jvp`, `jacfwd`) only.
    With it, reverse mode keeps the carries of √max_steps steps, computes the steps
    between two of them again, and skips those after the end of the loop: time grows
    with the steps that are made, memory with the square root of the bound.

    Args:
      cond_fun: takes the carry, returns one bool.
      body_fun: takes the carry, returns the next one (same structure, shapes, dtypes).
      init_val: the first carry; a pytree of arrays.
      max_steps: after how many steps the loop ends even if the condition holds; None:
        it does not.

    Returns:
      The first carry for which the condition does not hold, or that after `max_steps`.

    Raises:
      ArgumentError: an argument is not a function or an array, the condition is not
        one bool, or `max_steps` is not a positive int.
      ShapeError, DtypeError, TreeError: the carry changes its type.

    Example:
      >>> int(while_loop(lambda n: lax.lt(n, 100), lambda n: lax.mul(n, 2), 3))
      192
      >>> def doubled(x):
      ...     return while_loop(lambda x: x < 100, lambda x: 2 * x, x, max_steps=50)
      >>> float(fxflow.grad(doubled)(3.0))
      64.0

    Source: StableHLO while; for the checkpoints Chen et al., "Training deep nets with
    sublinear memory cost", 2016.
    """
    require_callable(cond_fun, "while_loop: cond_fun")
    require_callable(body_fun, "while_loop: body_fun")
    if max_steps is not None:
        return _bounded(cond_fun, body_fun, init_val, max_steps)
    return _while(cond_fun, body_fun, init_val, None)


def _bounded(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    max_steps: Any,
) -> Any:
    """Runs a loop that counts its steps."""
    if type(max_steps) is bool or not isinstance(max_steps, int) or max_steps < 1:
        raise ArgumentError(
            f"while_loop: max_steps is a positive int, got {max_steps!r}"
        )

    def condition(carry: Any) -> Any:
        count, value = carry
        going = cond_fun(value)
        return _and(going, lt(count, np.int32(max_steps)))

    def body(carry: Any) -> Any:
        count, value = carry
        return table["add"].bind(count, np.int32(1)), body_fun(value)

    condition.wrapped_by = "while_loop", cond_fun  # type: ignore[attr-defined]
    body.wrapped_by = "while_loop", body_fun  # type: ignore[attr-defined]
    start = arith.constant(0, np.dtype(np.int32))
    return _while(condition, body, (start, init_val), max_steps)[1]


def _and(going: Any, bounded: Any) -> Any:
    """Returns whether both hold; what is not one bool is left to be refused."""
    aval = typeof(going) if is_arraylike(going) else None
    if aval is None or aval.shape or not dtypes.is_bool(aval.dtype):
        return going
    return table["and"].bind(going, bounded)


def _while(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    bound: int | None,
) -> Any:
    carry, treedef = leaves_of(init_val, "while_loop: init_val")
    if config.disable_jit:
        known, result = _python_while(cond_fun, body_fun, read_only(init_val))
        if known:
            return result
    avals = [typeof(c) for c in carry]
    while True:
        avals, body = traced_with_carry(
            body_fun,
            "while_loop",
            f"while_{name_of(body_fun)}",
            treedef,
            avals,
            [],
            (),
            None,
        )
        condition = trace_body(
            cond_fun, tree.treedef_tuple([treedef]), avals, name="while_condition"
        )
        outs = condition.graph.out_avals
        # Devices that stop at different steps have different results.
        wider = [a.update(vma=a.vma.union(*(o.vma for o in outs))) for a in avals]
        if wider == avals:
            break
        avals = wider
    if len(outs) != 1 or outs[0].shape or not dtypes.is_bool(outs[0].dtype):
        given = ", ".join(map(str, outs)) or "nothing"
        raise ArgumentError(
            f"while_loop: cond_fun must return one bool (bool[]), got {given}: compare "
            "(x < y), or reduce with .any() or .all()"
        )
    results = While.bind(
        *condition.consts,
        *body.consts,
        *(as_type(c, a) for c, a in zip(carry, avals, strict=True)),
        condition=condition.graph,
        body=body.graph,
        num_condition=len(condition.consts),
        num_body=len(body.consts),
        bound=bound,
    )
    return treedef.unflatten(results)


def _python_while(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Any
) -> tuple[bool, Any]:
    """Runs the loop in Python, for debugging, if the condition is not traced."""
    while True:
        going = cond_fun(carry)
        if isinstance(going, Tracer):
            return False, None
        if not going:
            return True, carry
        carry = body_fun(carry)
