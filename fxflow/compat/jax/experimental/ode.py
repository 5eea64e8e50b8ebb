"""`jax.experimental.ode`: `odeint`, with the adjoint equation as its derivative."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import dtypes, is_arraylike
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.flatten_util import ravel_pytree

# J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, 1980.
_STAGES = (
    (1 / 5, (1 / 5,)),
    (3 / 10, (3 / 40, 9 / 40)),
    (4 / 5, (44 / 45, -56 / 15, 32 / 9)),
    (8 / 9, (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729)),
    (1.0, (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656)),
    (1.0, (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)),
)
_ERROR = (
    71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip
# Between the ends of a step: E. Hairer, S. Nørsett, G. Wanner, Solving ordinary
# differential equations I, 1993, II.6.
_DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


class _Options(NamedTuple):
    rtol: float
    atol: float
    mxstep: float
    hmax: float


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """Solves `dy/dt = func(y, t, *args)` by Dormand and Prince's steps of order 5.

    Derivatives of the result, in reverse mode, solve the adjoint equation backward.

    Args:
      func: function of the state, the time and `args` that gives the derivative.
      y0: state at `t[0]`: array or pytree of arrays.
      t: float[n]; times at which the state is wanted, increasing.
      *args: arrays or pytrees of them.
      rtol: relative tolerance of a step.
      atol: absolute one.
      mxstep: steps between two times at most.
      hmax: longest step.

    Returns:
      The states at `t`: `y0` with a first axis of length n.

    Raises:
      TypeError: one of `args` is not an array, or `y0` has no floats.
      ShapeError: `t` is not a vector, or is empty.
    """
    for leaf in fxflow.tree.leaves(args):
        if not is_arraylike(leaf):
            raise ArgumentError(
                f"odeint: the arguments of func must be arrays, got {leaf!r}: take it "
                "into the function instead"
            )
    flat, unravel = ravel_pytree(y0)
    if not dtypes.is_inexact(flat.dtype):
        raise DtypeError(f"odeint: y0 must be floats, got {flat.dtype}")
    times = fnp.asarray(t)
    if times.ndim != 1 or not times.size:
        raise ShapeError(f"odeint: t must be a vector of times, got {times.aval}")
    if not dtypes.is_inexact(times.dtype):
        times = times.astype(float)

    def slope(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    converted, captured = fxflow.closure_convert(slope, flat, times[0], *args)
    options = _Options(rtol, atol, mxstep, hmax)
    solved = _solve(converted, options, flat, times, *args, *captured)
    return fxflow.vmap(unravel)(solved)


@functools.partial(fxflow.custom_vjp, nondiff_argnums=(0, 1))
def _solve(
    func: Callable[..., Any], options: _Options, y0: Any, times: Any, *args: Any
) -> Any:
    # A function of its own, since each `func` is another one.
    return fxflow.jit(functools.partial(_steps, func, options))(y0, times, *args)


def _steps(
    func: Callable[..., Any], options: _Options, y0: Any, times: Any, *args: Any
) -> Any:
    def slope(y: Any, t: Any) -> Any:
        return func(y, t, *args)

    def size(error: Any, before: Any, after: Any) -> Any:
        largest = fnp.maximum(fnp.abs(before), fnp.abs(after))
        ratio = error / (options.atol + options.rtol * largest)
        return fnp.sqrt(fnp.mean(fnp.abs(ratio) ** 2))

    def advance(until: Any, state: Any) -> Any:
        count, y, f, t, h, last, dense = state
        stages = [f]
        for c, weights in _STAGES:
            stages.append(slope(y + h * _sum(weights, stages), t + c * h))
        after = y + h * _sum(_STAGES[-1][1], stages)
        error = size(h * _sum(_ERROR, stages), y, after)
        good = error <= 1.0
        new = _interpolant(y, after, h, stages)
        factor = fnp.clip(0.9 * error**-0.2, fnp.where(good, 1.0, 0.2), 10.0)
        h_next = fnp.clip(h * factor, 0.0, options.hmax)

        def chosen(a: Any, b: Any) -> Any:
            return fnp.where(good, a, b)

        return (
            count + 1,
            chosen(after, y),
            chosen(stages[-1], f),
            chosen(t + h, t),
            h_next,
            chosen(t, last),
            chosen(new, dense),
        )

    def interval(state: Any, until: Any) -> Any:
        def goes_on(state: Any) -> Any:
            count, _, _, t, h, *_ = state
            return (t < until) & (count < options.mxstep) & (h > 0)

        state = lax.while_loop(
            goes_on, functools.partial(advance, until), (0, *state[1:])
        )
        _, _, _, t, _, last, dense = state
        return state, _at(dense, (until - last) / (t - last))

    f0 = slope(y0, times[0])
    h0 = fnp.clip(_first_step(slope, times[0], y0, f0, options), 0.0, options.hmax)
    dense = fnp.stack([y0, *[fnp.zeros_like(y0)] * 4])
    state = (0, y0, f0, times[0], h0, times[0], dense)
    _, rest = lax.scan(interval, state, times[1:])
    return fnp.concatenate([y0[None], rest])


def _sum(weights: Any, stages: Any) -> Any:
    terms = [w * k for w, k in zip(weights, stages, strict=False) if w]
    return functools.reduce(fnp.add, terms)


def _interpolant(y: Any, after: Any, h: Any, stages: Any) -> Any:
    """Returns the five coefficients of `_at`."""
    moved = after - y
    bend = h * stages[0] - moved
    rest = moved - h * stages[-1] - bend
    return fnp.stack([y, moved, bend, rest, h * _sum(_DENSE, stages)])


def _at(dense: Any, part: Any) -> Any:
    """Returns the state after a part of a step."""
    y, moved, bend, rest, last = dense
    left = 1 - part
    return y + part * (moved + left * (bend + part * (rest + left * last)))


def _first_step(slope: Any, t: Any, y: Any, f: Any, options: _Options) -> Any:
    """Returns the length of the first step (Hairer, Nørsett, Wanner, II.4)."""
    scale = options.atol + options.rtol * fnp.abs(y)

    def norm(x: Any) -> Any:
        return fnp.sqrt(fnp.mean(fnp.abs(x / scale) ** 2))

    far, fast = norm(y), norm(f)
    small = (far <= 1e-5) | (fast <= 1e-5)
    guess = fnp.where(small, 1e-6, 0.01 * far / fnp.where(small, 1.0, fast))
    bent = norm(slope(y + guess * f, t + guess) - f) / guess
    most = fnp.maximum(fast, bent)
    flat = most <= 1e-15
    careful = fnp.maximum(1e-6, guess * 1e-3)
    usual = (0.01 / fnp.where(flat, 1.0, most)) ** 0.2
    return fnp.minimum(100.0 * guess, fnp.where(flat, careful, usual))


def _forward(
    func: Callable[..., Any], options: _Options, y0: Any, times: Any, *args: Any
) -> Any:
    ys = _solve(func, options, y0, times, *args)
    return ys, (ys, times, args)


def _backward(
    func: Callable[..., Any], options: _Options, kept: Any, cotangents: Any
) -> Any:
    ys, times, args = kept
    leaves, structure = fxflow.tree.flatten(args)
    inexact = [dtypes.is_inexact(fxflow.typeof(x).dtype) for x in leaves]
    moving = [x for x, i in zip(leaves, inexact, strict=True) if i]

    def slope(y: Any, t: Any, *moving: Any) -> Any:
        given = iter(moving)
        every = [next(given) if i else x for x, i in zip(leaves, inexact, strict=True)]
        return func(y, t, *structure.unflatten(every))

    # Time runs backward, as -t: of the state, its cotangent, and those of the first
    # time and of the arguments, which gather on the way (Chen et al., 2018).
    def adjoint(state: Any, negative: Any, *moving: Any) -> Any:
        y, y_bar, _, _ = state
        out, pull = fxflow.vjp(slope, y, -negative, *moving)
        y_more, t_more, *more = pull(y_bar)
        return -out, y_more, t_more, more

    def interval(carry: Any, given: Any) -> Any:
        y_bar, t0_bar, bars = carry
        y, t, before, cotangent = given
        y_bar = y_bar + cotangent
        t_bar = fnp.vdot(slope(y, t, *moving).conj(), cotangent).real.astype(t.dtype)
        _, y_bar, t0_bar, bars = fxflow.tree.map(
            lambda x: x[1],
            odeint(
                adjoint,
                (y, y_bar, t0_bar - t_bar, bars),
                fnp.stack([-t, -before]),
                *moving,
                **options._asdict(),
            ),
        )
        return (y_bar, t0_bar, bars), t_bar

    start = (
        fnp.zeros_like(ys[0]),
        fnp.zeros_like(times[0]),
        [fnp.zeros_like(x) for x in moving],
    )
    (y_bar, t0_bar, bars), t_bars = lax.scan(
        interval, start, (ys[1:], times[1:], times[:-1], cotangents[1:]), reverse=True
    )
    found = iter(bars)
    args_bar = structure.unflatten([next(found) if i else None for i in inexact])
    return (
        y_bar + cotangents[0],
        fnp.concatenate([t0_bar[None], t_bars]),
        *args_bar,
    )


_solve.defvjp(_forward, _backward)

__all__ = ["odeint"]

listen(globals())
