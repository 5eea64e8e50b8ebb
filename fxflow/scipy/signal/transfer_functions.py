"""Filters in three forms, and the ways between them.

Coefficients of two polynomials (`b`, `a`), zeros, poles and a gain (`z`, `p`, `k`), and
second-order sections (`sos`). Which roots share a section depends on their values, so
`zpk2sos` and `tf2sos` take concrete arguments only; the other functions can be traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal._recursions import Coefficients, known, numbers
from fxflow.scipy.signal._sections import paired_sections

_PAIRINGS = ("nearest", "keep_odd", "minimal")

_docs = shared("""
    Args:
      b: float or complex array-like[m]: the numerator, the highest power first.
      a: float or complex array-like[n]: the denominator.
      z: float or complex array-like[i]: zeros.
      p: float or complex array-like[j]: poles.
      k: number: the gain.
      sos: float array-like[sections, 6]: numerators and denominators.
      pairing: how roots are paired: "nearest", each pole with the zero that is nearest;
        "keep_odd", likewise, but a filter of odd order keeps a section of first order;
        "minimal", with as few sections as there can be, for analog filters; None is
        "nearest", or "minimal" if `analog`.
      analog: whether the roots are of an analog filter.

    Source: `scipy.signal.{name}`.
""")


@_docs
def tf2zpk(b: Coefficients, a: Coefficients) -> tuple[Array, Array, Array]:
    """Returns the zeros, poles and gain of a ratio of polynomials.

    Returns:
      Complex array[m - 1], complex array[n - 1] and the gain, 0-d. Leading zeros of
      `a` and concrete leading zeros of `b` are left out.

    Raises:
      ArgumentError: all coefficients of `a` are 0.
      ShapeError: `b` or `a` is not a vector.

    Example:
      >>> z, p, k = tf2zpk([2.0, -1.0], [1.0, -0.25])
      >>> float(z[0].real), float(p[0].real), float(k)
      (0.5, 0.25, 2.0)
    """
    parts = []
    for what, values in (("b", numbers(b)), ("a", numbers(a))):
        values = fnp.atleast_1d(values)
        host = known(values, "tf2zpk")
        if values.aval.ndim != 1 or not values.aval.size:
            raise ShapeError(f"tf2zpk: {what} must be a vector, got {values.aval}")
        if host is not None:
            nonzero = np.flatnonzero(host)
            if not nonzero.size and what == "a":
                raise ArgumentError("tf2zpk: a must have a coefficient that is not 0")
            values = values[nonzero[0] if nonzero.size else values.size - 1 :]
        parts.append(values)
    b, a = promote_inexact("tf2zpk", *parts)
    k = b[0] / a[0]
    b = b / fnp.where(b[0] == 0, 1, b[0])
    return fnp.roots(b, strip_zeros=False), fnp.roots(a / a[0], strip_zeros=False), k


def polynomial(roots: Array) -> Array:
    """Returns the coefficients of the monic polynomial with these roots."""
    out = fnp.ones(1, roots.aval.dtype)
    for root in roots:
        out = fnp.pad(out, (0, 1)) - root * fnp.pad(out, (1, 0))
    return out


def _is_real(roots: Any, name: str) -> bool:
    """Returns whether roots are real or in conjugate pairs, as far as is known."""
    values = known(roots, name)
    if values is None or not np.iscomplexobj(values):
        return values is not None
    up, down = (values[sign * values.imag > 0] for sign in (1, -1))
    return up.size == down.size and bool(
        np.all(np.sort_complex(up) == np.sort_complex(np.conj(down)))
    )


@_docs
def zpk2tf(z: Coefficients, p: Coefficients, k: ArrayLike) -> tuple[Array, Array]:
    """Returns the polynomials with these zeros, poles and gain.

    Returns:
      The numerator, array[i + 1], and the denominator, array[j + 1]: real if the roots
      are known to be real or in conjugate pairs.

    Raises:
      ShapeError: `z` or `p` is not a vector.

    Example:
      >>> zpk2tf([0.5], [0.25], 2.0)
      (Array([ 2., -1.], dtype=float32), Array([ 1.  , -0.25], dtype=float32))
    """
    z, p, k = numbers(z), numbers(p), numbers(k)
    both = []
    for what, roots in (("z", z), ("p", p)):
        values = fnp.atleast_1d(promote_inexact("zpk2tf", roots)[0])
        if values.ndim != 1:
            raise ShapeError(f"zpk2tf: {what} must be a vector, got {values.aval}")
        found = polynomial(values)
        real = dtypes.is_complex(found.aval.dtype) and _is_real(roots, "zpk2tf")
        both.append(fnp.real(found) if real else found)
    numerator, gain = promote_inexact("zpk2tf", both[0], k)
    return numerator * gain, both[1]


def _concrete(name: str, *values: Any) -> list[np.ndarray[Any, Any]]:
    found = []
    for value in values:
        host = known(value, name)
        if host is None:
            raise ConcretizationError(
                f"{name}: which roots share a section depends on their values, which a "
                'trace does not know: design with output="sos", or convert outside of '
                "jit and grad"
            )
        found.append(host)
    return found


@_docs
def zpk2sos(
    z: Coefficients,
    p: Coefficients,
    k: ArrayLike,
    pairing: str | None = None,
    *,
    analog: bool = False,
) -> Array:
    """Returns second-order sections with these zeros, poles and gain.

    Args:
      k: number: the gain.

    Returns:
      Float array[sections, 6], computed on the host; the section with the poles nearest
      to the unit circle is the last one.

    Raises:
      ArgumentError: unknown pairing, or complex roots are not in conjugate pairs.
      ConcretizationError: an argument is traced.

    Example:
      >>> zpk2sos([-1.0], [0.5], 2.0)
      Array([[ 2. ,  2. ,  0. ,  1. , -0.5,  0. ]], dtype=float32)
    """
    if pairing is None:
        pairing = "minimal" if analog else "nearest"
    if pairing not in _PAIRINGS:
        listed = ", ".join(f'"{p}"' for p in _PAIRINGS)
        raise ArgumentError(
            f"zpk2sos: pairing must be one of {listed}, got {pairing!r}"
        )
    if analog != (pairing == "minimal"):
        raise ArgumentError(
            'zpk2sos: pairing "minimal" is that of analog filters, and their only one, '
            f"got pairing={pairing!r} and analog={analog}"
        )
    zeros, poles, gain = _concrete("zpk2sos", numbers(z), numbers(p), numbers(k))
    sections = paired_sections("zpk2sos", zeros, poles, float(gain), pairing)
    return fnp.asarray(sections)


@_docs
def tf2sos(
    b: Coefficients,
    a: Coefficients,
    pairing: str | None = None,
    *,
    analog: bool = False,
) -> Array:
    """Returns second-order sections of a ratio of polynomials.

    Returns:
      Float array[sections, 6], computed on the host; as `zpk2sos`.

    Raises:
      ArgumentError: as for `zpk2sos`.
      ConcretizationError: an argument is traced.

    Example:
      >>> tf2sos([2.0, 2.0], [1.0, -0.5])
      Array([[ 2. ,  2. ,  0. ,  1. , -0.5,  0. ]], dtype=float32)
    """
    over, under = _concrete("tf2sos", numbers(b), numbers(a))
    over, under = (np.trim_zeros(np.atleast_1d(v), "f") for v in (over, under))
    if not under.size:
        raise ArgumentError("tf2sos: a must have a coefficient that is not 0")
    gain = over[0] / under[0] if over.size else 0.0
    return zpk2sos(np.roots(over), np.roots(under), gain, pairing, analog=analog)


def _sections(name: str, sos: Any) -> Array:
    (rows,) = promote_inexact(name, numbers(sos))
    if rows.ndim != 2 or rows.shape[1] != 6 or not rows.shape[0]:
        raise ShapeError(f"{name}: sos must be float[sections, 6], got {rows.aval}")
    return rows


@_docs
def sos2tf(sos: Coefficients) -> tuple[Array, Array]:
    """Returns the polynomials of second-order sections.

    Returns:
      The numerator and the denominator, array[2 sections + 1] each.

    Raises:
      ShapeError: `sos` has the wrong shape.

    Example:
      >>> sos2tf([[2.0, 2.0, 0.0, 1.0, -0.5, 0.0]])[1]
      Array([ 1. , -0.5,  0. ], dtype=float32)
    """
    return _sos2tf(_sections("sos2tf", sos))


@library()
def _sos2tf(sos: Any) -> tuple[Array, Array]:
    b, a = fnp.ones(1, sos.dtype), fnp.ones(1, sos.dtype)
    for section in sos:
        b, a = fnp.convolve(b, section[:3]), fnp.convolve(a, section[3:])
    return b, a


@_docs
def sos2zpk(sos: Coefficients) -> tuple[Array, Array, Array]:
    """Returns the zeros, poles and gain of second-order sections.

    Returns:
      Complex array[2 sections] twice, and the gain, 0-d. Roots of a first-order section
      have 0 beside them.

    Raises:
      ShapeError: `sos` has the wrong shape.

    Example:
      >>> z, p, k = sos2zpk([[2.0, 2.0, 0.0, 1.0, -0.5, 0.0]])
      >>> p.real.tolist(), float(k)
      ([0.5, 0.0], 2.0)
    """
    return _sos2zpk(_sections("sos2zpk", sos))


@library()
def _sos2zpk(sos: Any) -> tuple[Array, Array, Array]:
    def roots(c: Array) -> Array:
        """Returns the roots of x² + c1 x + c2 for each row, without cancellation."""
        half = -c[:, 1] / (2 * c[:, 0])
        product = c[:, 2] / c[:, 0]
        inside = half * half - product
        real = inside >= 0
        width = fnp.sqrt(fnp.where(real, inside, 0))
        large = half + fnp.where(half < 0, -width, width)
        small = fnp.where(large == 0, 0, product / fnp.where(large == 0, 1, large))
        height = fnp.sqrt(fnp.where(real, 0, -inside))
        first = fnp.where(real, large, half) + 1j * height
        second = fnp.where(real, small, half) - 1j * height
        return fnp.reshape(fnp.stack([first, second], 1), -1)

    gain = fnp.prod(sos[:, 0] / sos[:, 3])
    return roots(sos[:, :3]), roots(sos[:, 3:]), gain
