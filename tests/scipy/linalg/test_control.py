"""Equations of Lyapunov and Riccati against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(27)
A, B, ROOT = (RNG.normal(size=s) for s in ((4, 4), (4, 2), (4, 4)))
Q, R = ROOT @ ROOT.T + 4 * np.eye(4), np.array([[2.0, 0.5], [0.5, 1.0]])
E, S = np.eye(4) + 0.1 * RNG.normal(size=(4, 4)), 0.1 * RNG.normal(size=(4, 2))
EQUATIONS = ["solve_continuous_are", "solve_discrete_are"]


@pytest.mark.parametrize("z", [0, 0.3j])
def test_lyapunovs_equations(z: complex) -> None:
    a, q = A + z * ROOT, Q + z * ROOT
    with fxflow.config.override(x64=True):
        x = linalg.solve_continuous_lyapunov(a, q)
        np.testing.assert_allclose(
            x, scipy.linalg.solve_continuous_lyapunov(a, q), 1e-10
        )
        for method in (None, "direct", "bilinear"):
            x = np.asarray(linalg.solve_discrete_lyapunov(a, q, method))
            np.testing.assert_allclose(a @ x @ a.conj().T - x + q, 0, atol=1e-9)
    with pytest.raises(ArgumentError, match="method"):
        linalg.solve_discrete_lyapunov(a, q, "magic")


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("given", [{}, {"e": E, "s": S}], ids=["plain", "general"])
def test_riccatis_equations(name: str, given: Any) -> None:
    function, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    with fxflow.config.override(x64=True):
        got = np.asarray(function(A, B, Q, R, **given))
        want = theirs(A, B, Q, R, **given)
    np.testing.assert_allclose(got, want, atol=1e-11 * abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUATIONS)
def test_derivatives_and_batches_of_riccatis(name: str) -> None:
    function, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    turn = RNG.normal(size=(4, 4))
    with fxflow.config.override(x64=True):
        total = lambda a, q: fnp.sum(function(a, B, q, R) * ROOT)
        slopes = fxflow.jit(fxflow.grad(total, (0, 1)))(A, Q)
        h = 1e-5
        for i, direction in enumerate((turn, Q)):
            up, down = (
                theirs(A + s * turn, B, Q, R) if i == 0 else theirs(A, B, Q + s * Q, R)
                for s in (h, -h)
            )
            want = np.sum((up - down) * ROOT) / (2 * h)
            got = np.sum(np.asarray(slopes[i]) * direction)
            assert got == pytest.approx(want, rel=1e-5)
        both = fxflow.vmap(lambda a: function(a, B, Q, R))(np.stack([A, 0.5 * A]))
        np.testing.assert_allclose(both[1], theirs(0.5 * A, B, Q, R), 1e-8, 1e-10)


def test_wrong_arguments() -> None:
    with pytest.raises(ShapeError, match="one size"):
        linalg.solve_continuous_lyapunov(np.eye(2), np.eye(3))
    with pytest.raises(ShapeError, match="r must be"):
        linalg.solve_continuous_are(A, B, Q, np.eye(3))
    assert linalg.solve_discrete_are(
        np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((0, 0)), np.eye(2)
    ).shape == (0, 0)
