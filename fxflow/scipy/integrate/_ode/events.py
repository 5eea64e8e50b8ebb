"""Events of initial value problems: zeros of functions along the solution."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.scipy.integrate._ode.methods import Method
from fxflow.scipy.integrate._ode.stepping import EVENT, Steps
from fxflow.scipy.optimize.scalar_roots import bracketing
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

#: The root finder bisects at worst, which takes fewer.
_ITERATIONS = 100


class Event(NamedTuple):
    """A function whose zeros are wanted.

    Attributes:
      function: of the time, the state and arguments.
      terminal: after how many zeros the solution ends; 0: it does not.
      direction: -1, 0 or 1.
    """

    function: Callable[..., Any]
    terminal: int
    direction: float


def events_of(name: str, events: Any) -> list[Event]:
    """Returns events with their attributes.

    Raises:
      ArgumentError: an event is not a function, or its attributes mean nothing.
    """
    if events is None:
        return []
    out = []
    for function in (events,) if callable(events) else events:
        if not callable(function):
            raise ArgumentError(
                f"{name}: an event must be a function, got {function!r}"
            )
        terminal = getattr(function, "terminal", False)
        try:
            number = 0 if terminal is None else operator.index(terminal)
        except TypeError:
            number = int(terminal) if terminal == int(terminal) else -1
        if number < 0:
            raise ArgumentError(
                f"{name}: the attribute terminal of an event must be a bool or a "
                f"positive integer, got {terminal!r}"
            )
        direction = float(getattr(function, "direction", 0) or 0)
        out.append(Event(function, number, float(np.sign(direction))))
    return out


class Happened(NamedTuple):
    """The events of a solution.

    Attributes:
      events: of each, times and states, nan where there are no more.
      numbers: how many there are of each.
      t: the time of the event that ended the solution.
      y: the state there.
    """

    events: list[tuple[Array, Array]]
    numbers: Array
    t: Array
    y: Array


def happened(
    method: Method,
    functions: Sequence[Callable[[Any, Any], Any]],
    events: Sequence[Event],
    steps: Steps,
    room: int,
) -> Happened:
    """Finds the times of events on the interpolants, differentiably.

    Args:
      method: the method of the steps.
      functions: of time and state to the value of an event.
      events: what is wanted.
      steps: the steps.
      room: how many times are found of each event at most.
    """
    last = fnp.maximum(steps.number - 1, 0)
    ended = steps.status == EVENT
    numbers = fnp.sum(steps.hits, 0)

    def root(function: Any, i: Array) -> Array:
        assert steps.rows is not None
        start, size, row = steps.starts[i], steps.sizes[i], steps.rows[i]

        def value(part: Array) -> Array:
            at = start + part * size
            out = fnp.asarray(function(at, method.between(row, part)))
            return fnp.reshape(out, ()).astype(at.dtype)

        return _root(value, start.dtype)

    # The first zero in the last step of an event whose zeros are enough.
    part = fnp.asarray(1, steps.starts.dtype)
    for k, (function, event) in enumerate(zip(functions, events, strict=True)):
        if event.terminal:
            enough = ended & steps.hits[last, k] & (numbers[k] >= event.terminal)
            part = fnp.where(enough, fnp.minimum(part, root(function, last)), part)
    t = steps.starts[last] + part * steps.sizes[last]
    y = method.between(_rows(steps)[last], part)
    found = []
    counted = []
    for k, function in enumerate(functions):
        (at,) = fnp.nonzero(steps.hits[:, k], size=room, fill_value=-1)
        i = fnp.maximum(at, 0)
        parts = vmap(functools.partial(root, function))(i)
        fine = (at >= 0) & ~(ended & (at == last) & (parts > part))
        times = steps.starts[i] + parts * steps.sizes[i]
        states = vmap(method.between)(_rows(steps)[i], parts)
        lost = fnp.sum((at >= 0) & ~fine)
        counted.append(numbers[k] - lost)
        found.append(
            (
                fnp.where(fine, times, fnp.nan),
                fnp.where(fine[:, None], states, fnp.nan),
            )
        )
    return Happened(found, fnp.stack(counted), t, y)


def _rows(steps: Steps) -> Array:
    assert steps.rows is not None
    return steps.rows


def _root(value: Callable[[Array], Array], dtype: Any) -> Array:
    """Returns where a function between 0 and 1 changes its sign.

    The root finder of `optimize` brackets it; then two steps of Newton's method with a
    fixed slope give the first and second derivatives of the implicit function.
    """
    tiny = float(np.finfo(dtype).eps)

    def fixed(part: Array) -> Array:
        return lax.stop_gradient(value(part))

    ends = fnp.zeros((), dtype), fnp.ones((), dtype)
    part: Array = lax.stop_gradient(
        bracketing("brentq", fixed, *ends, tiny / 4, 0.0, _ITERATIONS)[0]
    )
    _, slope = jvp(value, (part,), (fnp.ones((), dtype),))
    slope = lax.stop_gradient(slope)
    usable = fnp.isfinite(slope) & (slope != 0)
    for _ in range(2):
        part = part - fnp.where(usable, value(part) / fnp.where(usable, slope, 1), 0)
    return part
