"""Special functions: of the error integral, and of the logarithm of Γ."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.errors import NotDifferentiableError
from fxflow.lax import _special_host as host
from fxflow.lax._operands import operands
from fxflow.lax.elementwise import add, mul, neg
from fxflow.lax.exponential import exp
from fxflow.lax.families import FLOAT, Elementwise
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
class Erfc(Special):
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


@register
class Lgamma(Special):
    """log |Γ(x)|. dtypes: float. CHLO: lgamma. Integers ≤ 0 → inf."""

    name = "lgamma"
    hlo = "chlo.lgamma"
    numpy = host.elementwise(host.lgamma)
    partials = (lambda out, x: Digamma.bind(x),)


@register
class Digamma(Special):
    """Derivative of log Γ(x). dtypes: float. CHLO: digamma. Integers ≤ 0 → nan."""

    name = "digamma"
    hlo = "chlo.digamma"
    numpy = host.elementwise(host.digamma)
    partials = (lambda out, x: polygamma(arith.constant(1, typeof(x).dtype), x),)


def _no_slope_in_order(out: Any, *args: Any) -> Any:
    raise NotDifferentiableError(
        "zeta and polygamma have no derivative with respect to their first argument: "
        "stop it with stop_gradient"
    )


@register
class Polygamma(Special):
    """m-th derivative of digamma. dtypes: float. CHLO: polygamma.

    m not 0, 1, … → nan.
    """

    name = "polygamma"
    hlo = "chlo.polygamma"
    numpy = host.elementwise(host.polygamma)
    partials = (
        _no_slope_in_order,
        lambda out, m, x: polygamma(_next(m), x),
    )


@register
class Zeta(Special):
    """Hurwitz' zeta function Σ (q + k)⁻ˣ. dtypes: float. CHLO: zeta. x < 1 → nan."""

    name = "zeta"
    hlo = "chlo.zeta"
    numpy = host.elementwise(host.zeta)
    partials = (
        _no_slope_in_order,
        lambda out, x, q: mul(neg(x), zeta(_next(x), q)),
    )


def _next(x: Any) -> Any:
    return add(x, arith.constant(1, typeof(x).dtype))


_special_docs = shared("""
    Args:
      x: float array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.

    Source: CHLO `{name}`.
""")


@_special_docs
def erf(x: Any, /) -> Array:
    """Returns the error function 2/√π ∫₀ˣ exp(-t²) dt.

    Special cases:
      ±inf gives ±1.

    Example:
      >>> erf(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Erf.bind(x)


@_special_docs
def erfc(x: Any, /) -> Array:
    """Returns 1 - erf(x), without loss of digits for large x.

    Special cases:
      -inf gives 2, inf gives 0.

    Example:
      >>> erfc(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    return Erfc.bind(x)


@_special_docs
def erf_inv(x: Any, /) -> Array:
    """Returns the number whose error function is x.

    Special cases:
      ±1 gives ±inf; outside [-1, 1] nan.

    Example:
      >>> erf_inv(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return ErfInv.bind(x)


@_special_docs
def lgamma(x: Any, /) -> Array:
    """Returns log abs(Γ(x)).

    Special cases:
      inf at 0 and the negative integers.

    Example:
      >>> lgamma(2.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Lgamma.bind(x)


@_special_docs
def digamma(x: Any, /) -> Array:
    """Returns the derivative of log Γ(x).

    Special cases:
      nan at 0 and the negative integers.

    Example:
      >>> digamma(1.0)
      Array(-0.57721..., dtype=float32, weak_type=True)
    """
    return Digamma.bind(x)


def polygamma(m: Any, x: Any, /) -> Array:
    """Returns the m-th derivative of the digamma function.

    Args:
      m: float array, or a Python number: the order.
      x: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.
      NotDifferentiableError: a derivative with respect to `m` is asked for.

    Special cases:
      m = 0 is the digamma function; nan where m is no natural number.

    Example:
      >>> polygamma(1.0, 1.0)
      Array(1.644934..., dtype=float32, weak_type=True)

    Source: CHLO `polygamma`.
    """
    return Polygamma.bind(*operands("polygamma", m, x))


def zeta(x: Any, q: Any, /) -> Array:
    """Returns Hurwitz' zeta function Σ (q + k)⁻ˣ over k = 0, 1, ….

    Args:
      x: float array, or a Python number.
      q: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.
      NotDifferentiableError: a derivative with respect to `x` is asked for.

    Special cases:
      inf at x = 1, nan below; inf where q is 0 or a negative integer.

    Example:
      >>> zeta(2.0, 1.0)
      Array(1.644934..., dtype=float32, weak_type=True)

    Source: CHLO `zeta`.
    """
    return Zeta.bind(*operands("zeta", x, q))
