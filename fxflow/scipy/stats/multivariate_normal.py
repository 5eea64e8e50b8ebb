"""The normal distribution of vectors."""

from __future__ import annotations

import math

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.linalg import cholesky, eigh
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, inside
from fxflow.scipy.stats._normals import norm

__all__ = ["logpdf", "pdf"]

_of = Distribution(
    """
x: real array-like[..., n].
mean: real array-like[..., n], or a number: then everything is a number.
cov: symmetric, positive definite real array-like[..., n, n]; or [n], the diagonal.
allow_singular: whether `cov` may be singular: the density is then one in the
  subspace that it spans.
""",
    "allow_singular",
)


@_of
def logpdf(
    x: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    allow_singular: bool | None = None,
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes do not go together.

    Special cases:
      nan where `cov` is not positive definite, unless `allow_singular`; -inf then
      outside of the subspace.

    Example:
      >>> logpdf(np.zeros(2), np.zeros(2), np.eye(2)).round(4)
      Array(-1.8379, dtype=float32)
    """
    name = "multivariate_normal.logpdf"
    x, mean, cov = promote_inexact(name, x, mean, cov)
    if not mean.aval.ndim:
        return norm.logpdf(x, mean, lax.sqrt(cov))
    n = mean.aval.shape[-1]
    if cov.aval.ndim < 2:
        cov = cov[..., None] * fnp.eye(n, dtype=cov.aval.dtype)
    if cov.aval.shape[-2:] != (n, n) or (x.aval.shape or (n,))[-1] != n:
        raise ShapeError(
            f"{name}: of a mean {mean.aval}, x must be [..., {n}] and cov [..., {n}, "
            f"{n}]: got {x.aval} and {cov.aval}"
        )
    apart = x - mean
    if allow_singular:
        values, vectors = eigh(cov)
        least = fnp.max(lax.abs(values), axis=-1, keepdims=True) * n * 1e3
        kept = values > least * float(fnp.finfo(cov.dtype).eps)
        values = fnp.where(kept, values, 1)
        along = fnp.matvec(fnp.matrix_transpose(vectors), apart)
        square = fnp.sum(fnp.where(kept, along * along / values, 0), axis=-1)
        volume, rank = fnp.sum(lax.log(values), axis=-1), fnp.sum(kept, axis=-1)
        value = -0.5 * (square + rank * LOG_2PI + volume)
        size = fnp.max(lax.abs(apart), axis=-1, keepdims=True)
        limit = size * math.sqrt(float(fnp.finfo(cov.dtype).eps))
        outside = fnp.any(~kept & (lax.abs(along) > limit), axis=-1)
        return inside(~outside, value, -math.inf)
    root = cholesky(cov)
    shape = fnp.broadcast_shapes(apart.aval.shape[:-1], cov.aval.shape[:-2])
    apart = fnp.broadcast_to(apart, (*shape, n))
    y = solve_triangular(root, apart[..., None], lower=True)[..., 0]
    volume = fnp.sum(lax.log(fnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (fnp.sum(y * y, axis=-1) + n * LOG_2PI) - volume


@_of
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Returns the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes do not go together.
    """
    return lax.exp(logpdf(x, mean, cov))
