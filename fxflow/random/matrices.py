"""Random vectors of given covariance, and random matrices."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax import linalg, sampling
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import float_dtype, key_data_of, parameter
from fxflow.random._layout import sampler
from fxflow.random.gaussian import normal


@sampler("shape", "dtype", "method")
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws normal vectors of given mean and covariance.

    Args:
      mean: of shape `(..., n)`.
      cov: symmetric, positive semidefinite, of shape `(..., n, n)`.
      shape: shape of the array of vectors, to which the leading axes of `mean` and
        `cov` are broadcast; None means their common shape.
      dtype: a float dtype; None means that of `mean` and `cov`.
      method: how a square root of `cov` is found: `"cholesky"` (positive definite
        only), `"eigh"` or `"svd"`.

    Returns:
      An array of shape `(*shape, n)` and that dtype.

    Raises:
      ArgumentError: `key` is not a key, or the method is another.
      ShapeError: `mean` and `cov` are incompatible, or with `shape`.

    Example:
      >>> random.multivariate_normal(random.key(0), np.zeros(2), np.eye(2), (5,)).shape
      (5, 2)

    Source: mean + A x of a standard normal x, where A Aᵀ is the covariance.
    """
    name = "multivariate_normal"
    if method not in ("cholesky", "eigh", "svd"):
        raise ArgumentError(
            f'{name}: method must be "cholesky", "eigh" or "svd", got {method!r}'
        )
    chosen = float_dtype(name, dtype)
    mu, sigma = (parameter(name, p, chosen) for p in (mean, cov))
    mean_type, cov_type = typeof(mu), typeof(sigma)
    if mean_type.ndim < 1 or cov_type.shape[-2:] != mean_type.shape[-1:] * 2:
        raise ShapeError(
            f"{name}: expected mean of shape (..., n) and cov of shape (..., n, n), "
            f"got {mean_type} and {cov_type}"
        )
    size = mean_type.shape[-1]
    batch = lax.broadcast_shapes(mean_type.shape[:-1], cov_type.shape[:-2])
    full = batch if shape is None else shape_or_length(name, shape)
    tail = full[len(full) - len(batch) :] if len(full) >= len(batch) else None
    if tail is None or any(n not in (1, m) for n, m in zip(batch, tail, strict=True)):
        raise ShapeError(
            f"{name}: the leading axes {batch} of mean and cov do not broadcast to the "
            f"shape {full} asked for"
        )
    x = sampling.normal(key_data_of(name, key), (*full, size), chosen)
    root = arith.repeated(_square_root(sigma, method), (*full, size, size))
    axes = tuple(range(len(full)))
    numbers = (((len(full),), (len(full) + 1,)), (axes, axes))
    moved = lax.dot_general(x, root, numbers)
    return lax.add(arith.repeated(mu, (*full, size)), moved)


def _square_root(matrix: Any, method: str) -> Any:
    """Returns A such that A Aᵀ is the matrix."""
    if method == "cholesky":
        return linalg.cholesky(matrix)
    parts: Any = linalg.eigh(matrix) if method == "eigh" else linalg.svd(matrix)
    vectors, values = parts[:2]
    shape = typeof(vectors).shape
    axes = (*range(len(shape) - 2), len(shape) - 1)
    return lax.mul(vectors, lax.broadcast_in_dim(lax.sqrt(values), shape, axes))


@sampler("n", "shape", "dtype", "m")
def orthogonal(
    key: Any,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws orthogonal (or unitary) matrices, uniformly in the Haar measure.

    Args:
      n: number of rows.
      shape: shape of the array of matrices.
      dtype: a float or complex dtype; None means the default float.
      m: number of columns; None means `n`.

    Returns:
      An array of shape `(*shape, n, m)`, whose rows or columns, the fewer of them, are
      orthonormal.

    Raises:
      DtypeError: `dtype` is neither float nor complex.

    Example:
      >>> random.orthogonal(random.key(0), 3, (2,)).shape
      (2, 3, 3)

    Source: Mezzadri 2007, "How to generate random matrices from the classical compact
    groups": QR of a normal matrix, with the signs of R's diagonal.
    """
    columns = n if m is None else m
    full = shape_or_length("orthogonal", shape)
    long, short = max(n, columns), min(n, columns)
    z = normal(key, (*full, long, short), dtype)
    factors: Any = linalg.qr(z, full_matrices=False)
    q, r = factors
    ndim = len(full) + 2
    index = lax.iota(dtypes.int32, short)
    rows, cols = (
        lax.broadcast_in_dim(index, (*full, short, short), (axis,))
        for axis in (ndim - 2, ndim - 1)
    )
    zero = lax.full_like(r, 0)
    # QR is unique only up to phases; with those of R's diagonal Q follows Haar's
    # measure.
    diagonal = lax.reduce_sum(lax.select(lax.eq(rows, cols), r, zero), (ndim - 2,))
    axes = (*range(ndim - 2), ndim - 1)
    phases = lax.broadcast_in_dim(lax.sign(diagonal), typeof(q).shape, axes)
    out = lax.mul(q, phases)
    if n < columns:
        out = lax.transpose(out, (*range(ndim - 2), ndim - 1, ndim - 2))
    return out
