"""Determinants, whose derivatives are minors and so exist for singular matrices too."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_symbolic
from fxflow.errors import ArgumentError
from fxflow.numpy import diagonals
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg._matrices import adjoint, identity_like, matrices
from fxflow.numpy.linalg.decompositions import svd
from fxflow.numpy.linalg.solving import inv
from fxflow.numpy.products import matmul
from fxflow.numpy.reductions import any, max, min, prod, sum
from fxflow.numpy.selection import choose_between
from fxflow.transforms.custom_jvp import custom_jvp


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def _diagonal(x: Any) -> Array:
    return diagonals.diagonal(x, 0, -2, -1)


@library("method")
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Returns sign and logarithm of the absolute value of determinants.

    Args:
      a: array-like[..., n, n].
      method: "lu" (None is the same) or "qr".

    Returns:
      Named tuple of the sign [...] (of complex matrices a number of length 1; 0 of
      singular ones) and the logarithm, real [...].

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: unknown method.

    Special cases:
      A zero on the diagonal of the factors: sign 0 and -inf, whatever the others are.
      Where the determinant is nan, so is the sign.

    Example:
      >>> slogdet(np.array([[1.0, 0.0], [0.0, -1.0]]))
      SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))

    Source: `numpy.linalg.slogdet`.
    """
    (x,) = matrices("slogdet", a, square=True)
    if method in (None, "lu"):
        factors, pivots, _ = lax.linalg.lu(x)
        turns = _parity(pivots, x.aval.dtype)
    elif method == "qr":
        factors, scale = lax.linalg.geqrf(x)
        # The determinant of a reflector I - t v vᴴ is -t / conj(t); of t = 0 it is 1.
        flat = scale == 0
        safe = choose_between(flat, lax.full_like(scale, 1), scale)
        mirrored = -safe
        if dtypes.is_complex(scale.aval.dtype):
            mirrored = -safe / lax.conj(safe)
        else:
            mirrored = lax.full_like(scale, -1)
        turns = prod(choose_between(flat, lax.full_like(scale, 1), mirrored), axis=-1)
    else:
        raise ArgumentError(f'slogdet: method must be "lu" or "qr", got {method!r}')
    along = _diagonal(factors)
    size = lax.abs(along)
    zero = size == 0
    if dtypes.is_complex(along.aval.dtype):
        safe = choose_between(zero, lax.full_like(size, 1), size)
        signs = along / convert(safe, along.aval.dtype)
    else:
        signs = lax.sign(along)
    total = sum(lax.log(size), axis=-1)
    singular = any(zero, axis=-1)
    total = choose_between(singular, lax.full_like(total, -math.inf), total)
    return SlogdetResult(turns * prod(signs, axis=-1), total)


def _parity(pivots: Any, dtype: Any) -> Array:
    """Returns 1 for an even number of row exchanges, -1 for an odd one."""
    shape = pivots.aval.shape
    numbers = lax.broadcasted_iota(pivots.aval.dtype, shape, len(shape) - 1)
    odd = sum(pivots != numbers, axis=-1) % 2
    return convert(1 - 2 * odd, dtype)


@library()
def det(a: ArrayLike) -> Array:
    """Returns determinants.

    Args:
      a: array-like[..., n, n].

    Returns:
      Float or complex array[...].

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      Singular matrices have derivatives too. For n > 3 the third and further ones are
      nan there, if several singular values are equal.

    Example:
      >>> det(np.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)

    Source: `numpy.linalg.det`.
    """
    (x,) = matrices("det", a, square=True)
    n = x.aval.shape[-1]
    return _det(x) if is_symbolic((n,)) or n > 3 else _small_det(x, n)


def _small_det(x: Array, n: int) -> Array:
    if n == 0:
        return lax.full(x.aval.shape[:-2], 1, x.aval.dtype)

    def e(i: int, j: int) -> Array:
        return x[..., i, j]

    if n == 1:
        return e(0, 0)
    if n == 2:
        return e(0, 0) * e(1, 1) - e(0, 1) * e(1, 0)
    return (
        e(0, 0) * (e(1, 1) * e(2, 2) - e(1, 2) * e(2, 1))
        - e(0, 1) * (e(1, 0) * e(2, 2) - e(1, 2) * e(2, 0))
        + e(0, 2) * (e(1, 0) * e(2, 1) - e(1, 1) * e(2, 0))
    )


# -- larger matrices -------------------------------------------------------------------


def _by_lu(x: Any) -> tuple[Array, Array]:
    """Returns determinants and the diagonals of U."""
    factors, pivots, _ = lax.linalg.lu(x)
    along = _diagonal(factors)
    return _parity(pivots, x.aval.dtype) * prod(along, axis=-1), along


@custom_jvp
def _det(x: Any) -> Array:
    return _by_lu(x)[0]


@_det.defjvp
def _det_rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _det(x), sum(_cofactors(x) * dx, axis=(-2, -1))


def _cofactors(x: Any) -> Array:
    """Returns the derivatives of determinants: by the inverses, if all have some.

    Second derivatives are differences of large numbers if a matrix is nearly singular.
    """
    along = lax.abs(_by_lu(lax.stop_gradient(x))[1])
    # Nearer to singular, the inverse has lost half of its digits.
    bound = float(dtypes.finfo(along.aval.dtype).eps) ** 0.5
    far = min(along, axis=-1) > bound * max(along, axis=-1)
    regular = lax.reduce_and(far, tuple(range(far.aval.ndim)))
    found: Array = lax.cond(regular, _cofactors_by_inverse, _cofactors_by_svd, x)
    return found


def _cofactors_by_inverse(x: Any) -> Array:
    out: Array = _det(x)[..., None, None] * matrix_transpose(inv(x))
    return out


@custom_jvp
def _cofactors_by_svd(x: Any) -> Array:
    """Returns cofactors: in the bases of the SVD, products of other singular values."""
    u, s, v = svd(x)
    one = identity_like(s[..., None], s.aval.shape[-1])
    return _rotated(u, _all_but_one(s)[..., None] * one, v)


@_cofactors_by_svd.defjvp
def _cofactors_rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    u, s, v = svd(x)
    inner = matmul(matmul(adjoint(u), dx), adjoint(v))
    one = identity_like(s[..., None], s.aval.shape[-1])
    # In the i-th row the products without the i-th singular value and one more.
    pairs = _all_but_one(s[..., None, :] * (1 - one) + one) * (1 - one)
    along = sum(pairs * _diagonal(inner)[..., None, :], axis=-1)
    moved = along[..., None] * one - pairs * matrix_transpose(inner)
    return _cofactors_by_svd(x), _rotated(u, moved, v)


def _rotated(u: Any, inner: Any, v: Any) -> Array:
    """Returns cofactors from those in the bases of the SVD u s v."""
    turn = (_by_lu(u)[0] * _by_lu(v)[0])[..., None, None]
    left, right = (matrix_transpose(adjoint(m)) for m in (u, v))
    return turn * matmul(matmul(left, inner), right)


def _all_but_one(s: Any) -> Array:
    """Returns for each element of the last axis the product of all the others."""
    axis = s.aval.ndim - 1
    n = s.aval.shape[axis]
    first = lax.full_like(lax.slice_in_dim(s, 0, 1, axis=axis), 1)
    before = lax.concatenate([first, lax.slice_in_dim(s, 0, n - 1, axis=axis)], axis)
    behind = lax.concatenate([lax.slice_in_dim(s, 1, n, axis=axis), first], axis)
    return lax.cumprod(before, axis) * lax.cumprod(behind, axis, reverse=True)
