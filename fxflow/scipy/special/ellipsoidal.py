"""Ellipsoidal harmonics: Lamé functions of both kinds, and their norms.

A Lamé function is √-factors times a polynomial in s², whose coefficients about h² are
an eigenvector of a small symmetric matrix (E. Hobson, The theory of spherical and
ellipsoidal harmonics, 1931; DLMF 29.12). The integrals of the second kind and of the
norm are taken in the coordinates of Jacobi's elliptic functions, where the integrands
are periodic or smooth.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert, joint_shape, promote_inexact
from fxflow.scipy.special.elliptic import ellipk, ellipkinc, ellipkm1
from fxflow.scipy.special.elliptic_functions import ellipj

_MOST = 100
_NODES = 64


class _Kind(NamedTuple):
    """What kind of function one is, by static numbers.

    Attributes:
      powers: those of s, of the root of s² - h² and of the root of s² - k².
      degree: of the polynomial.
      place: which of its eigenvalues is meant.
    """

    powers: tuple[int, int, int]
    degree: int
    place: int


@functools.cache
def _kind(n: int, p: int) -> _Kind:
    odd, index = n % 2, p - 1
    for powers in ((odd, 0, 0), (1 - odd, 1, 0), (1 - odd, 0, 1), (odd, 1, 1)):
        degree = (n - sum(powers)) // 2
        if index <= degree:
            break
        index -= degree + 1
    # Matrices have the negative characteristic values.
    return _Kind(powers, degree, degree - index)


@functools.cache
def _tables(kind: _Kind) -> Any:
    """Returns the matrix over h², k² - h² and the root of both, and the scales."""
    (a, b, c), n = kind.powers, kind.degree
    total = a + b + c + 1.5
    j = np.arange(n + 1.0)
    last = -n * (n - 1 + total)
    by_h = j * (j - 1) + (b + 0.5 + c + 0.5) * j + last
    by_gap = -j * (j - 1) - (a + 0.5 + b + 0.5) * j
    j = j[:-1]
    up, down = (j + 1) * (j + b + 0.5), (n - j) * (j + n - 1 + total)
    side = -np.sqrt(up * down)
    scales = np.concatenate([[1.0], np.cumprod(np.sqrt(down / up))])
    return np.diag(by_h), np.diag(by_gap), np.diag(side, 1) + np.diag(side, -1), scales


class _Lame(NamedTuple):
    """A Lamé function of an element.

    Attributes:
      kind: which.
      h2: its h².
      k2: its k².
      numbers: the coefficients of powers of (s² - h²) / unit.
      unit: √(h² (k² - h²)).
    """

    kind: _Kind
    h2: Any
    k2: Any
    numbers: Any
    unit: Any

    def polynomial(self, shift: Any) -> Any:
        """Returns the polynomial at s² - h²."""
        z, total = shift / self.unit, 0 * shift
        for j in range(self.kind.degree, -1, -1):
            total = total * z + self.numbers[j]
        return total

    def square(self, square: Any, from_h: Any, from_k: Any) -> Any:
        """Returns the function's square at s², of s² - h² and |s² - k²|, too."""
        out = lax.square(self.polynomial(from_h))
        parts = (square, lax.abs(from_h), from_k)
        for power, part in zip(self.kind.powers, parts, strict=True):
            out = out * part if power else out
        return out


def _lame(n: int, p: int, h2: Any, k2: Any) -> _Lame:
    kind = _kind(n, p)
    by_h, by_gap, by_unit, scales = _tables(kind)
    gap = k2 - h2
    unit = lax.sqrt(h2 * gap)
    wide = [x[..., None, None] for x in (h2, gap, unit)]
    shape = (*h2.aval.shape, *by_h.shape)
    matrix = sum(
        fnp.broadcast_to(x, shape)
        * fnp.broadcast_to(fnp.asarray(table, dtypes.float64), shape)
        for x, table in zip(wide, (by_h, by_gap, by_unit), strict=True)
    )
    vectors = fnp.linalg.eigh(matrix)[1][..., kind.place]
    # The highest power of s has the coefficient 1.
    top = scales[-1] * vectors[..., -1]
    size = lax.exp(kind.degree * lax.log(unit)) / top
    numbers = [float(c) * vectors[..., j] * size for j, c in enumerate(scales)]
    return _Lame(kind, h2, k2, numbers, unit)


def _broadcast(lame: _Lame, shape: tuple[int, ...]) -> _Lame:
    numbers = [fnp.broadcast_to(x, shape) for x in lame.numbers]
    h2, k2, unit = (fnp.broadcast_to(x, shape) for x in (lame.h2, lame.k2, lame.unit))
    return _Lame(lame.kind, h2, k2, numbers, unit)


# -- arguments -------------------------------------------------------------------------


def _degrees(name: str, n: Any, p: Any) -> tuple[int, int]:
    degree, number = integer(name, "n", n), integer(name, "p", p)
    if not 0 <= degree <= _MOST:
        raise ArgumentError(f"{name}: n must be from 0 to {_MOST}, got {n!r}")
    if not 1 <= number <= 2 * degree + 1:
        raise ArgumentError(
            f"{name}: p must be from 1 to 2 n + 1 = {2 * degree + 1}, got {p!r}"
        )
    return int(degree), int(number)


def _sign(name: str, what: str, sign: Any) -> int:
    if integer(name, what, sign) not in (1, -1):
        raise ArgumentError(f"{name}: {what} must be 1 or -1, got {sign!r}")
    return int(sign)


def _wide(name: str, *args: Any) -> tuple[list[Any], Any, tuple[int, ...]]:
    """Returns arguments of 64 bits, their own dtype, and their common shape."""
    given = promote_inexact(name, *args)
    dtype = given[0].aval.dtype
    if dtypes.is_complex(dtype):
        raise DtypeError(f"{name}: takes real numbers, got {given[0].aval}")
    shape = joint_shape(name, [a.aval for a in given])
    return [convert(a, dtypes.float64) for a in given], dtype, shape


def _axes(h2: Any, k2: Any) -> tuple[Any, Any, Any]:
    """Returns where 0 < h² < k² < inf, and numbers that are harmless elsewhere."""
    shape = fnp.broadcast_shapes(h2.aval.shape, k2.aval.shape)
    h2, k2 = fnp.broadcast_to(h2, shape), fnp.broadcast_to(k2, shape)
    known = (h2 > 0) & (h2 < k2) & (k2 < math.inf)
    return known, fnp.where(known, h2, 1), fnp.where(known, k2, 2)


_docs = shared("""
    Args:
      h2: positive real array-like: h².
      k2: real array-like, above `h2`: k².
      n: Python integer from 0 to 100: the degree.
      p: Python integer from 1 to 2 n + 1: the number of the function, K, L, M and N in
        this order, of rising characteristic values each.
      s: real array-like: the coordinate.
      signm: 1 or -1: the sign of the root of abs(s² - h²).
      signn: 1 or -1: the sign of the root of abs(s² - k²).

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: `n`, `p` or a sign is not one of these integers.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`, with derivatives with respect to all real arguments,
    of static `n` and `p`; DLMF 29.
""")


def _values(lame: _Lame, s: Any, signs: tuple[int, int]) -> Any:
    from_h = lax.square(s) - lame.h2
    from_k = lax.square(s) - lame.k2
    out = lame.polynomial(from_h)
    a, b, c = lame.kind.powers
    if a:
        out = out * s
    if b:
        out = signs[0] * out * lax.sqrt(lax.abs(from_h))
    return signs[1] * out * lax.sqrt(lax.abs(from_k)) if c else out


@library("n", "p", "signm", "signn", quick=True)
@_docs
def ellip_harm(
    h2: ArrayLike,
    k2: ArrayLike,
    n: int,
    p: int,
    s: ArrayLike,
    signm: int = 1,
    signn: int = 1,
) -> Array:
    """Ellipsoidal harmonic of the first kind: a Lamé function.

    To 14 digits for `n` up to 6, 12 at 12 and 10 at 20.

    Special cases:
      nan unless 0 < `h2` < `k2`.

    Example:
      >>> ellip_harm(5.0, 8.0, 2, 1, 2.5).round(4)
      Array(-0.4167, dtype=float32)
    """
    name = "ellip_harm"
    n, p = _degrees(name, n, p)
    signs = _sign(name, "signm", signm), _sign(name, "signn", signn)
    wide, dtype, shape = _wide(name, h2, k2, s)
    known, h, k = _axes(*wide[:2])
    lame = _broadcast(_lame(n, p, h, k), shape)
    out = _values(lame, fnp.broadcast_to(wide[2], shape), signs)
    return convert(fnp.where(fnp.broadcast_to(known, shape), out, math.nan), dtype)


@library("n", "p", quick=True)
@_docs
def ellip_harm_2(h2: ArrayLike, k2: ArrayLike, n: int, p: int, s: ArrayLike) -> Array:
    """Ellipsoidal harmonic of the second kind, beyond the largest focal distance.

    To 13 digits for `n` up to 6, and no more than `ellip_harm` has.

    Special cases:
      nan unless 0 < `h2` < `k2`, and unless `s` is above the root of `k2`.

    Example:
      >>> (1000 * ellip_harm_2(5.0, 8.0, 2, 1, 10.0)).round(4)
      Array(1.0806, dtype=float32)
    """
    name = "ellip_harm_2"
    n, p = _degrees(name, n, p)
    wide, dtype, shape = _wide(name, h2, k2, s)
    known, h, k = _axes(*wide[:2])
    lame = _broadcast(_lame(n, p, h, k), shape)
    a, b, at = lame.h2, lame.k2, fnp.broadcast_to(wide[2], shape)
    known = fnp.broadcast_to(known, shape) & (at > lax.sqrt(b)) & (at < math.inf)
    at = fnp.where(known, at, 2 * lax.sqrt(b))
    # In 1 / t = sn(K - z) / k, from z at s to K; log z, since it may have a pole at 0.
    m, rest = a / b, (b - a) / b
    sine = lax.sqrt((lax.square(at) - b) / (lax.square(at) - a))
    low, high = lax.log(ellipkinc(lax.asin(sine), m)), lax.log(ellipkm1(rest))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES + n)
    total = 0 * at
    rows = fnp.asarray(np.stack([(nodes + 1) / 2, weights / 2]).T, dtypes.float64)

    def step(total: Any, row: Any) -> Any:
        z = lax.exp(low + (high - low) * row[0])
        sn, cn, dn, _ = ellipj(z, m)
        over = b / lax.square(cn)
        t2, from_h = over * lax.square(dn), over * rest
        square = lame.square(t2, from_h, from_h * lax.square(sn))
        return total + row[1] * z / square, ()

    total = lax.scan(step, total, rows)[0] * (high - low) / lax.sqrt(b)
    out = (2 * n + 1) * _values(lame, at, (1, 1)) * total
    return convert(fnp.where(known, out, math.nan), dtype)


@library("n", "p", quick=True)
@_docs
def ellip_normal(h2: ArrayLike, k2: ArrayLike, n: int, p: int) -> Array:
    """Norm of an ellipsoidal harmonic: the integral of its square over an ellipsoid.

    To 14 digits for `n` up to 6, and no more than `ellip_harm` has.

    Special cases:
      nan unless 0 < `h2` < `k2`.

    Example:
      >>> ellip_normal(5.0, 8.0, 3, 7).round(1)
      Array(1723.4, dtype=float32)
    """
    name = "ellip_normal"
    n, p = _degrees(name, n, p)
    wide, dtype, _ = _wide(name, h2, k2)
    known, a, b = _axes(*wide)
    lame = _lame(n, p, a, b)
    m, rest = a / b, (b - a) / b
    count = 40 + 2 * n
    near, far = ellipk(m) / count, ellipk(rest) / count

    def step(k: Any, totals: Any) -> Any:
        # The trapezoidal rule: the integrands are periodic.
        at = convert(k, dtypes.float64)
        half = fnp.where((k == 0) | (k == count), 0.5, 1.0)
        sn, cn, dn, _ = ellipj(at * near, m)
        shift = a * lax.square(cn)
        inner = half * lame.square(a * lax.square(sn), -shift, b * lax.square(dn))
        sn, cn, dn, _ = ellipj(at * far, rest)
        beyond = (b - a) * lax.square(cn)
        outside = (b - a) * lax.square(sn)
        outer = half * lame.square(b * lax.square(dn), beyond, outside)
        added = (inner, shift * inner, outer, beyond * outer)
        return tuple(t + x for t, x in zip(totals, added, strict=True))

    sums = lax.fori_loop(0, count + 1, step, (0 * a,) * 4)
    out = 8 * near * far / b * (sums[0] * sums[3] + sums[1] * sums[2])
    return convert(fnp.where(known, out, math.nan), dtype)
