"""Complex zeros of the error function and of Fresnel integrals.

The numbers depend on Python's integers only, and are computed by the host: by Newton's
method from asymptotic approximations (DLMF 7.13), with the continued fraction of the
complementary error function (7.9.1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.scipy.special.zeros import count_of

_NEWTON, _TERMS = 8, 300
_ROOT_PI = math.sqrt(math.pi)


def _indices(name: str, nt: Any) -> Any:
    return np.arange(1.0, count_of(name, nt) + 1)


def _erfcx(z: Any) -> Any:
    """Returns exp(z²) erfc(z) for |z| > 2 and a positive real part."""
    rest = z
    for k in range(_TERMS, 0, -1):
        rest = z + 0.5 * k / rest
    return 1 / (_ROOT_PI * rest)


def _complex(z: Any) -> Array:
    wide = dtypes.bits(dtypes.default_float()) == 64
    return fnp.asarray(z, dtypes.complex128 if wide else dtypes.complex64)


_docs = shared("""
    Args:
      nt: Python integer from 1 to 10,000: the number of zeros.

    Returns:
      Complex array[nt] of ascending absolute values.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Source: `scipy.special.{name}`; DLMF 7.13.
""")


@_docs
def erf_zeros(nt: int) -> Array:
    """Returns the first zeros of the error function in the first quadrant.

    Example:
      >>> erf_zeros(1).round(4)
      Array([1.4506+1.8809j], dtype=complex64)
    """
    size = np.sqrt((_indices("erf_zeros", nt) - 0.125) * math.pi)
    m = np.log(size * math.sqrt(2 * math.pi))
    bend = (1 - m + 0.5 * m * m) / (16 * size**3)
    z = size - 0.25 * m / size + bend + 1j * (size + 0.25 * m / size + bend)
    for _ in range(_NEWTON):
        z = z - 0.5 * _ROOT_PI * (np.exp(z * z) - _erfcx(z))
    return _complex(z)


def _fresnel_zeros(name: str, nt: Any, sine: bool) -> Array:
    n = _indices(name, nt)
    size = 2 * np.sqrt(n) if sine else np.sqrt(4 * n - 1)
    a = 2 / math.pi * np.log(math.pi * size)
    z = size + a * (a * math.pi - 4) / (8 * math.pi * size**3) + 0.5j * a / size
    for _ in range(_NEWTON):
        # C + i S is (1 + i) / 2 erf(√π / 2 (1 - i) z), and C - i S alike.
        turn = np.exp(0.5j * math.pi * z * z)
        one = 1 - turn * _erfcx(0.5 * _ROOT_PI * (1 - 1j) * z)
        two = 1 - _erfcx(0.5 * _ROOT_PI * (1 + 1j) * z) / turn
        one, two = 0.5 * (1 + 1j) * one, 0.5 * (1 - 1j) * two
        if sine:
            z = z - (one - two) / (turn - 1 / turn)
        else:
            z = z - (one + two) / (turn + 1 / turn)
    return _complex(z)


@_docs
def fresnelc_zeros(nt: int) -> Array:
    """Returns the first zeros of the Fresnel cosine integral in the first quadrant.

    Example:
      >>> fresnelc_zeros(1).round(4)
      Array([1.7437+0.3057j], dtype=complex64)
    """
    return _fresnel_zeros("fresnelc_zeros", nt, False)


@_docs
def fresnels_zeros(nt: int) -> Array:
    """Returns the first zeros of the Fresnel sine integral in the first quadrant.

    Example:
      >>> fresnels_zeros(1).round(4)
      Array([2.0093+0.2885j], dtype=complex64)
    """
    return _fresnel_zeros("fresnels_zeros", nt, True)


def fresnel_zeros(nt: int) -> tuple[Array, Array]:
    """Returns the first zeros of the Fresnel sine integral and of the cosine integral.

    Args:
      nt: Python integer from 1 to 10,000: the number of zeros of each.

    Returns:
      Two complex arrays[nt] of ascending absolute values, in the first quadrant.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Example:
      >>> fresnel_zeros(1)[0].round(4)
      Array([2.0093+0.2885j], dtype=complex64)

    Source: `scipy.special.fresnel_zeros`; DLMF 7.13.
    """
    sine, cosine = (_fresnel_zeros("fresnel_zeros", nt, sine) for sine in (True, False))
    return sine, cosine
