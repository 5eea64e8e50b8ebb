"""SuperLU's factors: solutions, derivatives, and how often they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.sparse import linalg
from fxflow.scipy.sparse.linalg import direct

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(8, 8)) * (RNG.random((8, 8)) < 0.4) + 4 * np.eye(8)
DENSE = DENSE.astype(np.float32)
A = sparse.csr_array(DENSE)
B = RNG.normal(size=8).astype(np.float32)

SOLVERS = {
    "spsolve": linalg.spsolve,
    "splu": lambda a, b: linalg.splu(a).solve(b),
    "transposed": lambda a, b: linalg.splu(a.T).solve(b, "T"),
    "inv": lambda a, b: linalg.inv(a) @ b,
    "factorized": lambda a, b: linalg.factorized(a)(b),
    "gmres": lambda a, b: linalg.gmres(a, b, tol=1e-7)[0],
    "operator": lambda a, b: linalg.bicgstab(linalg.aslinearoperator(a), b, tol=1e-7)[
        0
    ],
}


@pytest.mark.parametrize(
    "name",
    [n if n == "spsolve" else pytest.param(n, marks=pytest.mark.slow) for n in SOLVERS],
)
def test_solutions_and_gradients(name: str) -> None:
    solve = SOLVERS[name]

    def loss(a: Any, b: Any) -> Any:
        return fnp.sum(solve(a, b) ** 2)

    def dense_loss(a: Any, b: Any) -> Any:
        return fnp.sum(fnp.linalg.solve(a, b) ** 2)

    want = np.linalg.solve(DENSE, B)
    np.testing.assert_allclose(solve(A, B), want, rtol=1e-3, atol=1e-4)
    got = fxflow.jit(fxflow.grad(loss, argnums=(0, 1)))(A, B)
    want = fxflow.grad(dense_loss, argnums=(0, 1))(fnp.asarray(DENSE), B)
    held = np.where(DENSE != 0, want[0], 0)
    np.testing.assert_allclose(got[0].todense(), held, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-3, atol=1e-3)


def test_a_gradient_factors_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(
        direct, "_factored", lambda *a, f=direct._factored: made.append(1) or f(*a)
    )
    direct.factors.clear()
    step = fxflow.jit(fxflow.value_and_grad(lambda a: linalg.spsolve(a, B).sum()))
    step(A)
    step(A)
    assert len(made) == len(direct.factors) == 1
    step(2 * A)
    assert len(made) == 2


def test_only_the_last_factors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_COUNT", 2)
    direct.factors.clear()
    for k in range(1, 5):
        linalg.spsolve(A * k, B)
    assert len(direct.factors) == 2
    monkeypatch.setattr(direct, "_NUMBERS", 1)
    linalg.spsolve(A * 9, B)
    assert len(direct.factors) == 1


def test_second_derivative_is_symmetric() -> None:
    def loss(v: Any) -> Any:
        return fnp.sum(linalg.spsolve(sparse.SparseArray(A.pattern, v), B) ** 2)

    hessian = np.asarray(fxflow.hessian(loss)(A.values))
    assert abs(hessian).max() > 1e-3
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-5)


def test_batches_and_matrices() -> None:
    values = fnp.stack([A.values, 2 * A.values])
    got = fxflow.vmap(lambda v, b: linalg.spsolve(sparse.SparseArray(A.pattern, v), b))(
        values, fnp.stack([B, B])
    )
    want = np.linalg.solve(DENSE, B)
    np.testing.assert_allclose(got, [want, want / 2], rtol=1e-4, atol=1e-5)
    wide = np.stack([B, B + 1], 1)
    np.testing.assert_allclose(
        linalg.spsolve(A, wide), np.linalg.solve(DENSE, wide), rtol=1e-3, atol=1e-5
    )


def test_dtypes() -> None:
    wide = sparse.csr_array(DENSE, dtype="float64")
    assert linalg.spsolve(wide, fnp.asarray(B, "float64")).dtype == np.float64
    z = linalg.spsolve(A * (1 + 2j), B)
    np.testing.assert_allclose(z, np.linalg.solve(DENSE * (1 + 2j), B), rtol=1e-3)
    lu = linalg.splu(A * (1 + 2j))
    adjoint = (DENSE * (1 + 2j)).conj().T
    np.testing.assert_allclose(lu.solve(B, "H"), np.linalg.solve(adjoint, B), rtol=1e-3)
    assert linalg.spsolve(sparse.csr_array(np.eye(2, dtype=int)), B[:2]).dtype == "f4"
    half = linalg.spsolve(A.astype("float16"), fnp.asarray(B, "float16"))
    assert half.dtype == np.float32


def test_singular_matrices_give_nan() -> None:
    singular = sparse.csr_array(np.array([[1.0, 1.0], [1.0, 1.0]]))
    assert np.isnan(linalg.spsolve(singular, fnp.ones(2))).all()
    with pytest.raises(ArgumentError, match="exactly singular"):
        _ = linalg.splu(singular).L


def test_factors() -> None:
    lu = linalg.splu(A, permc_spec="NATURAL", options={"SymmetricMode": False})
    left = (lu.L @ lu.U).todense()
    rows = np.zeros((8, 8))
    rows[lu.perm_r, np.arange(8)] = 1
    cols = np.zeros((8, 8))
    cols[np.arange(8), lu.perm_c] = 1
    np.testing.assert_allclose(rows.T @ left @ cols.T, DENSE, atol=1e-5)
    assert lu.shape == (8, 8) and lu.nnz >= A.nnz
    leaves, treedef = fxflow.tree.flatten(lu)
    np.testing.assert_allclose(
        treedef.unflatten(leaves).solve(B), np.linalg.solve(DENSE, B), rtol=1e-3
    )
    with pytest.raises(ConcretizationError, match="use solve"):
        fxflow.jit(lambda a: linalg.splu(a).L.values)(A)
    with pytest.raises(ArgumentError, match="trans must be"):
        lu.solve(B, "X")


def test_incomplete_factors_precondition() -> None:
    ilu = linalg.spilu(A, drop_tol=0.1)
    theirs = scipy.sparse.linalg.spilu(A.tocsc().to_scipy(), drop_tol=0.1)
    np.testing.assert_allclose(ilu.solve(B), theirs.solve(B), rtol=1e-5)
    np.testing.assert_allclose(ilu.solve(B, "T"), theirs.solve(B, "T"), rtol=1e-5)
    slope = fxflow.grad(lambda b: ilu.solve(b).sum())(B)
    ones = np.ones(8, np.float32)
    np.testing.assert_allclose(slope, theirs.solve(ones, "T"), rtol=1e-4)
    x, _ = linalg.gmres(A, B, M=ilu.solve, tol=1e-6)
    np.testing.assert_allclose(x, np.linalg.solve(DENSE, B), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(lower: bool, unit: bool) -> None:
    part = sparse.tril(A) if lower else sparse.triu(A)
    full = np.array(part.todense())
    if unit:
        np.fill_diagonal(full, 1)

    def loss(a: Any, b: Any) -> Any:
        x = linalg.spsolve_triangular(a, b, lower=lower, unit_diagonal=unit)
        return fnp.sum(x**2)

    wide = np.stack([B, B + 1], 1)
    for b in (B, wide):
        x = linalg.spsolve_triangular(part, b, lower=lower, unit_diagonal=unit)
        np.testing.assert_allclose(x, np.linalg.solve(full, b), rtol=1e-3, atol=1e-5)
    got = fxflow.grad(loss, argnums=(0, 1))(part, B)
    want = fxflow.grad(
        lambda a, b: fnp.sum(fnp.linalg.solve(a, b) ** 2), argnums=(0, 1)
    )(fnp.asarray(full), B)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-3, atol=1e-4)
    held = np.where(full != 0, want[0], 0)
    if unit:
        np.fill_diagonal(held, 0)
    np.testing.assert_allclose(got[0].todense(), held, rtol=1e-3, atol=1e-3)


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not lower triangular"):
        linalg.spsolve_triangular(A, B)
    with pytest.raises(ShapeError, match="A must be square"):
        linalg.spsolve(A[:3], B)
    with pytest.raises(ShapeError, match=r"must be \(8,\) or \(8, k\)"):
        linalg.spsolve(A, B[:3])
    with pytest.raises(ShapeError, match="does not fit"):
        linalg.spilu(A).solve(B[:3])
