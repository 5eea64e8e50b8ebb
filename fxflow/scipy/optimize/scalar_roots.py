"""Roots of functions of one number: in a bracket, or by Newton's method.

Arrays in place of numbers are problems of their own, solved at once for a function that
works elementwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.optim.implicit_derivatives import solved
from fxflow.scipy.optimize._problems import listed, options_of, report
from fxflow.scipy.optimize.results import ScalarRootResults
from fxflow.transforms.jvp import jvp

_XTOL, _RTOL, _ITERATIONS = 2e-12, 8.881784197001252e-16, 100
_BRACKETING = ("bisect", "brentq", "brenth", "ridder", "toms748")
_OPEN = ("newton", "secant", "halley")

_docs = shared("""
    Args:
      f: called as `f(x, *args)` with a float; returns a float. For arrays `a` and `b`
        it must work elementwise.
      a: one end of the bracket.
      b: the other end, where f has the other sign.
      args: extra arguments of the function: a tuple, or a single one.
      xtol: the absolute error of the root.
      rtol: the relative error, at least a few rounding errors.
      maxiter: the maximum number of iterations.
      full_output: whether to return a `ScalarRootResults`, too.
      disp: whether the root is nan if the solver does not converge; else it is the
        last estimate.

    Returns:
      The root, of the float dtype and shape of `a` and `b`; with `full_output` also a
      `ScalarRootResults`. The root has an implicit derivative with respect to `args`
      and what `f` closes over: see `optim.implicit`.

    Raises:
      ArgumentError: `maxiter` is not positive.
      ShapeError: f returns the wrong shape.

    Special cases:
      nan if f has the same sign at both ends. Under `checkify`, raises if the solver
      does not converge.
""")


class _Bracket(NamedTuple):
    """Two ends with values of different signs; a is the better one, c the last one."""

    a: Any
    b: Any
    c: Any
    fa: Any
    fb: Any
    fc: Any
    t: Any  # where in the bracket the next point is, 0 at a
    steps: Any
    calls: Any
    done: Any


def _vary(a: Any, b: Any) -> Any:
    return fnp.sign(a) * fnp.sign(b) < 0


def bracketing(
    kind: str,
    f: Any,
    a: Any,
    b: Any,
    xtol: Any,
    rtol: Any,
    maxiter: int,
    ftols: tuple[float, float] = (0.0, 0.0),
    watch: Callable[[Any, Any, Any, Any], None] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Returns the root, the status, and the numbers of iterations and calls.

    `bisect` takes the middle, `ridder` Ridders's point, and the others inverse
    quadratic interpolation where Chandrupatla's test says that it is better.

    Args:
      kind: the method.
      f: elementwise function.
      a: one end of each bracket.
      b: the other end.
      xtol: the absolute error of the root.
      rtol: the relative error.
      maxiter: the maximum number of iterations.
      ftols: how small f is at a root, absolutely and relative to its values at the
        ends.
      watch: called with the best point, its value, and the numbers of iterations and
        calls, before the first iteration and after each.
    """
    fa, fb = f(a), f(b)
    small = ftols[0] + ftols[1] * fnp.minimum(fnp.abs(fa), fnp.abs(fb))

    def tolerance(x: Any) -> Any:
        return xtol + rtol * fnp.abs(x)

    def best_of(s: _Bracket) -> tuple[Any, Any]:
        nearer = fnp.abs(s.fa) < fnp.abs(s.fb)
        return fnp.where(nearer, s.a, s.b), fnp.where(nearer, s.fa, s.fb)

    def ended(s: _Bracket) -> Any:
        best, value = best_of(s)
        return (fnp.abs(s.b - s.a) <= 2 * tolerance(best)) | (fnp.abs(value) <= small)

    def placed(s: _Bracket, x: Any, fx: Any) -> _Bracket:
        """The bracket with a new point in it, which becomes its end a."""
        same = ~_vary(fx, s.fa)
        c, fc = fnp.where(same, s.a, s.b), fnp.where(same, s.fa, s.fb)
        b, fb = fnp.where(same, s.b, s.a), fnp.where(same, s.fb, s.fa)
        return s._replace(a=x, b=b, c=c, fa=fx, fb=fb, fc=fc)

    def step(s: _Bracket) -> _Bracket:
        if kind == "ridder":
            middle = (s.a + s.b) / 2
            fm = f(middle)
            root = fnp.sqrt(fm * fm - s.fa * s.fb)
            move = (middle - s.a) * fm / fnp.where(root > 0, root, 1)
            # Not nearer to an end than the tolerance: then the bracket closes there.
            most = fnp.maximum(fnp.abs(middle - s.a) - tolerance(middle), 0)
            x = middle + fnp.sign(s.fa - s.fb) * fnp.clip(move, -most, most)
            fx = f(x)
            # Keep those two of the four points that are next to the root.
            new = placed(placed(s, middle, fm), x, fx)
            calls = 2
        else:
            x = s.a + s.t * (s.b - s.a)
            new = placed(s, x, f(x))
            calls = 1
        t = fnp.full_like(s.t, 0.5)
        if kind not in ("bisect", "ridder"):
            a, b, c, fa, fb, fc, *_ = new
            xi = (a - b) / fnp.where(c == b, 1, c - b)
            phi = (fa - fb) / fnp.where(fc == fb, 1, fc - fb)
            use = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            use &= (c != b) & (fc != fb) & (fc != fa)
            safe: Any = lambda v: fnp.where(use, v, 1)
            curved = fa / safe(fb - fa) * fc / safe(fb - fc) + (
                (c - a) / safe(b - a) * fa / safe(fc - fa) * fb / safe(fc - fb)
            )
            t = fnp.where(use, curved, 0.5)
            best = fnp.where(fnp.abs(fa) < fnp.abs(fb), a, b)
            least = tolerance(best) / fnp.where(b == a, 1, fnp.abs(b - a))
            least = fnp.minimum(least, 0.5)
            t = fnp.clip(t, least, 1 - least)
        new = new._replace(t=t, steps=s.steps + 1, calls=s.calls + calls)
        new = new._replace(done=ended(new))
        # Problems that are solved stay as they are.
        new = _Bracket._make(
            fnp.where(s.done, old, fresh) for old, fresh in zip(s, new, strict=True)
        )
        if watch is not None:
            watch(*best_of(new), new.steps, new.calls)
        return new

    valid = _vary(fa, fb) | (fa == 0) | (fb == 0)
    zero = fnp.zeros(fnp.shape(a), dtypes.int32)
    start = _Bracket(
        a, b, b, fa, fb, fb, fnp.full_like(a, 0.5), zero, zero + 2, zero > 0
    )
    start = start._replace(done=ended(start) | ~valid)
    if watch is not None:
        watch(*best_of(start), start.steps, start.calls)
    end = lax.while_loop(lambda s: fnp.any(~s.done & (s.steps < maxiter)), step, start)
    best, _ = best_of(end)
    status = fnp.where(end.done, 0, 1)
    status = fnp.where(fnp.isnan(fa) | fnp.isnan(fb), 2, fnp.where(valid, status, 3))
    return best, status, end.steps, end.calls


def _newton(
    kind: str,
    f: Any,
    slope: Any,
    curve: Any,
    x: Any,
    x1: Any,
    xtol: Any,
    rtol: Any,
    maxiter: int,
) -> tuple[Any, Any, Any, Any]:
    """Returns the root, the status, and the numbers of iterations and calls."""

    def step(c: Any) -> Any:
        x, last, f_last, steps, done, lost = c
        value = f(x)
        if kind == "secant":
            rise, run = value - f_last, x - last
            bad = rise == 0
            move = value * run / fnp.where(bad, 1, rise)
        else:
            rise = slope(x)
            bad = rise == 0
            move = value / fnp.where(bad, 1, rise)
            if kind == "halley":
                factor = 1 - move * curve(x) / (2 * fnp.where(bad, 1, rise))
                # SciPy's: Newton's step where Halley's is of another sign.
                move = fnp.where(
                    factor > 0, move / fnp.where(factor > 0, factor, 1), move
                )
        exact = value == 0
        new = fnp.where(exact, x, x - move)
        near = fnp.abs(new - x) <= xtol + rtol * fnp.abs(new)
        failed = (bad & ~exact) | ~fnp.isfinite(new)
        stop = near | exact | failed
        fresh = (new, x, value, steps + 1, done | stop, lost | failed)
        return tuple(
            fnp.where(done, old, now) for old, now in zip(c, fresh, strict=True)
        )

    zero = fnp.zeros(fnp.shape(x), dtypes.int32)
    if kind == "secant":
        last = x
        f_last = f(last)
        # The second point is where the search goes on from.
        begin = (x1, last, f_last, zero, zero > 0, zero > 0)
    else:
        begin = (x, x, x, zero, zero > 0, zero > 0)
    end = lax.while_loop(lambda c: fnp.any(~c[4] & (c[3] < maxiter)), step, begin)
    root, _, _, steps, done, lost = end
    status = fnp.where(done, fnp.where(lost, 3, 0), 1)
    status = fnp.where(fnp.isfinite(root), status, 2)
    calls = {"newton": 2 * steps, "halley": 3 * steps, "secant": steps + 1}[kind]
    return root, status, steps, calls


def found(
    name: str,
    f: Callable[..., Any],
    args: Any,
    points: tuple[Any, ...],
    run: Callable[..., tuple[Any, Any, Any, Any]],
    disp: bool,
) -> ScalarRootResults:
    """Runs a method whose root has an implicit derivative.

    Args:
      name: of the function, for messages.
      f: called as `f(x, *args)`.
      args: extra arguments of the function: a tuple, or a single one.
      points: where the method begins.
      run: the method: called with the function and the points; returns the root, the
        status, and the numbers of iterations and calls.
      disp: whether a root that is not found is nan.
    """
    more = args if isinstance(args, tuple) else (args,)
    given = promote_inexact(name, *map(listed, points))
    dtype = fnp.promote_types(given[0].dtype, "float32")
    if dtypes.is_complex(dtype):
        raise ArgumentError(f"{name}: expected real numbers, got {given[0].aval}")
    starts = fnp.broadcast_arrays(*(lax.convert_element_type(p, dtype) for p in given))
    starts = [lax.stop_gradient(p) for p in starts]

    def function(x: Any) -> Any:
        value = convert(fnp.asarray(f(x, *more)), dtype)
        if value.shape != x.shape:
            if value.size == x.size == 1:
                return fnp.reshape(value, x.shape)
            raise ShapeError(
                f"{name}: f must return {x.aval} as it gets, but returns {value.aval}"
            )
        return value

    def solver() -> Any:
        x, *rest = run(function, *starts)
        if disp:
            x = fnp.where(rest[0] == 0, x, fnp.nan)
        return x, tuple(rest)

    try:
        root, (status, steps, calls) = solved(
            solver, function, starts[0], solve=divided, has_aux=True
        )
    except NotDifferentiableError:
        root, (status, steps, calls) = solver()
    report(name, status == 0, fnp.max(status, initial=0))
    status = fnp.astype(status, dtypes.int32)
    return ScalarRootResults(root, steps, calls, status == 0, status)


def divided(linear: Any, y: Any) -> Any:
    """Solves the linear system of an elementwise function, whose matrix is diagonal."""
    return y / linear(fnp.ones_like(y))


def _tolerances(x: Any, xtol: float, rtol: float) -> tuple[float, float]:
    return xtol, max(rtol, 4 * float(fnp.finfo(x.dtype).eps))


def _in_bracket(
    name: str,
    f: Any,
    a: Any,
    b: Any,
    args: Any,
    xtol: float,
    rtol: float,
    maxiter: int,
    disp: bool,
) -> ScalarRootResults:
    maxiter = natural(name, "maxiter", maxiter)

    def run(function: Any, a: Any, b: Any) -> Any:
        least = _tolerances(a, xtol, rtol)
        return bracketing(name, function, a, b, *least, maxiter)

    return found(name, f, args, (a, b), run, disp)


def _face(
    name: str,
    f: Any,
    a: Any,
    b: Any,
    args: Any,
    xtol: float,
    rtol: float,
    maxiter: int,
    full_output: bool,
    disp: bool,
) -> Any:
    end = _in_bracket(name, f, a, b, args, xtol, rtol, maxiter, disp)
    return (end.root, end) if full_output else end.root


@_docs
def brentq(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = _ITERATIONS,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root in a bracket, by inverse quadratic interpolation.

    Interpolation is used where Chandrupatla's test says that it is better than
    bisection; SciPy's Brent's method decides in another way.

    Example:
      >>> round(float(brentq(lambda x: x**2 - 2, 0.0, 2.0)), 5)
      1.41421

    Source: `scipy.optimize.brentq`; Brent 1973; T. Chandrupatla 1997.
    """
    return _face("brentq", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@_docs
def brenth(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = _ITERATIONS,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root in a bracket, as `brentq` does.

    Example:
      >>> round(float(brenth(lambda x: x**2 - 2, 0.0, 2.0)), 5)
      1.41421

    Source: `scipy.optimize.brenth`; Brent 1973; T. Chandrupatla 1997.
    """
    return _face("brenth", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@_docs
def toms748(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    k: int = 1,
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = _ITERATIONS,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root in a bracket, as `brentq` does.

    Args:
      k: has no effect: SciPy's number of Newton steps in an iteration.

    Example:
      >>> round(float(toms748(lambda x: x**2 - 2, 0.0, 2.0)), 5)
      1.41421

    Source: `scipy.optimize.toms748`; Alefeld, Potra and Shi 1995; T. Chandrupatla 1997.
    """
    return _face("toms748", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@_docs
def bisect(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = _ITERATIONS,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root in a bracket, by halving it.

    Example:
      >>> round(float(bisect(lambda x: x**2 - 2, 0.0, 2.0)), 5)
      1.41421

    Source: `scipy.optimize.bisect`; Burden and Faires, Numerical Analysis.
    """
    return _face("bisect", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@_docs
def ridder(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = _ITERATIONS,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root in a bracket, by Ridders's method.

    Example:
      >>> round(float(ridder(lambda x: x**2 - 2, 0.0, 2.0)), 5)
      1.41421

    Source: `scipy.optimize.ridder`; Ridders 1979.
    """
    return _face("ridder", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


def newton(
    func: Callable[..., Any],
    x0: ArrayLike,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: ArrayLike | None = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Finds a root by Newton's method, the secant method or Halley's method.

    Args:
      func: called as `func(x, *args)` with a float; returns a float. For an array `x0`
        it must work elementwise.
      x0: the initial guess: a number, or an array of starts of problems of their own.
      fprime: the derivative, called as `func` is; None means to compute it, where SciPy
        uses the secant method.
      args: extra arguments of the function: a tuple, or a single one.
      tol: the absolute length of a step at which to stop.
      maxiter: the maximum number of iterations.
      fprime2: the second derivative, for Halley's method.
      x1: a second point, for the secant method.
      rtol: the relative length of a step at which to stop.
      full_output: whether to return a `ScalarRootResults`, too.
      disp: whether the root is nan if the solver does not converge; else it is the
        last estimate.

    Returns:
      The root, of the float dtype and shape of `x0`; with `full_output` also a
      `ScalarRootResults`. The root has an implicit derivative with respect to `args`
      and what `func` closes over: see `optim.implicit`.

    Raises:
      ArgumentError: `maxiter` is not positive, or `x1` comes with a derivative.
      ShapeError: func returns the wrong shape.

    Special cases:
      nan where the derivative is 0. Under `checkify`, raises if the solver does not
      converge.

    Example:
      >>> newton(lambda x: x**2 - 2, fnp.array([1.0, -1.0])).round(4)
      Array([ 1.4142, -1.4142], dtype=float32)

    Source: `scipy.optimize.newton`.
    """
    if x1 is not None and (fprime is not None or fprime2 is not None):
        raise ArgumentError("newton: pass x1, for the secant method, or a derivative")
    kind = "secant" if x1 is not None else "newton"
    kind = "halley" if fprime2 is not None else kind
    end = _open(
        "newton", kind, func, x0, x1, fprime, fprime2, args, tol, rtol, maxiter, disp
    )
    return (end.root, end) if full_output else end.root


def _open(
    name: str,
    kind: str,
    f: Any,
    x0: Any,
    x1: Any,
    fprime: Any,
    fprime2: Any,
    args: Any,
    xtol: float,
    rtol: float,
    maxiter: int,
    disp: bool,
) -> ScalarRootResults:
    maxiter = natural(name, "maxiter", maxiter)
    more = args if isinstance(args, tuple) else (args,)

    def derivative(function: Any) -> Any:
        return lambda x: jvp(function, (x,), (fnp.ones_like(x),))[1]

    def run(function: Any, x: Any, second: Any = None) -> Any:
        def given(user: Any) -> Any:
            return lambda x: convert(fnp.asarray(user(x, *more)), x.dtype)

        slope = derivative(function) if fprime is None else given(fprime)
        curve = derivative(slope) if fprime2 is None else given(fprime2)
        least = (xtol, max(rtol, 2 * float(fnp.finfo(x.dtype).eps)))
        return _newton(kind, function, slope, curve, x, second, *least, maxiter)

    points = (x0,) if x1 is None else (x0, x1)
    return found(name, f, args, points, run, disp)


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: ArrayLike | None = None,
    x1: ArrayLike | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> ScalarRootResults:
    """Finds a root of a function of one number.

    Args:
      f: called as `f(x, *args)`; returns a real number.
      args: extra arguments of the function: a tuple, or a single one.
      method: "bisect", "brentq", "brenth", "ridder" or "toms748", which need a
        bracket; "newton", "secant" or "halley". None means "brentq" with a bracket,
        "secant" with `x1`, "halley" with `fprime2`, else "newton".
      bracket: two numbers between which f changes its sign.
      fprime: the derivative, called as `f` is; None means to compute it.
      fprime2: the second derivative, likewise.
      x0: the initial guess.
      x1: a second point, for "secant".
      xtol: the absolute error, or the length of a step, at which to stop.
      rtol: likewise, relative.
      maxiter: the maximum number of iterations.
      options: any of the last three, by name.

    Returns:
      A `ScalarRootResults`. The root has an implicit derivative with respect to `args`
      and what `f` closes over: see `optim.implicit`.

    Raises:
      ArgumentError: unknown method or option, or the method needs a bracket or a point.

    Example:
      >>> found = root_scalar(lambda x: x**3 - 1, bracket=(0.0, 3.0))
      >>> round(float(found.root), 5), bool(found.converged)
      (1.0, True)

    Source: `scipy.optimize.root_scalar`.
    """
    name = "root_scalar"
    if method is None:
        method = "secant" if x1 is not None else "newton"
        method = "halley" if fprime2 is not None else method
        method = "brentq" if bracket is not None else method
    kind = str(method).lower()
    if kind not in (*_BRACKETING, *_OPEN):
        raise ArgumentError(
            f"{name}: method must be one of {', '.join((*_BRACKETING, *_OPEN))}, got "
            f"{method!r}"
        )
    given = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
    defaults: dict[str, Any] = (
        {"xtol": _XTOL, "rtol": _RTOL, "maxiter": _ITERATIONS}
        if kind in _BRACKETING
        else {"xtol": 1.48e-8, "rtol": 0.0, "maxiter": 50}
    )
    named = {**dict(options or {}), **{k: v for k, v in given.items() if v is not None}}
    settings = options_of(name, kind, named, defaults)
    if kind in _BRACKETING:
        if bracket is None or len(bracket) != 2:
            raise ArgumentError(
                f"{name}: {kind} needs bracket=(a, b), where f changes its sign, got "
                f"{bracket!r}"
            )
        return _in_bracket(
            kind, f, bracket[0], bracket[1], args, **settings, disp=False
        )
    if x0 is None or (kind == "secant" and x1 is None):
        points = "x0 and x1" if kind == "secant" else "x0"
        raise ArgumentError(f"{name}: {kind} needs {points}, where to begin")
    second = x1 if kind == "secant" else None
    return _open(
        name, kind, f, x0, second, fprime, fprime2, args, **settings, disp=False
    )
