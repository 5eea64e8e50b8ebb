"""Distributions drawn through the inverse of their distribution function."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir import arith
from fxflow.errors import ArgumentError
from fxflow.lax import sampling
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    arguments,
    fit,
)
from fxflow.random._layout import sampler


@sampler("shape", "dtype")
def exponential(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard exponential numbers: density :math:`e^{-x}` for x ≥ 0.

    Args:
      shape: shape of the result.

    Example:
      >>> random.exponential(random.key(0), (2, 3)).shape
      (2, 3)

    Source: -log(1 - u) of a uniform u.
    """
    key_data, full, chosen = arguments("exponential", key, shape, dtype)
    drawn: Array = sampling.exponential(key_data, full, chosen)
    return drawn


@sampler("shape", "dtype", "mode")
def gumbel(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard Gumbel numbers: density :math:`e^{-(x + e^{-x})}`.

    Args:
      shape: shape of the result.
      mode: `"low"` (what None means) or `"high"`, which draws twice the bits, for
        categories of probability below 2⁻²³.

    Raises:
      ArgumentError: `key` is not a key, or the mode is another.

    Example:
      >>> random.gumbel(random.key(0), (3,)).shape
      (3,)

    Source: -log(-log u) of a uniform u.
    """
    key_data, full, chosen = arguments("gumbel", key, shape, dtype)
    drawn: Array = gumbel_of(key_data, full, chosen, mode, "gumbel")
    return drawn


def gumbel_of(key_data: Any, shape: Any, dtype: Any, mode: Any, name: str) -> Any:
    """Returns standard Gumbel numbers from key data."""
    if mode in (None, "low"):
        drawn = sampling.positive_uniform(key_data, shape, dtype)
        return lax.neg(lax.log(lax.neg(lax.log(drawn))))
    if mode != "high":
        raise ArgumentError(f'{name}: mode must be "low" or "high", got {mode!r}')
    high, low = _two_draws(key_data, shape, dtype)
    # Near 1 the second draw falls below the last bit, and 1 must not be reached; near 0
    # it matters, and 0 must not be reached.
    info = dtypes.finfo(dtype)
    finer = lax.add(lax.add(high, lax.mul(low, float(info.eps))), float(info.tiny))
    drawn = lax.select(lax.ge(high, 0.5), high, finer)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(drawn)))))


def _two_draws(key_data: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    """Returns two arrays of uniform numbers: leading and following bits."""
    both = sampling.uniform(key_data, (2, *shape), dtype)
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    return first, second


@sampler("shape", "dtype")
def laplace(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard Laplace numbers: density :math:`\tfrac12 e^{-|x|}`.

    Args:
      shape: shape of the result.

    Example:
      >>> random.laplace(random.key(0), (3,)).shape
      (3,)

    Source: sign(u) log(1 - |u|) of u uniform in (-1, 1).
    """
    key_data, full, chosen = arguments("laplace", key, shape, dtype)
    u = sampling.open_uniform(key_data, full, chosen)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@sampler("shape", "dtype")
def logistic(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard logistic numbers: density :math:`e^{-x} / (1 + e^{-x})^2`.

    Args:
      shape: shape of the result.

    Example:
      >>> random.logistic(random.key(0), (3,)).shape
      (3,)

    Source: log(u / (1 - u)) of a uniform u.
    """
    key_data, full, chosen = arguments("logistic", key, shape, dtype)
    u = sampling.positive_uniform(key_data, full, chosen)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


@sampler("shape", "dtype")
def cauchy(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard Cauchy numbers: density :math:`1 / (\pi (1 + x^2))`.

    Args:
      shape: shape of the result.

    Example:
      >>> random.cauchy(random.key(0), (3,)).shape
      (3,)

    Source: tan π(u - ½) of a uniform u.
    """
    key_data, full, chosen = arguments("cauchy", key, shape, dtype)
    eps = arith.constant(dtypes.finfo(chosen).eps, chosen)
    one = arith.constant(1, chosen)
    # Not from 0, which is a pole of the tangent.
    u = sampling.uniform_between(key_data, full, chosen, eps, one)
    return lax.tan(lax.mul(lax.sub(u, 0.5), 3.141592653589793))


@sampler("shape", "dtype")
def rayleigh(
    key: Any,
    scale: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Rayleigh numbers: density :math:`x e^{-x^2 / (2 s^2)} / s^2` for x ≥ 0.

    Args:
      scale: s > 0, any shape.
      shape: shape of the result, to which `scale` is broadcast; None means its shape.

    Raises:
      ShapeError: `scale` does not broadcast to `shape`.

    Example:
      >>> random.rayleigh(random.key(0), 2.0, (3,)).shape
      (3,)

    Source: s √(-2 log u) of a uniform u.
    """
    key_data, full, chosen, s = arguments("rayleigh", key, shape, dtype, scale)
    u = sampling.uniform(key_data, full, chosen)
    # Half of the first number above 0, where JAX gives inf.
    least = lax.full_like(u, float(dtypes.finfo(chosen).eps) / 2)
    u = lax.select(lax.eq(u, 0.0), least, u)
    return lax.mul(fit(s, full), lax.sqrt(lax.mul(lax.log(u), -2.0)))


@sampler("shape", "dtype")
def weibull_min(
    key: Any,
    scale: Any,
    concentration: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Weibull numbers.

    Density :math:`\tfrac{c}{s} (x/s)^{c-1} e^{-(x/s)^c}` for x ≥ 0.

    Args:
      scale: s > 0, any shape.
      concentration: c > 0, any shape.
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.weibull_min(random.key(0), 2.0, 3.0, (3,)).shape
      (3,)

    Source: s (-log(1 - u))^(1/c) of a uniform u.
    """
    key_data, full, chosen, s, c = arguments(
        "weibull_min", key, shape, dtype, scale, concentration
    )
    base = sampling.exponential(key_data, full, chosen)
    power = lax.pow(base, fit(lax.div(1.0, c), full))
    return lax.mul(power, fit(s, full))


@sampler("shape", "dtype")
def pareto(
    key: Any,
    b: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Pareto numbers: density :math:`b / x^{b+1}` for x ≥ 1.

    Args:
      b: b > 0, any shape.
      shape: shape of the result, to which `b` is broadcast; None means its shape.

    Raises:
      ShapeError: `b` does not broadcast to `shape`.

    Example:
      >>> random.pareto(random.key(0), 2.0, (3,)).shape
      (3,)

    Source: exp(e / b) of a standard exponential e.
    """
    key_data, full, chosen, exponent = arguments("pareto", key, shape, dtype, b)
    e = sampling.exponential(key_data, full, chosen)
    return lax.exp(lax.div(e, fit(exponent, full)))


@sampler("shape", "dtype")
def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws triangular numbers: the density rises up to `mode` and falls from there.

    Args:
      left: lower bound, any shape.
      mode: where the density is largest, between the bounds, any shape.
      right: upper bound, any shape.
      shape: shape of the result, to which all are broadcast; None means their common
        shape.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.triangular(random.key(0), 0.0, 1.0, 4.0, (3,)).shape
      (3,)

    Source: the inverse of the distribution function, which is quadratic on each side.
    """
    key_data, full, chosen, *given = arguments(
        "triangular", key, shape, dtype, left, mode, right
    )
    low, middle, high = (arith.repeated(p, full) for p in given)
    width = lax.sub(high, low)
    turn = lax.div(lax.sub(middle, low), width)
    u = sampling.uniform(key_data, full, chosen)
    rising = lax.sqrt(lax.mul(lax.mul(u, width), lax.sub(middle, low)))
    rest = lax.mul(lax.sub(1.0, u), width)
    falling = lax.sqrt(lax.mul(rest, lax.sub(high, middle)))
    return lax.select(lax.lt(u, turn), lax.add(low, rising), lax.sub(high, falling))
