"""A function of the parts of arrays, run on every device of a mesh.

The operation holds the graph that each device runs on its parts, and how arrays are
divided into them: that is the same for its derivatives and its vectorised form, which
are again such operations. Inside, the mesh axes it is *manual* over are named axes,
for the collectives.

Derivatives are those of the function of whole arrays. What every device gets (an axis
that `in_specs` does not mention) was copied, so its cotangent is the sum of all
devices'; what every device gives alike (an axis that `out_specs` does not mention) is
one value, of whose cotangent each device takes its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.core.arith import constant
from fxflow.core.aval import Aval
from fxflow.core.batching import batch_graph
from fxflow.core.effects import ORDERED
from fxflow.core.errors import ArgumentError
from fxflow.core.graph import Graph, Node, Var, prune, subgraphs, used_inputs
from fxflow.core.higher_order import HigherOrder, chosen, live_flags, run_host, spread
from fxflow.core.jvp import jvp_graph
from fxflow.core.linearize import linearize_graph
from fxflow.core.lowering import Context
from fxflow.core.partition import axis_text, spec_text
from fxflow.core.primitive import Zero, register
from fxflow.core.staging import trace_closed
from fxflow.core.trace import named_axis
from fxflow.core.transpose import transpose_graph
from fxflow.devices.meshes import Mesh, PartitionSpec, names_of
from fxflow.lax.collective_groups import Collective
from fxflow.lax.collective_reductions import PSum
from fxflow.lax.elementwise import mul
from fxflow.lax.reshaping import reshape

Specs = tuple[PartitionSpec, ...]
Names = tuple[Any, ...]


@contextmanager
def manual_axes(mesh: Mesh, axes: Names) -> Iterator[None]:
    """Names the axes of a mesh within a `with` block."""
    if not axes:
        yield
        return
    first, *rest = axes
    with named_axis(first, mesh.shape[first]), manual_axes(mesh, tuple(rest)):
        yield


def _counts(ndim: int, spec: PartitionSpec, mesh: Mesh) -> list[int]:
    """Returns how many parts each axis has."""
    counts = [mesh.length(names) for names in spec.names()]
    return counts + [1] * (ndim - len(counts))


def local_shape(
    shape: Sequence[int], spec: PartitionSpec, mesh: Mesh
) -> tuple[int, ...]:
    """Returns the shape of a device's part; nothing is checked."""
    counts = _counts(len(shape), spec, mesh)
    return tuple(n // c for n, c in zip(shape, counts, strict=False))


def global_shape(
    shape: Sequence[int], spec: PartitionSpec, mesh: Mesh
) -> tuple[int, ...]:
    """Returns the shape of the whole of which every device has a part."""
    counts = _counts(len(shape), spec, mesh)
    return tuple(n * c for n, c in zip(shape, counts, strict=False))


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
    ) -> list[Aval]:
        """The parts put together."""
        return self._wholes(graph, mesh, out_specs)

    @staticmethod
    def _wholes(graph: Graph, mesh: Mesh, out_specs: Specs) -> list[Aval]:
        """Returns the types of the results of all devices together."""
        return [
            a.update(shape=global_shape(a.shape, spec, mesh))
            for a, spec in zip(graph.out_avals, out_specs, strict=True)
        ]

    def mesh(self, params: dict[str, Any]) -> Any:
        """Its own."""
        return params["mesh"]

    def inside(self, params: dict[str, Any]) -> Any:
        """The mesh axes as named ones."""
        return manual_axes(params["mesh"], params["axes"])

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Whether any operation inside names the axis; its own are others."""
        return axis_name not in params["axes"] and super().uses_axis(axis_name, params)

    # -- values ------------------------------------------------------------------

    def lower(
        self,
        ctx: Any,
        *operands: str,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
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

        names = [f"%m{ctx.number()}" for _ in operands]
        parts = list(graph.in_avals)
        wholes = list(ctx.avals_in)
        outside, places = module.manual, module.indices
        module.indices = {}
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
            for n, a in zip([*names, *module.indices.values()], parts, strict=True)
        )
        inner = Context(module, ctx.counter, ctx.scope)
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
        return found

    def evaluate(
        self,
        *values: Any,
        graph: Graph,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        axes: Names,
    ) -> list[Any]:
        """What one device computes that plays all of them: a `vmap` over each axis."""
        parts = []
        for value, spec in zip(values, in_specs, strict=True):
            parts.append(_cut(value, spec, mesh, axes))
        derived = graph
        mapped_in = [True] * len(values)
        with manual_axes(mesh, axes):
            for name in reversed(axes):
                size = mesh.shape[name]
                derived, _ = batch_graph(
                    derived, size, mapped_in, force=True, axis_name=name
                )
        outs = run_host(derived, parts)
        return [
            _joined(out, spec, mesh, axes)
            for out, spec in zip(outs, out_specs, strict=True)
        ]

    # -- derivatives ---------------------------------------------------------------

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
    ) -> tuple[list[Any], list[Any]]:
        """Each device runs the derivative's graph."""
        nonzero = live_flags(tangents)
        with manual_axes(mesh, axes):
            derived, has = jvp_graph(graph, nonzero)
        outs = self.bind(
            *primals,
            *chosen(tangents, nonzero),
            graph=derived,
            mesh=mesh,
            in_specs=(*in_specs, *chosen(in_specs, nonzero)),
            out_specs=(*out_specs, *chosen(out_specs, has)),
            axes=axes,
        )
        return _with_tangents(outs, self._wholes(graph, mesh, out_specs), has)

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
    ) -> tuple[list[Any], list[Any]]:
        """Values and residuals, of which every device keeps its own; then the tangents.

        A residual leaves as an array with one more axis, divided over all devices.
        """
        nonzero = live_flags(tangents)
        count = len(graph.outputs)
        with manual_axes(mesh, axes):
            split = linearize_graph(graph, nonzero)
            primal, tangent = split.primal, split.tangent
            stacked = _stacking(primal, count)
            own = [i is None for i in split.residual_inputs]
            unstacked = _unstacking(tangent, own)
        each = PartitionSpec(axes)
        outs = self.bind(
            *primals,
            graph=stacked,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=(*out_specs, *[each] * (len(primal.outputs) - count)),
            axes=axes,
        )
        specs = [each if i is None else in_specs[i] for i in split.residual_inputs]
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
            )
        return _with_tangents(
            [*outs[:count], *results],
            self._wholes(graph, mesh, out_specs),
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
    ) -> Sequence[Any]:
        """Each device transposes; see the top of this file for what is shared."""
        linear = [type(a) is Var for a in args]
        nonzero = live_flags(cotangent)
        values = [a for a in args if type(a) is not Var]
        value_specs = [s for s, lin in zip(in_specs, linear, strict=True) if not lin]
        linear_specs = chosen(in_specs, linear)
        ct_specs = chosen(out_specs, nonzero)
        with manual_axes(mesh, axes):
            derived, has = transpose_graph(graph, linear, nonzero)
            shared = [_missing(spec, mesh, axes) for spec in ct_specs]
            summed = [_missing(s, mesh, axes) for s in chosen(linear_specs, has)]

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
            )
        )
        have = iter(has)
        return [
            (next(outs) if next(have) else Zero(a.aval)) if type(a) is Var else None
            for a in args
        ]

    # -- vectorisation, pruning ------------------------------------------------------

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
    ) -> tuple[list[Any], list[bool]]:
        """Each device runs the vectorised graph; the mapped axis is not divided."""
        with manual_axes(mesh, axes):
            derived, out_mapped = batch_graph(graph, size, mapped, axis_name=axis_name)
        outs = self.bind(
            *args,
            graph=derived,
            mesh=mesh,
            in_specs=_behind(in_specs, mapped),
            out_specs=_behind(out_specs, out_mapped),
            axes=axes,
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
    return any(
        (
            isinstance(node.primitive, Collective)
            and axis_name in node.params["axes"]
            and node.primitive.needs_place(node.params)
        )
        or any(uses_index(inner, axis_name) for _, inner in subgraphs(node.params))
        for node in graph.nodes
    )


def _missing(spec: PartitionSpec, mesh: Mesh, axes: Names) -> Names:
    """Returns the manual axes over which a spec does not divide."""
    used = {name for names in spec.names() for name in names}
    return tuple(n for n in axes if n not in used and mesh.shape[n] > 1)


def _behind(specs: Specs, mapped: Sequence[bool]) -> Specs:
    return tuple(
        PartitionSpec(None, *spec) if m else spec
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


# -- NumPy ---------------------------------------------------------------------------


def _cut(value: Any, spec: PartitionSpec, mesh: Mesh, axes: Names) -> Any:
    """Returns the parts stacked along one leading axis for each manual axis."""
    value = np.asarray(value)
    sizes = mesh.shape
    lengths: list[int] = []
    at: dict[Any, int] = {}
    for axis, length in enumerate(value.shape):
        names = names_of(spec[axis]) if axis < len(spec) else ()
        for name in names:
            at[name] = len(lengths)
            lengths.append(sizes[name])
        lengths.append(length // mesh.length(names))
    out = value.reshape(lengths)
    rest = [i for i in range(out.ndim) if i not in at.values()]
    out = out.transpose([*(at[n] for n in axes if n in at), *rest])
    for i, name in enumerate(axes):
        if name not in at:
            out = np.repeat(np.expand_dims(out, i), sizes[name], i)
    return out


def _joined(value: Any, spec: PartitionSpec, mesh: Mesh, axes: Names) -> Any:
    """Returns the whole of the parts that `_cut` would give."""
    value = np.asarray(value)
    used = {name for names in spec.names() for name in names}
    left = [name for name in axes if name in used]
    for i in reversed(range(len(axes))):
        if axes[i] not in used:
            value = value.take(0, i)
    shape = value.shape[len(left) :]
    order: list[int] = []
    final: list[int] = []
    for axis, length in enumerate(shape):
        names = names_of(spec[axis]) if axis < len(spec) else ()
        order += [left.index(n) for n in names]
        order.append(len(left) + axis)
        final.append(length * mesh.length(names))
    return value.transpose(order).reshape(final)
