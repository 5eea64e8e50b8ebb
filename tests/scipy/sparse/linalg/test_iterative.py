"""Iterative solvers: solutions, derivatives, pytrees, mistakes."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse import linalg

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(8, 8))
SYMMETRIC = ROOT @ ROOT.T + 2 * np.eye(8)
GENERAL = ROOT + 6 * np.eye(8)
B = RNG.normal(size=8)
SOLVERS = [
    (linalg.cg, SYMMETRIC),
    (linalg.bicgstab, GENERAL),
    (linalg.gmres, GENERAL),
    (linalg.gmres, SYMMETRIC + 0.5j * (ROOT - ROOT.T)),
    (linalg.bicgstab, GENERAL + 1j * np.eye(8)),
]


@pytest.mark.parametrize(("solver", "a"), SOLVERS)
def test_solutions(solver: Any, a: Any) -> None:
    want = np.linalg.solve(a, B)
    with fxflow.config.override(x64=True):
        near = np.diag(1 / np.diag(a))
        for options in ({}, {"x0": B}, {"M": near}, {"M": lambda v: near @ v}):
            x, _ = solver(a, B, tol=1e-11, **options)
            np.testing.assert_allclose(x, want, 1e-7)
        x, _ = fxflow.jit(lambda a, b: solver(a, b, tol=1e-11))(a, B)
        np.testing.assert_allclose(x, want, 1e-7)
        many = fxflow.vmap(lambda b: solver(a, b, tol=1e-11)[0])(np.stack([B, 2 * B]))
        np.testing.assert_allclose(many, [want, 2 * want], 1e-7)
    x, _ = solver(a.astype("c8" if np.iscomplexobj(a) else "f4"), B.astype("f4"))
    np.testing.assert_allclose(x, want, 1e-2, 1e-3)
    x, _ = solver(a, 0 * B)
    assert not np.asarray(x).any()


@pytest.mark.parametrize(("solver", "a"), SOLVERS[:3])
def test_derivatives_agree_with_formulas(solver: Any, a: Any) -> None:
    def loss(a: Any, b: Any) -> Any:
        return (solver(a, b, tol=1e-12)[0] ** 2).sum()

    with fxflow.config.override(x64=True):
        x, inverse = np.linalg.solve(a, B), np.linalg.inv(a)
        da, db = fxflow.jit(fxflow.grad(loss, (0, 1)))(a, B)
        np.testing.assert_allclose(db, 2 * inverse.T @ x, 1e-6)
        np.testing.assert_allclose(da, -np.outer(2 * inverse.T @ x, x), 1e-5, 1e-8)
        forward = fxflow.jacfwd(lambda b: solver(a, b, tol=1e-12)[0])(B)
        np.testing.assert_allclose(forward, inverse, 1e-6, 1e-8)


def test_pytrees_and_bounds() -> None:
    def double(t: Any) -> Any:
        return {"x": 2 * t["x"], "y": 4 * t["y"]}

    b = {"x": np.ones(2, np.float32), "y": np.array([[2]], np.int32)}
    for solver in (linalg.cg, linalg.bicgstab, linalg.gmres):
        x, _ = solver(double, b)
        np.testing.assert_allclose(x["x"], [0.5, 0.5], 1e-5)
        np.testing.assert_allclose(x["y"], [[0.5]], 1e-5)
        options = {"restart": 1} if solver is linalg.gmres else {}
        rough, _ = solver(SYMMETRIC, B, maxiter=1, **options)
        assert np.linalg.norm(SYMMETRIC @ np.asarray(rough) - B) > 1e-3
        start, _ = solver(SYMMETRIC, B, atol=1e3)
        assert not np.asarray(start).any()
    x, info = linalg.gmres(np.eye(2), np.ones(2), np.array([1, np.nan]), maxiter=2)
    assert int(info) == -1


def test_invalid_operators_shapes_and_methods_are_refused() -> None:
    with pytest.raises(ArgumentError, match="function"):
        linalg.cg({"a": 1}, B)
    with pytest.raises(ShapeError):
        linalg.cg(SYMMETRIC[:2], B)
    with pytest.raises(ShapeError):
        linalg.gmres(SYMMETRIC, B, B[:3])
    with pytest.raises(ArgumentError):
        linalg.gmres(SYMMETRIC, B, solve_method="fast")


@pytest.mark.parametrize("solve", [linalg.cg, linalg.bicgstab, linalg.gmres])
def test_right_sides_whose_squares_leave_the_range(solve: Any) -> None:
    a, b = np.array([[4.0, 1], [1, 3]], np.float32), np.array([1.0, 2], np.float32)
    want = np.linalg.solve(a, b)
    for scale in (1e-30, 1e-25, 1e25, 1e37):
        x0 = want * np.float32(scale) * np.float32(0.5)
        for x in (solve(a, b * scale)[0], solve(a, b * scale, x0)[0]):
            np.testing.assert_allclose(x / scale, want, 1e-4)


@pytest.mark.parametrize("solve", [linalg.cg, linalg.bicgstab, linalg.gmres])
def test_what_is_not_finite_gives_nan(solve: Any) -> None:
    a = np.array([[4.0, 1], [1, 3]], np.float32)
    run = fxflow.jit(lambda b: solve(a, b)[0])
    for value in (np.nan, np.inf, -np.inf):
        assert np.isnan(run(np.array([1, value], np.float32))).any()
    # Other right sides of a batch keep their solutions.
    both = fxflow.vmap(run)(np.array([[1, np.nan], [1, 2]], np.float32))
    np.testing.assert_allclose(both[1], np.linalg.solve(a, [1, 2]), 1e-4)


CALLED = [
    *("cg", "bicgstab", "bicg", "cgs", "qmr", "tfqmr", "minres", "lgmres", "gcrotmk"),
    "gmres",
]


@pytest.mark.parametrize("name", CALLED)
def test_callbacks_see_each_iterate(name: str) -> None:
    solver = getattr(linalg, name)
    a = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1
    b, x0 = np.array([1.0, -1.0, 2.0, 0.5]), np.full(4, 0.1)
    seen: list[Any] = []
    options: dict[str, Any] = {"callback": seen.append, "rtol": 1e-6}
    options |= {
        "gmres": {"callback_type": "x", "restart": 2},
        "lgmres": {"inner_m": 2, "outer_k": 1},
        "gcrotmk": {"m": 2},
    }.get(name, {})

    @fxflow.jit
    def solve(a: Any, b: Any) -> Any:
        return solver(a, b, x0, **options)[0]

    x = solve(a, b)
    want = np.linalg.solve(a, b)
    np.testing.assert_allclose(x, want, 1e-4)
    # The last one is the solution, and each is nearer than where it begins.
    np.testing.assert_allclose(seen[-1], x, 1e-5)
    assert 1 < len(seen) <= 10
    errors = [np.linalg.norm(a @ v - b) for v in seen]
    assert errors[0] > errors[-1] and errors[-1] < 1e-4
    count = len(seen)
    loss = lambda a, b: fnp.sum(solve(a, b) ** 2)
    by_a, by_b = fxflow.grad(loss, (0, 1))(a, b)
    slope = np.linalg.solve(a.T, 2 * want)
    np.testing.assert_allclose(by_b, slope, 1e-3)
    np.testing.assert_allclose(by_a, -np.outer(slope, want), 1e-3, 1e-4)
    # Systems of the derivative do not call it.
    assert len(seen) == 2 * count


def test_gmres_tells_norms_of_residuals_as_scipy() -> None:
    a = np.diag(np.arange(1.0, 9.0)) + np.triu(np.full((8, 8), 0.3), 1)
    b = np.arange(8.0) - 3
    norms: list[Any] = []
    theirs: list[Any] = []
    options = {"restart": 5, "maxiter": 2, "rtol": 1e-9}
    with fxflow.config.override(x64=True):
        linalg.gmres(a, b, callback=norms.append, **options)
    scipy.sparse.linalg.gmres(
        a, b, callback=theirs.append, callback_type="pr_norm", **options
    )
    np.testing.assert_allclose(norms, theirs, 1e-6)
    with pytest.raises(ArgumentError, match="callback_type must be"):
        linalg.gmres(a, b, callback=print, callback_type="legacy")
    with pytest.raises(ArgumentError, match="callback must be a function"):
        linalg.cg(a, b, callback=3)
