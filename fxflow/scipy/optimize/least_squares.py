"""Least squares: nonlinear, linear, with bounds; fits of curves with their covariance.

One method, Levenberg's and Marquardt's with bounds, solves all of them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.linalg import cholesky, solve_triangular
from fxflow.scipy.optimize._active_set import not_negative
from fxflow.scipy.optimize._levenberg_marquardt import levenberg_marquardt
from fxflow.scipy.optimize._losses import LOSSES, Model
from fxflow.scipy.optimize._problems import (
    at_solution,
    is_traced,
    listed,
    report,
    vector_of,
    watching,
    within,
)
from fxflow.scipy.optimize.constraints import Bounds, bounds_of
from fxflow.scipy.optimize.results import LeastSquaresResults
from fxflow.transforms.grad import jacfwd

_METHODS = ("trf", "dogbox", "lm")


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-math.inf, math.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: ArrayLike = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: Mapping[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    callback: Callable[..., None] | None = None,
    workers: Any = None,
) -> LeastSquaresResults:
    """Minimizes a sum of squares, or of robust losses of squares, within bounds.

    The solution has an implicit derivative with respect to `args`, what `fun` closes
    over, and active bounds: see `optim.implicit`. It does not depend on `x0`.

    Args:
      fun: called as `fun(x, *args, **kwargs)`; returns the residuals, float[m].
      x0: the initial guess: float[n], a list of numbers, or a pytree of arrays.
      jac: function that returns the Jacobian, float[m, n]; SciPy's words mean to
        compute it by automatic differentiation.
      bounds: a pair of lower and upper bounds, each float[n] or a number; or `Bounds`.
      method: "trf", "dogbox" or "lm". All stand for one method, Levenberg's and
        Marquardt's with projections; "lm" takes no bounds and needs m ≥ n.
      ftol: the relative decrease of the cost at which to stop; None for 0.
      xtol: the relative length of a step at which to stop; None for 0.
      gtol: the size of the gradient at which to stop; None for 0. Tolerances are at
        least a few rounding errors.
      x_scale: float[n] or a number, the units of variables; "jac" or None for norms of
        the Jacobian.
      loss: "linear", "soft_l1", "huber", "cauchy" or "arctan"; or a function of
        z = (f / f_scale)², float[m], that returns float[3, m]: values and two
        derivatives.
      f_scale: the residual beyond which a robust loss grows more slowly.
      diff_step: has no effect: derivatives are exact.
      tr_solver: has no effect: each step is solved by a QR factorization.
      tr_options: likewise.
      jac_sparsity: has no effect: the Jacobian is dense.
      max_nfev: the maximum number of calls; None is 100 n.
      verbose: has no effect: nothing is printed.
      args: extra arguments.
      kwargs: extra keyword arguments.
      callback: called on the host with the point after each iteration, for its side
        effects (see `debug.callback`); it cannot stop the program.
      workers: has no effect: there are no differences to compute in parallel.

    Returns:
      A `LeastSquaresResults`.

    Raises:
      ArgumentError: unknown method or loss, "lm" has bounds, a robust loss or fewer
        residuals than variables, a lower bound is above an upper one, or a known start
        is outside of the bounds.
      ShapeError: the residuals are not a vector, or the other shapes are incompatible.

    Special cases:
      A traced start outside the bounds is moved to the nearest point within. Under
      `checkify`, raises if the solver does not converge.

    Example:
      >>> def residuals(x):
      ...     return fnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
      >>> least_squares(residuals, fnp.array([2.0, 2.0])).x.round(3)
      Array([1., 1.], dtype=float32)

    Source: `scipy.optimize.least_squares`; Moré 1978; Nielsen 1999 (the damping).
    """
    name = "least_squares"
    if method not in _METHODS:
        raise ArgumentError(
            f'{name}: method must be "trf", "dogbox" or "lm", got {method!r}'
        )
    if not callable(loss) and loss not in LOSSES:
        raise ArgumentError(
            f"{name}: loss must be a function or one of {', '.join(LOSSES)}, got "
            f"{loss!r}"
        )
    x, unravel = vector_of(name, x0)
    dtype, n = x.aval.dtype, x.aval.size
    named = dict(kwargs or {})
    pair = bounds if isinstance(bounds, Bounds) else _pair(name, bounds)
    low, high = bounds_of(name, pair, x, x0)
    rule = loss if callable(loss) else LOSSES[loss]
    _require_within(name, "x0", x, low, high)

    def residuals(x: Any) -> Any:
        values = fnp.asarray(fun(unravel(x), *args, **named))
        if values.ndim > 1 or dtypes.is_complex(values.dtype):
            raise ShapeError(f"{name}: fun must return float[m], got {values.aval}")
        return convert(fnp.atleast_1d(values), dtype)

    if callable(jac):

        def jacobian(x: Any) -> Any:
            matrix = fnp.asarray(jac(unravel(x), *args, **named), dtype)
            return fnp.reshape(matrix, (-1, n))

    elif jac in ("2-point", "3-point", "cs", None):
        jacobian = jacfwd(residuals)
    else:
        raise ArgumentError(f"{name}: jac must be a function, got {jac!r}")
    model = Model(residuals, jacobian, rule, fnp.asarray(f_scale, dtype))
    if method == "lm":
        m = model.residuals(x).size
        infinite = _are_infinite(pair)
        if rule is not None or not infinite or m < n:
            raise ArgumentError(
                f'{name}: method "lm" takes no bounds, a linear loss and at least as '
                f"many residuals as variables, got {m} and {n}: use trf"
            )
    if isinstance(x_scale, str) and x_scale != "jac":
        raise ArgumentError(
            f'{name}: x_scale must be numbers or "jac", got {x_scale!r}'
        )
    scales = None
    if x_scale is not None and not isinstance(x_scale, str):
        scales = fnp.broadcast_to(fnp.asarray(x_scale, dtype), (n,))
    tiny = 4 * float(fnp.finfo(dtype).eps)

    def solver() -> Any:
        end = levenberg_marquardt(
            model.both,
            model.value,
            fnp.clip(x, low, high),
            low,
            high,
            ftol=max(ftol or 0, tiny),
            xtol=max(xtol or 0, tiny),
            gtol=gtol or 0,
            x_scale=scales,
            maxcalls=100 * n if max_nfev is None else max_nfev,
            watched=watching(name, callback, unravel),
        )
        return end.x, (end.status, end.calls, end.slopes)

    def conditions(x: Any) -> Any:
        return within(x, model.slope(x), low, high)

    found, (status, calls, slopes) = at_solution(solver, conditions, x)
    report(name, status > 0, status)
    values = model.residuals(found)
    cost, _, scaled = model.both(found)
    slope = model.slope(found)
    mask = fnp.where(found <= low, -1, fnp.where(found >= high, 1, 0))
    return LeastSquaresResults(
        x=unravel(found),
        cost=cost,
        fun=values,
        jac=scaled,
        grad=slope,
        optimality=fnp.max(fnp.abs(within(found, slope, low, high)), initial=0),
        active_mask=mask.astype(dtypes.int32),
        nfev=calls,
        njev=slopes,
        status=status,
        success=status > 0,
    )


def _pair(name: str, bounds: Any) -> Bounds:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ArgumentError(
            f"{name}: bounds must be a pair of lower and upper bounds, or Bounds, got "
            f"{bounds!r}"
        )
    return Bounds(bounds[0], bounds[1])


def _are_infinite(bounds: Bounds) -> bool:
    """Returns whether there are no bounds, as far as is known when tracing."""
    return all(
        not isinstance(v, Tracer) and bool(np.all(np.asarray(v) == infinity))
        for side, infinity in ((bounds.lb, -math.inf), (bounds.ub, math.inf))
        for v in tree.leaves(side)
    )


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] | Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-8,
    xtol: float = 1.49012e-8,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: ArrayLike | None = None,
) -> tuple[Any, ...]:
    """Minimizes a sum of squares, as `least_squares` does without bounds.

    The solution has an implicit derivative: see `least_squares`.

    Args:
      func: called as `func(x, *args)`; returns the residuals, float[m], m ≥ n.
      x0: the initial guess: float[n] or a list of numbers.
      args: extra arguments of the function: a tuple, or a single one.
      Dfun: the Jacobian, float[m, n], called as `func` is; None means to compute it.
      full_output: whether to return the covariance and a `LeastSquaresResults`, too.
      col_deriv: whether the columns of what `Dfun` returns belong to residuals.
      ftol: the relative decrease of the sum at which to stop.
      xtol: the relative length of a step at which to stop.
      gtol: the size of the gradient at which to stop.
      maxfev: the maximum number of calls; 0 means 100 n.
      epsfcn: has no effect: derivatives are exact.
      factor: has no effect: the first step is damped, not bounded.
      diag: float[n], the reciprocal units of variables; None means norms of the
        Jacobian.

    Returns:
      The solution and the status; with `full_output` the solution, the inverse of JᵀJ,
      which is inf if the residuals do not determine it, a `LeastSquaresResults`, and
      the status: 1 to 4 if it converged.

    Raises:
      ArgumentError: there are less residuals than variables.

    Example:
      >>> leastsq(lambda x: fnp.stack([x[0] - 3, 2 * (x[1] - x[0])]), [0.0, 0.0])[0]
      Array([3., 3.], dtype=float32)

    Source: `scipy.optimize.leastsq`.
    """
    more = args if isinstance(args, tuple) else (args,)
    jac: Any = "2-point"
    if Dfun is not None:

        def jac(x: Any, *args: Any) -> Any:
            matrix = fnp.asarray(Dfun(x, *args))
            return fnp.transpose(matrix) if col_deriv else matrix

    found = least_squares(
        func,
        x0,
        jac,
        method="lm",
        ftol=ftol,
        xtol=xtol,
        gtol=gtol,
        max_nfev=maxfev or None,
        args=more,
        x_scale=None if diag is None else 1 / fnp.asarray(diag),
    )
    if not full_output:
        return found.x, found.status
    covariance, known = _covariance(found.jac)
    covariance = fnp.where(known, covariance, fnp.inf)
    return found.x, covariance, found, found.status


# -- curves ----------------------------------------------------------------------------


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: ArrayLike,
    p0: Any = None,
    sigma: ArrayLike | None = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-math.inf, math.inf),
    method: str | None = None,
    jac: Any = None,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Fits the parameters of a curve to data, by least squares.

    Parameters and covariance have derivatives with respect to the data, `sigma`, and
    what `f` closes over.

    Args:
      f: the curve, called as `f(xdata, *parameters)`.
      xdata: what `f` takes: an array, a list of numbers, or any pytree of arrays.
      ydata: float[m]: what it should return; another shape is flattened.
      p0: float[n]: the initial guess, within the bounds; None is 1 for each parameter
        of `f`, or a point within the bounds.
      sigma: float[m], the standard deviations of `ydata`, or float[m, m], their
        covariance; None means equal ones.
      absolute_sigma: whether `sigma` is in the units of `ydata`; else the covariance is
        scaled so that the residuals have the variance that they show.
      check_finite: whether known data must be finite; None means True without a
        `nan_policy`. Traced data is not checked: it gives nan.
      bounds: see `least_squares`.
      method: see `least_squares`.
      jac: derivatives of `f` with respect to the parameters, float[m, n], called as `f`
        is; or None.
      full_output: whether to return the `LeastSquaresResults`, too.
      nan_policy: "omit" leaves out observations that are nan, in `ydata` or, if it has
        an axis of their number, in `xdata`; "raise" refuses known ones; None.
      **kwargs: extra keyword arguments of `least_squares`; `maxfev` is `max_nfev`.

    Returns:
      The parameters, float[n], and their covariance, float[n, n], which is inf if the
      data does not determine them. Nan if the fit did not converge. With `full_output`
      also a `LeastSquaresResults`.

    Raises:
      ArgumentError: the number of parameters is not known: `f` takes a variable number,
        and `p0` is None; known data is not finite; there is no such policy; or as
        `least_squares`.
      ShapeError: the shape of the data is incompatible.

    Example:
      >>> x = fnp.linspace(0.0, 4.0, 9)
      >>> line = lambda x, a, b: a * x + b
      >>> found, covariance = curve_fit(line, x, 2 * x + 1)
      >>> found.round(3)
      Array([2., 1.], dtype=float32)

    Source: `scipy.optimize.curve_fit`.
    """
    name = "curve_fit"
    _check_data(name, xdata, ydata, check_finite, nan_policy)
    xdata = _numbers(xdata)
    (y,) = promote_inexact(name, listed(ydata))
    if not y.size:
        raise ShapeError(f"{name}: ydata must have elements, got {y.aval}")
    if dtypes.is_complex(y.dtype):
        raise DtypeError(f"{name}: ydata must be real, got {y.aval}")
    y = fnp.ravel(y)
    m = y.size
    pair = bounds if isinstance(bounds, Bounds) else _pair(name, bounds)
    if p0 is None:
        p0 = _guess(name, f, pair, y)
    start = fnp.atleast_1d(
        fnp.stack([fnp.asarray(p) for p in p0])
        if isinstance(p0, list | tuple)
        else fnp.asarray(p0)
    )
    start = convert(start, fnp.promote_types(fnp.result_type(start, y), "float32"))
    n = start.size
    if m:
        _require_within(name, "p0", start, *bounds_of(name, pair, start, start))
    kept = _kept(xdata, y) if nan_policy == "omit" else None
    if kept is not None:
        y = fnp.where(kept, y, 0)
        xdata = _without_nan(xdata, kept)
    whiten = _whitening(name, sigma, y, kept)
    count = m if kept is None else fnp.sum(kept)

    def residuals(p: Any) -> Any:
        values = fnp.ravel(fnp.asarray(f(xdata, *(p[i] for i in range(n)))))
        if values.shape != (m,):
            raise ShapeError(
                f"{name}: f must return {m} values as ydata has, got {values.aval}"
            )
        return whiten(values - y)

    slopes: Any = "2-point"
    if callable(jac):

        def slopes(p: Any) -> Any:
            matrix = jac(xdata, *(p[i] for i in range(n)))
            return whiten(fnp.asarray(matrix))

    if "maxfev" in kwargs:
        kwargs["max_nfev"] = kwargs.pop("maxfev")
    if method is None:
        method = "trf"
    found = least_squares(residuals, start, slopes, pair, method, **kwargs)
    covariance, known = _covariance(found.jac)
    if not absolute_sigma:
        more = fnp.asarray(count - n, start.dtype)
        spread = 2 * found.cost / fnp.where(more > 0, more, 1)
        covariance = covariance * fnp.where(more > 0, spread, math.inf)
    covariance = fnp.where(known, covariance, math.inf)
    lost = fnp.where(found.success, 0, math.nan).astype(start.dtype)
    out = found.x + lost, covariance + lost
    return (*out, found) if full_output else out


def _guess(name: str, f: Callable[..., Any], bounds: Bounds, y: Array) -> Any:
    """Returns a first point of as many parameters as the curve has."""
    kinds = list(inspect.signature(f).parameters.values())
    if any(k.kind is k.VAR_POSITIONAL for k in kinds):
        raise ArgumentError(
            f"{name}: f takes any number of parameters: pass p0, where to begin"
        )
    given = [k for k in kinds if k.kind in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD)]
    n = len(given) - 1
    if n < 1:
        raise ArgumentError(f"{name}: f must take xdata and at least one parameter")
    low, high = bounds_of(name, bounds, fnp.ones(n, y.dtype), None)
    # SciPy's: the middle of two bounds, 1 from a single one.
    middle = (low + high) / 2
    one_sided = fnp.where(fnp.isfinite(low), low + 1, high - 1)
    out = fnp.where(fnp.isfinite(low) & fnp.isfinite(high), middle, one_sided)
    return fnp.where(fnp.isfinite(low) | fnp.isfinite(high), out, 1)


def _covariance(matrix: Any) -> tuple[Any, Any]:
    """Returns the inverse of JᵀJ, and whether the data determines it."""
    m, n = matrix.shape
    _, r = fnp.linalg.qr(matrix) if m >= n else (None, fnp.zeros((n, n), matrix.dtype))
    tiny = float(fnp.finfo(matrix.dtype).eps) * max(m, n)
    sizes = fnp.sqrt(fnp.sum(r * r, 0))
    known = fnp.all(fnp.abs(fnp.diag(r)) > tiny * sizes)
    eye = fnp.eye(n, dtype=r.dtype)
    inverse = solve_triangular(fnp.where(known, r, eye), eye)
    covariance = inverse @ inverse.T
    return covariance, known


def _numbers(xdata: Any) -> Any:
    """Returns a list of numbers as an array, and other data as it is."""
    numbers = isinstance(xdata, list | tuple) and all(
        isinstance(v, int | float) for v in tree.leaves(xdata)
    )
    return fnp.asarray(xdata) if numbers else xdata


def _floats(xdata: Any) -> list[Any]:
    leaves = [v for v in tree.leaves(xdata) if is_arraylike(v)]
    return [v for v in map(fnp.asarray, leaves) if dtypes.is_floating(v.dtype)]


def _check_data(
    name: str, xdata: Any, ydata: Any, check_finite: Any, nan_policy: Any
) -> None:
    if nan_policy not in (None, "omit", "raise"):
        raise ArgumentError(
            f'{name}: nan_policy must be None, "omit" or "raise", got {nan_policy!r}'
        )
    if check_finite or (check_finite is None and nan_policy is None):
        _check(name, np.isfinite, "finite", xdata, ydata)
    if nan_policy == "raise":
        _check(name, lambda v: ~np.isnan(v), "without nan", xdata, ydata)


def _check(name: str, test: Any, what: str, xdata: Any, ydata: Any) -> None:
    """Raises for data that is known and does not pass a test."""
    for which, value in (("xdata", xdata), ("ydata", ydata)):
        leaves = [v for v in tree.leaves(value) if not is_traced(v)]
        arrays = [np.asarray(v) for v in leaves if is_arraylike(v)]
        for v in arrays:
            if np.issubdtype(v.dtype, np.inexact) and not np.all(test(v)):
                raise ArgumentError(
                    f"{name}: {which} must be {what}: pass check_finite=False, or "
                    'nan_policy="omit" to leave nan out'
                )


def _require_within(name: str, which: str, x: Any, low: Any, high: Any) -> None:
    """Raises if a start that is known is outside of the bounds."""
    if is_traced(x, low, high):
        return
    at, lower, upper = (np.asarray(v) for v in (x, low, high))
    if np.any((at < lower) | (at > upper)):
        raise ArgumentError(
            f"{name}: {which} must be within the bounds, got {at} for lower bounds "
            f"{lower} and upper bounds {upper}"
        )


def _kept(xdata: Any, y: Array) -> Array:
    """Returns which observations have no nan, bool[m]."""
    kept = ~fnp.isnan(y)
    for v in _floats(xdata):
        if v.ndim and v.shape[-1] == y.size:
            kept &= ~fnp.any(fnp.isnan(v), axis=tuple(range(v.ndim - 1)))
    return kept


def _without_nan(xdata: Any, kept: Array) -> Any:
    """Returns data with 1 for nan, such that derivatives are finite."""

    def filled(v: Any) -> Any:
        x = fnp.asarray(v)
        fits = dtypes.is_floating(x.dtype) and x.ndim and x.shape[-1] == kept.size
        return fnp.where(kept, x, 1) if fits else v

    return tree.map(lambda v: filled(v) if is_arraylike(v) else v, xdata)


def _whitening(
    name: str, sigma: Any, y: Array, kept: Array | None
) -> Callable[[Any], Any]:
    """Returns what divides rows by their standard deviations, 0 if not kept."""
    if kept is not None:
        inner = _whitening(name, _at_kept(sigma, kept), y, None)

        def masked(v: Any) -> Any:
            rows = fnp.reshape(kept, (-1, *(1,) * (v.ndim - 1)))
            return inner(fnp.where(rows, v, 0))

        return masked
    if sigma is None:
        return lambda v: v
    deviations = fnp.asarray(sigma, y.dtype)
    if deviations.size == 1:
        return lambda v: v / fnp.reshape(deviations, ())
    if deviations.shape == (y.size,):
        return lambda v: v / fnp.reshape(deviations, (-1, *(1,) * (v.ndim - 1)))
    if deviations.shape == (y.size, y.size):
        factor = cholesky(deviations, lower=True)
        return lambda v: solve_triangular(factor, v, lower=True)
    raise ShapeError(
        f"{name}: sigma must be float[{y.size}] or float[{y.size}, {y.size}], got "
        f"{deviations.aval}"
    )


def _at_kept(sigma: Any, kept: Array) -> Any:
    """Returns deviations or covariances of what is kept, and 1 elsewhere."""
    if sigma is None:
        return None
    deviations = fnp.asarray(sigma)
    if deviations.shape == kept.shape:
        return fnp.where(kept, deviations, 1)
    if deviations.ndim == 2:
        both = kept[:, None] & kept
        return fnp.where(both, deviations, fnp.eye(kept.size, dtype=deviations.dtype))
    return deviations


# -- linear least squares --------------------------------------------------------------


def lsq_linear(
    A: ArrayLike,
    b: ArrayLike,
    bounds: Any = (-math.inf, math.inf),
    method: str = "trf",
    tol: float = 1e-10,
    lsq_solver: str | None = None,
    lsmr_tol: float | str | None = None,
    max_iter: int | None = None,
    verbose: int = 0,
    *,
    lsmr_maxiter: int | None = None,
) -> LeastSquaresResults:
    """Solves a linear least-squares problem within bounds.

    The solution has derivatives with respect to all arguments.

    Args:
      A: float[m, n].
      b: float[m].
      bounds: see `least_squares`.
      method: "trf" or "bvls"; both stand for one method.
      tol: the relative decrease of the cost at which to stop.
      lsq_solver: has no effect: each step is solved by a QR factorization.
      lsmr_tol: likewise.
      max_iter: the maximum number of iterations; None is 100 n.
      verbose: has no effect: nothing is printed.
      lsmr_maxiter: has no effect, as `lsq_solver`.

    Returns:
      A `LeastSquaresResults`.

    Raises:
      ArgumentError: unknown method, or a lower bound is above an upper one.
      ShapeError: the shapes are incompatible.

    Example:
      >>> A = fnp.array([[1.0, 0.0], [1.0, 1.0]])
      >>> lsq_linear(A, fnp.array([2.0, 1.0]), bounds=(0.0, 1.5)).x
      Array([1.5, 0. ], dtype=float32)

    Source: `scipy.optimize.lsq_linear`.
    """
    if method not in ("trf", "bvls"):
        raise ArgumentError(
            f'lsq_linear: method must be "trf" or "bvls", got {method!r}'
        )
    matrix, right = _system("lsq_linear", A, b)
    return least_squares(
        lambda x: matrix @ x - right,
        fnp.zeros(matrix.shape[1], matrix.dtype),
        lambda x: matrix,
        bounds,
        ftol=tol,
        xtol=tol,
        gtol=0,
        max_nfev=max_iter,
    )


def nnls(
    A: ArrayLike, b: ArrayLike, maxiter: int | None = None, *, atol: float | None = None
) -> tuple[Array, Array]:
    """Solves a linear least-squares problem with unknowns that are not negative.

    The solution has derivatives with respect to all arguments. `optim.nnls` takes a
    fixed number of cheap steps instead.

    Args:
      A: float[m, n].
      b: float[m].
      maxiter: the maximum number of iterations; None is 100 n.
      atol: has no effect: the solution is exact up to rounding errors.

    Returns:
      x, float[n], and the norm of A x - b.

    Raises:
      ShapeError: the shapes are incompatible.

    Special cases:
      nan if the solver does not converge.

    Example:
      >>> A = fnp.array([[1.0, 0.0], [1.0, 1.0]])
      >>> nnls(A, fnp.array([2.0, 1.0]))[0]
      Array([1.5, 0. ], dtype=float32)

    Source: `scipy.optimize.nnls`.
    """
    matrix, right = _system("nnls", A, b)
    n, dtype = matrix.shape[1], matrix.dtype
    limit = 100 * n if maxiter is None else maxiter
    if not n:
        return fnp.zeros(0, dtype), _length(right)

    def solver() -> Any:
        a, y = lax.stop_gradient(matrix), lax.stop_gradient(right)
        units, unit = _norms(a), _norms(y)
        a, y = a / units, y / unit
        x, good, _ = not_negative(a, y, limit)
        tiny = 4 * float(fnp.finfo(dtype).eps)

        def improved(state: Any) -> Any:
            end = levenberg_marquardt(
                lambda x: _linear_model(a, y, x),
                lambda x: _linear_model(a, y, x)[:2],
                state[0],
                fnp.zeros_like(x),
                fnp.full_like(x, math.inf),
                ftol=tiny,
                xtol=tiny,
                gtol=0,
                x_scale=None,
                maxcalls=limit,
            )
            return end.x, end.status

        # What rounding has spoiled is improved by the general method.
        first = fnp.where(good, 1, -2).astype(dtypes.int32)
        x, status = lax.while_loop(lambda s: s[1] == -2, improved, (x, first))
        return x * (unit / units), status

    def conditions(x: Any) -> Any:
        return within(x, matrix.T @ (matrix @ x - right), 0, math.inf)

    found, status = at_solution(solver, conditions, fnp.zeros(n, dtype))
    report("nnls", status > 0, status)
    lost = fnp.where(status > 0, 0, math.nan).astype(dtype)
    values = fnp.sum(matrix * found, axis=1) - right
    return found + lost, _length(values) + lost


def _norms(x: Any) -> Any:
    """Returns the norms of columns, and 1 for 0."""
    largest = fnp.max(fnp.abs(x), axis=0, initial=0)
    largest = fnp.where((largest > 0) & fnp.isfinite(largest), largest, 1)
    norms: Any = largest * fnp.sqrt(fnp.sum((x / largest) ** 2, axis=0))
    return fnp.where(norms > 0, norms, 1)


def _length(x: Any) -> Any:
    """Returns the norm of a vector, whose derivative at 0 is 0."""
    square = fnp.sum(x * x)
    return fnp.where(square > 0, fnp.sqrt(fnp.where(square > 0, square, 1)), 0)


def _linear_model(matrix: Any, right: Any, x: Any) -> Any:
    values = matrix @ x - right
    return values @ values / 2, values, matrix


def _system(name: str, A: Any, b: Any) -> tuple[Array, Array]:
    matrix, right = promote_inexact(name, listed(A), listed(b))
    dtype = fnp.promote_types(matrix.dtype, "float32")
    if (
        matrix.ndim != 2
        or right.shape != (matrix.shape[0],)
        or dtypes.is_complex(dtype)
    ):
        raise ShapeError(
            f"{name}: A must be float[m, n] and b float[m], got {typeof(matrix)} and "
            f"{typeof(right)}"
        )
    return (
        lax.convert_element_type(matrix, dtype),
        lax.convert_element_type(right, dtype),
    )
