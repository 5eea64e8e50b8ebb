"""Distributions of test statistics: Tukey's range, and deviations of Kolmogorov."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward, partial
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special.goodness_of_fit import kolmogi, smirnov_of, smirnovi
from fxflow.scipy.special.noncentral import log_t_integral
from fxflow.scipy.special.normal import ndtr
from fxflow.scipy.stats._building import LOG_SQRT_2PI
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import ABOVE_ONE, COUNT
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._signatures import no_shape

# -- Tukey's range ---------------------------------------------------------------------

_NODES, _STEP = 86, 0.2
#: Up to this width the mass of the range has its largest terms among the nodes.
_NEAR = 6.0


def _nodes(w: Any, k: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Returns z around -w/2, weights k φ(z), w, k, and Φ(-z) and its part beyond w.

    z is the least of k normal variables, all of which are above it. The trapezoidal
    rule converges exponentially.
    """
    nodes = _STEP * (np.arange(_NODES) - 0.5 * (_NODES - 1))
    w, k = (fnp.expand_dims(v, -1) for v in (w, k))
    z = fnp.asarray(nodes, w.dtype) - 0.5 * w
    weight = _STEP * k * lax.exp(-0.5 * z * z - LOG_SQRT_2PI)
    return weight, z + w, k, ndtr(-z), ndtr(-z - w)


def guarded_log(x: Any) -> Any:
    """Returns log x; a small number where its second derivative would overflow."""
    known = x > 1e-140
    return fnp.where(known, lax.log(fnp.where(known, x, 1)), -322.0)


def log_of_sum(weight: Any, log: Any) -> Any:
    """Returns log of the sum of weights times exponentials, along the last axis."""
    most = lax.stop_gradient(fnp.max(log, axis=-1, keepdims=True))
    total = fnp.sum(weight * lax.exp(log - most), axis=-1)
    return most[..., 0] + guarded_log(total)


def _log_outside(w: Any, k: Any) -> Any:
    """Returns the logarithm of the probability that the range exceeds w."""
    weight, _, k, above, beyond = _nodes(w, k)
    out = -lax.expm1((k - 1) * guarded_log((above - beyond) / above))
    return log_of_sum(weight, guarded_log(out) + (k - 1) * lax.log(above))


def _log_inside(w: Any, k: Any) -> Any:
    weight, _, k, above, beyond = _nodes(w, k)
    log = (k - 1) * guarded_log((above - beyond) / above)
    power = (k - 1) * lax.log(above)
    near = log_of_sum(weight, log + power)
    # Far away its largest terms are not among the nodes, but those of the rest are.
    far = w > _NEAR
    out = fnp.sum(weight * lax.exp(power) * -lax.expm1(log), axis=-1)
    return fnp.where(far, lax.log1p(-fnp.where(far, out, 0)), near)


def _log_range_density(w: Any, k: Any) -> Any:
    weight, end, k, above, beyond = _nodes(w, k)
    log = (k - 2) * guarded_log(above - beyond)
    # φ(z + w) is that of the greatest one.
    log = log - 0.5 * end * end - LOG_SQRT_2PI + lax.log(k - 1)
    return log_of_sum(weight, log)


def _studentized(of: Callable[..., Any], power: float) -> Any:
    """Returns a function of q, k and df: the mean over the scale's distribution."""

    def log(q: Any, k: Any, df: Any) -> Any:
        finite = df < 1e7
        n = fnp.where(finite, df, 1)
        kernel = lambda w, log_u: power * log_u + of(w, k)
        value = log_t_integral(kernel, q, n, 0 * q)
        return fnp.where(finite, value, of(q, k))

    made: Any = by_forward(log, None, None, None)
    return lambda *args: in_64_bits(made, "studentized_range", *args)


_log_cdf: Any = _studentized(_log_inside, 0.0)
_log_sf: Any = _studentized(_log_outside, 0.0)


def _range_logs(q: Any, k: Any, df: Any) -> Any:
    lower, upper = _log_cdf(q, k, df), _log_sf(q, k, df)
    half = -math.log(2)
    small = lower < half
    rest: Any = lambda log: lax.log1p(-lax.exp(fnp.minimum(log, -1e-30)))
    return (
        fnp.where(small, lower, rest(fnp.where(small, -1, upper))),
        fnp.where(small, rest(fnp.where(small, lower, -1)), upper),
    )


def _k_df(
    k: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


studentized_range: Final = Continuous(
    "studentized_range",
    "Tukey's distribution: the range of k normal variables over the root of a mean of "
    "squares.",
    _k_df,
    k=ABOVE_ONE,
    support=(0, math.inf),
    closed=False,
    logpdf=_studentized(_log_range_density, 1.0),
    logs=_range_logs,
    logcdf=lambda *args: _range_logs(*args)[0],
    logsf=lambda *args: _range_logs(*args)[1],
)

# -- Kolmogorov's deviations -----------------------------------------------------------


def _limit_terms(y: Any) -> tuple[Any, Any]:
    """Returns the logarithm of the smaller tail of the limit, and whether it is low."""
    low = y < 0.82
    near, far = fnp.where(low, y, 0.5), fnp.where(low, 1, y)
    r = -(math.pi**2) / (8 * near * near)
    below = r + lax.log(math.sqrt(2 * math.pi) / near)
    below = below + lax.log1p(lax.exp(8 * r) + lax.exp(24 * r) + lax.exp(48 * r))
    q = -2 * far * far
    rest = -lax.exp(3 * q) + lax.exp(8 * q) - lax.exp(15 * q) + lax.exp(24 * q)
    return fnp.where(low, below, math.log(2) + q + lax.log1p(rest)), low


def _limit_logs(y: Any) -> tuple[Any, Any]:
    log, low = _limit_terms(y)
    rest = lax.log1p(-lax.exp(log))
    return fnp.where(low, log, rest), fnp.where(low, rest, log)


def _limit_logpdf(y: Any) -> Any:
    low = y < 0.82
    near, far = fnp.where(low, y, 0.5), fnp.where(low, 1, y)
    c = math.pi**2 / 4
    s = near * near
    odd = [(k, c * k * k / s) for k in (1, 3, 5, 7)]
    sums = sum((v - 1) * lax.exp(-0.5 * (v - odd[0][1])) for _, v in odd)
    below = lax.log(sums) - 0.5 * odd[0][1] + 0.5 * math.log(2 * math.pi) - lax.log(s)
    sums = sum(
        (-1) ** (k + 1) * k * k * lax.exp(-2 * (k * k - 1) * far * far)
        for k in range(1, 7)
    )
    above = lax.log(8 * far * sums) - 2 * far * far
    return fnp.where(low, below, above)


kstwobign: Final = Continuous(
    "kstwobign",
    "Kolmogorov's distribution: the limit of √n times the largest deviation.",
    no_shape,
    support=(0, math.inf),
    closed=False,
    logpdf=_limit_logpdf,
    logs=_limit_logs,
    logcdf=lambda y: _limit_logs(y)[0],
    logsf=lambda y: _limit_logs(y)[1],
    isf=kolmogi,
    mean=lambda: math.sqrt(math.pi / 2) * math.log(2),
    var=lambda: math.pi**2 / 12 - math.pi / 2 * math.log(2) ** 2,
)

_smirnov_slope: Any = by_forward(
    lambda d, n: -partial(smirnov_of, 0, d, n), None, lambda d, n: 0 * d
)


def elements(n: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


#: The number of elements.
ELEMENTS = COUNT._replace(
    words="positive integers, array-like", holds=lambda n: (n > 0) & COUNT.holds(n)
)

ksone: Final = Continuous(
    "ksone",
    "The largest deviation on one side of the empirical distribution of n numbers.",
    elements,
    n=ELEMENTS,
    support=(0, 1),
    closed=False,
    logpdf=lambda z, n: log_of(in_64_bits(_smirnov_slope, "logpdf", z, n)),
    sf=lambda z, n: in_64_bits(smirnov_of, "sf", z, n),
    isf=lambda q, n: smirnovi(n, q),
    ppf=lambda q, n: smirnovi(n, 1 - q),
)
