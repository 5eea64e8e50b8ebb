"""Correlations of pairs, of their ranks, and lines through points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._exact import inversions, table_pvalue
from fxflow.scipy.stats._samples import (
    Sample,
    normal_pvalue,
    one_of,
    operands,
    require_alternative,
    require_choice,
    statistic,
    student_pvalue,
    taken,
)
from fxflow.scipy.stats.ranks import equals
from fxflow.scipy.stats.results import (
    CorrelationResult,
    LinregressResult,
    PearsonRResult,
    SiegelslopesResult,
    SignificanceResult,
    SomersDResult,
    TheilslopesResult,
)

_docs_of_pairs = shared("""
    Args:
      x: real array-like[...].
      y: real array-like[...], as many elements along the axis.
""")


def correlation(x: Sample, y: Sample) -> Any:
    """Returns Pearson's correlation of pairs: float[..., 1]; nan for a constant."""
    found = []
    for s in (x, y):
        d = s.apart()
        far = fnp.max(abs(d), axis=-1, keepdims=True)
        d = d / fnp.where(far == 0, 1, far)
        square = fnp.sum(d * d, axis=-1, keepdims=True)
        flat = (s.max() == s.min()) | (square == 0)
        found.append(
            fnp.where(flat, math.nan, d) / lax.sqrt(fnp.where(flat, 1, square))
        )
    return fnp.clip(fnp.sum(found[0] * found[1], axis=-1, keepdims=True), -1, 1)


def _student_of(r: Any, df: Any) -> Any:
    """Returns t of a correlation."""
    sure = abs(r) >= 1
    safe = fnp.where(sure, 0, r)
    t = safe * lax.sqrt(df / ((1 - safe) * (1 + safe)))
    return fnp.where(sure & (df > 0), fnp.sign(r) * math.inf, t)


def _pearson(x: Sample, y: Sample, alternative: str) -> tuple[Any, Any]:
    r = correlation(x, y)
    df = fnp.asarray(x.n - 2, x.dtype)
    two = df == 0
    r = fnp.where(two, fnp.round(r), r)
    t = _student_of(r, fnp.where(two, 1, df))
    p = student_pvalue(t, fnp.where(two, 1, df), alternative)
    return r, fnp.where(two, fnp.where(r == r, 1, r), p)


@statistic("axis")
@_docs_of_pairs
def pearsonr(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alternative: str = "two-sided",
    method: None = None,
    axis: Any = 0,
) -> PearsonRResult:
    """Returns Pearson's correlation coefficient and the p-value for no correlation.

    Args:
      method: None. Call `permutation_test` for another p-value.

    Returns:
      A `PearsonRResult` with `statistic`, `pvalue` and `confidence_interval()`.

    Special cases:
      nan, if the elements of one sample are equal.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0])
      >>> r, p = pearsonr(x, np.array([1.0, 3.0, 2.0, 4.0]))
      >>> r.round(4), p.round(4)
      (Array(0.8, dtype=float32), Array(0.2, dtype=float32))
    """
    require_alternative("pearsonr", alternative)
    require_choice("pearsonr", "method", method, (None,))
    (a, b), done = taken("pearsonr", (x, y), axis, paired=True)
    if a.size < 2:
        raise ShapeError(f"pearsonr: takes at least 2 pairs, got {a.size}")
    r, p = _pearson(a, b, alternative)
    return PearsonRResult(done(r), done(p), _count=done(a.n), _alternative=alternative)


@statistic("axis", "keepdims")
@_docs_of_pairs
def pointbiserialr(
    x: ArrayLike,
    y: ArrayLike,
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> CorrelationResult:
    """Returns the correlation of truth values with numbers.

    Args:
      x: bool array-like[...].

    Example:
      >>> x = np.array([False, False, True, True])
      >>> pointbiserialr(x, np.array([1.0, 2.0, 3.0, 4.0])).statistic.round(4)
      Array(0.8944, dtype=float32)
    """
    (a, b), done = taken(
        "pointbiserialr", (x, y), axis, nan_policy, keepdims, paired=True
    )
    r, p = _pearson(a, b, "two-sided")
    return CorrelationResult(done(r), done(p))


# -- ranks -----------------------------------------------------------------------------


def ranked(x: Sample) -> tuple[Sample, Any]:
    """Returns the average ranks of a sample, and how many equals each element has.

    Elements left out come after the others, and count as equal to none of them.

    Args:
      x: the sample.
    """
    holed = x.only(x.values, math.nan)
    low, high = equals(holed, holed.aval.ndim - 1)
    ranks = ((low + high).astype(x.dtype) + 2) / 2
    return Sample(ranks, x.kept), (high - low + 1).astype(x.dtype)


@statistic("axis")
def spearmanr(
    a: ArrayLike,
    b: ArrayLike | None = None,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> CorrelationResult:
    """Returns Spearman's correlation: Pearson's, of ranks.

    Args:
      a: real array-like[n], or [n, k]: variables along the other axis.
      b: more of them, with as many elements; None is no more.
      axis: along which elements are: 0 or 1; None is that each array is one variable.

    Returns:
      A named tuple of `statistic` and `pvalue`: numbers for two variables, else
      float[k, k].

    Special cases:
      nan, if the elements of a variable are equal. "omit" takes two variables only.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0])
      >>> spearmanr(x, np.array([1.0, 9.0, 4.0, 16.0])).statistic.round(4)
      Array(0.8, dtype=float32)
    """
    name = "spearmanr"
    require_alternative(name, alternative)
    given = (a,) if b is None else (a, b)
    found, dtype = operands(name, *given)
    rows = []
    require_choice(name, "axis", axis, (0, 1, -1, None))
    for v in found:
        if v.aval.ndim > 2:
            raise ShapeError(f"{name}: takes arrays of one or two axes, got {v.aval}")
        if axis is None:
            v = fnp.ravel(v)
        rows.append(fnp.atleast_2d(v) if v.aval.ndim < 2 else v if axis else v.T)
    if len({v.aval.shape[1] for v in rows}) > 1:
        listed = " and ".join(str(v.aval) for v in found)
        raise ShapeError(f"{name}: there must be as many elements, got {listed}")
    table = fnp.concatenate(rows)
    k, n = table.aval.shape
    if k < 2:
        raise ShapeError(f"{name}: takes at least two variables, got {found[0].aval}")
    if k > 2 and nan_policy == "omit":
        raise ArgumentError(
            f'{name}: nan_policy="omit" takes two variables, got {k}: call it for pairs'
        )
    if k == 2:
        (x, y), done = taken(name, (table[0], table[1]), 0, nan_policy, paired=True)
        lost = x.lost | y.lost
        if n < 2:
            nothing = done(fnp.full((1,), math.nan, x.dtype)).astype(dtype)
            return CorrelationResult(nothing, nothing)
        r = correlation(ranked(x)[0], ranked(y)[0])
        r = fnp.where(lost, math.nan, r)
        p = student_pvalue(_student_of(r, x.n - 2), x.n - 2, alternative)
        return CorrelationResult(*(done(v).astype(dtype) for v in (r, p)))
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))
    (s,), _ = taken(name, (table,), 1)
    ranks = ranked(s)[0].apart()
    square = fnp.sum(ranks * ranks, axis=-1, keepdims=True)
    unit = ranks / lax.sqrt(square)
    unit = fnp.where(s.lost, math.nan, unit)
    r = fnp.clip(fnp.matmul(unit, unit.T), -1, 1)
    # A variable's correlation with itself is 1, without rounding.
    r = fnp.where(fnp.eye(k, dtype=bool) & (r == r), 1, r)
    df = fnp.asarray(n - 2, r.dtype)
    p = student_pvalue(_student_of(r, df), df, alternative)
    return CorrelationResult(r.astype(dtype), p.astype(dtype))


@statistic("axis", "keepdims")
def spearmanrho(
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    alternative: str = "two-sided",
    method: None = None,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Returns Spearman's correlation of pairs along an axis: Pearson's, of ranks.

    Args:
      method: None: the p-value is that of Student's distribution.

    Special cases:
      nan, if the elements of a sample are equal.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0])
      >>> spearmanrho(x, np.array([1.0, 9.0, 4.0, 16.0])).statistic.round(4)
      Array(0.8, dtype=float32)
    """
    name = "spearmanrho"
    require_alternative(name, alternative)
    require_choice(name, "method", method, (None,))
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims, paired=True)
    r = correlation(ranked(a)[0], ranked(b)[0])
    r = fnp.where(a.lost | b.lost, math.nan, r)
    p = student_pvalue(_student_of(r, a.n - 2), a.n - 2, alternative)
    return SignificanceResult(done(r), done(p))


def _signs(v: Any) -> Any:
    """Returns whether elements are above others: int8[..., n, n]."""
    return fnp.sign(v[..., :, None] - v[..., None, :]).astype(dtypes.int32)


def _pairs(x: Sample, y: Sample) -> Any:
    """Returns signs of x and y, 0 for elements that are left out."""
    sx, sy = _signs(x.values), _signs(y.values)
    if x.kept is not None:
        both = x.kept[..., :, None] & x.kept[..., None, :]
        sx, sy = fnp.where(both, sx, 0), fnp.where(both, sy, 0)
    return sx, sy


_VARIANTS = ("b", "c")
_METHODS = ("auto", "exact", "asymptotic")


@statistic("axis", "keepdims")
@_docs_of_pairs
def kendalltau(
    x: ArrayLike,
    y: ArrayLike,
    *,
    nan_policy: str = "propagate",
    method: str = "auto",
    variant: str = "b",
    alternative: str = "two-sided",
    axis: Any = None,
    keepdims: bool = False,
) -> CorrelationResult:
    """Returns Kendall's τ: concordant pairs less discordant ones, over all.

    All pairs are compared: the time grows with the square of the number of elements.

    Args:
      method: "exact", which takes no ties; "asymptotic"; "auto": the exact p-value for
        up to 33 elements without ties, and for at most one pair out of order.
      variant: "b" or "c".

    Special cases:
      nan, if all elements of one sample are equal, and with "exact" at ties. "omit"
      takes "asymptotic" only.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0])
      >>> kendalltau(x, np.array([1.0, 3.0, 2.0, 4.0])).statistic.round(4)
      Array(0.6667, dtype=float32)
    """
    name = "kendalltau"
    require_alternative(name, alternative)
    require_choice(name, "method", method, _METHODS)
    require_choice(name, "variant", variant, _VARIANTS)
    require_asymptotic(name, method, nan_policy)
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims, paired=True)
    n, size = a.n, a.size
    if not size:
        nothing = done(fnp.full((*a.values.aval.shape[:-1], 1), math.nan, a.dtype))
        return CorrelationResult(nothing, nothing)
    sx, sy = _pairs(a, b)
    score = fnp.sum(sx * sy, axis=(-2, -1))[..., None] // 2
    difference = score.astype(a.dtype)
    ties = []
    for s in (a, b):
        c = ranked(s)[1]
        ties.append((
            s.sum(c - 1) / 2,
            s.sum((c - 1) * (c - 2)),
            s.sum((c - 1) * (2 * c + 5)),
        ))  # fmt: skip
    (xtie, x0, x1), (ytie, y0, y1) = ties
    total = n * (n - 1) / 2
    if variant == "b":
        tau = difference / lax.sqrt(total - xtie) / lax.sqrt(total - ytie)
    else:
        classes = fnp.minimum(*(_classes(s) for s in (a, b)))
        tau = 2 * difference / (n * n * (classes - 1) / classes)
    none = (xtie == total) | (ytie == total) | a.lost | b.lost
    tied = (xtie > 0) | (ytie > 0)
    m = n * (n - 1)
    var = (m * (2 * n + 5) - x1 - y1) / 18 + 2 * xtie * ytie / m
    var = var + fnp.where(n > 2, x0 * y0 / (9 * m * fnp.maximum(n - 2, 1)), 0)
    p = normal_pvalue(difference / lax.sqrt(var), alternative)
    if method != "asymptotic":
        exact = _exact_kendall(score, size, method, alternative, a.dtype)
        if method == "exact":
            p = fnp.where(tied, math.nan, exact)
        else:
            few = fnp.minimum(total - difference, total + difference) <= 2
            p = fnp.where(~tied & ((size <= 33) | few), exact, p)
    tau, p = (fnp.where(none, math.nan, v) for v in (fnp.clip(tau, -1, 1), p))
    return CorrelationResult(done(tau), done(p))


def require_asymptotic(name: str, method: str, nan_policy: str) -> None:
    """Raises an error for exact p-values where the size of a sample depends on values.

    Raises:
      ArgumentError: the method is exact or "auto", and nan is left out.
    """
    if nan_policy == "omit" and method != "asymptotic":
        raise ArgumentError(
            f'{name}: method must be "asymptotic" with nan_policy="omit", because the '
            f"exact distribution depends on how many elements remain; got {method!r}"
        )


def _classes(x: Sample) -> Any:
    """Returns how many different values there are: each counts 1 over its equals."""
    return fnp.round(x.sum(1 / ranked(x)[1]))


def _exact_kendall(
    score: Any, size: int, method: str, alternative: str, dtype: Any
) -> Any:
    total = size * (size - 1) // 2
    concordant = (score + total) // 2
    if size <= 33 or method == "exact":
        return table_pvalue(inversions(size), concordant, alternative, dtype)
    # At most one pair is out of order: 1 and n - 1 of n! arrangements.
    none = 1 / math.factorial(size) if size < 171 else 0.0
    one = 1 / math.factorial(size - 1) if size < 171 else 0.0

    def upto(k: Any) -> Any:
        tail = fnp.where(k == 0, none, fnp.where(k == 1, one, 1.0))
        far = fnp.where(total - k == 0, 1.0, fnp.where(total - k == 1, 1 - none, 1.0))
        return fnp.where(k <= 1, tail, far)

    found = one_of(alternative, upto(concordant), upto(total - concordant))
    return found.astype(dtype)


@statistic("rank", "weigher", "additive", "axis", "keepdims")
def weightedtau(
    x: ArrayLike,
    y: ArrayLike,
    rank: Any = True,
    weigher: Callable[[Any], Any] | None = None,
    additive: bool = True,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> CorrelationResult:
    """Returns a weighted τ, in which pairs of great elements count more.

    All pairs are compared: the time grows with the square of the number of elements.

    Args:
      x: real array-like[...].
      y: real array-like[...], as many elements along the axis.
      rank: the rank of each element, 0 for the most important: array-like[n]; True is
        the mean of the results for the ranks by (x, y) and by (y, x), None the former,
        False the places in the array.
      weigher: a function of an array of ranks; None is 1/(1 + rank).
      additive: whether the weights of two elements are added; else multiplied.

    Returns:
      A named tuple of `statistic` and `pvalue`, which is nan: it is not known.

    Special cases:
      nan for a sample with a nan; SciPy takes it for the least number.

    Example:
      >>> x = np.array([12.0, 2.0, 1.0, 12.0, 2.0])
      >>> weightedtau(x, np.array([1.0, 4.0, 7.0, 1.0, 0.0])).statistic.round(4)
      Array(-0.5669, dtype=float32)
    """
    name = "weightedtau"
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims, paired=True)
    sx, sy = (v.astype(a.dtype) for v in _pairs(a, b))
    weigh = weigher or (lambda r: 1 / (1 + r))

    def tau(ranks: Any) -> Any:
        w = fnp.asarray(weigh(ranks), a.dtype)
        first, second = w[..., :, None], w[..., None, :]
        both = first + second if additive else first * second
        parts = [fnp.sum(both * s, axis=(-2, -1)) for s in (sx * sy, sx * sx, sy * sy)]
        return (parts[0] / lax.sqrt(parts[1]) / lax.sqrt(parts[2]))[..., None]

    def by(first: Sample, second: Sample) -> Any:
        # How many elements are above: in the first sample, then in the second. Equal
        # pairs have all ranks of theirs, whose order does not matter.
        p, q = _pairs(a, b) if first is a else _pairs(b, a)
        place = fnp.arange(a.size)
        later = place[:, None] < place[None, :]
        above = (p < 0) | ((p == 0) & ((q < 0) | ((q == 0) & later)))
        if a.kept is not None:
            above &= a.kept[..., None, :]
        return fnp.sum(above, axis=-1, dtype=a.dtype)

    if rank is True:
        value = (tau(by(a, b)) + tau(by(b, a))) / 2
    elif rank is None:
        value = tau(by(a, b))
    else:
        ranks = fnp.arange(a.size) if rank is False else fnp.asarray(rank)
        if ranks.aval.shape[-1:] != (a.size,):
            raise ShapeError(
                f"{name}: rank must be of {a.size} elements, got {ranks.aval}"
            )
        value = tau(ranks.astype(a.dtype))
    value = fnp.where(a.lost | b.lost, math.nan, value)
    return CorrelationResult(done(value), done(fnp.full_like(value, math.nan)))


@statistic()
def somersd(
    x: ArrayLike, y: ArrayLike | None = None, alternative: str = "two-sided"
) -> SomersDResult:
    """Returns Somers' D: how much more y is concordant with x than discordant.

    Args:
      x: real array-like[n], or a contingency table, array-like[r, c], without `y`.
      y: real array-like[n]; None for a table.

    Returns:
      A tuple of `statistic`, `pvalue` and `table`, which is None for samples: how many
      rows it has depends on the values.

    Example:
      >>> somersd(np.array([[27, 25, 14], [7, 3, 0]])).statistic.round(4)
      Array(-0.2788, dtype=float32)
    """
    name = "somersd"
    require_alternative(name, alternative)
    if y is None:
        (table,), dtype = operands(name, x)
        if table.aval.ndim != 2:
            raise ShapeError(
                f"{name}: takes a table, or two samples of as many elements, got "
                f"{table.aval} alone"
            )
        r, c = (np.arange(k) for k in table.aval.shape)
        rows, columns = (
            fnp.asarray(np.sign(k[:, None] - k), table.aval.dtype) for k in (r, c)
        )
        score = fnp.matmul(fnp.matmul(rows, table), columns.T)
        count = fnp.sum(table)
        apart = count * count - fnp.sum(fnp.sum(table, 1) ** 2)
        both, squares = fnp.sum(table * score), fnp.sum(table * score * score)
        shown: Any = x
    else:
        (a, b), dtype = operands(name, x, y)
        if a.aval.ndim != 1 or a.aval.shape != b.aval.shape:
            raise ShapeError(
                f"{name}: the samples must be rows of as many elements, got {a.aval} "
                f"and {b.aval}"
            )
        sx, sy = _signs(a), _signs(b)
        score = fnp.sum(sx * sy, axis=-1).astype(a.dtype)
        count = fnp.asarray(a.aval.shape[0], a.dtype)
        apart = fnp.sum(abs(sx)).astype(a.dtype)
        both, squares, shown = fnp.sum(score), fnp.sum(score * score), None
    d = both / apart
    z = both / (4 * (squares - both * both / count)) ** 0.5
    # As many concordant as discordant pairs of each element: the limit is infinite.
    p = normal_pvalue(z, alternative)
    p = fnp.where(apart == 0, math.nan, p)
    return SomersDResult(d.astype(dtype), p.astype(dtype), shown)


@statistic("axis", "y_continuous", "keepdims")
@_docs_of_pairs
def chatterjeexi(
    x: ArrayLike,
    y: ArrayLike,
    *,
    axis: Any = 0,
    y_continuous: bool = False,
    method: str = "asymptotic",
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> CorrelationResult:
    """Returns Chatterjee's ξ: how far y is a function of x.

    Args:
      y_continuous: whether y has no ties, which is then assumed.
      method: "asymptotic". Call `permutation_test` for another p-value.
      nan_policy: "propagate" or "raise".

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
      >>> chatterjeexi(x, x * x).statistic.round(4)
      Array(0.5, dtype=float32)
    """
    name = "chatterjeexi"
    require_choice(name, "method", method, ("asymptotic",))
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims, paired=True)
    n, last = a.size, a.values.aval.ndim - 1
    order = fnp.argsort(a.values, axis=-1, stable=True)
    v = fnp.take_along_axis(b.values, order, axis=-1)
    low, high = equals(v, last)
    r, above = (high + 1).astype(a.dtype), (n - low).astype(a.dtype)
    moved = fnp.sum(abs(fnp.diff(r, axis=-1)), axis=-1, keepdims=True)
    if y_continuous:
        xi = 1 - 3 * moved / (n**2 - 1)
        std = fnp.full_like(xi, math.sqrt(0.4 / n))
    else:
        inner = fnp.sum((n - above) * above, axis=-1, keepdims=True)
        xi = 1 - n * moved / (2 * inner)
        i = fnp.arange(1, n + 1, dtype=a.dtype)
        u = fnp.sort(r, axis=-1)
        total = fnp.cumsum(u, axis=-1)
        over: Any = lambda t: fnp.sum(t, axis=-1, keepdims=True)
        first = over((2 * n - 2 * i + 1) * (u / n) ** 2) / n**2
        second = over((total / n + (n - i) * (u / n)) ** 2) / n**3
        third = over((2 * n - 2 * i + 1) * (u / n)) / n**2
        tau2 = (first - 2 * second + third**2) / (inner / n**3) ** 2
        std = lax.sqrt(tau2) / math.sqrt(n)
    p = normal_pvalue(xi / std, "greater")
    lost = a.lost | b.lost
    return CorrelationResult(*(done(fnp.where(lost, math.nan, v)) for v in (xi, p)))


# -- lines -----------------------------------------------------------------------------


@statistic("axis", "keepdims")
@_docs_of_pairs
def linregress(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> LinregressResult:
    """Fits a line to points by least squares.

    Returns:
      A tuple of `slope`, `intercept`, `rvalue`, `pvalue` and `stderr`, which has
      `intercept_stderr` besides.

    Special cases:
      nan, if all x are equal.

    Example:
      >>> x = np.array([0.0, 1.0, 2.0])
      >>> found = linregress(x, np.array([1.0, 3.0, 5.0]))
      >>> found.slope, found.intercept
      (Array(2., dtype=float32), Array(1., dtype=float32))
    """
    name = "linregress"
    require_alternative(name, alternative)
    (a, b), done = taken(name, (x, y), axis, nan_policy, keepdims, paired=True)
    if not a.size:
        raise ShapeError(f"{name}: takes at least one point, got none")
    dx, dy = a.apart(), b.apart()
    sxx, sxy, syy = (a.mean(v) for v in (dx * dx, dx * dy, dy * dy))
    flat = (sxx == 0) | (syy == 0)
    r = sxy / lax.sqrt(fnp.where(flat, 1, sxx * syy))
    r = fnp.clip(fnp.where(flat, fnp.where(sxy == 0, math.nan, 0), r), -1, 1)
    slope = sxy / fnp.where(a.max() == a.min(), math.nan, sxx)
    middle = a.mean()
    intercept = b.mean() - slope * middle
    n = fnp.asarray(a.n, a.dtype)
    two = n == 2
    df = fnp.where(two, 1, n - 2)
    tiny = 1e-20
    t = r * lax.sqrt(df / ((1 - r + tiny) * (1 + r + tiny)))
    p = student_pvalue(t, df, alternative)
    p = fnp.where(two, fnp.where(syy == 0, 1, 0), p)
    rest = fnp.where(two, 0, fnp.maximum((1 - r) * (1 + r) * syy / sxx / df, 0))
    zero = rest <= 0
    error = fnp.where(zero, rest, lax.sqrt(fnp.where(zero, 1, rest)))
    second = error * lax.sqrt(sxx + middle * middle)
    return LinregressResult(*map(done, (slope, intercept, r, p, error, second)))


def _points(name: str, y: Any, x: Any, axis: Any, policy: str, keepdims: bool) -> Any:
    given = (y,) if x is None else (y, x)
    found, done = taken(name, given, axis, policy, keepdims, paired=True)
    b = found[0]
    if b.size < 2:
        raise ShapeError(f"{name}: takes at least 2 points, got {b.size}")
    if x is not None:
        return b, found[1], done
    # Without x a point's place is it, and places are counted after nan is left out.
    if b.kept is None:
        place = fnp.broadcast_to(fnp.arange(b.size, dtype=b.dtype), b.values.aval.shape)
    else:
        place = fnp.cumsum(b.kept, axis=-1).astype(b.dtype) - 1
    return b, Sample(place, b.kept), done


def _slopes(a: Sample, b: Sample) -> tuple[Any, Any, Any]:
    """Returns the differences of x, slopes between points, and which of them count."""
    dx = a.values[..., :, None] - a.values[..., None, :]
    dy = b.values[..., :, None] - b.values[..., None, :]
    good = dx != 0
    if a.kept is not None:
        good &= a.kept[..., :, None] & a.kept[..., None, :]
    dx = fnp.where(good, dx, 1)
    return dx, dy / dx, good


@statistic("alpha", "axis", "keepdims")
def theilslopes(
    y: ArrayLike,
    x: ArrayLike | None = None,
    alpha: float = 0.95,
    method: str = "separate",
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> TheilslopesResult:
    """Fits a line by the median of the slopes between all points.

    Args:
      x: real array-like[...], as many elements; None is 0, 1, ….
      y: real array-like[...].
      alpha: of the slope's confidence interval: 0.95 and 0.05 are one.
      method: how the intercept is found: "separate", of the medians of x and y, or
        "joint", the median of y less slope times x.

    Returns:
      A named tuple of `slope`, `intercept`, `low_slope` and `high_slope`.

    Example:
      >>> theilslopes(np.array([1.0, 3.0, 5.0, 90.0])).slope.round(3)
      Array(15.833, dtype=float32)
    """
    name = "theilslopes"
    require_choice(name, "method", method, ("separate", "joint"))
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise ArgumentError(f"{name}: alpha must be between 0 and 1, got {alpha!r}")
    b, a, done = _points(name, y, x, axis, nan_policy, keepdims)
    dx, slopes, good = _slopes(a, b)
    good &= dx > 0
    shape = (*slopes.aval.shape[:-2], b.size * b.size)
    s = Sample(fnp.reshape(slopes, shape), fnp.reshape(good, shape))
    slope = s.median()
    if method == "joint":
        intercept = b.but(b.values - slope * a.values).median()
    else:
        intercept = b.median() - slope * a.median()
    z = ndtri(fnp.asarray(min(alpha, 1 - alpha) / 2, a.dtype))
    ties: Any = 0
    for v in (a, b):
        c = ranked(v)[1]
        ties = ties + v.sum((c - 1) * (2 * c + 5))
    n = b.n
    sigma = lax.sqrt((n * (n - 1) * (2 * n + 5) - ties) / 18)
    count = s.n
    upper = fnp.minimum(fnp.round((count - z * sigma) / 2), count - 1)
    lower = fnp.maximum(fnp.round((count + z * sigma) / 2) - 1, 0)
    ordered = s.sorted()
    ends = [
        fnp.take_along_axis(ordered, fnp.maximum(i, 0).astype(dtypes.int32), axis=-1)
        for i in (lower, upper)
    ]
    lost = a.lost | b.lost
    values = (slope, intercept, *ends)
    return TheilslopesResult(*(done(fnp.where(lost, math.nan, v)) for v in values))


@statistic("axis", "keepdims")
def siegelslopes(
    y: ArrayLike,
    x: ArrayLike | None = None,
    method: str = "hierarchical",
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SiegelslopesResult:
    """Fits a line by the median of each point's median slope to the others.

    Args:
      x: real array-like[...], as many elements; None is 0, 1, ….
      y: real array-like[...].
      method: how the intercept is found: "hierarchical", the median of y less slope
        times x, or "separate", as the slope is.

    Returns:
      A named tuple of `slope` and `intercept`.

    Example:
      >>> siegelslopes(np.array([1.0, 3.0, 5.0, 7.0, 90.0])).slope
      Array(2., dtype=float32)
    """
    name = "siegelslopes"
    require_choice(name, "method", method, ("hierarchical", "separate"))
    b, a, done = _points(name, y, x, axis, nan_policy, keepdims)
    dx, slopes, good = _slopes(a, b)
    each = Sample(slopes, good).median()[..., 0]
    slope = a.but(each).median()
    if method == "hierarchical":
        intercept = b.but(b.values - slope * a.values).median()
    else:
        x0, y0 = a.values[..., :, None], b.values[..., :, None]
        x1, y1 = a.values[..., None, :], b.values[..., None, :]
        crossing = (y1 * x0 - y0 * x1) / dx
        intercept = a.but(Sample(crossing, good).median()[..., 0]).median()
    lost = a.lost | b.lost
    return SiegelslopesResult(
        *(done(fnp.where(lost, math.nan, v)) for v in (slope, intercept))
    )
