"""Norms against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg import is_sptriangular, norm, spbandwidth

ARRAY = sparse.csr_array(np.array([[3.0, 0, -1], [0, 0, 2], [-4, 0, 0]], np.float32))


@pytest.mark.parametrize("ord", [None, "fro", 1, -1, np.inf, -np.inf])
def test_norms_of_arrays(ord: Any) -> None:
    want = scipy.sparse.linalg.norm(ARRAY.to_scipy(), ord)
    np.testing.assert_allclose(norm(ARRAY, ord), want, rtol=1e-6)


@pytest.mark.parametrize("ord", [None, 2, 1, 0, np.inf, -np.inf, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_norms_of_rows_and_columns(ord: Any, axis: int) -> None:
    want = np.linalg.norm(np.asarray(ARRAY.todense()), ord, axis)
    np.testing.assert_allclose(norm(ARRAY, ord, axis), want, rtol=1e-6)


def test_other_norms_are_refused() -> None:
    with pytest.raises(ArgumentError, match="one of fro"):
        norm(ARRAY, 2)
    with pytest.raises(ArgumentError, match="there is no norm -3"):
        norm(ARRAY, -3, 0)
    np.testing.assert_allclose(norm(fnp.eye(4)), 2)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dia", "bsr"])
def test_bands(format: str) -> None:
    dense = np.array([[1.0, 2, 0, 0], [0, 3, 0, 4], [0, 0, 5, 0]])
    A = sparse.csr_array(dense).asformat(format)
    assert spbandwidth(A) == (0, 2) and spbandwidth(A.T) == (2, 0)
    assert is_sptriangular(A) == (False, True)
    assert is_sptriangular(sparse.eye_array(3)) == (True, True)
    theirs = scipy.sparse.csr_array(dense)
    assert spbandwidth(theirs) == scipy.sparse.linalg.spbandwidth(theirs)
    assert spbandwidth(sparse.csr_array(np.zeros((3, 3)))) == (0, 0)
    with pytest.raises(ArgumentError, match="sparse array"):
        spbandwidth(dense)
