"""Analog filters moved to other bands, and made digital."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal import _prototypes as prototypes
from fxflow.scipy.signal._recursions import Coefficients, known, numbers

# -- prototypes ------------------------------------------------------------------------

_docs_of_prototypes = shared("""
    Args:
      N: the order, not negative.

    Returns:
      Zeros, poles and gain of an analog lowpass with its edge at 1 rad/s: complex
      arrays and a float array[], computed on the host.

    Raises:
      ArgumentError: `N` is negative, or a ripple is not positive.

    Source: `scipy.signal.{name}`.
""")


def _prototype(
    name: str, N: Any, make: Any, loss: float = 0.0
) -> tuple[Array, Array, Array]:
    """Returns a prototype, of order 0 a gain alone: -loss dB."""
    n = natural(name, "N", N, 0)
    z, p, k = make(n) if n else (np.zeros(0), np.zeros(0), 10 ** (-loss / 20))
    z, p = np.asarray(z, np.complex128), np.asarray(p, np.complex128)
    return fnp.asarray(z), fnp.asarray(p), fnp.asarray(float(k))


@_docs_of_prototypes
def buttap(N: int) -> tuple[Array, Array, Array]:
    """Returns the analog prototype of a Butterworth filter.

    Example:
      >>> buttap(1)[1].real
      Array([-1.], dtype=float32)
    """
    return _prototype("buttap", N, prototypes.butterworth)


@_docs_of_prototypes
def cheb1ap(N: int, rp: float) -> tuple[Array, Array, Array]:
    """Returns the analog prototype of a Chebyshev filter with a rippled passband.

    Args:
      rp: ripple of the passband in dB.

    Example:
      >>> cheb1ap(1, 3.0)[1].real.round(3)
      Array([-1.002], dtype=float32)
    """
    ripple = prototypes.ripple("cheb1ap", "rp", rp)
    return _prototype("cheb1ap", N, lambda n: prototypes.chebyshev(n, ripple), ripple)


@_docs_of_prototypes
def cheb2ap(N: int, rs: float) -> tuple[Array, Array, Array]:
    """Returns the analog prototype of a Chebyshev filter with a rippled stopband.

    Args:
      rs: attenuation of the stopband in dB.

    Example:
      >>> cheb2ap(2, 40.0)[0].imag.round(3)
      Array([-1.414,  1.414], dtype=float32)
    """
    stop = prototypes.ripple("cheb2ap", "rs", rs)
    return _prototype("cheb2ap", N, lambda n: prototypes.inverse_chebyshev(n, stop))


@_docs_of_prototypes
def ellipap(N: int, rp: float, rs: float) -> tuple[Array, Array, Array]:
    """Returns the analog prototype of an elliptic filter.

    Args:
      rp: ripple of the passband in dB.
      rs: attenuation of the stopband in dB, above `rp`.

    Raises:
      ArgumentError: `N` is negative, a ripple is not positive, or `rs` is not above
        `rp`.

    Example:
      >>> ellipap(1, 3.0, 40.0)[1].real.round(3)
      Array([-1.002], dtype=float32)
    """
    low, high = (
        prototypes.ripple("ellipap", "rp", rp),
        prototypes.ripple("ellipap", "rs", rs),
    )
    if low >= high:
        raise ArgumentError(f"ellipap: rs must be above rp, got rp={low}, rs={high}")
    return _prototype("ellipap", N, lambda n: prototypes.elliptic(n, low, high), low)


@_docs_of_prototypes
def besselap(N: int, norm: str = "phase") -> tuple[Array, Array, Array]:
    """Returns the analog prototype of a Bessel filter.

    Args:
      norm: "phase", "delay" or "mag"; see `bessel`.

    Raises:
      ArgumentError: `N` is negative, or there is no such `norm`.

    Example:
      >>> besselap(1)[1].real
      Array([-1.], dtype=float32)
    """
    if norm not in ("phase", "delay", "mag"):
        raise ArgumentError(
            f'besselap: norm must be "phase", "delay" or "mag", got {norm!r}'
        )
    return _prototype("besselap", N, lambda n: prototypes.bessel("besselap", n, norm))


# -- zeros, poles and gain -------------------------------------------------------------

_docs_of_roots = shared("""
    Args:
      z: float or complex array-like[m]: zeros of an analog filter.
      p: float or complex array-like[n]: its poles, n ≥ m.
      k: number: its gain.
      wo: the new edge in rad/s, or the middle of the band; it may be traced.
      bw: the width of the band in rad/s; it may be traced.
      fs: the sampling rate; it may be traced.

    Returns:
      Zeros, poles and gain: complex arrays and a real array[].

    Raises:
      ArgumentError: there are more zeros than poles.
      ShapeError: `z` or `p` is not a vector.

    Source: `scipy.signal.{name}`.
""")


def _roots(
    name: str, z: Any, p: Any, k: Any, *more: Any
) -> tuple[Array, Array, list[Array], int]:
    """Returns zeros, poles, other numbers of their dtype, and the excess of poles."""
    z, p, *others = promote_inexact(name, numbers(z), numbers(p), k, *more)
    both = []
    for what, values in (("z", z), ("p", p)):
        vector = fnp.atleast_1d(values)
        if vector.ndim != 1:
            raise ShapeError(f"{name}: {what} must be a vector, got {vector.aval}")
        both.append(vector + 0j)
    excess = both[1].size - both[0].size
    if excess < 0:
        raise ArgumentError(
            f"{name}: a filter must not have more zeros than poles, got "
            f"{both[0].size} and {both[1].size}"
        )
    return both[0], both[1], others, excess


def _and(roots: Array, more: Any, count: int) -> Array:
    return fnp.concatenate([roots, fnp.broadcast_to(more, count).astype(roots.dtype)])


def _real_ratio(z: Array, p: Array) -> Array:
    return fnp.real(fnp.prod(z) / fnp.prod(p))


def _halves(middle: Array, square: Any) -> Array:
    square = middle * middle - square
    apart = fnp.sqrt(square)
    # A negative number has SciPy's root, whatever the sign of its imaginary zero.
    upper = (fnp.imag(square) == 0) & (fnp.imag(apart) > 0)
    apart = fnp.where(upper, -apart, apart)
    return fnp.concatenate([middle + apart, middle - apart])


@_docs_of_roots
def lp2lp_zpk(
    z: Coefficients, p: Coefficients, k: ArrayLike, wo: ArrayLike = 1.0
) -> tuple[Array, Array, Array]:
    """Moves a lowpass prototype's edge from 1 to `wo`.

    Example:
      >>> lp2lp_zpk([], [-1.0], 1.0, 2.0)[1].real
      Array([-2.], dtype=float32)
    """
    z, p, (k, wo), excess = _roots("lp2lp_zpk", z, p, k, wo)
    return z * wo, p * wo, fnp.real(k * wo**excess)


@_docs_of_roots
def lp2hp_zpk(
    z: Coefficients, p: Coefficients, k: ArrayLike, wo: ArrayLike = 1.0
) -> tuple[Array, Array, Array]:
    """Makes a lowpass prototype a highpass with its edge at `wo`.

    Example:
      >>> lp2hp_zpk([], [-1.0], 1.0, 2.0)[1].real
      Array([-2.], dtype=float32)
    """
    z, p, (k, wo), excess = _roots("lp2hp_zpk", z, p, k, wo)
    gain = fnp.real(k) * _real_ratio(-z, -p)
    return _and(wo / z, 0, excess), wo / p, gain


@_docs_of_roots
def lp2bp_zpk(
    z: Coefficients,
    p: Coefficients,
    k: ArrayLike,
    wo: ArrayLike = 1.0,
    bw: ArrayLike = 1.0,
) -> tuple[Array, Array, Array]:
    """Makes a lowpass prototype a bandpass around `wo`.

    Example:
      >>> lp2bp_zpk([], [-1.0], 1.0, 1.0, 2.0)[1].real
      Array([-1., -1.], dtype=float32)
    """
    z, p, (k, wo, bw), excess = _roots("lp2bp_zpk", z, p, k, wo, bw)
    zeros, poles = (_halves(r * bw / 2, wo**2) for r in (z, p))
    return _and(zeros, 0, excess), poles, fnp.real(k * bw**excess)


@_docs_of_roots
def lp2bs_zpk(
    z: Coefficients,
    p: Coefficients,
    k: ArrayLike,
    wo: ArrayLike = 1.0,
    bw: ArrayLike = 1.0,
) -> tuple[Array, Array, Array]:
    """Makes a lowpass prototype a bandstop around `wo`.

    Example:
      >>> lp2bs_zpk([], [-1.0], 1.0, 1.0, 2.0)[0].imag
      Array([ 1., -1.], dtype=float32)
    """
    z, p, (k, wo, bw), excess = _roots("lp2bs_zpk", z, p, k, wo, bw)
    zeros, poles = (_halves(bw / 2 / r, wo**2) for r in (z, p))
    zeros = _and(_and(zeros, 1j * wo, excess), -1j * wo, excess)
    return zeros, poles, fnp.real(k) * _real_ratio(-z, -p)


@_docs_of_roots
def bilinear_zpk(
    z: Coefficients, p: Coefficients, k: ArrayLike, fs: ArrayLike
) -> tuple[Array, Array, Array]:
    """Converts an analog filter to a digital one, s = 2 fs (z - 1) / (z + 1).

    Example:
      >>> bilinear_zpk([], [-2.0], 2.0, 1.0)[0].real
      Array([-1.], dtype=float32)
    """
    z, p, (k, fs), excess = _roots("bilinear_zpk", z, p, k, fs)
    rate = 2 * fs
    zeros, poles = ((rate + r) / (rate - r) for r in (z, p))
    gain = fnp.real(k) * _real_ratio(rate - z, rate - p)
    return _and(zeros, -1, excess), poles, gain


# -- polynomials -----------------------------------------------------------------------

_docs_of_polynomials = shared("""
    Args:
      b: float or complex array-like[m]: the numerator of an analog filter, the highest
        power first.
      a: float or complex array-like[n]: its denominator.
      wo: the new edge in rad/s, or the middle of the band; it may be traced.
      bw: the width of the band in rad/s; it may be traced.
      fs: the sampling rate; it may be traced.

    Returns:
      `b` and `a`, arrays; a[0] is 1. Where they are known, zeros that lead are left
      out.

    Raises:
      ArgumentError: all coefficients of `a` are 0.
      ShapeError: `b` or `a` is not a vector.

    Source: `scipy.signal.{name}`.
""")


def _vectors(name: str, b: Any, a: Any, *more: Any) -> list[Array]:
    b, a, *others = promote_inexact(name, numbers(b), numbers(a), *more)
    both = []
    for what, values in (("b", b), ("a", a)):
        vector = fnp.atleast_1d(values)
        if vector.ndim != 1 or not vector.size:
            raise ShapeError(f"{name}: {what} must be a vector, got {vector.aval}")
        both.append(vector)
    return [*both, *others]


def _with(c: Array, above: list[Any], below: list[Any], degree: int) -> Array:
    """Returns c(above / below) times below^degree, all polynomials."""
    up, down = (fnp.stack([fnp.asarray(v, c.dtype) for v in p]) for p in (above, below))
    powers = [[fnp.ones(1, c.dtype)], [fnp.ones(1, c.dtype)]]
    for row, factor in zip(powers, (up, down), strict=True):
        for _ in range(degree):
            row.append(fnp.convolve(row[-1], factor, precision="highest"))
    n, out = c.size - 1, None
    for i in range(c.size):
        term = c[i] * fnp.convolve(
            powers[0][n - i], powers[1][degree - n + i], precision="highest"
        )
        if out is None:
            out = term
        else:
            size = max(out.size, term.size)
            out = fnp.pad(out, (size - out.size, 0))
            out = out + fnp.pad(term, (size - term.size, 0))
    assert out is not None
    return out


def normalize(b: Coefficients, a: Coefficients) -> tuple[Array, Array]:
    """Divides the polynomials of a filter by the denominator's first coefficient.

    Args:
      b: float or complex array-like[m] or [k, m]: the numerator, or several.
      a: float or complex array-like[n]: the denominator.

    Returns:
      `b` and `a`; a[0] is 1. Where they are known, zeros that lead are left out, in `b`
      those below 1e-14 as well.

    Raises:
      ArgumentError: all coefficients of `a` are 0.
      ShapeError: `b` or `a` has the wrong shape.

    Example:
      >>> normalize([0.0, 3.0], [2.0, 4.0])
      (Array([1.5], dtype=float32), Array([1., 2.], dtype=float32))

    Source: `scipy.signal.normalize`.
    """
    b, a = map(fnp.atleast_1d, promote_inexact("normalize", numbers(b), numbers(a)))
    if b.ndim > 2 or not b.size:
        raise ShapeError(f"normalize: b must be a vector or rows, got {b.aval}")
    if a.ndim != 1 or not a.size:
        raise ShapeError(f"normalize: a must be a vector, got {a.aval}")
    host = known(a, "normalize")
    if host is not None:
        nonzero = np.flatnonzero(host)
        if not nonzero.size:
            raise ArgumentError("normalize: a must have a coefficient that is not 0")
        a = a[nonzero[0] :]
    b, a = b / a[0], a / a[0]
    host = known(b, "normalize")
    if host is not None:
        small = np.all(np.abs(np.atleast_2d(host)) <= 1e-14, 0)
        lead = int(np.argmin(small)) if not small.all() else small.size - 1
        b = b[..., lead:]
    return b, a


def _changed(
    b: Array, a: Array, above: list[Any], below: list[Any]
) -> tuple[Array, Array]:
    degree = max(a.size, b.size) - 1
    return normalize(_with(b, above, below, degree), _with(a, above, below, degree))


@_docs_of_polynomials
def lp2lp(b: Coefficients, a: Coefficients, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Moves a lowpass prototype's edge from 1 to `wo`.

    Example:
      >>> lp2lp([1.0], [1.0, 1.0], 2.0)
      (Array([2.], dtype=float32), Array([1., 2.], dtype=float32))
    """
    b, a, wo = _vectors("lp2lp", b, a, wo)
    return _changed(b, a, [1.0, 0.0], [wo])


@_docs_of_polynomials
def lp2hp(b: Coefficients, a: Coefficients, wo: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Makes a lowpass prototype a highpass with its edge at `wo`.

    Example:
      >>> lp2hp([1.0], [1.0, 1.0], 2.0)
      (Array([1., 0.], dtype=float32), Array([1., 2.], dtype=float32))
    """
    b, a, wo = _vectors("lp2hp", b, a, wo)
    return _changed(b, a, [wo], [1.0, 0.0])


@_docs_of_polynomials
def lp2bp(
    b: Coefficients, a: Coefficients, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
) -> tuple[Array, Array]:
    """Makes a lowpass prototype a bandpass around `wo`.

    Example:
      >>> lp2bp([1.0], [1.0, 1.0], 1.0, 2.0)
      (Array([2., 0.], dtype=float32), Array([1., 2., 1.], dtype=float32))
    """
    b, a, wo, bw = _vectors("lp2bp", b, a, wo, bw)
    return _changed(b, a, [1.0, 0.0, wo**2], [bw, 0.0])


@_docs_of_polynomials
def lp2bs(
    b: Coefficients, a: Coefficients, wo: ArrayLike = 1.0, bw: ArrayLike = 1.0
) -> tuple[Array, Array]:
    """Makes a lowpass prototype a bandstop around `wo`.

    Example:
      >>> lp2bs([1.0], [1.0, 1.0], 1.0, 2.0)
      (Array([1., 0., 1.], dtype=float32), Array([1., 2., 1.], dtype=float32))
    """
    b, a, wo, bw = _vectors("lp2bs", b, a, wo, bw)
    return _changed(b, a, [bw, 0.0], [1.0, 0.0, wo**2])


@_docs_of_polynomials
def bilinear(
    b: Coefficients, a: Coefficients, fs: ArrayLike = 1.0
) -> tuple[Array, Array]:
    """Converts an analog filter to a digital one, s = 2 fs (z - 1) / (z + 1).

    Example:
      >>> bilinear([2.0], [1.0, 2.0], 1.0)
      (Array([0.5, 0.5], dtype=float32), Array([1., 0.], dtype=float32))
    """
    b, a, fs = _vectors("bilinear", b, a, fs)
    rate = 2 * fs
    return _changed(b, a, [rate, -rate], [1.0, 1.0])
