"""Solutions at given times without a record of steps, and the adjoint equation.

The steps of one interval between two times after the other are made in place. The
derivative of the states in reverse mode solves the adjoint equation backward from time
to time, with the states where they are known.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.scipy.integrate._ode.methods import Counts, chosen, vector_of
from fxflow.scipy.integrate._ode.stepping import (
    EXHAUSTED,
    FAILED,
    FINISHED,
    Controls,
    Given,
    Spec,
    any_slice,
    begun,
)
from fxflow.transforms.custom_vjp import custom_vjp
from fxflow.transforms.grad import jacfwd
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit
from fxflow.transforms.vjp import vjp


class _Carry(NamedTuple):
    state: Any
    begin: Any  # of the last step
    size: Any
    row: Any
    count: Any  # steps that were tried, in the interval or in all
    steps: Any
    status: Any


class Marched(NamedTuple):
    """States at times.

    Attributes:
      ys: array[m, n], nan where a time was not reached.
      status: see `stepping`.
      steps: how many were accepted.
      counts: calls of functions.
    """

    ys: Array
    status: Array
    steps: Array
    counts: Counts


def _march(
    spec: Spec, restarts: bool, given: Given, times: Array, controls: Controls
) -> Marched:
    """Makes steps from time to time.

    Args:
      spec: see there; `capacity` is how many steps are tried at most, 0: any number.
      restarts: whether that is the number between two times.
      given: parameters.
      times: float[m], in order.
      controls: tolerances.
    """
    p, state = begun(spec, given, controls)
    method = spec.method

    def body(until: Array, old: _Carry) -> _Carry:
        state, step = method.attempt(p, old.state, True)
        accepted = step.accepted
        status = fnp.where(state.failed, FAILED, old.status)
        count = old.count + 1
        if spec.capacity:
            left = p.direction * (until - state.t) > 0
            full = left & (count >= spec.capacity) & (status == FINISHED)
            status = fnp.where(full, EXHAUSTED, status)
        new = _Carry(
            state,
            chosen(accepted, old.state.t, old.begin),
            chosen(accepted, step.end - old.state.t, old.size),
            chosen(accepted, step.row, old.row),
            count,
            old.steps + accepted,
            status.astype(np.int32),
        )
        going = goes_on(until, old)
        out: _Carry = tree.map(functools.partial(chosen, going), new, old)
        return out

    def goes_on(until: Array, carry: _Carry) -> Array:
        left: Array = p.direction * (until - carry.state.t) > 0
        fine: Array = left & (carry.status == FINISHED)
        return fine

    def interval(carry: _Carry, until: Array) -> tuple[_Carry, Array]:
        if restarts:
            carry = carry._replace(count=fnp.zeros_like(carry.count))
        carry = lax.while_loop(
            lambda c: any_slice(goes_on(until, c)),
            functools.partial(body, until),
            carry,
        )
        size = fnp.where(carry.size == 0, 1, carry.size)
        y = method.between(carry.row, (until - carry.begin) / size)
        return carry, fnp.where(carry.status == FINISHED, y, fnp.nan)

    row = fnp.pad(given.y[None], ((0, method.terms - 1), (0, 0)))
    zero = fnp.zeros_like(given.start)
    none = np.int32(0)
    first = _Carry(state, given.start, zero, row, none, none, np.int32(FINISHED))
    first = tree.map(fnp.asarray, first)
    like = eval_shape(functools.partial(body, given.end), first)
    first = tree.map(lambda x, s: x.astype(s.dtype), first, like)
    last, ys = lax.scan(interval, first, times)
    return Marched(ys, last.status, last.steps, last.state.counts)


def marched(
    spec: Spec,
    given: Given,
    times: Array,
    controls: Controls,
    restarts: bool = False,
) -> Marched:
    """Makes steps from time to time; the states have the adjoint's derivatives."""
    fixed = tree.map(lax.stop_gradient, (given, times, controls))
    out: Marched = jit(functools.partial(_march, spec, restarts))(*fixed)
    key = _Adjoint(spec, restarts)
    return out._replace(ys=_attach(key, given, times, fixed[2], out.ys))


class _Adjoint(NamedTuple):
    spec: Spec
    restarts: bool


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _attach(
    key: _Adjoint, given: Given, times: Array, controls: Controls, ys: Array
) -> Array:
    """Returns states, with the derivatives of the adjoint equation."""
    return ys


def _forward(
    key: _Adjoint, given: Given, times: Array, controls: Controls, ys: Array
) -> tuple[Array, Any]:
    # Derivatives of a second order need how the states depend on what is given.
    ys = _attach(key, given, times, controls, ys)
    return ys, (given, times, controls, ys)


def _backward(key: _Adjoint, kept: Any, cotangents: Array) -> tuple[Any, ...]:
    given, times, controls, ys = kept
    inexact = [dtypes.is_inexact(typeof(x).dtype) for x in given.params]
    moving = [x for x, i in zip(given.params, inexact, strict=True) if i]
    spec = key.spec

    def slope(t: Any, y: Any, params: Sequence[Any], moving: Sequence[Any]) -> Array:
        rest = iter(moving)
        every = [next(rest) if i else x for x, i in zip(params, inexact, strict=True)]
        out: Array = spec.fun(t, y, *every)
        return out

    # The state, its cotangent, and what the cotangents of parameters have gathered.
    like = given.y, given.y, moving
    join, part = vector_of(like)

    def adjoint(t: Any, state: Array, *params: Any) -> Array:
        y, bar, _ = part(state)
        moving = [x for x, i in zip(params, inexact, strict=True) if i]
        f, pull = vjp(lambda y, m: slope(t, y, params, m), y, moving)
        y_bar, bars = pull(bar)
        return join((f, -y_bar, [-b for b in bars]))

    def matrix(t: Any, state: Array, *params: Any) -> Array:
        complex_ = dtypes.is_complex(state.dtype)
        function = jacfwd(lambda s: adjoint(t, s, *params), holomorphic=complex_)
        out: Array = function(state)
        return out

    back = spec.replace(
        fun=adjoint, jacobian=matrix, events=None, limits=(), directions=()
    )
    # Errors of cotangents are measured as those of the state in the mean.
    least = fnp.broadcast_to(fnp.min(controls.atol), join(like).shape)
    size = given.y.size
    atol = fnp.concatenate([fnp.broadcast_to(controls.atol, (size,)), least[size:]])

    def interval(carry: Any, xs: Any) -> Any:
        bar, bars = carry
        y, t, before, cotangent = xs
        bar = bar + cotangent
        f = spec.fun(t, y, *given.params)
        t_bar = fnp.real(fnp.sum(f * cotangent)).astype(t.dtype)
        ends = Given(t, before, join((y, bar, bars)), given.params)
        own = controls._replace(end=before, atol=atol, first=-fnp.ones_like(t))
        out = marched(back, ends, before[None], own, key.restarts)
        _, bar, bars = part(out.ys[0])
        return (bar, bars), t_bar

    befores = fnp.concatenate([given.start[None], times[:-1]])
    first = fnp.zeros_like(given.y), [fnp.zeros_like(x) for x in moving]
    (bar, bars), times_bar = lax.scan(
        interval, first, (ys, times, befores, cotangents), reverse=True
    )
    f = spec.fun(given.start, given.y, *given.params)
    start_bar = -fnp.real(fnp.sum(f * bar)).astype(given.start.dtype)
    rest = iter(bars)
    params_bar = tuple(next(rest) if i else None for i in inexact)
    given_bar = Given(start_bar, fnp.zeros_like(given.end), bar, params_bar)
    zeros = tree.map(fnp.zeros_like, controls)
    return given_bar, times_bar, zeros, fnp.zeros_like(ys)


_attach.defvjp(_forward, _backward)
