"""Exponentials, estimates of norms and powers, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow import sparse
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.linalg import (
    LinearOperator,
    expm,
    expm_multiply,
    matrix_power,
    onenormest,
)

RNG = np.random.default_rng(0)
N = 25
M = RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.2)
B = RNG.normal(size=(N, 2))
THEIRS = scipy.sparse.csr_array(M)
OURS = sparse.csr_array(M, dtype="float64")


def wide(x: Any) -> Any:
    return fnp.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
def test_products_of_exponentials(scale: float) -> None:
    got = fxflow.jit(expm_multiply)(OURS * scale, wide(B))
    want = scipy.linalg.expm(M * scale) @ B
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * abs(want).max())


def test_products_of_operators_complex_and_shifted_maps() -> None:
    A = (M - 30 * np.eye(N)) * (1 + 0.5j)
    want = scipy.linalg.expm(A) @ B[:, 0]
    for given in (sparse.csr_array(A, dtype="complex128"), wide(A)):
        np.testing.assert_allclose(
            expm_multiply(given, wide(B[:, 0])), want, rtol=1e-10
        )
    operator = LinearOperator((N, N), lambda x: wide(M) @ x, dtype="float64")
    want = scipy.linalg.expm(M) @ B
    np.testing.assert_allclose(expm_multiply(operator, wide(B)), want, rtol=1e-10)
    narrow = expm_multiply(sparse.csr_array(M.astype("f4")), fnp.asarray(B, "f4"))
    np.testing.assert_allclose(narrow, want, rtol=1e-4, atol=1e-4)
    assert narrow.dtype == np.float32


@pytest.mark.parametrize("endpoint", [True, False])
def test_products_at_many_times(endpoint: bool) -> None:
    options = {"start": 0.1, "stop": 1.5, "num": 4, "endpoint": endpoint}
    got = expm_multiply(OURS, wide(B), **options)
    want = scipy.sparse.linalg.expm_multiply(THEIRS, B, **options)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    one = expm_multiply(OURS, wide(B), start=0.5, stop=1, num=1)
    np.testing.assert_allclose(one[0], scipy.linalg.expm(M / 2) @ B, rtol=1e-10)


def test_derivatives_of_products() -> None:
    def loss(a: Any, b: Any) -> Any:
        return fnp.sum(expm_multiply(a, b) ** 2)

    def dense(a: Any, b: Any) -> Any:
        return fnp.sum((fxflow.scipy.linalg.expm(a) @ b) ** 2)

    by_a, by_b = fxflow.grad(loss, (0, 1))(OURS, wide(B))
    for_a, for_b = fxflow.grad(dense, (0, 1))(wide(M), wide(B))
    want = np.asarray(for_a) * (M != 0)
    np.testing.assert_allclose(by_a.todense(), want, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(by_b, for_b, rtol=1e-9)
    _, change = fxflow.jvp(lambda b: expm_multiply(OURS, b), (wide(B),), (wide(B),))
    np.testing.assert_allclose(change, scipy.linalg.expm(M) @ B, rtol=1e-10)


def test_dense_exponentials_and_powers() -> None:
    np.testing.assert_allclose(expm(OURS), scipy.linalg.expm(M), rtol=1e-10)
    for n in (0, 1, 5):
        want = np.linalg.matrix_power(M, n)
        np.testing.assert_allclose(matrix_power(OURS, n).todense(), want, atol=1e-10)


def test_estimates_of_norms() -> None:
    estimate = fxflow.jit(lambda a: onenormest(a, compute_v=True, compute_w=True))
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=(N, N)) * (rng.random((N, N)) < 0.3)
        size, v, w = estimate(wide(a))
        np.testing.assert_allclose(np.abs(v).sum(), 1, rtol=1e-12)
        np.testing.assert_allclose(w, a @ np.asarray(v), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.abs(w).sum(), size, rtol=1e-12)
        ratios.append(float(size) / np.abs(a).sum(0).max())
    assert max(ratios) <= 1 + 1e-12 and np.mean(ratios) > 0.85
    exact = onenormest(wide(M[:3, :3]), t=3)
    np.testing.assert_allclose(exact, np.abs(M[:3, :3]).sum(0).max())
    nonnegative = abs(M)
    np.testing.assert_allclose(
        onenormest(wide(nonnegative)), nonnegative.sum(0).max(), rtol=1e-12
    )


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="together"):
        expm_multiply(OURS, B, start=0)
    with pytest.raises(ArgumentError, match="num and endpoint"):
        expm_multiply(OURS, B, num=3)
    with pytest.raises(ShapeError, match="B must be"):
        expm_multiply(OURS, B[:3])
    with pytest.raises(ShapeError, match="square"):
        onenormest(fnp.ones((2, 3)))
    with pytest.raises(ArgumentError, match="itmax"):
        onenormest(OURS, itmax=1)
    with pytest.raises(ArgumentError, match="negative"):
        matrix_power(OURS, -1)
    with pytest.raises(ShapeError, match="square"):
        expm(sparse.csr_array(np.ones((2, 3))))
