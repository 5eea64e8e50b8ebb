"""Distributions with a parameter of noncentrality, and their inverses.

Noncentral chi² and F are mixtures of central ones with Poisson weights (DLMF 8; P.
Patnaik 1949): sums of positive terms, from the last one that counts downwards, where
the recurrence of the central distributions adds. Noncentral t is an integral over the
scale, whose integrand is positive, by the trapezoidal rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.lax.incomplete_beta import log_head
from fxflow.lax.incomplete_gamma import log_density
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits
from fxflow.scipy.special._roots import inverse_by
from fxflow.scipy.special.incomplete_beta import lower_tail
from fxflow.scipy.special.normal import log_ndtr

_docs = docs_of(
    """
x: real array-like.
f: real array-like.
t: real array-like.
df: positive real array-like: degrees of freedom.
dfn: positive real array-like: degrees of freedom of the numerator.
dfd: positive real array-like: degrees of freedom of the denominator.
nc: real array-like: the noncentrality.
p: real array-like from 0 to 1: the probability.
""",
    ", with derivatives with respect to all arguments",
)
_MOST = 1e5


# -- mixtures --------------------------------------------------------------------------


def _last_term(center: Any) -> Any:
    """Returns a number beyond which Poisson weights of a mean do not count."""
    more = 3 + 20 / (1 + 0.5 * lax.log1p(1 / fnp.maximum(center, 1e-30)))
    return lax.stop_gradient(lax.ceil(center + 9 * lax.sqrt(center) + more))


def _mixture(m: Any, center: Any, head: Any, ratio: Any, rise: Any, fall: Any) -> Any:
    """Returns ∑ exp(-m) mʲ/j! F(j), for F(j) = g(j) + F(j + 1).

    Args:
      m: the mean of the weights.
      center: where the terms are largest.
      head: log g(j), of j.
      ratio: F(j) / g(j), of j: for the first one.
      rise: g(j) / g(j - 1), of j.
      fall: m times `rise` over j, of j.
    """
    top = _last_term(center)

    def going(state: Any) -> Any:
        return fnp.any(state[0] > 0)

    def step(state: Any) -> Any:
        j, over, term, total = state
        live = j > 0
        at = fnp.where(live, j, 1)
        over = fnp.where(live, 1 + over * rise(at), over)
        term = fnp.where(live, term / fall(at), term)
        total = fnp.where(live, total + term * over, total)
        # Beyond the largest term those that do not count any more.
        small = live & (j < center) & (term * over < 1e-19 * total)
        return fnp.where(small, 0, j - 1), over, term, total

    first = ratio(top)
    one = 0 * first + 1
    _, _, _, total = lax.while_loop(going, step, (top, first, one, first))
    return lax.exp(log_density(top, m) + head(top)) * total


def _chi_values(x: Any, df: Any, nc: Any) -> Any:
    half, y, m = 0.5 * df, 0.5 * x, 0.5 * nc
    # Where both weights and probabilities fall.
    balance = 0.5 * (lax.sqrt(half * half + 4 * m * y) - half)
    center = lax.stop_gradient(fnp.minimum(m, balance))

    def ratio(j: Any) -> Any:
        a = half + j
        log = log_density(a, y)
        near = (log < -500) & (y < a)
        small = fnp.where(near, y, 0)

        def step(k: Any, state: Any) -> Any:
            term = state[0] * small / (a + fnp.asarray(k, a.dtype) + 1)
            return term, state[1] + term

        series = lax.fori_loop(0, 120, step, (0 * a + 1, 0 * a + 1))[1]
        a, z = fnp.where(near, 1, a), fnp.where(near, 1, y)
        far = lax.igamma(a, z) * lax.exp(-fnp.where(near, 0, fnp.maximum(log, -600)))
        return fnp.where(near, series, far)

    out = _mixture(
        m,
        center,
        lambda j: log_density(half + j, y),
        ratio,
        lambda j: y / (half + j),
        lambda j: m * y / (j * (half + j)),
    )
    # There the tail that is left out is below the smallest numbers.
    top = half + _last_term(center)
    sure = (y > top) & (log_density(top, y) < -600)
    return fnp.where(sure, 1, fnp.minimum(out, 1))


def _guarded(values: Any, positive: int) -> Callable[..., Any]:
    """Returns a distribution function for all arguments.

    Args:
      values: of x > 0, parameters > 0, and a noncentrality > 0.
      positive: the number of parameters between them.
    """

    def function(x: Any, *args: Any) -> Any:
        *others, nc = args
        known = (x == x) & (nc >= 0) & (nc <= _MOST)
        for other in others[:positive]:
            known = known & (other > 0) & (other < math.inf)
        inside = known & (x > 0) & (x < math.inf)
        safe = [fnp.where(inside, v, 1) for v in (x, *others)]
        # 0 is a limit without a logarithm; powers of 1e-60 are in the range.
        least = fnp.maximum(fnp.where(inside, nc, 1), 1e-60)
        out = values(*safe, least)
        out = fnp.where(inside, out, fnp.where(x > 0, 1.0, 0.0))
        return fnp.where(known, out, math.nan)

    return function


chndtr_of: Any = by_forward(_guarded(_chi_values, 1), None, None, None)


def _f_mixture(f: Any, dfn: Any, dfd: Any, nc: Any) -> Any:
    half, b, m = 0.5 * dfn, 0.5 * dfd, 0.5 * nc
    quotient = dfn * f / dfd
    y, rest = quotient / (1 + quotient), 1 / (1 + quotient)
    y = fnp.clip(y, 1e-300, 1)
    rest = fnp.maximum(rest, 1e-300)
    slope = half - m * y
    balance = 0.5 * (lax.sqrt(slope * slope + 4 * m * y * (half + b)) - slope)
    center = lax.stop_gradient(fnp.minimum(m, balance))

    def head(j: Any) -> Any:
        a = half + j
        return log_head(a, b, y, rest) - lax.log(a)

    def ratio(j: Any) -> Any:
        a = half + j
        log = head(a - half)
        near = log < -500
        small = fnp.where(near, y, 0)

        def step(k: Any, state: Any) -> Any:
            k = fnp.asarray(k, a.dtype)
            term = state[0] * small * (a + b + k) / (a + 1 + k)
            return term, state[1] + term

        series = lax.fori_loop(0, 120, step, (0 * a + 1, 0 * a + 1))[1]
        args = [
            fnp.where(near, v, w) for v, w in ((1, a), (1, b), (0.5, y), (0.5, rest))
        ]
        scale = lax.exp(-fnp.where(near, 0, fnp.maximum(log, -600)))
        return fnp.where(near, series, lower_tail(*args) * scale)

    out = _mixture(
        m,
        center,
        head,
        ratio,
        lambda j: y * (half + j - 1 + b) / (half + j),
        lambda j: m * y * (half + j - 1 + b) / (j * (half + j)),
    )
    return fnp.minimum(out, 1)


ncfdtr_of: Any = by_forward(_guarded(_f_mixture, 2), None, None, None, None)


# -- t ---------------------------------------------------------------------------------

_NODES = 110


def log_integral(
    log_integrand: Callable[[Any], Any], like: Any, peak: Any = None
) -> Any:
    """Returns the logarithm of an integral over w, by the trapezoidal rule.

    Args:
      log_integrand: of w: has one maximum, and falls doubly exponentially from it.
      like: float64 array of the result's shape.
      peak: about where the maximum is; None: it is searched.
    """

    # The peak by ternary search, then the ends of what counts.
    def narrow(_: Any, ends: Any) -> Any:
        a, b = ends
        c, d = a + (b - a) * 0.38, a + (b - a) * 0.62
        left = log_integrand(c) > log_integrand(d)
        return fnp.where(left, a, c), fnp.where(left, d, b)

    low, high = 0 * like - 6.5, 0 * like + 7.0
    if peak is None:
        a, b = lax.fori_loop(0, 36, narrow, (low, high))
        peak = 0.5 * (a + b)
    peak = lax.stop_gradient(peak)
    most = log_integrand(peak)

    def halve(_: Any, ends: Any) -> Any:
        (a, b), (c, d) = ends
        e, f = 0.5 * (a + b), 0.5 * (c + d)
        out_left = log_integrand(e) < most - 40
        out_right = log_integrand(f) < most - 40
        left = fnp.where(out_left, e, a), fnp.where(out_left, b, e)
        right = fnp.where(out_right, c, f), fnp.where(out_right, f, d)
        return left, right

    (a, _), (_, d) = lax.fori_loop(0, 9, halve, ((low, peak), (peak, high)))
    a, d = lax.stop_gradient(a), lax.stop_gradient(d)
    h = (d - a) / _NODES
    shift = lax.stop_gradient(most)

    def step(k: Any, total: Any) -> Any:
        w = a + h * fnp.asarray(k, like.dtype)
        return total + lax.exp(log_integrand(w) - shift)

    return shift + lax.log(lax.fori_loop(0, _NODES + 1, step, 0 * like) * h)


def log_t_integral(kernel: Callable[[Any, Any], Any], t: Any, df: Any, nc: Any) -> Any:
    """Returns log ∫ exp(kernel(t u - nc, log u)) f(u) du.

    f is the density of √(χ²/df). The scale is u = exp(w - exp(-w)), so that the
    integrand falls doubly exponentially on both sides.

    Args:
      kernel: the logarithm of a positive function, which the integrand has a factor of.
      t: float64 array.
      df: positive, of its shape.
      nc: of its shape.
    """

    def log_integrand(w: Any) -> Any:
        v = w - lax.exp(-w)
        u = lax.exp(v)
        body = df * (v - 0.5 * u * u + 0.5) + lax.log1p(lax.exp(-w))
        return body + kernel(t * u - nc, v)

    # 2 (df/2)^(df/2) exp(-df/2) / Γ(df/2).
    half = 0.5 * df
    size = log_density(half, half) + lax.log(df)
    return size + log_integral(log_integrand, t)


def _nct_values(t: Any, df: Any, nc: Any) -> Any:
    known = (t == t) & (df > 0) & (lax.abs(nc) <= 1e8)
    inside = known & (lax.abs(t) < math.inf) & (df <= 1e10)
    args = [fnp.where(inside, v, w) for v, w in ((t, 0), (df, 1), (nc, 0))]
    out = lax.exp(log_t_integral(lambda z, log_u: log_ndtr(z), *args))
    # Normal in the limit.
    normal = lax.exp(
        log_ndtr(fnp.where(lax.abs(t) < math.inf, t, 0) - fnp.where(known, nc, 0))
    )
    out = fnp.where(df > 1e10, normal, out)
    out = fnp.where(t == math.inf, 1, fnp.where(t == -math.inf, 0, out))
    return fnp.where(known, fnp.minimum(out, 1), math.nan)


nctdtr_of: Any = by_forward(_nct_values, None, None, None)


# -- what users call -------------------------------------------------------------------


@library(quick=True)
@_docs
def chndtr(x: ArrayLike, df: ArrayLike, nc: ArrayLike) -> Array:
    """Probability that a noncentral chi² variable is at most `x`.

    Takes steps in proportion to the square root of `nc`, of which 1e5 is the most.

    Special cases:
      `x` not above 0 → 0; inf → 1; parameters outside their ranges: nan.

    Example:
      >>> chndtr(3.0, 2.0, 1.0).round(4)
      Array(0.6206, dtype=float32)
    """
    return in_64_bits(chndtr_of, "chndtr", x, df, nc)


@library(quick=True)
@_docs
def ncfdtr(dfn: ArrayLike, dfd: ArrayLike, nc: ArrayLike, f: ArrayLike) -> Array:
    """Probability that a noncentral F variable is at most `f`.

    Takes steps in proportion to the square root of `nc`, of which 1e5 is the most.

    Special cases:
      `f` not above 0 → 0; inf → 1; parameters outside their ranges: nan.

    Example:
      >>> ncfdtr(2.0, 3.0, 1.5, 1.0).round(4)
      Array(0.3611, dtype=float32)
    """
    of = lambda dfn, dfd, nc, f: ncfdtr_of(f, dfn, dfd, nc)
    return in_64_bits(of, "ncfdtr", dfn, dfd, nc, f)


@library(quick=True)
@_docs
def nctdtr(df: ArrayLike, nc: ArrayLike, t: ArrayLike) -> Array:
    """Probability that a variable with the noncentral t distribution is at most `t`.

    Special cases:
      -inf → 0; inf → 1; normal for infinite `df`; `df` not positive: nan.

    Example:
      >>> nctdtr(3.0, 0.5, 1.0).round(4)
      Array(0.6515, dtype=float32)
    """
    return in_64_bits(lambda df, nc, t: nctdtr_of(t, df, nc), "nctdtr", df, nc, t)


_by_x = inverse_by(chndtr_of, "positive", rising=True)
_by_df = inverse_by(lambda df, x, nc: chndtr_of(x, df, nc), "positive", rising=False)
_by_nc = inverse_by(lambda nc, x, df: chndtr_of(x, df, nc), "positive", rising=False)


def _with_ends(known: Any, p: Any, least: float, value: Any) -> Any:
    """Returns quantiles, at 0 and 1 the ends of the support, for known parameters."""
    edge = fnp.where(p == 0, least, fnp.where(p == 1, math.inf, math.nan))
    return fnp.where(known & (edge == edge), edge, value)


@library(quick=True)
@_docs
def chndtrix(p: ArrayLike, df: ArrayLike, nc: ArrayLike) -> Array:
    """Inverse of `chndtr(x, df, nc)` in `x`.

    Special cases:
      0 → 0; 1 → inf; outside: nan.

    Example:
      >>> chndtrix(0.6206, 2.0, 1.0).round(2)
      Array(3., dtype=float32)
    """

    def of(p: Any, df: Any, nc: Any) -> Any:
        known = (df > 0) & (nc >= 0) & (nc <= _MOST)
        return _with_ends(known, p, 0.0, _by_x(p, df, nc))

    return in_64_bits(of, "chndtrix", p, df, nc)


@library(quick=True)
@_docs
def chndtridf(x: ArrayLike, p: ArrayLike, nc: ArrayLike) -> Array:
    """Inverse of `chndtr(x, df, nc)` in `df`.

    Special cases:
      No root: nan.

    Example:
      >>> chndtridf(3.0, 0.6206, 1.0).round(2)
      Array(2., dtype=float32)
    """
    return in_64_bits(lambda x, p, nc: _by_df(p, x, nc), "chndtridf", x, p, nc)


@library(quick=True)
@_docs
def chndtrinc(x: ArrayLike, df: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `chndtr(x, df, nc)` in `nc`.

    Special cases:
      No root: nan.

    Example:
      >>> chndtrinc(3.0, 2.0, 0.6206).round(2)
      Array(1., dtype=float32)
    """
    return in_64_bits(lambda x, df, p: _by_nc(p, x, df), "chndtrinc", x, df, p)


_by_f = inverse_by(ncfdtr_of, "positive", rising=True)
_by_t = inverse_by(nctdtr_of, "real", rising=True)
_by_shift = inverse_by(lambda nc, t, df: nctdtr_of(t, df, nc), "real", rising=False)


@library(quick=True)
@_docs
def ncfdtri(dfn: ArrayLike, dfd: ArrayLike, nc: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `ncfdtr(dfn, dfd, nc, f)` in `f`.

    Special cases:
      0 → 0; 1 → inf; outside: nan.

    Example:
      >>> ncfdtri(2.0, 3.0, 1.5, 0.3611).round(2)
      Array(1., dtype=float32)
    """

    def of(dfn: Any, dfd: Any, nc: Any, p: Any) -> Any:
        known = (dfn > 0) & (dfd > 0) & (nc >= 0) & (nc <= _MOST)
        return _with_ends(known, p, 0.0, _by_f(p, dfn, dfd, nc))

    return in_64_bits(of, "ncfdtri", dfn, dfd, nc, p)


_by_nc_of_f = inverse_by(
    lambda nc, dfn, dfd, f: ncfdtr_of(f, dfn, dfd, nc), "positive", rising=False
)


@library(quick=True)
@_docs
def ncfdtrinc(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, f: ArrayLike) -> Array:
    """Inverse of `ncfdtr(dfn, dfd, nc, f)` in `nc`.

    Special cases:
      No root: nan.

    Example:
      >>> ncfdtrinc(2.0, 3.0, 0.3611, 1.0).round(2)
      Array(1.5, dtype=float32)
    """
    of = lambda dfn, dfd, p, f: _by_nc_of_f(p, dfn, dfd, f)
    return in_64_bits(of, "ncfdtrinc", dfn, dfd, p, f)


def _by_either(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes an inverse of a probability that may fall first and rise later."""
    up, down = (inverse_by(function, "size", rising=rising) for rising in (True, False))

    def either(p: Any, *others: Any) -> Any:
        first = up(p, *others)
        return fnp.where(first == first, first, down(p, *others))

    return either


_by_dfd = _by_either(lambda dfd, dfn, nc, f: ncfdtr_of(f, dfn, dfd, nc))
_by_dfn = _by_either(lambda dfn, dfd, nc, f: ncfdtr_of(f, dfn, dfd, nc))
_by_df_of_t = inverse_by(lambda df, t, nc: nctdtr_of(t, df, nc), "size", rising=True)


@library(quick=True)
@_docs
def ncfdtridfd(dfn: ArrayLike, p: ArrayLike, nc: ArrayLike, f: ArrayLike) -> Array:
    """Inverse by `dfd` of `ncfdtr(dfn, dfd, nc, f)`.

    Special cases:
      No root, or none found: nan. There may be two, of which it is one.

    Example:
      >>> ncfdtridfd(2.0, 0.3611, 1.5, 1.0).round(1)
      Array(3., dtype=float32)
    """
    of = lambda dfn, p, nc, f: _by_dfd(p, dfn, nc, f)
    return in_64_bits(of, "ncfdtridfd", dfn, p, nc, f)


@library(quick=True)
@_docs
def ncfdtridfn(p: ArrayLike, dfd: ArrayLike, nc: ArrayLike, f: ArrayLike) -> Array:
    """Inverse by `dfn` of `ncfdtr(dfn, dfd, nc, f)`.

    Special cases:
      No root, or none found: nan. There may be two, of which it is one.

    Example:
      >>> ncfdtridfn(0.3754, 3.0, 1.5, 1.0).round(1)
      Array(10., dtype=float32)
    """
    of = lambda p, dfd, nc, f: _by_dfn(p, dfd, nc, f)
    return in_64_bits(of, "ncfdtridfn", p, dfd, nc, f)


@library(quick=True)
@_docs
def nctdtridf(p: ArrayLike, nc: ArrayLike, t: ArrayLike) -> Array:
    """Inverse by `df` of `nctdtr(df, nc, t)`.

    Special cases:
      No root: nan.

    Example:
      >>> nctdtridf(0.6515, 0.5, 1.0).round(1)
      Array(3., dtype=float32)
    """

    def of(p: Any, nc: Any, t: Any) -> Any:
        sign = fnp.where(t < 0, -1.0, 1.0)
        return _by_df_of_t(fnp.where(t < 0, 1 - p, p), sign * t, sign * nc)

    return in_64_bits(of, "nctdtridf", p, nc, t)


@library(quick=True)
@_docs
def nctdtrit(df: ArrayLike, nc: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `nctdtr(df, nc, t)` in `t`.

    Special cases:
      0 → -inf; 1 → inf; outside: nan.

    Example:
      >>> nctdtrit(3.0, 0.5, 0.6515).round(2)
      Array(1., dtype=float32)
    """

    def of(df: Any, nc: Any, p: Any) -> Any:
        return _with_ends((df > 0) & (nc == nc), p, -math.inf, _by_t(p, df, nc))

    return in_64_bits(of, "nctdtrit", df, nc, p)


@library(quick=True)
@_docs
def nctdtrinc(df: ArrayLike, p: ArrayLike, t: ArrayLike) -> Array:
    """Inverse of `nctdtr(df, nc, t)` in `nc`.

    Special cases:
      No root: nan.

    Example:
      >>> nctdtrinc(3.0, 0.6515, 1.0).round(2)
      Array(0.5, dtype=float32)
    """
    return in_64_bits(lambda df, p, t: _by_shift(p, t, df), "nctdtrinc", df, p, t)
