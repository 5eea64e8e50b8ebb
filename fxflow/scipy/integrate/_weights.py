"""Integrals with a factor that oscillates or is singular, as QUADPACK has them.

Each face writes its integral as ones of smooth functions over the unit interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError
from fxflow.scipy.integrate._adaptive import Integral, integrated, kronrod_rule, placed
from fxflow.transforms.vmap import vmap

RULE = kronrod_rule(10)
_TRIGONOMETRIC = {"cos": fnp.cos, "sin": fnp.sin}
_ALGEBRAIC = ("alg", "alg-loga", "alg-logb", "alg-log")
#: Intervals of an oscillating factor at first: two periods each, this many at most.
_PIECES = 2**13


def plain(
    call: Callable[[Array], Array], infinite: Any, *, factor: Any = None
) -> Callable[..., Array]:
    """Returns the integrand over the unit interval, of u, both bounds and the factor's.

    Args:
      call: the function of x.
      infinite: whether the bounds are infinite.
      factor: function of x and more values that it is multiplied by.
    """

    def integrand(u: Array, a: Array, b: Array, *more: Array) -> Array:
        x, slope = placed(u[0], a, b, infinite)
        y = call(x) * slope
        return y if factor is None else y * factor(x, *more)

    return integrand


def weighted(
    weight: str,
    wvar: Any,
    call: Callable[[Array], Array],
    a: Array,
    b: Array,
    infinite: tuple[bool, ...],
    tolerances: tuple[float, float, int],
    limlst: int,
) -> list[Integral]:
    """Returns the integrals whose sum is that of a function times a weight.

    Raises:
      ArgumentError: there is no such weight, its variable is of another kind, or it is
        not for infinite bounds.
    """
    known = (*_TRIGONOMETRIC, *_ALGEBRAIC, "cauchy")
    if weight not in known:
        raise ArgumentError(
            f"quad: weight must be one of {', '.join(known)}, got {weight!r}"
        )
    size = 2 if weight in _ALGEBRAIC else 1
    several = isinstance(wvar, list | tuple) or (
        isinstance(wvar, np.ndarray | Array) and wvar.ndim > 0
    )
    given = list(wvar) if several else [wvar]
    if wvar is None or len(given) != size or any(fnp.ndim(v) for v in given):
        what = "a pair (alpha, beta)" if size == 2 else "a number"
        raise ArgumentError(
            f"quad: wvar of weight {weight!r} must be {what}, got {wvar!r}"
        )
    variables = [fnp.asarray(v, a.dtype) for v in given]
    if weight in _TRIGONOMETRIC:
        if all(infinite):
            raise ArgumentError(
                f"quad: weight {weight!r} needs a finite bound, got -inf and inf"
            )
        run = _fourier if any(infinite) else _oscillating
        return run(weight, variables[0], call, a, b, infinite, tolerances, limlst)
    if any(infinite):
        raise ArgumentError(f"quad: weight {weight!r} needs finite bounds")
    if weight == "cauchy":
        return _principal(variables[0], call, a, b, tolerances)
    return _algebraic(weight, variables, call, a, b, tolerances)


def _oscillating(
    weight: str,
    w: Array,
    call: Any,
    a: Array,
    b: Array,
    infinite: Any,
    tolerances: Any,
    limlst: int,
) -> list[Integral]:
    trig = _TRIGONOMETRIC[weight]
    integrand = plain(call, infinite, factor=lambda x, w: trig(w * x))
    pieces = 1
    if not any(isinstance(v, Tracer) for v in (a, b, w)):
        periods = abs(float(w) * float(b - a)) / (2 * math.pi)
        pieces = max(1, min(_PIECES, math.ceil(periods / 2))) if periods < 1e9 else 1
    epsabs, epsrel, limit = tolerances
    return [
        integrated(
            integrand,
            (a, b, w),
            RULE,
            epsabs,
            epsrel,
            limit + pieces - 1,
            pieces=pieces,
        )
    ]


def _fourier(
    weight: str,
    w: Array,
    call: Any,
    a: Array,
    b: Array,
    infinite: Any,
    tolerances: Any,
    limlst: int,
) -> list[Integral]:
    """Integrates cycles of an odd number of half periods, whose signs alternate.

    The first half of them is added; to the others, which vary slowly, the linear
    acceleration of Cohen, Rodriguez Villegas and Zagier is applied, which has the
    derivatives of the sum.
    """
    epsabs, epsrel, limit = tolerances
    trig = _TRIGONOMETRIC[weight]
    # To -inf: the mirror image.
    flip = -1.0 if infinite[0] else 1.0
    start = -b if infinite[0] else a
    size = fnp.abs(w)
    length = (2 * fnp.floor(size) + 1) * math.pi / size
    integrand = plain(
        lambda x: call(flip * x), (False, False), factor=lambda x, w: trig(flip * w * x)
    )

    def cycle(k: Array) -> Integral:
        low = start + k * length
        given = (low, low + length, w)
        return integrated(integrand, given, RULE, epsabs / limlst, epsrel, limit)

    found = vmap(cycle)(fnp.arange(limlst, dtype=a.dtype))
    first, second = (
        fnp.sum(fnp.asarray(_accelerated(limlst - less), a.dtype) * found.value[less:])
        + fnp.sum(found.value[:less])
        for less in (limlst // 2, limlst // 2 - 3)
    )
    # A factor that is constant: the cycles do not alternate.
    still = w == 0
    value = fnp.where(still, fnp.nan, first)
    error = fnp.sum(found.error) + lax.stop_gradient(fnp.abs(first - second))
    converged = fnp.all(found.converged) & ~still
    bound = fnp.maximum(epsabs, epsrel * fnp.abs(value))
    rounding = 1e3 * float(np.finfo(a.dtype).eps) * fnp.max(fnp.abs(found.value))
    converged &= error <= fnp.maximum(bound, rounding)
    return [Integral(value, error, error, found.used, converged)]


def _accelerated(n: int) -> Any:
    """Returns the weights of terms with alternating signs."""
    total = (3 + math.sqrt(8)) ** n
    total = (total + 1 / total) / 2
    b, c = -1.0, -total
    out = []
    for k in range(n):
        c = b - c
        out.append((-1) ** k * c / total)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1))
    return np.array(out)


def _algebraic(
    weight: str, variables: Any, call: Any, a: Array, b: Array, tolerances: Any
) -> list[Integral]:
    """Integrates both halves, in each with the distance to its end a power of u."""
    epsabs, epsrel, limit = tolerances
    logs = {"alg": (0, 0), "alg-loga": (1, 0), "alg-logb": (0, 1), "alg-log": (1, 1)}
    found = []
    for side in (0, 1):
        own, other = logs[weight] if side == 0 else logs[weight][::-1]

        def integrand(
            u: Array,
            a: Array,
            b: Array,
            alpha: Array,
            beta: Array,
            own: int = own,
            other: int = other,
            side: int = side,
        ) -> Any:
            power, rest_power = (alpha, beta) if side == 0 else (beta, alpha)
            # u³ at least remains of the singular factor.
            order = fnp.maximum(2, fnp.ceil(4 / (lax.stop_gradient(power) + 1)))
            log_u, half = fnp.log(u[0]), (b - a) / 2
            log_distance = fnp.log(half) + order * log_u
            distance = half * fnp.exp(order * log_u)
            rest = (b - a) - distance
            x = a + distance if side == 0 else b - distance
            y = call(x) * order * fnp.exp((power + 1) * log_distance - log_u)
            y = y * fnp.exp(rest_power * fnp.log(rest))
            y = y * log_distance if own else y
            return y * fnp.log(rest) if other else y

        given = (a, b, *variables)
        found.append(integrated(integrand, given, RULE, epsabs / 2, epsrel, limit))
    return found


def _principal(
    c: Array, call: Any, a: Array, b: Array, tolerances: Any
) -> list[Integral]:
    """Integrates a symmetric interval about the pole, and what is outside of it."""
    epsabs, epsrel, limit = tolerances
    low, high = fnp.minimum(a, b), fnp.maximum(a, b)
    sign = fnp.where(a <= b, 1, -1).astype(a.dtype)
    inside = (low < c) & (c < high)
    reach = fnp.where(inside, fnp.minimum(c - low, high - c), 0)
    pole = fnp.where(inside, c, low)
    left = inside & (c - low < high - c)
    right = inside & ~left
    begin, end = fnp.where(left, c + reach, low), fnp.where(right, c - reach, high)

    def symmetric(u: Array, pole: Array, reach: Array, sign: Array) -> Any:
        t = reach * u[0]
        return sign * (call(pole + t) - call(pole - t)) / u[0]

    apart = plain(call, (False, False), factor=lambda x, c, sign: sign / (x - c))
    return [
        integrated(symmetric, (pole, reach, sign), RULE, epsabs / 2, epsrel, limit),
        integrated(apart, (begin, end, c, sign), RULE, epsabs / 2, epsrel, limit),
    ]
