"""The Hankel transform on a logarithmic grid, and lengths whose transforms are fast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.special import loggamma, poch

_docs = shared("""
    Args:
      a: float array-like[..., n]: samples at steps of `dln` in the logarithm.
      A: float array-like[..., n]: samples of the transform.
      dln: the step, a number.
      mu: the order of the Bessel function, a number.
      offset: the logarithm of the product of the middles of both grids, a number.
      initial: an offset that is near the wanted one.
      bias: exponent of the power that the samples are weighted by, a number.

    Raises:
      ShapeError: there is no axis.
      ...

    Source: `scipy.fft.{name}`, with derivatives with respect to all arguments; A.
    Hamilton, Uncorrelated modes of the non-linear power spectrum, 2000.
""")


def _coefficients(
    n: int, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool
) -> Any:
    """Returns factors of the Fourier coefficients, of numbers of 64 bits."""
    up, down = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    y = np.pi * np.arange(n // 2 + 1) / n / dln
    z = loggamma(lax.complex(up + 0 * y, y)), loggamma(lax.complex(down + 0 * y, y))
    size = fnp.real(z[0]) - fnp.real(z[1]) + math.log(2) * bias
    angle = fnp.imag(z[0]) + fnp.imag(z[1]) + 2 * y * (math.log(2) - offset)
    size = lax.exp(size)
    real, imag = size * lax.cos(angle), size * lax.sin(angle)
    if n % 2 == 0:
        # The last one is real.
        imag = fnp.concatenate([imag[:-1], 0 * imag[-1:]])
    # Where both gamma functions have poles.
    first = 2**bias * poch(down, up - down)
    real = fnp.concatenate(
        [fnp.where(fnp.isfinite(real[:1]), real[:1], first), real[1:]]
    )
    imag = fnp.where(fnp.isfinite(imag), imag, 0)
    out = lax.complex(real, imag)
    if inverse:
        out = 1 / fnp.conj(out)
    return out


def _transform(name: str, a: Any, *numbers: Any, inverse: bool) -> Array:
    (x, *rest) = promote_inexact(name, a, *numbers)
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        raise ArgumentError(f"{name}: takes real samples, got {x.aval}")
    if not x.aval.ndim or not x.aval.shape[-1]:
        raise ShapeError(f"{name}: takes samples along the last axis, got {x.aval}")
    if any(v.aval.ndim for v in rest):
        raise ShapeError(f"{name}: dln, mu, offset and bias are numbers, not arrays")
    x, dln, mu, offset, bias = (convert(v, dtypes.float64) for v in (x, *rest))
    n = x.aval.shape[-1]
    place = (np.arange(n) - (n - 1) / 2) * dln
    before = bias * (place + offset) if inverse else -bias * place
    after = bias * place if inverse else -bias * (place + offset)
    spectrum = fnp.fft.rfft(x * lax.exp(before))
    spectrum = spectrum * _coefficients(n, dln, mu, offset, bias, inverse)
    out = fnp.flip(fnp.fft.irfft(spectrum, n), -1) * lax.exp(after)
    result: Array = convert(out, dtype)
    return result


@library()
@_docs
def fht(
    a: ArrayLike,
    dln: ArrayLike,
    mu: ArrayLike,
    offset: ArrayLike = 0.0,
    bias: ArrayLike = 0.0,
) -> Array:
    """Returns the Hankel transform of samples on a logarithmic grid.

    Returns:
      Float array[..., n]: samples of the transform, times the grid's points.

    Example:
      >>> fht(np.array([1.0, 2.0, 1.0]), 0.5, 0.0).shape
      (3,)
    """
    return _transform("fht", a, dln, mu, offset, bias, inverse=False)


@library()
@_docs
def ifht(
    A: ArrayLike,
    dln: ArrayLike,
    mu: ArrayLike,
    offset: ArrayLike = 0.0,
    bias: ArrayLike = 0.0,
) -> Array:
    """Returns what has a Hankel transform on a logarithmic grid.

    Returns:
      Float array[..., n].

    Example:
      >>> ifht(fht(np.array([1.0, 2.0, 1.0]), 0.5, 0.0), 0.5, 0.0).round(3)
      Array([1., 2., 1.], dtype=float32)
    """
    return _transform("ifht", A, dln, mu, offset, bias, inverse=True)


@library()
@_docs
def fhtoffset(
    dln: ArrayLike, mu: ArrayLike, initial: ArrayLike = 0.0, bias: ArrayLike = 0.0
) -> Array:
    """Returns the offset next to another for which the transform does not ring.

    Returns:
      Float array.

    Example:
      >>> fhtoffset(0.5, 0.0).round(4)
      Array(-0.1579, dtype=float32)
    """
    given = promote_inexact("fhtoffset", dln, mu, initial, bias)
    dtype = given[0].aval.dtype
    dln, mu, initial, bias = (convert(v, dtypes.float64) for v in given)
    y = np.pi / (2 * dln)
    angles = [
        fnp.imag(loggamma(lax.complex((mu + 1 + s * bias) / 2, y + 0 * mu + 0 * bias)))
        for s in (1, -1)
    ]
    turns = (math.log(2) - initial) / dln + (angles[0] + angles[1]) / np.pi
    out: Array = convert(initial + (turns - fnp.round(turns)) * dln, dtype)
    return out


# -- lengths ---------------------------------------------------------------------------


def _is_fast(n: int, real: bool) -> bool:
    for prime in (2, 3, 5) if real else (2, 3, 5, 7, 11):
        while n % prime == 0:
            n //= prime
    return n == 1


def next_fast_len(target: int, real: bool = False) -> int:
    """Returns the smallest length of at least `target` whose transform is fast.

    Args:
      target: a positive number.
      real: whether the transform is of real numbers.

    Returns:
      A product of 2, 3 and 5, and of 7 and 11 unless `real`.

    Raises:
      ArgumentError: `target` is not a positive integer.

    Example:
      >>> next_fast_len(13), next_fast_len(13, real=True)
      (14, 15)

    Source: `scipy.fft.next_fast_len`.
    """
    n = _length("next_fast_len", target)
    while not _is_fast(n, real):
        n += 1
    return n


def prev_fast_len(target: int, real: bool = False) -> int:
    """Returns the largest length of at most `target` whose transform is fast.

    Args:
      target: a positive number.
      real: whether the transform is of real numbers.

    Returns:
      A product of 2, 3 and 5, and of 7 and 11 unless `real`.

    Raises:
      ArgumentError: `target` is not a positive integer.

    Example:
      >>> prev_fast_len(13), prev_fast_len(11, real=True)
      (12, 10)

    Source: `scipy.fft.prev_fast_len`.
    """
    n = _length("prev_fast_len", target)
    while not _is_fast(n, real):
        n -= 1
    return n


def _length(name: str, target: Any) -> int:
    n = integer(name, "target", target)
    if n < 1:
        raise ArgumentError(f"{name}: target must be positive, got {target}")
    return int(n)
