"""`minimize`: one function with SciPy's methods, as compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize._derivative_free import nelder_mead, powell
from fxflow.scipy.optimize._descent import (
    BFGS,
    LBFGS,
    ConjugateGradients,
    NewtonCG,
    Outcome,
    descend,
    descend_within,
)
from fxflow.scipy.optimize._linear_models import linear_models
from fxflow.scipy.optimize._problems import (
    Problem,
    arguments,
    at_solution,
    options_of,
    problem_of,
    report,
    within,
)
from fxflow.scipy.optimize._sequential_quadratic import (
    minimize_constrained,
    positive,
    sequential_programs,
)
from fxflow.scipy.optimize._trust_region import (
    by_conjugate_gradients,
    by_eigenvalues,
    by_lanczos,
    trust_region,
)
from fxflow.scipy.optimize.constraints import bounds_of, rows_of
from fxflow.scipy.optimize.hessian_updates import Estimate, HessianUpdateStrategy
from fxflow.scipy.optimize.results import OptimizeResults

_CG = {"gtol": 1e-5, "norm": math.inf, "maxiter": None, "maxls": 30}
_WOLFE = {"c1": 1e-4, "c2": 0.9}
_TRUST = {
    "gtol": 1e-4,
    "maxiter": None,
    "initial_trust_radius": 1.0,
    "max_trust_radius": 1000.0,
    "eta": 0.15,
}
_SQP = {"ftol": 1e-6, "maxiter": None}
#: The options of each method, with their defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    "bfgs": {
        "gtol": 1e-5,
        "norm": math.inf,
        "maxiter": None,
        "line_search_maxiter": 30,
        "xrtol": 0.0,
        "hess_inv0": None,
        **_WOLFE,
    },
    "l-bfgs": {
        **_CG,
        "ftol": 0.0,
        "maxcor": 10,
        "maxfun": math.inf,
        "maxgrad": math.inf,
    },
    "cg": {**_CG, "c1": 1e-4, "c2": 0.4},
    "newton-cg": {**_CG, "xtol": 1e-8, **_WOLFE},
    "trust-ncg": _TRUST,
    "trust-exact": _TRUST,
    "trust-krylov": _TRUST,
    "tnc": {
        "gtol": 1e-5,
        "ftol": 0.0,
        "xtol": 0.0,
        "maxiter": None,
        "maxfun": math.inf,
        "maxls": 30,
    },
    "slsqp": _SQP,
    "trust-constr": {**_SQP, "ftol": 1e-8},
    "nelder-mead": {
        "xatol": 1e-4,
        "fatol": 1e-4,
        "maxiter": None,
        "maxfev": None,
        "initial_simplex": None,
        "adaptive": False,
    },
    "powell": {
        "xtol": 1e-4,
        "ftol": 1e-4,
        "maxiter": None,
        "maxfev": None,
        "direc": None,
    },
    "cobyla": {
        "rhobeg": 1.0,
        "tol": 1e-4,
        "maxiter": None,
        "catol": None,
        "f_target": -math.inf,
    },
}
_NAMES = {
    **{name: name for name in _OPTIONS},
    "l-bfgs-b": "l-bfgs",
    "l-bfgs-experimental-do-not-rely-on-this": "l-bfgs",
}
_BY_SLOPE = (
    *("bfgs", "l-bfgs", "cg", "trust-ncg", "trust-exact", "trust-krylov", "tnc"),
)
#: What `tol` sets.
_TOLERANCES = {
    **dict.fromkeys(_BY_SLOPE, ("gtol",)),
    "newton-cg": ("gtol",),
    "slsqp": ("ftol",),
    "trust-constr": ("ftol",),
    "nelder-mead": ("xatol", "fatol"),
    "powell": ("xtol", "ftol"),
    "cobyla": ("tol",),
}
_CONSTRAINED = ("slsqp", "trust-constr", "cobyla")
_FREE = ("nelder-mead", "powell", "cobyla")
_BOUNDED = ("l-bfgs", "tnc", *_CONSTRAINED, "nelder-mead", "powell")
_REGIONS = {
    "trust-ncg": by_conjugate_gradients,
    "trust-krylov": by_lanczos,
    "trust-exact": by_eigenvalues,
}


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Callable[..., Any] | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimizes a function, with bounds and constraints if the method takes them.

    Derivatives that are not given are computed by automatic differentiation. The
    solution has an implicit derivative with respect to `args`, what `fun` closes over,
    and bounds and constraints: the derivative of the conditions that hold at a minimum
    (see `optim.implicit`), whatever the method. It does not depend on `x0`.

    Args:
      fun: called as `fun(x, *args)`; returns a real number.
      x0: the initial guess: float[n], a list of numbers, or a pytree of arrays, which
        is what `fun` gets.
      args: extra arguments of the function and its derivatives.
      method: "BFGS", "L-BFGS-B" (or "L-BFGS"), "CG", "Newton-CG", "TNC" (that with
        bounds), "trust-ncg", "trust-krylov", "trust-exact", "SLSQP", "trust-constr",
        "COBYLA", "Nelder-Mead" or "Powell". None means "SLSQP" with constraints,
        "L-BFGS-B" with bounds, else "BFGS". "SLSQP" and "trust-constr" are sequential
        quadratic programming, with an estimate of the Hessian or with the Hessian.
        "COBYLA", "Nelder-Mead" and "Powell" use values only.
      jac: the gradient, called as `fun` is; or True if `fun` returns a pair of the
        value and the gradient. None, or SciPy's "2-point" and so on, means to compute
        it.
      hess: the Hessian, float[n, n], called as `fun` is; None, or SciPy's "2-point" and
        so on, means to compute it; for "trust-constr" and "SLSQP" also a
        `HessianUpdateStrategy`, that is `BFGS()` or `SR1()`: an estimate of the
        Hessian of the Lagrangian.
      hessp: its product with a vector, called as `hessp(x, p, *args)`; or None.
      bounds: `Bounds`, or a pair (min, max) for each variable, with None for no bound.
        For "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "COBYLA", "Nelder-Mead" and
        "Powell".
      constraints: `LinearConstraint`, `NonlinearConstraint`, a dict with "type" ("eq",
        "ineq": at least 0), "fun" and "args", or a sequence of them. For "SLSQP",
        "trust-constr" and "COBYLA".
      tol: the tolerance of the method, if the options have none.
      callback: called on the host with the point after each iteration, for its side
        effects (see `debug.callback`); it cannot stop the program.
      options: `maxiter` (200 n), and for each method its tolerances and settings, with
        SciPy's names; `gtol` is the tolerance of the gradient (1e-5), in the norm
        `norm` (of order inf). "BFGS": `line_search_maxiter` (30), `xrtol`, the length
        of a step relative to `x` to stop at (0), `hess_inv0`, the first estimate of the
        Hessian's inverse (1). "BFGS", "CG", "Newton-CG": `c1` (1e-4) and `c2` (0.9, for
        "CG" 0.4) of the Wolfe conditions. "Powell": `direc`, rows that are the first
        directions. "COBYLA": `rhobeg` (1) and `tol` (1e-4), the size of the first and
        of the last steps, `catol`, the accepted violation (2e-4), `f_target`, a value
        that is good enough; its `maxiter` (1000) counts calls. "L-BFGS-B": `maxls`, as
        that; `maxcor`, the number of remembered steps (10); `ftol`, the relative
        decrease to stop at (0); `maxfun` and `maxgrad`, the greatest numbers of calls.

    Returns:
      An `OptimizeResults`, of the float dtype of `x0`, at least float32.

    Raises:
      ArgumentError: unknown method or option, the method takes no bounds or
        constraints, `args` is not a tuple, or a lower bound is above an upper one.
      ShapeError: `x0` is a matrix, or the function returns no number.

    Special cases:
      Under `checkify`, raises if the solver does not converge.

    Example:
      >>> found = minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2), method="BFGS")
      >>> found.x, bool(found.success)
      (Array([1., 1.], dtype=float32), True)
      >>> def lowest(a):
      ...     return minimize(lambda x: x[0] ** 2 - a * x[0], fnp.zeros(1)).x[0]
      >>> float(lowest(3.0)), float(fxflow.grad(lowest)(3.0))
      (1.5, 0.5)

    Source: `scipy.optimize.minimize`; J. Nocedal and S. Wright, Numerical Optimization,
    2006; bounds: D. Bertsekas, Projected Newton Methods, 1982; values that differ by
    rounding errors: W. Hager and H. Zhang 2005; COBYLA: M. Powell 1994.
    """
    args = arguments("minimize", args)
    if method is None:
        empty = isinstance(constraints, tuple | list) and not constraints
        chosen = "L-BFGS-B" if bounds is not None else "BFGS"
        method = chosen if empty else "SLSQP"
    kind = _NAMES.get(str(method).lower())
    if kind is None:
        raise ArgumentError(
            f"minimize: method must be one of {', '.join(sorted(_NAMES))} in any case, "
            f"got {method!r}"
        )
    defaults = dict(_OPTIONS[kind])
    if tol is not None:
        defaults.update(dict.fromkeys(_TOLERANCES[kind], tol))
    settings = options_of("minimize", str(method), options, defaults)
    estimated = isinstance(hess, HessianUpdateStrategy)
    if estimated and kind not in ("trust-constr", "slsqp"):
        raise ArgumentError(
            f"minimize: {method} takes no HessianUpdateStrategy as hess: use "
            "trust-constr, or BFGS, which estimates by itself"
        )
    problem = problem_of(
        *("minimize", fun, x0, args, jac),
        *(None if estimated else hess, hessp, callback),
    )
    if settings["maxiter"] is None:
        settings["maxiter"] = 1000 if kind == "cobyla" else 200 * problem.x.size
    if bounds is not None and kind not in _BOUNDED:
        raise ArgumentError(f"minimize: {method} takes no bounds: use L-BFGS-B")
    low, high = bounds_of("minimize", bounds, problem.x, x0)
    rows = rows_of("minimize", constraints, problem.x, problem.unravel, args)
    if kind in _CONSTRAINED:
        run = _method(kind, problem, low, high, settings, hess)
        return minimize_constrained(problem, rows, low, high, run, kind in _FREE)
    if rows is not None:
        raise ArgumentError(f"minimize: {method} takes no constraints: use SLSQP")

    def solver() -> Any:
        end = _run(kind, problem, settings, None if bounds is None else (low, high))
        return end.x, end

    def conditions(x: Any) -> Any:
        slope = problem.slope(x)
        return slope if bounds is None else within(x, slope, low, high)

    x, end = at_solution(solver, conditions, problem.x, optional=kind in _FREE)
    report("minimize", end.status == 0, end.status)
    if kind in _FREE:
        value, slope = problem.value(x), None
    else:
        value, slope = problem.both(x)
        slope = problem.unravel(slope)
    return OptimizeResults(
        x=problem.unravel(x),
        success=end.status == 0,
        status=end.status,
        fun=value,
        jac=slope,
        hess_inv=end.memory if kind == "bfgs" else None,
        nfev=end.calls,
        njev=end.slopes,
        nit=end.steps,
    )


def _method(
    kind: str, problem: Problem, low: Any, high: Any, settings: Any, hess: Any
) -> Callable[..., Any]:
    """Returns a method for constraints as a function of them and of the Lagrangian."""
    if kind == "cobyla":
        given = dict(settings)
        rhobeg, rhoend = given.pop("rhobeg"), given.pop("tol")
        if not 0 < rhoend <= rhobeg:
            raise ArgumentError(
                "minimize: COBYLA needs 0 < tol <= rhobeg, got "
                f"tol={rhoend} and rhobeg={rhobeg}"
            )
        catol = given.pop("catol")
        # SciPy's 2e-4 for steps of 1e-4: what the last models do not see.
        given["catol"] = max(2e-4, 2 * rhoend) if catol is None else catol

        return lambda rows, lagrangian: linear_models(
            problem, rows, low, high, rhobeg=rhobeg, rhoend=rhoend, **given
        )
    estimate = None
    if isinstance(hess, HessianUpdateStrategy):
        estimate = Estimate(hess, positive)

    def run(rows: Any, lagrangian: Any) -> Any:
        function = lagrangian if kind == "trust-constr" else None
        return sequential_programs(
            problem, rows, low, high, function, estimate=estimate, **settings
        )

    return run


def _run(
    kind: str,
    problem: Problem,
    settings: dict[str, Any],
    bounds: tuple[Array, Array] | None,
) -> Outcome:
    """Runs a method for problems without constraints."""
    given = dict(settings)
    if kind == "nelder-mead":
        return nelder_mead(problem, bounds, **given)
    if kind == "powell":
        return powell(problem, bounds, **given)
    if kind.startswith("trust"):
        return trust_region(problem, _REGIONS[kind](problem), **given)
    if "c1" in given:
        c1, c2 = given["c1"], given["c2"]
        if not 0 < c1 < c2 < 1:
            raise ArgumentError(f"minimize: 0 < c1 < c2 < 1 must hold, got {c1}, {c2}")
    given["searches"] = given.pop("line_search_maxiter", given.pop("maxls", 30))
    if kind == "bfgs":
        return descend(problem, BFGS(given.pop("hess_inv0")), **given)
    if kind == "cg":
        return descend(problem, ConjugateGradients(), **given)
    if kind == "newton-cg":
        return descend(problem, NewtonCG(problem), **given)
    if kind == "tnc":
        infinite = fnp.full(problem.x.size, math.inf, problem.x.dtype)
        low, high = (-infinite, infinite) if bounds is None else bounds
        given["maxcalls"] = given.pop("maxfun")
        return descend_within(problem, low, high, rule=NewtonCG(problem), **given)
    count = given.pop("maxcor")
    if count < 1:
        raise ArgumentError(f"minimize: maxcor must be positive, got {count}")
    calls = min(given.pop("maxfun"), given.pop("maxgrad"))
    if bounds is None:
        return descend(problem, LBFGS(count), maxcalls=calls, **given)
    given.pop("norm")
    return descend_within(problem, *bounds, maxcalls=calls, rule=LBFGS(count), **given)
