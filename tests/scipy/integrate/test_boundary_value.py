"""Boundary value problems beside SciPy's and closed forms."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy.integrate import solve_bvp

X = np.linspace(0.0, 1.0, 5)
NOUGHT = np.zeros((2, 5))


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


def bratu(rate: Any, last: Any = 1.0, tol: float = 1e-3, max_nodes: int = 16) -> Any:
    return solve_bvp(
        lambda x, y: [y[1], -rate * fnp.exp(y[0])],
        lambda ya, yb: fnp.stack([ya[0], yb[0]]),
        *(X * last, NOUGHT),
        tol=tol,
        max_nodes=max_nodes,
    )


def exact(rate: float) -> float:
    """The solution in the middle of the unit interval."""
    theta = 1.0
    for _ in range(60):
        theta = math.sqrt(2 * rate) * math.cosh(theta / 4)
    return 2 * math.log(math.cosh(theta / 4))


@pytest.mark.slow
def test_mesh_and_solution_are_those_of_scipy() -> None:
    got = bratu(1.0, tol=1e-4)
    expected = want.solve_bvp(
        lambda x, y: np.vstack([y[1], -np.exp(y[0])]),
        lambda ya, yb: np.array([ya[0], yb[0]]),
        *(X, NOUGHT),
        tol=1e-4,
    )
    n = expected.x.size
    assert got.num_nodes == n and got.niter == expected.niter and got.success
    np.testing.assert_allclose(got.x[:n], expected.x)
    np.testing.assert_array_equal(got.x[n:], 1.0)
    np.testing.assert_allclose(got.y[:, :n], expected.y, 1e-8, 1e-10)
    at = np.linspace(0, 1, 7)
    np.testing.assert_allclose(got.sol(at), expected.sol(at), 1e-8, 1e-10)
    residuals = got.rms_residuals[: n - 1]
    np.testing.assert_allclose(residuals, expected.rms_residuals, 1e-3, 1e-9)


@pytest.mark.slow
def test_derivatives_are_those_of_the_solution() -> None:
    def middle(rate: Any, last: Any) -> Any:
        return bratu(rate, last, 1e-8, 64).sol(last / 2)[0]

    np.testing.assert_allclose(middle(1.0, 1.0), exact(1.0), 1e-7)
    h = 1e-3
    slope = (exact(1 + h) - exact(1 - h)) / (2 * h)
    bend = (exact(1 + h) - 2 * exact(1) + exact(1 - h)) / h**2
    # With the interval the rate scales by the square of its length.
    slopes = fxflow.jit(fxflow.grad(middle, (0, 1)))(1.0, 1.0)
    np.testing.assert_allclose(slopes, [slope, 2 * slope], 1e-5)
    second = fxflow.jit(fxflow.hessian(middle))(1.0, 1.0)
    np.testing.assert_allclose(second, bend, 1e-4)
    forward = fxflow.jvp(lambda r: middle(r, 1.0), (1.0,), (1.0,))[1]
    np.testing.assert_allclose(forward, slope, 1e-5)
    many = fxflow.vmap(lambda r: middle(r, 1.0))(np.array([0.5, 2.0]))
    np.testing.assert_allclose(many, [exact(0.5), exact(2.0)], 1e-6)


@pytest.mark.slow
def test_unknown_parameters() -> None:
    y = np.array([[0.0, 1, 0, -1, 0], [0.0] * 5])

    def wave(length: Any) -> Any:
        return solve_bvp(
            lambda x, y, p: [y[1], -(p[0] ** 2) * y[0]],
            lambda ya, yb, p: fnp.stack([ya[0], yb[0], ya[1] - p[0]]),
            *(X * length, y),
            p=np.array([6.0]),
            tol=1e-6,
            max_nodes=128,
        )

    np.testing.assert_allclose(wave(1.0).p, [2 * math.pi], 1e-6)
    slope = fxflow.grad(lambda length: wave(length).p[0])(1.0)
    np.testing.assert_allclose(slope, -2 * math.pi, 1e-5)


@pytest.mark.slow
def test_a_singular_term() -> None:
    term = np.array([[0.0, 0.0], [0.0, -2.0]])
    start = np.stack([np.ones(5), np.zeros(5)])
    got = solve_bvp(
        lambda x, y: [y[1], -(y[0] ** 5)],
        lambda ya, yb: fnp.stack([ya[1], yb[0] - math.sqrt(3 / 4)]),
        *(X, start),
        S=term,
        tol=1e-6,
        max_nodes=64,
    )
    n = int(got.num_nodes)
    expected = (1 + got.x[:n] ** 2 / 3) ** -0.5
    np.testing.assert_allclose(got.y[0, :n], expected, 1e-5)


def test_what_does_not_converge_is_said() -> None:
    short = bratu(1.0, tol=1e-10, max_nodes=6)
    assert short.status == 1 and "max_nodes" in short.message and not short.success


def test_bad_arguments_are_refused() -> None:
    def fun(x: Any, y: Any) -> Any:
        return y

    def bc(ya: Any, yb: Any) -> Any:
        return fnp.stack([ya[0], yb[0]])

    with pytest.raises(ShapeError, match=r"got f64\[5\] and f64\[2,4\]"):
        solve_bvp(fun, bc, X, NOUGHT[:, 1:])
    with pytest.raises(ArgumentError, match="strictly ascending"):
        solve_bvp(fun, bc, X[::-1], NOUGHT)
    with pytest.raises(ArgumentError, match="max_nodes = 4"):
        solve_bvp(fun, bc, X, NOUGHT, max_nodes=4)
    with pytest.raises(ArgumentError, match="tol must be positive"):
        solve_bvp(fun, bc, X, NOUGHT, tol=0.0)
    with pytest.raises(DtypeError, match="must be real"):
        solve_bvp(fun, bc, X, NOUGHT + 1j)
    with pytest.raises(ShapeError, match="bc must return"):
        solve_bvp(fun, lambda ya, yb: ya[:1], X, NOUGHT)
    with pytest.raises(ShapeError, match="fun must return"):
        solve_bvp(lambda x, y: y[0], bc, X, NOUGHT)
    with pytest.raises(ShapeError, match="S must be"):
        solve_bvp(fun, bc, X, NOUGHT, S=np.eye(3))


@pytest.mark.slow
def test_meshes_grow_beyond_the_first_room() -> None:
    # A layer of width 0.03 at both ends needs 251 nodes.
    def slope(x: Any, y: Any, stack: Any) -> Any:
        return stack([y[1], y[0] / 1e-3])

    def ends(ya: Any, yb: Any, stack: Any) -> Any:
        return stack([ya[0] - 1, yb[0] - 1])

    found = solve_bvp(
        lambda x, y: slope(x, y, fnp.stack),
        lambda ya, yb: ends(ya, yb, fnp.stack),
        *(X, NOUGHT),
        tol=1e-5,
        max_nodes=300,
    )
    theirs = want.solve_bvp(
        lambda x, y: slope(x, y, np.stack),
        lambda ya, yb: ends(ya, yb, np.stack),
        *(X, NOUGHT),
        tol=1e-5,
    )
    assert int(found.num_nodes) == theirs.x.size and int(found.niter) == theirs.niter
    assert bool(found.success)
    np.testing.assert_allclose(found.x[: theirs.x.size], theirs.x, 1e-9, 1e-12)
    np.testing.assert_allclose(found.y[:, : theirs.x.size], theirs.y, 1e-6, 1e-8)
