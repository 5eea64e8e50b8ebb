"""Square roots of many small matrices at a time.

LAPACK makes Schur's forms one after the other. Newton's iteration is arithmetic on all
matrices at once: they are the last axis here. Its results are checked; if one of them
is not a root, Schur's forms give all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.numpy.linalg._matrices import adjoint, identity_like
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg.similarity import schur
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.transforms.custom_vmap import custom_vmap

#: The least number of matrices that are worth it, and their largest size.
_MANY, _SMALL = 16, 16
#: Steps after which there is no hope: with scaling, condition numbers of 1e8 need ten.
_STEPS = 14


@custom_vmap
def principal_roots(a: Any) -> Array:
    """Returns complex principal square roots of matrices [..., n, n]."""
    shape = a.aval.shape
    n, size = shape[-1], math.prod(shape[:-2])
    if not n or size < _MANY or n > _SMALL:
        return _by_schur(a)
    last = fnp.moveaxis(fnp.reshape(a, (size, n, n)), 0, -1)
    root, good = _by_newton(last)
    complex_type = dtypes.to_complex(a.dtype)

    def found() -> Array:
        out: Array = fnp.reshape(fnp.moveaxis(root, -1, 0), shape).astype(complex_type)
        return out

    out: Array = lax.cond(fnp.all(good), found, lambda: _by_schur(a))
    return out


@principal_roots.def_vmap
def _(size: int, mapped: Any, a: Any) -> Any:
    return principal_roots(a), True


def _by_schur(a: Any) -> Array:
    t, z = schur(a, output="complex")
    if not t.aval.shape[-1]:
        return t
    return matmul(matmul(z, root_of_triangular(t)), adjoint(z))


def _by_newton(a: Array) -> tuple[Array, Array]:
    """Returns roots of matrices [n, n, m], and bool[m]: whether they are.

    It is the product form of Denman and Beavers' iteration, scaled by determinants
    (S. Cheng, N. Higham, C. Kenney and A. Laub 2001).
    """
    n = a.aval.shape[0]
    eye: Any = np.eye(n, dtype=a.dtype)[:, :, None]
    eps = float(fnp.finfo(a.dtype).eps)

    def going(carry: Any) -> Any:
        _, _, far, steps = carry
        return (steps < _STEPS) & fnp.any(far > math.sqrt(eps) / 2)

    def step(carry: Any) -> Any:
        m, x, far, steps = carry
        inverse, size = _inverse(m)
        scale = fnp.where(far > 0.01, size ** (-1 / n), 1)
        m_next = 0.5 * eye + 0.25 * (scale * m + inverse / scale)
        x = 0.5 * fnp.sqrt(scale) * _product(x, eye + inverse / scale)
        far = fnp.max(fnp.abs(m_next - eye), (0, 1))
        return m_next, x, far, steps + 1

    far = fnp.full(a.aval.shape[-1], fnp.inf, fnp.abs(a).dtype)
    m, x, _, _ = lax.while_loop(going, step, (a, a, far, fnp.int32(0)))
    # x² is a m, and m is near 1: the last step needs no inverse.
    x = _product(x, 1.5 * eye - 0.5 * m)
    # As near as rounding lets Schur's form come.
    rest = _squares(_product(x, x) - a)
    return x, fnp.sqrt(rest) <= 10 * n * eps * _squares(x)


def _squares(x: Array) -> Array:
    """Returns the sums of the squares of the elements of matrices."""
    return fnp.sum(fnp.square(fnp.real(x)) + fnp.square(fnp.imag(x)), (0, 1))


def _product(x: Array, y: Array) -> Array:
    return fnp.sum(x[:, :, None] * y[None], 1)


def _inverse(a: Array) -> tuple[Array, Array]:
    """Returns inverses of matrices [n, n, m], and the sizes of their determinants.

    It is Gauss and Jordan's elimination with partial pivoting.
    """
    n = a.aval.shape[0]
    rows = np.arange(n)[:, None]
    eye = fnp.broadcast_to(np.eye(n, dtype=a.dtype)[:, :, None], a.aval.shape)

    def step(k: Any, carry: Any) -> Any:
        both, det = carry
        column = lax.dynamic_index_in_dim(both, k, 1, keepdims=False)
        size = fnp.where(rows >= k, fnp.abs(column), -1)
        pivot = fnp.argmax(size, 0)
        chosen = rows == pivot
        top = fnp.sum(fnp.where(chosen[:, None], both, 0), 0)
        old = lax.dynamic_index_in_dim(both, k, 0, keepdims=False)
        head = lax.dynamic_index_in_dim(top, k, 0, keepdims=False)
        first = lax.dynamic_index_in_dim(old, k, 0, keepdims=False)
        top = top / head
        # Row k is written last; the row of the pivot is then what row k was.
        factors = fnp.where(chosen, first, column)
        both = fnp.where(chosen[:, None], old, both) - factors[:, None] * top
        both = fnp.where((rows == k)[:, None], top, both)
        return both, det * fnp.abs(head)

    one = fnp.ones(a.aval.shape[-1], fnp.abs(a).dtype)
    both, det = lax.fori_loop(0, n, step, (fnp.concatenate([a, eye], 1), one))
    return both[:, n:], det


# -- triangular matrices ---------------------------------------------------------------


def root_of_triangular(t: Any) -> Array:
    """Returns the square root of complex upper triangular matrices [..., n, n]."""
    shape, n = t.aval.shape, t.aval.shape[-1]
    eye = identity_like(t, n)
    roots = lax.sqrt(fnp.sum(t * eye, axis=-1))
    rows = np.arange(n)

    def column(known: Any, j: Any) -> Any:
        # Above the diagonal, column j of the root r solves (R + r[j, j]) r = t[:, j]
        # with the columns R in front of it.
        root = lax.dynamic_slice_in_dim(roots, j, 1, roots.aval.ndim - 1)
        side = lax.dynamic_slice_in_dim(t, j, 1, t.aval.ndim - 1)
        side = fnp.where((rows < j)[:, None], side, lax.full_like(side, 0))
        value = shifted_solve(fnp.where(rows < j, known, eye), root, side)
        value = fnp.where((rows == j)[:, None], root[..., None], value)
        return fnp.where(rows == j, value, known), None

    start = lax.full(shape, 0, t.aval.dtype)
    root, _ = lax.scan(column, start, lax.iota(dtypes.int32, n))
    return root


def shifted_solve(upper: Any, root: Any, side: Any) -> Array:
    """Solves (upper + root) y = side; inf where there is no solution.

    Args:
      upper: triangular matrices [..., n, n].
      root: [..., 1].
      side: [..., n, 1].
    """
    eye = identity_like(upper, upper.aval.shape[-1])
    shifted = upper + root[..., None] * eye
    lost = (fnp.sum(shifted * eye, axis=-1) == 0)[..., None]
    shifted = shifted + fnp.where(lost, eye, lax.full_like(shifted, 0))
    value = solve_triangular(shifted, side)
    bad = lax.bitwise_and(repeated(lost, value.aval.shape), value != 0)
    return fnp.where(bad, lax.full_like(value, math.inf), value)
