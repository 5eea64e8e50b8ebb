"""Integrals over several variables at once: `cubature` and `qmc_quad`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow import random, scipy
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.integrate._adaptive import (
    genz_malik_rule,
    integrated,
    kronrod_rule,
)
from fxflow.scipy.special import logsumexp

#: `stats` is imported on first use.
_SCIPY: Any = scipy


class CubatureResult(NamedTuple):
    """What `cubature` returns.

    Attributes:
      estimate: float or complex[...]: the integral.
      error: float[...]: an estimate of the errors of its elements.
      success: bool: whether each is small enough.
      subdivisions: int: how often a region was divided.
    """

    estimate: Array
    error: Array
    success: Array
    subdivisions: Array

    @property
    def status(self) -> str:
        """SciPy's word for it."""
        return "converged" if self.success else "not_converged"


class QMCQuadResult(NamedTuple):
    """What `qmc_quad` returns.

    Attributes:
      integral: the integral.
      standard_error: the standard error of the mean of estimates.
    """

    integral: Array
    standard_error: Array


def _corners(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    low, high = promote_inexact(name, fnp.asarray(a), fnp.asarray(b))
    if dtypes.is_complex(low.dtype):
        raise DtypeError(f"{name}: bounds must be real, got {low.aval}")
    low, high = fnp.atleast_1d(low), fnp.atleast_1d(high)
    if low.ndim != 1 or low.shape != high.shape or not low.size:
        raise ShapeError(
            f"{name}: a and b must be vectors of one length, got {low.aval}, "
            f"{high.aval}"
        )
    dtype = fnp.promote_types(low.dtype, "float32")
    return convert(low, dtype), convert(high, dtype)


def _is_infinite(bounds: Array) -> Any:
    if isinstance(bounds, Tracer):
        return np.zeros(bounds.shape, bool)
    return np.isinf(np.asarray(bounds))


def _placed(u: Array, a: Array, b: Array, kinds: Any) -> tuple[Array, Array]:
    """Returns a point and the determinant of the map from the unit cube."""
    below, above = kinds
    low, high = fnp.where(below, 0, a), fnp.where(above, 0, b)
    rest = 1 - u
    t = u - rest
    x = low + (high - low) * u
    slope = high - low
    x = fnp.where(above, low + u / rest, x)
    slope = fnp.where(above, 1 / rest**2, slope)
    x = fnp.where(below, high - rest / u, x)
    slope = fnp.where(below, 1 / u**2, slope)
    x = fnp.where(below & above, t / (4 * u * rest), x)
    slope = fnp.where(below & above, (1 + t * t) / (8 * (u * rest) ** 2), slope)
    return x, fnp.prod(slope)


def _unplaced(x: Any, a: Any, b: Any, kinds: Any) -> Any:
    """Returns where in the unit cube a point is."""
    below, above = kinds
    with np.errstate(all="ignore"):
        u = (x - a) / (b - a)
        u = np.where(above, (x - a) / (1 + x - a), u)
        u = np.where(below, 1 / (1 + b - x), u)
        t = 2 * x / (1 + np.sqrt(1 + 4 * x * x))
        return np.clip(np.where(below & above, (1 + t) / 2, u), 0, 1)


def cubature(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    rule: str = "gk21",
    rtol: float = 1e-8,
    atol: float = 0,
    max_subdivisions: int = 1000,
    args: tuple[Any, ...] = (),
    points: Sequence[Any] | None = None,
) -> CubatureResult:
    """Integrates a function of several variables over a box, adaptively.

    The region whose errors are the greatest is divided into 2^d parts, until each
    element of the integral is good enough. Derivatives are by bounds, by `args`, and by
    what `f` closes over.

    Args:
      f: called with points, float[m, d], and `args`; returns float or complex[m, ...].
      a: float[d]: the lower bounds; -inf, if they are not traced.
      b: float[d]: the upper bounds; inf likewise.
      rule: "gk21" or "gk15", products of Gauss and Kronrod's rules of 21 or 15 points;
        or "genz-malik", with far fewer points from three variables, for d ≥ 2.
      rtol: the relative error of an element that is small enough.
      atol: the absolute error likewise.
      max_subdivisions: how often a region is divided at most; this much room is taken.
      args: extra arguments.
      points: points, float[d], at which the first regions have their corners: where `f`
        is singular, since it is called inside regions only. They are not traced.

    Returns:
      A `CubatureResult`.

    Raises:
      ArgumentError: unknown rule, or not for this d; `max_subdivisions` is not
        positive, or `points` and bounds are traced.
      ShapeError: the bounds are not vectors of one length.
      DtypeError: the bounds are complex.

    Example:
      >>> found = cubature(lambda x: fnp.prod(x, 1), [0.0, 0.0], [1.0, 2.0])
      >>> round(float(found.estimate), 4)
      1.0

    Source: `scipy.integrate.cubature`; A. Genz and A. Malik 1980.
    """
    low, high = _corners("cubature", a, b)
    d, dtype = low.size, low.dtype
    most = natural("cubature", "max_subdivisions", max_subdivisions)
    if rule not in ("gk21", "gk15", "genz-malik"):
        raise ArgumentError(
            f"cubature: rule must be gk21, gk15 or genz-malik, got {rule!r}"
        )
    if rule == "genz-malik":
        if d < 2:
            raise ArgumentError("cubature: genz-malik needs two variables at least")
        used = genz_malik_rule(d)
    else:
        used = kronrod_rule(10 if rule == "gk21" else 7, d)
    below, above = _is_infinite(low), _is_infinite(high)
    # From infinity down to a number: bounds in order, and a sign.
    swap = np.zeros(d, bool)
    if below.any() or above.any():
        swap = np.asarray(low) > np.asarray(high)
        low, high = fnp.where(swap, high, low), fnp.where(swap, low, high)
        below, above = _is_infinite(low), _is_infinite(high)
    sign = (-1.0) ** int(swap.sum())

    def integrand(u: Array, a: Array, b: Array) -> Array:
        x, volume = _placed(u, a, b, (below, above))
        (y,) = promote_inexact("cubature", f(x[None], *args))
        if y.ndim < 1 or y.shape[0] != 1:
            raise ShapeError(
                "cubature: f must return a row for each of the points it gets, "
                f"f32[m, ...] for f32[m,{d}], got {y.aval} for one point"
            )
        kind = fnp.promote_types(y.dtype, dtype)
        return convert(y[0], kind) * volume

    starts = None
    if points is not None:
        if isinstance(low, Tracer) or any(isinstance(p, Tracer) for p in points):
            raise ArgumentError(
                "cubature: with points, these and the bounds must be known, not traced"
            )
        at = [
            _unplaced(
                np.asarray(p, float), np.asarray(low), np.asarray(high), (below, above)
            )
            for p in points
        ]
        edges = [np.unique([0.0, 1.0, *(p[i] for p in at)]) for i in range(d)]
        corners = np.array(list(itertools.product(*(e[:-1] for e in edges))))
        sizes = np.array(list(itertools.product(*(np.diff(e) for e in edges))))
        starts = fnp.asarray(corners, dtype), fnp.asarray(sizes, dtype)
    count = 1 if starts is None else len(starts[0])
    found = integrated(
        integrand,
        (low, high),
        used,
        atol,
        rtol,
        count + int(most) * (2**d - 1),
        starts=starts,
        norm=None,
    )
    divided = (found.used - count) // (2**d - 1)
    return CubatureResult(sign * found.value, found.errors, found.converged, divided)


def qmc_quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    n_estimates: int = 8,
    n_points: int = 1024,
    qrng: Any = None,
    log: bool = False,
    key: Array,
) -> QMCQuadResult:
    """Integrates a function over a box by quasi-random points.

    Args:
      func: called with points, float[d, m]; returns real numbers, float[m].
      a: float[d]: the lower bounds, finite.
      b: float[d]: the upper bounds, finite.
      n_estimates: the number of independent estimates.
      n_points: the points of each; a power of 2 for `stats.qmc.Sobol`.
      qrng: the class of points: `stats.qmc.Halton`, `stats.qmc.Sobol`, or a function of
        d and `key` that returns such an object. None means `Halton`.
      log: whether `func` returns logarithms, and the results are logarithms.
      key: a key of `fxflow.random`, for the points.

    Returns:
      A `QMCQuadResult`: the mean of the estimates and its standard error.

    Raises:
      ArgumentError: a number is not positive.
      ShapeError: the bounds are not vectors of one length, or `func` does not return
        m numbers.

    Example:
      >>> found = qmc_quad(
      ...     lambda x: fnp.sum(x, 0), [0.0, 0.0], [1.0, 1.0], key=random.key(0)
      ... )
      >>> bool(fnp.abs(found.integral - 1) < 1e-2)
      True

    Source: `scipy.integrate.qmc_quad`.
    """
    low, high = _corners("qmc_quad", a, b)
    estimates = natural("qmc_quad", "n_estimates", n_estimates, 2)
    count = natural("qmc_quad", "n_points", n_points)
    make = _SCIPY.stats.qmc.Halton if qrng is None else qrng
    sign = fnp.prod(fnp.sign(high - low))
    bottom, top = fnp.minimum(low, high), fnp.maximum(low, high)
    volume = fnp.prod(top - bottom)

    def estimate(key: Array) -> Any:
        unit = convert(make(low.size, key=key).random(count), low.dtype)
        x = bottom + (top - bottom) * unit
        y = fnp.asarray(func(x.T))
        if y.shape != (count,):
            raise ShapeError(
                f"qmc_quad: func must return f32[{count}] for f32[{low.size},{count}], "
                f"got {y.aval}"
            )
        if log:
            return logsumexp(y) + fnp.log(volume / count)
        return fnp.mean(y) * volume

    found = fnp.stack([estimate(k) for k in random.split(key, estimates)])
    if not log:
        return QMCQuadResult(
            sign * fnp.mean(found), fnp.std(found, ddof=1) / math.sqrt(estimates)
        )
    mean = logsumexp(found) - math.log(estimates)
    spread = fnp.std(fnp.exp(found - mean), ddof=1) / math.sqrt(estimates)
    return QMCQuadResult(mean, mean + fnp.log(spread))
