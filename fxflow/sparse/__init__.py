"""Sparse arrays: static patterns, and values that are traced and differentiated.

The names are those of `scipy.sparse`. A `SparseArray` is a pytree with one leaf, its
values; solvers are in `fxflow.scipy.sparse.linalg`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.construction import (
    block_array, block_diag, bsr_array, coo_array, csc_array, csr_array, dia_array,
    diags_array, expand_dims, eye_array, find, fromdense, hstack, issparse, kron,
    kronsum, permute_dims, random_array, swapaxes, tril, triu, vstack,
)
from fxflow.sparse.files import load_npz, save_npz
from fxflow.sparse.jacobians import jacobian_pattern
from fxflow.sparse.pattern import Pattern
from fxflow.sparse.sampling import sampled_matmul
from fxflow.sparse.vector import SparseVector

__all__ = [
    "SparseArray", "SparseVector", "Pattern",
    "coo_array", "csr_array", "csc_array", "bsr_array", "dia_array",
    "fromdense", "from_scipy", "issparse", "save_npz", "load_npz",
    "eye_array", "diags_array", "random_array",
    "kron", "kronsum", "block_array", "block_diag", "hstack", "vstack",
    "permute_dims", "expand_dims", "swapaxes", "tril", "triu", "find", "sampled_matmul",
    "jacobian_pattern",
]
# fmt: on

_public(globals(), __all__)
