"""`jax.experimental.sparse.linalg`: solvers of `fxflow.scipy.sparse.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.core.ir.trace import Tracer
from fxflow.scipy.sparse import linalg as solvers
from fxflow.sparse import csr_array


def spsolve(
    data: Any,
    indices: Any,
    indptr: Any,
    b: Any,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Any:
    """Solves A x = b for compressed rows, whose indices must not be traced."""
    if isinstance(indices, Tracer) or isinstance(indptr, Tracer):
        raise NotImplementedError(
            "spsolve: fxflow factors for indices that are known when tracing: close "
            "over them, or use fxflow.scipy.sparse.linalg.spsolve"
        )
    n = fnp.shape(b)[0]
    parts = (data, np.asarray(indices), np.asarray(indptr))
    return solvers.spsolve(csr_array(parts, shape=(n, n)), b)


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
