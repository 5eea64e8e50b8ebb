"""Tests of means: Student's and Welch's t, analysis of variance."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.inverses import chdtrc
from fxflow.scipy.special.probabilities import fdtrc
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_alternative,
    require_choice,
    statistic,
    student_pvalue,
    taken,
)
from fxflow.scipy.stats.results import SignificanceResult, TtestResult
from fxflow.scipy.stats.spread import middle_part, require_cut


def _tested(
    estimate: Any, error: Any, df: Any, alternative: str, done: Any, hypothesis: Any = 0
) -> TtestResult:
    """Returns the result of a t-test of an estimate with a standard error."""
    df = fnp.broadcast_to(fnp.asarray(df, estimate.aval.dtype), estimate.aval.shape)
    gap = estimate - hypothesis
    t = gap / error
    p = student_pvalue(t, df, alternative)
    return TtestResult(
        done(t),
        done(p),
        done(df),
        _estimate=done(estimate),
        _error=done(error),
        _alternative=alternative,
    )


@statistic("axis", "keepdims")
def ttest_1samp(
    a: ArrayLike,
    popmean: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Tests whether the mean of a sample is a given one.

    Args:
      popmean: real array-like: the mean of the hypothesis; it broadcasts with the
        result, and if it has all axes of the sample then the tested one has length 1.

    Example:
      >>> t, p = ttest_1samp(np.array([1.0, 2.0, 4.0]), 0.0)
      >>> t.round(4), p.round(4)
      (Array(2.6458, dtype=float32), Array(0.1181, dtype=float32))
    """
    name = "ttest_1samp"
    require_alternative(name, alternative)
    (x,), done = taken(name, (a,), axis, nan_policy, keepdims)
    (mean,), _ = operands(name, popmean)
    mean = mean.astype(x.dtype)
    if mean.aval.ndim:
        batch = x.values.aval.shape[:-1]
        if mean.aval.ndim == len(batch) + 1 and isinstance(axis, int):
            mean = fnp.moveaxis(mean, axis, -1)
            if mean.aval.shape[-1] != 1:
                raise ShapeError(
                    f"{name}: popmean must have length 1 along axis {axis}, got "
                    f"{fnp.shape(popmean)}"
                )
        else:
            mean = mean[..., None]
    error = lax.sqrt(x.var(1) / x.n)
    return _tested(x.mean(), error, x.n - 1, alternative, done, mean)


def _errors(a: Any, b: Any, equal_var: bool) -> tuple[Any, Any]:
    """Returns degrees of freedom and the standard error of a difference of means.

    Args:
      a: variance and number of elements of a sample.
      b: of the other one.
      equal_var: whether their variances are equal.
    """
    (v1, n1), (v2, n2) = a, b
    if equal_var:
        df = n1 + n2 - 2
        pooled = ((n1 - 1) * v1 + (n2 - 1) * v2) / df
        return df, lax.sqrt(pooled * (1 / n1 + 1 / n2))
    first, second = v1 / n1, v2 / n2
    both = first + second
    inner = first * first / (n1 - 1) + second * second / (n2 - 1)
    # No variance at all: any number of degrees.
    df = fnp.where(inner == 0, 1, both * both / fnp.where(inner == 0, 1, inner))
    return df, lax.sqrt(both)


def _trimmed(x: Sample, trim: float) -> tuple[Any, Any, Any]:
    """Returns the mean, the winsorized variance and the size of a trimmed sample."""
    if x.kept is not None:
        raise ArgumentError(
            'ttest_ind: trim must be 0 with nan_policy="omit", whose samples have holes'
        )
    cut = int(x.size * trim)
    ranked = x.sorted()
    low, high = ranked[..., cut : cut + 1], ranked[..., x.size - cut - 1 : x.size - cut]
    spread = Sample(fnp.clip(ranked, low, high)).var(2 * cut + 1)
    lost = x.lost
    mean = fnp.where(lost, math.nan, middle_part(x, trim).mean())
    count = fnp.asarray(float(x.size - 2 * cut), x.dtype)
    return mean, fnp.where(lost, math.nan, spread), count


_docs_of_variances = shared("""
    Args:
      equal_var: whether the variances are equal; False is Welch's test.
""")


@statistic("axis", "equal_var", "trim", "keepdims")
@_docs_of_variances
def ttest_ind(
    a: ArrayLike,
    b: ArrayLike,
    *,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    trim: float = 0,
    method: None = None,
    keepdims: bool = False,
) -> TtestResult:
    """Tests whether the means of two samples are equal.

    Args:
      b: real array-like[...]: another sample.
      trim: the proportion of elements that are cut off at each end, which makes it
        Yuen's test.
      method: None. Call `permutation_test` for another p-value.

    Example:
      >>> t, p = ttest_ind(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0]))
      >>> t.round(4), p.round(4)
      (Array(-2.2136, dtype=float32), Array(0.0913, dtype=float32))
    """
    name = "ttest_ind"
    require_alternative(name, alternative)
    require_choice(name, "method", method, (None,))
    trim = require_cut(name, trim)
    (x, y), done = taken(name, (a, b), axis, nan_policy, keepdims)
    if trim:
        (m1, *first), (m2, *second) = _trimmed(x, trim), _trimmed(y, trim)
    else:
        m1, first = x.mean(), [x.var(1), x.n]
        m2, second = y.mean(), [y.var(1), y.n]
    df, error = _errors(first, second, equal_var)
    return _tested(m1 - m2, error, df, alternative, done)


@statistic("axis", "keepdims")
def ttest_rel(
    a: ArrayLike,
    b: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Tests whether the mean of the differences of pairs is 0.

    Args:
      b: real array-like[...], as many elements along the axis.

    Example:
      >>> t, p = ttest_rel(np.array([1.0, 2.0, 3.0]), np.array([3.0, 3.0, 6.0]))
      >>> t.round(4), p.round(4)
      (Array(-3.4641, dtype=float32), Array(0.0742, dtype=float32))
    """
    name = "ttest_rel"
    require_alternative(name, alternative)
    (x, y), done = taken(name, (a, b), axis, nan_policy, keepdims, paired=True)
    d = x.but(x.values - y.values)
    error = lax.sqrt(d.var(1) / d.n)
    return _tested(d.mean(), error, d.n - 1, alternative, done)


@statistic("equal_var")
@_docs_of_variances
def ttest_ind_from_stats(
    mean1: ArrayLike,
    std1: ArrayLike,
    nobs1: ArrayLike,
    mean2: ArrayLike,
    std2: ArrayLike,
    nobs2: ArrayLike,
    equal_var: bool = True,
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Tests whether the means of two samples are equal, of their moments.

    Args:
      mean1: real array-like: the mean of one sample.
      std1: real array-like: its corrected standard deviation.
      nobs1: array-like: its number of elements.
      mean2: real array-like: the mean of the other sample.
      std2: real array-like: its corrected standard deviation.
      nobs2: array-like: its number of elements.

    Returns:
      A named tuple of `statistic` and `pvalue`, of the broadcast shape.

    Example:
      >>> ttest_ind_from_stats(2.0, 1.0, 9, 3.0, 1.0, 9).statistic.round(4)
      Array(-2.1213, dtype=float32)
    """
    name = "ttest_ind_from_stats"
    require_alternative(name, alternative)
    (m1, s1, n1, m2, s2, n2), dtype = operands(
        name, mean1, std1, nobs1, mean2, std2, nobs2
    )
    df, error = _errors((s1 * s1, n1), (s2 * s2, n2), equal_var)
    t = (m1 - m2) / error
    p = student_pvalue(t, df, alternative)
    return SignificanceResult(*(v.astype(dtype) for v in (t, p)))


# -- several samples -------------------------------------------------------------------


def require_several(name: str, samples: Any, least: int = 2) -> None:
    """Raises an error unless there are as many samples as a test takes."""
    if len(samples) < least:
        raise ArgumentError(
            f"{name}: takes at least {least} samples, got {len(samples)}"
        )


def chi_square_result(value: Any, df: int, done: Any) -> SignificanceResult:
    """Returns the result of a test whose statistic has the distribution χ²."""
    p = chdtrc(fnp.asarray(float(df), value.aval.dtype), value)
    return SignificanceResult(done(value), done(p))


@statistic("axis", "equal_var", "keepdims")
@_docs_of_variances
def f_oneway(
    *samples: ArrayLike,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the means of several samples are equal: analysis of variance.

    Special cases:
      inf, if the elements of each sample are equal; nan, if all are.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
      >>> f_oneway(x, y).pvalue.round(4)
      Array(0.0913, dtype=float32)
    """
    name = "f_oneway"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    k = len(xs)
    total: Any = sum(x.n for x in xs)
    middle = sum(x.sum() for x in xs) / total
    means = [x.mean() for x in xs]
    flat: Any = True
    for x in xs:
        flat = flat & (x.min() == x.max())
    same = flat
    for mean in means[1:]:
        same = same & (mean == means[0])
    if equal_var:
        between: Any = sum(
            x.n * (m - middle) ** 2 for x, m in zip(xs, means, strict=True)
        )
        inside: Any = sum(x.var(0) * x.n for x in xs)
        first: Any = fnp.asarray(float(k - 1), xs[0].dtype)
        second = total - k
        f = (between / (k - 1)) / (inside / second)
    else:
        weights = [x.n / x.var(1) for x in xs]
        whole: Any = sum(weights)
        center = sum(w * m for w, m in zip(weights, means, strict=True)) / whole
        top: Any = sum(
            w * (m - center) ** 2 for w, m in zip(weights, means, strict=True)
        )
        rest: Any = sum(
            (1 - w / whole) ** 2 / (x.n - 1) for w, x in zip(weights, xs, strict=True)
        )
        f = (top / (k - 1)) / (1 + 2 * (k - 2) / (k * k - 1) * rest)
        first = fnp.asarray(float(k - 1), xs[0].dtype)
        second = (k * k - 1) / (3 * rest)
    f = fnp.where(same, math.nan, fnp.where(flat, math.inf, f))
    sure = f == math.inf
    p = fnp.where(sure, 0, fdtrc(first, second, fnp.where(sure, 1, f)))
    few = total <= k
    return SignificanceResult(*(done(fnp.where(few, math.nan, v)) for v in (f, p)))


@statistic("axis", "keepdims")
def alexandergovern(
    *samples: ArrayLike,
    nan_policy: str = "propagate",
    axis: Any = 0,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the means of samples of different variances are equal.

    Special cases:
      nan, if the elements of a sample are equal.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
      >>> alexandergovern(x, y).pvalue.round(4)
      Array(0.1149, dtype=float32)
    """
    name = "alexandergovern"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    means = [x.mean() for x in xs]
    errors = []
    for x, mean in zip(xs, means, strict=True):
        square = x.var(1) / x.n
        eps = float(fnp.finfo(x.dtype).eps)
        errors.append(fnp.where(square <= (eps * mean) ** 2, math.nan, square))
    whole: Any = sum(1 / e for e in errors)
    center = sum(m / e for m, e in zip(means, errors, strict=True)) / whole
    value: Any = 0
    for x, mean, error in zip(xs, means, errors, strict=True):
        df = x.n - 1
        a = df - 0.5
        b = 48 * a * a
        square = a * lax.log1p((mean - center) ** 2 / error / df)
        zero = square == 0
        c = fnp.where(zero, 0, lax.sqrt(fnp.where(zero, 1, square)))
        far = c * (4 * c**6 + 33 * c**4 + 240 * c * c + 855)
        z = c + (c**3 + 3 * c) / b - far / (b * b * 10 + 8 * b * c**4 + 1000 * b)
        value = value + z * z
    return chi_square_result(value, len(xs) - 1, done)
