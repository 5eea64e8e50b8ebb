"""The generalized normal distribution: exp(-|x|^beta)."""

from __future__ import annotations

from typing import Any, Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.special.gammas import gammainc, gammaln
from fxflow.scipy.stats._functions import Distribution, inside, positive

__all__ = ["cdf", "logpdf", "pdf"]

_of = Distribution(
    "beta: positive real array-like: 1 is Laplace's distribution, 2 a normal one.",
    beta=positive,
)


def _power(x: Any, beta: Any) -> Array:
    """Returns |x|^beta, whose derivative at 0 is taken for 0."""
    return inside(x != 0, lax.pow(safe(x != 0, lax.abs(x), 1), beta), 0)


@_of
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Returns the logarithm of the probability density."""
    x, beta = operands("gennorm.logpdf", x, beta)
    return lax.log(beta / 2) - gammaln(1 / beta) - _power(x, beta)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Returns the distribution function: the probability of at most that."""
    x, beta = operands("gennorm.cdf", x, beta)
    part = gammainc(1 / beta, _power(x, beta))
    return 0.5 + 0.5 * lax.sign(x) * part
