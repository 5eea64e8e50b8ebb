"""Windows for spectra, and the Bessel function that one of them needs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import array_of, convert, promote_inexact
from fxflow.numpy.creation import wrap_host
from fxflow.numpy.ufuncs import unary


@unary(
    "Modified Bessel function of the first kind, order 0.",
    kind="float",
    returns="Float array of the shape of `x`.",
    example=(
        "i0(np.array([0.0, 1.0])).round(4)",
        "Array([1.    , 1.2661], dtype=float32)",
    ),
)
def i0(x: Array) -> Array:
    """Grows as exp(|x|), so the scaled function is multiplied by that."""
    (x,) = promote_inexact("i0", x)
    # Not |x|, whose derivative at 0 is not that of an even function.
    return lax.mul(lax.exp(lax.mul(x, lax.sign(x))), lax.bessel_i0e(x))


def _count(name: str, M: Any) -> int:
    try:
        return operator.index(M)
    except TypeError as error:
        raise ArgumentError(
            f"{name}: M must be a concrete integer, got {M!r}"
        ) from error


def _window(values: Any) -> Array:
    return as_array(np.asarray(values).astype(dtypes.default_float()))


_window_docs = shared("""
    Args:
      M: number of points; the result is empty if it is not positive.

    Returns:
      Float array[M].

    Raises:
      ArgumentError: `M` is not an integer.

    Source: `numpy.{name}`.
""")


@_window_docs
def bartlett(M: int) -> Array:
    """Returns a triangular window, 0 at both ends.

    Example:
      >>> bartlett(5)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett(_count("bartlett", M)))


@_window_docs
def blackman(M: int) -> Array:
    """Returns a window of three cosines, close to optimal.

    Example:
      >>> blackman(3)[1]
      Array(1., dtype=float32)
    """
    return _window(np.blackman(_count("blackman", M)))


@_window_docs
def hamming(M: int) -> Array:
    """Returns the Hamming window, a raised cosine that is 0.08 at both ends.

    Example:
      >>> hamming(3)
      Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming(_count("hamming", M)))


@_window_docs
def hanning(M: int) -> Array:
    """Returns a raised cosine, 0 at both ends.

    Example:
      >>> hanning(3)
      Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.hanning(_count("hanning", M)))


@_window_docs
def kaiser(M: int, beta: Any) -> Array:
    """Returns a window of Bessel functions.

    Args:
      beta: real number: shape of the window; 0 is rectangular.

    Example:
      >>> kaiser(3, 0.0)
      Array([1., 1., 1.], dtype=float32)
    """
    count = _count("kaiser", M)
    beta = array_of(beta, "kaiser")
    wide = dtypes.is_wide(beta.aval.dtype)
    dtype = dtypes.float64 if wide else dtypes.default_float()
    if count <= 1:
        return wrap_host(np.ones(max(count, 0), dtype))
    half = (count - 1) / 2
    offset = (np.arange(count) - half) / half
    shape = convert(beta, dtype)
    arch = wrap_host(np.sqrt(1 - offset**2).astype(dtype))
    return i0(arch * shape) / i0(shape)
