"""Polar factors and the nuclear norm, with derivatives at equal singular values too.

Those of singular vectors do not exist there. The derivatives here solve equations with
the positive factor instead, and so do their own derivatives.
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.numpy._operands import convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.complex_parts import conjugate, real
from fxflow.numpy.products import matmul
from fxflow.numpy.reductions import sum
from fxflow.numpy.selection import choose_between
from fxflow.transforms.custom_jvp import custom_jvp


def _adjoint(x: Any) -> Any:
    turned = matrix_transpose(x)
    return conjugate(turned) if dtypes.is_complex(x.aval.dtype) else turned


def unitary_factor(x: Any) -> Any:
    """Returns the U of x = U P: the nearest matrix whose columns are orthonormal.

    Args:
      x: float or complex[..., m, n]; if m < n, the rows of U are orthonormal.
    """
    m, n = x.aval.shape[-2:]
    return _unitary(x) if m >= n else _adjoint(_unitary(_adjoint(x)))


@custom_jvp
def _unitary(x: Any) -> Any:
    u, _, vh = lax.linalg.svd(x, full_matrices=False)
    return matmul(u, vh)


@_unitary.defjvp
def _unitary_rule(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    u = _unitary(x)
    inner = matmul(_adjoint(u), x)
    positive = (inner + _adjoint(inner)) * 0.5
    along = matmul(_adjoint(u), t)
    out = matmul(u, _between(positive, along - _adjoint(along)))
    m, n = x.aval.shape[-2:]
    if m > n:
        out = out + _over(t - matmul(u, along), positive)
    return u, out


def _between(p: Any, x: Any) -> Any:
    """Solves p y + y p = x for a positive p."""
    fixed = lax.stop_gradient(p)

    def solve(p: Any, x: Any) -> Any:
        v, w = lax.linalg.eigh(p)
        inner = matmul(_adjoint(v), matmul(x, v))
        inner = inner * _inverse(w[..., :, None] + w[..., None, :], x)
        return matmul(v, matmul(inner, _adjoint(v)))

    return lax.custom_linear_solve(
        lambda y: matmul(p, y) + matmul(y, p),
        x,
        solve=lambda _, x: solve(fixed, x),
        transpose_solve=lambda _, x: solve(matrix_transpose(fixed), x),
    )


def _over(x: Any, p: Any) -> Any:
    """Solves y p = x for a positive p."""
    fixed = lax.stop_gradient(p)

    def solve(p: Any, x: Any) -> Any:
        v, w = lax.linalg.eigh(p)
        scaled = matmul(x, v) * _inverse(w[..., None, :], x)
        return matmul(scaled, _adjoint(v))

    return lax.custom_linear_solve(
        lambda y: matmul(y, p),
        x,
        solve=lambda _, x: solve(fixed, x),
        transpose_solve=lambda _, x: solve(matrix_transpose(fixed), x),
    )


def _inverse(x: Any, like: Any) -> Any:
    """Returns 1 / x in the dtype of an array, 0 for what is not positive."""
    positive, one = x > 0, lax.full_like(x, 1)
    inverse = choose_between(positive, one / choose_between(positive, x, one), one * 0)
    return convert(inverse, like.aval.dtype)


@custom_jvp
def nuclear_norm(x: Any) -> Any:
    """Returns the sum of the singular values.

    Args:
      x: float or complex[..., m, n].
    """
    values: Any = lax.linalg.svd(x, compute_uv=False)
    return sum(values, axis=-1)


@nuclear_norm.defjvp
def _nuclear_rule(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    u = unitary_factor(x)
    if dtypes.is_complex(x.aval.dtype):
        u = conjugate(u)
    return nuclear_norm(x), real(sum(u * t, axis=(-2, -1)))
