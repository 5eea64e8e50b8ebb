"""Reports on derivatives at equal eigenvalues and singular values, as programs."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.scipy import linalg
from tests.reports.modes import check_both

EYE = np.eye(3, dtype=np.float32)
RNG = np.random.default_rng(669)
C = RNG.normal(size=(3, 3)).astype("f")


def test_exponential_by_eigenvalues_at_the_identity() -> None:
    """V exp(w) Vᵀ has a derivative where all eigenvalues are 1 (jax#669)."""
    total = lambda a: fnp.sum(C * linalg.funm(a, fnp.exp, hermitian=True))
    check_both(fxflow.grad(total), np.e * (C + C.T) / 2, EYE, rtol=1e-5, atol=1e-6)


def test_the_vector_of_a_simple_eigenvalue_beside_equal_ones() -> None:
    """That of 4 in diag(4, 1, 1) turns by 1 / (4 - 1) (jax#4646)."""

    def vector(a: fxflow.Array) -> fxflow.Array:
        column = linalg.spectral_projector(a, 2, 3)[:, 0]
        return column / fnp.linalg.norm(column)

    a = np.diag(np.float32([4, 1, 1]))
    right = np.zeros((3, 3, 3), np.float32)
    right[1, 0, 1] = right[1, 1, 0] = right[2, 0, 2] = right[2, 2, 0] = 1 / 6
    check_both(fxflow.jacobian(vector), right, a, atol=1e-6)


def test_the_vector_of_a_matrix_of_rank_one() -> None:
    """v of x xᵀ, whose other eigenvalues are 0: (v · y) v = x (x · y) / |x|²
    (jax#10527)."""
    y = np.float32([1, -1, 2])
    ask = lambda x: linalg.spectral_projector(x[:, None] * x, 2, 3) @ y
    direct = lambda x: x * (x @ y) / (x @ x)
    x = np.float32([1, 2, 3])
    right = np.asarray(fxflow.jacobian(direct)(fnp.asarray(x)))
    check_both(fxflow.jacobian(ask), right, x, rtol=1e-4, atol=1e-5)


def test_singular_values_put_together_again() -> None:
    """U s Vᴴ is the matrix, also where singular values are equal (jax#2311)."""
    total = lambda a: fnp.sum(C * linalg.generalized_funm(a, lambda s: s))
    check_both(fxflow.grad(total), C, EYE, rtol=1e-5, atol=1e-6)


def test_singular_values_that_are_zero() -> None:
    """U s Vᴴ of a matrix of rank 3 and size 15 (pytorch#49886)."""
    y = np.zeros((15, 15), np.float32)
    y[:, :5], y[:, 5:10], y[:, 10:] = EYE[:, :1].repeat(5, 0), 2.0, 3.0
    total = lambda a: fnp.sum(linalg.generalized_funm(a, lambda s: s))
    check_both(fxflow.grad(total), np.ones((15, 15)), y, rtol=1e-4)


def test_a_shrunk_singular_value_has_a_slope() -> None:
    """max(s - 1, 0) at s = 3 three times, the proximal map of the nuclear norm
    (jax#8732)."""
    shrink = lambda a: linalg.generalized_funm(a, lambda s: fnp.maximum(s - 1, 0))
    total = lambda a: fnp.sum(C * shrink(a))
    # The symmetric part moves by the slope, 1, the rest by 2 / 3.
    right = (C + C.T) / 2 + (C - C.T) / 3
    check_both(fxflow.grad(total), right, 3 * EYE, rtol=1e-4, atol=1e-5)


def test_second_derivatives_of_sums_of_eigenvalues() -> None:
    """Σ w is linear, Σ w² the sum of squares of elements (tensortrax#93)."""
    moment = lambda p: (
        lambda a: fnp.trace(linalg.funm(a, lambda w: w**p, hermitian=True))
    )
    swap = np.einsum("il,jk->ijkl", np.eye(3), np.eye(3))
    same = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    check_both(fxflow.hessian(moment(1.0)), 0 * same, EYE, atol=1e-5)
    check_both(fxflow.hessian(moment(2.0)), same + swap, EYE, rtol=1e-4, atol=1e-5)


def test_the_stiffness_of_an_undeformed_solid() -> None:
    """Σ μ/α² (wᵅ - 1) of Ogden's material at stretches 1 (felupe#67)."""
    alpha = 1.3
    energy = lambda a: fnp.trace(
        linalg.funm(a, lambda w: (w**alpha - 1) / alpha**2, hermitian=True)
    )
    same = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    swap = np.einsum("il,jk->ijkl", np.eye(3), np.eye(3))
    right = (alpha - 1) / alpha * (same + swap) / 2
    check_both(fxflow.hessian(energy), right, EYE, rtol=1e-4, atol=1e-5)


def test_the_density_of_equal_orbitals() -> None:
    """The projector on two occupied orbitals of the same energy (GradDFT#35)."""
    move = np.float32([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    h = np.diag(np.float32([-1, -1, 1]))
    density = lambda t: linalg.spectral_projector(h + t * move, 0, 2)
    # First-order perturbation theory: between the groups only, over the gap of 2.
    right = np.float32([[0, 0, -1], [0, 0, -1.5], [-1, -1.5, 0]])
    check_both(fxflow.jacfwd(density), right, np.float32(0), atol=1e-6)


def test_exponential_of_a_multiple_of_the_identity() -> None:
    """Its derivative by the factor is its own (Theano#6379)."""
    both = lambda j: (
        linalg.expm(j * np.eye(2, dtype="f"))[0, 0],
        linalg.funm(j * np.eye(2, dtype="f"), fnp.exp, hermitian=True)[0, 0],
    )
    for i in (0, 1):
        check_both(fxflow.grad(lambda j, i=i: both(j)[i]), np.e, np.float32(1))


def test_fidelity_of_the_mixed_state() -> None:
    """(tr √(√a b √a))² at a = b = 1/3: 3 b's derivative by a (Dense-Evolution#36)."""

    def fidelity(a: fxflow.Array, b: fxflow.Array) -> fxflow.Array:
        root = lambda x: linalg.funm(x, fnp.sqrt, hermitian=True)
        half = root(a)
        return fnp.trace(root(half @ b @ half)) ** 2

    mixed = EYE / 3
    check_both(fxflow.grad(fidelity), EYE, mixed, mixed, rtol=1e-4, atol=1e-5)


def test_exponential_of_a_defective_matrix() -> None:
    """Its derivative is ∫ exp(sA) E exp((1-s)A) ds (Zygote#340)."""
    a = np.float32([[0, 1], [0, 0]])
    corner = fxflow.grad(lambda a: linalg.expm(a)[0, 1])
    check_both(corner, [[0.5, 1.0], [1 / 6, 0.5]], a)


def test_one_vector_of_a_pair_has_no_derivative() -> None:
    """It is NaN, and a number of no meaning nowhere (pytorch#69532)."""
    slope = fxflow.grad(lambda a: fnp.sum(fnp.linalg.eigh(a)[1]))
    assert np.isnan(np.asarray(slope(EYE))).any()
    assert np.isnan(np.asarray(fxflow.jit(slope)(EYE))).any()


@pytest.mark.parametrize("size", [2, 3])
def test_sum_of_equal_singular_values(size: int) -> None:
    """The first derivative of the nuclear norm at the identity (jax#2311)."""
    eye = np.eye(size, dtype="f")
    check_both(fxflow.grad(lambda a: fnp.sum(fnp.linalg.svdvals(a))), eye, eye)
