"""Linear algebra of SciPy: `fxflow.scipy.linalg`.

Arguments that only save memory or time in SciPy (`overwrite_a`, `check_finite`, …) are
accepted and have no effect. Matrices are the last two axes, the others are batch.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.numpy.linalg import norm
from fxflow.scipy.linalg.balancing import cdf2rdf, matrix_balance
from fxflow.scipy.linalg.control import (
    solve_continuous_are, solve_continuous_lyapunov, solve_discrete_are,
    solve_discrete_lyapunov, solve_lyapunov,
)
from fxflow.scipy.linalg.decompositions import eigh, lu, lu_factor, lu_solve, qr, svd
from fxflow.scipy.linalg.eigenvalues import (
    bandwidth, eig, eig_banded, eigvals, eigvals_banded, eigvalsh, eigvalsh_tridiagonal,
    ishermitian, issymmetric, rq, svdvals,
)
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
from fxflow.scipy.linalg.matrix_functions import (
    coshm, cosm, expm_cond, fractional_matrix_power, logm, signm, sinhm, sinm, tanhm,
    tanm,
)
from fxflow.scipy.linalg.patterned_matrices import (
    circulant, companion, convolution_matrix, fiedler, fiedler_companion, hankel,
    leslie,
)
from fxflow.scipy.linalg.pencils import cossin, ordqz, qz
from fxflow.scipy.linalg.qr_changes import qr_delete, qr_insert, qr_update
from fxflow.scipy.linalg.similarity import hessenberg, rsf2csf, schur
from fxflow.scipy.linalg.sketches import clarkson_woodruff_transform
from fxflow.scipy.linalg.solving import (
    cho_factor, cho_solve, cholesky, det, inv, solve, solve_triangular,
)
from fxflow.scipy.linalg.spaces import (
    khatri_rao, lstsq, null_space, orth, orthogonal_procrustes, pinv, pinvh,
    subspace_angles,
)
from fxflow.scipy.linalg.special_matrices import block_diag, diagsvd, toeplitz
from fxflow.scipy.linalg.spectral_functions import generalized_funm, spectral_projector
from fxflow.scipy.linalg.structured_solving import (
    cho_solve_banded, cholesky_banded, matmul_toeplitz, solve_banded, solve_circulant,
    solve_toeplitz, solveh_banded,
)
from fxflow.scipy.linalg.symmetric_factors import ldl

__all__ = [
    "bandwidth",
    "block_diag",
    "cdf2rdf",
    "cho_factor",
    "cho_solve",
    "cho_solve_banded",
    "cholesky",
    "cholesky_banded",
    "circulant",
    "clarkson_woodruff_transform",
    "companion",
    "convolution_matrix",
    "coshm",
    "cosm",
    "cossin",
    "det",
    "dft",
    "diagsvd",
    "eig",
    "eig_banded",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvals_banded",
    "eigvalsh",
    "eigvalsh_tridiagonal",
    "expm",
    "expm_cond",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "fractional_matrix_power",
    "funm",
    "generalized_funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "ishermitian",
    "issymmetric",
    "khatri_rao",
    "ldl",
    "leslie",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul_toeplitz",
    "matrix_balance",
    "norm",
    "null_space",
    "ordqz",
    "orth",
    "orthogonal_procrustes",
    "pascal",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "qr_delete",
    "qr_insert",
    "qr_multiply",
    "qr_update",
    "qz",
    "rq",
    "rsf2csf",
    "schur",
    "signm",
    "sinhm",
    "sinm",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "spectral_projector",
    "sqrtm",
    "subspace_angles",
    "svd",
    "svdvals",
    "tanhm",
    "tanm",
    "toeplitz",
]
# fmt: on

_public(globals(), __all__, lazy=("interpolative",))
