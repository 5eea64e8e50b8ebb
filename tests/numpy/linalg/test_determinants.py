"""Determinants and their derivatives, of singular matrices too."""

import itertools
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy.linalg as L
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
G = RNG.normal(size=(4, 4))
MATRICES = {
    "regular": G,
    "zero": np.zeros((4, 4)),
    "rank 3": np.diag([0.0, 1, 2, 3]),
    "rank 3, turned": G @ np.diag([1.0, 1, 1, 0]) @ G.T,
    "rank 2": np.diag([0.0, 0, 2, 3]),
    "rank 2, turned": G[:, :2] @ G[:2],
    "rank 1": np.ones((4, 4)),
    "nilpotent": np.diag([1.0, 1, 1], 1),
    "identity": np.eye(4),
    "nearly singular": G @ np.diag([1, 1, 1, 1e-10]) @ G,
}


def cofactors(a: Any) -> Any:
    def minor(i: int, j: int) -> Any:
        return np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))

    n = len(a)
    return np.array(
        [[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)]
    )


def second(a: Any) -> Any:
    """Differences, which are exact: the determinant is linear in each entry."""
    n = len(a)
    out = np.zeros((n,) * 4)
    for i, j, k, m in itertools.product(range(n), repeat=4):
        if i == k or j == m:
            continue
        for s, t in itertools.product((-1, 1), repeat=2):
            moved = a.copy()
            moved[i, j] += s
            moved[k, m] += t
            out[i, j, k, m] += s * t * np.linalg.det(moved) / 4
    return out


@pytest.mark.parametrize("name", MATRICES)
def test_derivatives_are_cofactors(name: str) -> None:
    a = MATRICES[name]
    with fxflow.config.override(x64=True):
        slope = fxflow.grad(L.det)
        for f in (slope, fxflow.jit(slope), fxflow.jacfwd(L.det)):
            assert np.allclose(f(a), cofactors(a), 1e-12, 1e-12)
        many = fxflow.vmap(slope)(np.stack([a, a.T]))
        assert np.allclose(many[1], cofactors(a).T, 1e-12, 1e-12)
        for f in (fxflow.jit(fxflow.hessian(L.det)), fxflow.jacrev(slope)):
            assert np.allclose(f(a), second(a), 1e-12, 1e-12)


def test_derivatives_of_complex_matrices() -> None:
    c = G + 1j * RNG.normal(size=(4, 4))
    for a in (c, c[:, :3] @ c[:3]):
        with fxflow.config.override(x64=True):
            slope = fxflow.grad(L.det, holomorphic=True)
            assert np.allclose(slope(a), cofactors(a), 1e-12, 1e-12)
            bend = fxflow.jvp(slope, (a,), (c,))[1]
        h = 1e-6
        want = (cofactors(a + h * c) - cofactors(a - h * c)) / (2 * h)
        assert np.allclose(bend, want, 1e-7, 1e-7)


def test_many_matrices_of_which_some_are_singular() -> None:
    a = np.stack([G, MATRICES["rank 3"], MATRICES["zero"]])
    with fxflow.config.override(x64=True):
        got = fxflow.grad(lambda a: L.det(a).sum())(a)
    assert np.allclose(got, [cofactors(m) for m in a], 1e-12, 1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6])
def test_values_and_signs(n: int) -> None:
    m = RNG.normal(size=(2, n, n)).astype(np.float32)
    assert same(np.linalg.det(m), L.det(m), 1e-3)
    zero = np.zeros((2, n, n), np.float32)
    slope = fxflow.jvp(L.det, (zero,), (zero + 1,))[1]
    assert slope.tolist() == [float(n == 1)] * 2
    for method in ("lu", "qr"):
        assert same(np.linalg.slogdet(m), L.slogdet(m, method=method), 1e-3)
