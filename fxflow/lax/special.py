"""The error function and its relatives."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import Completes, shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.lax import _special_host as host
from fxflow.lax.elementwise import mul, neg
from fxflow.lax.exponential import exp
from fxflow.lax.families import FLOAT, Elementwise, Exponential
from fxflow.lax.powers import square


def scaled(factor: float, x: Any) -> Any:
    """Returns an array times a Python number, in the array's dtype."""
    return mul(x, arith.constant(factor, typeof(x).dtype))


class Special(Elementwise):
    """A function that NumPy lacks: always compiled."""

    kinds = FLOAT
    host_kinds: ClassVar[frozenset[str]] = frozenset()


@register
class Erf(Special):
    """Error function. dtypes: float. CHLO: erf."""

    name = "erf"
    hlo = "chlo.erf"
    numpy = host.elementwise(math.erf)
    partials = (lambda out, x: scaled(2 / math.sqrt(math.pi), exp(neg(square(x)))),)


@register
class Erfc(Exponential, Special):
    """1 - erf(x), exact for large x. dtypes: float. CHLO: erfc."""

    name = "erfc"
    hlo = "chlo.erfc"
    numpy = host.elementwise(math.erfc)
    partials = (lambda out, x: scaled(-2 / math.sqrt(math.pi), exp(neg(square(x)))),)


@register
class ErfInv(Special):
    """Inverse of erf. dtypes: float. CHLO: erf_inv. ±1 → ±inf, beyond → nan."""

    name = "erf_inv"
    hlo = "chlo.erf_inv"
    numpy = host.elementwise(host.erf_inv)
    partials = (lambda out, x: scaled(math.sqrt(math.pi) / 2, exp(square(out))),)


special_docs: Completes = shared("""
    Args:
      x: float array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.

    Source: CHLO `{name}`.
""")


@special_docs
def erf(x: Any, /) -> Array:
    """Returns the error function 2/√π ∫₀ˣ exp(-t²) dt.

    Special cases:
      ±inf gives ±1.

    Example:
      >>> erf(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Erf.bind(x)


@special_docs
def erfc(x: Any, /) -> Array:
    """Returns 1 - erf(x), without loss of digits for large x.

    Special cases:
      -inf gives 2, inf gives 0.

    Example:
      >>> erfc(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    return Erfc.bind(x)


@special_docs
def erf_inv(x: Any, /) -> Array:
    """Returns the number whose error function is x.

    Special cases:
      ±1 gives ±inf; outside [-1, 1] nan.

    Example:
      >>> erf_inv(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return ErfInv.bind(x)
