"""A function of the parts of arrays, run on every device of a mesh.

The operation holds the graph that each device runs on its parts, and how arrays are
divided into them: that is the same for its derivatives and its vectorised form, which
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

from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.arith import constant
from fxflow.core.ir.effects import ORDERED
from fxflow.core.ir.graph import Graph, Node, Var, any_node, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    chosen,
    cotangents_for,
    live_flags,
    run_host,
    spread,
    uses_axis,
)
from fxflow.core.ir.primitive import register
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import named_axes, state
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import Rewritten
from fxflow.core.spmd.partition import axis_text, spec_text
from fxflow.devices.meshes import Mesh, PartitionSpec, names_of
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.collective_groups import Collective, shown
from fxflow.lax.collective_reductions import PSum
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


@register
class ShardMap(HigherOrder):
    """Each device of a mesh runs a graph on its parts. dtypes: any.

    StableHLO: Shardy's `sdy.manual_computation`.

    Params:
      graph: of the parts.
      mesh: the devices.
      in_specs: how each operand is divided.
      out_specs: how each result is put together.
      axes: the mesh axes that it is manual over; the partitioner has the others.
      check: whether types inside tell what differs along them.
    """

    name = "shard_map"

    def abstract(
        self,
        *avals: Aval,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> list[Aval]:
        """The parts put together."""
        return _wholes(graph, mesh, out_specs, axes)

    def mesh(self, params: dict[str, Any]) -> Any:
        """Its own."""
        return params["mesh"]

    def inside(self, params: dict[str, Any]) -> Any:
        """The mesh axes as named ones."""
        return manual_axes(params["mesh"], params["axes"], params["check"])

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Whether any operation inside names the axis; its own are others."""
        return axis_name not in params["axes"] and super().uses_axis(axis_name, params)

    # -- values ------------------------------------------------------------------------

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """The graph's: each device reads and writes its part."""
        graph, wanted, outs = layout.call(node.params["graph"], kinds)
        return Rewritten(wanted, outs, {**node.params, "graph": graph})

    def lower(
        self,
        ctx: Any,
        *operands: str,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> list[str]:
        """`sdy.manual_computation`."""
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
        outside, places = module.manual, module.indices
        module.indices = {}
        for name, place in places.items():
            if name not in axes and uses_index(graph, name):
                operands += (place,)
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
        try:
            outs = inner.graph(graph, names)
        finally:
            module.manual, module.indices = outside, places
        ends = ", ".join(a.mlir for a in graph.out_avals)
        inner.lines.append(
            f"sdy.return {', '.join(outs)} : {ends}" if outs else "sdy.return"
        )
        body = "\n".join(inner.lines)
        listed = ", ".join(map(axis_text, axes))
        types = ", ".join(a.mlir for a in wholes)
        results = ", ".join(a.mlir for a in ctx.avals_out)
        found: list[str] = ctx.emit_many(
            len(outs),
            f"sdy.manual_computation({', '.join(operands)}) "
            f"in_shardings=[{specs(wholes, in_specs)}] "
            f"out_shardings=[{specs(ctx.avals_out, out_specs)}] "
            f"manual_axes={{{listed}}} ({head}) {{\n{body}\n}} : "
            f"({types}) -> ({results})",
        )
        for result, aval, spec in zip(found, ctx.avals_out, out_specs, strict=True):
            if aval.size == 0 and mesh.flat == module.devices:
                ctx.places[result] = NamedSharding(mesh, spec)
        return found

    def evaluate(
        self,
        *values: Any,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> list[Any]:
        """What one device computes that plays all of them: a `vmap` over each axis."""
        parts = []
        for value, spec in zip(values, in_specs, strict=True):
            parts.append(cut(value, spec, mesh, axes))
        derived = graph
        mapped_in = [True] * len(values)
        with manual_axes(mesh, axes, tracked=False):
            for name in reversed(axes):
                size = mesh.shape[name]
                derived, _ = batch_graph(
                    derived, size, mapped_in, force=True, axis_name=name
                )
        outs = run_host(derived, parts)
        return [
            joined(out, spec, mesh, axes)
            for out, spec in zip(outs, out_specs, strict=True)
        ]

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> tuple[list[Any], list[Any]]:
        """Each device runs the derivative's graph."""
        nonzero = live_flags(tangents)
        with manual_axes(mesh, axes, check):
            derived, has = jvp_graph(graph, nonzero)
        outs = self.bind(
            *primals,
            *chosen(tangents, nonzero),
            graph=derived,
            mesh=mesh,
            in_specs=(*in_specs, *chosen(in_specs, nonzero)),
            out_specs=(*out_specs, *chosen(out_specs, has)),
            axes=axes,
            check=check,
        )
        return _with_tangents(outs, _wholes(graph, mesh, out_specs, axes), has)

    def linearize(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> tuple[list[Any], list[Any]]:
        """Values and residuals, of which every device keeps its own; then the tangents.

        A residual leaves as an array with one more axis, divided over the devices that
        differ in it.
        """
        nonzero = live_flags(tangents)
        count = len(graph.outputs)
        with manual_axes(mesh, axes, check):
            split = linearize_graph(graph, nonzero)
            primal, tangent = split.primal, split.tangent
            stacked = _stacking(primal, count)
            own = [i is None for i in split.residual_inputs]
            unstacked = _unstacking(tangent, own)
        apart = () if check else _apart(graph, in_specs, axes)
        each = [
            PartitionSpec(tuple(n for n in axes if n in a.vma or n in apart))
            for a in primal.out_avals[count:]
        ]
        outs = self.bind(
            *primals,
            graph=stacked,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=(*out_specs, *each),
            axes=axes,
            check=check,
        )
        specs = split.residuals(in_specs, each)
        results: list[Any] = []
        if any(split.has_tangent):
            results = self.bind(
                *split.residuals(primals, outs[count:]),
                *chosen(tangents, nonzero),
                graph=unstacked,
                mesh=mesh,
                in_specs=(*specs, *chosen(in_specs, nonzero)),
                out_specs=tuple(chosen(out_specs, split.has_tangent)),
                axes=axes,
                check=check,
            )
        return _with_tangents(
            [*outs[:count], *results],
            _wholes(graph, mesh, out_specs, axes),
            split.has_tangent,
        )

    def transpose(
        self,
        cotangent: Sequence[Any],
        *args: Any,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> Sequence[Any]:
        """Each device transposes; see the top of this file for what is shared."""
        linear = [type(a) is Var for a in args]
        nonzero = live_flags(cotangent)
        values = [a for a in args if type(a) is not Var]
        value_specs = [s for s, lin in zip(in_specs, linear, strict=True) if not lin]
        linear_specs = chosen(in_specs, linear)
        ct_specs = chosen(out_specs, nonzero)
        apart = () if check else _apart(graph, (*in_specs, *out_specs), axes)
        with manual_axes(mesh, axes, check):
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
        outs = iter(
            self.bind(
                *values,
                *chosen(cotangent, nonzero),
                graph=whole,
                mesh=mesh,
                in_specs=(*value_specs, *ct_specs),
                out_specs=tuple(chosen(linear_specs, has)),
                axes=axes,
                check=check,
            )
        )
        return cotangents_for(args, outs, has)

    # -- vectorisation, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
        check: bool,
    ) -> tuple[list[Any], list[bool]]:
        """Each device runs the vectorised graph.

        The mapped axis is divided over the axes of `vmap(spmd_axis_name=)`, if they are
        manual.
        """
        over = state.spmd if set(axes).issuperset(state.spmd) else ()
        if over:
            _require_divisible(size, over, mesh, graph, (*in_specs, *out_specs))
        divided, state.spmd = state.spmd, ()
        try:
            with manual_axes(mesh, axes, check):
                if over and check:
                    graph = _differing(graph, over, mapped)
                derived, out_mapped = batch_graph(
                    graph, size // mesh.length(over), mapped, axis_name=axis_name
                )
        finally:
            state.spmd = divided
        outs = self.bind(
            *args,
            graph=derived,
            mesh=mesh,
            in_specs=_behind(over, in_specs, mapped),
            out_specs=_behind(over, out_specs, out_mapped),
            axes=axes,
            check=check,
        )
        return outs, out_mapped

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Each device runs a pruned graph."""
        params = node.params
        graph: Graph = params["graph"]
        pruned = prune(graph, wanted)
        used = used_inputs(pruned)
        kept = chosen(pruned.inputs, used)
        return node.replace(
            inputs=chosen(node.inputs, used),
            outputs=chosen(node.outputs, wanted),
            params={
                **params,
                "graph": Graph(kept, pruned.nodes, pruned.outputs, graph.name),
                "in_specs": tuple(chosen(params["in_specs"], used)),
                "out_specs": tuple(chosen(params["out_specs"], wanted)),
            },
        )


def uses_index(graph: Graph, axis_name: Any) -> bool:
    """Returns whether any operation of a graph asks for the place on an axis."""

    def asks(node: Node) -> bool:
        return (
            isinstance(node.primitive, Collective)
            and axis_name in node.params["axes"]
            and node.primitive.needs_place(node.params)
        )

    return any_node(graph, ("uses_index", axis_name), asks)


def _wholes(graph: Graph, mesh: Mesh, out_specs: Specs, axes: Names) -> list[Aval]:
    """Returns the types of the results of all devices together."""
    return [
        a.update(shape=global_shape(a.shape, spec, mesh), vma=a.vma.difference(axes))
        for a, spec in zip(graph.out_avals, out_specs, strict=True)
    ]


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
      ShapeError: the length does not fit.
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


def _differing(graph: Graph, axes: Names, mapped: Sequence[bool]) -> Graph:
    """Returns a graph whose mapped inputs differ along more axes."""
    avals = [
        a.update(vma=a.vma.union(axes)) if m else a
        for a, m in zip(graph.in_avals, mapped, strict=True)
    ]
    return trace_closed(graph.evaluate, avals, name=graph.name)


def _behind(over: Names, specs: Specs, mapped: Sequence[bool]) -> Specs:
    return tuple(
        PartitionSpec(over, *spec) if m else spec
        for spec, m in zip(specs, mapped, strict=True)
    )


def _with_tangents(
    outs: Sequence[Any], avals: Sequence[Aval], has: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    count = len(avals)
    tangents = [a.tangent() for a in avals]
    return list(outs[:count]), spread(outs[count:], has, tangents)


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


def _unstacking(graph: Graph, own: Sequence[bool]) -> Graph:
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
        outs: list[Any] = graph.evaluate(*given)
        return outs

    return trace_closed(run, avals, name=graph.name)
