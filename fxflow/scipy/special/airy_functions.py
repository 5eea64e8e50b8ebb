"""Airy functions Ai and Bi, plain and scaled.

Chebyshev polynomials: in x near 0; from 1 in the inverse of ζ = 2 x^(3/2) / 3, of Ai
and Bi without their exponential factors, Bi up to 8 in x; below -4 in the inverse of
ζ², of the modulus and phase of their waves (DLMF 9.7).
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._airy_tables import TABLES
from fxflow.scipy.special._cylinder import chebyshev
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands

_LOW, _HIGH, _FAR = -4.0, 1.0, 8.0


def _chebyshev(name: str, t: Any) -> Any:
    return chebyshev(t, TABLES[name])


def _zeta(x: Any) -> Any:
    return 2 / 3 * x * lax.sqrt(x)


def _waves(size: Any) -> tuple[Any, ...]:
    """Returns Ai, Ai', Bi and Bi' of -x for x ≥ 4."""
    zeta = _zeta(size)
    inverse = 1 / zeta
    t = 2 * lax.square(inverse * _zeta(-_LOW + 0 * size)) - 1
    p, r = _chebyshev("P", t), _chebyshev("R", t)
    q, s = _chebyshev("Q", t) * inverse, _chebyshev("S", t) * inverse
    sine, cosine = lax.sin(zeta - math.pi / 4), lax.cos(zeta - math.pi / 4)
    root = lax.sqrt(lax.sqrt(size))
    less, more = 1 / (math.sqrt(math.pi) * root), root / math.sqrt(math.pi)
    return (
        less * (cosine * p + sine * q),
        more * (sine * r - cosine * s),
        less * (cosine * q - sine * p),
        more * (cosine * r + sine * s),
    )


def _scaled(x: Any) -> tuple[Any, ...]:
    """Returns exp(ζ) Ai and Ai', exp(-ζ) Bi and Bi' for x ≥ 1."""
    inverse = 1 / _zeta(x)
    root = lax.sqrt(lax.sqrt(x))
    t = 4 / 3 * inverse - 1
    far = x > _FAR
    middle = 2 / (_FAR - 1) * (fnp.where(far, 1, x) - 1) - 1
    outer = 2 * _zeta(_FAR + 0 * x) * fnp.where(far, inverse, 0) - 1
    bi, dbi = (
        fnp.where(
            far, _chebyshev(f"high {name}", outer), _chebyshev(f"middle {name}", middle)
        )
        for name in ("Bi", "Bi'")
    )
    ai, dai = _chebyshev("high Ai", t), _chebyshev("high Ai'", t)
    return ai / root, dai * root, bi / root, dbi * root


def _parts(x: Any) -> tuple[Any, ...]:
    """Returns where x is large, where it is small, ζ there, and functions of all x."""
    high, low = x > _HIGH, x < _LOW
    above = _scaled(fnp.where(high & (x < math.inf), x, _HIGH))
    below = _waves(fnp.where(low & (x > -math.inf), -x, -_LOW))
    near = fnp.where(high | low | (x != x), 0, x)
    t = 2 / (_HIGH - _LOW) * (near - _LOW) - 1
    inner = [_chebyshev(f"near {name}", t) for name in ("Ai", "Ai'", "Bi", "Bi'")]
    zeta = _zeta(fnp.where((x > 0) & (x < math.inf), x, 0))
    return high, low, zeta, above, below, inner


def _airy_values(x: Any) -> Any:
    """Returns Ai, Ai', Bi and Bi' along a new first axis."""
    high, low, zeta, above, below, inner = _parts(x)
    small = lax.exp(-0.5 * zeta)
    large = lax.exp(0.5 * zeta)
    ends = [(0.0, 0.0), (0.0, math.nan), (math.inf, 0.0), (math.inf, math.nan)]
    out = []
    for k, (right, left) in enumerate(ends):
        factor = small if k < 2 else large
        value = fnp.where(low, below[k], inner[k])
        value = fnp.where(high, factor * (factor * above[k]), value)
        value = fnp.where(x == math.inf, right, value)
        value = fnp.where(x == -math.inf, left, value)
        out.append(fnp.where(x == x, value, math.nan))
    return fnp.stack(out)


def _airy_slope(x: Any) -> Any:
    ai, dai, bi, dbi = _airy(x)
    return fnp.stack([dai, x * ai, dbi, x * bi])


_airy: Any = by_forward(_airy_values, _airy_slope)


def _airye_values(x: Any) -> Any:
    """Returns scaled Ai, Ai', Bi and Bi' along a new first axis."""
    high, low, zeta, above, below, inner = _parts(x)
    small, large = lax.exp(-fnp.where(high, 0, zeta)), lax.exp(fnp.where(high, 0, zeta))
    ends = [(0.0, math.nan), (-math.inf, math.nan), (0.0, 0.0), (math.inf, math.nan)]
    out = []
    for k, (right, left) in enumerate(ends):
        value = inner[k] * (large if k < 2 else small)
        value = fnp.where(low, below[k], value)
        if k < 2:
            value = fnp.where(x < 0, math.nan, value)
        value = fnp.where(high, above[k], value)
        value = fnp.where(x == math.inf, right, value)
        value = fnp.where(x == -math.inf, left, value)
        out.append(fnp.where(x == x, value, math.nan))
    return fnp.stack(out)


def _airye_slope(x: Any) -> Any:
    ai, dai, bi, dbi = _airye(x)
    root = lax.sqrt(fnp.maximum(x, 0))
    return fnp.stack(
        [
            dai + root * ai,
            x * ai + root * dai,
            dbi - root * bi,
            x * bi - root * dbi,
        ]
    )


_airye: Any = by_forward(_airye_values, _airye_slope)

_docs = shared("""
    Args:
      z: real array-like.

    Returns:
      Four float arrays of the shape of `z`: Ai, Ai', Bi, Bi'.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`, with derivatives; DLMF 9.
""")


def _four(function: Any, name: str, z: Any) -> tuple[Array, Array, Array, Array]:
    (x,) = operands(name, z)
    ai, dai, bi, dbi = convert(function(convert(x, dtypes.float64)), x.aval.dtype)
    return ai, dai, bi, dbi


@library(quick=True)
@_docs
def airy(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy functions Ai and Bi, and their derivatives.

    Accurate to a few units in the last place, relative to the amplitude where they
    oscillate.

    Special cases:
      inf → 0, 0, inf, inf; -inf → 0, nan, 0, nan. SciPy returns nan.

    Example:
      >>> ai, dai, bi, dbi = airy(0.0)
      >>> ai.round(4), bi.round(4)
      (Array(0.355, dtype=float32), Array(0.6149, dtype=float32))
    """
    return _four(_airy, "airy", z)


@library(quick=True)
@_docs
def airye(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy functions without their exponential factors.

    With ζ = 2 z^(3/2) / 3 for positive `z`: exp(ζ) Ai and exp(ζ) Ai', exp(-ζ) Bi and
    exp(-ζ) Bi'. For negative `z` Bi and Bi' are those of `airy`.

    Special cases:
      Ai and Ai' of negative numbers → nan; inf → 0, -inf, 0, inf.

    Example:
      >>> ai, dai, bi, dbi = airye(4.0)
      >>> ai.round(4), bi.round(4)
      (Array(0.1971, dtype=float32), Array(0.4048, dtype=float32))
    """
    return _four(_airye, "airye", z)
