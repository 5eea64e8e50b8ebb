"""Bessel functions: J of integer orders; modified ones, plain and scaled."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import operands, safe
from fxflow.transforms.custom_jvp import custom_jvp


def _unscaled(x: Any, value: Any) -> Any:
    """Returns exp(|x|) times a value, which overflows late; nan at infinity."""
    half = lax.exp(0.5 * lax.abs(x))
    return half * (half * value)


@custom_jvp
def _i0(x: Any) -> Any:
    return _unscaled(x, lax.bessel_i0e(x))


@custom_jvp
def _i1(x: Any) -> Any:
    return _unscaled(x, lax.bessel_i1e(x))


def _i1_slope(x: Any) -> Any:
    """Returns I₀(x) - I₁(x) / x, by its series near 0 (DLMF 10.25.2)."""
    near = lax.abs(x) < 0.5
    quarter = lax.square(safe(near, x, 0)) / 4
    series = fnp.zeros_like(x)
    for k in range(8, -1, -1):
        c = (k + 0.5) / (math.factorial(k) * math.factorial(k + 1))
        series = series * quarter + c
    far = safe(~near, x, 1)
    value = lax.bessel_i0e(far) - lax.bessel_i1e(far) / far
    return fnp.where(near, series, _unscaled(far, value))


_i0.defjvps(lambda t, out, x: t * _i1(x))
_i1.defjvps(lambda t, out, x: t * _i1_slope(x))


def _declared(name: str, order: int) -> Callable[[Any], Array]:
    """Declares a function of an order; scaled, if its name ends with "e"."""
    scaled = name.endswith("e")
    compute = (lax.bessel_i0e, lax.bessel_i1e)[order]

    def function(x: Any) -> Array:
        (x,) = operands(name, x)
        out: Array = compute(x) if scaled else (_i0, _i1)[order](x)
        return out

    function.__name__ = function.__qualname__ = name
    times = ", times exp(-|x|)" if scaled else ""
    overflow = "" if scaled else "; inf where the dtype's range ends"
    function.__doc__ = f"""Modified Bessel function of order {order}{times}.

    Args:
      x: real array-like.

    Returns:
      Float array of the shape of `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      {"Even" if order == 0 else "Odd"} in x{overflow}.

    Example:
      >>> round(float({name}(0.0)), 6)
      {float(order == 0)}

    Source: `scipy.special.{name}`.
    """
    return library()(function)


i0: Callable[[Any], Array] = _declared("i0", 0)
i0e: Callable[[Any], Array] = _declared("i0e", 0)
i1: Callable[[Any], Array] = _declared("i1", 1)
i1e: Callable[[Any], Array] = _declared("i1e", 1)


# -- of the first kind, of orders 0 to v -----------------------------------------------

# From here on Hankel's asymptotic series is exact, with this number of terms.
_FAR, _TERMS = 25.0, 28


def _hankel(order: int, x: Any) -> Any:
    """Returns the function of order 0 or 1 for x > 25 (DLMF 10.17.3)."""
    p, q, term = fnp.zeros_like(x), fnp.zeros_like(x), fnp.ones_like(x)
    for k in range(_TERMS):
        if k:
            term = term * ((4 * order**2 - (2 * k - 1) ** 2) / (8 * k)) / x
        signed = -term if k % 4 > 1 else term
        p, q = (p, q + signed) if k % 2 else (p + signed, q)
    sine, cosine = lax.sin(x), lax.cos(x)
    turned = (sine - cosine, sine + cosine)
    if not order:
        turned = (cosine + sine, sine - cosine)
    return (p * turned[0] - q * turned[1] * (1 if not order else -1)) / lax.sqrt(
        math.pi * x
    )


def _upwards(x: Any, v: int) -> Any:
    """Returns orders 0 to v for x > v by recurrence from two."""
    first, second = _hankel(0, x), _hankel(1, x)

    def step(state: Any, n: Any) -> Any:
        before, last = state
        return (last, 2 * n / x * last - before), before

    orders = fnp.arange(1, v + 2, dtype=x.aval.dtype)
    return lax.scan(step, (first, second), orders)[1]


def _downwards(x: Any, v: int, start: int) -> Any:
    """Returns orders 0 to v by Miller's algorithm: from zeros down, then scaled."""
    dtype = x.aval.dtype
    orders = np.arange(v + 1).reshape(-1, *(1,) * x.aval.ndim)

    def step(i: Any, state: Any) -> Any:
        above, here, total, kept = state
        k = start - i
        below = 2 * convert(k, dtype) / x * here - above
        order = k - 1
        kept = fnp.where(orders == order, below, kept)
        even = fnp.where(order % 2 == 0, 2 * below, 0)
        total = total + fnp.where(order == 0, below, even)
        down = fnp.where(lax.abs(below) > 1e15, 1e-15, 1)
        return here * down, below * down, total * down, kept * down

    zero = 0 * x
    kept = fnp.zeros((v + 1, *x.aval.shape), dtype)
    state = (zero, zero + 1e-15, zero, kept)
    _, _, total, kept = lax.fori_loop(0, start, step, state)
    return kept / total


@functools.lru_cache
def _of_orders(v: int, least: int) -> Callable[[Any], Any]:
    """Returns the function of orders 0 to v."""
    turn = max(_FAR, float(v))
    # Beyond turn the functions fall faster and faster, by 1e-17 at start.
    start = max(math.ceil(turn + 15 * turn ** (1 / 3) + 10), least)

    @custom_jvp
    def bessel(z: Any) -> Any:
        x = lax.abs(z)
        tiny, far = x < 1e-4, x > turn
        low = safe(tiny, x, 0)
        factors = [fnp.ones_like(x), *(low / (2 * n) for n in range(1, v + 1))]
        powers = fnp.cumprod(fnp.stack(factors), 0)
        orders = np.arange(1, v + 2).reshape(-1, *(1,) * z.aval.ndim)
        near = powers * (1 - low * low / (4 * orders.astype(x.aval.dtype)))
        middle = _downwards(safe(~(tiny | far) & (x == x), x, 1), v, start)
        high = _upwards(safe(far & (x < math.inf), x, turn + 1), v)
        out = fnp.where(far, high, fnp.where(tiny, near, middle))
        out = fnp.where(x == math.inf, 0, out)
        out = fnp.where((z < 0) & (orders % 2 == 0), -out, out)
        return fnp.where(x == x, out, math.nan)

    def slope(t: Any, out: Any, z: Any) -> Any:
        more = _of_orders(v + 1, least)(z)
        below = fnp.concatenate([-more[1:2], more[: v or 0]])
        above = more[1:]
        return t * 0.5 * (below - above)

    bessel.defjvps(slope)
    return bessel


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of all integer orders from 0 to `v`.

    Args:
      z: real array-like[...].
      v: the highest order.
      n_iter: the recurrence begins at this order or a higher one, as high as it has to.

    Returns:
      Float array[v + 1, ...].

    Raises:
      ArgumentError: an argument is not an array, or `v` is negative.
      DtypeError: `z` is complex.

    Special cases:
      ±inf → 0.

    Example:
      >>> bessel_jn(1.0, v=1).round(4)
      Array([0.7652, 0.4401], dtype=float32)

    Source: JAX's `bessel_jn`, which is exact for moderate `z` only; `scipy.special.jv`
    of integers; F. Olver, Bessel functions of integer order, 1964.
    """
    highest = integer("bessel_jn", "v", v)
    if highest < 0:
        raise ArgumentError(f"bessel_jn: v must not be negative, got {highest}")
    return _bessel_jn(z, v=highest, least=integer("bessel_jn", "n_iter", n_iter))


@library("v", "least")
def _bessel_jn(z: Any, *, v: int, least: int) -> Array:
    (x,) = operands("bessel_jn", z)
    dtype = x.aval.dtype
    wide = convert(x, dtypes.float32) if dtypes.bits(dtype) < 32 else x
    return convert(_of_orders(v, least)(wide), dtype)
