"""Stable distributions by Nolan's integral.

In SciPy's parametrization "S1" a standard variable has the characteristic function
exp(-|t|^α (1 - i β sign(t) tan(πα/2))), with -2/π log |t| for the tangent where α is 1.
Zolotarev's integral, in the form of Nolan (1997), has a positive integrand with one
peak: there is an interval on each side of it, and a rule whose nodes are dense at ends.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, ParamSpec

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.random._arguments import arguments
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import Domain
from fxflow.scipy.stats._flexible import LOWS, RESTS, WEIGHTS, log_sum
from fxflow.scipy.stats._positives import log_rest
from fxflow.scipy.stats._protocol import Given, log_of
from fxflow.transforms.custom_jvp import custom_jvp

P = ParamSpec("P")
_TINY = 1e-300
#: Where α is 1, a skewness up to this counts as 0.
_NONE = 1e-12
_LOG_PI = math.log(math.pi)


def _wide(*arrays: Any) -> list[Any]:
    return [fnp.expand_dims(v, -1) for v in arrays]


class _Angles(NamedTuple):
    """The angles of a standard variable above 0, for α that is not 1.

    Attributes:
      length: length of the interval of integration, π/2 + θ₀ in Nolan's notation.
      first: π/2 - θ₀: the probability below 0 is that over π.
      last: π - α (π/2 + θ₀), which is 0 where the upper tail is light.
      log_cosine: log cos α θ₀.
    """

    length: Any
    first: Any
    last: Any
    log_cosine: Any


def _angles(alpha: Any, beta: Any) -> _Angles:
    above = alpha > 1
    # The distance of πα/2 from the nearest zero of its tangent.
    a = fnp.where(above, math.pi - math.pi / 2 * alpha, math.pi / 2 * alpha)
    side = fnp.where(above, -beta, beta)
    sine, cosine = lax.sin(a), lax.cos(a)
    # What is left of the distance: exactly 0 at an end of β.
    rest = lax.atan2((1 - side) * sine * cosine, cosine**2 + side * sine**2)
    shift = lax.atan2(side * sine, cosine)
    length = (math.pi - rest) / alpha, math.pi / 2 + shift / alpha
    length = fnp.where(above, *length)
    return _Angles(
        length,
        fnp.where(above, math.pi - length, rest / alpha),
        fnp.where(above, rest, math.pi - alpha * length),
        lax.log(lax.abs(cosine)) - 0.5 * lax.log(cosine**2 + (beta * sine) ** 2),
    )


def _log_sinc(y: Any) -> Any:
    """Returns log (sin y / y), of y from 0 to below π."""
    small = y < 1e-2
    safe = fnp.where(small, 1, y)
    near = fnp.where(small, y, 0) ** 2
    series = -near / 6 * (1 + near / 30 * (1 + near * (4 / 63)))
    return fnp.where(small, series, lax.log(lax.sin(safe) / safe))


def _log_sin(first: Any, rate: Any, y: Any, log: Any) -> Any:
    """Returns log sin (first + rate y), of y and its logarithm.

    Derivatives of the logarithm of a tiny sum would overflow.
    """
    whole = first + rate * y
    none = first == 0
    plain = lax.log(fnp.where(none, 1, fnp.maximum(whole, _TINY)))
    size = fnp.where(none, lax.log(fnp.where(rate > 0, rate, 1)) + log, plain)
    return size + _log_sinc(whole)


class _Place(NamedTuple):
    """Distances from both ends of the interval of integration, and their logarithms."""

    u: Any
    v: Any
    log_u: Any
    log_v: Any


def _height(x: Any, alpha: Any, beta: Any, angles: _Angles, at: _Place) -> Any:
    """Returns the logarithm of the exponent."""
    one = alpha == 1
    a = fnp.where(one, 2, alpha)
    u, v, log_u, log_v = at
    log_x = lax.log(fnp.where(one, 1, x))
    cosine = fnp.where(  # of θ
        v < angles.first + u,
        _log_sin(0.0 * v, 1.0, v, log_v),
        _log_sin(angles.first, 1.0, u, log_u),
    )
    inner = fnp.where(  # the sine of α (θ₀ + θ)
        a * u < angles.last + a * v,
        _log_sin(0.0 * u, a, u, log_u),
        _log_sin(angles.last, a, v, log_v),
    )
    outer = fnp.where(
        a > 1,
        _log_sin(angles.last, a - 1, v, log_v),
        _log_sin(angles.first, 1 - a, u, log_u),
    )
    plain = angles.log_cosine / (a - 1) + a / (a - 1) * (cosine - inner + log_x)
    plain = plain + outer - cosine
    # α = 1, β > 0: the places do not move.
    b = fnp.where(beta > _NONE, beta, 1)
    u, v = lax.stop_gradient(u), lax.stop_gradient(v)
    sine = lax.sin(fnp.minimum(u, v))
    line = math.pi / 2 * (1 - b) + b * u
    slope = -lax.cos(u) / sine
    limit = (line * slope - math.pi / 2 * x) / b
    limit = limit + math.log(2 / math.pi) + lax.log(line) - lax.log(sine)
    return fnp.where(one, limit, plain)


def _nodes(x: Any, alpha: Any, beta: Any) -> tuple[Any, Any, _Angles]:
    """Returns the heights at nodes, the logarithms of weights, and the angles."""
    one = alpha == 1
    angles = _angles(fnp.where(one, 1.5, alpha), fnp.where(one, 0, beta))
    angles = angles._replace(length=fnp.where(one, math.pi, angles.length))
    rising = alpha <= 1
    fixed = [lax.stop_gradient(v) for v in (x, alpha, beta)]
    still = _Angles(*(lax.stop_gradient(v) for v in angles))

    def placed(length: Any, parts: Any, logs: Any) -> _Place:
        low, high = (fnp.maximum(length * p, _TINY) for p in parts)
        size = lax.log(length)
        return _Place(low, high, size + logs[0], size + logs[1])

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        t = 0.5 * (low + high)
        parts = lax.logistic(t), lax.logistic(-t)
        at = placed(still.length, parts, [lax.log(p) for p in parts])
        left = (_height(fixed[0], fixed[1], fixed[2], still, at) > 0) == rising
        return fnp.where(left, low, t), fnp.where(left, t, high)

    ends = lax.full_like(x, -690), lax.full_like(x, 690)
    t, _ = lax.fori_loop(0, 64, halve, lax.stop_gradient(ends))
    (t,) = _wide(t)
    # Parts of the length, which do not change with the parameters.
    place, width = lax.logistic(t), lax.logistic(-t)
    lows, rests, weights = (fnp.asarray(v, x.dtype) for v in (LOWS, RESTS, WEIGHTS))
    part, rest = lax.exp(lows), lax.exp(rests)
    parts = [
        fnp.concatenate([place * part, place + width * part], axis=-1),
        fnp.concatenate([width + place * rest, width * rest], axis=-1),
    ]
    parts = [fnp.maximum(p, _TINY) for p in parts]
    spread = _Angles(*_wide(*angles))
    at = placed(spread.length, parts, [lax.log(p) for p in parts])
    logs = [weights + lax.log(p) + lax.log(spread.length) for p in (place, width)]
    x, alpha, beta = _wide(x, alpha, beta)
    g = _height(x, alpha, beta, spread, at)
    return g, fnp.concatenate(logs, axis=-1), angles


def _series(x: Any, alpha: Any, angles: _Angles) -> Any:
    """Returns the terms of the density's power series at 0, up to the fifth, in a row.

    One logarithm of gamma for all of them: XLA compiles each for long.
    """
    k = np.arange(5.0)
    a, log, first = _wide(alpha, angles.log_cosine / alpha, angles.first)
    orders, factorials = (
        fnp.asarray(v, x.dtype) for v in (k, [math.lgamma(n) for n in k + 1])
    )
    size = gammaln((orders + 1) / a) + (orders + 1) * log - _LOG_PI - factorials
    turn = (orders + 1) * (math.pi / 2 - first) - 0.5 * math.pi * orders
    powers = [lax.full_like(x, 1), x]
    for _ in range(3):
        powers.append(powers[-1] * x)
    return lax.exp(size) / a * lax.cos(turn) * fnp.stack(powers, axis=-1)


def _is_near(x: Any, alpha: Any, angles: _Angles) -> Any:
    """Returns where the series at 0 is exact."""
    both = gammaln(fnp.asarray([1.0, 2.0], x.dtype) / fnp.expand_dims(alpha, -1))
    rate = both[..., 1] - both[..., 0] + angles.log_cosine / alpha
    near = lax.log(fnp.maximum(x, _TINY)) + rate < math.log(1e-4)
    return near & (angles.first > 1e-3) & (angles.length > 1e-3) & (alpha > 0.2)


def _mirrored(x: Any, alpha: Any, beta: Any) -> tuple[Any, Any, Any]:
    """Returns whether a variable is turned around, and the one that is not."""
    # Where α is 1 the skewness decides, else the side.
    turned = fnp.where(alpha == 1, beta < 0, x < 0)
    sign = fnp.where(turned, -1, 1).astype(x.dtype)
    return turned, sign * x, sign * beta


def _places(y: Any, alpha: Any, beta: Any) -> tuple[Any, Any, Any]:
    """Returns α but 1, where the series is used, and where the integral is not 0."""
    one = alpha == 1
    a = fnp.where(one, 2, alpha)
    near = ~one & _is_near(y, a, _angles(a, fnp.where(one, 0, beta)))
    return a, near, fnp.where(one, y, fnp.where(near, 1, fnp.maximum(y, _TINY)))


def _is_cauchy(alpha: Any, beta: Any) -> Any:
    return (alpha == 1) & (lax.abs(beta) <= _NONE)


@custom_jvp
def _jump(alpha: Any) -> Any:
    """Returns 0; there is no derivative by α at 1, where "S1" jumps."""
    return 0 * alpha


@_jump.defjvp
def _jump_slope(primals: Any, tangents: Any) -> Any:
    (alpha,), (change,) = primals, tangents
    return 0 * alpha, fnp.where(alpha == 1, math.nan, 0) * change


def _logpdf(x: Any, alpha: Any, beta: Any) -> Any:
    _, y, b = _mirrored(x, alpha, beta)
    one, cauchy = alpha == 1, _is_cauchy(alpha, beta)
    a, near, at = _places(y, alpha, b)
    g, weights, angles = _nodes(at, alpha, b)
    log = log_sum(weights + g - lax.exp(fnp.minimum(g, 700)), 1.0)
    safe = fnp.where(one, 1, at)
    plain = log + lax.log(a / lax.abs(a - 1)) - _LOG_PI - lax.log(safe)
    limit = log - lax.log(2 * fnp.where(cauchy | ~one, 1, b))
    terms = fnp.sum(_series(fnp.where(near, y, 0), a, angles), axis=-1)
    small = lax.log(fnp.where(near, terms, 1))
    out = fnp.where(one, limit, fnp.where(near, small, plain))
    out = fnp.where(~one & (angles.length < 1e-15), -math.inf, out)
    known = -_LOG_PI - lax.log1p(x * x)
    return fnp.where(cauchy, known, out) + _jump(alpha)


def _logs_of(x: Any, alpha: Any, beta: Any) -> Any:
    turned, y, b = _mirrored(x, alpha, beta)
    one, cauchy = alpha == 1, _is_cauchy(alpha, beta)
    a, near, at = _places(y, alpha, b)
    g, weights, angles = _nodes(at, alpha, b)
    low = log_sum(weights - lax.exp(fnp.minimum(g, 700)), 1.0) - _LOG_PI
    small = lax.exp(fnp.clip(g, -30, 30))
    rest = fnp.where(g < -30, g, lax.log(-lax.expm1(-small)))
    high = log_sum(weights + rest, 1.0) - _LOG_PI
    # α > 1: the upper tail, and what is between 0 and x; else the other way.
    above, between = (fnp.where(alpha > 1, a, c) for a, c in ((low, high), (high, low)))
    small = fnp.where(near, y, 0)
    parts = fnp.asarray(1 / np.arange(1.0, 6), x.dtype)
    terms = fnp.sum(_series(small, a, angles) * parts, axis=-1) * small
    rest = fnp.where(near, angles.length / math.pi - terms, 1)
    above = fnp.where(near, lax.log(rest), above)
    between = fnp.where(near, terms, lax.exp(between))
    below = log_of(fnp.where(one, 0, angles.first / math.pi) + between)
    none = ~one & (angles.length < 1e-15)
    above, below = fnp.where(none, -math.inf, above), fnp.where(none, 0, below)
    # A tail near 1 is computed from the other one, which has the digits.
    half = -math.log(2)
    above, below = (
        fnp.where(below < half, log_rest(fnp.minimum(below, half)), above),
        fnp.where(above < half, log_rest(fnp.minimum(above, half)), below),
    )
    pair = [fnp.where(turned, above, below), fnp.where(turned, below, above)]
    known = [lax.log(lax.atan2(lax.full_like(x, 1), s) / math.pi) for s in (-x, x)]
    out = [
        fnp.minimum(fnp.where(cauchy, k, p), 0)
        for k, p in zip(known, pair, strict=True)
    ]
    return fnp.stack(out) + _jump(alpha)


class _Stable(Continuous[P]):
    """The family, which scales in its own way where α is 1."""

    def moved(self, shapes: list[Any], loc: Any, scale: Any) -> Any:
        """Returns where the standard variable's 0 is: a scale moves it if α is 1."""
        alpha, beta = shapes
        shift = 2 / math.pi * beta * scale * lax.log(scale)
        return loc + fnp.where(alpha == 1, shift, 0)

    def drawn(self, key: Any, args: Any, shape: Any, dtype: Any) -> Array:
        """Returns numbers of `fxflow.random.levy_stable`, moved."""
        name = "levy_stable.rvs"
        _, full, chosen, *given = arguments(name, key, shape, dtype, *args)
        g = Given(self, "rvs", (), given)
        alpha, beta = g.shapes
        z = random.levy_stable(key, alpha, beta, full, chosen)
        return fnp.where(g.valid, g.loc + g.scale * z, math.nan)


def _shapes(
    alpha: ArrayLike, beta: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def _of_two(alpha: Any, beta: Any, value: float, other: float) -> Any:
    return fnp.where(alpha == 2, value, other)


levy_stable: Final = _Stable(
    "levy_stable",
    """The stable distributions: sums of independent variables of one are of it, too.

    The parametrization is SciPy's "S1", in which `loc` is the mean where there is one.
    A variable of "S0", which is continuous in `alpha` at 1, is one of "S1" with the
    location `loc - scale * beta * tan(pi * alpha / 2)`, or where `alpha` is 1
    `loc - 2 / pi * scale * beta * log(scale)`. The derivative by `alpha` at 1 is nan.
    """,
    _shapes,
    support=(
        lambda alpha, beta: fnp.where((alpha < 1) & (beta == 1), 0, -math.inf),
        lambda alpha, beta: fnp.where((alpha < 1) & (beta == -1), 0, math.inf),
    ),
    closed=False,
    logpdf=lambda x, a, b: in_64_bits(_logpdf, "levy_stable", x, a, b),
    logs=lambda x, a, b: tuple(in_64_bits(_logs_of, "levy_stable", x, a, b)),
    logcdf=lambda x, a, b: in_64_bits(_logs_of, "levy_stable", x, a, b)[0],
    logsf=lambda x, a, b: in_64_bits(_logs_of, "levy_stable", x, a, b)[1],
    mean=lambda a, b: fnp.where(a > 1, 0.0, math.nan),
    var=lambda a, b: _of_two(a, b, 2.0, math.inf),
    skew=lambda a, b: _of_two(a, b, 0.0, math.nan),
    kurtosis=lambda a, b: _of_two(a, b, 0.0, math.nan),
    alpha=Domain(
        "real array-like above 0 to 2",
        lambda a: (a > 0) & (a <= 2),
        1.5,
        lambda a: 2 * lax.logistic(a),
        lambda a: lax.log(a) - lax.log(2 - a),
    ),
    beta=Domain(
        "real array-like from -1 to 1",
        lambda b: (b >= -1) & (b <= 1),
        0.0,
        lax.tanh,
        lax.atanh,
    ),
)
