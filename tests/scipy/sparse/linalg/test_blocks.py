"""LOBPCG and Arnoldi against dense eigenvalues and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.linalg import LinearOperator, eigs, lobpcg

RNG = np.random.default_rng(0)
N = 30
GENERAL = np.diag(np.arange(1.0, N + 1)) + RNG.normal(size=(N, N)) * (
    RNG.random((N, N)) < 0.1
)
SYMMETRIC = (GENERAL + GENERAL.T) / 2
X = RNG.normal(size=(N, 2))


def wide(x: Any) -> Any:
    return fnp.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


@pytest.mark.parametrize(
    ("matrix", "options"),
    [
        (GENERAL, {"which": "LM"}),
        pytest.param(GENERAL, {"which": "SR"}, marks=pytest.mark.slow),
        pytest.param(GENERAL, {"sigma": 11.3}, marks=pytest.mark.slow),
        pytest.param(RNG.normal(size=(N, N)), {"which": "LI"}, marks=pytest.mark.slow),
        (RNG.normal(size=(N, N)) + 1j * RNG.normal(size=(N, N)), {"which": "LR"}),
    ],
)
def test_eigenvalues_of_general_maps(matrix: Any, options: dict[str, Any]) -> None:
    kind = "complex128" if np.iscomplexobj(matrix) else "float64"
    A = sparse.csr_array(matrix, dtype=kind)
    values, vectors = fxflow.jit(lambda a: eigs(a, 2, **options))(A)
    want = scipy.sparse.linalg.eigs(matrix, 2, return_eigenvectors=False, **options)
    got = np.sort_complex(np.round(np.asarray(values), 9))
    np.testing.assert_allclose(got, np.sort_complex(np.round(want, 9)), atol=3e-9)
    images = matrix @ np.asarray(vectors)
    np.testing.assert_allclose(images, np.asarray(vectors) * values, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)


def test_generalized_eigenvalues_and_operators() -> None:
    M = np.diag(np.linspace(1, 3, N))
    operator = LinearOperator((N, N), lambda x: wide(GENERAL) @ x, dtype="float64")
    held = sparse.csc_array(M, dtype="float64")
    values = eigs(operator, 2, M=held, return_eigenvectors=False)
    dense = scipy.linalg.eigvals(GENERAL, M)
    want = dense[np.argsort(-abs(dense))[:2]]
    np.testing.assert_allclose(values, want, rtol=1e-8)


def test_derivative_of_a_general_eigenvalue() -> None:
    def loss(a: Any) -> Any:
        return eigs(a, 1, ncv=20, return_eigenvectors=False)[0].real

    slope = fxflow.grad(loss)(wide(GENERAL))
    values, left, right = scipy.linalg.eig(GENERAL, left=True)
    at = np.argmax(abs(values))
    y, x = np.conj(left[:, at]), right[:, at]
    np.testing.assert_allclose(slope, (np.outer(y, x) / (y @ x)).real, atol=1e-9)


@pytest.mark.parametrize("largest", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_blocks(largest: bool) -> None:
    A = sparse.csr_array(SYMMETRIC, dtype="float64")
    dense = np.linalg.eigvalsh(SYMMETRIC)
    want = dense[::-1][:2] if largest else dense[:2]

    def run(a: Any, x: Any) -> Any:
        return lobpcg(a, x, maxiter=80, tol=1e-9, largest=largest)

    values, vectors = fxflow.jit(run)(A, wide(X))
    np.testing.assert_allclose(values, want, rtol=1e-10)
    vectors = np.asarray(vectors)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-9)
    slope = fxflow.grad(lambda a: run(a, wide(X))[0][0])(wide(SYMMETRIC))
    np.testing.assert_allclose(slope, np.outer(vectors[:, 0], vectors[:, 0]), atol=1e-6)


def test_blocks_with_metric_preconditioner_constraints_and_histories() -> None:
    metric = np.diag(np.linspace(1, 2, N))
    inverse = wide(np.diag(1 / np.diag(SYMMETRIC)))
    dense, basis = scipy.linalg.eigh(SYMMETRIC, metric)
    values, vectors, seen, rests = lobpcg(
        wide(SYMMETRIC),
        X,
        B=wide(metric),
        M=lambda x: inverse @ x,
        Y=wide(basis[:, :1]),
        tol=1e-9,
        maxiter=60,
        largest=False,
        retLambdaHistory=True,
        retResidualNormsHistory=True,
    )
    np.testing.assert_allclose(values, dense[1:3], rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ metric @ vectors, np.eye(2), atol=1e-9)
    assert seen.shape == rests.shape == (61, 2)
    last = int(np.isfinite(seen[:, 0]).sum()) - 1
    np.testing.assert_allclose(seen[last], values, rtol=1e-12)
    assert np.max(rests[last]) <= 1e-9 < np.max(rests[last - 1])


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="which"):
        eigs(fnp.eye(9), 2, which="LA")
    with pytest.raises(ArgumentError, match="k must be"):
        eigs(fnp.eye(5), 4)
    with pytest.raises(ArgumentError, match="ncv must be"):
        eigs(fnp.eye(9), 2, ncv=3)
    with pytest.raises(ShapeError, match="square"):
        eigs(fnp.ones((4, 9)), 2)
    with pytest.raises(ArgumentError, match="OPinv"):
        eigs(LinearOperator((9, 9), lambda x: x), 2, sigma=1.0)
    with pytest.raises(ShapeError, match="3 k <= n"):
        lobpcg(fnp.eye(5), fnp.ones((5, 2)))
    with pytest.raises(ShapeError, match="Y must be"):
        lobpcg(fnp.eye(9), fnp.ones((9, 2)), Y=fnp.ones(9))


def test_blocks_stay_when_they_have_converged() -> None:
    # One pair converges long before the other one, and then both have.
    values = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 4.2, 4.29, 19.6])
    X = fnp.asarray(RNG.normal(size=(10, 2)), "float64")
    A = fnp.asarray(np.diag(values), "float64")
    got, vectors = lobpcg(A, X, tol=1e-30, maxiter=300)
    np.testing.assert_allclose(got, [19.6, 4.29], rtol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-10)
