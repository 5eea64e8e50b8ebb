"""The multinomial distribution whose probabilities are a Dirichlet variable."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import (
    Distribution,
    covariance_of_one,
    inside,
    require_integers,
)

__all__ = ["cov", "logpmf", "mean", "pmf", "var"]

_of = Distribution("""
x: int array-like[..., r]: how often each result occurs.
alpha: positive real array-like[..., r].
n: int array-like[...]: the number of trials.
""")


def _parts(name: str, alpha: Any, n: Any) -> tuple[Array, Array, Array]:
    """Returns `alpha`, nan where one of it is not positive, its sum, and `n`."""
    n = array_of(n, name)
    (alpha,) = promote_inexact(name, alpha)
    require_integers(name, n=n)
    if not alpha.aval.ndim:
        raise ShapeError(f"{name}: alpha must be [..., r], got {alpha.aval}")
    positive = fnp.all(alpha > 0, axis=-1, keepdims=True)
    alpha = fnp.where(positive, alpha, math.nan)
    trials = convert(fnp.where(n < 0, 0, n), alpha.aval.dtype)
    trials = fnp.where(n < 0, math.nan, trials)
    return alpha, fnp.sum(alpha, axis=-1), trials


@_of
def logpmf(x: ArrayLike, alpha: ArrayLike, n: ArrayLike) -> Array:
    """Returns the logarithm of the probability of a number.

    Returns:
      Float array[...].

    Raises:
      DtypeError: `x` or `n` are not integers.
      ShapeError: the shapes do not broadcast.

    Special cases:
      -inf where the sum of `x` is not `n`, or a number is negative.

    Example:
      >>> logpmf(np.array([1, 2]), np.array([1.0, 1.0]), 3).round(4)
      Array(-1.3863, dtype=float32)
    """
    name = "dirichlet_multinomial.logpmf"
    x = array_of(x, name)
    alpha, total, trials = _parts(name, alpha, n)
    require_integers(name, x=x)
    if not x.aval.ndim or x.aval.shape[-1] != alpha.aval.shape[-1]:
        raise ShapeError(
            f"{name}: x and alpha must have one number for each result, got {x.aval} "
            f"and {alpha.aval}"
        )
    y = convert(fnp.maximum(x, 0), alpha.aval.dtype)
    known = fnp.all(x >= 0, axis=-1) & (fnp.sum(y, axis=-1) == trials)
    terms = gammaln(y + alpha) - gammaln(y + 1) - gammaln(alpha)
    value = gammaln(total) + gammaln(trials + 1) - gammaln(trials + total)
    value = value + fnp.sum(terms, axis=-1)
    return inside(known | (value != value), value, -math.inf)


pmf: Final = _of.exp(logpmf)


@_of
def mean(alpha: ArrayLike, n: ArrayLike) -> Array:
    """Returns the mean of each count.

    Returns:
      Float array[..., r].
    """
    alpha, total, trials = _parts("dirichlet_multinomial.mean", alpha, n)
    return (trials / total)[..., None] * alpha


def _spread(total: Any, trials: Any) -> Array:
    spread: Array = trials * (trials + total) / (1 + total)
    return spread


@_of
def var(alpha: ArrayLike, n: ArrayLike) -> Array:
    """Returns the variance of each count.

    Returns:
      Float array[..., r].
    """
    alpha, total, trials = _parts("dirichlet_multinomial.var", alpha, n)
    p = alpha / total[..., None]
    return _spread(total, trials)[..., None] * p * (1 - p)


@_of
def cov(alpha: ArrayLike, n: ArrayLike) -> Array:
    """Returns the covariance of the counts.

    Returns:
      Float array[..., r, r].
    """
    alpha, total, trials = _parts("dirichlet_multinomial.cov", alpha, n)
    p = alpha / total[..., None]
    return _spread(total, trials)[..., None, None] * covariance_of_one(p)


freezable(__name__, "alpha", "n")


_public(globals(), __all__)
