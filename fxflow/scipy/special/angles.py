"""Functions of angles in degrees, and the Dirichlet kernel."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._cylinder import cospi, sinpi
from fxflow.scipy.special._operands import docs_of, operands, safe

_docs = docs_of("""
x: real array-like: the angle.
d: real array-like: degrees.
m: real array-like: minutes.
s: real array-like: seconds.
n: integers, array-like: the period.
""")


def _halves(x: Any) -> Any:
    """Returns an angle in units of 180 degrees, less whole turns."""
    return (x - 360 * lax.stop_gradient(lax.round(x / 360))) / 180


@library()
@_docs
def sindg(x: ArrayLike) -> Array:
    """Sine of an angle in degrees, which is exactly 0 at multiples of 180.

    Example:
      >>> sindg(30.0).round(4)
      Array(0.5, dtype=float32)
    """
    out: Array = sinpi(_halves(*operands("sindg", x)))
    return out


@library()
@_docs
def cosdg(x: ArrayLike) -> Array:
    """Cosine of an angle in degrees, which is exactly 0 at 90.

    Example:
      >>> cosdg(60.0).round(4)
      Array(0.5, dtype=float32)
    """
    out: Array = cospi(_halves(*operands("cosdg", x)))
    return out


@library()
@_docs
def tandg(x: ArrayLike) -> Array:
    """Tangent of an angle in degrees.

    Special cases:
      90 plus multiples of 180 → inf.

    Example:
      >>> tandg(45.0).round(4)
      Array(1., dtype=float32)
    """
    half = _halves(*operands("tandg", x))
    cosine = cospi(half)
    return fnp.where(cosine == 0, math.inf, sinpi(half) / safe(cosine != 0, cosine, 1))


@library()
@_docs
def cotdg(x: ArrayLike) -> Array:
    """Cotangent of an angle in degrees.

    Special cases:
      Multiples of 180 → inf.

    Example:
      >>> cotdg(45.0).round(4)
      Array(1., dtype=float32)
    """
    half = _halves(*operands("cotdg", x))
    sine = sinpi(half)
    return fnp.where(sine == 0, math.inf, cospi(half) / safe(sine != 0, sine, 1))


@library()
@_docs
def radian(d: ArrayLike, m: ArrayLike, s: ArrayLike) -> Array:
    """Radians of an angle in degrees, minutes and seconds.

    Example:
      >>> radian(90.0, 0.0, 0.0).round(4)
      Array(1.5708, dtype=float32)
    """
    d, m, s = operands("radian", d, m, s)
    return (d + (m + s / 60) / 60) * (math.pi / 180)


@library()
@_docs
def diric(x: ArrayLike, n: ArrayLike) -> Array:
    """The Dirichlet kernel, sin(n x / 2) / (n sin(x / 2)), in radians.

    Special cases:
      Multiples of 2π → ±1; `n` not a positive integer: nan.

    Example:
      >>> diric(1.0, 3).round(4)
      Array(0.6935, dtype=float32)
    """
    x, n = operands("diric", x, n)
    known = (n > 0) & (n == lax.floor(n)) & (n < math.inf)
    count = safe(known, n, 1)
    turns = lax.stop_gradient(lax.round(x / (2 * math.pi)))
    rest = (x - turns * (2 * math.pi)) - turns * 2.4492935982947064e-16
    near = lax.abs(rest) * count < 1e-2
    low, high = safe(near, rest, 0), safe(~near, rest, 1)
    # By the first terms of both series.
    a = lax.square(0.5 * low)
    b = a * count * count
    series = 1 - (b - a) / 6 + (b * b - a * a) / 120 - a * (b - a) / 36
    value = lax.sin(0.5 * count * high) / (count * lax.sin(0.5 * high))
    out = fnp.where(near, series, value)
    odd = turns * (count - 1)
    out = fnp.where(odd - 2 * lax.floor(odd / 2) == 1, -out, out)
    return fnp.where(known, out, math.nan)
