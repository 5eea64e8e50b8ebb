"""Combinations, permutations, factorials, Stirling and Bernoulli numbers.

Also Box and Cox's transformation.
"""

from __future__ import annotations

import functools
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
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import (
    expm1_over,
    operands,
    safe,
    special_docs,
)
from fxflow.scipy.special.gammas import betaln, poch
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


def _inexact_only(name: str, exact: bool) -> None:
    if exact:
        raise ArgumentError(
            f"{name}: exact=True is not supported, because integers here have a "
            "fixed width: use Python's integers"
        )


@library("exact")
@special_docs
def perm(N: ArrayLike, k: ArrayLike, exact: bool = False) -> Array:
    """Number of permutations: of N things taken k at a time, in order.

    Args:
      N: real array-like.
      k: real array-like.
      exact: not supported: the integers of arrays have a fixed width.

    Special cases:
      0 where `N` or `k` is negative or `k` greater than `N`.

    Example:
      >>> perm(5, 2).round(3)
      Array(20., dtype=float32)
    """
    _inexact_only("perm", exact)
    n, k = operands("perm", N, k)
    known = (k >= 0) & (n >= k) & (n >= 0)
    m, j = safe(known, n, 1), safe(known, k, 0)
    value = poch(m - j + 1, j)
    # Numbers of things are integers, as long as they are exact.
    whole = (lax.floor(m) == m) & (lax.floor(j) == j)
    near = value < 0.1 / float(fnp.finfo(value.dtype).eps)
    exact_part = lax.stop_gradient(fnp.round(value) - value)
    value = value + fnp.where(whole & near, exact_part, 0)
    out = fnp.where(known, value, 0)
    return fnp.where((n != n) | (k != k), math.nan, out)


@functools.lru_cache(maxsize=32)
def _factorials(k: int) -> Any:
    """Returns n (n - k) (n - 2 k) … of n = 0, 1, … as long as floats hold it."""
    numbers = [1]
    while numbers[-1] < 2**1024 and len(numbers) < 20_000:
        n = len(numbers)
        numbers.append(n * (numbers[n - k] if n > k else 1))
    return np.array([float(v) if v < 2**1023 else math.inf for v in numbers])


def _of_table(name: str, table: Any, n: Any) -> Array:
    """Returns numbers of a table at integers: 0 below, inf above, nan elsewhere."""
    (n,) = operands(name, n)
    dtype = n.aval.dtype
    n = convert(n, dtypes.float64)
    whole = (lax.floor(n) == n) & (n >= 0)
    place = convert(fnp.where(whole, fnp.minimum(n, len(table) - 1), 0), dtypes.int32)
    values = fnp.asarray(table, dtypes.float64)
    out = fnp.where(whole, fnp.take(values, place), math.nan)
    return convert(fnp.where(n < 0, 0, out), dtype)


@library("exact")
@special_docs
def factorial2(n: ArrayLike, exact: bool = False) -> Array:
    """Double factorial n (n - 2) (n - 4) … of integers.

    There is no derivative: it is defined of integers only.

    Args:
      n: real array-like of integers.
      exact: not supported: the integers of arrays have a fixed width.

    Special cases:
      Negative numbers → 0; no integer: nan; too large: inf.

    Example:
      >>> factorial2(7.0)
      Array(105., dtype=float32)
    """
    _inexact_only("factorial2", exact)
    return _of_table("factorial2", _factorials(2), n)


@library("k", "exact")
@special_docs
def factorialk(n: ArrayLike, k: int, exact: bool = False) -> Array:
    """Factorial of every k-th number, n (n - k) (n - 2 k) …, of integers.

    There is no derivative: it is defined of integers only.

    Args:
      n: real array-like of integers.
      k: positive Python integer: the step.
      exact: not supported: the integers of arrays have a fixed width.

    Special cases:
      Negative numbers → 0; no integer: nan; too large, or above 20,000: inf.

    Example:
      >>> factorialk(8.0, 3)
      Array(80., dtype=float32)
    """
    _inexact_only("factorialk", exact)
    k = integer("factorialk", "k", k)
    if k < 1:
        raise ArgumentError(f"factorialk: k must be positive, got {k}")
    return _of_table("factorialk", _factorials(k), n)


#: From this `n` on the largest of Stirling's numbers are beyond 64 bits.
_STIRLING = 219


@functools.lru_cache(maxsize=1)
def _partitions() -> Any:
    """Returns S(n, k) for n up to `_STIRLING`, exactly rounded."""
    rows = [[1]]
    for n in range(1, _STIRLING + 1):
        last = [*rows[-1], 0]
        rows.append([0] + [k * last[k] + last[k - 1] for k in range(1, n + 1)])
    out = np.zeros((_STIRLING + 1, _STIRLING + 1))
    for n, row in enumerate(rows):
        out[n, : n + 1] = [float(v) for v in row]
    return out


@library("exact")
@special_docs
def stirling2(N: ArrayLike, K: ArrayLike, *, exact: bool = False) -> Array:
    """Stirling number of the second kind: partitions of N things into K sets.

    Exactly rounded. There is no derivative: it is defined of integers only.

    Args:
      N: real array-like of integers up to 219.
      K: real array-like of integers.
      exact: not supported: the integers of arrays have a fixed width.

    Special cases:
      0 where `N` or `K` is negative or `K` greater than `N`; no integers, or `N` above
      219: nan.

    Example:
      >>> stirling2(5, 2)
      Array(15., dtype=float32)
    """
    _inexact_only("stirling2", exact)
    given = operands("stirling2", N, K)
    n, k = (convert(a, dtypes.float64) for a in given)
    whole = (lax.floor(n) == n) & (lax.floor(k) == k) & (n <= _STIRLING)
    inside = whole & (k >= 0) & (n >= k)
    place = fnp.where(inside, n, 0) * (_STIRLING + 1) + fnp.where(inside, k, 0)
    table = fnp.asarray(_partitions().ravel(), dtypes.float64)
    found = fnp.take(table, convert(place, dtypes.int32))
    out = fnp.where(whole, fnp.where(inside, found, 0), math.nan)
    return convert(out, given[0].aval.dtype)


def euler(n: int) -> Array:
    """Returns Euler's numbers E0 … En, those of odd numbers being 0.

    Args:
      n: the last one's number.

    Returns:
      Float array[n + 1].

    Raises:
      ArgumentError: `n` is negative or no integer.

    Example:
      >>> euler(4)
      Array([ 1.,  0., -1.,  0.,  5.], dtype=float32)

    Source: `scipy.special.euler`; the exact recurrence for small numbers, their limit
    for large ones (DLMF 24.11.3).
    """
    n = integer("euler", "n", n)
    if n < 0:
        raise ArgumentError(f"euler: n must not be negative, got {n}")
    numbers = [1]
    for m in range(1, min(n // 2, 40) + 1):
        numbers.append(-sum(math.comb(2 * m, 2 * k) * e for k, e in enumerate(numbers)))
    values = np.zeros(n + 1)
    for m in range(n // 2 + 1):
        if m < len(numbers):
            values[2 * m] = float(numbers[m])
            continue
        # 2 (2 m)! (2 / π)^(2 m + 1), times a sum that is 1 in 64 bits from here on.
        log = math.lgamma(2 * m + 1) + (2 * m + 1) * math.log(2 / math.pi)
        size = 2 * math.exp(log) if log < 708 else math.inf
        values[2 * m] = -size if m % 2 else size
    with np.errstate(over="ignore"):
        return fnp.asarray(values, dtypes.default_float())


def bernoulli(n: int) -> Array:
    """Returns the Bernoulli numbers B0 … Bn, B1 being -1/2.

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

    Example:
      >>> boxcox1p(np.array([0.0, 1.0]), 2.0)
      Array([0. , 1.5], dtype=float32)
    """
    x, power = operands("boxcox1p", x, lmbda)
    out: Array = _boxcox1p(x, power)
    return out


def _by_power(log: Array, power: Array) -> Array:
    """Returns the derivative in the power, ∫ u log² exp(u power log) du from 0 to 1."""
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
