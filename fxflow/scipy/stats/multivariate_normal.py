"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.numpy.linalg import cholesky, eigh
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.stats._boxes import box_probability, kept_axes
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, inside
from fxflow.scipy.stats._normals import norm
from fxflow.scipy.stats.covariance import Covariance

__all__ = [
    "cdf",
    "entropy",
    "fit",
    "logcdf",
    "logpdf",
    "marginal",
    "pdf",
    "rvs",
]

_of = Distribution(
    """
x: real array-like[..., n].
mean: real array-like[..., n], or a number: then everything is a number.
cov: symmetric, positive definite real array-like[..., n, n]; or [n], the diagonal; or a
  `Covariance`.
allow_singular: whether `cov` may be singular: the density is then one in the
  subspace that it spans.
lower_limit: real array-like[..., n]: the lower corner of the box; None is -inf.
maxpts: how many points of the lattice are used.
""",
    "allow_singular",
    "dimensions",
    "dtype",
    "maxpts",
    "shape",
)


@_of
def logpdf(
    x: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike | Covariance,
    allow_singular: bool | None = None,
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where `cov` is not positive definite, unless `allow_singular`; -inf then
      outside of the subspace.

    Example:
      >>> logpdf(np.zeros(2), np.zeros(2), np.eye(2)).round(4)
      Array(-1.8379, dtype=float32)
    """
    name = "multivariate_normal.logpdf"
    if isinstance(cov, Covariance):
        mean, _, x = _vector(name, mean, cov, x)
        found: Array = cov.log_density(x - mean) - 0.5 * LOG_2PI * cov.rank
        return found
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
def pdf(
    x: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike | Covariance,
    allow_singular: bool | None = None,
) -> Array:
    """Returns the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.
    """
    return lax.exp(logpdf(x, mean, cov, allow_singular))


def _vector(name: str, mean: Any, cov: Any, *more: Any) -> tuple[Array, ...]:
    """Returns a mean [..., n] and covariance [..., n, n], and other operands.

    Raises:
      ShapeError: the shapes are incompatible.
    """
    if isinstance(cov, Covariance):
        cov = cov.covariance
    mean, cov, *more_ = promote_inexact(name, mean, cov, *more)
    sizes = [a.aval.shape[-1] for a in (mean, cov) if a.aval.ndim]
    n = max(sizes, default=1)
    if cov.aval.ndim < 2:
        cov = cov[..., None] * fnp.eye(n, dtype=cov.aval.dtype)
    if not mean.aval.ndim:
        mean = fnp.broadcast_to(mean, (n,))
    wrong = [a for a in more_ if (a.aval.shape or (n,))[-1] != n]
    if cov.aval.shape[-2:] != (n, n) or mean.aval.shape[-1] != n or wrong:
        given = ", ".join(str(a.aval) for a in (*more_, mean, cov))
        raise ShapeError(
            f"{name}: points and the mean must be [..., n], cov [..., n, n], got "
            f"{given}"
        )
    return mean, cov, *more_


@_of
def cdf(
    x: ArrayLike,
    mean: ArrayLike = 0,
    cov: ArrayLike | Covariance = 1,
    lower_limit: ArrayLike | None = None,
    maxpts: int = 8192,
) -> Array:
    """Returns the probability of a box below a point.

    By Genz' transformation of the box to a cube, and a lattice of a fixed number of
    points, so that it is a smooth function of all arguments. With 8192 points the
    error is about 1e-5 for three elements.

    Returns:
      Float array[...].

    Raises:
      ArgumentError: `maxpts` is not positive.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where `cov` is not positive definite.

    Source: `scipy.stats.multivariate_normal.cdf`; A. Genz, Numerical Computation of
    Multivariate Normal Probabilities, 1992.
    """
    low = -math.inf if lower_limit is None else lower_limit
    mean, cov, x, below = _vector("multivariate_normal.cdf", mean, cov, x, low)
    return box_probability(below - mean, x - mean, cov, None, maxpts)


@_of
def logcdf(
    x: ArrayLike,
    mean: ArrayLike = 0,
    cov: ArrayLike | Covariance = 1,
    lower_limit: ArrayLike | None = None,
    maxpts: int = 8192,
) -> Array:
    """Returns the logarithm of the probability of a box below a point.

    Returns:
      Float array[...].

    Raises:
      ArgumentError: `maxpts` is not positive.
      ShapeError: the shapes are incompatible.
    """
    return lax.log(cdf(x, mean, cov, lower_limit, maxpts))


@_of
def entropy(mean: ArrayLike = 0, cov: ArrayLike | Covariance = 1) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    if isinstance(cov, Covariance):
        return 0.5 * ((1 + LOG_2PI) * cov.rank + cov.log_pdet)
    mean, cov = _vector("multivariate_normal.entropy", mean, cov)
    n = mean.aval.shape[-1]
    along = fnp.diagonal(cholesky(cov), axis1=-2, axis2=-1)
    return 0.5 * n * (1 + LOG_2PI) + fnp.sum(lax.log(along), axis=-1)


@_of
def marginal(
    dimensions: int | tuple[int, ...],
    mean: ArrayLike = 0,
    cov: ArrayLike | Covariance = 1,
) -> tuple[Array, Array]:
    """Returns the parameters of the marginal distribution of some elements.

    Args:
      dimensions: an int or ints: which elements, in their order.

    Returns:
      The mean and covariance of it.

    Raises:
      ArgumentError: an element is out of range or listed twice.
    """
    name = "multivariate_normal.marginal"
    mean, cov = _vector(name, mean, cov)
    kept = kept_axes(name, dimensions, mean.aval.shape[-1])
    return mean[..., kept], cov[..., kept[:, None], kept]


@_of
def rvs(
    key: Array,
    mean: ArrayLike = 0,
    cov: ArrayLike | Covariance = 1,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws vectors: `fxflow.random.multivariate_normal`.

    Args:
      shape: shape of the array of vectors; None means that of the parameters.

    Returns:
      Float array[*shape, n].
    """
    name = "multivariate_normal.rvs"
    if isinstance(cov, Covariance):
        mean, full = _vector(name, mean, cov)
        batch = fnp.broadcast_shapes(mean.aval.shape[:-1], full.aval.shape[:-2])
        size = batch if shape is None else shape_or_length(name, shape)
        z = random.normal(key, (*size, mean.aval.shape[-1]), dtype or mean.aval.dtype)
        return mean.astype(z.aval.dtype) + cov.colorize(z).astype(z.aval.dtype)
    mean, cov = _vector(name, mean, cov)
    return random.multivariate_normal(key, mean, cov, shape, dtype)


@_of
def fit(
    x: ArrayLike, fix_mean: ArrayLike | None = None, fix_cov: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Returns the mean and covariance that make a sample most likely.

    Args:
      x: real array-like[m, n]: the sample.
      fix_mean: real array-like[n]: the mean, if it is known.
      fix_cov: real array-like[n, n]: the covariance, if it is known.

    Returns:
      The mean, float array[n], and the covariance, float array[n, n].

    Raises:
      ShapeError: `x` is not a matrix, or what is known has another size.
    """
    name = "multivariate_normal.fit"
    given = [v for v in (fix_mean, fix_cov) if v is not None]
    x, *known = promote_inexact(name, x, *given)
    if x.aval.ndim != 2:
        raise ShapeError(f"{name}: x must be [m, n], got {x.aval}")
    n = x.aval.shape[1]
    mean = known[0] if fix_mean is not None else fnp.mean(x, axis=0)
    away = x - mean
    spread = fnp.matrix_transpose(away) @ away / x.aval.shape[0]
    cov = known[-1] if fix_cov is not None else spread
    if mean.aval.shape != (n,) or cov.aval.shape != (n, n):
        raise ShapeError(
            f"{name}: of a sample {x.aval}, fix_mean must be [{n}] and fix_cov "
            f"[{n}, {n}], got {mean.aval} and {cov.aval}"
        )
    return mean, cov


freezable(__name__, mean=0, cov=1)


_public(globals(), __all__)
