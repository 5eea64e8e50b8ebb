"""Decompositions and solvers of dense linear algebra, over leading batch axes."""

from fxflow.lax.linalg.eig import eig
from fxflow.lax.linalg.eigh import eigh
from fxflow.lax.linalg.lu import lu, lu_pivots_to_permutation
from fxflow.lax.linalg.qr import geqrf, householder_product, qr
from fxflow.lax.linalg.svd import svd
from fxflow.lax.linalg.triangular import cholesky, triangular_solve
from fxflow.lax.linalg.tridiagonal import tridiagonal_solve

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "qr",
    "svd",
    "triangular_solve",
    "tridiagonal_solve",
]
