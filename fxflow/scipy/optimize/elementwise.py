"""Roots and minima of elementwise functions, one for each element of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.optim.implicit_derivatives import solved
from fxflow.scipy._callbacks import showing
from fxflow.scipy.optimize._problems import listed
from fxflow.scipy.optimize.scalar_minimization import brent_minimum
from fxflow.scipy.optimize.scalar_roots import bracketing, divided, found
from fxflow.transforms.jvp import jvp

__all__ = ["bracket_minimum", "bracket_root", "find_minimum", "find_root"]


class ElementwiseResult(NamedTuple):
    """What `find_root` and `find_minimum` return, each field of the broadcast shape.

    Attributes:
      success: bool: whether the search converged.
      status: int: 0 it converged; -1 the first points do not bracket it; -2 too many
        iterations; -3 a value is not finite; 1 (for callbacks) the search goes on.
      x: float: the root, or the minimum.
      f_x: float: the value there.
      nfev: int: the number of calls.
      nit: int: the number of iterations.
    """

    success: Array
    status: Array
    x: Array
    f_x: Array
    nfev: Array
    nit: Array


class BracketResult(NamedTuple):
    """What `bracket_root` and `bracket_minimum` return.

    Attributes:
      success: bool: whether there is a bracket.
      status: int: 0 there is; -1 the arguments are not in order; -2 too many
        iterations, or the bounds are reached; -3 a value is not finite.
      bracket: two points between which the function changes its sign, or three, the
        middle one with the least value.
      f_bracket: the values there.
      nfev: int: the number of calls.
      nit: int: the number of iterations.
    """

    success: Array
    status: Array
    bracket: tuple[Array, ...]
    f_bracket: tuple[Array, ...]
    nfev: Array
    nit: Array


def _broadcast(name: str, points: Any, args: Any) -> tuple[list[Array], list[Array]]:
    """Returns points of one float dtype and arguments, of one shape."""
    more = args if isinstance(args, tuple) else (args,)
    given = promote_inexact(name, *map(listed, points))
    if dtypes.is_complex(given[0].dtype):
        raise DtypeError(f"{name}: expected real numbers, got {given[0].aval}")
    dtype = fnp.promote_types(given[0].dtype, "float32")
    arrays = [convert(p, dtype) for p in given]
    extra = [fnp.asarray(listed(v)) for v in more]
    shape = fnp.broadcast_shapes(*(v.shape for v in (*arrays, *extra)))
    spread = [fnp.broadcast_to(v, shape) for v in (*arrays, *extra)]
    return spread[: len(arrays)], spread[len(arrays) :]


def _called(name: str, f: Any, args: Any) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        value = fnp.asarray(f(x, *args))
        if value.shape != x.shape or dtypes.is_complex(value.dtype):
            raise ShapeError(
                f"{name}: f must return {x.aval} as it gets, but returns {value.aval}"
            )
        return convert(value, x.dtype)

    return function


def _limits(name: str, tolerances: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns tolerances by name, with defaults.

    Raises:
      ArgumentError: unknown tolerance, or it is negative.
    """
    given = dict(tolerances or {})
    if set(given) - set(known):
        raise ArgumentError(
            f"{name}: tolerances are {', '.join(known)}, got "
            f"{', '.join(sorted(set(given) - set(known)))}"
        )
    out = {**known, **{k: v for k, v in given.items() if v is not None}}
    if any(v < 0 for v in out.values()):
        raise ArgumentError(f"{name}: tolerances must not be negative, got {given}")
    return out


def _watching(name: str, callback: Any, more: int = 0) -> Any:
    """Returns the function that makes a result for the callback; None of None.

    Args:
      name: of the function, for messages.
      callback: the user's.
      more: the number of calls that are not of an iteration, if not told.
    """
    shown = showing(name, callback)
    if shown is None:
        return None

    def watch(x: Array, value: Array, steps: Array, calls: Array | None = None) -> None:
        calls = steps + more if calls is None else calls
        running = fnp.ones(x.shape, dtypes.int32)
        shown(ElementwiseResult(running < 0, running, x, value, calls, steps))

    return watch


def find_root(
    f: Callable[..., Any],
    init: tuple[ArrayLike, ArrayLike],
    /,
    *,
    args: tuple[Any, ...] = (),
    tolerances: Mapping[str, float] | None = None,
    maxiter: int = 200,
    callback: Callable[[ElementwiseResult], Any] | None = None,
) -> ElementwiseResult:
    """Finds roots of an elementwise function in brackets, by Chandrupatla's method.

    Each element of the broadcast brackets and `args` is a problem of its own. Roots
    have implicit derivatives with respect to `args` and what `f` closes over: see
    `optim.implicit`.

    Args:
      f: called as `f(x, *args)` with float[...]; returns such an array.
      init: both ends of the brackets, float[...], between which f changes its sign: see
        `bracket_root`.
      args: extra arguments, which broadcast with the brackets.
      tolerances: `xatol` and `xrtol`, the absolute and relative error of x (the least
        normal number, 4 ε); `fatol` and `frtol`, how small f is at a root, absolutely
        or relative to its values at the ends (0).
      maxiter: the maximum number of iterations.
      callback: called on the host with an `ElementwiseResult` of the best points so
        far, before the first iteration and after each, for its side effects (see
        `debug.callback`); it cannot stop the search.

    Returns:
      An `ElementwiseResult`.

    Raises:
      ArgumentError: `init` is not a pair, or the tolerance is unknown.
      DtypeError: numbers are complex.
      ShapeError: f returns the wrong shape.

    Example:
      >>> square = lambda x, c: x**2 - c
      >>> find_root(square, (0.0, 4.0), args=(fnp.array([2.0, 9.0]),)).x.round(4)
      Array([1.4142, 3.    ], dtype=float32)

    Source: `scipy.optimize.elementwise.find_root`; T. Chandrupatla 1997.
    """
    name = "find_root"
    maxiter = natural(name, "maxiter", maxiter)
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise ArgumentError(f"{name}: init must be a pair of ends, got {init!r}")
    points, more = _broadcast(name, init, args)
    info = fnp.finfo(points[0].dtype)
    least = _limits(
        name,
        tolerances,
        {
            "xatol": float(info.tiny),
            "xrtol": 4 * float(info.eps),
            "fatol": 0.0,
            "frtol": 0.0,
        },
    )
    function = _called(name, f, more)
    watch = _watching(name, callback)

    def run(function: Any, a: Any, b: Any) -> Any:
        return bracketing(
            "brentq",
            function,
            a,
            b,
            max(least["xatol"], float(info.tiny)),
            max(least["xrtol"], 2 * float(info.eps)),
            maxiter,
            (least["fatol"], least["frtol"]),
            watch,
        )

    end = found(name, function, (), tuple(points), run, disp=False)
    codes = fnp.asarray([0, -2, -3, -1], dtypes.int32)
    status = codes[end.status]
    x = fnp.where(status == -1, fnp.nan, end.root)
    return ElementwiseResult(
        status == 0, status, x, function(x), end.function_calls, end.iterations
    )


def find_minimum(
    f: Callable[..., Any],
    init: tuple[ArrayLike, ArrayLike, ArrayLike],
    /,
    *,
    args: tuple[Any, ...] = (),
    tolerances: Mapping[str, float] | None = None,
    maxiter: int = 100,
    callback: Callable[[ElementwiseResult], Any] | None = None,
) -> ElementwiseResult:
    """Finds minima of an elementwise function in brackets, by Brent's method.

    Each element of the broadcast brackets and `args` is a problem of its own. Minima
    have implicit derivatives with respect to `args` and what `f` closes over: see
    `optim.implicit`.

    Args:
      f: called as `f(x, *args)` with float[...]; returns such an array.
      init: three points in ascending order, float[...], the middle one with the least
        value: see `bracket_minimum`.
      args: extra arguments, which broadcast with the brackets.
      tolerances: `xatol` and `xrtol`, the absolute and relative error of x (the least
        normal number, √ε).
      maxiter: the maximum number of iterations.
      callback: as for `find_root`.

    Returns:
      An `ElementwiseResult`.

    Raises:
      ArgumentError: `init` has not three points, or the tolerance is unknown.
      DtypeError: numbers are complex.
      ShapeError: f returns the wrong shape.

    Example:
      >>> bowl = lambda x, c: (x - c) ** 2
      >>> find_minimum(bowl, (-9.0, 0.0, 9.0), args=(fnp.array([1.0, 2.0]),)).x.round(3)
      Array([1., 2.], dtype=float32)

    Source: `scipy.optimize.elementwise.find_minimum`; R. Brent 1973, where SciPy has
    Chandrupatla's method.
    """
    name = "find_minimum"
    maxiter = natural(name, "maxiter", maxiter)
    if not isinstance(init, tuple | list) or len(init) != 3:
        raise ArgumentError(f"{name}: init must be three points, got {init!r}")
    points, more = _broadcast(name, init, args)
    info = fnp.finfo(points[0].dtype)
    root = float(info.eps) ** 0.5
    least = _limits(name, tolerances, {"xatol": float(info.tiny), "xrtol": root})
    function = _called(name, f, more)
    watch = _watching(name, callback, 3)

    def slope(x: Array) -> Any:
        return jvp(function, (x,), (fnp.ones_like(x),))[1]

    def solver() -> Any:
        a, b, c = map(lax.stop_gradient, points)
        fa, fb, fc = map(function, (a, b, c))
        low, high = fnp.minimum(a, c), fnp.maximum(a, c)
        end = brent_minimum(
            function,
            *(low, high, b, fb),
            max(least["xrtol"], root / 2),
            max(least["xatol"], float(info.tiny)),
            maxiter,
            watch,
        )
        valid = (fb <= fa) & (fb <= fc) & (low <= b) & (b <= high)
        status = fnp.where(end.converged, 0, -2)
        status = fnp.where(fnp.isfinite(end.value), status, -3)
        status = fnp.where(valid, status, -1).astype(dtypes.int32)
        return fnp.where(valid, end.x, fnp.nan), (status, end.steps)

    try:
        x, (status, steps) = solved(
            solver, slope, points[0], solve=divided, has_aux=True
        )
    except NotDifferentiableError:
        x, (status, steps) = solver()
    return ElementwiseResult(status == 0, status, x, function(x), steps + 3, steps)


def bracket_root(
    f: Callable[..., Any],
    xl0: ArrayLike,
    xr0: ArrayLike | None = None,
    *,
    xmin: ArrayLike | None = None,
    xmax: ArrayLike | None = None,
    factor: ArrayLike = 2.0,
    args: tuple[Any, ...] = (),
    maxiter: int = 1000,
) -> BracketResult:
    """Finds two points between which an elementwise function changes its sign.

    Both ends of the first interval move outwards in growing steps, or by a growing part
    of the distance to a bound. The points have no derivatives.

    Args:
      f: called as `f(x, *args)` with float[...]; returns such an array.
      xl0: float[...]: the left end of the first interval.
      xr0: the right end; None means one more.
      xmin: bounds that the left end does not pass; None for none.
      xmax: bounds of the right end.
      factor: how much longer each step is, more than 1.
      args: extra arguments, which broadcast with the points.
      maxiter: the maximum number of steps.

    Returns:
      A `BracketResult` with two points.

    Raises:
      DtypeError: numbers are complex.
      ShapeError: f returns the wrong shape.

    Example:
      >>> found = bracket_root(lambda x: x - 20, 0.0)
      >>> found.bracket[0] < 20, found.bracket[1] > 20
      (Array(True, dtype=bool), Array(True, dtype=bool))

    Source: `scipy.optimize.elementwise.bracket_root`.
    """
    name = "bracket_root"
    maxiter = natural(name, "maxiter", maxiter)
    left = fnp.asarray(listed(xl0))
    low = -fnp.inf if xmin is None else xmin
    high = fnp.inf if xmax is None else xmax
    right = fnp.minimum(left + 1, high) if xr0 is None else xr0
    (a, b, low, high, factor), more = _broadcast(
        name, (left, right, low, high, factor), args
    )
    function = _called(name, f, more)
    a, b, low, high, factor = (lax.stop_gradient(v) for v in (a, b, low, high, factor))
    fa, fb = function(a), function(b)
    ordered = (low <= a) & (a < b) & (b <= high) & (factor > 1)
    width = b - a

    def step(s: Any) -> Any:
        left, right, f_left, f_right, size, near, done, bad, steps, edges = s
        free_l, free_r = fnp.isinf(low), fnp.isinf(high)
        size = size * fnp.where(steps > 0, factor, 1)
        near = near / factor
        new_l = fnp.where(free_l, left - size, fnp.where(free_l, 0, low) + near[0])
        new_r = fnp.where(free_r, right + size, fnp.where(free_r, 0, high) - near[1])
        value_l, value_r = function(new_l), function(new_r)
        at_l = fnp.sign(value_l) * fnp.sign(f_left) <= 0
        at_r = fnp.sign(value_r) * fnp.sign(f_right) <= 0
        pick: Any = lambda one, two: fnp.where(at_l, one, two)
        fresh = (
            pick(new_l, right),
            pick(left, new_r),
            pick(value_l, f_right),
            pick(f_left, value_r),
        )
        hit = at_l | at_r
        lost = ~fnp.isfinite(value_l) | ~fnp.isfinite(value_r)
        keep = done | bad
        edges = tuple(
            fnp.where(keep, old, fnp.where(hit, new, last))
            for old, new, last in zip(
                edges, fresh, (new_l, new_r, value_l, value_r), strict=True
            )
        )
        return (
            *(new_l, new_r, value_l, value_r, size, near),
            *(done | (~bad & hit), bad | (~done & ~hit & lost)),
            *(fnp.where(keep, steps, steps + 1), edges),
        )

    zero = fnp.zeros(a.shape, dtypes.int32)
    done = (fnp.sign(fa) * fnp.sign(fb) <= 0) & ordered
    bad = ~ordered | ~fnp.isfinite(fa) | ~fnp.isfinite(fb)
    near = fnp.stack(
        [
            fnp.where(fnp.isinf(low), 0, a - fnp.where(fnp.isinf(low), 0, low)),
            fnp.where(fnp.isinf(high), 0, fnp.where(fnp.isinf(high), 0, high) - b),
        ]
    )
    start = (a, b, fa, fb, width, near, done, bad, zero, (a, b, fa, fb))
    end = lax.while_loop(
        lambda s: fnp.any(~s[6] & ~s[7] & (s[8] < maxiter)), step, start
    )
    done, bad, steps, edges = end[6:]
    status = fnp.where(done, 0, fnp.where(bad, -3, -2))
    status = fnp.where(ordered, status, -1).astype(dtypes.int32)
    return BracketResult(
        status == 0, status, edges[:2], edges[2:], 2 * (steps + 1), steps
    )


def _is_lowest(before: Array, value: Array, after: Array) -> Any:
    flat = (value == before) & (value == after)
    return (value <= before) & (value <= after) & ~flat


def bracket_minimum(
    f: Callable[..., Any],
    xm0: ArrayLike,
    *,
    xl0: ArrayLike | None = None,
    xr0: ArrayLike | None = None,
    xmin: ArrayLike | None = None,
    xmax: ArrayLike | None = None,
    factor: ArrayLike = 2.0,
    args: tuple[Any, ...] = (),
    maxiter: int = 1000,
) -> BracketResult:
    """Finds three points, the middle one with the least value.

    The points move downhill in growing steps, or by a growing part of the distance to a
    bound. The points have no derivatives.

    Args:
      f: called as `f(x, *args)` with float[...]; returns such an array.
      xm0: float[...]: the first middle point.
      xl0: the first left point; None means half less, inside of `xmin`.
      xr0: the first right point; None means half more, inside of `xmax`.
      xmin: bounds that no point passes; None for none.
      xmax: likewise.
      factor: how much longer each step is, more than 1.
      args: extra arguments, which broadcast with the points.
      maxiter: the maximum number of steps.

    Returns:
      A `BracketResult` with three points.

    Raises:
      DtypeError: numbers are complex.
      ShapeError: f returns the wrong shape.

    Example:
      >>> found = bracket_minimum(lambda x: (x - 20) ** 2, 0.0)
      >>> found.bracket[0] < 20, found.bracket[2] > 20
      (Array(True, dtype=bool), Array(True, dtype=bool))

    Source: `scipy.optimize.elementwise.bracket_minimum`.
    """
    name = "bracket_minimum"
    maxiter = natural(name, "maxiter", maxiter)
    middle = fnp.asarray(listed(xm0))
    low = -fnp.inf if xmin is None else xmin
    high = fnp.inf if xmax is None else xmax
    left = fnp.maximum(middle - 0.5, (middle + low) / 2) if xl0 is None else xl0
    right = fnp.minimum(middle + 0.5, (middle + high) / 2) if xr0 is None else xr0
    (p, m, q, low, high, factor), more = _broadcast(
        name, (left, middle, right, low, high, factor), args
    )
    function = _called(name, f, more)
    p, m, q, low, high, factor = (
        lax.stop_gradient(v) for v in (p, m, q, low, high, factor)
    )
    fp, fm, fq = map(function, (p, m, q))
    ordered = (low <= p) & (p < m) & (m < q) & (q <= high) & (factor > 1)
    # The search goes from a over b to c: downhill, to the right or to the left.
    back = fp < fq
    swap: Any = lambda v, w: (fnp.where(back, w, v), fnp.where(back, v, w))
    (a, c), (fa, fc) = swap(p, q), swap(fp, fq)
    bound = fnp.where(back, low, high)
    free = fnp.isinf(bound)
    wall = fnp.where(free, 0, bound)

    def step(s: Any) -> Any:
        _, b, c, _, fb, fc, size, rest, done, bad, steps = s
        keep = done | bad
        size, rest = size * factor, rest / factor
        x = fnp.where(free, c + size, wall - rest)
        x = fnp.where(keep, c, x)
        value = function(x)
        fresh = (b, c, x, fb, fc, value)
        moved = tuple(
            fnp.where(keep, old, new) for old, new in zip(s[:6], fresh, strict=True)
        )
        _, b, c, fa, fb, fc = moved
        hit = _is_lowest(fa, fb, fc) & (b != c)
        lost = ~fnp.isfinite(fc)
        return (
            *moved,
            *(size, rest, done | (~bad & hit), bad | (~done & ~hit & lost)),
            fnp.where(keep, steps, steps + 1),
        )

    zero = fnp.zeros(a.shape, dtypes.int32)
    done = _is_lowest(fa, fm, fc) & ordered
    finite = fnp.isfinite(fa) & fnp.isfinite(fm) & fnp.isfinite(fc)
    start = (
        *(a, m, c, fa, fm, fc),
        *(c - m, fnp.where(free, 0, wall - c), done, ~ordered | ~finite, zero),
    )
    end = lax.while_loop(
        lambda s: fnp.any(~s[8] & ~s[9] & (s[10] < maxiter)), step, start
    )
    a, b, c, fa, fb, fc, _, _, done, bad, steps = end
    status = fnp.where(done, 0, fnp.where(bad, -3, -2))
    status = fnp.where(ordered, status, -1).astype(dtypes.int32)
    (p, q), (fp, fq) = swap(a, c), swap(fa, fc)
    return BracketResult(status == 0, status, (p, b, q), (fp, fb, fq), steps + 3, steps)


_public(globals(), __all__)
