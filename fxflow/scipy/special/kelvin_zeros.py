"""Zeros of Kelvin functions and of their derivatives.

The numbers depend on Python's integers only, and are computed by the host: sign changes
on a grid finer than the zeros' distance, about 4.44, improved by Newton's method. I₀
and K₀ on the line arg = π/4 come from the trapezoidal rule (DLMF 10.32.3, 10.32.9).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.scipy.special.zeros import count_of, rounded

_MOST, _SPACING, _NEWTON, _NODES = 1000, 0.5, 6, 80
_TURN = math.sqrt(0.5) * (1 + 1j)


def _first(x: Any) -> tuple[Any, Any]:
    """Returns ber + i bei and its derivative, both times exp(-x / √2)."""
    count = int(x.max()) + 60
    c = np.cos((np.arange(count) + 0.5) * math.pi / count)
    c = c[x.min() * (1 - c) < 60]  # beyond all terms are below rounding
    weight = np.exp(x[:, None] * (_TURN * c - _TURN.real)) / count
    return weight.sum(1), _TURN * (weight * c).sum(1)


def _second(x: Any) -> tuple[Any, Any]:
    """Returns ker + i kei and its derivative, both times exp(x / √2)."""
    reach = 60 / x
    end = np.log1p(reach + np.sqrt(reach * (reach + 2)))
    t = end[:, None] * np.arange(_NODES + 1) / _NODES
    grown = 2 * np.square(np.sinh(t / 2))
    turned = np.exp(-1j * _TURN.imag * x)[:, None] * (end / _NODES)[:, None]
    weight = turned * np.exp(-_TURN * x[:, None] * grown)
    weight[:, 0] *= 0.5
    return weight.sum(1), -_TURN * (weight * (1 + grown)).sum(1)


def _of(second: bool, slopes: bool, imaginary: bool, x: Any) -> tuple[Any, Any]:
    """Returns a function times a positive one, and its derivative times the same."""
    value, slope = (_second if second else _first)(x)
    if slopes:  # x y'' + y' = i x y
        value, slope = slope, 1j * value - slope / x
    return (value.imag, slope.imag) if imaginary else (value.real, slope.real)


def _zeros(name: str, nt: Any, second: bool, slopes: bool, imaginary: bool) -> Array:
    nt = count_of(name, nt, _MOST)
    low, found = 1.0, np.zeros(0)
    while found.size < nt:
        grid = low + _SPACING * np.arange(101)
        value = _of(second, slopes, imaginary, grid)[0]
        place = np.flatnonzero((value[1:] > 0) != (value[:-1] > 0))
        before, after = value[place], value[place + 1]
        x = grid[place] + _SPACING * before / (before - after)
        for _ in range(_NEWTON):
            value, slope = _of(second, slopes, imaginary, x)
            x = x - value / slope
        found, low = np.append(found, x), grid[-1]
    return rounded(found[:nt])


_docs = shared("""
    Args:
      nt: Python integer from 1 to 1,000: the number of zeros.

    Returns:
      Float array[nt] of ascending numbers.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Source: `scipy.special.{name}`; DLMF 10.70.
""")


@_docs
def ber_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the Kelvin function ber.

    Example:
      >>> ber_zeros(2).round(4)
      Array([2.8489, 7.2388], dtype=float32)
    """
    return _zeros("ber_zeros", nt, False, False, False)


@_docs
def bei_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the Kelvin function bei.

    Example:
      >>> bei_zeros(2).round(4)
      Array([5.0262, 9.4554], dtype=float32)
    """
    return _zeros("bei_zeros", nt, False, False, True)


@_docs
def ker_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the Kelvin function ker.

    Example:
      >>> ker_zeros(2).round(4)
      Array([1.7185, 6.1273], dtype=float32)
    """
    return _zeros("ker_zeros", nt, True, False, False)


@_docs
def kei_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the Kelvin function kei.

    Example:
      >>> kei_zeros(2).round(4)
      Array([3.9147, 8.3442], dtype=float32)
    """
    return _zeros("kei_zeros", nt, True, False, True)


@_docs
def berp_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the derivative of the Kelvin function ber.

    Example:
      >>> berp_zeros(2).round(4)
      Array([ 6.0387, 10.5136], dtype=float32)
    """
    return _zeros("berp_zeros", nt, False, True, False)


@_docs
def beip_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the derivative of the Kelvin function bei.

    Example:
      >>> beip_zeros(2).round(4)
      Array([3.7727, 8.281 ], dtype=float32)
    """
    return _zeros("beip_zeros", nt, False, True, True)


@_docs
def kerp_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the derivative of the Kelvin function ker.

    Example:
      >>> kerp_zeros(2).round(4)
      Array([2.6658, 7.1721], dtype=float32)
    """
    return _zeros("kerp_zeros", nt, True, True, False)


@_docs
def keip_zeros(nt: int) -> Array:
    """Returns the first positive zeros of the derivative of the Kelvin function kei.

    Example:
      >>> keip_zeros(2).round(4)
      Array([4.9318, 9.4041], dtype=float32)
    """
    return _zeros("keip_zeros", nt, True, True, True)


def kelvin_zeros(nt: int) -> tuple[Array, ...]:
    """Returns the first positive zeros of each Kelvin function and derivative.

    Args:
      nt: Python integer from 1 to 1,000: the number of zeros of each.

    Returns:
      Eight float arrays[nt] of ascending numbers: of ber, bei, ker, kei and of their
      derivatives in this order.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Example:
      >>> kelvin_zeros(1)[2].round(4)
      Array([1.7185], dtype=float32)

    Source: `scipy.special.kelvin_zeros`; DLMF 10.70.
    """
    return tuple(
        _zeros("kelvin_zeros", nt, second, slopes, imaginary)
        for slopes in (False, True)
        for second in (False, True)
        for imaginary in (False, True)
    )
