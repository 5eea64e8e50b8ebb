"""Functions of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy import linalg
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg._matrices import adjoint, identity_like
from fxflow.numpy.products import matmul
from fxflow.numpy.reductions import max, sum
from fxflow.numpy.selection import choose_between
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg._roots import principal_roots, shifted_solve
from fxflow.scipy.linalg.similarity import schur
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.transforms.custom_jvp import custom_jvp

# Numerator coefficients of the diagonal Padé approximant of degree 13 of exp, and the
# norm up to which it is exact in 64 bits (Higham 2005, table 2.3).
_PADE = tuple(
    math.factorial(26 - j)
    * math.factorial(13)
    / (math.factorial(26) * math.factorial(13 - j) * math.factorial(j))
    for j in range(14)
)
_PADE_NORM = 5.371920351148152


@library("upper_triangular", "max_squarings")
def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 32
) -> Array:
    """Returns exponentials of matrices.

    Args:
      A: array-like[..., n, n].
      upper_triangular: whether the matrices are, which is faster.
      max_squarings: how often squaring is tried: 32 is enough for norms up to 2e10 (16,
        as in JAX, for 3e5); of larger matrices the result is nan.

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> expm(np.zeros((2, 2)))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.expm`; N. Higham, The Scaling and Squaring Method for the
    Matrix Exponential Revisited, 2005.
    """
    a = matrix_of("expm", A, square=True)
    n = a.aval.shape[-1]
    if not n:
        return a
    size = lax.stop_gradient(max(sum(lax.abs(a), axis=-2), axis=-1))
    halvings = lax.ceil(lax.log(size / _PADE_NORM) / math.log(2.0))
    halvings = lax.max(halvings, lax.full_like(halvings, 0))
    # A norm of 0 has no logarithm.
    halvings = choose_between(size > 0, halvings, lax.full_like(halvings, 0))
    scale = convert(lax.exp2(-halvings), a.aval.dtype)[..., None, None]
    x = a * scale
    eye = identity_like(a, n)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    c = _PADE
    odd = matmul(x6, c[13] * x6 + c[11] * x4 + c[9] * x2)
    odd = matmul(x, odd + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * eye)
    even = matmul(x6, c[12] * x6 + c[10] * x4 + c[8] * x2)
    even = even + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * eye
    if upper_triangular:
        out = solve_triangular(even - odd, even + odd)
    else:
        out = linalg.solve(even - odd, even + odd)

    def square(i: Any, value: Any) -> Any:
        more = convert(i, halvings.aval.dtype) < halvings

        def squared(value: Any) -> Any:
            return choose_between(more[..., None, None], matmul(value, value), value)

        some = lax.reduce_or(more, tuple(range(more.aval.ndim)))
        return lax.cond(some, squared, lambda value: value, value)

    # Scanned over, and not a loop of unknown length, so that it has a gradient.
    steps = lax.iota(dtypes.int32, max_squarings)
    out, _ = lax.scan(lambda value, i: (square(i, value), None), out, steps)
    lost = (halvings > max_squarings)[..., None, None]
    return choose_between(lost, lax.full_like(out, math.nan), out)


@library("blocksize")
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Returns principal square roots of matrices: X X = A.

    Args:
      A: array-like[..., n, n].
      blocksize: has no effect.

    Returns:
      Complex array[..., n, n]: eigenvalues have no negative real part.

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      inf or nan where there is no root: a singular matrix may have none. There the
      derivative is not finite either.

    Example:
      >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]]))
      Array([[2.+0.j, 0.+0.j],
             [0.+0.j, 3.+0.j]], dtype=complex64)

    Source: `scipy.linalg.sqrtm`; Björck and Hammarling 1983, "A Schur method for the
    square root of a matrix". The derivative solves the Sylvester equation.
    """
    out: Array = _root(matrix_of("sqrtm", A, square=True))
    return out


@custom_jvp
def _root(a: Any) -> Array:
    return principal_roots(a)


@_root.defjvp
def _root_rule(primals: Any, tangents: Any) -> Any:
    # From x x = a follows x dx + dx x = da, whose solver is linear and not
    # differentiated.
    (a,), (da,) = primals, tangents
    x = _root(a)
    fixed = lax.stop_gradient(x)
    dx = lax.custom_linear_solve(
        lambda y: matmul(x, y) + matmul(y, x),
        convert(da, x.aval.dtype),
        solve=lambda _, c: _sylvester(fixed, c),
        transpose_solve=lambda _, c: matrix_transpose(
            _sylvester(fixed, matrix_transpose(c))
        ),
    )
    return x, dx


def _sylvester(x: Any, c: Any) -> Any:
    """Returns y with x y + y x = c, by Schur's form of x (Bartels and Stewart 1972)."""
    r, z = schur(x, output="complex")
    n = r.aval.shape[-1]
    if not n:
        return c
    right = matmul(matmul(adjoint(z), c), z)
    rows = np.arange(n)

    def column(known: Any, j: Any) -> Any:
        # (r + r[j, j]) y[:, j] = c[:, j] - (y r)[:, j], of the columns of y in front.
        above = lax.dynamic_slice_in_dim(r, j, 1, r.aval.ndim - 1)
        root = sum(choose_between((rows == j)[:, None], above, 0 * above), axis=-2)
        above = choose_between((rows < j)[:, None], above, lax.full_like(above, 0))
        side = lax.dynamic_slice_in_dim(right, j, 1, right.aval.ndim - 1)
        value = shifted_solve(r, root, side - matmul(known, above))
        return choose_between(rows == j, value, known), None

    start = lax.full(right.aval.shape, 0, right.aval.dtype)
    y, _ = lax.scan(column, start, lax.iota(dtypes.int32, n))
    return matmul(matmul(z, y), adjoint(z))
