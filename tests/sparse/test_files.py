"""Files of sparse arrays: SciPy reads ours, and the reverse."""

import io

import numpy as np
import pytest
import scipy.sparse

from fxflow import sparse
from fxflow.errors import ArgumentError

DENSE = np.array([[0.0, 1, 0, 2], [3, 0, 0, 0], [0, 4, 0, 5]])


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr", "dia"])
def test_files(format: str) -> None:
    array = sparse.csr_array(DENSE, dtype="float64").asformat(format)
    for compressed in (True, False):
        file = io.BytesIO()
        sparse.save_npz(file, array, compressed)
        file.seek(0)
        np.testing.assert_array_equal(scipy.sparse.load_npz(file).toarray(), DENSE)
        file.seek(0)
        found = sparse.load_npz(file)
        assert found.format == format and found.dtype == np.float64
        assert found.pattern is array.pattern
        np.testing.assert_array_equal(found.values, array.values)
    with pytest.raises(ArgumentError, match="sparse array"):
        sparse.save_npz(io.BytesIO(), DENSE)
    unsafe = io.BytesIO()
    np.savez(unsafe, format=np.array([object()]), data=np.ones(1))
    unsafe.seek(0)
    with pytest.raises(ValueError, match="allow_pickle"):
        sparse.load_npz(unsafe)


def test_files_of_vectors() -> None:
    file = io.BytesIO()
    vector = sparse.coo_array(DENSE[0], dtype="float64")
    sparse.save_npz(file, vector)
    file.seek(0)
    assert scipy.sparse.load_npz(file).shape == (4,)
    file.seek(0)
    found = sparse.load_npz(file)
    assert found.shape == (4,) and found.dtype == np.float64
    np.testing.assert_array_equal(found.todense(), DENSE[0])
