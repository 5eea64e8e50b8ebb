"""Linear systems: of triangular, general and positive definite matrices."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import pair
from fxflow.numpy import linalg
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.diagonals import tril, triu
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.scipy.linalg._matrices import matrix_of, sides_of, way_of

_solve_docs = shared("""
    Args:
      b: array-like[n] or [..., n, k].
      overwrite_b: has no effect.
      debug: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array of the shape of `b`.

    Raises:
      ShapeError: the shapes are incompatible.

    Source: `scipy.linalg.{name}`.
""")


@library("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite")
@_solve_docs
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b with a triangular matrix.

    Args:
      a: array-like[..., n, n]; one triangle is read.
      trans: 0 or "N"; 1 or "T" solves aᵀ x = b; 2 or "C" solves aᴴ x = b.
      lower: which triangle.
      unit_diagonal: whether the diagonal counts as ones.

    Raises:
      ArgumentError: `trans` is something else.

    Example:
      >>> solve_triangular(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)
    """
    way = way_of("solve_triangular", trans)
    x, y, vector = sides_of("solve_triangular", a, b)
    out = lax.linalg.triangular_solve(
        x,
        y,
        left_side=True,
        lower=lower,
        transpose_a=way > 0,
        conjugate_a=way == 2,
        unit_diagonal=unit_diagonal,
    )
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out


#: What a matrix may be known to be, and how it is solved.
_KINDS: dict[str | None, str] = {
    **{k: k for k in ("gen", "sym", "her", "pos", "diagonal")},
    "general": "gen",
    None: "gen",
    "tridiagonal": "gen",
    "banded": "gen",
    "symmetric": "sym",
    "hermitian": "her",
    "positive definite": "pos",
    "upper triangular": "upper",
    "lower triangular": "lower",
}


@library(
    "lower",
    "overwrite_a",
    "overwrite_b",
    "debug",
    "check_finite",
    "assume_a",
    "transposed",
)
@_solve_docs
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str | None = "gen",
    transposed: bool = False,
) -> Array:
    """Solves a x = b.

    Args:
      a: array-like[..., n, n].
      lower: which triangle is read, if `assume_a` is not "gen".
      overwrite_a: has no effect.
      assume_a: "general" (or "gen", None), "symmetric" ("sym"), "hermitian" ("her"),
        "positive definite" ("pos"), "upper triangular", "lower triangular", "diagonal",
        which are faster; "tridiagonal" and "banded" are solved as general ones.
      transposed: whether to solve aᵀ x = b instead.

    Raises:
      ArgumentError: `assume_a` is something else.

    Example:
      >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)
    """
    if assume_a not in _KINDS:
        raise ArgumentError(
            f"solve: assume_a must be one of {', '.join(map(str, _KINDS))}, got "
            f"{assume_a!r}"
        )
    assume_a = _KINDS[assume_a]
    if assume_a in ("upper", "lower"):
        way = 1 if transposed else 0
        return solve_triangular(a, b, way, assume_a == "lower")
    if assume_a == "diagonal":
        x, y, vector = sides_of("solve", a, b)
        out = y / fnp.diagonal(x, axis1=-2, axis2=-1)[..., None]
        return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out
    if transposed and assume_a in ("pos", "her"):
        # The transpose of a Hermitian matrix is its conjugate.
        (a,) = promote_inexact("solve", a)
        a = lax.conj(a) if dtypes.is_complex(a.aval.dtype) else a
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    if assume_a != "gen":
        x = matrix_of("solve", a, square=True)
        half = tril(x) if lower else triu(x)
        rest = tril(x, -1) if lower else triu(x, 1)
        a = half + (adjoint(rest) if assume_a == "her" else matrix_transpose(rest))
    elif transposed:
        a = matrix_transpose(matrix_of("solve", a, square=True))
    return linalg.solve(a, b)


@library("lower", "overwrite_a", "check_finite")
def cholesky(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array:
    """Returns the Cholesky factor: a = Uᴴ U, or L Lᴴ.

    Args:
      a: array-like[..., n, n], Hermitian and positive definite; one triangle is read.
      lower: whether to return L.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array[..., n, n], triangular.

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      nan if a matrix is not positive definite.

    Example:
      >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
      Array([[2., 1.],
             [0., 1.]], dtype=float32)

    Source: `scipy.linalg.cholesky`.
    """
    return linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, bool]:
    """Returns the Cholesky factor for `cho_solve`.

    Args:
      a: array-like[..., n, n], Hermitian and positive definite; one triangle is read.
      lower: whether the factor is lower triangular.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      The factor, and `lower`.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> cho_factor(np.array([[4.0]]))
      (Array([[2.]], dtype=float32), False)

    Source: `scipy.linalg.cho_factor`.
    """
    return cholesky(a, lower), lower


@_solve_docs
def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b, given the Cholesky factor of a.

    Args:
      c_and_lower: what `cho_factor` returned.

    Example:
      >>> cho_solve(cho_factor(np.array([[4.0]])), np.array([8.0]))
      Array([2.], dtype=float32)
    """
    factor, lower = pair("cho_solve", "c_and_lower", c_and_lower)
    x, y, vector = sides_of("cho_solve", factor, b)
    first = solve_triangular(x, y, 0 if lower else 2, lower)
    out = solve_triangular(x, first, 2 if lower else 0, lower)
    return lax.squeeze(out, (out.aval.ndim - 1,)) if vector else out


# -- inverses --------------------------------------------------------------------------


def inv(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """Returns inverses; see `fxflow.numpy.linalg.inv`.

    Args:
      a: array-like[..., n, n].
      overwrite_a: has no effect.
      check_finite: has no effect.
      assume_a: what `a` is known to be: see `solve`; None is "gen".
      lower: of matrices "sym", "her" and "pos", which triangle is read.

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ArgumentError: there is no such `assume_a`.
      ShapeError: the matrices are not square.

    Special cases:
      inf or nan if a matrix is singular.

    Example:
      >>> inv(np.array([[4.0]]))
      Array([[0.25]], dtype=float32)

    Source: `scipy.linalg.inv`.
    """
    if assume_a in (None, "gen", "general"):
        return linalg.inv(a)
    x = matrix_of("inv", a, square=True)
    eye = fnp.broadcast_to(fnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    return solve(x, eye, lower, assume_a=assume_a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Returns determinants; see `fxflow.numpy.linalg.det`.

    Args:
      a: array-like[..., n, n].
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      Float or complex array[...].

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> det(np.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)

    Source: `scipy.linalg.det`.
    """
    return linalg.det(a)
