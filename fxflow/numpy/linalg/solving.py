"""Systems of equations, inverses and least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.sizes import larger
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.gradient_control import stop_gradient
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    promote_inexact,
    shape_of,
    size_of,
)
from fxflow.numpy.index_functions import take_along_axis
from fxflow.numpy.linalg._matrices import (
    adjoint,
    computed,
    identity_like,
    matrices,
    precision_of,
)
from fxflow.numpy.linalg.decompositions import svd
from fxflow.numpy.products import matmul
from fxflow.numpy.reductions import sum
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import reshape
from fxflow.transforms.custom_jvp import custom_jvp


def solve_factored(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """Solves equations with matrices given by their LU decomposition.

    Args:
      factors: float or complex[..., n, n]: L and U in one.
      permutation: i32[..., n] of the rows.
      b: of the same dtype, [..., n, k].
      trans: 0 for a x = b, 1 for aᵀ x = b, 2 for aᴴ x = b.

    Returns:
      Array[..., n, k].
    """
    lead = lax.broadcast_shapes(factors.aval.shape[:-2], b.aval.shape[:-2])
    n, k = b.aval.shape[-2:]
    factors = repeated(factors, (*lead, n, n))
    permutation = repeated(permutation, (*lead, n))[..., None]
    b = repeated(b, (*lead, n, k))
    if trans == 0:
        b = take_along_axis(b, permutation, axis=-2)
        b = lax.linalg.triangular_solve(
            factors, b, left_side=True, lower=True, unit_diagonal=True
        )
        return lax.linalg.triangular_solve(factors, b, left_side=True, lower=False)
    conjugate = trans == 2
    b = lax.linalg.triangular_solve(
        factors, b, left_side=True, lower=False, transpose_a=True, conjugate_a=conjugate
    )
    b = lax.linalg.triangular_solve(
        factors,
        b,
        left_side=True,
        lower=True,
        unit_diagonal=True,
        transpose_a=True,
        conjugate_a=conjugate,
    )
    inverse = lax.argsort(permutation, permutation.aval.ndim - 2)
    return take_along_axis(b, inverse, axis=-2)


def _solved(a: Any, b: Any) -> Array:
    """Solves a x = b for matrices b, with a derivative that needs one decomposition."""
    # One decomposition for the solution, its derivative and its transpose: what is
    # differentiated is `matvec`.
    factors, _, permutation = lax.linalg.lu(stop_gradient(a))
    found: Array = lax.custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        solve=lambda _, y: solve_factored(factors, permutation, y),
        transpose_solve=lambda _, y: solve_factored(factors, permutation, y, 1),
    )
    return found


@library()
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solves a x = b.

    Args:
      a: array-like[..., n, n].
      b: array-like[n], or [..., n, k]; the axes before broadcast.

    Returns:
      Float or complex array[..., n], or [..., n, k].

    Raises:
      ShapeError: the matrices are not square, or the shapes are incompatible.

    Special cases:
      inf or nan if a matrix is singular.

    Example:
      >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
      Array([1., 1.], dtype=float32)

    Source: `numpy.linalg.solve`.
    """
    matrix, right = (computed(x) for x in promote_inexact("solve", a, b))
    (matrix,) = matrices("solve", matrix, square=True)
    vector = right.aval.ndim == 1
    if vector:
        right = right[:, None]
    if right.aval.ndim < 2 or right.aval.shape[-2] != matrix.aval.shape[-1]:
        raise ShapeError(
            f"solve: b must be [n] or [..., n, k] with the n of {matrix.aval}, got "
            f"{array_of(b, 'solve').aval}"
        )
    try:
        lead = lax.broadcast_shapes(matrix.aval.shape[:-2], right.aval.shape[:-2])
    except (TypeError, ValueError):
        raise ShapeError(
            f"solve: batch axes of {matrix.aval} and {right.aval} do not broadcast"
        ) from None
    right = repeated(right, (*lead, *right.aval.shape[-2:]))
    out = _solved(matrix, right)
    return out[..., 0] if vector else out


@library()
def inv(a: ArrayLike) -> Array:
    """Returns inverses.

    Args:
      a: array-like[..., n, n].

    Returns:
      Float or complex array[..., n, n].

    Raises:
      ShapeError: the matrices are not square.

    Special cases:
      inf or nan if a matrix is singular.

    Example:
      >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)

    Source: `numpy.linalg.inv`.
    """
    (x,) = matrices("inv", a, square=True)
    return _solved(x, identity_like(x, x.aval.shape[-1]))


# -- least squares ---------------------------------------------------------------------


@library("hermitian")
def pinv(
    a: ArrayLike, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None
) -> Array:
    """Returns pseudo-inverses.

    Args:
      a: array-like[..., m, n].
      rtol: singular values up to this times the largest count as zero; None is 10 times
        max(m, n) times the precision of the dtype.
      hermitian: whether `a` is Hermitian, which is faster.
      rcond: older name of `rtol`.

    Returns:
      Float or complex array[..., n, m].

    Raises:
      ShapeError: `a` is not a matrix.
      ArgumentError: both `rtol` and `rcond` are given.

    Example:
      >>> pinv(np.array([[2.0], [0.0]]))
      Array([[0.5, 0. ]], dtype=float32)

    Source: `numpy.linalg.pinv`; G. Golub and V. Pereyra, The Differentiation of
    Pseudo-Inverses, 1973 (derivative).
    """
    if rcond is not None:
        if rtol is not None:
            raise ArgumentError("pinv: give rtol or rcond, not both")
        rtol = rcond
    (x,) = matrices("pinv", a, square=hermitian)
    m, n = x.aval.shape[-2:]
    real = dtypes.to_real(x.aval.dtype)
    if rtol is None:
        # JAX's default.
        rtol = 10.0 * larger(m, n) * precision_of(x)
    if not m or not n:
        return lax.full((*x.aval.shape[:-2], n, m), 0, x.aval.dtype)
    least = convert(array_of(rtol, "pinv"), real)
    return _pinv(hermitian)(x, least)


def _pinv(hermitian: bool) -> Callable[[Array, Array], Array]:
    @custom_jvp
    def pseudo_inverse(x: Any, rtol: Any) -> Any:
        u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
        least = (rtol if not rtol.aval.ndim else rtol[..., None]) * s[..., :1]
        keep = s > repeated(least, s.aval.shape)
        one = lax.full_like(s, 1)
        inverse = choose_between(keep, 1 / choose_between(keep, s, one), 0 * one)
        scaled = adjoint(vh) * convert(inverse, x.aval.dtype)[..., None, :]
        return matmul(scaled, adjoint(u))

    def derivative(primals: Any, tangents: Any) -> Any:
        a, rtol = primals
        da, _ = tangents
        p = pseudo_inverse(a, rtol)
        ph, dh = adjoint(p), adjoint(da)
        # Golub and Pereyra (1973).
        out = -(p @ da @ p)
        first = p @ (ph @ dh)
        second = (dh @ ph) @ p
        out = out + first - (first @ a) @ p
        out = out + second - p @ (a @ second)
        return p, out

    pseudo_inverse.defjvp(derivative)
    return pseudo_inverse


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solves a x ≈ b by least squares.

    Args:
      a: array-like[m, n].
      b: array-like[m] or [m, k].
      rcond: singular values smaller than this times the largest count as zero; None is
        max(m, n) times the precision of the dtype.
      numpy_resid: whether to return no residuals where NumPy returns none (the rank is
        less than n, or m ≤ n).

    Returns:
      x [n] or [n, k], the sums of squared residuals [k], the rank, and the singular
      values [min(m, n)].

    Raises:
      ShapeError: the shapes are incompatible.
      ConcretizationError: `numpy_resid` is true, m > n and the arrays are traced: the
        shape of the residuals depends on the rank.

    Example:
      >>> lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0].round(3)
      Array([2.], dtype=float32)

    Source: `numpy.linalg.lstsq`.
    """
    x, residuals, rank, s = _least_squares(a, b, rcond)
    if numpy_resid:
        n = x.aval.shape[0]
        if shape_of(a)[0] > n and isinstance(rank, Tracer):
            raise ConcretizationError(
                "lstsq: numpy_resid=True makes the shape of the residuals depend on "
                f"the rank, which is traced. {rank.origin()} Leave numpy_resid out."
            )
        if shape_of(a)[0] <= n or int(rank) < n:
            residuals = lax.full((0,), 0, residuals.aval.dtype)
    return x, residuals, rank, s


@library()
def _least_squares(
    a: ArrayLike, b: ArrayLike, rcond: Any
) -> tuple[Array, Array, Array, Array]:
    matrix, right = (computed(x) for x in promote_inexact("lstsq", a, b))
    shape = matrix.aval.shape
    vector = right.aval.ndim == 1
    if (
        len(shape) != 2
        or right.aval.ndim not in (1, 2)
        or right.aval.shape[0] != shape[0]
    ):
        raise ShapeError(
            f"lstsq: takes a [m, n] and b [m] or [m, k], got {matrix.aval} and "
            f"{right.aval}"
        )
    if vector:
        right = right[:, None]
    m, n = shape
    k = right.aval.shape[1]
    real = dtypes.to_real(matrix.aval.dtype)
    if not m or not n:
        x = lax.full((n, k), 0, matrix.aval.dtype)
        rank = lax.full((), 0, dtypes.default_int())
        s = lax.full((0,), 0, real)
    else:
        if rcond is None:
            rcond = larger(m, n) * precision_of(matrix)
        least = convert(array_of(rcond, "lstsq"), real)
        s = svd(matrix, full_matrices=False)[1]
        rank = sum(_kept(s, least))
        x = _fitted(matrix, right, least)
    rest = right - matmul(matrix, x)
    residuals = sum(lax.square(lax.abs(rest)), axis=0)
    return (x[:, 0] if vector else x), residuals, rank, s


def _kept(s: Any, rcond: Any) -> Any:
    """Returns which singular values do not count as zero."""
    return (s > 0) & (s >= rcond * s[0])


@custom_jvp
def _fitted(a: Any, b: Any, rcond: Any) -> Any:
    u, s, vh = svd(a, full_matrices=False)
    keep, one = _kept(s, rcond), lax.full_like(s, 1)
    inverse = choose_between(keep, 1 / choose_between(keep, s, one), 0 * one)
    inverse = convert(inverse, a.aval.dtype)
    return matmul(adjoint(vh), inverse[:, None] * matmul(adjoint(u), b))


@_fitted.defjvp
def _fitted_rule(primals: Any, tangents: Any) -> Any:
    (a, b, rcond), (da, db, _) = primals, tangents
    x = _fitted(a, b, rcond)
    # As of the pseudo-inverse: vectors of equal singular values have no derivative.
    p = _pinv(False)(a, rcond)
    ph, dh = adjoint(p), adjoint(da)
    out = p @ (db - da @ x) + p @ (ph @ (dh @ (b - a @ x)))
    beside = dh @ (ph @ x)
    return x, out + beside - p @ (a @ beside)


# -- tensors ---------------------------------------------------------------------------


@library("axes")
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solves tensordot(a, x, x.ndim) = b.

    Args:
      a: array-like of shape `b.shape + Q`, where the products of both are equal.
      b: array-like.
      axes: of `a` that are moved to the end first.

    Returns:
      Array of shape Q.

    Raises:
      ShapeError: the shapes are incompatible.
      AxisError: an axis is out of range.

    Example:
      >>> tensorsolve(np.eye(6).reshape(2, 3, 6), np.ones((2, 3))).shape
      (6,)

    Source: `numpy.linalg.tensorsolve`.
    """
    matrix, right = promote_inexact("tensorsolve", a, b)
    if axes is not None:
        moved = [canonical_axis("tensorsolve", i, matrix.aval.ndim) for i in axes]
        rest = [i for i in range(matrix.aval.ndim) if i not in moved]
        matrix = lax.transpose(matrix, (*rest, *moved))
    shape = matrix.aval.shape[right.aval.ndim :]
    n = right.aval.size
    if size_of(shape) != n or matrix.aval.size != n * n:
        raise ShapeError(
            f"tensorsolve: {matrix.aval} is not a square matrix for b, {right.aval}"
        )
    out = solve(reshape(matrix, (n, n)), reshape(right, (n,)))
    return reshape(out, shape)


@library("ind")
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Returns the inverse for `tensordot` over some axes.

    Args:
      a: array-like; the products of the lengths of its first `ind` and of its other
        axes are equal.
      ind: how many axes are rows.

    Returns:
      Array of shape `a.shape[ind:] + a.shape[:ind]`.

    Raises:
      ShapeError: the products are not equal.
      ArgumentError: `ind` is not positive.

    Example:
      >>> tensorinv(np.eye(6).reshape(6, 2, 3), 1).shape
      (2, 3, 6)

    Source: `numpy.linalg.tensorinv`.
    """
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind must be positive, got {ind}")
    (x,) = promote_inexact("tensorinv", a)
    first, last = x.aval.shape[:ind], x.aval.shape[ind:]
    n = size_of(first)
    if size_of(last) != n:
        raise ShapeError(
            f"tensorinv: {x.aval} is not a square matrix, split at axis {ind}"
        )
    return reshape(inv(reshape(x, (n, n))), last + first)
