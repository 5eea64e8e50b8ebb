"""Products of matrix functions and vectors beside dense ones."""

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
from fxflow.scipy import linalg
from fxflow.scipy.sparse.linalg import funm_multiply_krylov

RNG = np.random.default_rng(0)
N = 40
A = np.where(RNG.random((N, N)) < 0.2, RNG.normal(size=(N, N)), 0) - 2 * np.eye(N)
B = RNG.normal(size=N)


@pytest.mark.parametrize("structure", ["general", "hermitian"])
def test_exponentials_by_several_spaces(structure: str) -> None:
    a = A if structure == "general" else A + A.T
    options: dict[str, Any] = {"assume_a": structure, "restart_every_m": 8}
    with fxflow.config.override(x64=True):
        matrix = sparse.csr_array(a)
        run = lambda b, t: funm_multiply_krylov(
            linalg.expm, matrix, b, t=t, rtol=1e-9, **options
        )
        got = fxflow.jit(run)(B, 0.3)
        np.testing.assert_allclose(got, scipy.linalg.expm(0.3 * a) @ B, 1e-6, 1e-8)
        # That of x is A f(A) b.
        _, slope = fxflow.jit(lambda t: fxflow.jvp(lambda t: run(B, t), (t,), (1.0,)))(
            0.3
        )
        np.testing.assert_allclose(slope, a @ np.asarray(got), 1e-4, 1e-6)


def test_spaces_that_are_invariant_and_complex_maps() -> None:
    a = RNG.normal(size=(5, 5)) + 1j * RNG.normal(size=(5, 5)) + 4 * np.eye(5)
    b = np.ones(5)
    with fxflow.config.override(x64=True):
        got = funm_multiply_krylov(linalg.sqrtm, a, b, t=0.5)
        np.testing.assert_allclose(got, scipy.linalg.sqrtm(0.5 * a) @ b, 1e-9)
        f = lambda x: x @ x @ x - x
        got = funm_multiply_krylov(f, np.diag([1.0, 2.0, 2.0, 2.0]), np.ones(4))
        np.testing.assert_allclose(got, [0, 6, 6, 6], atol=1e-12)
        slope = fxflow.grad(
            lambda b: fnp.sum(funm_multiply_krylov(f, np.diag([1.0, 2.0, 2.0]), b))
        )(np.ones(3))
        np.testing.assert_allclose(slope, [0, 6, 6], atol=1e-9)
    nothing = funm_multiply_krylov(linalg.expm, np.eye(3), np.zeros(3))
    np.testing.assert_array_equal(nothing, 0)
    assert funm_multiply_krylov(linalg.expm, np.zeros((0, 0)), np.zeros(0)).shape == (
        0,
    )


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="assume_a must be one of"):
        funm_multiply_krylov(linalg.expm, A, B, assume_a="pos")
    with pytest.raises(ArgumentError, match="f must be a function"):
        funm_multiply_krylov(3, A, B)
    with pytest.raises(ShapeError, match="does not fit b"):
        funm_multiply_krylov(linalg.expm, A, B[:3])
    with pytest.raises(ShapeError, match="must be square"):
        funm_multiply_krylov(linalg.expm, A[:3], B)
    with pytest.raises(ArgumentError, match="restart_every_m must be at least 1"):
        funm_multiply_krylov(linalg.expm, A, B, restart_every_m=0)
