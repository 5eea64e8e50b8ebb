"""`reduce`: a reduction by any associative computation.

Where the computation and the initial value are those of a named reduction, it becomes
that one, whose derivative is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, Shape, typeof
from fxflow.core.arrays.array import is_arraylike, not_an_array, unwrapped
from fxflow.core.interpreters.batching import batch_flat
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import run_host
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    register,
)
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.partition import whole_along
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import distinct_axes, kept_axes, without
from fxflow.lax.families import ANY, require_kind
from fxflow.lax.reduction import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceSum,
    ReduceXor,
    Reduction,
)
from fxflow.lax.transfer import with_sharding_constraint
from fxflow.lax.tree_reduction import tree_reduce

_PYTHON = (bool, int, float, complex)


class GraphReduction(MultipleResults):
    """Combines elements by a graph.

    Operands are the arrays, then as many 0-d initial values. StableHLO wants those the
    same for all slices: where they are mapped, it is a fold of applications.
    """

    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def fold(self, values: Values, **params: Any) -> list[Any]:
        """Returns the results by applications of the graph to whole arrays."""
        raise NotImplementedError

    def batched_params(self, **params: Any) -> dict[str, Any]:
        """Returns the parameters that do the same behind axis 0."""
        raise NotImplementedError

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Derivative of the fold."""
        return jvp_flat(lambda *v: self.fold(v, **params), primals, tangents)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same behind axis 0; the fold if initial values are mapped."""
        count = len(args) // 2
        if any(mapped[count:]):
            return batch_flat(lambda *v: self.fold(v, **params), size, args, mapped)
        arrays = [
            a if m else arith.broadcast_front(a, typeof(a), size)
            for a, m in zip(args[:count], mapped, strict=False)
        ]
        outs = self.bind(*arrays, *args[count:], **self.batched_params(**params))
        return outs, [True] * count


def fold_on_host(
    graph: Graph, rows: Sequence[Any], inits: Sequence[Any], present: Any
) -> list[np.ndarray[Any, Any]]:
    """Returns what a graph makes of rows of elements, one after the other.

    Args:
      graph: takes two elements of each array, gives one of each.
      rows: NumPy arrays; the last axis holds what is combined.
      inits: numbers to start from.
      present: bool array of that shape: the elements to include.
    """
    outs = [np.full(present.shape[:-1], i, np.asarray(i).dtype) for i in inits]
    for position in np.ndindex(*present.shape[:-1]):
        for step in np.flatnonzero(present[position]):
            given = [out[position] for out in outs]
            given += [row[(*position, step)] for row in rows]
            new = run_host(graph, map(np.asarray, given))
            for out, value in zip(outs, new, strict=True):
                out[position] = value
    return outs


@register
class Reduce(GraphReduction):
    """Reduction by a given associative computation. dtypes: all. StableHLO: reduce.

    Params:
      graph: takes two elements of each array, gives one of each.
      axes: to reduce.
    """

    name = "reduce"
    layout: Callable[..., Any] = layouts.reduction

    def abstract(self, *avals: Aval, graph: Graph, axes: tuple[int, ...]) -> list[Aval]:
        """The types of the arrays without the axes."""
        count = len(avals) // 2
        return [Aval(without(a.shape, axes), a.dtype) for a in avals[:count]]

    def lower(
        self, ctx: Context, *operands: str, graph: Graph, axes: tuple[int, ...]
    ) -> list[str]:
        """`reduce` with the graph as its region."""
        scalars = [Aval((), a.dtype) for a in ctx.avals_in[len(operands) // 2 :]]
        region = ctx.region(
            [*scalars, *scalars],
            lambda inner, names: inner.graph(graph, names),
            scalars,
        )
        if len(scalars) == 1:
            operands = (
                whole_along(ctx, operands[0], ctx.avals_in[0], axes),
                operands[1],
            )
        ins = ", ".join(a.mlir for a in ctx.avals_in)
        outs = ", ".join(a.mlir for a in ctx.avals_out)
        dims = f"array<i64: {', '.join(map(str, axes))}>" if axes else "array<i64>"
        return ctx.emit_many(
            len(scalars),
            f'"stablehlo.reduce"({", ".join(operands)}) ({region}) '
            f"{{dimensions = {dims}}} : ({ins}) -> ({outs})",
        )

    def evaluate(
        self, *values: Any, graph: Graph, axes: tuple[int, ...]
    ) -> list[np.ndarray[Any, Any]]:
        """One element after the other."""
        count = len(values) // 2
        arrays, inits = values[:count], values[count:]
        kept = kept_axes(arrays[0].ndim, axes)
        shape = tuple(arrays[0].shape[a] for a in kept)
        rows = [
            np.transpose(a, (*kept, *axes)).reshape(*shape, -1)
            if a.size
            else np.zeros((*shape, 0), a.dtype)
            for a in arrays
        ]
        return fold_on_host(graph, rows, inits, np.ones(rows[0].shape, bool))

    def fold(self, values: Values, *, graph: Graph, axes: Shape) -> list[Any]:
        """A tree of applications of the graph."""
        return tree_reduce(graph, values, axes)

    def batched_params(self, *, axes: Shape, **params: Any) -> dict[str, Any]:
        """The axes move up by one."""
        return {**params, "axes": tuple(a + 1 for a in axes)}

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """The graph, for each element."""
        flops = float(avals[0].size * max(1, len(params["graph"].nodes)))
        return {**super().cost(*avals, **params), "flops": flops}


# -- public ----------------------------------------------------------------------------

_NAMED: dict[str, Any] = {
    "add": ReduceSum,
    "mul": ReduceProd,
    "max": ReduceMax,
    "min": ReduceMin,
    "and": ReduceAnd,
    "or": ReduceOr,
    "xor": ReduceXor,
}


def named_operation(graph: Graph) -> str | None:
    """Returns the name of the one operation that combines both inputs, or None."""
    if len(graph.nodes) != 1 or len(graph.inputs) != 2:
        return None
    (node,) = graph.nodes
    # In either order: each operation of `_NAMED` is commutative.
    if set(map(id, node.inputs)) != set(map(id, graph.inputs)):
        return None
    if list(graph.outputs) != list(node.outputs) or node.params:
        return None
    return node.primitive.name


def is_identity(reduction: Reduction, init: Any) -> bool:
    """Returns whether an initial value is known to change nothing."""
    if isinstance(init, Tracer):
        return False
    identity = reduction.identity(typeof(init).dtype)
    return bool(np.asarray(init) == identity)


def scalar_graph(
    name: str, computation: Callable[..., Any], avals: Sequence[Aval], treedef: Any
) -> Graph:
    """Traces a computation on pairs of 0-d values.

    Args:
      name: of the operation, for messages.
      computation: takes two pytrees of elements, returns one.
      avals: 0-d types of the leaves of one of them.
      treedef: their structure.

    Raises:
      ArgumentError: it captures an array, or does not give what it takes.
    """
    count = len(avals)
    for aval in avals:
        require_kind(name, aval, ANY)

    def flat(*values: Any) -> Values:
        out = computation(
            treedef.unflatten(values[:count]), treedef.unflatten(values[count:])
        )
        leaves, structure = tree.flatten(out)
        if structure != treedef:
            raise ArgumentError(
                f"{name}: the computation must return the structure it is given, "
                f"{tree.written(treedef)}, got {tree.written(structure)}"
            )
        return leaves

    graph, consts = trace_flat(flat, [*avals, *avals], name=f"{name}_computation")
    # The region of a StableHLO reduction sees nothing from outside.
    if consts:
        raise ArgumentError(
            f"{name}: the computation may not capture arrays "
            f"({', '.join(str(typeof(c)) for c in consts)}): pass them as operands"
        )
    if [a.strong() for a in graph.out_avals] != list(avals):
        given = ", ".join(map(str, avals))
        got = ", ".join(map(str, graph.out_avals))
        raise DtypeError(
            f"{name}: the computation must give elements of the types it takes, "
            f"{given}, got {got}"
        )
    return graph


def checked_operands(
    name: str, operands: Any, init_values: Any
) -> tuple[list[Any], list[Any], Any]:
    """Returns the leaves of operands and initial values, and their structure.

    Raises:
      ArgumentError: the structures differ, or a leaf is not an array.
      ShapeError: operands differ in shape, or an initial value is not 0-d.
      DtypeError: an initial value has not the dtype of its operand.
    """
    arrays, treedef = tree.flatten(operands)
    inits, init_tree = tree.flatten(init_values)
    if treedef != init_tree:
        raise ArgumentError(
            f"{name}: operands and initial values must have one structure, got "
            f"{tree.written(treedef)} and {tree.written(init_tree)}"
        )
    if not arrays:
        raise ArgumentError(f"{name}: there must be at least one operand")
    for value in (*arrays, *inits):
        if not is_arraylike(value):
            raise not_an_array(value, f"{name}: got")
    avals = [typeof(a) for a in arrays]
    if any(a.shape != avals[0].shape for a in avals):
        raise ShapeError(
            f"{name}: operands must have one shape, got {', '.join(map(str, avals))}"
        )
    starts = []
    for init, aval in zip(inits, avals, strict=True):
        if not isinstance(init, Array):
            init = _of_dtype(init, aval.dtype)
        start = typeof(init)
        if start.shape:
            raise ShapeError(f"{name}: an initial value must be 0-d, got {start}")
        if start.dtype != aval.dtype:
            raise DtypeError(
                f"{name}: the initial value {start} must have the dtype of its "
                f"operand {aval}: convert one with .astype(...)"
            )
        starts.append(unwrapped(init))
    return arrays, starts, treedef


def _of_dtype(init: Any, dtype: Any) -> Any:
    """Returns a host scalar as a constant, if its dtype is the wanted one or weak."""
    value = np.asarray(init)
    if value.ndim or not (isinstance(init, _PYTHON) or value.dtype == dtype):
        return init
    return arith.constant(value[()], dtype)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduces arrays along axes by an associative computation.

    Args:
      operands: pytree of arrays of one shape.
      init_values: pytree of 0-d values, identities of the computation: how often they
        enter is up to the compiler.
      computation: takes two pytrees of 0-d values and returns one; associative and
        commutative.
      dimensions: axes to reduce.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        results are laid out; or a pytree prefix of them.

    Returns:
      A pytree of arrays of the operands' shape without `dimensions`.

    Raises:
      ArgumentError: structures differ, or the computation captures arrays.
      ShapeError, DtypeError, AxisError: operands, initial values or axes are
        incompatible.
      PlacementError: the results cannot be laid out as `out_sharding` specifies.

    Example:
      >>> x = np.float32([[1, 2], [3, 4]])
      >>> print(reduce(x, np.float32(0), lambda a, b: lax.max(a, b), (1,)))
      [2. 4.]

    Source: StableHLO reduce.
    """
    arrays, inits, treedef = checked_operands("reduce", operands, init_values)
    axes = distinct_axes("reduce", dimensions, typeof(arrays[0]).ndim)
    scalars = [Aval((), typeof(a).dtype) for a in arrays]
    graph = scalar_graph("reduce", computation, scalars, treedef)
    named = _NAMED.get(named_operation(graph) or "")
    if named is not None and is_identity(named, inits[0]):
        outs = [named.bind(arrays[0], axes=tuple(sorted(axes)))]
    else:
        outs = Reduce.bind(*arrays, *inits, graph=graph, axes=tuple(sorted(axes)))
    result = treedef.unflatten(outs)
    if out_sharding is not None:
        return with_sharding_constraint(result, out_sharding)
    return result
