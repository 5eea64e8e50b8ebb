"""Files of sparse arrays, in SciPy's format."""

from __future__ import annotations

from typing import Any

from fxflow.errors import ArgumentError
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.interchange import scipy_sparse
from fxflow.sparse.vector import SparseVector


def save_npz(file: Any, matrix: Any, compressed: bool = True) -> None:
    """Writes a sparse array to a file, in SciPy's format, without pickle.

    Args:
      file: a path, or a file that is open for binary writing.
      matrix: sparse array whose values are known.
      compressed: whether the file is compressed.

    Raises:
      ArgumentError: `matrix` is not a sparse array.
      ConcretizationError: its values are traced.
      ImportError: SciPy is not installed.

    Example:
      >>> import io
      >>> file = io.BytesIO()
      >>> from fxflow import sparse
      >>> save_npz(file, sparse.eye_array(3, format="csr"))
      >>> _ = file.seek(0)
      >>> load_npz(file)
      csr_array(f32[3,3], nnz=3)

    Source: `scipy.sparse.save_npz`.
    """
    if not isinstance(matrix, SparseArray | SparseVector):
        raise ArgumentError(f"save_npz: matrix must be a sparse array, got {matrix!r}")
    scipy_sparse("save_npz").save_npz(file, matrix.to_scipy(), compressed)


def load_npz(file: Any) -> Any:
    """Reads a sparse array from a file that `save_npz`, or SciPy's, wrote.

    Nothing in the file is run: a pickle in it is refused.

    Args:
      file: a path, or a file that is open for binary reading.

    Returns:
      A sparse array of the same format and dtype.

    Raises:
      ImportError: SciPy is not installed.
      ValueError: the file is not of this format.

    Example:
      >>> import io, scipy.sparse
      >>> file = io.BytesIO()
      >>> scipy.sparse.save_npz(file, scipy.sparse.eye_array(2, dtype="float64"))
      >>> _ = file.seek(0)
      >>> load_npz(file)
      dia_array(f64[2,2], nnz=2)

    Source: `scipy.sparse.load_npz`.
    """
    found = scipy_sparse("load_npz").load_npz(file)
    return from_scipy(found, found.dtype)
