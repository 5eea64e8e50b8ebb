"""Decompositions and solvers of dense linear algebra, over leading batch axes."""

from fxflow.core.boundary import public as _public
from fxflow.lax.linalg.eig import eig
from fxflow.lax.linalg.eigh import eigh
from fxflow.lax.linalg.hessenberg import hessenberg
from fxflow.lax.linalg.householder import geqp3, geqrf, householder_product, ormqr
from fxflow.lax.linalg.lu import lu, lu_pivots_to_permutation
from fxflow.lax.linalg.qr import qr
from fxflow.lax.linalg.schur import schur
from fxflow.lax.linalg.svd import svd
from fxflow.lax.linalg.triangular import cholesky, triangular_solve
from fxflow.lax.linalg.tridiagonal import tridiagonal, tridiagonal_solve
from fxflow.lax.linalg.updates import cholesky_update, symmetric_product

__all__ = [
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "geqp3",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]

_public(globals(), __all__)
