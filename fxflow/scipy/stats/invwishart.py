"""The inverse Wishart distribution, of the inverse of a Wishart matrix."""

from __future__ import annotations

import math
from typing import Final

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.linalg.solving import solve_triangular
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


pdf: Final = of_matrix.exp(logpdf)


@of_matrix
def mean(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mean.

    Returns:
      Float array[..., p, p]; nan where `df` is not above p + 1.
    """
    df, scale, _ = factors("invwishart.mean", df, scale)
    p = scale.aval.shape[-1]
    some = fnp.where(df > p + 1, df - p - 1, math.nan)
    return scale / some[..., None, None]


@of_matrix
def mode(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mode.

    Returns:
      Float array[..., p, p].
    """
    df, scale, _ = factors("invwishart.mode", df, scale)
    p = scale.aval.shape[-1]
    return scale / (df + p + 1)[..., None, None]


@of_matrix
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


@of_matrix
def entropy(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    df, scale, root = factors("invwishart.entropy", df, scale)
    p = scale.aval.shape[-1]
    mean_log = mean_log_volume(df, p)
    value = (
        multigammaln(0.5 * df, p)
        + 0.5 * p * df
        + 0.5 * (p + 1) * (log_volume(root) - p * math.log(2))
        - 0.5 * (df + p + 1) * mean_log
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
    root, drawn = drawn_roots("invwishart.rvs", key, df, scale, shape, dtype)
    # (L⁻ᵀ A Aᵀ L⁻¹)⁻¹ = (L A⁻ᵀ) (L A⁻ᵀ)ᵀ.
    root = fnp.matrix_transpose(fnp.broadcast_to(root, drawn.aval.shape))
    made = solve_triangular(drawn, root, lower=True)
    return fnp.matrix_transpose(made) @ made


freezable(__name__, "df", "scale")


_public(globals(), __all__)
