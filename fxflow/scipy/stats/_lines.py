"""Distributions on the whole line: two-sided ones, and generalized logistic ones."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.lax.gammas import EULER
from fxflow.scipy.special._operands import expm1_over, log1p_over
from fxflow.scipy.special.gammas import betaln, gammaln
from fxflow.scipy.special.normal import log_ndtr, ndtri, ndtri_exp
from fxflow.scipy.special.order_zero_one import k1e
from fxflow.scipy.special.zeta_functions import zeta
from fxflow.scipy.stats._building import (
    LOG_SQRT_2PI,
    ZETA_3,
    from_middle,
    gamma_quantile,
    through_beta,
    two_sided,
)
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import ABOVE_ONE, POSITIVE, REAL, Domain
from fxflow.scipy.stats._extremes import central
from fxflow.scipy.stats._normals import log_phi
from fxflow.scipy.stats._positives import log_rest
from fxflow.scipy.stats._signatures import (
    shape_a,
    shape_c,
    shape_kappa,
    shapes_ab,
    shapes_beta_m,
    shapes_hk,
)
from fxflow.scipy.stats._tails import gamma_tails

# -- even densities --------------------------------------------------------------------


def _log_gamma_tail(z: Any, a: Any) -> Any:
    return gamma_tails(a, z).logarithm(upper=True)


dgamma: Final = Continuous(
    "dgamma",
    "A gamma variable with a random sign.",
    shape_a,
    logpdf=lambda z, a: (a - 1) * lax.log(abs(z)) - abs(z) - gammaln(a) - math.log(2),
    **two_sided(_log_gamma_tail, lambda q, a: gamma_quantile(a, q, upper=True)),
    var=lambda a: a * (a + 1),
    kurtosis=lambda a: (a + 2) * (a + 3) / (a * (a + 1)) - 3,
    entropy=lambda a: a + gammaln(a) + (1 - a) * lax.digamma(a) + math.log(2),
    symmetric=True,
)


def _power(z: Any, c: Any) -> Any:
    return lax.exp(c * lax.log(z))


dweibull: Final = Continuous(
    "dweibull",
    "A Weibull variable with a random sign.",
    shape_c,
    logpdf=lambda z, c: (
        lax.log(0.5 * c) + (c - 1) * lax.log(abs(z)) - _power(abs(z), c)
    ),
    **two_sided(lambda z, c: -_power(z, c), lambda q, c: _power(-lax.log(q), 1 / c)),
    var=lambda c: lax.exp(gammaln(1 + 2 / c)),
    kurtosis=lambda c: lax.exp(gammaln(1 + 4 / c) - 2 * gammaln(1 + 2 / c)) - 3,
    entropy=lambda c: EULER * (1 - 1 / c) - lax.log(c) + 1 + math.log(2),
    symmetric=True,
)

# -- one side unlike the other ---------------------------------------------------------


def _crystal_parts(beta: Any, m: Any) -> tuple[Any, Any, Any]:
    """Returns log N, and log of the mass of the power's side; and m / beta - beta."""
    log_side = lax.log(m / (beta * (m - 1))) - 0.5 * beta * beta
    log_total = fnp.logaddexp(log_side, LOG_SQRT_2PI + log_ndtr(beta))
    return -log_total, log_side - log_total, m / beta - beta


def _crystal_logpdf(z: Any, beta: Any, m: Any) -> Any:
    log_norm, _, edge = _crystal_parts(beta, m)
    far = z <= -beta
    away = fnp.where(far, edge - z, 1)
    power = m * lax.log(m / beta) - 0.5 * beta * beta - m * lax.log(away)
    return log_norm + fnp.where(far, power, -0.5 * z * z)


def _crystal_logcdf(z: Any, beta: Any, m: Any) -> Any:
    _, log_side, edge = _crystal_parts(beta, m)
    far = z <= -beta
    away = fnp.where(far, edge - z, 1)
    low = log_side + (m - 1) * (lax.log(m / beta) - lax.log(away))
    return fnp.where(far, low, log_rest(_crystal_core(fnp.where(far, 0, z), beta, m)))


def _crystal_core(z: Any, beta: Any, m: Any) -> Any:
    """Returns the logarithm of the upper tail on the normal side."""
    return _crystal_parts(beta, m)[0] + LOG_SQRT_2PI + log_ndtr(-z)


def _crystal_logsf(z: Any, beta: Any, m: Any) -> Any:
    far = z <= -beta
    low = _crystal_logcdf(fnp.where(far, z, -beta), beta, m)
    return fnp.where(far, log_rest(low), _crystal_core(z, beta, m))


def _crystal_quantile(lower: Any, log_upper: Any, beta: Any, m: Any) -> Any:
    log_norm, log_side, edge = _crystal_parts(beta, m)
    far = lower < lax.exp(log_side)
    log = lax.log(fnp.where(far, lower, 0.5)) - log_side
    low = edge - m / beta * lax.exp(log / (1 - m))
    near = fnp.where(far, log_norm + LOG_SQRT_2PI - math.log(2), log_upper)
    return fnp.where(far, low, -ndtri_exp(near - log_norm - LOG_SQRT_2PI))


def _crystal_raw(n: int, beta: Any, m: Any) -> Any:
    known = m > n + 1
    m = fnp.where(known, m, n + 2)
    log_norm, _, edge = _crystal_parts(beta, m)
    drop = lax.exp(-0.5 * beta * beta)
    mass = lax.exp(LOG_SQRT_2PI + log_ndtr(beta))
    normal = (
        mass,
        drop,
        mass - beta * drop,
        (beta * beta + 2) * drop,
        3 * mass - beta * (beta * beta + 3) * drop,
    )[n]
    power = sum(
        math.comb(n, j)
        * edge ** (n - j)
        * (-1) ** j
        * (m / beta) ** (j + 1)
        / (m - j - 1)
        for j in range(n + 1)
    )
    value = lax.exp(log_norm) * (normal + drop * power)
    return fnp.where(known, value, math.inf if n % 2 == 0 else -math.inf)


def _crystal_entropy(beta: Any, m: Any) -> Any:
    log_norm, log_side, _ = _crystal_parts(beta, m)
    half = 0.5 * beta * beta
    square = lax.exp(LOG_SQRT_2PI + log_ndtr(beta)) - beta * lax.exp(-half)
    side = lax.exp(log_side) * (m / (m - 1) + half)
    return 0.5 * lax.exp(log_norm) * square + side - log_norm


crystalball: Final = Continuous(
    "crystalball",
    "A normal density whose lower tail beyond -beta is a power of order m.",
    shapes_beta_m,
    m=ABOVE_ONE,
    logpdf=_crystal_logpdf,
    logcdf=_crystal_logcdf,
    logsf=_crystal_logsf,
    ppf=lambda q, beta, m: _crystal_quantile(q, lax.log1p(-q), beta, m),
    isf=lambda q, beta, m: _crystal_quantile(1 - q, lax.log(q), beta, m),
    **central(_crystal_raw),
    entropy=_crystal_entropy,
)


def _laplace_parts(kappa: Any) -> tuple[Any, Any, Any]:
    """Returns log of the masses above and below 0, and kappa + 1 / kappa."""
    both = kappa + 1 / kappa
    return -lax.log(kappa * both), lax.log(kappa / both), both


def _laplace_log(z: Any, kappa: Any, upper: bool) -> Any:
    above, below, _ = _laplace_parts(kappa)
    up = z >= 0
    far = fnp.where(up, above - kappa * z, below + z / kappa)
    return fnp.where(up == upper, far, lax.log1p(-lax.exp(far)))


def _laplace_quantile(log_lower: Any, log_upper: Any, kappa: Any) -> Any:
    above, below, _ = _laplace_parts(kappa)
    return fnp.where(
        log_lower < below,
        kappa * (log_lower - below),
        (above - log_upper) / kappa,
    )


laplace_asymmetric: Final = Continuous(
    "laplace_asymmetric",
    "The Laplace distribution with rates kappa above 0, and 1 / kappa below.",
    shape_kappa,
    logpdf=lambda z, kappa: (
        fnp.where(z >= 0, -kappa * z, z / kappa) - lax.log(kappa + 1 / kappa)
    ),
    logcdf=lambda z, kappa: _laplace_log(z, kappa, False),
    logsf=lambda z, kappa: _laplace_log(z, kappa, True),
    ppf=lambda q, kappa: _laplace_quantile(lax.log(q), lax.log1p(-q), kappa),
    isf=lambda q, kappa: _laplace_quantile(lax.log1p(-q), lax.log(q), kappa),
    mean=lambda kappa: 1 / kappa - kappa,
    var=lambda kappa: 1 / kappa**2 + kappa**2,
    skew=lambda kappa: 2 * (1 - kappa**6) / (1 + kappa**4) ** 1.5,
    kurtosis=lambda kappa: 6 * (1 + kappa**8) / (1 + kappa**4) ** 2,
    entropy=lambda kappa: 1 + lax.log(kappa + 1 / kappa),
)


def _skewed_half(z: Any, a: Any) -> Any:
    """Returns the tail beyond z on its own side of 0."""
    width = fnp.where(z > 0, 1 + a, 1 - a)
    return width * lax.atan2(width, abs(z)) / math.pi


def _skewcauchy_ppf(q: Any, a: Any, upper: bool = False) -> Any:
    lower = 1 - q if upper else q
    rest = q if upper else 1 - q
    below = lower < 0.5 * (1 - a)
    angle = math.pi * fnp.where(below, lower / (1 - a), rest / (1 + a))
    return fnp.where(below, -(1 - a), 1 + a) / lax.tan(angle)


_SKEW = Domain(
    "real array-like between -1 and 1",
    lambda x: abs(x) < 1,
    0.0,
    lax.tanh,
    lax.atanh,
)
skewcauchy: Final = Continuous(
    "skewcauchy",
    "The Cauchy distribution, 1 + a times as wide above 0, 1 - a times below.",
    shape_a,
    a=_SKEW,
    logpdf=lambda z, a: (
        -math.log(math.pi) - lax.log1p((z / fnp.where(z > 0, 1 + a, 1 - a)) ** 2)
    ),
    cdf=lambda z, a: fnp.where(z > 0, 1 - _skewed_half(z, a), _skewed_half(z, a)),
    sf=lambda z, a: fnp.where(z > 0, _skewed_half(z, a), 1 - _skewed_half(z, a)),
    ppf=_skewcauchy_ppf,
    isf=lambda q, a: _skewcauchy_ppf(q, a, upper=True),
    mean=lambda a: math.nan + 0 * a,
    var=lambda a: math.nan + 0 * a,
    skew=lambda a: math.nan + 0 * a,
    kurtosis=lambda a: math.nan + 0 * a,
    entropy=lambda a: math.log(4 * math.pi) + 0 * a,
)


def _jf_share(z: Any, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    square = a + b + z * z
    root = z / fnp.sqrt(square)
    small = 0.5 * (a + b) / square / (1 + abs(root))
    up = z > 0
    return a, b, fnp.where(up, 1 - small, small), fnp.where(up, small, 1 - small)


def _jf_logpdf(z: Any, a: Any, b: Any) -> Any:
    _, _, x, y = _jf_share(z, a, b)
    return (
        (a + 0.5) * lax.log(2 * x)
        + (b + 0.5) * lax.log(2 * y)
        - (a + b - 1) * math.log(2)
        - betaln(a, b)
        - 0.5 * lax.log(a + b)
    )


def _jf_place(x: Any, y: Any, a: Any, b: Any) -> Any:
    return 0.5 * (x - y) * fnp.sqrt((a + b) / (x * y))


def _jf_raw(n: int, a: Any, b: Any) -> Any:
    known = (a > 0.5 * n) & (b > 0.5 * n)
    a, b = fnp.where(known, a, n + 1), fnp.where(known, b, n + 1)
    total = sum(
        math.comb(n, i)
        * (-1) ** i
        * lax.exp(betaln(a + 0.5 * n - i, b - 0.5 * n + i) - betaln(a, b))
        for i in range(n + 1)
    )
    return fnp.where(known, (0.25 * (a + b)) ** (0.5 * n) * total, math.nan)


jf_skew_t: Final = Continuous(
    "jf_skew_t",
    "Jones and Faddy's skew t distribution, Student's where a and b are equal.",
    shapes_ab,
    logpdf=_jf_logpdf,
    **through_beta(_jf_share, _jf_place),
    **central(_jf_raw),
)

# -- of normal and logistic variables --------------------------------------------------

powernorm: Final = Continuous(
    "powernorm",
    "The least of c normal variables: sf(z) is Φ(-z)^c.",
    shape_c,
    logpdf=lambda z, c: lax.log(c) + log_phi(z) + (c - 1) * log_ndtr(-z),
    logsf=lambda z, c: c * log_ndtr(-z),
    cdf=lambda z, c: -lax.expm1(c * log_ndtr(-z)),
    logcdf=lambda z, c: log_rest(c * log_ndtr(-z)),
    ppf=lambda q, c: ndtri(-lax.expm1(lax.log1p(-q) / c)),
    isf=lambda q, c: -ndtri_exp(lax.log(q) / c),
)


def _genlogistic_logcdf(z: Any, c: Any) -> Any:
    return -c * fnp.logaddexp(-z, 0)


def _genlogistic_back(log: Any, c: Any) -> Any:
    t = -log / c
    return -t - lax.log(-lax.expm1(-t))


def _genlogistic_var(c: Any) -> Any:
    return math.pi**2 / 6 + zeta(2.0, c)


genlogistic: Final = Continuous(
    "genlogistic",
    "The generalized logistic distribution: cdf(z) is (1 + exp(-z))^-c.",
    shape_c,
    logpdf=lambda z, c: lax.log(c) - z - (c + 1) * fnp.logaddexp(-z, 0),
    logcdf=_genlogistic_logcdf,
    sf=lambda z, c: -lax.expm1(_genlogistic_logcdf(z, c)),
    logsf=lambda z, c: log_rest(_genlogistic_logcdf(z, c)),
    ppf=lambda q, c: _genlogistic_back(lax.log(q), c),
    isf=lambda q, c: _genlogistic_back(lax.log1p(-q), c),
    mean=lambda c: EULER + lax.digamma(c),
    var=_genlogistic_var,
    skew=lambda c: 2 * (ZETA_3 - zeta(3.0, c)) / _genlogistic_var(c) ** 1.5,
    kurtosis=lambda c: (math.pi**4 / 15 + 6 * zeta(4.0, c)) / _genlogistic_var(c) ** 2,
    entropy=lambda c: EULER + 1 - lax.log(c) + lax.digamma(c + 1),
)


def _kappa4_low(h: Any, k: Any) -> Any:
    up = h > 0
    inner = fnp.where(up, h, 1)
    # (1 - h^-k) / k, which is log h where k is 0.
    first = expm1_over(-k, lax.log(inner))
    below = fnp.where(k < 0, 1 / fnp.where(k < 0, k, 1), -math.inf)
    return fnp.where(up, first, below)


def _kappa4_log(z: Any, k: Any) -> Any:
    """Returns log(1 - k z) / k."""
    return -log1p_over(-k, z)


def _kappa4_logcdf(z: Any, h: Any, k: Any) -> Any:
    """Returns log(1 - h y) / h, of y = (1 - k z)^(1/k)."""
    return -log1p_over(-h, lax.exp(_kappa4_log(z, k)))


def _kappa4_back(log: Any, h: Any, k: Any) -> Any:
    y = -expm1_over(h, log)
    return -expm1_over(k, lax.log(y))


kappa4: Final = Continuous(
    "kappa4",
    "The Hosking distribution of four parameters: (1 - h (1 - k z)^(1/k))^(1/h).",
    shapes_hk,
    h=REAL,
    k=REAL,
    support=(
        _kappa4_low,
        lambda h, k: fnp.where(k > 0, 1 / fnp.where(k > 0, k, 1), math.inf),
    ),
    closed=False,
    logpdf=lambda z, h, k: (
        (1 - k) * _kappa4_log(z, k) + (1 - h) * _kappa4_logcdf(z, h, k)
    ),
    logcdf=lambda z, h, k: _kappa4_logcdf(z, h, k),
    sf=lambda z, h, k: -lax.expm1(_kappa4_logcdf(z, h, k)),
    logsf=lambda z, h, k: log_rest(_kappa4_logcdf(z, h, k)),
    ppf=lambda q, h, k: _kappa4_back(lax.log(q), h, k),
    isf=lambda q, h, k: _kappa4_back(lax.log1p(-q), h, k),
)


# -- Bessel functions ------------------------------------------------------------------


def _nig_logpdf(z: Any, a: Any, b: Any) -> Any:
    root = fnp.sqrt(1 + z * z)
    gamma = fnp.sqrt((a - b) * (a + b))
    return (
        lax.log(a / math.pi)
        + gamma
        + b * z
        - a * root
        + lax.log(k1e(a * root))
        - lax.log(root)
    )


def _nig_gamma(a: Any, b: Any) -> Any:
    return fnp.sqrt((a - b) * (a + b))


norminvgauss: Final = Continuous(
    "norminvgauss",
    "A normal variable whose mean and variance go with an inverse Gaussian one.",
    shapes_ab,
    a=POSITIVE,
    b=REAL,
    joint=lambda a, b: abs(b) < a,
    logpdf=_nig_logpdf,
    **from_middle(_nig_logpdf, lambda a, b: b / _nig_gamma(a, b)),
    mean=lambda a, b: b / _nig_gamma(a, b),
    var=lambda a, b: a * a / _nig_gamma(a, b) ** 3,
    skew=lambda a, b: 3 * b / (a * fnp.sqrt(_nig_gamma(a, b))),
    kurtosis=lambda a, b: 3 * (1 + 4 * b * b / (a * a)) / _nig_gamma(a, b),
)
