"""Functions of matrices against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
H = (Z @ Z.conj().T + np.eye(4)).astype(np.complex64)
S = (A @ A.T + np.eye(4)).astype(np.float32)
B = RNG.normal(size=(4, 3)).astype(np.float32)


def test_expm() -> None:
    for a in (A, A * 10, Z, A * 0, np.stack([A, A * 8])):
        expected = want.expm(a.astype(np.complex128 if a is Z else np.float64))
        got = np.asarray(linalg.expm(a))
        scale = np.abs(expected).max()
        assert same(expected / scale, got / scale, 2e-3)
    upper = np.triu(A)
    assert same(want.expm(upper), linalg.expm(upper, upper_triangular=True), 1e-3)
    assert np.isnan(linalg.expm(A * 1e4, max_squarings=3)).all()
    g = fxflow.grad(lambda a: linalg.expm(a)[0, 1])(A)
    step = np.zeros_like(A)
    step[2, 3] = 1e-4
    slope = (want.expm(A + step) - want.expm(A - step))[0, 1] / 2e-4
    assert float(g[2, 3]) == pytest.approx(float(slope), rel=1e-2, abs=1e-2)


def test_sqrtm() -> None:
    for a in (S, H, Z, A, np.stack([S, S @ S])):
        root = np.asarray(linalg.sqrtm(a))
        assert root.dtype == np.complex64
        assert same(a.astype(np.complex64), root @ root, 1e-3)
    assert same(want.sqrtm(S).astype(np.complex64), linalg.sqrtm(S), 1e-3)
    assert not np.asarray(linalg.sqrtm(np.zeros((3, 3)))).any()
    assert same(np.diag([0j, 0, 2]).astype("c8"), linalg.sqrtm(np.diag([0, 0, 4])))
    nilpotent = np.eye(2, k=1)
    assert not np.isfinite(linalg.sqrtm(nilpotent)).all()
    with pytest.raises(ShapeError):
        linalg.sqrtm(A[:2])


def test_derivatives_of_sqrtm() -> None:
    a = RNG.normal(size=(3, 3))
    a, da = a @ a.T + np.eye(3) + np.triu(a) / 4, RNG.normal(size=(3, 3))
    weights, h = RNG.normal(size=(3, 3)), 1e-5

    def real(a):
        return fnp.real(linalg.sqrtm(a))

    def total(a):
        return (real(a) * weights).sum()

    def difference(f, a, da):
        return (np.asarray(f(a + h * da)) - np.asarray(f(a - h * da))) / (2 * h)

    with fxflow.config.override(x64=True):
        slope = fxflow.grad(total)
        for wrap in (lambda f: f, fxflow.jit):
            forward = fxflow.jvp(wrap(real), (a,), (da,))[1]
            assert same(difference(want.sqrtm, a, da), forward, 1e-6)
            moved = float((wrap(slope)(a) * da).sum())
            assert same(difference(total, a, da), np.float64(moved), 1e-6)
            bend = fxflow.jvp(wrap(slope), (a,), (da,))[1]
            assert same(difference(slope, a, da), bend, 1e-6)
            bend = wrap(fxflow.grad(lambda a: (slope(a) * da).sum()))(a)
            assert same(difference(slope, a, da), bend, 1e-6)
        many = fxflow.vmap(slope)(np.stack([a, a.T]))
        assert same(np.stack([slope(a), slope(a.T)]), many, 1e-12)
        c = a + 0.3j * da
        run = lambda a: linalg.sqrtm(a).sum()
        moved = (fxflow.grad(run, holomorphic=True)(c) * (da + 1j * a)).sum()
        assert same(difference(run, c, da + 1j * a), moved, 1e-6)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_exponentials_of_large_matrices(size: float) -> None:
    turn, fall = np.array([[0.0, size], [-size, 0]]), -size * np.eye(2)
    fall[0, 1] = 0.3 * size
    with fxflow.config.override(x64=True):
        c, s = np.cos(size), np.sin(size)
        got = np.asarray(linalg.expm(turn))
        np.testing.assert_allclose(got, [[c, s], [-s, c]], 0, 1e-15 * size)
        both = np.asarray(fxflow.vmap(linalg.expm)(np.stack([fall, np.eye(2)])))
        np.testing.assert_array_equal(both[0], np.zeros((2, 2)))
        np.testing.assert_allclose(both[1], np.e * np.eye(2), 1e-14)
        slope = fxflow.grad(lambda x: linalg.expm(x * turn)[0, 0])(1.0)
        np.testing.assert_allclose(slope, -size * s, 0, 1e-14 * size**2)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_roots_of_many_small_matrices(kind: str) -> None:
    rng = np.random.default_rng(3)
    good = rng.normal(size=(20, 5, 5)) * 0.4 + 2 * np.eye(5)
    if kind == "complex":
        good = good + 1j * rng.normal(size=good.shape)
    hard = good.copy()
    # Principal roots of these are complex, singular, or of many sizes.
    hard[3] = np.diag([-1.0, -2.0, 3.0, 4.0, 5.0]) + np.triu(good[3], 1)
    hard[7] = np.diag([1e-8, 1e-4, 1.0, 1e4, 1e8]) + np.triu(good[7], 1)
    with fxflow.config.override(x64=True):
        run = fxflow.jit(fxflow.vmap(linalg.sqrtm))
        for given in (good, hard):
            roots = np.asarray(run(given))
            assert (np.linalg.eigvals(roots).real > -1e-12).all()
            size = np.linalg.norm(roots, axis=(1, 2)) ** 2
            error = np.linalg.norm(roots @ roots - given, axis=(1, 2))
            assert (error <= 1e-13 * size).all()
        exact = [want.sqrtm(m) for m in good]
        np.testing.assert_allclose(run(good), exact, 1e-9, 1e-10)
        one = linalg.sqrtm(fnp.asarray(hard[3]))
        np.testing.assert_allclose(run(hard)[3], one, 1e-9, 1e-9)
