"""Student's t distribution of matrices."""

from __future__ import annotations

import math
from typing import Final

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.special.gammas import multigammaln
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import Distribution
from fxflow.scipy.stats._matrices import (
    log_volume,
    matrices,
    sample_shape,
    standard_root,
    whitened,
)

__all__ = ["logpdf", "pdf", "rvs"]

_of = Distribution(
    """
x: real array-like[..., n, p].
mean: real array-like[..., n, p].
row_spread: symmetric, positive definite real array-like[..., n, n].
col_spread: symmetric, positive definite real array-like[..., p, p].
df: positive real array-like[...], degrees of freedom.
""",
    "shape",
    "dtype",
)


@_of
def logpdf(
    x: ArrayLike,
    mean: ArrayLike,
    row_spread: ArrayLike,
    col_spread: ArrayLike,
    df: ArrayLike = 1,
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where a matrix is not positive definite, or `df` is not positive.

    Example:
      >>> logpdf(np.zeros((2, 1)), np.zeros((2, 1)), np.eye(2), np.eye(1), 3).round(4)
      Array(-0.7393, dtype=float32)
    """
    name = "matrix_t.logpdf"
    mean, rows, columns, x, df = matrices(name, mean, row_spread, col_spread, x, df)
    n, p = mean.aval.shape[-2:]
    white = whitened(x - mean, rows, columns)
    square = fnp.eye(n, dtype=white.aval.dtype) + white @ fnp.matrix_transpose(white)
    inner = 0.5 * (fnp.where(df > 0, df, math.nan) + n + p - 1)
    return (
        multigammaln(inner, p)
        - multigammaln(inner - 0.5 * n, p)
        - 0.5 * n * p * math.log(math.pi)
        - 0.5 * (p * log_volume(rows) + n * log_volume(columns))
        - inner * log_volume(cholesky(square))
    )


pdf: Final = _of.exp(logpdf)


@_of
def rvs(
    key: Array,
    mean: ArrayLike,
    row_spread: ArrayLike,
    col_spread: ArrayLike,
    df: ArrayLike = 1,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws matrices.

    Args:
      shape: shape of the array of matrices; None means that of the parameters.

    Returns:
      Float array[*shape, n, p].
    """
    name = "matrix_t.rvs"
    chosen = float_dtype(name, dtype)
    given = [parameter(name, v, chosen) for v in (mean, row_spread, col_spread, df)]
    mean, rows, columns = matrices(name, *given[:3])
    (df,) = promote_inexact(name, given[3])
    n, p = mean.aval.shape[-2:]
    own = [a.aval.shape[:-2] for a in (mean, rows, columns)]
    full = sample_shape(name, shape, *own, df.aval.shape)
    one, two = random.split(key)
    drawn = standard_root(one, fnp.broadcast_to(df + n - 1, full), full, n, chosen)
    z = random.normal(two, (*full, n, p), chosen)
    inner = solve_triangular(drawn, z, lower=True, trans="T")
    return mean + rows @ inner @ fnp.matrix_transpose(columns)


freezable(__name__, "mean", "row_spread", "col_spread", df=1)


_public(globals(), __all__)
