"""Integrals and sums of elementwise functions, one for each element of arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy._callbacks import showing
from fxflow.scipy.integrate._adaptive import integrated, kronrod_rule
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

_RULE = kronrod_rule(10)
_PIECES = 8
#: The slope of the map of intervals at the middle, where integrands have most of their
#: size: it ends with 1, so that there are more intervals in the middle.
_MIDDLE = 0.6
#: So many terms of a series are added before a tail is integrated, in such chunks.
_DIRECT, _CHUNK = 512, 512
#: Integrals or sums that are computed at a time.
_AT_ONCE = 64


class TanhSinhResult(NamedTuple):
    """What `tanhsinh` returns, each field of the broadcast shape.

    Attributes:
      success: bool: whether the error is small enough.
      status: int: 0 converged; -2 too many intervals; -3 a value is not finite; 1 (for
        callbacks) the search goes on.
      integral: float: the integral.
      error: float: an estimate of its error.
      nfev: int: the number of calls.
    """

    success: Array
    status: Array
    integral: Array
    error: Array
    nfev: Array


class NSumResult(NamedTuple):
    """What `nsum` returns, each field of the broadcast shape.

    Attributes:
      success: bool: whether the error is small enough.
      status: int: 0 converged; -1 the bounds or the step mean nothing; -2 the error is
        too great; -3 a value is not finite.
      sum: float: the sum.
      error: float: an estimate of its error.
      nfev: int: the number of calls.
    """

    success: Array
    status: Array
    sum: Array
    error: Array
    nfev: Array


def _problems(name: str, points: Any, args: Any) -> tuple[Any, Any, Any, Any]:
    """Returns vectors of points and arguments, the dtype and the broadcast shape."""
    if not isinstance(args, tuple):
        args = (args,)
    given = promote_inexact(name, *points)
    if dtypes.is_complex(given[0].dtype):
        raise DtypeError(f"{name}: bounds must be real numbers, got {given[0].aval}")
    dtype = fnp.promote_types(given[0].dtype, "float32")
    arrays = [convert(p, dtype) for p in given]
    more = [fnp.asarray(v) for v in args]
    shape = fnp.broadcast_shapes(*(v.shape for v in (*arrays, *more)))
    flat = [fnp.ravel(fnp.broadcast_to(v, shape)) for v in (*arrays, *more)]
    return flat[: len(arrays)], flat[len(arrays) :], dtype, shape


def _value_of(name: str, f: Any, dtype: Any) -> Callable[..., Array]:
    def value(x: Array, *args: Any) -> Array:
        y = fnp.asarray(f(x, *args))
        if y.shape or dtypes.is_complex(y.dtype):
            raise DtypeError(
                f"{name}: f must return a real number for a number, got {y.aval}"
            )
        return convert(y, dtype)

    return value


def _each(
    one: Callable[..., tuple[Array, ...]],
    arrays: Sequence[Array],
    together: bool = False,
) -> tuple[Array, ...]:
    """Returns what a function returns for each element of vectors.

    Its loop goes on as long as one of the elements at a time needs it, and writes the
    intervals of all of them: so many as a processor's cache has room for.
    """
    (size,) = arrays[0].aval.shape
    if together or size <= 2 * _AT_ONCE:
        return vmap(one)(*arrays)
    count = -(-size // _AT_ONCE)
    # The last group is filled up with the last element.
    last = fnp.minimum(np.arange(count * _AT_ONCE), size - 1)
    groups = [fnp.reshape(v[last], (count, _AT_ONCE)) for v in arrays]
    found = lax.map(lambda group: vmap(one)(*group), tuple(groups))
    return tuple(fnp.reshape(v, -1)[:size] for v in found)


def _map(
    u: Array, a: Array, b: Array, finite: bool = False
) -> tuple[Array, Array, Array]:
    """Returns a point between bounds, its derivative in u, and whether it is inside.

    The map is that of Takahasi and Mori: tanh, exp or sinh of π/2 sinh t, for t on both
    sides of 0 as far as the dtype goes. `finite`: the bounds are known to be.
    """
    below, above = fnp.isinf(a), fnp.isinf(b)
    whole = ~below & ~above
    info = np.finfo(u.dtype)
    reach = math.log(float(info.max)) - 10
    # The distance to an end is about exp(-2 w), or the size exp(w).
    most: Any = math.asinh(reach / math.pi)
    if not finite:
        far = math.asinh(2 * reach / math.pi)
        most = fnp.where(whole, most, far).astype(u.dtype)
    v = 2 * u - 1
    t = most * v * (_MIDDLE + (1 - _MIDDLE) * v * v)
    rise = fnp.sinh(t)
    w = math.pi / 2 * rise
    speed = math.pi * most * fnp.sqrt(1 + rise * rise)  # of w by u
    speed = speed * (_MIDDLE + 3 * (1 - _MIDDLE) * v * v)
    low, high = fnp.where(below, 0, a), fnp.where(above, 0, b)
    near = fnp.exp(-2 * fnp.abs(w))
    part = near / (1 + near)
    between = fnp.where(w < 0, low + (high - low) * part, high - (high - low) * part)
    narrow = (high - low) * 2 * part / (1 + near)
    if finite:
        x, slope = between, narrow * speed
    else:
        grown = fnp.exp(fnp.where(whole, 0, w))
        both, wide = (
            fnp.sinh(fnp.where(below & above, w, 0)),
            fnp.cosh(fnp.where(below & above, w, 0)),
        )
        x = fnp.where(below, high - 1 / grown, low + grown)
        slope = fnp.where(below, 1 / grown, grown)
        x = fnp.where(whole, between, fnp.where(below & above, both, x))
        slope = fnp.where(whole, narrow, fnp.where(below & above, wide, slope)) * speed
    inside = (x > a) & (x < b)
    middle = fnp.where(below, high - 1, low + 1)
    middle = fnp.where(whole, (low + high) / 2, middle)
    return fnp.where(inside, x, middle), fnp.where(inside, slope, 0), inside


def _one(
    value: Callable[..., Array],
    a: Array,
    b: Array,
    args: Any,
    log: bool,
    atol: Any,
    rtol: Any,
    limit: int,
    pieces: int = _PIECES,
    watch: Callable[..., None] | None = None,
    finite: bool = False,
) -> tuple[Array, ...]:
    """Returns an integral, its error, the number of boxes, whether it has converged.

    The integral of the exponential is returned as its logarithm.
    """
    low, high = fnp.minimum(a, b), fnp.maximum(a, b)
    sign = fnp.where(a <= b, 1, -1).astype(a.dtype)

    def integrand(u: Array, low: Array, high: Array, shift: Array) -> Array:
        x, slope, inside = _map(u, low, high, finite)
        y = value(x, *args)
        if log:
            return fnp.exp(y - shift) * slope
        return sign * fnp.where(inside, y, 0) * slope

    shift = fnp.zeros_like(a)
    if log:
        u = fnp.asarray(_RULE.nodes[:, 0], a.dtype)
        at = (u + fnp.arange(pieces, dtype=a.dtype)[:, None]) / pieces
        x, slope, _ = _map(fnp.ravel(at), low, high, finite)
        sizes = vmap(lambda x: value(x, *args))(x) + fnp.log(slope)
        shift = lax.stop_gradient(fnp.max(fnp.where(fnp.isnan(sizes), -fnp.inf, sizes)))
        shift = fnp.where(fnp.isfinite(shift), shift, 0)
        atol = atol * fnp.exp(-shift) if atol else 0.0

    found = integrated(
        lambda u, *given: integrand(u[0], *given),
        (low, high, shift),
        _RULE,
        atol,
        rtol,
        limit,
        pieces=pieces,
        watch=watch,
    )
    # What is beyond the ends of t.
    fixed = [lax.stop_gradient(v) for v in (low, high, shift)]
    ends = [integrand(fnp.asarray(u, a.dtype), *fixed) for u in (0.0, 1.0)]
    beyond = sum(lax.stop_gradient(fnp.abs(e)) for e in ends)
    empty = low == high
    error = fnp.where(empty, 0, found.error + beyond)
    small = beyond <= fnp.maximum(atol, fnp.maximum(rtol, 1e-5) * fnp.abs(found.value))
    total = fnp.where(empty, 0, found.value)
    converged = empty | (found.converged & small)
    if log:
        return fnp.log(total) + shift, fnp.log(error) + shift, found.used, converged
    return total, error, found.used, converged


def _tolerances(name: str, atol: Any, rtol: Any, dtype: Any, log: bool) -> Any:
    """Returns both tolerances; SciPy's are logarithms for `log`."""
    tiny = float(np.finfo(dtype).eps)
    if log:
        atol = None if atol is None else math.exp(atol)
        rtol = None if rtol is None else math.exp(rtol)
    out = 0.0 if atol is None else atol, tiny**0.75 if rtol is None else rtol
    if min(out) < 0:
        raise ArgumentError(f"{name}: tolerances must not be negative, got {out}")
    return out


def tanhsinh(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    args: tuple[Any, ...] = (),
    log: bool = False,
    maxlevel: int = 10,
    minlevel: int = 2,
    atol: float | None = None,
    rtol: float | None = None,
    callback: Callable[[TanhSinhResult], Any] | None = None,
) -> TanhSinhResult:
    """Integrates an elementwise function after the substitution of tanh and sinh.

    The substitution makes singular ends smooth and infinite intervals short; the
    adaptive rule of `quad` integrates what it gives, where SciPy halves the distance
    between points. Each element of the broadcast bounds and `args` is a problem of its
    own. Derivatives are by bounds, by `args`, and by what `f` closes over.

    Args:
      f: called as `f(x, *args)` with numbers; returns a real number. It is vectorized
        by `vmap`.
      a: float[...]: lower bounds, perhaps -inf, traced or not.
      b: float[...]: upper bounds, perhaps inf.
      args: extra arguments, which broadcast with the bounds.
      log: whether `f` returns the logarithm of a function, and the result is that of
        the integral. The lower bound must be the smaller one.
      maxlevel: an interval is halved 2^(maxlevel - 2) times at most.
      minlevel: an interval has 2^(minlevel + 1) parts at first, at most 2^maxlevel.
      atol: the error that is small enough (0); its logarithm for `log`.
      rtol: likewise, relative (ε^¾).
      callback: called on the host with a `TanhSinhResult` of what is found so far,
        before the first interval is halved and after each halving, for its side effects
        (see `debug.callback`); it cannot stop the search.

    Returns:
      A `TanhSinhResult`.

    Raises:
      ArgumentError: a tolerance or `minlevel` is negative, or `maxlevel` is not
        positive.
      DtypeError: bounds or values are complex, or `f` returns an array for a number.

    Special cases:
      A point that rounds to a bound is not evaluated.

    Example:
      >>> found = tanhsinh(lambda x: fnp.exp(-(x**2)), 0.0, fnp.array([1.0, fnp.inf]))
      >>> found.integral.round(4)
      Array([0.7468, 0.8862], dtype=float32)

    Source: `scipy.integrate.tanhsinh`; H. Takahasi and M. Mori 1974.
    """
    shown = showing("tanhsinh", callback)
    maxlevel = natural("tanhsinh", "maxlevel", maxlevel)
    pieces = 2 ** min(natural("tanhsinh", "minlevel", minlevel, 0) + 1, maxlevel)
    limit = max(pieces, 2**maxlevel // 4)
    points, more, dtype, shape = _problems("tanhsinh", (a, b), args)
    least = _tolerances("tanhsinh", atol, rtol, dtype, log)
    value = _value_of("tanhsinh", f, dtype)

    def calls(used: Array) -> Array:
        found: Array = len(_RULE.nodes) * (2 * used - pieces)
        return found

    def watch(total: Array, error: Array, used: Array, *given: Array) -> None:
        if log:
            total, error = (fnp.log(v) + given[2] for v in (total, error))
        found = (fnp.reshape(v, shape) for v in (total, error, calls(used)))
        running = fnp.ones(shape, dtypes.int32)
        assert shown is not None
        shown(TanhSinhResult(running < 0, running, *found))

    def one(a: Array, b: Array, *args: Array) -> tuple[Array, ...]:
        how = (log, *least, limit, pieces, None if shown is None else watch, finite)
        return _one(value, a, b, args, *how)

    finite = not any(
        isinstance(v, Tracer) or np.isinf(np.asarray(v)).any() for v in points
    )
    together = shown is not None
    total, error, used, done = (
        fnp.reshape(v, shape) for v in _each(one, (*points, *more), together)
    )
    fine = ~fnp.isnan(total) & (total != fnp.inf)
    status = fnp.where(fine, fnp.where(done, 0, -2), -3).astype(dtypes.int32)
    return TanhSinhResult(status == 0, status, total, error, calls(used))


def nsum(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    step: ArrayLike = 1,
    args: tuple[Any, ...] = (),
    log: bool = False,
    maxterms: int = 2**20,
    tolerances: Mapping[str, float] | None = None,
) -> NSumResult:
    """Sums an elementwise function over a, a + step, … up to b.

    Up to `maxterms` terms are added. A longer or infinite sum is 512 terms and a tail
    by the formula of Euler and Maclaurin, whose integral is that of `tanhsinh`: there
    `f` has to be a smooth function of real numbers. Each element of the broadcast
    bounds, steps and `args` is a problem of its own. Derivatives are by `args` and by
    what `f` closes over.

    Args:
      f: called as `f(x, *args)` with numbers; returns a real number. It is vectorized
        by `vmap`.
      a: float[...]: where sums begin, perhaps -inf.
      b: float[...]: where they end, perhaps inf.
      step: float[...], positive.
      args: extra arguments, which broadcast with the bounds.
      log: whether `f` returns the logarithm of terms, and the result is that of the
        sum.
      maxterms: the maximum number of terms that are added one by one.
      tolerances: `atol` and `rtol`, the absolute and relative error that is small
        enough (0, ε^½); their logarithms for `log`.

    Returns:
      An `NSumResult`.

    Raises:
      ArgumentError: a tolerance is negative or unknown, or `maxterms` is not positive.
      DtypeError: bounds or values are complex, or `f` returns an array for a number.

    Special cases:
      A sum from a to b < a is 0. A step that is not positive gives nan.

    Example:
      >>> found = nsum(lambda k, p: k**-p, 1.0, fnp.inf, args=(2.0,))
      >>> round(float(found.sum), 4)
      1.6449

    Source: `scipy.integrate.nsum`.
    """
    maxterms = natural("nsum", "maxterms", maxterms)
    (first, last, steps), more, dtype, shape = _problems("nsum", (a, b, step), args)
    tiny = float(np.finfo(dtype).eps)
    given = dict(tolerances or {})
    if set(given) - {"atol", "rtol"}:
        raise ArgumentError(f"nsum: tolerances are atol, rtol, got {', '.join(given)}")
    rtol = given.get("rtol")
    if rtol is None:
        rtol = 0.5 * math.log(tiny) if log else tiny**0.5
    least = _tolerances("nsum", given.get("atol"), rtol, dtype, log)
    value = _value_of("nsum", f, dtype)
    # How many terms there can be, and whether two tails: as far as it is known.
    most, twice = maxterms, True
    if not any(isinstance(v, Tracer) for v in (first, last, steps)):
        with np.errstate(all="ignore"):
            low, high, distance = (np.asarray(v, float) for v in (first, last, steps))
            counts = np.floor((high - low) / distance) + 1
            twice = bool(np.any(np.isinf(low) & np.isinf(high)))
            within = counts[counts <= maxterms]
        most = max(int(np.max(within, initial=0)), 1)
        if np.any(counts > maxterms):
            most = max(most, _DIRECT)
    run = functools.partial(_series, value, log, least, most, maxterms)

    def one(a: Array, b: Array, step: Array, *args: Array) -> tuple[Array, ...]:
        # -inf … b is the mirror image, -inf … inf two sums.
        back = fnp.isinf(a) & ~fnp.isinf(b)
        both = fnp.isinf(a) & fnp.isinf(b)
        start = fnp.where(back, b, fnp.where(both, 0, a))
        count = fnp.floor((b - fnp.where(both, 0, a)) / step) + 1
        count = fnp.where(fnp.isnan(count), fnp.inf, fnp.maximum(count, 0))
        way = fnp.where(back, -step, step)
        found = run(start, way, count, args)
        if twice:
            more = run(-step, -step, fnp.where(both, count, 0), args)
            join = fnp.logaddexp if log else fnp.add
            kinds = (join, join, fnp.add, fnp.logical_and)
            found = tuple(k(p, q) for k, p, q in zip(kinds, found, more, strict=True))
        return found

    total, error, calls, done = (
        fnp.reshape(v, shape) for v in _each(one, (first, last, steps, *more))
    )
    valid = fnp.reshape((steps > 0) & (first < fnp.inf) & (last > -fnp.inf), shape)
    total = fnp.where(valid, total, fnp.nan)
    fine = ~fnp.isnan(total) & (total != fnp.inf)
    status = fnp.where(fine, fnp.where(done, 0, -2), -3)
    status = fnp.where(valid, status, -1).astype(dtypes.int32)
    return NSumResult(status == 0, status, total, error, calls)


def _series(
    value: Callable[..., Array],
    log: bool,
    least: tuple[float, float],
    most: int,
    maxterms: int,
    start: Array,
    step: Array,
    count: Array,
    args: Any,
) -> tuple[Array, ...]:
    """Returns the sum of `count` terms, its error, the calls, whether it is good."""
    dtype = start.dtype
    tiny = float(np.finfo(dtype).eps)
    whole = count <= maxterms
    terms = fnp.where(whole, count, _DIRECT)
    chunk = min(_CHUNK, most)

    def term(j: Array) -> Array:
        return value(start + j * step, *args)

    nothing = fnp.asarray(-fnp.inf if log else 0.0, dtype)

    def add(total: Any, first: Array) -> Any:
        def more(total: Any) -> Any:
            at = first + fnp.arange(chunk, dtype=dtype)
            used = at < terms
            y = vmap(term)(fnp.where(used, at, 0))
            y = fnp.where(used, y, nothing)
            if log:
                joined = fnp.concatenate([total[0][None], y])
                return _log_sum(joined), total[1]
            return total[0] + fnp.sum(y), total[1] + fnp.sum(fnp.abs(y))

        return lax.cond(first < terms, more, lambda t: t, total), None

    firsts = fnp.arange(0, most, chunk, dtype=dtype)
    zero = (nothing, fnp.zeros((), dtype))
    (total, size), _ = lax.scan(add, zero, firsts)
    error = tiny * size if not log else total + math.log(tiny)
    if most < _DIRECT and most < maxterms:
        return total, error, terms.astype(dtypes.int32), fnp.ones((), bool)
    # The tail, from x = 512 to `count` - 1.
    begin = fnp.where(whole, 0, fnp.asarray(_DIRECT, dtype))
    end = fnp.where(whole, 0, count - 1)
    last = fnp.where(fnp.isinf(end), begin, end)
    shift = lax.stop_gradient(term(begin)) if log else fnp.zeros((), dtype)

    def smooth(x: Array) -> Array:
        return fnp.exp(term(x) - shift) if log else term(x)

    def slope(function: Any) -> Any:
        return lambda x: jvp(function, (x,), (fnp.ones_like(x),))[1]

    third = slope(slope(slope(smooth)))
    edges = [(smooth(x), slope(smooth)(x), third(x)) for x in (begin, last)]
    endless = fnp.isinf(end)
    first, other = edges
    far = [fnp.where(endless, 0, v) for v in other]
    area, doubt, used, done = _one(
        lambda x: smooth(x), begin, end, (), False, least[0], least[1] / 4, 256
    )
    tail = area + (first[0] + far[0]) / 2 + (far[1] - first[1]) / 12
    correction = (far[2] - first[2]) / 720
    tail = fnp.where(whole, 0, tail - correction)
    doubt = fnp.where(whole, 0, doubt + fnp.abs(correction) + tiny * fnp.abs(tail))
    calls = terms + fnp.where(whole, 0, len(_RULE.nodes) * (2 * used - _PIECES))
    if log:
        long = fnp.where(whole, 1, tail)
        tail_log = fnp.where(whole, -fnp.inf, fnp.log(long) + shift)
        doubt = fnp.where(whole, -fnp.inf, fnp.log(doubt) + shift)
        total = _log_sum(fnp.stack([total, tail_log]))
        error = _log_sum(fnp.stack([error, doubt]))
        small = error <= total + math.log(least[1])
    else:
        total, error = total + tail, error + doubt
        small = error <= fnp.maximum(least[0], least[1] * fnp.abs(total))
    good = whole | (done & small)
    return total, error, calls.astype(dtypes.int32), good


def _log_sum(values: Array) -> Array:
    """Returns the logarithm of a sum of exponentials; -inf of none."""
    top = lax.stop_gradient(fnp.max(values))
    top = fnp.where(fnp.isfinite(top), top, 0)
    total = fnp.sum(fnp.exp(values - top))
    return fnp.log(fnp.where(total == 0, 1, total)) + fnp.where(
        total == 0, -fnp.inf, top
    )
