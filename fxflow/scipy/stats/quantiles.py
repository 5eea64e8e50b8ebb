"""Quantiles of samples, with probabilities of their own for each row."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.incomplete_beta import betainc
from fxflow.scipy.stats._samples import (
    POLICIES,
    operands,
    require_choice,
    statistic,
)

_STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
_ROUNDED = ("round_outward", "round_inward", "round_nearest")
_METHODS = (
    *_STEPS, "interpolated_inverted_cdf", "hazen", "weibull", "linear",
    "median_unbiased", "normal_unbiased", "harrell-davis", *_ROUNDED,
)  # fmt: skip


@statistic("axis", "keepdims")
def quantile(
    x: ArrayLike,
    p: ArrayLike,
    *,
    method: str = "linear",
    axis: int | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Returns quantiles of a sample, whose probabilities may differ from row to row.

    Args:
      x: real array-like[..., n]: the sample.
      p: real array-like[..., m] that broadcasts with `x` but along the axis, or a
        number: probabilities.
      method: one of the nine of Hyndman and Fan, "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
        "hazen", "weibull", "linear", "median_unbiased" and "normal_unbiased";
        "harrell-davis", a mean of all elements; or "round_outward", "round_inward" and
        "round_nearest", elements at which a sample is cut.
      axis: axis of the sample and of the probabilities; None flattens the array first.
      keepdims: whether the axis stays; None is where there are several probabilities.
      weights: real array-like[..., n], not negative: how often each element counts.
        Not with "harrell-davis" and those that round.

    Returns:
      Float array[..., m], or without the axis.

    Raises:
      ShapeError: the shapes do not broadcast, or `keepdims` is False and there are
        several probabilities.

    Special cases:
      nan for a probability that is not within 0 … 1, and for an empty sample.

    Example:
      >>> x = np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]])
      >>> quantile(x, np.array([[0.5], [0.25]]), axis=1)
      Array([2., 6.], dtype=float32)

    Source: `scipy.stats.quantile`; R. J. Hyndman and Y. Fan 1996; F. E. Harrell and C.
    E. Davis 1982.
    """
    name = "quantile"
    require_choice(name, "method", method, _METHODS)
    require_choice(name, "nan_policy", nan_policy, POLICIES)
    require_choice(name, "keepdims", keepdims, (None, True, False))
    weighted = weights is not None
    if weighted and method in ("harrell-davis", *_ROUNDED):
        raise ArgumentError(f'{name}: method "{method}" takes no weights')
    given = (x, p, weights) if weighted else (x, p)
    found, dtype = operands(name, *given)
    ndim = max(a.aval.ndim for a in found) or 1
    if axis is None:
        found = [fnp.ravel(a) for a in found]
    else:
        at = canonical_axis(name, axis, ndim)
        found = [
            fnp.moveaxis(
                fnp.reshape(a, (*[1] * (ndim - a.aval.ndim), *a.shape)), at, -1
            )
            for a in found
        ]
    a, q, *w = found
    m = q.aval.shape[-1]
    kept = m != 1 if keepdims is None else keepdims
    if not kept and m != 1:
        raise ShapeError(
            f"{name}: keepdims=False takes one probability for each row, got {q.aval}"
        )
    if weighted and w[0].aval.shape[-1:] not in (a.aval.shape[-1:], (1,)):
        raise ShapeError(
            f"{name}: there must be a weight for each element, got {a.aval} and "
            f"{w[0].aval}"
        )
    try:
        batch = fnp.broadcast_shapes(*(v.aval.shape[:-1] for v in found))
    except (ShapeError, ValueError):
        raise ShapeError(
            f"{name}: x and p must broadcast beside the axis, got {a.aval} and {q.aval}"
        ) from None
    size = a.aval.shape[-1]
    a = fnp.broadcast_to(a, (*batch, size))
    q = fnp.broadcast_to(q, (*batch, m))
    if w:
        w = [fnp.broadcast_to(w[0], a.aval.shape)]
    value = _along(a, q, w[0] if w else None, method, nan_policy == "omit")
    value = value.astype(dtype)
    if axis is None:
        return fnp.reshape(value, (*[1] * (ndim - 1), m) if kept else ())
    return fnp.moveaxis(value, -1, at) if kept else value[..., 0]


def _along(a: Any, p: Any, w: Any, method: str, omit: bool) -> Any:
    """Returns quantiles along the last axis."""
    size = a.aval.shape[-1]
    if not size:
        return fnp.full_like(p, math.nan)
    hole = a != a
    if w is not None:
        hole = hole | (w != w)
        order = fnp.argsort(fnp.where(hole, math.inf, a), axis=-1)
        w = fnp.where(hole, 0, w)
        w, y = (fnp.take_along_axis(v, order, axis=-1) for v in (w, a))
        y = fnp.where(y == y, y, math.inf)
    else:
        y = fnp.sort(fnp.where(hole, math.inf, a), axis=-1)
    n = fnp.sum(~hole, axis=-1, keepdims=True, dtype=a.aval.dtype)
    lost = (n == 0) if omit else fnp.any(hole, axis=-1, keepdims=True)
    known = (p >= 0) & (p <= 1)
    q = fnp.where(known, p, 0.5)
    n = fnp.maximum(n, 1)
    if method == "harrell-davis":
        value = _harrell_davis(y, q, n)
    elif method in _ROUNDED:
        value = _at(y, _rounded(q, n, method), n)
    else:
        value = _interpolated(y, q, n, w, method)
    return fnp.where(known & ~lost, value, math.nan)


def _at(y: Any, j: Any, n: Any) -> Any:
    """Returns elements of rows, the nearest ones for places outside."""
    places = fnp.clip(j, 0, n - 1).astype(dtypes.int32)
    return fnp.take_along_axis(y, places, axis=-1)


def _interpolated(y: Any, p: Any, n: Any, w: Any, method: str) -> Any:
    """Returns the quantiles of Hyndman and Fan."""
    moved: Any = {
        "closest_observation": -0.5,
        "hazen": 0.5,
        "weibull": p,
        "linear": 1 - p,
        "median_unbiased": p / 3 + 1 / 3,
        "normal_unbiased": p / 4 + 0.375,
    }.get(method, 0.0)
    if w is None:
        place = p * n + moved
        upper = lax.floor(place)
        lower = upper - 1
    else:
        ends = fnp.cumsum(w, axis=-1)
        place = p * ends[..., -1:] + moved
        # How many elements end before a place, as if each were there `w` times.
        before: Any = lambda t: fnp.sum(
            ends[..., None, :] <= t[..., None], axis=-1, dtype=y.aval.dtype
        )
        upper, lower = before(place), before(place - 1)
    g = place - lax.floor(place)
    some = fnp.where(g > 0, 1.0, 0.0).astype(g.aval.dtype)
    if method == "inverted_cdf":
        g = some
    elif method == "averaged_inverted_cdf":
        g = (1 + some) / 2
    elif method == "closest_observation":
        odd = lax.rem(abs(lower), lax.full_like(lower, 2)) == 1
        g = fnp.where((g == 0) & odd, 0.0, 1.0).astype(g.aval.dtype)
    if method in _STEPS:
        g = fnp.where(place < 0, 0, g)
    g = fnp.where(lower < 0, 0, g)
    first, second = _at(y, lower, n), _at(y, upper, n)
    # Infinite elements have no differences.
    return fnp.where(first == second, first, (1 - g) * first + g * second)


def _rounded(p: Any, n: Any, method: str) -> Any:
    of: Any = {
        "round_outward": (fnp.floor, fnp.ceil),
        "round_inward": (fnp.ceil, fnp.floor),
        "round_nearest": (fnp.round, fnp.round),
    }
    low, high = of[method]
    return fnp.where(p < 0.5, low(p * n), high(p * n - 1))


def _harrell_davis(y: Any, p: Any, n: Any) -> Any:
    """Returns means of all elements, with the weights of a beta distribution."""
    q, n = p[..., None], n[..., None]
    inner = (q > 0) & (q < 1)
    safe = fnp.where(inner, q, 0.5)
    steps = fnp.arange(y.aval.shape[-1] + 1, dtype=y.aval.dtype)
    ends = betainc((n + 1) * safe, (n + 1) * (1 - safe), fnp.minimum(steps / n, 1))
    weights = fnp.diff(ends, axis=-1)
    finite = fnp.where(weights > 0, y[..., None, :], 0)
    value = fnp.sum(weights * finite, axis=-1)
    ends = fnp.where(
        p == 0, _at(y, 0 * p, n[..., 0]), _at(y, 0 * p + n[..., 0], n[..., 0])
    )
    return fnp.where((p > 0) & (p < 1), value, ends)
