"""Distributions on an interval: arcs, trapezoids, and parts of others."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.scipy.special.bessel import i0e, i1e
from fxflow.scipy.special.entropies import xlog1py
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._bounded import loguniform, vonmises
from fxflow.scipy.stats._building import LOG_SQRT_2PI, gamma_quantile, through_beta
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import PROBABILITY
from fxflow.scipy.stats._extremes import central
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_c,
    shape_chi,
    shape_kappa,
    shapes_ab,
    shapes_cd,
)
from fxflow.scipy.stats._tails import gamma_tails

# -- arcs ------------------------------------------------------------------------------

anglit: Final = Continuous(
    "anglit",
    "The distribution of density cos(2 z).",
    no_shape,
    support=(-math.pi / 4, math.pi / 4),
    closed=False,
    logpdf=lambda z: lax.log(lax.cos(2 * z)),
    cdf=lambda z: lax.square(lax.sin(z + math.pi / 4)),
    ppf=lambda q: fnp.arcsin(fnp.sqrt(q)) - math.pi / 4,
    var=lambda: math.pi**2 / 16 - 0.5,
    kurtosis=lambda: -2 * (math.pi**4 - 96) / (math.pi**2 - 8) ** 2,
    entropy=lambda: 1 - math.log(2),
    symmetric=True,
)


def _less_sine(y: Any) -> Any:
    """Returns y - sin y, by its series where that cancels."""
    near = y < 0.6
    s = lax.square(fnp.where(near, y, 0))
    series = lax.full_like(s, 1 / 6)
    total, sign, factor = series, -1.0, 6.0
    power = s
    for n in (5, 7, 9, 11, 13):
        factor *= n * (n - 1)
        total = total + sign * power / factor
        power, sign = power * s, -sign
    return fnp.where(near, fnp.where(near, y, 0) * s * total, y - lax.sin(y))


def _cosine_cdf(z: Any) -> Any:
    return _less_sine(math.pi + z) / (2 * math.pi)


def _cosine_ppf(q: Any) -> Any:
    """Solves y - sin y = r, Kepler's equation, by its series and Halley's method."""
    small = q <= 0.5
    r = 2 * math.pi * fnp.where(small, q, 1 - q)
    c = lax.cbrt(6 * r)
    s = c * c
    y = c * (1 + s * (1 / 60 + s * (1 / 1400 + s * (1 / 25200 + s * 2.5e-6))))
    for _ in range(3):
        value, slope = _less_sine(y) - r, 2 * lax.square(lax.sin(0.5 * y))
        y = y - value / (slope - 0.5 * value * lax.sin(y) / slope)
    return fnp.where(small, y - math.pi, math.pi - y)


cosine: Final = Continuous(
    "cosine",
    "The distribution of density (1 + cos z) / 2π.",
    no_shape,
    support=(-math.pi, math.pi),
    closed=False,
    logpdf=lambda z: 2 * lax.log(lax.cos(0.5 * z)) - math.log(math.pi),
    cdf=_cosine_cdf,
    ppf=_cosine_ppf,
    var=lambda: math.pi**2 / 3 - 2,
    kurtosis=lambda: -6 * (math.pi**4 - 90) / (5 * (math.pi**2 - 6) ** 2),
    entropy=lambda: math.log(4 * math.pi) - 1,
    symmetric=True,
)


def _rdist_logpdf(z: Any, c: Any) -> Any:
    half = 0.5 * c
    rest = xlog1py(half - 1, -z) + xlog1py(half - 1, z)
    return rest - (c - 1) * math.log(2) - betaln(half, half)


def _rdist_share(z: Any, c: Any) -> Any:
    return 0.5 * c, 0.5 * c, 0.5 * (1 + z), 0.5 * (1 - z)


rdist: Final = Continuous(
    "rdist",
    "The distribution of a coordinate of a random point of the sphere in c + 1 "
    "dimensions.",
    shape_c,
    support=(-1, 1),
    logpdf=_rdist_logpdf,
    **through_beta(_rdist_share, lambda x, rest, c: x - rest),
    var=lambda c: 1 / (c + 1),
    kurtosis=lambda c: 3 * (c + 1) / (c + 3) - 3,
    symmetric=True,
)

semicircular: Final = Continuous(
    "semicircular",
    "The Wigner distribution, whose density is half a circle.",
    no_shape,
    support=(-1, 1),
    logpdf=lambda z: math.log(2 / math.pi) + xlog1py(0.5, -z) + xlog1py(0.5, z),
    **through_beta(lambda z: _rdist_share(z, 3.0 + 0 * z), lambda x, rest: x - rest),
    var=lambda: 0.25,
    kurtosis=lambda: -1.0,
    entropy=lambda: math.log(math.pi) - 0.5,
    symmetric=True,
)


def _mises_var(kappa: Any) -> Any:
    """Returns the variance on the line: π²/3 + 4 Σ (-1)^j I_j / (j² I_0)."""
    nodes, weights = _circle_rule(kappa.dtype)
    wide: Any = fnp.expand_dims(kappa, -1)
    drop = -2 * lax.square(lax.sin(0.5 * nodes)) * wide
    return fnp.sum(weights * nodes * nodes * lax.exp(drop), -1) / (math.pi * i0e(kappa))


def _circle_rule(dtype: Any) -> tuple[Any, Any]:
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(80)
    half = 0.5 * math.pi
    return fnp.asarray(half * (nodes + 1), dtype), fnp.asarray(half * weights, dtype)


_MISES: dict[str, Any] = {
    name: vonmises.formula(name)
    for name in ("logpdf", "cdf", "logcdf", "logsf", "sf", "ppf", "isf")
}
vonmises_line: Final = Continuous(
    "vonmises_line",
    "The von Mises distribution on the line, from -π to π.",
    shape_kappa,
    support=(-math.pi, math.pi),
    **_MISES,
    var=_mises_var,
    entropy=lambda kappa: (
        math.log(2 * math.pi)
        + lax.log(i0e(kappa))
        + kappa * (1 - i1e(kappa) / i0e(kappa))
    ),
    symmetric=True,
)

# -- powers ----------------------------------------------------------------------------

_RECIPROCAL: dict[str, Any] = {
    name: loguniform.formula(name)
    for name in ("logpdf", "cdf", "sf", "ppf", "isf", "mean", "var", "entropy")
}
reciprocal: Final = Continuous(
    "reciprocal",
    "The distribution whose logarithm is uniform: `loguniform` by its older name.",
    shapes_ab,
    joint=lambda a, b: a < b,
    b=loguniform.domains["b"],
    a=loguniform.domains["a"],
    support=(lambda a, b: a, lambda a, b: b),
    **_RECIPROCAL,
)


def _argus_tails(z: Any, chi: Any) -> Any:
    return gamma_tails(1.5 + 0 * z, 0.5 * chi * chi * (1 - z) * (1 + z))


def _argus_log_all(chi: Any) -> Any:
    """Returns the logarithm of 2 Ψ(chi) = P(3/2, chi² / 2)."""
    return gamma_tails(1.5 + 0 * chi, 0.5 * chi * chi).logarithm(upper=False)


def _argus_logsf(z: Any, chi: Any) -> Any:
    log = _argus_tails(z, chi).logarithm(upper=False)
    return fnp.minimum(log - _argus_log_all(chi), 0)


def _argus_quantile(upper: Any, chi: Any) -> Any:
    y = gamma_quantile(1.5 + 0 * chi, upper * lax.exp(_argus_log_all(chi)))
    return fnp.sqrt(fnp.maximum(1 - 2 * y / (chi * chi), 0))


def _argus_mean(chi: Any) -> Any:
    share = 0.5 * lax.exp(_argus_log_all(chi))
    return math.sqrt(math.pi / 8) * chi * i1e(0.25 * chi * chi) / share


def _argus_var(chi: Any) -> Any:
    share = 0.5 * lax.exp(_argus_log_all(chi))
    density = lax.exp(-0.5 * chi * chi - LOG_SQRT_2PI)
    return 1 - 3 / (chi * chi) + chi * density / share - _argus_mean(chi) ** 2


argus: Final = Continuous(
    "argus",
    "The distribution of an invariant mass of background, named after a detector.",
    shape_chi,
    support=(0, 1),
    closed=False,
    logpdf=lambda z, chi: (
        3 * lax.log(chi)
        - LOG_SQRT_2PI
        - (_argus_log_all(chi) - math.log(2))
        + lax.log(z)
        + 0.5 * (lax.log1p(-z) + lax.log1p(z))
        - 0.5 * chi * chi * (1 - z) * (1 + z)
    ),
    logsf=_argus_logsf,
    sf=lambda z, chi: lax.exp(_argus_logsf(z, chi)),
    cdf=lambda z, chi: -lax.expm1(_argus_logsf(z, chi)),
    ppf=lambda q, chi: _argus_quantile(1 - q, chi),
    isf=_argus_quantile,
    mean=_argus_mean,
    var=_argus_var,
)


def _bradford_skew(c: Any) -> Any:
    k = lax.log1p(c)
    top = 12 * c * c - 9 * c * k * (c + 2) + 2 * k * k * (c * (c + 3) + 3)
    bottom = fnp.sqrt(c * (c * (k - 2) + 2 * k)) * (3 * c * (k - 2) + 6 * k)
    return math.sqrt(2) * top / bottom


def _bradford_kurtosis(c: Any) -> Any:
    k = lax.log1p(c)
    top = c**3 * (k - 3) * (k * (3 * k - 16) + 24) + 12 * k * c * c * (k - 4) * (k - 3)
    top = top + 6 * c * k * k * (3 * k - 14) + 12 * k**3
    return top / (3 * c * (c * (k - 2) + 2 * k) ** 2)


bradford: Final = Continuous(
    "bradford",
    "Bradford's distribution, of density c / (log(1 + c) (1 + c z)).",
    shape_c,
    support=(0, 1),
    logpdf=lambda z, c: lax.log(c / lax.log1p(c)) - lax.log1p(c * z),
    cdf=lambda z, c: lax.log1p(c * z) / lax.log1p(c),
    sf=lambda z, c: lax.log1p(c * (1 - z) / (1 + c * z)) / lax.log1p(c),
    ppf=lambda q, c: lax.expm1(q * lax.log1p(c)) / c,
    isf=lambda q, c: lax.expm1((1 - q) * lax.log1p(c)) / c,
    mean=lambda c: 1 / lax.log1p(c) - 1 / c,
    var=lambda c: ((c + 2) * lax.log1p(c) - 2 * c) / (2 * c * lax.log1p(c) ** 2),
    skew=_bradford_skew,
    kurtosis=_bradford_kurtosis,
    entropy=lambda c: 0.5 * lax.log1p(c) - lax.log(c / lax.log1p(c)),
)


def _halflogistic_log(z: Any, c: Any) -> Any:
    """Returns the logarithm of u = (1 - c z)^(1/c); sf is 2 u / (1 + u)."""
    return lax.log1p(-c * z) / c


def _genhalf_place(log: Any, c: Any) -> Any:
    return -lax.expm1(c * log) / c


genhalflogistic: Final = Continuous(
    "genhalflogistic",
    "The generalized half-logistic distribution.",
    shape_c,
    support=(0, lambda c: 1 / c),
    logpdf=lambda z, c: (
        math.log(2)
        + xlog1py(1 / c - 1, -c * z)
        - 2 * lax.log1p(lax.exp(_halflogistic_log(z, c)))
    ),
    cdf=lambda z, c: fnp.tanh(-0.5 * _halflogistic_log(z, c)),
    sf=lambda z, c: 2 * lax.logistic(_halflogistic_log(z, c)),
    logsf=lambda z, c: math.log(2) - fnp.logaddexp(-_halflogistic_log(z, c), 0),
    ppf=lambda q, c: _genhalf_place(lax.log1p(-q) - lax.log1p(q), c),
    isf=lambda q, c: _genhalf_place(lax.log(q) - lax.log(2 - q), c),
    entropy=lambda c: 2 - (2 * c + 1) * math.log(2),
)

# -- straight lines --------------------------------------------------------------------


def _trapezoid_lower(z: Any, c: Any, d: Any) -> Any:
    """Returns the probability below z, up to d."""
    rise = z < c
    slope = fnp.where(c > 0, z * z / fnp.where(c > 0, c, 1), 0)
    return fnp.where(rise, slope, 2 * z - c) / (d - c + 1)


def _trapezoid_cdf(z: Any, c: Any, d: Any, upper: bool = False) -> Any:
    if upper:
        z, c, d = 1 - z, 1 - d, 1 - c
    below = _trapezoid_lower(z, c, d)
    above = _trapezoid_lower(1 - z, 1 - d, 1 - c)
    return fnp.where(z > d, 1 - above, below)


def _trapezoid_ppf(q: Any, c: Any, d: Any) -> Any:
    height = d - c + 1
    low, high = c / height, (1 - d) / height
    rise, fall = q < low, 1 - q < high
    root = fnp.sqrt(fnp.where(rise, q * c * height, 1))
    back = fnp.sqrt(fnp.where(fall, (1 - q) * height * (1 - d), 1))
    return fnp.where(rise, root, fnp.where(fall, 1 - back, 0.5 * (q * height + c)))


def _trapezoid_logpdf(z: Any, c: Any, d: Any) -> Any:
    rise, fall = z < c, z > d
    part = fnp.where(rise, z / fnp.where(rise, c, 1), 1)
    part = fnp.where(fall, (1 - z) / fnp.where(fall, 1 - d, 1), part)
    return math.log(2) - lax.log(d - c + 1) + log_of(part)


def _trapezoid_raw(n: int, c: Any, d: Any) -> Any:
    # Over the derivatives of a difference of powers, which d = 1 or c = 0 leave alone.
    edge = d < 1
    rest = fnp.where(edge, 1 - d, 1)
    top = fnp.where(edge, (1 - d ** (n + 2)) / rest, n + 2.0)
    return 2 / (d - c + 1) * (top - c ** (n + 1)) / ((n + 1) * (n + 2))


trapezoid: Final = Continuous(
    "trapezoid",
    "The distribution of density a trapezoid, which is flat from c to d.",
    shapes_cd,
    c=PROBABILITY.but(0.25),
    d=PROBABILITY.but(0.75),
    joint=lambda c, d: c <= d,
    support=(0, 1),
    logpdf=_trapezoid_logpdf,
    cdf=_trapezoid_cdf,
    sf=lambda z, c, d: _trapezoid_cdf(z, c, d, upper=True),
    ppf=_trapezoid_ppf,
    isf=lambda q, c, d: 1 - _trapezoid_ppf(q, 1 - d, 1 - c),
    **central(_trapezoid_raw),
    entropy=lambda c, d: 0.5 * (1 - d + c) / (1 + d - c) + lax.log(0.5 * (1 + d - c)),
)
