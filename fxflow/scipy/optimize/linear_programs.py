"""Linear, mixed-integer and convex quadratic programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.optimize._branch_and_bound import Whole, search
from fxflow.scipy.optimize._interior_point import (
    Program,
    Solution,
    conditions,
    reduced_costs,
    run,
)
from fxflow.scipy.optimize._problems import (
    at_solution,
    is_traced,
    listed,
    options_of,
    report,
)
from fxflow.scipy.optimize.constraints import Bounds, LinearConstraint, bounds_of
from fxflow.scipy.optimize.results import ProgramResults, Sensitivity

_OPTIONS = {"maxiter": 100, "tol": None}
_WHOLE = {**_OPTIONS, "mip_rel_gap": None, "node_limit": 10000, "max_depth": None}
_METHODS = ("highs", "highs-ds", "highs-ipm", "interior-point")

_docs = shared("""
    Args:
      A_ub: float[m, n], or None for no inequalities.
      b_ub: float[m]: A_ub x ≤ b_ub. A row with inf is always satisfied.
      A_eq: float[k, n], or None for no equations.
      b_eq: float[k]: A_eq x = b_eq.

    Returns:
      A `ProgramResults`. Its `marginals` have SciPy's signs: they are derivatives of
      the objective by `b_ub`, `b_eq` and the bounds.

    Raises:
      ArgumentError: a matrix comes without its right side, the option is unknown, or a
        lower bound is above an upper one.
      DtypeError: an argument is complex.
      ShapeError: the shapes are incompatible.
""")


@_docs
def linprog(
    c: ArrayLike,
    A_ub: ArrayLike | None = None,
    b_ub: ArrayLike | None = None,
    A_eq: ArrayLike | None = None,
    b_eq: ArrayLike | None = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: None = None,
    options: Mapping[str, Any] | None = None,
    x0: ArrayLike | None = None,
    integrality: Any = None,
) -> ProgramResults:
    """Minimizes a linear function with linear constraints.

    It is solved by an interior-point method, and a Newton step that makes a vertex
    exact; under `vmap` many programs are solved at once. The solution has an implicit
    derivative with respect to all arguments: that of the vertex whose constraints are
    active.

    Args:
      c: float[n], the costs.
      bounds: pairs (min, max) with None for no bound: one for all variables, or one for
        each; or `Bounds`.
      method: one of SciPy's names; all stand for this method.
      callback: must be None, as for SciPy's methods "highs".
      options: `maxiter` (100); `tol`, relative (1e-9, in float32 2e-5); with
        `integrality` those of `milp`, too.
      x0: has no effect.
      integrality: int, or int[n]: the kinds of variables, as `milp` has them; None or 0
        for any number.

    Special cases:
      x is nan for a program without a solution: `status` is 2 if no point satisfies
      the constraints, 3 if the objective decreases without end. If there are several
      solutions, the result is one in the middle of them, which is not a vertex and has
      no derivative.
      Under `checkify`, raises unless the solution is optimal.

    Example:
      >>> found = linprog(
      ...     fnp.array([-1.0, -2.0]),
      ...     A_ub=fnp.array([[1.0, 1.0], [1.0, 3.0]]),
      ...     b_ub=fnp.array([4.0, 6.0]),
      ... )
      >>> found.x.round(4), round(float(found.fun), 4)
      (Array([3., 1.], dtype=float32), -5.0)
      >>> found.ineqlin.marginals.round(3)
      Array([-0.5, -0.5], dtype=float32)

    Source: `scipy.optimize.linprog`; P. Goulart and Y. Chen, Clarabel, 2024; S.
    Mehrotra 1992.
    """
    if str(method).lower() not in _METHODS:
        raise ArgumentError(
            f"linprog: method must be one of {', '.join(_METHODS)}, got {method!r}"
        )
    if callback is not None:
        raise ArgumentError(f"linprog: {method} takes no callback, got {callback!r}")
    return _solved(
        "linprog", None, c, A_ub, b_ub, A_eq, b_eq, bounds, options, integrality
    )


def milp(
    c: ArrayLike,
    *,
    integrality: ArrayLike | None = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Mapping[str, Any] | None = None,
) -> ProgramResults:
    """Minimizes a linear function of variables, some of which must be integers.

    It is solved by branch and bound: depth first, each program by the interior-point
    method of `linprog`, in one compiled loop; under `vmap` many problems are solved at
    once. The solution has an implicit derivative with respect to all arguments, with
    the integer variables held.

    Args:
      c: float[n], the costs.
      integrality: int, or int[n]: 0 for any number within the bounds, 1 for an
        integer, 2 for zero or a number within the bounds, 3 for zero or an integer
        within the bounds. None means 0 for all.
      bounds: `Bounds`, or pairs (min, max) with None for no bound: one for all, or one
        for each variable. None means at least 0.
      constraints: a `LinearConstraint`, a triple `(A, lb, ub)`, or a sequence of them.
      options: `mip_rel_gap`, by how much relative to the objective a better point may
        be missed (0: by rounding errors); `node_limit`, the maximum number of programs
        (10000); `max_depth`, the maximum number of nodes that wait (8 n + 32, at most
        1024); `maxiter` and `tol` of each program, as `linprog` has them; `presolve`
        has no effect.

    Returns:
      A `ProgramResults`: `slack` and `ineqlin` are of the inequalities, those with an
      upper side before those with a lower side; `con` and `eqlin` are of the equations.

    Raises:
      ArgumentError: unknown kind or option, or a constraint is of another type.
      DtypeError: an argument is complex.
      ShapeError: the shapes are incompatible.

    Special cases:
      x is nan for a program without a solution, as of `linprog`; `status` is 1 if there
      were too many programs, where x is the best point so far, if there is one.
      Under `checkify`, raises unless the solution is optimal.

    Example:
      >>> rows = LinearConstraint(fnp.array([[2.0, 3.0, 4.0]]), ub=5.0)
      >>> found = milp(
      ...     fnp.array([-3.0, -4.0, -5.0]), integrality=1, bounds=Bounds(0.0, 1.0),
      ...     constraints=rows,
      ... )
      >>> found.x, float(found.fun)
      (Array([1., 1., 0.], dtype=float32), -7.0)

    Source: `scipy.optimize.milp`; A. Land and A. Doig 1960.
    """
    A_ub, b_ub, A_eq, b_eq = _sides(constraints, fnp.asarray(listed(c)).size)
    given = {k: v for k, v in dict(options or {}).items() if k != "presolve"}
    kinds = 0 if integrality is None else integrality
    return _solved("milp", None, c, A_ub, b_ub, A_eq, b_eq, bounds, given, kinds)


@_docs
def quadratic_program(
    P: ArrayLike,
    q: ArrayLike,
    A_ub: ArrayLike | None = None,
    b_ub: ArrayLike | None = None,
    A_eq: ArrayLike | None = None,
    b_eq: ArrayLike | None = None,
    bounds: Any = None,
    options: Mapping[str, Any] | None = None,
) -> ProgramResults:
    r"""Minimizes a convex quadratic function with linear constraints.

    The objective is :math:`\tfrac12 x^T P x + q^T x`. The method and the form of the
    constraints are those of `linprog`, and so are derivatives.

    Args:
      P: float[n, n], symmetric and positive semidefinite, which is not checked.
      q: float[n].
      bounds: pairs (min, max) with None for no bound: one for all variables, or one for
        each; or `Bounds`. None means no bounds.
      options: `maxiter` (100); `tol`, relative (1e-9, in float32 2e-5).

    Special cases:
      x is nan for a program without a solution, as of `linprog`. Under `checkify`,
      raises unless the solution is optimal.

    Example:
      >>> found = quadratic_program(
      ...     fnp.eye(2), fnp.array([-1.0, 0.0]), A_eq=fnp.ones((1, 2)),
      ...     b_eq=fnp.zeros(1),
      ... )
      >>> found.x.round(4)
      Array([ 0.5, -0.5], dtype=float32)

    Source: P. Goulart and Y. Chen, Clarabel, 2024; the problem is that of OSQP,
    Stellato et al. 2020.
    """
    if bounds is None:
        bounds = (None, None)
    return _solved("quadratic_program", P, q, A_ub, b_ub, A_eq, b_eq, bounds, options)


def _program(
    name: str,
    P: Any,
    q: Any,
    A_ub: Any,
    b_ub: Any,
    A_eq: Any,
    b_eq: Any,
    bounds: Any,
) -> Program:
    """Returns the arguments as a program.

    Raises:
      ArgumentError: a matrix comes without its right side.
      DtypeError: an argument is complex.
      ShapeError: the shapes are incompatible.
    """
    P, q, A_ub, b_ub, A_eq, b_eq = map(listed, (P, q, A_ub, b_ub, A_eq, b_eq))
    b_ub, b_eq = (
        fnp.ravel(b) if is_arraylike(b) and not np.ndim(b) else b for b in (b_ub, b_eq)
    )
    pairs = ((A_ub, b_ub, "A_ub", "b_ub"), (A_eq, b_eq, "A_eq", "b_eq"))
    for matrix, side, left, right in pairs:
        if (matrix is None) != (side is None):
            raise ArgumentError(f"{name}: pass both of {left} and {right}, or none")
    given = [v for v in (P, q, A_ub, b_ub, A_eq, b_eq) if v is not None]
    dtype = fnp.promote_types(promote_inexact(name, *given)[0].dtype, "float32")
    if dtypes.is_complex(dtype):
        raise DtypeError(f"{name}: expected real arrays, got {dtype}")
    costs = lax.convert_element_type(fnp.asarray(q, dtype), dtype)
    if costs.ndim != 1:
        raise ShapeError(f"{name}: the costs must be float[n], got {costs.aval}")
    n = costs.size
    square = fnp.zeros((n, n), dtype) if P is None else fnp.asarray(P, dtype)
    if square.shape != (n, n):
        raise ShapeError(f"{name}: P must be float[{n}, {n}], got {square.aval}")
    parts: list[Any] = []
    for matrix, side, left, right in pairs[::-1]:
        rows = (
            fnp.zeros((0, n), dtype) if matrix is None else fnp.asarray(matrix, dtype)
        )
        values = fnp.zeros(0, dtype) if side is None else fnp.asarray(side, dtype)
        rows = fnp.atleast_2d(rows) if rows.ndim == 1 else rows
        values = fnp.atleast_1d(values)
        if rows.ndim != 2 or rows.shape != (values.size, n) or values.ndim != 1:
            raise ShapeError(
                f"{name}: {left} must be float[m, {n}] and {right} float[m], got "
                f"{rows.aval} and {values.aval}"
            )
        parts += [rows, values]
    low, high = bounds_of(name, _for_all(bounds, n), costs, costs)
    return Program._make([square, costs, *parts, low, high])


def _solved(
    name: str,
    P: Any,
    q: Any,
    A_ub: Any,
    b_ub: Any,
    A_eq: Any,
    b_eq: Any,
    bounds: Any,
    options: Mapping[str, Any] | None,
    integrality: Any = None,
) -> ProgramResults:
    kinds = np.asarray(0 if integrality is None else integrality)
    searches = name == "milp" or bool(np.any(kinds))
    settings = options_of(name, name, options, _WHOLE if searches else _OPTIONS)
    program = _program(name, P, q, A_ub, b_ub, A_eq, b_eq, bounds)
    costs, square = program.q, program.P
    n, dtype = costs.size, costs.dtype
    low, high = program.low, program.high
    best = None
    if searches:
        each = _kinds(name, kinds, n)
        best = _best(program, each, settings)
        # What is left is a program whose whole variables are fixed.
        whole = (each % 2 == 1) | ((each == 2) & (best.x == 0))
        lost = whole & ~fnp.isfinite(best.x)
        low, high = (
            fnp.where(whole & ~lost, best.x, side)
            for side in (program.low, program.high)
        )
        program = program._replace(low=low, high=high)

    def solver() -> Any:
        fixed = Program(*map(lax.stop_gradient, program))
        found, status, steps = run(
            fixed, maxiter=settings["maxiter"], tol=settings["tol"]
        )
        # Only a vector comes from the search: a number would become a constant.
        good = (status == 0) & (best is None or fnp.all(fnp.isfinite(best.x)))
        lost = fnp.where(good, 0, math.nan).astype(dtype)
        return Solution(*(v + lost for v in found)), (status, steps)

    like = Solution(costs, program.b, program.h)
    found, (status, steps) = at_solution(
        solver, lambda at: conditions(program, at), like
    )
    if best is not None:
        lost = (best.status == 0) & (status != 0)
        status = fnp.where(lost, 4, best.status).astype(dtypes.int32)
        steps = steps + best.steps
    report(name, status == 0, status)
    rest = reduced_costs(program, found)
    slack = program.h - program.G @ found.x
    con = program.b - program.A @ found.x
    value = costs @ found.x + found.x @ (square @ found.x) / 2
    more: tuple[Any, ...] = ()
    if best is not None:
        gap = (value - best.bound) / fnp.maximum(fnp.abs(value), 1e-30)
        gap = fnp.where(value == best.bound, 0, lax.stop_gradient(gap))
        more = best.nodes, best.bound, fnp.maximum(gap, 0)
    return ProgramResults(
        x=found.x,
        fun=value,
        slack=slack,
        con=con,
        success=status == 0,
        status=status,
        nit=steps,
        ineqlin=Sensitivity(slack, -found.z),
        eqlin=Sensitivity(con, -found.y),
        lower=Sensitivity(found.x - low, fnp.maximum(rest, 0)),
        upper=Sensitivity(high - found.x, fnp.minimum(rest, 0)),
        **dict(zip(ProgramResults._fields[-3:], more, strict=False)),
    )


def _kinds(name: str, given: np.ndarray, n: int) -> Array:
    """Returns the kind of each variable.

    Raises:
      ArgumentError: unknown kind.
      ShapeError: there are more or fewer kinds than variables.
    """
    if given.size and not np.isin(given, (0, 1, 2, 3)).all():
        raise ArgumentError(f"{name}: integrality must be 0, 1, 2 or 3, got {given}")
    if given.shape not in ((), (1,), (n,)):
        raise ShapeError(
            f"{name}: integrality must be int[{n}], or one for all variables, got "
            f"{given.size} of them"
        )
    return fnp.asarray(np.broadcast_to(given.astype(np.int32), (n,)))


def _best(program: Program, kinds: Array, settings: Mapping[str, Any]) -> Whole:
    """Returns the best whole point, for which nothing has a derivative."""
    n, dtype = program.q.size, program.q.dtype
    least = 1e-9 if dtype == dtypes.float64 else 1e-5
    room = settings["max_depth"]
    return search(
        Program(*map(lax.stop_gradient, program)),
        kinds,
        maxiter=settings["maxiter"],
        tol=settings["tol"],
        gap=max(settings["mip_rel_gap"] or 0.0, least),
        most=natural("milp", "node_limit", settings["node_limit"]),
        room=min(8 * n + 32, 1024)
        if room is None
        else natural("milp", "max_depth", room),
    )


def _sides(constraints: Any, n: int) -> tuple[Any, Any, Any, Any]:
    """Returns rows of two sides as inequalities and equations.

    Raises:
      ArgumentError: something is not a linear constraint.
    """
    if constraints is None:
        return None, None, None, None
    single = isinstance(constraints, LinearConstraint) or _is_triple(constraints)
    upper: list[Any] = []
    lower: list[Any] = []
    equal: list[Any] = []
    for item in [constraints] if single else list(constraints):
        if not isinstance(item, tuple | list) or not 0 < len(item) < 5:
            raise ArgumentError(
                "milp: constraints must be LinearConstraint or (A, lb, ub), got "
                f"{item!r}"
            )
        row = LinearConstraint(*item)
        matrix = row.A.todense() if hasattr(row.A, "todense") else listed(row.A)
        matrix = fnp.atleast_2d(fnp.asarray(matrix))
        if matrix.ndim != 2 or matrix.shape[1] != n:
            raise ShapeError(
                f"milp: A of a constraint must be float[m, {n}], got {matrix.aval}"
            )
        m = matrix.shape[0]
        low, high = (
            fnp.broadcast_to(fnp.ravel(fnp.asarray(listed(v))), (m,))
            for v in (row.lb, row.ub)
        )
        same = np.full(m, row.lb is row.ub)
        if not is_traced(low, high):
            same = np.asarray(low) == np.asarray(high)
        where, rest = np.flatnonzero(same), np.flatnonzero(~same)
        equal.append((matrix[where], low[where]))
        upper.append((matrix[rest], high[rest]))
        lower.append((-matrix[rest], -low[rest]))
    parts = [*upper, *lower], equal
    A_ub, A_eq = (fnp.concatenate([m for m, _ in part]) for part in parts)
    b_ub, b_eq = (fnp.concatenate([v for _, v in part]) for part in parts)
    return A_ub, b_ub, A_eq, b_eq


def _for_all(bounds: Any, n: int) -> Any:
    """Returns a pair for each variable, if there is one for all of them."""
    if bounds is None:
        return [(0, None)] * n
    if isinstance(bounds, Bounds) or is_arraylike(bounds):
        return bounds
    rows = list(bounds)
    if len(rows) == 2 and all(v is None or is_arraylike(v) for v in rows):
        single = not any(v is not None and getattr(v, "ndim", 0) for v in rows)
        if single:
            return [tuple(rows)] * n
    if len(rows) == 1 and n != 1:
        return [tuple(rows[0])] * n
    return rows


def _is_triple(constraints: Any) -> bool:
    """Returns whether something is `(A, lb, ub)`, not a sequence of constraints."""
    if not isinstance(constraints, tuple | list) or not 0 < len(constraints) < 4:
        return False
    first = constraints[0]
    if isinstance(first, tuple):
        return False
    if isinstance(first, list):
        try:
            return 0 < np.asarray(first, float).ndim < 3
        except (TypeError, ValueError):
            return False
    return (is_arraylike(first) and np.ndim(first) > 0) or hasattr(first, "todense")
