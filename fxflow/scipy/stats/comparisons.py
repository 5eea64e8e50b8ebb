"""Comparisons of means in pairs: Tukey's and Dunnett's tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special.noncentral import log_t_integral
from fxflow.scipy.special.normal import ndtr
from fxflow.scipy.stats._deviations import (
    guarded_log,
    log_of_sum,
    studentized_range,
)
from fxflow.scipy.stats._samples import (
    operands,
    require_alternative,
    statistic,
)
from fxflow.scipy.stats.means_tests import require_several
from fxflow.scipy.stats.results import (
    ConfidenceInterval,
    Result,
    interval_of,
    require_level,
)


class TukeyHSDResult(Result):
    """What `tukey_hsd` returns; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: float[k, k]: the differences of means.
      pvalue: float[k, k].
    """

    statistic: Array
    pvalue: Array
    _error: Array
    _freedom: Array

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns confidence intervals of the differences, which hold together.

        Args:
          confidence_level: a probability.

        Returns:
          A named tuple of `low` and `high`, float[k, k].

        Raises:
          ArgumentError: the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
          >>> stats.tukey_hsd(x, y).confidence_interval(0.9).high[0, 1].round(3)
          Array(-0.086, dtype=float32)
        """
        require_level("confidence_interval", confidence_level)
        k = self._error.shape[0]
        upper = np.triu_indices(k, 1)
        q = studentized_range.isf(1 - confidence_level, float(k), self._freedom[upper])
        far = fnp.zeros_like(self._error).at[upper].set(q)
        far = (far + fnp.transpose(far)) * self._error
        # On the diagonal as SciPy has it: that of one sample with itself.
        own = fnp.diagonal(self._freedom)
        one = studentized_range.isf(1 - confidence_level, float(k), own)
        far = far + fnp.diag(one * fnp.diagonal(self._error))
        return ConfidenceInterval(self.statistic - far, self.statistic + far)


class DunnettResult(Result):
    """What `dunnett` returns; it unpacks as (statistic, pvalue).

    Attributes:
      statistic: float[k].
      pvalue: float[k].
    """

    statistic: Array
    pvalue: Array
    _difference: Array
    _error: Array
    _weights: Array
    _df: int
    _alternative: str
    _fixed = ("_df", "_alternative")

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns confidence intervals of the differences, which hold together.

        Args:
          confidence_level: a probability.

        Returns:
          A named tuple of `low` and `high`, float[k].

        Raises:
          ArgumentError: the level is not between 0 and 1.

        Example:
          >>> from fxflow.scipy import stats
          >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
          >>> stats.dunnett(x, control=y).confidence_interval(0.9).high.round(3)
          Array([-0.086], dtype=float32)
        """
        require_level("confidence_interval", confidence_level)
        two_sided = self._alternative == "two-sided"
        goal = 1 - confidence_level
        end = self._weights[0] * 0

        def halve(_: Any, ends: Any) -> Any:
            low, high = ends
            middle = 0.5 * (low + high)
            outside = greatest_sf(lax.exp(middle), self._weights, self._df, two_sided)
            return (
                fnp.where(outside > goal, middle, low),
                fnp.where(outside > goal, high, middle),
            )

        # The ends are those of log t.
        low, high = lax.fori_loop(0, 50, halve, (end - 12, end + 12))
        wide = lax.exp(0.5 * (low + high)) * self._error
        return interval_of(self._difference, wide, self._alternative)


def _groups(name: str, samples: Any) -> list[Any]:
    """Returns rows of at least two elements."""
    rows, _ = operands(name, *samples)
    for row in rows:
        if row.aval.ndim != 1 or row.aval.shape[0] < 2:
            raise ShapeError(
                f"{name}: a sample must be a row of at least two elements, got "
                f"{row.aval}"
            )
    return rows


def _pooled(rows: list[Any]) -> tuple[Any, Any, Any, int]:
    """Returns the means, the sizes, the pooled variance and its degrees of freedom."""
    means = fnp.stack([fnp.mean(row) for row in rows])
    sizes = fnp.asarray(np.array([r.aval.shape[0] for r in rows], float), means.dtype)
    df = sum(row.aval.shape[0] for row in rows) - len(rows)
    within: Any = sum(
        fnp.sum(lax.square(row - mean)) for row, mean in zip(rows, means, strict=True)
    )
    return means, sizes, within / df, df


@statistic("equal_var")
def tukey_hsd(*samples: ArrayLike, equal_var: bool = True) -> TukeyHSDResult:
    """Tests which of the means of several samples differ, by Tukey's range.

    Args:
      *samples: rows of at least two elements.
      equal_var: whether the variances are equal (Tukey and Kramer); otherwise by Games
        and Howell.

    Returns:
      A `TukeyHSDResult` with `statistic` and `pvalue`, float[k, k], of the difference
      of the mean of a sample and that of another, and `confidence_interval()`.

    Raises:
      ArgumentError: there are fewer than two samples.
      ShapeError: a sample is not such a row.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
      >>> tukey_hsd(x, y).pvalue[0].round(4)
      Array([1.    , 0.0913], dtype=float32)
    """
    name = "tukey_hsd"
    require_several(name, samples)
    rows = _groups(name, samples)
    k = len(rows)
    means, sizes, pooled, df = _pooled(rows)
    difference = means[:, None] - means
    if equal_var:
        square = 0.5 * pooled * (1 / sizes[:, None] + 1 / sizes)
        freedom = fnp.full((k, k), float(df), means.dtype)
    else:
        own = fnp.stack([fnp.var(row, ddof=1) for row in rows]) / sizes
        both = own[:, None] + own
        square = 0.5 * both
        under = lax.square(own) / (sizes - 1)
        freedom = lax.square(both) / (under[:, None] + under)
    error = lax.sqrt(square)
    upper = np.triu_indices(k, 1)
    q = (abs(difference) / error)[upper]
    p = studentized_range.sf(q, float(k), freedom[upper])
    table = fnp.ones((k, k), means.dtype).at[upper].set(p)
    table = fnp.minimum(table, fnp.transpose(table))
    return TukeyHSDResult(difference, table, error, freedom)


# -- against a control -----------------------------------------------------------------

_POINTS = 90


def greatest_sf(t: Any, weights: Any, df: int, two_sided: bool) -> Any:
    """Returns the probability that the greatest of correlated t variables exceeds t.

    The correlation of two is the product of their weights, so that they are independent
    given the mean of the control and the scale.

    Args:
      t: float[...].
      weights: float[k], from 0 to 1.
      df: degrees of freedom.
      two_sided: whether the greatest size counts.
    """
    nodes = np.linspace(-8.5, 8.5, _POINTS)
    mass = np.exp(-0.5 * nodes * nodes) * (nodes[1] - nodes[0]) / math.sqrt(2 * math.pi)

    def of(t: Any, weights: Any) -> Any:
        z = fnp.asarray(nodes, t.dtype)[:, None] * weights
        own = lax.sqrt(1 - weights * weights)

        def log_outside(w: Any, log_u: Any) -> Any:
            w = fnp.expand_dims(w, (-1, -2))
            out = ndtr((z - w) / own)
            if two_sided:
                out = out + ndtr((-w - z) / own)
            # 1 minus the product of what is inside, where that is near 1.
            each = lax.log1p(-fnp.minimum(out, 1 - 1e-16))
            any_out = -lax.expm1(fnp.sum(each, axis=-1))
            return log_of_sum(fnp.asarray(mass, t.dtype), guarded_log(any_out))

        n = fnp.full_like(t, float(df))
        return lax.exp(log_t_integral(log_outside, t, n, 0 * t))

    dtype = t.aval.dtype
    wide = (convert(v, dtypes.float64) for v in (t, weights))
    return convert(of(*wide), dtype)


@statistic()
def dunnett(
    *samples: ArrayLike,
    control: ArrayLike,
    alternative: str = "two-sided",
    rng: Any = None,
) -> DunnettResult:
    """Tests which of the means of several samples differ from that of a control.

    The p-value is an integral, with no random numbers.

    Args:
      *samples: rows of at least two elements.
      control: another one.
      rng: None. SciPy's integral draws numbers, this one none.

    Returns:
      A `DunnettResult` with `statistic` and `pvalue`, float[k], and
      `confidence_interval()`.

    Raises:
      ArgumentError: there is no sample, no such alternative, or an `rng`.
      ShapeError: a sample is not such a row.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])
      >>> dunnett(x, control=y).pvalue.round(3)
      Array([0.091], dtype=float32)
    """
    name = "dunnett"
    require_several(name, samples, 1)
    require_alternative(name, alternative)
    if rng is not None:
        raise ArgumentError(
            f"{name}: rng must be None, got {rng!r}: no number is drawn"
        )
    rows = _groups(name, (*samples, control))
    means, sizes, pooled, df = _pooled(rows)
    error = lax.sqrt(pooled * (1 / sizes[:-1] + 1 / sizes[-1]))
    t = (means[:-1] - means[-1]) / error
    weights = lax.sqrt(sizes[:-1] / (sizes[:-1] + sizes[-1]))
    at = {"two-sided": abs(t), "greater": t, "less": -t}[alternative]
    p = greatest_sf(at, weights, df, alternative == "two-sided")
    return DunnettResult(t, p, means[:-1] - means[-1], error, weights, df, alternative)
