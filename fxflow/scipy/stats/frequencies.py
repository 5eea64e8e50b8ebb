"""Tests of frequencies: χ² and its relatives, tables of contingency."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.special.inverses import chdtrc
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_alternative,
    require_choice,
    statistic,
    taken,
)
from fxflow.scipy.stats.means_tests import require_several
from fxflow.scipy.stats.results import (
    Chi2ContingencyResult,
    ChisquareResult,
    MedianTestResult,
    SignificanceResult,
)

_POWERS = {
    "pearson": 1.0,
    "log-likelihood": 0.0,
    "freeman-tukey": -0.5,
    "mod-log-likelihood": -1.0,
    "neyman": -2.0,
    "cressie-read": 2 / 3,
}


def _power(name: str, lambda_: Any) -> float:
    if lambda_ is None:
        return 1.0
    if isinstance(lambda_, str):
        require_choice(name, "lambda_", lambda_, tuple(_POWERS))
        return _POWERS[lambda_]
    if not isinstance(lambda_, int | float):
        raise ArgumentError(f"{name}: lambda_ must be a number, got {lambda_!r}")
    return float(lambda_)


def _divergence(observed: Any, expected: Any, power: float) -> Any:
    """Returns the terms of Cressie and Read's power divergence."""
    if power == 1:
        return (observed - expected) ** 2 / expected
    if power == 0:
        return 2 * xlogy(observed, observed / expected)
    if power == -1:
        return 2 * xlogy(expected, expected / observed)
    terms = observed * ((observed / expected) ** power - 1)
    return terms / (0.5 * power * (power + 1))


def _tested(
    name: str,
    f_obs: Any,
    f_exp: Any,
    ddof: Any,
    axis: Any,
    power: float,
    nan_policy: str,
    keepdims: bool,
    check: bool = True,
) -> ChisquareResult:
    given = (f_obs,) if f_exp is None else (f_obs, f_exp)
    found, done = taken(name, given, axis, nan_policy, keepdims, paired=True)
    x = found[0]
    if f_exp is None:
        expected = x.mean()
    else:
        expected = found[1].values
        if check:
            # Which sums agree depends on values: nan where they do not.
            sums = x.sum(), x.sum(expected)
            most = fnp.minimum(*sums) * float(fnp.finfo(x.dtype).eps) ** 0.5
            expected = fnp.where(abs(sums[0] - sums[1]) > most, math.nan, expected)
    value = x.sum(_divergence(x.values, expected, power))
    less = fnp.asarray(ddof, x.dtype)
    less = less[..., None] if less.aval.ndim else less
    p = chdtrc(x.n - 1 - less, value)
    return ChisquareResult(done(value), done(p))


_docs_of_frequencies = shared("""
    Args:
      f_obs: real array-like[...]: the observed frequencies.
      ddof: what is taken off from the degrees of freedom, besides 1.
""")


@statistic("axis", "sum_check", "keepdims")
@_docs_of_frequencies
def chisquare(
    f_obs: ArrayLike,
    f_exp: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    axis: Any = 0,
    *,
    sum_check: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> ChisquareResult:
    """Tests whether frequencies are those expected, by Pearson's χ².

    Args:
      f_exp: real array-like[...]: those expected; None is equal ones.
      sum_check: whether the sums of both have to agree; nan, if they do not.

    Example:
      >>> chisquare(np.array([16.0, 18, 16, 14, 12, 12])).pvalue.round(4)
      Array(0.8491, dtype=float32)
    """
    return _tested(
        *("chisquare", f_obs, f_exp, ddof, axis, 1.0, nan_policy, keepdims),
        check=sum_check,
    )


@statistic("axis", "lambda_", "keepdims")
@_docs_of_frequencies
def power_divergence(
    f_obs: ArrayLike,
    f_exp: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    axis: Any = 0,
    lambda_: float | str | None = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> ChisquareResult:
    """Tests whether frequencies are those expected, by Cressie and Read's family.

    Args:
      f_exp: real array-like[...]: those expected, of the same sum, else the result is
        nan; None is equal ones.
      lambda_: the power, or "pearson" (1), "log-likelihood" (0), "freeman-tukey"
        (-1/2), "mod-log-likelihood" (-1), "neyman" (-2), "cressie-read" (2/3); None is
        1.

    Example:
      >>> x = np.array([16.0, 18, 16, 14, 12, 12])
      >>> power_divergence(x, lambda_="log-likelihood").pvalue.round(4)
      Array(0.8482, dtype=float32)
    """
    name = "power_divergence"
    power = _power(name, lambda_)
    return _tested(name, f_obs, f_exp, ddof, axis, power, nan_policy, keepdims)


def expected_frequencies(table: Any) -> Any:
    """Returns the frequencies that the sums along each axis make expect."""
    total = fnp.sum(table)
    out: Any = total
    for axis in range(table.aval.ndim):
        rest = tuple(i for i in range(table.aval.ndim) if i != axis)
        out = out * (fnp.sum(table, axis=rest, keepdims=True) / total)
    return out


@statistic("correction", "lambda_")
def chi2_contingency(
    observed: ArrayLike,
    correction: bool = True,
    lambda_: float | str | None = None,
    *,
    method: None = None,
) -> Chi2ContingencyResult:
    """Tests whether the rows and columns of a table are independent.

    Args:
      observed: array-like[...]: the table of frequencies.
      correction: whether a table with one degree of freedom is corrected for
        continuity, as Yates does.
      lambda_: the power, as `power_divergence` has it.
      method: None.

    Returns:
      A named tuple of `statistic`, `pvalue`, `dof` and `expected_freq`.

    Special cases:
      nan, if an expected frequency is 0.

    Example:
      >>> chi2_contingency(np.array([[10, 10, 20], [20, 20, 20]])).pvalue.round(4)
      Array(0.2494, dtype=float32)
    """
    name = "chi2_contingency"
    require_choice(name, "method", method, (None,))
    power = _power(name, lambda_)
    (table,), dtype = operands(name, observed)
    if not table.aval.size:
        raise ShapeError(f"{name}: takes at least one frequency, got {table.aval}")
    expected = expected_frequencies(table)
    shape = table.aval.shape
    dof = table.aval.size - sum(shape) + len(shape) - 1
    if not dof:
        zero = fnp.zeros((), dtype)
        return Chi2ContingencyResult(
            zero, zero + 1, fnp.asarray(dof), expected.astype(dtype)
        )
    if dof == 1 and correction:
        gap = expected - table
        table = table + fnp.minimum(0.5, abs(gap)) * fnp.sign(gap)
    value = fnp.sum(_divergence(table, expected, power))
    value = fnp.where(fnp.any(expected == 0), math.nan, value)
    p = chdtrc(fnp.asarray(float(dof), table.aval.dtype), value)
    value, p, expected = (v.astype(dtype) for v in (value, p, expected))
    return Chi2ContingencyResult(value, p, fnp.asarray(dof), expected)


@statistic()
def fisher_exact(
    table: ArrayLike, alternative: str | None = None, *, method: None = None
) -> SignificanceResult:
    """Tests whether the rows and columns of a 2 × 2 table are independent, exactly.

    Args:
      table: array-like[2, 2]: frequencies, integers.
      alternative: "two-sided", which None is, "less" or "greater".
      method: None.

    Returns:
      A named tuple of `statistic`, the odds ratio, and `pvalue`.

    Special cases:
      nan and 1, if a row or a column is 0.

    Example:
      >>> odds, p = fisher_exact(np.array([[6, 2], [1, 4]]))
      >>> odds, p.round(4)
      (Array(12., dtype=float32), Array(0.1026, dtype=float32))
    """
    name = "fisher_exact"
    side = "two-sided" if alternative is None else alternative
    require_alternative(name, side)
    require_choice(name, "method", method, (None,))
    (c,), dtype = operands(name, table)
    if c.aval.shape != (2, 2):
        raise ShapeError(f"{name}: takes a 2 × 2 table, got {c.aval}")
    c = lax.stop_gradient(c)
    rows, columns = fnp.sum(c, axis=1), fnp.sum(c, axis=0)
    total = fnp.sum(c)
    low = fnp.maximum(0, columns[0] - rows[1])
    high = fnp.minimum(rows[0], columns[0])
    pick: Any = lambda n, k: gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    whole = pick(total, columns[0])
    chance: Any = lambda k: lax.exp(
        pick(rows[0], k) + pick(rows[1], columns[0] - k) - whole
    )
    here = c[0, 0]
    # A probability is as extreme if it is as small, but for rounding.
    least = chance(here) * (1 + 10 * float(fnp.finfo(c.aval.dtype).eps) * total)

    def step(state: Any) -> Any:
        k, p = state
        part = chance(k)
        if side == "less":
            counts = k <= here
        elif side == "greater":
            counts = k >= here
        else:
            counts = part <= least
        return k + 1, p + fnp.where(counts, part, 0)

    start = (low, fnp.zeros((), c.aval.dtype))
    _, p = lax.while_loop(lambda s: s[0] <= high, step, start)
    odds = c[0, 0] * c[1, 1] / (c[0, 1] * c[1, 0])
    sure = (c[0, 1] > 0) & (c[1, 0] > 0)
    odds = fnp.where(sure, odds, math.inf)
    none = fnp.any(rows == 0) | fnp.any(columns == 0)
    odds, p = fnp.where(none, math.nan, odds), fnp.where(none, 1, fnp.minimum(p, 1))
    return SignificanceResult(odds.astype(dtype), p.astype(dtype))


@statistic("correction", "lambda_")
def median_test(
    *samples: ArrayLike,
    ties: str = "below",
    correction: bool = True,
    lambda_: float | str | None = 1,
    nan_policy: str = "propagate",
) -> MedianTestResult:
    """Tests whether samples have one median, by Mood's test.

    Args:
      *samples: two or more real array-likes[n], each of some length.
      ties: where elements equal to the grand median count: "below", "above", or
        "ignore".
      correction: whether the p-value for two samples is corrected for continuity.
      lambda_: the power, as `power_divergence` has it.

    Returns:
      A named tuple of `statistic`, `pvalue`, `median` and `table`.

    Special cases:
      nan, if no element counts as above, or none as below.

    Example:
      >>> x, y = np.array([10.0, 14, 14, 18, 20]), np.array([28.0, 30, 29, 17, 31])
      >>> median_test(x, y).table
      Array([[1, 4],
             [4, 1]], dtype=int32)
    """
    name = "median_test"
    require_several(name, samples)
    require_choice(name, "ties", ties, ("below", "above", "ignore"))
    rows, dtype = operands(name, *samples)
    for row in rows:
        if row.aval.ndim != 1 or not row.aval.size:
            raise ShapeError(
                f"{name}: a sample must be a row of at least one element, got "
                f"{row.aval}"
            )
    (joined,), _ = taken(name, (fnp.concatenate(rows),), 0, nan_policy)
    middle = joined.median()[0]
    counts = []
    for row in rows:
        whole = Sample(row, row == row if nan_policy == "omit" else None)
        one: Any = lambda v, w=whole: w.sum(v.astype(w.dtype))[0]
        above, below = one(whole.values > middle), one(whole.values < middle)
        equal = fnp.asarray(whole.n).reshape(()) - above - below
        below = below + (equal if ties == "below" else 0)
        above = above + (equal if ties == "above" else 0)
        counts.append(fnp.stack([above, below]))
    table = fnp.stack(counts, axis=1)
    found = chi2_contingency(table, correction, lambda_)
    lost = joined.lost[0]
    value, p, median = (
        fnp.where(lost, math.nan, v).astype(dtype)
        for v in (found.statistic, found.pvalue, middle)
    )
    return MedianTestResult(value, p, median, table.astype(dtypes.default_int()))
