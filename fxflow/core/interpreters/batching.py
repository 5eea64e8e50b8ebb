"""Vectorization: one run of a function over many slices.

`BatchTrace` keeps mapped values with the mapped axis in front and runs each primitive's
`batch` rule under its parent. Values that are the same for all slices stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array, Aval, typeof, unwrapped
from fxflow.core.ir.arith import broadcast_front
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Trace, Tracer, named_axes, state
from fxflow.devices.meshes import Layout, current_mesh


class BatchTracer(Tracer):
    """A value with a mapped axis in front, seen without it."""

    __slots__ = ("value",)

    value: Any

    def __init__(self, trace: BatchTrace, value: Any) -> None:
        self._trace = trace
        self.value = value
        aval = typeof(value)
        self.aval: Aval = Aval(aval.shape[1:], aval.dtype, aval.weak_type, aval.vma)
        if aval.layout is not None:
            self.aval = aval.update(shape=aval.shape[1:])

    def origin(self) -> str:
        """Says where the value comes from."""
        inner = self.value
        if isinstance(inner, Tracer):
            return inner.origin()
        return "It is being vectorized (vmap)."

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions the value is computed from."""
        return self.value.depends_on() if isinstance(self.value, Tracer) else []


class BatchTrace(Trace):
    """Vectorizes operations.

    Attributes:
      parent: the interpreter that runs them on whole batches.
      size: length of the mapped axis.
      axis_name: its name for collectives, or None.
      spmd: the mesh axes that it is to be divided over; see `State`.
    """

    __slots__ = ("axis_name", "parent", "size", "spmd")

    axis_name: Any
    parent: Trace
    size: int
    spmd: tuple[Any, ...]

    def __init__(
        self,
        parent: Trace,
        size: int,
        axis_name: Any = None,
        spmd: tuple[Any, ...] = (),
    ) -> None:
        self.parent, self.size, self.axis_name = parent, size, axis_name
        self.spmd = spmd

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Vectorizes one operation; see `Trace.process`."""
        values = []
        mapped = []
        for a in args:
            if not isinstance(a, Array):
                a = unwrapped(a)
            mine = type(a) is BatchTracer and a._trace is self
            mapped.append(mine)
            values.append(a.value if mine else a)
        previous = state.trace, state.spmd
        state.trace, state.spmd = self.parent, self.spmd
        try:
            # First, for it depends on the axis even if no operand is mapped: a `psum`
            # of what is the same for all slices is a multiple.
            if self.axis_name is not None and primitive.uses_axis(
                self.axis_name, params
            ):
                out, out_mapped = primitive.batch_named(
                    self.axis_name, self.size, values, mapped, **params
                )
            elif any(mapped):
                out, out_mapped = primitive.batch(self.size, values, mapped, **params)
            else:
                return self.parent.process(primitive, tuple(values), params)
        finally:
            state.trace, state.spmd = previous
        if primitive.multi:
            return [
                BatchTracer(self, v) if m else v
                for v, m in zip(out, out_mapped, strict=True)
            ]
        return BatchTracer(self, out) if out_mapped else out


def materialize(value: Any, size: int, is_mapped: bool) -> Any:
    """Returns `value` with a mapped axis in front, repeated if it had none."""
    return value if is_mapped else broadcast_front(value, typeof(value), size)


def batch_flat(
    function: Callable[..., Sequence[Any]],
    size: int,
    args: Sequence[Any],
    mapped: Sequence[bool],
    axis_name: Any = None,
    spmd: tuple[Any, ...] | None = None,
) -> tuple[list[Any], list[bool]]:
    """Vectorizes a flat function under the current interpreter.

    Args:
      function: of flat values.
      size: length of the mapped axis.
      args: values; where `mapped`, with the mapped axis in front.
      mapped: which are mapped.
      axis_name: a name for collectives.
      spmd: mesh axes to divide the mapped axis over; None: those of the vectorized
        operation that this is a part of.

    Returns:
      The results and which of them are mapped (axis in front).
    """
    parent = state.trace
    trace = BatchTrace(parent, size, axis_name, state.spmd if spmd is None else spmd)
    tracers = [
        BatchTracer(trace, a) if m else a for a, m in zip(args, mapped, strict=True)
    ]
    # Put back in the `finally` here, whatever an interrupt does to the `with` inside.
    axes = state.axes, state.tracked
    state.trace = trace
    try:
        if axis_name is None:
            outs = function(*tracers)
        else:
            with named_axes([(axis_name, size)]):
                outs = function(*tracers)
    finally:
        state.trace = parent
        state.axes, state.tracked = axes
    out_mapped = [type(o) is BatchTracer and o._trace is trace for o in outs]
    return [
        o.value if m else o for o, m in zip(outs, out_mapped, strict=True)
    ], out_mapped


def mapped_type(aval: Aval, size: int) -> Aval:
    """Returns the type of a whole batch; see `State.spmd`."""
    whole = aval.update(shape=(size, *aval.shape))
    mesh = state.spmd and current_mesh()
    if not mesh or not set(mesh.explicit_axes).issuperset(state.spmd):
        return whole
    own = aval.layout or Layout(mesh, ((),) * aval.ndim)
    return whole.update(layout=own.replace(entries=(state.spmd, *own.entries)))


def batch_graph(
    graph: Graph,
    size: int,
    mapped: Sequence[bool],
    force: Sequence[bool] | bool = False,
    axis_name: Any = None,
) -> tuple[Graph, list[bool]]:
    """Returns the vectorized graph.

    Args:
      graph: to vectorize.
      size: length of the mapped axis.
      mapped: which inputs are mapped (axis in front).
      force: which outputs must be mapped even if they are the same for all slices.
      axis_name: a name for collectives.

    Returns:
      The graph and which outputs are mapped (axis in front).
    """
    if isinstance(force, bool):
        force = (force,) * len(graph.outputs)
    # What rules look up while they are traced belongs to the key.
    scope = axis_name, state.axes, state.spmd
    key = ("batch", size, tuple(mapped), tuple(force), scope)

    def derive() -> tuple[Graph, list[bool]]:
        out_mapped: list[bool] = []

        def vectorized(*values: Any) -> list[Any]:
            outs, have = batch_flat(graph.evaluate, size, values, mapped, axis_name)
            out_mapped[:] = [h or f for h, f in zip(have, force, strict=True)]
            return [
                materialize(o, size, h) if f else o
                for o, h, f in zip(outs, have, force, strict=True)
            ]

        avals = [
            mapped_type(a, size) if m else a
            for a, m in zip(graph.in_avals, mapped, strict=True)
        ]
        derived = trace_closed(vectorized, avals, name=f"vmap_{graph.name}")
        return derived, out_mapped

    return graph.remembered(key, derive)
