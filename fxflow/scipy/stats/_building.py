"""Formulas of distributions that are others through an increasing function.

Each function returns the formulas of tails and quantiles, as keywords of `Continuous`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.nn.activations import log1mexp
from fxflow.scipy.special._derivatives import by_forward, partial
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special.incomplete_beta import inverse_of as beta_root
from fxflow.scipy.special.inverses import gammainccinv_of, gammaincinv_of
from fxflow.scipy.special.normal import log_ndtr, ndtr, ndtri
from fxflow.scipy.stats._tails import Tails, beta_tails, gamma_tails
from fxflow.transforms.custom_jvp import custom_jvp

Formula = Callable[..., Any]
Formulas = dict[str, Any]

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
ZETA_3 = 1.2020569031595942


def through_normal(u: Formula, back: Formula) -> Formulas:
    """Returns the formulas where u(z, *shapes) is a normal variable.

    Args:
      u: an increasing function of z.
      back: its inverse, of a normal variable and shapes.
    """
    return {
        "cdf": lambda z, *shapes: ndtr(u(z, *shapes)),
        "sf": lambda z, *shapes: ndtr(-u(z, *shapes)),
        "logcdf": lambda z, *shapes: log_ndtr(u(z, *shapes)),
        "logsf": lambda z, *shapes: log_ndtr(-u(z, *shapes)),
        "ppf": lambda q, *shapes: back(ndtri(q), *shapes),
        "isf": lambda q, *shapes: back(-ndtri(q), *shapes),
    }


def through_gamma(a: Formula, u: Formula, back: Formula) -> Formulas:
    """Returns the formulas where u(z, *shapes) is a gamma variable.

    Args:
      a: its shape, of shapes.
      u: an increasing function of z.
      back: its inverse, of a gamma variable and shapes.
    """
    return {
        **from_tails(lambda z, *shapes: gamma_tails(a(*shapes), u(z, *shapes))),
        "ppf": lambda q, *shapes: back(gamma_quantile(a(*shapes), q), *shapes),
        "isf": lambda q, *shapes: back(gamma_quantile(a(*shapes), q, True), *shapes),
    }


def _gamma_inverse(invert: Formula, sign: float) -> Formula:
    """Returns an inverse of an incomplete gamma function with all derivatives."""
    made = custom_jvp(invert)
    # XLA's derivative with respect to the shape has none itself: that of the series
    # follows.
    lower = lambda a, x: gamma_tails(a, x).value(upper=False)
    by_shape = by_forward(
        lambda a, x: -partial(lax.igamma, 0, a, x),
        None,
        None,
        derived=lambda a, x: -partial(lower, 0, a, x),
    )

    def by_value(a: Any, x: Any) -> Any:
        return lax.exp((1 - a) * lax.log(x) + x + lax.lgamma(a))

    made.defjvps(
        lambda t, x, a, q: t * by_shape(a, x) * by_value(a, x),
        lambda t, x, a, q: sign * t * by_value(a, x),
    )
    return made


_LOWER = _gamma_inverse(gammaincinv_of, 1.0)
_UPPER = _gamma_inverse(gammainccinv_of, -1.0)


def gamma_quantile(a: Any, q: Any, upper: bool = False) -> Any:
    """Returns the quantile of a gamma variable of shape a, for q between 0 and 1."""
    return in_64_bits(_UPPER if upper else _LOWER, "ppf", a, q)


def from_tails(tails: Callable[..., Tails]) -> Formulas:
    """Returns the formulas of both tails.

    Args:
      tails: of z and shapes.
    """

    def logs(z: Any, *shapes: Any) -> Any:
        found = tails(z, *shapes)
        return found.logarithm(upper=False), found.logarithm(upper=True)

    return {
        "logs": logs,
        "cdf": lambda z, *shapes: tails(z, *shapes).value(upper=False),
        "sf": lambda z, *shapes: tails(z, *shapes).value(upper=True),
        "logcdf": lambda z, *shapes: tails(z, *shapes).logarithm(upper=False),
        "logsf": lambda z, *shapes: tails(z, *shapes).logarithm(upper=True),
    }


def beta_quantile(a: Any, b: Any, q: Any, upper: bool = False) -> tuple[Any, Any]:
    """Returns the quantile x of a beta variable for q between 0 and 1, and 1 - x."""
    of = lambda a, b, q: beta_root(a, b, *((1 - q, q) if upper else (q, 1 - q)))
    x, rest = in_64_bits(of, "ppf", a, b, q)
    return x, rest


def through_beta(
    share: Callable[..., tuple[Any, Any, Any, Any]], back: Formula
) -> Formulas:
    """Returns the formulas where x is a beta variable.

    Args:
      share: of z and shapes; returns a, b, x, which increases with z, and 1 - x.
      back: z, of x, 1 - x and shapes.
    """

    def quantile(upper: bool) -> Formula:
        def found(q: Any, *shapes: Any) -> Any:
            a, b, *_ = share(lax.full_like(q, 0.5), *shapes)
            return back(*beta_quantile(a, b, q, upper), *shapes)

        return found

    return {
        **from_tails(lambda z, *shapes: beta_tails(*share(z, *shapes))),
        "ppf": quantile(upper=False),
        "isf": quantile(upper=True),
    }


def through_exponential(log_hazard: Formula, back: Formula) -> Formulas:
    """Returns the formulas where sf(z) is exp(-H), H being the hazard up to z.

    Args:
      log_hazard: log H, of z and shapes: H may be too small for its dtype.
      back: z, of H and shapes.
    """

    def hazard(z: Any, *shapes: Any) -> Any:
        return lax.exp(log_hazard(z, *shapes))

    def logcdf(z: Any, *shapes: Any) -> Any:
        log = log_hazard(z, *shapes)
        # log(1 - exp(-H)), which is log H where H is small.
        small = log < -36.0
        return fnp.where(small, log, log1mexp(lax.exp(fnp.where(small, 0, log))))

    return {
        "cdf": lambda z, *shapes: -lax.expm1(-hazard(z, *shapes)),
        "sf": lambda z, *shapes: lax.exp(-hazard(z, *shapes)),
        "logcdf": logcdf,
        "logsf": lambda z, *shapes: -hazard(z, *shapes),
        "ppf": lambda q, *shapes: back(-lax.log1p(-q), *shapes),
        "isf": lambda q, *shapes: back(-lax.log(q), *shapes),
    }


def reversed_tails(formulas: Formulas) -> Formulas:
    """Returns formulas for a decreasing function in place of an increasing one."""
    pairs = ("cdf", "sf"), ("logcdf", "logsf"), ("ppf", "isf")
    swapped = {**dict(pairs), **{b: a for a, b in pairs}}
    # What takes both tails from one place is not needed: the quantiles are known.
    return {swapped[n]: f for n, f in formulas.items() if n in swapped}


def mirrored(formulas: Formulas) -> Formulas:
    """Returns the formulas of -Z from those of Z."""

    def at_minus(f: Formula) -> Formula:
        return lambda z, *shapes: f(-z, *shapes)

    def minus(f: Formula) -> Formula:
        return lambda *args: -f(*args)

    tails = {n: f for n, f in formulas.items() if n in ("cdf", "sf", "logcdf", "logsf")}
    ends = {n: minus(f) for n, f in formulas.items() if n in ("ppf", "isf")}
    found = reversed_tails({**{n: at_minus(f) for n, f in tails.items()}, **ends})
    for name, f in formulas.items():
        if name in ("logpdf", "pdf"):
            found[name] = at_minus(f)
        elif name in ("mean", "skew"):
            found[name] = minus(f)
        elif name in ("var", "kurtosis", "entropy"):
            found[name] = f
    return found


def two_sided(logsf: Formula, isf: Formula) -> Formulas:
    """Returns the formulas of a positive variable with a random sign.

    Args:
      logsf: the logarithm of its upper tail, of a positive number and shapes.
      isf: its quantiles by the upper tail.
    """

    def half(z: Any, *shapes: Any) -> Any:
        away = z != 0
        log = logsf(fnp.where(away, abs(z), 1), *shapes)
        return fnp.where(away, log, 0) - math.log(2)

    def cdf(z: Any, *shapes: Any) -> Any:
        tail = lax.exp(half(z, *shapes))
        return fnp.where(z > 0, 1 - tail, tail)

    def logcdf(z: Any, *shapes: Any) -> Any:
        log = half(z, *shapes)
        return fnp.where(z > 0, lax.log1p(-lax.exp(log)), log)

    def ppf(q: Any, *shapes: Any) -> Any:
        low = q < 0.5
        middle = q == 0.5
        tail = fnp.where(middle, 0.5, 2 * fnp.where(low, q, 1 - q))
        size = fnp.where(middle, 0, isf(tail, *shapes))
        return fnp.where(low, -size, size)

    return {"cdf": cdf, "logcdf": logcdf, "ppf": ppf}


def from_middle(logpdf: Formula, middle: Formula) -> Formulas:
    """Returns the tails of a smooth density on the line by integrals from a point on.

    Args:
      logpdf: of z and shapes; it falls at least like an exponential on both sides.
      middle: a point near the mode, of shapes.
    """
    below, above = log_tail(logpdf, upper=False), log_tail(logpdf, upper=True)

    def smaller(z: Any, *shapes: Any) -> tuple[Any, Any]:
        point = middle(*shapes)
        low = z < point
        one = below(fnp.where(low, z, point), *shapes)
        two = above(fnp.where(low, point, z), *shapes)
        return fnp.where(low, one, two), low

    def logs(z: Any, *shapes: Any) -> tuple[Any, Any]:
        log, low = smaller(z, *shapes)
        rest = log1mexp(-log)
        return fnp.where(low, log, rest), fnp.where(low, rest, log)

    return {
        "logs": logs,
        "logcdf": lambda z, *shapes: logs(z, *shapes)[0],
        "logsf": lambda z, *shapes: logs(z, *shapes)[1],
    }


def log_tail(logpdf: Formula, upper: bool) -> Formula:
    """Returns the logarithm of a tail by integrating the density beyond a point.

    By a double-exponential rule on the scale on which the density falls, for points
    where it falls at least as fast as an exponential.

    Args:
      logpdf: of z and shapes, smooth.
      upper: which tail.
    """
    sign = 1.0 if upper else -1.0

    def log(z: Any, *shapes: Any) -> Any:
        wide: Any = lambda v: fnp.expand_dims(v, -1) if fnp.ndim(v) else v
        shape = fnp.broadcast_shapes(*(fnp.shape(v) for v in (z, *shapes)))
        z = fnp.broadcast_to(z, shape)
        step = 1e-3 if dtypes.bits(z.dtype) == 64 else 1e-2
        size = step * fnp.maximum(abs(z), 1)
        fall = (logpdf(z, *shapes) - logpdf(z + sign * size, *shapes)) / size
        width = lax.stop_gradient(1 / fnp.maximum(fall, 0.3))
        t = np.arange(-4.4, 2.8, 0.07)
        nodes = np.exp(0.5 * math.pi * np.sinh(t))
        weights = nodes * 0.5 * math.pi * np.cosh(t) * 0.07
        nodes, weights = (fnp.asarray(v, z.dtype) for v in (nodes, weights))
        more = [wide(v) for v in shapes]
        away = wide(z) if shape else fnp.reshape(z, (1,))
        along = away + sign * (wide(width) if shape else width) * nodes
        drop = logpdf(along, *more) - logpdf(away, *more)
        # Very far away differences of logarithms are roundings.
        total = fnp.sum(weights * lax.exp(fnp.minimum(drop, 50)), axis=-1)
        tiny = float(fnp.finfo(z.dtype).tiny)
        return logpdf(z, *shapes) + lax.log(fnp.maximum(width * total, tiny))

    return log
