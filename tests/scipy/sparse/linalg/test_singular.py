"""Singular values against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow import sparse
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg import svds

A = sparse.random_array((20, 12), density=0.5, rng=1, dtype="float64")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 9), (9, 20)])
def test_singular_values(shape: tuple[int, int]) -> None:
    a = sparse.random_array(shape, density=0.5, rng=1, dtype="float64")
    u, s, vt = svds(a, 3)
    left, want, right = np.linalg.svd(np.asarray(a.todense()))
    np.testing.assert_allclose(s[::-1], want[:3], rtol=1e-9)
    np.testing.assert_allclose((u * s) @ vt, (left[:, :3] * want[:3]) @ right[:3])
    small = svds(a, 2, which="SM", return_singular_vectors=False)
    np.testing.assert_allclose(small, want[::-1][:2], rtol=1e-6)


@pytest.mark.parametrize("which", [pytest.param("LM", marks=pytest.mark.slow), "SM"])
def test_solvers(which: str) -> None:
    values = np.linalg.svd(np.asarray(A.todense()), compute_uv=False)
    want = values[:2][::-1] if which == "LM" else values[::-1][:2]
    u, s, vt = svds(A, 2, which=which, solver="lobpcg", tol=1e-9)
    np.testing.assert_allclose(s, want, rtol=1e-8)
    np.testing.assert_allclose(A @ vt.T, u * s, atol=1e-6)


def test_vectors_that_are_asked_for() -> None:
    u, s, none = svds(A, 2, return_singular_vectors="u")
    assert none is None and u.shape == (20, 2) and s.shape == (2,)
    none, _, vt = svds(A, 2, return_singular_vectors="vh")
    assert none is None and vt.shape == (2, 12)


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="svds: k"):
        svds(A, 12)
    with pytest.raises(ArgumentError, match="svds: which"):
        svds(A, 2, which="LA")
    with pytest.raises(ArgumentError, match="svds: solver"):
        svds(A, 2, solver="propack")
    with pytest.raises(ArgumentError, match="return_singular_vectors"):
        svds(A, 2, return_singular_vectors="v")
