"""LGMRES and GCROT(m,k) against dense solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError
from fxflow.scipy.sparse.linalg import gcrotmk, lgmres, spilu

RNG = np.random.default_rng(0)
N = 20
A = np.eye(N) * 4 + RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.3)
B = RNG.normal(size=N)
CASES = [
    pytest.param(lgmres, {"inner_m": 4, "outer_k": 2}, id="lgmres"),
    pytest.param(lgmres, {"inner_m": 6, "outer_k": 0}, id="without"),
    pytest.param(gcrotmk, {"m": 4, "k": 3}, id="gcrotmk"),
    pytest.param(gcrotmk, {"m": 4, "k": 3, "truncate": "smallest"}, id="smallest"),
]


def wide(x: Any) -> Any:
    return fnp.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


@pytest.mark.parametrize(("solver", "options"), CASES)
def test_solutions_and_derivatives(solver: Any, options: dict[str, int]) -> None:
    def loss(a: Any, b: Any) -> Any:
        x, info = solver(a, b, rtol=1e-10, **options)
        return fnp.sum(x**2), (x, info)

    matrix = sparse.csr_array(A, dtype="float64")
    step = fxflow.jit(fxflow.grad(loss, 1, has_aux=True))
    slope, (x, info) = step(matrix, wide(B))
    np.testing.assert_allclose(x, np.linalg.solve(A, B), rtol=1e-7)
    assert int(info) == 0
    np.testing.assert_allclose(
        slope, np.linalg.solve(A.T, 2 * np.asarray(x)), rtol=1e-6
    )


def test_kept_directions_help() -> None:
    # Where restarts stall, what is kept of the last cycles does not.
    n = 100
    matrix = sparse.diags_array(
        [np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)],
        offsets=[-1, 0, 1],
        dtype="float64",
        format="csr",
    )
    b = wide(np.ones(n))
    _, plain = lgmres(matrix, b, inner_m=10, outer_k=0, maxiter=30)
    x, kept = gcrotmk(matrix, b, m=10, k=10, maxiter=30, rtol=1e-5)
    assert int(plain) == 30 and int(kept) == 0
    np.testing.assert_allclose(matrix @ x, b, atol=1e-3)


def test_incomplete_factor_as_preconditioner() -> None:
    matrix = sparse.csc_array(A, dtype="float64")
    factor = spilu(matrix, drop_tol=0.1)
    for solver in (lgmres, gcrotmk):
        x, info = solver(matrix, wide(B), M=factor.solve, rtol=1e-10)
        np.testing.assert_allclose(A @ np.asarray(x), B, atol=1e-8)
        assert int(info) == 0


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="inner_m must be positive"):
        lgmres(fnp.eye(2), fnp.ones(2), inner_m=0)
    with pytest.raises(ArgumentError, match="outer_k"):
        lgmres(fnp.eye(2), fnp.ones(2), outer_k=-1)
    with pytest.raises(ArgumentError, match="k must be positive"):
        gcrotmk(fnp.eye(2), fnp.ones(2), k=0)
    with pytest.raises(ArgumentError, match="truncate"):
        gcrotmk(fnp.eye(2), fnp.ones(2), truncate="newest")
