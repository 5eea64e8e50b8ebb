"""`kernel_call`: a function on blocks, run once for each point of a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import ArrayType, Aval, typeof
from fxflow.core.arrays.aval import NOWHERE
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.calls import with_tangents
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.arith import zeros
from fxflow.core.ir.graph import Graph, Var, prune, renamed
from fxflow.core.ir.higher_order import (
    HigherOrder,
    append_zeros,
    carries_tangent,
    chosen,
    cotangents_for,
    graph_cost,
    live_flags,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.ir.staging import trace_closed
from fxflow.core.runtime.eager import graph_plan
from fxflow.core.runtime.lowering import Context
from fxflow.devices import buffers
from fxflow.devices.clients import runs_triton
from fxflow.errors import ArgumentError, CompileError
from fxflow.lax.kernels.blocks import ID, PARALLEL, SUM
from fxflow.lax.kernels.host import run_programs
from fxflow.lax.kernels.native import is_enabled, native_call
from fxflow.lax.kernels.params import KernelParams, as_references
from fxflow.lax.kernels.portable import portable
from fxflow.lax.kernels.triton_call import triton_call


@register
class KernelCall(HigherOrder):
    """Runs a function on blocks for each point of a grid. dtypes: any.

    StableHLO: none; it is lowered as operations on whole arrays.

    Params: see `KernelParams`.
    """

    name = "kernel_call"
    takes_refs = False
    owns_refs = True

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """The types that were asked for."""
        vma = NOWHERE.union(*(a.vma for a in avals))
        return [a.update(vma=vma) for a in params["outs"]]

    def effects(self, **params: Any) -> frozenset[Any]:
        """Those of the body, but for its writes to blocks."""
        return KernelParams(**params).pure.effects

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """The body's, times the programs; the bytes of operands and results."""
        p = KernelParams(**params)
        moved = sum(a.nbytes for a in (*avals, *p.outs))
        flops = graph_cost(p.pure)["flops"] * p.num_programs
        return {"flops": flops, "bytes": float(moved)}

    # -- values ------------------------------------------------------------------------

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """The reference, if there is one, else the portable form, in place."""
        return ctx.graph(whole(KernelParams(**params), ctx.avals_in), operands)

    def plan(
        self, arg_types: Sequence[ArrayType], params: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """The compiled kernel, on one CPU or NVIDIA GPU; None: the portable form."""
        where = [t.placement for t in arg_types] or [buffers.default_placement()]
        if not is_enabled() or not all(p.is_single for p in where):
            return None
        if all(p.platform == "cpu" for p in where):
            compiler = native_call
        elif all(runs_triton(p.device) for p in where):
            compiler = triton_call
        else:
            return None
        avals = [t.aval for t in arg_types]
        call = compiler(KernelParams(**params), avals)
        if call is None:
            return None
        name = params["graph"].name
        plan = graph_plan(trace_closed(call, avals, name=name), arg_types, name)
        if compiler is native_call:
            return plan
        plain = whole(KernelParams(**params), avals)
        return _first_of(plan, lambda: graph_plan(plain, arg_types, name))

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """One program after the other."""
        return run_programs(KernelParams(**params), values)

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A kernel whose programs compute tangents, too."""
        p = KernelParams(**params)
        nonzero = live_flags(tangents)
        new, has = _jvp(p, nonzero)
        outs = self.bind(*primals, *chosen(tangents, nonzero), **vars(new))
        return with_tangents(outs, p.outs, has)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The kernel for values; one that computes them again for tangents.

        Programs that see what others wrote have no such kernel: the reference, or the
        portable form, is differentiated.
        """
        p = KernelParams(**params)
        nonzero = live_flags(tangents)
        if p.why_whole(nonzero):
            return _whole_linear(p, primals, tangents, nonzero)
        values = self.bind(*primals, **params)
        new, has = _tangents(p, nonzero)
        live = chosen(tangents, nonzero)
        outs = self.bind(*primals, *live, **vars(new)) if any(has) else []
        return values, spread(outs, has, [a.tangent() for a in p.outs])

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """A kernel whose programs transpose the body.

        The cotangent of an operand has the blocks of the operand; it is a sum along the
        axes of the grid that these do not depend on.
        """
        p = KernelParams(**params)
        linear = [type(a) is Var for a in args]
        nonzero = live_flags(cotangent)
        avals = [a.aval for a in args if type(a) is Var]
        new, has = _transposed(p, linear, nonzero, avals)
        given = [a for a, lin in zip(args, linear, strict=True) if not lin]
        outs = []
        if any(has):
            outs = self.bind(*given, *chosen(cotangent, nonzero), **vars(new))
        return cotangents_for(args, outs, has)

    # -- vectorization -----------------------------------------------------------------

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """The grid gets one more axis in front."""
        p = KernelParams(**params)
        if axis_name is not None:
            raise ArgumentError(
                f"{p.graph.name}: the body of a kernel uses the axis {axis_name!r}: "
                "programs of a kernel cannot communicate; apply the collective to its "
                "results"
            )
        args, mapped = list(args), list(mapped)
        for i, _ in p.aliases:
            args[i], mapped[i] = materialize(args[i], size, mapped[i]), True
        uses = [*mapped, *(True for _ in p.outs)]
        new = p.replace(
            graph=_with_id(p.graph),
            grid=(size, *p.grid),
            kinds=(PARALLEL, *p.kinds),
            blocks=tuple(
                b.with_axis_in_front(uses=u)
                for b, u in zip(p.blocks, uses, strict=True)
            ),
            outs=tuple(a.update(shape=(size, *a.shape)) for a in p.outs),
            reference=p.reference and batch_graph(p.reference, size, mapped, True)[0],
        )
        return self.bind(*args, **vars(new)), [True] * len(p.outs)


def _first_of(
    plan: Callable[..., Any], other: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """Returns a plan, or another one if XLA cannot compile the first."""
    use = plan

    def run(*arrays: Any) -> Any:
        nonlocal use
        try:
            return use(*arrays)
        except CompileError:
            if use is not plan:
                raise
        use = other()
        return use(*arrays)

    return run


def _with_id(graph: Graph) -> Graph:
    """Returns a body that takes one more id, in front."""
    return graph.remembered(
        "with id", lambda: graph.replace(inputs=[Var(ID), *graph.inputs])
    )


# -- derived kernels -------------------------------------------------------------------


def _jvp(p: KernelParams, nonzero: Flags) -> tuple[KernelParams, list[bool]]:
    """Returns the kernel of values and tangents, and which results have a tangent."""

    def derive() -> tuple[KernelParams, list[bool]]:
        pure = p.pure
        ids, inputs, outs, scratch = p.split(pure.inputs)
        state = [carries_tangent(v.aval) for v in (*outs, *scratch)]
        # What a program leaves to the next has a tangent.
        kept = [s and p.is_in_order() for s in state]
        derived, has = jvp_graph(pure, [*(False for _ in ids), *nonzero, *kept], state)
        count, num_out = len(pure.outputs), len(outs)
        parts = split_at(derived.inputs, len(ids), len(inputs), num_out, len(scratch))
        moving = parts.pop()
        t_inputs, t_state = split_at(moving, sum(nonzero))
        t_kept = iter(t_state)
        tangents = [
            next(t_kept) if k else Var(v.aval.tangent())
            for v, s, k in zip((*outs, *scratch), state, kept, strict=True)
            if s
        ]
        t_outs, t_scratch = split_at(tangents, sum(state[:num_out]))
        results, t_results = split_at(derived.outputs, count)
        graph = derived.replace(
            inputs=[
                *parts[0],
                *parts[1],
                *t_inputs,
                *parts[2],
                *t_outs,
                *parts[3],
                *t_scratch,
            ],
            outputs=[
                *results[:num_out],
                *t_results[: len(t_outs)],
                *results[num_out:],
                *t_results[len(t_outs) :],
            ],
        )
        flags = state[:num_out]
        assert [*has] == state
        new = p.replace(
            blocks=(
                *p.in_blocks,
                *chosen(p.in_blocks, nonzero),
                *p.out_blocks,
                *chosen(p.out_blocks, flags),
            ),
            outs=(*p.outs, *(a.tangent() for a in chosen(p.outs, flags))),
            aliases=_tangent_aliases(p, nonzero, flags),
            reference=p.reference and jvp_graph(p.reference, nonzero, flags)[0],
        )
        return new.replace(graph=as_references(graph, new)), flags

    return p.graph.remembered(("kernel jvp", p, tuple(nonzero)), derive)


def _tangent_aliases(p: KernelParams, nonzero: Flags, flags: Flags) -> Any:
    """Returns the aliases of a kernel of values and tangents."""
    first_in, first_out = p.num_inputs, len(p.outs)
    found = list(p.aliases)
    for i, out in p.aliases:
        if nonzero[i] and flags[out]:
            found.append((first_in + sum(nonzero[:i]), first_out + sum(flags[:out])))
    return tuple(found)


def _tangents(p: KernelParams, nonzero: Flags) -> tuple[KernelParams, list[bool]]:
    """Returns the kernel of tangents alone, linear in its last operands."""

    def derive() -> tuple[KernelParams, list[bool]]:
        plain = _stateless(p)
        num_ids, count = len(p.grid), len(plain.inputs)
        live = [*(False for _ in p.grid), *nonzero]
        split = linearize_graph(plain, live)
        flags = split.has_tangent
        outs = [a.tangent() for a in chosen(p.outs, flags)]
        blocks = chosen(p.out_blocks, flags)

        def tangents(*values: Any) -> list[Any]:
            primals, moving = values[:count], values[count : count + sum(nonzero)]
            results = split.primal.evaluate(*primals)
            kept = split.residuals(primals, results[len(p.outs) :])
            return split.tangent.evaluate(*kept, *moving)

        avals = [
            *plain.in_avals,
            *(a.tangent() for a in chosen(plain.in_avals[num_ids:], nonzero)),
            *(a.update(shape=b.seen) for a, b in zip(outs, blocks, strict=True)),
        ]
        graph = trace_closed(tangents, avals, name=f"tangents_{p.graph.name}")
        new = p.replace(
            blocks=(*p.in_blocks, *chosen(p.in_blocks, nonzero), *blocks),
            outs=tuple(outs),
            reference=p.reference and _reference_tangents(p.reference, nonzero, flags),
        )
        return new.replace(graph=as_references(graph, new)), flags

    return p.graph.remembered(("kernel tangents", p, tuple(nonzero)), derive)


def _stateless(p: KernelParams) -> Graph:
    """Returns the body of ids and operands alone, which gives the blocks of results.

    Results and scratch start with zeros.
    """

    def derive() -> Graph:
        pure = p.pure
        ids, inputs, outs, scratch = p.split(pure.inputs)
        nodes, made = append_zeros(pure, [v.aval for v in (*outs, *scratch)])
        names = dict(zip((*outs, *scratch), made, strict=True))
        nodes += [n.replace(inputs=renamed(n.inputs, names)) for n in pure.nodes]
        outputs = renamed(pure.outputs[: len(outs)], names)
        return prune(pure.replace(inputs=[*ids, *inputs], nodes=nodes, outputs=outputs))

    return p.pure.remembered(("stateless", len(p.grid), p.num_inputs), derive)


def _transposed(
    p: KernelParams, linear: Flags, nonzero: Flags, avals: Sequence[Aval]
) -> tuple[KernelParams, list[bool]]:
    """Returns the kernel of cotangents, and which linear operands have one."""

    def derive() -> tuple[KernelParams, list[bool]]:
        flags = [*(False for _ in p.grid), *linear]
        derived, has = transpose_graph(_stateless(p), flags, nonzero)
        in_blocks = chosen(p.in_blocks, [not lin for lin in linear])
        blocks = chosen(chosen(p.in_blocks, linear), has)
        cotangents = [a.cotangent() for a in chosen(avals, has)]
        given = [
            Var(a.update(shape=b.seen)) for a, b in zip(cotangents, blocks, strict=True)
        ]
        graph = derived.replace(inputs=[*derived.inputs, *given])
        kinds = tuple(
            kind if all(b.uses(g) for b in blocks) else SUM
            for g, kind in enumerate(p.kinds)
        )
        new = p.replace(
            kinds=kinds,
            blocks=(*in_blocks, *chosen(p.out_blocks, nonzero), *blocks),
            outs=tuple(cotangents),
            reference=p.reference
            and _matched(
                *transpose_graph(p.reference, linear, nonzero), has, cotangents
            ),
        )
        return new.replace(graph=as_references(graph, new)), has

    key = ("kernel transposed", p, tuple(linear), tuple(nonzero))
    return p.graph.remembered(key, derive)


def _reference_tangents(graph: Graph, nonzero: Flags, flags: Flags) -> Graph:
    """Returns a graph of operands and tangents to the tangents of some results."""
    split, count = linearize_graph(graph, nonzero), len(graph.inputs)
    num_outs = len(graph.outputs)

    def tangents(*values: Any) -> list[Any]:
        primals, moving = values[:count], values[count:]
        results = split.primal.evaluate(*primals)
        kept = split.residuals(primals, results[num_outs:])
        return split.tangent.evaluate(*kept, *moving)

    avals = [*graph.in_avals, *(a.tangent() for a in chosen(graph.in_avals, nonzero))]
    found = trace_closed(tangents, avals, name=graph.name)
    outs = [a.tangent() for a in chosen(graph.out_avals, flags)]
    return _matched(found, split.has_tangent, flags, outs)


def _matched(graph: Graph, has: Flags, wanted: Flags, avals: Sequence[Aval]) -> Graph:
    """Returns a graph of the wanted results, with zeros where it has none.

    Args:
      graph: of the results that there are.
      has: which these are.
      wanted: which there shall be.
      avals: types of the wanted results.
    """
    if list(has) == list(wanted):
        return graph

    def run(*values: Any) -> list[Any]:
        found = spread(graph.evaluate(*values), has, [None] * len(has))  # type: ignore[list-item]
        missing = (zeros(a) for a in avals)
        return [
            zero if type(x) is Zero else x
            for x, zero in zip(chosen(found, wanted), missing, strict=True)
        ]

    return trace_closed(run, graph.in_avals, name=graph.name)


def whole(p: KernelParams, avals: Sequence[Aval]) -> Graph:
    """Returns a kernel as operations on whole arrays: the reference, if it has one.

    Args:
      p: of the kernel.
      avals: types of the operands.
    """
    reference = p.reference
    if reference is None:
        return portable(p, avals)
    return reference.remembered(
        ("for", tuple(avals)),
        lambda: trace_closed(reference.evaluate, avals, name=reference.name),
    )


def _whole_linear(
    p: KernelParams, primals: Values, tangents: Values, nonzero: Flags
) -> Dual:
    graph = whole(p, [typeof(x) for x in primals])
    split = linearize_graph(graph, nonzero)
    outs = split.primal.evaluate(*primals)
    count = len(p.outs)
    kept = split.residuals(primals, outs[count:])
    results = split.tangent.evaluate(*kept, *chosen(tangents, nonzero))
    return with_tangents([*outs[:count], *results], p.outs, split.has_tangent)
