"""Normal numbers and what is made of them."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof
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
# How large μ y may be for the smaller root of a Wald number to be a difference.
_CANCELS = 8.0


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
      shape: shape of the result.
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
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Returns:
      An array of that shape and dtype, strictly between the bounds.

    Raises:
      ShapeError: a bound does not broadcast to `shape`.

    Example:
      >>> x = random.truncated_normal(random.key(0), -1.0, 1.0, (100,))
      >>> bool((abs(x) < 1.0).all())
      True

    Source: √2 erf⁻¹(u) of u uniform between the bounds' values of erf(x / √2), as in
    JAX. Where both bounds are so far on one side that erf has no digits left for them
    (3.1 in 32 bits, 7 in 64), which in JAX gives a bound for every number: the inverse
    of the survival function, from its logarithm.
    """
    key_data, full, chosen, low, high = arguments(
        "truncated_normal", key, shape, dtype, lower, upper
    )
    if _known_near(low, high, chosen):
        drawn = _by_erf(key_data, full, chosen, low, high)
    else:
        drawn = _with_tails(key_data, full, chosen, low, high)
    # Rounding may carry a number to a bound or beyond: back to the last one inside.
    least, most = (
        lax.nextafter(stop_gradient(p), arith.constant(to, chosen))
        for p, to in ((low, math.inf), (high, -math.inf))
    )
    return lax.min(fit(most, full), lax.max(fit(least, full), drawn))


def _tail_start(dtype: Any) -> float:
    """Returns from where erf has fewer than 2^14 values left (2^6, below 32 bits)."""
    mass = min(2.0**14 * float(dtypes.finfo(dtype).eps), 2.0**-6)
    return NormalDist().inv_cdf(1 - mass / 2)


def _known_near(low: Any, high: Any, dtype: Any) -> bool:
    """Returns whether the bounds are constants that are not far on one side."""
    start = _tail_start(dtype)
    return all(
        type(bound) is Array and not bound.ndim and side * float(bound) <= start
        for bound, side in ((low, 1), (high, -1))
    )


def _by_erf(key_data: Any, shape: Any, dtype: Any, low: Any, high: Any) -> Any:
    bounds = [fit(lax.erf(lax.div(p, SQRT2)), shape) for p in (low, high)]
    u = sampling.uniform_between(key_data, shape, dtype, *bounds)
    return lax.mul(lax.erf_inv(u), SQRT2)


def _with_tails(key_data: Any, shape: Any, dtype: Any, low: Any, high: Any) -> Any:
    """Returns numbers between bounds of which some are far on one side."""
    low, high = arith.repeated(low, shape), arith.repeated(high, shape)
    start = _tail_start(dtype)
    above, below = lax.gt(low, start), lax.lt(high, -start)
    far = lax.bitwise_or(above, below)
    zero, one = lax.full_like(low, 0), lax.full_like(low, 1)
    drawn = _by_erf(
        key_data, shape, dtype, lax.select(far, zero, low), lax.select(far, one, high)
    )

    def tails(low: Any, high: Any, drawn: Any) -> Any:
        near = lax.full_like(low, start)
        first = lax.select(above, low, lax.select(below, lax.neg(high), near))
        last = lax.select(below, lax.neg(low), lax.add(near, 1.0))
        last = lax.select(above, high, last)
        tail = _tail(first, last, sampling.uniform(key_data, shape, dtype))
        return lax.select(far, lax.select(below, lax.neg(tail), tail), drawn)

    some = lax.reduce_or(far, tuple(range(len(shape))))
    return lax.cond(some, tails, lambda low, high, drawn: drawn, low, high, drawn)


def _mills(x: Any) -> Any:
    """Returns (1 - Φ(x)) / φ(x) for x > 2, by its continued fraction (DLMF 7.9.1)."""
    tail = x
    for k in range(40, 0, -1):
        tail = lax.add(x, lax.div(arith.constant(k, typeof(x).dtype), tail))
    return lax.div(1.0, tail)


def _tail(low: Any, high: Any, u: Any) -> Any:
    """Returns normal numbers between two bounds far above 0, of uniform numbers.

    The logarithm of the survival function, less that of the lower bound, is uniform's;
    Newton's method inverts it.
    """
    dtype = typeof(u).dtype
    if dtypes.bits(dtype) < 32:
        single = dtypes.float32
        wide = (lax.convert_element_type(v, single) for v in (low, high, u))
        return lax.convert_element_type(_tail(*wide), dtype)
    at_low = lax.log(_mills(low))

    def fall(beyond: Any, mills: Any) -> Any:
        square = lax.mul(beyond, lax.add(low, lax.mul(beyond, 0.5)))
        return lax.add(square, lax.sub(at_low, lax.log(mills)))

    whole = fall(lax.sub(high, low), _mills(high))
    part = lax.expm1(lax.neg(whole))
    wanted = lax.neg(lax.log1p(lax.mul(u, part)))
    root = lax.sqrt(lax.add(lax.square(low), lax.mul(wanted, 2.0)))
    beyond = lax.div(lax.mul(wanted, 2.0), lax.add(low, root))
    for _ in range(4):
        # The derivative is that of the last step.
        beyond = stop_gradient(beyond)
        mills = _mills(lax.add(low, beyond))
        gap = lax.sub(wanted, fall(beyond, mills))
        beyond = lax.add(beyond, lax.mul(gap, mills))
    return lax.add(low, beyond)


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
      shape: shape of the result, to which `sigma` is broadcast; None means its shape.

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
      shape: shape of the result.

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
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

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
      shape: shape of the result, to which `mean` is broadcast; None means its shape.

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
    # For a large mean nothing is left of the difference: there without it.
    wide = lax.gt(lax.mul(mu, y), _CANCELS)
    safe_mu = lax.select(wide, mu, lax.full_like(mu, 1))
    rate, half = lax.div(1.0, safe_mu), lax.div(y, 2.0)
    turn = lax.sqrt(lax.mul(y, lax.add(rate, lax.div(half, 2.0))))
    inverse = lax.add(rate, lax.add(half, turn))
    small = lax.le(u, lax.div(mu, lax.add(mu, root)))
    plain = lax.select(small, root, lax.div(mu2, root))
    share = lax.div(1.0, lax.add(1.0, lax.div(rate, inverse)))
    least = lax.div(1.0, inverse)
    most = lax.mul(lax.mul(safe_mu, safe_mu), inverse)
    other = lax.select(lax.le(u, share), least, most)
    return lax.select(wide, other, plain)
