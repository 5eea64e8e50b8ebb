"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.arrays.aval import require_room
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy import linalg
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    beside,
    convert,
    joint_shape,
    promote_dtypes,
    promote_inexact,
)
from fxflow.numpy.arranging import roll
from fxflow.numpy.creation import wrap_host
from fxflow.numpy.diagonals import vander
from fxflow.numpy.outer_products import outer
from fxflow.numpy.products import dot
from fxflow.numpy.reductions import argmax, sum
from fxflow.numpy.selection import where
from fxflow.numpy.shapes import atleast_1d
from fxflow.numpy.sorting import argsort
from fxflow.numpy.statistics import convolve

# Polynomials of more coefficients are evaluated in a loop.
_UNROLLED = 16


def _coefficients(name: str, p: Any) -> Array:
    array = array_of(p, name)
    if array.aval.ndim > 1:
        raise ShapeError(f"{name}: coefficients have one axis, got {array.aval}")
    if dtypes.is_key(array.aval.dtype):
        raise DtypeError(f"{name}: coefficients are numbers, got {array.aval}")
    return atleast_1d(array)


@library()
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Returns the coefficients of the polynomial with given zeros.

    Args:
      seq_of_zeros: array-like[n] of zeros, or [n, n]: the characteristic polynomial of
        a matrix.

    Returns:
      Float or complex array[n + 1]; the first coefficient is 1.

    Raises:
      ShapeError: the array is neither a vector nor a square matrix.

    Special cases:
      Complex zeros give complex coefficients even if they come in conjugate pairs.

    Example:
      >>> poly(np.array([1.0, 2.0]))
      Array([ 1., -3.,  2.], dtype=float32)

    Source: `numpy.poly`.
    """
    (zeros,) = promote_inexact("poly", atleast_1d(array_of(seq_of_zeros, "poly")))
    real = False
    if zeros.aval.ndim == 2 and zeros.aval.shape[0] == zeros.aval.shape[1]:
        real = not dtypes.is_complex(zeros.aval.dtype)
        zeros = linalg.eigvals(zeros)
    if zeros.aval.ndim != 1:
        raise ShapeError(f"poly: takes a vector or a square matrix, got {zeros.aval}")
    n = zeros.aval.shape[0]
    out = lax.full((1,), 1, zeros.aval.dtype)
    for i in range(n):
        zero = lax.slice_in_dim(zeros, i, i + 1)
        edge = lax.full((1,), 0, zeros.aval.dtype)
        # Times (x - zero): shifted by one power, less zero times itself.
        out = lax.concatenate([out, edge], 0) - lax.concatenate([edge, out * zero], 0)
    # Eigenvalues of a real matrix come in conjugate pairs.
    return lax.real(out) if real else out


@library("unroll")
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = _UNROLLED) -> Array:
    """Evaluates a polynomial.

    Args:
      p: array-like[n] of coefficients; or [n, ...]: of several polynomials.
      x: array-like[...]: where.
      unroll: how many steps of the loop are written out.

    Returns:
      Array of the shape of `x`, broadcast with the other axes of `p`.

    Raises:
      ShapeError: the shapes do not broadcast.

    Example:
      >>> polyval(np.array([3, 0, 1]), np.array([5]))
      Array([76], dtype=int32)

    Source: `numpy.polyval`; Horner's scheme.
    """
    factors, value = promote_dtypes("polyval", p, x)
    value = convert(value, value.aval.dtype)
    factors = atleast_1d(factors)
    rest = factors.aval.update(shape=factors.aval.shape[1:])
    if rest.ndim:
        shape = joint_shape("polyval", (rest, value.aval))
        value = repeated(value, shape)
        last = range(1 + len(shape) - rest.ndim, 1 + len(shape))
        factors = lax.broadcast_in_dim(
            factors, (factors.aval.shape[0], *shape), (0, *last)
        )
    n = factors.aval.shape[0]
    out = lax.full_like(value, 0)
    if n <= unroll:
        for i in range(n):
            factor = lax.index_in_dim(factors, i, 0, keepdims=False)
            out = repeated(factor, value.aval.shape) if not i else out * value + factor
        return out

    def step(total: Any, factor: Any) -> Any:
        return total * value + factor, None

    total: Array = lax.scan(step, out, factors, unroll=unroll)[0]
    return total


def _aligned(name: str, a1: Any, a2: Any) -> list[Array]:
    x, y = (_coefficients(name, a) for a in promote_dtypes(name, a1, a2))
    n = x.aval.shape[0] if x.aval.shape > y.aval.shape else y.aval.shape[0]
    return [
        lax.pad(a, lax.full_like(a, 0, shape=()), [(n - a.aval.shape[0], 0, 0)])
        for a in (x, y)
    ]


@library()
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Adds polynomials.

    Args:
      a1: array-like[n] of coefficients.
      a2: array-like[m] of coefficients.

    Returns:
      Array[max(n, m)].

    Raises:
      ShapeError: an argument has more than one axis.

    Example:
      >>> polyadd(np.array([1, 2]), np.array([1, 0, 0]))
      Array([1, 1, 2], dtype=int32)

    Source: `numpy.polyadd`.
    """
    x, y = _aligned("polyadd", a1, a2)
    return x + y


@library()
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtracts polynomials.

    Args:
      a1: array-like[n] of coefficients.
      a2: array-like[m] of coefficients.

    Returns:
      Array[max(n, m)].

    Raises:
      ShapeError: an argument has more than one axis.

    Example:
      >>> polysub(np.array([1, 2]), np.array([1, 0, 0]))
      Array([-1,  1,  2], dtype=int32)

    Source: `numpy.polysub`.
    """
    x, y = _aligned("polysub", a1, a2)
    return x - y


def _trimmed(p: Any) -> Any:
    """Returns coefficients without zeros in front; the data must be concrete."""
    nonzero = np.flatnonzero(np.asarray(p))
    return p[int(nonzero[0]) :] if nonzero.size else p[-1:]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiplies polynomials.

    Args:
      a1: array-like[n] of coefficients.
      a2: array-like[m] of coefficients.
      trim_leading_zeros: whether to leave out zeros in front first; not under `jit`.

    Returns:
      Array[n + m - 1].

    Raises:
      ShapeError: an argument has more than one axis.
      ConcretizationError: zeros are to be left out of a traced array.

    Example:
      >>> polymul(np.array([1, 1]), np.array([1, -1]))
      Array([ 1,  0, -1], dtype=int32)

    Source: `numpy.polymul`.
    """
    x, y = (_coefficients("polymul", a) for a in promote_dtypes("polymul", a1, a2))
    if trim_leading_zeros:
        x, y = _trimmed(x), _trimmed(y)
    # As in NumPy, no coefficients are those of zero.
    x, y = (a if a.aval.size else lax.full((1,), 0, a.aval.dtype) for a in (x, y))
    return convolve(x, y)


@library("m")
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Returns the derivative of a polynomial.

    Args:
      p: array-like[n] of coefficients.
      m: how many times.

    Returns:
      Array[n - m].

    Raises:
      ShapeError: `p` has more than one axis.
      ArgumentError: `m` is negative.

    Example:
      >>> polyder(np.array([1.0, 0.0, 5.0]))
      Array([2., 0.], dtype=float32)

    Source: `numpy.polyder`.
    """
    if m < 0:
        raise ArgumentError(f"polyder: m must not be negative, got {m}")
    array = _coefficients("polyder", p)
    for _ in range(m):
        n = array.aval.shape[0]
        if n <= 1:
            return lax.slice_in_dim(array, 0, 0)
        powers = np.arange(n - 1, 0, -1).astype(array.aval.dtype)
        array = lax.slice_in_dim(array, 0, n - 1) * powers
    return array


@library("m")
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Returns the antiderivative of a polynomial.

    Args:
      p: array-like[n] of coefficients.
      m: how many times.
      k: array-like[m] of constants, or one for all; None is zeros.

    Returns:
      Float or complex array[n + m].

    Raises:
      ShapeError: `p` has more than one axis, or there are not `m` constants.
      ArgumentError: `m` is negative.

    Example:
      >>> polyint(np.array([2.0, 0.0]), k=np.array([5.0]))
      Array([1., 0., 5.], dtype=float32)

    Source: `numpy.polyint`.
    """
    if m < 0:
        raise ArgumentError(f"polyint: m must not be negative, got {m}")
    array, constants = promote_inexact("polyint", p, 0 if k is None else k)
    array, constants = _coefficients("polyint", array), atleast_1d(constants)
    require_room((array.aval.size + m,), array.aval.dtype)
    if constants.aval.shape == (1,):
        constants = repeated(constants, (m,))
    if constants.aval.shape != (m,):
        raise ShapeError(f"polyint: {m} constants are needed, got {constants.aval}")
    for i in range(m):
        n = array.aval.shape[0]
        powers = np.arange(n, 0, -1).astype(array.aval.dtype)
        last = lax.slice_in_dim(constants, i, i + 1)
        array = lax.concatenate([array / powers, last], 0)
    return array


def polydiv(
    u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False
) -> tuple[Array, Array]:
    """Divides polynomials with remainder.

    Args:
      u: array-like[n] of coefficients.
      v: array-like[m] of coefficients; the first one must not be 0.
      trim_leading_zeros: whether to leave out zeros in front of the remainder; not
        under `jit`.

    Returns:
      Quotient, float or complex [max(n - m + 1, 1)], and remainder, [n].

    Raises:
      ShapeError: an argument has more than one axis.
      ConcretizationError: zeros are to be left out of a traced array.

    Example:
      >>> polydiv(np.array([3.0, 5.0, 2.0]), np.array([2.0, 1.0]))[0]
      Array([1.5 , 1.75], dtype=float32)

    Source: `numpy.polydiv`.
    """
    quotient, rest = _polydiv(u, v)
    return quotient, _trimmed(rest) if trim_leading_zeros else rest


@library()
def _polydiv(u: Any, v: Any) -> Any:
    x, y = (_coefficients("polydiv", a) for a in promote_inexact("polydiv", u, v))
    n, m = x.aval.shape[0], y.aval.shape[0]
    if n < m:
        return lax.full((1,), 0, x.aval.dtype), x
    out = []
    for i in range(n - m + 1):
        factor = lax.slice_in_dim(x, i, i + 1) / lax.slice_in_dim(y, 0, 1)
        out.append(factor)
        zero = lax.full((), 0, x.aval.dtype)
        x = x - lax.pad(y * factor, zero, [(i, n - m - i, 0)])
    return lax.concatenate(out, 0), x


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Returns the zeros of a polynomial.

    Args:
      p: array-like[n + 1] of coefficients.
      strip_zeros: whether leading zeros are removed first, for which the data must be
        concrete. Otherwise the result ends with a nan for each of them, as in JAX.

    Returns:
      Complex array[n].

    Raises:
      ShapeError: `p` has more than one axis.
      ConcretizationError: `p` is traced, and `strip_zeros` is true.

    Example:
      >>> roots(np.array([1.0, -3.0, 2.0]))
      Array([2.+0.j, 1.+0.j], dtype=complex64)
      >>> roots(np.array([0.0, 2.0, -6.0]), strip_zeros=False)
      Array([ 3. +0.j, nan+nanj], dtype=complex64)

    Source: `numpy.roots`: eigenvalues of the companion matrix.
    """
    (array,) = promote_inexact("roots", p)
    array = _coefficients("roots", array)
    if not strip_zeros:
        return _padded_roots(array)
    data = np.asarray(array)
    nonzero = np.flatnonzero(data)
    if not nonzero.size:
        return wrap_host(np.zeros(0, dtypes.to_complex(array.aval.dtype)))
    first, last = int(nonzero[0]), int(nonzero[-1]) + 1
    return _roots(array[first:last], data.size - last)


@library("zeros")
def _roots(p: Any, zeros: int) -> Array:
    dtype = dtypes.to_complex(p.aval.dtype)
    out = lax.full((0,), 0, dtype)
    if p.aval.shape[0] > 1:
        out = linalg.eigvals(_companion(p))
    return lax.concatenate([out, lax.full((zeros,), 0, dtype)], 0)


@library()
def _padded_roots(p: Any) -> Array:
    """Returns the roots, then a nan for each leading zero of the coefficients."""
    n = p.aval.shape[0]
    if n < 2:
        return lax.full((0,), 0, dtypes.to_complex(p.aval.dtype))
    places = lax.iota(dtypes.int32, n)
    leading = argmax(p != 0)
    p = roll(p, -leading)
    # All roots of 0 are undefined.
    count = where(p[0] == 0, 0, n - 1 - leading)
    p = where((p[0] == 0) & (places == 0), 1, p)
    # A block of zeros behind its companion matrix has the eigenvalue 0 exactly.
    used = places[:-1] < count
    out = linalg.eigvals(where(used[:, None], _companion(p), 0))
    out = out[argsort(out == 0)]
    return where(used, out, complex(math.nan, math.nan))


def _companion(p: Any) -> Any:
    """Returns the matrix whose eigenvalues are the roots."""
    n = p.aval.shape[0]
    top = -lax.slice_in_dim(p, 1, n) / lax.slice_in_dim(p, 0, 1)
    below = np.eye(n - 2, n - 1).astype(p.aval.dtype)
    return lax.concatenate([lax.expand_dims(top, (0,)), wrap_host(below)], 0)


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fits a polynomial to data by least squares.

    Args:
      x: array-like[n]: where.
      y: array-like[n] or [n, k]: values.
      deg: degree.
      rcond: singular values smaller than this times the largest are left out; None is n
        times the precision of the dtype.
      full: whether to return more of the fit.
      w: array-like[n] of weights of the residuals.
      cov: whether to return the covariance of the coefficients; "unscaled" takes the
        weights as the inverse of true errors.

    Returns:
      Coefficients, float or complex [deg + 1] or [deg + 1, k]; with `full` also the
      residuals, the rank, the singular values and `rcond`; with `cov` also the
      covariance.

    Raises:
      ArgumentError: the degree is negative, or there is too little data for `cov`.
      ShapeError: the shapes are incompatible.

    Example:
      >>> polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1).round(3)
      Array([2., 1.], dtype=float32)

    Source: `numpy.polyfit`.
    """
    if deg < 0:
        raise ArgumentError(f"polyfit: the degree must not be negative, got {deg}")
    points, value = promote_inexact("polyfit", x, y)
    if (
        points.aval.ndim != 1
        or value.aval.ndim not in (1, 2)
        or not points.aval.size
        or value.aval.shape[0] != points.aval.shape[0]
    ):
        raise ShapeError(
            "polyfit: x must have one axis, not empty, and y be as long, got "
            f"{points.aval} and {value.aval}"
        )
    n, order = points.aval.shape[0], deg + 1
    if rcond is None:
        rcond = n * float(dtypes.finfo(points.aval.dtype).eps)
    if cov and cov != "unscaled" and not full and n <= order:
        raise ArgumentError(
            f"polyfit: more data than coefficients is needed to scale the covariance, "
            f"got {n} and {order}"
        )
    found, residuals, rank, singular, basis = _polyfit(points, value, w, order, rcond)
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    return found, _fit_covariance(basis, residuals, value, n - order, cov)


@library("order", "rcond")
def _polyfit(x: Any, y: Any, w: Any, order: int, rcond: float) -> Any:
    rows, right = vander(x, order), y
    if w is not None:
        scale = convert(beside("polyfit", w, right), right.aval.dtype)
        if scale.aval.shape != x.aval.shape:
            raise ShapeError(
                f"polyfit: weights {scale.aval} must be as long as x, {x.aval}"
            )
        rows = rows * scale[:, None]
        right = right * (scale if right.aval.ndim == 1 else scale[:, None])
    # Columns of one length make the problem better conditioned.
    length = lax.sqrt(sum(lax.square(lax.abs(rows)), axis=0))
    length = convert(length, rows.aval.dtype)
    scaled = rows / length
    found, residuals, rank, singular = linalg.lstsq(scaled, right, rcond)
    found = (found.T / length).T
    inverse = linalg.inv(dot(scaled.T, scaled)) / outer(length, length)
    return found, residuals, rank, singular, inverse


def _fit_covariance(basis: Any, residuals: Any, y: Any, free: int, cov: Any) -> Any:
    factor: Any = 1
    if cov != "unscaled":
        factor = residuals / free
        if y.aval.ndim == 1:
            factor = sum(factor)
    if y.aval.ndim == 1:
        return basis * factor
    return basis[:, :, None] * factor
