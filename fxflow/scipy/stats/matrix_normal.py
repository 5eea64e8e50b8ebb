"""The normal distribution of matrices whose covariance is one of rows by columns."""

from __future__ import annotations

from typing import Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import LOG_2PI, Distribution
from fxflow.scipy.stats._matrices import log_volume, matrices, sample_shape, whitened

__all__ = ["entropy", "logpdf", "pdf", "rvs"]

_of = Distribution(
    """
x: real array-like[..., n, p].
mean: real array-like[..., n, p].
rowcov: symmetric, positive definite real array-like[..., n, n].
colcov: symmetric, positive definite real array-like[..., p, p].
""",
    "shape",
    "dtype",
)


@_of
def logpdf(
    x: ArrayLike, mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where a covariance is not positive definite.

    Example:
      >>> logpdf(np.zeros((2, 1)), np.zeros((2, 1)), np.eye(2), np.eye(1)).round(4)
      Array(-1.8379, dtype=float32)
    """
    mean, rows, columns, x = matrices("matrix_normal.logpdf", mean, rowcov, colcov, x)
    n, p = mean.aval.shape[-2:]
    square = fnp.sum(lax.square(whitened(x - mean, rows, columns)), axis=(-2, -1))
    volume = p * log_volume(rows) + n * log_volume(columns)
    return -0.5 * (n * p * LOG_2PI + volume + square)


pdf: Final = _of.exp(logpdf)


@_of
def entropy(mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    mean, rows, columns = matrices("matrix_normal.entropy", mean, rowcov, colcov)
    n, p = mean.aval.shape[-2:]
    volume = p * log_volume(rows) + n * log_volume(columns)
    return 0.5 * (n * p * (1 + LOG_2PI) + volume)


@_of
def rvs(
    key: Array,
    mean: ArrayLike,
    rowcov: ArrayLike,
    colcov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws matrices.

    Args:
      shape: shape of the array of matrices; None means that of the parameters.

    Returns:
      Float array[*shape, n, p].
    """
    name = "matrix_normal.rvs"
    chosen = float_dtype(name, dtype)
    given = [parameter(name, v, chosen) for v in (mean, rowcov, colcov)]
    mean, rows, columns = matrices(name, *given)
    own = [a.aval.shape[:-2] for a in (mean, rows, columns)]
    full = sample_shape(name, shape, *own)
    z = random.normal(key, (*full, *mean.aval.shape[-2:]), chosen)
    return mean + rows @ z @ fnp.matrix_transpose(columns)


freezable(__name__, "mean", "rowcov", "colcov")


_public(globals(), __all__)
