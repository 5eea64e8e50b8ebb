"""`scan`: a loop over the leading axis of arrays that carries a state along.

Lowered to one `stablehlo.while` whose body slices its inputs and writes its outputs in
place. The derivative of a scan is a scan of the tangents; what the tangents need from
each step is stacked by the first loop, except what is the same in all steps, which is
computed once outside. The transpose is a scan in the other direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carry_flow,
    chosen,
    live_flags,
    move_axis,
    rewired,
    run_host,
    split_at,
)
from fxflow.core.ir.primitive import register
from fxflow.core.spmd.memories import Part, Rewritten, settled
from fxflow.lax.scan_derivatives import (
    LinearScan,
    given_back,
    jvp_order,
    spread_tangents,
    tangent_flags,
    transpose_by_linearizing,
    transposed_body,
    typeof_linear,
)
from fxflow.lax.scan_lowering import ScanLowering


@register
class Scan(HigherOrder):
    """Loop with a carry over slices. dtypes: any. StableHLO: while.

    Operands are constants, the first carry, and arrays to slice; results are the last
    carry and the stacked outputs.

    Params:
      graph: of the body: inputs constants, carry, slices; outputs carry, outputs.
      num_consts: how many constants there are.
      num_carry: length of the carry.
      length: number of steps.
      reverse: whether to go from the last slice to the first.
      unroll: steps written out in each round of the loop.
    """

    name = "scan"

    def abstract(
        self,
        *avals: Aval,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> list[Aval]:
        """Types of the carry, then of the stacked outputs."""
        carry = graph.in_avals[num_consts : num_consts + num_carry]
        return carry + [
            a.update(shape=(length, *a.shape)) for a in graph.out_avals[num_carry:]
        ]

    # -- values ------------------------------------------------------------------------

    def lower(
        self,
        ctx: Any,
        *operands: str,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> list[str]:
        """A while loop, or all steps written out if they are few."""
        loop = ScanLowering(
            ctx, operands, graph, num_consts, num_carry, length, reverse
        )
        return loop.write(unroll)

    def evaluate(
        self,
        *values: Any,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> list[Any]:
        """A Python loop over NumPy's evaluation of the body."""
        consts, carry, xs = split_at(values, num_consts, num_carry)
        ys = [
            np.zeros((length, *a.physical.shape), a.physical.dtype)
            for a in graph.out_avals[num_carry:]
        ]
        for i in reversed(range(length)) if reverse else range(length):
            outs = run_host(graph, [*consts, *carry, *(x[i] for x in xs)])
            carry = outs[:num_carry]
            for stacked, y in zip(ys, outs[num_carry:], strict=True):
                stacked[i] = y
        return [*map(np.asarray, carry), *ys]

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Carry and outputs stay where the body leaves them; slices are parts."""
        params = node.params
        first, count = params["num_consts"], params["num_carry"]
        fixed, xs = split_at(kinds, first + count)
        xs = [None if type(kind) is Part else kind for kind in xs]
        parts = [None if kind is None else Part(kind) for kind in xs]
        body, wanted, outs = layout.loop(
            params["graph"], [*fixed, *parts], first, count
        )
        changed = {**params, "graph": body}
        if any(outs[count:]) and params["length"] < 2 * params["unroll"]:
            # Written out, the outputs would be joined: computed in host memory.
            changed["unroll"] = 1
        return Rewritten([*wanted[: first + count], *xs], outs, changed)

    def forwarded(
        self, *, graph: Graph, num_consts: int, num_carry: int, **params: Any
    ) -> list[int | None]:
        """The parts of the carry that the body leaves as they are."""
        outs = forwarded(graph)
        carry = [f if f == num_consts + i else None for i, f in enumerate(outs)]
        return [*carry[:num_carry], *[None] * (len(outs) - num_carry)]

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        """A scan of the body's derivative."""
        nonzero, carried = tangent_flags(graph, tangents, num_consts, num_carry)
        derived, has = jvp_graph(
            graph, nonzero, [*carried, *[False] * (len(graph.outputs) - num_carry)]
        )
        both = jvp_order(graph, derived, nonzero, has, num_consts, num_carry)
        live = [
            arith.instantiate(t) for t, n in zip(tangents, nonzero, strict=True) if n
        ]
        counts = [sum(f) for f in split_at(nonzero, num_consts, num_carry)]
        tc, tcarry, txs, _ = split_at(live, *counts)
        consts, carry, xs = split_at(primals, num_consts, num_carry)
        outs = self.bind(
            *consts,
            *tc,
            *carry,
            *tcarry,
            *xs,
            *txs,
            graph=both,
            num_consts=num_consts + len(tc),
            num_carry=num_carry + len(tcarry),
            **params,
        )
        num_ys = len(graph.outputs) - num_carry
        y, ty, ys, tys = split_at(outs, num_carry, len(tcarry), num_ys)
        return [*y, *ys], spread_tangents(
            [*ty, *tys], has, self.out_avals_of(graph, num_consts, num_carry, **params)
        )

    def out_avals_of(
        self, graph: Graph, num_consts: int, num_carry: int, **params: Any
    ) -> list[Aval]:
        """Types of the results, from the parameters alone."""
        return self.abstract(
            graph=graph, num_consts=num_consts, num_carry=num_carry, **params
        )

    def linearize(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        """A scan for values and what tangents need of them; a scan of tangents."""
        nonzero, carried = tangent_flags(graph, tangents, num_consts, num_carry)
        key = ("scan_linear", tuple(nonzero), num_consts, num_carry)
        linear = graph.memo.get(key)
        if linear is None:
            linear = graph.memo[key] = LinearScan(
                graph, nonzero, carried, num_consts, num_carry
            )
        consts, carry, xs = split_at(primals, num_consts, num_carry)
        invariant = linear.invariant.evaluate(*consts)
        outs = self.bind(
            *consts,
            *invariant,
            *carry,
            *xs,
            graph=linear.primal,
            num_consts=num_consts + len(invariant),
            num_carry=num_carry,
            **params,
        )
        values = outs[: len(graph.outputs)]
        live = [
            arith.instantiate(t) for t, n in zip(tangents, nonzero, strict=True) if n
        ]
        counts = [sum(f) for f in split_at(nonzero, num_consts, num_carry)]
        tc, tcarry, txs, _ = split_at(live, *counts)
        given = [primals[i] for i in linear.given]
        sliced = [
            primals[i] if i < len(primals) else outs[i - len(primals)]
            for i in linear.sliced
        ]
        out_tangents: list[Any] = []
        if any(linear.has_tangent):
            out_tangents = self.bind(
                *given,
                *invariant,
                *tc,
                *tcarry,
                *sliced,
                *txs,
                graph=settled(
                    linear.primal,
                    linear.tangent,
                    [*consts, *invariant, *carry, *xs],
                ),
                num_consts=len(given) + len(invariant) + len(tc),
                num_carry=len(tcarry),
                **params,
            )
        avals = self.out_avals_of(graph, num_consts, num_carry, **params)
        return values, spread_tangents(out_tangents, linear.has_tangent, avals)

    def transpose(
        self,
        cotangent: Sequence[Any],
        *args: Any,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> Sequence[Any]:
        """A scan of the body's transpose in the other direction."""
        params = {
            "graph": graph,
            "num_consts": num_consts,
            "num_carry": num_carry,
            "length": length,
            "reverse": reverse,
            "unroll": unroll,
        }
        linear = [type(a) is Var for a in args]
        stop = num_consts + num_carry
        linear[num_consts:stop] = carry_flow(graph, linear, num_consts, num_carry)
        if not all(linear[num_consts:stop]):
            return transpose_by_linearizing(self, cotangent, args, params)
        ct_carry, ct_ys = split_at(cotangent, num_carry)
        live_ys = live_flags(ct_ys)
        key = ("scan_transpose", num_consts, num_carry, tuple(linear), tuple(live_ys))
        known = graph.memo.get(key)
        if known is None:
            known = graph.memo[key] = transposed_body(
                graph, num_consts, num_carry, linear, live_ys
            )
        derived, has_const, has_x = known
        lin_c, _, lin_x = split_at(linear, num_consts, num_carry)
        consts, _, xs = split_at(args, num_consts, num_carry)
        fixed = [a for a, lin in zip(consts, lin_c, strict=True) if not lin]
        sums = [
            arith.zeros(typeof_linear(a))
            for a, h in zip(chosen(consts, lin_c), has_const, strict=True)
            if h
        ]
        carry = [arith.instantiate(ct) for ct in ct_carry]
        slices = [a for a, lin in zip(xs, lin_x, strict=True) if not lin]
        outs = self.bind(
            *fixed,
            *sums,
            *carry,
            *slices,
            *chosen(ct_ys, live_ys),
            graph=derived,
            num_consts=len(fixed),
            num_carry=len(sums) + num_carry,
            length=length,
            reverse=not reverse,
            unroll=unroll,
        )
        ct_c, ct_first, ct_x = split_at(outs, len(sums), num_carry)
        result: list[Any] = []
        rest_c, have_c = iter(ct_c), iter(has_const)
        for a, lin in zip(consts, lin_c, strict=True):
            result.append(given_back(a, lin, rest_c, have_c))
        result += ct_first
        rest_x, have_x = iter(ct_x), iter(has_x)
        for a, lin in zip(xs, lin_x, strict=True):
            result.append(given_back(a, lin, rest_x, have_x))
        return result

    # -- vectorisation, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        graph: Graph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> tuple[list[Any], list[bool]]:
        """A scan of the vectorised body; what depends on mapped values is mapped."""
        flags = list(mapped)
        stop = num_consts + num_carry
        num_ys = len(graph.outputs) - num_carry
        while True:
            carried = flags[num_consts:stop]
            derived, out_mapped = batch_graph(
                graph, size, flags, [*carried, *[False] * num_ys], axis_name
            )
            if out_mapped[:num_carry] == carried:
                break
            flags[num_consts:stop] = out_mapped[:num_carry]
        consts, carry, xs = split_at(args, num_consts, num_carry)
        carry = [
            materialize(a, size, have) if want else a
            for a, have, want in zip(
                carry, mapped[num_consts:stop], carried, strict=True
            )
        ]
        xs = [
            move_axis(x, 0, 1) if m else x
            for x, m in zip(xs, mapped[stop:], strict=True)
        ]
        outs = self.bind(
            *consts,
            *carry,
            *xs,
            graph=derived,
            num_consts=num_consts,
            num_carry=num_carry,
            **params,
        )
        moved = [
            move_axis(y, 1, 0) if m else y
            for y, m in zip(outs[num_carry:], out_mapped[num_carry:], strict=True)
        ]
        return [*outs[:num_carry], *moved], out_mapped

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Drops outputs, and carry that only serves them."""
        params = node.params
        graph: Graph = params["graph"]
        num_consts, num_carry = params["num_consts"], params["num_carry"]
        key = ("scan_dce", tuple(wanted), num_consts, num_carry)
        known = graph.memo.get(key)
        if known is None:
            known = graph.memo[key] = pruned_body(graph, wanted, num_consts, num_carry)
        smaller, keep_in, keep_out = known
        if smaller is graph:
            return node
        return node.replace(
            inputs=chosen(node.inputs, keep_in),
            outputs=chosen(node.outputs, keep_out),
            params={
                **params,
                "graph": smaller,
                "num_consts": sum(keep_in[:num_consts]),
                "num_carry": sum(keep_out[:num_carry]),
            },
        )


def pruned_body(
    graph: Graph, wanted: Sequence[bool], num_consts: int, num_carry: int
) -> tuple[Graph, list[bool], list[bool]]:
    """Returns the body without what nobody wants, and which inputs and outputs stay."""
    keep_out = list(wanted)
    while True:
        smaller = prune(graph, keep_out)
        used = used_inputs(smaller)
        needed = [
            k or u
            for k, u in zip(
                keep_out[:num_carry],
                used[num_consts : num_consts + num_carry],
                strict=True,
            )
        ]
        if needed == keep_out[:num_carry]:
            break
        keep_out[:num_carry] = needed
    keep_in = [
        keep_out[i - num_consts]
        if num_consts <= i < num_consts + num_carry
        else used[i]
        for i in range(len(graph.inputs))
    ]
    if all(keep_in) and all(keep_out):
        return graph, keep_in, keep_out
    return (
        rewired(smaller, inputs=chosen(graph.inputs, keep_in)),
        keep_in,
        keep_out,
    )
