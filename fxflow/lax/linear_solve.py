"""`custom_linear_solve` and `custom_root`: solvers differentiated by what they solve.

An iterative solver should not be differentiated through its iterations: the solution of
`A x = b` has the derivative `A⁻¹ (b' - A' x)`, whatever found it, and that of
`f(x, p) = 0` follows from the implicit function theorem.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Aval, typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.interpreters.batching import batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_flat, tape_to_graph
from fxflow.core.interpreters.transpose import backward_with_values, transpose_graph
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Var, forwarded
from fxflow.core.ir.higher_order import (
    HigherOrder,
    chosen,
    flow_through,
    live_flags,
    run_host,
    split_at,
    spread,
    with_consts,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, Zero, register
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.runtime.lowering import Context
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError
from fxflow.lax.control_flow.carry import (
    leaves_of,
    require_structure,
)
from fxflow.lax.custom_calls import CustomJVPCall


class LinearSolveParams(Frozen):
    """The parameters of `LinearSolve`.

    Attributes:
      matvec: graph of `A`: captured values, `x` to `A x`.
      solve: graph of the solver: captured values, `b` to `x` and more.
      transpose_solve: the same for the transpose of `A`, or None.
      symmetric: whether `A` is taken for its own transpose.
      num_consts: how many values were captured.
    """

    matvec: Graph
    solve: Graph
    transpose_solve: Graph | None
    symmetric: bool
    num_consts: int


@register
class LinearSolve(HigherOrder):
    """Solution of `A x = b` by a given solver. dtypes: inexact. Lowered in place.

    Operands are what the graphs captured, and `b`; results are `x`, and what the solver
    returns beside it.

    Params: see `LinearSolveParams`.
    """

    name = "linear_solve"

    def abstract(self, *avals: Aval, solve: Graph, **params: Any) -> list[Aval]:
        """The solver's types."""
        return solve.out_avals

    def lower(
        self, ctx: Context, *operands: str, solve: Graph, **params: Any
    ) -> list[str]:
        """The solver, in place."""
        return ctx.graph(solve, operands)

    def evaluate(self, *values: Any, solve: Graph, **params: Any) -> list[Any]:
        """NumPy's evaluation of the solver."""
        return run_host(solve, values)

    def forwarded(self, *, solve: Graph, **params: Any) -> list[int | None]:
        """What the solver gives back as it is."""
        return forwarded(solve)

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the solver."""
        return flow_through(params["solve"], sources), []

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """`x' = A⁻¹ (b' - A' x)`; what the solver returns beside `x` has no tangent."""
        p = LinearSolveParams(**params)
        num_consts = p.num_consts
        outs = self.bind(*primals, **params)
        count = len(primals) - num_consts
        consts, _ = split_at(primals, num_consts)
        rhs: list[Any] = list(tangents[num_consts:])
        nonzero = live_flags(tangents[:num_consts])
        if any(nonzero):
            # A' x: only what defines the matrix moves, x is the solution.
            derived, has = jvp_graph(p.matvec, [*nonzero, *[False] * count])
            results = derived.evaluate(
                *consts, *outs[:count], *chosen(tangents[:num_consts], nonzero)
            )
            avals = [a.tangent() for a in p.matvec.out_avals]
            moved = spread(results[count:], has, avals)
            rhs = [arith.add(b, arith.neg(m)) for b, m in zip(rhs, moved, strict=True)]
        avals = [typeof(o).tangent() for o in outs]
        zeros = [Zero(a) for a in avals]
        if not any(live_flags(rhs)):
            return outs, zeros
        solved = self.bind(*consts, *map(arith.instantiate, rhs), **params)
        return outs, [*solved[:count], *zeros[count:]]

    def transpose(self, cotangent: Values, *args: Any, **params: Any) -> Values:
        """The solution of the transposed system."""
        p = LinearSolveParams(**params)
        consts, rhs = split_at(args, p.num_consts)
        if any(type(c) is Var for c in consts):
            raise NotDifferentiableError(
                "custom_linear_solve is linear in b, not in what defines the matrix"
            )
        if p.transpose_solve is None:
            raise NotDifferentiableError(
                "custom_linear_solve: reverse differentiation needs transpose_solve "
                "or symmetric=True"
            )
        count = len(rhs)
        adjoint = p.matvec
        if not p.symmetric:
            adjoint, _ = transpose_graph(
                p.matvec,
                [*[False] * p.num_consts, *[True] * count],
                [True] * count,
                instantiated=True,
            )
        new = p.replace(
            matvec=adjoint, solve=p.transpose_solve, transpose_solve=p.solve
        )
        given = map(arith.instantiate, cotangent[:count])
        cts = self.bind(*consts, *given, **vars(new))
        return [*[None] * p.num_consts, *cts[:count]]

    def batch_over(
        self, axis_name: Any, size: int, args: Values, mapped: Flags, **params: Any
    ) -> Batched:
        """The vectorized graphs; a part of `x` is mapped if that of `b` is."""
        p = LinearSolveParams(**params)
        consts, rhs = split_at(args, p.num_consts)
        fixed, have = split_at(mapped, p.num_consts)
        solvers = [g for g in (p.solve, p.transpose_solve) if g is not None]
        # What the solvers return beside `x` may be mapped by one of them alone.
        extra = [False] * (len(p.solve.outputs) - len(rhs))
        flags = list(have)
        # To a fixed point: a part that becomes mapped may make others mapped.
        while True:
            given = [*fixed, *flags]
            found = [
                batch_graph(p.matvec, size, given, flags, axis_name)[1],
                *(
                    batch_graph(g, size, given, [*flags, *extra], axis_name)[1]
                    for g in solvers
                ),
            ]
            wider = [any(f) for f in zip(*(f[: len(rhs)] for f in found), strict=True)]
            extra = [any(f) for f in zip(*(f[len(rhs) :] for f in found[1:]))]
            if wider == flags:
                break
            flags = wider
        rhs = [
            materialize(b, size, m) if wanted else b
            for b, m, wanted in zip(rhs, have, flags, strict=True)
        ]

        def vectorized(graph: Graph) -> Graph:
            force = [*flags, *extra][: len(graph.outputs)]
            return batch_graph(graph, size, given, force, axis_name)[0]

        backward = p.transpose_solve
        new = p.replace(
            matvec=vectorized(p.matvec),
            solve=vectorized(p.solve),
            transpose_solve=None if backward is None else vectorized(backward),
        )
        outs = self.bind(*consts, *rhs, **vars(new))
        return outs, [*flags, *extra]


@boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solves a linear system by a given solver, which is not differentiated itself.

    Args:
      matvec: the linear map `x -> A x`; may use traced values from outside.
      b: the right side; a pytree of arrays.
      solve: called as `solve(matvec, b)`; returns `x`, of the structure and shapes of
        `b`.
      transpose_solve: called as `transpose_solve(vecmat, b)` with `vecmat` the
        transposed map; needed for reverse differentiation unless `symmetric`.
      symmetric: whether the map is its own transpose; it is not checked: derivatives
        of any order are those of what is computed with `matvec` in its place.
      has_aux: whether the solvers return `(x, aux)`; `aux` is not differentiated.

    Returns:
      `x`, or `(x, aux)`.

    Raises:
      ArgumentError, ShapeError, TreeError: a function returns something else.

    Example:
      >>> float(custom_linear_solve(
      ...     lambda x: lax.mul(x, 4.0), 2.0, lambda matvec, b: lax.div(b, 4.0)))
      0.5

    Source: `x' = A⁻¹ (b' - A' x)`; Giles, Collected Matrix Derivative Results, 2008.
    """
    name = "custom_linear_solve"
    require_callable(matvec, f"{name}: matvec")
    require_callable(solve, f"{name}: solve")
    leaves, treedef = leaves_of(b, f"{name}: b")
    avals = [typeof(x).strong() for x in leaves]
    in_tree = tree.treedef_tuple([treedef])
    body = trace_body(matvec, in_tree, avals, name=f"matvec_{name_of(matvec)}")
    _require_like(name, "matvec", treedef, avals, body.out_tree, body.graph)
    solved = trace_body(
        lambda rhs: solve(matvec, rhs), in_tree, avals, name=f"solve_{name_of(solve)}"
    )
    _require_like(name, "solve", treedef, avals, solved.out_tree, solved.graph, has_aux)
    bodies = [body, solved]
    # The transposed system is the system itself.
    if symmetric and transpose_solve is None:
        bodies.append(solved)
    if transpose_solve is not None:
        require_callable(transpose_solve, f"{name}: transpose_solve")
        solver = transpose_solve

        def transposed(x: Any) -> Any:
            if symmetric:
                return matvec(x)
            given = body.graph.inputs[len(body.consts) :]
            values = dict(zip(body.graph.inputs, body.consts, strict=False))
            cts = backward_with_values(body.graph, values, given, tree.leaves(x))
            return treedef.unflatten(map(arith.instantiate, cts))

        back = trace_body(
            lambda rhs: solver(transposed, rhs),
            in_tree,
            avals,
            name=f"transpose_solve_{name_of(solver)}",
        )
        _require_like(
            name, "transpose_solve", treedef, avals, back.out_tree, back.graph, has_aux
        )
        bodies.append(back)
    # What several graphs captured is passed once.
    consts = list({id(c): c for part in bodies for c in part.consts}.values())
    graphs = [with_consts(part.graph, part.consts, consts) for part in bodies]
    outs = LinearSolve.bind(
        *consts,
        *leaves,
        matvec=graphs[0],
        solve=graphs[1],
        transpose_solve=graphs[2] if len(graphs) > 2 else None,
        symmetric=bool(symmetric),
        num_consts=len(consts),
    )
    return solved.out_tree.unflatten(outs)


def _require_like(
    name: str,
    what: str,
    treedef: Any,
    avals: Sequence[Aval],
    out_tree: Any,
    graph: Graph,
    has_aux: bool = False,
) -> None:
    """Checks that a function returns what it takes.

    Raises:
      ArgumentError, ShapeError, TreeError: it does not.
    """
    if has_aux:
        children = out_tree.children()
        if len(children) != 2 or out_tree.node_data()[0] is not tuple:
            raise ArgumentError(
                f"{name}: has_aux=True needs {what} to return a pair (x, aux), got "
                f"{tree.written(out_tree)}"
            )
        out_tree = children[0]
    outs = graph.out_avals[: out_tree.num_leaves]
    require_structure(
        treedef,
        out_tree,
        outs,
        f"{name}: {what} must return the structure of b, but",
    )
    for a, out in zip(avals, outs, strict=True):
        if a.shape != out.shape or a.dtype != out.dtype:
            raise ShapeError(
                f"{name}: {what} must return the type of b, {a}, but returns {out}"
            )


@boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Finds a root by a given solver, differentiated by the implicit function theorem.

    Args:
      f: function whose root is wanted; may use traced values from outside, and it is by
        these that the root is differentiated.
      initial_guess: where to start; a pytree of arrays.
      solve: called as `solve(f, initial_guess)`; returns the root.
      tangent_solve: called as `tangent_solve(g, y)` with a linear `g`; returns the
        solution of `g(x) = y`. May use traced values from outside, too.
      has_aux: whether `solve` returns `(root, aux)`; `aux` is not differentiated.

    Returns:
      The root, or `(root, aux)`.

    Raises:
      ArgumentError, ShapeError, TreeError: a function returns something else.

    Example:
      >>> def newton(f, x):
      ...     return lax.fori_loop(
      ...         0, 9, lambda i, x: lax.sub(x, lax.div(f(x), lax.mul(x, 2.0))), x)
      >>> def root(a):
      ...     return custom_root(
      ...         lambda x: lax.sub(lax.mul(x, x), a), 1.0, newton,
      ...         lambda g, y: lax.div(y, g(1.0)))
      >>> round(float(root(4.0)), 5)
      2.0

    Source: Krantz & Parks, The Implicit Function Theorem, 2002.
    """
    name = "custom_root"
    for value, what in ((f, "f"), (solve, "solve"), (tangent_solve, "tangent_solve")):
        require_callable(value, f"{name}: {what}")
    leaves, treedef = leaves_of(initial_guess, f"{name}: initial_guess")
    avals = [typeof(x).strong() for x in leaves]
    in_tree = tree.treedef_tuple([treedef])
    equation = trace_body(f, in_tree, avals, name=f"root_{name_of(f)}")
    _require_like(name, "f", treedef, avals, equation.out_tree, equation.graph)
    solved = trace_body(
        lambda guess: solve(f, guess), in_tree, avals, name=f"solve_{name_of(solve)}"
    )
    _require_like(name, "solve", treedef, avals, solved.out_tree, solved.graph, has_aux)
    consts = list(
        {id(c): c for part in (equation, solved) for c in part.consts}.values()
    )
    graph = with_consts(solved.graph, solved.consts, consts)
    rule = _RootRule(
        with_consts(equation.graph, equation.consts, consts),
        graph,
        treedef,
        tangent_solve,
        len(consts),
    )
    captured = rule.trace(avals)
    outs = CustomJVPCall.bind(
        *captured,
        *consts,
        *leaves,
        graph=graph,
        num_consts=0,
        num_rule_consts=len(captured),
        rule=rule,
    )
    return solved.out_tree.unflatten(outs)


class _RootRule:
    """The derivative of a root: `x' = -(∂f/∂x)⁻¹ (∂f/∂p) p'`."""

    name = "custom_root"

    def __init__(
        self,
        equation: Graph,
        solver: Graph,
        treedef: Any,
        tangent_solve: Callable[..., Any],
        count: int,
    ) -> None:
        self.equation, self.solver, self.treedef = equation, solver, treedef
        self.tangent_solve, self.count = tangent_solve, count
        self.traced: tuple[Graph, Graph] | None = None

    def trace(self, avals: Sequence[Aval]) -> list[Any]:
        """Traces the solution of linear systems if it refers to traced values.

        Later, when there is something to differentiate, these may be out of reach.

        Args:
          avals: types of the root's leaves.

        Returns:
          The values it refers to, which are to be operands.
        """
        types = [*self.equation.in_avals, *avals]

        def traced(solve: Callable[..., list[Any]]) -> tuple[Graph, list[Any]]:
            return trace_flat(solve, types, name="tangent_solve")

        graph, consts = traced(functools.partial(self._solved, False))
        if not any(isinstance(c, Tracer) for c in consts):
            return []
        back, more = traced(functools.partial(self._solved, True))
        both = list({id(c): c for c in (*consts, *more)}.values())
        self.traced = with_consts(graph, consts, both), with_consts(back, more, both)
        return both

    def _solved(self, transposed: bool, *values: Any) -> list[Any]:
        """Solves `(∂f/∂x) x = y`, given the captured values, the root, and `y`."""
        given, root, y = split_at(values, self.count, self.treedef.num_leaves)
        linear, residuals = self._linear(given, root)
        known = dict(zip(linear.inputs, residuals, strict=False))

        def apply(x: Any) -> Any:
            values = tree.leaves(x)
            if transposed:
                inputs = linear.inputs[len(residuals) :]
                outs = backward_with_values(linear, known, inputs, values)
            else:
                outs = linear.evaluate(*residuals, *values)
            return self.treedef.unflatten(map(arith.instantiate, outs))

        return tree.leaves(self.tangent_solve(apply, self.treedef.unflatten(y)))

    def _linear(self, given: Values, root: Values) -> tuple[Graph, list[Any]]:
        """Returns `∂f/∂x` at the root: a graph, and its first inputs."""
        lin = linearize_flat(lambda *x: self.equation.evaluate(*given, *x), root)
        return tape_to_graph(lin, "root_linear")

    def __call__(
        self, consts: Values, primals: Values, tangents: Values
    ) -> tuple[list[Any], list[Any]]:
        """See `custom_rules.JVPRule`; the guess has no influence on the root."""
        given = list(primals[: self.count])
        outs = CustomJVPCall.bind(
            *consts,
            *primals,
            graph=self.solver,
            num_consts=0,
            num_rule_consts=len(consts),
            rule=self,
        )
        size = self.treedef.num_leaves
        root = outs[:size]
        avals = [typeof(o).tangent() for o in outs]
        nonzero = live_flags(tangents[: self.count])
        if not any(nonzero):
            return outs, [Zero(a) for a in avals]
        derived, has = jvp_graph(self.equation, [*nonzero, *[False] * size])
        results = derived.evaluate(
            *given, *root, *chosen(tangents[: self.count], nonzero)
        )
        moved = spread(results[size:], has, avals[:size])
        rhs = [arith.neg(arith.instantiate(m)) for m in moved]

        linear, residuals = self._linear(given, root)

        def apply(x: Any) -> Any:
            return self.treedef.unflatten(linear.evaluate(*residuals, *tree.leaves(x)))

        def solver(graph: Graph) -> Callable[[Any, Any], Any]:
            return lambda _, y: self.treedef.unflatten(
                graph.evaluate(*consts, *given, *root, *tree.leaves(y))
            )

        solve = transpose_solve = self.tangent_solve
        if self.traced is not None:
            solve, transpose_solve = map(solver, self.traced)
        solution = custom_linear_solve(
            apply, self.treedef.unflatten(rhs), solve, transpose_solve
        )
        zeros = [Zero(a) for a in avals[size:]]
        return outs, [*tree.leaves(solution), *zeros]
