"""Linear and quadratic programs beside HiGHS's results, and their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize
from fxflow.scipy.optimize import linprog, quadratic_program

A = np.array([[1.0, 1.0], [1.0, 3.0]])
B = np.array([4.0, 6.0])
C = np.array([-1.0, -2.0])


def agrees(found: Any, want: Any, tolerance: float) -> None:
    assert int(found.status) == want.status == 0 and bool(found.success)
    for name in ("x", "fun", "slack", "con"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(want, name), atol=tolerance
        )
    for name in ("ineqlin", "eqlin", "lower", "upper"):
        ours, theirs = getattr(found, name), getattr(want, name)
        np.testing.assert_allclose(ours.residual, theirs.residual, atol=tolerance)
        np.testing.assert_allclose(ours.marginals, theirs.marginals, atol=tolerance)


def drawn(seed: int) -> tuple[Any, ...]:
    """A program with a solution: c, A_ub, b_ub, A_eq, b_eq, bounds."""
    rng = np.random.default_rng(seed)
    n, m, k = 6, 5, 2
    inside = rng.uniform(0.1, 0.9, n)
    rows, equations = rng.normal(size=(m, n)), rng.normal(size=(k, n))
    inside[4] = 0.5
    bounds = [(0, None), (0, 2), (-3, 3), (0, 1), (0.5, 0.5), (0, 4)]
    right = rows @ inside + rng.uniform(0.1, 1, m)
    c = rng.normal(size=n)
    c[0] = abs(c[0]) + 4
    return c, rows, right, equations, equations @ inside, bounds


def test_solutions_and_marginals_match_highs_one_by_one_and_vectorized() -> None:
    with fxflow.config.override(x64=True):
        programs = [drawn(seed) for seed in range(6)]
        bounds = programs[0][-1]
        run = fxflow.jit(fxflow.vmap(lambda *p: linprog(*p, bounds)))
        many = run(*(np.stack(p) for p in zip(*(p[:5] for p in programs))))
        for i, program in enumerate(programs):
            one = fxflow.tree.map(lambda v, i=i: v[i], many)
            agrees(one, scipy.optimize.linprog(*program), 1e-8)


@pytest.mark.slow
def test_solutions_in_float32() -> None:
    for seed in range(4):
        *given, bounds = drawn(seed)
        small = linprog(*(v.astype("f") for v in given), bounds)
        want = scipy.optimize.linprog(*given, bounds)
        assert small.x.dtype == np.float32
        np.testing.assert_allclose(small.x, want.x, atol=5e-3)


def test_programs_without_a_solution_say_so() -> None:
    run = fxflow.jit(lambda c, a, b: linprog(c, a, b))
    cases = [([1, 1], [[1, 1]], [-1]), ([-1, -1], [[1, -1]], [1])]
    for (c, a, b), status in zip(cases, (2, 3), strict=True):
        found = run(*(np.array(v, "f") for v in (c, a, b)))
        want = scipy.optimize.linprog(c, a, b).status
        assert int(found.status) == want == status and not found.success
        assert np.isnan(np.asarray(found.x)).all()


@pytest.mark.slow
def test_degenerate_and_redundant_programs_have_the_best_value() -> None:
    with fxflow.config.override(x64=True):
        for c, *rest in (
            ([-1.0, -1.0], [[1.0, 1.0]], [1.0]),
            ([1.0, 1.0], None, None, [[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0]),
            ([0.0, 0.0], [[1.0, 1.0]], [1.0]),
        ):
            given = [None if v is None else np.array(v) for v in (c, *rest)]
            want = scipy.optimize.linprog(*given)
            found = linprog(*given)
            assert int(found.status) == 0
            np.testing.assert_allclose(found.fun, want.fun, atol=1e-8)
        # Klee and Minty's cube.
        n = 6
        costs = -(2.0 ** np.arange(n - 1, -1, -1))
        rows = np.array(
            [
                [2.0 ** (i - j + 1) if j < i else i == j for j in range(n)]
                for i in range(n)
            ]
        )
        found = linprog(costs, rows.astype(float), 5.0 ** np.arange(1, n + 1))
        np.testing.assert_allclose(found.x, [0] * 5 + [15625], atol=1e-6)
        lost = linprog(C, None, None, np.array([[1.0, 1], [2, 2]]), np.array([1.0, 3]))
        assert int(lost.status) == 2
        few = linprog(C, A, B, options={"maxiter": 2})
        assert int(few.status) == 1


@pytest.mark.slow
def test_derivatives_of_a_vertex_match_differences() -> None:
    with fxflow.config.override(x64=True):

        def corner(t: Any) -> Any:
            return linprog(C, t * A, B + t).x[0]

        low, high = corner(1 - 1e-4), corner(1 + 1e-4)
        slope = fxflow.grad(corner)
        assert float(slope(1.0)) == pytest.approx(float(high - low) / 2e-4, rel=1e-6)
        b = fxflow.grad(lambda b: linprog(C, A, b).fun)(fnp.array(B))
        np.testing.assert_allclose(b, linprog(C, A, B).ineqlin.marginals, atol=1e-9)


def test_quadratic_programs_are_projections() -> None:
    """The point of the simplex next to a point, and its derivative."""
    with fxflow.config.override(x64=True):
        one = np.ones((1, 3))

        def nearest(q: Any) -> Any:
            return quadratic_program(
                np.eye(3), -q, A_eq=one, b_eq=np.ones(1), bounds=(0, None)
            ).x

        point = np.array([0.9, 0.4, -1.0])
        np.testing.assert_allclose(nearest(point), [0.75, 0.25, 0], atol=1e-12)
        free = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])
        np.testing.assert_allclose(fxflow.jacrev(nearest)(point), free, atol=1e-12)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="both of A_ub and b_ub"):
        linprog(C, A)
    with pytest.raises(ShapeError, match=r"A_ub must be float\[m, 2\]"):
        linprog(C, A, np.ones(3))
    with pytest.raises(ShapeError, match="costs must be"):
        linprog(A)
    with pytest.raises(ArgumentError, match="method"):
        linprog(C, A, B, method="revised simplex")
    with pytest.raises(ArgumentError, match="no options"):
        linprog(C, A, B, options={"presolve": True})
    with pytest.raises(ShapeError, match=r"P must be float\[2, 2\]"):
        quadratic_program(np.ones(3), C)


def test_programs_in_lists() -> None:
    """SciPy's example, whose arguments are lists."""
    found = optimize.linprog(
        [-1, 4], A_ub=[[-3, 1], [1, 2]], b_ub=[6, 4], bounds=[(None, None), (-3, None)]
    )
    np.testing.assert_allclose(found.x, [10, -3], 1e-4)
    found = optimize.linprog([1, 2], A_eq=[[1, 1]], b_eq=1, x0=[0, 1], integrality=0)
    np.testing.assert_allclose(found.x, [1, 0], atol=1e-4)
    with pytest.raises(ArgumentError, match="whole are not supported"):
        optimize.linprog([1.0], integrality=[1])
    with pytest.raises(ArgumentError, match="highs takes no callback"):
        optimize.linprog([1.0], callback=print)
