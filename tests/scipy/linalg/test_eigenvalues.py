"""Eigenvalues of pairs and bands, RQ, bandwidths, against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(27)
A, B = RNG.normal(size=(2, 4, 4))
BAND = np.array([[0, 1j, 2], [4, 5, 6]])


def test_eigenvectors_of_pairs_on_both_sides() -> None:
    with fxflow.config.override(x64=True):
        w, left, right = (np.asarray(x) for x in linalg.eig(A, B, left=True))
        np.testing.assert_allclose(A @ right, B @ right * w, atol=1e-11)
        np.testing.assert_allclose(A.T @ left, B.T @ left * w.conj(), atol=1e-11)
        np.testing.assert_allclose(np.linalg.norm(left, axis=0), 1)
        alone = linalg.eigvals(A, B)
        np.testing.assert_allclose(sorted(abs(np.asarray(alone))), sorted(abs(w)))
        assert linalg.eig(A, right=False).shape == (4,)
    with pytest.raises(ArgumentError, match="homogeneous"):
        linalg.eigvals(A, B, homogeneous_eigvals=True)


@pytest.mark.parametrize("lower", [True, False])
def test_eigenvalues_of_bands(lower: bool) -> None:
    band = np.array([[4, 5, 6], [-1j, 2, 0]]) if lower else BAND
    given = {"lower": lower, "select": "i", "select_range": (1, 2)}
    got = linalg.eigvals_banded(band, **given)
    np.testing.assert_allclose(got, scipy.linalg.eigvals_banded(band, **given), 1e-5)
    values, vectors = (np.asarray(x) for x in linalg.eig_banded(BAND))
    full = np.array([[4, 1j, 0], [-1j, 5, 2], [0, 2, 6]])
    np.testing.assert_allclose(full @ vectors, vectors * values, atol=1e-5)
    with pytest.raises(ArgumentError, match="select"):
        linalg.eig_banded(BAND, select="v")


def test_faces_of_other_functions() -> None:
    square = A @ A.T
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(
            linalg.eigvalsh(square, subset_by_index=(0, 1)),
            scipy.linalg.eigvalsh(square, subset_by_index=(0, 1)),
            1e-9,
        )
        np.testing.assert_allclose(linalg.svdvals(A), scipy.linalg.svdvals(A))
        d, e = np.arange(4.0), np.ones(3)
        np.testing.assert_allclose(
            linalg.eigvalsh_tridiagonal(d, e), scipy.linalg.eigvalsh_tridiagonal(d, e)
        )


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
@pytest.mark.parametrize("mode", ["full", "economic", "r"])
def test_rq(shape: Any, mode: str) -> None:
    a = RNG.normal(size=shape)
    with fxflow.config.override(x64=True):
        got, want = linalg.rq(a, mode=mode), scipy.linalg.rq(a, mode=mode)
    if mode == "r":
        np.testing.assert_allclose(abs(np.asarray(got)), abs(want), atol=1e-12)
        return
    r, q = (np.asarray(x) for x in got)
    assert r.shape == want[0].shape and q.shape == want[1].shape
    np.testing.assert_allclose(r @ q, a, atol=1e-12)
    np.testing.assert_allclose(abs(r), abs(want[0]), atol=1e-12)


def test_bandwidths() -> None:
    a = np.zeros((4, 5))
    a[2, 1] = a[0, 3] = 1
    assert tuple(map(int, linalg.bandwidth(a))) == scipy.linalg.bandwidth(a) == (1, 3)
    with pytest.raises(ShapeError, match="matrices"):
        linalg.bandwidth(np.ones(3))


def test_symmetry_of_matrices() -> None:
    a = np.array([[1.0, 2.0], [2.0 + 1e-6, 3.0]])
    assert not bool(linalg.issymmetric(a))
    assert bool(linalg.issymmetric(a, atol=1e-5))
    assert bool(linalg.issymmetric(a, rtol=1e-5))
    h = np.array([[1, 2j], [-2j, 3]])
    stacked = np.stack([h, h.T, h * 1j, np.full((2, 2), np.nan)])
    got = np.asarray(linalg.ishermitian(stacked))
    np.testing.assert_array_equal(got, [True, True, False, False])
    with pytest.raises(ShapeError, match="issymmetric: takes square"):
        linalg.issymmetric(np.ones((2, 3)))
