"""SciPy's functions of one method each: `fmin`, `fmin_bfgs`, `brent`, ….

They are other names of `minimize` and `minimize_scalar`, whose results and derivatives
they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ConcretizationError
from fxflow.lax.callbacks import effects_barrier
from fxflow.scipy.optimize._problems import is_traced
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.scalar_minimization import minimize_scalar

_minimizer_docs = shared("""
    Args:
      f: called as `f(x, *args)`; returns a real number.
      func: called as `func(x, *args)`; returns a real number.
      x0: the initial guess: float[n], a list of numbers, or a pytree of arrays.
      fprime: the gradient, called as the function is; None means to compute it.
      args: extra arguments of the function: a tuple, or a single one.
      gtol: tolerance of the gradient.
      norm: the order of the norm of the gradient.
      xtol: tolerance of points.
      ftol: tolerance of values.
      maxiter: the maximum number of iterations; None means that of `minimize`.
      maxfun: the maximum number of calls; likewise.
      bounds: `Bounds`, or pairs (min, max) with None for no bound.
      full_output: whether to return the full result as well.
      disp: has no effect: nothing is printed.
      iprint: likewise.
      messages: likewise.
      epsilon: has no effect: derivatives are computed.
      retall: whether to return a list of the points after each iteration, too; not
        under `jit` and `vmap`, where their number is not known.
      callback: called on the host with the point after each iteration.
      c1: the constant of Wolfe's first condition, on the decrease.
      c2: of the second one, on the slope.

    Returns:
      The point, like `x0`; with `full_output` also an `OptimizeResults`, where SciPy
      has a tuple of its parts; with `retall` the list at the end.

    Raises:
      ArgumentError: an argument is out of range or of the wrong type.
      ShapeError: the function does not return a number.

    Source: `scipy.optimize.{name}`.
""")


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def _given(found: Any, full_output: Any) -> Any:
    return (found.x, found) if full_output else found.x


def _minimized(
    name: str,
    func: Callable[..., Any],
    x0: Any,
    args: Any,
    full_output: bool,
    retall: bool,
    callback: Callable[..., None] | None,
    **given: Any,
) -> Any:
    """Returns what `minimize` finds, as these functions do."""
    points: list[Any] = []

    def noted(x: Any) -> None:
        points.append(x)
        if callback is not None:
            callback(x)

    seen = noted if retall else callback
    found = minimize(func, x0, _tuple(args), callback=seen, **given)
    if not retall:
        return _given(found, full_output)
    if is_traced(found.nit):
        raise ConcretizationError(
            f"{name}: retall=True returns as many points as there are iterations, "
            "which is not known under jit and vmap: use callback"
        )
    effects_barrier()
    # The first point is the user's.
    points.insert(0, x0)
    return (found.x, found, points) if full_output else (found.x, points)


@_minimizer_docs
def fmin(
    func: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-4,
    ftol: float = 1e-4,
    maxiter: int | None = None,
    maxfun: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    retall: bool = False,
    callback: Callable[..., None] | None = None,
    initial_simplex: Any = None,
) -> Any:
    """Minimizes a function by values only: `minimize` with "Nelder-Mead".

    Args:
      initial_simplex: float[n + 1, n], the first points; None means near `x0`.

    Example:
      >>> fmin(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(2)
      Array([1., 1.], dtype=float32)

    """
    options = {
        "xatol": xtol,
        "fatol": ftol,
        "maxiter": maxiter,
        "maxfev": maxfun,
        "initial_simplex": initial_simplex,
    }
    given: Any = ("fmin", func, x0, args, full_output, retall, callback)
    return _minimized(*given, method="Nelder-Mead", options=options)


@_minimizer_docs
def fmin_powell(
    func: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-4,
    ftol: float = 1e-4,
    maxiter: int | None = None,
    maxfun: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    retall: bool = False,
    callback: Callable[..., None] | None = None,
    direc: Any = None,
) -> Any:
    """Minimizes a function by Powell's method, along one direction after another.

    Args:
      direc: float[n, n], rows that are the first directions; None means the axes.

    Example:
      >>> fmin_powell(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {
        "xtol": xtol,
        "ftol": ftol,
        "maxiter": maxiter,
        "maxfev": maxfun,
        "direc": direc,
    }
    given: Any = ("fmin_powell", func, x0, args, full_output, retall, callback)
    return _minimized(*given, method="Powell", options=options)


@_minimizer_docs
def fmin_bfgs(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    gtol: float = 1e-5,
    norm: float = math.inf,
    epsilon: Any = None,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    retall: bool = False,
    callback: Callable[..., None] | None = None,
    xrtol: float = 0.0,
    c1: float = 1e-4,
    c2: float = 0.9,
    hess_inv0: Any = None,
) -> Any:
    """Minimizes a function by quasi-Newton steps: `minimize` with "BFGS".

    Args:
      xrtol: the length of a step, relative to that of x, at which to stop.
      hess_inv0: float[n, n], the first estimate of the Hessian's inverse; None means
        the identity.

    Example:
      >>> fmin_bfgs(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {
        "gtol": gtol,
        "norm": norm,
        "maxiter": maxiter,
        "xrtol": xrtol,
        "c1": c1,
        "c2": c2,
        "hess_inv0": hess_inv0,
    }
    given: Any = ("fmin_bfgs", f, x0, args, full_output, retall, callback)
    return _minimized(*given, method="BFGS", jac=fprime, options=options)


@_minimizer_docs
def fmin_cg(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    gtol: float = 1e-5,
    norm: float = math.inf,
    epsilon: Any = None,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    retall: bool = False,
    callback: Callable[..., None] | None = None,
    c1: float = 1e-4,
    c2: float = 0.4,
) -> Any:
    """Minimizes a function by conjugate gradients: `minimize` with "CG".

    Example:
      >>> fmin_cg(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {"gtol": gtol, "norm": norm, "maxiter": maxiter, "c1": c1, "c2": c2}
    given: Any = ("fmin_cg", f, x0, args, full_output, retall, callback)
    return _minimized(*given, method="CG", jac=fprime, options=options)


@_minimizer_docs
def fmin_ncg(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    fhess_p: Callable[..., Any] | None = None,
    fhess: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    avextol: float = 1e-5,
    epsilon: Any = None,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    retall: bool = False,
    callback: Callable[..., None] | None = None,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> Any:
    """Minimizes a function by inexact Newton steps: `minimize` with "Newton-CG".

    Args:
      fhess_p: the product of the Hessian with a vector, called as
        `fhess_p(x, p, *args)`; None means to compute it.
      fhess: the Hessian, float[n, n], called as `f` is; None means to compute products.
      avextol: the mean change of the elements of x at which to stop.

    Example:
      >>> fmin_ncg(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {"xtol": avextol, "maxiter": maxiter, "c1": c1, "c2": c2}
    given: Any = ("fmin_ncg", f, x0, args, full_output, retall, callback)
    more: Any = {"jac": fprime, "hess": fhess, "hessp": fhess_p, "options": options}
    return _minimized(*given, method="Newton-CG", **more)


@_minimizer_docs
def fmin_l_bfgs_b(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: tuple[Any, ...] = (),
    approx_grad: bool = False,
    bounds: Any = None,
    m: int = 10,
    factr: float = 1e7,
    pgtol: float = 1e-5,
    epsilon: Any = None,
    iprint: int | None = None,
    maxfun: int = 15000,
    maxiter: int = 15000,
    disp: int | None = None,
    callback: Callable[..., None] | None = None,
    maxls: int = 20,
) -> Any:
    """Minimizes a function within bounds: `minimize` with "L-BFGS-B".

    Args:
      func: called as `func(x, *args)`; returns a real number, or, without `fprime` and
        without `approx_grad`, a pair of it and the gradient, as in SciPy.
      approx_grad: whether `func` returns a number only, whose gradient is computed.
      m: the number of remembered steps.
      factr: the decrease, in rounding errors of the value, at which to stop.
      pgtol: tolerance of the projected gradient.
      maxls: the maximum number of steps of a line search.

    Returns:
      The point, like `x0`, the value there, and an `OptimizeResults`, where SciPy has
      a dictionary.

    Example:
      >>> bowl = lambda x: ((x - 1) ** 2).sum()
      >>> x, value, _ = fmin_l_bfgs_b(
      ...     bowl, [0.0, 0.0], approx_grad=True, bounds=[(0, 2), (0, 0.5)]
      ... )
      >>> x, float(value)
      (Array([1. , 0.5], dtype=float32), 0.25)

    """
    options = {
        "gtol": pgtol,
        "maxcor": m,
        "ftol": factr * 2.220446049250313e-16,
        "maxfun": maxfun,
        "maxiter": maxiter,
        "maxls": maxls,
    }
    jac = fprime if fprime is not None else not approx_grad
    found = minimize(
        func,
        x0,
        _tuple(args),
        method="L-BFGS-B",
        jac=jac,
        bounds=bounds,
        options=options,
        callback=callback,
    )
    return found.x, found.fun, found


@_minimizer_docs
def fmin_tnc(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: tuple[Any, ...] = (),
    approx_grad: bool = False,
    bounds: Any = None,
    epsilon: Any = None,
    scale: Any = None,
    offset: Any = None,
    messages: int | None = None,
    maxCGit: int = -1,
    maxfun: int | None = None,
    eta: float = -1,
    stepmx: float = 0,
    accuracy: float = 0,
    fmin: float = 0,
    ftol: float = -1,
    xtol: float = -1,
    pgtol: float = -1,
    rescale: float = -1,
    disp: int | None = None,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function within bounds by inexact Newton steps: "TNC".

    Args:
      func: as of `fmin_l_bfgs_b`.
      approx_grad: whether `func` returns a number only, whose gradient is computed.
      scale: has no effect, as have `offset` and `rescale`: variables are not scaled.
      offset: see `scale`.
      rescale: see `scale`.
      maxCGit: has no effect, as have `eta`, `stepmx`, `accuracy` and `fmin`, settings
        of SciPy's line search and inner iteration.
      eta: see `maxCGit`.
      stepmx: see `maxCGit`.
      accuracy: see `maxCGit`.
      fmin: see `maxCGit`.
      xtol: the mean length of a step's elements at which to stop; negative means 0.
      ftol: the relative decrease at which to stop; negative means 0.
      pgtol: tolerance of the projected gradient; negative means 1e-5.

    Returns:
      The point, like `x0`, the number of calls, and the status of `OptimizeResults`.

    Example:
      >>> bowl = lambda x: ((x - 1) ** 2).sum()
      >>> x, _, status = fmin_tnc(
      ...     bowl, [0.0, 0.0], approx_grad=True, bounds=[(0, 2), (0, 0.5)]
      ... )
      >>> x, int(status)
      (Array([1. , 0.5], dtype=float32), 0)

    """
    options: dict[str, Any] = {"maxfun": maxfun, "ftol": max(ftol, 0.0)}
    options["xtol"] = max(xtol, 0.0)
    options["gtol"] = pgtol if pgtol >= 0 else None
    jac = fprime if fprime is not None else not approx_grad
    found = minimize(
        func,
        x0,
        _tuple(args),
        method="TNC",
        jac=jac,
        bounds=bounds,
        options=options,
        callback=callback,
    )
    return found.x, found.nfev, found.status


@_minimizer_docs
def fmin_slsqp(
    func: Callable[..., Any],
    x0: Any,
    eqcons: Any = (),
    f_eqcons: Callable[..., Any] | None = None,
    ieqcons: Any = (),
    f_ieqcons: Callable[..., Any] | None = None,
    bounds: Any = (),
    fprime: Callable[..., Any] | None = None,
    fprime_eqcons: Callable[..., Any] | None = None,
    fprime_ieqcons: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    iter: int = 100,
    acc: float = 1e-6,
    iprint: int = 1,
    disp: int | None = None,
    full_output: bool = False,
    epsilon: Any = None,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function with constraints: `minimize` with "SLSQP".

    Args:
      eqcons: functions called as `func` is, each 0 at a solution.
      f_eqcons: a function of an array that is 0; then `eqcons` has no effect.
      ieqcons: functions called as `func` is, each at least 0 at a solution.
      f_ieqcons: a function of an array at least 0; then `ieqcons` has no effect.
      bounds: `Bounds`, or pairs (min, max); none without any.
      fprime_eqcons: has no effect: derivatives are computed.
      fprime_ieqcons: likewise.
      iter: the maximum number of iterations.
      acc: the predicted decrease, and the violation, at which to stop.

    Example:
      >>> bowl = lambda x: ((x - 1) ** 2).sum()
      >>> fmin_slsqp(bowl, [0.0, 0.0], ieqcons=[lambda x: 1 - x[0] - x[1]]).round(3)
      Array([0.5, 0.5], dtype=float32)

    """
    more = _tuple(args)
    groups = (
        ("eq", [f_eqcons] if f_eqcons else eqcons),
        (
            "ineq",
            [f_ieqcons] if f_ieqcons else ieqcons,
        ),
    )
    rows = [
        {"type": kind, "fun": one, "args": more}
        for kind, group in groups
        for one in group
    ]
    empty = isinstance(bounds, tuple | list) and not len(bounds)
    found = minimize(
        func,
        x0,
        more,
        method="SLSQP",
        jac=fprime,
        bounds=None if empty else bounds,
        constraints=rows,
        options={"ftol": acc, "maxiter": iter},
        callback=callback,
    )
    return _given(found, full_output)


@_minimizer_docs
def fmin_cobyla(
    func: Callable[..., Any],
    x0: Any,
    cons: Any,
    args: tuple[Any, ...] = (),
    consargs: Any = None,
    rhobeg: float = 1.0,
    rhoend: float = 1e-4,
    maxfun: int = 1000,
    disp: int | None = None,
    catol: float = 2e-4,
    *,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function with constraints by values only: "COBYLA".

    Args:
      cons: a function that is at least 0 at a solution, or a sequence of them.
      consargs: more arguments of the constraints; None means those of `func`.
      rhobeg: the size of the first steps.
      rhoend: the size of the last steps.
      maxfun: the maximum number of calls.
      catol: the violation that is accepted.

    Returns:
      The point, like `x0`.

    Example:
      >>> bowl = lambda x: ((x - 1) ** 2).sum()
      >>> fmin_cobyla(bowl, [0.0, 0.0], lambda x: 1 - x[0] - x[1]).round(2)
      Array([0.5, 0.5], dtype=float32)

    """
    group = [cons] if callable(cons) else cons
    if not isinstance(group, list | tuple) or not all(callable(one) for one in group):
        raise ArgumentError(
            f"fmin_cobyla: cons must be a function or a sequence of them, got {cons!r}"
        )
    more = _tuple(args) if consargs is None else _tuple(consargs)
    rows = [{"type": "ineq", "fun": one, "args": more} for one in group]
    options = {"rhobeg": rhobeg, "tol": rhoend, "maxiter": maxfun, "catol": catol}
    found = minimize(
        func,
        x0,
        _tuple(args),
        method="COBYLA",
        constraints=rows,
        options=options,
        callback=callback,
    )
    return found.x


@_minimizer_docs
def fminbound(
    func: Callable[..., Any],
    x1: Any,
    x2: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-5,
    maxfun: int = 500,
    full_output: bool = False,
    disp: int = 1,
) -> Any:
    """Minimizes a function of one number in an interval: `minimize_scalar`, "bounded".

    Args:
      func: called as `func(x, *args)` with a 0-d float; returns a real number.
      x1: where the interval begins.
      x2: where it ends.
      xtol: tolerance of x.
      maxfun: the maximum number of iterations.

    Returns:
      The point, float; with `full_output` also an `OptimizeResults`.

    Example:
      >>> round(float(fminbound(lambda x: (x - 1) ** 2, -3.0, 0.5)), 3)
      0.5

    """
    found = minimize_scalar(
        *(func, None, (x1, x2), _tuple(args), "bounded"),
        options={"xatol": xtol, "maxiter": maxfun},
    )
    return _given(found, full_output)


@_minimizer_docs
def brent(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    brack: tuple[Any, ...] | None = None,
    tol: float = 1.48e-8,
    full_output: bool = False,
    maxiter: int = 500,
) -> Any:
    """Minimizes a function of one number by Brent's method.

    Args:
      func: called as `func(x, *args)` with a 0-d float; returns a real number.
      brack: two numbers where a search downhill begins, or three numbers, the middle
        one with the least value; None is (0, 1).
      tol: the relative tolerance of x.

    Returns:
      The point, float; with `full_output` also an `OptimizeResults`.

    Example:
      >>> round(float(brent(lambda x: (x - 1) ** 2)), 2)
      1.0

    """
    found = minimize_scalar(
        *(func, brack, None, _tuple(args), "brent"),
        options={"xtol": tol, "maxiter": maxiter},
    )
    return _given(found, full_output)


@_minimizer_docs
def golden(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    brack: tuple[Any, ...] | None = None,
    tol: float = 1.4901161193847656e-8,
    full_output: bool = False,
    maxiter: int = 5000,
) -> Any:
    """Minimizes a function of one number by golden-section search.

    Args:
      func: called as `func(x, *args)` with a 0-d float; returns a real number.
      brack: two numbers where a search downhill begins, or three numbers, the middle
        one with the least value; None is (0, 1).
      tol: the relative tolerance of x.

    Returns:
      The point, float; with `full_output` also an `OptimizeResults`.

    Example:
      >>> round(float(golden(lambda x: (x - 1) ** 2)), 2)
      1.0

    """
    found = minimize_scalar(
        *(func, brack, None, _tuple(args), "golden"),
        options={"xtol": tol, "maxiter": maxiter},
    )
    return _given(found, full_output)
