"""The beta distribution, and ratios: Student's t, F, Cauchy."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.scipy.special.entropies import xlog1py, xlogy
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.special.incomplete_beta import stdtr, stdtrit
from fxflow.scipy.special.normal import log_ndtr
from fxflow.scipy.stats._building import LOG_SQRT_2PI, through_beta
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._signatures import (
    no_shape,
    shape_df,
    shapes_ab,
    shapes_dfs,
)
from fxflow.scipy.stats._tails import Tails, beta_tails

_INFINITE = math.inf


def _beta_skew(a: Any, b: Any) -> Any:
    return 2 * (b - a) * fnp.sqrt(a + b + 1) / ((a + b + 2) * fnp.sqrt(a * b))


def _beta_kurtosis(a: Any, b: Any) -> Any:
    n = a + b
    top = 6 * ((a - b) ** 2 * (n + 1) - a * b * (n + 2))
    return top / (a * b * (n + 2) * (n + 3))


def _beta_entropy(a: Any, b: Any) -> Any:
    return (
        betaln(a, b)
        - (a - 1) * lax.digamma(a)
        - (b - 1) * lax.digamma(b)
        + (a + b - 2) * lax.digamma(a + b)
    )


beta: Final = Continuous(
    "beta",
    "The beta distribution.",
    shapes_ab,
    support=(0, 1),
    logpdf=lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    **through_beta(lambda z, a, b: (a, b, z, 1 - z), lambda x, rest, a, b: x),
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a / (a + b) * (b / (a + b)) / (a + b + 1),
    skew=_beta_skew,
    kurtosis=_beta_kurtosis,
    entropy=_beta_entropy,
)


def _betaprime_raw(n: int, a: Any, b: Any) -> Any:
    known = b > n
    value = lax.exp(betaln(a + n, fnp.where(known, b - n, 1)) - betaln(a, b))
    return fnp.where(known, value, math.inf)


betaprime: Final = Continuous(
    "betaprime",
    "The distribution of X / (1 - X), X being a beta variable.",
    shapes_ab,
    support=(0, math.inf),
    logpdf=lambda z, a, b: xlogy(a - 1, z) - (a + b) * lax.log1p(z) - betaln(a, b),
    **through_beta(
        lambda z, a, b: (a, b, z / (1 + z), 1 / (1 + z)),
        lambda x, rest, a, b: x / rest,
    ),
    mean=lambda a, b: _betaprime_raw(1, a, b),
    var=lambda a, b: fnp.where(
        b > 2,
        a * (a + b - 1) / (fnp.where(b > 2, b - 2, 1) * (b - 1) ** 2),
        math.inf,
    ),
    skew=lambda a, b: _f_skew(2 * a, 2 * b),
    kurtosis=lambda a, b: _f_kurtosis(2 * a, 2 * b),
)


# -- F ---------------------------------------------------------------------------------


def _f_share(z: Any, m: Any, n: Any) -> Any:
    return 0.5 * m, 0.5 * n, m * z / (n + m * z), n / (n + m * z)


def _f_mean(m: Any, n: Any) -> Any:
    return fnp.where(n > 2, n / fnp.where(n > 2, n - 2, 1), math.inf) + 0 * m


def _f_var(m: Any, n: Any) -> Any:
    d = fnp.where(n > 4, n, 5)
    value = 2 * d * d * (m + d - 2) / (m * (d - 2) ** 2 * (d - 4))
    return fnp.where(n > 4, value, math.inf)


def _f_skew(m: Any, n: Any) -> Any:
    d = fnp.where(n > 6, n, 7)
    value = (
        (2 * m + d - 2) * fnp.sqrt(8 * (d - 4)) / ((d - 6) * fnp.sqrt(m * (m + d - 2)))
    )
    return fnp.where(n > 6, value, math.nan)


def _f_kurtosis(m: Any, n: Any) -> Any:
    d = fnp.where(n > 8, n, 9)
    top = m * (5 * d - 22) * (m + d - 2) + (d - 4) * (d - 2) ** 2
    value = 12 * top / (m * (d - 6) * (d - 8) * (m + d - 2))
    return fnp.where(n > 8, value, math.nan)


f: Final = Continuous(
    "f",
    "The F distribution: the ratio of two means of squares of normal variables.",
    shapes_dfs,
    support=(0, math.inf),
    logpdf=lambda z, m, n: (
        0.5 * n * lax.log(n)
        + 0.5 * m * lax.log(m)
        + xlogy(0.5 * m - 1, z)
        - 0.5 * (m + n) * lax.log(n + m * z)
        - betaln(0.5 * m, 0.5 * n)
    ),
    **through_beta(_f_share, lambda x, rest, m, n: n * x / (m * rest)),
    mean=_f_mean,
    var=_f_var,
    skew=_f_skew,
    kurtosis=_f_kurtosis,
    entropy=lambda m, n: (
        lax.log(n)
        - lax.log(m)
        + betaln(0.5 * m, 0.5 * n)
        + (1 - 0.5 * m) * lax.digamma(0.5 * m)
        - (1 + 0.5 * n) * lax.digamma(0.5 * n)
        + 0.5 * (m + n) * lax.digamma(0.5 * (m + n))
    ),
)


# -- Student's t -----------------------------------------------------------------------


def _log_square(z: Any, n: Any) -> Any:
    """Returns log(1 + z² / n), also where the square overflows."""
    root = fnp.sqrt(n)
    far = abs(z) > 1e9 * root
    near = lax.log1p(lax.square(fnp.where(far, 0, z) / root))
    return fnp.where(far, 2 * lax.log(fnp.where(far, abs(z), 1) / root), near)


def _t_logpdf(z: Any, df: Any) -> Any:
    finite = df < math.inf
    n = fnp.where(finite, df, 1)
    value = -betaln(0.5 + 0 * n, 0.5 * n) - 0.5 * lax.log(n)
    value = value - 0.5 * (n + 1) * _log_square(z, n)
    # With infinite degrees of freedom it is the normal distribution.
    return fnp.where(finite, value, -0.5 * z * z - LOG_SQRT_2PI)


def _t_share(z: Any, df: Any) -> Any:
    """Returns what `beta_tails` takes."""
    share = lax.exp(-_log_square(z, df))
    ratio = z / fnp.sqrt(df)
    rest = fnp.where(
        abs(ratio) < 1, ratio * ratio * share, -lax.expm1(-_log_square(z, df))
    )
    return 0.5 * df, 0.5 + 0 * df, share, rest


def _is_far(z: Any, df: Any) -> Any:
    """Returns where the share underflows."""
    return _log_square(z, df) > -math.log(float(fnp.finfo(z.dtype).tiny)) - 10


def _t_tails(z: Any, df: Any) -> Tails:
    """Returns the tails of |z|, that is of its share, which decreases with it."""
    finite = (df < math.inf) & (z != 0) & ~_is_far(z, df)
    return beta_tails(*_t_share(fnp.where(finite, z, 1), fnp.where(finite, df, 1)))


def _t_logs(z: Any, df: Any) -> tuple[Any, Any]:
    half = _t_tails(z, df).logarithm(upper=False) - math.log(2)
    half = fnp.where(z == 0, -math.log(2), half)
    # Where the share has underflowed the first term of its series is all.
    n = fnp.where(df < math.inf, df, 1)
    far = _is_far(z, n)
    log = -_log_square(fnp.where(far, z, 1), n)
    first = 0.5 * n * log - lax.log(n) - betaln(0.5 * n, 0.5 + 0 * n)
    half = fnp.where(far, first, half)
    half = fnp.where(df < math.inf, half, log_ndtr(-abs(z)))
    rest = lax.log1p(-lax.exp(half))
    return fnp.where(z > 0, rest, half), fnp.where(z > 0, half, rest)


def _t_var(df: Any) -> Any:
    d = fnp.where(df > 2, df, 3)
    value = fnp.where(df == math.inf, 1, 1 + 2 / (d - 2))
    return fnp.where(df > 2, value, fnp.where(df > 1, math.inf, math.nan))


def _t_entropy(df: Any) -> Any:
    n = fnp.where(df < math.inf, df, 1)
    half = 0.5 * (n + 1)
    value = half * (lax.digamma(half) - lax.digamma(0.5 * n))
    value = value + 0.5 * lax.log(n) + betaln(0.5 * n, 0.5 + 0 * n)
    return fnp.where(df < math.inf, value, 0.5 + LOG_SQRT_2PI)


t: Final = Continuous(
    "t",
    "Student's distribution: a normal variable over the root of a mean of squares.",
    shape_df,
    logpdf=_t_logpdf,
    cdf=lambda z, df: stdtr(df, z),
    ppf=lambda q, df: stdtrit(df, q),
    logcdf=lambda z, df: _t_logs(z, df)[0],
    logs=_t_logs,
    mean=lambda df: fnp.where(df > 1, 0, math.inf),
    var=_t_var,
    skew=lambda df: fnp.where(df > 3, 0, math.nan),
    kurtosis=lambda df: fnp.where(
        df > 4,
        6 / fnp.where(df > 4, df - 4, 1),
        fnp.where(df > 2, math.inf, math.nan),
    ),
    entropy=_t_entropy,
    symmetric=True,
)


# -- Cauchy ----------------------------------------------------------------------------


def _cauchy_logpdf(z: Any) -> Any:
    return -_log_square(z, 1.0 + 0 * z) - math.log(math.pi)


def _cot(q: Any) -> Any:
    """Returns tan(π (q - 1/2)), exact in both tails."""
    low, high = q < 0.25, q > 0.75
    end = 1 / lax.tan(math.pi * fnp.where(low, q, 1 - fnp.where(high, q, 0.75)))
    middle = lax.tan(math.pi * (fnp.where(low | high, 0.5, q) - 0.5))
    return fnp.where(low, -end, fnp.where(high, end, middle))


cauchy: Final = Continuous(
    "cauchy",
    "The Cauchy distribution.",
    no_shape,
    logpdf=_cauchy_logpdf,
    cdf=lambda z: lax.atan2(lax.full_like(z, 1), -z) / math.pi,
    sf=lambda z: lax.atan2(lax.full_like(z, 1), z) / math.pi,
    ppf=_cot,
    mean=lambda: math.nan,
    var=lambda: math.nan,
    skew=lambda: math.nan,
    kurtosis=lambda: math.nan,
    entropy=lambda: math.log(4 * math.pi),
    symmetric=True,
)

halfcauchy: Final = Continuous(
    "halfcauchy",
    "The distribution of |X|, X being one of Cauchy's.",
    no_shape,
    support=(0, math.inf),
    logpdf=lambda z: _cauchy_logpdf(z) + math.log(2),
    cdf=lambda z: 2 / math.pi * lax.atan(z),
    sf=lambda z: 2 / math.pi * lax.atan2(lax.full_like(z, 1), z),
    ppf=lambda q: _cot(0.5 + 0.5 * q),
    isf=lambda q: -_cot(0.5 * q),
    mean=lambda: math.inf,
    var=lambda: math.inf,
    skew=lambda: math.nan,
    kurtosis=lambda: math.nan,
    entropy=lambda: math.log(2 * math.pi),
)
