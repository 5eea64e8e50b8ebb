"""A function of the parts of arrays, run on every device of a mesh.

The operation holds the graph that each device runs on its parts, and how arrays are
divided into them: that is the same for its derivatives and its vectorized form, which
are again such operations. Inside, the mesh axes it is *manual* over are named axes,
for the collectives.

Derivatives are those of the function of whole arrays. What every device gets (an axis
that `in_specs` does not mention) was copied, so its cotangent is the sum of all
devices'; what every device gives alike (an axis that `out_specs` does not mention) is
one value, of whose cotangent each device takes its share. Where types tell what devices
share (`check`, see `core/spmd/varying`), that has already happened inside, but for
results that are alike though their types do not say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core.arrays import Aval
from fxflow.core.arrays.aval import layout_of
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.calls import with_tangents
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.arith import constant
from fxflow.core.ir.graph import Graph, Node, Var, any_node, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    chosen,
    cotangents_for,
    flow_through,
    live_flags,
    run_host,
    uses_axis,
)
from fxflow.core.ir.primitive import ORDERED, Batched, Dual, Flags, Values, register
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import named_axes, state
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import Size
from fxflow.core.spmd.memories import Rewritten
from fxflow.core.spmd.partition import axis_text, spec_text
from fxflow.devices.meshes import Mesh, PartitionSpec, names_of
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, ExportError, ShapeError
from fxflow.lax.collective_groups import Collective, shown
from fxflow.lax.collective_reductions import PSum, with_combined_reductions
from fxflow.lax.elementwise import mul
from fxflow.lax.reshaping import reshape
from fxflow.lax.sharded_parts import axes_of, cut, global_shape, joined

Specs = tuple[PartitionSpec, ...]
Names = tuple[Any, ...]


def manual_axes(mesh: Mesh, axes: Names, tracked: bool) -> named_axes:
    """Names the axes of a mesh within a `with` block.

    Args:
      mesh: that has them.
      axes: names.
      tracked: whether types tell what differs along them.
    """
    return named_axes(((name, mesh.shape[name]) for name in axes), tracked, mesh)


class ShardMapParams(Frozen):
    """The parameters of `ShardMap`.

    Attributes:
      graph: of the parts.
      mesh: the devices.
      in_specs: how each operand is divided.
      out_specs: how each result is put together.
      axes: the mesh axes that it is manual over; the partitioner has the others.
      check: whether types inside tell what differs along them.
    """

    graph: Graph
    mesh: Mesh
    in_specs: Specs
    out_specs: Specs
    axes: Names
    check: bool

    def inside(self) -> named_axes:
        """Names the manual axes within a `with` block."""
        return manual_axes(self.mesh, self.axes, self.check)

    def out_avals(self) -> list[Aval]:
        """Returns the types of the results of all devices together."""
        outs = []
        for a, spec in zip(self.graph.out_avals, self.out_specs, strict=True):
            shape = global_shape(a.shape, spec, self.mesh)
            out = a.update(shape, vma=a.vma.difference(self.axes), layout=None)
            if self.mesh.explicit_axes:
                layout = layout_of(NamedSharding(self.mesh, spec), out)
                out = out.update(layout=layout)
            outs.append(out)
        return outs


@register
class ShardMap(HigherOrder):
    """Each device of a mesh runs a graph on its parts. dtypes: any.

    StableHLO: Shardy's `sdy.manual_computation`.

    Params: see `ShardMapParams`.
    """

    name = "shard_map"

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """The parts put together."""
        return ShardMapParams(**params).out_avals()

    def mesh(self, params: dict[str, Any]) -> Any:
        """Its own."""
        return params["mesh"]

    def inside(self, params: dict[str, Any]) -> Any:
        """The mesh axes as named ones."""
        return ShardMapParams(**params).inside()

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Whether any operation inside names the axis; its own are others."""
        return axis_name not in params["axes"] and super().uses_axis(axis_name, params)

    # -- values ------------------------------------------------------------------------

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The graph's: each device reads and writes its part."""
        graph, wanted, outs = layout.call(node.params["graph"], kinds)
        return Rewritten(wanted, outs, {**node.params, "graph": graph})

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """`sdy.manual_computation`."""
        p = ShardMapParams(**params)
        graph, mesh, axes, in_specs = p.graph, p.mesh, p.axes, p.in_specs
        for aval in (*ctx.avals_in, *ctx.avals_out, *graph.in_avals):
            lengths: tuple[Any, ...] = aval.shape
            for size in (n for n in lengths if type(n) is Size):
                raise ExportError(
                    f"export: shard_map has no form for symbolic sizes ({size.text()}),"
                    " which the compiler does not look for in it: export it for a fixed"
                    " size, or leave the division to the compiler (jit of arrays with "
                    "shardings)"
                )
        if ORDERED in graph.effects:
            raise ArgumentError(
                f"{graph.name}: ordered effects (io_callback(ordered=True), "
                "debug.print(ordered=True)) have no order between devices: use "
                "ordered=False inside shard_map and pmap"
            )
        module = ctx.module
        symbol = module.mesh(mesh)
        whole = set(axes) == set(mesh.axis_names)

        def specs(avals: Sequence[Aval], given: Specs) -> str:
            return ", ".join(
                spec_text(symbol, s, len(a.physical.shape), whole)
                for a, s in zip(avals, given, strict=True)
            )

        # An array of no elements is a constant inside, and no operand: XLA would make
        # it one, losing its place, and where that is missing jaxlib 0.11 crashes.
        held = [a.size > 0 for a in graph.in_avals]
        inner = Context(module, ctx.counter, ctx.scope)
        names = [
            f"%m{ctx.number()}"
            if has
            else inner.emit(f"stablehlo.constant dense<> : {a.mlir}")
            for a, has in zip(graph.in_avals, held, strict=True)
        ]
        given = chosen(names, held)
        parts = chosen(graph.in_avals, held)
        wholes = chosen(ctx.avals_in, held)
        operands = tuple(chosen(operands, held))
        in_specs = tuple(chosen(in_specs, held))
        outside, outer_indices = module.manual, module.indices
        module.indices = {}
        # A manual computation sees no value from outside: what an outer one knows of
        # its indices comes in as an operand.
        for name, index in outer_indices.items():
            if name not in axes and uses_index(graph, name):
                operands += (index,)
                module.indices[name] = f"%m{ctx.number()}"
                parts.append(Aval((1,), np.dtype(np.int32)))
                wholes.append(parts[-1])
                in_specs += (PartitionSpec(),)
        if not whole:
            # The number of the device means nothing to the partitioner.
            for name in axes:
                if uses_index(graph, name):
                    iota = Aval((mesh.shape[name],), np.dtype(np.int32))
                    operands += (ctx.emit(f"stablehlo.iota dim = 0 : {iota.mlir}"),)
                    module.indices[name] = f"%m{ctx.number()}"
                    parts.append(iota.update(shape=(1,)))
                    wholes.append(iota)
                    in_specs += (PartitionSpec(name),)
        head = ", ".join(
            f"{n}: {a.mlir}"
            for n, a in zip([*given, *module.indices.values()], parts, strict=True)
        )
        module.manual = (
            *(pair for pair in outside if pair[0] not in axes),
            *((name, mesh) for name in axes),
        )
        # gloo reduces arrays one by one; see lax/collective_combiner.
        if module.spans_processes and module.platform == "cpu":
            scope = named_axes((name, m.shape[name]) for name, m in module.manual)
            graph = with_combined_reductions(graph, scope)
        try:
            outs = inner.graph(graph, names)
        finally:
            module.manual, module.indices = outside, outer_indices
        ends = ", ".join(a.mlir for a in graph.out_avals)
        inner.lines.append(
            f"sdy.return {', '.join(outs)} : {ends}" if outs else "sdy.return"
        )
        body = "\n".join(inner.lines)
        listed = ", ".join(map(axis_text, axes))
        types = ", ".join(a.mlir for a in wholes)
        results = ", ".join(a.mlir for a in ctx.avals_out)
        found = ctx.emit_many(
            len(outs),
            f"sdy.manual_computation({', '.join(operands)}) "
            f"in_shardings=[{specs(wholes, in_specs)}] "
            f"out_shardings=[{specs(ctx.avals_out, p.out_specs)}] "
            f"manual_axes={{{listed}}} ({head}) {{\n{body}\n}} : "
            f"({types}) -> ({results})",
        )
        for result, aval, spec in zip(found, ctx.avals_out, p.out_specs, strict=True):
            if aval.size == 0 and mesh.flat == module.devices:
                ctx.shardings[result] = NamedSharding(mesh, spec)
        return found

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """What one device computes that plays all of them: a `vmap` over each axis."""
        p = ShardMapParams(**params)
        mesh, axes, derived = p.mesh, p.axes, p.graph
        parts = [
            cut(value, spec, mesh, axes)
            for value, spec in zip(values, p.in_specs, strict=True)
        ]
        mapped_in = [True] * len(values)
        with manual_axes(mesh, axes, tracked=False):
            # Each axis is put in front of the others: the first one last.
            for name in reversed(axes):
                size = mesh.shape[name]
                derived, _ = batch_graph(
                    derived, size, mapped_in, force=True, axis_name=name
                )
        outs = run_host(derived, parts)
        return [
            joined(out, spec, mesh, axes)
            for out, spec in zip(outs, p.out_specs, strict=True)
        ]

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Each device runs the derivative's graph."""
        p = ShardMapParams(**params)
        nonzero = live_flags(tangents)
        with p.inside():
            derived, has = jvp_graph(p.graph, nonzero)
        new = p.replace(
            graph=derived,
            in_specs=(*p.in_specs, *chosen(p.in_specs, nonzero)),
            out_specs=(*p.out_specs, *chosen(p.out_specs, has)),
        )
        outs = self.bind(*primals, *chosen(tangents, nonzero), **vars(new))
        return with_tangents(outs, p.out_avals(), has)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Values and residuals, of which every device keeps its own; then the tangents.

        A residual leaves as an array with one more axis, divided over the devices that
        differ in it.
        """
        p = ShardMapParams(**params)
        nonzero = live_flags(tangents)
        count = len(p.graph.outputs)
        with p.inside():
            split = linearize_graph(p.graph, nonzero)
            primal, tangent = split.primal, split.tangent
            stacked = _stacking(primal, count)
            own = [i is None for i in split.residual_inputs]
            unstacked = _unstacking(tangent, own)
        apart = () if p.check else _apart(p.graph, p.in_specs, p.axes)
        each = [
            PartitionSpec(tuple(n for n in p.axes if n in a.vma or n in apart))
            for a in primal.out_avals[count:]
        ]
        new = p.replace(graph=stacked, out_specs=(*p.out_specs, *each))
        outs = self.bind(*primals, **vars(new))
        specs = split.residuals(p.in_specs, each)
        results: list[Any] = []
        if any(split.has_tangent):
            new = p.replace(
                graph=unstacked,
                in_specs=(*specs, *chosen(p.in_specs, nonzero)),
                out_specs=tuple(chosen(p.out_specs, split.has_tangent)),
            )
            residuals = split.residuals(primals, outs[count:])
            results = self.bind(*residuals, *chosen(tangents, nonzero), **vars(new))
        outs = [*outs[:count], *results]
        return with_tangents(outs, p.out_avals(), split.has_tangent)

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """Each device transposes; see the top of this file for what is shared."""
        p = ShardMapParams(**params)
        graph, mesh, axes = p.graph, p.mesh, p.axes
        linear = [type(a) is Var for a in args]
        nonzero = live_flags(cotangent)
        values = [a for a in args if type(a) is not Var]
        value_specs = [s for s, lin in zip(p.in_specs, linear, strict=True) if not lin]
        linear_specs = chosen(p.in_specs, linear)
        ct_specs = chosen(p.out_specs, nonzero)
        specs = (*p.in_specs, *p.out_specs)
        apart = () if p.check else _apart(graph, specs, axes)
        with p.inside():
            derived, has = transpose_graph(graph, linear, nonzero)

            def missing(
                specs: Sequence[PartitionSpec], avals: Sequence[Aval]
            ) -> list[Names]:
                return [
                    _missing(spec, aval, mesh, axes, apart)
                    for spec, aval in zip(specs, avals, strict=True)
                ]

            shared = missing(ct_specs, chosen(graph.out_avals, nonzero))
            summed = missing(chosen(linear_specs, has), derived.out_avals)

            def transposed(*given: Any) -> list[Any]:
                held, cts = given[: len(values)], given[len(values) :]
                shares = [
                    mul(ct, constant(1 / mesh.length(names), ct.aval.dtype))
                    if names
                    else ct
                    for ct, names in zip(cts, shared, strict=True)
                ]
                outs = derived.evaluate(*held, *shares)
                return [
                    PSum.bind(out, axes=names) if names else out
                    for out, names in zip(outs, summed, strict=True)
                ]

            whole = trace_closed(transposed, derived.in_avals, name=derived.name)
        new = p.replace(
            graph=whole,
            in_specs=(*value_specs, *ct_specs),
            out_specs=tuple(chosen(linear_specs, has)),
        )
        outs = self.bind(*values, *chosen(cotangent, nonzero), **vars(new))
        return cotangents_for(args, outs, has)

    # -- vectorization, pruning --------------------------------------------------------

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """Each device runs the vectorized graph.

        The mapped axis is divided over the axes of `vmap(spmd_axis_name=)`, if they are
        manual.
        """
        p = ShardMapParams(**params)
        graph, mesh = p.graph, p.mesh
        over = state.spmd if set(p.axes).issuperset(state.spmd) else ()
        if over:
            _require_divisible(size, over, mesh, graph, (*p.in_specs, *p.out_specs))
        # Inside, a device has its own part of the mapped axis: nothing is left to
        # divide.
        divided, state.spmd = state.spmd, ()
        try:
            with p.inside():
                if over and p.check:
                    graph = _differing(graph, over, mapped)
                derived, out_mapped = batch_graph(
                    graph, size // mesh.length(over), mapped, axis_name=axis_name
                )
        finally:
            state.spmd = divided
        new = p.replace(
            graph=derived,
            in_specs=_behind(over, p.in_specs, mapped),
            out_specs=_behind(over, p.out_specs, out_mapped),
        )
        return self.bind(*args, **vars(new)), out_mapped

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the graph."""
        return flow_through(params["graph"], sources), [sources]

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Each device runs a pruned graph."""
        p = ShardMapParams(**node.params)
        pruned = prune(p.graph, wanted)
        used = used_inputs(pruned)
        new = p.replace(
            graph=pruned.replace(inputs=chosen(pruned.inputs, used)),
            in_specs=tuple(chosen(p.in_specs, used)),
            out_specs=tuple(chosen(p.out_specs, wanted)),
        )
        return node.replace(
            inputs=chosen(node.inputs, used),
            outputs=chosen(node.outputs, wanted),
            params=vars(new),
        )


def uses_index(graph: Graph, axis_name: Any) -> bool:
    """Returns whether any operation of a graph asks for the index on an axis."""

    def asks(node: Node) -> bool:
        return (
            isinstance(node.primitive, Collective)
            and axis_name in node.params["axes"]
            and node.primitive.needs_index(node.params)
        )

    return any_node(graph, ("uses_index", axis_name), asks)


def _apart(graph: Graph, specs: Specs, axes: Names) -> Names:
    """Returns the manual axes along which anything may differ, where no type tells.

    Along the others, which no spec and no operation names, all devices do the same.
    """
    divided = frozenset().union(*map(axes_of, specs))
    return tuple(n for n in axes if n in divided or uses_axis(graph, n))


def _missing(
    spec: PartitionSpec, aval: Aval, mesh: Mesh, axes: Names, apart: Names
) -> Names:
    """Returns the manual axes over which a spec does not divide what differs."""
    used = axes_of(spec)
    return tuple(
        n
        for n in axes
        if n not in used and mesh.shape[n] > 1 and (n in aval.vma or n in apart)
    )


def _require_divisible(
    size: int, over: Names, mesh: Mesh, graph: Graph, specs: Specs
) -> None:
    """Checks that a mapped axis can be divided over mesh axes.

    Raises:
      ArgumentError: the function uses them already.
      ShapeError: the length is wrong.
    """
    what = f"vmap: spmd_axis_name {shown(over)}"
    for name in over:
        if any(name in names_of(entry) for spec in specs for entry in spec):
            raise ArgumentError(
                f"{what} divides the mapped axis of {graph.name}, a shard_map whose "
                f"specs divide others over {name!r} already"
            )
        if uses_axis(graph, name):
            raise ArgumentError(
                f"{what} divides the mapped axis of {graph.name}, a shard_map with "
                f"collectives over {name!r}: they would combine different slices"
            )
    if size % mesh.length(over):
        raise ShapeError(
            f"{what}: the mapped axis, of length {size}, cannot be divided into "
            f"{mesh.length(over)} equal parts over {mesh}"
        )


def _differing(graph: Graph, axes: Names, mapped: Flags) -> Graph:
    """Returns a graph whose mapped inputs differ along more axes."""
    avals = [
        a.update(vma=a.vma.union(axes)) if m else a
        for a, m in zip(graph.in_avals, mapped, strict=True)
    ]
    return trace_closed(graph.evaluate, avals, name=graph.name)


def _behind(over: Names, specs: Specs, mapped: Flags) -> Specs:
    return tuple(
        PartitionSpec(over, *spec) if m else spec
        for spec, m in zip(specs, mapped, strict=True)
    )


def _stacking(graph: Graph, count: int) -> Graph:
    """Returns a graph whose outputs from `count` on have one more axis in front."""

    def run(*values: Any) -> list[Any]:
        outs = graph.evaluate(*values)
        return [
            *outs[:count],
            *(
                reshape(out, (1, *a.shape))
                for out, a in zip(outs[count:], graph.out_avals[count:], strict=True)
            ),
        ]

    return trace_closed(run, graph.in_avals, name=graph.name)


def _unstacking(graph: Graph, own: Flags) -> Graph:
    """Returns a graph whose inputs, where `own`, have one more axis in front."""
    avals = list(graph.in_avals)
    for i, grown in enumerate(own):
        if grown:
            avals[i] = avals[i].update(shape=(1, *avals[i].shape))

    def run(*values: Any) -> list[Any]:
        given = list(values)
        for i, grown in enumerate(own):
            if grown:
                given[i] = reshape(given[i], graph.in_avals[i].shape)
        return graph.evaluate(*given)

    return trace_closed(run, avals, name=graph.name)
