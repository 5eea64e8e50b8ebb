"""Minimization of functions of one number, without derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, is_arraylike
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.optimize._problems import (
    at_solution,
    number_of,
    options_of,
    report,
    within,
)
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.grad import grad

#: The smaller part of the golden section, (3 - √5) / 2, and the golden ratio.
_SECTION, _RATIO = (3 - math.sqrt(5)) / 2, (1 + math.sqrt(5)) / 2
_OPTIONS: dict[str, dict[str, Any]] = {
    "brent": {"xtol": 1.48e-8, "maxiter": 500},
    "golden": {"xtol": 1.49e-8, "maxiter": 5000},
    "bounded": {"xatol": 1e-5, "maxiter": 500},
}


class Bracket(NamedTuple):
    """Three points, the middle one with the least value.

    Attributes:
      a: float: the first point.
      b: float: the middle point.
      c: float: the last point.
      fa: float: the value at a.
      fb: float: the value at b.
      fc: float: the value at c.
      calls: int: the number of calls.
    """

    a: Any
    b: Any
    c: Any
    fa: Any
    fb: Any
    fc: Any
    calls: Any


def bracketed(
    function: Callable[[Any], Any],
    a: Any,
    b: Any,
    grow_limit: float = 110.0,
    maxiter: int = 1000,
) -> Bracket:
    """Returns a bracket of a minimum, searched downhill from two points.

    Args:
      function: of a number.
      a: a number.
      b: another number.
      grow_limit: how far a parabola may reach, in lengths of the bracket.
      maxiter: the maximum number of steps.
    """
    fa, fb = function(a), function(b)
    up = fa < fb
    a, b, fa, fb = (
        fnp.where(up, first, second)
        for first, second in ((b, a), (a, b), (fb, fa), (fa, fb))
    )
    c = b + _RATIO * (b - a)

    def more(s: Any) -> Any:
        s, steps = s
        return (s.fc < s.fb) & (steps < maxiter)

    def step(carry: Any) -> Any:
        s, steps = carry
        left = (s.b - s.a) * (s.fb - s.fc)
        right = (s.b - s.c) * (s.fb - s.fa)
        value = right - left
        safe = fnp.where(fnp.abs(value) < 1e-21, 1e-21, value)
        w = s.b - ((s.b - s.c) * right - (s.b - s.a) * left) / (2 * safe)
        limit = s.b + grow_limit * (s.c - s.b)
        between = (w - s.c) * (s.b - w) > 0
        beyond = (w - limit) * (limit - s.c) >= 0
        ahead = (w - limit) * (s.c - w) > 0
        golden = s.c + _RATIO * (s.c - s.b)
        w = fnp.where(beyond, limit, fnp.where(between | ahead, w, golden))
        fw = function(w)
        # A parabola between b and c may give the bracket at once.
        low, high = between & (fw < s.fc), between & (fw > s.fb)
        failed = between & ~low & ~high
        w2 = fnp.where(failed, golden, s.c + _RATIO * (w - s.c))
        again = failed | (ahead & (fw < s.fc))
        fw2 = lax.cond(again, function, lambda _: fw, w2)
        calls = s.calls + 1 + again
        shifted = Bracket(s.b, s.c, w, s.fb, s.fc, fw, calls)
        further = Bracket(s.c, w, w2, s.fc, fw, fw2, calls)
        instead = Bracket(s.b, s.c, w2, s.fb, s.fc, fw2, calls)
        inner = Bracket(s.b, w, s.c, s.fb, fw, s.fc, calls)
        ended = Bracket(s.a, s.b, w, s.fa, s.fb, fw, calls)

        def pick(*parts: Any) -> Any:
            shifted, further, instead, inner, ended = parts
            out = fnp.where(ahead & (fw < s.fc), further, shifted)
            out = fnp.where(failed, instead, out)
            return fnp.where(low, inner, fnp.where(high, ended, out))

        new = Bracket._make(map(pick, shifted, further, instead, inner, ended))
        return new, steps + 1

    zero = lax.full((), 0, dtypes.int32)
    start = Bracket(a, b, c, fa, fb, function(c), zero + 3)
    found: Bracket = lax.while_loop(more, step, (start, zero))[0]
    return found


class Minimum(NamedTuple):
    """The least value that was found; whether the interval is short enough."""

    x: Any
    value: Any
    steps: Any
    converged: Any


class _Brent(NamedTuple):
    a: Any
    b: Any
    x: Any  # the best point, the second best, and what that was before
    w: Any
    v: Any
    fx: Any
    fw: Any
    fv: Any
    last: Any  # the last step, and the one before
    before: Any
    steps: Any


def brent_minimum(
    function: Callable[[Any], Any],
    a: Any,
    b: Any,
    x: Any,
    fx: Any,
    relative: Any,
    absolute: Any,
    maxiter: int,
    watch: Callable[[Any, Any, Any], None] | None = None,
) -> Minimum:
    """Returns a minimum in an interval, by parabolas and golden sections.

    Args:
      function: of a number; for arrays, elementwise.
      a: the left end, a number; or ends of many problems.
      b: the right end.
      x: a point in between.
      fx: the value there.
      relative: the tolerance relative to x.
      absolute: the absolute tolerance.
      maxiter: the maximum number of steps.
      watch: called with the best point, its value and the number of steps, before the
        first step and after each.
    """

    def tolerance(s: _Brent) -> Any:
        return relative * fnp.abs(s.x) + absolute

    def apart(s: _Brent) -> Any:
        middle = (s.a + s.b) / 2
        return fnp.abs(s.x - middle) > 2 * tolerance(s) - (s.b - s.a) / 2

    def goes_on(s: _Brent) -> Any:
        return apart(s) & (s.steps < maxiter)

    def step(s: _Brent) -> _Brent:
        tol, middle = tolerance(s), (s.a + s.b) / 2
        r = (s.x - s.w) * (s.fx - s.fv)
        q = (s.x - s.v) * (s.fx - s.fw)
        p = (s.x - s.v) * q - (s.x - s.w) * r
        q = 2 * (q - r)
        p, q = fnp.where(q > 0, -p, p), fnp.abs(q)
        good = fnp.abs(s.before) > tol
        good &= (p > q * (s.a - s.x)) & (p < q * (s.b - s.x))
        good &= fnp.abs(p) < fnp.abs(q * s.before / 2)
        part = fnp.where(s.x >= middle, s.a - s.x, s.b - s.x)
        move = fnp.where(good, p / fnp.where(q == 0, 1, q), _SECTION * part)
        before = fnp.where(good, s.last, part)
        near = good & ((s.x + move - s.a < 2 * tol) | (s.b - s.x - move < 2 * tol))
        move = fnp.where(near, fnp.where(middle >= s.x, tol, -tol), move)
        short = fnp.abs(move) < tol
        u = s.x + fnp.where(short, fnp.where(move < 0, -tol, tol), move)
        fu = function(u)
        better = fu <= s.fx
        # A value that is not a number is a bad one.
        a = fnp.where(better, fnp.where(u >= s.x, s.x, s.a), fnp.where(u < s.x, u, s.a))
        b = fnp.where(better, fnp.where(u >= s.x, s.b, s.x), fnp.where(u < s.x, s.b, u))
        second = ~better & ((fu <= s.fw) | (s.w == s.x))
        third = ~better & ~second & ((fu <= s.fv) | (s.v == s.x) | (s.v == s.w))
        pick: Any = lambda new, shifted, old: fnp.where(
            better, new, fnp.where(second, shifted, old)
        )
        new = _Brent(
            a,
            b,
            fnp.where(better, u, s.x),
            pick(s.x, u, s.w),
            pick(s.w, s.w, fnp.where(third, u, s.v)),
            fnp.where(better, fu, s.fx),
            pick(s.fx, fu, s.fw),
            pick(s.fw, s.fw, fnp.where(third, fu, s.fv)),
            move,
            before,
            s.steps + 1,
        )
        if fnp.ndim(x):
            # Problems that are solved stay as they are.
            left = goes_on(s)
            new = _Brent._make(
                fnp.where(left, fresh, old) for old, fresh in zip(s, new, strict=True)
            )
        if watch is not None:
            watch(new.x, new.fx, new.steps)
        return new

    zero = fnp.zeros_like(x)
    count = lax.full(fnp.shape(x), 0, dtypes.int32)
    start = _Brent(a, b, x, x, x, fx, fx, fx, zero, zero, count)
    if watch is not None:
        watch(x, fx, count)
    end = lax.while_loop(lambda s: fnp.any(goes_on(s)), step, start)
    return Minimum(end.x, end.fx, end.steps, ~apart(end))


def _golden_minimum(
    function: Callable[[Any], Any], bracket: Bracket, tol: Any, maxiter: int
) -> Minimum:
    """Returns a minimum by golden sections."""

    def apart(s: Any) -> Any:
        x0, x1, x2, x3, *_ = s
        return fnp.abs(x3 - x0) > tol * (fnp.abs(x1) + fnp.abs(x2))

    def step(s: Any) -> Any:
        x0, x1, x2, x3, f1, f2, count = s
        right = f2 < f1
        new = fnp.where(
            right,
            (1 - _SECTION) * x2 + _SECTION * x3,
            (1 - _SECTION) * x1 + _SECTION * x0,
        )
        value = function(new)
        return (
            fnp.where(right, x1, x0),
            fnp.where(right, x2, new),
            fnp.where(right, new, x1),
            fnp.where(right, x3, x2),
            fnp.where(right, f2, value),
            fnp.where(right, value, f1),
            count + 1,
        )

    a, b, c, _, fb, *_ = bracket
    wide = fnp.abs(c - b) > fnp.abs(b - a)
    x1 = fnp.where(wide, b, b - _SECTION * (b - a))
    x2 = fnp.where(wide, b + _SECTION * (c - b), b)
    new = function(fnp.where(wide, x2, x1))
    f1, f2 = fnp.where(wide, fb, new), fnp.where(wide, new, fb)
    start = (a, x1, x2, c, f1, f2, lax.full((), 0, dtypes.int32))
    end = lax.while_loop(lambda s: apart(s) & (s[-1] < maxiter), step, start)
    first = end[4] < end[5]
    return Minimum(
        fnp.where(first, end[1], end[2]),
        fnp.where(first, end[4], end[5]),
        end[-1],
        ~apart(end),
    )


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: tuple[Any, ...] | None = None,
    bounds: tuple[Any, Any] | None = None,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimizes a function of one number.

    Only values are used. The solution has an implicit derivative with respect to
    `args`, what `fun` closes over, and a bound at which it lies: see `optim.implicit`.

    Args:
      fun: called as `fun(x, *args)` with a 0-d float; returns a real number.
      bracket: two numbers where a search downhill begins, or three numbers, the middle
        one with the least value; None is (0, 1). Not for "bounded".
      bounds: the ends of the interval for "bounded".
      args: extra arguments.
      method: "brent", "golden" or "bounded"; None means "bounded" with bounds, else
        "brent".
      tol: the tolerance of x, if the options have none.
      options: `xtol`, relative ("brent", "golden"), or `xatol`, absolute ("bounded");
        `maxiter`.

    Returns:
      An `OptimizeResults` with a 0-d `x`.

    Raises:
      ArgumentError: unknown method or option, or it does not take bounds or a bracket.

    Example:
      >>> found = minimize_scalar(lambda x, a: (x - a) ** 2, args=(3.0,))
      >>> round(float(found.x), 3)
      3.0

    Source: `scipy.optimize.minimize_scalar`; Brent, Algorithms for Minimization without
    Derivatives, 1973.
    """
    name = "minimize_scalar"
    if method is None:
        method = "brent" if bounds is None else "bounded"
    kind = str(method).lower()
    if kind not in _OPTIONS:
        raise ArgumentError(
            f'{name}: method must be "brent", "golden" or "bounded", got {method!r}'
        )
    if (kind == "bounded") != (bounds is not None) or (
        kind == "bounded" and bracket is not None
    ):
        raise ArgumentError(
            f'{name}: method "bounded" takes bounds, the other methods a bracket'
        )
    more = args if isinstance(args, tuple) else (args,)
    settings = options_of(name, kind, options, _OPTIONS[kind])
    key = "xatol" if kind == "bounded" else "xtol"
    if tol is not None and key not in dict(options or {}):
        settings[key] = tol
    points = bounds if kind == "bounded" else (bracket or (0.0, 1.0))
    if not isinstance(points, tuple | list) or not all(map(is_arraylike, points)):
        raise ArgumentError(f"{name}: expected a pair of numbers, got {points!r}")
    if len(points) not in ((2,) if kind == "bounded" else (2, 3)):
        raise ArgumentError(f"{name}: expected two numbers, got {points!r}")
    given = promote_inexact(name, *points)
    dtype = fnp.promote_types(given[0].dtype, "float32")
    given = [lax.convert_element_type(p, dtype) for p in given]
    tiny = float(fnp.finfo(dtype).eps)

    def value(x: Any) -> Any:
        return number_of(name, fun(x, *more), dtype)

    def solver() -> Any:
        start = [lax.stop_gradient(p) for p in given]
        if kind == "bounded":
            a, b = start
            x = a + _SECTION * (b - a)
            least = math.sqrt(tiny)
            tol = settings["xatol"] / 3
            found = brent_minimum(
                value, a, b, x, value(x), least, tol, settings["maxiter"]
            )
            status = fnp.where(a <= b, 0, 4)
            return found.x, (found, found.steps + 1, status)
        if len(start) == 3:
            a, b, c = start
            fa, fb, fc = map(value, start)
            three = Bracket(a, b, c, fa, fb, fc, lax.full((), 3, dtypes.int32))
        else:
            three = bracketed(value, start[0], start[1])
        valid = (three.fb <= three.fa) & (three.fb <= three.fc)
        tol = max(settings["xtol"], 0.5 * math.sqrt(tiny))
        if kind == "golden":
            found = _golden_minimum(value, three, tol, settings["maxiter"])
        else:
            left = fnp.minimum(three.a, three.c)
            right = fnp.maximum(three.a, three.c)
            found = brent_minimum(
                value,
                left,
                right,
                three.b,
                three.fb,
                tol,
                1e-11,
                settings["maxiter"],
            )
        status = fnp.where(valid, 0, 3)
        return found.x, (found, found.steps + three.calls, status)

    slope = grad(value)

    def conditions(x: Any) -> Any:
        return within(x, slope(x), *given) if kind == "bounded" else slope(x)

    x, (found, calls, status) = at_solution(solver, conditions, given[0], optional=True)
    status = fnp.where(found.converged, status, fnp.where(status > 0, status, 1))
    status = fnp.where(fnp.isfinite(found.value), status, 2).astype(dtypes.int32)
    report(name, status == 0, status)
    return OptimizeResults(
        x=x,
        success=status == 0,
        status=status,
        fun=value(x),
        jac=None,
        hess_inv=None,
        nfev=calls,
        njev=fnp.zeros_like(calls),
        nit=found.steps,
    )


def bracket(
    func: Callable[..., Any],
    xa: Any = 0.0,
    xb: Any = 1.0,
    args: tuple[Any, ...] = (),
    grow_limit: float = 110.0,
    maxiter: int = 1000,
) -> Bracket:
    """Finds three points, the middle one with the least value, downhill from two.

    Args:
      func: called as `func(x, *args)` with a 0-d float; returns a real number.
      xa: the first point.
      xb: the second point.
      args: extra arguments of the function: a tuple, or a single one.
      grow_limit: how far a parabola may reach, in lengths of the bracket.
      maxiter: the maximum number of steps.

    Returns:
      A named tuple (a, b, c, fa, fb, fc, calls).

    Special cases:
      Where `func` falls without end, the middle value is not the least. Under
      `checkify`, that raises.

    Example:
      >>> found = bracket(lambda x: (x - 20) ** 2)
      >>> bool((found.fb < found.fa) & (found.fb < found.fc))
      True

    Source: `scipy.optimize.bracket`.
    """
    more = args if isinstance(args, tuple) else (args,)
    a, b = promote_inexact("bracket", xa, xb)
    dtype = fnp.promote_types(a.dtype, "float32")
    a, b = (lax.stop_gradient(lax.convert_element_type(v, dtype)) for v in (a, b))
    found = bracketed(
        lambda x: number_of("bracket", func(x, *more), dtype), a, b, grow_limit, maxiter
    )
    valid = (found.fb <= found.fa) & (found.fb <= found.fc)
    report("bracket", valid, fnp.where(valid, 0, 3))
    return found
