"""Minimization of smooth functions by quasi-Newton methods, as one compiled loop.

The line search asks for Wolfe's weak conditions, which keep the estimated inverse of
the Hessian positive definite: it doubles a step until it is too long, and then bisects.
Near the minimum, where the decrease is lost in rounding, a small enough slope does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.transforms.grad import value_and_grad

# Armijo's and the curvature's constants (Nocedal and Wright 2006, section 3.1).
_DECREASE, _CURVATURE = 1e-4, 0.9

_METHODS = {
    "bfgs": "bfgs",
    "l-bfgs": "l-bfgs",
    "l-bfgs-b": "l-bfgs",
    "l-bfgs-experimental-do-not-rely-on-this": "l-bfgs",
}
_OPTIONS = {
    "bfgs": {"gtol", "norm", "maxiter", "line_search_maxiter"},
    "l-bfgs": {
        "gtol",
        "ftol",
        "norm",
        "maxiter",
        "maxls",
        "maxcor",
        "maxfun",
        "maxgrad",
    },
}


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Attributes:
      x: float[n]: where the least value was found.
      success: bool: whether the gradient is small enough.
      status: int: 0 converged; 1 too many iterations, or calls; 2 a value that is not
        finite; 3 no better point was found along a line.
      fun: float: the value at x.
      jac: float[n]: the gradient.
      hess_inv: float[n, n]: an estimate of the Hessian's inverse; None of "L-BFGS".
      nfev: int: how often the function was called.
      njev: int: how often the gradient was.
      nit: int: how many iterations were made.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    memory: Any
    calls: Any
    steps: Any
    status: Any


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimizes a function of a vector.

    Args:
      fun: called as `fun(x, *args)`; returns a real number, and has a gradient.
      x0: real array-like[n]: where to begin.
      args: more arguments of the function.
      method: "BFGS", or "L-BFGS" for many variables.
      tol: `gtol`, if the options have none.
      options: `gtol`, how small the gradient is to get (1e-5), in the norm `norm` (of
        order inf); `maxiter` (200 n); for "BFGS" `line_search_maxiter` (30), for
        "L-BFGS" `maxls`, as that, `maxcor`, how many steps are remembered (10), `ftol`,
        the relative decrease to stop at (0), `maxfun` and `maxgrad`, how many calls are
        made at most.

    Returns:
      An `OptimizeResults`, of the float dtype of `x0`.

    Raises:
      ArgumentError: there is no such method or option, or `args` is not a tuple.
      ShapeError: `x0` is not a vector, or the function returns no number.

    Example:
      >>> found = minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2), method="BFGS")
      >>> found.x, bool(found.success)
      (Array([1., 1.], dtype=float32), True)

    Source: `scipy.optimize.minimize`; J. Nocedal and S. Wright, Numerical Optimization,
    2006; the line search: A. Lewis and M. Overton, Nonsmooth Optimization via
    Quasi-Newton Methods, 2013; its end: W. Hager and H. Zhang 2005.
    """
    kind = _METHODS.get(str(method).lower())
    if kind is None:
        raise ArgumentError(
            f'minimize: method must be "BFGS" or "L-BFGS", got {method!r}'
        )
    if not isinstance(args, tuple):
        raise ArgumentError(f"minimize: args must be a tuple, got {args!r}")
    given = dict(options or {})
    unknown = sorted(given.keys() - _OPTIONS[kind])
    if unknown:
        raise ArgumentError(
            f"minimize: {method} has no options {', '.join(unknown)}: there are "
            f"{', '.join(sorted(_OPTIONS[kind]))}"
        )
    (x,) = promote_inexact("minimize", x0)
    if x.aval.ndim != 1 or dtypes.is_complex(x.aval.dtype):
        raise ShapeError(f"minimize: x0 must be a real vector, got {x.aval}")
    x = lax.convert_element_type(x, x.aval.dtype)  # no weak type in a loop
    both = value_and_grad(lambda x: _number(fun(x, *args)))
    n = x.aval.size
    gtol = given.get("gtol", 1e-5 if tol is None else tol)
    searches = given.get("line_search_maxiter", given.get("maxls", 30))
    most = given.get("maxiter")
    most = 200 * n if most is None else most
    bounds = [given.get(name) for name in ("maxfun", "maxgrad")]
    calls = min([math.inf, *(bound for bound in bounds if bound is not None)])
    order = given.get("norm", math.inf)
    update: Any = _BFGS(n) if kind == "bfgs" else _LBFGS(n, given.get("maxcor", 10))

    def is_small(slope: Any) -> Any:
        return fnp.linalg.norm(slope, ord=order) < gtol if n else True

    def more(s: _State) -> Any:
        return s.status < 0

    def step(s: _State) -> _State:
        way = -update.direction(s.memory, s.slope)
        # A direction that does not descend is one of rounding errors.
        way = fnp.where(fnp.dot(way, s.slope) < 0, way, -s.slope)
        t, value, slope, count, found = _line(both, s, way, searches)
        x = s.x + t * way
        memory = update.updated(s.memory, x - s.x, slope - s.slope)
        little = given.get("ftol", 0) * fnp.maximum(
            1, fnp.maximum(abs(s.value), abs(value))
        )
        status = fnp.where(s.value - value < little, 0, -1)
        status = fnp.where(s.steps + 1 >= most, 1, status)
        status = fnp.where(s.calls + count >= calls, 1, status)
        status = fnp.where(fnp.isfinite(value), status, 2)
        status = fnp.where(found, status, 3)
        status = fnp.where(is_small(slope), 0, status)
        # What a failed search came to is kept if it is better.
        keep = found | (value < s.value)
        choose: Any = lambda a, b: fnp.where(keep, a, b)
        return _State(
            choose(x, s.x),
            choose(value, s.value),
            choose(slope, s.slope),
            memory,
            s.calls + count,
            s.steps + 1,
            status.astype(dtypes.int32),
        )

    value, slope = both(x)
    spent = most <= 0 or calls <= 1
    status = fnp.where(is_small(slope), 0, 1 if spent else -1)
    status = fnp.where(fnp.isfinite(value), status, 2).astype(dtypes.int32)
    count = lax.full((), 1, dtypes.int32)
    zero = lax.full((), 0, dtypes.int32)
    start = _State(x, value, slope, update.start(x), count, zero, status)
    end = lax.while_loop(more, step, start)
    return OptimizeResults(
        x=end.x,
        success=end.status == 0,
        status=end.status,
        fun=end.value,
        jac=end.slope,
        hess_inv=end.memory if kind == "bfgs" else None,
        nfev=end.calls,
        njev=end.calls,
        nit=end.steps,
    )


def _number(value: Any) -> Any:
    (out,) = promote_inexact("minimize", value)
    if out.aval.shape:
        raise ShapeError(f"minimize: fun must return a number, got {out.aval}")
    return lax.convert_element_type(out, out.aval.dtype)


def _line(both: Any, s: _State, way: Any, most: int) -> Any:
    """Returns a step, its value and gradient, the calls, and whether it will do."""
    drop = fnp.dot(way, s.slope)
    tiny = float(fnp.finfo(s.x.dtype).eps) * abs(s.value)
    # The first step of all is of length 1 at most.
    size = fnp.linalg.norm(way) if s.x.size else 1.0
    t = fnp.where(s.steps == 0, fnp.minimum(1, 1 / size), 1).astype(s.x.dtype)

    def more(state: Any) -> Any:
        *_, count, done = state
        return ~done & (count < most)

    def step(state: Any) -> Any:
        t, low, high, _, _, count, _ = state
        value, slope = both(s.x + t * way)
        rate = fnp.dot(way, slope)
        lower = value <= s.value + _DECREASE * t * drop
        flat = (value <= s.value + tiny) & (rate <= (2 * _DECREASE - 1) * drop)
        good, steep = lower | flat, rate < _CURVATURE * drop
        low, high = fnp.where(good, t, low), fnp.where(good, high, t)
        onward = fnp.where(fnp.isfinite(high), (low + high) / 2, 2 * low)
        done = good & ~steep
        return (
            fnp.where(done, t, onward),
            low,
            high,
            value,
            slope,
            count + 1,
            done,
        )

    zero = lax.full_like(t, 0)
    start = t, zero, zero + math.inf, s.value, s.slope
    count = lax.full((), 0, dtypes.int32)
    state = (*start, count, lax.full((), False))
    t, low, _, value, slope, count, done = lax.while_loop(more, step, state)
    # A failed search keeps the last point that was lower.
    back = ~done & (low > 0)
    again = lax.cond(back, lambda: both(s.x + low * way), lambda: (value, slope))
    t = fnp.where(done, t, low)
    value = fnp.where(done, value, fnp.where(back, again[0], s.value))
    slope = fnp.where(done, slope, fnp.where(back, again[1], s.slope))
    return t, value, slope, count + back, done | back


class _BFGS:
    """The inverse of the Hessian, updated by a step and the gradient's change."""

    def __init__(self, n: int) -> None:
        self.n = n

    def start(self, x: Any) -> Any:
        return fnp.eye(self.n, dtype=x.aval.dtype)

    def direction(self, memory: Any, slope: Any) -> Any:
        return memory @ slope

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        product = fnp.dot(step, change)
        scale = 1 / fnp.where(product > 0, product, 1)
        left = fnp.eye(self.n, dtype=step.dtype) - scale * fnp.outer(step, change)
        new = left @ memory @ left.T + scale * fnp.outer(step, step)
        return fnp.where(product > 0, new, memory)


class _LBFGS:
    """The last steps and changes of the gradient, the newest last."""

    def __init__(self, n: int, count: int) -> None:
        if count < 1:
            raise ArgumentError(f"minimize: maxcor must be positive, got {count}")
        self.n, self.count = n, count

    def start(self, x: Any) -> Any:
        return tuple(lax.full((self.count, self.n), 0, x.aval.dtype) for _ in range(2))

    def direction(self, memory: Any, slope: Any) -> Any:
        steps, changes = memory
        products = fnp.sum(steps * changes, axis=1)
        known = products > 0
        scales = fnp.where(known, 1 / fnp.where(known, products, 1), 0)
        rows = (steps, changes, scales)

        def back(q: Any, row: Any) -> Any:
            step, change, scale = row
            weight = scale * fnp.dot(step, q)
            return q - weight * change, weight

        def forth(r: Any, row: Any) -> Any:
            (step, change, scale), weight = row
            return r + step * (weight - scale * fnp.dot(change, r)), None

        q, weights = lax.scan(back, slope, rows, reverse=True)
        size = fnp.dot(changes[-1], changes[-1])
        gamma = fnp.where(known[-1], products[-1] / fnp.where(size > 0, size, 1), 1)
        return lax.scan(forth, gamma * q, (rows, weights))[0]

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        new = fnp.dot(step, change) > 0
        return tuple(
            fnp.where(new, fnp.concatenate([old[1:], row[None]]), old)
            for old, row in zip(memory, (step, change), strict=True)
        )
