"""Derivatives of Bessel functions by their argument, and scaled Hankel functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.confluent import hyp0f1
from fxflow.scipy.special.cylinder import hankel1, hankel2, iv, jv, kv, yv

_docs = shared("""
    Args:
      v: real array-like: the order.
      z: real array-like.
      n: which derivative; 0 is the function itself.

    Returns:
      Array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array, or `n` is negative or no integer.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`; DLMF 10.6.7, 10.29.5.
""")


def _derivative(
    name: str, function: Callable[..., Any], sign: int, v: Any, z: Any, n: Any
) -> Array:
    """Returns the n-th derivative, from functions of n + 1 orders."""
    count = integer(name, "n", n)
    if count < 0:
        raise ArgumentError(f"{name}: n must not be negative, got {count}")
    v, z = operands(name, v, z)
    shifts = range(-count, count + 1, 2)
    orders = fnp.stack([v + k for k in shifts])
    values = function(orders, fnp.stack([z] * len(shifts)))
    total: Any = 0
    for k in range(count + 1):
        total = total + (sign**k * math.comb(count, k) / 2**count) * values[k]
    out: Array = total
    return out


@library("n", quick=True)
@_docs
def jvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the Bessel function of the first kind.

    Example:
      >>> jvp(0.0, 1.0).round(4)
      Array(-0.4401, dtype=float32)
    """
    return _derivative("jvp", jv, -1, v, z, n)


@library("n", quick=True)
@_docs
def yvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the Bessel function of the second kind.

    Example:
      >>> yvp(0.0, 1.0).round(4)
      Array(0.7812, dtype=float32)
    """
    return _derivative("yvp", yv, -1, v, z, n)


@library("n", quick=True)
@_docs
def ivp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the modified Bessel function of the first kind.

    Example:
      >>> ivp(0.0, 1.0).round(4)
      Array(0.5652, dtype=float32)
    """
    return _derivative("ivp", iv, 1, v, z, n)


@library("n", quick=True)
@_docs
def kvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the modified Bessel function of the second kind.

    Example:
      >>> kvp(0.0, 1.0).round(4)
      Array(-0.6019, dtype=float32)
    """
    out = _derivative("kvp", kv, 1, v, z, n)
    return -out if n % 2 else out


@library("n", quick=True)
@_docs
def h1vp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the Hankel function of the first kind.

    Example:
      >>> h1vp(0.0, 1.0).round(4)
      Array(-0.4401+0.7812j, dtype=complex64)
    """
    return _derivative("h1vp", hankel1, -1, v, z, n)


@library("n", quick=True)
@_docs
def h2vp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """n-th derivative of the Hankel function of the second kind.

    Example:
      >>> h2vp(0.0, 1.0).round(4)
      Array(-0.4401-0.7812j, dtype=complex64)
    """
    return _derivative("h2vp", hankel2, -1, v, z, n)


def _turned(value: Any, z: Any, sign: float) -> Array:
    """Returns a value times exp(-i sign z)."""
    out: Array = value * lax.complex(lax.cos(z), -sign * lax.sin(z))
    return out


@library(quick=True)
@_docs
def hankel1e(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the first kind times exp(-i z).

    Example:
      >>> hankel1e(0.0, 1.0).round(4)
      Array(0.4877-0.5962j, dtype=complex64)
    """
    v, z = operands("hankel1e", v, z)
    return _turned(hankel1(v, z), z, 1)


@library(quick=True)
@_docs
def hankel2e(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the second kind times exp(i z).

    Example:
      >>> hankel2e(0.0, 1.0).round(4)
      Array(0.4877+0.5962j, dtype=complex64)
    """
    v, z = operands("hankel2e", v, z)
    return _turned(hankel2(v, z), z, -1)


@library("v", quick=True)
def lmbda(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """Jahnke and Emden's Λ: Γ(v + 1) (2 / x)ᵛ J(x) of several orders, and derivatives.

    Args:
      v: Python number from 0 to 1,000, the highest order.
      x: real array-like.

    Returns:
      Two float arrays [floor(v) + 1, ...]: functions of the orders v - floor(v), …, v,
      and their derivatives with respect to `x`.

    Raises:
      ArgumentError: `v` is not such a number.
      DtypeError: `x` is complex.

    Special cases:
      0 → 1, and 0 of the derivatives.

    Example:
      >>> value, slope = lmbda(1.0, 2.0)
      >>> value.round(4), slope.round(4)
      (Array([0.2239, 0.5767], dtype=float32), Array([-0.5767, -0.3528], dtype=float32))

    Source: `scipy.special.lmbda`, of any `x`; DLMF 10.16.9.
    """
    if isinstance(v, bool) or not isinstance(v, (int, float)) or not 0 <= v <= 1000:
        raise ArgumentError(f"lmbda: v must be a number from 0 to 1000, got {v!r}")
    (x,) = operands("lmbda", x)
    least = v - math.floor(v)
    orders = [least + k for k in range(math.floor(v) + 1)]
    z = -0.25 * x * x
    value = fnp.stack([hyp0f1(order + 1, z) for order in orders])
    slopes = [-0.5 * x / (order + 1) * hyp0f1(order + 2, z) for order in orders]
    return value, fnp.stack(slopes)
