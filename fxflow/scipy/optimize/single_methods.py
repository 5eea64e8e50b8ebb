"""SciPy's functions of one method each: `fmin`, `fmin_bfgs`, `broyden1`, `brent`, ….

They are other names of `minimize`, `minimize_scalar` and `root`, whose results and
derivatives they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.roots import root
from fxflow.scipy.optimize.scalar_minimization import minimize_scalar

_minimizer_docs = shared("""
    Args:
      f: called as `f(x, *args)`; returns a real number.
      func: called as `func(x, *args)`; returns a real number.
      x0: where to begin: float[n], a list of numbers, or a pytree of arrays.
      fprime: the gradient, called as the function is; None means to compute it.
      args: more arguments: a tuple of them, or one.
      gtol: how small the gradient is to get.
      norm: the order of the norm of the gradient.
      xtol: how near points are to be.
      ftol: how near values are to be.
      maxiter: the greatest number of iterations; None means that of `minimize`.
      maxfun: the greatest number of calls; likewise.
      bounds: `Bounds`, or pairs (min, max) with None for no bound.
      full_output: whether to return the whole result, too.
      disp: has no effect: nothing is printed.
      callback: called on the host with the point after each iteration.

    Returns:
      The point, like `x0`; with `full_output` also an `OptimizeResults`, where SciPy
      has a tuple of its parts.

    Raises:
      ArgumentError: an argument is out of range or of the wrong kind.
      ShapeError: the function returns no number.

    Source: `scipy.optimize.{name}`.
""")

_root_docs = shared("""
    Args:
      F: called as `F(x)`; returns values like x.
      xin: where to begin: float[n], a list of numbers, or a pytree of arrays.
      iter: the number of iterations; None means as many as `f_tol` needs.
      alpha: the first estimate of the inverse Jacobian is -alpha; None means that it
        follows from the values.
      verbose: has no effect: nothing is printed.
      maxiter: the greatest number of iterations.
      f_tol: the largest value at a root; None means 6e-6, in float32 1e-4.
      line_search: must be "armijo": a shorter step is tried while values do not shrink.
      callback: called on the host with the point and the values after each iteration.

    Returns:
      The root, like `xin`.

    Raises:
      ArgumentError: an argument is out of range or of the wrong kind.
      ShapeError: the number of values is not that of unknowns.

    Special cases:
      Under `checkify`, raises if the iteration does not converge; `root` with the same
      method says in its result whether it does.

    Source: `scipy.optimize.{name}`.
""")


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def _given(found: Any, full_output: Any) -> Any:
    return (found.x, found) if full_output else found.x


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
    found = minimize(
        func, x0, _tuple(args), method="Nelder-Mead", options=options, callback=callback
    )
    return _given(found, full_output)


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
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function along one direction after another: "Powell".

    Example:
      >>> fmin_powell(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {"xtol": xtol, "ftol": ftol, "maxiter": maxiter, "maxfev": maxfun}
    found = minimize(
        func, x0, _tuple(args), method="Powell", options=options, callback=callback
    )
    return _given(found, full_output)


@_minimizer_docs
def fmin_bfgs(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    gtol: float = 1e-5,
    norm: float = math.inf,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function by quasi-Newton steps: `minimize` with "BFGS".

    Example:
      >>> fmin_bfgs(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {"gtol": gtol, "norm": norm, "maxiter": maxiter}
    found = minimize(
        f,
        x0,
        _tuple(args),
        method="BFGS",
        jac=fprime,
        options=options,
        callback=callback,
    )
    return _given(found, full_output)


@_minimizer_docs
def fmin_cg(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    gtol: float = 1e-5,
    norm: float = math.inf,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function by conjugate gradients: `minimize` with "CG".

    Example:
      >>> fmin_cg(lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0]).round(3)
      Array([1., 1.], dtype=float32)

    """
    options = {"gtol": gtol, "norm": norm, "maxiter": maxiter}
    found = minimize(
        f,
        x0,
        _tuple(args),
        method="CG",
        jac=fprime,
        options=options,
        callback=callback,
    )
    return _given(found, full_output)


@_minimizer_docs
def fmin_ncg(
    f: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    fhess_p: Callable[..., Any] | None = None,
    fhess: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    avextol: float = 1e-5,
    maxiter: int | None = None,
    full_output: bool = False,
    disp: bool = True,
    callback: Callable[..., None] | None = None,
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
    options = {"xtol": avextol, "maxiter": maxiter}
    found = minimize(
        f,
        x0,
        _tuple(args),
        method="Newton-CG",
        jac=fprime,
        hess=fhess,
        hessp=fhess_p,
        options=options,
        callback=callback,
    )
    return _given(found, full_output)


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
      pgtol: how small the projected gradient is to get.
      maxls: the greatest number of steps of a line search.

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
    maxfun: int | None = None,
    ftol: float = -1,
    pgtol: float = -1,
    disp: int | None = None,
    callback: Callable[..., None] | None = None,
) -> Any:
    """Minimizes a function within bounds by inexact Newton steps: "TNC".

    Args:
      func: as of `fmin_l_bfgs_b`.
      approx_grad: whether `func` returns a number only, whose gradient is computed.
      ftol: the relative decrease at which to stop; negative means 0.
      pgtol: how small the projected gradient is to get; negative means 1e-5.

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
    options = {"maxfun": maxfun, "ftol": max(ftol, 0.0)}
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
    disp: int | None = None,
    full_output: bool = False,
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
      iter: the greatest number of iterations.
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
      xtol: how near x is to be.
      maxfun: the greatest number of iterations.

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
    """Minimizes a function of one number by parabolas: "brent".

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
    """Minimizes a function of one number by intervals: "golden".

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


def _root(
    name: str,
    F: Callable[..., Any],
    xin: Any,
    iter: int | None,
    maxiter: int | None,
    f_tol: float | None,
    line_search: str | None,
    callback: Callable[..., None] | None,
    **options: Any,
) -> Any:
    if line_search != "armijo":
        raise ArgumentError(
            f'{name}: line_search must be "armijo", got {line_search!r}'
        )
    most = maxiter if iter is None else iter
    given = {"fatol": f_tol if iter is None else 0.0, "maxiter": most, **options}
    method = {"newton_krylov": "krylov"}.get(name, name)
    found = root(F, xin, method=method, options=given, callback=callback)
    return found.x


@_root_docs
def broyden1(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's first formula for the Jacobian.

    Example:
      >>> broyden1(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root("broyden1", F, xin, iter, maxiter, f_tol, line_search, callback)


@_root_docs
def broyden2(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's second formula, for the inverse Jacobian.

    Example:
      >>> broyden2(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root("broyden2", F, xin, iter, maxiter, f_tol, line_search, callback)


@_root_docs
def anderson(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    w0: float = 0.01,
    M: int = 5,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by mixing the last steps: Anderson's method.

    Args:
      w0: the regularization.
      M: the number of remembered steps.

    Example:
      >>> anderson(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "anderson",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        line_search,
        callback,
        alpha=alpha,
        w0=w0,
        M=M,
    )


@_root_docs
def diagbroyden(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's formula for a diagonal Jacobian.

    Example:
      >>> diagbroyden(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "diagbroyden",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def linearmixing(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by adding a multiple of the values.

    Example:
      >>> linearmixing(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "linearmixing",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def excitingmixing(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    alphamax: float = 1.0,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by a factor of each value that grows while its sign stays.

    Args:
      alphamax: the largest factor.

    Example:
      >>> excitingmixing(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "excitingmixing",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        line_search,
        callback,
        alpha=alpha,
        alphamax=alphamax,
    )


@_root_docs
def newton_krylov(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    inner_maxiter: int = 20,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Newton's method, whose equations GMRES solves.

    Args:
      inner_maxiter: the dimension of the Krylov space.

    Example:
      >>> newton_krylov(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "newton_krylov",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        line_search,
        callback,
        inner_maxiter=inner_maxiter,
    )
