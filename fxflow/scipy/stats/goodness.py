"""Tests of whether samples have a distribution, or one and the same."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.cylinder import kv
from fxflow.scipy.stats._kolmogorov import (
    limit_sf,
    one_sided_sf,
    two_samples_sf,
)
from fxflow.scipy.stats._protocol import PACKAGE
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_alternative,
    require_choice,
    statistic,
    taken,
)
from fxflow.scipy.stats._two_sided import two_sided_sf
from fxflow.scipy.stats.correlations import ranked
from fxflow.scipy.stats.results import (
    AndersonKsampResult,
    AndersonResult,
    CramerVonMisesResult,
    KstestResult,
    SignificanceResult,
)
from fxflow.scipy.stats.variance_tests import parted, pooled


def _function_of(name: str, cdf: Any, args: Any) -> Callable[..., Any]:
    """Returns the distribution function that the user means."""
    if not isinstance(args, tuple | list):
        raise ArgumentError(f"{name}: args must be a tuple, got {args!r}")
    if callable(cdf):
        found: Callable[..., Any] = cdf
        return found
    module = sys.modules.get(f"{PACKAGE}.{cdf}") if isinstance(cdf, str) else None
    if not hasattr(module, "cdf"):
        raise ArgumentError(
            f"{name}: cdf must be a function or the name of a distribution, got {cdf!r}"
        )
    named: Callable[..., Any] = module.cdf  # type: ignore[union-attr]
    return named


def _require_complete(name: str, nan_policy: str) -> None:
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))


_KS = ("auto", "exact", "asymp", "approx")


@library("alternative", "method")
def _distance_from(x: Any, heights: Any, alternative: str, method: str) -> Any:
    """Returns the distance of a sorted sample from a function, and its p-value."""
    n = x.aval.shape[-1]
    i = fnp.arange(1, n + 1, dtype=x.aval.dtype)
    found = []
    for gap in (i / n - heights, heights - (i - 1) / n):
        at = fnp.argmax(gap, axis=-1, keepdims=True)
        found.append([fnp.take_along_axis(v, at, axis=-1) for v in (gap, x)])
    (above, first), (below, second) = found
    if alternative == "two-sided":
        up = above > below
    else:
        up = fnp.full_like(above, alternative == "greater", dtype=bool)
    d, where = fnp.where(up, above, below), fnp.where(up, first, second)
    if alternative != "two-sided":
        p = one_sided_sf(n, d)
    elif method == "asymp":
        p = limit_sf(d * math.sqrt(n))
    elif method == "approx":
        p = fnp.clip(2 * one_sided_sf(n, d), 0, 1)
    else:
        p = two_sided_sf(n, d)
    return d, p, where, fnp.where(up, 1, -1)


@statistic("axis", "keepdims", compiled=False)
def ks_1samp(
    x: ArrayLike,
    cdf: str | Callable[..., Any],
    args: tuple[Any, ...] = (),
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> KstestResult:
    """Tests whether a sample has a distribution, by Kolmogorov and Smirnov's distance.

    Args:
      cdf: the distribution function, called as `cdf(x, *args)` with an array, or the
        name of a distribution of `scipy.stats`.
      args: its parameters.
      alternative: "two-sided"; "greater" and "less": that the sample's distribution
        function is above it, below it.
      method: the two-sided p-value: "exact" ("auto"; of more than 140 elements an
        expansion of 5 digits or more), "asymp", the limit, or "approx", twice the
        one-sided one.
      nan_policy: "propagate" or "raise".

    Example:
      >>> d, p = ks_1samp(np.array([-1.0, -0.5, 0.2, 0.7]), "norm")
      >>> d.round(4), p.round(4)
      (Array(0.242, dtype=float32), Array(0.9281, dtype=float32))
    """
    name = "ks_1samp"
    require_alternative(name, alternative)
    require_choice(name, "method", method, _KS)
    _require_complete(name, nan_policy)
    function = _function_of(name, cdf, args)
    (s,), done = taken(name, (x,), axis, nan_policy, keepdims)
    if not s.size:
        raise ShapeError(f"{name}: takes at least one element, got none")
    ordered = s.sorted()
    heights = fnp.asarray(function(ordered, *args), s.dtype)
    d, p, where, sign = _distance_from(ordered, heights, alternative, method)
    lost = s.lost
    d, p, where = (fnp.where(lost, math.nan, v) for v in (d, p, where))
    return KstestResult(done(d), done(p), done(where), done(sign))


@statistic("axis", "keepdims")
def ks_2samp(
    data1: ArrayLike,
    data2: ArrayLike,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> KstestResult:
    """Tests whether two samples have one distribution, by Smirnov's distance.

    Args:
      data1: real array-like[...]: a sample.
      data2: real array-like[...]: another one.
      alternative: "two-sided"; "greater" and "less": that the distribution function of
        the first sample is above the other, below it.
      method: "exact", "asymp", or "auto", which is "exact" to 10 000 elements.
      nan_policy: "propagate" or "raise".

    Example:
      >>> d, p = ks_2samp(np.array([1.0, 2, 3, 4]), np.array([3.5, 5, 6, 7]))
      >>> d, p.round(4)
      (Array(0.75, dtype=float32), Array(0.2286, dtype=float32))
    """
    name = "ks_2samp"
    require_alternative(name, alternative)
    require_choice(name, "method", method, ("auto", "exact", "asymp"))
    _require_complete(name, nan_policy)
    (a, b), done = taken(name, (data1, data2), axis, nan_policy, keepdims)
    n1, n2 = a.size, b.size
    if not n1 or not n2:
        raise ShapeError(f"{name}: takes at least one element, got {n1} and {n2}")
    both = fnp.concatenate([a.values, b.values], axis=-1)
    order = fnp.argsort(both, axis=-1, stable=True)
    values = fnp.take_along_axis(both, order, axis=-1)
    # What each element adds to n1 n2 times the difference, in integers; within a run
    # of equal ones only the last place is a step.
    step = fnp.where(order < n1, n2, -n1).astype(dtypes.int32)
    gap = fnp.cumsum(step, axis=-1)
    ahead = fnp.concatenate(
        [
            values[..., 1:] != values[..., :-1],
            fnp.ones_like(order[..., :1], dtype=bool),
        ],
        axis=-1,
    )
    gap = fnp.where(ahead, gap, 0)
    found = []
    for sign in (1, -1):
        at = fnp.argmax(sign * gap, axis=-1, keepdims=True)
        found.append(
            [fnp.take_along_axis(v, at, axis=-1) for v in (sign * gap, values)]
        )
    (above, first), (below, second) = found
    if alternative == "two-sided":
        up = above >= below
    else:
        up = fnp.full_like(above, alternative == "greater", dtype=bool)
    d = fnp.where(up, above, below).astype(a.dtype) / (n1 * n2)
    if method == "exact" or (method == "auto" and max(n1, n2) <= 10_000):
        p = two_samples_sf(n1, n2, d, alternative)
    else:
        m, n = float(max(n1, n2)), float(min(n1, n2))
        mean = m * n / (m + n)
        if alternative == "two-sided":
            p = two_sided_sf(int(np.round(mean)), d)
        else:
            z = math.sqrt(mean) * d
            p = lax.exp(
                -2 * z * z - 2 * z * ((m + 2 * n) / math.sqrt(m * n * (m + n)) / 3)
            )
        p = fnp.clip(p, 0, 1)
    lost = a.lost | b.lost
    where = fnp.where(up, first, second)
    d, p, where = (fnp.where(lost, math.nan, v) for v in (d, p, where))
    return KstestResult(done(d), done(p), done(where), done(fnp.where(up, 1, -1)))


@statistic("axis", "keepdims", compiled=False)
def kstest(
    rvs: ArrayLike,
    cdf: str | ArrayLike | Callable[..., Any],
    args: tuple[Any, ...] = (),
    N: int = 20,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> KstestResult:
    """Tests whether a sample has a distribution, or that of another sample.

    Args:
      rvs: real array-like[...]: the sample.
      cdf: a distribution function or its name, as `ks_1samp` takes it, or a sample, as
        `ks_2samp` does.
      args: parameters of the distribution function.
      N: not used: SciPy draws `N` elements, where `rvs` is a function.
      method: as `ks_1samp` or `ks_2samp` has it.
      nan_policy: "propagate" or "raise".

    Example:
      >>> kstest(np.array([-1.0, -0.5, 0.2, 0.7]), "norm").pvalue.round(4)
      Array(0.9281, dtype=float32)
    """
    if callable(rvs) or isinstance(rvs, str):
        raise ArgumentError(
            f"kstest: rvs must be an array, got {rvs!r}: draw the sample with "
            "fxflow.random first"
        )
    options: Any = {"axis": axis, "nan_policy": nan_policy, "keepdims": keepdims}
    if callable(cdf) or isinstance(cdf, str):
        return ks_1samp(rvs, cdf, args, alternative, method, **options)
    return ks_2samp(rvs, cdf, alternative, method, **options)


# -- Cramér and von Mises --------------------------------------------------------------


def _limit_cdf(x: Any) -> Any:
    """Returns the distribution function of the limit of Cramér and von Mises's W."""
    safe = fnp.clip(x, 2e-3, 6)[..., None]
    k = np.arange(12)
    y = fnp.asarray(4.0 * k + 1, x.dtype)
    heights = [
        math.gamma(i + 0.5) / math.factorial(i) * math.sqrt(4 * i + 1) for i in k
    ]
    q = y * y / (16 * safe)
    terms = fnp.asarray(heights, x.dtype) * lax.exp(-q) * kv(0.25, q)
    value = fnp.sum(terms / lax.sqrt(safe), axis=-1) / math.pi**1.5
    return fnp.where(x < 2e-3, 0, fnp.where(x >= 6, 1, value))


def _correction(x: Any) -> Any:
    """Returns n times what the limit lacks, of n elements; the limit over 12 apart."""
    safe = fnp.clip(x, 2e-3, 6)[..., None]
    k = np.arange(12)
    root = 2 * lax.sqrt(safe)
    as_row: Any = lambda v: fnp.asarray(np.asarray(v, float), x.dtype)
    half = [math.gamma(i + 0.5) for i in k]
    more = [math.gamma(i + 1.5) for i in k]
    whole = [math.pi * math.factorial(i) for i in k]
    # D of the orders 2 and 3 at three rows of points: one call of each Bessel function.
    points = fnp.concatenate([as_row(4 * k + a) / root for a in (1, 3, 5)], axis=-1)
    z = points * points / 4
    low, mid, high = (kv(v, z) for v in (0.25, 0.75, 1.25))
    fade = lax.exp(-z) / math.sqrt(math.pi)
    second = fade * (points / 2) ** 1.5 * (low + mid)
    third = fade * (points / 2) ** 2.5 * (2 * low + 3 * mid - high)
    e2 = [second[..., i * 12 : (i + 1) * 12] for i in range(3)]
    e3 = [third[..., i * 12 : (i + 1) * 12] for i in range(3)]
    y1, y2 = safe**0.75, safe**1.25
    m = 2 * k + 1
    total = as_row(m * half) * e2[1] / (9 * y1)
    total = total + as_row(half) * e3[0] / (72 * y2)
    total = total + as_row(2 * (m + 2) * more) * e3[2] / (12 * y2)
    total = total + as_row(7 * m * np.asarray(half)) * (e2[0] + e2[2]) / (144 * y1)
    return -fnp.sum(total / as_row(whole), axis=-1)


@library()
def _cramer_of(heights: Any) -> Any:
    n = heights.aval.shape[-1]
    places = fnp.asarray((2 * np.arange(1, n + 1) - 1) / (2 * n), heights.aval.dtype)
    w = 1 / (12 * n) + fnp.sum((places - heights) ** 2, axis=-1, keepdims=True)
    value = _limit_cdf(w) * (1 + 1 / (12 * n)) + _correction(w) / n
    value = fnp.where(w >= n / 3, 1, fnp.where(w <= 1 / (12 * n), 0, value))
    return w, fnp.clip(1 - value, 0, None)


@statistic("axis", "keepdims", compiled=False)
def cramervonmises(
    rvs: ArrayLike,
    cdf: str | Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> CramerVonMisesResult:
    """Tests whether a sample has a distribution, by Cramér and von Mises's W.

    Args:
      rvs: real array-like[...]: the sample, of at least 2 elements.
      cdf: the distribution function, called as `cdf(x, *args)` with an array, or the
        name of a distribution of `scipy.stats`.
      args: its parameters.
      nan_policy: "propagate" or "raise".

    Example:
      >>> cramervonmises(np.array([-1.0, -0.5, 0.2, 0.7]), "norm").statistic.round(4)
      Array(0.0422, dtype=float32)
    """
    name = "cramervonmises"
    _require_complete(name, nan_policy)
    function = _function_of(name, cdf, args)
    (s,), done = taken(name, (rvs,), axis, nan_policy, keepdims)
    if s.size < 2:
        raise ShapeError(f"{name}: takes at least 2 elements, got {s.size}")
    heights = fnp.asarray(function(s.sorted(), *args), s.dtype)
    lost = s.lost
    w, p = (fnp.where(lost, math.nan, v) for v in _cramer_of(heights))
    return CramerVonMisesResult(done(w), done(p))


@functools.lru_cache(32)
def _cramer_table(m: int, n: int) -> tuple[Any, Any]:
    """Returns the values of ζ of two samples without ties, and their upper tails."""
    lcm = math.lcm(m, n)
    a, b = lcm // m, lcm // n
    rows: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(m)]
    for u in range(n + 1):
        held: dict[int, int] = {}
        new = []
        for v, row in enumerate(rows):
            joined = dict(held)
            for key, ways in row.items():
                joined[key] = joined.get(key, 0) + ways
            more = (a * v - b * u) ** 2
            held = {key + more: ways for key, ways in joined.items()}
            new.append(held)
        rows = new
    values = np.array(sorted(rows[m]), float)
    counts = [rows[m][int(v)] for v in values]
    total, tails = 0, []
    for count in reversed(counts):
        total += count
        tails.append(total / math.comb(m + n, m))
    return values, np.array([*tails[::-1], 0.0])


@statistic("axis", "keepdims")
def cramervonmises_2samp(
    x: ArrayLike,
    y: ArrayLike,
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> CramerVonMisesResult:
    """Tests whether two samples have one distribution, by Cramér and von Mises's T.

    Args:
      method: "exact", "asymptotic", or "auto", which is "exact" to 20 elements.
      nan_policy: "propagate" or "raise".

    Example:
      >>> x, y = np.array([1.0, 2, 3, 4]), np.array([3.5, 5, 6, 7])
      >>> cramervonmises_2samp(x, y).pvalue.round(4)
      Array(0.0571, dtype=float32)
    """
    name = "cramervonmises_2samp"
    require_choice(name, "method", method, ("auto", "exact", "asymptotic"))
    _require_complete(name, nan_policy)
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims)
    n1, n2 = a.size, b.size
    if min(n1, n2) < 2:
        raise ShapeError(f"{name}: takes at least 2 elements, got {n1} and {n2}")
    xs = [Sample(a.sorted()), Sample(b.sorted())]
    ranks = parted(xs, ranked(pooled(xs))[0].values)
    u: Any = 0
    for s, r in zip(xs, ranks, strict=True):
        places = fnp.arange(1, s.size + 1, dtype=a.dtype)
        u = u + s.size * fnp.sum((r - places) ** 2, axis=-1, keepdims=True)
    k, n = n1 * n2, n1 + n2
    t = u / (k * n) - (4 * k - 1) / (6 * n)
    if method == "exact" or (method == "auto" and max(n1, n2) <= 20):
        values, tails = _cramer_table(n1, n2)
        lcm = math.lcm(n1, n2)
        # ζ of the sample, which ties make a fraction: its floor is what counts.
        bounds = (values * 6 * k * k / (lcm**2 * n) + k * (4 * k - 1)) / 6
        unit = k * k / (lcm**2 * n)
        at = fnp.searchsorted(
            fnp.asarray(bounds + unit * (1 - 1e-3), a.dtype), u, side="right"
        )
        p = fnp.asarray(tails, a.dtype)[at]
    else:
        mean = (1 + 1 / n) / 6
        var = (n + 1) * (4 * k * n - 3 * (n1**2 + n2**2) - 2 * k) / (45 * n**2 * 4 * k)
        z = 1 / 6 + (t - mean) / math.sqrt(45 * var)
        p = fnp.where(z < 0.003, 1, fnp.clip(1 - _limit_cdf(z), 0, None))
    lost = a.lost | b.lost
    t, p = (fnp.where(lost, math.nan, v) for v in (t, p))
    return CramerVonMisesResult(done(t), done(p))


# -- Anderson and Darling --------------------------------------------------------------

_NAMES = {"extreme1": "gumbel_l", "gumbel": "gumbel_l"}
_GUMBEL = ([0.474, 0.637, 0.757, 0.877, 1.038], lambda n: 1 + 0.2 / math.sqrt(n))
#: Critical values for great samples, and what they are divided by.
_CRITICAL: dict[str, tuple[list[float], Callable[[int], float]]] = {
    "norm": ([0.561, 0.631, 0.752, 0.873, 1.035], lambda n: 1 + 0.75 / n + 2.25 / n**2),
    "expon": ([0.916, 1.062, 1.321, 1.591, 1.959], lambda n: 1 + 0.6 / n),
    "logistic": ([0.426, 0.563, 0.660, 0.769, 0.906, 1.010], lambda n: 1 + 0.25 / n),
    "gumbel_l": _GUMBEL,
    "gumbel_r": _GUMBEL,
}
_LEVELS = {
    "norm": [15.0, 10, 5, 2.5, 1],
    "expon": [15.0, 10, 5, 2.5, 1],
    "logistic": [25.0, 10, 5, 2.5, 1, 0.5],
    "gumbel_l": [25.0, 10, 5, 2.5, 1],
    "gumbel_r": [25.0, 10, 5, 2.5, 1],
}


@statistic()
def anderson(x: ArrayLike, dist: str = "norm", *, method: str | None = None) -> Any:
    """Tests whether a sample has a distribution of a family, by Anderson and Darling.

    Args:
      x: real array-like[n]: the sample.
      dist: "norm", "expon", "logistic", "gumbel_l" (also "gumbel" and "extreme1") or
        "gumbel_r". The parameters are fitted.
      method: None, or "interpolate", which returns a p-value.

    Returns:
      An `AndersonResult` with `statistic`, `critical_values` and `significance_level`
      in per cent; with "interpolate" a named tuple of `statistic` and `pvalue`.

    Example:
      >>> x = np.array([-1.0, -0.5, 0.2, 0.7, 1.5])
      >>> anderson(x).statistic.round(4)
      Array(0.1495, dtype=float32)
    """
    name = "anderson"
    dist = _NAMES.get(str(dist).lower(), str(dist).lower())
    require_choice(name, "dist", dist, tuple(_CRITICAL))
    require_choice(name, "method", method, (None, "interpolate"))
    (row,), dtype = operands(name, x)
    if row.aval.ndim != 1 or row.aval.shape[0] < 2:
        raise ShapeError(f"{name}: takes a row of at least 2 elements, got {row.aval}")
    module: Any = sys.modules[f"{PACKAGE}.{dist}"]
    n = row.aval.shape[0]
    ordered = fnp.sort(row)
    middle: Any
    if dist == "norm":
        middle, wide = fnp.mean(row), fnp.std(row, ddof=1)
    elif dist == "expon":
        middle, wide = 0.0, fnp.mean(row)
    else:
        middle, wide = module.fit(row)
    w = (ordered - middle) / wide
    places = fnp.asarray((2 * np.arange(1, n + 1) - 1) / n, row.aval.dtype)
    both = module.logcdf(w) + module.logsf(w)[::-1]
    value = (-n - fnp.sum(places * both)).astype(dtype)
    values, divisor = _CRITICAL[dist]
    critical = np.round(np.array(values) / divisor(n), 3)
    levels = np.array(_LEVELS[dist])
    shown = fnp.asarray(critical, dtype), fnp.asarray(levels, dtype)
    if method is None:
        return AndersonResult(value, *shown)
    return SignificanceResult(value, fnp.interp(value, shown[0], shown[1] / 100))


_VARIANTS = ("midrank", "right", "continuous")


@statistic("midrank")
def anderson_ksamp(
    samples: Sequence[ArrayLike],
    midrank: bool | None = None,
    *,
    variant: str | None = None,
    method: None = None,
) -> Any:
    """Tests whether samples have one distribution, by Anderson and Darling.

    Args:
      samples: two or more real array-likes[n], each of some length.
      midrank: True is the variant "midrank", False "right"; None is True.
      variant: "midrank", "right", or "continuous", for samples without ties; it makes
        the result a named tuple of `statistic` and `pvalue`.
      method: None. Call `permutation_test` for another p-value.

    Returns:
      An `AndersonKsampResult` with `statistic`, `critical_values` and `pvalue`, which
      is interpolated, and from 0.001 to 0.25.

    Special cases:
      nan, if all elements are equal.

    Example:
      >>> x, y = np.array([1.0, 2, 3, 4]), np.array([3.5, 5, 6, 7])
      >>> anderson_ksamp([x, y]).statistic.round(4)
      Array(1.6756, dtype=float32)
    """
    name = "anderson_ksamp"
    require_choice(name, "method", method, (None,))
    if not isinstance(samples, tuple | list) or len(samples) < 2:
        raise ArgumentError(f"{name}: takes two or more samples, got {samples!r}")
    kind = variant or ("right" if midrank is False else "midrank")
    require_choice(name, "variant", kind, _VARIANTS)
    rows, dtype = operands(name, *samples)
    for row in rows:
        if row.aval.ndim != 1 or not row.aval.size:
            raise ShapeError(
                f"{name}: a sample must be a row of at least one element, got "
                f"{row.aval}"
            )
    sizes = np.array([r.aval.shape[0] for r in rows])
    k, n = len(rows), int(sizes.sum())
    z = fnp.sort(fnp.concatenate(rows))
    left, right = (fnp.searchsorted(z, z, side=side) for side in ("left", "right"))
    ties = (right - left).astype(z.aval.dtype)
    place = fnp.arange(1, n + 1, dtype=z.aval.dtype)
    value: Any = 0
    for row, size in zip(rows, sizes.tolist(), strict=True):
        s = fnp.sort(row)
        upto = fnp.searchsorted(s, z, side="right").astype(z.aval.dtype)
        if kind == "midrank":
            below = fnp.searchsorted(s, z, side="left").astype(z.aval.dtype)
            count, at = (upto + below) / 2, left + ties / 2
            under = at * (n - at) - n * ties / 4
        elif kind == "right":
            count, at = upto, right.astype(z.aval.dtype)
            under = at * (n - at)
        else:
            count, at = upto, place
            under = at * (n - at)
        good = under > 0
        inner = (n * count - at * size) ** 2 / fnp.where(good, under, 1)
        value = value + fnp.sum(fnp.where(good, inner, 0)) / (n * size)
    if kind == "midrank":
        value = value * ((n - 1) / n)
    inverse = (1 / sizes).sum()
    harmonic = (1 / np.arange(n - 1, 1, -1)).cumsum()
    h = harmonic[-1] + 1
    g = (harmonic / np.arange(2, n)).sum()
    a = (4 * g - 6) * (k - 1) + (10 - 6 * g) * inverse
    b = (2 * g - 4) * k**2 + 8 * h * k
    b += (2 * g - 14 * h - 4) * inverse - 8 * h + 4 * g - 6
    c = (6 * h + 2 * g - 2) * k**2 + (4 * h - 4 * g + 6) * k
    c += (2 * h - 6) * inverse + 4 * h
    d = (2 * h + 6) * k**2 - 4 * h * k
    spread = (a * n**3 + b * n**2 + c * n + d) / ((n - 1.0) * (n - 2.0) * (n - 3.0))
    m = k - 1
    value = (value - m) / math.sqrt(spread)
    value = fnp.where(z[0] == z[-1], math.nan, value)
    # Scholz and Stephens 1987, table 2.
    b0 = np.array([0.675, 1.281, 1.645, 1.96, 2.326, 2.573, 3.085])
    b1 = np.array([-0.245, 0.25, 0.678, 1.149, 1.822, 2.364, 3.615])
    b2 = np.array([-0.105, -0.305, -0.362, -0.391, -0.396, -0.345, -0.154])
    critical = b0 + b1 / math.sqrt(m) + b2 / m
    levels = np.array([0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001])
    curve = np.polyfit(critical, np.log(levels), 2).tolist()
    p = lax.exp((curve[0] * value + curve[1]) * value + curve[2])
    p = fnp.where(value < float(critical.min()), 0.25, p)
    p = fnp.where(value > float(critical.max()), 0.001, p)
    value, p = value.astype(dtype), p.astype(dtype)
    if variant is not None:
        return SignificanceResult(value, p)
    return AndersonKsampResult(value, fnp.asarray(critical, dtype), p)
