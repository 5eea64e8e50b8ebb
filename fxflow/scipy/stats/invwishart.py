"""The inverse Wishart distribution, of the inverse of a Wishart matrix."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.special.gammas import multigammaln
from fxflow.scipy.stats._functions import Distribution
from fxflow.scipy.stats.wishart import (
    factors,
    known,
    log_volume,
    sample_shape,
    standard_root,
    trace_ratio,
)

__all__ = ["entropy", "logpdf", "mean", "mode", "pdf", "rvs", "var"]

_of = Distribution(
    """
x: symmetric, positive definite real array-like[..., p, p].
df: real array-like[...], degrees of freedom: at least p.
scale: symmetric, positive definite real array-like[..., p, p].
""",
    "shape",
    "dtype",
)


@_of
def logpdf(x: ArrayLike, df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: `x` or `scale` is not square, or they differ in size.

    Special cases:
      nan where a matrix is not positive definite, or `df` is not above p - 1.

    Example:
      >>> logpdf(np.eye(2), 3.0, np.eye(2)).round(4)
      Array(-3.531, dtype=float32)
    """
    df, scale, root, x = factors("invwishart.logpdf", df, scale, x)
    p = scale.aval.shape[-1]
    low = cholesky(x)
    value = (
        0.5 * df * (log_volume(root) - p * math.log(2))
        - multigammaln(0.5 * df, p)
        - 0.5 * (df + p + 1) * log_volume(low)
        - 0.5 * trace_ratio(low, root)
    )
    return known(df, p, value)


pdf: Final = _of.exp(logpdf)


@_of
def mean(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mean.

    Returns:
      Float array[..., p, p]; nan where `df` is not above p + 1.
    """
    df, scale, _ = factors("invwishart.mean", df, scale)
    p = scale.aval.shape[-1]
    some = fnp.where(df > p + 1, df - p - 1, math.nan)
    return scale / some[..., None, None]


@_of
def mode(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mode.

    Returns:
      Float array[..., p, p].
    """
    df, scale, _ = factors("invwishart.mode", df, scale)
    p = scale.aval.shape[-1]
    return scale / (df + p + 1)[..., None, None]


@_of
def var(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the variance of each element.

    Returns:
      Float array[..., p, p]; nan where `df` is not above p + 3.
    """
    df, scale, _ = factors("invwishart.var", df, scale)
    p = scale.aval.shape[-1]
    some = fnp.where(df > p + 3, df - p, math.nan)[..., None, None]
    along = fnp.diagonal(scale, axis1=-2, axis2=-1)
    both = along[..., :, None] * along[..., None, :]
    top = (some + 1) * scale * scale + (some - 1) * both
    return top / (some * (some - 1) ** 2 * (some - 3))


@_of
def entropy(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    df, scale, root = factors("invwishart.entropy", df, scale)
    p = scale.aval.shape[-1]
    i = fnp.arange(p, dtype=df.aval.dtype)
    mean_log = fnp.sum(lax.digamma(0.5 * (df[..., None] - i)), axis=-1)
    value = (
        multigammaln(0.5 * df, p)
        + 0.5 * p * df
        + 0.5 * (p + 1) * (log_volume(root) - p * math.log(2))
        - 0.5 * (df + p + 1) * mean_log
    )
    return known(df, p, value)


@_of
def rvs(
    key: Array,
    df: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws matrices.

    Args:
      key: a key of `fxflow.random`.
      shape: of the array of matrices; None means that of the parameters.
      dtype: a float dtype; None means the default.

    Returns:
      Float array[*shape, p, p].
    """
    name = "invwishart.rvs"
    chosen = float_dtype(name, dtype)
    df, scale = (parameter(name, v, chosen) for v in (df, scale))
    df, scale, root = factors(name, df, scale)
    p = scale.aval.shape[-1]
    full = sample_shape(name, shape, df.aval.shape, scale.aval.shape[:-2])
    drawn = standard_root(key, fnp.broadcast_to(df, full), full, p, chosen)
    # (L⁻ᵀ A Aᵀ L⁻¹)⁻¹ = (L A⁻ᵀ) (L A⁻ᵀ)ᵀ.
    root = fnp.matrix_transpose(fnp.broadcast_to(root, (*full, p, p)))
    made = solve_triangular(drawn, root, lower=True)
    return fnp.matrix_transpose(made) @ made
