"""Distributions of counts."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.entropies import entr, xlog1py, xlogy
from fxflow.scipy.special.gammas import betaln, gammaln
from fxflow.scipy.stats._building import from_tails
from fxflow.scipy.stats._discrete import Discrete, raw_of_factorial
from fxflow.scipy.stats._domains import (
    COUNT,
    INSIDE_UNIT,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    WHOLE,
)
from fxflow.scipy.stats._extremes import central
from fxflow.scipy.stats._tails import Tails, beta_tails, gamma_tails

LOG_2PI = math.log(2 * math.pi)


def _p(p: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _np(n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _nab(n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _mu(mu: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _mus(mu1: ArrayLike, mu2: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _a(a: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _mnn(M: ArrayLike, n: ArrayLike, N: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _lambda(lambda_: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _lambda_n(lambda_: ArrayLike, N: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _range(low: ArrayLike, high: ArrayLike, loc: ArrayLike = 0) -> None: ...


def _over(x: Any, y: Any, at_zero: float = math.nan) -> Any:
    """Returns x / y, or a number where y is 0, with no derivative there."""
    return fnp.where(y == 0, at_zero, x / fnp.where(y == 0, 1, y))


def _falling(x: Any, count: int) -> Any:
    """Returns x (x - 1) … of `count` factors."""
    return math.prod((x - j for j in range(1, count)), start=x)


# -- trials ----------------------------------------------------------------------------

bernoulli: Final = Discrete(
    "bernoulli",
    "One trial: 1 with probability p, or 0.",
    _p,
    p=PROBABILITY,
    support=(0, 1),
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    cdf=lambda k, p: 1 - p,
    sf=lambda k, p: p + 0 * k,
    ppf=lambda q, p: fnp.where(q <= 1 - p, 0.0 * p, 1.0 + 0 * p),
    isf=lambda q, p: fnp.where(q >= p, 0.0 * p, 1.0 + 0 * p),
    mean=lambda p: p,
    var=lambda p: p * (1 - p),
    skew=lambda p: _over(1 - 2 * p, fnp.sqrt(p * (1 - p))),
    kurtosis=lambda p: _over(1 - 6 * p * (1 - p), p * (1 - p)),
    entropy=lambda p: entr(p) + entr(1 - p),
)


def log_chosen(n: Any, k: Any) -> Any:
    """Returns log C(n, k)."""
    return -lax.log1p(n) - betaln(n - k + 1, k + 1)


def _with_ends(p: Any, tails: Any, at_0: float, at_1: float) -> Tails:
    """Returns tails where p is between 0 and 1; the lower one is known at both.

    Args:
      p: a probability.
      tails: of a probability that is neither 0 nor 1.
      at_0: the logarithm of the lower tail where p is 0.
      at_1: that where p is 1.
    """
    inner = (p > 0) & (p < 1)
    found = tails(fnp.where(inner, p, 0.5))
    ends = fnp.where(p == 0, at_0, at_1)
    return Tails(fnp.where(inner, found.log, ends), found.lower | ~inner)


def _binom_tails(k: Any, n: Any, p: Any) -> Tails:
    # Below the last of the support n - k is positive.
    m = fnp.maximum(n - k, 1)
    tails = lambda p: beta_tails(m, k + 1, 1 - p, p)
    return _with_ends(p, tails, 0.0, -math.inf)


binom: Final = Discrete(
    "binom",
    "The number of successes in n trials.",
    _np,
    n=COUNT,
    p=PROBABILITY,
    support=(0, lambda n, p: n),
    logpmf=lambda k, n, p: log_chosen(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
    **from_tails(_binom_tails),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1 - p),
    skew=lambda n, p: _over(1 - 2 * p, fnp.sqrt(n * p * (1 - p))),
    kurtosis=lambda n, p: _over(1 - 6 * p * (1 - p), n * p * (1 - p)),
    factorial=lambda r, n, p: _falling(n, r) * p**r,
)


def _nbinom_tails(k: Any, n: Any, p: Any) -> Tails:
    # With probability 0 no trial succeeds, with 1 all do.
    tails = lambda p: beta_tails(n, k + 1, p, 1 - p)
    return _with_ends(p, tails, -math.inf, 0.0)


nbinom: Final = Discrete(
    "nbinom",
    "The number of failures before the n-th success.",
    _np,
    p=PROBABILITY,
    logpmf=lambda k, n, p: (
        -lax.log(n + k) - betaln(n, k + 1) + xlogy(n, p) + xlog1py(k, -p)
    ),
    **from_tails(_nbinom_tails),
    mean=lambda n, p: _over(n * (1 - p), p, math.inf),
    var=lambda n, p: _over(n * (1 - p), p * p, math.inf),
    skew=lambda n, p: _over(2 - p, fnp.sqrt(n * (1 - p))),
    kurtosis=lambda n, p: 6 / n + _over(p * p, n * (1 - p)),
    factorial=lambda r, n, p: (
        _falling(n + r - 1, r) * _over((1 - p) ** r, p**r, math.inf)
    ),
)


def _geom_logsf(k: Any, p: Any) -> Any:
    return xlog1py(k, -p)


geom: Final = Discrete(
    "geom",
    "The number of trials up to the first success.",
    _p,
    p=PROBABILITY,
    support=(1, math.inf),
    logpmf=lambda k, p: xlog1py(k - 1, -p) + lax.log(p),
    cdf=lambda k, p: -lax.expm1(_geom_logsf(k, p)),
    sf=lambda k, p: lax.exp(_geom_logsf(k, p)),
    logsf=_geom_logsf,
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    skew=lambda p: _over(2 - p, fnp.sqrt(1 - p)),
    kurtosis=lambda p: 6 + _over(p * p, 1 - p),
    factorial=lambda r, p: math.factorial(r) * (1 / p - 1) ** r,
    entropy=lambda p: (entr(p) + entr(1 - p)) / p,
)

# -- events ----------------------------------------------------------------------------

# Up to this mean the sum is taken, over as many numbers as matter in 64 bits.
_SUMMED, _TERMS = 40.0, 128


def _poisson_entropy(mu: Any) -> Any:
    near = mu < _SUMMED
    m = fnp.where(near & (mu > 0), mu, 1)

    def add(carry: Any, k: Any) -> Any:
        total, term = carry
        # The terms are p(k) log k!.
        total = total + term * gammaln(k + 1)
        return (total, term * m / (k + 1)), None

    ks = lax.iota(m.aval.dtype, _TERMS)
    (total, _), _ = lax.scan(add, (lax.full_like(m, 0), lax.exp(-m)), ks)
    summed = m - m * lax.log(m) + total
    # The asymptotic series (Evans and Boersma 1988, "The entropy of a Poisson
    # distribution").
    y = 1 / fnp.where(near, _SUMMED, mu)
    series = y * (1 / 12 + y * (1 / 24 + y * (19 / 360 + y * (9 / 80))))
    series = series + y**5 * (863 / 2520 + y * (1375 / 1008 + y * (33953 / 5040)))
    large = 0.5 * (LOG_2PI + 1 - lax.log(y)) - series
    return fnp.where(mu == 0, 0, fnp.where(near, summed, large))


def _poisson_tails(k: Any, mu: Any) -> Tails:
    none = mu == 0
    log, lower = gamma_tails(k + 1, fnp.where(none, 1, mu))
    # The lower tail of a count is the upper one of the time that it takes.
    return Tails(fnp.where(none, 0, log), none | ~lower)


poisson: Final = Discrete(
    "poisson",
    "The number of independent events, mu on average.",
    _mu,
    mu=NOT_NEGATIVE,
    logpmf=lambda k, mu: xlogy(k, mu) - mu - gammaln(k + 1),
    **from_tails(_poisson_tails),
    mean=lambda mu: mu,
    var=lambda mu: mu,
    skew=lambda mu: _over(1.0, fnp.sqrt(mu), math.inf),
    kurtosis=lambda mu: _over(1.0, mu, math.inf),
    factorial=lambda r, mu: mu**r,
    entropy=_poisson_entropy,
)


def _skellam_logpmf(k: Any, m: Any, n: Any) -> Any:
    """Returns the logarithm of the sum of products of Poisson probabilities."""
    made = by_forward(_skellam_sum, None, None, None)
    return made(*operands("skellam.logpmf", k, m, n))


def _skellam_sum(k: Any, m: Any, n: Any) -> Any:
    # Σ m^(j+k) n^j / (j! (j+k)!) for k ≥ 0: from the greatest term outward.
    size = abs(k)
    lead = fnp.where(k >= 0, m, n)
    top = lax.stop_gradient(lax.floor(0.5 * (fnp.sqrt(size * size + 4 * m * n) - size)))
    log = (
        (top + size) * lax.log(lead)
        + top * lax.log(m * n / lead)
        - gammaln(top + 1)
        - gammaln(top + size + 1)
        - m
        - n
    )
    tiny = 0.01 * float(fnp.finfo(k.dtype).eps)

    def going(state: Any) -> Any:
        i, *_, active = state
        return (i < 100_000) & fnp.any(active)

    def step(state: Any) -> Any:
        i, up, down, total, active = state
        up = up * (m * n) / ((top + i) * (top + i + size))
        back = top - i + 1
        down = down * fnp.maximum(back, 0) * (back + size) / (m * n)
        more = up + down
        total = fnp.where(active, total + more, total)
        return i + 1, up, down, total, active & (more > tiny * total)

    one = lax.full_like(k, 1)
    state = (lax.full((), 1, k.dtype), one, one, one, k == k)
    total = lax.while_loop(going, step, state)[3]
    return log + lax.log(total)


skellam: Final = Discrete(
    "skellam",
    "The difference of two Poisson variables.",
    _mus,
    support=(-math.inf, math.inf),
    logpmf=_skellam_logpmf,
    mean=lambda m, n: m - n,
    var=lambda m, n: m + n,
    skew=lambda m, n: (m - n) / (m + n) ** 1.5,
    kurtosis=lambda m, n: 1 / (m + n),
)

# -- drawing without replacement, or with a random probability -------------------------

betabinom: Final = Discrete(
    "betabinom",
    "The number of successes in n trials whose probability is a beta variable.",
    _nab,
    n=COUNT,
    support=(0, lambda n, a, b: n),
    logpmf=lambda k, n, a, b: (
        log_chosen(n, k) + betaln(k + a, n - k + b) - betaln(a, b)
    ),
    mean=lambda n, a, b: n * a / (a + b),
    var=lambda n, a, b: n * (a / (a + b)) * (b / (a + b)) * (a + b + n) / (a + b + 1),
    factorial=lambda r, n, a, b: (
        _falling(n, r) * _falling(a + r - 1, r) / _falling(a + b + r - 1, r)
    ),
)


def _hypergeom_logpmf(k: Any, total: Any, good: Any, drawn: Any) -> Any:
    bad = total - good
    return log_chosen(good, k) + log_chosen(bad, drawn - k) - log_chosen(total, drawn)


def _hypergeom_var(total: Any, good: Any, drawn: Any) -> Any:
    share = good / total
    return drawn * share * (1 - share) * (total - drawn) / fnp.maximum(total - 1, 1)


hypergeom: Final = Discrete(
    "hypergeom",
    "How many of N objects, drawn from M, are of the n good ones.",
    _mnn,
    M=COUNT.but(2.0),
    n=COUNT,
    N=COUNT,
    joint=lambda M, n, N: (n <= M) & (N <= M),
    support=(
        lambda M, n, N: fnp.maximum(0, N - (M - n)),
        lambda M, n, N: fnp.minimum(n, N),
    ),
    logpmf=_hypergeom_logpmf,
    mean=lambda M, n, N: N * n / M,
    var=_hypergeom_var,
)

# -- ranks and integers ----------------------------------------------------------------


def _logser_factorial(r: int, p: Any) -> Any:
    return math.factorial(r - 1) * (p / (1 - p)) ** r / -lax.log1p(-p)


_logser_raw = raw_of_factorial(_logser_factorial, 0)
_LOGSER_CENTRAL = central(_logser_raw)


def _logser_central(name: str, p: Any) -> Any:
    # The sum has more digits for small p, and too many terms for large p.
    wide = p > 0.9
    by_sum = logser.averaged(name)(fnp.where(wide, 0.5, p))
    return fnp.where(wide, _LOGSER_CENTRAL[name](fnp.where(wide, p, 0.95)), by_sum)


logser: Final = Discrete(
    "logser",
    "The logarithmic distribution: probabilities p^k / k.",
    _p,
    p=INSIDE_UNIT,
    support=(1, math.inf),
    logpmf=lambda k, p: xlogy(k, p) - lax.log(k) - lax.log(-lax.log1p(-p)),
    mean=lambda p: -p / ((1 - p) * lax.log1p(-p)),
    var=lambda p: -p * (p + lax.log1p(-p)) / ((1 - p) * lax.log1p(-p)) ** 2,
    skew=lambda p: _logser_central("skew", p),
    kurtosis=lambda p: _logser_central("kurtosis", p),
    raw=_logser_raw,
)


def _dlaplace_cdf(k: Any, a: Any) -> Any:
    low = lax.exp(a * fnp.minimum(k, -1) + a) / (lax.exp(a) + 1)
    high = lax.exp(-a * (fnp.maximum(k, 0) + 1)) / (1 + lax.exp(-a))
    return fnp.where(k >= 0, 1 - high, low)


dlaplace: Final = Discrete(
    "dlaplace",
    "The discrete Laplace distribution: probabilities exp(-a |k|).",
    _a,
    support=(-math.inf, math.inf),
    logpmf=lambda k, a: lax.log(fnp.tanh(0.5 * a)) - a * abs(k),
    cdf=_dlaplace_cdf,
    sf=lambda k, a: _dlaplace_cdf(-k - 1, a),
    logcdf=lambda k, a: fnp.where(
        k >= 0,
        lax.log1p(-_dlaplace_cdf(-fnp.maximum(k, 0) - 1, a)),
        a * (fnp.minimum(k, -1) + 1) - fnp.logaddexp(a, 0),
    ),
    logsf=lambda k, a: fnp.where(
        k >= 0,
        -a * fnp.maximum(k, 0) - fnp.logaddexp(a, 0),
        lax.log1p(-_dlaplace_cdf(fnp.minimum(k, -1), a)),
    ),
    mean=lambda a: 0.0 * a,
    var=lambda a: 0.5 / lax.square(lax.sinh(0.5 * a)),
    skew=lambda a: 0.0 * a,
    kurtosis=lambda a: lax.cosh(a) + 2 - 3.0,
)

boltzmann: Final = Discrete(
    "boltzmann",
    "A geometric variable under the condition that it is below N.",
    _lambda_n,
    lambda_=POSITIVE,
    N=COUNT,
    joint=lambda lambda_, N: N > 0,
    support=(0, lambda lambda_, N: N - 1),
    logpmf=lambda k, a, n: (
        lax.log(-lax.expm1(-a)) - a * k - lax.log(-lax.expm1(-a * n))
    ),
    cdf=lambda k, a, n: lax.expm1(-a * (k + 1)) / lax.expm1(-a * n),
    sf=lambda k, a, n: (
        lax.exp(-a * (k + 1)) * lax.expm1(-a * (n - k - 1)) / lax.expm1(-a * n)
    ),
    mean=lambda a, n: 1 / lax.expm1(a) - n / lax.expm1(a * n),
)

planck: Final = Discrete(
    "planck",
    "The Planck distribution: a geometric variable of rate `lambda_`.",
    _lambda,
    logpmf=lambda k, a: lax.log(-lax.expm1(-a)) - a * k,
    cdf=lambda k, a: -lax.expm1(-a * (k + 1)),
    sf=lambda k, a: lax.exp(-a * (k + 1)),
    logsf=lambda k, a: -a * (k + 1),
    mean=lambda a: 1 / lax.expm1(a),
    var=lambda a: lax.exp(-a) / lax.square(lax.expm1(-a)),
    skew=lambda a: 2 * lax.cosh(0.5 * a),
    kurtosis=lambda a: 4 + 2 * lax.cosh(a),
    factorial=lambda r, a: math.factorial(r) / lax.expm1(a) ** r,
    entropy=lambda a: -lax.log(-lax.expm1(-a)) + a / lax.expm1(a),
)

randint: Final = Discrete(
    "randint",
    "Uniform integers of low … high - 1.",
    _range,
    low=WHOLE,
    high=WHOLE.but(1.0),
    joint=lambda low, high: low < high,
    support=(lambda low, high: low, lambda low, high: high - 1),
    logpmf=lambda k, low, high: -lax.log(high - low) + 0 * k,
    cdf=lambda k, low, high: (k + 1 - low) / (high - low),
    sf=lambda k, low, high: (high - 1 - k) / (high - low),
    mean=lambda low, high: 0.5 * (low + high - 1),
    var=lambda low, high: (lax.square(high - low) - 1) / 12,
    skew=lambda low, high: 0.0 * low,
    kurtosis=lambda low, high: (
        -1.2 * (lax.square(high - low) + 1) / (lax.square(high - low) - 1)
    ),
    entropy=lambda low, high: lax.log(high - low),
)
