"""Sparse arrays and their solvers: the names of `scipy.sparse`.

The arrays are those of `fxflow.sparse`.
"""

# fmt: off
from fxflow._names import answer as _answer
from fxflow.scipy.sparse import csgraph, linalg
from fxflow.sparse import (
    block_array, block_diag, bsr_array, coo_array, csc_array, csr_array, dia_array,
    diags_array, expand_dims, eye_array, find, hstack, issparse, kron, kronsum,
    load_npz, permute_dims, random_array, save_npz, swapaxes, tril, triu, vstack,
)

__all__ = [
    "csgraph", "linalg", "block_array", "block_diag", "bsr_array", "coo_array",
    "csc_array", "csr_array", "dia_array", "diags_array", "expand_dims", "eye_array",
    "find", "hstack", "issparse", "kron", "kronsum", "load_npz", "permute_dims",
    "random_array", "save_npz", "swapaxes", "tril", "triu", "vstack",
]
# fmt: on

_answer(globals(), __all__)
