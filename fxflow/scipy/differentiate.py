"""Derivatives by finite differences, with estimates of their errors.

For functions that `fxflow.grad` cannot trace through, such as callbacks, or to check
what it returns: the exact derivative is `grad`, `jacfwd` or `hessian`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy._callbacks import showing

__all__ = ["derivative", "hessian", "jacobian"]


class DerivativeResult(NamedTuple):
    """What `derivative` and `jacobian` return.

    Attributes:
      success: bool: whether the error is small enough.
      status: int: 0 it is; -1 the error has begun to grow; -2 too many iterations; -3 a
        value is not finite; 1 (for callbacks) the search goes on.
      df: float: the derivative.
      error: float: an estimate of its error.
      nit: int: the number of iterations.
      nfev: int: the number of points at which the function was evaluated.
      x: float: where.
    """

    success: Array
    status: Array
    df: Array
    error: Array
    nit: Array
    nfev: Array
    x: Array


class HessianResult(NamedTuple):
    """What `hessian` returns.

    Attributes:
      success: bool: whether the error is small enough.
      status: int: see `DerivativeResult`.
      ddf: float[n, n, ...]: the second derivatives.
      error: float: an estimate of their errors.
      nit: int: the number of iterations of the outer derivative.
      x: float: where.
    """

    success: Array
    status: Array
    ddf: Array
    error: Array
    nit: Array
    x: Array


def _weights(places: Any) -> Any:
    """Returns the weights of values at places whose sum is the derivative at 0."""
    powers = np.arange(len(places))
    right = (powers == 1).astype(float)
    return np.linalg.solve(places[None, :] ** powers[:, None], right)


def _tolerances(name: str, given: Any, dtype: Any) -> tuple[float, float]:
    tolerances = dict(given or {})
    if set(tolerances) - {"atol", "rtol"}:
        raise ArgumentError(
            f"{name}: tolerances are atol and rtol, got {', '.join(tolerances)}"
        )
    info = np.finfo(dtype)
    atol, rtol = tolerances.get("atol"), tolerances.get("rtol")
    atol = float(info.smallest_normal) if atol is None else atol
    rtol = float(info.eps) ** 0.5 if rtol is None else rtol
    if atol < 0 or rtol < 0:
        raise ArgumentError(f"{name}: tolerances must not be negative, got {given}")
    return atol, rtol


def _searched(
    name: str,
    function: Callable[[Array], Array],
    x: Array,
    tolerances: Any,
    maxiter: int,
    order: int,
    initial_step: ArrayLike,
    step_factor: float,
    step_direction: ArrayLike,
    callback: Callable[[DerivativeResult], Any] | None = None,
) -> tuple[Array, ...]:
    """Returns derivative, error, status, iterations and points of each element.

    Args:
      name: of the function, for messages.
      function: elementwise: of float[k, ...], with x's shape after the first axis.
      x: float[...].
      tolerances: see `derivative`, like the others.
      maxiter: the maximum number of iterations.
      order: order of the formula: even.
      initial_step: the first and longest step.
      step_factor: by which steps are divided.
      step_direction: -1, 0 or 1.
      callback: likewise.
    """
    shown = showing(name, callback)
    maxiter = natural(name, "maxiter", maxiter)
    order = natural(name, "order", order, 2)
    if order % 2:
        raise ArgumentError(f"{name}: order must be even, got {order}")
    if not step_factor > 1:
        raise ArgumentError(f"{name}: step_factor must be above 1, got {step_factor}")
    atol, rtol = _tolerances(name, tolerances, x.dtype)
    side = fnp.broadcast_to(fnp.sign(fnp.asarray(step_direction, x.dtype)), x.shape)
    # Distances in the first step: 1, 1/c, … for both sides, or on one with √c.
    half = order // 2
    central = float(step_factor) ** -np.arange(half)
    central = np.concatenate([-central, [0.0], central[::-1]])
    single = np.concatenate([[0.0], float(step_factor) ** (-np.arange(order) / 2)])
    tables = [
        (fnp.asarray(places, x.dtype), fnp.asarray(_weights(places), x.dtype))
        for places in (central, single)
    ]
    extra = (1,) * x.ndim
    both = side == 0
    places, weights = (
        fnp.where(both, fnp.reshape(p, (-1, *extra)), fnp.reshape(q, (-1, *extra)) * s)
        for p, q, s in (
            (tables[0][0], tables[1][0], side),
            (tables[0][1], tables[1][1], side),
        )
    )

    def differences(h: Array) -> tuple[Array, Array]:
        at = x + places * h
        y = function(at)
        # The difference from the value at x, which has weights whose sum is 0.
        middle = fnp.where(both, y[half], y[0])
        out = fnp.sum(weights * (y - middle), 0) / h
        return out, fnp.all(fnp.isfinite(y), 0)

    def step(s: Any) -> Any:
        df, error, h, steps, status = s
        new, finite = differences(h)
        now = fnp.where(steps == 0, fnp.inf, fnp.abs(new - df))
        small = now <= atol + rtol * fnp.abs(new)
        grows = (steps > 1) & (now > 10 * error)
        code = fnp.where(grows, -1, 1)
        code = fnp.where(small, 0, code)
        code = fnp.where(finite, code, -3).astype(dtypes.int32)
        running = status == 1
        take = running & ~grows
        pick: Any = lambda new, old: fnp.where(take, new, old)
        return watched(
            (
                pick(new, df),
                pick(now, error),
                fnp.where(running, h / step_factor, h),
                fnp.where(running, steps + 1, steps),
                fnp.where(running, code, status),
            )
        )

    def watched(s: Any) -> Any:
        if shown is not None:
            df, error, _, steps, status = s
            calls = 1 + order * steps
            shown(DerivativeResult(status == 0, status, df, error, steps, calls, x))
        return s

    h = fnp.broadcast_to(fnp.asarray(initial_step, x.dtype), x.shape)
    zero = fnp.zeros(x.shape, dtypes.int32)
    start = (
        fnp.full_like(x, fnp.nan),
        fnp.full_like(x, fnp.inf),
        h,
        zero,
        zero + 1,
    )
    df, error, _, steps, status = lax.while_loop(
        lambda s: fnp.any((s[4] == 1) & (s[3] < maxiter)), step, watched(start)
    )
    status = fnp.where(status == 1, -2, status)
    return df, error, status, steps, 1 + order * steps


def derivative(
    f: Callable[..., Any],
    x: ArrayLike,
    *,
    args: tuple[Any, ...] = (),
    tolerances: Mapping[str, float] | None = None,
    maxiter: int = 10,
    order: int = 8,
    initial_step: ArrayLike = 0.5,
    step_factor: float = 2.0,
    step_direction: ArrayLike = 0,
    preserve_shape: bool = False,
    callback: Callable[[DerivativeResult], Any] | None = None,
) -> DerivativeResult:
    """Returns the derivative of an elementwise function by finite differences.

    The step is divided until two formulas of the given order agree, or differ more than
    before. The exact derivative, of any function of fxflow, is `grad`.

    Args:
      f: called as `f(x, *args)` with float[k, ...]; returns such an array.
      x: float[...].
      args: extra arguments, which broadcast with x.
      tolerances: `atol` and `rtol`: the absolute and relative error to stop at (the
        least normal number, √ε).
      maxiter: the maximum number of iterations.
      order: order of the formula, even.
      initial_step: float[...]: the first step, the longest one.
      step_factor: by which it is divided.
      step_direction: int[...]: the sides on which f is evaluated: -1 below x, 1 above
        x, 0 both.
      preserve_shape: whether f is called with float[..., k], and with `args` of the
        shape [..., 1], for x, initial_step and `args` of the broadcast shape [...].
      callback: called on the host with a `DerivativeResult` of what is found so far,
        before the first iteration and after each, for its side effects (see
        `debug.callback`); it cannot stop the search.

    Returns:
      A `DerivativeResult`, each field of the broadcast shape.

    Raises:
      ArgumentError: a number is out of range, or the tolerance is unknown.
      DtypeError: x is complex.
      ShapeError: f returns the wrong shape.

    Example:
      >>> found = derivative(fnp.exp, fnp.array([0.0, 1.0]))
      >>> found.df.round(2), bool(found.success.all())
      (Array([1.  , 2.72], dtype=float32), True)

    Source: `scipy.differentiate.derivative`.
    """
    name = "derivative"
    more = args if isinstance(args, tuple) else (args,)
    (point,) = promote_inexact(name, fnp.asarray(x))
    if dtypes.is_complex(point.dtype):
        raise DtypeError(f"{name}: x must be real, got {point.aval}")
    dtype = fnp.promote_types(point.dtype, "float32")
    extra = [fnp.asarray(v) for v in more]
    sizes = [fnp.shape(v) for v in (initial_step, step_direction)]
    shape = fnp.broadcast_shapes(point.shape, *(v.shape for v in extra), *sizes)
    point = fnp.broadcast_to(convert(point, dtype), shape)
    extra = [fnp.broadcast_to(v, shape) for v in extra]
    if preserve_shape:
        extra = [v[..., None] for v in extra]

    def function(at: Array) -> Array:
        if preserve_shape:
            at = fnp.moveaxis(at, 0, -1)
        value = fnp.asarray(f(at, *extra))
        if value.shape != at.shape:
            raise ShapeError(
                f"{name}: f must return {at.aval} as it gets, but returns {value.aval}"
            )
        value = value.astype(dtype)
        return fnp.moveaxis(value, -1, 0) if preserve_shape else value

    df, error, status, steps, calls = _searched(
        *(name, function, point, tolerances, maxiter, order),
        *(initial_step, step_factor, step_direction, callback),
    )
    return DerivativeResult(status == 0, status, df, error, steps, calls, point)


def jacobian(
    f: Callable[..., Any],
    x: ArrayLike,
    *,
    tolerances: Mapping[str, float] | None = None,
    maxiter: int = 10,
    order: int = 8,
    initial_step: ArrayLike = 0.5,
    step_factor: float = 2.0,
    step_direction: ArrayLike = 0,
) -> DerivativeResult:
    """Returns the Jacobian of a function by finite differences.

    The exact Jacobian, of any function of fxflow, is `jacfwd` or `jacrev`.

    Args:
      f: called with float[n, ...], vectorized over the dimensions after the first;
        returns float[m, ...], or float[...] for one value.
      x: float[n, ...].
      tolerances: see `derivative`, like the other arguments.
      maxiter: the maximum number of iterations.
      order: order of the formula, even.
      initial_step: float[n, ...] or a number: the first steps.
      step_factor: by which they are divided.
      step_direction: int[n, ...] or a number.

    Returns:
      A `DerivativeResult`, `df` float[m, n, ...].

    Raises:
      ArgumentError: a number is out of range, or the tolerance is unknown.
      DtypeError: x is complex.
      ShapeError: x is a number, or f is not vectorized.

    Example:
      >>> found = jacobian(lambda x: fnp.stack([x[0] * x[1], x[1] ** 2]), [1.0, 2.0])
      >>> found.df.round(2)
      Array([[2., 1.],
             [0., 4.]], dtype=float32)

    Source: `scipy.differentiate.jacobian`.
    """
    return _jacobian(
        *("jacobian", f, x, tolerances, maxiter, order),
        *(initial_step, step_factor, step_direction),
    )


def _jacobian(
    name: str,
    f: Callable[..., Any],
    x: Any,
    tolerances: Any,
    maxiter: int,
    order: int,
    initial_step: Any,
    step_factor: float,
    step_direction: Any,
) -> DerivativeResult:
    (point,) = promote_inexact(name, fnp.asarray(x))
    if dtypes.is_complex(point.dtype):
        raise DtypeError(f"{name}: x must be real, got {point.aval}")
    if not point.ndim:
        raise ShapeError(f"{name}: x must be float[n, ...], got {point.aval}")
    point = convert(point, fnp.promote_types(point.dtype, "float32"))
    n, rest = point.shape[0], point.shape[1:]
    first = fnp.asarray(f(point))
    single = first.ndim == point.ndim - 1
    if first.shape[0 if single else 1 :] != rest:
        raise ShapeError(
            f"{name}: f must return float[m, ...] or float[...] for {point.aval}, got "
            f"{first.aval}"
        )
    m = 1 if single else first.shape[0]
    mask = np.reshape(np.eye(n, dtype=bool), (n, n, *(1,) * len(rest)))

    def function(at: Array) -> Array:
        """Values [k, m, n, ...] where element j is moved as at[k, :, j, ...] says."""
        moved = at[:, 0]  # [k, n, ...]: the new values of each element
        given = fnp.where(mask, moved[:, None], point[:, None])  # [k, n, n, ...]
        given = fnp.moveaxis(given, 1, 0)  # [element, k, moved one, ...]
        y = fnp.asarray(f(given))
        if single:
            y = y[None]
        if y.shape != (m, *given.shape[1:]):
            raise ShapeError(
                f"{name}: f must be vectorized over the dimensions after the first: it "
                f"returns {y.aval} for {given.aval}"
            )
        return fnp.moveaxis(y, 0, 1).astype(point.dtype)

    spread = fnp.broadcast_to(point, (m, *point.shape))
    steps, sides = (
        fnp.broadcast_to(fnp.asarray(v), point.shape)
        for v in (initial_step, step_direction)
    )
    df, error, status, count, calls = _searched(
        *(name, function, spread, tolerances, maxiter, order),
        *(steps, step_factor, sides),
    )
    out = (status, df, error, count, calls)
    status, df, error, count, calls = (v[0] for v in out) if single else out
    return DerivativeResult(status == 0, status, df, error, count, calls, point)


def hessian(
    f: Callable[..., Any],
    x: ArrayLike,
    *,
    tolerances: Mapping[str, float] | None = None,
    maxiter: int = 10,
    order: int = 8,
    initial_step: ArrayLike = 0.5,
    step_factor: float = 2.0,
) -> HessianResult:
    """Returns the Hessian of a function by finite differences of finite differences.

    The exact Hessian, of any function of fxflow, is `fxflow.hessian`.

    Args:
      f: called with float[n, ...], vectorized over the dimensions after the first;
        returns float[...].
      x: float[n, ...].
      tolerances: see `derivative`, like the other arguments; the inner ones are 100
        times smaller.
      maxiter: the maximum number of iterations.
      order: order of the formula, even.
      initial_step: the first step, a number.
      step_factor: by which it is divided.

    Returns:
      A `HessianResult`.

    Raises:
      ArgumentError: a number is out of range, or the tolerance is unknown.
      DtypeError: x is complex.
      ShapeError: x is a number, or f is not vectorized.

    Example:
      >>> found = hessian(lambda x: x[0] ** 2 * x[1], [1.0, 2.0])
      >>> (found.ddf + 0.0).round(1)
      Array([[4., 2.],
             [2., 0.]], dtype=float32)

    Source: `scipy.differentiate.hessian`.
    """
    name = "hessian"
    (point,) = promote_inexact(name, fnp.asarray(x))
    given = dict(tolerances or {})
    atol, rtol = _tolerances(name, given, point.dtype)
    inner = {"atol": atol / 100, "rtol": rtol / 100}
    shared: Any = (maxiter, order, initial_step, step_factor, 0)

    def slope(at: Any) -> Array:
        return _jacobian(name, f, at, inner, *shared).df

    found = _jacobian(name, slope, x, given, *shared)
    return HessianResult(
        found.success, found.status, found.df, found.error, found.nit, found.x
    )


_public(globals(), __all__)
