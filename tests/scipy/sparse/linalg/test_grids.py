"""Laplacians of grids beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg import LaplacianNd

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "periodic"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1, 4), (3, 2, 4)])
def test_grids_are_those_of_scipy(shape: tuple[int, ...], boundary: str) -> None:
    with fxflow.config.override(x64=True):
        ours = LaplacianNd(shape, boundary_conditions=boundary)
        theirs = scipy.sparse.linalg.LaplacianNd(shape, boundary_conditions=boundary)
        matrix = theirs.toarray()
        if 1 in shape and boundary != "dirichlet":
            # SciPy's matrix is not that of its products and eigenvalues.
            theirs = scipy.sparse.linalg.LaplacianNd(
                [n for n in shape if n > 1], boundary_conditions=boundary
            )
            matrix = theirs.toarray()
        np.testing.assert_array_equal(ours.toarray(), matrix)
        assert ours.tosparse().dtype == np.int8 and ours.shape == matrix.shape
        x = RNG.normal(size=(len(matrix), 2))
        np.testing.assert_allclose(ours @ x, matrix @ x, atol=1e-12)
        np.testing.assert_allclose(ours.H @ x[:, 0], matrix @ x[:, 0], atol=1e-12)
        np.testing.assert_allclose(
            ours.eigenvalues(), np.linalg.eigvalsh(matrix.astype(float)), atol=1e-12
        )
        for m in (None, 2):
            values, vectors = ours.eigenvalues(m), ours.eigenvectors(m)
            np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
            unit = np.eye(len(values))
            np.testing.assert_allclose(vectors.T @ vectors, unit, atol=1e-12)


def test_products_are_traced_and_refused() -> None:
    grid = LaplacianNd((3, 3))
    slope = fxflow.jit(fxflow.grad(lambda x: x @ (grid @ x) / 2))(fnp.arange(9.0))
    np.testing.assert_allclose(slope, grid.toarray() @ np.arange(9))
    with pytest.raises(ArgumentError, match="boundary_conditions must be one of"):
        LaplacianNd((3,), boundary_conditions="open")
    with pytest.raises(ArgumentError, match="grid_shape must be at least 1"):
        LaplacianNd((3, 0))
    with pytest.raises(ArgumentError, match="m must be at least 1"):
        grid.eigenvalues(0)
