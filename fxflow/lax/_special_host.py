"""Special functions in NumPy and 64 bits: the oracles of the compiled ones.

Written for being right, one element at a time, by other methods than the compiled
functions: the eager interpreter does not use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def elementwise(function: Callable[..., float]) -> Callable[..., Any]:
    """Returns a function of NumPy arrays from one of Python floats.

    The result has the operands' dtype.
    """
    vectorized = np.vectorize(function, otypes=[np.float64])

    def call(*values: Any) -> Any:
        wide = np.broadcast_arrays(*[np.asarray(v).astype(np.float64) for v in values])
        if not wide[0].size:
            return wide[0].astype(values[0].dtype)
        with np.errstate(all="ignore"):
            return np.asarray(vectorized(*wide)).astype(values[0].dtype)

    return call


def erf_inv(y: float) -> float:
    """Newton's method on erf or, in the tail, on erfc."""
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    tail = 1 - abs(y)
    # Start from Winitzki's approximation (2008).
    log = math.log(tail * (1 + abs(y)))
    part = 2 / (math.pi * 0.147) + log / 2
    x = math.sqrt(math.sqrt(part * part - log / 0.147) - part)
    for _ in range(60):
        step = (tail - math.erfc(x)) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= step
        if abs(step) < 1e-16 * abs(x):
            break
    return math.copysign(x, y)


def lgamma(x: float) -> float:
    """Log |Γ(x)|; infinite at the poles."""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def digamma(x: float) -> float:
    """Recurrence up to 10, then the asymptotic series; reflection below 0."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return math.inf
    if x == 0:
        return -math.copysign(math.inf, x)
    if x <= 0:
        if x == math.floor(x):
            return math.nan
        return digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    # From 10 on the first term that the series leaves out, about x⁻¹⁴/12, is at the
    # rounding of 64 bits.
    while x < 10:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (
        1 / 12
        - y
        * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760))))
    )
    return total + math.log(x) - 0.5 / x - series


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def zeta(x: float, q: float) -> float:
    """The Hurwitz zeta function by the Euler-Maclaurin formula."""
    if math.isnan(x) or math.isnan(q) or x < 1:
        return math.nan
    if x == 1:
        return math.inf
    if q <= 0:
        if q == math.floor(q):
            return math.inf
        if x != math.floor(x) or math.isinf(x):
            return math.nan
    if math.isinf(q):
        return 0.0
    # Enough terms summed directly for eight corrections of the tail to reach 64 bits.
    count = 20 + max(0, math.ceil(-q))
    total = float(np.sum(np.power(q + np.arange(count), -x)))
    end = q + count
    if x > 100 * end:
        return total
    total += end ** (1 - x) / (x - 1) + 0.5 * end**-x
    factor = x
    for k, number in enumerate(_BERNOULLI, 1):
        total += number / math.factorial(2 * k) * factor * end ** (-x - 2 * k + 1)
        factor *= (x + 2 * k - 1) * (x + 2 * k)
    return float(total)


def polygamma(m: float, x: float) -> float:
    """The m-th derivative of digamma."""
    if m == 0:
        return digamma(x)
    if math.isnan(m) or math.isnan(x) or m < 0 or m != math.floor(m):
        return math.nan
    sign = 1 if m % 2 else -1
    return sign * math.exp(math.lgamma(m + 1)) * zeta(m + 1, x)


def bessel_i0e(x: float) -> float:
    """exp(-|x|) I₀(x) from its integral, by the trapezoidal rule."""
    # For a periodic integrand the rule converges exponentially.
    angles = (np.arange(2000) + 0.5) * (np.pi / 2000)
    return float(np.mean(np.exp(abs(x) * (np.cos(angles) - 1))))


def bessel_i1e(x: float) -> float:
    """exp(-|x|) I₁(x) from its integral."""
    angles = (np.arange(2000) + 0.5) * (np.pi / 2000)
    mean = np.mean(np.cos(angles) * np.exp(abs(x) * (np.cos(angles) - 1)))
    return math.copysign(float(mean), x)


def _gauss(function: Callable[[Any], Any], low: float, high: float) -> float:
    """Integral over an interval, by Gauss-Legendre quadrature on 64 pieces."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(low, high, 65)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[1:] + edges[:-1])[:, None] / 2
    return float(np.sum(function(middle + half * nodes) * weights * half))


def _end(a: float, x: float) -> float | None:
    """Returns the lower function where it is known, else None."""
    if math.isnan(a) or math.isnan(x) or a < 0 or x < 0 or (a == 0 and x == 0):
        return math.nan
    if math.isinf(a):
        return math.nan if math.isinf(x) else 0.0
    if x == 0:
        return 0.0
    return 1.0 if a == 0 or math.isinf(x) else None


def igamma(a: float, x: float) -> float:
    """Regularised lower incomplete gamma function."""
    end = _end(a, x)
    if end is not None:
        return end
    return 1 - igammac(a, x) if x > a + 1 else _lower(a, x)


def _lower(a: float, x: float) -> float:
    # t = x exp(-s) makes the integrand smooth: below 1e-19 of its start
    # where a s exceeds 45 + x.
    log = a * math.log(x) - math.lgamma(a)
    return _gauss(lambda s: np.exp(log - a * s - x * np.exp(-s)), 0.0, (45 + x) / a)


def igammac(a: float, x: float) -> float:
    """Regularised upper incomplete gamma function."""
    end = _end(a, x)
    if end is not None:
        return 1 - end
    if x <= a + 1:
        return 1 - _lower(a, x)
    log = (a - 1) * math.log(x) - x - math.lgamma(a)

    def integrand(s: Any) -> Any:
        # t = x + s / (1 - s)
        y = s / (1 - s)
        return np.exp(log - y + (a - 1) * np.log1p(y / x)) / (1 - s) ** 2

    return _gauss(integrand, 0.0, 1.0 - 1e-9)


def igamma_grad_a(a: float, x: float) -> float:
    """Derivative of `igamma` with respect to a, by finite differences."""
    if not (a > 0 and x >= 0) or math.isinf(a):
        return math.nan
    if x == 0 or math.isinf(x):
        return 0.0
    h = min(1e-3, a / 8)

    def at(step: float) -> float:
        # Away from 1 differences keep their digits.
        if x > a + 1:
            return -igammac(a + step, x)
        return _lower(a + step, x)

    return (
        # The central difference of order 6.
        45 * (at(h) - at(-h)) - 9 * (at(2 * h) - at(-2 * h)) + (at(3 * h) - at(-3 * h))
    ) / (60 * h)


def random_gamma_grad(a: float, x: float) -> float:
    """How a sample x of the gamma distribution moves with its shape a."""
    if not (a > 0 and x > 0) or math.isinf(a) or math.isinf(x):
        return math.nan
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    return -igamma_grad_a(a, x) / density


def betainc(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function."""
    if not (a >= 0 and b >= 0 and 0 <= x <= 1) or a == b in (0, math.inf):
        return math.nan
    if x in (0, 1):
        return x
    if a == 0 or b == math.inf:
        return 1.0
    if b == 0 or a == math.inf:
        return 0.0
    if x <= a / (a + b):
        # t = x exp(-s), as above.
        log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x)

        def integrand(s: Any) -> Any:
            return np.exp(log - a * s + (b - 1) * np.log1p(-x * np.exp(-s)))

        return _gauss(integrand, 0.0, 45 / a)
    # Symmetric: the smaller part is integrated, so that 1 minus it loses no digits.
    return 1 - betainc(b, a, 1 - x)
