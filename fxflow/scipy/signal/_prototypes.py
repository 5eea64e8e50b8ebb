"""Analog lowpass prototypes with their edge at 1 rad/s, on the host in 64 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.errors import ArgumentError
from fxflow.lax.axes import number

Prototype = tuple[Any, Any, float]
_NONE = np.zeros(0, np.complex128)


def ripple(name: str, what: str, value: Any) -> float:
    """Returns a ripple or an attenuation in dB.

    Args:
      name: of the function, for the message.
      what: name of the argument.
      value: the argument.

    Raises:
      ArgumentError: it is not positive, or no power of 10 is that large.
    """
    found = number(name, what, value)
    if not 0 < found < 3000:
        raise ArgumentError(
            f"{name}: {what} must be positive and below 3000, in dB, got {found}"
        )
    return found


def _angles(n: int) -> Any:
    """Returns angles of the poles from the negative axis, symmetric."""
    return math.pi * np.arange(-n + 1, n, 2) / (2 * n)


def butterworth(n: int) -> Prototype:
    """Returns zeros, poles and gain: poles evenly around the left half circle."""
    angles = _angles(n)
    poles = -np.cos(angles) + 1j * np.sin(angles)
    return _NONE, poles, 1.0


def _unit_gain(z: Any, p: Any) -> float:
    return float(np.real(np.prod(-p) / np.prod(-z)))


def chebyshev(n: int, ripple: float) -> Prototype:
    """Returns a filter whose gain in the passband lies in [-ripple, 0] dB."""
    epsilon = math.sqrt(10 ** (ripple / 10) - 1)
    mu = math.asinh(1 / epsilon) / n
    angles = _angles(n)
    poles = -math.sinh(mu) * np.cos(angles) + 1j * math.cosh(mu) * np.sin(angles)
    gain = _unit_gain(_NONE, poles)
    if n % 2 == 0:
        gain /= math.sqrt(1 + epsilon**2)
    return _NONE, poles, gain


def inverse_chebyshev(n: int, attenuation: float) -> Prototype:
    """Returns a filter whose gain in the stopband is at most -attenuation dB."""
    epsilon = 1 / math.sqrt(10 ** (attenuation / 10) - 1)
    mu = math.asinh(1 / epsilon) / n
    angles = _angles(n)
    places = np.sin(angles[np.abs(angles) > 1e-12])
    zeros = 1j / places
    inverse = -math.sinh(mu) * np.cos(angles) + 1j * math.cosh(mu) * np.sin(angles)
    poles = 1 / inverse
    return zeros, poles, _unit_gain(zeros, poles)


# -- elliptic filters ------------------------------------------------------------------

# Orfanidis, Lecture Notes on Elliptic Filter Design, 2006: Landen's transformation
# reduces every elliptic function to a trigonometric one.


def _landen(k: float) -> list[float]:
    """Returns the moduli that Landen's descent goes through."""
    found: list[float] = []
    while k > 1e-17 and len(found) < 20:
        k = (k / (1 + math.sqrt((1 - k) * (1 + k)))) ** 2
        found.append(k)
    return found


def _cd(u: Any, moduli: list[float]) -> Any:
    """Returns cd(u K, k) for the modulus whose descent is given."""
    w = np.cos(np.asarray(u, np.complex128) * math.pi / 2)
    for k in reversed(moduli):
        w = (1 + k) * w / (1 + k * w * w)
    return w


def _sn(u: Any, moduli: list[float]) -> Any:
    """Returns sn(u K, k)."""
    w = np.sin(np.asarray(u, np.complex128) * math.pi / 2)
    for k in reversed(moduli):
        w = (1 + k) * w / (1 + k * w * w)
    return w


def _inverse_sn(w: complex, k: float, moduli: list[float]) -> complex:
    """Returns u with sn(u K, k) = w."""
    for before, after in zip([k, *moduli[:-1]], moduli, strict=True):
        w = 2 * w / ((1 + after) * (1 + np.sqrt(1 - (before * w) ** 2 + 0j)))
    return complex(2 / math.pi * np.arcsin(w))


def elliptic(n: int, ripple: float, attenuation: float) -> Prototype:
    """Returns a filter with ripples in both bands."""
    epsilon = math.sqrt(math.expm1(ripple * math.log(10) / 10))
    stop = math.sqrt(math.expm1(attenuation * math.log(10) / 10))
    if n == 1:
        return _NONE, np.asarray([-1 / epsilon + 0j]), 1 / epsilon
    k1 = epsilon / stop
    # The degree equation gives the complementary modulus of the filter.
    other1 = math.sqrt((1 - k1) * (1 + k1))
    half = n // 2
    u = (2 * np.arange(1, half + 1) - 1) / n
    other = other1**n * float(np.prod(np.real(_sn(u, _landen(other1))))) ** 4
    k = math.sqrt((1 - other) * (1 + other))
    moduli, moduli1 = _landen(k), _landen(k1)
    above = 1j / (k * np.real(_cd(u, moduli)))
    v0 = (-1j * _inverse_sn(1j / epsilon, k1, moduli1) / n).real
    upper = 1j * _cd(u - 1j * v0, moduli)
    zeros = np.concatenate([above, np.conj(above)])
    poles = np.concatenate([upper, np.conj(upper)])
    if n % 2:
        single = (1j * _sn(1j * v0, moduli)).real
        poles = np.concatenate([poles, [single + 0j]])
    gain = _unit_gain(zeros, poles)
    if n % 2 == 0:
        gain /= math.sqrt(1 + epsilon**2)
    return zeros, poles, gain


# -- Bessel filters --------------------------------------------------------------------


def _reverse_bessel(n: int) -> list[int]:
    """Returns the coefficients of the reverse Bessel polynomial, highest first."""
    return [
        math.factorial(2 * n - i)
        // (2 ** (n - i) * math.factorial(i) * math.factorial(n - i))
        for i in range(n, -1, -1)
    ]


#: Binary places in which polynomials are evaluated: in 64 bits their own rounding
#: errors would leave some 6 digits at n = 20.
_PLACES = 200

Pair = tuple[int, int]


def _fixed(root: complex) -> Pair:
    """Returns a number in `_PLACES` binary places."""
    shift = _PLACES - 60
    return int(root.real * 2.0**60) << shift, int(root.imag * 2.0**60) << shift


def _newton(at: Pair, coefficients: list[int]) -> Pair:
    """Returns Newton's step."""
    x, y = at

    def times(a: int, b: int) -> Pair:
        return (a * x - b * y) >> _PLACES, (a * y + b * x) >> _PLACES

    value, slope = (0, 0), (0, 0)
    for c in coefficients:
        slope = times(*slope)
        slope = slope[0] + value[0], slope[1] + value[1]
        value = times(*value)
        value = value[0] + (c << _PLACES), value[1]
    square = slope[0] ** 2 + slope[1] ** 2
    across = value[0] * slope[0] + value[1] * slope[1]
    down = value[1] * slope[0] - value[0] * slope[1]
    return (across << _PLACES) // square, (down << _PLACES) // square


def _complex(value: Pair) -> complex:
    return complex(value[0] / 2**_PLACES, value[1] / 2**_PLACES)


def _refined(root: complex, coefficients: list[int]) -> complex:
    """Returns a root after Newton's steps."""
    x, y = _fixed(root)
    for _ in range(3):
        step = _newton((x, y), coefficients)
        x, y = x - step[0], y - step[1]
    return _complex((x, y))


def _roots(coefficients: list[int]) -> Any:
    """Returns the roots of a polynomial with integer coefficients, to all digits."""
    n = len(coefficients) - 1
    scale = float(coefficients[-1]) ** (1 / n)
    # In the variable s / scale the constant term is 1.
    rough = np.roots([float(v) / scale**i for i, v in enumerate(coefficients)]) * scale
    # Aberth's steps keep the roots apart: eigenvalues of 28 and above are so far off
    # that Newton's steps alone lead several to one root.
    for _ in range(100):
        step = np.asarray([_complex(_newton(_fixed(r), coefficients)) for r in rough])
        apart = rough[:, None] - rough
        np.fill_diagonal(apart, np.inf)
        step = step / (1 - step * np.sum(1 / apart, axis=1))
        rough = rough - step
        if np.all(abs(step) <= 1e-8 * abs(rough)):
            break
    above = np.asarray([_refined(r, coefficients) for r in rough[rough.imag > 1e-6]])
    if n % 2 == 0:
        return np.concatenate([above, np.conj(above)])
    real = _refined(complex(rough[np.argmin(abs(rough.imag))].real), coefficients)
    return np.concatenate([above, [real], np.conj(above)])


def bessel(name: str, n: int, norm: str) -> Prototype:
    """Returns a filter of maximally flat delay.

    Args:
      name: of the function, for the message.
      n: the order.
      norm: "delay" (1 at frequency 0), "phase" (its limit is that of a Butterworth
        filter) or "mag" (-3 dB at 1).
    """
    if n > 150:
        raise ArgumentError(
            f"{name}: N must be at most 150, whose coefficients are floats, got {n}"
        )
    coefficients = _reverse_bessel(n)
    poles = _roots(coefficients)
    if norm == "phase":
        poles = poles * 10 ** (-math.log10(coefficients[-1]) / n)
    elif norm == "mag":
        level = float(np.real(np.prod(-poles)))

        def excess(w: float) -> float:
            return abs(level / complex(np.prod(1j * w - poles))) ** 2 - 0.5

        low, high = 0.0, 10.0 * n
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        poles = poles / low
    return _NONE, poles, _unit_gain(_NONE, poles)
