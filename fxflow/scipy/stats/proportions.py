"""Tests of counts: of successes, of elements below a number, of Poisson means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.entropies import xlog1py, xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.special.incomplete_beta import betainc
from fxflow.scipy.stats._samples import (
    one_of,
    operands,
    require_alternative,
    statistic,
)
from fxflow.scipy.stats.results import (
    BinomTestResult,
    QuantileTestResult,
    SignificanceResult,
)


def at_most(k: Any, n: Any, p: Any) -> Any:
    """Returns the probability of at most k successes in n trials."""
    inside = (k >= 0) & (k < n)
    safe = fnp.where(inside, k, 0)
    value = betainc(fnp.where(inside, n - k, 1), safe + 1, 1 - p)
    return fnp.where(inside, value, fnp.where(k < 0, 0, 1))


def at_least(k: Any, n: Any, p: Any) -> Any:
    """Returns the probability of at least k successes in n trials."""
    inside = (k > 0) & (k <= n)
    safe = fnp.where(inside, k, 1)
    value = betainc(safe, fnp.where(inside, n - k + 1, 1), p)
    return fnp.where(inside, value, fnp.where(k > n, 0, 1))


def _chance(k: Any, n: Any, p: Any) -> Any:
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return lax.exp(ways + xlogy(k, p) + xlog1py(n - k, -p))


@statistic()
def binomtest(
    k: ArrayLike, n: ArrayLike, p: ArrayLike = 0.5, alternative: str = "two-sided"
) -> BinomTestResult:
    """Tests whether the probability of success is a given one, exactly.

    Args:
      k: an integer: the number of successful trials.
      n: an integer: how many there were.
      p: the probability of the hypothesis.

    Returns:
      A `BinomTestResult` with `k`, `n`, `statistic`, `pvalue`, `proportion_estimate`
      and `proportion_ci()`.

    Special cases:
      nan, if the numbers are not counts, or p is not a probability.

    Example:
      >>> binomtest(3, 15, p=0.1, alternative="greater").pvalue.round(4)
      Array(0.1841, dtype=float32)
    """
    name = "binomtest"
    require_alternative(name, alternative)
    (count, trials, chance), dtype = operands(name, k, n, p)
    for v in (count, trials, chance):
        if v.aval.ndim:
            raise ShapeError(f"{name}: takes numbers, got {v.aval}; use vmap for many")
    whole: Any = lambda v: v == lax.floor(v)
    valid = (count >= 0) & (count <= trials) & (trials >= 1) & whole(count)
    valid = valid & whole(trials) & (chance >= 0) & (chance <= 1)
    less, greater = (f(count, trials, chance) for f in (at_most, at_least))
    if alternative != "two-sided":
        pvalue = one_of(alternative, less, greater)
    else:
        limit = _chance(count, trials, chance) * (1 + 1e-7)
        middle = chance * trials
        below = count < middle
        # The first number on the other side of the mean that is as improbable: the
        # probabilities fall from the mean, so a bisection finds it.
        first = fnp.where(below, lax.ceil(middle), 0)
        last = fnp.where(below, trials, lax.floor(middle))

        def narrower(state: Any) -> Any:
            low, high = state
            at = lax.floor((low + high) / 2)
            small = _chance(at, trials, chance) <= limit
            keep = fnp.where(below, small, ~small)
            return fnp.where(keep, low, at + 1), fnp.where(keep, at, high)

        bounds = lax.stop_gradient((first, last + 1))
        at, _ = lax.while_loop(lambda s: s[0] < s[1], narrower, bounds)
        far = fnp.where(
            below, at_least(at, trials, chance), at_most(at - 1, trials, chance)
        )
        pvalue = fnp.where(below, less, greater) + far
        pvalue = fnp.where(count == middle, 1, fnp.minimum(pvalue, 1))
    pvalue = fnp.where(valid, pvalue, math.nan)
    return BinomTestResult(
        fnp.asarray(k),
        fnp.asarray(n),
        (count / trials).astype(dtype),
        pvalue.astype(dtype),
        _alternative=alternative,
    )


@statistic()
def quantile_test(
    x: ArrayLike,
    *,
    q: ArrayLike = 0,
    p: ArrayLike = 0.5,
    alternative: str = "two-sided",
) -> QuantileTestResult:
    """Tests whether a number is the quantile of a probability.

    Args:
      x: real array-like[n]: the sample.
      q: a number: the quantile of the hypothesis.
      p: its probability, between 0 and 1.

    Returns:
      A `QuantileTestResult` with `statistic`, `statistic_type`, `pvalue` and
      `confidence_interval()`.

    Example:
      >>> x = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      >>> quantile_test(x, q=8.5).pvalue.round(4)
      Array(0.1094, dtype=float32)
    """
    name = "quantile_test"
    require_alternative(name, alternative)
    (row, at, chance), dtype = operands(name, x, q, p)
    if row.aval.ndim != 1 or at.aval.ndim or chance.aval.ndim:
        raise ShapeError(
            f"{name}: takes a row and two numbers, got {row.aval}, {at.aval}, "
            f"{chance.aval}"
        )
    n = fnp.asarray(float(row.aval.shape[0]), row.aval.dtype)
    upto = fnp.sum(row <= at).astype(row.aval.dtype)
    below = fnp.sum(row < at).astype(row.aval.dtype)
    greater, less = at_most(upto, n, chance), at_least(below, n, chance)
    second = less < greater
    if alternative != "two-sided":
        second = fnp.full_like(second, alternative == "less")
    pvalue = one_of(alternative, less, greater)
    pvalue = fnp.where((chance > 0) & (chance < 1), pvalue, math.nan)
    return QuantileTestResult(
        fnp.where(second, below, upto).astype(dtype),
        fnp.where(second, 2, 1),
        pvalue.astype(dtype),
        _sample=row,
        _p=chance,
        _alternative=alternative,
    )


def _poisson_range(mean: float) -> int:
    """Returns a number beyond which a Poisson probability is nothing."""
    return math.ceil(mean + 10 * math.sqrt(mean) + 40)


@statistic("most")
def _poisson_pvalue(
    k1: Any, n1: Any, k2: Any, n2: Any, diff: Any, alternative: str, most: int
) -> SignificanceResult:
    (k1, n1, k2, n2, diff), dtype = operands("poisson_means_test", k1, n1, k2, n2, diff)
    rate = (k1 + k2) / (n1 + n2) - diff * n1 / (n1 + n2)
    found = (k1 / n1 - k2 / n2 - diff) / lax.sqrt(k1 / n1**2 + k2 / n2**2)
    safe = fnp.where(rate > 0, rate, 1)
    x = fnp.arange(most, dtype=k1.aval.dtype)
    chance: Any = lambda mean: lax.exp(xlogy(x, mean) - mean - gammaln(x + 1))
    first, second = chance(n1 * (safe + diff)), chance(n2 * safe)
    u, v = (x / n1)[None, :], (x / n2)[:, None]
    gap, spread = u - v - diff, u / n1 + v / n2
    none = spread == 0
    t = fnp.where(none, math.nan, gap / lax.sqrt(fnp.where(none, 1, spread)))
    # Nothing was counted: the difference decides alone, and its sign is infinite.
    t = fnp.where(none & (gap != 0), fnp.sign(gap) * math.inf, t)
    if alternative == "two-sided":
        extreme = abs(t) >= abs(found)
    elif alternative == "less":
        extreme = t <= found
    else:
        extreme = t >= found
    p = fnp.sum(fnp.where(extreme, first[None, :] * second[:, None], 0))
    flat = rate <= 0
    return SignificanceResult(
        fnp.where(flat, 0, found).astype(dtype),
        fnp.where(flat, 1, fnp.minimum(p, 1)).astype(dtype),
    )


def poisson_means_test(
    k1: ArrayLike,
    n1: ArrayLike,
    k2: ArrayLike,
    n2: ArrayLike,
    *,
    diff: ArrayLike = 0,
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Tests whether the means of two Poisson distributions differ by a number.

    Args:
      k1: an integer: how many events the first sample has.
      n1: how large it is.
      k2: an integer: how many events the second sample has.
      n2: how large it is.
      diff: a non-negative number: the difference of the hypothesis.
      alternative: "two-sided", "less" or "greater".

    Returns:
      A named tuple of `statistic` and `pvalue`.

    Raises:
      ArgumentError: an argument is traced: how many terms the sum has depends on the
        counts. Or there is no such alternative, or a number is negative.

    Example:
      >>> poisson_means_test(0, 100, 3, 100).pvalue.round(4)
      Array(0.0884, dtype=float32)

    Source: `scipy.stats.poisson_means_test`; Krishnamoorthy and Thomson, 2004.
    """
    name = "poisson_means_test"
    require_alternative(name, alternative)
    given = (k1, n1, k2, n2, diff)
    if any(isinstance(v, Tracer) for v in given):
        raise ArgumentError(
            f"{name}: takes numbers that are known, because they decide how many terms "
            "are summed; call it outside of jit, vmap and grad"
        )
    numbers = [float(np.asarray(v)) for v in given]
    if numbers[1] <= 0 or numbers[3] <= 0 or min(numbers) < 0:
        raise ArgumentError(
            f"{name}: counts and diff must not be negative, and sizes must be "
            f"positive, got {numbers}"
        )
    rate = (numbers[0] + numbers[2]) / (numbers[1] + numbers[3])
    rate = max(rate - numbers[4] * numbers[1] / (numbers[1] + numbers[3]), 0)
    mean = max(numbers[1] * (rate + numbers[4]), numbers[3] * rate)
    most = 2 ** math.ceil(math.log2(_poisson_range(mean)))
    return _poisson_pvalue(*given, alternative, most)
