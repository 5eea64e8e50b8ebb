"""Tests by ranks: Mann–Whitney, Wilcoxon, Kruskal, Friedman and others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtr
from fxflow.scipy.stats._exact import (
    signed_ranks,
    subset_scores,
    subset_sums,
    table_pvalue,
)
from fxflow.scipy.stats._samples import (
    Sample,
    normal_pvalue,
    one_of,
    require_alternative,
    require_choice,
    statistic,
    student_pvalue,
    taken,
)
from fxflow.scipy.stats.correlations import ranked, require_asymptotic
from fxflow.scipy.stats.means_tests import chi_square_result, require_several
from fxflow.scipy.stats.results import SignificanceResult, WilcoxonResult
from fxflow.scipy.stats.variance_tests import any_lost, parted, pooled

_METHODS = ("auto", "exact", "asymptotic")


def _rank_sum(x: Sample, y: Sample) -> tuple[Any, Any]:
    """Returns the sum of the ranks of x among both, and the sum of t³ - t of ties."""
    both = pooled([x, y])
    ranks, equal = ranked(both)
    first, _ = parted([x, y], ranks.values)
    return x.sum(first), both.sum((equal - 1) * (equal + 1))


@statistic("use_continuity", "axis", "keepdims")
def mannwhitneyu(
    x: ArrayLike,
    y: ArrayLike,
    use_continuity: bool = True,
    alternative: str = "two-sided",
    axis: Any = 0,
    method: str = "auto",
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether two samples have one distribution, by Mann and Whitney's U.

    Args:
      use_continuity: whether the asymptotic p-value is corrected for continuity.
      method: "exact", which knows no ties; "asymptotic"; "auto": the exact p-value if
        one sample has at most 8 elements and there are no ties (each pair of rows by
        itself).

    Returns:
      A named tuple of `statistic`, U of the first sample, and `pvalue`.

    Special cases:
      "omit" takes "asymptotic" only.

    Example:
      >>> x, y = np.array([19.0, 22, 16, 29, 24]), np.array([20.0, 11, 17, 12])
      >>> u, p = mannwhitneyu(x, y)
      >>> u, p.round(4)
      (Array(17., dtype=float32), Array(0.1111, dtype=float32))
    """
    name = "mannwhitneyu"
    require_alternative(name, alternative)
    require_choice(name, "method", method, _METHODS)
    require_asymptotic(name, method, nan_policy)
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims)
    total, ties = _rank_sum(a, b)
    n1, n2 = a.n, b.n
    u1 = total - n1 * (n1 + 1) / 2
    u2 = n1 * n2 - u1
    two = alternative == "two-sided"
    u = fnp.maximum(u1, u2) if two else u1 if alternative == "greater" else u2
    n = n1 + n2
    wide = lax.sqrt(n1 * n2 / 12 * ((n + 1) - ties / (n * (n - 1))))
    p = ndtr(-(u - n1 * n2 / 2 - (0.5 if use_continuity else 0)) / wide)
    few = min(a.size, b.size) <= 8
    if method == "exact" or (method == "auto" and few):
        chances = subset_sums(a.size, b.size)
        exact = table_pvalue(chances, lax.floor(u), "greater", a.dtype)
        p = exact if method == "exact" else fnp.where(ties > 0, p, exact)
    p = fnp.clip(2 * p if two else p, 0, 1)
    lost = any_lost([a, b])
    return SignificanceResult(*(done(fnp.where(lost, math.nan, v)) for v in (u1, p)))


@statistic("axis", "keepdims")
def ranksums(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether two samples have one distribution, by the sum of ranks.

    It does not correct for ties or continuity; `mannwhitneyu` does.

    Returns:
      A named tuple of `statistic`, which is normal, and `pvalue`.

    Example:
      >>> x, y = np.array([19.0, 22, 16, 29, 24]), np.array([20.0, 11, 17, 12])
      >>> ranksums(x, y).pvalue.round(4)
      Array(0.0864, dtype=float32)
    """
    require_alternative("ranksums", alternative)
    (a, b), done = taken("ranksums", (x, y), axis, nan_policy, keepdims)
    total, _ = _rank_sum(a, b)
    n1, n2 = a.n, b.n
    n = n1 + n2
    z = (total - n1 * (n + 1) / 2) / lax.sqrt(n1 * n2 * (n + 1) / 12)
    z = fnp.where(any_lost([a, b]), math.nan, z)
    return SignificanceResult(done(z), done(normal_pvalue(z, alternative)))


# -- signed ranks ----------------------------------------------------------------------

_ZEROS = ("wilcox", "pratt", "zsplit")


@statistic("correction", "axis", "keepdims")
def wilcoxon(
    x: ArrayLike,
    y: ArrayLike | None = None,
    zero_method: str = "wilcox",
    correction: bool = False,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> WilcoxonResult:
    """Tests whether differences of pairs are symmetric about 0, by signed ranks.

    Args:
      x: real array-like[...]: a sample, or differences without `y`.
      y: real array-like[...], as many elements along the axis; None is 0.
      zero_method: "wilcox" leaves differences of 0 out, "pratt" ranks and then drops
        them, "zsplit" gives half of their ranks to each sign.
      correction: whether the asymptotic p-value is corrected for continuity.
      method: "exact", which knows no ties; "asymptotic"; "auto": the exact p-value for
        at most 50 pairs without ties or 0, that of all signs for at most 13 pairs with
        some (each row by itself).

    Returns:
      A `WilcoxonResult` with `statistic`, `pvalue` and `zstatistic`.

    Special cases:
      "omit" takes "asymptotic" only.

    Example:
      >>> w, p = wilcoxon(np.array([6.0, 8, 14, 16, 23, 24, 28, 29, 41, -48]))
      >>> w, p.round(4)
      (Array(10., dtype=float32), Array(0.084, dtype=float32))
    """
    name = "wilcoxon"
    require_alternative(name, alternative)
    require_choice(name, "method", method, _METHODS)
    require_choice(name, "zero_method", zero_method, _ZEROS)
    require_asymptotic(name, method, nan_policy)
    given = (x,) if y is None else (x, y)
    found, done = taken(name, given, axis, nan_policy, keepdims, paired=True)
    d = found[0]
    if y is not None:
        d = d.but(d.values - found[1].values)
    lost, zero = d.lost, d.only(d.values == 0, False)
    s = d.where(d.values != 0) if zero_method == "wilcox" else d
    ranks, equal = ranked(s.but(abs(s.values)))
    r = s.only(ranks.values)
    sign = s.only(fnp.sign(d.values))
    up: Any = lambda v: fnp.sum(v, axis=-1, keepdims=True)
    plus, minus = up(fnp.where(sign > 0, r, 0)), up(fnp.where(sign < 0, r, 0))
    split: Any = 0
    if zero_method == "zsplit":
        split = up(fnp.where(zero, r, 0)) / 2
        plus, minus = plus + split, minus + split
    n = s.n
    middle, square = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1)
    tied = s.only((equal - 1) * (equal + 1))
    if zero_method == "pratt":
        k = up(zero.astype(d.dtype))
        middle = middle - k * (k + 1) / 4
        square = square - k * (k + 1) * (2 * k + 1)
        tied = fnp.where(zero, 0, tied)
    wide = lax.sqrt((square - up(tied) / 2) / 24)
    z = (plus - middle) / wide
    side = {"greater": 1, "less": -1}.get(alternative, fnp.sign(z))
    shown = z - side * 0.5 / wide if correction else z
    p = normal_pvalue(shown, alternative)
    repeats = (up(tied) > 0) | fnp.any(zero, axis=-1, keepdims=True)
    if method == "exact" or (method == "auto" and d.size <= 50):
        p = _exact_signs(plus, p, r, sign, repeats, split, s, method, alternative)
    value = fnp.minimum(plus, minus) if alternative == "two-sided" else plus
    if method != "asymptotic":
        shown = fnp.full_like(shown, math.nan)
    elif alternative == "two-sided":
        shown = -abs(shown)
    return WilcoxonResult(
        *(done(fnp.where(lost, math.nan, v)) for v in (value, p, shown))
    )


def _exact_signs(
    plus: Any,
    p: Any,
    r: Any,
    sign: Any,
    repeats: Any,
    split: Any,
    s: Sample,
    method: str,
    alternative: str,
) -> Any:
    """Returns the p-value of a sum of ranks by the distribution of all signs."""
    # Elements that are 0 may be left out: then there is a table for each size.
    tables = [signed_ranks(k) for k in range(s.size + 1)]
    if method == "auto" or s.kept is None:
        tables = tables[-1:]
    wide = max(len(t) for t in tables)
    below = np.ones((len(tables), wide))
    above = np.zeros((len(tables), wide))
    for row, chances in enumerate(tables):
        below[row, : len(chances)] = np.cumsum(chances)
        above[row, : len(chances)] = np.cumsum(chances[::-1])[::-1]
    which = fnp.zeros_like(plus) if len(tables) == 1 else s.n
    which = which.astype(dtypes.int32)
    at: Any = lambda v: fnp.clip(v, 0, wide - 1).astype(dtypes.int32)
    dtype = s.dtype
    less = fnp.asarray(below, dtype)[which, at(lax.ceil(plus))]
    greater = fnp.asarray(above, dtype)[which, at(lax.floor(plus))]
    exact = one_of(alternative, less, greater)
    if method == "exact":
        return exact
    other = p
    if s.size <= 13:
        # All 2ⁿ signs of the differences that are not 0.
        flips = (np.arange(2**s.size)[:, None] >> np.arange(s.size)) & 1
        live = fnp.where(sign != 0, r, 0)
        null = fnp.matmul(live, fnp.asarray(flips.T, dtype)) + split
        few, many = (
            fnp.mean(v.astype(dtype), axis=-1, keepdims=True)
            for v in (null <= plus, null >= plus)
        )
        other = one_of(alternative, few, many)
    return fnp.where(repeats, other, exact)


# -- several samples -------------------------------------------------------------------


@statistic("axis", "keepdims")
def kruskal(
    *samples: ArrayLike,
    nan_policy: str = "propagate",
    axis: Any = 0,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether samples have one median, by Kruskal and Wallis's H.

    Example:
      >>> x, y = np.array([1.0, 3, 5, 7, 9]), np.array([2.0, 4, 6, 8, 10])
      >>> kruskal(x, y).pvalue.round(4)
      Array(0.6015, dtype=float32)
    """
    name = "kruskal"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    both = pooled(xs)
    ranks, equal = ranked(both)
    n = both.n
    ties = both.sum((equal - 1) * (equal + 1)) / (n * n * n - n)
    squares: Any = 0
    for x, part in zip(xs, parted(xs, ranks.values), strict=True):
        squares = squares + x.n * (x.but(part).mean() - (n + 1) / 2) ** 2
    h = 12 / (n * (n + 1)) * squares / (1 - ties)
    h = fnp.where(any_lost(xs), math.nan, h)
    return chi_square_result(h, len(xs) - 1, done)


@statistic("axis", "keepdims")
def friedmanchisquare(
    *samples: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether repeated measurements have one distribution, by Friedman's test.

    Args:
      *samples: three or more real array-likes[...], as many elements along the axis.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0])
      >>> friedmanchisquare(x, x + 1, x + 2).pvalue.round(4)
      Array(0.0183, dtype=float32)
    """
    name = "friedmanchisquare"
    require_several(name, samples, 3)
    xs, done = taken(name, samples, axis, nan_policy, keepdims, paired=True)
    k, n = len(xs), xs[0].n
    ranks, equal = ranked(Sample(fnp.stack([x.values for x in xs], axis=-1)))
    ties = xs[0].sum(fnp.sum((equal - 1) * (equal + 1), axis=-1))
    squares: Any = 0
    for i in range(k):
        squares = squares + (xs[0].sum(ranks.values[..., i]) - n * (k + 1) / 2) ** 2
    value = 12 / (k * n * (k + 1)) * squares / (1 - ties / (k * (k * k - 1) * n))
    value = fnp.where(any_lost(xs), math.nan, value)
    return chi_square_result(value, k - 1, done)


@statistic("axis", "keepdims")
def brunnermunzel(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "two-sided",
    distribution: str = "t",
    nan_policy: str = "propagate",
    *,
    axis: Any = 0,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether elements of either sample are as often the greater ones.

    Args:
      distribution: of the statistic: "t" or "normal".

    Example:
      >>> x, y = np.array([1.0, 2, 1, 1, 1, 4]), np.array([3.0, 3, 4, 3, 1, 2])
      >>> brunnermunzel(x, y).pvalue.round(4)
      Array(0.1571, dtype=float32)
    """
    name = "brunnermunzel"
    require_alternative(name, alternative)
    require_choice(name, "distribution", distribution, ("t", "normal"))
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims)
    both, _ = ranked(pooled([a, b]))
    means, spreads = [], []
    for s, part in zip((a, b), parted([a, b], both.values), strict=True):
        own, _ = ranked(s)
        means.append(s.mean(part))
        spreads.append(s.n * s.but(part - own.values).var(1))
    n1, n2 = a.n, b.n
    whole = spreads[0] + spreads[1]
    value = n1 * n2 * (means[1] - means[0]) / ((n1 + n2) * lax.sqrt(whole))
    value = fnp.where(any_lost([a, b]), math.nan, value)
    if distribution == "normal":
        p = normal_pvalue(-value, alternative)
    else:
        inner = spreads[0] ** 2 / (n1 - 1) + spreads[1] ** 2 / (n2 - 1)
        p = student_pvalue(-value, whole * whole / inner, alternative)
    return SignificanceResult(done(value), done(p))


# -- scales ----------------------------------------------------------------------------


@statistic("axis", "keepdims")
def mood(
    x: ArrayLike,
    y: ArrayLike,
    axis: Any = 0,
    alternative: str = "two-sided",
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether two samples have one scale, by Mood's test.

    Returns:
      A named tuple of `statistic`, which is normal, and `pvalue`.

    Example:
      >>> x, y = np.array([1.0, 5, 9, 13]), np.array([6.0, 7, 8, 7.5])
      >>> mood(x, y).pvalue.round(4)
      Array(0.0209, dtype=float32)
    """
    require_alternative("mood", alternative)
    (a, b), done = taken("mood", (x, y), axis, nan_policy, keepdims)
    both = pooled([a, b])
    ranks, t = ranked(both)
    m, k = a.n, b.n
    n = m + k
    # Mielke's means of squares over the places of equal elements.
    scores = (ranks.values - (n + 1) / 2) ** 2 + (t - 1) * (t + 1) / 12
    found = a.sum(parted([a, b], scores)[0])
    # The places of equals begin behind S and end at S'; S + S' is 2 rank - 1.
    beside = n - (2 * ranks.values - 1)
    ties = both.sum((t - 1) * (t + 1) * ((t * t - 4) + 15 * beside * beside))
    spread = m * k * (n + 1) * (n * n - 4) / 180
    spread = spread - m * k / (180 * n * (n - 1)) * ties
    z = (found - m * (n * n - 1) / 12) / lax.sqrt(spread)
    z = fnp.where(any_lost([a, b]) | (n < 3), math.nan, z)
    return SignificanceResult(done(z), done(normal_pvalue(z, alternative)))


@statistic("axis", "keepdims")
def ansari(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    method: str = "auto",
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether two samples have one scale, by Ansari and Bradley's test.

    Args:
      method: "exact", which knows no ties; "asymptotic"; "auto": the exact p-value for
        samples of less than 55 elements without ties.
      nan_policy: "propagate" or "raise": the exact distribution depends on how many
        elements there are.

    Example:
      >>> x, y = np.array([1.0, 5, 9, 13]), np.array([6.0, 7, 8, 7.5])
      >>> ansari(x, y).pvalue.round(4)
      Array(0.0286, dtype=float32)
    """
    name = "ansari"
    require_alternative(name, alternative)
    require_choice(name, "method", method, _METHODS)
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims)
    n, m = a.size, b.size
    whole = n + m
    both = pooled([a, b])
    ranks, equal = ranked(both)
    scores = fnp.minimum(ranks.values, whole - ranks.values + 1)
    found = fnp.sum(parted([a, b], scores)[0], axis=-1, keepdims=True)
    repeats = fnp.any(equal > 1, axis=-1, keepdims=True)
    squares = fnp.sum(scores * scores, axis=-1, keepdims=True)
    odd = whole % 2
    if odd:
        middle = n * (whole + 1) ** 2 / (4 * whole)
        spread = n * m * (whole + 1) * (3 + whole**2) / (48 * whole**2)
        tied = m * n * (16 * whole * squares - (whole + 1) ** 4)
        tied = tied / (16 * whole**2 * (whole - 1))
    else:
        middle = n * (whole + 2) / 4
        spread = m * n * (whole + 2) * (whole - 2) / (48 * (whole - 1))
        tied = m * n * (16 * squares - whole * (whole + 2) ** 2)
        tied = tied / (16 * whole * (whole - 1))
    z = (middle - found) / lax.sqrt(fnp.where(repeats, tied, spread))
    p = normal_pvalue(z, alternative)
    if method == "exact" or (method == "auto" and n < 55 and m < 55):
        places = np.arange(1, whole + 1)
        table = tuple(np.minimum(places, whole + 1 - places).tolist())
        # A small statistic is a large scale.
        side = {"less": "greater", "greater": "less"}.get(alternative, alternative)
        exact = table_pvalue(subset_scores(table, n), found, side, a.dtype)
        p = exact if method == "exact" else fnp.where(repeats, p, exact)
    lost = any_lost([a, b])
    return SignificanceResult(*(done(fnp.where(lost, math.nan, v)) for v in (found, p)))
