"""The Dirichlet distribution, of numbers from 0 to 1 whose sum is 1."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import Distribution, inside

__all__ = ["cov", "entropy", "logpdf", "mean", "pdf", "rvs", "var"]

_of = Distribution(
    """
x: real array-like[n, ...], or [n - 1, ...]: what is lacking to 1 is the last row.
alpha: positive real array-like[n].
""",
    "shape",
    "dtype",
)


@_of
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array of the shape of `x` without its first axis.

    Raises:
      ShapeError: `alpha` is not a vector, or `x` has the wrong length.
    """
    x, alpha = promote_inexact("dirichlet.logpdf", x, alpha)
    n = alpha.aval.shape[0] if alpha.aval.ndim == 1 else -1
    if n < 0 or not x.aval.ndim or x.aval.shape[0] not in (n, n - 1):
        raise ShapeError(
            "dirichlet.logpdf: alpha must be a vector, and x as long or one shorter: "
            f"got {x.aval} and {alpha.aval}"
        )
    if x.aval.shape[0] < n:
        x = fnp.concatenate([x, 1 - fnp.sum(x, axis=0, keepdims=True)])
    weights = alpha.reshape(n, *(1 for _ in x.aval.shape[1:]))
    # As many roundings as there are terms.
    off = lax.abs(fnp.sum(x, axis=0) - 1)
    known = fnp.all(x >= 0, axis=0) & (off < 16 * n * float(fnp.finfo(x.dtype).eps))
    y = fnp.where(known, x, 1 / n)
    terms = xlogy(weights - 1, y) - gammaln(weights)
    value = fnp.sum(terms, axis=0) + gammaln(fnp.sum(alpha))
    value = inside(known, value, -math.inf)
    return inside(~fnp.any(x != x, axis=0), value, math.nan)


pdf: Final = _of.exp(logpdf)


def _weights(name: str, alpha: Any) -> tuple[Array, Array]:
    """Returns `alpha`, nan where one of it is not positive, and its sum."""
    (alpha,) = promote_inexact(name, alpha)
    if alpha.aval.ndim != 1:
        raise ShapeError(f"{name}: alpha must be a vector, got {alpha.aval}")
    alpha = fnp.where(fnp.all(alpha > 0), alpha, math.nan)
    return alpha, fnp.sum(alpha)


@_of
def mean(alpha: ArrayLike) -> Array:
    """Returns the mean.

    Returns:
      Float array[n].

    Example:
      >>> mean(np.array([1.0, 3.0]))
      Array([0.25, 0.75], dtype=float32)
    """
    alpha, total = _weights("dirichlet.mean", alpha)
    return alpha / total


@_of
def var(alpha: ArrayLike) -> Array:
    """Returns the variance of each element.

    Returns:
      Float array[n].
    """
    alpha, total = _weights("dirichlet.var", alpha)
    return alpha * (total - alpha) / (total * total * (total + 1))


@_of
def cov(alpha: ArrayLike) -> Array:
    """Returns the covariance.

    Returns:
      Float array[n, n].
    """
    alpha, total = _weights("dirichlet.cov", alpha)
    p = alpha / total
    return (fnp.diag(p) - p[:, None] * p) / (total + 1)


@_of
def entropy(alpha: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      A float.
    """
    alpha, total = _weights("dirichlet.entropy", alpha)
    n = alpha.aval.shape[0]
    return (
        fnp.sum(gammaln(alpha))
        - gammaln(total)
        + (total - n) * lax.digamma(total)
        - fnp.sum((alpha - 1) * lax.digamma(alpha))
    )


@_of
def rvs(
    key: Array,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws vectors: `fxflow.random.dirichlet`.

    Args:
      shape: shape of the array of vectors; None is one of them.

    Returns:
      Float array[*shape, n]: n is the last axis, as in SciPy's `rvs`.
    """
    return random.dirichlet(key, alpha, shape, dtype)


freezable(__name__, "alpha")


_public(globals(), __all__)
