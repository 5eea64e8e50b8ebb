"""Products with themselves, and factors of matrices that change a little."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.creation import broadcasted_iota, full, iota
from fxflow.lax.elementwise import add, div, mul, sub
from fxflow.lax.linalg.library import lower_part, matmul, require_matrices, swapped
from fxflow.lax.powers import sqrt, square
from fxflow.lax.reduction import reduce_sum
from fxflow.lax.select import select


def _require_real(name: str, x: Any) -> None:
    aval = typeof(x)
    if dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{name}: takes real numbers, got {aval}")


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """Returns the Cholesky factor of a matrix plus the product of a vector with itself.

    Args:
      r_matrix: f32 or f64[..., n, n], upper triangular, its diagonal positive.
      w_vector: of the same dtype[..., n].

    Returns:
      The upper triangular q with qᵀ q = rᵀ r + w wᵀ, of the type of `r_matrix`.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the dtypes differ or are not of these.

    Example:
      >>> cholesky_update(np.float32([[3.0]]), np.float32([4.0]))
      Array([[5.]], dtype=float32)

    Source: P. Gill, G. Golub, W. Murray and M. Saunders, Methods for Modifying Matrix
    Factorizations, 1974, by plane rotations.
    """
    name = "cholesky_update"
    r, w = typeof(r_matrix), typeof(w_vector)
    require_matrices(name, r, square=True)
    _require_real(name, r_matrix)
    if w.dtype != r.dtype:
        raise DtypeError(f"{name}: dtypes must be the same, got {r} and {w}")
    if w.shape != r.shape[:-1]:
        raise ShapeError(f"{name}: expected a vector {r.shape[:-1]} for {r}, got {w}")
    ndim, n = r.ndim, r.shape[-1]
    order = (ndim - 2, *range(ndim - 2), ndim - 1)
    columns = broadcasted_iota(np.int32, w.shape, ndim - 2)
    zero = full(w.shape, 0, r.dtype)

    def at(x: Any, here: Any) -> Any:
        """Returns one column, repeated."""
        one = reduce_sum(select(here, x, zero), (ndim - 2,))
        return broadcast_in_dim(one, w.shape, tuple(range(ndim - 2)))

    def step(w: Any, inputs: Any) -> Any:
        k, row = inputs
        here = eq(columns, broadcast_in_dim(k, typeof(w).shape, ()))
        a, b = at(row, here), at(w, here)
        # A matrix of zeros stays one.
        size = add(square(a), square(b))
        none = eq(size, zero)
        length = sqrt(select(none, full(typeof(w).shape, 1, r.dtype), size))
        cosine = select(none, full(typeof(w).shape, 1, r.dtype), div(a, length))
        sine = select(none, zero, div(b, length))
        new = add(mul(cosine, row), mul(sine, w))
        return sub(mul(cosine, w), mul(sine, row)), new

    rows = scan(step, w_vector, (iota(np.int32, n), transpose(r_matrix, order)))[1]
    back = (*range(1, ndim - 1), 0, ndim - 1)
    return transpose(rows, back)


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Returns alpha a aᵀ + beta c.

    Args:
      a_matrix: f32 or f64[..., n, m].
      c_matrix: of the same dtype[..., n, n], symmetric.
      alpha: a number.
      beta: a number.
      symmetrize_output: whether the upper part of the result is made the lower one's
        image; without it the result is as symmetric as `c_matrix`.

    Returns:
      An array of the type of `c_matrix`.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the dtypes differ or are not of these.

    Example:
      >>> symmetric_product(np.float32([[1.0, 2.0]]), np.float32([[1.0]]), beta=3.0)
      Array([[8.]], dtype=float32)

    Source: BLAS `syrk`.
    """
    name = "symmetric_product"
    a, c = typeof(a_matrix), typeof(c_matrix)
    require_matrices(name, a)
    _require_real(name, a_matrix)
    if c.dtype != a.dtype:
        raise DtypeError(f"{name}: dtypes must be the same, got {a} and {c}")
    shape = (*a.shape[:-1], a.shape[-2])
    if c.shape != shape:
        raise ShapeError(f"{name}: expected c_matrix {shape} for {a}, got {c}")
    out = mul(matmul(a_matrix, swapped(a_matrix)), arith.constant(alpha, a.dtype))
    out = add(out, mul(c_matrix, arith.constant(beta, a.dtype)))
    if symmetrize_output:
        out = add(lower_part(out), swapped(lower_part(out, strict=True)))
    return out
