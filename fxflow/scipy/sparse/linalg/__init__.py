"""Linear systems and eigenvalues of sparse arrays and operators.

A matrix is dense or sparse, a `LinearOperator`, or, where it says so, a function.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.sparse.linalg.augmented import gcrotmk, lgmres
from fxflow.scipy.sparse.linalg.biorthogonal import bicg, cgs, qmr, tfqmr
from fxflow.scipy.sparse.linalg.blocks import eigs, lobpcg
from fxflow.scipy.sparse.linalg.direct import (
    SuperLU, factorized, inv, spilu, splu, spsolve, spsolve_triangular,
)
from fxflow.scipy.sparse.linalg.eigen import eigsh
from fxflow.scipy.sparse.linalg.grids import LaplacianNd
from fxflow.scipy.sparse.linalg.interface import LinearOperator, aslinearoperator
from fxflow.scipy.sparse.linalg.iterative import bicgstab, cg, gmres
from fxflow.scipy.sparse.linalg.krylov import LeastSquares, lsmr, lsqr, minres
from fxflow.scipy.sparse.linalg.krylov_functions import funm_multiply_krylov
from fxflow.scipy.sparse.linalg.exponential import (
    expm, expm_multiply, matrix_power, onenormest,
)
from fxflow.scipy.sparse.linalg.norms import is_sptriangular, norm, spbandwidth
from fxflow.scipy.sparse.linalg.singular import svds

__all__ = [
    "LaplacianNd", "LeastSquares", "LinearOperator", "SuperLU", "aslinearoperator",
    "bicg", "bicgstab", "cg", "cgs", "eigs", "eigsh", "expm", "expm_multiply",
    "factorized", "funm_multiply_krylov", "gcrotmk", "gmres", "inv",
    "is_sptriangular", "lgmres", "lobpcg", "lsmr", "lsqr", "matrix_power", "minres",
    "norm", "onenormest", "qmr", "spbandwidth", "spilu", "splu", "spsolve",
    "spsolve_triangular", "svds", "tfqmr",
]
# fmt: on

_public(globals(), __all__)
