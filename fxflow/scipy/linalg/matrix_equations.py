"""The Sylvester equation, polar factors, functions by Schur's form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg import eigh, eigvalsh
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.polar_factors import unitary_factor
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg.decompositions import qr
from fxflow.scipy.linalg.functions import expm
from fxflow.scipy.linalg.similarity import schur
from fxflow.scipy.linalg.spectral_functions import hermitian_function, hermitian_part
from fxflow.transforms.jvp import jvp

#: Unknowns up to which elimination of all of them is faster than Schur's forms.
_FEW = 36


@library("method", "tol")
def solve_sylvester(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """Solves A X + X B = C.

    Args:
      A: array-like[..., m, m].
      B: array-like[..., n, n].
      C: array-like[..., m, n].
      method: "schur" or "eigen": both give the same, by Schur's forms; of at most 36
        unknowns by elimination.
      tol: has no effect.

    Returns:
      Float or complex array[..., m, n].

    Raises:
      ArgumentError: unknown method.
      ShapeError: the shapes are incompatible.

    Special cases:
      inf or nan where an eigenvalue of A and one of -B are equal.

    Example:
      >>> solve_sylvester(np.eye(1), np.eye(1), np.array([[4.0]]))
      Array([[2.]], dtype=float32)

    Source: `scipy.linalg.solve_sylvester`; Bartels and Stewart 1972. The derivative
    solves the same equation.
    """
    if method not in ("schur", "eigen"):
        raise ArgumentError(
            f'solve_sylvester: method must be "schur" or "eigen", got {method!r}'
        )
    given = promote_inexact("solve_sylvester", A, B, C)
    a, b, c = (
        matrix_of("solve_sylvester", x, square=i < 2) for i, x in enumerate(given)
    )
    m, n = a.aval.shape[-1], b.aval.shape[-1]
    if c.aval.shape[-2:] != (m, n):
        raise ShapeError(
            f"solve_sylvester: C must be [..., {m}, {n}], got {c.aval} for {a.aval} "
            f"and {b.aval}"
        )
    lead = fnp.broadcast_shapes(*(x.aval.shape[:-2] for x in (a, b, c)))
    a, b, c = (fnp.broadcast_to(x, (*lead, *x.aval.shape[-2:])) for x in (a, b, c))
    if not c.aval.size:
        return c
    fixed_a, fixed_b = lax.stop_gradient(a), lax.stop_gradient(b)
    # The transposed equation is Aᵀ X + X Bᵀ = C.
    out: Array = lax.custom_linear_solve(
        lambda x: matmul(a, x) + matmul(x, b),
        c,
        solve=lambda _, c: _solved(fixed_a, fixed_b, c),
        transpose_solve=lambda _, c: _solved(
            matrix_transpose(fixed_a), matrix_transpose(fixed_b), c
        ),
    )
    return out


def _eliminated(a: Any, b: Any, c: Any) -> Any:
    """Solves one system for all unknowns."""
    m, n = a.aval.shape[-1], b.aval.shape[-1]
    lead = c.aval.shape[:-2]
    # A acts on the rows of X, B on its columns.
    rows = a[..., :, None, :, None] * np.eye(n, dtype=a.dtype)[:, None]
    columns = (
        np.eye(m, dtype=b.dtype)[:, None, :, None]
        * fnp.swapaxes(b, -1, -2)[..., None, :, None, :]
    )
    system = fnp.reshape(rows + columns, (*lead, m * n, m * n))
    found = fnp.linalg.solve(system, fnp.reshape(c, (*lead, m * n, 1)))
    return fnp.reshape(found, c.aval.shape)


def _solved(a: Any, b: Any, c: Any) -> Any:
    """Solves the equation, without derivatives."""
    m, n = a.aval.shape[-1], b.aval.shape[-1]
    if m * n <= _FEW:
        return _eliminated(a, b, c)
    (r, u), (s, v) = schur(a, output="complex"), schur(b, output="complex")
    right = matmul(matmul(adjoint(u), convert(c, r.aval.dtype)), v)
    eye = np.eye(m, dtype=r.aval.dtype)

    def column(known: Any, j: Any) -> Any:
        # (r + s[j, j]) x[:, j] = c[:, j] - (x s)[:, j], of the columns of x in front.
        above = lax.dynamic_slice_in_dim(s, j, 1, s.aval.ndim - 1)
        rows = np.arange(n)[:, None]
        root = fnp.sum(fnp.where(rows == j, above, 0), axis=-2, keepdims=True)
        side = lax.dynamic_slice_in_dim(right, j, 1, right.aval.ndim - 1)
        side = side - matmul(known, fnp.where(rows < j, above, 0))
        value = lax.linalg.triangular_solve(r + root * eye, side, left_side=True)
        return fnp.where(np.arange(n) == j, value, known), None

    start = lax.full(right.aval.shape, 0, right.aval.dtype)
    x, _ = lax.scan(column, start, lax.iota(dtypes.int32, n))
    out = matmul(matmul(u, x), adjoint(v))
    real = not dtypes.is_complex(c.aval.dtype)
    return convert(fnp.real(out) if real else out, c.aval.dtype)


@library("side", "method", "eps", "max_iterations")
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Returns the polar decomposition: a = U P, or a = P U.

    Args:
      a: array-like[..., m, n].
      side: "right", P stands right, or "left".
      method: "qdwh" or "svd": both give the same, by singular values.
      eps: has no effect.
      max_iterations: has no effect.

    Returns:
      U, float or complex array[..., m, n] whose rows or columns are orthonormal, and P,
      positive semidefinite, [..., n, n], or [..., m, m] on the left.

    Raises:
      ArgumentError: unknown side or method.
      ShapeError: `a` is not a matrix.

    Example:
      >>> polar(np.array([[0.0, -2.0], [2.0, 0.0]]))[1].round(3)
      Array([[2., 0.],
             [0., 2.]], dtype=float32)

    Special cases:
      Equal singular values have the derivatives of others, unlike in `svd`; zero ones
      have none, and 0 is taken for it.

    Source: `scipy.linalg.polar`. The derivatives solve equations with P.
    """
    if side not in ("left", "right"):
        raise ArgumentError(f'polar: side must be "left" or "right", got {side!r}')
    if method not in ("qdwh", "svd"):
        raise ArgumentError(f'polar: method must be "qdwh" or "svd", got {method!r}')
    x = matrix_of("polar", a)
    unitary = unitary_factor(x)
    if side == "right":
        positive = matmul(adjoint(unitary), x)
    else:
        positive = matmul(x, adjoint(unitary))
    return unitary, (positive + adjoint(positive)) * 0.5


@library("func", "disp", "hermitian")
def funm(
    A: ArrayLike,
    func: Callable[[Any], Any],
    disp: bool = True,
    *,
    hermitian: bool = False,
) -> Any:
    """Returns a function of matrices, by its values at their eigenvalues.

    Args:
      A: array-like[..., n, n].
      func: a function of an array, element by element. It is called with complex ones,
        or if `hermitian` with real scalars; then it may capture traced values, also
        those to differentiate with respect to.
      disp: whether to return the matrix alone.
      hermitian: whether to take the Hermitian part of the matrices: V f(w) Vᴴ, whose
        derivatives of any order are right at equal eigenvalues too.

    Returns:
      Complex array[..., n, n], of the type of `func`'s results if `hermitian`; unless
      `disp` a pair of it and an estimate of the relative error in the norm of order 1.
      Unless `hermitian`, there is no derivative.

    Raises:
      ShapeError: the matrices are not square, or `func` does not act element by
        element.

    Special cases:
      Unless `hermitian`, wrong where eigenvalues are nearly equal, as the estimate
      tells: see `expm` and `sqrtm` for their functions.

    Example:
      >>> funm(np.array([[1.0, 2.0], [0.0, 3.0]]), lambda x: x * x).real
      Array([[1., 8.],
             [0., 9.]], dtype=float32)
      >>> total = lambda a: fnp.trace(funm(a, fnp.log, hermitian=True))
      >>> fxflow.grad(total)(2 * np.eye(2))
      Array([[0.5, 0. ],
             [0. , 0.5]], dtype=float32)

    Source: `scipy.linalg.funm`; Golub and Van Loan, Matrix Computations, algorithm
    9.1.1: Parlett's recurrence; for Hermitian matrices, Daleckii and Krein 1965.
    """
    if hermitian:
        x = hermitian_part(matrix_of("funm", A, square=True))
        out = hermitian_function(func, x, "funm") if x.aval.size else x
        size = x.aval.shape[-1] * float(fnp.finfo(out.aval.dtype).eps)
        if disp:
            return out
        finite = fnp.all(fnp.isfinite(out), axis=(-2, -1))
        return out, fnp.where(finite, size, math.inf)
    x = matrix_of("funm", A, square=True)
    t, z = schur(x, output="complex")
    n = t.aval.shape[-1]
    eye = np.eye(n, dtype=t.aval.dtype)
    roots = fnp.diagonal(t, axis1=-2, axis2=-1)
    f = convert(array_of(func(roots), "funm"), t.aval.dtype)[..., None] * eye
    least = fnp.min(fnp.abs(roots), axis=-1, initial=math.inf)
    real = dtypes.to_real(t.aval.dtype)
    # One diagonal above another: T F = F T says what stands on the next one.
    for p in range(1, n):
        i, j = np.arange(n - p), np.arange(p, n)
        # F T = T F without what is not known yet, times t[i, i] - t[j, j].
        value = (matmul(f, t) - matmul(t, f))[..., i, j]
        apart = t[..., i, i] - t[..., j, j]
        least = fnp.minimum(least, fnp.min(fnp.abs(apart), axis=-1))
        value = value / fnp.where(apart == 0, 1, apart)
        f = f.at[..., i, j].set(value)
    out = matmul(matmul(z, f), adjoint(z))
    if disp:
        return out
    eps = float(fnp.finfo(real).eps)
    least = fnp.where(least == 0, eps, least)
    size = fnp.linalg.norm(fnp.triu(t, 1), ord=1, axis=(-2, -1))
    error = fnp.minimum(1, fnp.maximum(eps, eps / least * size))
    finite = fnp.all(fnp.isfinite(out), axis=(-2, -1))
    return out, fnp.where(finite, error, math.inf)


@library("compute_expm", "check_finite")
def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    *,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = True,
) -> Any:
    """Returns the exponential of matrices, and its derivative in a direction.

    Args:
      A: array-like[..., n, n].
      E: array-like[..., n, n]: the direction.
      method: None, "SPS" or "blockEnlarge": both give the same.
      compute_expm: whether to return the exponential.
      check_finite: has no effect.

    Returns:
      The exponential, float or complex array[..., n, n], and the derivative; or the
      derivative alone.

    Raises:
      ArgumentError: unknown method.
      ShapeError: the matrices are not square, or not of one shape.

    Example:
      >>> expm_frechet(np.zeros((1, 1)), np.ones((1, 1)))
      (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))

    Source: `scipy.linalg.expm_frechet`.
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ArgumentError(
            f'expm_frechet: method must be "SPS" or "blockEnlarge", got {method!r}'
        )
    a, e = promote_inexact("expm_frechet", A, E)
    a, e = (matrix_of("expm_frechet", x, square=True) for x in (a, e))
    if a.aval.shape != e.aval.shape:
        raise ShapeError(
            f"expm_frechet: A and E must have one shape, got {a.aval} and {e.aval}"
        )
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


@library("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c")
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Returns the product of another matrix with Q of a = Q R, and R.

    Args:
      a: array-like[..., m, n].
      c: array-like: "left": [..., min(m, n), k] or [min(m, n)]; "right": [..., k, m] or
        [m].
      mode: "right", c Q, or "left", Q c.
      pivoting: whether columns of `a` are exchanged so that R's diagonal decreases.
      conjugate: whether Q is conjugated.
      overwrite_a: has no effect.
      overwrite_c: has no effect.

    Returns:
      The product, R[..., min(m, n), n], and with `pivoting` the order of the columns.

    Raises:
      ArgumentError: unknown mode.
      ShapeError: the shapes are incompatible.

    Example:
      >>> qr_multiply(np.eye(2), np.array([1.0, 2.0]))[0].shape
      (2,)

    Source: `scipy.linalg.qr_multiply`.
    """
    if mode not in ("left", "right"):
        raise ArgumentError(
            f'qr_multiply: mode must be "left" or "right", got {mode!r}'
        )
    a, c = promote_inexact("qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = fnp.conj(q) if conjugate else q
    c = convert(c, q.aval.dtype)
    side = -1 if mode == "right" or c.aval.ndim == 1 else -2
    length = q.aval.shape[-2 if mode == "right" else -1]
    if not c.aval.ndim or c.aval.shape[side] != length:
        raise ShapeError(
            f"qr_multiply: axis {side} of c must be {length}, that of Q, {q.aval}: got "
            f"{c.aval}"
        )
    product = matmul(q, c) if mode == "left" else matmul(c, q)
    return (product, *rest)


@library("eigvals_only", "select_range", "tol", "check_finite", "lapack_driver")
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    check_finite: bool = True,
    lapack_driver: str = "auto",
    key: Array | None = None,
) -> Any:
    """Returns eigenvalues and eigenvectors of symmetric tridiagonal matrices.

    Args:
      d: real array-like[..., n]: the diagonal.
      e: array-like[..., n - 1]: the one below it.
      eigvals_only: whether to return the eigenvalues alone.
      select: "a", all of them; "i", those whose numbers are in `select_range`.
      select_range: the first and the last number.
      tol: has no effect.
      check_finite: has no effect.
      lapack_driver: has no effect.
      key: has no effect.

    Returns:
      Float array[..., k], ascending, and array[..., n, k] of eigenvectors in columns.

    Raises:
      ArgumentError: there is no such way to select, or the range is wrong. By values,
        "v", the shape of the result would depend on them.
      ShapeError: `e` has the wrong length.

    Example:
      >>> eigh_tridiagonal(np.array([2.0, 2.0]), np.array([1.0]), eigvals_only=True)
      Array([1., 3.], dtype=float32)

    Source: `scipy.linalg.eigh_tridiagonal`, by the eigenvalues of a full matrix.
    """
    name = "eigh_tridiagonal"
    d, e = promote_inexact(name, d, e)
    n = d.aval.shape[-1] if d.aval.ndim else 0
    if not d.aval.ndim or not e.aval.ndim or e.aval.shape[-1] != n - 1:
        raise ShapeError(
            f"{name}: e must have one element less than d, got {d.aval} and {e.aval}"
        )
    if select not in ("a", "i"):
        raise ArgumentError(
            f'{name}: select must be "a" or "i", got {select!r}: how many eigenvalues '
            "are in an interval is not known when a program is compiled"
        )
    first, last = 0, n - 1
    if select == "i":
        if select_range is None or not 0 <= select_range[0] <= select_range[1] < n:
            raise ArgumentError(
                f"{name}: select_range must be two numbers from 0 to {n - 1}, got "
                f"{select_range!r}"
            )
        first, last = int(select_range[0]), int(select_range[1])
    middle = d[..., None] * np.eye(n, dtype=d.aval.dtype)
    low = e[..., None, :] * np.eye(n, n - 1, -1, dtype=e.aval.dtype)
    low = fnp.concatenate([low, fnp.zeros((*low.shape[:-1], 1), low.dtype)], axis=-1)
    full = middle + low + adjoint(low)
    chosen = slice(first, last + 1)
    if eigvals_only:
        return eigvalsh(full)[..., chosen]
    values, vectors = eigh(full)
    return values[..., chosen], vectors[..., chosen]
