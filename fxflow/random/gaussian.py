"""Normal numbers and what is made of them."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir import arith
from fxflow.errors import DtypeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.lax.gradient_control import stop_gradient
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    arguments,
    fit,
    key_data_of,
)
from fxflow.random._layout import sampler

SQRT2 = math.sqrt(2)


@sampler("shape", "dtype")
def normal(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard normal numbers: density :math:`e^{-x^2/2} / \sqrt{2\pi}`.

    Args:
      shape: of the result.
      dtype: a float or complex dtype; None means the default float.

    Returns:
      An array of that shape and dtype. Complex numbers have variance 1: each part ½.

    Raises:
      DtypeError: `dtype` is neither float nor complex.

    Example:
      >>> random.normal(random.key(0), (2, 3)).shape
      (2, 3)

    Source: √2 erf⁻¹(u) of u uniform in (-1, 1).
    """
    key_data = key_data_of("normal", key)
    shape = shape_or_length("normal", shape)
    if dtype is None:
        chosen = dtypes.default_float()
    else:
        chosen = dtypes.dtype(dtype)
        if not dtypes.is_inexact(chosen):
            raise DtypeError(
                "normal: dtype must be a float or complex dtype, got "
                f"{dtypes.short_name(chosen)}"
            )
    if not dtypes.is_complex(chosen):
        drawn: Array = sampling.normal(key_data, shape, chosen)
        return drawn
    part = dtypes.to_real(chosen)
    # Each part has variance 1/2, so that |z|² has mean 1.
    real, imag = (sampling.normal(w, shape, part) for w in sampling.split(key_data, 2))
    return lax.complex(lax.div(real, SQRT2), lax.div(imag, SQRT2))


@sampler("shape", "dtype")
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws standard normal numbers that lie between two bounds.

    Args:
      lower: lower bound, any shape.
      upper: upper bound, any shape.
      shape: of the result, to which both are broadcast; None means their common shape.

    Returns:
      An array of that shape and dtype, strictly between the bounds.

    Raises:
      ShapeError: a bound does not broadcast to `shape`.

    Example:
      >>> x = random.truncated_normal(random.key(0), -1.0, 1.0, (100,))
      >>> bool((abs(x) < 1.0).all())
      True

    Source: √2 erf⁻¹(u) of u uniform between the bounds' values of erf(x / √2).
    """
    key_data, full, chosen, low, high = arguments(
        "truncated_normal", key, shape, dtype, lower, upper
    )
    bounds = [fit(lax.erf(lax.div(p, SQRT2)), full) for p in (low, high)]
    u = sampling.uniform_between(key_data, full, chosen, *bounds)
    drawn = lax.mul(lax.erf_inv(u), SQRT2)
    # Rounding may carry a number to a bound or beyond: back to the last one inside.
    least, most = (
        lax.nextafter(stop_gradient(p), arith.constant(to, chosen))
        for p, to in ((low, math.inf), (high, -math.inf))
    )
    return lax.min(fit(most, full), lax.max(fit(least, full), drawn))


@sampler("shape", "dtype")
def lognormal(
    key: Any,
    sigma: Any = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws log-normal numbers.

    Density :math:`e^{-\log(x)^2 / (2\sigma^2)} / (x \sigma \sqrt{2\pi})` for x > 0.

    Args:
      sigma: standard deviation of the logarithm, any shape.
      shape: of the result, to which `sigma` is broadcast; None means its shape.

    Raises:
      ShapeError: `sigma` does not broadcast to `shape`.

    Example:
      >>> random.lognormal(random.key(0), 0.5, (3,)).shape
      (3,)

    Source: exp(σ x) of a normal x.
    """
    key_data, full, chosen, s = arguments("lognormal", key, shape, dtype, sigma)
    x = sampling.normal(key_data, full, chosen)
    return lax.exp(lax.mul(x, fit(s, full)))


@sampler("shape", "dtype")
def maxwell(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Maxwell numbers: density :math:`\sqrt{2/\pi}\, x^2 e^{-x^2/2}` for x ≥ 0.

    Args:
      shape: of the result.

    Example:
      >>> random.maxwell(random.key(0), (3,)).shape
      (3,)

    Source: the length of a normal vector of three components.
    """
    key_data, full, chosen = arguments("maxwell", key, shape, dtype)
    return _maxwell(key_data, full, chosen)


def _maxwell(key_data: Any, shape: Any, dtype: Any) -> Array:
    x = sampling.normal(key_data, (*shape, 3), dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(x, x), (len(shape),)))


@sampler("shape", "dtype")
def double_sided_maxwell(
    key: Any,
    loc: Any,
    scale: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Maxwell numbers of either sign.

    Density :math:`(x-\mu)^2 e^{-(x-\mu)^2/(2 s^2)} / (s^3 \sqrt{2\pi})`.

    Args:
      loc: μ, any shape.
      scale: s > 0, any shape.
      shape: of the result, to which both are broadcast; None means their common shape.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.double_sided_maxwell(random.key(0), 1.0, 2.0, (3,)).shape
      (3,)

    Source: a Maxwell number times a random sign.
    """
    name = "double_sided_maxwell"
    key_data, full, chosen, centre, width = arguments(
        name, key, shape, dtype, loc, scale
    )
    first, second = sampling.split(key_data, 2)
    x = lax.mul(sampling.signs(second, full, chosen), _maxwell(first, full, chosen))
    return lax.add(lax.mul(x, fit(width, full)), fit(centre, full))


@sampler("shape", "dtype")
def wald(
    key: Any,
    mean: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws inverse Gaussian numbers of scale 1.

    Density :math:`e^{-(x-\mu)^2 / (2 \mu^2 x)} / \sqrt{2\pi x^3}` for x > 0.

    Args:
      mean: μ > 0, any shape.
      shape: of the result, to which `mean` is broadcast; None means its shape.

    Raises:
      ShapeError: `mean` does not broadcast to `shape`.

    Example:
      >>> random.wald(random.key(0), 2.0, (3,)).shape
      (3,)

    Source: Michael, Schucany, Haas 1976: one root of a quadratic equation in a squared
    normal, or the other.
    """
    key_data, full, chosen, mu = arguments("wald", key, shape, dtype, mean)
    mu = arith.repeated(mu, full)
    first, second = sampling.split(key_data, 2)
    x = sampling.normal(first, full, chosen)
    u = sampling.uniform(second, full, chosen)
    # Michael, Schucany and Haas 1976: y is chi-square, and the two roots of a quadratic
    # in it are chosen between by a uniform number.
    y, mu2 = lax.square(x), lax.square(mu)
    inside = lax.add(lax.mul(lax.mul(mu, 4.0), y), lax.mul(mu2, lax.square(y)))
    root = lax.sub(
        lax.add(mu, lax.div(lax.mul(mu2, y), 2.0)),
        lax.mul(lax.div(mu, 2.0), lax.sqrt(inside)),
    )
    small = lax.le(u, lax.div(mu, lax.add(mu, root)))
    return lax.select(small, root, lax.div(mu2, root))
