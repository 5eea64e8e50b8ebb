"""Functions of Hermitian matrices, their derivatives at equal and near eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, NonFiniteError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(5)
C, D, E = RNG.normal(size=(3, 3, 3))
D, E = D + D.T, E + E.T
Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
POINTS = [
    pytest.param(np.eye(3), marks=pytest.mark.slow),
    Q @ np.diag([1.0, 1.0, 2.0]) @ Q.T,
    Q @ np.diag([1.0, 1 + 1e-9, 2.0]) @ Q.T,
    Q @ np.diag([1.0, 1 + 1e-4, 1.01]) @ Q.T,
    pytest.param(Q @ np.diag([-1.0, 2.0, 4.0]) @ Q.T, marks=pytest.mark.slow),
]


def weighed(a: Any) -> Any:
    """Returns a weighed sum of the elements of the exponential."""
    return fnp.sum(C * linalg.funm(a, fnp.exp, hermitian=True))


@pytest.mark.parametrize("a", POINTS)
def test_derivatives_of_first_and_second_order_in_both_modes(a: np.ndarray) -> None:
    """Those of the exponential, which SciPy has by blocks of triangular matrices."""
    zero = np.zeros((3, 3))
    # Its corner is the second derivative of the exponential.
    blocks = np.block(
        [[a, D, E, zero], [zero, a, zero, E], [zero, zero, a, D], [zero, zero, zero, a]]
    )
    first = np.sum(C * scipy.linalg.expm_frechet(a, D, compute_expm=False))
    second = np.sum(C * scipy.linalg.expm(blocks)[:3, 9:])
    with fxflow.config.override(x64=True):
        forward = lambda f: lambda x: fxflow.jvp(f, (x,), (fnp.asarray(D),))[1]
        backward = lambda f: lambda x: fnp.sum(fxflow.grad(f)(x) * D)
        x = fnp.asarray(a)
        for once in (forward, backward):
            assert float(once(weighed)(x)) == pytest.approx(first, rel=1e-11)
            for again in (forward, backward):
                slope = once(weighed)
                line = lambda t, f=slope: f(x + t * E)
                along = {
                    forward: lambda g: fxflow.jvp(g, (0.0,), (1.0,))[1],
                    backward: lambda g: fxflow.grad(g)(0.0),
                }[again]
                assert float(along(line)) == pytest.approx(second, rel=1e-8)


@pytest.mark.slow
def test_third_derivative_of_the_sum_of_logarithms() -> None:
    """d³ log det(A + t D) is 2 tr (A⁻¹ D)³."""
    with fxflow.config.override(x64=True):
        total = lambda t: fnp.trace(
            linalg.funm(2 * fnp.eye(3) + t * D, fnp.log, hermitian=True)
        )
        for _ in range(3):
            total = (lambda f: lambda t: fxflow.jvp(f, (t,), (1.0,))[1])(total)
        want = 2 * np.trace(np.linalg.matrix_power(D / 2, 3))
        assert float(total(0.0)) == pytest.approx(want, rel=1e-9)


def test_float32_keeps_its_digits() -> None:
    slope = fxflow.grad(weighed)(np.eye(3, dtype="f"))
    np.testing.assert_allclose(slope, np.e * (C + C.T) / 2, 2e-6, 1e-6)


def test_batches_compiled() -> None:
    a = np.stack([np.eye(3), Q @ np.diag([1.0, 1.0, 2.0]) @ Q.T])
    with fxflow.config.override(x64=True):
        one = [np.asarray(fxflow.grad(weighed)(x)) for x in a]
        mapped = fxflow.jit(fxflow.vmap(fxflow.grad(weighed)))(a)
        whole = fxflow.grad(lambda x: fnp.sum(linalg.funm(x, fnp.exp, hermitian=True)))
        np.testing.assert_allclose(mapped, one, 1e-12)
        assert np.isfinite(np.asarray(whole(a))).all()


def test_complex_matrices_and_complex_functions() -> None:
    z = C + 1j * D
    move = z + z.conj().T
    with fxflow.config.override(x64=True):
        f = lambda a: fnp.real(fnp.sum(z * linalg.funm(a, fnp.exp, hermitian=True)))
        at = fnp.eye(3, dtype="complex128")
        want = np.sum(
            z * scipy.linalg.expm_frechet(np.eye(3), move, compute_expm=False)
        )
        got = fxflow.jvp(f, (at,), (fnp.asarray(move),))[1]
        assert float(got) == pytest.approx(want.real, rel=1e-12)
        # JAX's convention: the derivative along a direction is Re(grad · direction).
        along = np.sum(np.asarray(fxflow.grad(f)(at)) * move).real
        assert along == pytest.approx(want.real, rel=1e-12)
        turn = lambda t: linalg.funm(
            t * fnp.eye(2), lambda w: fnp.exp(1j * w), hermitian=True
        )
        slope = fxflow.grad(lambda t: fnp.imag(turn(t))[0, 0])(0.3)
        assert float(slope) == pytest.approx(np.cos(0.3))


def test_the_function_may_capture_what_is_differentiated() -> None:
    a = np.diag([1.0, 1.0, 2.0])
    with fxflow.config.override(x64=True):
        total = lambda p, a: fnp.sum(C * linalg.funm(a, lambda w: w**p, hermitian=True))
        want = np.sum(np.diag(C) * np.diag(a) ** 0.5 * np.log(np.diag(a)))
        assert float(fxflow.grad(total)(0.5, a)) == pytest.approx(want)
        # The mixed second derivative, in both orders.
        by_p = lambda p: fnp.sum(fxflow.grad(total, 1)(p, a) * D)
        along = lambda t: fxflow.grad(total)(0.5, a + t * D)
        one, other = fxflow.grad(by_p)(0.5), fxflow.grad(along)(0.0)
        assert float(one) == pytest.approx(float(other), rel=1e-10)
        h = 1e-5
        difference = (float(along(h)) - float(along(-h))) / (2 * h)
        assert float(one) == pytest.approx(difference, rel=1e-6)


def test_estimates_and_empty_matrices() -> None:
    out, error = linalg.funm(np.eye(2), fnp.exp, disp=False, hermitian=True)
    assert float(error) < 1e-6
    np.testing.assert_allclose(out, np.e * np.eye(2), 1e-6)
    assert linalg.funm(np.zeros((0, 0)), fnp.exp, hermitian=True).shape == (0, 0)
    assert linalg.generalized_funm(np.zeros((0, 2)), fnp.sin).shape == (0, 2)
    assert linalg.spectral_projector(np.zeros((0, 0)), 0, 0).shape == (0, 0)


def test_functions_of_whole_arrays_are_refused() -> None:
    with pytest.raises(ShapeError, match="funm: func must act element by element"):
        linalg.funm(np.eye(2), lambda w: fnp.ones(3) * w, hermitian=True)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 3, 2)])
def test_functions_of_singular_values(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    with fxflow.config.override(x64=True):
        got = linalg.generalized_funm(a, fnp.sin)
    np.testing.assert_allclose(got, (u * np.sin(s)[..., None, :]) @ vh, 1e-9, 1e-12)


def test_functions_of_equal_singular_values() -> None:
    """The unitary factor, and the matrix itself, whose derivatives are known."""
    with fxflow.config.override(x64=True):
        sum_of = lambda f: lambda a: fnp.sum(C * f(a))
        same = sum_of(lambda a: linalg.generalized_funm(a, lambda s: s))
        turn = sum_of(lambda a: linalg.generalized_funm(a, lambda s: s / s))
        polar = sum_of(lambda a: linalg.polar(a)[0])
        np.testing.assert_allclose(fxflow.grad(same)(np.eye(3)), C, 1e-13)
        np.testing.assert_allclose(fxflow.grad(same)(np.zeros((3, 3))), C, 1e-13)
        np.testing.assert_allclose(
            fxflow.grad(turn)(Q), fxflow.grad(polar)(Q), 1e-9, 1e-12
        )
        np.testing.assert_allclose(
            fxflow.hessian(turn)(Q), fxflow.hessian(polar)(Q), 1e-9, 1e-12
        )


def test_projectors_on_equal_eigenvalues() -> None:
    def projector(a: np.ndarray) -> Any:
        v = np.linalg.eigh(a)[1][:, 1:]
        return np.sum(C * (v @ v.T))

    a = Q @ np.diag([1.0, 2.0, 2.0]) @ Q.T
    with fxflow.config.override(x64=True):
        line = lambda t: fnp.sum(C * linalg.spectral_projector(a + t * D, 1, 3))
        h = 1e-4
        up, here, down = (projector(a + t * D) for t in (h, 0, -h))
        assert float(line(0.0)) == pytest.approx(here)
        first, second = fxflow.grad(line), fxflow.grad(fxflow.grad(line))
        assert float(first(0.0)) == pytest.approx((up - down) / (2 * h), rel=1e-5)
        assert float(second(0.0)) == pytest.approx(
            (up - 2 * here + down) / h**2, rel=1e-4
        )


def test_projectors_that_are_not_determined_are_nan() -> None:
    a = np.stack([np.eye(2), np.diag([1.0, 2.0])]).astype("f")
    got = np.asarray(linalg.spectral_projector(a, 0, 1))
    assert np.isnan(got[0]).all()
    np.testing.assert_allclose(got[1], np.diag([1.0, 0.0]), atol=1e-6)
    np.testing.assert_array_equal(linalg.spectral_projector(np.eye(2), 0, 2), np.eye(2))
    with pytest.raises(ArgumentError, match="start 1 and stop 3 must be a range"):
        linalg.spectral_projector(np.eye(2), 1, 3)


def test_vectors_of_equal_eigenvalues_have_no_derivative() -> None:
    """It is NaN, and an error with `debug_nans`, of a single vector of a pair."""
    for one in (
        lambda a: fnp.linalg.eigh(a)[1][0, 0],
        lambda a: fnp.linalg.svd(a)[0][0, 0],
    ):
        slope = fxflow.grad(one)
        assert np.isnan(np.asarray(slope(np.eye(2, dtype="f")))).any()
        with (
            fxflow.config.override(debug_nans=True),
            pytest.raises(NonFiniteError),
        ):
            slope(np.eye(2, dtype="f"))
