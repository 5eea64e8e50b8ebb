"""Linear and convex quadratic programs: `linprog` and `quadratic_program`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, is_arraylike
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.optimize._interior_point import (
    Program,
    Solution,
    conditions,
    reduced_costs,
    solve,
)
from fxflow.scipy.optimize._problems import at_solution, listed, options_of, report
from fxflow.scipy.optimize.constraints import Bounds, bounds_of
from fxflow.scipy.optimize.results import ProgramResults, Sensitivity

_OPTIONS = {"maxiter": 100, "tol": None}
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
      ArgumentError: a matrix comes without its right side, there is no such option, or
        a lower bound is above an upper one.
      DtypeError: an argument is complex.
      ShapeError: the shapes do not fit.
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
    derivative by all arguments: that of the vertex whose constraints are active.

    Args:
      c: float[n], the costs.
      bounds: pairs (min, max) with None for no bound: one for all variables, or one for
        each; or `Bounds`.
      method: one of SciPy's names; all stand for this method.
      callback: must be None, as for SciPy's methods "highs".
      options: `maxiter` (100); `tol`, relative (1e-9, in float32 2e-5).
      x0: has no effect.
      integrality: None or 0: variables that must be whole are not supported.

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
    if integrality is not None and np.any(np.asarray(integrality)):
        raise ArgumentError(
            "linprog: variables that must be whole are not supported, got "
            f"integrality={integrality!r}"
        )
    return _solved("linprog", None, c, A_ub, b_ub, A_eq, b_eq, bounds, options)


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
) -> ProgramResults:
    settings = options_of(name, "linprog", options, _OPTIONS)
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
    program = Program._make([square, costs, *parts, low, high])

    def solver() -> Any:
        fixed = Program(*map(lax.stop_gradient, program))
        found, status, steps = solve(fixed, settings["maxiter"], settings["tol"])
        lost = fnp.where(status == 0, 0, math.nan).astype(dtype)
        return Solution(*(v + lost for v in found)), (status, steps)

    like = Solution(costs, program.b, program.h)
    found, (status, steps) = at_solution(
        solver, lambda at: conditions(program, at), like
    )
    report(name, status == 0, status)
    rest = reduced_costs(program, found)
    slack = program.h - program.G @ found.x
    con = program.b - program.A @ found.x
    return ProgramResults(
        x=found.x,
        fun=costs @ found.x + found.x @ (square @ found.x) / 2,
        slack=slack,
        con=con,
        success=status == 0,
        status=status,
        nit=steps,
        ineqlin=Sensitivity(slack, -found.z),
        eqlin=Sensitivity(con, -found.y),
        lower=Sensitivity(found.x - low, fnp.maximum(rest, 0)),
        upper=Sensitivity(high - found.x, fnp.minimum(rest, 0)),
    )


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
