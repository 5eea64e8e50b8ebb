"""What tests and correlations return: SciPy's fields, unpacked as SciPy's are.

They are pytrees. Some have more fields than the two or three that unpacking gives, and
some a confidence interval, which is computed when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.tree import register_pytree_node
from fxflow.errors import ArgumentError
from fxflow.scipy.special.incomplete_beta import betainc, betaincinv, stdtrit
from fxflow.scipy.special.normal import ndtri


class ConfidenceInterval(NamedTuple):
    """An interval.

    Attributes:
      low: the lower ends.
      high: the upper ends.
    """

    low: Array
    high: Array


class SignificanceResult(NamedTuple):
    """A statistic and its p-value, which many tests return.

    Attributes:
      statistic: of the test.
      pvalue: how probable it is that a statistic is at least as extreme.
    """

    statistic: Array
    pvalue: Array


class Result:
    """A record whose first fields are those of a tuple.

    Fields are in the order of their annotations. `_unpacked` is how many of them a
    tuple has, and `_fixed` names those that are not arrays.
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _unpacked: ClassVar[int] = 2
    _fixed: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._names = tuple(
            name for name, kind in cls.__annotations__.items() if "ClassVar" not in kind
        )
        parts = [name for name in cls._names if name not in cls._fixed]

        def flatten(r: Any) -> Any:
            return [getattr(r, p) for p in parts], tuple(
                getattr(r, f) for f in cls._fixed
            )

        def unflatten(fixed: Any, leaves: Any) -> Any:
            made = object.__new__(cls)
            vars(made).update(zip(parts, leaves, strict=True))
            vars(made).update(zip(cls._fixed, fixed, strict=True))
            return made

        register_pytree_node(cls, flatten, unflatten)

    def __init__(self, *args: Any, **fields: Any) -> None:
        vars(self).update(zip(self._names, args, strict=False))
        vars(self).update(fields)

    def _tuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, n) for n in self._names[: self._unpacked])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tuple())

    def __getitem__(self, index: Any) -> Any:
        return self._tuple()[index]

    def __len__(self) -> int:
        return self._unpacked

    def __repr__(self) -> str:
        shown = [n for n in self._names if not n.startswith("_")]
        return (
            type(self).__name__
            + "("
            + ", ".join(f"{n}={getattr(self, n)!r}" for n in shown)
            + ")"
        )


def require_level(name: str, level: Any, argument: str = "confidence_level") -> None:
    """Raises an error unless a level is a number between 0 and 1."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise ArgumentError(
            f"{name}: {argument} must be between 0 and 1, got {level!r}"
        )


def interval_of(estimate: Any, wide: Any, alternative: str) -> ConfidenceInterval:
    """Returns an interval about an estimate; one end of one-sided ones is infinite."""
    far = fnp.full_like(estimate, math.inf)
    low = -far if alternative == "less" else estimate - wide
    high = far if alternative == "greater" else estimate + wide
    return ConfidenceInterval(low, high)


def level_of(level: float, alternative: str) -> float:
    """Returns the probability below the upper end of an interval."""
    return 0.5 + level / 2 if alternative == "two-sided" else level


class TtestResult(Result):
    """What the t-tests return; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: t.
      pvalue: how probable it is that t is at least as extreme.
      df: the degrees of freedom.
    """

    statistic: Array
    pvalue: Array
    df: Array
    _estimate: Array
    _error: Array
    _alternative: str
    _fixed = ("_alternative",)

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns a confidence interval of the mean, or of the difference.

        Args:
          confidence_level: a probability.

        Returns:
          A named tuple of `low` and `high`, like `statistic`.

        Raises:
          ArgumentError: the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> found = stats.ttest_1samp(np.array([1.0, 2.0, 4.0]), 0.0)
          >>> found.confidence_interval(0.9).high.round(3)
          Array(4.909, dtype=float32)
        """
        require_level("confidence_interval", confidence_level)
        q = level_of(confidence_level, self._alternative)
        df = fnp.asarray(self.df)
        far = stdtrit(df, fnp.full_like(df, q)) * self._error
        return interval_of(self._estimate, far, self._alternative)


class PearsonRResult(Result):
    """What `pearsonr` returns; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: the correlation.
      pvalue: how probable it is that it is at least as extreme.
    """

    statistic: Array
    pvalue: Array
    _count: Any
    _alternative: str
    _fixed = ("_alternative",)

    @property
    def correlation(self) -> Array:
        """The correlation."""
        return self.statistic

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns a confidence interval of the correlation, by Fisher's transformation.

        Args:
          confidence_level: a probability.

        Returns:
          A named tuple of `low` and `high`, like `statistic`; -1 and 1 for 3 pairs.

        Raises:
          ArgumentError: the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> x = np.array([1.0, 2.0, 4.0, 5.0])
          >>> stats.pearsonr(x, x[::-1]**2).confidence_interval().high.round(3)
          Array(-0.525, dtype=float32)
        """
        require_level("confidence_interval", confidence_level)
        n = fnp.asarray(self._count, fnp.asarray(self.statistic).dtype)
        few = n <= 3
        q = level_of(confidence_level, self._alternative)
        wide = ndtri(fnp.asarray(q, n.dtype)) / lax.sqrt(fnp.where(few, 1, n - 3))
        ends = interval_of(lax.atanh(self.statistic), wide, self._alternative)
        return ConfidenceInterval(
            fnp.where(few, -1, lax.tanh(ends.low)),
            fnp.where(few, 1, lax.tanh(ends.high)),
        )


class CorrelationResult(Result):
    """What the rank correlations return; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: the correlation.
      pvalue: how probable it is that it is at least as extreme.
    """

    statistic: Array
    pvalue: Array

    @property
    def correlation(self) -> Array:
        """The correlation."""
        return self.statistic


class SomersDResult(Result):
    """What `somersd` returns.

    Attributes:
      statistic: Somers' D, from -1 to 1.
      pvalue: how probable it is that it is at least as extreme.
      table: the contingency table, if one was given.
    """

    statistic: Array
    pvalue: Array
    table: Any
    _unpacked = 3

    @property
    def correlation(self) -> Array:
        """Somers' D."""
        return self.statistic


class LinregressResult(Result):
    """What `linregress` returns; it unpacks without the last field.

    Attributes:
      slope: of the line.
      intercept: of the line.
      rvalue: the correlation.
      pvalue: of the hypothesis that the slope is 0.
      stderr: the standard error of the slope.
      intercept_stderr: the standard error of the intercept.
    """

    slope: Array
    intercept: Array
    rvalue: Array
    pvalue: Array
    stderr: Array
    intercept_stderr: Array
    _unpacked = 5


class TheilslopesResult(NamedTuple):
    """What `theilslopes` returns.

    Attributes:
      slope: the median of the slopes between points.
      intercept: of the line.
      low_slope: the lower end of the slope's confidence interval.
      high_slope: the upper end.
    """

    slope: Array
    intercept: Array
    low_slope: Array
    high_slope: Array


class SiegelslopesResult(NamedTuple):
    """What `siegelslopes` returns.

    Attributes:
      slope: of the line.
      intercept: of the line.
    """

    slope: Array
    intercept: Array


class KstestResult(Result):
    """What the Kolmogorov–Smirnov tests return; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: the greatest distance of two distribution functions.
      pvalue: how probable it is that it is at least as great.
      statistic_location: where it is.
      statistic_sign: 1 where the first function is above the other, else -1.
    """

    statistic: Array
    pvalue: Array
    statistic_location: Array
    statistic_sign: Array


class WilcoxonResult(Result):
    """What `wilcoxon` returns; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: the lesser of the sums of ranks of each sign; one-sided, the sum of
        the positive ones.
      pvalue: how probable it is that it is at least as extreme.
      zstatistic: the normal statistic; nan for the exact method.
    """

    statistic: Array
    pvalue: Array
    zstatistic: Array


class CramerVonMisesResult(SignificanceResult):
    """What the Cramér–von Mises tests return.

    Attributes:
      statistic: of the test.
      pvalue: how probable it is that it is at least as great.
    """


class AndersonResult(Result):
    """What `anderson` returns.

    Attributes:
      statistic: of the test.
      pvalue: nan: the critical values have the significance.
      critical_values: at the levels.
      significance_level: the levels in per cent.
    """

    statistic: Array
    critical_values: Array
    significance_level: Array
    _unpacked = 3


class AndersonKsampResult(Result):
    """What `anderson_ksamp` returns.

    Attributes:
      statistic: the standardized statistic.
      critical_values: at 25 %, 10 %, 5 %, 2.5 %, 1 %, 0.5 % and 0.1 %.
      pvalue: interpolated, and not beyond these levels.
    """

    statistic: Array
    critical_values: Array
    pvalue: Array
    _unpacked = 3


class BinomTestResult(Result):
    """What `binomtest` returns.

    Attributes:
      k: the number of successful trials.
      n: how many there were.
      statistic: k/n.
      pvalue: how probable it is that k is at least as extreme.
    """

    k: Any
    n: Any
    statistic: Array
    pvalue: Array
    _alternative: str
    _fixed = ("_alternative",)
    _unpacked = 4

    @property
    def proportion_estimate(self) -> Array:
        """The proportion of trials that succeeded."""
        return self.statistic

    def proportion_ci(
        self, confidence_level: float = 0.95, method: str = "exact"
    ) -> ConfidenceInterval:
        """Returns a confidence interval of the probability of success.

        Args:
          confidence_level: a probability.
          method: "exact" (Clopper and Pearson), "wilson" or "wilsoncc", which is
            corrected for continuity.

        Returns:
          A named tuple of `low` and `high`.

        Raises:
          ArgumentError: unknown method, or the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> stats.binomtest(7, 50).proportion_ci().high.round(3)
          Array(0.267, dtype=float32)
        """
        name = "proportion_ci"
        require_level(name, confidence_level)
        if method not in ("exact", "wilson", "wilsoncc"):
            raise ArgumentError(
                f'{name}: method must be "exact", "wilson" or "wilsoncc", got '
                f"{method!r}"
            )
        dtype = fnp.asarray(self.statistic).dtype
        k, n = (fnp.asarray(v, dtype) for v in (self.k, self.n))
        q = fnp.asarray(level_of(confidence_level, self._alternative), dtype)
        if method == "exact":
            none, all_ = k == 0, k == n
            low = betaincinv(fnp.where(none, 1, k), n - k + 1, 1 - q)
            high = betaincinv(k + 1, fnp.where(all_, 1, n - k), q)
            low, high = fnp.where(none, 0, low), fnp.where(all_, 1, high)
        else:
            low, high = _wilson(k, n, ndtri(q), method == "wilsoncc")
        if self._alternative == "less":
            low = fnp.zeros_like(high)
        if self._alternative == "greater":
            high = fnp.ones_like(low)
        return ConfidenceInterval(low, high)


def _wilson(k: Any, n: Any, z: Any, corrected: bool) -> tuple[Any, Any]:
    p = k / n
    base = 2 * (n + z * z)
    if not corrected:
        middle = 2 * n * p + z * z
        wide = z * lax.sqrt(z * z + 4 * n * p * (1 - p))
        return (middle - wide) / base, (middle + wide) / base
    ends = []
    for sign in (-1, 1):
        inner = z * z + 2 * sign - 1 / n + 4 * p * (n * (1 - p) - sign)
        wide = z * lax.sqrt(fnp.maximum(inner, 0))
        ends.append((2 * n * p + z * z + sign * (1 + wide)) / base)
    return fnp.where(k == 0, 0, ends[0]), fnp.where(k == n, 1, ends[1])


class QuantileTestResult(Result):
    """What `quantile_test` returns.

    Attributes:
      statistic: how many elements decide.
      statistic_type: 1: those not above q; 2: those below it.
      pvalue: how probable it is that it is at least as extreme.
    """

    statistic: Array
    statistic_type: Array
    pvalue: Array
    _sample: Array
    _p: Array
    _alternative: str
    _fixed = ("_alternative",)
    _unpacked = 3

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns a confidence interval of the quantile, between two elements.

        Args:
          confidence_level: a probability, which the interval has at least.

        Returns:
          A named tuple of `low` and `high`; an end is nan where the sample is too
          small for one, and infinite where the alternative has none.

        Raises:
          ArgumentError: the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> stats.quantile_test(np.arange(1.0, 11.0)).confidence_interval().low
          Array(2., dtype=float32)
        """
        require_level("confidence_interval", confidence_level)
        ordered = fnp.sort(self._sample)
        n = ordered.aval.shape[0]
        k = fnp.arange(n + 1, dtype=ordered.aval.dtype)
        p = fnp.asarray(self._p, ordered.aval.dtype)
        safe = fnp.minimum(k, n - 1)
        upto = fnp.where(k < n, betainc(n - safe, safe + 1, 1 - p), 1)
        two = self._alternative == "two-sided"
        rest = (1 - confidence_level) / (2 if two else 1)
        # The quantiles of the binomial distribution number the elements.
        least = fnp.argmax(upto >= rest)
        most = fnp.argmax(upto >= 1 - rest)
        at: Any = lambda i: fnp.where(
            (i >= 0) & (i < n), ordered[fnp.clip(i, 0, n - 1)], math.nan
        )
        far = fnp.full((), math.inf, ordered.aval.dtype)
        low = -far if self._alternative == "less" else at(least - 1)
        high = far if self._alternative == "greater" else at(most)
        return ConfidenceInterval(low, high)


class ChisquareResult(NamedTuple):
    """What `chisquare` and `power_divergence` return.

    Attributes:
      statistic: of the test.
      pvalue: how probable it is that it is at least as great.
    """

    statistic: Array
    pvalue: Array


class Chi2ContingencyResult(NamedTuple):
    """What `chi2_contingency` returns.

    Attributes:
      statistic: of the test.
      pvalue: how probable it is that it is at least as great.
      dof: the degrees of freedom.
      expected_freq: the frequencies that the sums of the table make expect.
    """

    statistic: Array
    pvalue: Array
    dof: Any
    expected_freq: Array


class MedianTestResult(NamedTuple):
    """What `median_test` returns.

    Attributes:
      statistic: of the test.
      pvalue: how probable it is that it is at least as great.
      median: the grand median.
      table: how many elements of each sample are above it and below.
    """

    statistic: Array
    pvalue: Array
    median: Array
    table: Array


class BootstrapResult(NamedTuple):
    """What `bootstrap` returns.

    Attributes:
      confidence_interval: a named tuple of `low` and `high`.
      bootstrap_distribution: the statistic of each resample, along the last axis.
      standard_error: the standard deviation of it.
    """

    confidence_interval: ConfidenceInterval
    bootstrap_distribution: Array
    standard_error: Array


class PermutationTestResult(NamedTuple):
    """What `permutation_test` returns.

    Attributes:
      statistic: of the data.
      pvalue: how probable it is that it is at least as extreme.
      null_distribution: the statistic of each permutation, along the first axis.
    """

    statistic: Array
    pvalue: Array
    null_distribution: Array


class MGCResult(Result):
    """What `multiscale_graphcorr` returns; it unpacks as its three attributes.

    Attributes:
      statistic: the correlation at the best scale, from -1 to 1.
      pvalue: how probable it is that it is at least as great.
      mgc_dict: "mgc_map", float[n, n]: the correlations at all scales, where rows and
        columns beyond the greatest rank (there are fewer than n of equal distances)
        repeat the last one; "opt_scale", int32[2]: the best scale; "null_dist",
        float[reps]: the statistics of the permutations.
    """

    statistic: Array
    pvalue: Array
    mgc_dict: dict[str, Array]
    _unpacked = 3

    @property
    def stat(self) -> Array:
        """The statistic, by SciPy's older name."""
        return self.statistic


class MonteCarloTestResult(NamedTuple):
    """What `monte_carlo_test` returns.

    Attributes:
      statistic: of the data.
      pvalue: how probable it is that it is at least as extreme.
      null_distribution: the statistic of each drawn sample, along the first axis.
    """

    statistic: Array
    pvalue: Array
    null_distribution: Array


class PowerResult(NamedTuple):
    """What `power` returns.

    Attributes:
      power: the part of the p-values that are at most the significance.
      pvalues: of each drawn sample, along the last axis.
    """

    power: Array
    pvalues: Array


class DirectionalStats(NamedTuple):
    """The mean of directions.

    Attributes:
      mean_direction: a vector of length 1.
      mean_resultant_length: from 0 to 1, the length of the mean vector.
    """

    mean_direction: Array
    mean_resultant_length: Array
