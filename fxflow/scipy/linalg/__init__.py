"""Linear algebra of SciPy: `fxflow.scipy.linalg`.

Arguments that only save memory or time in SciPy (`overwrite_a`, `check_finite`, …) are
accepted and have no effect. Matrices are the last two axes, the others are batch.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.numpy.linalg import norm
from fxflow.scipy.linalg.decompositions import eigh, lu, lu_factor, lu_solve, qr, svd
from fxflow.scipy.linalg.functions import expm, sqrtm
from fxflow.scipy.linalg.known_matrices import (
    dft, hadamard, helmert, hilbert, invhilbert, invpascal, pascal,
)
from fxflow.scipy.linalg.matrix_equations import (
    eigh_tridiagonal,
    expm_frechet,
    funm,
    polar,
    qr_multiply,
    solve_sylvester,
)
from fxflow.scipy.linalg.patterned_matrices import (
    circulant, companion, convolution_matrix, fiedler, fiedler_companion, hankel,
    leslie,
)
from fxflow.scipy.linalg.similarity import hessenberg, rsf2csf, schur
from fxflow.scipy.linalg.solving import (
    cho_factor, cho_solve, cholesky, det, inv, solve, solve_triangular,
)
from fxflow.scipy.linalg.special_matrices import block_diag, toeplitz

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "norm",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]
# fmt: on

_public(globals(), __all__)
