"""Solving equations against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
T = RNG.normal(size=(2, 5, 3)).astype(np.float32)
S = (A @ A.swapaxes(1, 2) + np.eye(4)).astype(np.float32)
H = (Z @ Z.conj().swapaxes(1, 2) + np.eye(4)).astype(np.complex64)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
L = fnp.linalg
N = np.linalg


def test_solve() -> None:
    assert same(N.solve(A, B), L.solve(A, B), 1e-3)
    assert same(N.solve(Z, B), L.solve(Z, B), 1e-3)
    assert same(N.solve(A[0], B[0, :, 0]), L.solve(A[0], B[0, :, 0]), 1e-3)
    assert same(N.solve(A, B[0, :, 0]), L.solve(A, B[0, :, 0]), 1e-3)
    assert same(N.solve(A[0], B), L.solve(A[0], B), 1e-3)
    assert same(N.inv(A), L.inv(A), 1e-3)
    assert same(N.inv(Z), L.inv(Z), 1e-3)
    got = fxflow.jit(L.solve)(A, B)
    assert same(N.solve(A, B), got, 1e-3)
    got = fxflow.vmap(L.solve)(A, B)
    assert same(N.solve(A, B), got, 1e-3)
    with pytest.raises(ShapeError, match="square"):
        L.solve(T, B)
    with pytest.raises(ShapeError, match="b must be"):
        L.solve(A, T)
    with pytest.raises(ShapeError, match="square"):
        L.inv(T)


def test_pinv_and_lstsq() -> None:
    low = T[0] @ T[1].T
    for m in (T, T.swapaxes(1, 2), Z):
        assert same(N.pinv(m), L.pinv(m), 1e-3)
    assert same(N.pinv(low, rcond=1e-5), L.pinv(low), 1e-3)
    assert same(N.pinv(H), L.pinv(H, hermitian=True), 1e-3)
    assert same(N.pinv(S, rtol=0.1), L.pinv(S, 0.1), 1e-3)
    assert same(N.pinv(S, rtol=0.1), L.pinv(S, rcond=0.1), 1e-3)
    for b in (T[1][:, 0], T[1]):
        x, residuals, rank, s = L.lstsq(T[0], b)
        want = N.lstsq(T[0], b)
        assert same((want[0], want[1], want[3]), (x, residuals, s), 1e-3)
        assert int(rank) == 3
    assert L.lstsq(low, T[0], numpy_resid=True)[1].shape == (0,)
    assert int(L.lstsq(low, T[0], 1e-4)[2]) == 3
    with pytest.raises(ArgumentError, match="both"):
        L.pinv(A, 0.1, rcond=0.1)
    with pytest.raises(ShapeError):
        L.lstsq(A, B)


def test_tensors() -> None:
    a = RNG.normal(size=(2, 3, 6)).astype(np.float32)
    b = RNG.normal(size=(2, 3)).astype(np.float32)
    assert same(N.tensorsolve(a, b), L.tensorsolve(a, b), 1e-3)
    moved = np.moveaxis(a, 2, 0)
    got = L.tensorsolve(moved, b, axes=(0,))
    assert same(N.tensorsolve(moved, b, axes=(0,)), got, 1e-3)
    assert same(N.tensorinv(a), L.tensorinv(a), 1e-3)
    with pytest.raises(ShapeError):
        L.tensorinv(a, 1)
    with pytest.raises(ShapeError):
        L.tensorsolve(a, b[0])


def test_gradient_of_pinv_of_equal_singular_values() -> None:
    g = fxflow.grad(lambda x: fnp.linalg.pinv(x).sum())(np.eye(3, dtype=np.float32))
    assert same(-np.ones((3, 3)), g, 1e-4)


@pytest.mark.parametrize("lead", [(), (3,)])
def test_matrices_of_no_elements(lead) -> None:
    none = np.zeros((*lead, 0, 0), np.float32)
    right = np.zeros((*lead, 0, 2), np.float32)
    same(L.inv(none), N.inv(none))
    same(L.solve(none, right), N.solve(none, right))
    same(L.matrix_power(none, -2), N.matrix_power(none, -2))
    slopes = fxflow.grad(lambda a, b: fnp.sum(L.solve(a, b)), (0, 1))(none, right)
    assert [s.shape for s in slopes] == [none.shape, right.shape]


def test_residuals_as_numpy_has_them() -> None:
    for a in (T[0], T[0].T, np.ones((4, 2), np.float32)):
        b = np.arange(a.shape[0], dtype=np.float32)
        want = N.lstsq(a, b, rcond=None)
        got = L.lstsq(a, b, numpy_resid=True)
        assert got[1].shape == want[1].shape and int(got[2]) == want[2]
        assert same(want[0], got[0], 1e-3)
    jitted = fxflow.jit(lambda a, b: L.lstsq(a, b, numpy_resid=True))
    assert jitted(T[0].T, np.ones(3))[1].shape == (0,)
    with pytest.raises(ConcretizationError, match="the rank, which is traced"):
        jitted(T[0], np.ones(5))


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_slopes_of_least_squares_at_equal_singular_values(
    shape: tuple[int, int], run: Any
) -> None:
    with fxflow.config.override(x64=True):
        rng = np.random.default_rng(0)
        a, b = np.eye(*shape), rng.normal(size=shape[0])
        far = a + 1e-6 * rng.normal(size=shape)
        fit = lambda a: fnp.linalg.lstsq(a, b)[0]
        first, second = fxflow.jacrev(fit), fxflow.jacfwd(fxflow.jacrev(fit))
        np.testing.assert_allclose(run(first)(a), first(far), 0, 1e-4)
        np.testing.assert_allclose(run(second)(a), second(far), 0, 1e-3)
        np.testing.assert_allclose(fxflow.jacfwd(fit)(a), first(a), 1e-12, 1e-12)
