"""The Jacobi elliptic functions, by Landen's transformation (R. Bulirsch 1965)."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands

#: So many arithmetic-geometric means are enough for 1 - m of 64 bits.
_LEVELS = 13


def _descended(u: Any, rest: Any) -> tuple[Any, Any, Any, Any]:
    """Returns sn, cn and dn for rest = 1 - m > 0, and u π / (2 K)."""

    def down(state: Any, _: Any) -> Any:
        a, b = state
        root = lax.sqrt(b)
        mean = 0.5 * (a + root)
        return (mean, a * root), (a, root)

    one = lax.full_like(u, 1)
    (mean, _), levels = lax.scan(down, (one, rest), None, length=_LEVELS)
    angle = u * mean
    sine, cosine = lax.sin(angle), lax.cos(angle)
    near = lax.abs(angle) < 1e-9
    small = lax.abs(lax.stop_gradient(sine)) < 1e-12
    # Where the sine is 0 the others are ±1.
    ratio = cosine / fnp.where(small, 1, sine)

    def up(state: Any, level: Any) -> Any:
        c, a, dn = state
        first, second = level
        a, c = a * c, c * dn
        dn = (second + a) / (first + a)
        return (c, c / first, dn), None

    start = (mean * ratio, ratio, one)
    (c, _, dn), _ = lax.scan(up, start, levels, reverse=True)
    size = lax.rsqrt(lax.square(c) + 1)
    sn = fnp.where(sine < 0, -size, size)
    sn = fnp.where(small, fnp.where(near, u, 0), sn)
    cn = fnp.where(small, fnp.where(cosine < 0, -one, one), c * sn)
    return sn, cn, fnp.where(small, 1, dn), angle


def _values(u: Any, m: Any) -> Any:
    """Returns sn, cn, dn and the amplitude along a new first axis."""
    rest = 1 - m
    inside = (lax.abs(u) < math.inf) & (m >= 0) & (rest > 0)
    at = fnp.where(inside, u, 0)
    sn, cn, dn, angle = _descended(at, fnp.where(inside, rest, 0.5))
    part = lax.atan2(sn, cn)
    turns = lax.stop_gradient(lax.round((angle - part) / (2 * math.pi)))
    out = [sn, cn, dn, part + 2 * math.pi * turns]
    # At m = 1 with the first term in 1 - m, which is 0 (DLMF 22.10.7).
    edge = (m == 1) & (u == u)
    at = fnp.where(edge, fnp.clip(u, -700, 700), 0)
    tanh, sech, sinh = lax.tanh(at), 1 / lax.cosh(at), lax.sinh(at)
    less = at * sech - sinh
    quarter = 0.25 * fnp.where(edge, rest, 0)
    limits = [
        tanh - quarter * less * sech,
        sech + quarter * less * tanh,
        sech + quarter * (at * sech + sinh) * tanh,
        2 * lax.atan(lax.tanh(0.5 * at)) - quarter * less,
    ]
    out = [fnp.where(edge, b, a) for a, b in zip(out, limits, strict=True)]
    return fnp.where(inside | edge, fnp.stack(out), math.nan)


def _by_u(u: Any, m: Any) -> Any:
    sn, cn, dn, _ = _functions(u, m)
    return fnp.stack([cn * dn, -sn * dn, -m * sn * cn, dn])


_functions: Any = by_forward(_values, _by_u, None)


@library()
def ellipj(u: ArrayLike, m: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """The Jacobi elliptic functions sn, cn and dn, and the amplitude.

    Args:
      u: real array-like.
      m: real array-like from 0 to 1: the parameter, the square of the modulus.

    Returns:
      Four float arrays of the broadcast shape: sn, cn, dn, and the amplitude, of which
      sn and cn are sine and cosine.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      m outside of 0 … 1, or infinite `u` → nan, but for m = 1: the limits.

    Example:
      >>> sn, cn, dn, ph = ellipj(0.5, 0.3)
      >>> sn.round(4), ph.round(4)
      (Array(0.4742, dtype=float32), Array(0.4941, dtype=float32))

    Source: `scipy.special.ellipj`, with derivatives with respect to all arguments; DLMF
    22.
    """
    u, m = operands("ellipj", u, m)
    wide = (convert(a, dtypes.float64) for a in (u, m))
    sn, cn, dn, ph = convert(_functions(*wide), u.aval.dtype)
    return sn, cn, dn, ph
