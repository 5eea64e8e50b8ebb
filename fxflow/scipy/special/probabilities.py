"""Probabilities of classical distributions, and inverses, as in SciPy.

Each is a face of the incomplete beta or gamma function. As in SciPy, numbers of events
are rounded down, those of trials, failures and successes towards 0; none of them has a
derivative.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import docs_of, in_64_bits
from fxflow.scipy.special.incomplete_beta import inverse_of, tail_of
from fxflow.scipy.special.inverses import gammainccinv_of, gammaincinv_of

_docs = docs_of(
    """
a: positive real array-like.
b: positive real array-like.
dfn: positive real array-like: degrees of freedom of the numerator.
dfd: positive real array-like: degrees of freedom of the denominator.
k: real array-like: the number of events.
m: real array-like: the expected number of events.
n: real array-like: the number of trials, or of successes.
p: real array-like from 0 to 1: the probability.
x: real array-like.
y: real array-like from 0 to 1: the probability.
""",
    ", with derivatives with respect to the real arguments",
)


def _valid(condition: Any, value: Any) -> Any:
    return fnp.where(condition, value, math.nan)


def _gamma(upper: bool, rate: Any, shape: Any, x: Any) -> Any:
    known, x = x >= 0, rate * x
    tail = (lax.igammac if upper else lax.igamma)(shape, fnp.abs(x))
    return _valid(known & (x >= 0), tail)


def _whole(n: Any) -> Any:
    """Returns a number without its fraction, nan for an infinite one."""
    n = _valid(n - n == 0, n)
    return fnp.where(n < 0, lax.ceil(n), lax.floor(n))


# -- counts ----------------------------------------------------------------------------


def _binomial(upper: bool, k: Any, n: Any, p: Any) -> Any:
    k, n = lax.floor(k), _whole(n)
    inner = (k >= 0) & (k < n)
    tail = tail_of(
        upper, fnp.where(inner, n - k, 1), fnp.where(inner, k + 1, 1), 1 - p, p
    )
    known = (p >= 0) & (p <= 1) & (n >= k)
    first = 1.0 if upper else math.nan
    edge = fnp.where(k < 0, first, 0.0 if upper else 1.0)
    return _valid(known & (k == k), fnp.where(inner, tail, edge))


def _binomial_inverse(k: Any, n: Any, y: Any) -> Any:
    k, n = lax.floor(k), _whole(n)
    inner = (k >= 0) & (k < n)
    out = inverse_of(fnp.where(inner, n - k, 1), fnp.where(inner, k + 1, 1), y, 1 - y)
    return _valid(inner, out[1])


def _negative_binomial(upper: bool, k: Any, n: Any, p: Any) -> Any:
    k, n = _whole(k), _whole(n)
    known = (k >= 0) & (n > 0)
    some = fnp.where(known, n, 1), fnp.where(known, k, 0) + 1
    return _valid(known, tail_of(upper, *some, p, 1 - p))


def _negative_binomial_inverse(k: Any, n: Any, y: Any) -> Any:
    k, n = _whole(k), _whole(n)
    known = (k >= 0) & (n > 0)
    some = fnp.where(known, n, 1), fnp.where(known, k, 0) + 1
    return _valid(known, inverse_of(*some, y, 1 - y)[0])


def _poisson(upper: bool, k: Any, m: Any) -> Any:
    known = (k >= 0) & (m >= 0)
    value = (lax.igamma if upper else lax.igammac)(
        fnp.where(known, lax.floor(k) + 1, 1), fnp.where(known, m, 1)
    )
    return _valid(known, value)


def _f(upper: bool, dfn: Any, dfd: Any, x: Any) -> Any:
    far = x == math.inf
    known = (dfn > 0) & (dfd > 0) & (far | (dfd < math.inf)) & (x >= 0)
    ratio = dfn * fnp.where(known & ~far, x, 1) / dfd
    low, high = ratio / (1 + ratio), 1 / (1 + ratio)
    tail = tail_of(upper, 0.5 * dfn, 0.5 * dfd, low, high)
    return _valid(known, fnp.where(far, 0.0 if upper else 1.0, tail))


def _f_inverse(dfn: Any, dfd: Any, p: Any) -> Any:
    out = inverse_of(0.5 * dfn, 0.5 * dfd, p, 1 - p)
    return dfd / dfn * (out[0] / out[1])


@library(quick=True)
@_docs
def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of at most `k` successes of `n` trials.

    Special cases:
      Below 0, or `k` above `n`: nan.

    Example:
      >>> bdtr(1.0, 3.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda k, n, p: _binomial(False, k, n, p)
    return in_64_bits(of, "bdtr", k, n, p)


@library(quick=True)
@_docs
def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of more than `k` successes of `n` trials.

    Special cases:
      `k` below 0 → 1; above `n`: nan.

    Example:
      >>> bdtrc(1.0, 3.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda k, n, p: _binomial(True, k, n, p)
    return in_64_bits(of, "bdtrc", k, n, p)


@library(quick=True)
@_docs
def bdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of `bdtr(k, n, p)` in `p`.

    Special cases:
      `k` below 0 or not below `n`: nan.

    Example:
      >>> bdtri(1.0, 3.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = _binomial_inverse
    return in_64_bits(of, "bdtri", k, n, y)


@library(quick=True)
@_docs
def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of at most `k` failures before `n` successes.

    Special cases:
      `k` below 0, or `n` not positive: nan.

    Example:
      >>> nbdtr(1.0, 2.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda k, n, p: _negative_binomial(False, k, n, p)
    return in_64_bits(of, "nbdtr", k, n, p)


@library(quick=True)
@_docs
def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of more than `k` failures before `n` successes.

    Special cases:
      `k` below 0, or `n` not positive: nan.

    Example:
      >>> nbdtrc(1.0, 2.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda k, n, p: _negative_binomial(True, k, n, p)
    return in_64_bits(of, "nbdtrc", k, n, p)


@library(quick=True)
@_docs
def nbdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of `nbdtr(k, n, p)` in `p`.

    Special cases:
      `k` below 0, or `n` not positive: nan.

    Example:
      >>> nbdtri(1.0, 2.0, 0.5).round(4)
      Array(0.5, dtype=float32)
    """
    of = _negative_binomial_inverse
    return in_64_bits(of, "nbdtri", k, n, y)


@library(quick=True)
@_docs
def pdtr(k: ArrayLike, m: ArrayLike) -> Array:
    """Probability of at most `k` events, where `m` are expected.

    Special cases:
      Negative arguments: nan.

    Example:
      >>> pdtr(1.0, 2.0).round(4)
      Array(0.406, dtype=float32)
    """
    of = lambda k, m: _poisson(False, k, m)
    return in_64_bits(of, "pdtr", k, m)


@library(quick=True)
@_docs
def pdtrc(k: ArrayLike, m: ArrayLike) -> Array:
    """Probability of more than `k` events, where `m` are expected.

    Special cases:
      Negative arguments: nan.

    Example:
      >>> pdtrc(1.0, 2.0).round(4)
      Array(0.594, dtype=float32)
    """
    of = lambda k, m: _poisson(True, k, m)
    return in_64_bits(of, "pdtrc", k, m)


@library(quick=True)
@_docs
def pdtri(k: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of `pdtr(k, m)` in `m`.

    Special cases:
      `k` negative, or `y` outside [0, 1): nan.

    Example:
      >>> pdtri(1.0, 0.406).round(4)
      Array(2., dtype=float32)
    """

    def of(k: Any, y: Any) -> Any:
        k = _whole(k)
        return _valid((k >= 0) & (y < 1), gammainccinv_of(k + 1, y))

    return in_64_bits(of, "pdtri", k, y)


# -- continuous variables --------------------------------------------------------------


@library(quick=True)
@_docs
def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a variable with the F distribution is at most `x`.

    Special cases:
      Negative `x`, or infinite `dfd`: nan.

    Example:
      >>> fdtr(2.0, 4.0, 1.0).round(4)
      Array(0.5556, dtype=float32)
    """
    of = lambda dfn, dfd, x: _f(False, dfn, dfd, x)
    return in_64_bits(of, "fdtr", dfn, dfd, x)


@library(quick=True)
@_docs
def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a variable with the F distribution is above `x`.

    Special cases:
      Negative `x`, or infinite `dfd`: nan.

    Example:
      >>> fdtrc(2.0, 4.0, 1.0).round(4)
      Array(0.4444, dtype=float32)
    """
    of = lambda dfn, dfd, x: _f(True, dfn, dfd, x)
    return in_64_bits(of, "fdtrc", dfn, dfd, x)


@library(quick=True)
@_docs
def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `fdtr(dfn, dfd, x)` in `x`.

    Special cases:
      0 → 0; 1 → inf; outside [0, 1]: nan.

    Example:
      >>> fdtri(2.0, 4.0, 0.5).round(4)
      Array(0.8284, dtype=float32)
    """
    of = _f_inverse
    return in_64_bits(of, "fdtri", dfn, dfd, p)


@library(quick=True)
@_docs
def gdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a gamma variable of rate `a` and shape `b` is at most `x`.

    Special cases:
      Negative `a`, `b` or `x`: nan.

    Example:
      >>> gdtr(1.0, 2.0, 3.0).round(4)
      Array(0.8009, dtype=float32)
    """
    of = lambda a, b, x: _gamma(False, a, b, x)
    return in_64_bits(of, "gdtr", a, b, x)


@library(quick=True)
@_docs
def gdtrc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a gamma variable of rate `a` and shape `b` is above `x`.

    Special cases:
      Negative `a`, `b` or `x`: nan.

    Example:
      >>> gdtrc(1.0, 2.0, 3.0).round(4)
      Array(0.1991, dtype=float32)
    """
    of = lambda a, b, x: _gamma(True, a, b, x)
    return in_64_bits(of, "gdtrc", a, b, x)


@library(quick=True)
@_docs
def gdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `gdtr(a, b, x)` in `a`.

    Special cases:
      0 → 0; 1 → inf; outside [0, 1], or `x` of 0: nan.

    Example:
      >>> gdtria(0.5, 2.0, 3.0).round(4)
      Array(0.5594, dtype=float32)
    """
    of = lambda p, b, x: _valid(x != 0, gammaincinv_of(b, p) / x)
    return in_64_bits(of, "gdtria", p, b, x)


@library(quick=True)
@_docs
def gdtrix(a: ArrayLike, b: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `gdtr(a, b, x)` in `x`.

    Special cases:
      0 → 0; 1 → inf; outside [0, 1], or `a` infinite: nan.

    Example:
      >>> gdtrix(1.0, 2.0, 0.5).round(4)
      Array(1.6783, dtype=float32)
    """
    of = lambda a, b, p: _valid(a < math.inf, gammaincinv_of(b, p) / a)
    return in_64_bits(of, "gdtrix", a, b, p)
