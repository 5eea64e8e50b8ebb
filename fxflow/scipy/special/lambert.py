"""Lambert's W, the inverse of w exp(w), on all its branches, and Wright's ω."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import in_64_bits, operands
from fxflow.transforms.custom_jvp import custom_jvp

# exp(-1) and what its rounding leaves, so that the distance from the branch point
# keeps its digits.
_BRANCH, _BRANCH_REST = 0.36787944117144233, -1.2428753672788363e-17
_STEPS, _REACH = 8, 0.25


@functools.lru_cache
def _coefficients(count: int = 26) -> list[float]:
    """Coefficients of W in powers of p = ±√(2 (e z + 1)).

    From the recurrence of R. Corless and others, On the Lambert W function, 1996.
    """
    mu, alpha = [Fraction(-1), Fraction(1)], [Fraction(2), Fraction(-1)]
    for k in range(2, count):
        inner = sum((mu[j] * mu[k + 1 - j] for j in range(2, k)), Fraction(0))
        alpha.append(inner)
        first = Fraction(k - 1, k + 1) * (mu[k - 2] / 2 + alpha[k - 2] / 4)
        mu.append(first - inner / 2 - mu[k - 1] / (k + 1))
    return [float(m) for m in mu]


def _around_branch(p: Any) -> Any:
    """Returns W by its series at the branch point."""
    total = 0 * p
    for c in reversed(_coefficients()):
        total = total * p + c
    return total


def _root(z: Any) -> Any:
    """Returns p of z, of which W is a series."""
    return lax.sqrt(2 * math.e * ((z + _BRANCH) + _BRANCH_REST))


def _improved(w: Any, z: Any) -> Any:
    """Returns W from an approximation, by Halley's method."""

    def step(_: Any, w: Any) -> Any:
        off = w - z * lax.exp(-w)
        # Where w + 1 is near 0 the series is used instead.
        one = w + 1
        one = fnp.where(one == 0, 1, one)
        return w - off / (one - 0.5 * (w + 2) * off / one)

    return lax.fori_loop(0, _STEPS, step, w)


def _real(x: Any, k: int) -> Any:
    """Returns the branch 0 or -1 of real numbers, of which it is real."""
    p = _root(fnp.where(x > -_BRANCH, x, -_BRANCH))
    p = -p if k else p
    near = lax.abs(p) < _REACH
    if k:
        inside = ~near & (x < 0) & (x > -_BRANCH)
        z = fnp.where(inside, x, -0.1)
        first = lax.log(-z)
        second = lax.log(-first)
        start = first - second + second / first
    else:
        inside = ~near & (x > -_BRANCH) & (x < math.inf)
        z = fnp.where(inside, x, 1)
        first = lax.log1p(z)
        start = first * (1 - lax.log1p(first) / (2 + first))
    start = fnp.where(z < -0.25, _around_branch(fnp.clip(p, -1, 1)), start)
    return fnp.where(near, _around_branch(fnp.where(near, p, 0)), _improved(start, z))


def _complex(z: Any, k: int) -> Any:
    """Returns a branch of complex numbers, which are neither 0 nor infinite."""
    p = _root(z)
    size = lax.abs(p)
    if k == 0:
        close = size < 1
    elif k in (-1, 1):
        # These branches meet the point from one side of the cut only.
        upper = fnp.imag(z) >= 0
        close, p = (size < 1) & (upper if k == -1 else ~upper), -p
    else:
        close = size < 0
    logarithm = lax.log(z) + 2j * math.pi * k
    zero = logarithm == 0
    start = logarithm - lax.log(fnp.where(zero, 1, logarithm))
    if k == 0:
        right = (fnp.real(z) > -0.5) & (lax.abs(z) < 20)
        first = lax.log(1 + fnp.where(right, z, 1))
        moderate = first * (1 - lax.log(1 + first) / (2 + first))
        start = fnp.where(right, moderate, start)
    series = _around_branch(fnp.where(close, p, 0))
    start = fnp.where(close, series, start)
    return fnp.where(close & (size < _REACH), series, _improved(start, z))


@functools.lru_cache
def _branch(k: int) -> Callable[[Any], Any]:
    """Returns the function of a branch, of complex numbers of 64 bits."""

    @custom_jvp
    def branch(z: Any) -> Any:
        x, y = fnp.real(z), fnp.imag(z)
        origin = (x == 0) & (y == 0)
        unknown = (x != x) | (y != y)
        infinite = ((lax.abs(x) == math.inf) | (lax.abs(y) == math.inf)) & ~unknown
        plain = ~(origin | infinite | unknown)
        w = _complex(fnp.where(plain, z, 1), k)
        if k in (0, -1):
            real = (y == 0) & (x > -_BRANCH) & ((x < 0) if k else plain)
            on_axis = _real(fnp.where(real, x, -0.2), k)
            w = fnp.where(real, lax.complex(on_axis, fnp.zeros_like(x)), w)
        turn = 2 * math.pi * k + lax.atan2(y, x)
        far = lax.complex(lax.full_like(x, math.inf), turn)
        w = fnp.where(infinite, far, w)
        at_0 = (
            z if k == 0 else lax.complex(lax.full_like(x, -math.inf), fnp.zeros_like(x))
        )
        w = fnp.where(origin, at_0, w)
        return fnp.where(unknown, lax.full_like(w, math.nan), w)

    branch.defjvps(lambda t, out, z: t * (lax.exp(-out) / (1 + out)))
    return branch


def lambertw(z: ArrayLike, k: int = 0, tol: float = 1e-8) -> Array:
    """Lambert's W: the solution w of w exp(w) = z, on one of its branches.

    The branches 0, and -1 between -1/e and 0, are exactly real for real `z`. The values
    are computed in 64 bits and rounded to the dtype.

    Args:
      z: array-like, taken for complex.
      k: which branch.
      tol: not needed: the result has all digits.

    Returns:
      Complex array of the shape of `z`.

    Raises:
      ArgumentError: an argument is not an array, or `k` is not an integer.

    Special cases:
      0 → 0 on the branch 0, -inf on the others; inf → inf + 2 π k i. The derivative is
      infinite at the branch point -1/e.

    Example:
      >>> lambertw(1.0).round(4)
      Array(0.5671+0.j, dtype=complex64)

    Source: `scipy.special.lambertw`, of one branch in a call; R. Corless and others,
    On the Lambert W function, 1996.
    """
    return _lambertw(z, k=integer("lambertw", "k", k))


@library("k", quick=True)
def _lambertw(z: Any, *, k: int) -> Array:
    (z,) = operands("lambertw", z, real=False)
    dtype = dtypes.to_complex(z.aval.dtype)
    return convert(_branch(k)(convert(z, dtypes.complex128)), dtype)


@custom_jvp
def _omega(x: Any) -> Any:
    small, large = x < -50, x > 1e20
    z = fnp.where(small | large | (x != x), 0, x)
    high = fnp.where(z > 1, z, 2)
    logarithm = lax.log(high)
    start = lax.exp(fnp.where(z < -2, z, 2 / 3 * (fnp.minimum(z, 1) - 1)))
    w = fnp.where(z > 1, high - logarithm + logarithm / high, start)
    for _ in range(2):
        # A step of the fourth order (F. Fritsch and others, 1973).
        rest = z - w - lax.log(w)
        one = 1 + w
        part = 2 * one * (one + 2 / 3 * rest)
        w = w * (1 + rest / one * (part - rest) / (part - 2 * rest))
    w = fnp.where(small, lax.exp(fnp.where(small, x, 0)), w)
    return fnp.where(large | (x != x), x, w)


_omega.defjvps(
    lambda t, out, x: t * fnp.where(out == math.inf, 1, out / (1 + out)),
)


def _omega_start(z: Any) -> Any:
    """Returns approximations of ω of complex numbers (P. Lawrence and others, 2012)."""
    x, y = fnp.real(z), fnp.imag(z)
    upper = y > 0
    half = fnp.where(upper, math.pi, -math.pi)
    inner = lax.abs(y) <= math.pi
    # Beyond the cuts from -1 ± i π to the left.
    turned = lax.complex(x, y - half)
    logarithm = lax.log(-fnp.where(turned == 0, -1, turned))
    left = turned - logarithm + logarithm / fnp.where(turned == 0, -1, turned)
    logarithm = lax.log(fnp.where(z == 0, 1, z))
    right = z - logarithm + logarithm / fnp.where(z == 0, 1, z)
    middle = 1 + 0.5 * (z - 1) + (z - 1) * (z - 1) / 16
    small = lax.exp(fnp.where(x < 0, z, 0))
    start = fnp.where((x <= -1) & ~inner & (lax.abs(y) <= 3 * math.pi), left, right)
    start = fnp.where((x > -1) & (x <= 1) & (lax.abs(y) <= 2.5), middle, start)
    return fnp.where((x <= -1) & inner, small / (1 + small), start)


def _omega_at_branch(z: Any) -> tuple[Any, Any]:
    """Returns what ω is a series of near -1 ± i π, and its sum."""
    x, y = fnp.real(z), fnp.imag(z)
    half = fnp.where(y > 0, math.pi, -math.pi)
    rest = fnp.where(y > 0, 1.2246467991473532e-16, -1.2246467991473532e-16)
    away = lax.complex(x + 1, (y - half) - rest)
    p = lax.sqrt(-2 * lax.expm1(fnp.where(lax.abs(away) < 2, away, 2)))
    return lax.abs(p), _around_branch(fnp.where(lax.abs(y) <= math.pi, p, -p))


@custom_jvp
def _complex_omega(z: Any) -> Any:
    x, y = fnp.real(z), fnp.imag(z)
    finite = (x - x == 0) & (y - y == 0)
    small = finite & (x < -50) & (lax.abs(y) <= math.pi)
    z = fnp.where(finite & ~small, z, 1)
    size, series = _omega_at_branch(z)
    w = fnp.where(size < 1.2, series, _omega_start(z))
    # On a cut, where real numbers below -1 have both signs of zero.
    half = fnp.where(fnp.imag(z) > 0, math.pi, -math.pi)
    beyond = (lax.abs(fnp.imag(z)) > math.pi) & (fnp.real(z) < -0.5)

    def step(_: Any, w: Any) -> Any:
        # Near the negative axis -w has a logarithm that does not jump.
        logarithm = lax.log(fnp.where(beyond, -w, w))
        rest = z - w - fnp.where(beyond, lax.complex(0 * half, half), 0) - logarithm
        one = 1 + w
        part = 2 * one * (one + 2 / 3 * rest)
        moved = w * (1 + rest / one * (part - rest) / (part - 2 * rest))
        return fnp.where((rest == 0) | (one == 0), w, moved)

    w = fnp.where(size < _REACH, w, lax.fori_loop(0, 5, step, w))
    tiny = lax.exp(fnp.where(small, lax.complex(x, y), 0))
    w = fnp.where(small, tiny, w)
    inner = lax.abs(y) <= math.pi
    zero = lax.complex(lax.cos(y) * 0, lax.sin(y) * 0)
    far = fnp.where((x == -math.inf) & inner, zero, lax.complex(x, y))
    return fnp.where(finite, w, far)


_complex_omega.defjvps(lambda t, out, z: t * (out / (1 + out)))


@library(quick=True)
def wrightomega(z: ArrayLike) -> Array:
    """Wright's ω: the solution of ω + log(ω) = z, of complex numbers the principal one.

    Args:
      z: real or complex array-like.

    Returns:
      Float or complex array of the shape of `z`.

    Raises:
      ArgumentError: an argument is not an array.

    Special cases:
      -inf → 0; inf → inf. Two cuts go from -1 ± π i to the left, where the values are
      those of the upper cut from below and of the lower one from above.

    Example:
      >>> wrightomega(1.0)
      Array(1., dtype=float32)

    Source: `scipy.special.wrightomega`, with derivatives; P. Lawrence and others,
    Algorithm 917, 2012.
    """
    (z,) = operands("wrightomega", z, real=False)
    if dtypes.is_complex(z.aval.dtype):
        return convert(_complex_omega(convert(z, dtypes.complex128)), z.aval.dtype)
    return in_64_bits(_omega, "wrightomega", z)
