"""Linear algebra: `fnp.linalg`. Matrices are the last two axes, the others are batch.

16-bit floats are computed and returned in 32 bits.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg.decompositions import (
    EighResult, EigResult, QRResult, SVDResult, cholesky, eig, eigh, eigvals, eigvalsh,
    qr, svd, svdvals,
)
from fxflow.numpy.linalg.determinants import SlogdetResult, det, slogdet
from fxflow.numpy.linalg.products import (
    cross, diagonal, matrix_power, multi_dot, outer, trace,
)
from fxflow.numpy.linalg.properties import cond, matrix_rank
from fxflow.numpy.linalg.solving import inv, lstsq, pinv, solve, tensorinv, tensorsolve
from fxflow.numpy.norms import matrix_norm, norm, vector_norm
from fxflow.numpy.products import matmul, tensordot, vecdot

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]
# fmt: on

_public(globals(), __all__)
