"""The Wishart distribution, of the sum of squares of normal vectors."""

from __future__ import annotations

import math
from typing import Final

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.special.gammas import multigammaln
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._matrices import (
    drawn_roots,
    factors,
    known,
    log_volume,
    mean_log_volume,
    of_matrix,
    trace_ratio,
)

__all__ = ["entropy", "logpdf", "mean", "mode", "pdf", "rvs", "var"]


@of_matrix
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
    df, scale, root, x = factors("wishart.logpdf", df, scale, x)
    p = scale.aval.shape[-1]
    high = cholesky(x)
    value = (
        0.5 * (df - p - 1) * log_volume(high)
        - 0.5 * trace_ratio(root, high)
        - 0.5 * df * (p * math.log(2) + log_volume(root))
        - multigammaln(0.5 * df, p)
    )
    return known(df, p, value)


pdf: Final = of_matrix.exp(logpdf)


@of_matrix
def mean(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mean, df times the scale.

    Returns:
      Float array[..., p, p].
    """
    df, scale, _ = factors("wishart.mean", df, scale)
    return df[..., None, None] * scale


@of_matrix
def mode(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mode.

    Returns:
      Float array[..., p, p]; nan where `df` is below p + 1, where there is none.
    """
    df, scale, _ = factors("wishart.mode", df, scale)
    p = scale.aval.shape[-1]
    some = fnp.where(df >= p + 1, df - p - 1, math.nan)
    return some[..., None, None] * scale


@of_matrix
def var(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the variance of each element.

    Returns:
      Float array[..., p, p].
    """
    df, scale, _ = factors("wishart.var", df, scale)
    along = fnp.diagonal(scale, axis1=-2, axis2=-1)
    return df[..., None, None] * (
        scale * scale + along[..., :, None] * along[..., None, :]
    )


@of_matrix
def entropy(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    df, scale, root = factors("wishart.entropy", df, scale)
    p = scale.aval.shape[-1]
    mean_log = mean_log_volume(df, p)
    volume = log_volume(root)
    value = (
        0.5 * (p + 1) * volume
        + 0.5 * p * (p + 1) * math.log(2)
        + multigammaln(0.5 * df, p)
        - 0.5 * (df - p - 1) * mean_log
        + 0.5 * df * p
    )
    return known(df, p, value)


@of_matrix
def rvs(
    key: Array,
    df: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws matrices.

    Returns:
      Float array[*shape, p, p].
    """
    root, drawn = drawn_roots("wishart.rvs", key, df, scale, shape, dtype)
    made = root @ drawn
    return made @ fnp.matrix_transpose(made)


freezable(__name__, "df", "scale")


_public(globals(), __all__)
