"""Splines near samples: by a penalty on their bends, or with as few knots as can be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    _design,
    _weights,
    make_interp_spline,
)
from fxflow.scipy.interpolate.piecewise import _samples
from fxflow.scipy.optimize import brentq, minimize_scalar

# -- a penalty on bends ----------------------------------------------------------------


def _factors(main: Array, next_: Array, second: Array) -> tuple[Array, Array, Array]:
    """Returns D and both bands of L, where L D Lᵀ is a matrix of five bands."""

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        (d1, one1, two1), (d2, two2) = carry
        a, b, c = row
        d = a - one1 * one1 * d1 - two2 * two2 * d2
        one, two = (b - two1 * d1 * one1) / d, c / d
        return ((d, one, two), (d1, two1)), (d, one, two)

    zero = fnp.zeros_like(main[0])
    start = ((zero, zero, zero), (zero, zero))
    found: tuple[Array, Array, Array] = lax.scan(step, start, (main, next_, second))[1]
    return found


def _solved(factors: tuple[Array, Array, Array], right: Array) -> Array:
    """Returns the solution for right sides, array[n, m]."""
    d, one, two = factors

    def down(carry: Any, row: Any) -> tuple[Any, Any]:
        (z1, one1, two1), (z2, two2) = carry
        value, l1, l2 = row
        z = value - one1 * z1 - two2 * z2
        return ((z, l1, l2), (z1, two1)), z

    zero, none = fnp.zeros_like(d[0]), fnp.zeros_like(right[0])
    start = ((none, zero, zero), (none, zero))
    z = lax.scan(down, start, (right, one, two))[1] / d[:, None]

    def up(carry: Any, row: Any) -> tuple[Any, Any]:
        value, l1, l2 = row
        out = value - l1 * carry[0] - l2 * carry[1]
        return (out, carry[0]), out

    found: Array = lax.scan(up, (none, none), (z, one, two), reverse=True)[1]
    return found


def _inverse_bands(factors: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Returns the main band and the next two of the inverse."""

    def up(carry: Any, row: Any) -> tuple[Any, Any]:
        (main1, next1), main2 = carry
        d, one, two = row
        next_ = -one * main1 - two * next1
        second = -one * next1 - two * main2
        main = 1 / d - one * next_ - two * second
        return ((main, next_), main1), (main, next_, second)

    zero = fnp.zeros_like(factors[0][0])
    found: tuple[Array, Array, Array] = lax.scan(
        up, ((zero, zero), zero), factors, reverse=True
    )[1]
    return found


@library()
def _bands(x: Array, w: Array) -> tuple[Any, Any, Array]:
    """Returns the bands of R and of Qᵀ W⁻¹ Q, and the rows of Qᵀ (Reinsch, 1967)."""
    h = fnp.diff(x)
    q = fnp.stack([1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]])
    zero = fnp.zeros(1, x.dtype)
    mass = (
        (h[:-1] + h[1:]) / 3,
        fnp.concatenate([h[1:-1] / 6, zero]),
        fnp.zeros_like(h[1:]),
    )
    inverse = 1 / w
    main = (
        q[0] ** 2 * inverse[:-2] + q[1] ** 2 * inverse[1:-1] + q[2] ** 2 * inverse[2:]
    )
    next_ = (q[1, :-1] * q[0, 1:]) * inverse[1:-2] + q[2, :-1] * q[1, 1:] * inverse[
        2:-1
    ]
    second = q[2, :-2] * q[0, 2:] * inverse[2:-2]
    stiff = (
        main,
        fnp.concatenate([next_, zero]),
        fnp.concatenate([second, zero, zero]),
    )
    return mass, stiff, q


@library()
def _bent(x: Array, y: Array, w: Array, lam: Array) -> tuple[Array, Array]:
    """Returns the smoothed values, array[n, m], and the trace of 1 - smoother."""
    mass, stiff, q = _bands(x, w)
    factors = _factors(*(r + lam * s for r, s in zip(mass, stiff, strict=True)))
    second = q[0, :, None] * y[:-2] + q[1, :, None] * y[1:-1] + q[2, :, None] * y[2:]
    bends = _solved(factors, second)
    parts = [fnp.pad(q[i, :, None] * bends, ((i, 2 - i), (0, 0))) for i in range(3)]
    smooth = y - lam * (parts[0] + parts[1] + parts[2]) / w[:, None]
    inverse = _inverse_bands(factors)
    trace = fnp.sum(inverse[0] * stiff[0])
    trace = trace + 2 * fnp.sum(inverse[1] * stiff[1] + inverse[2] * stiff[2])
    return smooth, lam * trace


def _best(x: Array, y: Array, w: Array) -> Array:
    """Returns the penalty with the least generalized cross-validation, for a column."""
    n = x.shape[0]

    def score(lam: Array, x: Array, y: Array, w: Array) -> Array:
        smooth, trace = _bent(x, y[:, None], w, lam)
        return fnp.mean((y - smooth[:, 0]) ** 2) / (trace / n) ** 2

    top = fnp.asarray(float(n), x.dtype)
    found = minimize_scalar(score, bounds=(fnp.zeros_like(top), top), args=(x, y, w))
    best: Array = found.x
    return best


def make_smoothing_spline(
    x: ArrayLike,
    y: ArrayLike,
    w: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    *,
    axis: int = 0,
) -> BSpline:
    """Returns the cubic spline with the least sum of errors and bends.

    It minimizes the sum of w (y - f(x))² plus `lam` times the integral of f''². It is
    differentiable in `x`, `y`, `w` and `lam`, also where `lam` is chosen.

    Args:
      x: real array-like[n]: points, strictly ascending, n ≥ 5.
      y: real array-like[..., n, ...]: values.
      w: real array-like[n]: weights, positive; None is 1.
      lam: the penalty, not negative; None is the one with the least generalized
        cross-validation, for each column of `y`.
      axis: the axis of the points.

    Returns:
      BSpline, a natural one.

    Raises:
      ArgumentError: `x` does not ascend, a weight is not positive, or `lam` is
        negative.
      ShapeError: the shapes are incompatible, or there are fewer than 5 points.

    Example:
      >>> x = np.arange(8.0)
      >>> make_smoothing_spline(x, x % 2, lam=1e6)(3.5).round(3)
      Array(0.5, dtype=float32)

    Source: `scipy.interpolate.make_smoothing_spline`.
    """
    name = "make_smoothing_spline"
    points, (values,), axis = _samples(name, fnp.asarray(x), fnp.asarray(y), axis)
    points, values = promote_inexact(name, points, values)
    if points.size < 5:
        raise ShapeError(f"{name}: x must have at least 5 points, got {points.aval}")
    weights = fnp.ones_like(points) if w is None else fnp.asarray(w, points.dtype)
    if weights.shape != points.shape:
        raise ShapeError(f"{name}: w must have the shape of x, got {weights.aval}")
    if not isinstance(weights, Tracer) and not np.all(np.asarray(weights) > 0):
        raise ArgumentError(f"{name}: weights must be positive")
    flat = fnp.reshape(values, (values.shape[0], -1))
    if lam is None:
        columns = [
            _bent(
                points, flat[:, i : i + 1], weights, _best(points, flat[:, i], weights)
            )
            for i in range(flat.shape[1])
        ]
        smooth = fnp.concatenate([c[0] for c in columns], 1) if columns else flat
    else:
        penalty = fnp.asarray(lam, points.dtype)
        if penalty.ndim:
            raise ShapeError(f"{name}: lam must be a number, got {penalty.aval}")
        if not isinstance(penalty, Tracer) and not float(penalty) >= 0:
            raise ArgumentError(f"{name}: lam must not be negative, got {lam}")
        smooth = _bent(points, flat, weights, penalty)[0]
    smooth = fnp.moveaxis(fnp.reshape(smooth, values.shape), 0, axis)
    return make_interp_spline(points, smooth, 3, bc_type="natural", axis=axis)


# -- few knots -------------------------------------------------------------------------

_docs = shared("""
    Args:
      x: real array-like[m]: points, ascending.
      y: real array-like[m]: values.
      w: real array-like[m]: weights of the differences; None is 1.
      xb: the first end of the interval; None is the least point.
      xe: the last end; None is the greatest point.
      k: the degree.
      s: the sum of squares of the differences; 0 is a spline through all samples.
      t: real array-like: all knots, if they are known.
      nest: the maximum number of knots; None is the number needed.
      bc_type: "not-a-knot" or "periodic" (with s = 0); None is "not-a-knot".

    Raises:
      ArgumentError: an argument is out of range, or s = 0 and there are knots, weights
        or `nest`.
      ConcretizationError: knots are to be chosen for samples that are traced.
      ShapeError: the shapes are incompatible.

    Source: `scipy.interpolate.{name}`. P. Dierckx, Curve and Surface Fitting with
    Splines, 1993.
""")


class _Data:
    """Checked samples of a curve of one or more coordinates.

    Attributes:
      x: real array[m].
      y: real array[m, d].
      w: real array[m].
      ends: of the interval.
      k: the degree.
      s: the sum of squares.
    """

    def __init__(
        self, name: str, x: Any, y: Any, w: Any, ends: Any, k: int, s: Any
    ) -> None:
        x, y = promote_inexact(name, fnp.asarray(x), fnp.asarray(y))
        if x.ndim != 1 or y.ndim > 2 or not y.ndim or y.shape[0] != x.size:
            raise ShapeError(
                f"{name}: x and y must be samples of one length, got {x.aval} and "
                f"{y.aval}"
            )
        self.name, self.k = name, natural(name, "k", k)
        if x.size <= self.k:
            raise ShapeError(
                f"{name}: degree {k} needs more than {k} points, got {x.size}"
            )
        if not isinstance(x, Tracer) and np.any(np.diff(np.asarray(x)) < 0):
            raise ArgumentError(f"{name}: x must ascend")
        weights = fnp.ones_like(x) if w is None else fnp.asarray(w, x.dtype)
        if weights.shape != x.shape:
            raise ShapeError(f"{name}: w must have the shape of x, got {weights.aval}")
        if not isinstance(weights, Tracer) and not (
            np.all(np.asarray(weights) >= 0) and np.any(np.asarray(weights))
        ):
            raise ArgumentError(f"{name}: weights must not be negative, nor all 0")
        self.x, self.w = x, weights
        self.y = y[:, None] if y.ndim == 1 else y
        self.s = fnp.asarray(s, x.dtype)
        if not isinstance(self.s, Tracer) and not float(self.s) >= 0:
            raise ArgumentError(f"{name}: s must not be negative, got {s}")
        first, last = ends
        self.ends = (
            x[0] if first is None else fnp.asarray(first, x.dtype),
            x[-1] if last is None else fnp.asarray(last, x.dtype),
        )


def _host_residuals(
    x: Any, y: Any, w: Any, t: np.ndarray[Any, Any], k: int
) -> np.ndarray[Any, Any]:
    """Returns the squares of the differences of the nearest spline on knots."""
    count = t.size - k - 1
    at = np.clip(np.searchsorted(t, x, side="right") - 1, k, count - 1)
    rows = np.zeros((x.size, count))
    for j, weight in enumerate(_weights(t, x, k, at, np)):
        rows[np.arange(x.size), at - k + j] = weight * w
    right = y * w[:, None]
    c = np.linalg.lstsq(rows, right, rcond=None)[0]
    return np.asarray(((right - rows @ c) ** 2).sum(1))


def _with_knot(
    x: np.ndarray[Any, Any], t: np.ndarray[Any, Any], k: int, residuals: Any
) -> np.ndarray[Any, Any]:
    """Returns knots with one more, in the middle of where the error is largest."""
    at = np.searchsorted(x, t[k : t.size - k])
    sums = np.array([residuals[i:j].sum() for i, j in itertools.pairwise(at)])
    shared_ = residuals[np.minimum(at[1:-1], x.size - 1)] / 2
    sums[:-1] += shared_
    sums[1:] -= shared_
    sums[-1] += residuals[-1]
    sums[np.diff(at) <= 1] = -np.inf
    i = int(np.argmax(sums))
    new = x[(at[i] + at[i + 1] + 1) // 2]
    return np.insert(t, np.searchsorted(t, new), new)


def _knots(data: _Data, nest: int | None) -> Iterator[np.ndarray[Any, Any]]:
    """Yields knots, more and more of them, until the sum of squares is small enough."""
    known = (data.x, data.y, data.w, data.s, *data.ends)
    if any(isinstance(v, Tracer) for v in known):
        raise ConcretizationError(
            f"{data.name}: how many knots there are depends on the samples, which are "
            "traced: choose knots outside of jit and grad (generate_knots), and give t"
        )
    x, y, w, s, xb, xe = (np.asarray(v, np.float64) for v in known)
    k, m = data.k, x.size
    most = m + k + 1 if nest is None else natural(data.name, "nest", nest, 2 * k + 2)
    t = np.repeat([xb, xe], k + 1)
    last, plus = 0.0, 1
    for _ in range(m):
        yield t
        residuals = _host_residuals(x, y, w, t, k)
        total = residuals.sum()
        over = total - s
        if over < 1e-3 * s:
            return
        if t.size > 2 * k + 2:
            fall = last - total
            wanted = int(plus * over / fall) if fall > 1e-3 * s else 2 * plus
            plus = min(2 * plus, max(wanted, plus // 2, 1))
        last = total
        for j in range(plus):
            t = _with_knot(x, t, k, residuals)
            if t.size >= m + k + 1:
                yield np.asarray(make_interp_spline(x, x, k).t)
                return
            if t.size >= most:
                yield t
                return
            if j < plus - 1:
                residuals = _host_residuals(x, y, w, t, k)


def _jumps(t: Array, k: int) -> Array:
    """Returns the rows that give the jumps of the k-th derivative at inner knots."""
    n = t.shape[0]
    count = n - 2 * k - 1
    at = np.arange(count - 1)[:, None] + np.arange(k + 2)
    knot = t[np.arange(count - 1) + k + 1]
    span = t[at + k + 1] - t[at]
    apart = knot[:, None, None] - t[at[:, :, None] + np.arange(k + 2)]
    own = apart == 0
    rows = span / fnp.prod(fnp.where(own, 1, apart), 2)
    rows = rows * ((t[n - k - 1] - t[k]) / count) ** k
    whole = fnp.zeros((count - 1, n - k - 1), t.dtype)
    return whole.at[np.arange(count - 1)[:, None], at].set(rows)


@library("k")
def _nearest(
    t: Array, x: Array, y: Array, w: Array, k: int
) -> tuple[Array, Array, Array]:
    """Returns R and Qᵀ y of the weighted design, and the sum of squares left."""
    rows = _design(t, x, k) * w[:, None]
    q, r = fnp.linalg.qr(rows)
    right = y * w[:, None]
    top = fnp.matmul(q.T, right, precision="highest")
    rest = right - fnp.matmul(q, top, precision="highest")
    return r, top, fnp.sum(rest * rest)


def _penalized(
    r: Array, top: Array, rest: Array, jumps: Array, aim: Array, u: Array
) -> Any:
    """Returns coefficients for jumps that count exp(u), and the sum of squares."""
    weight = fnp.exp(u / 2)
    rows = fnp.concatenate([r, jumps * weight], 0)
    right = fnp.concatenate([top, aim * weight], 0)
    q, upper = fnp.linalg.qr(rows)
    c = lax.linalg.triangular_solve(
        upper, fnp.matmul(q.T, right, precision="highest"), left_side=True
    )
    missed = fnp.matmul(r, c, precision="highest") - top
    return c, rest + fnp.sum(missed * missed)


def _fitted(data: _Data, t: Any, nest: int | None) -> tuple[Array, Array]:
    """Returns knots and coefficients, array[n, d], of the smoothing spline."""
    if t is None:
        t = list(_knots(data, nest))[-1]
    elif nest is not None:
        raise ArgumentError(f"{data.name}: give either t or nest")
    knots, k = fnp.asarray(t, data.x.dtype), data.k
    if knots.ndim != 1 or knots.size < 2 * k + 2:
        raise ShapeError(
            f"{data.name}: t must be a vector of at least {2 * k + 2} knots, got "
            f"{knots.aval}"
        )
    if knots.size > data.x.size + k + 1:
        raise ShapeError(
            f"{data.name}: {data.x.size} points allow {data.x.size + k + 1} knots, got "
            f"{knots.size}"
        )
    return knots, _smoothed(knots, data.x, data.y, data.w, data.s, k)


def _excess(
    u: Any, r: Array, top: Array, rest: Array, jumps: Array, aim: Array, s: Any
) -> Any:
    return _penalized(r, top, rest, jumps, aim, u)[1] - s


@library("k")
def _smoothed(t: Array, x: Array, y: Array, w: Array, s: Array, k: int) -> Array:
    """Returns the coefficients on knots with the smallest jumps."""
    r, top, rest = _nearest(t, x, y, w, k)
    if t.shape[0] == 2 * k + 2:
        none = fnp.zeros((0, k + 1), r.dtype), top[:0]
        polynomial: Array = _penalized(r, top, rest, *none, fnp.zeros((), r.dtype))[0]
        return polynomial
    c: Array = solved_for_sum(r, top, rest, _jumps(t, k), s)[0]
    return c


def solved_for_sum(
    r: Array, top: Array, rest: Array, jumps: Array, s: Array, aim: Array | None = None
) -> tuple[Array, Array]:
    """Returns the coefficients with the smallest jumps, and the sum of squares.

    Args:
      r: float[n, n]: R of the weighted design.
      top: float[n, d]: Qᵀ of the weighted values.
      rest: float[]: the sum of squares that least squares leave.
      jumps: float[j, n]: rows that give the jumps.
      s: float[]: the sum of squares to leave.
      aim: float[j, d]: what the rows shall give; None is 0.
    """
    if aim is None:
        aim = fnp.zeros((jumps.shape[0], top.shape[1]), top.dtype)
    scale = fnp.log(fnp.sum(r * r) / fnp.sum(jumps * jumps))
    more = (r, top, rest, jumps, aim)
    c, total = _penalized(*more, weight_for_sum(_excess, more, scale, s))
    return c, total


def weight_for_sum(
    excess: Callable[..., Array], parts: tuple[Array, ...], scale: Array, s: Array
) -> Array:
    """Returns the logarithm of what jumps count where they leave a sum of squares.

    Args:
      excess: called with this logarithm, the parts and `s`; returns how much the sum
        of squares exceeds `s`. It rises with what jumps count.
      parts: of the problem.
      scale: float[]: near which to search.
      s: float[]: the sum of squares to leave.
    """
    scale = lax.stop_gradient(scale)
    # Beyond, rounding errors of values or of jumps decide; for float64, ±45.
    span = -1.25 * math.log(float(fnp.finfo(scale.dtype).eps))
    low, high = scale - span, scale + span
    inside = (excess(low, *parts, s) < 0) & (excess(high, *parts, s) > 0)
    # Elsewhere any sum with a root will do.
    other = lax.stop_gradient(excess(scale, *parts, fnp.zeros_like(s)))
    u = brentq(excess, low, high, args=(*parts, fnp.where(inside, s, other)))
    ends = fnp.where(excess(low, *parts, s) >= 0, low, high)
    return fnp.where(inside, u, ends)


def _periodic(name: str, bc_type: Any, s: Any) -> bool:
    if bc_type not in (None, "not-a-knot", "periodic"):
        raise ArgumentError(
            f'{name}: bc_type must be "not-a-knot", "periodic" or None, got {bc_type!r}'
        )
    periodic = bool(bc_type == "periodic")
    if periodic and not _through(s):
        raise ArgumentError(f'{name}: bc_type="periodic" needs s=0, got s={s}')
    return periodic


def _through(s: Any) -> bool:
    return not isinstance(s, Tracer) and not fnp.ndim(s) and float(s) == 0


def _require_alone(name: str, **given: Any) -> None:
    for what, value in given.items():
        if value is not None:
            raise ArgumentError(
                f"{name}: with s=0 the spline goes through the samples, without {what}"
            )


@_docs
def generate_knots(
    x: ArrayLike,
    y: ArrayLike,
    *,
    w: ArrayLike | None = None,
    xb: float | None = None,
    xe: float | None = None,
    k: int = 3,
    s: float = 0,
    nest: int | None = None,
    bc_type: str | None = None,
) -> Iterator[Array]:
    """Returns an iterator over the increasing sets of knots that `make_splrep` tries.

    Args:
      y: real array-like[m] or [m, d]: values.

    Returns:
      Iterator of float arrays; they are chosen on the host.

    Example:
      >>> x = np.linspace(0.0, 1.0, 20)
      >>> [t.size for t in generate_knots(x, np.sin(9 * x), s=1e-2)]
      [8, 9, 10, 11]
    """
    name = "generate_knots"
    periodic = _periodic(name, bc_type, s)
    if _through(s):
        _require_alone(name, w=w, nest=nest)
        bc = "periodic" if periodic else None
        return iter([make_interp_spline(x, x if not periodic else y, k, bc_type=bc).t])
    data = _Data(name, x, y, w, (xb, xe), k, s)
    return (fnp.asarray(t, data.x.dtype) for t in _knots(data, nest))


@_docs
def make_splrep(
    x: ArrayLike,
    y: ArrayLike,
    *,
    w: ArrayLike | None = None,
    xb: float | None = None,
    xe: float | None = None,
    k: int = 3,
    s: float = 0,
    t: ArrayLike | None = None,
    nest: int | None = None,
    bc_type: str | None = None,
) -> BSpline:
    """Returns a smoothing spline with few knots.

    The jumps of its k-th derivative are as small as a sum of squares of the differences
    `s` allows. Knots are chosen on the host; with `t`, it is differentiable by `y`, `w`
    and `s`.

    Returns:
      BSpline.

    Special cases:
      The sum of squares is `s` to rounding; SciPy stops at 0.1 % of it.

    Example:
      >>> x = np.linspace(0.0, 1.0, 20)
      >>> make_splrep(x, x**2, s=1e-3)(0.5).round(2)
      Array(0.25, dtype=float32)
    """
    name = "make_splrep"
    periodic = _periodic(name, bc_type, s)
    if _through(s):
        _require_alone(name, t=t, w=w, nest=nest)
        return make_interp_spline(x, y, k, bc_type="periodic" if periodic else None)
    if fnp.ndim(y) != 1:
        raise ShapeError(f"{name}: y must be a vector, got {fnp.ndim(y)} axes")
    knots, c = _fitted(_Data(name, x, y, w, (xb, xe), k, s), t, nest)
    return BSpline._of(knots, c[:, 0], int(k), True, 0)


@_docs
def make_splprep(
    x: Any,
    *,
    w: ArrayLike | None = None,
    u: ArrayLike | None = None,
    ub: float | None = None,
    ue: float | None = None,
    k: int = 3,
    s: float = 0,
    t: ArrayLike | None = None,
    nest: int | None = None,
    bc_type: str | None = None,
) -> tuple[BSpline, Array]:
    """Returns a smoothing spline through points of a curve.

    Args:
      x: real array-likes[m], one for each coordinate.
      u: real array-like[m]: the parameters of the points; None is the length of the
        polygon, of the whole one.
      ub: the first end of the parameters; None is u[0].
      ue: the last end; None is u[-1].

    Returns:
      BSpline whose values have the coordinates first, and the parameters, array[m].

    Example:
      >>> a = np.linspace(0.0, 3.0, 30)
      >>> f, u = make_splprep([np.cos(a), np.sin(a)])
      >>> f(0.5).round(2)
      Array([0.07, 1.  ], dtype=float32)
    """
    name = "make_splprep"
    points = fnp.stack(promote_inexact(name, *(fnp.asarray(v) for v in x)), 1)
    if points.ndim != 2:
        raise ShapeError(f"{name}: x must be vectors, got {points.aval}")
    if u is None:
        steps = fnp.sqrt(fnp.sum(fnp.diff(points, axis=0) ** 2, 1))
        along = fnp.concatenate([fnp.zeros(1, steps.dtype), fnp.cumsum(steps)])
        u = along / along[-1]
    parameters = fnp.asarray(u)
    periodic = _periodic(name, bc_type, s)
    if _through(s):
        _require_alone(name, t=t, w=w, nest=nest)
        bc = "periodic" if periodic else None
        return make_interp_spline(
            parameters, points.T, k, axis=1, bc_type=bc
        ), parameters
    data = _Data(name, parameters, points, w, (ub, ue), k, s)
    knots, c = _fitted(data, t, nest)
    return BSpline._of(knots, c, int(k), True, 1), parameters
