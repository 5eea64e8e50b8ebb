"""Factors of symmetric and Hermitian indefinite matrices: A = L D Lᴴ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.vmap import vmap

# Bunch's and Kaufman's bound, for which pivots of both sizes let elements grow as much.
_ALPHA = (1 + 17**0.5) / 8


class _State(NamedTuple):
    rest: Any
    lower: Any
    diagonal: Any
    order: Any
    k: Any


def _other(x: Any, hermitian: bool) -> Any:
    return adjoint(x) if hermitian else matrix_transpose(x)


def _factors(a: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """Returns L, D and the order of rows of one matrix: P A Pᵀ = L D Lᴴ."""
    n, dtype = a.aval.shape[-1], a.aval.dtype
    at = lax.iota(dtypes.int32, n)

    def size(x: Any) -> Any:
        # LAPACK's, which needs no root.
        if dtypes.is_complex(dtype):
            return fnp.abs(fnp.real(x)) + fnp.abs(fnp.imag(x))
        return fnp.abs(x)

    def column(x: Any, k: Any) -> Any:
        return lax.dynamic_index_in_dim(x, k, 1, keepdims=False)

    def exchanged(x: Any, i: Any, j: Any, axes: tuple[int, ...]) -> Any:
        order = fnp.where(at == i, j, fnp.where(at == j, i, at))
        for axis in axes:
            x = fnp.take(x, order, axis=axis)
        return x

    def step(s: _State) -> _State:
        k, rest = s.k, s.rest
        first = size(column(rest, k))
        own, below = first[k], fnp.where(at > k, first, 0)
        largest, i = fnp.max(below), fnp.argmax(below).astype(dtypes.int32)
        row = size(column(rest, i))
        beside = fnp.max(fnp.where((at >= k) & (at != i), row, 0))
        # The conditions of LAPACK's sytf2.
        plain = own >= _ALPHA * largest
        safe = fnp.where(beside > 0, beside, 1)
        plain |= own * safe >= _ALPHA * largest * largest
        swapped = ~plain & (row[i] >= _ALPHA * beside)
        double = ~plain & ~swapped
        place = fnp.where(double, k + 1, k)
        to = fnp.where(plain, k, i)
        rest = exchanged(rest, place, to, (0, 1))
        lower = exchanged(s.lower, place, to, (0,))
        order = exchanged(s.order, place, to, (0,))
        # A block of size 2; a single pivot has 1 and zeros beside it.
        second = fnp.minimum(k + 1, n - 1)
        one, two = column(rest, k), column(rest, second)
        p, q, r = one[k], fnp.where(double, one[second], 0), two[second]
        r = fnp.where(double, r, 1)
        cross = fnp.conj(q) if hermitian else q
        after = at > fnp.where(double, k + 1, k)
        one = fnp.where(after, one, 0)
        two = fnp.where(after & double, two, 0)
        determinant = p * r - q * cross
        inverse = 1 / fnp.where(determinant == 0, 1, determinant)
        left = (one * r - two * q) * inverse
        right = (two * p - one * cross) * inverse
        pair = fnp.stack([left, right], axis=1)
        work = _other(fnp.stack([one, two], axis=1), hermitian)
        rest = rest - matmul(pair, work)
        is_k = at == k
        is_next = (at == k + 1) & double
        lower = fnp.where(is_k, left[:, None], lower)
        lower = fnp.where(is_next, right[:, None], lower)
        diagonal = s.diagonal + fnp.where(is_k[:, None] & is_k, p, 0)
        diagonal = diagonal + fnp.where(is_next[:, None] & is_next, r, 0)
        diagonal = diagonal + fnp.where(is_next[:, None] & is_k, q, 0)
        diagonal = diagonal + fnp.where(is_k[:, None] & is_next, cross, 0)
        return _State(rest, lower, diagonal, order, k + 1 + double.astype(dtypes.int32))

    zero = fnp.zeros((n, n), dtype)
    start = _State(a, zero, zero, at, fnp.int32(0))
    end = lax.while_loop(lambda s: s.k < n, step, start)
    return end.lower + fnp.eye(n, dtype=dtype), end.diagonal, end.order


def _evaluate(hermitian: bool, a: Any) -> tuple[Any, Any, Any]:
    return _factors(a, hermitian)


_decomposed = custom_jvp(_evaluate, nondiff_argnums=(0,))


@_decomposed.defjvp
def _rule(hermitian: bool, primals: Any, tangents: Any) -> Any:
    # L⁻¹ dA L⁻ᴴ = M D + dD + D Mᴴ, whose M = L⁻¹ dL is below the blocks of D.
    (a,), (da,) = primals, tangents
    lower, diagonal, order = _decomposed(hermitian, a)
    moved = fnp.take(fnp.take(da, order, axis=0), order, axis=1)

    def solve(x: Any) -> Any:
        return lax.linalg.triangular_solve(
            lower, x, left_side=True, lower=True, unit_diagonal=True
        )

    inner = _other(solve(_other(solve(moved), hermitian)), hermitian)
    n = a.aval.shape[0]
    block = (lax.stop_gradient(diagonal) != 0) | np.eye(n, dtype=bool)
    below = fnp.where(np.tri(n, k=-1, dtype=bool) & ~block, inner, 0)
    turned = _other(diagonal, hermitian), _other(below, hermitian)
    part = _other(fnp.linalg.solve(*turned), hermitian)
    slopes = matmul(lower, part), fnp.where(block, inner, 0)
    none = np.zeros(order.aval.shape, dtypes.float0)
    return (lower, diagonal, order), (*slopes, none)


@library("lower", "hermitian", "overwrite_a", "check_finite")
def ldl(
    A: ArrayLike,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]:
    """Decomposes symmetric or Hermitian matrices: A = L D Lᴴ, or U D Uᴴ.

    Args:
      A: array-like[..., n, n], of which one triangle is read.
      lower: whether it is the lower one, and the factor L.
      hermitian: whether complex matrices are Hermitian; else they are symmetric, and
        the last factor is Lᵀ.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      L or U, float or complex array[..., n, n], whose rows are in an order that makes
      it triangular; D, block-diagonal with blocks of sizes 1 and 2; and that order,
      i32[..., n].

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      Derivatives are those at fixed pivots; not finite for singular matrices.

    Example:
      >>> l, d, order = ldl(np.array([[2.0, 1.0], [1.0, 3.0]]))
      >>> d
      Array([[2. , 0. ],
             [0. , 2.5]], dtype=float32)

    Source: `scipy.linalg.ldl`; J. Bunch and L. Kaufman 1977; LAPACK sytf2.
    """
    x = matrix_of("ldl", A, square=True)
    n = x.aval.shape[-1]
    if not lower:
        x = x[..., ::-1, ::-1]
    low = fnp.tril(x, -1)
    eye = np.eye(n, dtype=x.aval.dtype)
    middle = convert(fnp.real(x), x.aval.dtype) if hermitian else x
    whole = low + middle * eye + _other(low, hermitian)
    if not x.aval.size:
        return whole, whole, fnp.zeros(x.aval.shape[:-1], dtypes.int32)
    flat = fnp.reshape(whole, (-1, n, n))
    factor, diagonal, order = vmap(lambda a: _decomposed(hermitian, a))(flat)
    back = fnp.argsort(order, axis=-1)
    factor = fnp.take_along_axis(factor, back[..., None], axis=-2)
    factor, diagonal = (fnp.reshape(v, whole.aval.shape) for v in (factor, diagonal))
    order = fnp.reshape(order, whole.aval.shape[:-1])
    if lower:
        return factor, diagonal, order
    turned = factor[..., ::-1, ::-1], diagonal[..., ::-1, ::-1]
    return *turned, (n - 1 - order)[..., ::-1]
