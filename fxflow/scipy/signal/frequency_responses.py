"""What filters do to each frequency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.signal._recursions import Coefficients, numbers

_docs = shared("""
    Args:
      b: float or complex array-like[m]: the numerator.
      a: float or complex array-like[n]: the denominator.
      sos: float array-like[sections, 6]: sections.
      worN: a number of frequencies, evenly spaced from 0; None is 512; or array-like of
        frequencies, in the unit of `fs`.
      whole: whether the spaced frequencies go on to `fs`, rather than half of it.
      fs: the sampling rate; 2π is for angles in a sample.
      include_nyquist: whether the last one of the spaced frequencies is fs / 2; with
        `whole` it has no meaning.

    Raises:
      ArgumentError: `worN` is not positive.
      ShapeError: coefficients have another shape.

    Source: `scipy.signal.{name}`.
""")


def _frequencies(
    name: str, worN: Any, whole: bool, fs: Any, include_nyquist: bool, dtype: Any
) -> tuple[Array, Array]:
    """Returns frequencies in the unit of `fs`, and as angles."""
    rate = fnp.asarray(fs, dtype)
    worN = 512 if worN is None else worN
    if isinstance(worN, int | np.integer):
        n = natural(name, "worN", worN)
        stop = 1.0 if whole else 0.5
        points = np.linspace(0, stop, n, endpoint=include_nyquist and not whole)
        turns = fnp.asarray(points, dtype)
        return turns * rate, turns * (2 * math.pi)
    w = convert(promote_inexact(name, numbers(worN))[0], dtype)
    return w, w * (2 * math.pi / rate)


def _polynomial(c: Array, angles: Array) -> Array:
    """Returns the sum of c[k] exp(-i k angle) for each angle."""
    z = fnp.cos(angles) - 1j * fnp.sin(angles)
    out = fnp.zeros_like(z)
    for k in range(c.aval.shape[0] - 1, -1, -1):
        out = out * z + c[k]
    return out


def _vectors(name: str, *given: Any) -> list[Array]:
    found = []
    for what, value in zip(
        "ba", promote_inexact(name, *map(numbers, given)), strict=True
    ):
        vector = fnp.atleast_1d(value)
        if vector.ndim != 1 or not vector.size:
            raise ShapeError(f"{name}: {what} must be a vector, got {vector.aval}")
        found.append(vector)
    return found


@_docs
def freqz(
    b: Coefficients,
    a: Coefficients = 1,
    worN: Any = 512,
    whole: bool = False,
    fs: ArrayLike = 2 * math.pi,
    include_nyquist: bool = False,
) -> tuple[Array, Array]:
    """Returns the frequency response of a digital filter.

    It is differentiable in the coefficients and the frequencies.

    Returns:
      The frequencies, float array[w], and the response, complex array[w].

    Example:
      >>> w, h = freqz([0.5, 0.5], worN=2)
      >>> abs(h).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    b, a = _vectors("freqz", b, a)
    dtype = dtypes.to_real(b.dtype)
    w, angles = _frequencies("freqz", worN, whole, fs, include_nyquist, dtype)
    return w, _polynomial(b, angles) / _polynomial(a, angles)


@_docs
def freqz_sos(
    sos: Coefficients,
    worN: Any = 512,
    whole: bool = False,
    fs: ArrayLike = 2 * math.pi,
) -> tuple[Array, Array]:
    """Returns the frequency response of second-order sections.

    Returns:
      The frequencies, float array[w], and the response, complex array[w].

    Example:
      >>> w, h = freqz_sos([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], worN=2)
      >>> abs(h).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    (rows,) = promote_inexact("freqz_sos", numbers(sos))
    if rows.ndim != 2 or rows.shape[1] != 6 or not rows.shape[0]:
        raise ShapeError(f"freqz_sos: sos must be float[sections, 6], got {rows.aval}")
    dtype = dtypes.to_real(rows.dtype)
    w, angles = _frequencies("freqz_sos", worN, whole, fs, False, dtype)
    # Sections stand in the first axis: one product of ratios.
    ratio = _polynomial(rows[:, :3].T[:, :, None], angles) / _polynomial(
        rows[:, 3:].T[:, :, None], angles
    )
    return w, fnp.prod(ratio, 0)


sosfreqz = freqz_sos


@_docs
def group_delay(
    system: tuple[Any, Any],
    w: Any = 512,
    whole: bool = False,
    fs: ArrayLike = 2 * math.pi,
) -> tuple[Array, Array]:
    """Returns by how many samples a digital filter delays each frequency.

    Args:
      system: the numerator's and the denominator's coefficients.
      w: a number of frequencies or frequencies, as `worN` of `freqz`.

    Returns:
      The frequencies, float array[w], and the delays, float array[w]: 0 where the
      response is 0 or infinite.

    Example:
      >>> group_delay(([1.0, 2.0, 1.0], [1.0]), 2)[1].round(3)
      Array([1., 1.], dtype=float32)
    """
    b, a = _vectors("group_delay", *system)
    dtype = dtypes.to_real(b.dtype)
    w, angles = _frequencies("group_delay", w, whole, fs, False, dtype)
    # The delay of b(z) / a(z) is that of b(z) times a reversed and conjugated.
    c = fnp.convolve(b, fnp.conj(fnp.flip(a)))
    value = _polynomial(c, angles)
    slope = _polynomial(c * np.arange(c.aval.size).astype(dtype), angles)
    small = fnp.abs(value) < 10 * float(np.finfo(dtype).eps)
    delay = fnp.real(slope / fnp.where(small, 1, value)) - (a.aval.size - 1)
    return w, fnp.where(small, 0, delay)
