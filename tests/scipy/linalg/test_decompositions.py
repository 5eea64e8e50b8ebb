"""Decompositions against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
H = (Z @ Z.conj().T + np.eye(4)).astype(np.complex64)
S = (A @ A.T + np.eye(4)).astype(np.float32)
B = RNG.normal(size=(4, 3)).astype(np.float32)


def test_lu() -> None:
    for a in (A, Z, A[:, :2], A[:2]):
        assert same(want.lu(a), linalg.lu(a), 1e-4)
        assert same(want.lu(a, permute_l=True), linalg.lu(a, permute_l=True), 1e-4)
    for a in (A, Z):
        factor = linalg.lu_factor(a)
        assert same(want.lu_factor(a), factor, 1e-4)
        for trans in (0, 1, 2):
            expected = want.lu_solve(want.lu_factor(a), B.astype(a.dtype), trans)
            assert same(expected, linalg.lu_solve(factor, B, trans), 1e-3)
    got = fxflow.vmap(linalg.lu)(np.stack([A, S]))
    assert same(want.lu(S), [g[1] for g in got], 1e-4)


def test_numpy_names() -> None:
    tall = A[:, :2]
    for mode in ("full", "economic"):
        q, r = linalg.qr(tall, mode=mode)
        assert same(tall, q @ r, 1e-4) and q.shape == want.qr(tall, mode=mode)[0].shape
    assert linalg.qr(tall, mode="r")[0].shape == (4, 2)
    assert same(want.svdvals(tall), linalg.svd(tall, compute_uv=False), 1e-4)
    assert len(linalg.svd(tall)) == 3
    for lower in (False, True):
        half = np.tril(H) if lower else np.triu(H)
        values, vectors = linalg.eigh(half, lower=lower)
        assert same(want.eigvalsh(H), values, 1e-3)
        assert same(H @ np.asarray(vectors), vectors * values, 1e-3)
        values, vectors = linalg.eigh(half, S, lower=lower)
        assert same(want.eigvalsh(H, S), values, 1e-3)
        assert same(H @ np.asarray(vectors), S @ np.asarray(vectors) * values, 1e-2)
    with pytest.raises(ArgumentError, match="mode must be"):
        linalg.qr(A, mode="raw")


@pytest.mark.parametrize("mode", ["full", "economic", "r"])
def test_qr_with_exchanged_columns(mode: str) -> None:
    for a in (A, Z, A[:, :2], A[:2]):
        got = linalg.qr(a, mode=mode, pivoting=True)
        assert same(want.qr(a, mode=mode, pivoting=True), got, 1e-4)


@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_eigh_types(type, lower) -> None:
    half = np.tril(S) if lower else np.triu(S)
    b = (A @ A.T + 2 * np.eye(len(A))).astype(np.float32)
    values, vectors = linalg.eigh(half, b, lower, type=type)
    expected, directions = want.eigh(half, b, lower=lower, type=type)
    assert same(expected, values, 1e-3)
    assert same(np.abs(directions), np.abs(np.asarray(vectors)), 1e-3)
    only = linalg.eigh(half, b, lower, True, type=type, eigvals=(1, 2))
    assert same(expected[1:3], only, 1e-3)


def test_eigh_of_some() -> None:
    values, vectors = linalg.eigh(S)
    some = linalg.eigh(S, eigvals=(1, 2), overwrite_b=True, turbo=False)
    assert same(values[1:3], some[0], 1e-6)
    assert same(vectors[:, 1:3], some[1], 1e-6)
    assert same(some[0], linalg.eigh(S, subset_by_index=[1, 2])[0], 1e-6)
    # As JAX orders its arguments.
    args = (S, None, True, True, False, False, True, (0, 0), 1, True)
    assert same(values[:1], linalg.eigh(*args), 1e-6)
    for bad in ((2, 1), (0, len(S)), (-1, 1), (1,), 3):
        with pytest.raises(ArgumentError, match="first and a last index"):
            linalg.eigh(S, eigvals=bad)
    with pytest.raises(ArgumentError, match="not both"):
        linalg.eigh(S, eigvals=(0, 1), subset_by_index=(0, 1))
    with pytest.raises(ArgumentError, match="type must be"):
        linalg.eigh(S, type=4)


def test_svd_drivers() -> None:
    for driver in ("gesdd", "gesvd"):
        found = linalg.svd(A, compute_uv=False, lapack_driver=driver)
        assert same(want.svdvals(A), found, 1e-3)
    with pytest.raises(ArgumentError, match="lapack_driver"):
        linalg.svd(A, lapack_driver="other")


def test_rows_of_lu_and_intervals_of_eigenvalues() -> None:
    for shape in ((4, 4), (5, 3), (3, 5), (2, 3, 3)):
        a = RNG.normal(size=shape)
        p, lower, upper = linalg.lu(a, p_indices=True)
        assert p.dtype == np.int32
        found = np.take_along_axis(np.asarray(lower), np.asarray(p)[..., None], -2)
        np.testing.assert_allclose(found @ np.asarray(upper), a, 1e-4, 1e-5)
        np.testing.assert_array_equal(p, want.lu(a, p_indices=True)[0])
    for call in (linalg.eigh, linalg.eigvalsh):
        with pytest.raises(ArgumentError, match="subset_by_index"):
            call(np.eye(3), subset_by_value=(0, 1))
    with pytest.raises(ArgumentError, match="ordqz"):
        linalg.schur(np.eye(3), sort="lhp")
