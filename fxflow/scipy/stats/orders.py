"""Tests of the order of samples: whether they rise, or differ in the tails."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.linalg import matrix_rank, pinv
from fxflow.scipy.special.inverses import chdtrc
from fxflow.scipy.special.normal import ndtr
from fxflow.scipy.stats._exact import table_pvalue
from fxflow.scipy.stats._samples import (
    operands,
    require_alternative,
    require_choice,
    statistic,
    taken,
)
from fxflow.scipy.stats.ranks import rankdata
from fxflow.scipy.stats.resampling import permutation_test
from fxflow.scipy.stats.results import (
    PermutationTestResult,
    Result,
    SignificanceResult,
)
from fxflow.scipy.stats.variance_tests import any_lost


class PageTrendTestResult(Result):
    """What `page_trend_test` returns.

    Attributes:
      statistic: Page's L.
      pvalue: how probable one as great is.
      method: "exact" or "asymptotic".
    """

    statistic: Array
    pvalue: Array
    method: str
    _unpacked: ClassVar[int] = 3
    _fixed: ClassVar[tuple[str, ...]] = ("method",)


@functools.lru_cache(16)
def _page_chances(rows: int, columns: int) -> Any:
    """Returns the distribution of L above its least value, NumPy data.

    That of one row by sets of the ranks that are given out, that of more by products
    of generating functions.
    """
    most = columns * (columns + 1) * (2 * columns + 1) // 6
    ways = np.zeros((1 << columns, most + 1))
    ways[0, 0] = 1
    sizes = [bin(s).count("1") for s in range(1 << columns)]
    for s in sorted(range(1 << columns), key=sizes.__getitem__):
        column = sizes[s] + 1
        for rank in range(1, columns + 1):
            if s >> (rank - 1) & 1 or column > columns:
                continue
            step = rank * column
            ways[s | 1 << (rank - 1), step:] += ways[s, : most + 1 - step]
    least = sum(i * (columns + 1 - i) for i in range(1, columns + 1))
    one = ways[-1, least:] / math.factorial(columns)
    chances = np.ones(1)
    for _ in range(rows):
        chances = np.convolve(chances, one)
    return chances, rows * least


@statistic("ranked", "predicted_ranks")
def page_trend_test(
    data: ArrayLike,
    ranked: bool = False,
    predicted_ranks: Any = None,
    method: str = "auto",
) -> PageTrendTestResult:
    """Tests whether treatments have an effect that grows in a predicted order, by Page.

    Args:
      data: real array-like[m, n]: a row for each subject, a column for each treatment.
      ranked: whether the rows are ranks already.
      predicted_ranks: the ranks of the columns, n ints; None is that they ascend.
      method: "exact", which knows no ties; "asymptotic"; "auto": the exact p-value of
        small tables (n at most 8 and m at most 12, or 20 if n is 3).

    Returns:
      A `PageTrendTestResult` with `statistic`, `pvalue` and `method`.

    Raises:
      ArgumentError: the predicted ranks are not 1 … n, or n exceeds 14 and the method
        is "exact".
      ShapeError: there are fewer than 2 rows or 3 columns.

    Special cases:
      nan, if there is a nan.

    Example:
      >>> table = np.array([[3.0, 4, 3], [2, 2, 4], [3, 3, 5], [1, 3, 2]])
      >>> page_trend_test(table).statistic
      Array(52.5, dtype=float32)

    Source: `scipy.stats.page_trend_test`; E. B. Page 1963.
    """
    name = "page_trend_test"
    require_choice(name, "method", method, ("auto", "exact", "asymptotic"))
    (x,), dtype = operands(name, data)
    if x.aval.ndim != 2 or x.aval.shape[0] < 2 or x.aval.shape[1] < 3:
        raise ShapeError(
            f"{name}: data must have at least 2 rows and 3 columns, got {x.aval}"
        )
    m, n = x.aval.shape
    order = list(range(1, n + 1)) if predicted_ranks is None else predicted_ranks
    if sorted(np.asarray(order).tolist()) != list(range(1, n + 1)):
        raise ArgumentError(
            f"{name}: predicted_ranks must be the numbers from 1 to {n} in some order, "
            f"got {predicted_ranks!r}"
        )
    if method == "auto":
        small = n <= 8 and m <= 20 and (m <= 12 or n == 3)
        method = "exact" if small else "asymptotic"
    if method == "exact" and n > 14:
        raise ArgumentError(
            f'{name}: method "exact" takes at most 14 columns, got {n}: use '
            '"asymptotic"'
        )
    ranks = x if ranked else rankdata(x, axis=1)
    ranks = lax.stop_gradient(ranks)
    weights = fnp.asarray(np.asarray(order, float), x.aval.dtype)
    value = fnp.sum(ranks * weights)
    if method == "exact":
        chances, least = _page_chances(m, n)
        k = lax.floor(fnp.where(value == value, value, 0)) - least
        p = table_pvalue(chances, k, "greater", x.aval.dtype)
        p = fnp.where(value == value, p, math.nan)
    else:
        spread = m * n * n * (n + 1) * (n * n - 1) / 144
        p = ndtr((m * n * (n + 1) ** 2 / 4 - value) / math.sqrt(spread))
    return PageTrendTestResult(value.astype(dtype), p.astype(dtype), method)


# -- two samples -----------------------------------------------------------------------


def _bws(x: Any, y: Any, squared: bool, axis: int = -1) -> Any:
    """Returns Baumgartner, Weiß and Schindler's statistic of ranks."""
    parts = []
    sizes = (x.shape[-1], y.shape[-1])
    total = sum(sizes)
    for v, n, other in ((x, *sizes), (y, *sizes[::-1])):
        i = np.arange(1, n + 1)
        place = i / (n + 1)
        width = place * (1 - place) * other * total / n
        apart = fnp.sort(v, axis=axis) - fnp.asarray(total / n * i, v.dtype)
        square = apart * (apart if squared else abs(apart))
        parts.append(fnp.mean(square / fnp.asarray(width, v.dtype), axis=axis))
    return (parts[0] + parts[1] if squared else parts[0] - parts[1]) / 2


def _bws_squared(x: Any, y: Any, axis: int = -1) -> Any:
    return _bws(x, y, True, axis)


def _bws_signed(x: Any, y: Any, axis: int = -1) -> Any:
    return _bws(x, y, False, axis)


@statistic(compiled=False)
def bws_test(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alternative: str = "two-sided",
    key: Any = None,
    n_resamples: int = 9999,
    batch: int | None = None,
) -> PermutationTestResult:
    """Tests whether two samples have one distribution, with weight on the tails.

    The p-value is that of `permutation_test`, whose options stand in place of SciPy's
    `method`.

    Args:
      x: real array-like[m].
      y: real array-like[n].
      key: a key of `fxflow.random`; None only where all rearrangements are made.
      n_resamples: how many rearrangements are drawn; all are made if there are no more.
      batch: how many of them are worked on at a time.

    Returns:
      A named tuple of `statistic`, `pvalue` and `null_distribution`.

    Raises:
      ArgumentError: unknown option, or a nan is in a sample that is known.
      ShapeError: a sample is not a row.

    Example:
      >>> x = np.array([1.0, 2, 3, 4, 6, 7, 8])
      >>> y = np.array([5.0, 9, 10, 11, 12, 13, 14])
      >>> found = bws_test(x, y)
      >>> found.statistic.round(3), found.pvalue.round(4)
      (Array(5.132, dtype=float32), Array(0.0029, dtype=float32))

    Source: `scipy.stats.bws_test`; W. Baumgartner, P. Weiß, H. Schindler 1998; M.
    Neuhäuser 2005.
    """
    name = "bws_test"
    require_alternative(name, alternative)
    (a, b), _ = operands(name, x, y)
    for v in (a, b):
        if v.aval.ndim != 1 or not v.aval.size:
            raise ShapeError(f"{name}: samples must be rows, got {v.aval}")
        if not isinstance(v, Tracer) and bool(fnp.any(v != v)):
            raise ArgumentError(f"{name}: there is a nan in {v.aval}: leave it out")
    ranks = rankdata(fnp.concatenate([a, b]))
    m = a.aval.shape[0]
    found = permutation_test(
        (ranks[:m], ranks[m:]),
        _bws_squared if alternative == "two-sided" else _bws_signed,
        key=key,
        n_resamples=n_resamples,
        batch=batch,
        alternative="less" if alternative == "less" else "greater",
    )
    return found


@statistic("t", "axis", "keepdims")
def epps_singleton_2samp(
    x: ArrayLike,
    y: ArrayLike,
    t: Any = (0.4, 0.8),
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether two samples have one distribution, by characteristic functions.

    The distributions may be discrete.

    Args:
      x: real array-like[...] of at least 5 elements.
      y: another one.
      t: positive numbers: where the characteristic functions are compared, in units of
        the half of the interquartile range.

    Returns:
      A named tuple of `statistic` and `pvalue`.

    Special cases:
      nan for elements that are not finite.

    Example:
      >>> x, y = np.arange(9.0), np.arange(9.0) ** 2
      >>> epps_singleton_2samp(x, y).pvalue.round(4)
      Array(0.1971, dtype=float32)

    Source: `scipy.stats.epps_singleton_2samp`; T. W. Epps and K. J. Singleton 1986.
    """
    name = "epps_singleton_2samp"
    points = np.asarray(t, float)
    if points.ndim != 1 or not points.size or not (points > 0).all():
        raise ArgumentError(f"{name}: t must be a row of positive numbers, got {t!r}")
    require_choice(name, "nan_policy", nan_policy, ("propagate", "omit"))
    samples, done = taken(name, (x, y), axis, nan_policy, keepdims)
    if min(s.size for s in samples) < 5:
        raise ShapeError(
            f"{name}: samples must have at least 5 elements, got "
            f"{' and '.join(str(s.size) for s in samples)}"
        )
    finite = [abs(s.values) < math.inf for s in samples]
    lost = any_lost(samples)
    for held in finite:
        lost = lost | ~fnp.all(held, axis=-1, keepdims=True)
    samples = [
        s.but(fnp.where(held, s.values, 1))
        for s, held in zip(samples, finite, strict=True)
    ]
    wide = _half_range(samples)
    counts = [s.n[..., None] if s.kept is not None else s.n for s in samples]
    total = counts[0] + counts[1]
    means, spread = [], 0.0
    for s, n in zip(samples, counts, strict=True):
        ts = fnp.asarray(points[:, None], s.dtype) / wide[..., None]
        angle = ts * s.values[..., None, :]
        g = fnp.concatenate([lax.cos(angle), lax.sin(angle)], axis=-2)
        kept = 1.0 if s.kept is None else s.kept[..., None, :].astype(s.dtype)
        mean = fnp.sum(g * kept, axis=-1, keepdims=True) / n
        apart = (g - mean) * kept
        spread = spread + total / (n * n) * fnp.matmul(
            apart, fnp.matrix_transpose(apart)
        )
        means.append(mean)
    gap = means[0] - means[1]
    inverse = pinv(spread)
    value = fnp.matmul(fnp.matrix_transpose(gap), fnp.matmul(inverse, gap))[..., 0]
    total, first, second = (
        v[..., 0] if v.aval.ndim > 1 else v for v in (total, *counts)
    )
    value = value * total
    few = fnp.maximum(first, second) < 25
    factor = 1 + total**-0.45 + 10.1 * (first**-1.7 + second**-1.7)
    value = fnp.where(few, value / factor, value)
    rank = matrix_rank(spread)[..., None].astype(value.aval.dtype)
    p = chdtrc(rank, value)
    return SignificanceResult(*(done(fnp.where(lost, math.nan, v)) for v in (value, p)))


def _half_range(samples: Any) -> Any:
    """Returns half of the interquartile range of samples together: float[..., 1]."""
    both = fnp.concatenate([s.only(s.values, math.nan) for s in samples], axis=-1)
    low, high = (fnp.nanquantile(both, q, axis=-1, keepdims=True) for q in (0.25, 0.75))
    return (high - low) / 2
