"""Distributions of extremes and lifetimes: closed forms of a hazard."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.lax.gammas import EULER
from fxflow.scipy.special._operands import expm1_over, log1p_over
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.exponential_integrals import exp1
from fxflow.scipy.special.gammas import betaln, gammaln
from fxflow.scipy.stats._building import (
    ZETA_3,
    mirrored,
    reversed_tails,
    through_exponential,
)
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import REAL
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_b,
    shape_c,
    shapes_cd,
)

LINE = (0, math.inf)


def _pow(z: Any, c: Any) -> Any:
    return lax.exp(c * lax.log(z))


def _finite(known: Any, value: Any, other: float = math.inf) -> Any:
    return fnp.where(known, value, other)


# -- exponential, Weibull, Gumbel ------------------------------------------------------


def _expon_fit(x: Any, fixed: Any) -> Any:
    loc = fixed.get("loc", fnp.min(x))
    return loc, fixed.get("scale", fnp.mean(x) - loc)


expon: Final = Continuous(
    "expon",
    "The exponential distribution.",
    no_shape,
    support=LINE,
    logpdf=lambda z: -z,
    **through_exponential(lax.log, lambda h: h),
    mean=lambda: 1.0,
    var=lambda: 1.0,
    skew=lambda: 2.0,
    kurtosis=lambda: 6.0,
    entropy=lambda: 1.0,
    fit=_expon_fit,
)

rayleigh: Final = Continuous(
    "rayleigh",
    "The length of a vector of two normal variables.",
    no_shape,
    support=LINE,
    logpdf=lambda z: xlogy(1.0, z) - 0.5 * z * z,
    **through_exponential(
        lambda z: 2 * lax.log(z) - math.log(2), lambda h: fnp.sqrt(2 * h)
    ),
    mean=lambda: math.sqrt(math.pi / 2),
    var=lambda: 2 - math.pi / 2,
    skew=lambda: 2 * (math.pi - 3) * math.sqrt(math.pi) / (4 - math.pi) ** 1.5,
    kurtosis=lambda: 6 * math.pi / (4 - math.pi) - 16 / (4 - math.pi) ** 2,
    entropy=lambda: EULER / 2 + 1 - 0.5 * math.log(2),
)


def _weibull_raw(c: Any, order: int) -> Any:
    return lax.exp(gammaln(1 + order / c))


def central(raw: Any) -> dict[str, Any]:
    """Returns formulas of central moments, of the raw ones up to the fourth."""

    def var(*shapes: Any) -> Any:
        return raw(2, *shapes) - raw(1, *shapes) ** 2

    def skew(*shapes: Any) -> Any:
        m, two, three = (raw(n, *shapes) for n in (1, 2, 3))
        return (three - 3 * m * two + 2 * m**3) / var(*shapes) ** 1.5

    def kurtosis(*shapes: Any) -> Any:
        m, two, three, four = (raw(n, *shapes) for n in (1, 2, 3, 4))
        central = four - 4 * m * three + 6 * m * m * two - 3 * m**4
        return central / var(*shapes) ** 2 - 3

    return {
        "mean": lambda *shapes: raw(1, *shapes),
        "var": var,
        "skew": skew,
        "kurtosis": kurtosis,
    }


_WEIBULL: dict[str, Any] = {
    "logpdf": lambda z, c: lax.log(c) + xlogy(c - 1, z) - _weibull_hazard(z, c),
    **through_exponential(lambda z, c: c * lax.log(z), lambda h, c: _pow(h, 1 / c)),
    **central(lambda n, c: lax.exp(gammaln(1 + n / c))),
    "entropy": lambda c: -EULER / c - lax.log(c) + EULER + 1,
}


def _weibull_hazard(z: Any, c: Any) -> Any:
    known = z > 0
    return fnp.where(known, _pow(fnp.where(known, z, 1), c), 0)


weibull_min: Final = Continuous(
    "weibull_min",
    "The Weibull distribution, of the least of many positive variables.",
    shape_c,
    support=LINE,
    **_WEIBULL,
)
weibull_max: Final = Continuous(
    "weibull_max",
    "The distribution of -X, X being one of Weibull's.",
    shape_c,
    support=(-math.inf, 0),
    **mirrored(_WEIBULL),
)
invweibull: Final = Continuous(
    "invweibull",
    "Fréchet's distribution, of 1 / X, X being one of Weibull's.",
    shape_c,
    support=LINE,
    closed=False,
    logpdf=lambda z, c: lax.log(c) - (c + 1) * lax.log(z) - _pow(z, -c),
    **reversed_tails(
        through_exponential(lambda z, c: -c * lax.log(z), lambda h, c: _pow(h, -1 / c))
    ),
    mean=lambda c: _finite(c > 1, lax.exp(gammaln(1 - 1 / fnp.where(c > 1, c, 2)))),
    var=lambda c: _frechet_var(c),
    entropy=lambda c: 1 + EULER + EULER / c - lax.log(c),
)


def _frechet_var(c: Any) -> Any:
    d = fnp.where(c > 2, c, 3)
    value = lax.exp(gammaln(1 - 2 / d)) - lax.exp(2 * gammaln(1 - 1 / d))
    return _finite(c > 2, value)


_GUMBEL: dict[str, Any] = {
    "logpdf": lambda z: -z - lax.exp(-z),
    **reversed_tails(through_exponential(lambda z: -z, lambda h: -lax.log(h))),
    "mean": lambda: EULER,
    "var": lambda: math.pi**2 / 6,
    "skew": lambda: 12 * math.sqrt(6) * ZETA_3 / math.pi**3,
    "kurtosis": lambda: 2.4,
    "entropy": lambda: EULER + 1,
}
gumbel_r: Final = Continuous(
    "gumbel_r",
    "The Gumbel distribution, of the greatest of many variables.",
    no_shape,
    **_GUMBEL,
    first={"ppf": "p"},
)
gumbel_l: Final = Continuous(
    "gumbel_l",
    "The Gumbel distribution, of the least of many variables.",
    no_shape,
    **mirrored(_GUMBEL),
    first={"ppf": "p"},
)


# -- generalized extremes --------------------------------------------------------------


def _end(c: Any, sign: float) -> Any:
    """Returns -1 / c where c has a sign, or else the infinity of the other side."""
    known = sign * c > 0
    return fnp.where(known, -1 / fnp.where(known, c, 1), -sign * math.inf)


def _gev_raw(n: int, c: Any) -> Any:
    """Returns the mean of (1 - c Z)ⁿ."""
    known = n * c > -1
    return _finite(known, lax.exp(gammaln(fnp.where(known, 1 + n * c, 1))))


def _gev_mean(c: Any) -> Any:
    small = abs(c) < 1e-5
    d = fnp.where(small, 0.1, c)
    near = EULER - c * (EULER**2 + math.pi**2 / 6) / 2
    return fnp.where(small, near, (1 - _gev_raw(1, d)) / d)


def _gev_var(c: Any) -> Any:
    small = abs(c) < 1e-4
    d = fnp.where(small, 0.1, c)
    ratio = gammaln(fnp.where(d > -0.5, 1 + 2 * d, 1)) - 2 * gammaln(
        fnp.where(d > -0.5, 1 + d, 1)
    )
    square = lax.exp(2 * gammaln(fnp.where(d > -0.5, 1 + d, 1)))
    value = square * lax.expm1(ratio) / (d * d)
    # To first order in c: π²/6 + c (ψ''(1) - γ π²/6 ...) is left to the quadrature.
    near = math.pi**2 / 6 - c * (2 * ZETA_3 + EULER * math.pi**2 / 3)
    return _finite(c > -0.5, fnp.where(small, near, value))


genextreme: Final = Continuous(
    "genextreme",
    "The generalized extreme value distribution; its shape is -ξ.",
    shape_c,
    c=REAL,
    support=(lambda c: -_end(c, -1.0), lambda c: -_end(c, 1.0)),
    closed=False,
    logpdf=lambda z, c: (1 - c) * log1p_over(-c, z) * -1 - lax.exp(-log1p_over(-c, z)),
    **reversed_tails(
        through_exponential(
            lambda z, c: -log1p_over(-c, z),
            lambda h, c: -expm1_over(c, lax.log(h)),
        )
    ),
    mean=_gev_mean,
    var=_gev_var,
    entropy=lambda c: EULER * (1 - c) + 1,
)


def _pareto_var(c: Any) -> Any:
    d = fnp.where(c < 0.5, c, 0)
    return _finite(c < 0.5, 1 / ((1 - d) ** 2 * (1 - 2 * d)))


def _genpareto_skew(c: Any) -> Any:
    d = fnp.where(3 * c < 1, c, 0)
    return _finite(3 * c < 1, 2 * (1 + d) * fnp.sqrt(1 - 2 * d) / (1 - 3 * d), math.nan)


def _genpareto_kurtosis(c: Any) -> Any:
    d = fnp.where(4 * c < 1, c, 0)
    value = 3 * (1 - 2 * d) * (2 * d * d + d + 3) / ((1 - 3 * d) * (1 - 4 * d)) - 3
    return _finite(4 * c < 1, value, math.nan)


genpareto: Final = Continuous(
    "genpareto",
    "The generalized Pareto distribution, of what exceeds a high threshold.",
    shape_c,
    c=REAL,
    support=(0, lambda c: _end(c, -1.0)),
    logpdf=lambda z, c: -(1 + c) * log1p_over(c, z),
    **through_exponential(
        lambda z, c: lax.log(log1p_over(c, z)), lambda h, c: expm1_over(c, h)
    ),
    mean=lambda c: _finite(c < 1, 1 / (1 - fnp.where(c < 1, c, 0))),
    var=_pareto_var,
    skew=_genpareto_skew,
    kurtosis=_genpareto_kurtosis,
    entropy=lambda c: 1 + c,
)


# -- powers ----------------------------------------------------------------------------


def _power_raw(known: Any, value: Any) -> Any:
    """Returns raw moments of orders below a shape, which are infinite elsewhere."""

    def raw(n: int, *shapes: Any) -> Any:
        there = known(n, *shapes)
        kept = [fnp.where(there, s, 10.0) for s in shapes]
        return _finite(there, value(n, *kept))

    return raw


def _pareto_moments(raw: Any, order: Any) -> dict[str, Any]:
    """Returns central moments that are inf or nan where they do not exist."""
    found = central(raw)

    def guarded(name: str, n: int, other: float) -> Any:
        def formula(*shapes: Any) -> Any:
            there = order(*shapes) > n
            kept = [fnp.where(there, s, 10.0) for s in shapes]
            return _finite(there, found[name](*kept), other)

        return formula

    return {
        "mean": guarded("mean", 1, math.inf),
        "var": guarded("var", 2, math.inf),
        "skew": guarded("skew", 3, math.nan),
        "kurtosis": guarded("kurtosis", 4, math.nan),
    }


def _pareto_ratios(b: Any) -> dict[int, Any]:
    return {n: b / (b - n) for n in (1, 2, 3, 4)}


def _pareto_skew(b: Any) -> Any:
    d = fnp.where(b > 3, b, 4)
    value = 2 * (d + 1) / (d - 3) * fnp.sqrt((d - 2) / d)
    return _finite(b > 3, value, math.nan)


def _pareto_kurtosis(b: Any) -> Any:
    d = fnp.where(b > 4, b, 5)
    value = 6 * (d**3 + d * d - 6 * d - 2) / (d * (d - 3) * (d - 4))
    return _finite(b > 4, value, math.nan)


def _pareto_spread(b: Any) -> Any:
    d = fnp.where(b > 2, b, 3)
    return _finite(b > 2, d / ((d - 1) ** 2 * (d - 2)))


def _pareto_fit(x: Any, fixed: Any) -> Any:
    if "loc" not in fixed or "scale" in fixed:
        return None
    away = x - fixed["loc"]
    scale = fnp.min(away)
    shape = fixed.get("b", 1 / fnp.mean(lax.log(away / scale)))
    return shape, fixed["loc"], scale


pareto: Final = Continuous(
    "pareto",
    "The Pareto distribution: sf(z) is z^-b.",
    shape_b,
    support=(1, math.inf),
    logpdf=lambda z, b: lax.log(b) - (b + 1) * lax.log(z),
    **through_exponential(
        lambda z, b: lax.log(b) + lax.log(lax.log(z)), lambda h, b: lax.exp(h / b)
    ),
    mean=lambda b: _finite(b > 1, 1 + 1 / (fnp.where(b > 1, b, 2) - 1)),
    var=_pareto_spread,
    skew=_pareto_skew,
    kurtosis=_pareto_kurtosis,
    entropy=lambda b: 1 + 1 / b - lax.log(b),
    fit=_pareto_fit,
)
lomax: Final = Continuous(
    "lomax",
    "The Pareto distribution, moved to 0: sf(z) is (1 + z)^-c.",
    shape_c,
    support=LINE,
    logpdf=lambda z, c: lax.log(c) - (c + 1) * lax.log1p(z),
    **through_exponential(
        lambda z, c: lax.log(c) + lax.log(lax.log1p(z)), lambda h, c: lax.expm1(h / c)
    ),
    mean=lambda c: _finite(c > 1, 1 / (fnp.where(c > 1, c, 2) - 1)),
    var=_pareto_spread,
    skew=_pareto_skew,
    kurtosis=_pareto_kurtosis,
    entropy=lambda c: 1 + 1 / c - lax.log(c),
)


def _log_softplus(y: Any) -> Any:
    """Returns log log(1 + exp(y)), which is y where that is small."""
    small = y < -36
    return fnp.where(small, y, lax.log(fnp.logaddexp(fnp.where(small, 0, y), 0)))


def _burr_raw(n: int, c: Any, d: Any) -> Any:
    return lax.exp(lax.log(d) + betaln(d - n / c, 1 + n / c))


burr12: Final = Continuous(
    "burr12",
    "Burr's distribution of type XII: sf(z) is (1 + z^c)^-d.",
    shapes_cd,
    support=LINE,
    logpdf=lambda z, c, d: (
        lax.log(c)
        + lax.log(d)
        + xlogy(c - 1, z)
        - (d + 1) * lax.log1p(_weibull_hazard(z, c))
    ),
    **through_exponential(
        lambda z, c, d: lax.log(d) + _log_softplus(c * lax.log(z)),
        lambda h, c, d: _pow(lax.expm1(h / d), 1 / c),
    ),
    **_pareto_moments(_burr_raw, lambda c, d: c * d),
)


def _fisk_raw(n: int, c: Any) -> Any:
    x = n * math.pi / c
    return x / lax.sin(x)


fisk: Final = Continuous(
    "fisk",
    "The log-logistic distribution: sf(z) is 1 / (1 + z^c).",
    shape_c,
    support=LINE,
    logpdf=lambda z, c: (
        lax.log(c) + xlogy(c - 1, z) - 2 * lax.log1p(_weibull_hazard(z, c))
    ),
    **through_exponential(
        lambda z, c: _log_softplus(c * lax.log(z)),
        lambda h, c: _pow(lax.expm1(h), 1 / c),
    ),
    **_pareto_moments(_fisk_raw, lambda c: c),
    entropy=lambda c: 2 - lax.log(c),
)

gompertz: Final = Continuous(
    "gompertz",
    "Gompertz's distribution of lifetimes, whose hazard grows exponentially.",
    shape_c,
    support=LINE,
    logpdf=lambda z, c: lax.log(c) + z - c * lax.expm1(z),
    **through_exponential(
        lambda z, c: lax.log(c) + lax.log(lax.expm1(z)),
        lambda h, c: lax.log1p(h / c),
    ),
    mean=lambda c: _gompertz_mean(c),
    entropy=lambda c: 1 - lax.log(c) - _gompertz_mean(c),
)


def _gompertz_mean(c: Any) -> Any:
    """Returns exp(c) E₁(c), by its asymptotic series where exp(c) is large."""
    far = c > 50
    near = fnp.where(far, 1, c)
    total, term = 1.0 + 0 * c, 1.0 + 0 * c
    for k in range(1, 12):
        term = -k * term / fnp.where(far, c, 50)
        total = total + term
    return fnp.where(far, total / c, lax.exp(near) * exp1(near))


exponpow: Final = Continuous(
    "exponpow",
    "The exponential power distribution: sf(z) is exp(1 - exp(z^b)).",
    shape_b,
    support=LINE,
    logpdf=lambda z, b: (
        1
        + lax.log(b)
        + xlogy(b - 1, z)
        + _weibull_hazard(z, b)
        - lax.exp(_weibull_hazard(z, b))
    ),
    **through_exponential(
        lambda z, b: _log_expm1(b * lax.log(z)),
        lambda h, b: _pow(lax.log1p(h), 1 / b),
    ),
)


def _log_expm1(y: Any) -> Any:
    """Returns log(exp(exp(y)) - 1), which is y where exp(y) is small."""
    small = y < -36
    return fnp.where(small, y, lax.log(lax.expm1(lax.exp(fnp.where(small, 0, y)))))


# -- logistic --------------------------------------------------------------------------


def _logit(q: Any) -> Any:
    return lax.log(q) - lax.log1p(-q)


logistic: Final = Continuous(
    "logistic",
    "The logistic distribution.",
    no_shape,
    logpdf=lambda z: -abs(z) - 2 * lax.log1p(lax.exp(-abs(z))),
    cdf=lax.logistic,
    logcdf=lambda z: -fnp.logaddexp(-z, 0),
    ppf=_logit,
    mean=lambda: 0.0,
    var=lambda: math.pi**2 / 3,
    skew=lambda: 0.0,
    kurtosis=lambda: 1.2,
    entropy=lambda: 2.0,
    symmetric=True,
    first={"ppf": "x", "isf": "x"},
)

halflogistic: Final = Continuous(
    "halflogistic",
    "The distribution of |X|, X being logistic.",
    no_shape,
    support=LINE,
    logpdf=lambda z: math.log(2) - z - 2 * lax.log1p(lax.exp(-z)),
    cdf=lambda z: fnp.tanh(0.5 * z),
    sf=lambda z: 2 * lax.logistic(-z),
    logsf=lambda z: math.log(2) - fnp.logaddexp(z, 0),
    ppf=lambda q: 2 * fnp.arctanh(q),
    isf=lambda q: lax.log1p(-0.5 * q) - lax.log(0.5 * q),
    mean=lambda: math.log(4),
    var=lambda: math.pi**2 / 3 - math.log(4) ** 2,
    entropy=lambda: 2 - math.log(2),
)
