"""Logarithms, powers and waves of matrices against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import linalg

RNG = np.random.default_rng(27)
A = RNG.normal(size=(4, 4))
P = A @ A.T + np.eye(4)


@pytest.mark.parametrize("a", [0.01 * A, 30 * A, np.array([[1, 1e6], [0, 1]])])
def test_logarithms(a: np.ndarray) -> None:
    with fxflow.config.override(x64=True):
        got, error = linalg.logm(a, disp=False)
    np.testing.assert_allclose(got, scipy.linalg.logm(a), 1e-9, 1e-12)
    assert float(error) < 1e-9


def test_derivatives_of_the_logarithm() -> None:
    move = RNG.normal(size=(4, 4))
    with fxflow.config.override(x64=True):
        along = lambda t: fnp.sum(fnp.real(linalg.logm(P + t * move)) * A)
        theirs = lambda t: np.sum(scipy.linalg.logm(P + t * move) * A).real
        h = 1e-5
        want = (theirs(h) - theirs(-h)) / (2 * h)
        assert float(fxflow.grad(along)(0.0)) == pytest.approx(want, rel=1e-6)


@pytest.mark.slow
def test_second_derivative_of_the_logarithm() -> None:
    with fxflow.config.override(x64=True):
        along = lambda t: fnp.sum(fnp.real(linalg.logm(P + t * A)))
        theirs = lambda t: np.sum(scipy.linalg.logm(P + t * A)).real
        h = 1e-3
        want = (theirs(h) - 2 * theirs(0) + theirs(-h)) / h**2
        got = float(fxflow.grad(fxflow.grad(along))(0.0))
        assert got == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("t", [0.3, -1.5, 2, -1])
def test_powers(t: float) -> None:
    with fxflow.config.override(x64=True):
        got = linalg.fractional_matrix_power(A, t)
    np.testing.assert_allclose(
        got, scipy.linalg.fractional_matrix_power(A, t), 1e-9, 1e-10
    )


def test_powers_are_numbers() -> None:
    with pytest.raises(ArgumentError, match="finite number"):
        linalg.fractional_matrix_power(A, np.inf)


@pytest.mark.parametrize("name", ["cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"])
def test_waves(name: str) -> None:
    function, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    with fxflow.config.override(x64=True):
        for a in (A, A + 0.2j * P):
            np.testing.assert_allclose(function(a), theirs(a), 1e-9, 1e-10)


def test_signs() -> None:
    with fxflow.config.override(x64=True):
        for a in (A, A + 0.2j * P):
            got, error = linalg.signm(a, disp=False)
            np.testing.assert_allclose(got, scipy.linalg.signm(a), 1e-7, 1e-8)
            assert float(error) < 1e-9
        total = lambda t: fnp.sum(linalg.signm(A + t * P))
        h = 1e-5
        want = (float(total(h)) - float(total(-h))) / (2 * h)
        assert float(fxflow.grad(total)(0.0)) == pytest.approx(want, rel=1e-5)


def test_conditions_of_the_exponential() -> None:
    with fxflow.config.override(x64=True):
        got = linalg.expm_cond(np.stack([A, 0.1 * A]))
    want = [scipy.linalg.expm_cond(a) for a in (A, 0.1 * A)]
    np.testing.assert_allclose(got, want, 1e-9)
    assert linalg.expm_cond(np.zeros((0, 0))).shape == ()
