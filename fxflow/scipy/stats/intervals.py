"""Bayesian distributions of a mean, a variance and a deviation, and intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.special.inverses import gammainccinv
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._betas import t as student
from fxflow.scipy.stats._gammas import gengamma, invgamma
from fxflow.scipy.stats._normals import norm
from fxflow.scipy.stats._samples import Sample, operands, statistic
from fxflow.scipy.stats.frozen import Frozen


class Estimate(NamedTuple):
    """A number and where it is, which `bayes_mvs` returns three of.

    Attributes:
      statistic: the estimate.
      minmax: the ends of the interval.
    """

    statistic: Array
    minmax: tuple[Array, Array]


@statistic("alpha")
def bayes_mvs(
    data: ArrayLike, alpha: float = 0.90
) -> tuple[Estimate, Estimate, Estimate]:
    """Returns Bayesian estimates of the mean, the variance and the deviation.

    Jeffreys' prior is assumed.

    Args:
      data: real array-like[...]: the sample, of at least 2 elements.
      alpha: the probability of the intervals.

    Returns:
      Three named tuples of `statistic` and `minmax`.

    Example:
      >>> mean, var, std = bayes_mvs(np.array([6.0, 9.0, 12.0, 7.0, 8.0, 8.0, 13.0]))
      >>> mean.statistic, mean.minmax[1].round(4)
      (Array(9., dtype=float32), Array(10.8964, dtype=float32))

    Source: `scipy.stats.bayes_mvs`; T. E. Oliphant, 2006.
    """
    name = "bayes_mvs"
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise ArgumentError(f"{name}: alpha must be between 0 and 1, got {alpha!r}")
    (row,), dtype = operands(name, data)
    x = Sample(fnp.ravel(row))
    n = x.size
    if n < 2:
        raise ArgumentError(f"{name}: takes at least 2 elements, got {row.aval}")
    middle, second = x.mean()[0], x.var(0)[0]
    low, high = (1 - alpha) / 2, (1 + alpha) / 2

    def estimate(value: Any, bottom: Any, top: Any) -> Estimate:
        value, bottom, top = (
            fnp.asarray(v).astype(dtype) for v in (value, bottom, top)
        )
        return Estimate(value, (bottom, top))

    if n > 1000:
        z = ndtri(fnp.asarray(high, x.dtype))
        root = lax.sqrt(second)
        return tuple(  # type: ignore[return-value]
            estimate(v, v - z * w, v + z * w)
            for v, w in (
                (middle, lax.sqrt(second / n)),
                (second, second * (2 / n) ** 0.5),
                (root, root * (0.5 / n) ** 0.5),
            )
        )
    wide = lax.sqrt(second / (n - 1)) * student.ppf(fnp.asarray(high, x.dtype), n - 1.0)
    half, factor = (n - 1) / 2, n * second / 2
    ends = [
        factor / gammainccinv(fnp.asarray(half, x.dtype), fnp.asarray(q, x.dtype))
        for q in (low, high)
    ]
    # The mean of an inverse gamma distribution, infinite to one degree of freedom.
    var = factor / (half - 1) if half > 1 else fnp.full_like(factor, fnp.inf)
    a = fnp.asarray(half, x.dtype)
    std = lax.sqrt(factor) * lax.exp(gammaln(a - 0.5) - gammaln(a))
    if half <= 0.5:
        std = fnp.full_like(factor, fnp.inf)
    return (
        estimate(middle, middle - wide, middle + wide),
        estimate(var, *ends),
        estimate(std, *(lax.sqrt(e) for e in ends)),
    )


@statistic()
def mvsdist(data: ArrayLike) -> tuple[Frozen, Frozen, Frozen]:
    """Returns the distributions of the mean, the variance and the standard deviation.

    The prior is Jeffreys'; for more than 1000 elements, the distributions are normal.

    Args:
      data: real array-like[...]: the sample, of at least 2 elements.

    Returns:
      Three distributions with their parameters, which have the methods `pdf`, `cdf`,
      `interval` and the others.

    Raises:
      ArgumentError: there are fewer than 2 elements, or the sample is not an array.

    Example:
      >>> mean, var, std = mvsdist(np.array([6.0, 9.0, 12.0, 7.0, 8.0, 8.0, 13.0]))
      >>> mean.mean(), mean.interval(0.9)[1].round(4)
      (Array(9., dtype=float32), Array(10.8964, dtype=float32))

    Source: `scipy.stats.mvsdist`; T. E. Oliphant, 2006.
    """
    (row,), dtype = operands("mvsdist", data)
    x = Sample(fnp.ravel(row))
    n = x.size
    if n < 2:
        raise ArgumentError(f"mvsdist: takes at least 2 elements, got {row.aval}")
    middle, second = (v.astype(dtype) for v in (x.mean()[0], x.var(0)[0]))
    of: Any = lambda *given: [fnp.asarray(v, dtype) for v in given]
    root = lax.sqrt(second)
    if n > 1000:
        return (
            Frozen(norm, middle, lax.sqrt(second / n)),
            Frozen(norm, second, second * (2 / n) ** 0.5),
            Frozen(norm, root, root * (0.5 / n) ** 0.5),
        )
    half, factor = (n - 1) / 2, n * second / 2
    return (
        Frozen(student, *of(n - 1, middle, lax.sqrt(second / (n - 1)))),
        Frozen(invgamma, *of(half, 0, factor)),
        Frozen(gengamma, *of(half, -2, 0, lax.sqrt(factor))),
    )
