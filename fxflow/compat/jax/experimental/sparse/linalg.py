"""`jax.experimental.sparse.linalg`: solvers of `fxflow.scipy.sparse.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import ShapeDtypeStruct, lax, pure_callback
from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.sparse._bcsr import BCSR
from fxflow.core.ir.trace import Tracer
from fxflow.scipy.sparse import linalg as solvers
from fxflow.sparse import csr_array
from fxflow.sparse.interchange import scipy_sparse


def spsolve(
    data: Any,
    indices: Any,
    indptr: Any,
    b: Any,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Any:
    """Solves A x = b for compressed rows by SuperLU on the host."""
    if isinstance(indices, Tracer) or isinstance(indptr, Tracer):
        return _traced(*map(fnp.asarray, (data, indices, indptr, b)))
    n = fnp.shape(b)[0]
    parts = (data, np.asarray(indices), np.asarray(indptr))
    return solvers.spsolve(csr_array(parts, shape=(n, n)), b)


def _traced(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """Solves a system whose indices are traced: it is factored in each call."""
    n = b.shape[0]
    dtype = fnp.result_type(data, b)
    data, b = data.astype(dtype), b.astype(dtype)
    matrix = BCSR((data, indices, indptr), shape=(n, n)).to_bcoo()
    like = ShapeDtypeStruct(b.shape, dtype)

    def solver(trans: str) -> Any:
        def run(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
            parts = tuple(map(np.array, (data, indices, indptr)))
            sparse = scipy_sparse("spsolve")
            held = sparse.csr_array(parts, shape=(n, n)).tocsc()
            found = sparse.linalg.splu(held).solve(np.array(b), trans)
            return found.astype(dtype)

        def solve(_: Any, b: Any) -> Any:
            return pure_callback(
                run, like, data, indices, indptr, b, vmap_method="sequential"
            )

        return solve

    return lax.custom_linear_solve(lambda x: matrix @ x, b, solver("N"), solver("T"))


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: float | None = None) -> Any:
    """The largest eigenvalues of a symmetric, positive semidefinite map.

    They are found by Lanczos from the sum of the columns of `X`.

    Returns:
      The eigenvalues in descending order, vectors as columns, and 0.
    """
    X = fnp.asarray(X)
    n, k = X.shape

    def product(x: Any) -> Any:
        return A(x[:, None])[:, 0] if callable(A) else A @ x

    operator = solvers.LinearOperator((n, n), product, dtype=X.dtype)
    values, vectors = solvers.eigsh(
        operator, k, which="LA", v0=fnp.sum(X, 1), maxiter=m, tol=tol or 0
    )
    return values[::-1], vectors[:, ::-1], fnp.asarray(0)


__all__ = ["lobpcg_standard", "spsolve"]

listen(globals())
