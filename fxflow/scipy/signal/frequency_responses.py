"""What filters do to each frequency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.signal._recursions import Coefficients, known, numbers

_docs = shared("""
    Args:
      b: float or complex array-like[m]: the numerator.
      a: float or complex array-like[n]: the denominator.
      sos: float array-like[sections, 6]: sections.
      z: float or complex array-like[m]: zeros.
      p: float or complex array-like[n]: poles.
      k: number: the gain.
      worN: a number of frequencies, evenly spaced from 0; None is 512; or array-like of
        frequencies, in the unit of `fs`.
      whole: whether the spaced frequencies go on to `fs`, rather than half of it.
      fs: the sampling rate; 2π is for angles in a sample.
      include_nyquist: whether the last one of the spaced frequencies is fs / 2; with
        `whole` it has no meaning.

    Raises:
      ArgumentError: `worN` is not positive.
      ShapeError: coefficients have the wrong shape.

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


def _roots(name: str, z: Any, p: Any, k: Any) -> list[Array]:
    """Returns zeros, poles and a gain of one dtype."""
    zeros, poles, gain = promote_inexact(name, numbers(z), numbers(p), k)
    zeros, poles = fnp.atleast_1d(zeros), fnp.atleast_1d(poles)
    for what, vector in (("z", zeros), ("p", poles)):
        if vector.ndim != 1:
            raise ShapeError(f"{name}: {what} must be a vector, got {vector.aval}")
    if gain.ndim:
        raise ShapeError(f"{name}: k must be a number, got {gain.aval}")
    return [zeros, poles, gain]


def _apart(roots: Array, at: Array) -> Array:
    """Returns the product of the distances of points to roots."""
    return fnp.prod(at[:, None] - roots, 1)


@_docs
def freqz_zpk(
    z: Coefficients,
    p: Coefficients,
    k: ArrayLike,
    worN: Any = 512,
    whole: bool = False,
    fs: ArrayLike = 2 * math.pi,
) -> tuple[Array, Array]:
    """Returns the frequency response of a digital filter of zeros, poles and a gain.

    Returns:
      The frequencies, float array[w], and the response, complex array[w].

    Example:
      >>> w, h = freqz_zpk([-1.0], [0.0], 0.5, worN=2)
      >>> abs(h).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    z, p, k = _roots("freqz_zpk", z, p, k)
    dtype = dtypes.to_real(z.dtype)
    w, angles = _frequencies("freqz_zpk", worN, whole, fs, False, dtype)
    at = fnp.cos(angles) + 1j * fnp.sin(angles)
    return w, k * _apart(z, at) / _apart(p, at)


# -- analog filters --------------------------------------------------------------------


def findfreqs(num: Coefficients, den: Coefficients, N: int, kind: str = "ba") -> Array:
    """Returns frequencies at which the response of an analog filter is of interest.

    Args:
      num: float or complex array-like[m]: the numerator, or zeros.
      den: float or complex array-like[n]: the denominator, or poles.
      N: how many frequencies.
      kind: what was given: "ba", polynomials, or "zp", roots.

    Returns:
      Float array[N] of angular frequencies, evenly spaced by their logarithms.

    Raises:
      ArgumentError: there is no such `kind`, or `N` is not positive.
      ConcretizationError: `num` or `den` is traced.

    Example:
      >>> findfreqs([1.0, 0.0], [1.0, 8.0, 25.0], N=3)
      Array([1.e-02, 1.e+00, 1.e+02], dtype=float32)

    Source: `scipy.signal.findfreqs`.
    """
    name = "findfreqs"
    n = natural(name, "N", N)
    if kind not in ("ba", "zp"):
        raise ArgumentError(f'{name}: kind must be "ba" or "zp", got {kind!r}')
    return fnp.asarray(_interesting(name, num, den, n, kind == "ba"))


def _interesting(name: str, num: Any, den: Any, n: int, ratio: bool) -> Any:
    host = [known(numbers(value), name) for value in (num, den)]
    if any(value is None for value in host):
        raise ConcretizationError(
            f"{name}: which frequencies are of interest depends on the roots' values, "
            "which a trace does not know: give the frequencies"
        )
    both = [np.atleast_1d(np.asarray(v)) for v in host]
    zeros, poles = (np.roots(v) if ratio else v for v in both)
    poles = poles + 0j if poles.size else np.array([-1000 + 0j])
    zeros = zeros + 0j
    near = zeros[(np.abs(zeros) < 1e5) & (zeros.imag >= 0)]
    roots = np.concatenate([poles[poles.imag >= 0], near])
    at_zero = np.abs(roots) < 1e-10
    most = np.max(3 * np.abs(roots.real + at_zero) + 1.5 * roots.imag)
    least = 0.1 * np.min(np.abs((roots + at_zero).real) + 2 * roots.imag)
    ends = np.round(np.log10(least) - 0.5), np.round(np.log10(most) + 0.5)
    return np.logspace(*ends, n)


def _angular(
    name: str, worN: Any, num: Any, den: Any, ratio: bool, dtype: Any
) -> Array:
    worN = 200 if worN is None else worN
    if isinstance(worN, int | np.integer):
        n = natural(name, "worN", worN)
        return fnp.asarray(_interesting(name, num, den, n, ratio), dtype)
    w = convert(promote_inexact(name, numbers(worN))[0], dtype)
    return fnp.atleast_1d(w)


def _polyval(c: Array, at: Array) -> Array:
    out = fnp.zeros_like(at)
    for value in c:
        out = out * at + value
    return out


@_docs
def freqs(b: Coefficients, a: Coefficients, worN: Any = 200) -> tuple[Array, Array]:
    """Returns the frequency response of an analog filter.

    It is differentiable in the coefficients and the frequencies.

    Args:
      b: float or complex array-like[m]: the numerator, the highest power first.
      worN: array-like of angular frequencies, or how many `findfreqs` finds; None is
        200.

    Returns:
      The frequencies, float array[w], and the response, complex array[w].

    Raises:
      ConcretizationError: the coefficients are traced and `worN` is a number.

    Example:
      >>> abs(freqs([1.0], [1.0, 1.0], [0.0, 1.0])[1]).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    over, under = _vectors("freqs", b, a)
    w = _angular("freqs", worN, b, a, True, dtypes.to_real(over.dtype))
    at = 1j * w
    return w, _polyval(over, at) / _polyval(under, at)


@_docs
def freqs_zpk(
    z: Coefficients, p: Coefficients, k: ArrayLike, worN: Any = 200
) -> tuple[Array, Array]:
    """Returns the frequency response of an analog filter of zeros, poles and a gain.

    Args:
      worN: array-like of angular frequencies, or how many `findfreqs` finds; None is
        200.

    Returns:
      The frequencies, float array[w], and the response, complex array[w].

    Raises:
      ConcretizationError: the roots are traced and `worN` is a number.

    Example:
      >>> abs(freqs_zpk([], [-1.0], 1.0, [0.0, 1.0])[1]).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    zeros, poles, gain = _roots("freqs_zpk", z, p, k)
    w = _angular("freqs_zpk", worN, z, p, False, dtypes.to_real(zeros.dtype))
    at = 1j * w
    return w, gain * _apart(zeros, at) / _apart(poles, at)


# -- delays ----------------------------------------------------------------------------


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
