"""BiCG, CGS, QMR and TFQMR against dense solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse import linalg

NAMES = ("bicg", "cgs", "qmr", "tfqmr")
RNG = np.random.default_rng(0)
N = 20
REAL = np.eye(N) * 4 + RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.2)
COMPLEX = REAL + 1j * RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.1)
B = RNG.normal(size=N)


def wide(x: Any) -> Any:
    return fnp.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


@pytest.mark.parametrize("name", NAMES)
def test_solutions_and_derivatives(name: str) -> None:
    solver = getattr(linalg, name)

    def solve(a: Any, b: Any) -> Any:
        return solver(a, b, rtol=1e-12)

    A = sparse.csr_array(REAL, dtype="float64")
    x, info = fxflow.jit(solve)(A, wide(B))
    np.testing.assert_allclose(x, np.linalg.solve(REAL, B), rtol=1e-9)
    assert int(info) == 0
    loss = fxflow.jit(lambda a, b: fnp.sum(solve(a, b)[0] ** 2))
    by_a, by_b = fxflow.grad(loss, (0, 1))(A, wide(B))
    slope = np.linalg.solve(REAL.T, 2 * np.asarray(x))
    np.testing.assert_allclose(by_b, slope, rtol=1e-8)
    want = -np.outer(slope, x) * (REAL != 0)
    np.testing.assert_allclose(by_a.todense(), want, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_complex_maps_preconditioners_and_where_they_begin(name: str) -> None:
    solver = getattr(linalg, name)
    inverse = wide(np.diag(1 / np.diag(COMPLEX)))
    more = {"M2" if name == "qmr" else "M": inverse}
    x, info = solver(wide(COMPLEX), B, np.ones(N), rtol=1e-11, **more)
    np.testing.assert_allclose(COMPLEX @ np.asarray(x), B, atol=1e-8)
    assert int(info) == 0
    _, info = solver(wide(REAL), B, rtol=1e-12, maxiter=2)
    assert int(info) == 2


def test_functions_of_pytrees_and_batches() -> None:
    b = {"u": fnp.ones(3), "v": fnp.full(2, 4.0)}

    def twice(x: Any) -> Any:
        return {"u": 2 * x["u"], "v": 4 * x["v"]}

    for name in NAMES:
        x, _ = getattr(linalg, name)(twice, b)
        np.testing.assert_allclose(x["u"], 0.5 * np.ones(3), rtol=1e-5)
        np.testing.assert_allclose(x["v"], np.ones(2), rtol=1e-5)
    rows = wide(np.stack([B, 0 * B]))
    solve = fxflow.vmap(lambda b: linalg.bicg(wide(REAL), b, rtol=1e-12)[0])
    want = np.linalg.solve(REAL, np.stack([B, 0 * B]).T).T
    np.testing.assert_allclose(solve(rows), want, rtol=1e-8)


def test_what_is_not_finite_and_bad_input() -> None:
    for name in NAMES:
        solver = getattr(linalg, name)
        assert np.isnan(solver(fnp.eye(2), fnp.array([np.nan, 1]))[0]).all()
        with pytest.raises(ShapeError, match="square"):
            solver(fnp.ones((2, 3)), fnp.ones(2))
        with pytest.raises(ArgumentError, match="A must be"):
            solver("a", fnp.ones(2))
