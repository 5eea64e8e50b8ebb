"""Public functions of `lax.linalg`: values, options and errors."""

from typing import Any

import numpy as np
import pytest
from scipy import linalg as scipy_linalg

import fxflow
from fxflow import lax
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
)
from fxflow.lax import linalg
from tests.conformance.harness import array

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 4)).astype("f4")
S = X @ X.T + np.eye(4, dtype="f4")
Z = (X + 1j * X[::-1]).astype("c8")


def close(got, expected) -> None:
    np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-4, atol=2e-4)


def test_cholesky_symmetrizes_or_reads_the_lower_triangle() -> None:
    lower = np.tril(S)
    close(linalg.cholesky(lower, symmetrize_input=False), np.linalg.cholesky(S))
    close(linalg.cholesky(S), np.linalg.cholesky(S))


def test_triangular_solve_of_vectors_and_conjugates() -> None:
    a, b = np.tril(Z) + 3 * np.eye(4, dtype="c8"), Z[0]
    got = linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True)
    close(got, scipy_linalg.solve_triangular(a.conj(), b, lower=True))
    got = linalg.triangular_solve(
        a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    close(got, scipy_linalg.solve_triangular(a, b, lower=True, trans="C"))
    got = linalg.triangular_solve(a, b, lower=True)
    close(np.asarray(got) @ a, b)


def test_lu_is_scipys() -> None:
    factors, pivots, permutation = map(np.asarray, linalg.lu(X))
    expected, places = scipy_linalg.lu_factor(X)
    close(factors, expected)
    np.testing.assert_array_equal(pivots, places)
    low = np.tril(factors, -1) + np.eye(4)
    close(low @ np.triu(factors), X[permutation])
    again = linalg.lu_pivots_to_permutation(pivots, 4)
    np.testing.assert_array_equal(again, permutation)
    wide = linalg.lu_pivots_to_permutation(np.int32([[3, 1], [0, 3]]), 4)
    np.testing.assert_array_equal(wide, [[3, 1, 2, 0], [0, 3, 2, 1]])


@pytest.mark.parametrize("full", [True, False])
def test_qr(full: bool) -> None:
    tall = X[:, :2].copy()
    q, r = map(np.asarray, linalg.qr(tall, full_matrices=full))
    close(q @ r, tall)
    close(q.T @ q, np.eye(4 if full else 2))
    packed, taus = linalg.geqrf(tall)
    close(linalg.householder_product(packed, taus), q[:, :2])


def test_qr_with_exchanged_columns() -> None:
    for x in (X, Z, np.stack([X, X[::-1]]), X[:, :2].copy(), X[:2].copy()):
        q, r, order = map(np.asarray, linalg.qr(x, pivoting=True, full_matrices=False))
        places = np.broadcast_to(order[..., None, :], x.shape)
        close(q @ r, np.take_along_axis(x, places, -1))
        sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(sizes) <= 0).all()
    expected = scipy_linalg.qr(X, pivoting=True)[2]
    np.testing.assert_array_equal(linalg.qr(X, pivoting=True)[2], expected)
    rank_one = np.outer(X[0], X[1])
    assert abs(np.asarray(linalg.qr(rank_one, pivoting=True)[1])[1:]).max() < 1e-5


@pytest.mark.parametrize("x", [X[:, :3].copy(), Z[:, :3].copy()])
def test_products_with_reflectors(x) -> None:
    packed, taus = linalg.geqrf(x)
    q, _ = map(np.asarray, linalg.qr(x))
    c = (x[:, ::-1] + 1).astype(x.dtype)
    close(linalg.ormqr(packed, taus, c), q @ c)
    close(linalg.ormqr(packed, taus, c, transpose=True), q.conj().T @ c)
    close(linalg.ormqr(packed, taus, c.T.copy(), left=False), c.T @ q)
    turned = linalg.ormqr(packed, taus, c.T.copy(), left=False, transpose=True)
    close(turned, c.T @ q.conj().T)


def test_products_with_reflectors_as_on_tpus() -> None:
    from fxflow.lax.linalg.householder import _one_by_one

    for x in (X[:, :3].copy(), Z[:, :3].copy()):
        packed, taus = linalg.geqrf(x)
        for left in (False, True):
            for turned in (False, True):
                given = packed, taus, array(Z if x.dtype == Z.dtype else X)
                expected = linalg.ormqr(*given, left=left, transpose=turned)
                close(_one_by_one(*given, left, turned), np.asarray(expected))


def test_schur() -> None:
    for x in (X, Z, np.stack([X, S])):
        t, z = map(np.asarray, linalg.schur(x))
        close(z @ t @ np.swapaxes(z.conj(), -1, -2), x)
        close(z @ np.swapaxes(z.conj(), -1, -2), np.broadcast_to(np.eye(4), x.shape))
        assert not np.tril(t, -2).any()
    assert not np.tril(np.asarray(linalg.schur(Z)[0]), -1).any()
    (alone,) = linalg.schur(X, compute_schur_vectors=False)
    close(alone, scipy_linalg.schur(X)[0])


def test_hessenberg() -> None:
    for x in (X, Z):
        packed, taus = map(np.asarray, linalg.hessenberg(x))
        q = np.eye(4, dtype=x.dtype)
        q[1:, 1:] = linalg.householder_product(packed[1:, :-1].copy(), taus)
        h = np.triu(packed, -1)
        close(q @ h @ q.conj().T, x)
        close(h, scipy_linalg.hessenberg(x))


@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal(lower: bool) -> None:
    for x in (S, Z + Z.conj().T):
        half = np.tril(x) if lower else np.triu(x)
        packed, d, e, taus = map(np.asarray, linalg.tridiagonal(half, lower=lower))
        assert d.dtype == e.dtype == np.float32
        whole = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        close(np.linalg.eigvalsh(whole), np.linalg.eigvalsh(x))
        if lower:
            q = np.eye(4, dtype=x.dtype)
            q[1:, 1:] = linalg.householder_product(packed[1:, :-1].copy(), taus)
            close(q @ whole @ q.conj().T, x)


def test_subsets_of_eigenvalues_and_singular_values() -> None:
    v, w = linalg.eigh(S, subset_by_index=(1, 3))
    close(w, np.linalg.eigvalsh(S)[1:3])
    assert v.shape == (4, 2)
    s = linalg.svd(X, compute_uv=False, subset_by_index=(0, 2))
    close(s, np.linalg.svd(X, compute_uv=False)[:2])
    u, s, vh = linalg.svd(X, full_matrices=False, subset_by_index=(0, 2))
    assert (u.shape, s.shape, vh.shape) == ((4, 2), (2,), (2, 4))


def test_eig_gives_what_is_asked_for() -> None:
    w, left, right = map(np.asarray, linalg.eig(X))
    close(X @ right, right * w)
    close(left.conj().T @ X, w[:, None] * left.conj().T)
    assert len(linalg.eig(X, compute_left_eigenvectors=False)) == 2


def test_singular_values_by_eigenvalues_as_on_tpus() -> None:
    from fxflow.lax.linalg.svd import _by_eigenvalues

    for x in (X, X[:, :2].copy(), X[:2].copy(), Z):
        s, u, vh = map(np.asarray, _by_eigenvalues(array(x), False))
        close(u * s @ vh, x)
        close(s, np.linalg.svd(x, compute_uv=False))


def test_tridiagonal_as_on_tpus() -> None:
    from fxflow.lax.linalg.tridiagonal import _thomas

    d = np.full(4, 5, "f4")
    expected = np.asarray(linalg.tridiagonal_solve(X[0], d, X[1], X))
    close(_thomas(*map(array, (X[0], d, X[1], X))), expected)
    close(linalg.tridiagonal_solve(X[0], d, X[1], X[:, 0].copy()), expected[:, 0])


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_perturbed_tridiagonal_systems(dtype) -> None:
    rng = np.random.default_rng(1)
    dl, d, du = (rng.normal(size=(3, 9)).astype(dtype) for _ in range(3))
    d[:, 3] = 0  # needs an exchange of rows
    b = rng.normal(size=(3, 9, 2)).astype(dtype)
    expected = linalg.tridiagonal_solve(dl, d, du, b)

    def solve(*args):
        return linalg.tridiagonal_solve(*args, perturb_singular=True)

    scale = np.abs(np.asarray(expected)).max()
    assert np.abs(solve(dl, d, du, b) - expected).max() < 1e-4 * scale
    # What lies outside of the matrix is not read, and one system is as many.
    du[:, -1] = dl[:, 0] = np.nan
    one = fxflow.vmap(solve)(dl, d, du, b)
    assert np.abs(one - expected).max() < 1e-4 * scale
    assert solve(dl[:, :0], d[:, :0], du[:, :0], b[:, :0]).shape == (3, 0, 2)


@pytest.mark.parametrize(
    ("diagonals", "b", "expected"),
    [
        # Each as LAPACK's gttrf and lagts give it.
        (([0, 0, 0], [1, 0, 2], [0, 0, 0]), [1, 1, 1], [1, 2**22, 0.5]),
        (([0, 0, 0], [1, -0.0, 2], [0, 0, 0]), [1, 1, 1], [1, -(2**22), 0.5]),
        (([0, 0, 0], [1, 1e-9, 2], [0, 0, 0]), [1, 1, 1], [1, 1e9, 0.5]),
        (([0], [0], [0]), [3], [3 * 2**23]),
        (([0, 2, 0], [1, 4, 3], [2, 0, 0]), [1, 1, 1], [5592406, -2796203, 1 / 3]),
        (([0, -2, 1], [0, 0, 4], [0, 2, 0]), [0, 1, 8], [-0.5, 8, 0]),
    ],
)
def test_singular_tridiagonal_systems(diagonals, b, expected) -> None:
    system = [np.float32(v) for v in (*diagonals, b)]
    got = linalg.tridiagonal_solve(*system, perturb_singular=True)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    jitted = fxflow.jit(
        lambda *args: linalg.tridiagonal_solve(*args, perturb_singular=True)
    )
    np.testing.assert_allclose(jitted(*system), expected, rtol=1e-6, atol=1e-6)


def test_derivative_of_perturbed_systems() -> None:
    rng = np.random.default_rng(2)
    dl, d, du = (rng.normal(size=6).astype("f4") for _ in range(3))
    b = rng.normal(size=(6, 1)).astype("f4")

    def loss(d, **options):
        x = linalg.tridiagonal_solve(dl, d, du, b, **options)
        return (x**2).sum()

    expected = fxflow.grad(loss)(d)
    got = fxflow.grad(lambda d: loss(d, perturb_singular=True))(d)
    np.testing.assert_allclose(got, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.cholesky(X[:2]), ShapeError, "cholesky: takes square"),
        (lambda: linalg.lu(X[0]), ShapeError, "lu: takes matrices"),
        (lambda: linalg.qr(X.astype("i4")), DtypeError, "qr: takes floating"),
        (lambda: linalg.triangular_solve(X, Z), DtypeError, "must have one dtype"),
        (
            lambda: linalg.triangular_solve(X, X[:3], left_side=True),
            ShapeError,
            "axis -2 must be 4",
        ),
        (
            lambda: linalg.triangular_solve(X[None], X),
            ShapeError,
            "takes matrices|same leading axes",
        ),
        (lambda: linalg.schur(X[:2]), ShapeError, "schur: takes square"),
        (lambda: linalg.hessenberg(X.astype("f2")), DtypeError, "hessenberg: takes"),
        (lambda: linalg.tridiagonal(X[0]), ShapeError, "tridiagonal: takes"),
        (lambda: linalg.ormqr(X, X[0], Z), DtypeError, "must have one dtype"),
        (lambda: linalg.ormqr(X, X[0], X[:2]), ShapeError, "length 4 act on axis -2"),
        (lambda: linalg.ormqr(X, X, X), ShapeError, "the same leading axes"),
        (
            lambda: linalg.lu_pivots_to_permutation(np.int32([0, 1]), 1),
            ArgumentError,
            "more pivots than",
        ),
        (
            lambda: linalg.lu_pivots_to_permutation(np.float32([0]), 1),
            DtypeError,
            "pivots must be int32",
        ),
        (
            lambda: linalg.lu_pivots_to_permutation(np.int32(0), 1),
            ShapeError,
            "takes vectors",
        ),
        (
            lambda: linalg.householder_product(X[:2], X[0]),
            ShapeError,
            "as many rows as columns",
        ),
        (lambda: linalg.eigh(S, subset_by_index=(2, 5)), ArgumentError, "range within"),
        (
            lambda: linalg.svd(X, full_matrices=False, subset_by_index=(0, 9)),
            ArgumentError,
            "range within",
        ),
        (
            lambda: linalg.svd(X, subset_by_index=(0, 1)),
            ArgumentError,
            "full_matrices=False only",
        ),
        (
            lambda: linalg.tridiagonal_solve(X[0], X[0, :3], X[0], X),
            ShapeError,
            r"diagonals must be \[..., n\]",
        ),
        (
            lambda: linalg.tridiagonal_solve(X[0], X[0], X[0], Z),
            DtypeError,
            "must have one dtype",
        ),
    ],
)
def test_operands_of_a_wrong_shape_or_dtype_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "function",
    [linalg.qr, linalg.svd, lambda x: linalg.qr(x, pivoting=True)],
)
def test_what_is_not_determined_has_no_derivative(function) -> None:
    tall = array(X[:, :2].copy())
    with pytest.raises(NotDifferentiableError, match="full_matrices=False"):
        jvp_flat(lambda x: list(function(x)), [tall], [tall])


def test_left_eigenvectors_have_no_derivative() -> None:
    with pytest.raises(NotDifferentiableError, match="compute_left_eigenvectors"):
        jvp_flat(lambda x: linalg.eig(x), [array(X)], [array(X)])


def test_decompositions_of_infinities_terminate() -> None:
    inf = np.inf
    x = np.array([[inf, -inf, 1], [inf, 1, 2], [3, 4, 5]], np.float32)
    both = np.stack([x, np.eye(3, dtype=np.float32)])
    values = np.asarray(linalg.svd(both, compute_uv=False))
    assert np.isnan(values[0]).all() and values[1].tolist() == [1, 1, 1]
    assert np.isnan(np.asarray(linalg.svd(x.astype(np.complex64))[0])).all()


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 4)])
@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_slopes_of_svd_are_those_of_the_scaled_matrix(
    shape: tuple[int, int], size: float
) -> None:
    """Squares of singular values would over- or underflow."""
    rng = np.random.default_rng(0)
    x, weights = (rng.normal(size=shape).astype("f4") for _ in range(2))

    def turned(x: Any) -> Any:
        u, _, vh = lax.linalg.svd(x, full_matrices=False)
        return (lax.dot(u, vh) * weights).sum()

    def total(x: Any) -> Any:
        return (lax.linalg.svd(x, compute_uv=False) * np.float32([1, 2, 3])).sum()

    far = x * np.float32(size)
    for run in (lambda f: f, fxflow.jit):
        slope = np.asarray(run(fxflow.grad(turned))(far)) * np.float32(size)
        np.testing.assert_allclose(slope, fxflow.grad(turned)(x), 2e-4, 1e-5)
        slope = run(fxflow.grad(total))(far)
        np.testing.assert_allclose(slope, fxflow.grad(total)(x), 2e-4, 1e-5)
        bend = np.asarray(run(fxflow.hessian(total))(far)) * np.float32(size)
        np.testing.assert_allclose(bend, fxflow.hessian(total)(x), 2e-4, 2e-5)


def test_vectors_of_equal_values_have_no_slope() -> None:
    """Nor have functions of them that do not depend on which vectors are chosen.

    The derivative would have to be 1 of `u @ vh` and another of `(u * s) @ vh` by what
    makes two equal values differ, and both get the same derivatives of u, s and vh.
    """
    eye = np.eye(2, dtype="f4")

    def rebuilt(x: Any) -> Any:
        u, s, vh = lax.linalg.svd(x, full_matrices=False)
        return lax.dot(u * s, vh)

    assert np.isnan(np.asarray(fxflow.jacrev(rebuilt)(eye))).any()
    values = lambda x: lax.linalg.eigh(x)[1].sum()
    np.testing.assert_array_equal(fxflow.grad(values)(eye), eye)
    assert np.isnan(np.asarray(fxflow.hessian(values)(eye))).any()
