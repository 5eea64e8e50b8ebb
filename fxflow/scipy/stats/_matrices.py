"""Matrices that are positive definite: those of distributions, and draws of them."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.stats._functions import Distribution

#: Decorates the functions of `wishart` and `invwishart`.
of_matrix = Distribution(
    """
x: symmetric, positive definite real array-like[..., p, p].
df: real array-like[...], degrees of freedom: at least p.
scale: symmetric, positive definite real array-like[..., p, p].
shape: shape of the array of matrices; None means that of the parameters.
""",
    "shape",
    "dtype",
)


def factors(name: str, df: Any, scale: Any, *more: Any) -> tuple[Array, ...]:
    """Returns degrees of freedom, the scale, its root, and other matrices.

    Raises:
      ShapeError: a matrix is not square, or of another size than the scale.
    """
    df, scale, *more_ = promote_inexact(name, df, scale, *more)
    if not scale.aval.ndim:
        scale = scale[None, None]
    if scale.aval.ndim < 2 or scale.aval.shape[-1] != scale.aval.shape[-2]:
        raise ShapeError(f"{name}: scale must be [..., p, p], got {scale.aval}")
    p = scale.aval.shape[-1]
    for x in more_:
        if x.aval.shape[-2:] != (p, p):
            raise ShapeError(
                f"{name}: with a scale {scale.aval}, x must be [..., {p}, {p}], got "
                f"{x.aval}"
            )
    return df, scale, cholesky(scale), *more_


def matrices(
    name: str, mean: Any, rows: Any, columns: Any, *more: Any
) -> tuple[Array, ...]:
    """Returns a mean, roots of what rows and columns have, and other operands.

    Raises:
      ShapeError: the shapes are incompatible.
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


def log_volume(root: Any) -> Array:
    """Returns the logarithm of the determinant of L Lᵀ."""
    return 2 * fnp.sum(lax.log(fnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)


def trace_ratio(low: Any, high: Any) -> Array:
    """Returns the trace of A⁻¹ B for A = low lowᵀ, B = high highᵀ."""
    shape = fnp.broadcast_shapes(low.aval.shape, high.aval.shape)
    low, high = fnp.broadcast_to(low, shape), fnp.broadcast_to(high, shape)
    return fnp.sum(lax.square(solve_triangular(low, high, lower=True)), axis=(-2, -1))


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


def known(df: Any, p: int, value: Any) -> Array:
    """Returns a value where degrees of freedom are enough, nan elsewhere."""
    return fnp.where(df > p - 1, value, math.nan)


def mean_log_volume(df: Any, p: int) -> Array:
    """Returns the mean of log det(W / 2) of a p by p Wishart matrix W of scale 1."""
    i = fnp.arange(p, dtype=df.aval.dtype)
    return fnp.sum(lax.digamma(0.5 * (df[..., None] - i)), axis=-1)


def standard_root(key: Any, df: Any, shape: Any, p: int, dtype: Any) -> Array:
    """Draws the root of a Wishart matrix of scale 1, by Bartlett's decomposition."""
    normal, chi = random.split(key)
    below = fnp.tril(random.normal(normal, (*shape, p, p), dtype), -1)
    freedom = df[..., None] - fnp.arange(p, dtype=dtype)
    freedom = fnp.where(freedom > 0, freedom, math.nan)
    square = 2 * random.gamma(chi, 0.5 * freedom, (*shape, p), dtype)
    root: Array = below + fnp.sqrt(square)[..., None] * fnp.eye(p, dtype=dtype)
    return root


def drawn_roots(
    name: str, key: Any, df: Any, scale: Any, shape: Any, dtype: Any
) -> tuple[Array, Array]:
    """Returns the root of a scale, and drawn roots of Wishart matrices of scale 1.

    Raises:
      ShapeError: the parameters do not broadcast to the shape.
    """
    chosen = float_dtype(name, dtype)
    df, scale = (parameter(name, v, chosen) for v in (df, scale))
    df, scale, root = factors(name, df, scale)
    p = scale.aval.shape[-1]
    full = sample_shape(name, shape, df.aval.shape, scale.aval.shape[:-2])
    return root, standard_root(key, fnp.broadcast_to(df, full), full, p, chosen)


def sample_shape(name: str, shape: Any, *own: Any) -> Any:
    """Returns the shape of a sample; the parameters' where None is given.

    Raises:
      ShapeError: the parameters do not broadcast to it.
    """
    joint = fnp.broadcast_shapes(*own)
    if shape is None:
        return joint
    shape = shape_or_length(name, shape)
    if fnp.broadcast_shapes(joint, shape) != shape:
        raise ShapeError(
            f"{name}: parameters of shape {joint} do not broadcast to {shape}"
        )
    return shape
