"""Adaptive steps, and the same steps again with derivatives.

A run keeps the accepted steps in arrays of a fixed capacity. It is not differentiated
itself: derivatives repeat the accepted steps, whose sizes are then fixed parts of the
whole interval, without the rejected ones and without what chose the sizes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.scipy.integrate._ode.methods import (
    Counts,
    Method,
    Problem,
    chosen,
    first_size,
)
from fxflow.transforms.checkpoint import checkpoint
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.custom_vmap import custom_vmap
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit
from fxflow.transforms.vjp import linearize

#: What a run's status may be. SciPy has the first three.
FINISHED, EVENT, FAILED, EXHAUSTED, RUNNING = 0, 1, -1, -2, 2


class Spec(Frozen, eq=False):
    """What is fixed when a run is traced.

    Attributes:
      method: the method.
      fun: of the time, the state and parameters to the slope.
      jacobian: of these to the Jacobian.
      events: of these to a vector, or None.
      limits: for each event, after how many of them the run ends; 0: it goes on.
      directions: for each event, -1 or 1 if only falls or rises count.
      capacity: how many steps can be kept.
      dense: whether the coefficients of the interpolants are kept.
    """

    method: Method
    fun: Callable[..., Array]
    jacobian: Callable[..., Array]
    events: Callable[..., Array] | None
    limits: tuple[int, ...]
    directions: tuple[float, ...]
    capacity: int
    dense: bool

    def problem(self, given: Given, controls: Controls) -> Problem:
        """Returns the problem for values of its parameters."""
        params = given.params

        def fun(t: Any, y: Any) -> Array:
            return self.fun(t, y, *params)

        def jacobian(t: Any, y: Any) -> Array:
            return self.jacobian(t, y, *params)

        end, rtol, atol, longest, _ = controls
        direction = fnp.where(end < given.start, -1, 1).astype(end.dtype)
        return Problem(fun, jacobian, end, direction, rtol, atol, longest)


class Given(NamedTuple):
    """What the solution is differentiated by."""

    start: Array
    end: Array
    y: Array
    params: tuple[Any, ...]


class Controls(NamedTuple):
    """What only the sizes of steps depend on; `first` is negative if not given."""

    end: Array
    rtol: Array
    atol: Array
    longest: Array
    first: Array


class Steps(NamedTuple):
    """The accepted steps of a run.

    Attributes:
      starts: where they start, array[capacity].
      sizes: with their signs; 0 after the last step.
      ys: states at their ends, array[capacity, n]; the last one again after the last.
      rows: coefficients of the interpolants, array[capacity, k, n], or None.
      notes: see `Step`.
      hits: which events happened in a step, bool[capacity, events].
      last: the last state.
      number: the number of steps.
      status: as SciPy's, or `EXHAUSTED`.
      counts: calls of functions.
    """

    starts: Array
    sizes: Array
    ys: Array
    rows: Array | None
    notes: Any
    hits: Array
    last: Array
    number: Array
    status: Array
    counts: Counts


@custom_vmap
def any_slice(which: Array) -> Array:
    """Returns whether a condition holds in any slice that `vmap` makes."""
    return which


@any_slice.def_vmap
def _(axis_size: int, in_batched: Any, which: Array) -> tuple[Array, bool]:
    return any_slice(fnp.any(which)), False


class _Carry(NamedTuple):
    state: Any
    count: Any
    status: Any
    values: Any  # of the events
    met: Any  # how many of each


def begun(spec: Spec, given: Given, controls: Controls) -> tuple[Problem, Any]:
    """Returns the problem, and the first state of the method."""
    p = spec.problem(given, controls)
    t, y = given.start, given.y
    f = p.fun(t, y)
    length = fnp.abs(p.end - t)
    guess = first_size(p, spec.method.order, t, y, f, length)
    size = fnp.where(controls.first < 0, guess, controls.first)
    state = spec.method.start(p, t, y, f, size)
    # One call for the slope, and one for the size.
    made = fnp.where(controls.first < 0, 2, 1).astype(np.int32)
    return p, state._replace(counts=state.counts.plus(made))


def _crossed(spec: Spec, before: Array, after: Array) -> Array:
    """Returns which events happened, given values at both ends of a step."""
    rises, falls = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
    wanted = np.asarray(spec.directions)
    return (rises & (wanted >= 0)) | (falls & (wanted <= 0))


def run(spec: Spec, given: Given, controls: Controls) -> Steps:
    """Makes steps until the end, a terminal event, a failure, or no room is left.

    A slice of a batch that has stopped goes on with the others, and changes nothing but
    the place behind its last step.
    """
    p, state = begun(spec, given, controls)
    capacity, num_events = spec.capacity, len(spec.limits)
    limits = np.asarray(spec.limits, np.int32)

    def events(t: Array, y: Array) -> Array:
        if spec.events is None:
            return fnp.zeros(0, t.dtype)
        return spec.events(t, y, *given.params)

    def attempt(carry: _Carry) -> tuple[_Carry, Any]:
        new, step = spec.method.attempt(p, carry.state, spec.dense)
        values = events(step.end, step.y)
        hits = _crossed(spec, carry.values, values)
        met = carry.met + hits
        ends = fnp.any((limits > 0) & hits & (met >= limits))
        count = carry.count + step.accepted
        after = fnp.where(p.direction * (step.end - p.end) >= 0, FINISHED, RUNNING)
        after = fnp.where((after == RUNNING) & (count >= capacity), EXHAUSTED, after)
        after = fnp.where(ends, EVENT, after)
        status = fnp.where(step.accepted, after, carry.status)
        status = fnp.where(new.failed, FAILED, status).astype(np.int32)
        values = chosen(step.accepted, values, carry.values)
        met = chosen(step.accepted, met, carry.met)
        record = step.end, step.y, step.row, step.note, hits
        return _Carry(new, count, status, values, met), record

    def body(loop: tuple[_Carry, Any]) -> tuple[_Carry, Any]:
        old, kept = loop
        new, record = attempt(old)
        going = old.status == RUNNING
        # What is not accepted is written too, and overwritten by the next attempt.
        kept = tree.map(
            lambda room, x: lax.dynamic_update_index_in_dim(room, x, old.count, 0),
            kept,
            record,
        )
        new = tree.map(functools.partial(chosen, going), new, old)
        return new, kept

    values = events(given.start, given.y)
    status = fnp.where(given.start == p.end, FINISHED, RUNNING).astype(np.int32)
    none = np.zeros(num_events, np.int32)
    first = _Carry(state, np.int32(0), status, values, none)
    first = tree.map(fnp.asarray, first)
    shapes = eval_shape(lambda c: attempt(c)[1], first)
    kept = tree.map(lambda s: fnp.zeros((capacity + 1, *s.shape), s.dtype), shapes)
    # The types of the carry are those after a step.
    like = eval_shape(lambda c: attempt(c)[0], first)
    first = tree.map(lambda x, s: x.astype(s.dtype), first, like)
    last, kept = lax.while_loop(
        lambda loop: any_slice(loop[0].status == RUNNING), body, (first, kept)
    )
    ends, ys, rows, notes, hits = tree.map(lambda x: x[:-1], kept)
    used = np.arange(capacity) < last.count
    t, y = last.state.t, last.state.y
    ends = fnp.where(used, ends, t)
    starts = fnp.concatenate([given.start[None], ends[:-1]])
    ys = fnp.where(used[:, None], ys, y)
    if rows is not None:
        # After no step the interpolant is the first state.
        still = fnp.pad(given.y[None], ((0, rows.shape[1] - 1), (0, 0)))
        at = fnp.where(last.count == 0, still, rows[0])
        rows = lax.dynamic_update_index_in_dim(rows, at, 0, 0)
    hits = hits & used[:, None]
    return Steps(
        *(starts, ends - starts, ys, rows, notes, hits, y),
        *(last.count, last.status, last.state.counts),
    )


def times_of(given: Given, steps: Steps) -> tuple[Array, Array]:
    """Returns starts and sizes of steps, as fixed parts of the whole interval."""
    start, end = given.start, given.end
    whole = lax.stop_gradient(end - start)
    whole = fnp.where(whole == 0, 1, whole)
    moved_start, moved_end = (x - lax.stop_gradient(x) for x in (start, end))
    part = (steps.starts - lax.stop_gradient(start)) / whole
    starts = steps.starts + part * moved_end + (1 - part) * moved_start
    sizes = steps.sizes + steps.sizes / whole * (moved_end - moved_start)
    return starts, sizes


class Attached(NamedTuple):
    """What of a run has derivatives; see `Steps`."""

    ys: Array
    rows: Array | None
    last: Array


def _again(spec: Spec, controls: Controls, steps: Steps, given: Given) -> Attached:
    """Repeats the steps of a run, in chunks that keep only what they start with."""
    p = spec.problem(given, controls)
    starts, sizes = times_of(given, steps)
    chunks = math.isqrt(max(spec.capacity, 1) - 1) + 1
    length = -(-spec.capacity // chunks)

    def make(memory: Any, step: Any) -> Any:
        t, size, note = step
        memory, y, row = spec.method.again(p, memory, t, size, note, spec.dense)
        return memory, (y, row)

    def one(memory: Any, xs: Any) -> Any:
        active, step = xs
        return lax.cond(active, make, _idle(make), memory, step)

    def chunk(memory: Any, xs: Any) -> Any:
        return lax.scan(one, memory, xs)

    def part(memory: Any, xs: Any) -> Any:
        # Other slices of a batch may have more steps.
        some = any_slice(xs[0][0])
        return lax.cond(some, checkpoint(chunk), _idle(chunk), memory, xs)

    memory = spec.method.memory(p, given.start, given.y, sizes[0])
    active = np.arange(spec.capacity) < steps.number
    xs = tree.map(
        lambda x: _in_chunks(x, chunks, length), (active, (starts, sizes, steps.notes))
    )
    memory, (ys, rows) = lax.scan(part, memory, xs)
    ys, rows = tree.map(
        lambda x: fnp.reshape(x, (-1, *x.shape[2:]))[: spec.capacity], (ys, rows)
    )
    # After the last step there is the last state, and without one the first.
    states = fnp.concatenate([given.y[None], ys])
    last = lax.dynamic_index_in_dim(states, steps.number, keepdims=False)
    ys = fnp.where(active[:, None], ys, last)
    if rows is not None:
        rows = fnp.where(
            (np.arange(spec.capacity) == 0)[:, None, None] & (steps.number == 0),
            fnp.pad(given.y[None], ((0, rows.shape[1] - 1), (0, 0)))[None],
            rows,
        )
    return Attached(ys, rows, last)


def _idle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that keeps the memory, and gives zeros for other results."""

    def idle(memory: Any, xs: Any) -> Any:
        shapes = eval_shape(function, memory, xs)[1]
        return memory, tree.map(lambda s: fnp.zeros(s.shape, s.dtype), shapes)

    return idle


def _in_chunks(x: Array, chunks: int, length: int) -> Array:
    padding = [(0, chunks * length - x.shape[0])] + [(0, 0)] * (x.ndim - 1)
    return fnp.reshape(fnp.pad(x, padding), (chunks, length, *x.shape[1:]))


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _attach(
    spec: Spec, given: Given, controls: Controls, steps: Steps, found: Attached
) -> Attached:
    """Returns what was found, with the derivatives of the repeated steps."""
    return found


@_attach.defjvp
def _(spec: Spec, primals: Any, tangents: Any) -> tuple[Attached, Attached]:
    given, controls, steps, found = primals
    leaves, structure = tree.flatten(given)
    inexact = [dtypes.is_inexact(typeof(x).dtype) for x in leaves]

    def again(moving: Sequence[Any]) -> Attached:
        rest = iter(moving)
        every = [next(rest) if i else x for x, i in zip(leaves, inexact, strict=True)]
        return _again(spec, controls, steps, structure.unflatten(every))

    def moving(values: Any) -> list[Any]:
        return [x for x, i in zip(tree.leaves(values), inexact) if i]

    found = _attach(spec, given, controls, steps, found)
    _, linear = linearize(again, moving(given))
    return found, linear(moving(tangents[0]))


def solved(spec: Spec, given: Given, controls: Controls) -> Steps:
    """Makes steps, whose states and coefficients depend on `given` differentiably."""
    # A function of its own, since each spec is another one.
    program = jit(functools.partial(run, spec))
    fixed = tree.map(lax.stop_gradient, (given, controls))
    steps: Steps = program(*fixed)
    found = Attached(steps.ys, steps.rows, steps.last)
    found = _attach(spec, given, fixed[1], steps, found)
    starts, sizes = times_of(given, steps)
    return steps._replace(
        starts=starts, sizes=sizes, ys=found.ys, rows=found.rows, last=found.last
    )
