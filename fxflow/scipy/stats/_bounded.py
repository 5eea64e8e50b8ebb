"""Distributions on an interval or a circle, and those with exponential tails."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.nn.activations import log1mexp
from fxflow.scipy.special.bessel import i0e, i1e
from fxflow.scipy.stats._building import reversed_tails, through_exponential
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import INSIDE_UNIT, NOT_NEGATIVE, POSITIVE, PROBABILITY
from fxflow.scipy.stats._inverse import inverse_of
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_a,
    shape_b,
    shape_c,
    shape_kappa,
    shapes_ab,
)


def _uniform_fit(x: Any, fixed: Any) -> Any:
    if "scale" in fixed:  # any place that has the sample is as likely: the middle one
        return 0.5 * (fnp.min(x) + fnp.max(x) - fixed["scale"]), fixed["scale"]
    loc = fixed.get("loc", fnp.min(x))
    return loc, fnp.max(x) - loc


uniform: Final = Continuous(
    "uniform",
    "The uniform distribution on 0 … 1, or loc … loc + scale.",
    no_shape,
    support=(0, 1),
    logpdf=lambda z: 0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    logcdf=lax.log,
    logsf=lambda z: lax.log1p(-z),
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
    mean=lambda: 0.5,
    var=lambda: 1 / 12,
    skew=lambda: 0.0,
    kurtosis=lambda: -1.2,
    entropy=lambda: 0.0,
    fit=_uniform_fit,
)


def _triangle_ppf(q: Any, c: Any) -> Any:
    low = q < c
    left = fnp.sqrt(fnp.where(low, c * q, 1))
    right = 1 - fnp.sqrt(fnp.where(low, 1, (1 - c) * (1 - q)))
    return fnp.where(low, left, right)


def _triangle_isf(q: Any, c: Any) -> Any:
    high = q < 1 - c
    right = 1 - fnp.sqrt(fnp.where(high, (1 - c) * q, 1))
    return fnp.where(high, right, fnp.sqrt(fnp.where(high, 1, c * (1 - q))))


def _over(x: Any, c: Any) -> Any:
    """Returns x / c, where c may be 0 if it is not used."""
    return x / fnp.where(c > 0, c, 1)


triang: Final = Continuous(
    "triang",
    "The triangular distribution on 0 … 1, whose density is greatest at c.",
    shape_c,
    c=PROBABILITY,
    support=(0, 1),
    logpdf=lambda z, c: (
        math.log(2)
        + lax.log(
            fnp.where(
                (z < c) | (c == 1),
                _over(z, c),
                fnp.where(z == c, 1, _over(1 - z, 1 - c)),
            )
        )
    ),
    cdf=lambda z, c: fnp.where(
        z < c, z * _over(z, c), 1 - (1 - z) * _over(1 - z, 1 - c)
    ),
    sf=lambda z, c: fnp.where(
        z < c, 1 - z * _over(z, c), (1 - z) * _over(1 - z, 1 - c)
    ),
    ppf=_triangle_ppf,
    isf=_triangle_isf,
    mean=lambda c: (1 + c) / 3,
    var=lambda c: (1 - c + c * c) / 18,
    skew=lambda c: (
        math.sqrt(2) * (2 * c - 1) * (c + 1) * (c - 2) / (5 * (1 - c + c * c) ** 1.5)
    ),
    kurtosis=lambda c: -0.6 + 0 * c,
    entropy=lambda c: 0.5 - math.log(2) + 0 * c,
)


def _log_width(a: Any, b: Any) -> Any:
    return lax.log(b) - lax.log(a)


def _log_raw(n: int, a: Any, b: Any) -> Any:
    width = _log_width(a, b)
    return lax.exp(n * lax.log(a)) * lax.expm1(n * width) / (n * width)


loguniform: Final = Continuous(
    "loguniform",
    "The distribution of exp(U), U being uniform on log a … log b.",
    shapes_ab,
    a=POSITIVE,
    b=POSITIVE.but(2.0),
    joint=lambda a, b: (a < b) & (b < math.inf),
    support=(lambda a, b: a, lambda a, b: b),
    logpdf=lambda z, a, b: -lax.log(z) - lax.log(_log_width(a, b)),
    cdf=lambda z, a, b: _log_width(a, z) / _log_width(a, b),
    sf=lambda z, a, b: _log_width(z, b) / _log_width(a, b),
    ppf=lambda q, a, b: a * lax.exp(q * _log_width(a, b)),
    isf=lambda q, a, b: b * lax.exp(-q * _log_width(a, b)),
    mean=lambda a, b: _log_raw(1, a, b),
    var=lambda a, b: _log_raw(2, a, b) - _log_raw(1, a, b) ** 2,
    entropy=lambda a, b: 0.5 * (lax.log(a) + lax.log(b)) + lax.log(_log_width(a, b)),
)

arcsine: Final = Continuous(
    "arcsine",
    "The arcsine distribution: beta's with a = b = 1/2.",
    no_shape,
    support=(0, 1),
    logpdf=lambda z: -math.log(math.pi) - 0.5 * (lax.log(z) + lax.log1p(-z)),
    cdf=lambda z: 2 / math.pi * lax.atan2(fnp.sqrt(z), fnp.sqrt(1 - z)),
    sf=lambda z: 2 / math.pi * lax.atan2(fnp.sqrt(1 - z), fnp.sqrt(z)),
    ppf=lambda q: lax.square(lax.sin(0.5 * math.pi * q)),
    isf=lambda q: lax.square(lax.cos(0.5 * math.pi * q)),
    mean=lambda: 0.5,
    var=lambda: 0.125,
    skew=lambda: 0.0,
    kurtosis=lambda: -1.5,
    entropy=lambda: math.log(math.pi / 4),
)


def _power_tails() -> dict[str, Any]:
    """Returns the formulas of cdf(z) = z^a: -log X is exponential."""
    tails = through_exponential(
        lambda z, a: lax.log(a) + lax.log(-lax.log(z)), lambda h, a: lax.exp(-h / a)
    )
    return reversed_tails(tails)


powerlaw: Final = Continuous(
    "powerlaw",
    "The power distribution on 0 … 1: cdf(z) is z^a.",
    shape_a,
    support=(0, 1),
    logpdf=lambda z, a: (
        lax.log(a) + fnp.where(a == 1, 0, fnp.where(a == 1, 1, a - 1) * lax.log(z))
    ),
    **_power_tails(),
    mean=lambda a: a / (a + 1),
    var=lambda a: a / ((a + 2) * (a + 1) ** 2),
    skew=lambda a: -2 * (a - 1) / (a + 3) * fnp.sqrt((a + 2) / a),
    kurtosis=lambda a: 6 * (a**3 - a * a - 6 * a + 2) / (a * (a + 3) * (a + 4)),
    entropy=lambda a: 1 - 1 / a - lax.log(a),
)

truncexpon: Final = Continuous(
    "truncexpon",
    "An exponential variable under the condition that it is below b.",
    shape_b,
    support=(0, lambda b: b),
    logpdf=lambda z, b: -z - log1mexp(b),
    cdf=lambda z, b: lax.expm1(-z) / lax.expm1(-b),
    sf=lambda z, b: lax.exp(-z) * lax.expm1(z - b) / lax.expm1(-b),
    logcdf=lambda z, b: log1mexp(z) - log1mexp(b),
    logsf=lambda z, b: -z + log1mexp(b - z) - log1mexp(b),
    ppf=lambda q, b: -lax.log1p(q * lax.expm1(-b)),
    isf=lambda q, b: -lax.log1p((1 - q) * lax.expm1(-b)),
    mean=lambda b: 1 - b / lax.expm1(b),
    entropy=lambda b: lax.log(lax.expm1(b)) + 1 - b - b / lax.expm1(b),
)


# -- exponential tails -----------------------------------------------------------------


def _laplace_cdf(z: Any) -> Any:
    tail = 0.5 * lax.exp(-abs(z))
    return fnp.where(z > 0, 1 - tail, tail)


def _laplace_fit(x: Any, fixed: Any) -> Any:
    loc = fixed.get("loc", fnp.median(x))
    return loc, fixed.get("scale", fnp.mean(abs(x - loc)))


laplace: Final = Continuous(
    "laplace",
    "The Laplace distribution: density exp(-|z|) / 2.",
    no_shape,
    logpdf=lambda z: -abs(z) - math.log(2),
    cdf=_laplace_cdf,
    logcdf=lambda z: fnp.where(
        z > 0, lax.log1p(-0.5 * lax.exp(-abs(z))), -abs(z) - math.log(2)
    ),
    ppf=lambda q: fnp.where(
        q > 0.5,
        -lax.log(2 * fnp.where(q > 0.5, 1 - q, 0.5)),
        lax.log(2 * fnp.where(q > 0.5, 0.5, q)),
    ),
    var=lambda: 2.0,
    kurtosis=lambda: 3.0,
    entropy=lambda: math.log(2) + 1,
    symmetric=True,
    fit=_laplace_fit,
)


def _log_sech(z: Any) -> Any:
    return math.log(2) - abs(z) - lax.log1p(lax.exp(-2 * abs(z)))


hypsecant: Final = Continuous(
    "hypsecant",
    "The hyperbolic secant distribution: density sech(z) / π.",
    no_shape,
    logpdf=lambda z: _log_sech(z) - math.log(math.pi),
    cdf=lambda z: fnp.where(
        z > 0,
        1 - 2 / math.pi * lax.atan(lax.exp(-abs(z))),
        2 / math.pi * lax.atan(lax.exp(-abs(z))),
    ),
    logcdf=lambda z: fnp.where(
        z > 0,
        lax.log1p(-2 / math.pi * lax.atan(lax.exp(-abs(z)))),
        # atan(w) / w is 1 where w underflows.
        math.log(2 / math.pi) - abs(z) + _log_atan_ratio(lax.exp(-abs(z))),
    ),
    ppf=lambda q: fnp.where(
        q > 0.5,
        -lax.log(lax.tan(0.5 * math.pi * fnp.where(q > 0.5, 1 - q, 0.5))),
        lax.log(lax.tan(0.5 * math.pi * fnp.where(q > 0.5, 0.5, q))),
    ),
    var=lambda: math.pi**2 / 4,
    kurtosis=lambda: 2.0,
    entropy=lambda: math.log(2 * math.pi),
    symmetric=True,
)


def _log_atan_ratio(w: Any) -> Any:
    """Returns log(atan(w) / w)."""
    small = w < 1e-5
    v = fnp.where(small, 1, w)
    return fnp.where(small, 0, lax.log(lax.atan(v) / v))


# -- on a circle -----------------------------------------------------------------------


def _mises_logpdf(z: Any, kappa: Any) -> Any:
    # cos z - 1, without cancellation near 0.
    drop = -2 * lax.square(lax.sin(0.5 * z))
    return kappa * drop - math.log(2 * math.pi) - lax.log(i0e(kappa))


def _mises_tail(z: Any, kappa: Any) -> Any:
    """Returns the probability from -π to z for z in -π … 0, by Gaussian quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    shape = fnp.broadcast_shapes(fnp.shape(z), fnp.shape(kappa))
    wide: Any = lambda v: fnp.expand_dims(fnp.broadcast_to(v, shape), -1)
    x, k = wide(z), wide(kappa)
    # Nine widths further the density has lost all digits.
    width = 9 / fnp.sqrt(fnp.maximum(k, 1e-3))
    half = 0.5 * fnp.minimum(width, math.pi + x)
    density = lax.exp(_mises_logpdf(x - half * fnp.asarray(1 + nodes, z.dtype), k))
    return fnp.sum(half * density * fnp.asarray(weights, z.dtype), axis=-1)


def _mises_cdf(z: Any, kappa: Any) -> Any:
    turns = lax.round(z / (2 * math.pi))
    z = z - 2 * math.pi * turns
    tail = _mises_tail(-abs(z), kappa)
    return turns + fnp.where(z > 0, 1 - tail, tail)


def _mises_logcdf(z: Any, kappa: Any) -> Any:
    tail = _mises_tail(-fnp.minimum(abs(z), math.pi), kappa)
    return fnp.where(z > 0, lax.log1p(-tail), log_of(tail))


_mises_ppf = inverse_of(
    lambda z, kappa: (_mises_logcdf(z, kappa), _mises_logcdf(-z, kappa)),
    (_mises_cdf, lambda z, kappa: _mises_cdf(-z, kappa)),
    lambda z, kappa: lax.exp(_mises_logpdf(z, kappa)),
    lambda shapes: (-math.pi, math.pi),
    upper=False,
)


vonmises: Final = Continuous(
    "vonmises",
    "The von Mises distribution on a circle: around 0, from -π to π, or any turn.",
    shape_kappa,
    kappa=NOT_NEGATIVE,
    logpdf=_mises_logpdf,
    cdf=_mises_cdf,
    logcdf=_mises_logcdf,
    ppf=_mises_ppf,
    symmetric=True,
    entropy=lambda kappa: (
        kappa * (1 - i1e(kappa) / i0e(kappa))
        + math.log(2 * math.pi)
        + lax.log(i0e(kappa))
    ),
)


def _wrapped_logpdf(z: Any, c: Any) -> Any:
    # 1 + c² - 2 c cos z as a sum of squares.
    bottom = lax.square(1 - c) + 4 * c * lax.square(lax.sin(0.5 * z))
    return lax.log((1 - c) * (1 + c) / bottom) - math.log(2 * math.pi)


def _wrapped_cdf(z: Any, c: Any) -> Any:
    ratio = (1 + c) / (1 - c)
    low = z < math.pi
    half = 0.5 * fnp.where(low, z, 2 * math.pi - z)
    part = lax.atan2(ratio * lax.sin(half), lax.cos(half)) / math.pi
    return fnp.where(low, part, 1 - part)


def _wrapped_ppf(q: Any, c: Any) -> Any:
    ratio = (1 - c) / (1 + c)
    low = q < 0.5
    part = math.pi * fnp.where(low, q, 1 - q)
    angle = 2 * lax.atan2(ratio * lax.sin(part), lax.cos(part))
    return fnp.where(low, angle, 2 * math.pi - angle)


wrapcauchy: Final = Continuous(
    "wrapcauchy",
    "The Cauchy distribution wrapped around a circle, on 0 … 2 π.",
    shape_c,
    c=INSIDE_UNIT,
    support=(0, 2 * math.pi),
    logpdf=_wrapped_logpdf,
    cdf=_wrapped_cdf,
    sf=lambda z, c: _wrapped_cdf(2 * math.pi - z, c),
    ppf=_wrapped_ppf,
    isf=lambda q, c: 2 * math.pi - _wrapped_ppf(q, c),
    mean=lambda c: math.pi + 0 * c,
    skew=lambda c: 0 * c,
    entropy=lambda c: lax.log1p(-c * c) + math.log(2 * math.pi),
)
