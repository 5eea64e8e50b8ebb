"""Incomplete gamma and beta functions: logarithms of both tails at once.

A tail is a power and an exponential times a series or a continued fraction, each of
which is taken on its side of the mean. Its logarithm has all digits where the tail
underflows, the other tail follows without cancellation, and the expansions have
derivatives with respect to the parameters, of any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.lax.incomplete_beta import log_head, tail_fraction
from fxflow.lax.incomplete_gamma import (
    fraction_value,
    has_small_shape,
    log_density,
    series_value,
    small_shape_upper,
    temme_terms,
)
from fxflow.nn.activations import log1mexp
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.error_functions import erfcx
from fxflow.scipy.special.gammas import betaln

_TERMS = 10000
# From this shape on Temme's expansion is taken near the mean.
_LARGE = 1000.0


def _converged(step: Callable[..., Any], *start: Any) -> Any:
    """Returns the state of a loop when what its first element adds is small enough.

    Args:
      step: of the number of the term and the state; returns the next state and where
        it is exact.
      *start: the state.
    """
    k = lax.full((), 1, start[0].aval.dtype)

    def going(state: Any) -> Any:
        k, active, *_ = state
        return (k < _TERMS) & fnp.any(active)

    def body(state: Any) -> Any:
        k, active, *now = state
        new, done = step(k, *now)
        new = [fnp.where(active, a, b) for a, b in zip(new, now, strict=True)]
        return (k + 1, active & ~done, *new)

    return lax.while_loop(going, body, (k, start[0] == start[0], *start))[2:]


def _tiny(x: Any) -> float:
    return 0.25 * float(fnp.finfo(x.aval.dtype).eps)


# -- gamma -----------------------------------------------------------------------------


def _lower_gamma(a: Any, x: Any) -> Any:
    """Returns log P(a, x) for x < a, by its series (DLMF 8.7.1)."""
    one = lax.full_like(x, 1)

    def step(k: Any, total: Any, term: Any) -> Any:
        term = term * x / (a + k)
        return (total + term, term), term < _tiny(x) * total

    total, _ = _converged(step, one, one)
    return _log_density(a, x) + lax.log(x) - lax.log(a) + lax.log(total)


def _upper_gamma(a: Any, x: Any) -> Any:
    """Returns log Q(a, x) for x > a + 1, by Legendre's continued fraction."""
    one = lax.full_like(x, 1)
    first = x + 1 - a

    def step(k: Any, h: Any, c: Any, d: Any) -> Any:
        bottom, top = first + 2 * k, -k * (k - a)
        d = 1 / (top * d + bottom)
        c = bottom + top / c
        return (h * c * d, c, d), abs(c * d - 1) < 8 * _tiny(x)

    h, *_ = _converged(step, 1 / first, 1e30 * one, 1 / first)
    return _log_density(a, x) + lax.log(x) + lax.log(h)


def _lower_value(a: Any, x: Any) -> Any:
    """Returns what `_lower_gamma` does, faster, without its derivatives."""
    return log_density(a, x) + lax.log(series_value(a, x, x == x))


def _upper_value(a: Any, x: Any) -> Any:
    """Returns what `_upper_gamma` does, faster, without its derivatives."""
    return log_density(a, x) + lax.log(a) + lax.log(fraction_value(a, x, x == x))


def _near(a: Any, x: Any) -> Any:
    """Returns the logarithm of the smaller tail near the mean of a large a."""
    t, rest = temme_terms(a, x)
    low = x < a
    size, rest = fnp.where(low, -t, t), fnp.where(low, -rest, rest)
    return lax.log(0.5 * erfcx(size) + rest) - t * t


#: The logarithm of the derivative of P(a, x).
_log_density: Any = by_forward(
    lambda a, x: log_density(a, x) + lax.log(a) - lax.log(x),
    lambda a, x: lax.log(x) - lax.digamma(a),
    lambda a, x: (a - 1 - x) / x,
)


_log_lower: Any = by_forward(
    _lower_value,
    None,
    lambda a, x: lax.exp(_log_density(a, x) - _log_lower(a, x)),
    derived=_lower_gamma,
)
_log_upper: Any = by_forward(
    _upper_value,
    None,
    lambda a, x: -lax.exp(_log_density(a, x) - _log_upper(a, x)),
    derived=_upper_gamma,
)


# Temme's polynomials are a loop.
_log_near: Any = by_forward(
    _near,
    None,
    lambda a, x: (
        fnp.where(x < a, 1, -1) * lax.exp(_log_density(a, x) - _log_near(a, x))
    ),
)


class Tails(NamedTuple):
    """Both tails of a distribution at a point, from the logarithm of one.

    Attributes:
      log: the logarithm of one tail.
      lower: whether it is that of the lower tail.
    """

    log: Any
    lower: Any

    def value(self, upper: bool) -> Any:
        """Returns a tail."""
        own = self.lower != upper
        return fnp.where(own, lax.exp(self.log), -lax.expm1(self.log))

    def logarithm(self, upper: bool) -> Any:
        """Returns the logarithm of a tail."""
        own = self.lower != upper
        return fnp.where(own, self.log, log1mexp(-fnp.where(own, -1, self.log)))


def gamma_tails(a: Any, x: Any) -> Tails:
    """Returns P(a, x) and Q(a, x) for positive a and x."""
    a, x = operands("gamma_tails", a, x)
    small = has_small_shape(a, x)
    near = (a > _LARGE) & (lax.abs(x - a) <= 0.3 * a)
    low = x < fnp.where(near, a, fnp.where(a < 1, 1, a + 1))
    below, far = low & ~small & ~near, ~low & ~near & (x < math.inf)
    log = _log_lower(fnp.where(below, a, 2), fnp.where(below, x, 0.1))
    above = _log_upper(fnp.where(far, a, 1), fnp.where(far, x, 50))
    log = fnp.where(far, above, fnp.where(x == math.inf, -math.inf, log))
    beyond = small_shape_upper(fnp.where(small, a, 0.25), fnp.where(small, x, 0.5))
    log = fnp.where(small, lax.log(beyond), log)
    at = [fnp.where(near, value, _LARGE) for value in (a, x)]
    close = lax.cond(fnp.any(near), _log_near, lambda a, x: 0 * x, *at)
    return Tails(fnp.where(near, close, log), low & ~small)


# -- beta ------------------------------------------------------------------------------


def _smaller_tail(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Returns the logarithm of the smaller one of I(a, b, x) and I(b, a, y)."""
    return log_head(a, b, x, y) + lax.log(tail_fraction(a, b, x, y)[0])


def _plain_head(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Returns log(x^a y^b / B(a, b)), which is `log_head` with exact derivatives."""
    near = x < 0.5
    log_x = fnp.where(near, lax.log(x), lax.log1p(-fnp.where(near, 0.25, y)))
    log_y = fnp.where(near, lax.log1p(-fnp.where(near, x, 0.25)), lax.log(y))
    return a * log_x + b * log_y - betaln(a, b)


def _plain_tail(a: Any, b: Any, x: Any, y: Any) -> Any:
    fraction = tail_fraction(a, b, x, y, ends=False)[0]
    return _plain_head(a, b, x, y) + lax.log(fraction)


def _is_lower(a: Any, b: Any, x: Any) -> Any:
    return x <= (a + 1) / (a + b + 2)


def _tail_slope(a: Any, b: Any, x: Any, y: Any) -> Any:
    log = _plain_head(a, b, x, y) - lax.log(x) - lax.log(y) - _log_beta(a, b, x, y)
    return fnp.where(_is_lower(a, b, x), lax.exp(log), -lax.exp(log))


# What y = 1 - x changes is counted with x.
_log_beta: Any = by_forward(
    _smaller_tail,
    None,
    None,
    _tail_slope,
    lambda a, b, x, y: lax.full_like(x, 0),
    derived=_plain_tail,
)


def beta_tails(a: Any, b: Any, x: Any, y: Any) -> Tails:
    """Returns I(a, b, x) and the rest of 1.

    Args:
      a: positive.
      b: positive.
      x: between 0 and 1.
      y: 1 - x, which may have more digits.
    """
    a, b, x, y = operands("beta_tails", a, b, x, y)
    # 0 and 1 have no logarithms, but the tails there are known.
    inner = (x > 0) & (y > 0)
    safe = [fnp.where(inner, value, 0.5) for value in (x, y)]
    log = fnp.where(inner, _log_beta(a, b, *safe), -math.inf)
    return Tails(log, _is_lower(a, b, x))
