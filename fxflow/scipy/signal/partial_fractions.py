"""Ratios of polynomials as sums of simple fractions, and division.

Which poles are one pole of higher order depends on their values. Where these are
traced, all poles are assumed to be distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal._recursions import Coefficients, known, numbers
from fxflow.scipy.signal.filtering import lfilter
from fxflow.scipy.signal.transfer_functions import polynomial

_KINDS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("max", "maximum"), np.max),
    **dict.fromkeys(("min", "minimum"), np.min),
    **dict.fromkeys(("avg", "mean"), np.mean),
}

_docs = shared("""
    Args:
      b: float or complex array-like[m]: the numerator.
      a: float or complex array-like[n]: the denominator.
      r: float or complex array-like[i]: residues.
      p: float or complex array-like[i]: poles; equal ones, one after the other, are of
        rising order.
      k: float or complex array-like[j]: the polynomial that is added.
      tol: poles that are no farther apart are one pole.
      rtype: which of them it is: "max", "min" or "avg"; "maximum", "minimum" and "mean"
        are the same.

    Raises:
      ArgumentError: there is no such `rtype`, or the denominator is 0.
      ShapeError: an argument is not a vector.

    Special cases:
      Traced poles are assumed to be distinct, and no zero is left out.

    Source: `scipy.signal.{name}`.
""")

Fractions = tuple[Array, Array, Array]
#: Which zeros have no meaning: those at the front, or at the back.
End = Literal["f", "b"]


def _require_kind(name: str, rtype: str) -> None:
    if rtype not in _KINDS:
        listed = ", ".join(f'"{r}"' for r in _KINDS)
        raise ArgumentError(f"{name}: rtype must be one of {listed}, got {rtype!r}")


def _vectors(name: str, letters: str, *given: Any) -> list[Array]:
    found = []
    values = promote_inexact(name, *map(numbers, given))
    for what, value in zip(letters, values, strict=True):
        vector = fnp.atleast_1d(value)
        if vector.ndim != 1:
            raise ShapeError(f"{name}: {what} must be a vector, got {vector.aval}")
        found.append(vector)
    return found


def _host(name: str, *given: Any) -> list[np.ndarray[Any, Any]] | None:
    """Returns the values in 64 bits, or None where one of them is traced."""
    found = []
    for value in given:
        host = known(numbers(value), name)
        if host is None:
            return None
        found.append(np.atleast_1d(np.asarray(host)))
    wide = np.complex128 if any(np.iscomplexobj(v) for v in found) else np.float64
    return [v.astype(wide) for v in found]


def _grouped(
    roots: np.ndarray[Any, Any], tol: float, rtype: str
) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Returns different roots and how often each of them is there."""
    left = np.ones(len(roots), bool)
    values, counts = [], []
    for i, root in enumerate(roots):
        if left[i]:
            group = left & (np.abs(roots - root) <= tol)
            left &= ~group
            values.append(_KINDS[rtype](roots[group]))
            counts.append(int(group.sum()))
    return np.asarray(values, roots.dtype), counts


def unique_roots(
    p: Coefficients, tol: float = 1e-3, rtype: str = "min"
) -> tuple[Array, Array]:
    """Returns different roots, and how often each of them is in a list.

    Args:
      p: float or complex array-like[n]: roots.
      tol: roots that are no farther apart from the first of them are one root.
      rtype: which of them it is: "max", "min" or "avg"; "maximum", "minimum" and "mean"
        are the same.

    Returns:
      Array[m], the roots, and int32[m].

    Raises:
      ArgumentError: there is no such `rtype`.
      ConcretizationError: `p` is traced.
      ShapeError: `p` is not a vector.

    Example:
      >>> unique_roots([0.0, 1.3, 1.31, 2.8], tol=0.1)
      (Array([0. , 1.3, 2.8], dtype=float32), Array([1, 2, 1], dtype=int32))

    Source: `scipy.signal.unique_roots`.
    """
    name = "unique_roots"
    _require_kind(name, rtype)
    (values,) = _vectors(name, "p", p)
    host = _host(name, p)
    if host is None:
        raise ConcretizationError(
            f"{name}: how many roots are different depends on their values, which a "
            "trace does not know: call it outside of jit and grad"
        )
    found, counts = _grouped(host[0], tol, rtype)
    return fnp.asarray(found, values.dtype), fnp.asarray(counts, "int32")


# -- division --------------------------------------------------------------------------


def deconvolve(signal: ArrayLike, divisor: ArrayLike) -> tuple[Array, Array]:
    """Divides one polynomial, or signal, by another.

    Args:
      signal: float or complex array-like[n].
      divisor: float or complex array-like[d]: its first element is not 0.

    Returns:
      The quotient, array[n - d + 1] (array[0] if n < d), and the remainder, array[n]:
      `signal` is the convolution of quotient and divisor, plus the remainder.

    Raises:
      ArgumentError: the divisor's first element is 0.
      ShapeError: an argument is not a vector, or has no element.

    Example:
      >>> deconvolve([1.0, 3.0, 3.0, 1.0], [1.0, 1.0])[0]
      Array([1., 2., 1.], dtype=float32)

    Source: `scipy.signal.deconvolve`.
    """
    name = "deconvolve"
    both = promote_inexact(name, numbers(signal), numbers(divisor))
    num, den = (fnp.atleast_1d(v) for v in both)
    for what, value in (("signal", num), ("divisor", den)):
        if value.ndim != 1 or not value.size:
            raise ShapeError(
                f"{name}: {what} must be a vector with an element, got {value.aval}"
            )
    host = known(den, name)
    if host is not None and host[0] == 0:
        raise ArgumentError(f"{name}: divisor[0] must not be 0")
    count = num.size - den.size + 1
    if count <= 0:
        return num[:0], num
    impulse = np.zeros(count, num.dtype)
    impulse[0] = 1
    quotient = lfilter(num, den, impulse)
    return quotient, num - fnp.convolve(den, quotient, precision="highest")


def _divided(b: Array, a: Array) -> tuple[Array, Array]:
    """Returns the quotient and the remainder of polynomials, all zeros kept."""
    quotient = []
    for i in range(b.size - a.size + 1):
        quotient.append(b[i] / a[0])
        b = b.at[i : i + a.size].add(-quotient[-1] * a)
    if not quotient:
        return b[:0], b
    return fnp.stack(quotient), b[len(quotient) :]


# -- fractions of a ratio --------------------------------------------------------------


def _shares(
    poles: np.ndarray[Any, Any], counts: list[int], b: np.ndarray[Any, Any]
) -> list[Any]:
    """Returns residues of b over the product of (x - pole)^count."""
    found: list[Any] = []
    for i, (pole, count) in enumerate(zip(poles, counts, strict=True)):
        others = [q for j, q in enumerate(poles) if j != i for _ in range(counts[j])]
        factor, numer = np.poly(others), b.astype(complex)
        if count == 1:
            found.append(np.polyval(numer, pole) / np.polyval(factor, pole))
            continue
        line = np.array([1, -pole])
        factor, rest = np.polydiv(factor, line)
        block = []
        for _ in range(count):
            numer, own = np.polydiv(numer, line)
            block.append(own[0] / rest[0])
            numer = np.polysub(numer, block[-1] * factor)
        found += reversed(block)
    return found


def _fractions(
    name: str, b: Any, a: Any, tol: float, rtype: str, end: End
) -> tuple[Any, Any, Any]:
    """Returns residues, poles and the rest, all known; "b" is for powers of 1/z."""
    over, under = (np.trim_zeros(v, end) for v in (b, a))
    if not under.size or under[0] == 0:
        raise ArgumentError(f"{name}: a[0] must not be 0, got a = {a.tolist()}")
    poles = np.roots(under).astype(complex)
    if not over.size:
        ordered = poles[np.argsort(np.abs(poles))]
        return np.zeros_like(poles), ordered, np.zeros(0)
    turned = end == "b"
    num, den = (over[::-1], under[::-1]) if turned else (over, under)
    rest = np.zeros(0)
    if num.size >= den.size:
        rest, num = np.polydiv(num, den)
    values, counts = _grouped(poles, tol, rtype)
    order = np.argsort(np.abs(values))
    values, counts = values[order], [counts[i] for i in order]
    r = np.array(_shares(1 / values if turned else values, counts, num), complex)
    p = np.repeat(values, counts)
    if turned:
        powers = [1 + i for count in counts for i in range(count)]
        r, rest = r * (-p) ** np.asarray(powers, int), rest[::-1]
    return r / den[0], p, rest


@library("turned")
def _simple_fractions(b: Array, a: Array, turned: bool) -> Fractions:
    """Returns residues at different poles, the poles, and the rest."""
    poles = fnp.roots(a, strip_zeros=False)
    poles = poles[fnp.argsort(fnp.abs(poles))]
    num, den = (fnp.flip(b), fnp.flip(a)) if turned else (b, a)
    rest, num = _divided(num, den)
    at = 1 / poles if turned else poles
    apart = at[:, None] - at + np.eye(poles.size)
    value = fnp.zeros_like(at)
    for c in num:
        value = value * at + c
    r = value / fnp.prod(apart, 1) / den[0]
    return (-r * poles, poles, fnp.flip(rest)) if turned else (r, poles, rest)


def _residue(
    name: str, b: Coefficients, a: Coefficients, tol: float, rtype: str, end: End
) -> Fractions:
    _require_kind(name, rtype)
    over, under = _vectors(name, "ba", b, a)
    host = _host(name, b, a)
    if host is None:
        if not under.size:
            raise ArgumentError(f"{name}: a must have a coefficient")
        return _simple_fractions(over, under, end == "b")
    r, p, k = _fractions(name, host[0], host[1], tol, rtype, end)
    wide = dtypes.to_complex(over.dtype)
    return fnp.asarray(r, wide), fnp.asarray(p, wide), fnp.asarray(k, over.dtype)


@_docs
def residue(
    b: Coefficients, a: Coefficients, tol: float = 1e-3, rtype: str = "avg"
) -> Fractions:
    """Returns the partial fractions of a ratio of polynomials, highest power first.

    b(s) / a(s) is the sum of r[i] / (s - p[i])^order and of k(s).

    Returns:
      The residues and the poles, complex array[n - 1] each, and the polynomial that is
      left, array[m - n + 1] (array[0] if m < n).

    Example:
      >>> r, p, k = residue([5.0, 3.0, -2.0, 7.0], [-4.0, 0.0, 8.0, 3.0])
      >>> r.real.round(4), k
      (Array([ 1.332 , -0.6653, -1.4167], dtype=float32), Array([-1.25], dtype=float32))
    """
    return _residue("residue", b, a, tol, rtype, "f")


@_docs
def residuez(
    b: Coefficients, a: Coefficients, tol: float = 1e-3, rtype: str = "avg"
) -> Fractions:
    """Returns the partial fractions of a digital filter, in powers of 1/z.

    b(z) / a(z) is the sum of r[i] / (1 - p[i] / z)^order and of k(z).

    Returns:
      The residues and the poles, complex array[n - 1] each, and the polynomial that is
      left, array[m - n + 1] (array[0] if m < n).

    Example:
      >>> residuez([1.0], [1.0, -0.75, 0.125])[0].real
      Array([-1.,  2.], dtype=float32)
    """
    return _residue("residuez", b, a, tol, rtype, "b")


# -- the ratio of fractions ------------------------------------------------------------


@library("counts", "turned")
def _ratio(
    r: Array, roots: Array, k: Array, counts: tuple[int, ...], turned: bool
) -> tuple[Array, Array]:
    rows = [(j, i + 1) for j, count in enumerate(counts) for i in range(count)]
    every = [roots[j] for j, count in enumerate(counts) for _ in range(count)]
    whole = polynomial(fnp.stack(every)) if every else fnp.ones(1, roots.dtype)
    size = max(len(every), whole.size - 1 + k.size if k.size else 0, 1)

    def fitted(c: Array) -> Array:
        room = size - c.size
        return fnp.pad(c, (0, room) if turned else (room, 0))

    out = fnp.zeros(size, whole.dtype)
    if k.size:
        out = fitted(fnp.convolve(k, whole, precision="highest"))
    for share, (j, order) in zip(r, rows, strict=True):
        # All factors but `order` times its own.
        first = sum(counts[:j])
        left = every[:first] + every[first + order :]
        factor = polynomial(fnp.stack(left)) if left else fnp.ones(1, whole.dtype)
        out = out + share * fitted(factor)
    return out, whole


def _runs(
    poles: np.ndarray[Any, Any], tol: float, rtype: str
) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Returns the poles of runs of equal ones, and the lengths of the runs."""
    values, counts, start = [], [], 0
    for i in range(1, len(poles) + 1):
        if i == len(poles) or abs(poles[i] - poles[start]) > tol:
            values.append(_KINDS[rtype](poles[start:i]))
            counts.append(i - start)
            start = i
    return np.asarray(values, poles.dtype), counts


def _inverse(
    name: str,
    r: Coefficients,
    p: Coefficients,
    k: Coefficients,
    tol: float,
    rtype: str,
    end: End,
) -> tuple[Array, Array]:
    _require_kind(name, rtype)
    shares, roots, more = _vectors(name, "rpk", r, p, k)
    if shares.size != roots.size:
        raise ShapeError(
            f"{name}: r and p must be of one length, got {shares.aval} and {roots.aval}"
        )
    host = _host(name, k)
    if host is not None:
        zero = np.trim_zeros(host[0], end)
        drop = host[0].size - zero.size
        more = more[drop:] if end == "f" else more[: more.size - drop]
    poles = _host(name, p)
    counts = [1] * roots.size
    if poles is not None:
        values, counts = _runs(poles[0], tol, rtype)
        if len(counts) < roots.size:
            roots = fnp.asarray(values, roots.dtype)
    return _ratio(shares, roots, more, tuple(counts), end == "b")


@_docs
def invres(
    r: Coefficients,
    p: Coefficients,
    k: Coefficients,
    tol: float = 1e-3,
    rtype: str = "avg",
) -> tuple[Array, Array]:
    """Returns the ratio of polynomials with these partial fractions.

    Returns:
      The numerator and the denominator, the highest power first.

    Example:
      >>> invres([1.0, 2.0], [-1.0, -2.0], [])
      (Array([3., 4.], dtype=float32), Array([1., 3., 2.], dtype=float32))
    """
    return _inverse("invres", r, p, k, tol, rtype, "f")


@_docs
def invresz(
    r: Coefficients,
    p: Coefficients,
    k: Coefficients,
    tol: float = 1e-3,
    rtype: str = "avg",
) -> tuple[Array, Array]:
    """Returns the digital filter with these partial fractions in powers of 1/z.

    Returns:
      The numerator and the denominator, in rising powers of 1/z.

    Example:
      >>> invresz([-1.0, 2.0], [0.25, 0.5], [])[1]
      Array([ 1.   , -0.75 ,  0.125], dtype=float32)
    """
    return _inverse("invresz", r, p, k, tol, rtype, "b")
