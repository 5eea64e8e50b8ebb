"""Distributions of counts: more urns, and a law of powers."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._counts import log_chosen
from fxflow.scipy.stats._discrete import Discrete, summed, tail_sum
from fxflow.scipy.stats._domains import COUNT

# Terms of an upper tail before the integral of the rest.
_TERMS = 512


def _alpha(alpha: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _nab(n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> None: ...
def _mnr(M: ArrayLike, n: ArrayLike, r: ArrayLike, loc: ArrayLike = 0) -> None: ...


def _finite(known: Any, value: Any, other: float = math.inf) -> Any:
    return fnp.where(known, value, other)


def _rising(x: Any, count: int) -> Any:
    """Returns x (x + 1) … of `count` factors."""
    return math.prod((x + j for j in range(1, count)), start=x)


def _betanbinom_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    return -lax.log(n + k) - betaln(n, k + 1) + betaln(a + n, b + k) - betaln(a, b)


_betanbinom_below = summed(_betanbinom_logpmf, lambda s: (0, math.inf), upper=False)


def _betanbinom_above(k: Any, *shapes: Any) -> Any:
    """Returns the upper tail beyond the middle: terms, and an integral of the rest."""

    def total(k: Any, *shapes: Any) -> Any:
        masses: Any = lambda k, shapes, more: lax.exp(_betanbinom_logpmf(k, *shapes))

        return tail_sum(masses, k + 1, _TERMS, shapes, ())

    made = by_forward(total, *(None,) * (1 + len(shapes)))
    return made(*operands("betanbinom", k, *shapes))


def _betanbinom_tails(k: Any, n: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Returns both tails: the smaller is a sum, upward one that falls as a power."""
    far = k > 50 + 20 * n * b / fnp.minimum(a, 1e6)
    below = _betanbinom_below(fnp.where(far, 0, k), n, a, b)
    far = far | (below > 0.5)
    above = _betanbinom_above(fnp.where(far, k, 1e3), n, a, b)
    return fnp.where(far, 1 - above, below), fnp.where(far, above, 1 - below)


def _betanbinom_var(n: Any, a: Any, b: Any) -> Any:
    c = fnp.where(a > 2, a, 3)
    value = n * b * (n + c - 1) * (b + c - 1) / ((c - 2) * (c - 1) ** 2)
    return _finite(a > 2, value)


def _betanbinom_skew(n: Any, a: Any, b: Any) -> Any:
    c = fnp.where(a > 3, a, 4)
    spread = fnp.sqrt(n * b * (n + c - 1) * (b + c - 1) / (c - 2))
    return _finite(a > 3, (2 * n + c - 1) * (2 * b + c - 1) / ((c - 3) * spread))


def _betanbinom_kurtosis(n: Any, a: Any, b: Any) -> Any:
    c = fnp.where(a > 4, a, 5)
    d = c - 1
    both = (c + 5) * b * b + (c + 5) * d * b + 2 * d * d
    top = d * d * (c * c + c * (6 * b - 1) + 6 * (b - 1) * b) + 3 * n * (n + d) * both
    bottom = (c - 4) * (c - 3) * b * n * (c + b - 1) * (c + n - 1)
    return _finite(a > 4, (c - 2) * top / bottom - 3)


def _betanbinom_factorial(r: int, n: Any, a: Any, b: Any) -> Any:
    # The probability p of a success has E[((1 - p) / p)ʳ] = B(a - r, b + r) / B(a, b).
    c = fnp.where(a > r, a, r + 1)
    value = lax.exp(betaln(c - r, b + r) - betaln(c, b))
    return _finite(a > r, _rising(n, r) * value)


betanbinom: Final = Discrete(
    "betanbinom",
    "The number of failures before the n-th success, whose probability is a beta "
    "variable.",
    _nab,
    n=COUNT.but(1.0)._replace(
        words="positive integers, array-like",
        holds=lambda n: (n > 0) & COUNT.holds(n),
    ),
    logpmf=_betanbinom_logpmf,
    cdf=lambda k, n, a, b: _betanbinom_tails(k, n, a, b)[0],
    sf=lambda k, n, a, b: _betanbinom_tails(k, n, a, b)[1],
    mean=lambda n, a, b: _finite(a > 1, n * b / fnp.where(a > 1, a - 1, 1)),
    var=_betanbinom_var,
    skew=_betanbinom_skew,
    kurtosis=_betanbinom_kurtosis,
    factorial=_betanbinom_factorial,
    heavy=True,
)


def _nhypergeom_logpmf(k: Any, total: Any, good: Any, r: Any) -> Any:
    # With r = 0 nothing is drawn.
    some = r > 0
    one = fnp.where(some, r, 1)
    value = (
        log_chosen(k + one - 1, k)
        + log_chosen(total - one - k, good - k)
        - log_chosen(total, good)
    )
    return fnp.where(some, value, fnp.where(k == 0, 0, -math.inf))


def _nhypergeom_var(total: Any, good: Any, r: Any) -> Any:
    bad = total - good + 1
    return r * (total + 1) * good / (bad * (bad + 1)) * (1 - r / bad)


nhypergeom: Final = Discrete(
    "nhypergeom",
    "How many of the n good ones of M objects are drawn before the r-th bad one.",
    _mnr,
    M=COUNT.but(3.0),
    n=COUNT,
    r=COUNT,
    joint=lambda M, n, r: (n <= M) & (r <= M - n),
    support=(0, lambda M, n, r: n),
    logpmf=_nhypergeom_logpmf,
    mean=lambda M, n, r: r * n / (M - n + 1),
    var=_nhypergeom_var,
)


def _yule_skew(a: Any) -> Any:
    c = fnp.where(a > 3, a, 4)
    return _finite(a > 3, fnp.sqrt(c - 2) * (c + 1) ** 2 / (c * (c - 3)))


def _yule_kurtosis(a: Any) -> Any:
    c = fnp.where(a > 4, a, 5)
    more = (11 * c**3 - 49 * c - 22) / (c * (c - 4) * (c - 3))
    return _finite(a > 4, c + 3 + more)


def _yule_logsf(k: Any, alpha: Any) -> Any:
    return lax.log(k) + betaln(k, alpha + 1)


def _yule_factorial(r: int, a: Any) -> Any:
    c = fnp.where(a > r, a, r + 1)
    return _finite(a > r, math.factorial(r) * c * lax.exp(betaln(c - r, r + 1.0)))


yulesimon: Final = Discrete(
    "yulesimon",
    "The Yule-Simon distribution: probabilities alpha B(k, alpha + 1).",
    _alpha,
    support=(1, math.inf),
    logpmf=lambda k, alpha: lax.log(alpha) + betaln(k, alpha + 1),
    logsf=_yule_logsf,
    cdf=lambda k, alpha: -lax.expm1(_yule_logsf(k, alpha)),
    mean=lambda a: _finite(a > 1, a / fnp.where(a > 1, a - 1, 1)),
    var=lambda a: _finite(a > 2, a * a / (fnp.where(a > 2, a - 2, 1) * (a - 1) ** 2)),
    skew=_yule_skew,
    kurtosis=_yule_kurtosis,
    factorial=_yule_factorial,
    heavy=True,
)
