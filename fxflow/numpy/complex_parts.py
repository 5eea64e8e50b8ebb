"""The parts of complex numbers."""

from __future__ import annotations

import math

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import constant
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    promote_inexact,
)
from fxflow.numpy.number_kinds import signbit
from fxflow.numpy.selection import choose_between
from fxflow.numpy.ufuncs import unary


@unary(
    "Real part.",
    returns="Array of the shape of `x`, of the dtype of its parts.",
    example=("real(np.array([1 + 2j]))", "Array([1.], dtype=float32)"),
)
def real(x: Array) -> Array:
    """Real part."""
    return lax.real(x) if dtypes.is_complex(x.aval.dtype) else x


@unary(
    "Imaginary part.",
    returns="Array of the shape of `x`, of the dtype of its parts.",
    example=("imag(np.array([1 + 2j]))", "Array([2.], dtype=float32)"),
)
def imag(x: Array) -> Array:
    """Imaginary part."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.imag(x)
    zero = constant(0, x.aval.dtype, x.aval.weak_type)
    return lax.broadcast_in_dim(zero, x.aval.shape, ())


@unary(
    "Complex conjugate; real numbers stay as they are.",
    example=("conjugate(np.array([1 + 2j]))", "Array([1.-2.j], dtype=complex64)"),
)
def conjugate(x: Array) -> Array:
    """Complex conjugate."""
    return lax.conj(x) if dtypes.is_complex(x.aval.dtype) else x


@library("deg")
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Angle of complex numbers, from -π to π.

    Args:
      z: array-like.
      deg: whether in degrees.

    Returns:
      Float array of the shape of `z`.

    Raises:
      ArgumentError: `z` is not an array.

    Special cases:
      -0 is a negative number: its angle is π.

    Example:
      >>> angle(np.array([1.0, 1j]), deg=True)
      Array([ 0., 90.], dtype=float32)

    Source: `numpy.angle`.
    """
    (x,) = promote_inexact("angle", z)
    if dtypes.is_complex(x.aval.dtype):
        out = lax.atan2(lax.imag(x), lax.real(x))
    else:
        dtype, weak = x.aval.dtype, x.aval.weak_type
        zero, half = constant(0, dtype, weak), constant(math.pi, dtype, weak)
        out = choose_between(signbit.function(x), half, zero)
        out = choose_between(lax.ne(x, x), x, out)
    return lax.mul(out, 180 / math.pi) if deg else out


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """Returns the real parts if the imaginary parts are all close to zero.

    Args:
      a: concrete array-like.
      tol: above 1: in machine epsilons; else the largest imaginary part itself.

    Returns:
      Array, real or complex: so `a` may not be traced.

    Raises:
      ConcretizationError: `a` is traced.

    Example:
      >>> real_if_close(np.array([1 + 0j, 2 + 0j]))
      Array([1., 2.], dtype=float32)

    Source: `numpy.real_if_close`.
    """
    x = array_of(a, "real_if_close")
    if not dtypes.is_complex(x.aval.dtype):
        return x
    if tol > 1:
        tol = tol * float(dtypes.finfo(x.aval.dtype).eps)
    close = bool((np.abs(np.asarray(x).imag) < tol).all())
    return real(x) if close else x
