"""SciPy's sparse arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.interchange import is_scipy, scipy_array, scipy_parts, scipy_sparse


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "dia"])
def test_there_and_back(name: str) -> None:
    array = scipy.sparse.random_array((4, 6), density=0.4, rng=0).asformat(name)
    pattern, values = scipy_parts(array)
    assert pattern.format == name and values is array.data
    again = scipy_array(pattern, values)
    assert again.format == name
    np.testing.assert_array_equal(again.toarray(), array.toarray())


def test_other_objects() -> None:
    assert is_scipy(scipy.sparse.lil_array((2, 2))) and not is_scipy(np.ones(2))
    assert scipy_parts(scipy.sparse.dok_array((2, 2)))[0].format == "csr"
    assert scipy_sparse("test") is scipy.sparse
    with pytest.raises(ArgumentError, match="got 3"):
        scipy_parts(3)
    with pytest.raises(ShapeError, match="1 axes"):
        scipy_parts(scipy.sparse.coo_array(np.ones(3)))
