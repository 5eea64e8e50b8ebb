"""Functions that are compositions of others, and keep the digits that these lose."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import in_64_bits, operands, safe, special_docs
from fxflow.scipy.special.error_functions import dawsn, wofz
from fxflow.scipy.special.gammas import betaln, gammasgn


@library()
@special_docs
def exprel(x: ArrayLike) -> Array:
    """(exp(x) - 1) / x, which is 1 at 0.

    Special cases:
      inf → inf; -inf → 0.

    Example:
      >>> float(exprel(0.0))
      1.0
    """
    (x,) = operands("exprel", x)
    # By its series, whose derivatives are right at 0.
    near = lax.abs(x) < 0.1
    low, high = safe(near, x, 0), safe(~near, x, 1)
    series = lax.full_like(x, 1)
    for k in range(12, 1, -1):
        series = 1 + series * low / k
    out = fnp.where(near, series, lax.expm1(high) / high)
    return fnp.where(x == math.inf, x, out)


@library()
@special_docs
def exp10(x: ArrayLike) -> Array:
    """Ten to the power of `x`.

    Example:
      >>> round(float(exp10(2.0)), 3)
      100.0
    """
    (x,) = operands("exp10", x)
    return lax.pow(lax.full_like(x, 10), x)


@library()
@special_docs
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """Inverse of `boxcox(x, lmbda)` in `x`.

    Args:
      y: real array-like.
      lmbda: real array-like.

    Example:
      >>> float(inv_boxcox(1.0, 1.0))
      2.0
    """
    y, power = operands("inv_boxcox", y, lmbda)
    return lax.exp(_log_inverse(y, power))


@library()
@special_docs
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """Inverse of `boxcox1p(x, lmbda)` in `x`.

    Args:
      y: real array-like.
      lmbda: real array-like.

    Example:
      >>> float(inv_boxcox1p(1.0, 1.0))
      1.0
    """
    y, power = operands("inv_boxcox1p", y, lmbda)
    return lax.expm1(_log_inverse(y, power))


def _log_inverse(y: Any, power: Any) -> Any:
    """Returns log(1 + power y) / power, by its series where that is 0 / 0."""
    z = power * y
    near = lax.abs(z) < 1e-3
    low, scale = safe(near, z, 0), safe(~near, power, 1)
    series = lax.full_like(y, 0)
    for k in range(7, 0, -1):
        series = 1 / k - series * low
    return fnp.where(near, y * series, lax.log1p(safe(~near, z, 1)) / scale)


@library()
@special_docs
def erfi(x: ArrayLike) -> Array:
    """Imaginary error function, -i erf(i x).

    Special cases:
      Odd in x; ±inf → ±inf.

    Example:
      >>> erfi(1.0).round(4)
      Array(1.6504, dtype=float32)
    """
    (x,) = operands("erfi", x)
    finite = lax.abs(x) < math.inf
    z = safe(finite, x, 0)
    # In two factors, the first of which overflows late.
    half = lax.exp(0.5 * z * z)
    out = 2 / math.sqrt(math.pi) * half * (half * dawsn(z))
    return fnp.where(finite, out, x)


@library()
@special_docs
def binom(n: ArrayLike, k: ArrayLike) -> Array:
    """Binomial coefficient of real numbers, by gamma functions.

    Args:
      n: real array-like.
      k: real array-like.

    Special cases:
      nan for negative integers `n`.

    Example:
      >>> binom(4.0, 2.0).round(3)
      Array(6., dtype=float32)
    """

    def values(n: Any, k: Any) -> Any:
        whole = (n < 0) & (lax.floor(n) == n)
        n = fnp.where(whole, 1, n)
        # 1 / ((n + 1) B(n - k + 1, k + 1)), which is 0 at the poles.
        p, q = n - k + 1, k + 1
        pole = ((p <= 0) & (lax.floor(p) == p)) | ((q <= 0) & (lax.floor(q) == q))
        p, q = fnp.where(pole, 1, p), fnp.where(pole, 1, q)
        sign = gammasgn(n + 1) * gammasgn(p) * gammasgn(q)
        out = sign * lax.exp(-betaln(p, q)) / lax.abs(n + 1)
        both = (lax.floor(n) == n) & (lax.floor(k) == k) & (out < 2.0**52)
        rounded = fnp.round(lax.stop_gradient(out)) - lax.stop_gradient(out)
        out = out + fnp.where(both, rounded, 0)
        return fnp.where(whole, math.nan, fnp.where(pole, 0, out))

    return in_64_bits(values, "binom", n, k)


@library()
@special_docs
def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike) -> Array:
    """The Voigt profile: a normal density convolved with a Lorentzian one.

    Args:
      x: real array-like.
      sigma: non-negative real array-like: standard deviation of the normal one.
      gamma: non-negative real array-like: half the width at half the height of the
        other.

    Special cases:
      One of the two where the other has the width 0; inf at 0 where both have; nan
      where a width is negative.

    Example:
      >>> voigt_profile(0.0, 1.0, 1.0).round(4)
      Array(0.2087, dtype=float32)

    Source: `scipy.special.voigt_profile`; by the Faddeeva function.
    """

    def values(x: Any, sigma: Any, gamma: Any) -> Any:
        wide = sigma > 0
        scale = fnp.where(wide, sigma, 1) * math.sqrt(2)
        w = wofz(lax.complex(x / scale, gamma / scale))
        voigt = fnp.real(w) / (scale * math.sqrt(math.pi))
        lorentz = wide | (gamma <= 0)
        width, place = fnp.where(lorentz, 1, gamma), fnp.where(lorentz, 0, x)
        narrow = width / (place * place + width * width) / math.pi
        point = fnp.where(x == 0, math.inf, 0.0)
        out = fnp.where(wide, voigt, fnp.where(gamma > 0, narrow, point))
        known = (sigma >= 0) & (gamma >= 0) & (x == x)
        return fnp.where(known, out, math.nan)

    return in_64_bits(values, "voigt_profile", x, sigma, gamma)


@library()
@special_docs
def agm(a: ArrayLike, b: ArrayLike) -> Array:
    """Arithmetic-geometric mean.

    Args:
      a: real array-like.
      b: real array-like.

    Special cases:
      0 where one is 0; nan where the signs differ; that of two negative numbers is
      negative.

    Example:
      >>> agm(1.0, 2.0).round(4)
      Array(1.4568, dtype=float32)
    """

    def values(a: Any, b: Any) -> Any:
        sign = fnp.where((a < 0) & (b < 0), -1.0, 1.0)
        p, q = sign * a, sign * b
        plain = (p > 0) & (q > 0) & (p < math.inf) & (q < math.inf)
        p, q = fnp.where(plain, p, 1), fnp.where(plain, q, 1)

        def step(_: Any, pair: Any) -> Any:
            p, q = pair
            return 0.5 * p + 0.5 * q, lax.sqrt(p) * lax.sqrt(q)

        out = sign * lax.fori_loop(0, 16, step, (p, q))[0]
        unknown = (a != a) | (b != b) | (a * b < 0)
        zero = (a == 0) | (b == 0)
        large = (lax.abs(a) == math.inf) | (lax.abs(b) == math.inf)
        edge = fnp.where(zero & ~large, 0.0, math.nan)
        edge = fnp.where(large & ~zero & ~unknown, sign * math.inf, edge)
        return fnp.where(plain, out, fnp.where(unknown, math.nan, edge))

    return in_64_bits(values, "agm", a, b)
