"""The graphs of a scan's derivatives: what is stacked, hoisted, summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.linearize import linearize_flat, linearize_graph
from fxflow.core.interpreters.transpose import backward, backward_with_values
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, Var, live_nodes
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carries_tangent,
    carry_flow,
    chosen,
    live_flags,
    split_at,
    spread,
)
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_closed


def typeof_linear(atom: Any) -> Aval:
    """Returns the type of a `Var` or of a value."""
    return atom.aval if type(atom) is Var else typeof(atom)


def given_back(atom: Any, linear: bool, cotangents: Any, have: Any) -> Any:
    """Returns the cotangent of an argument: the next one, `Zero` or None."""
    if not linear:
        return None
    return next(cotangents) if next(have) else Zero(typeof_linear(atom))


def tangent_flags(
    graph: Graph, tangents: Sequence[Any], num_consts: int, num_carry: int
) -> tuple[list[bool], list[bool]]:
    """Returns which inputs of the body have a tangent, and which of the carry."""
    nonzero = live_flags(tangents)
    carried = carry_flow(graph, nonzero, num_consts, num_carry, carries_tangent)
    nonzero[num_consts : num_consts + num_carry] = carried
    return nonzero, carried


def spread_tangents(
    values: Sequence[Any], has: Sequence[bool], avals: Sequence[Aval]
) -> list[Any]:
    """Returns a tangent or `Zero` for each result of these types."""
    result: list[Any] = spread(values, has, [a.tangent() for a in avals])
    return result


def jvp_order(
    graph: Graph,
    derived: Graph,
    nonzero: Sequence[bool],
    has: Sequence[bool],
    num_consts: int,
    num_carry: int,
    order: int = 1,
) -> Graph:
    """Returns the derivative with each part's tangents beside its values.

    Args:
      graph: of the body.
      derived: its derivative.
      nonzero: which inputs have tangents.
      has: which outputs have.
      num_consts: how many inputs are constants.
      num_carry: how many inputs are carried.
      order: how many tangents a value has (Taylor coefficients).
    """
    key = ("scan_order", num_consts, num_carry)

    def derive() -> Graph:
        values, tangents = split_at(derived.inputs, len(graph.inputs))
        counts = [order * sum(f) for f in split_at(nonzero, num_consts, num_carry)]
        c, carry, x = split_at(values, num_consts, num_carry)
        tc, tcarry, tx, _ = split_at(tangents, *counts)
        outs, out_tangents = split_at(derived.outputs, len(graph.outputs))
        y, ys = split_at(outs, num_carry)
        ty, tys = split_at(out_tangents, order * sum(has[:num_carry]))
        return derived.replace(
            inputs=[*c, *tc, *carry, *tcarry, *x, *tx],
            outputs=[*y, *ty, *ys, *tys],
        )

    return derived.remembered(key, derive)


class LinearScan:
    """The derivative of a scan's body in three graphs.

    Attributes:
      invariant: from the constants to what the tangents need and is the same each step.
      primal: inputs constants, invariants, carry, slices; outputs carry, outputs, and
        what the tangents need of each step.
      tangent: inputs constants it needs, invariants, constants' tangents; carry's
        tangents; slices it needs, slices' tangents.
      given: positions of the operands that are constants of `tangent`.
      sliced: positions of what `tangent` slices: among the operands, then the results.
      has_tangent: which results have a tangent.
    """

    has_tangent: list[bool]
    invariant: Graph
    primal: Graph
    tangent: Graph

    def __init__(
        self,
        graph: Graph,
        nonzero: Sequence[bool],
        carried: Sequence[bool],
        num_consts: int,
        num_carry: int,
    ) -> None:
        num_outs = len(graph.outputs)
        num_ins = len(graph.inputs)
        split = linearize_graph(
            graph, nonzero, [*carried, *[False] * (num_outs - num_carry)]
        )
        primal, tangent = split.primal, split.tangent
        self.has_tangent = split.has_tangent
        constants = primal.inputs[:num_consts]
        fixed = _invariant_variables(primal, constants)
        extras = iter(primal.outputs[num_outs:])
        ys = {a: i for i, a in enumerate(primal.outputs[:num_outs]) if i >= num_carry}
        self.given: list[int] = []
        self.sliced: list[int] = []
        given_vars: list[Var] = []
        hoisted: list[Any] = []
        hoisted_vars: list[Var] = []
        sliced_vars: list[Var] = []
        stacked: list[Any] = []

        def stack(atom: Any, var: Var) -> None:
            """The residual `var` is what `atom` is in each step."""
            # What is an output of the loop anyway is not stacked twice.
            position = ys.get(atom)
            if position is None:
                position = ys[atom] = num_outs + len(stacked)
                stacked.append(atom)
            self.sliced.append(num_ins + position)
            sliced_vars.append(var)

        for var, position in zip(tangent.inputs, split.residual_inputs, strict=False):
            if position is None:
                atom = next(extras)
                # Loop-invariant: computed once, before the loop.
                if type(atom) is not Var or atom in fixed:
                    hoisted.append(atom)
                    hoisted_vars.append(var)
                else:
                    stack(atom, var)
            elif position < num_consts:
                self.given.append(position)
                given_vars.append(var)
            elif position < num_consts + num_carry:
                stack(primal.inputs[position], var)
            else:
                self.sliced.append(position)
                sliced_vars.append(var)
        outputs = [*primal.outputs[:num_outs], *stacked]
        self.invariant = Graph(
            # Effects stay inside, where they happen once in each step.
            constants,
            live_nodes(_pure(primal.nodes), hoisted),
            hoisted,
            graph.name,
        )
        self.primal = _without(primal, num_consts, hoisted, outputs)
        tc, tcarry, tx, _ = split_at(
            tangent.inputs[len(split.residual_inputs) :],
            *(sum(f) for f in split_at(nonzero, num_consts, num_carry)),
        )
        self.tangent = tangent.replace(
            inputs=[*given_vars, *hoisted_vars, *tc, *tcarry, *sliced_vars, *tx],
        )


def _pure(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if not node.effects]


def _invariant_variables(graph: Graph, constants: Sequence[Var]) -> set[Var]:
    """Returns the variables that depend on nothing but the constants."""
    fixed = set(constants)
    for node in graph.nodes:
        if node.effects:
            continue
        if all(type(a) is not Var or a in fixed for a in node.inputs):
            fixed.update(node.outputs)
    return fixed


def _without(
    graph: Graph, num_consts: int, hoisted: Sequence[Any], outputs: Sequence[Any]
) -> Graph:
    """Returns a body that takes the hoisted values as further constants."""
    fresh = [Var(a.aval) for a in hoisted]
    renamed = {a: var for a, var in zip(hoisted, fresh, strict=True) if type(a) is Var}

    def read(atom: Any) -> Any:
        return renamed.get(atom, atom) if type(atom) is Var else atom

    nodes = [
        node.replace(inputs=[read(a) for a in node.inputs])
        if any(type(a) is Var and a in renamed for a in node.inputs)
        else node
        for node in graph.nodes
    ]
    outs = [read(a) for a in outputs]
    inputs = [*graph.inputs[:num_consts], *fresh, *graph.inputs[num_consts:]]
    return Graph(inputs, live_nodes(nodes, outs), outs, graph.name)


def transposed_body(
    graph: Graph,
    num_consts: int,
    num_carry: int,
    linear: Sequence[bool],
    live_ys: Sequence[bool],
) -> tuple[Graph, list[bool], list[bool]]:
    """Returns the transposed body.

    Its inputs are the constants, the sums of the linear constants' cotangents and the
    carry's cotangents, the slices and the outputs' cotangents; its outputs the sums,
    the carry's cotangents, and those of the linear slices. Sums and slices that get no
    contribution are left out: the second and third value say which remain.
    """
    lin_c, _, lin_x = split_at(linear, num_consts, num_carry)
    consts, carry, xs = split_at(graph.inputs, num_consts, num_carry)
    fixed = [v for v, lin in zip(consts, lin_c, strict=True) if not lin]
    summed = chosen(consts, lin_c)
    slices = [v for v, lin in zip(xs, lin_x, strict=True) if not lin]
    linear_xs = chosen(xs, lin_x)
    y_avals = graph.out_avals[num_carry:]
    has_const: list[bool] = []
    has_x: list[bool] = []

    def transposed(*values: Any) -> list[Any]:
        known, sums, ct_carry, pieces, ct_ys = split_at(
            values, len(fixed), len(summed), num_carry, len(slices)
        )
        env = dict(zip([*fixed, *slices], [*known, *pieces], strict=True))
        cts = backward_with_values(
            graph,
            env,
            [*summed, *carry, *linear_xs],
            [*ct_carry, *spread(ct_ys, live_ys, y_avals)],
        )
        ct_c, ct_first, ct_x = split_at(cts, len(summed), num_carry)
        has_const[:] = live_flags(ct_c)
        has_x[:] = live_flags(ct_x)
        return [
            # A constant's cotangent is the sum over all steps: it is carried.
            *(arith.add(s, ct) for s, ct in zip(sums, ct_c, strict=True)),
            *map(arith.instantiate, ct_first),
            *(ct for ct in ct_x if type(ct) is not Zero),
        ]

    avals = [v.aval for v in (*fixed, *summed)]
    avals += graph.out_avals[:num_carry]
    avals += [v.aval for v in slices]
    avals += chosen(y_avals, live_ys)
    derived = trace_closed(transposed, avals, name=f"transpose_{graph.name}")
    # Constants that no cotangent reaches need no sum after all.
    first = len(fixed)
    keep = [True] * first + has_const + [True] * (len(avals) - first - len(summed))
    keep_out = has_const + [True] * (len(derived.outputs) - len(summed))
    smaller = derived.replace(
        inputs=chosen(derived.inputs, keep),
        outputs=chosen(derived.outputs, keep_out),
    )
    return smaller, has_const, has_x


def transpose_by_linearizing(
    primitive: HigherOrder,
    cotangent: Sequence[Any],
    args: Sequence[Any],
    params: dict[str, Any],
) -> list[Any]:
    """Transposes an operation of which a part is not linear, such as a loop's counter.

    A function that is linear in some arguments is its own derivative with respect to
    them, and the derivative has its nonlinear part already computed.

    Args:
      primitive: the operation.
      cotangent: of its results.
      args: a `Var` for each linear argument.
      params: as bound.
    """
    linear = [type(a) is Var for a in args]
    primals = [
        arith.zeros(a.aval) if lin else a for a, lin in zip(args, linear, strict=True)
    ]

    def run(*values: Any) -> Sequence[Any]:
        return primitive.bind(*values, **params)

    lin = linearize_flat(run, primals, linear)
    cts = backward(lin.nodes, lin.inputs, lin.tangents, cotangent)
    rest = iter(cts)
    return [next(rest) if is_linear else None for is_linear in linear]
