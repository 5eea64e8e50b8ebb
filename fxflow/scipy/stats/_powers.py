"""Distributions of ranks: probabilities are powers; Euler and Maclaurin's sum of them.

The sum of k⁻ᵃ from one integer to another, or without end, is ten of its terms and the
formula for the rest (DLMF 2.10.1), so it takes no longer for a million terms, and has
derivatives with respect to the power.
"""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.lax.gammas import ZETA_CORRECTIONS, ZETA_TERMS
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import expm1_over, in_64_bits
from fxflow.scipy.stats._discrete import Discrete
from fxflow.scipy.stats._domains import ABOVE_ONE, COUNT, NOT_NEGATIVE
from fxflow.scipy.stats._extremes import central
from fxflow.transforms.jvp import jvp


def _a(a: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _an(a: ArrayLike, n: ArrayLike, loc: ArrayLike = 0) -> None: ...


def _more(a: Any, first: Any, last: Any) -> Any:
    """Returns Σ (k / first)⁻ᵃ of the k from first + 1 to last, which may be infinite.

    Args:
      a: any number; more than 1 where `last` is infinite.
      first: a positive integer.
      last: an integer.
    """
    first, last = lax.stop_gradient(first), lax.stop_gradient(last + 0 * a)
    total = 0 * a
    for j in range(1, ZETA_TERMS):
        term = lax.exp(-a * lax.log1p(j / first))
        total = total + fnp.where(first + j <= last, term, 0)
    low = first + ZETA_TERMS
    long, endless = last >= low, last == math.inf
    high = fnp.where(long & ~endless, last, low)
    # Both ends' parts, relative to the power of the lower one.
    length = lax.log(high / low)
    ratio = lax.exp(-a * length)
    integral = low * expm1_over(1 - a, length)
    above = fnp.where(endless, a - 1, 1)
    integral = fnp.where(endless, low / above, integral)
    ends = 0.5 * (1 + fnp.where(endless, 0, ratio))
    # Where they are larger the first terms are all that counts.
    power = fnp.minimum(a, 50 * low)
    near, far = power / low, power / high
    for k, c in enumerate(ZETA_CORRECTIONS):
        ends = ends + c * (near - fnp.where(endless, 0, far * ratio))
        for j in (2 * k + 1, 2 * k + 2):
            near, far = near * (power + j) / low, far * (power + j) / high
    at_low = lax.exp(-a * lax.log1p(ZETA_TERMS / first))
    return total + fnp.where(long, at_low * (integral + ends), 0)


def _log_sum(a: Any, first: Any, last: Any) -> Any:
    """Returns the logarithm of Σ k⁻ᵃ for k from first to last."""
    return -a * lax.log(lax.stop_gradient(first)) + lax.log1p(_more(a, first, last))


def _log_mean(a: Any, last: Any) -> Any:
    """Returns the mean of log k, for k up to last with probabilities like k⁻ᵃ."""
    along = lambda a: _more(a, 1 + 0 * a, last)
    total, slope = jvp(along, (a,), (1 + 0 * a,))
    return -slope / (1 + total)


def _mean_power(order: int, a: Any, last: Any) -> Any:
    """Returns the mean of kⁿ, for k up to last with probabilities like k⁻ᵃ."""
    one = 1 + 0 * a
    return (1 + _more(a - order, one, last)) / (1 + _more(a, one, last))


def _mean_rest_power(order: int, a: Any, last: Any) -> Any:
    """Returns the mean of (k - 1)ⁿ, without 1, which is most of k for a large `a`."""
    one = 1 + 0 * a
    total = sum(
        math.comb(order, j) * (-1) ** (order - j) * _more(a - j, one, last)
        for j in range(order + 1)
    )
    return total / (1 + _more(a, one, last))


def _moments(mean_power: Any) -> dict[str, Any]:
    """Returns formulas of moments: those of k about 0, about the mean through k - 1."""
    rest = central(lambda n, *shapes: mean_power(_mean_rest_power, n, *shapes))
    return {
        "raw": lambda n, *shapes: mean_power(_mean_power, n, *shapes),
        **rest,
        "mean": lambda *shapes: 1 + rest["mean"](*shapes),
    }


# -- without end -----------------------------------------------------------------------


def _zipf_power(mean_power: Any, order: int, a: Any) -> Any:
    known = a > order + 1
    inner = fnp.where(known, a, order + 2)
    value = in_64_bits(lambda a: mean_power(order, a, math.inf), "zipf", inner)
    return fnp.where(known, value, math.inf)


def _where_finite(order: int, formula: Any) -> Any:
    """Returns a formula that is infinite where the moment of the order is."""

    def value(a: Any) -> Any:
        known = a > order + 1
        return fnp.where(known, formula(fnp.where(known, a, order + 2)), math.inf)

    return value


def _zipf(formula: Any) -> Any:
    return lambda *given: in_64_bits(formula, "zipf", *given)


_zipf_moments = _moments(_zipf_power)

zipf: Final = Discrete(
    "zipf",
    "The Zipf distribution: probabilities k^-a.",
    _a,
    a=ABOVE_ONE,
    support=(1, math.inf),
    logpmf=_zipf(lambda k, a: -a * lax.log(k) - _log_sum(a, 1 + 0 * k, math.inf)),
    logcdf=_zipf(
        lambda k, a: _log_sum(a, 1 + 0 * k, k) - _log_sum(a, 1 + 0 * k, math.inf)
    ),
    logsf=_zipf(
        lambda k, a: _log_sum(a, k + 1, math.inf) - _log_sum(a, 1 + 0 * k, math.inf)
    ),
    raw=_zipf_moments["raw"],
    mean=_zipf_moments["mean"],
    var=_where_finite(2, _zipf_moments["var"]),
    skew=_where_finite(3, _zipf_moments["skew"]),
    kurtosis=_where_finite(4, _zipf_moments["kurtosis"]),
    entropy=_zipf(
        lambda a: _log_sum(a, 1 + 0 * a, math.inf) + a * _log_mean(a, math.inf)
    ),
)

# -- up to a number --------------------------------------------------------------------


def _zipfian(formula: Any) -> Any:
    return lambda *given: in_64_bits(formula, "zipfian", *given)


def _zipfian_power(mean_power: Any, order: int, a: Any, n: Any) -> Any:
    return in_64_bits(lambda a, n: mean_power(order, a, n), "zipfian", a, n)


zipfian: Final = Discrete(
    "zipfian",
    "The Zipf distribution on 1 … n.",
    _an,
    a=NOT_NEGATIVE,
    n=COUNT,
    joint=lambda a, n: n > 0,
    support=(1, lambda a, n: n),
    logpmf=_zipfian(lambda k, a, n: -a * lax.log(k) - _log_sum(a, 1 + 0 * k, n)),
    logcdf=_zipfian(
        lambda k, a, n: _log_sum(a, 1 + 0 * k, k) - _log_sum(a, 1 + 0 * k, n)
    ),
    logsf=_zipfian(lambda k, a, n: _log_sum(a, k + 1, n) - _log_sum(a, 1 + 0 * k, n)),
    **_moments(_zipfian_power),
    entropy=_zipfian(lambda a, n: _log_sum(a, 1 + 0 * a, n) + a * _log_mean(a, n)),
)
