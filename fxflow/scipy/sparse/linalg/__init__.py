"""Linear systems and eigenvalues of sparse arrays and operators.

A matrix is dense or sparse, a `LinearOperator`, or, where it says so, a function.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.sparse.linalg.direct import (
    SuperLU, factorized, inv, spilu, splu, spsolve, spsolve_triangular,
)
from fxflow.scipy.sparse.linalg.eigen import eigsh, svds
from fxflow.scipy.sparse.linalg.interface import LinearOperator, aslinearoperator
from fxflow.scipy.sparse.linalg.iterative import bicgstab, cg, gmres
from fxflow.scipy.sparse.linalg.krylov import LeastSquares, lsqr, minres
from fxflow.scipy.sparse.linalg.norms import norm

__all__ = [
    "LeastSquares", "LinearOperator", "SuperLU", "aslinearoperator", "bicgstab", "cg",
    "eigsh", "factorized", "gmres", "inv", "lsqr", "minres", "norm", "spilu", "splu",
    "spsolve", "spsolve_triangular", "svds",
]
# fmt: on

_public(globals(), __all__)
