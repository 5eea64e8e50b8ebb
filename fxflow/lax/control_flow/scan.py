"""`scan`: a loop over the leading axis of arrays that carries a state along.

Lowered to one `stablehlo.while` whose body slices its inputs and writes its outputs in
place. The derivative of a scan is a scan of the tangents; what the tangents need from
each step is stacked by the first loop, except what is the same in all steps, which is
computed once outside. The transpose is a scan in the other direction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, read_only, typeof
from fxflow.core.arrays.array import ArrayOrNumber, kind_of
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.calls import with_terms
from fxflow.core.interpreters.jet import jet_graph, listed_terms
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import graph_without_tangents
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir import arith
from fxflow.core.ir.discharge import discharge, read_all, write_back
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carry_flow,
    chosen,
    flow_through,
    live_flags,
    loop_flow,
    move_axis,
    run_host,
    split_at,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, register
from fxflow.core.ir.references import Ref
from fxflow.core.ir.trace import state
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import length_of
from fxflow.core.source import located, name_of, telling
from fxflow.core.spmd.memories import Part, Rewritten, settled
from fxflow.core.spmd.varying import with_outputs_varying
from fxflow.errors import ArgumentError, ShapeError, ShardingTypeError
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.carry import (
    as_type,
    leaves_of,
    promoted,
    require_carry,
    require_structure,
)
from fxflow.lax.control_flow.scan_derivatives import (
    LinearScan,
    given_back,
    jvp_order,
    spread_tangents,
    tangent_flags,
    transpose_by_linearizing,
    transposed_body,
    typeof_linear,
)
from fxflow.lax.control_flow.scan_lowering import ScanLowering
from fxflow.lax.reshaping import expand_dims
from fxflow.lax.slicing import index_in_dim

T = TypeVar("T")
C = TypeVar("C")
N = TypeVar("N", bound=tuple[Any, ...])
Y = TypeVar("Y")


class ScanParams(Frozen):
    """The parameters of `Scan`.

    Attributes:
      graph: of the body: inputs constants, carry, slices; outputs carry, outputs.
      num_consts: the number of constants.
      num_carry: length of the carry.
      length: number of steps.
      reverse: whether to go from the last slice to the first.
      unroll: steps written out in each round of the loop.
    """

    graph: Graph
    num_consts: int
    num_carry: int
    length: int
    reverse: bool
    unroll: int

    def split(self, inputs: Sequence[T]) -> list[list[T]]:
        """Returns what belongs to constants, carry and slices."""
        return split_at(inputs, self.num_consts, self.num_carry)

    def out_avals(self) -> list[Aval]:
        """Returns types of the carry, then of the stacked outputs."""
        _, carry, _ = self.split(self.graph.in_avals)
        ys = self.graph.out_avals[self.num_carry :]
        return carry + [a.update(shape=(self.length, *a.shape)) for a in ys]


@register
class Scan(HigherOrder):
    """Loop with a carry over slices. dtypes: any. StableHLO: while.

    Operands are constants, the first carry, and arrays to slice; results are the last
    carry and the stacked outputs.

    Params: see `ScanParams`.
    """

    name = "scan"
    has_jet = True

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """Types of the carry, then of the stacked outputs."""
        return ScanParams(**params).out_avals()

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """That of the body in all steps."""
        each = super().cost(*avals, **params)
        return {key: value * params["length"] for key, value in each.items()}

    # -- values ------------------------------------------------------------------------

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """A while loop, or all steps written out if they are few."""
        p = ScanParams(**params)
        loop = ScanLowering(
            ctx, operands, p.graph, p.num_consts, p.num_carry, p.length, p.reverse
        )
        return loop.write(p.unroll)

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """A Python loop over NumPy's evaluation of the body."""
        p = ScanParams(**params)
        consts, carry, xs = p.split(values)
        ys = [
            np.zeros((p.length, *a.physical.shape), a.physical.dtype)
            for a in p.graph.out_avals[p.num_carry :]
        ]
        for i in reversed(range(p.length)) if p.reverse else range(p.length):
            outs = run_host(p.graph, [*consts, *carry, *(x[i] for x in xs)])
            carry = outs[: p.num_carry]
            for stacked, y in zip(ys, outs[p.num_carry :], strict=True):
                stacked[i] = y
        return [*map(np.asarray, carry), *ys]

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """A scan that carries the contents of references that are written to."""
        p = ScanParams(**params)
        pure = discharge(p.graph)
        moved, count = pure.written, len(p.graph.outputs)
        stay = [i for i in range(p.num_consts) if i not in moved]
        order = [*stay, *moved, *range(p.num_consts, len(args))]
        inputs, outputs = pure.graph.inputs, pure.graph.outputs
        new = p.replace(
            graph=pure.graph.replace(
                inputs=[inputs[i] for i in order],
                outputs=[*outputs[count:], *outputs[:count]],
            ),
            num_consts=len(stay),
            num_carry=len(moved) + p.num_carry,
        )
        values = read_all(args)
        outs = self.bind(*(values[i] for i in order), **vars(new))
        write_back(args, moved, outs[: len(moved)])
        return outs[len(moved) :]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Carry and outputs stay where the body leaves them; slices are parts."""
        p = ScanParams(**node.params)
        first, count = p.num_consts, p.num_carry
        fixed, xs = split_at(kinds, first + count)
        xs = [None if type(kind) is Part else kind for kind in xs]
        parts = [None if kind is None else Part(kind) for kind in xs]
        body, wanted, outs = layout.loop(p.graph, [*fixed, *parts], first, count)
        # Written out, the outputs would be joined: computed in host memory.
        split_up = any(outs[count:]) and p.length < 2 * p.unroll
        changed = p.replace(graph=body, unroll=1 if split_up else p.unroll)
        return Rewritten([*wanted[: first + count], *xs], outs, vars(changed))

    def forwarded(self, **params: Any) -> list[int | None]:
        """The parts of the carry that the body leaves as they are."""
        p = ScanParams(**params)
        outs = forwarded(p.graph)
        carry = [f if f == p.num_consts + i else None for i, f in enumerate(outs)]
        return [*carry[: p.num_carry], *[None] * (len(outs) - p.num_carry)]

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A scan of the body's derivative."""
        p = ScanParams(**params)
        num_ys = len(p.graph.outputs) - p.num_carry
        nonzero, carried = tangent_flags(p.graph, tangents, p.num_consts, p.num_carry)
        derived, has = jvp_graph(p.graph, nonzero, [*carried, *[False] * num_ys])
        both = jvp_order(p.graph, derived, nonzero, has, p.num_consts, p.num_carry)
        tc, tcarry, txs = _live(p, tangents, nonzero)
        consts, carry, xs = p.split(primals)
        new = p.replace(
            graph=both,
            num_consts=p.num_consts + len(tc),
            num_carry=p.num_carry + len(tcarry),
        )
        outs = self.bind(*consts, *tc, *carry, *tcarry, *xs, *txs, **vars(new))
        y, ty, ys, tys = split_at(outs, p.num_carry, len(tcarry), num_ys)
        return [*y, *ys], spread_tangents([*ty, *tys], has, p.out_avals())

    def jet(
        self, primals: Values, series: Values, order: int, /, **params: Any
    ) -> Dual:
        """A scan of the body's Taylor coefficients."""
        p = ScanParams(**params)
        num_ys = len(p.graph.outputs) - p.num_carry
        nonzero, carried = tangent_flags(p.graph, series, p.num_consts, p.num_carry)
        derived, has = jet_graph(p.graph, order, nonzero, [*carried, *[False] * num_ys])
        both = jvp_order(
            p.graph, derived, nonzero, has, p.num_consts, p.num_carry, order
        )
        parts = zip(p.split(series), p.split(nonzero), strict=True)
        tc, tcarry, txs = (listed_terms(s, n, order) for s, n in parts)
        consts, carry, xs = p.split(primals)
        new = p.replace(
            graph=both,
            num_consts=p.num_consts + len(tc),
            num_carry=p.num_carry + len(tcarry),
        )
        outs = self.bind(*consts, *tc, *carry, *tcarry, *xs, *txs, **vars(new))
        y, ty, ys, tys = split_at(outs, p.num_carry, len(tcarry), num_ys)
        return with_terms([*y, *ys, *ty, *tys], p.out_avals(), has, order)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A scan for values and what tangents need of them; a scan of tangents."""
        p = ScanParams(**params)
        graph = p.graph
        nonzero, carried = tangent_flags(graph, tangents, p.num_consts, p.num_carry)
        key = ("scan_linear", tuple(nonzero), p.num_consts, p.num_carry)
        linear = graph.remembered(
            key, lambda: LinearScan(graph, nonzero, carried, p.num_consts, p.num_carry)
        )
        consts, carry, xs = p.split(primals)
        invariant = linear.invariant.evaluate(*consts)
        fixed = [*consts, *invariant]
        new = p.replace(graph=linear.primal, num_consts=len(fixed))
        outs = self.bind(*fixed, *carry, *xs, **vars(new))
        tc, tcarry, txs = _live(p, tangents, nonzero)
        out_tangents: list[Any] = []
        if any(linear.has_tangent):
            given = [*(primals[i] for i in linear.given), *invariant, *tc]
            known = [*primals, *outs]
            sliced = [known[i] for i in linear.sliced]
            new = p.replace(
                graph=settled(linear.primal, linear.tangent, [*fixed, *carry, *xs]),
                num_consts=len(given),
                num_carry=len(tcarry),
            )
            out_tangents = self.bind(*given, *tcarry, *sliced, *txs, **vars(new))
        return outs[: len(graph.outputs)], spread_tangents(
            out_tangents, linear.has_tangent, p.out_avals()
        )

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """A scan of the body's transpose in the other direction."""
        p = ScanParams(**params)
        graph, num_consts, num_carry = p.graph, p.num_consts, p.num_carry
        linear = [type(a) is Var for a in args]
        stop = num_consts + num_carry
        linear[num_consts:stop] = carry_flow(graph, linear, num_consts, num_carry)
        if not all(linear[num_consts:stop]):
            return transpose_by_linearizing(self, cotangent, args, params)
        ct_carry, ct_ys = split_at(cotangent, num_carry)
        live_ys = live_flags(ct_ys)
        key = ("scan_transpose", num_consts, num_carry, tuple(linear), tuple(live_ys))
        known = graph.remembered(
            key, lambda: transposed_body(graph, num_consts, num_carry, linear, live_ys)
        )
        derived, has_const, has_x = known
        lin_c, _, lin_x = p.split(linear)
        consts, _, xs = p.split(args)
        fixed = [a for a, lin in zip(consts, lin_c, strict=True) if not lin]
        sums = [
            arith.zeros(typeof_linear(a))
            for a, h in zip(chosen(consts, lin_c), has_const, strict=True)
            if h
        ]
        carry = [arith.instantiate(ct) for ct in ct_carry]
        slices = [a for a, lin in zip(xs, lin_x, strict=True) if not lin]
        new = p.replace(
            graph=derived,
            num_consts=len(fixed),
            num_carry=len(sums) + num_carry,
            reverse=not p.reverse,
        )
        outs = self.bind(
            *fixed, *sums, *carry, *slices, *chosen(ct_ys, live_ys), **vars(new)
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

    # -- vectorization, pruning --------------------------------------------------------

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """A scan of the vectorized body; what depends on mapped values is mapped."""
        p = ScanParams(**params)
        graph, num_consts, num_carry = p.graph, p.num_consts, p.num_carry
        flags = list(mapped)
        stop = num_consts + num_carry
        num_ys = len(graph.outputs) - num_carry
        # To a fixed point: a part of the carry that becomes mapped may make others
        # mapped.
        while True:
            carried = flags[num_consts:stop]
            derived, out_mapped = batch_graph(
                graph, size, flags, [*carried, *[False] * num_ys], axis_name
            )
            if out_mapped[:num_carry] == carried:
                break
            flags[num_consts:stop] = out_mapped[:num_carry]
        consts, carry, xs = p.split(args)
        carry = [
            materialize(a, size, have) if want else a
            for a, have, want in zip(
                carry, mapped[num_consts:stop], carried, strict=True
            )
        ]
        xs = [
            # The loop slices axis 0, so the mapped axis comes second.
            move_axis(x, 0, 1) if m else x
            for x, m in zip(xs, mapped[stop:], strict=True)
        ]
        new = p.replace(graph=derived)
        outs = self.bind(*consts, *carry, *xs, **vars(new))
        moved = [
            move_axis(y, 1, 0) if m else y
            for y, m in zip(outs[num_carry:], out_mapped[num_carry:], strict=True)
        ]
        return [*outs[:num_carry], *moved], out_mapped

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """A scan of the masked body."""
        p = ScanParams(**params)
        new = p.replace(graph=masked_graph(p.graph), num_consts=p.num_consts + 1)
        return self.bind(active, *args, **vars(new))

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the body, round after round."""
        p = ScanParams(**params)
        flags = loop_flow(p.graph, sources, p.num_consts, p.num_carry)
        return flow_through(p.graph, flags), [flags]

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """A scan of what reads no tangents, if that has effects."""
        p = ScanParams(**params)
        graph = graph_without_tangents(p.graph, known)
        new = p.replace(graph=graph, num_consts=sum(known[: p.num_consts]))
        return vars(new) if graph.effects else None

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Drops outputs, and carry that only serves them."""
        p = ScanParams(**node.params)
        key = ("scan_dce", tuple(wanted), p.num_consts, p.num_carry)
        known = p.graph.remembered(
            key, lambda: pruned_body(p.graph, wanted, p.num_consts, p.num_carry)
        )
        smaller, keep_in, keep_out = known
        if smaller is p.graph:
            return node
        new = p.replace(
            graph=smaller,
            num_consts=sum(keep_in[: p.num_consts]),
            num_carry=sum(keep_out[: p.num_carry]),
        )
        return node.replace(
            inputs=chosen(node.inputs, keep_in),
            outputs=chosen(node.outputs, keep_out),
            params=vars(new),
        )


def _live(
    p: ScanParams, tangents: Values, nonzero: Flags
) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the tangents that are not zero, of constants, carry and slices."""
    parts = zip(p.split(tangents), p.split(nonzero), strict=True)
    # A tangent that begins as Zero need not stay so: in the carry it has elements.
    consts, carry, xs = ([*map(arith.instantiate, chosen(t, n))] for t, n in parts)
    return consts, carry, xs


def pruned_body(
    graph: Graph, wanted: Flags, num_consts: int, num_carry: int
) -> tuple[Graph, list[bool], list[bool]]:
    """Removes dead code from the body; says which inputs and outputs stay."""
    keep_out = list(wanted)
    # To a fixed point: a part of the carry that is kept may need others.
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
        smaller.replace(inputs=chosen(graph.inputs, keep_in)),
        keep_in,
        keep_out,
    )


# -- public ----------------------------------------------------------------------------


@overload
def scan(
    f: Callable[[Array, Any], tuple[Array, Y]],
    init: ArrayOrNumber,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[C, Any], tuple[C, Y]],
    init: C,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[N, Any], tuple[N, Y]],
    init: tuple[Any, ...],
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[N, Y]: ...
@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Loops over the leading axis of arrays, carrying a state along.

    `carry, y = f(carry, x)` for each slice `x`; the `y`s are stacked. It is compiled as
    one loop, whatever its length, and can be differentiated in both directions. In
    Python it would be::

        def scan(f, carry, xs):
            ys = []
            for x in xs:
                carry, y = f(carry, x)
                ys.append(y)
            return carry, fnp.stack(ys)

    Args:
      f: takes the carry and a slice, returns the next carry (same structure, shapes and
        dtypes) and an output (any pytree of arrays, or None).
      init: the first carry; a pytree of arrays.
      xs: a pytree of arrays `[length, ...]`; None to loop `length` times without input.
        For a reference the body gets a view of each slice, to read and write.
      length: number of steps; needed if `xs` has no leaves.
      reverse: whether to go from the last slice to the first (outputs stay in place).
      unroll: how many steps to write out in each round; True writes out all of them.

    Returns:
      The last carry, and the stacked outputs `[length, ...]`.

    Raises:
      ArgumentError: `f` does not return a pair, or an argument is not an array.
      ShapeError, DtypeError, TreeError: the carry changes its type, or the leading axes
        of `xs` differ.

    Example:
      >>> total, partial = scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0))
      >>> float(total), partial.tolist()
      (6.0, [0.0, 1.0, 3.0, 6.0])

      A pendulum, and its energy at each of 100 steps:

      >>> def swing(state, _):
      ...     angle, speed = state
      ...     speed = speed - 0.1 * fnp.sin(angle)
      ...     angle = angle + 0.1 * speed
      ...     return (angle, speed), speed**2 / 2 - fnp.cos(angle)
      >>> (angle, speed), energy = scan(swing, (1.0, 0.0), length=100)
      >>> energy.shape, bool(fnp.ptp(energy) < 0.1)
      ((100,), True)

    Source: StableHLO while, dynamic_slice and dynamic_update_slice.
    """
    require_callable(f, "scan: f")
    name = name_of(f)
    carry, init_tree = leaves_of(init, "scan: init")
    slices, xs_tree = leaves_of(xs, "scan: xs", refs=True)
    length = _length(xs, slices, length)
    if any(isinstance(x, Ref) for x in slices):
        f, xs = _over_refs(f, slices, xs_tree, length)
        slices, xs_tree = leaves_of(xs, "scan: xs")
    if unroll is True or unroll is False:
        unroll = max(length, 1) if unroll else 1
    if not isinstance(unroll, int) or unroll < 1:
        raise ArgumentError(
            f"scan: unroll must be a positive int or a bool, got {unroll!r}"
        )
    if config.disable_jit and length:
        return _python_scan(f, read_only(init), xs, length, reverse)
    x_avals = []
    for x in slices:
        aval = typeof(x)
        if aval.layout is not None and aval.layout.entries[0]:
            raise ShardingTypeError(
                f"scan: xs must be whole along their leading axis, got {aval}: reshard "
                "them (fxflow.sharding.reshard)"
            )
        x_avals.append(aval.update(shape=aval.shape[1:]))
    avals, body = traced_with_carry(
        f,
        "scan",
        f"scan_{name}",
        init_tree,
        [typeof(c) for c in carry],
        x_avals,
        (xs_tree,),
        _require_pair,
    )
    carry = [as_type(c, a) for c, a in zip(carry, avals, strict=True)]
    outs = Scan.bind(
        *body.consts,
        *carry,
        *slices,
        graph=body.graph,
        num_consts=len(body.consts),
        num_carry=len(carry),
        length=length,
        reverse=bool(reverse),
        unroll=unroll,
    )
    last, ys = body.out_tree.unflatten(outs)
    return last, ys


def _over_refs(
    f: Callable[[Any, Any], Any], slices: Values, xs_tree: Any, length: int
) -> tuple[Callable[[Any, Any], Any], Any]:
    """Returns the body with views of slices of references, and what it loops over."""
    arrays = [None if isinstance(x, Ref) else x for x in slices]

    @functools.wraps(f)
    def body(carry: Any, x: Any) -> Any:
        step, given = x
        parts = [
            ref.at[step] if isinstance(ref, Ref) else part
            for ref, part in zip(slices, given, strict=True)
        ]
        return f(carry, xs_tree.unflatten(parts))

    return body, (np.arange(length, dtype=np.int32), arrays)


def traced_with_carry(
    f: Callable[..., Any],
    operation: str,
    name: str,
    carry_tree: Any,
    carry: list[Aval],
    others: list[Aval],
    other_trees: Values,
    check: Callable[[Any], None] | None,
) -> tuple[list[Aval], Body]:
    """Traces a loop's body, giving the carry the type it returns.

    That is, weak parts yield, and it differs along the axes that its parts come to
    differ along.

    Args:
      f: takes a carry and others; its result, or its first item if there are others,
        is the next carry. Where it stands for a user's function, its attribute
        `wrapped_by` holds what that was passed to, and that function.
      operation: name of the operation, for messages.
      name: of the graph.
      carry_tree: structure of the carry.
      carry: types of its leaves.
      others: types of the other leaves.
      other_trees: structures of the other arguments.
      check: called with the result.

    Returns:
      The types of the carry, and the traced body.
    """
    in_tree = tree.treedef_tuple([carry_tree, *other_trees])
    operation, given = getattr(f, "wrapped_by", (operation, f))
    # To a fixed point, which is reached since types of the carry only ever widen.
    while True:
        body = trace_body(
            f,
            in_tree,
            [*carry, *others],
            name=name,
            check=check,
        )
        out_tree = body.out_tree.children()[0] if other_trees else body.out_tree
        outs = body.graph.out_avals[: out_tree.num_leaves]
        with telling(lambda: f"; the body is {located(given)}"):
            require_structure(
                carry_tree,
                out_tree,
                outs,
                f"{operation}: the body must return a carry of the structure it takes, "
                "but",
            )
        wider = promoted(carry, outs)
        if wider == carry:
            break
        carry = wider
    with telling(lambda: f"; the body is {located(given)}"):
        require_carry(operation, carry_tree, carry, outs)
    rest = body.graph.out_avals[len(carry) :]
    if state.tracked:
        graph = with_outputs_varying(body.graph, [a.vma for a in (*carry, *rest)])
        if graph is not body.graph:
            body = Body(graph, body.consts, body.out_tree)
    return carry, body


def _require_pair(out: Any) -> None:
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ArgumentError(
            "scan: the body must return a pair (carry, output), got "
            f"{kind_of(out)}: return (carry, None) if there is no output"
        )


def _length(xs: Any, slices: Values, length: int | None) -> int:
    """Returns the number of steps.

    Raises:
      ArgumentError: neither xs nor length is given.
      ShapeError: an array has no leading axis, or the lengths differ.
    """
    avals = [typeof(x) for x in slices]
    for i, aval in enumerate(avals):
        if not aval.ndim:
            raise ShapeError(
                f"scan: xs{_path(xs, i)} is {aval}, which has no leading axis to loop "
                "over: for a number of steps pass xs=None, length=n"
            )
    if length is not None:
        try:
            length = length_of(length)
        except TypeError:
            raise ArgumentError(
                f"scan: length must be an int, got {length!r}"
            ) from None
        if length < 0:
            raise ArgumentError(f"scan: length must not be negative, got {length}")
    elif not avals:
        raise ArgumentError("scan: the number of steps is unknown: pass xs or length")
    steps = avals[0].shape[0] if length is None else length
    for i, aval in enumerate(avals):
        if aval.shape[0] != steps:
            first = f"xs{_path(xs, 0)} is {avals[0]}"
            raise ShapeError(
                "scan: leading axes must have one length, but "
                f"{first if length is None else f'length is {length}'} and "
                f"xs{_path(xs, i)} is {aval}"
            )
    return steps


def _path(xs: Any, position: int) -> str:
    return tree.keystr(tree.leaves_with_path(xs)[position][0])


def _python_scan(
    f: Callable[[Any, Any], Any], carry: Any, xs: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Runs the loop in Python, for debugging."""
    ys: list[Any] = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        out = f(
            carry, tree.map(lambda x, i=i: index_in_dim(x, i, 0, keepdims=False), xs)
        )
        _require_pair(out)
        carry, ys[i] = out
    stacked = tree.map(
        lambda *leaves: concatenate([expand_dims(y, (0,)) for y in leaves], 0), *ys
    )
    return carry, stacked
