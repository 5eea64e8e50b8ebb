"""Dirichlet's distribution, of numbers from 0 to 1 whose sum is 1."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._functions import Distribution, inside

__all__ = ["logpdf", "pdf"]

_of = Distribution("""
x: real array-like[n, ...], or [n - 1, ...]: what is lacking to 1 is the last row.
alpha: positive real array-like[n].
""")


@_of
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array of the shape of `x` without its first axis.

    Raises:
      ShapeError: `alpha` is not a vector, or `x` has another length.
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
