"""The distribution of von Mises and Fisher, of directions."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.random._arguments import float_dtype, parameter
from fxflow.scipy.special.cylinder import ive
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import LOG_2PI, Distribution
from fxflow.scipy.stats._matrices import sample_shape

__all__ = ["entropy", "fit", "logpdf", "pdf", "rvs"]

_of = Distribution(
    """
x: real array-like[..., d], of length 1: a direction.
mu: real array-like[..., d], of length 1: the mean direction; d is at least 2.
kappa: positive real array-like[...], the concentration.
""",
    "shape",
    "dtype",
)


def _parts(name: str, mu: Any, kappa: Any, *more: Any) -> tuple[Array, ...]:
    """Returns the operands; nan where they describe no distribution.

    Raises:
      ShapeError: a direction has the wrong number of elements, or less than 2.
    """
    mu, kappa, *more_ = promote_inexact(name, mu, kappa, *more)
    sizes = {a.aval.shape[-1] if a.aval.ndim else 1 for a in (mu, *more_)}
    if len(sizes) != 1 or min(sizes) < 2:
        given = ", ".join(str(a.aval) for a in (mu, *more_))
        raise ShapeError(
            f"{name}: directions must have the same number of elements, at least 2, "
            f"got {given}"
        )
    # As many roundings as there are terms.
    slack = 64 * float(fnp.finfo(mu.aval.dtype).eps)
    unit = abs(fnp.sum(mu * mu, axis=-1) - 1) < slack * mu.aval.shape[-1]
    kappa = fnp.where(unit & (kappa > 0) & (kappa < math.inf), kappa, math.nan)
    return mu, kappa, *more_


def _log_norm(kappa: Any, d: int) -> Array:
    """Returns the logarithm of what exp(κ (μ·x - 1)) is multiplied by."""
    order = fnp.asarray(0.5 * d - 1, kappa.dtype)
    return -0.5 * d * LOG_2PI - lax.log(ive(order, kappa)) + order * lax.log(kappa)


def _mean_length(kappa: Any, d: int) -> Any:
    """Returns the length of the mean: I of order d/2 over that of d/2 - 1."""
    low, high = (fnp.asarray(0.5 * d - k, kappa.dtype) for k in (1, 0))
    return ive(high, kappa) / ive(low, kappa)


@_of
def logpdf(x: ArrayLike, mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
    """Returns the logarithm of the density on the sphere.

    Returns:
      Float array[...].

    Raises:
      ShapeError: directions differ in their number of elements, or have less than 2.

    Special cases:
      nan where `mu` is not of length 1, or `kappa` is not positive.

    Example:
      >>> mu = np.array([0.0, 0.0, 1.0])
      >>> logpdf(mu, mu, 2.0).round(4)
      Array(-1.1262, dtype=float32)
    """
    mu, kappa, x = _parts("vonmises_fisher.logpdf", mu, kappa, x)
    d = mu.aval.shape[-1]
    # κ (μ·x - 1), without cancellation near μ.
    away = -0.5 * fnp.sum(lax.square(x - mu), axis=-1)
    return _log_norm(kappa, d) + kappa * away


pdf: Final = _of.exp(logpdf)


@_of
def entropy(mu: ArrayLike, kappa: ArrayLike = 1) -> Array:
    """Returns the differential entropy, in nats.

    Returns:
      Float array[...].
    """
    mu, kappa = _parts("vonmises_fisher.entropy", mu, kappa)
    d = mu.aval.shape[-1]
    value: Array = kappa * (1 - _mean_length(kappa, d)) - _log_norm(kappa, d)
    return value


@_of
def fit(x: ArrayLike) -> tuple[Array, Array]:
    """Returns the mean direction and concentration that make a sample most likely.

    Args:
      x: real array-like[n, d], of which each row is of length 1.

    Returns:
      `mu`, float array[d], and `kappa`, a float.

    Raises:
      ShapeError: `x` is not a matrix, or d is less than 2.

    Special cases:
      nan where rows are not of length 1; `kappa` is inf where all are equal.
    """
    name = "vonmises_fisher.fit"
    (x,) = promote_inexact(name, x)
    if x.aval.ndim != 2 or x.aval.shape[1] < 2:
        raise ShapeError(f"{name}: x must be [n, d] with d of at least 2, got {x.aval}")
    d = x.aval.shape[1]
    mean = fnp.mean(x, axis=0)
    length = fnp.sqrt(fnp.sum(mean * mean))
    slack = 64 * d * float(fnp.finfo(x.aval.dtype).eps)
    unit = fnp.all(abs(fnp.sum(x * x, axis=-1) - 1) < slack)
    length = fnp.where(unit, length, math.nan)
    # Sra's start (2012), then Newton's steps on the likelihood equation.
    kappa = length * (d - length**2) / (1 - length**2)
    for _ in range(6):
        at = _mean_length(kappa, d)
        kappa = kappa - (at - length) / (1 - at * at - (d - 1) / kappa * at)
    return mean / length, fnp.where(length >= 1, math.inf, kappa)


@_of
def rvs(
    key: Array,
    mu: ArrayLike,
    kappa: ArrayLike = 1,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws directions, by Wood's rejection.

    Args:
      shape: shape of the array of directions; None means that of the parameters.

    Returns:
      Float array[*shape, d].

    Source: `scipy.stats.vonmises_fisher.rvs`; A. Wood, Simulation of the von
    Mises-Fisher distribution, 1994.
    """
    name = "vonmises_fisher.rvs"
    chosen = float_dtype(name, dtype)
    mu, kappa = _parts(name, *(parameter(name, v, chosen) for v in (mu, kappa)))
    d = mu.aval.shape[-1]
    full = sample_shape(name, shape, mu.aval.shape[:-1], kappa.aval.shape)
    k = fnp.broadcast_to(lax.stop_gradient(kappa), full)
    one, two = random.split(key)
    w = _cosines(one, k, d, full, chosen)
    # A direction at right angles to the first axis, then a reflection of it to μ.
    z = random.normal(two, (*full, d - 1), chosen)
    z = z / fnp.sqrt(fnp.sum(z * z, axis=-1, keepdims=True))
    side = fnp.sqrt(fnp.maximum(1 - w * w, 0))[..., None]
    x = fnp.concatenate([w[..., None], side * z], axis=-1)
    first = fnp.asarray([1.0] + [0.0] * (d - 1), chosen)
    normal = first - mu
    square = fnp.sum(normal * normal, axis=-1, keepdims=True)
    along = fnp.sum(normal * x, axis=-1, keepdims=True)
    turned = x - 2 * normal * along / fnp.where(square > 0, square, 1)
    return fnp.where(fnp.isnan(k)[..., None], math.nan, turned)


def _cosines(key: Any, kappa: Any, d: int, shape: Any, dtype: Any) -> Any:
    """Draws cosines of the angle to the mean direction."""
    half = 0.5 * (d - 1)
    root = fnp.sqrt(kappa * kappa + half * half)
    b = half / (kappa + root)
    x0 = (1 - b) / (1 + b)
    c = kappa * x0 + 2 * half * lax.log1p(-x0 * x0)

    def going(state: Any) -> Any:
        n, _, _, done = state
        return (n < 1000) & ~fnp.all(done)

    def step(state: Any) -> Any:
        n, key, found, done = state
        key, one, two, three = random.split(key, 4)
        g = random.gamma(one, half, shape, dtype)
        h = random.gamma(two, half, shape, dtype)
        z = g / (g + h)
        w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
        u = random.uniform(three, shape, dtype)
        good = kappa * w + 2 * half * lax.log1p(-x0 * w) - c >= lax.log(u)
        found = fnp.where(done, found, w)
        return n + 1, key, found, done | good | (kappa != kappa)

    start = (fnp.int32(0), key, fnp.zeros(shape, dtype), fnp.zeros(shape, bool))
    return lax.while_loop(going, step, start)[2]


freezable(__name__, "mu", kappa=1)


_public(globals(), __all__)
