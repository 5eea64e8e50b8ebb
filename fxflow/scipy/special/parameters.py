"""Inverses of distribution functions by a parameter, as SciPy's.

Roots of the functions, with derivatives of implicit functions.
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
from fxflow.scipy.special._roots import inverse_by
from fxflow.scipy.special._tukey import tukey_log_tail
from fxflow.scipy.special.incomplete_beta import stdtr_of, tail_of
from fxflow.scipy.special.normal import ndtri

_docs = docs_of(
    """
a: positive real array-like.
b: positive real array-like.
dfn: positive real array-like: degrees of freedom of the numerator.
k: real array-like: the number of events.
m: positive real array-like: the expected number of events.
mn: real array-like: the mean.
n: real array-like: the number of trials, or of successes.
p: real array-like from 0 to 1: the probability.
std: real array-like: the standard deviation.
t: real array-like.
x: real array-like.
y: real array-like from 0 to 1: the probability.
""",
    ", with derivatives with respect to all arguments",
)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return tail_of(False, a, b, x, 1 - x)


def _f(dfd: Any, dfn: Any, x: Any) -> Any:
    ratio = dfn * x / dfd
    return tail_of(False, 0.5 * dfn, 0.5 * dfd, ratio / (1 + ratio), 1 / (1 + ratio))


def _of_trials(rest: Any, k: Any, p: Any) -> Any:
    return tail_of(False, rest, k + 1, 1 - p, p)


def _successes(part: Any, n: Any, p: Any) -> Any:
    k = part * (n + 1)
    return tail_of(False, n + 1 - k, k, 1 - p, p)


_bdtrik = inverse_by(_successes, "unit", rising=True)
_bdtrin = inverse_by(_of_trials, "positive", rising=False)
_btdtria = inverse_by(_beta, "positive", rising=False)
_btdtrib = inverse_by(lambda b, a, x: _beta(a, b, x), "positive", rising=True)
_igamma = inverse_by(lambda a, x: lax.igamma(a, x), "positive", rising=False)
_igammac = inverse_by(lambda a, x: lax.igammac(a, x), "positive", rising=True)
_fdtridfd = inverse_by(_f, "size", rising=True)


@library(quick=True)
@_docs
def bdtrik(y: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `bdtr(k, n, p)` in `k`, a real number.

    Special cases:
      Below 0 → 0; outside: nan.

    Example:
      >>> bdtrik(0.5, 10.0, 0.3).round(2)
      Array(2.43, dtype=float32)
    """
    of = lambda y, n, p: fnp.maximum(_bdtrik(y, n, p) * (n + 1) - 1, 0)
    return in_64_bits(of, "bdtrik", y, n, p)


@library(quick=True)
@_docs
def bdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `bdtr(k, n, p)` in `n`, a real number.

    Special cases:
      No root: nan.

    Example:
      >>> bdtrin(3.0, 0.5, 0.3).round(2)
      Array(11.9, dtype=float32)
    """
    of = lambda k, y, p: k + _bdtrin(y, k, p)
    return in_64_bits(of, "bdtrin", k, y, p)


@library(quick=True)
@_docs
def btdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `betainc(a, b, x)` in `a`.

    Special cases:
      No root: nan.

    Example:
      >>> btdtria(0.25, 1.0, 0.5).round(3)
      Array(2., dtype=float32)
    """
    of = lambda p, b, x: _btdtria(p, b, x)
    return in_64_bits(of, "btdtria", p, b, x)


@library(quick=True)
@_docs
def btdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `betainc(a, b, x)` in `b`.

    Special cases:
      No root: nan.

    Example:
      >>> btdtrib(2.0, 0.25, 0.5).round(3)
      Array(1., dtype=float32)
    """
    of = lambda a, p, x: _btdtrib(p, a, x)
    return in_64_bits(of, "btdtrib", a, p, x)


@library(quick=True)
@_docs
def chdtriv(p: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `chdtr(v, x)` in `v`.

    Special cases:
      No root: nan.

    Example:
      >>> chdtriv(0.3935, 1.0).round(2)
      Array(2., dtype=float32)
    """
    of = lambda p, x: 2 * _igamma(p, 0.5 * x)
    return in_64_bits(of, "chdtriv", p, x)


@library(quick=True)
@_docs
def fdtridfd(dfn: ArrayLike, p: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `fdtr(dfn, dfd, x)` in `dfd`.

    Special cases:
      No root: nan.

    Example:
      >>> fdtridfd(2.0, 0.5, 0.8).round(2)
      Array(4.95, dtype=float32)
    """
    of = lambda dfn, p, x: _fdtridfd(p, dfn, x)
    return in_64_bits(of, "fdtridfd", dfn, p, x)


@library(quick=True)
@_docs
def gdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike) -> Array:
    """Inverse of `gdtr(a, b, x)` in `b`.

    Special cases:
      No root: nan.

    Example:
      >>> gdtrib(1.0, 0.5, 1.6783).round(3)
      Array(2., dtype=float32)
    """
    of = lambda a, p, x: _igamma(p, a * x)
    return in_64_bits(of, "gdtrib", a, p, x)


@library(quick=True)
@_docs
def nbdtrik(y: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `nbdtr(k, n, p)` in `k`, a real number.

    Special cases:
      Below 0 → 0; outside: nan.

    Example:
      >>> nbdtrik(0.5, 4.0, 0.3).round(2)
      Array(7.9, dtype=float32)
    """
    of = lambda y, n, p: fnp.maximum(_btdtrib(y, n, p) - 1, 0)
    return in_64_bits(of, "nbdtrik", y, n, p)


@library(quick=True)
@_docs
def nbdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `nbdtr(k, n, p)` in `n`, a real number.

    Special cases:
      No root: nan.

    Example:
      >>> nbdtrin(8.0, 0.5, 0.3).round(2)
      Array(4.04, dtype=float32)
    """
    of = lambda k, y, p: _btdtria(y, k + 1, p)
    return in_64_bits(of, "nbdtrin", k, y, p)


@library(quick=True)
@_docs
def pdtrik(p: ArrayLike, m: ArrayLike) -> Array:
    """Inverse of `pdtr(k, m)` in `k`, a real number.

    Special cases:
      Below 0 → 0; outside: nan.

    Example:
      >>> pdtrik(0.5, 3.0).round(2)
      Array(2.33, dtype=float32)
    """
    of = lambda p, m: fnp.maximum(_igammac(p, m) - 1, 0)
    return in_64_bits(of, "pdtrik", p, m)


@library(quick=True)
@_docs
def nrdtrimn(p: ArrayLike, std: ArrayLike, x: ArrayLike) -> Array:
    """Mean of a normal distribution of which a value has a probability.

    Special cases:
      Outside: nan.

    Example:
      >>> nrdtrimn(0.5, 1.0, 2.0).round(3)
      Array(2., dtype=float32)
    """
    of = lambda p, std, x: x - std * ndtri(p)
    return in_64_bits(of, "nrdtrimn", p, std, x)


@library(quick=True)
@_docs
def nrdtrisd(mn: ArrayLike, p: ArrayLike, x: ArrayLike) -> Array:
    """Standard deviation of a normal distribution with a given quantile.

    Special cases:
      p not between 0 and 1: nan.

    Example:
      >>> nrdtrisd(0.0, 0.84134, 2.0).round(2)
      Array(2., dtype=float32)
    """

    def of(mn: Any, p: Any, x: Any) -> Any:
        inside = (p > 0) & (p < 1)
        value = (x - mn) / ndtri(fnp.where(inside, p, 0.75))
        return fnp.where(inside, value, math.nan)

    return in_64_bits(of, "nrdtrisd", mn, p, x)


def _df(p: Any, t: Any) -> Any:
    """Returns Student's degrees of freedom, by the tail below -|t|."""
    tail = fnp.where(t > 0, 1 - p, p)
    return _stdtridf(tail, -lax.abs(t))


_stdtridf = inverse_by(stdtr_of, "size", rising=False)


@library(quick=True)
@_docs
def stdtridf(p: ArrayLike, t: ArrayLike) -> Array:
    """Inverse of `stdtr(df, t)` in `df`.

    Special cases:
      No root, also for t = 0: nan.

    Example:
      >>> stdtridf(0.8045, 1.0).round(2)
      Array(3., dtype=float32)
    """
    of = lambda p, t: _df(p, t)
    return in_64_bits(of, "stdtridf", p, t)


# -- Tukey's lambda distribution -------------------------------------------------------


def _tukey(x: Any, c: Any) -> Any:
    known = (x - x == 0) & (c - c == 0)
    c = fnp.where(known, c, 0)
    # From the lower half, where probabilities have their digits.
    low = -lax.abs(fnp.where(known, x, 0))
    beyond = (c > 0) & (low * c <= -1)
    tail = lax.exp(tukey_log_tail(fnp.where(beyond, 0, low), c))
    p = fnp.where(beyond, 0, tail)
    p = fnp.where(x > 0, 1 - p, p)
    far = fnp.where(x == math.inf, 1.0, fnp.where(x == -math.inf, 0.0, math.nan))
    return fnp.where(known, p, fnp.where(c == c, far, math.nan))


@library(quick=True)
@docs_of(
    """
x: real array-like.
lmbda: real array-like: the shape.
""",
    ", with derivatives with respect to both arguments",
)
def tklmbda(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Distribution function of Tukey's lambda distribution.

    Special cases:
      0 and 1 beyond ±1 / lmbda, if `lmbda` is positive.

    Example:
      >>> tklmbda(0.5, 0.0).round(4)
      Array(0.6225, dtype=float32)
    """
    return in_64_bits(_tukey, "tklmbda", x, lmbda)
