"""The logarithm of the gamma function in the complex plane."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax.gammas import EULER, STIRLING
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _zeta(k: int) -> float:
    """Returns the Riemann zeta function of an integer above 1."""
    head = sum(n**-k for n in range(1, 100))
    # The rest by Euler's and Maclaurin's formula.
    rest = 100 / (k - 1) + 1 / 2 + k / 1200 - k * (k + 1) * (k + 2) / 720e6
    return float(head + rest * 100.0**-k)


# Coefficients of log Γ(1 + w) in powers of -w.
_AROUND_ONE = (0.0, EULER, *(_zeta(k) / k for k in range(2, 28)))


def _polynomial(x: Any, coefficients: Any) -> Any:
    total = fnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _safe(condition: Any, z: Any, value: complex) -> Any:
    return fnp.where(condition, z, fnp.full_like(z, value))


def _stirling(z: Any) -> Any:
    inverse = 1 / z
    series = inverse * _polynomial(inverse * inverse, STIRLING)
    return (z - 0.5) * lax.log(z) - z + _HALF_LOG_2PI + series


def _near_zeros(z: Any) -> tuple[Any, Any]:
    """Returns where 1 or 2 is near, and the logarithm there."""
    one, two = lax.abs(z - 1) < 0.2, lax.abs(z - 2) < 0.2
    w = _safe(one, z - 1, 0) + _safe(two, z - 2, 0)
    series = _polynomial(-w, _AROUND_ONE)
    return one | two, series + fnp.where(two, lax.log1p(_safe(two, w, 0)), 0)


def _right(z: Any) -> Any:
    """Returns it where the real part is at least 1/2, or the imaginary above 7."""
    far = (fnp.real(z) > 7) | (lax.abs(fnp.imag(z)) > 7)
    low = _safe(~far, z, 4)
    shifted = low
    logs = lax.log(low)
    for k in range(1, 8):
        shifted = low + k
        logs = logs + lax.log(shifted)
    below = _stirling(shifted + 1) - logs
    near, value = _near_zeros(low)
    below = fnp.where(near, value, below)
    return fnp.where(far, _stirling(_safe(far, z, 10)), below)


def _of_complex(z: Any) -> Any:
    x, y = fnp.real(z), fnp.imag(z)
    left = (x < 0.5) & (lax.abs(y) <= 7)
    pole = (y == 0) & (x <= 0) & (lax.floor(x) == x)
    finite = (x - x == 0) & (y - y == 0)
    right = _right(_safe(~left & finite, z, 1))
    # Reflection; floor keeps to the branch that is continuous off the negative axis.
    inner = _safe(left & ~pole & finite, z, 0.25)
    a, b = fnp.real(inner), fnp.imag(inner)
    part = lax.stop_gradient(2 * fnp.round(a / 2))
    angle = math.pi * (a - part)
    cosine = lax.cos(angle)
    # At halves it is 0 exactly, or rounding would choose the side of the cut.
    half = lax.abs(a - part) == 0.5
    cosine = cosine - lax.stop_gradient(fnp.where(half, cosine, 0))
    sine = lax.complex(
        lax.sin(angle) * lax.cosh(math.pi * b), cosine * lax.sinh(math.pi * b)
    )
    turns = lax.stop_gradient(lax.floor(0.5 * a + 0.25)) * (2 * math.pi)
    up = (b > 0) | ((b == 0) & (lax.sign(1 / safe(b == 0, b, 1)) > 0))
    branch = fnp.where(up, turns, -turns)
    reflected = math.log(math.pi) - lax.log(sine) - _right(1 - inner)
    reflected = reflected + lax.complex(0 * branch, branch)
    out = fnp.where(left, reflected, right)
    out = fnp.where(pole | ~finite, fnp.full_like(z, complex(math.nan, math.nan)), out)
    return fnp.where((x == math.inf) & (y == 0), fnp.full_like(z, math.inf), out)


@library()
def loggamma(x: ArrayLike) -> Array:
    """Principal branch of the logarithm of the gamma function.

    Args:
      x: array-like. A complex result needs a complex argument.

    Returns:
      Float or complex array of the shape of `x`.

    Raises:
      ArgumentError: an argument is not an array.

    Special cases:
      Real: 0 → inf, negative numbers → nan. Complex: 0 and negative integers → nan. It
      is continuous but for a cut along the negative axis, where it takes the side that
      the sign of the imaginary part says.

    Example:
      >>> loggamma(4.0).round(4), loggamma(1j).round(4)
      (Array(1.7918, dtype=float32), Array(-0.6509-1.8724j, dtype=complex64))

    Source: `scipy.special.loggamma`; D. Hare, Computing the Principal Branch of
    log-Gamma, 1997.
    """
    (z,) = operands("loggamma", x, real=False)
    if dtypes.is_complex(z.aval.dtype):
        out: Array = _of_complex(z)
        return out
    near, value = _near_zeros(z)
    real = fnp.where(near, value, lax.lgamma(safe((z >= 0) & ~near, z, 3)))
    return fnp.where(z >= 0, real, math.nan)
