"""`cond` and `switch`: one of several branches is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from fxflow._config import config
from fxflow.core.arrays import (
    Aval,
    as_array,
    dtypes,
    is_arraylike,
    not_an_array,
    read_only,
    typeof,
    unwrapped,
)
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.calls import with_terms
from fxflow.core.interpreters.jet import jet_graph, listed_terms
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import (
    LinearGraphs,
    graph_without_tangents,
    linearize_graph,
)
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import discharge, read_all, write_back
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    append_zeros,
    chosen,
    flow_through,
    graph_cost,
    live_flags,
    run_host,
    spread,
    with_consts,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, register, table
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.runtime.lowering import TOKEN, Context
from fxflow.core.source import located, name_of, telling
from fxflow.core.spmd.memories import FREE, Rewritten
from fxflow.core.spmd.varying import cast
from fxflow.errors import ArgumentError, DtypeError, ShapeError, ShardingTypeError
from fxflow.lax.control_flow.carry import (
    as_type,
    leaves_of,
    paths_of,
    require_structure,
)
from fxflow.lax.control_flow.cond_rows import Graphs, select_branches
from fxflow.lax.control_flow.scan import scan


class Branching(HigherOrder):
    """One of several branches.

    The first operand is the branch's index (i32[], within range); all branches take the
    other operands. Only the chosen branch runs; vectorized over the index, all do.

    Params:
      branches: graphs of equal input and output types; subclasses may have others.
    """

    has_jet = True

    def abstract(self, *avals: Aval, branches: Graphs, **which: Any) -> list[Aval]:
        """Types of the branches' outputs, which differ along all their axes."""
        every = zip(*(b.out_avals for b in branches), strict=True)
        return [a.update(vma=a.vma.union(*(b.vma for b in rest))) for a, *rest in every]

    def cost(self, *avals: Aval, branches: Graphs, **which: Any) -> dict[str, float]:
        """That of the branch with the most work."""
        return max(map(graph_cost, branches), key=lambda found: found["flops"])

    def lower(self, ctx: Context, *operands: str, branches: Graphs) -> list[str]:
        """`case`, whose regions use the operands from outside."""
        ordered = ctx.module.ordered
        outs = [a.mlir for a in branches[0].out_avals] + [TOKEN] * ordered
        token = ctx.token if ordered else ""

        def region(graph: Graph) -> str:
            def write(inner: Context, _: list[str]) -> list[str]:
                inner.token = token
                results = inner.graph(graph, operands[1:])
                return [*results, inner.token] if ordered else results

            return ctx.region([], write, outs)

        regions = ", ".join(map(region, branches))
        types = ", ".join(outs)
        names = ctx.emit_many(
            len(outs),
            f'"stablehlo.case"({operands[0]}) ({regions}) : (tensor<i32>) -> ({types})',
        )
        if ordered:
            ctx.token = names.pop()
        return names

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Branches of what reads no tangents, if that has effects."""
        if not known[0]:
            return None
        each = [graph_without_tangents(b, known[1:]) for b in params["branches"]]
        if not any(b.effects for b in each):
            return None
        return {**params, "branches": tuple(each)}

    def evaluate(self, *values: Any, branches: Graphs) -> list[Any]:
        """NumPy's evaluation of the chosen branch."""
        index = int(np.clip(values[0], 0, len(branches) - 1))
        return list(map(np.asarray, run_host(branches[index], values[1:])))

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """Branches that return the contents of what any of them writes to."""
        branches: Graphs = params["branches"]
        written = frozenset(i for b in branches for i in discharge(b).written)
        pure = [discharge(b, written) for b in branches]
        outs = self.bind(*read_all(args), branches=tuple(b.graph for b in pure))
        count = len(branches[0].outputs)
        write_back(args[1:], pure[0].written, outs[count:])
        return outs[:count]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Those that all branches leave the results in; else the device's own."""
        rest = kinds[1:]
        branches = node.params["branches"]
        free = [FREE] * len(branches[0].outputs)
        found = [layout.lay_out(b, rest, free).outs for b in branches]
        outs = [o[0] if len({*o}) == 1 else None for o in zip(*found, strict=True)]
        derived = tuple(layout.lay_out(b, rest, outs).graph for b in branches)
        params = {**node.params, "branches": derived}
        return Rewritten([None, *rest], outs, params)

    def forwarded(self, *, branches: Graphs, **which: Any) -> list[int | None]:
        """What all branches give alike."""
        each = zip(*map(forwarded, branches), strict=True)
        return [None if f is None or {f, *rest} != {f} else 1 + f for f, *rest in each]

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self, primals: Values, tangents: Values, *, branches: Graphs, **which: Any
    ) -> Dual:
        """The branches' derivatives."""
        nonzero = live_flags(tangents[1:])
        have = [jvp_graph(b, nonzero)[1] for b in branches]
        # Branches must agree on their types: where one has a tangent, the others return
        # zeros.
        has_tangent = [any(flags) for flags in zip(*have, strict=True)]
        derived = tuple(jvp_graph(b, nonzero, has_tangent)[0] for b in branches)
        live = chosen(tangents[1:], nonzero)
        outs = self.bind(*primals, *live, branches=derived, **which)
        count = len(branches[0].outputs)
        avals = [a.tangent() for a in branches[0].out_avals]
        return outs[:count], spread(outs[count:], has_tangent, avals)

    def jet(
        self,
        primals: Values,
        series: Values,
        order: int,
        /,
        *,
        branches: Graphs,
        **which: Any,
    ) -> Dual:
        """The branches' Taylor coefficients."""
        nonzero = live_flags(series[1:])
        have = [jet_graph(b, order, nonzero)[1] for b in branches]
        has = [any(flags) for flags in zip(*have, strict=True)]
        derived = tuple(jet_graph(b, order, nonzero, has)[0] for b in branches)
        live = listed_terms(series[1:], nonzero, order)
        outs = self.bind(*primals, *live, branches=derived, **which)
        return with_terms(outs, branches[0].out_avals, has, order)

    def linearize(
        self, primals: Values, tangents: Values, *, branches: Graphs, **which: Any
    ) -> Dual:
        """The branches with what the tangents need of them; branches of tangents."""
        nonzero = live_flags(tangents[1:])
        key = ("cond_linear", tuple(nonzero), branches[1:])
        linear = branches[0].remembered(key, lambda: _LinearCond(branches, nonzero))
        outs = self.bind(*primals, branches=linear.primal, **which)
        count = len(branches[0].outputs)
        out_tangents: list[Any] = []
        if any(linear.has_tangent):
            out_tangents = self.bind(
                primals[0],
                *(primals[1 + i] for i in linear.given),
                *outs[count:],
                *chosen(tangents[1:], nonzero),
                branches=linear.tangent,
                **which,
            )
        avals = [a.tangent() for a in branches[0].out_avals]
        return outs[:count], spread(out_tangents, linear.has_tangent, avals)

    def transpose(
        self, cotangent: Values, *args: Any, branches: Graphs, **which: Any
    ) -> Values:
        """The branches' transposes."""
        index, *operands = args
        linear = [type(a) is Var for a in operands]
        nonzero = live_flags(cotangent)
        derived = tuple(
            transpose_graph(b, linear, nonzero, instantiated=True)[0] for b in branches
        )
        values = [a for a in operands if type(a) is not Var]
        live = chosen(cotangent, nonzero)
        outs = self.bind(index, *values, *live, branches=derived, **which)
        rest = iter(outs)
        return [None, *(next(rest) if lin else None for lin in linear)]

    # -- vectorization, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        branches: Graphs,
        **which: Any,
    ) -> Batched:
        """Vectorized branches; if the index is mapped, all of them and a selection.

        There is nothing to select where all branches pass on the same operand.
        """
        index, *operands = args
        flags = list(mapped[1:])
        if not mapped[0]:
            have = [
                batch_graph(b, size, flags, axis_name=axis_name)[1] for b in branches
            ]
            out_mapped = [any(f) for f in zip(*have, strict=True)]
            derived = tuple(
                batch_graph(b, size, flags, out_mapped, axis_name)[0] for b in branches
            )
            return self.bind(index, *operands, branches=derived, **which), out_mapped
        same = self.forwarded(branches=branches)
        differ = [s is None for s in same]
        if not all(differ):
            branches = tuple(prune(b, differ) for b in branches)
        found = iter(select_branches(axis_name, size, args, mapped, branches))
        outs = [next(found) if s is None else args[s] for s in same]
        return outs, [s is None or mapped[s] for s in same]

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """Masked branches."""
        index, *operands = args
        branches = tuple(map(masked_graph, params["branches"]))
        return self.bind(index, active, *operands, **{**params, "branches": branches})

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of any branch; all, if the index depends."""
        index, *used = sources
        found = [flow_through(b, used) for b in params["branches"]]
        outs = [index or any(each) for each in zip(*found, strict=True)]
        return outs, [used] * len(found)

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Prunes the branches, and drops operands that none of them uses."""
        branches: Graphs = node.params["branches"]
        pruned = [prune(b, wanted) for b in branches]
        used = [any(u) for u in zip(*map(used_inputs, pruned), strict=True)]
        smaller = tuple(
            p.replace(inputs=chosen(b.inputs, used))
            for p, b in zip(pruned, branches, strict=True)
        )
        return node.replace(
            inputs=[node.inputs[0], *chosen(node.inputs[1:], used)],
            outputs=chosen(node.outputs, wanted),
            params={**node.params, "branches": smaller},
        )


@register
class Cond(Branching):
    """One of several branches. dtypes: any. StableHLO: case.

    Params:
      branches: graphs of equal input and output types.
    """

    name = "cond"


@register
class CondInTurn(Branching):
    """Zeros, or an operation with effects. dtypes: any. StableHLO: case.

    What a masked graph makes of an operation with effects (see `masking`): vectorized,
    each row has a condition of its own, so only the rows that take part run it.

    Params:
      branches: a graph of zeros and the graph of the operation.
    """

    name = "cond_in_turn"

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        branches: Graphs,
        **which: Any,
    ) -> Batched:
        """A loop over the rows, if they differ in whether they take part."""
        if not mapped[0]:
            return super().batch_over(
                axis_name, size, args, mapped, branches=branches, **which
            )
        if axis_name is not None:
            (node,) = branches[1].nodes
            raise ArgumentError(
                f"vmap: {node.primitive} has effects and uses the axis {axis_name!r}, "
                "and only some slices take the branch that it is in: move it out"
            )

        def row(carry: Any, slices: Any) -> Any:
            given = iter(slices)
            full = [next(given) if m else a for a, m in zip(args, mapped, strict=True)]
            return carry, self.bind(*full, branches=branches, **which)

        outs = scan(row, (), chosen(args, mapped), length=size)[1]
        return list(outs), [True] * len(outs)

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """The same, for the rows that take part in both."""
        index, *operands = args
        none = arith.zeros(typeof(index))
        return self.bind(
            table["select_n"].bind(active, none, index), *operands, **params
        )


class _LinearCond:
    """The derivative of branches: for each, a graph of values and one of tangents.

    What the tangents need of the values is handed over in slots that the branches
    share: a slot holds one value of a type for whichever branch runs, and zeros if that
    branch needs fewer.

    Attributes:
      primal: branches of outputs and slots.
      tangent: branches of the operands that any of them needs, the slots, and the
        tangents that are not zero.
      given: positions of those operands.
      has_tangent: which results have a tangent.
    """

    def __init__(self, branches: Graphs, nonzero: Flags) -> None:
        have = [linearize_graph(b, nonzero).has_tangent for b in branches]
        self.has_tangent = [any(flags) for flags in zip(*have, strict=True)]
        parts = [linearize_graph(b, nonzero, self.has_tangent) for b in branches]
        needed = {i for p in parts for i in p.residual_inputs if i is not None}
        self.given = sorted(needed)
        count = len(branches[0].outputs)
        slots: list[Aval] = []
        slots_of = []
        for part in parts:
            free = list(range(len(slots)))
            taken: list[int] = []
            for atom in part.primal.outputs[count:]:
                aval = atom.aval.strong()
                # Branches share the slots of residuals, since only one of them runs.
                slot = next((s for s in free if slots[s] is aval), None)
                if slot is None:
                    slot = len(slots)
                    slots.append(aval)
                else:
                    free.remove(slot)
                taken.append(slot)
            slots_of.append(taken)
        self.primal = tuple(
            self._values(part, count, slots, taken)
            for part, taken in zip(parts, slots_of, strict=True)
        )
        given_avals = [branches[0].in_avals[i] for i in self.given]
        tangent_avals = [a.tangent() for a in chosen(branches[0].in_avals, nonzero)]
        self.tangent = tuple(
            self._tangents(part, given_avals, slots, taken, tangent_avals)
            for part, taken in zip(parts, slots_of, strict=True)
        )

    def _values(
        self, part: LinearGraphs, count: int, slots: list[Aval], taken: list[int]
    ) -> Graph:
        graph = part.primal
        extra = dict(zip(taken, graph.outputs[count:], strict=True))
        empty = [s for s in range(len(slots)) if s not in extra]
        nodes, zeros = append_zeros(graph, [slots[s] for s in empty])
        extra.update(zip(empty, zeros, strict=True))
        return graph.replace(
            nodes=[*graph.nodes, *nodes],
            outputs=[*graph.outputs[:count], *(extra[s] for s in range(len(slots)))],
        )

    def _tangents(
        self,
        part: LinearGraphs,
        given_avals: list[Aval],
        slots: list[Aval],
        taken: list[int],
        tangent_avals: list[Aval],
    ) -> Graph:
        graph = part.tangent
        operands = [Var(a) for a in given_avals]
        held = [Var(a) for a in slots]
        extra = iter(taken)
        for var, position in zip(graph.inputs, part.residual_inputs, strict=False):
            if position is None:
                held[next(extra)] = var
            else:
                operands[self.given.index(position)] = var
        tangents = graph.inputs[len(part.residual_inputs) :]
        assert len(tangents) == len(tangent_avals)
        return graph.replace(inputs=[*operands, *held, *tangents])


R = TypeVar("R")

# -- public ----------------------------------------------------------------------------


@boundary
def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Any,
) -> R:
    """Calls one of two functions, selected by a condition.

    In Python it would be `true_fun(*operands) if pred else false_fun(*operands)`. Only
    the chosen one runs, unless `pred` is mapped by `vmap`: then both run for all
    slices, and the results are selected. A slice has the effects (callbacks) of its own
    branch only, and a loop runs as long as those that take its branch need. Both are
    traced, since their results must have one type.

    Args:
      pred: bool[] (a number is compared with zero).
      true_fun: called with the operands if `pred` holds.
      false_fun: called with them if not; returns the same structure, shapes and dtypes.
      *operands: pytrees of arrays.

    Returns:
      The result of the one or the other.

    Raises:
      ArgumentError: `pred` is not a number, or a function is not callable.
      ShapeError, DtypeError, TreeError: the results have different types.

    Example:
      >>> float(cond(True, lax.neg, lambda x: x, 2.0))
      -2.0

      A step that is skipped where the gradient is not finite:

      >>> def update(w, slope):
      ...     finite = fnp.all(fnp.isfinite(slope))
      ...     step = lambda: w - 0.1 * slope
      ...     return cond(finite, step, lambda: w)
      >>> fxflow.jit(update)(fnp.ones(2), fnp.array([1.0, fnp.inf])).tolist()
      [1.0, 1.0]

    Source: StableHLO case.
    """
    pred = unwrapped(pred)
    aval = _scalar(pred, "cond: pred")
    require_callable(true_fun, "cond: true_fun")
    require_callable(false_fun, "cond: false_fun")
    if not isinstance(pred, Tracer):
        index: Any = int(bool(np.asarray(pred)))
    else:
        if not dtypes.is_bool(aval.dtype):
            pred = table["ne"].bind(pred, arith.constant(0, aval.dtype))
        index = arith.cast(pred, np.dtype(np.int32))
    return _branch(  # type: ignore[no-any-return]
        "cond", ("false_fun", "true_fun"), index, (false_fun, true_fun), operands
    )


@boundary
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """Calls one of several functions, selected by an index.

    In Python it would be `branches[min(max(index, 0), len(branches) - 1)](*operands)`.
    Only that one runs, unless `index` is mapped by `vmap`; see `cond`.

    Args:
      index: integer[]; clamped to the range of branches.
      branches: functions of the operands; all return the same structure, shapes and
        dtypes.
      *operands: pytrees of arrays.

    Returns:
      The result of `branches[index]`.

    Raises:
      ArgumentError: there are no branches, or one is not callable.
      DtypeError: `index` is not an integer.
      ShapeError, DtypeError, TreeError: the results have different types.

    Example:
      >>> float(switch(1, [lax.neg, lax.exp, lax.sin], 0.0))
      1.0

      A small interpreter: each number of a program selects an operation on a stack.

      >>> push = lambda s: fnp.roll(s, 1).at[0].set(1.0)
      >>> add = lambda s: fnp.roll(s, -1).at[0].set(s[0] + s[1])
      >>> double = lambda s: s.at[0].set(2 * s[0])
      >>> def run(program):
      ...     step = lambda s, op: (switch(op, [push, add, double], s), None)
      ...     return lax.scan(step, fnp.zeros(4), program)[0][0]
      >>> float(fxflow.jit(run)(fnp.array([0, 2, 2, 0, 1])))  # 1 · 2 · 2 + 1
      5.0

    Source: StableHLO case.
    """
    branches = tuple(branches)
    if not branches:
        raise ArgumentError("switch: needs at least one branch, got none")
    for i, branch in enumerate(branches):
        require_callable(branch, f"switch: branches[{i}]")
    index = unwrapped(index)
    aval = _scalar(index, "switch: index")
    if not dtypes.is_integer(aval.dtype):
        raise DtypeError(f"switch: index must be an integer, got {aval}")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if not isinstance(index, Tracer):
        index = min(max(int(np.asarray(index)), 0), last)
    else:
        index = table["max"].bind(index, arith.constant(0, aval.dtype))
        # A larger bound does not fit the dtype, and cannot be exceeded either.
        if last <= dtypes.iinfo(aval.dtype).max:
            index = table["min"].bind(index, arith.constant(last, aval.dtype))
        index = arith.cast(index, np.dtype(np.int32))
    labels = tuple(f"branches[{i}]" for i in range(len(branches)))
    result: R = _branch("switch", labels, index, branches, operands)
    return result


def _scalar(value: Any, what: str) -> Aval:
    """Returns the type of a condition or index.

    Raises:
      ArgumentError: it is not an array.
      ShapeError: it has axes.
      DtypeError: it is not a number.
    """
    if not is_arraylike(value):
        raise not_an_array(value, f"{what} is")
    aval = typeof(value)
    if aval.shape:
        raise ShapeError(
            f"{what} must be a scalar, got {aval}: reduce it with .any() or .all(), or "
            "use select for an elementwise choice"
        )
    if dtypes.is_key(aval.dtype) or dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{what} must be a bool or a real number, got {aval}")
    return aval


def _branch(
    operation: str,
    labels: Sequence[str],
    index: Any,
    functions: Sequence[Callable[..., Any]],
    operands: Values,
) -> Any:
    """Runs the function that an index (an int, or a traced i32[], in range) names."""
    if config.disable_jit and isinstance(index, int):
        return functions[index](*read_only(tuple(operands)))
    leaves, in_tree = leaves_of(tuple(operands), f"{operation}: operands", refs=True)
    avals = [typeof(x) for x in leaves]
    bodies = [
        trace_body(f, in_tree, avals, name=f"{operation}_{name_of(f)}")
        for f in functions
    ]
    named = zip(labels, functions, strict=True)
    with telling(
        lambda: "; " + ", ".join(f"{label} is {located(f)}" for label, f in named)
    ):
        out_tree, outs = agreed(operation, labels, bodies)
    if isinstance(index, int):
        # The choice is known: the branch's operations run where this one would.
        body = bodies[index]
        results = body.graph.evaluate(*body.consts, *leaves)
        values = [_as(value, aval) for value, aval in zip(results, outs, strict=True)]
        return out_tree.unflatten(values)
    consts, graphs = with_common_consts(bodies)
    given = [*consts, *leaves]
    differs = typeof(index).vma
    if differs:
        # Devices that choose different branches have different results, and cannot meet
        # in a branch to sum cotangents of what they share: it is cast outside.
        outs = [a.update(vma=a.vma | differs) for a in outs]
        given = [cast(value, differs) for value in given]
    ins = [typeof(value) for value in given]
    same = tuple(typed(graph, ins, outs) for graph in graphs)
    return out_tree.unflatten(Cond.bind(index, *given, branches=same))


def agreed(
    operation: str, labels: Sequence[str], bodies: Sequence[Body]
) -> tuple[Any, list[Aval]]:
    """Returns the structure and the types that all branches return.

    Raises:
      ShapeError, DtypeError, TreeError: they differ.
    """
    first = bodies[0]
    avals = list(first.graph.out_avals)
    for label, body in zip(labels[1:], bodies[1:], strict=True):
        outs = body.graph.out_avals
        require_structure(
            first.out_tree,
            body.out_tree,
            outs,
            f"{operation}: branches must return one structure, but {label} differs "
            f"from {labels[0]}:",
        )
        for i, (a, b) in enumerate(zip(avals, outs, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                kind = ShapeError if a.shape != b.shape else DtypeError
                path = paths_of(first.out_tree)[i]
                raise kind(
                    f"{operation}: branches must return one type, but {labels[0]} "
                    f"returns {a} and {label} returns {b}"
                    f"{f' at {path}' if path else ''}: convert or reshape one"
                )
            if a.layout and b.layout and a.layout != b.layout:
                raise ShardingTypeError(
                    f"{operation}: branches must return one type, but {labels[0]} "
                    f"returns {a} and {label} returns {b}: reshard one "
                    "(fxflow.sharding.reshard)"
                )
            if a is not b:
                weak = a.weak_type and b.weak_type
                avals[i] = a.update(
                    weak_type=weak, vma=a.vma | b.vma, layout=a.layout or b.layout
                )
    return first.out_tree, avals


def _as(value: Any, aval: Aval) -> Any:
    """Returns a branch's result as an array of the agreed type."""
    return as_type(as_array(value), aval)


def with_common_consts(bodies: Sequence[Body]) -> tuple[list[Any], list[Graph]]:
    """Returns what any branch captured, and branches that take all of that."""
    consts = list({id(c): c for body in bodies for c in body.consts}.values())
    return consts, [with_consts(b.graph, b.consts, consts) for b in bodies]


def typed(graph: Graph, ins: Sequence[Aval], outs: Sequence[Aval]) -> Graph:
    """Returns a branch of agreed types: weak only where all branches are."""
    if graph.in_avals == list(ins) and graph.out_avals == list(outs):
        return graph
    key = ("typed", tuple(ins), tuple(outs))

    def derive() -> Graph:
        return trace_closed(
            lambda *values: [
                _as(v, a) for v, a in zip(graph.evaluate(*values), outs, strict=True)
            ],
            ins,
            name=graph.name,
        )

    return graph.remembered(key, derive)
