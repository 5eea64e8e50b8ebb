"""Numbers of combinations, Bernoulli's numbers, Box and Cox's transformation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import (
    expm1_over,
    operands,
    safe,
    special_docs,
)
from fxflow.scipy.special.gammas import betaln
from fxflow.transforms.custom_jvp import custom_jvp


@library("repetition")
@special_docs
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Number of combinations: of N things taken k at a time.

    Args:
      N: real array-like.
      k: real array-like.
      repetition: whether a thing may be taken several times.

    Special cases:
      0 where `N` or `k` is negative or `k` greater than `N`.

    Example:
      >>> comb(5, 2).round(3)
      Array(10., dtype=float32)
    """
    n, k = operands("comb", N, k)
    if repetition:
        # N + k - 1 things in their order, but for none of none.
        none = (k == 0) & (n >= 0)
        n = n + k - 1
    else:
        none = lax.full(k.aval.shape, False)
    known = (k >= 0) & (n >= k) & (n >= 0)
    m, j = safe(known, n, 1), safe(known, k, 0)
    value = lax.exp(-lax.log1p(m) - betaln(m - j + 1, j + 1))
    # Numbers of things are integers, as long as they are exact.
    whole = (lax.floor(m) == m) & (lax.floor(j) == j)
    near = value < 0.1 / float(fnp.finfo(value.dtype).eps)
    exact = lax.stop_gradient(fnp.round(value) - value)
    value = value + fnp.where(whole & near, exact, 0)
    out = fnp.where(known, value, fnp.where(none, 1, 0))
    return fnp.where((n != n) | (k != k), math.nan, out)


def bernoulli(n: int) -> Array:
    """Returns Bernoulli's numbers B0 … Bn, B1 being -1/2.

    Args:
      n: the last one's number.

    Returns:
      Float array[n + 1].

    Raises:
      ArgumentError: `n` is negative or no integer.

    Example:
      >>> bernoulli(4)
      Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
            dtype=float32)

    Source: `scipy.special.bernoulli`; the exact recurrence for small numbers, the zeta
    function for large ones.
    """
    n = integer("bernoulli", "n", n)
    if n < 0:
        raise ArgumentError(f"bernoulli: n must not be negative, got {n}")
    numbers = [Fraction(1)]
    for m in range(1, min(n, 40) + 1):
        total = sum(math.comb(m + 1, k) * numbers[k] for k in range(m))
        numbers.append(-Fraction(total) / (m + 1))
    values = [float(v) for v in numbers]
    for m in range(len(values), n + 1):
        if m % 2:
            values.append(0.0)
            continue
        # 2 m! / (2π)^m, times a zeta function that is 1 in 64 bits from here on.
        log = math.log(2) + math.lgamma(m + 1) - m * math.log(2 * math.pi)
        size = math.exp(log) if log < 709 else math.inf
        values.append(-size if m % 4 == 0 else size)
    with np.errstate(over="ignore"):
        return fnp.asarray(np.array(values), dtypes.default_float())


@library()
@special_docs
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation: (x^lmbda - 1) / lmbda, log(x) where `lmbda` is 0.

    Args:
      lmbda: real array-like: the power.

    Special cases:
      Negative `x` → nan.

    Example:
      >>> boxcox(4.0, 2.0)
      Array(7.5, dtype=float32, weak_type=True)
    """
    x, power = operands("boxcox", x, lmbda)
    out: Array = _boxcox(x, power)
    return out


@library()
@special_docs
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation of 1 + x, exact near 0.

    Args:
      lmbda: real array-like: the power.

    Special cases:
      `x` below -1 → nan.
    """
    x, power = operands("boxcox1p", x, lmbda)
    out: Array = _boxcox1p(x, power)
    return out


def _by_power(log: Array, power: Array) -> Array:
    """Returns the derivative by the power, ∫ u log² exp(u power log) du from 0 to 1."""
    y = power * log
    near = lax.abs(y) < 1
    z = safe(near, y, 0)
    near = near | (power == 0)
    series = fnp.zeros_like(z)
    for k in range(20, -1, -1):
        series = series * z + 1 / (math.factorial(k) * (k + 2))
    far = safe(~near & (y != -math.inf), y, -100)
    far = ((far - 1) * lax.exp(far) + 1) / lax.square(safe(~near, power, 1))
    return fnp.where(near, lax.square(log) * series, far)


def _less_one(log: Array, power: Array) -> Array:
    """Returns exp((power - 1) log)."""
    linear = (power == 1) & (log == log)
    return fnp.where(linear, 1, lax.exp((power - 1) * safe(~linear, log, 0)))


@custom_jvp
def _boxcox(x: Any, power: Any) -> Any:
    return expm1_over(power, lax.log(x))


@custom_jvp
def _boxcox1p(x: Any, power: Any) -> Any:
    return expm1_over(power, lax.log1p(x))


_boxcox.defjvps(
    lambda t, out, x, power: t * _less_one(lax.log(x), power),
    lambda t, out, x, power: t * _by_power(lax.log(x), power),
)
_boxcox1p.defjvps(
    lambda t, out, x, power: t * _less_one(lax.log1p(x), power),
    lambda t, out, x, power: t * _by_power(lax.log1p(x), power),
)
