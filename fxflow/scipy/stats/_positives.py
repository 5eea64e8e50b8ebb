"""Distributions of positive numbers that are powers or parts of others."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.nn.activations import log1mexp
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import betaln, gammaln
from fxflow.scipy.special.normal import log_ndtr, ndtr, ndtri, ndtri_exp
from fxflow.scipy.stats._building import (
    LOG_SQRT_2PI,
    mirrored,
    reversed_tails,
    through_exponential,
    through_gamma,
    through_normal,
)
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import ABOVE_ONE, NONZERO, NOT_NEGATIVE
from fxflow.scipy.stats._extremes import LINE, central
from fxflow.scipy.stats._gammas import levy
from fxflow.scipy.stats._normals import invgauss, log_mass, log_phi
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_a,
    shape_beta,
    shape_c,
    shape_mu,
    shapes_abc,
    shapes_ac,
    shapes_bc,
    shapes_cab,
    shapes_cd,
    shapes_cs,
    shapes_ks,
)


def _where_known(known: Any, value: Any) -> Any:
    return fnp.where(known, value, math.inf)


# -- powers of a logistic variable -----------------------------------------------------


def _log1p_power(z: Any, c: Any) -> Any:
    """Returns log(1 + z^-c)."""
    return fnp.logaddexp(-c * lax.log(z), 0)


def _burr(c: Any, d: Any) -> dict[str, Any]:
    """Returns the formulas of cdf(z) = (1 + z^-c)^-d; c and d are of shapes."""

    def logcdf(z: Any, *s: Any) -> Any:
        return -d(*s) * _log1p_power(z, c(*s))

    def back(log: Any, *s: Any) -> Any:
        """Returns where the distribution function has a logarithm."""
        t = -log / d(*s)
        return lax.exp(-(t + lax.log(-lax.expm1(-t))) / c(*s))

    return {
        "logpdf": lambda z, *s: (
            lax.log(c(*s) * d(*s))
            - (c(*s) + 1) * lax.log(z)
            - (d(*s) + 1) * _log1p_power(z, c(*s))
        ),
        "logcdf": logcdf,
        "cdf": lambda z, *s: lax.exp(logcdf(z, *s)),
        "sf": lambda z, *s: -lax.expm1(logcdf(z, *s)),
        "logsf": lambda z, *s: log_rest(logcdf(z, *s)),
        "ppf": lambda q, *s: back(lax.log(q), *s),
        "isf": lambda q, *s: back(lax.log1p(-q), *s),
    }


def log_rest(log: Any) -> Any:
    """Returns log(1 - exp(log)), also where the logarithm rounds to 0."""
    none = log >= 0
    return fnp.where(none, -math.inf, log1mexp(-fnp.where(none, -1, log)))


def _burr_raw(n: int, c: Any, d: Any) -> Any:
    known = c > n
    inner = fnp.where(known, c, n + 1)
    value = lax.exp(lax.log(d) + betaln(1 - n / inner, d + n / inner))
    return _where_known(known, value)


burr: Final = Continuous(
    "burr",
    "Burr's third distribution: cdf(z) is (1 + z^-c)^-d.",
    shapes_cd,
    support=LINE,
    closed=False,
    **_burr(lambda c, d: c, lambda c, d: d),
    mean=lambda c, d: _burr_raw(1, c, d),
    var=lambda c, d: _where_known(c > 2, _burr_raw(2, c, d) - _burr_raw(1, c, d) ** 2),
)

mielke: Final = Continuous(
    "mielke",
    "Mielke's beta-kappa distribution: cdf(z) is (1 + z^-s)^(-k/s).",
    shapes_ks,
    support=LINE,
    closed=False,
    **_burr(lambda k, s: s, lambda k, s: k / s),
    mean=lambda k, s: _burr_raw(1, s, k / s),
    var=lambda k, s: _where_known(
        s > 2, _burr_raw(2, s, k / s) - _burr_raw(1, s, k / s) ** 2
    ),
)


def _kappa3_logcdf(z: Any, a: Any) -> Any:
    return -fnp.logaddexp(lax.log(a) - a * lax.log(z), 0) / a


def _kappa3_back(log: Any, a: Any) -> Any:
    t = -a * log
    return lax.exp((lax.log(a) - t - lax.log(-lax.expm1(-t))) / a)


def _kappa3_raw(n: int, a: Any) -> Any:
    return lax.exp(n * lax.log(a) / a) * _burr_raw(n, a, 1 / a)


kappa3: Final = Continuous(
    "kappa3",
    "The Mielke distribution of one parameter: cdf(z) is z / (a + z^a)^(1/a).",
    shape_a,
    support=LINE,
    logpdf=lambda z, a: (
        lax.log(a) - (1 / a + 1) * fnp.logaddexp(lax.log(a), xlogy(a, z))
    ),
    logcdf=_kappa3_logcdf,
    sf=lambda z, a: -lax.expm1(_kappa3_logcdf(z, a)),
    logsf=lambda z, a: log_rest(_kappa3_logcdf(z, a)),
    ppf=lambda q, a: _kappa3_back(lax.log(q), a),
    isf=lambda q, a: _kappa3_back(lax.log1p(-q), a),
    **central(_kappa3_raw),
)

# -- exponential and gamma variables ---------------------------------------------------


def _exponweib_logcdf(z: Any, a: Any, c: Any) -> Any:
    return a * log1mexp(lax.exp(c * lax.log(z)))


def _exponweib_back(log: Any, a: Any, c: Any) -> Any:
    return lax.exp(lax.log(-log_rest(log / a)) / c)


exponweib: Final = Continuous(
    "exponweib",
    "The exponentiated Weibull distribution: cdf(z) is (1 - exp(-z^c))^a.",
    shapes_ac,
    support=LINE,
    closed=False,
    logpdf=lambda z, a, c: (
        lax.log(a * c)
        + (a - 1) * log1mexp(lax.exp(c * lax.log(z)))
        - lax.exp(c * lax.log(z))
        + (c - 1) * lax.log(z)
    ),
    logcdf=_exponweib_logcdf,
    sf=lambda z, a, c: -lax.expm1(_exponweib_logcdf(z, a, c)),
    logsf=lambda z, a, c: log_rest(_exponweib_logcdf(z, a, c)),
    ppf=lambda q, a, c: _exponweib_back(lax.log(q), a, c),
    isf=lambda q, a, c: _exponweib_back(lax.log1p(-q), a, c),
)

halfgennorm: Final = Continuous(
    "halfgennorm",
    "The size of a generalized normal variable: beta 1 is exponential.",
    shape_beta,
    support=LINE,
    logpdf=lambda z, b: lax.log(b) - gammaln(1 / b) - lax.exp(xlogy(b, z)),
    **through_gamma(
        lambda b: 1 / b,
        lambda z, b: lax.exp(b * lax.log(z)),
        lambda x, b: lax.exp(lax.log(x) / b),
    ),
    **central(lambda n, b: lax.exp(gammaln((n + 1) / b) - gammaln(1 / b))),
    entropy=lambda b: 1 / b - lax.log(b) + gammaln(1 / b),
)


def _genexpon_hazard(z: Any, a: Any, b: Any, c: Any) -> Any:
    # Its series where c z is small: a z + b c z² / 2 - …
    u = c * z
    near = u < 1e-2
    v = fnp.where(near, u, 0)
    series = v * v * (0.5 - v * (1 / 6 - v * (1 / 24 - v * (1 / 120 - v / 720))))
    rest = fnp.where(near, series, u + lax.expm1(-fnp.where(near, 1, u)))
    return a * z + b / c * rest


_GENEXPON: dict[str, Any] = through_exponential(
    lambda z, a, b, c: lax.log(_genexpon_hazard(z, a, b, c)), lambda h, *s: h
)
genexpon: Final = Continuous(
    "genexpon",
    "The generalized exponential distribution, of hazard a + b (1 - exp(-c z)).",
    shapes_abc,
    support=LINE,
    logpdf=lambda z, a, b, c: (
        lax.log(a - b * lax.expm1(-c * z)) - _genexpon_hazard(z, a, b, c)
    ),
    **{k: f for k, f in _GENEXPON.items() if k not in ("ppf", "isf")},
)

# -- normal variables ------------------------------------------------------------------

alpha: Final = Continuous(
    "alpha",
    "The distribution of 1 / X, X being a normal variable of mean a that is positive.",
    shape_a,
    support=LINE,
    closed=False,
    logpdf=lambda z, a: -2 * lax.log(z) - log_ndtr(a) + log_phi(a - 1 / z),
    logcdf=lambda z, a: log_ndtr(a - 1 / z) - log_ndtr(a),
    logsf=lambda z, a: log_mass(a - 1 / z, a) - log_ndtr(a),
    ppf=lambda q, a: 1 / (a - ndtri(q * ndtr(a))),
    mean=lambda a: math.inf + 0 * a,
    var=lambda a: math.inf + 0 * a,
    skew=lambda a: math.nan + 0 * a,
    kurtosis=lambda a: math.nan + 0 * a,
)

gibrat: Final = Continuous(
    "gibrat",
    "The distribution of exp(N), N being normal.",
    no_shape,
    support=LINE,
    closed=False,
    logpdf=lambda z: log_phi(lax.log(z)) - lax.log(z),
    **through_normal(lax.log, lax.exp),
    mean=lambda: math.exp(0.5),
    var=lambda: math.e * (math.e - 1),
    skew=lambda: math.sqrt(math.e - 1) * (2 + math.e),
    kurtosis=lambda: sum(c * math.e**k for k, c in ((4, 1), (3, 2), (2, 3))) - 6,
    entropy=lambda: 0.5 + LOG_SQRT_2PI,
)

powerlognorm: Final = Continuous(
    "powerlognorm",
    "The least of c lognormal variables: sf(z) is Φ(-log(z) / s)^c.",
    shapes_cs,
    support=LINE,
    closed=False,
    logpdf=lambda z, c, s: (
        lax.log(c / s)
        - lax.log(z)
        + log_phi(lax.log(z) / s)
        + (c - 1) * log_ndtr(-lax.log(z) / s)
    ),
    logsf=lambda z, c, s: c * log_ndtr(-lax.log(z) / s),
    cdf=lambda z, c, s: -lax.expm1(c * log_ndtr(-lax.log(z) / s)),
    logcdf=lambda z, c, s: log_rest(c * log_ndtr(-lax.log(z) / s)),
    ppf=lambda q, c, s: lax.exp(s * ndtri(-lax.expm1(lax.log1p(-q) / c))),
    isf=lambda q, c, s: lax.exp(-s * ndtri_exp(lax.log(q) / c)),
)

_OF_MEAN_ONE: dict[str, Any] = {
    name: lambda z, name=name: invgauss.formula(name)(z, 1.0 + 0 * z)
    for name in ("logpdf", "logcdf", "logsf")
}
wald: Final = Continuous(
    "wald",
    "The Wald distribution: the inverse Gaussian one of mean 1.",
    no_shape,
    support=LINE,
    closed=False,
    **_OF_MEAN_ONE,
    mean=lambda: 1.0,
    var=lambda: 1.0,
    skew=lambda: 3.0,
    kurtosis=lambda: 15.0,
)

_INVERTED: dict[str, Any] = reversed_tails(
    {
        name: lambda z, mu, name=name: invgauss.formula(name)(1 / z, mu)
        for name in ("logcdf", "logsf")
    }
)
recipinvgauss: Final = Continuous(
    "recipinvgauss",
    "The distribution of 1 / X, X being inverse Gaussian of mean mu.",
    shape_mu,
    support=LINE,
    closed=False,
    logpdf=lambda z, mu: (
        -LOG_SQRT_2PI - 0.5 * lax.log(z) - 0.5 * (1 - mu * z) ** 2 / (z * mu * mu)
    ),
    **_INVERTED,
    mean=lambda mu: 1 + 1 / mu,
    var=lambda mu: 2 + 1 / mu,
)

levy_l: Final = Continuous(
    "levy_l",
    "The distribution of -X, X having Lévy's.",
    no_shape,
    support=(-math.inf, 0),
    closed=False,
    **mirrored(
        {
            name: levy.formula(name)
            for name in (
                "logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf", "mean", "var",
                "skew", "kurtosis", "entropy",
            )
        }
    ),
)  # fmt: skip

# -- Cauchy, Laplace, Pareto, Weibull --------------------------------------------------

foldcauchy: Final = Continuous(
    "foldcauchy",
    "The distribution of |X + c|, X having Cauchy's.",
    shape_c,
    c=NOT_NEGATIVE,
    support=LINE,
    logpdf=lambda z, c: (
        fnp.logaddexp(-lax.log1p((z - c) ** 2), -lax.log1p((z + c) ** 2))
        - math.log(math.pi)
    ),
    cdf=lambda z, c: (lax.atan(z - c) + lax.atan(z + c)) / math.pi,
    sf=lambda z, c: (
        (lax.atan2(fnp.ones_like(z), z - c) + lax.atan2(fnp.ones_like(z), z + c))
        / math.pi
    ),
    mean=lambda c: math.inf + 0 * c,
    var=lambda c: math.inf + 0 * c,
    skew=lambda c: math.nan + 0 * c,
    kurtosis=lambda c: math.nan + 0 * c,
)


def _loglaplace_half(z: Any, c: Any) -> Any:
    """Returns the smaller tail."""
    return 0.5 * lax.exp(-c * abs(lax.log(z)))


def _loglaplace_raw(n: int, c: Any) -> Any:
    known = c > n
    inner = fnp.where(known, c, n + 1)
    return _where_known(known, inner * inner / ((inner - n) * (inner + n)))


def _loglaplace_log(z: Any, c: Any, low: Any) -> Any:
    """Returns the logarithm of the tail that is the smaller one where `low` holds."""
    return fnp.where(
        low,
        -math.log(2) - c * abs(lax.log(z)),
        lax.log1p(-_loglaplace_half(z, c)),
    )


def _loglaplace_ppf(q: Any, c: Any) -> Any:
    low = q < 0.5
    size = lax.exp(lax.log(2 * fnp.where(low, q, 1 - q)) / c)
    return fnp.where(low, size, 1 / size)


loglaplace: Final = Continuous(
    "loglaplace",
    "The distribution of exp(X / c), X having Laplace's.",
    shape_c,
    support=LINE,
    closed=False,
    logpdf=lambda z, c: lax.log(0.5 * c) - lax.log(z) - c * abs(lax.log(z)),
    cdf=lambda z, c: fnp.where(
        z < 1, _loglaplace_half(z, c), 1 - _loglaplace_half(z, c)
    ),
    sf=lambda z, c: fnp.where(
        z > 1, _loglaplace_half(z, c), 1 - _loglaplace_half(z, c)
    ),
    logcdf=lambda z, c: _loglaplace_log(z, c, z < 1),
    logsf=lambda z, c: _loglaplace_log(z, c, z > 1),
    ppf=_loglaplace_ppf,
    isf=lambda q, c: 1 / _loglaplace_ppf(q, c),
    mean=lambda c: _loglaplace_raw(1, c),
    var=lambda c: _where_known(
        c > 2, _loglaplace_raw(2, c) - _loglaplace_raw(1, c) ** 2
    ),
    entropy=lambda c: lax.log(2 / c) + 1,
)


def _truncpareto_ppf(q: Any, b: Any, c: Any) -> Any:
    return lax.exp(-lax.log1p(q * lax.expm1(-b * lax.log(c))) / b)


truncpareto: Final = Continuous(
    "truncpareto",
    "A Pareto variable under the condition that it is below c.",
    shapes_bc,
    b=NONZERO,
    c=ABOVE_ONE,
    support=(1, lambda b, c: c),
    logpdf=lambda z, b, c: (
        lax.log(b / -lax.expm1(-b * lax.log(c))) - (b + 1) * lax.log(z)
    ),
    cdf=lambda z, b, c: lax.expm1(-b * lax.log(z)) / lax.expm1(-b * lax.log(c)),
    sf=lambda z, b, c: (
        lax.exp(-b * lax.log(z))
        * lax.expm1(-b * lax.log(c / z))
        / lax.expm1(-b * lax.log(c))
    ),
    ppf=_truncpareto_ppf,
    isf=lambda q, b, c: c * lax.exp(-lax.log1p(q * lax.expm1(b * lax.log(c))) / b),
)


def _power(z: Any, c: Any) -> Any:
    """Returns z^c, 0 where z is 0."""
    return lax.exp(xlogy(c, z))


def _log_between(low: Any, high: Any) -> Any:
    """Returns log(exp(-low) - exp(-high)) for low < high, which may be infinite."""
    return -low + log_rest(low - high)


def _truncweibull_log(z: Any, w: Any, c: Any, a: Any, b: Any) -> Any:
    """Returns the logarithm of the probability of z … w."""
    inner = _log_between(_power(z, c), _power(w, c))
    return inner - _log_between(_power(a, c), _power(b, c))


def _truncweibull_ppf(q: Any, c: Any, a: Any, b: Any, upper: bool = False) -> Any:
    low = _power(a, c)
    all_of_it = -lax.expm1(low - _power(b, c))
    # exp(-zᶜ) over exp(-aᶜ), from the tail that is given.
    log = lax.log(1 - all_of_it + q * all_of_it) if upper else lax.log1p(-q * all_of_it)
    return lax.exp(lax.log(low - log) / c)


truncweibull_min: Final = Continuous(
    "truncweibull_min",
    "A Weibull variable of shape c under the condition that it is in a … b.",
    shapes_cab,
    a=NOT_NEGATIVE.but(0.5),
    joint=lambda c, a, b: a < b,
    support=(lambda c, a, b: a, lambda c, a, b: b),
    logpdf=lambda z, c, a, b: (
        lax.log(c)
        + xlogy(c - 1, z)
        - _power(z, c)
        - _log_between(_power(a, c), _power(b, c))
    ),
    logcdf=lambda z, c, a, b: _truncweibull_log(a, z, c, a, b),
    logsf=lambda z, c, a, b: _truncweibull_log(z, b, c, a, b),
    ppf=_truncweibull_ppf,
    isf=lambda q, c, a, b: _truncweibull_ppf(q, c, a, b, upper=True),
)
