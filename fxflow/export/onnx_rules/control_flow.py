"""Calls, branches and loops in ONNX: `If`, `Scan`, `Loop`.

Inner graphs can use outer values by name, so constants of a loop or operands of a
branch are not passed to the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph
from fxflow.export.onnx_rules.writer import Value, Writer, rule
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.lax.kernels.call import whole
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.tree_reduction import tree_reduce

_BOOL = Aval((), np.dtype(bool))
_INT64 = Aval((), np.dtype(np.int64))


@rule("jit", "checkpoint", "composite", "custom_vmap_call")
def _call(w: Writer, *operands: Value, graph: Graph, **_: Any) -> list[Value]:
    return w.graph(graph, operands)


@rule("kernel_call")
def _kernel(w: Writer, *operands: Value, **params: Any) -> list[Value]:
    """The operations on whole arrays."""
    return w.graph(whole(KernelParams(**params), w.avals_in), operands)


@rule("reduce")
def _reduce(
    w: Writer, *operands: Value, graph: Graph, axes: Sequence[int]
) -> list[Value]:
    return w.compose(lambda *values: tree_reduce(graph, values, axes), operands)


# -- branches --------------------------------------------------------------------------


@rule("cond")
def _cond(w: Writer, index: Value, *operands: Value, branches: Any) -> list[Value]:
    """A chain of `If` nodes: each selects one branch or the rest of the chain."""
    outs = branches[0].out_avals
    if not outs:
        return []

    def write(first: int) -> list[Value]:
        if first == len(branches) - 1:
            return w.graph(branches[first], operands)
        is_first = w.op(
            "LessOrEqual",
            index,
            w.constant(np.asarray(first, index.dtype)),
            dtype=_BOOL.dtype,
        )
        chosen = w.body("first", [], lambda _: w.graph(branches[first], operands), outs)
        others = w.body("others", [], lambda _: write(first + 1), outs)
        made = [a.physical.dtype for a in outs]
        return w.ops("If", [is_first], made, then_branch=chosen, else_branch=others)

    return write(0)


@rule("platform_dependent")
def _platform_dependent(
    w: Writer, _: Value, *operands: Value, branches: Any, platforms: Any
) -> list[Value]:
    # The default and the CPU's branch use operations that ONNX supports.
    for name in (None, "cpu"):
        if name in platforms:
            return w.graph(branches[platforms.index(name)], operands)
    raise w.refuse(f"has branches only for {', '.join(platforms)}")


# -- loops -----------------------------------------------------------------------------


@rule("scan")
def _scan(w: Writer, *operands: Value, **params: Any) -> list[Value]:
    p = ScanParams(**params)
    consts, carry, xs = p.split(operands)
    _, carry_avals, x_avals = p.split(p.graph.in_avals)
    outs = p.graph.out_avals
    if not p.length:
        empty = w.avals_out[len(carry) :]
        return [*carry, *(w.constant(np.zeros((), a.dtype), a) for a in empty)]
    if not xs:
        # `Scan` needs at least one scanned input.
        xs = [w.arange(p.length, np.int64)]
        x_avals = [_INT64]
    counted = len(p.graph.inputs) - len(consts)

    def write(inner: list[Value]) -> list[Value]:
        return w.graph(p.graph, [*consts, *inner[:counted]])

    steps = len(outs) - len(carry)
    # ONNX cannot infer the type of an empty list attribute.
    stacked = {"scan_output_directions": [int(p.reverse)] * steps} if steps else {}
    return w.ops(
        "Scan",
        [*carry, *xs],
        [a.physical.dtype for a in outs],
        body=w.body("step", [*carry_avals, *x_avals], write, outs),
        num_scan_inputs=len(xs),
        scan_input_directions=[int(p.reverse)] * len(xs),
        **stacked,
    )


@rule("while")
def _while(w: Writer, *operands: Value, **params: Any) -> list[Value]:
    p = WhileParams(**params)
    of_condition, of_body, carry = p.split(operands)
    avals = p.body.in_avals[p.num_body :]
    if not carry:
        raise w.refuse("has no carry, so its condition cannot change")

    def condition(values: Sequence[Value]) -> Value:
        (flag,) = w.graph(p.condition, [*of_condition, *values])
        return flag

    def write(inner: list[Value]) -> list[Value]:
        values = w.graph(p.body, [*of_body, *inner[2:]])
        return [condition(values), *values]

    step = w.body("step", [_INT64, _BOOL, *avals], write, [_BOOL, *avals])
    # Only the condition limits the iterations.
    most = w.constant(np.int64(np.iinfo(np.int64).max))
    made = [a.physical.dtype for a in avals]
    return w.ops("Loop", [most, condition(carry), *carry], made, body=step)
