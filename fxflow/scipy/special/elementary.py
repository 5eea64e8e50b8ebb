"""Elementary functions that keep their digits, and losses for robust regression."""

from __future__ import annotations

import math

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._cylinder import sinpi
from fxflow.scipy.special._operands import operands, safe, special_docs
from fxflow.scipy.special.normal import ndtri


@library()
@special_docs
def cbrt(x: ArrayLike) -> Array:
    """Cube root.

    Special cases:
      Odd in x; ±inf → ±inf.

    Example:
      >>> round(float(cbrt(27.0)), 4)
      3.0
    """
    return lax.cbrt(*operands("cbrt", x))


@library()
@special_docs
def exp2(x: ArrayLike) -> Array:
    """Two to the power of `x`.

    Example:
      >>> float(exp2(3.0))
      8.0
    """
    return fnp.exp2(*operands("exp2", x))


@library()
@special_docs
def expm1(x: ArrayLike) -> Array:
    """Exponential minus 1, exact near 0.

    Special cases:
      -inf → -1.

    Example:
      >>> round(float(expm1(1e-8)), 12)
      1e-08
    """
    return lax.expm1(*operands("expm1", x))


@library()
@special_docs
def log1p(x: ArrayLike) -> Array:
    """Logarithm of 1 + x, exact near 0.

    Special cases:
      -1 → -inf; below -1: nan.

    Example:
      >>> round(float(log1p(1e-8)), 12)
      1e-08
    """
    return lax.log1p(*operands("log1p", x))


@library()
@special_docs
def cosm1(x: ArrayLike) -> Array:
    """Cosine minus 1, exact near 0: -2 sin²(x / 2).

    Special cases:
      ±inf → nan.

    Example:
      >>> cosm1(1e-3).round(9)
      Array(-5.e-07, dtype=float32)
    """
    (x,) = operands("cosm1", x)
    return -2 * lax.square(lax.sin(0.5 * x))


@library()
@special_docs
def sinc(x: ArrayLike) -> Array:
    """sin(π x) / (π x), which is 1 at 0.

    Example:
      >>> sinc(0.5).round(4)
      Array(0.6366, dtype=float32)
    """
    return fnp.sinc(*operands("sinc", x))


@library()
@special_docs
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), which does not overflow.

    Special cases:
      -inf → 0; inf → inf.

    Example:
      >>> softplus(0.0).round(4)
      Array(0.6931, dtype=float32)
    """
    (x,) = operands("softplus", x)
    return fnp.logaddexp(x, 0)


@library()
@special_docs
def powm1(x: ArrayLike, y: ArrayLike) -> Array:
    """Power of `x` to the `y` minus 1, exact where the power is near 1.

    Args:
      x: real array-like.
      y: real array-like.

    Special cases:
      Negative `x` → nan, unless `y` is an integer.

    Example:
      >>> round(float(powm1(2.0, 1e-9)), 13)
      6.931e-10
    """
    x, y = operands("powm1", x, y)
    whole = lax.floor(y) == y
    direct = fnp.power(x, y) - 1
    near = (x != 0) & (lax.abs(x) < math.inf) & ((x > 0) | whole)
    small = y * lax.log(lax.abs(safe(near, x, 1)))
    odd = whole & (y - 2 * lax.floor(y / 2) == 1) & (x < 0)
    near = near & ~odd & (lax.abs(small) < 0.7)
    return fnp.where(near, lax.expm1(safe(near, small, 0)), direct)


@library()
@special_docs
def huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """Huber's loss: r² / 2 up to `delta`, delta (abs(r) - delta / 2) beyond.

    Args:
      delta: real array-like: where the loss becomes linear.
      r: real array-like.

    Special cases:
      Negative `delta` → inf.

    Example:
      >>> float(huber(1.0, 3.0))
      2.5
    """
    delta, r = operands("huber", delta, r)
    size = lax.abs(r)
    inner = size <= delta
    # Each side from operands of its own, which stay finite.
    square = 0.5 * lax.square(safe(inner, r, 0))
    out = fnp.where(inner, square, delta * (size - 0.5 * delta))
    out = fnp.where((delta == delta) & (r == r), out, math.nan)
    return fnp.where(delta < 0, math.inf, out)


@library()
@special_docs
def pseudo_huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """Smooth Huber loss: delta² (√(1 + (r / delta)²) - 1).

    Args:
      delta: real array-like: about where the loss becomes linear.
      r: real array-like.

    Special cases:
      0 where `delta` or `r` is; negative `delta` → inf.

    Example:
      >>> pseudo_huber(1.0, 3.0).round(4)
      Array(2.1623, dtype=float32)
    """
    delta, r = operands("pseudo_huber", delta, r)
    usual = delta > 0
    scale = safe(usual, delta, 1)
    ratio = r / scale
    # √(1 + q²) - 1, without its cancellation.
    root = lax.sqrt(1 + lax.square(ratio))
    out = r * (r / (1 + root))
    out = fnp.where(usual, out, math.nan)
    out = fnp.where(delta < 0, math.inf, out)
    # Elsewhere the formula has the derivatives at r = 0.
    return fnp.where((delta == 0) | ((r == 0) & (delta != delta)), 0, out)


@library()
@special_docs
def rgamma(x: ArrayLike) -> Array:
    """Reciprocal of the gamma function, which has no poles.

    Special cases:
      0 and negative integers → 0; inf → 0; -inf → nan.

    Example:
      >>> rgamma(5.0).round(4)
      Array(0.0417, dtype=float32)
    """
    (x,) = operands("rgamma", x)
    below = x < 0.5
    high = lax.exp(-lax.lgamma(safe(~below, x, 1)))
    # By reflection, whose derivatives are right at the zeros (DLMF 5.5.3).
    low = safe(below & (x > -math.inf), x, 0)
    reflected = sinpi(low) / math.pi * lax.exp(lax.lgamma(1 - low))
    out = fnp.where(below, reflected, high)
    return fnp.where(x == -math.inf, math.nan, out)


@library()
@special_docs
def erfcinv(x: ArrayLike) -> Array:
    """Inverse of the complementary error function, exact in its upper tail.

    Special cases:
      0 → inf; 2 → -inf; outside [0, 2]: nan.

    Example:
      >>> erfcinv(1e-5).round(4)
      Array(3.1234, dtype=float32)
    """
    (x,) = operands("erfcinv", x)
    return ndtri(0.5 * x) * -math.sqrt(0.5)
