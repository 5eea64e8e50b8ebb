"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.lax.elementwise import add, div, mul, sub
from fxflow.lax.families import INEXACT, Elementwise
from fxflow.lax.powers import rsqrt, square


def _one(x: Any) -> Any:
    return arith.constant(1, typeof(x).dtype)


@register
class Sinh(Elementwise):
    """Hyperbolic sine. dtypes: inexact. CHLO: sinh."""

    name = "sinh"
    kinds = INEXACT
    hlo = "chlo.sinh"
    numpy = np.sinh
    partials = (lambda out, x: Cosh.bind(x),)


@register
class Cosh(Elementwise):
    """Hyperbolic cosine. dtypes: inexact. CHLO: cosh."""

    name = "cosh"
    kinds = INEXACT
    hlo = "chlo.cosh"
    numpy = np.cosh
    partials = (lambda out, x: Sinh.bind(x),)


@register
class Tanh(Elementwise):
    """Hyperbolic tangent. dtypes: inexact. StableHLO: tanh."""

    name = "tanh"
    kinds = INEXACT
    hlo = "stablehlo.tanh"
    numpy = np.tanh
    # As a product 1 - y² keeps its digits near ±1.
    partials = (lambda out, x: mul(add(_one(x), out), sub(_one(x), out)),)


@register
class Asinh(Elementwise):
    """Inverse hyperbolic sine. dtypes: inexact. CHLO: asinh."""

    name = "asinh"
    kinds = INEXACT
    hlo = "chlo.asinh"
    numpy = np.arcsinh
    partials = (lambda out, x: rsqrt(add(square(x), _one(x))),)


@register
class Acosh(Elementwise):
    """Inverse hyperbolic cosine. dtypes: inexact. CHLO: acosh. x < 1 → nan."""

    name = "acosh"
    kinds = INEXACT
    hlo = "chlo.acosh"
    numpy = np.arccosh
    # By factors: x² - 1 loses digits near 1 and overflows.
    partials = (lambda out, x: mul(rsqrt(sub(x, _one(x))), rsqrt(add(x, _one(x)))),)


@register
class Atanh(Elementwise):
    """Inverse hyperbolic tangent. dtypes: inexact. CHLO: atanh. |x| > 1 → nan."""

    name = "atanh"
    kinds = INEXACT
    hlo = "chlo.atanh"
    numpy = np.arctanh
    partials = (lambda out, x: div(_one(x), sub(_one(x), square(x))),)


_hyperbolic_docs = shared("""
    Args:
      x: float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.

    Source: CHLO `{name}`.
""")


@_hyperbolic_docs
def sinh(x: Any, /) -> Array:
    """Returns the hyperbolic sine.

    Special cases:
      ±0 gives ±0, ±inf gives ±inf.

    Example:
      >>> sinh(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Sinh.bind(x)


@_hyperbolic_docs
def cosh(x: Any, /) -> Array:
    """Returns the hyperbolic cosine.

    Special cases:
      ±inf gives inf.

    Example:
      >>> cosh(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    return Cosh.bind(x)


@_hyperbolic_docs
def tanh(x: Any, /) -> Array:
    """Returns the hyperbolic tangent.

    Special cases:
      ±0 gives ±0, ±inf gives ±1.

    Example:
      >>> tanh(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: StableHLO `tanh`.
    """
    return Tanh.bind(x)


@_hyperbolic_docs
def asinh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic sine.

    Special cases:
      ±0 gives ±0, ±inf gives ±inf.

    Example:
      >>> asinh(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Asinh.bind(x)


@_hyperbolic_docs
def acosh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic cosine.

    Special cases:
      Floats below 1 give nan, inf gives inf.

    Example:
      >>> acosh(1.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Acosh.bind(x)


@_hyperbolic_docs
def atanh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic tangent.

    Special cases:
      ±0 gives ±0, ±1 gives ±inf; floats beyond give nan.

    Example:
      >>> atanh(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Atanh.bind(x)
