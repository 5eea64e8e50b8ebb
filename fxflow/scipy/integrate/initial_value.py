"""Initial value problems: `solve_ivp` and `odeint`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.lax.axes import natural
from fxflow.lax.checking import debug_check
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.integrate._ode import stepping
from fxflow.scipy.integrate._ode.adjoint import marched
from fxflow.scipy.integrate._ode.events import Event, events_of, happened
from fxflow.scipy.integrate._ode.explicit import DOP853, RK23, RK45
from fxflow.scipy.integrate._ode.methods import Method, vector_of
from fxflow.scipy.integrate._ode.multistep import BDF
from fxflow.scipy.integrate._ode.radau import RADAU
from fxflow.scipy.integrate._ode.stepping import Controls, Given, Spec
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.grad import jacfwd
from fxflow.transforms.vmap import vmap

_METHODS = {m.name: m for m in (RK23, RK45, DOP853, RADAU, BDF)}
_MESSAGES = {
    stepping.FINISHED: "The end of the interval was reached.",
    stepping.EVENT: "A termination event occurred.",
    stepping.FAILED: "The step size became smaller than the spacing of times.",
    stepping.EXHAUSTED: "There is no room for more steps: increase max_steps.",
}


_UNFINISHED = "the end was not reached, see OdeResult.status: {}"


@register_pytree_node_class
class OdeSolution:
    """The solution of an initial value problem between its first and last time.

    It is an immutable pytree. Beyond the ends the outermost interpolants go on.

    Attributes:
      ts: the ends of the steps, float[max_steps + 1], the last one again after the
        last step.
      t_min: the least time.
      t_max: the greatest time.

    Example:
      >>> sol = solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], dense_output=True).sol
      >>> sol(0.5).round(2)
      Array([0.61], dtype=float32)

    Source: `scipy.integrate.OdeSolution`.
    """

    ts: Array
    _starts: Array
    _sizes: Array
    _rows: Array
    _count: Array
    _method: str
    _unravel: Any

    def __init__(self, *parts: Any) -> None:
        self.ts, self._starts, self._sizes, self._rows, self._count = parts[:5]
        self._method, self._unravel = parts[5:]

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        arrays = self.ts, self._starts, self._sizes, self._rows, self._count
        return arrays, (self._method, self._unravel)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> OdeSolution:
        """Rebuilds the solution from its parts."""
        return cls(*children, *aux)

    @property
    def t_min(self) -> Array:
        """The least time."""
        return fnp.minimum(self.ts[0], self.ts[-1])

    @property
    def t_max(self) -> Array:
        """The greatest time."""
        return fnp.maximum(self.ts[0], self.ts[-1])

    def _at(self, t: Array) -> Array:
        """Returns states at times, array[m, n]."""
        backward = self.ts[-1] < self.ts[0]
        sign = fnp.where(backward, -1, 1).astype(t.dtype)
        unused = np.arange(self._starts.size) >= self._count
        starts = fnp.where(unused, fnp.inf, sign * self._starts)
        i = fnp.clip(fnp.searchsorted(starts, sign * t) - 1, 0, self._starts.size - 1)
        size = self._sizes[i]
        part = (t - self._starts[i]) / fnp.where(size == 0, 1, size)
        return vmap(_METHODS[self._method].between)(self._rows[i], part)

    def __call__(self, t: ArrayLike) -> Any:
        """Returns the state at times.

        Args:
          t: real number or array-like[m].

        Returns:
          For a vector of n: array[n] or array[n, m]; for a pytree such leaves, with the
          times last.

        Raises:
          ShapeError: `t` has more axes.
        """
        times = fnp.asarray(t).astype(self.ts.dtype)
        if times.ndim > 1:
            raise ShapeError(
                f"OdeSolution: t must be a number or a vector, got {times.aval}"
            )
        return _states(self._at(fnp.ravel(times)), self._unravel, not times.ndim)


def _states(ys: Array, unravel: Any, single: bool = False) -> Any:
    """Returns pytrees of states, of array[m, n], with the times last."""
    if unravel is None:
        return ys[0] if single else ys.T
    if single:
        return unravel(ys[0])
    return tree.map(lambda x: fnp.moveaxis(x, 0, -1), vmap(unravel)(ys))


class OdeResult(NamedTuple):
    """What `solve_ivp` returns.

    Attributes:
      t: float[m]: the times: `t_eval`, or else the ends of the steps, m being
        `max_steps` + 1, the last one again after the last step.
      y: the states, array[n, m], or a pytree of them with the times last. At times of
        `t_eval` that were not reached: nan.
      sol: the solution as a function, or None.
      t_events: for each event the times of it, float[max_events], nan after the last;
        None without events.
      y_events: the states there, array[max_events, n], or pytrees.
      num_events: int[...]: how many of each event were found; None without events.
      num_steps: int: the number of steps.
      nfev: int: how often the function was called.
      njev: int: how often the Jacobian was computed.
      nlu: int: how many matrices were factorized.
      status: int: 0 the end was reached; 1 an event ended it; -1 the step became too
        small; -2 `max_steps` were not enough.
    """

    t: Array
    y: Any
    sol: OdeSolution | None
    t_events: list[Array] | None
    y_events: list[Any] | None
    num_events: Array | None
    num_steps: Array
    nfev: Array
    njev: Array
    nlu: Array
    status: Array

    @property
    def success(self) -> Array:
        """Whether the end was reached, or an event ended it."""
        return self.status >= 0

    @property
    def message(self) -> str:
        """What the status means, once it is known."""
        return _MESSAGES[int(self.status)]


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any] | ArrayLike,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    rtol: ArrayLike = 1e-3,
    atol: Any = 1e-6,
    first_step: Any = None,
    max_step: ArrayLike = np.inf,
    jac: Any = None,
    max_steps: int = 4096,
    max_events: int = 64,
    adjoint: str = "discrete",
) -> OdeResult:
    """Solves dy/dt = fun(t, y) with y(t_span[0]) = y0 by adaptive steps.

    Steps, events and numbers of calls are SciPy's. It can be differentiated, in both
    modes and more than once, by `y0`, `t_span`, `t_eval`, `args` and what functions
    close over; times of events too, by the implicit function theorem. Under `vmap` each
    problem has its own steps.

    With `adjoint="discrete"` the derivative is exact to the steps: it repeats the
    accepted ones, whose sizes are fixed parts of the interval. Reverse mode adds, to
    what the solution keeps of each step, the states where √max_steps chunks begin, and
    computes the steps of a chunk again.

    With `adjoint="continuous"` reverse mode solves the adjoint equation backward, with
    the same tolerances: no step is kept, and the derivative is as exact as the
    tolerances. It has no forward mode.

    Args:
      fun: called as `fun(t, y, *args)`; returns the slope, of the structure of `y0`.
      t_span: two real numbers: the first and the last time. The time may run backward.
      y0: the first state: array-like[n]; or a pytree of arrays.
      method: "RK23", "RK45", "DOP853"; for stiff problems "Radau", "BDF".
      t_eval: float[m]: times where the state is wanted, in order; None: at the ends of
        the steps.
      dense_output: whether `sol` is wanted.
      events: a function of `(t, y, *args)` whose zeros are wanted, or a sequence of
        them. Its attribute `terminal` (False) is True, or a number: after how many
        zeros the solution ends; its attribute `direction` (0) is positive or negative
        if only such crossings count.
      vectorized: not used: derivatives are exact.
      args: a tuple of extra arguments. Floats and arrays may be differentiated.
      rtol: relative tolerance.
      atol: absolute tolerance, a number or array-like[n].
      first_step: the size of the first step.
      max_step: the longest step.
      jac: for "Radau" and "BDF": a function of `(t, y, *args)` to the Jacobian
        array[n, n], or a constant one; None: by forward mode.
      max_steps: how many steps are made at most, for which memory is taken.
      max_events: how many times of an event are returned at most.
      adjoint: "discrete", or "continuous", which needs `t_eval`, and has neither events
        nor dense output.

    Returns:
      An `OdeResult`. Where SciPy's sizes depend on the solution, these are padded.

    Raises:
      ArgumentError: unknown method or `adjoint`, or an argument means nothing.
      DtypeError: a time is complex.
      ShapeError, TreeError: a shape or structure does not fit.
      CheckError: under `checkify`, if the end was not reached.

    Example:
      >>> found = solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[0.0, 1.0])
      >>> found.y.round(3), bool(found.success)
      (Array([[1.   , 0.368]], dtype=float32), True)
      >>> fxflow.grad(
      ...     lambda k: solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0]).y[0, -1]
      ... )(1.0).round(2)
      Array(-0.37, dtype=float32)

    Source: `scipy.integrate.solve_ivp`; E. Hairer, S. Nørsett, G. Wanner, Solving
    Ordinary Differential Equations I and II, 1993, 1996; the continuous adjoint: R.
    Chen and others, Neural Ordinary Differential Equations, 2018.
    """
    return _solved(
        *("solve_ivp", fun, t_span, y0, method, t_eval, dense_output, events, args),
        *(rtol, atol, first_step, max_step, jac, max_steps, max_events, adjoint),
    )


def _solved(
    name: str,
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str,
    t_eval: Any,
    dense_output: bool,
    events: Any,
    args: Any,
    rtol: Any,
    atol: Any,
    first_step: Any,
    max_step: Any,
    jac: Any,
    max_steps: int,
    max_events: int,
    adjoint: str,
) -> OdeResult:
    """Solves an initial value problem; see `solve_ivp`."""
    chosen = _method(name, method)
    capacity = natural(name, "max_steps", max_steps)
    room = natural(name, "max_events", max_events)
    if adjoint not in ("discrete", "continuous"):
        raise ArgumentError(
            f'{name}: adjoint must be "discrete" or "continuous", got {adjoint!r}'
        )
    watched = events_of(name, events)
    if adjoint == "continuous" and (t_eval is None or dense_output or watched):
        raise ArgumentError(
            f'{name}: adjoint="continuous" keeps no steps: give t_eval, the times '
            "where y is wanted, and neither events nor dense_output"
        )
    start, end, y, unravel = _initial(name, t_span, y0)
    if chosen is RADAU and _is_complex(y):
        raise DtypeError(f'{name}: "Radau" needs a real y0, got {y.aval}: use "BDF"')
    times = None if t_eval is None else _times(name, t_eval, start, end)
    controls = _controls(name, end, y, rtol, atol, first_step, max_step)
    dense = dense_output or bool(watched) or times is not None
    spec, params = _spec(
        *(name, chosen, fun, jac, watched, args, start, y, unravel),
        *(capacity, dense),
    )
    given = Given(start, end, y, params)
    if adjoint == "continuous":
        assert times is not None
        ys, status, number, counts = marched(spec, given, times, controls)
        debug_check(
            status >= 0, f"{name}: the end was not reached, status {{}}", status
        )
        return OdeResult(
            *(times, _states(ys, unravel), None, None, None, None, number),
            *counts,
            status,
        )
    steps = stepping.solved(spec, given, controls)
    debug_check(steps.status >= 0, f"{name}: {_UNFINISHED}", steps.status)
    t_events = y_events = num_events = None
    ts = steps.starts + steps.sizes
    ys = steps.ys
    if watched:
        wrapped = [
            functools.partial(_called, e.function, args, unravel) for e in watched
        ]
        found = happened(chosen, wrapped, watched, steps, room)
        t_events = [t for t, _ in found.events]
        y_events = [y if unravel is None else vmap(unravel)(y) for _, y in found.events]
        num_events = found.numbers
        stops = (steps.status == stepping.EVENT) & (
            np.arange(capacity) >= steps.number - 1
        )
        ts = fnp.where(stops, found.t, ts)
        ys = fnp.where(stops[:, None], found.y, ys)
    ts = fnp.concatenate([start[None], ts])
    sol = None
    if dense:
        parts = ts, steps.starts, steps.sizes, steps.rows, steps.number
        sol = OdeSolution(*parts, chosen.name, unravel)
    if times is None:
        ts_out, ys = ts, fnp.concatenate([y[None], ys])
    else:
        assert sol is not None
        ts_out = times
        sign = fnp.where(end < start, -1, 1)
        reached = sign * times <= sign * ts[-1]
        ys = fnp.where(reached[:, None], sol._at(times), fnp.nan)
    return OdeResult(
        ts_out,
        _states(ys, unravel),
        sol if dense_output else None,
        t_events,
        y_events,
        num_events,
        steps.number,
        *steps.counts,
        steps.status,
    )


def odeint(
    func: Callable[..., Any],
    y0: ArrayLike | Sequence[Any],
    t: ArrayLike | Sequence[Any],
    args: Any = (),
    Dfun: Callable[..., Any] | None = None,
    col_deriv: bool = False,
    full_output: bool = False,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: bool = False,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: bool = False,
    tfirst: bool = False,
    *,
    method: str = "Radau",
) -> Any:
    """Solves dy/dt = func(y, t) at times; `solve_ivp` with SciPy's older signature.

    Args:
      func: called as `func(y, t, *args)`; returns the slope, array-like[n].
      y0: array-like[n] or a number: the state at t[0].
      t: float[m]: times, rising or falling.
      args: a tuple of extra arguments.
      Dfun: the Jacobian, called as `func`; None: by forward mode.
      col_deriv: whether `Dfun` returns the transposed Jacobian.
      full_output: whether to return counts too.
      ml: not used, as `mu`, `hmin`, `ixpr`, `mxhnil`, `mxordn`, `mxords` and
        `printmessg`: they are LSODA's.
      mu: not used.
      rtol: relative tolerance; None: 1.49e-8.
      atol: absolute tolerance, a number or array-like[n]; None: 1.49e-8.
      tcrit: must be None.
      h0: the size of the first step; 0: it is chosen.
      hmax: the longest step; 0: any.
      hmin: not used.
      ixpr: not used.
      mxstep: how many steps are made at most, in all; 0: 4096.
      mxhnil: not used.
      mxordn: not used.
      mxords: not used.
      printmessg: not used.
      tfirst: whether functions are called with `(t, y, *args)`.
      method: see `solve_ivp`, in place of LSODA. The explicit ones are faster for
        problems that are not stiff.

    Returns:
      The states, array[m, n], nan at times that were not reached. With `full_output`
      also a dict: `nst` steps, `nfe` calls, `nje` Jacobians and `status` of the whole
      solution.

    Raises:
      ArgumentError: `tcrit` is given, or an argument has no meaning.
      ShapeError: a shape is incompatible.

    Example:
      >>> odeint(lambda y, t: -y, 1.0, [0.0, 1.0]).round(3)
      Array([[1.   ],
             [0.368]], dtype=float32)

    Source: `scipy.integrate.odeint`.
    """
    name = "odeint"
    if tcrit is not None:
        raise ArgumentError(f"{name}: tcrit is not available: solve between such times")
    times = fnp.asarray(t)
    if times.ndim != 1 or not times.size:
        raise ShapeError(f"{name}: t must be a vector of times, got {times.aval}")

    state = fnp.atleast_1d(fnp.asarray(y0))

    def ordered(function: Callable[..., Any]) -> Callable[..., Any]:
        return function if tfirst else lambda t, y, *args: function(y, t, *args)

    jac = None
    if Dfun is not None:
        dfun = ordered(Dfun)

        def jac(t: Any, y: Any, *args: Any) -> Any:
            out = fnp.asarray(dfun(t, y, *args))
            return out.T if col_deriv else out

    found = _solved(
        *(name, ordered(func), (times[0], times[-1]), state, method),
        *(times, False, None, args if isinstance(args, tuple) else (args,)),
        1.49012e-8 if rtol is None else rtol,
        1.49012e-8 if atol is None else atol,
        h0 or None,
        hmax or np.inf,
        *(jac, mxstep or 4096, 1, "discrete"),
    )
    ys = found.y.T
    if not full_output:
        return ys
    counts = {"nst": found.num_steps, "nfe": found.nfev, "nje": found.njev}
    return ys, {**counts, "status": found.status}


# -- arguments -------------------------------------------------------------------------


def _method(name: str, method: Any) -> Method:
    if isinstance(method, str) and method in _METHODS:
        return _METHODS[method]
    listed = ", ".join(f'"{m}"' for m in _METHODS)
    more = ""
    if method == "LSODA":
        more = ', in place of "LSODA" "BDF" or "Radau" if the problem may be stiff'
    raise ArgumentError(f"{name}: method must be one of {listed}{more}, got {method!r}")


def _initial(name: str, t_span: Any, y0: Any) -> tuple[Array, Array, Array, Any]:
    """Returns both times, the first state as a vector, and how to undo that, or None.

    A vector stays one.
    """
    span = list(t_span) if isinstance(t_span, Sequence) else t_span
    if isinstance(span, list) and len(span) == 2:
        ends = span
    elif not isinstance(span, list) and fnp.shape(span) == (2,):
        ends = [span[0], span[1]]
    else:
        raise ArgumentError(f"{name}: t_span must be two times, got {t_span!r}")
    if isinstance(y0, list | tuple) and all(
        is_arraylike(v) and not fnp.ndim(v) for v in y0
    ):
        y0 = fnp.asarray(y0)
    unravel = None
    if not is_arraylike(y0) or fnp.ndim(y0) != 1:
        join, unravel = vector_of(y0)
        y0 = join(y0)
    start, end, y = promote_inexact(name, *ends, y0)
    if unravel is not None and y.dtype != y0.dtype:
        raise DtypeError(
            f"{name}: y0 must be floats that the times do not widen, got {y0.aval} and "
            f"times that promote it to {y.dtype}"
        )
    real = dtypes.to_real(y.dtype)
    for t in ends:
        if dtypes.is_complex(typeof(t).dtype) or fnp.ndim(t):
            raise DtypeError(f"{name}: times must be real numbers, got {typeof(t)}")
    if not isinstance(y, Tracer) and not np.all(np.isfinite(np.asarray(y))):
        raise ArgumentError(f"{name}: y0 must be finite")
    start, end = (fnp.real(t).astype(real) for t in (start, end))
    return start, end, y, unravel


def _times(name: str, t_eval: Any, start: Array, end: Array) -> Array:
    """Returns the times where the state is wanted; they are checked if known."""
    times = fnp.asarray(t_eval).astype(start.dtype)
    if times.ndim != 1:
        raise ShapeError(f"{name}: t_eval must be a vector of times, got {times.aval}")
    if any(isinstance(v, Tracer) for v in (times, start, end)):
        return times
    at, first, last = (np.asarray(v) for v in (times, start, end))
    if np.any(at < min(first, last)) or np.any(at > max(first, last)):
        raise ArgumentError(
            f"{name}: t_eval must be within t_span, {first} … {last}, got times "
            f"{at.min()} … {at.max()}"
        )
    steps = np.diff(at) * np.where(last < first, -1, 1)
    # `odeint` may be asked for the same time twice.
    if np.any(steps < 0 if name == "odeint" else steps <= 0):
        raise ArgumentError(f"{name}: t_eval must be in the order of t_span")
    return times


def _controls(
    name: str, end: Array, y: Array, rtol: Any, atol: Any, first: Any, longest: Any
) -> Controls:
    """Returns what the sizes of steps depend on; what is known is checked."""
    tiny = 100 * float(np.finfo(end.dtype).eps)
    values = []
    for what, value, low in (
        ("rtol", rtol, 0.0),
        ("atol", atol, 0.0),
        ("max_step", longest, None),
        ("first_step", -1.0 if first is None else first, None),
    ):
        array = array_of(fnp.asarray(value), name).astype(end.dtype)
        given = not (what == "first_step" and first is None)
        if what == "atol" and array.ndim and array.shape != y.shape:
            raise ShapeError(
                f"{name}: atol must be a number or have the shape of y0, {y.aval}, got "
                f"{array.aval}"
            )
        if what != "atol" and array.ndim:
            raise ShapeError(f"{name}: {what} must be a number, got {array.aval}")
        if given and not isinstance(array, Tracer):
            host = np.asarray(array)
            if np.any(host < 0) or (low is None and np.any(host <= 0)):
                raise ArgumentError(f"{name}: {what} must be positive, got {host}")
        values.append(array)
    rtol, atol, longest, first = values
    return Controls(end, fnp.maximum(rtol, tiny), atol, longest, first)


def _called(function: Any, args: Any, unravel: Any, t: Any, y: Any) -> Any:
    state = y if unravel is None else unravel(y)
    return function(t, state, *(args or ()))


def _spec(
    name: str,
    method: Method,
    fun: Any,
    jac: Any,
    events: Sequence[Event],
    args: Any,
    start: Array,
    y: Array,
    unravel: Any,
    capacity: int,
    dense: bool,
) -> tuple[Spec, tuple[Any, ...]]:
    """Returns what is traced, and parameters: of `args`, and what is closed over."""
    if args is not None and not isinstance(args, tuple | list):
        raise ArgumentError(f"{name}: args must be a tuple, got {args!r}: (args,)?")
    leaves, structure = tree.flatten(tuple(args or ()))
    # Python's integers may be numbers of terms, say, and stay known.
    moves = [is_arraylike(x) and not isinstance(x, bool | int) for x in leaves]
    passed = [fnp.asarray(x) for x, m in zip(leaves, moves, strict=True) if m]
    captured: list[Any] = []

    def arguments(given: Sequence[Any]) -> Any:
        rest = iter(given)
        return structure.unflatten(
            [next(rest) if m else x for x, m in zip(leaves, moves, strict=True)]
        )

    def convert(function: Callable[..., Any]) -> Callable[..., Any]:
        def flat(t: Any, y: Any, *given: Any) -> Any:
            return function(t, y, arguments(given))

        converted, more = closure_convert(flat, start, y, *passed)
        first = len(passed) + len(captured)
        captured.extend(more)

        def called(t: Any, y: Any, *params: Any) -> Any:
            own = params[first : first + len(more)]
            return converted(t, y, *params[: len(passed)], *own)

        return called

    def slope(t: Any, y: Any, given: Any) -> Array:
        out = _called(fun, given, unravel, t, y)
        return _slope(name, out, y, unravel)

    def values(t: Any, y: Any, given: Any) -> Array:
        each = [_called(e.function, given, unravel, t, y) for e in events]
        return fnp.stack([_event_value(name, v, start.dtype) for v in each])

    def matrix(t: Any, y: Any, given: Any) -> Array:
        if jac is None:
            own = jacfwd(lambda y: slope(t, y, given), holomorphic=_is_complex(y))
            square: Array = own(y)
            return square
        out = jac(t, y, *given) if callable(jac) else jac
        out = fnp.asarray(out).astype(y.dtype)
        if out.shape != (y.size, y.size):
            raise ShapeError(
                f"{name}: jac must be or return array[{y.size},{y.size}], got "
                f"{out.aval}"
            )
        return out

    spec = Spec(
        method,
        convert(slope),
        convert(matrix) if method.implicit else slope,
        convert(values) if events else None,
        tuple(e.terminal for e in events),
        tuple(e.direction for e in events),
        capacity,
        dense,
    )
    return spec, (*passed, *captured)


def _is_complex(y: Array) -> bool:
    return dtypes.is_complex(y.dtype)


def _slope(name: str, out: Any, y: Array, unravel: Any) -> Array:
    """Returns a slope as a vector like the state."""
    if unravel is not None:
        expected, found = (tree.structure(v) for v in (unravel(y), out))
        if expected != found:
            raise TreeError(
                f"{name}: fun must return the structure of y0, {tree.written(expected)}"
                f", got {tree.written(found)}"
            )
        out = vector_of(out)[0](out)
    out = fnp.asarray(out)
    if out.shape != y.shape:
        raise ShapeError(
            f"{name}: fun must return what y0 is, {y.aval}, got {out.aval}"
        )
    if dtypes.is_complex(out.dtype) and not _is_complex(y):
        raise DtypeError(
            f"{name}: fun returns complex numbers, {out.aval}, so y0 must be complex, "
            f"got {y.aval}"
        )
    return fnp.astype(out, y.dtype)


def _event_value(name: str, value: Any, dtype: Any) -> Array:
    value = fnp.asarray(value)
    if value.size != 1 or dtypes.is_complex(value.dtype):
        raise ShapeError(f"{name}: an event must return a number, got {value.aval}")
    return fnp.reshape(value, ()).astype(dtype)
