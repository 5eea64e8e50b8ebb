"""Wishart's distribution, of the sum of squares of normal vectors."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.scipy.special.gammas import multigammaln
from fxflow.scipy.stats._functions import Distribution

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


def log_volume(root: Any) -> Array:
    """Returns the logarithm of the determinant of L Lᵀ."""
    return 2 * fnp.sum(lax.log(fnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)


def trace_ratio(low: Any, high: Any) -> Array:
    """Returns the trace of A⁻¹ B for A = low lowᵀ, B = high highᵀ."""
    shape = fnp.broadcast_shapes(low.aval.shape, high.aval.shape)
    low, high = fnp.broadcast_to(low, shape), fnp.broadcast_to(high, shape)
    return fnp.sum(lax.square(solve_triangular(low, high, lower=True)), axis=(-2, -1))


def known(df: Any, p: int, value: Any) -> Array:
    """Returns a value where degrees of freedom are enough, nan elsewhere."""
    return fnp.where(df > p - 1, value, math.nan)


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


pdf: Final = _of.exp(logpdf)


@_of
def mean(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mean, df times the scale.

    Returns:
      Float array[..., p, p].
    """
    df, scale, _ = factors("wishart.mean", df, scale)
    return df[..., None, None] * scale


@_of
def mode(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the mode.

    Returns:
      Float array[..., p, p]; nan where `df` is below p + 1, where there is none.
    """
    df, scale, _ = factors("wishart.mode", df, scale)
    p = scale.aval.shape[-1]
    some = fnp.where(df >= p + 1, df - p - 1, math.nan)
    return some[..., None, None] * scale


@_of
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


@_of
def entropy(df: ArrayLike, scale: ArrayLike) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    df, scale, root = factors("wishart.entropy", df, scale)
    p = scale.aval.shape[-1]
    i = fnp.arange(p, dtype=df.aval.dtype)
    mean_log = fnp.sum(lax.digamma(0.5 * (df[..., None] - i)), axis=-1)
    volume = log_volume(root)
    value = (
        0.5 * (p + 1) * volume
        + 0.5 * p * (p + 1) * math.log(2)
        + multigammaln(0.5 * df, p)
        - 0.5 * (df - p - 1) * mean_log
        + 0.5 * df * p
    )
    return known(df, p, value)


def standard_root(key: Any, df: Any, shape: Any, p: int, dtype: Any) -> Array:
    """Draws the root of a Wishart matrix of scale 1, by Bartlett's decomposition."""
    normal, chi = random.split(key)
    below = fnp.tril(random.normal(normal, (*shape, p, p), dtype), -1)
    freedom = df[..., None] - fnp.arange(p, dtype=dtype)
    freedom = fnp.where(freedom > 0, freedom, math.nan)
    square = 2 * random.gamma(chi, 0.5 * freedom, (*shape, p), dtype)
    root: Array = below + fnp.sqrt(square)[..., None] * fnp.eye(p, dtype=dtype)
    return root


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
    name = "wishart.rvs"
    chosen = float_dtype(name, dtype)
    df, scale = (parameter(name, v, chosen) for v in (df, scale))
    df, scale, root = factors(name, df, scale)
    p = scale.aval.shape[-1]
    full = sample_shape(name, shape, df.aval.shape, scale.aval.shape[:-2])
    made = root @ standard_root(key, fnp.broadcast_to(df, full), full, p, chosen)
    return made @ fnp.matrix_transpose(made)


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
