"""Some singular values of sparse matrices and operators."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg.blocks import lobpcg
from fxflow.scipy.sparse.linalg.eigen import eigsh
from fxflow.scipy.sparse.linalg.interface import LinearOperator, Map, aslinearoperator


def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
) -> Any:
    """Returns some singular values and vectors.

    They are those of the smaller of Aᴴ A and A Aᴴ, so the error of small ones is
    that of their squares.

    Args:
      A: matrix, dense or sparse, or `LinearOperator`, of any shape.
      k: how many, fewer than rows and columns. Static.
      ncv: dimension of the subspace; see `eigsh`.
      tol: relative error of the squares; 0 is the precision of the dtype.
      which: "LM": the largest; "SM": the smallest.
      v0: vector to begin with, as long as the shorter side of `A`.
      maxiter: maximum number of restarts.
      return_singular_vectors: whether vectors are returned, too; "u" or "vh": these
        alone, None in place of the others.
      solver: "arpack": Lanczos, by `eigsh`; "lobpcg": by blocks, for which 3 k must not
        be more than the shorter side; `ncv` and `v0` have no effect then.

    Returns:
      u, (m, k); the singular values in ascending order, (k,); vᴴ, (k, n). Without
      vectors the values alone.

    Raises:
      ArgumentError: `k` or `which` does not fit.

    Special cases:
      nan in place of values that did not converge.

    Example:
      >>> from fxflow.sparse import diags_array
      >>> A = diags_array(fnp.arange(1.0, 31.0), format="csr")
      >>> svds(A, k=2, return_singular_vectors=False).round(3)
      Array([29., 30.], dtype=float32)

    Source: `scipy.sparse.linalg.svds`.
    """
    if which not in ("LM", "SM"):
        raise ArgumentError(f'svds: which must be "LM" or "SM", got {which!r}')
    if solver not in ("arpack", "lobpcg"):
        raise ArgumentError(
            f'svds: solver must be "arpack" or "lobpcg", got {solver!r}'
        )
    if return_singular_vectors not in (True, False, "u", "vh"):
        raise ArgumentError(
            'svds: return_singular_vectors must be True, False, "u" or "vh", got '
            f"{return_singular_vectors!r}"
        )
    operator = aslinearoperator(A)
    m, n = operator.shape
    if not 0 < k < min(m, n):
        raise ArgumentError(f"svds: k must be between 1 and {min(m, n) - 1}, got {k}")
    tall = m >= n

    def square(x: Any) -> Any:
        if tall:
            return operator.rmatvec(operator.matvec(x))
        return operator.matvec(operator.rmatvec(x))

    small = min(m, n)
    squared = LinearOperator((small, small), square, square, dtype=operator.dtype)
    if solver == "lobpcg":
        values, vectors = _by_blocks(squared, k, which == "LM", tol, maxiter)
    else:
        side = "LA" if which == "LM" else "SA"
        values, vectors = eigsh(
            squared, k, which=side, v0=v0, ncv=ncv, maxiter=maxiter, tol=tol
        )
    s = fnp.sqrt(fnp.maximum(values, 0))
    if return_singular_vectors is False:
        return s
    u, v = (None, vectors) if tall else (vectors, None)
    if u is None and return_singular_vectors != "vh":
        u = _left(operator.matmat, vectors, s)
    if v is None and return_singular_vectors != "u":
        v = _left(operator.rmatmat, vectors, s)
    u = None if return_singular_vectors == "vh" else u
    v = None if return_singular_vectors == "u" else v
    return u, s, None if v is None else fnp.conj(v.T)


def _left(product: Map, vectors: Any, s: Any) -> Array:
    found: Array = product(vectors) / fnp.where(s == 0, 1, s)
    return found


def _by_blocks(
    squared: LinearOperator, k: int, largest: bool, tol: float, maxiter: int | None
) -> tuple[Any, Any]:
    """Returns eigenvalues in ascending order, and vectors."""
    n = squared.shape[0]
    dtype = squared.dtype
    dtype = dtype if dtypes.is_inexact(dtype) else dtypes.default_float()
    X = random.normal(random.key(0), (n, k), dtype)
    steps = 10 * n if maxiter is None else maxiter
    values, vectors = lobpcg(
        squared, X, tol=tol or None, maxiter=steps, largest=largest
    )
    return (values[::-1], vectors[:, ::-1]) if largest else (values, vectors)
