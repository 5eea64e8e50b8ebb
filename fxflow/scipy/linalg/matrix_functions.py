"""Logarithms, powers, and circular and hyperbolic functions of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg import matrix_power, solve
from fxflow.numpy.linalg._matrices import adjoint, identity_like
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.scipy.linalg._roots import root_of_triangular
from fxflow.scipy.linalg.functions import expm, sqrtm
from fxflow.scipy.linalg.similarity import schur
from fxflow.scipy.linalg.solving import solve_triangular
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

# How near to the identity a root must be for 8 nodes (Higham 2008, table 11.1), and how
# many roots are taken at most.
_NEAR, _NODES, _ROOTS, _INTEGRAL = 0.25, 8, 60, 24

_docs = shared("""
    Args:
      A: array-like[..., n, n].

    Raises:
      ShapeError: the matrices are not square.
      ...

    Source: `scipy.linalg.{name}`; N. Higham, Functions of Matrices, 2008.
""")


def _logarithm_values(a: Any, real: bool) -> Any:
    """Returns logarithms: of roots near the identity, multiplied.

    Args:
      a: the matrices.
      real: whether eigenvalues whose imaginary parts are rounding are real.
    """
    t, z = schur(a, output="complex")
    n = t.aval.shape[-1]
    eye = identity_like(t, n)
    if real:
        eps = float(fnp.finfo(dtypes.to_real(t.aval.dtype)).eps)
        size = fnp.max(lax.abs(t), axis=(-2, -1), keepdims=True)
        rounding = (eye == 1) & (lax.abs(fnp.imag(t)) <= 4 * n * eps * size)
        exact = lax.complex(fnp.real(t), fnp.zeros_like(fnp.real(t)))
        t = fnp.where(rounding, exact, t)

    def far(t: Any) -> Any:
        size = fnp.max(fnp.sum(lax.abs(t - eye), axis=-2), axis=-1)
        return size > _NEAR

    def going(state: Any) -> Any:
        return (state[0] < _ROOTS) & fnp.any(far(state[2]))

    def step(state: Any) -> Any:
        k, count, t = state
        more = far(t)
        root = root_of_triangular(t)
        t = fnp.where(more[..., None, None], root, t)
        return k + 1, count + convert(more, count.aval.dtype), t

    values = fnp.diagonal(t, axis1=-2, axis2=-1)
    count = fnp.zeros(t.aval.shape[:-2], dtypes.to_real(t.aval.dtype))
    _, count, root = lax.while_loop(going, step, (fnp.int32(0), count, t))
    y = root - eye
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = fnp.zeros_like(y)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        total = total + float(weight) * solve_triangular(eye + float(node) * y, y)
    total = total * lax.exp2(count)[..., None, None]
    # The eigenvalues keep all digits.
    total = fnp.where(eye == 1, lax.log(values)[..., None], total)
    return matmul(matmul(z, total), adjoint(z))


@custom_jvp
def _logarithm(a: Any) -> Any:
    return _logarithm_values(a, not dtypes.is_complex(a.aval.dtype))


def _block_slope(a: Any, c: Any) -> Any:
    """Returns the derivative of the logarithm in a direction, from that of a block."""
    n = a.aval.shape[-1]
    real = not dtypes.is_complex(a.aval.dtype)
    a = convert(a, c.aval.dtype)
    top = fnp.concatenate([a, c], axis=-1)
    low = fnp.concatenate([fnp.zeros_like(a), a], axis=-1)
    both = fnp.concatenate([top, low], axis=-2)
    return _logarithm_values(both, real)[..., :n, n:]


@_logarithm.defjvp
def _logarithm_rule(primals: Any, tangents: Any) -> Any:
    # The derivative of the exponential at the logarithm is the inverse of that of the
    # logarithm, whose solver is linear and not differentiated.
    (a,), (da,) = primals, tangents
    x = _logarithm(a)
    fixed = lax.stop_gradient(a)
    # It is the integral of exp((1 - s) x) y exp(s x), whose further derivatives are
    # those of the rule.
    nodes, weights = np.polynomial.legendre.leggauss(_INTEGRAL)
    shape = (_INTEGRAL, *(1,) * x.aval.ndim)
    steps, parts = (
        fnp.reshape(fnp.asarray(v, x.aval.dtype), shape)
        for v in (0.5 * (nodes + 1), 0.5 * weights)
    )
    powers = expm(steps * x)

    def slope(y: Any) -> Any:
        return fnp.sum(parts * matmul(matmul(powers[::-1], y), powers), axis=0)

    dx = lax.custom_linear_solve(
        slope,
        convert(da, x.aval.dtype),
        solve=lambda _, c: _block_slope(fixed, c),
        transpose_solve=lambda _, c: _block_slope(matrix_transpose(fixed), c),
    )
    return x, dx


def _as_complex(x: Any) -> Any:
    return convert(x, dtypes.to_complex(x.aval.dtype))


@library("disp")
@_docs
def logm(A: ArrayLike, disp: bool = True) -> Any:
    """Returns principal logarithms of matrices.

    Args:
      disp: whether to return the matrix alone.

    Returns:
      Complex array[..., n, n]; unless `disp` a pair of it and the relative error of its
      exponential in the norm of order 1.

    Special cases:
      inf or nan of singular matrices. Negative eigenvalues have the imaginary part π.

    Example:
      >>> logm(np.array([[1.0, 1.0], [0.0, 1.0]])).real
      Array([[0., 1.],
             [0., 0.]], dtype=float32)
    """
    x = matrix_of("logm", A, square=True)
    out = _logarithm(x) if x.aval.size else _as_complex(x)
    if disp:
        return out
    off, size = (fnp.linalg.norm(m, ord=1, axis=(-2, -1)) for m in (expm(out) - x, x))
    return out, off / size


@library("t")
@_docs
def fractional_matrix_power(A: ArrayLike, t: float) -> Array:
    """Returns real powers of matrices.

    Args:
      t: the power, a Python number.

    Returns:
      Complex array[..., n, n].

    Special cases:
      Powers that are not integers are exp(t log(A)): inf or nan of singular matrices.

    Example:
      >>> fractional_matrix_power(np.diag(np.array([4.0, 9.0])), 0.5).real.round(3)
      Array([[2., 0.],
             [0., 3.]], dtype=float32)
    """
    x = matrix_of("fractional_matrix_power", A, square=True)
    if not isinstance(t, int | float) or not math.isfinite(t):
        raise ArgumentError(
            f"fractional_matrix_power: t must be a finite number, got {t!r}"
        )
    whole = math.floor(t)
    if not x.aval.size or whole == t:
        out: Array = _as_complex(matrix_power(x, whole))
        return out
    part = expm(_logarithm(x) * (t - whole))
    return matmul(_as_complex(matrix_power(x, whole)), part)


def _waves(name: str, A: Any) -> tuple[Any, Any]:
    """Returns the cosine and the sine."""
    x = matrix_of(name, A, square=True)
    if not x.aval.size:
        return x, x
    if not dtypes.is_complex(x.aval.dtype):
        turn = expm(lax.complex(fnp.zeros_like(x), x))
        return fnp.real(turn), fnp.imag(turn)
    up, down = expm(1j * x), expm(-1j * x)
    return 0.5 * (up + down), -0.5j * (up - down)


def _growths(name: str, A: Any) -> tuple[Any, Any]:
    """Returns the hyperbolic cosine and sine."""
    x = matrix_of(name, A, square=True)
    if not x.aval.size:
        return x, x
    up, down = expm(x), expm(-x)
    return 0.5 * (up + down), 0.5 * (up - down)


@library()
@_docs
def cosm(A: ArrayLike) -> Array:
    """Returns the cosine of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> cosm(np.zeros((1, 1)))
      Array([[1.]], dtype=float32)
    """
    pair = _waves("cosm", A)
    out: Array = pair[0]
    return out


@library()
@_docs
def sinm(A: ArrayLike) -> Array:
    """Returns the sine of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> sinm(np.zeros((1, 1)))
      Array([[0.]], dtype=float32)
    """
    pair = _waves("sinm", A)
    out: Array = pair[1]
    return out


@library()
@_docs
def tanm(A: ArrayLike) -> Array:
    """Returns the tangent of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> tanm(np.zeros((1, 1)))
      Array([[0.]], dtype=float32)
    """
    pair = _waves("tanm", A)
    out: Array = solve(*pair)
    return out


@library()
@_docs
def coshm(A: ArrayLike) -> Array:
    """Returns the hyperbolic cosine of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> coshm(np.zeros((1, 1)))
      Array([[1.]], dtype=float32)
    """
    pair = _growths("coshm", A)
    out: Array = pair[0]
    return out


@library()
@_docs
def sinhm(A: ArrayLike) -> Array:
    """Returns the hyperbolic sine of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> sinhm(np.zeros((1, 1)))
      Array([[0.]], dtype=float32)
    """
    pair = _growths("sinhm", A)
    out: Array = pair[1]
    return out


@library()
@_docs
def tanhm(A: ArrayLike) -> Array:
    """Returns the hyperbolic tangent of matrices.

    Returns:
      Float or complex array[..., n, n].

    Example:
      >>> tanhm(np.zeros((1, 1)))
      Array([[0.]], dtype=float32)
    """
    pair = _growths("tanhm", A)
    out: Array = solve(*pair)
    return out


@library("disp")
@_docs
def signm(A: ArrayLike, disp: bool = True) -> Any:
    """Returns the signs of matrices: those of the real parts of their eigenvalues.

    Args:
      disp: whether to return the matrix alone.

    Returns:
      Float or complex array[..., n, n]; unless `disp` a pair of it and the error of its
      square in the norm of order 1.

    Special cases:
      inf or nan where an eigenvalue has no real part.

    Example:
      >>> signm(np.array([[2.0, 1.0], [0.0, -3.0]])).round(3)
      Array([[ 1. ,  0.4],
             [ 0. , -1. ]], dtype=float32)
    """
    x = matrix_of("signm", A, square=True)
    if not x.aval.size:
        return x
    out = solve(sqrtm(matmul(x, x)), _as_complex(x))
    if not dtypes.is_complex(x.aval.dtype):
        out = fnp.real(out)
    if disp:
        return out
    eye = identity_like(out, out.aval.shape[-1])
    error = fnp.linalg.norm(matmul(out, out) - eye, ord=1, axis=(-2, -1))
    return out, error


@library("check_finite")
@_docs
def expm_cond(A: ArrayLike, check_finite: bool = True) -> Array:
    """Returns relative condition numbers of the exponential, in the Frobenius norm.

    Args:
      check_finite: has no effect.

    Returns:
      Float array[...].

    Special cases:
      The second derivative is nan where the largest singular value of the derivative of
      the exponential is not simple, such as of zeros.

    Example:
      >>> float(expm_cond(np.eye(1)))
      1.0
    """
    x = matrix_of("expm_cond", A, square=True)
    n = x.aval.shape[-1]
    real = dtypes.to_real(x.aval.dtype)
    if not x.aval.size:
        return fnp.zeros(x.aval.shape[:-2], real)
    lead = (1,) * (x.aval.ndim - 2)
    units = np.eye(n * n, dtype=x.aval.dtype).reshape((n * n, *lead, n, n))

    def along(e: Any) -> Any:
        return jvp(expm, (x,), (fnp.broadcast_to(e, x.aval.shape),))[1]

    columns = fnp.reshape(vmap(along)(units), (n * n, *x.aval.shape[:-2], n * n))
    slopes = fnp.linalg.norm(fnp.moveaxis(columns, 0, -1), ord=2, axis=(-2, -1))
    before, after = (fnp.linalg.norm(m, axis=(-2, -1)) for m in (x, expm(x)))
    return slopes * before / after
