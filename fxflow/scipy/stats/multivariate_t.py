"""Student's t distribution of vectors."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.special.gammas import betaln, gammaln
from fxflow.scipy.stats._boxes import box_probability, kept_axes
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import LOG_2PI, Distribution
from fxflow.scipy.stats._matrices import log_volume, sample_shape

__all__ = ["cdf", "entropy", "logpdf", "marginal", "pdf", "rvs"]

_of = Distribution(
    """
x: real array-like[..., n].
loc: real array-like[..., n], or a number.
shape: symmetric, positive definite real array-like[..., n, n], or a number.
df: positive real array-like[...], degrees of freedom; inf is the normal distribution.
""",
    "size",
    "dtype",
    "maxpts",
    "dimensions",
)


def _parts(name: str, loc: Any, shape: Any, df: Any, *more: Any) -> tuple[Array, ...]:
    """Returns the operands, `loc` and `shape` as a vector and a matrix, and a root."""
    loc, shape, df, *more_ = promote_inexact(name, loc, shape, df, *more)
    n = max(
        [loc.aval.shape[-1] if loc.aval.ndim else 1]
        + [shape.aval.shape[-1] if shape.aval.ndim else 1]
    )
    if not shape.aval.ndim:
        shape = shape * fnp.eye(n, dtype=shape.aval.dtype)
    if not loc.aval.ndim:
        loc = fnp.broadcast_to(loc, (n,))
    wrong = [a for a in more_ if (a.aval.shape or (n,))[-1] != n]
    if shape.aval.shape[-2:] != (n, n) or loc.aval.shape[-1] != n or wrong:
        given = ", ".join(str(a.aval) for a in (*more_, loc, shape))
        raise ShapeError(
            f"{name}: points and loc must be [..., n], shape [..., n, n], got {given}"
        )
    df = fnp.where(df > 0, df, math.nan)
    return loc, shape, df, cholesky(shape), *more_


@_of
def logpdf(
    x: ArrayLike, loc: ArrayLike = 0, shape: ArrayLike = 1, df: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where `shape` is not positive definite, or `df` is not positive.

    Example:
      >>> logpdf(np.zeros(2), np.zeros(2), np.eye(2), 3.0).round(4)
      Array(-1.8379, dtype=float32)
    """
    loc, shape, df, root, x = _parts("multivariate_t.logpdf", loc, shape, df, x)
    n = loc.aval.shape[-1]
    apart = x - loc
    full = fnp.broadcast_shapes(apart.aval.shape[:-1], root.aval.shape[:-2])
    y = lax.linalg.triangular_solve(
        fnp.broadcast_to(root, (*full, n, n)),
        fnp.broadcast_to(apart, (*full, n))[..., None],
        left_side=True,
        lower=True,
    )
    square = fnp.sum(lax.square(y), axis=(-2, -1))
    normal = df == math.inf
    v = fnp.where(normal, 1, df)
    value = (
        gammaln(0.5 * (v + n))
        - gammaln(0.5 * v)
        - 0.5 * n * lax.log(v * math.pi)
        - 0.5 * (v + n) * lax.log1p(square / v)
    )
    value = fnp.where(normal, -0.5 * (square + n * LOG_2PI), value)
    return value - 0.5 * log_volume(root)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(
    x: ArrayLike,
    loc: ArrayLike = 0,
    shape: ArrayLike = 1,
    df: ArrayLike = 1,
    lower_limit: ArrayLike | None = None,
    maxpts: int = 8192,
) -> Array:
    """Returns the probability of a box below a point.

    By Genz and Bretz' transformation of the box to a cube, and a lattice of a fixed
    number of points, so that it is a smooth function of all arguments.

    Args:
      lower_limit: real array-like[..., n]: the lower corner of the box; None is -inf.
      maxpts: how many points of the lattice are used; the error is about 10 / maxpts.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.

    Source: `scipy.stats.multivariate_t.cdf`; A. Genz and F. Bretz, Computation of
    Multivariate Normal and t Probabilities, 2009.
    """
    low = -math.inf if lower_limit is None else lower_limit
    loc, shape, df, _, x, below = _parts("multivariate_t.cdf", loc, shape, df, x, low)
    return box_probability(below - loc, x - loc, shape, df, maxpts)


@_of
def entropy(loc: ArrayLike = 0, shape: ArrayLike = 1, df: ArrayLike = 1) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    loc, _, df, root = _parts("multivariate_t.entropy", loc, shape, df)
    n = loc.aval.shape[-1]
    half, normal = 0.5 * n, df == math.inf
    v = 0.5 * fnp.where(normal, 1, df)
    value = (
        half * lax.log(2 * v * math.pi)
        + betaln(half, v)
        - gammaln(fnp.asarray(half, v.dtype))
        + (half + v) * (lax.digamma(half + v) - lax.digamma(v))
    )
    value = fnp.where(normal, half * (1 + LOG_2PI), value)
    return value + 0.5 * log_volume(root)


@_of
def marginal(
    dimensions: int | tuple[int, ...],
    loc: ArrayLike = 0,
    shape: ArrayLike = 1,
    df: ArrayLike = 1,
) -> tuple[Array, Array, Array]:
    """Returns the parameters of the marginal distribution of some elements.

    Args:
      dimensions: an int or ints: which elements, in their order.

    Returns:
      `loc`, `shape` and `df` of it.

    Raises:
      ArgumentError: an element is out of range or listed twice.
    """
    name = "multivariate_t.marginal"
    loc, shape, df, _ = _parts(name, loc, shape, df)
    n = loc.aval.shape[-1]
    kept = kept_axes(name, dimensions, n)
    return loc[..., kept], shape[..., kept[:, None], kept], df


@_of
def rvs(
    key: Array,
    loc: ArrayLike = 0,
    shape: ArrayLike = 1,
    df: ArrayLike = 1,
    size: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws vectors.

    Args:
      size: shape of the array of vectors; None means that of the parameters. It is not
        called `shape`, which is a parameter.

    Returns:
      Float array[*size, n].
    """
    name = "multivariate_t.rvs"
    chosen = float_dtype(name, dtype)
    given = [parameter(name, v, chosen) for v in (loc, shape, df)]
    loc, shape, df, root = _parts(name, *given)
    n = loc.aval.shape[-1]
    own = (loc.aval.shape[:-1], shape.aval.shape[:-2], df.aval.shape)
    full = sample_shape(name, size, *own)
    normal, chi = random.split(key)
    z = fnp.matvec(root, random.normal(normal, (*full, n), chosen))
    endless = df == math.inf
    v = fnp.broadcast_to(fnp.where(endless, 1, df), full)
    share = 2 * random.gamma(chi, 0.5 * v, full, chosen) / v
    drawn: Array = loc + z / fnp.sqrt(fnp.where(endless, 1, share))[..., None]
    return drawn


freezable(__name__, loc=0, shape=1, df=1)


_public(globals(), __all__)
