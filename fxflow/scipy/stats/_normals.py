"""The normal distribution, and those made of normal variables."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.nn.activations import log1mexp
from fxflow.scipy.special.integrals import owens_t
from fxflow.scipy.special.normal import log_ndtr, ndtr, ndtri
from fxflow.scipy.stats._building import LOG_SQRT_2PI, log_tail, through_normal
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import ANY, NOT_NEGATIVE, REAL
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_a,
    shape_c,
    shape_k,
    shape_mu,
    shape_s,
    shapes_ab,
)


def log_phi(z: Any) -> Any:
    """Returns the logarithm of the standard normal density."""
    return -0.5 * z * z - LOG_SQRT_2PI


def _norm_fit(x: Any, fixed: Any) -> Any:
    loc = fixed.get("loc", fnp.mean(x))
    return loc, fixed.get("scale", fnp.sqrt(fnp.mean((x - loc) ** 2)))


norm: Final = Continuous(
    "norm",
    "The normal distribution.",
    no_shape,
    logpdf=log_phi,
    **through_normal(lambda z: z, lambda n: n),
    mean=lambda: 0.0,
    var=lambda: 1.0,
    skew=lambda: 0.0,
    kurtosis=lambda: 0.0,
    entropy=lambda: 0.5 + LOG_SQRT_2PI,
    symmetric=True,
    fit=_norm_fit,
)


# -- functions of one normal variable --------------------------------------------------

lognorm: Final = Continuous(
    "lognorm",
    "The distribution of exp(s N), N being normal.",
    shape_s,
    support=(0, math.inf),
    closed=False,
    logpdf=lambda z, s: log_phi(lax.log(z) / s) - lax.log(s) - lax.log(z),
    **through_normal(lambda z, s: lax.log(z) / s, lambda n, s: lax.exp(s * n)),
    mean=lambda s: lax.exp(0.5 * s * s),
    var=lambda s: lax.expm1(s * s) * lax.exp(s * s),
    skew=lambda s: fnp.sqrt(lax.expm1(s * s)) * (2 + lax.exp(s * s)),
    kurtosis=lambda s: sum(
        c * lax.expm1(k * s * s) for k, c in ((4, 1), (3, 2), (2, 3))
    ),
    entropy=lambda s: 0.5 + LOG_SQRT_2PI + lax.log(s),
)

halfnorm: Final = Continuous(
    "halfnorm",
    "The distribution of |N|, N being normal.",
    no_shape,
    support=(0, math.inf),
    logpdf=lambda z: log_phi(z) + math.log(2),
    cdf=lambda z: lax.erf(math.sqrt(0.5) * z),
    sf=lambda z: lax.erfc(math.sqrt(0.5) * z),
    logsf=lambda z: log_ndtr(-z) + math.log(2),
    ppf=lambda q: math.sqrt(2) * lax.erf_inv(q),
    isf=lambda q: -ndtri(0.5 * q),
    mean=lambda: math.sqrt(2 / math.pi),
    var=lambda: 1 - 2 / math.pi,
    skew=lambda: math.sqrt(2) * (4 - math.pi) / (math.pi - 2) ** 1.5,
    kurtosis=lambda: 8 * (math.pi - 3) / (math.pi - 2) ** 2,
    entropy=lambda: 0.5 + 0.5 * math.log(math.pi / 2),
)


def _folded_mean(c: Any) -> Any:
    bend = math.sqrt(2 / math.pi) * lax.exp(-0.5 * c * c)
    return bend + c * lax.erf(math.sqrt(0.5) * c)


foldnorm: Final = Continuous(
    "foldnorm",
    "The distribution of |N + c|, N being normal.",
    shape_c,
    c=NOT_NEGATIVE,
    support=(0, math.inf),
    logpdf=lambda z, c: log_phi(z - c) + lax.log1p(lax.exp(-2 * c * z)),
    cdf=lambda z, c: (
        0.5 * lax.erf(math.sqrt(0.5) * (z - c))
        + 0.5 * lax.erf(math.sqrt(0.5) * (z + c))
    ),
    sf=lambda z, c: ndtr(c - z) + ndtr(-c - z),
    logsf=lambda z, c: fnp.logaddexp(log_ndtr(c - z), log_ndtr(-c - z)),
    mean=_folded_mean,
    var=lambda c: c * c + 1 - _folded_mean(c) ** 2,
)

johnsonsu: Final = Continuous(
    "johnsonsu",
    "Johnson's unbounded distribution: a + b asinh(z) is normal.",
    shapes_ab,
    a=REAL,
    logpdf=lambda z, a, b: (
        log_phi(a + b * fnp.arcsinh(z)) + lax.log(b) - 0.5 * lax.log1p(z * z)
    ),
    **through_normal(
        lambda z, a, b: a + b * fnp.arcsinh(z), lambda n, a, b: lax.sinh((n - a) / b)
    ),
    mean=lambda a, b: -lax.exp(0.5 / (b * b)) * lax.sinh(a / b),
    var=lambda a, b: (
        0.5 * lax.expm1(1 / (b * b)) * (lax.exp(1 / (b * b)) * lax.cosh(2 * a / b) + 1)
    ),
)

johnsonsb: Final = Continuous(
    "johnsonsb",
    "Johnson's bounded distribution: a + b log(z / (1 - z)) is normal.",
    shapes_ab,
    a=REAL,
    support=(0, 1),
    closed=False,
    logpdf=lambda z, a, b: (
        log_phi(a + b * (lax.log(z) - lax.log1p(-z)))
        + lax.log(b)
        - lax.log(z)
        - lax.log1p(-z)
    ),
    **through_normal(
        lambda z, a, b: a + b * (lax.log(z) - lax.log1p(-z)),
        lambda n, a, b: lax.logistic((n - a) / b),
    ),
)

fatiguelife: Final = Continuous(
    "fatiguelife",
    "The Birnbaum-Saunders distribution: (√z - 1/√z) / c is normal.",
    shape_c,
    support=(0, math.inf),
    closed=False,
    logpdf=lambda z, c: (
        log_phi((z - 1) / (c * fnp.sqrt(z)))
        + lax.log1p(z)
        - lax.log(2 * c)
        - 1.5 * lax.log(z)
    ),
    **through_normal(
        lambda z, c: (z - 1) / (c * fnp.sqrt(z)),
        lambda n, c: lax.exp(2 * fnp.arcsinh(0.5 * c * n)),
    ),
    mean=lambda c: 1 + 0.5 * c * c,
    var=lambda c: c * c * (1 + 1.25 * c * c),
)


# -- normal variables within bounds, and others ----------------------------------------


def log_mass(a: Any, b: Any) -> Any:
    """Returns the logarithm of the normal probability of a … b, exact in the tails."""
    # Above 0 the mirrored interval is the same, and its ends are small numbers.
    above = a > 0
    a, b = fnp.where(above, -b, a), fnp.where(above, -a, b)
    below = b <= 0
    low, high = log_ndtr(fnp.where(below, a, -1)), log_ndtr(fnp.where(below, b, 0))
    tail = high + log1mexp(high - low)
    inside = ndtr(fnp.where(below, -1, a)) + ndtr(-fnp.where(below, 1, b))
    return fnp.where(below, tail, lax.log1p(-inside))


def _truncated_mean(a: Any, b: Any) -> Any:
    mass = log_mass(a, b)
    return lax.exp(log_phi(a) - mass) - lax.exp(log_phi(b) - mass)


truncnorm: Final = Continuous(
    "truncnorm",
    "A normal variable under the condition that it is in a … b.",
    shapes_ab,
    a=ANY.but(-1.0),
    b=ANY.but(1.0),
    joint=lambda a, b: a < b,
    support=(lambda a, b: a, lambda a, b: b),
    logpdf=lambda z, a, b: log_phi(z) - log_mass(a, b),
    logcdf=lambda z, a, b: log_mass(a, z) - log_mass(a, b),
    logsf=lambda z, a, b: log_mass(z, b) - log_mass(a, b),
    mean=_truncated_mean,
)


def _skew_logpdf(z: Any, a: Any) -> Any:
    return math.log(2) + log_phi(z) + log_ndtr(a * z)


_skew_tail = log_tail(_skew_logpdf, upper=False)


def _skew_logcdf(z: Any, a: Any) -> Any:
    # Where a is positive the lower tail is thin, and the formula cancels in it.
    thin = ((z < -0.5) & (a > 0)) | (z < -5)
    # Likewise the upper one, which is what is lacking to 1.
    rest_thin = ((z > 0.5) & (a < 0)) | (z > 5)
    either = thin | rest_thin
    sign = fnp.where(rest_thin, -1, 1)
    low = _skew_tail(fnp.where(either, sign * z, -1), fnp.where(either, sign * a, 1))
    far = fnp.where(thin, low, log1mexp(-fnp.where(rest_thin, low, -1)))
    z = fnp.where(either, 0, z)
    part = 2 * owens_t(z, a)
    value, rest = ndtr(z) - part, ndtr(-z) + part
    large = value > 0.5
    near = fnp.where(
        large,
        lax.log1p(-fnp.where(large, rest, 0)),
        log_of(fnp.where(large, 1, value)),
    )
    return fnp.where(either, far, near)


skewnorm: Final = Continuous(
    "skewnorm",
    "The skew normal distribution: density 2 φ(z) Φ(a z).",
    shape_a,
    a=REAL,
    logpdf=_skew_logpdf,
    logcdf=_skew_logcdf,
    logsf=lambda z, a: _skew_logcdf(-z, -a),
    mean=lambda a: math.sqrt(2 / math.pi) * a / fnp.sqrt(1 + a * a),
    var=lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
    skew=lambda a: _skew_ratio(a, 3) * (4 - math.pi) / 2,
    kurtosis=lambda a: _skew_ratio(a, 4) * 2 * (math.pi - 3),
)


def _skew_ratio(a: Any, order: int) -> Any:
    """Returns a power of the mean over the standard deviation."""
    square = 2 / math.pi * a * a / (1 + a * a)
    ratio = math.sqrt(2 / math.pi) * a / fnp.sqrt((1 + a * a) * (1 - square))
    return ratio**order


def _exponnorm_logpdf(z: Any, k: Any) -> Any:
    return -lax.log(k) + 0.5 / (k * k) - z / k + log_ndtr(z - 1 / k)


_exponnorm_tail = log_tail(_exponnorm_logpdf, upper=False)


def _exponnorm_logsf(z: Any, k: Any) -> Any:
    return fnp.logaddexp(log_ndtr(-z), _exponnorm_logpdf(z, k) + lax.log(k))


def _exponnorm_logcdf(z: Any, k: Any) -> Any:
    low = z < 0
    tail = _exponnorm_tail(fnp.where(low, z, -1), k)
    return fnp.where(low, tail, log1mexp(-_exponnorm_logsf(fnp.where(low, 0, z), k)))


exponnorm: Final = Continuous(
    "exponnorm",
    "The sum of a normal variable and an exponential one of mean K.",
    shape_k,
    logpdf=_exponnorm_logpdf,
    logcdf=_exponnorm_logcdf,
    logsf=_exponnorm_logsf,
    mean=lambda k: k,
    var=lambda k: 1 + k * k,
    skew=lambda k: 2 * (k / fnp.sqrt(1 + k * k)) ** 3,
    kurtosis=lambda k: 6 * (k * k / (1 + k * k)) ** 2,
)


def _invgauss_parts(z: Any, mu: Any, sign: float) -> Any:
    root = fnp.sqrt(z)
    one = log_ndtr(sign * (z - mu) / (mu * root))
    two = 2 / mu + log_ndtr(-(z + mu) / (mu * root))
    return one, two - one


def _invgauss_logcdf(z: Any, mu: Any) -> Any:
    one, less = _invgauss_parts(z, mu, 1.0)
    return one + lax.log1p(lax.exp(less))


def _invgauss_logsf(z: Any, mu: Any) -> Any:
    one, less = _invgauss_parts(z, mu, -1.0)
    return one + lax.log1p(-lax.exp(fnp.minimum(less, 0)))


invgauss: Final = Continuous(
    "invgauss",
    "The inverse Gaussian distribution of mean mu.",
    shape_mu,
    support=(0, math.inf),
    closed=False,
    logpdf=lambda z, mu: (
        -LOG_SQRT_2PI - 1.5 * lax.log(z) - 0.5 * ((z - mu) / mu) ** 2 / z
    ),
    logcdf=_invgauss_logcdf,
    logsf=_invgauss_logsf,
    mean=lambda mu: mu,
    var=lambda mu: mu**3,
    skew=lambda mu: 3 * fnp.sqrt(mu),
    kurtosis=lambda mu: 15 * mu,
)
