"""Bessel functions J, Y and K of the orders 0 and 1.

Chebyshev polynomials in x² near 0, of the smooth parts of the functions (DLMF 10.8,
10.31), and far from it in 1/x, of the modulus and phase of Hankel functions (10.17) and
of √x exp(x) K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.scipy.special._cylinder import chebyshev
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special._order_tables import TABLES


def _chebyshev(name: str, t: Any) -> Any:
    return chebyshev(t, TABLES[name])


# -- J and Y ---------------------------------------------------------------------------

# Beyond it by Hankel's expansion.
_FAR = 8.0


def _parts(size: Any) -> tuple[Any, Any, Any, Any]:
    """Returns where x is near 0; x² there, as a polynomial's argument; x; the far x."""
    near = size < _FAR
    low = fnp.where(near, size, 1)
    high = fnp.where(near | (size == math.inf), _FAR, size)
    return near, low * low / 32 - 1, low, high


def _wave(order: int, x: Any, second: bool) -> Any:
    """Returns J, or Y, for x ≥ 8."""
    inverse = _FAR / x
    t = 2 * inverse * inverse - 1
    p, q = _chebyshev(f"P{order}", t), _chebyshev(f"Q{order}", t) / x
    sine, cosine = lax.sin(x), lax.cos(x)
    c, s = cosine + sine, sine - cosine
    if order:
        c, s = s, -c
    wave = p * s + q * c if second else p * c - q * s
    return wave / lax.sqrt(math.pi * x)


def _j0_values(x: Any) -> Any:
    size = lax.abs(x)
    near, t, _, high = _parts(size)
    out = fnp.where(near, _chebyshev("J0", t), _wave(0, high, False))
    return _edges(x, size, out)


def _edges(x: Any, size: Any, out: Any) -> Any:
    return fnp.where(x == x, fnp.where(size == math.inf, 0, out), math.nan)


def _ratio_values(x: Any) -> Any:
    """Returns J₁(x) / x."""
    size = lax.abs(x)
    near, t, _, high = _parts(size)
    out = fnp.where(near, _chebyshev("J1", t), _wave(1, high, False) / high)
    return _edges(x, size, out)


def _j1_values(x: Any) -> Any:
    finite = fnp.where(lax.abs(x) == math.inf, 0, x)
    return finite * _ratio_values(x)


def _logarithm(low: Any) -> Any:
    return 2 / math.pi * lax.log(0.5 * low)


def _y0_values(x: Any) -> Any:
    near, t, low, high = _parts(x)
    positive = fnp.where(low > 0, low, 1)
    below = _logarithm(positive) * _chebyshev("J0", t) + _chebyshev("Y0", t)
    return _only_positive(x, fnp.where(near, below, _wave(0, high, True)), -math.inf)


def _y1_values(x: Any) -> Any:
    near, t, low, high = _parts(x)
    positive = fnp.where(low > 0, low, 1)
    below = _logarithm(positive) * _chebyshev("J1", t) + _chebyshev("Y1", t)
    below = positive * below - 2 / math.pi / positive
    return _only_positive(x, fnp.where(near, below, _wave(1, high, True)), -math.inf)


def _only_positive(x: Any, out: Any, at_zero: float) -> Any:
    out = fnp.where(x == 0, at_zero, fnp.where(x == math.inf, 0, out))
    return fnp.where(x >= 0, out, math.nan)


_ratio: Any = by_forward(_ratio_values, None)
_j0: Any = by_forward(_j0_values, lambda x: -_j1(x))
_j1: Any = by_forward(_j1_values, lambda x: _j0(x) - _ratio(x))
_y0: Any = by_forward(_y0_values, lambda x: -_y1(x))
_y1: Any = by_forward(_y1_values, lambda x: _y0(x) - _y1(x) / x)


# -- K ---------------------------------------------------------------------------------


def _k_values(order: int, scaled: bool, x: Any) -> Any:
    near = x <= 2
    low = fnp.where(near & (x > 0), x, 1)
    t = 0.5 * low * low - 1
    log = lax.log(0.5 * low)
    if order:
        below = log * low * _chebyshev("I1", t) + _chebyshev("K1", t) / low
    else:
        below = _chebyshev("K0", t) - log * _chebyshev("I0", t)
    high = fnp.where(near | (x == math.inf), 2, x)
    above = _chebyshev(f"E{order}", 4 / high - 1) / lax.sqrt(high)
    if scaled:
        below = below * lax.exp(low)
    else:
        above = above * lax.exp(-high)
    return _only_positive(x, fnp.where(near, below, above), math.inf)


_k0: Any = by_forward(lambda x: _k_values(0, False, x), lambda x: -_k1(x))
_k1: Any = by_forward(lambda x: _k_values(1, False, x), lambda x: -_k0(x) - _k1(x) / x)
_k0e: Any = by_forward(lambda x: _k_values(0, True, x), lambda x: _k0e(x) - _k1e(x))
_k1e: Any = by_forward(
    lambda x: _k_values(1, True, x), lambda x: _k1e(x) - _k0e(x) - _k1e(x) / x
)


# -- what users call -------------------------------------------------------------------

_FUNCTIONS = {
    "j": (_j0, _j1),
    "y": (_y0, _y1),
    "k": (_k0, _k1),
    "ke": (_k0e, _k1e),
}
_KINDS = {
    "j": (
        "Bessel function of the first kind",
        "j",
        "±inf → 0, where SciPy returns nan",
    ),
    "y": (
        "Bessel function of the second kind",
        "y",
        "0 → -inf; negative numbers → nan; inf → 0, where SciPy returns nan",
    ),
    "k": (
        "Modified Bessel function of the second kind",
        "k",
        "0 → inf; negative numbers → nan; inf → 0",
    ),
    "ke": (
        "Modified Bessel function of the second kind times exp(x)",
        "ke",
        "0 → inf; negative numbers → nan; inf → 0",
    ),
}


def _declared(name: str, order: int, example: float) -> Callable[[Any], Array]:
    """Declares a function of the order 0 or 1."""
    what, kind, cases = _KINDS[name.replace(str(order), "")]
    compute = _FUNCTIONS[kind][order]

    def function(x: Any) -> Array:
        return in_64_bits(compute, name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}, of order {order}.

    Args:
      x: real array-like.

    Returns:
      Float array of the shape of `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      {cases}.

    Example:
      >>> {name}(1.0).round(4)
      Array({example}, dtype=float32)

    Source: `scipy.special.{name}`.
    """
    return library()(function)


j0: Callable[[Any], Array] = _declared("j0", 0, 0.7652)
j1: Callable[[Any], Array] = _declared("j1", 1, 0.4401)
y0: Callable[[Any], Array] = _declared("y0", 0, 0.0883)
y1: Callable[[Any], Array] = _declared("y1", 1, -0.7812)
k0: Callable[[Any], Array] = _declared("k0", 0, 0.421)
k1: Callable[[Any], Array] = _declared("k1", 1, 0.6019)
k0e: Callable[[Any], Array] = _declared("k0e", 0, 1.1445)
k1e: Callable[[Any], Array] = _declared("k1e", 1, 1.6362)
