"""Noncentral distributions: chi², F, t, and the length of a vector with a shift.

Noncentral chi² and F are mixtures of central ones with Poisson weights. Their upper
tails and densities are sums of positive terms upwards from below the largest term, so
that logarithms keep their digits where the tails underflow; lower tails are those of
`scipy.special`. Noncentral t is an integral over the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.lax.incomplete_beta import log_head
from fxflow.lax.incomplete_gamma import log_density
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special.bessel import i0e, i1e
from fxflow.scipy.special.noncentral import chndtr_of, log_t_integral, ncfdtr_of
from fxflow.scipy.special.normal import log_ndtr
from fxflow.scipy.stats._building import LOG_SQRT_2PI
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import NOT_NEGATIVE, REAL
from fxflow.scipy.stats._extremes import central
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._signatures import shape_b, shapes_df_nc
from fxflow.scipy.stats._tails import beta_tails, gamma_tails

_NC = NOT_NEGATIVE._replace(
    words="real array-like from 0 to 1e5", holds=lambda x: (x >= 0) & (x <= 1e5)
)


def _mixture(m: Any, peak: Any, first: Callable[..., Any], ratio: Any, add: Any) -> Any:
    """Returns log ∑ exp(-m) mʲ/j! g(j) c(j), upwards from below the largest term.

    Args:
      m: the mean of the weights.
      peak: where terms are largest.
      first: returns log g(j) and c(j), of the first j.
      ratio: g(j + 1) / g(j), of j.
      add: c(j + 1), of c(j) and g(j + 1) / g(j).
    """
    m = fnp.maximum(m, 1e-300)
    peak = lax.stop_gradient(peak)
    start = fnp.maximum(lax.floor(peak - 9 * lax.sqrt(peak) - 5), 0)
    head, over = first(start)

    def step(state: Any) -> Any:
        j, live, term, over, total = state
        rise = ratio(j)
        term = fnp.where(live, term * m / (j + 1) * rise, term)
        over = fnp.where(live, add(over, rise), over)
        total = fnp.where(live, total + term * over, total)
        more = (j < peak) | (term * over > 1e-19 * total)
        return j + 1, live & more, term, over, total

    one = lax.full_like(m, 1)
    state = (start, m == m, one, over, over)
    *_, total = lax.while_loop(lambda s: fnp.any(s[1]), step, state)
    return log_density(start, m) + head + lax.log(total)


# -- chi² ------------------------------------------------------------------------------


def _chi_peak(y: Any, a: Any, m: Any) -> Any:
    return 0.5 * (lax.sqrt(a * a + 4 * m * y) - a)


def _chi_log_density(y: Any, a: Any, m: Any) -> Any:
    """Returns the logarithm of the mixture of densities of gamma variables."""
    return _mixture(
        m,
        _chi_peak(y, a, m),
        lambda j: (log_density(a + j, y) + lax.log((a + j) / y), 0 * y + 1),
        lambda j: y / (a + j),
        lambda over, rise: over,
    )


def _chi_log_upper(y: Any, a: Any, m: Any) -> Any:
    """Returns the logarithm of the upper tail, above the mean."""

    def first(j: Any) -> Any:
        log = log_density(a + j, y)
        return log, lax.exp(gamma_tails(a + j, y).logarithm(upper=True) - log)

    return _mixture(
        m,
        fnp.maximum(m, _chi_peak(y, a, m)),
        first,
        lambda j: y / (a + j + 1),
        lambda over, rise: (over + 1) / rise,
    )


#: Beyond, sums would be long, and the first term of an asymptotic series is all.
_FAR = 1e9


def _chi_fall(z: Any, df: Any, nc: Any) -> Any:
    """Returns the logarithm of how the density falls far away, but for a constant."""
    gap = lax.sqrt(z) - lax.sqrt(fnp.maximum(nc, 1e-300))
    return -0.5 * gap * gap + 0.25 * (df - 3) * lax.log(z)


_chi_density: Any = by_forward(_chi_log_density, None, None, None)
_chi_upper: Any = by_forward(_chi_log_upper, None, None, None)


def _two_logs(lower: Any, upper: Any) -> Any:
    """Returns both logarithms from the lower tail, and the upper one's where less."""
    small = lower < 0.5
    log = log_of(fnp.where(small, lower, 0.5))
    return (
        fnp.where(small, log, lax.log1p(-lax.exp(upper))),
        fnp.where(small, lax.log1p(-fnp.where(small, lower, 0.5)), upper),
    )


def _ncx2_logpdf(z: Any, df: Any, nc: Any) -> Any:
    def of(z: Any, df: Any, nc: Any) -> Any:
        inner = z > 0
        x = fnp.where(inner, z, 1)
        y = 0.5 * fnp.minimum(x, _FAR)
        edge = fnp.where(df > 2, -math.inf, fnp.where(df < 2, math.inf, -0.5 * nc))
        value = _chi_density(y, 0.5 * df, 0.5 * nc)
        value = value + _chi_fall(x, df, nc) - _chi_fall(2 * y, df, nc)
        return fnp.where(inner, value, edge)

    return in_64_bits(of, "logpdf", z, df, nc) - math.log(2)


def _ncx2_logs(z: Any, df: Any, nc: Any) -> Any:
    def of(z: Any, df: Any, nc: Any) -> Any:
        far = fnp.maximum(z, lax.stop_gradient(df + nc))
        near = fnp.minimum(far, _FAR)
        upper = _chi_upper(0.5 * near, 0.5 * df, 0.5 * nc)
        upper = upper + _chi_fall(far, df, nc) - _chi_fall(near, df, nc)
        lower = chndtr_of(z, df, nc)
        # Below the mean the upper tail is not small.
        below = z < far
        upper = fnp.where(below, lax.log1p(-fnp.where(below, lower, 0)), upper)
        return fnp.stack(_two_logs(lower, upper))

    found = in_64_bits(of, "logcdf", z, df, nc)
    return found[0], found[1]


def _tails_of(logs: Callable[..., Any], lower: Callable[..., Any]) -> dict[str, Any]:
    """Returns formulas of both tails."""
    return {
        "logs": logs,
        "cdf": lower,
        "logcdf": lambda *args: logs(*args)[0],
        "logsf": lambda *args: logs(*args)[1],
    }


ncx2: Final = Continuous(
    "ncx2",
    "The noncentral chi² distribution: squares of normal variables with a shift.",
    shapes_df_nc,
    nc=_NC,
    support=(0, math.inf),
    logpdf=_ncx2_logpdf,
    **_tails_of(_ncx2_logs, lambda z, df, nc: in_64_bits(chndtr_of, "cdf", z, df, nc)),
    mean=lambda df, nc: df + nc,
    var=lambda df, nc: 2 * (df + 2 * nc),
    skew=lambda df, nc: math.sqrt(8) * (df + 3 * nc) / (df + 2 * nc) ** 1.5,
    kurtosis=lambda df, nc: 12 * (df + 4 * nc) / (df + 2 * nc) ** 2,
)


def _rice_raw(n: int, b: Any) -> Any:
    h = 0.5 * b * b
    if n % 2 == 0:
        return (2 * (1 + h)) if n == 2 else 8 * (1 + 2 * h + 0.5 * h * h)
    zero, one = i0e(0.5 * h), i1e(0.5 * h)
    first = (1 + h) * zero + h * one
    if n == 3:
        # Laguerre's functions of order 3/2 from those of 1/2 and -1/2.
        first = (4 + 2 * h) * first - zero
    return math.sqrt(0.5 * math.pi) * first


rice: Final = Continuous(
    "rice",
    "The Rice distribution: the length of a normal vector of two elements and mean b.",
    shape_b,
    b=NOT_NEGATIVE,
    support=(0, math.inf),
    logpdf=lambda z, b: log_of(z) - 0.5 * (z - b) ** 2 + lax.log(i0e(z * b)),
    **_tails_of(
        lambda z, b: _ncx2_logs(z * z, 2.0 + 0 * b, b * b),
        lambda z, b: in_64_bits(chndtr_of, "cdf", z * z, 2.0 + 0 * b, b * b),
    ),
    **central(_rice_raw),
)

# -- F ---------------------------------------------------------------------------------


def _f_peak(y: Any, rest: Any, a: Any, b: Any, m: Any) -> Any:
    slope = a - m * y
    root = lax.sqrt(slope * slope + 4 * m * y * (a + b))
    return fnp.maximum(0.5 * (root - slope), 0)


def _f_log_density(y: Any, rest: Any, a: Any, b: Any, m: Any) -> Any:
    return _mixture(
        m,
        _f_peak(y, rest, a, b, m),
        lambda j: (log_head(a + j, b, y, rest), 0 * y + 1),
        lambda j: y * (a + j + b) / (a + j),
        lambda over, rise: over,
    )


def _f_log_upper(y: Any, rest: Any, a: Any, b: Any, m: Any) -> Any:
    def first(j: Any) -> Any:
        log = log_head(a + j, b, y, rest) - lax.log(a + j)
        tail = beta_tails(a + j, b, y, rest).logarithm(upper=True)
        return log, lax.exp(tail - log)

    return _mixture(
        m,
        fnp.maximum(m, _f_peak(y, rest, a, b, m)),
        first,
        lambda j: y * (a + j + b) / (a + j + 1),
        lambda over, rise: (over + 1) / rise,
    )


_f_density: Any = by_forward(_f_log_density, *(None,) * 5)
_f_upper: Any = by_forward(_f_log_upper, *(None,) * 5)


def _shares(z: Any, m: Any, n: Any) -> tuple[Any, Any]:
    return m * z / (n + m * z), n / (n + m * z)


def _ncf_logpdf(z: Any, m: Any, n: Any, nc: Any) -> Any:
    def of(z: Any, m: Any, n: Any, nc: Any) -> Any:
        inner = z > 0
        x = fnp.where(inner, z, 1)
        value = _f_density(*_shares(x, m, n), 0.5 * m, 0.5 * n, 0.5 * nc) - lax.log(x)
        edge = fnp.where(m > 2, -math.inf, fnp.where(m < 2, math.inf, -0.5 * nc))
        return fnp.where(inner, value, edge)

    return in_64_bits(of, "logpdf", z, m, n, nc)


def _ncf_logs(z: Any, m: Any, n: Any, nc: Any) -> Any:
    def of(z: Any, m: Any, n: Any, nc: Any) -> Any:
        far = fnp.maximum(z, lax.stop_gradient((m + nc) / m))
        upper = _f_upper(*_shares(far, m, n), 0.5 * m, 0.5 * n, 0.5 * nc)
        lower = ncfdtr_of(z, m, n, nc)
        below = z < far
        upper = fnp.where(below, lax.log1p(-fnp.where(below, lower, 0)), upper)
        return fnp.stack(_two_logs(lower, upper))

    found = in_64_bits(of, "logcdf", z, m, n, nc)
    return found[0], found[1]


def _ncf_raw(k: int, m: Any, n: Any, nc: Any) -> Any:
    known = n > 2 * k
    half, a, h = fnp.where(known, 0.5 * n, k + 1), 0.5 * m, 0.5 * nc
    total = sum(
        math.comb(k, i) * h**i * math.prod((a + j for j in range(i, k)), start=1.0)
        for i in range(k + 1)
    )
    value = (n / m) ** k * total / math.prod(half - i for i in range(1, k + 1))
    return fnp.where(known, value, math.inf if k < 3 else math.nan)


def shapes_f_nc(
    dfn: ArrayLike,
    dfd: ArrayLike,
    nc: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...


ncf: Final = Continuous(
    "ncf",
    "The noncentral F distribution: a noncentral chi² variable over a central one.",
    shapes_f_nc,
    nc=_NC,
    support=(0, math.inf),
    logpdf=_ncf_logpdf,
    **_tails_of(_ncf_logs, lambda z, *shapes: in_64_bits(ncfdtr_of, "cdf", z, *shapes)),
    **central(_ncf_raw),
)

# -- t ---------------------------------------------------------------------------------


def _t_log(kernel: Callable[[Any, Any], Any]) -> Any:
    found: Any = by_forward(
        lambda t, df, nc: log_t_integral(kernel, t, df, nc), None, None, None
    )
    return found


_t_density = _t_log(lambda z, log_u: log_u - 0.5 * z * z - LOG_SQRT_2PI)
_t_lower = _t_log(lambda z, log_u: log_ndtr(z))


def _nct_logs(z: Any, df: Any, nc: Any) -> Any:
    def of(z: Any, df: Any, nc: Any) -> Any:
        low = z < nc
        sign = fnp.where(low, 1.0, -1.0)
        log = _t_lower(sign * z, df, sign * nc)
        log = fnp.minimum(log, -1e-300)
        rest = lax.log1p(-lax.exp(log))
        return fnp.stack([fnp.where(low, log, rest), fnp.where(low, rest, log)])

    found = in_64_bits(of, "logcdf", z, df, nc)
    return found[0], found[1]


def _nct_raw(k: int, df: Any, nc: Any) -> Any:
    known = df > k
    n = fnp.where(known, df, k + 1)
    power = {1: nc, 2: 1 + nc**2, 3: nc**3 + 3 * nc, 4: nc**4 + 6 * nc**2 + 3}[k]
    size = 0.5 * k * lax.log(0.5 * n) + lax.lgamma(0.5 * (n - k)) - lax.lgamma(0.5 * n)
    value = lax.exp(size) * power
    return fnp.where(known, value, math.inf if k == 2 else math.nan)


nct: Final = Continuous(
    "nct",
    "The noncentral t distribution: a normal variable of mean nc over the root of a "
    "mean of squares.",
    shapes_df_nc,
    nc=REAL,
    logpdf=lambda z, df, nc: in_64_bits(_t_density, "logpdf", z, df, nc),
    **_tails_of(_nct_logs, lambda z, df, nc: lax.exp(_nct_logs(z, df, nc)[0])),
    **central(_nct_raw),
)
