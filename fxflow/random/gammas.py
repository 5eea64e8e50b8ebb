"""The gamma distribution and what is made of it."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, typeof
from fxflow.core.ir import arith
from fxflow.errors import ShapeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.lax.gradient_control import stop_gradient
from fxflow.lax.random_gamma import RandomGamma
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    arguments,
    fit,
    float_dtype,
    key_data_of,
    parameter,
    result_shape,
)
from fxflow.random._layout import sampler


def _gamma(key_data: Any, a: Any, shape: Any, log_space: bool) -> Array:
    """Returns gamma numbers from the data of one key."""
    # A key for each element: they take different numbers of proposals.
    each = sampling.threefry_data(sampling.new_keys(key_data, shape))
    return RandomGamma.bind(each, arith.repeated(a, shape), log_space=log_space)


@sampler("shape", "dtype")
def gamma(
    key: Any,
    a: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws gamma numbers: density :math:`x^{a-1} e^{-x} / \Gamma(a)` for x ≥ 0.

    Args:
      a: a > 0, any shape.
      shape: shape of the result, to which `a` is broadcast; None means its shape.

    Returns:
      An array of that shape and dtype; differentiable with respect to `a`.

    Raises:
      ShapeError: `a` does not broadcast to `shape`.

    Example:
      >>> random.gamma(random.key(0), 2.0, (3,)).shape
      (3,)

    Source: Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
    """
    key_data, full, _, alpha = arguments("gamma", key, shape, dtype, a)
    return _gamma(key_data, alpha, full, False)


@sampler("shape", "dtype")
def loggamma(
    key: Any,
    a: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws logarithms of gamma numbers, which do not underflow for small `a`.

    Args:
      a: a > 0, any shape.
      shape: shape of the result, to which `a` is broadcast; None means its shape.

    Returns:
      An array of that shape and dtype; differentiable with respect to `a`.

    Raises:
      ShapeError: `a` does not broadcast to `shape`.

    Example:
      >>> random.loggamma(random.key(0), 0.01, (3,)).shape
      (3,)

    Source: Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
    """
    key_data, full, _, alpha = arguments("loggamma", key, shape, dtype, a)
    return _gamma(key_data, alpha, full, True)


@sampler("shape", "dtype")
def beta(
    key: Any,
    a: Any,
    b: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws beta numbers: density :math:`x^{a-1} (1-x)^{b-1} / B(a, b)` in [0, 1].

    Args:
      a: a > 0, any shape.
      b: b > 0, any shape.
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.beta(random.key(0), 2.0, 3.0, (3,)).shape
      (3,)

    Source: x / (x + y) of gamma numbers x and y, from their logarithms.
    """
    key_data, full, _, *pair = arguments("beta", key, shape, dtype, a, b)
    both = sampling.split(key_data, 2)
    x, y = (_gamma(w, p, full, True) for w, p in zip(both, pair, strict=True))
    # By logarithms, less the larger one: for small a and b both would underflow to 0.
    most = lax.max(x, y)
    x, y = (_share(g, most) for g in (x, y))
    return lax.div(x, lax.add(x, y))


def _share(log: Any, most: Any) -> Any:
    """Returns a number relative to the largest, of logarithms that may be infinite."""
    largest = lax.bitwise_and(lax.eq(log, most), lax.eq(most, math.inf))
    apart = lax.select(largest, lax.full_like(log, 0), lax.sub(log, most))
    return lax.exp(apart)


@sampler("shape", "dtype")
def dirichlet(
    key: Any,
    alpha: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Dirichlet vectors: density ∝ :math:`\prod_i x_i^{\alpha_i-1}`.

    Args:
      alpha: parameters αᵢ > 0, of shape `(..., n)`.
      shape: shape of the array of vectors, to which the leading axes of `alpha` are
        broadcast; None means these.

    Returns:
      An array of shape `(*shape, n)` and that dtype; the last axis sums to 1.

    Raises:
      ShapeError: `alpha` is 0-d or does not broadcast to `shape`.

    Example:
      >>> random.dirichlet(random.key(0), np.ones(3), (2,)).shape
      (2, 3)

    Special cases:
      A parameter 0 gives the part 0, inf all to the parts of infinite parameters; nan
      where all parameters are 0, which is not a distribution.

    Source: gamma numbers divided by their sum, from their logarithms.
    """
    chosen = float_dtype("dirichlet", dtype)
    a = parameter("dirichlet", alpha, chosen)
    own = typeof(a).shape
    if not own:
        raise ShapeError(f"dirichlet: alpha must have an axis, got {typeof(a)}")
    front = own[:-1] if shape is None else shape_or_length("dirichlet", shape)
    full = result_shape("dirichlet", (*front, own[-1]), a)
    # By logarithms, as in `beta`.
    logs = _gamma(key_data_of("dirichlet", key), a, full, True)
    axis = len(front)
    kept = tuple(range(axis))

    def repeated(value: Any) -> Any:
        return lax.broadcast_in_dim(value, full, kept)

    most = stop_gradient(repeated(lax.reduce_max(logs, (axis,))))
    weights = _share(logs, most)
    return lax.div(weights, repeated(lax.reduce_sum(weights, (axis,))))


def _chisquare(key_data: Any, df: Any, shape: Any) -> Array:
    logs = _gamma(key_data, lax.div(df, 2.0), shape, True)
    return lax.mul(lax.exp(logs), 2.0)


@sampler("shape", "dtype")
def chisquare(
    key: Any,
    df: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws chi-square numbers: density proportional to :math:`x^{d/2-1} e^{-x/2}`.

    Args:
      df: degrees of freedom d > 0, any shape.
      shape: shape of the result, to which `df` is broadcast; None means its shape.

    Raises:
      ShapeError: `df` does not broadcast to `shape`.

    Example:
      >>> random.chisquare(random.key(0), 3.0, (3,)).shape
      (3,)

    Source: twice a gamma number of parameter d / 2.
    """
    key_data, full, _, d = arguments("chisquare", key, shape, dtype, df)
    return _chisquare(key_data, d, full)


@sampler("shape", "dtype")
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws F-distributed numbers: ratios of two mean chi-square numbers.

    Args:
      dfnum: degrees of freedom above, > 0, any shape.
      dfden: degrees of freedom below, > 0, any shape.
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.f(random.key(0), 3.0, 5.0, (3,)).shape
      (3,)

    Source: (x / dfnum) / (y / dfden) of chi-square numbers x and y.
    """
    key_data, full, _, *pair = arguments("f", key, shape, dtype, dfnum, dfden)
    # In JAX's order: the denominator has the first key.
    second, first = sampling.split(key_data, 2)
    # By logarithms, as in `beta`; the factors 2 of both cancel.
    above, below = (
        lax.sub(_gamma(w, lax.div(d, 2.0), full, True), fit(lax.log(d), full))
        for w, d in zip((first, second), pair, strict=True)
    )
    return lax.exp(lax.sub(above, below))


@sampler("shape", "dtype")
def t(
    key: Any,
    df: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Student's t: density proportional to :math:`(1 + x^2/d)^{-(d+1)/2}`.

    Args:
      df: degrees of freedom d > 0, any shape.
      shape: shape of the result, to which `df` is broadcast; None means its shape.

    Raises:
      ShapeError: `df` does not broadcast to `shape`.

    Example:
      >>> random.t(random.key(0), 4.0, (3,)).shape
      (3,)

    Source: x √(h / g) of a normal x and a gamma number g of parameter h = d / 2.
    """
    key_data, full, chosen, d = arguments("t", key, shape, dtype, df)
    first, second = sampling.split(key_data, 2)
    x = sampling.normal(first, full, chosen)
    half = lax.div(d, 2.0)
    # A normal number, for infinitely many degrees of freedom.
    normal = lax.eq(half, math.inf)
    half = lax.select(normal, lax.full_like(half, 1), half)
    # By logarithms: few degrees of freedom give gamma numbers that would underflow.
    log = lax.sub(fit(lax.log(half), full), _gamma(second, half, full, True))
    wide = lax.mul(x, lax.exp(lax.mul(log, 0.5)))
    return lax.select(fit(normal, full), x, wide)


@sampler("shape", "dtype")
def generalized_normal(
    key: Any,
    p: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws generalized normal numbers: density proportional to :math:`e^{-|x|^p}`.

    Args:
      p: a number > 0.
      shape: shape of the result.

    Example:
      >>> random.generalized_normal(random.key(0), 3.0, (3,)).shape
      (3,)

    Source: a random sign times g^(1/p) of a gamma number g of parameter 1/p.
    """
    key_data, full, chosen, power = arguments(
        "generalized_normal", key, shape, dtype, p
    )
    return _generalized_normal(key_data, power, full, chosen)


def _generalized_normal(key_data: Any, p: Any, shape: Any, dtype: Any) -> Array:
    first, second = sampling.split(key_data, 2)
    inverse = lax.div(1.0, p)
    # By logarithms: for a large p the gamma number may underflow.
    log = _gamma(first, inverse, shape, True)
    size = lax.exp(lax.mul(log, fit(inverse, shape)))
    return lax.mul(sampling.signs(second, shape, dtype), size)


@sampler("d", "shape", "dtype")
def ball(
    key: Any,
    d: int,
    p: Any = 2.0,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws vectors uniformly from the unit ball of the p-norm.

    Args:
      d: dimension, ≥ 1.
      p: a number > 0 (norms have p ≥ 1).
      shape: shape of the array of vectors.

    Returns:
      An array of shape `(*shape, d)` and that dtype.

    Example:
      >>> random.ball(random.key(0), 3, shape=(2,)).shape
      (2, 3)

    Source: Barthe, Guédon, Mendelson, Naor 2005: generalized normal numbers divided by
    the p-norm of them and an exponential number.
    """
    chosen = float_dtype("ball", dtype)
    front = shape_or_length("ball", shape)
    full = (*front, int(d))
    first, second = sampling.split(key_data_of("ball", key), 2)
    power = parameter("ball", p, chosen)
    g = _generalized_normal(first, power, full, chosen)
    e = sampling.exponential(second, front, chosen)
    powers = lax.pow(lax.abs(g), fit(power, full))
    # With the exponential number in the norm the vectors fill the ball; without it they
    # lie on its surface (Barthe, Guédon, Mendelson and Naor 2005).
    total = lax.add(lax.reduce_sum(powers, (len(front),)), e)
    norm = lax.pow(total, fit(lax.div(1.0, power), front))
    kept = tuple(range(len(front)))
    return lax.div(g, lax.broadcast_in_dim(norm, full, kept))
