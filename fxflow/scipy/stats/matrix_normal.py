"""The normal distribution of matrices whose covariance is one of rows by columns."""

from __future__ import annotations

from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.stats._functions import LOG_2PI, Distribution
from fxflow.scipy.stats.wishart import log_volume, sample_shape

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


def matrices(
    name: str, mean: Any, rows: Any, columns: Any, *more: Any
) -> tuple[Array, ...]:
    """Returns a mean, roots of what rows and columns have, and other operands.

    Raises:
      ShapeError: the shapes do not go together.
    """
    mean, rows, columns, *more_ = promote_inexact(name, mean, rows, columns, *more)
    sizes = [a.aval.shape[-2:] for a in (mean, rows, columns, *more_[:1])]
    n, p = sizes[0] if mean.aval.ndim > 1 else (-1, -1)
    if sizes[1:3] != [(n, n), (p, p)] or sizes[3:] not in ([], [(n, p)]):
        given = ", ".join(str(a.aval) for a in (mean, rows, columns, *more_[:1]))
        raise ShapeError(
            f"{name}: the mean (and x) must be [..., n, p], what is between rows "
            f"[..., n, n] and between columns [..., p, p], got {given}"
        )
    return mean, cholesky(rows), cholesky(columns), *more_


def whitened(apart: Any, rows: Any, columns: Any) -> Array:
    """Returns R⁻¹ X C⁻ᵀ for lower triangular R and C."""
    n, p = apart.aval.shape[-2:]
    batch = [a.aval.shape[:-2] for a in (apart, rows, columns)]
    full = fnp.broadcast_shapes(*batch)
    rows = fnp.broadcast_to(rows, (*full, n, n))
    columns = fnp.broadcast_to(columns, (*full, p, p))
    apart = fnp.broadcast_to(apart, (*full, n, p))
    left = solve_triangular(rows, apart, lower=True)
    turned = solve_triangular(columns, fnp.matrix_transpose(left), lower=True)
    return fnp.matrix_transpose(turned)


@_of
def logpdf(
    x: ArrayLike, mean: ArrayLike, rowcov: ArrayLike, colcov: ArrayLike
) -> Array:
    """Returns the logarithm of the probability density.

    Returns:
      Float array[...].

    Raises:
      ShapeError: the shapes do not go together.

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
      key: a key of `fxflow.random`.
      shape: of the array of matrices; None means that of the parameters.
      dtype: a float dtype; None means the default.

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
