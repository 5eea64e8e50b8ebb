"""Eigenvalues, with derivatives, against dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.linalg import LinearOperator, eigsh

RNG = np.random.default_rng(0)
N = 25
DENSE = RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.3)
DENSE = DENSE + DENSE.T
A = sparse.csr_array(DENSE, dtype="float64")


@pytest.mark.parametrize(
    "which",
    [
        "LM",
        *(pytest.param(w, marks=pytest.mark.slow) for w in ("SM", "LA", "SA", "BE")),
    ],
)
def test_values_are_those_of_scipy(which: str) -> None:
    want = scipy.sparse.linalg.eigsh(A.to_scipy(), 3, which=which)[0]
    values, vectors = eigsh(A, 3, which=which)
    np.testing.assert_allclose(values, np.sort(want), atol=1e-10)
    np.testing.assert_allclose(DENSE @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    assert (np.diff(values) >= 0).all()


@pytest.mark.slow
def test_values_near_a_number_and_of_pairs_of_matrices() -> None:
    want = scipy.sparse.linalg.eigsh(A.to_scipy().tocsc(), 3, sigma=0.1)[0]
    got = eigsh(A, 3, sigma=0.1, return_eigenvectors=False)
    np.testing.assert_allclose(got, np.sort(want), atol=1e-9)
    mass = sparse.diags_array(fnp.asarray(1 + RNG.random(N), "float64"), format="csc")
    whole = scipy.linalg.eigh(DENSE, mass.todense(), eigvals_only=True)
    values, vectors = eigsh(A, 3, M=mass, which="LA")
    np.testing.assert_allclose(values, whole[-3:], rtol=1e-9)
    inverse = lambda v: v / mass.diagonal()
    values, _ = eigsh(A, 3, M=mass, which="LA", Minv=inverse)
    np.testing.assert_allclose(values, whole[-3:], rtol=1e-9)
    norms = np.einsum("ni,n,ni->i", vectors, mass.diagonal(), vectors)
    np.testing.assert_allclose(norms, 1, rtol=1e-9)
    near = whole[np.argsort(abs(whole - 0.1))[:3]]
    np.testing.assert_allclose(eigsh(A, 3, mass, 0.1)[0], np.sort(near), rtol=1e-8)


@pytest.mark.slow
def test_gradients_of_values_and_vectors() -> None:
    c = fnp.asarray(RNG.normal(size=N), "float64")

    def loss(v: Any) -> Any:
        values, vectors = eigsh(sparse.SparseArray(A.pattern, v), 2, which="LA")
        return fnp.sum(values**2) + fnp.sum((vectors.T @ c) ** 4)

    def dense_loss(v: Any) -> Any:
        full = fnp.zeros((N, N), "float64").at[A.coords].set(v)
        values, vectors = fnp.linalg.eigh((full + full.T) / 2)
        return fnp.sum(values[-2:] ** 2) + fnp.sum((vectors[:, -2:].T @ c) ** 4)

    got = sparse.SparseArray(A.pattern, fxflow.jit(fxflow.grad(loss))(A.values))
    want = sparse.SparseArray(A.pattern, fxflow.grad(dense_loss)(A.values))
    # The map is taken as symmetric: only symmetric changes count.
    np.testing.assert_allclose(
        (got + got.T).todense(), (want + want.T).todense(), atol=1e-8
    )


@pytest.mark.slow
def test_second_derivative_of_a_value() -> None:
    direction = sparse.csr_array(DENSE**2, dtype="float64")

    def value(t: Any) -> Any:
        return eigsh(A + direction * t, 1, which="LA")[0][0]

    def dense(t: Any) -> Any:
        full = fnp.asarray(DENSE, "float64") + t * fnp.asarray(DENSE**2, "float64")
        return fnp.linalg.eigh(full)[0][-1]

    zero = fnp.zeros((), "float64")
    got = fxflow.grad(fxflow.grad(value))(zero)
    np.testing.assert_allclose(got, fxflow.grad(fxflow.grad(dense))(zero), rtol=1e-6)


@pytest.mark.slow
def test_hermitian_maps() -> None:
    z = DENSE + 1j * np.triu(DENSE, 1) - 1j * np.triu(DENSE, 1).T
    values, vectors = eigsh(sparse.csr_array(z, dtype="complex128"), 2, which="LA")
    np.testing.assert_allclose(values, np.linalg.eigvalsh(z)[-2:], rtol=1e-10)
    np.testing.assert_allclose(z @ vectors, vectors * values, atol=1e-9)


@pytest.mark.slow
def test_invariant_subspaces_and_float32() -> None:
    values = eigsh(sparse.eye_array(30), 3, return_eigenvectors=False)
    np.testing.assert_allclose(values, 1, rtol=1e-5)
    op = LinearOperator((40, 40), lambda x: fnp.arange(40.0) * x)
    np.testing.assert_allclose(eigsh(op, 2)[0], [38, 39], rtol=1e-5)


def test_values_that_do_not_converge_are_nan() -> None:
    op = sparse.diags_array(fnp.linspace(0, 1, 300), format="csr")
    assert np.isnan(eigsh(op, 2, ncv=5, maxiter=1)[0]).all()


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="k must be between 1 and 24"):
        eigsh(A, 25)
    with pytest.raises(ArgumentError, match="which must be one of"):
        eigsh(A, 2, which="LR")
    with pytest.raises(ArgumentError, match="ncv must be between"):
        eigsh(A, 3, ncv=3)
    with pytest.raises(ShapeError, match="A must be square"):
        eigsh(A[:3], 1)
    with pytest.raises(ArgumentError, match="OPinv"):
        eigsh(LinearOperator((9, 9), lambda x: x), 2, sigma=1.0)
