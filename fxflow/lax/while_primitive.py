"""The primitive of loops that run as long as a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import typeof
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carries_tangent,
    carry_flow,
    chosen,
    live_flags,
    rewired,
    run_host,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import register, table
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import Rewritten
from fxflow.errors import NotDifferentiableError
from fxflow.lax.scan_lowering import while_op


@register
class While(HigherOrder):
    """Loop while a condition holds. dtypes: any. StableHLO: while.

    Operands are the condition's constants, the body's constants, and the first carry;
    results are the last carry. Differentiable forwards only: how many steps there were,
    and so how much reverse mode would have to keep, is not known when compiling.

    Params:
      condition: graph of constants and carry to one bool.
      body: graph of constants and carry to carry.
      num_condition: how many constants the condition has.
      num_body: how many constants the body has.
    """

    name = "while"

    def abstract(
        self,
        *avals: Aval,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> list[Aval]:
        """Types of the carry."""
        return body.in_avals[num_body:]

    # -- values ------------------------------------------------------------------------

    def lower(
        self,
        ctx: Any,
        *operands: str,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> list[str]:
        """`while`, whose regions use the constants from outside."""
        fixed_c, fixed_b, carry = split_at(operands, num_condition, num_body)

        def write_condition(inner: Context, names: list[str]) -> list[str]:
            return inner.graph(condition, [*fixed_c, *names])

        def write_body(inner: Context, names: list[str]) -> list[str]:
            return inner.graph(body, [*fixed_b, *names])

        avals = [a.physical for a in body.in_avals[num_body:]]
        if not carry:
            return self._without_carry(ctx, write_condition, write_body)
        boolean = condition.out_avals[0]
        return while_op(ctx, carry, avals, write_condition, write_body, boolean)

    def _without_carry(self, ctx: Any, condition: Any, body: Any) -> list[str]:
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

    def evaluate(
        self,
        *values: Any,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> list[Any]:
        """A Python loop over NumPy's evaluation of the graphs."""
        fixed_c, fixed_b, carry = split_at(values, num_condition, num_body)
        while run_host(condition, [*fixed_c, *carry])[0]:
            carry = run_host(body, [*fixed_b, *carry])
        return list(map(np.asarray, carry))

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """The carry stays where the body leaves it."""
        params = node.params
        num_condition, num_body = params["num_condition"], params["num_body"]
        condition, body = params["condition"], params["body"]
        body, wanted, outs = layout.loop(
            body, kinds[num_condition:], num_body, len(body.outputs)
        )
        fixed: list[Any] = [None] * num_condition
        condition = layout.place(condition, [*fixed, *outs], [None]).graph
        changed = {**params, "condition": condition, "body": body}
        return Rewritten([*fixed, *wanted], outs, changed)

    def forwarded(
        self,
        *,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> list[int | None]:
        """The parts of the carry that the body leaves as they are."""
        return [
            num_condition + f if f == num_body + i else None
            for i, f in enumerate(forwarded(body))
        ]

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> tuple[list[Any], list[Any]]:
        """A loop over the body's derivative; the condition sees values only."""
        fixed_c, fixed_b, carry = split_at(primals, num_condition, num_body)
        _, body_tangents = split_at(tangents, num_condition)
        nonzero = live_flags(body_tangents)
        carried = carry_flow(body, nonzero, num_body, len(carry), carries_tangent)
        nonzero[num_body:] = carried
        derived, has = jvp_graph(body, nonzero, carried)
        live = [
            arith.instantiate(t)
            for t, n in zip(body_tangents, nonzero, strict=True)
            if n
        ]
        count = sum(nonzero[:num_body])
        both = _jvp_order(body, derived, num_body, count)
        outs = self.bind(
            *fixed_c,
            *fixed_b,
            *live[:count],
            *carry,
            *live[count:],
            condition=_with_unused(condition, derived, carried),
            body=both,
            num_condition=num_condition,
            num_body=num_body + count,
        )
        values, out_tangents = split_at(outs, len(carry))
        avals = [a.tangent() for a in body.out_avals]
        return values, spread(out_tangents, has, avals)

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        """The loop for the values; for the tangents, the loop of both over again."""
        values = self.bind(*primals, **params)
        _, out_tangents = self.jvp(primals, tangents, **params)
        return values, out_tangents

    def transpose(
        self, cotangent: Sequence[Any], *args: Any, **params: Any
    ) -> Sequence[Any]:
        """Raises: the number of steps is not known when compiling."""
        raise NotDifferentiableError(
            "while_loop cannot be differentiated in reverse mode (grad, vjp), because "
            "the number of its steps, whose values would have to be kept, is not known "
            "when it is compiled: use scan, or fori_loop with bounds that are Python "
            "ints; or forward mode (jvp, jacfwd); or custom_vjp"
        )

    # -- vectorisation, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        condition: Graph,
        body: Graph,
        num_condition: int,
        num_body: int,
    ) -> tuple[list[Any], list[bool]]:
        """A loop until no slice goes on; slices that are done keep their carry."""
        fixed_c, fixed_b, carry = split_at(args, num_condition, num_body)
        flags_c, flags_b, start = split_at(mapped, num_condition, num_body)
        flags = list(start)
        changes = [f != num_body + i for i, f in enumerate(forwarded(body))]
        while True:
            test, (test_mapped,) = batch_graph(
                condition, size, [*flags_c, *flags], axis_name=axis_name
            )
            step, found = batch_graph(body, size, [*flags_b, *flags], flags, axis_name)
            if test_mapped:
                # Each slice stops at a step of its own.
                found = [f or c for f, c in zip(found, changes, strict=True)]
            if found == flags:
                break
            flags = found
        carry = [
            materialize(a, size, have) if want else a
            for a, have, want in zip(carry, start, flags, strict=True)
        ]
        extra: list[Any] = []
        if test_mapped:
            extra = fixed_c
            test, step = _masked(test, step, num_condition, num_body, changes)
        outs = self.bind(
            *fixed_c,
            *extra,
            *fixed_b,
            *carry,
            condition=test,
            body=step,
            num_condition=num_condition,
            num_body=num_body + len(extra),
        )
        return outs, flags

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Drops carry that serves neither the wanted results nor the condition."""
        params = node.params
        condition, body = params["condition"], params["body"]
        num_condition, num_body = params["num_condition"], params["num_body"]
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
        return node.replace(
            inputs=[
                *chosen(fixed, keep_condition[:num_condition]),
                *chosen(rest, keep_body),
            ],
            outputs=chosen(node.outputs, keep),
            params={
                "condition": rewired(
                    condition, inputs=chosen(condition.inputs, keep_condition)
                ),
                "body": rewired(smaller, inputs=chosen(body.inputs, keep_body)),
                "num_condition": sum(keep_condition[:num_condition]),
                "num_body": sum(keep_body[:num_body]),
            },
        )


def _jvp_order(body: Graph, derived: Graph, num_body: int, count: int) -> Graph:
    """Returns the derivative with the constants' tangents before the carry."""
    key = ("while_order", num_body)
    known: Graph | None = derived.memo.get(key)
    if known is None:
        fixed, carry, tangents = split_at(
            derived.inputs, num_body, len(body.inputs) - num_body
        )
        known = derived.memo[key] = rewired(
            derived, inputs=[*fixed, *tangents[:count], *carry, *tangents[count:]]
        )
    return known


def _with_unused(condition: Graph, derived: Graph, carried: Sequence[bool]) -> Graph:
    """Returns the condition with an unused input for each tangent of the carry."""
    key = ("while_unused", tuple(carried))
    known: Graph | None = condition.memo.get(key)
    if known is None:
        count = len(carried)
        values = condition.in_avals[len(condition.inputs) - count :]
        unused = [Var(a.tangent()) for a in chosen(values, carried)]
        known = condition.memo[key] = rewired(
            condition, inputs=[*condition.inputs, *unused]
        )
    return known


def _masked(
    test: Graph,
    step: Graph,
    num_condition: int,
    num_body: int,
    changes: Sequence[bool],
) -> tuple[Graph, Graph]:
    """Returns a condition and a body for slices that stop at different times.

    The condition holds while any slice goes on; the body, whose first constants are
    those of the condition, changes only the slices that go on, and of the carry only
    what `changes` at all.
    """
    key = ("while_masked", step, num_condition, num_body)
    known = test.memo.get(key)
    if known is not None:
        pair: tuple[Graph, Graph] = known
        return pair

    def any_goes_on(*values: Any) -> list[Any]:
        (going,) = test.evaluate(*values)
        return [table["reduce_or"].bind(going, axes=(0,))]

    def masked_step(*values: Any) -> list[Any]:
        fixed_c, fixed_b, carry = split_at(values, num_condition, num_body)
        (going,) = test.evaluate(*fixed_c, *carry)
        new = step.evaluate(*fixed_b, *carry)
        return [
            select_rows(going, n, o) if c else o
            for n, o, c in zip(new, carry, changes, strict=True)
        ]

    new_test, consts = trace_flat(any_goes_on, test.in_avals, name=test.name)
    avals = [*test.in_avals[:num_condition], *step.in_avals]
    new_step, more = trace_flat(masked_step, avals, name=step.name)
    assert not consts
    assert not more
    test.memo[key] = new_test, new_step
    return new_test, new_step


def select_rows(mask: Any, x: Any, y: Any) -> Any:
    """Returns `x` where a mask over the first axis is true, elsewhere `y`."""
    return select_cases(mask, [y, x])


def select_cases(index: Any, cases: Sequence[Any]) -> Any:
    """Returns for each row the case that an index (or bool) of that row names.

    Args:
      index: bool or i32 `[n]`.
      cases: arrays `[n, ...]` of one type.
    """
    aval = typeof(cases[0])
    if dtypes.is_key(aval.dtype):
        unwrap = table["random_unwrap"]
        data = select_cases(index, [unwrap.bind(case) for case in cases])
        return table["random_wrap"].bind(data, dtype=aval.dtype)
    if aval.ndim > 1:
        index = table["broadcast_in_dim"].bind(
            index, shape=aval.shape, broadcast_dimensions=(0,)
        )
    return table["select_n"].bind(index, *cases)
