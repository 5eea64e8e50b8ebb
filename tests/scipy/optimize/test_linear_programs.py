"""Linear and quadratic programs beside HiGHS's results, and their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize
from fxflow.scipy.optimize import (
    Bounds,
    LinearConstraint,
    linprog,
    milp,
    quadratic_program,
)

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
    with pytest.raises(ArgumentError, match="highs takes no callback"):
        optimize.linprog([1.0], callback=print)


def drawn_whole(seed: int, kinds: Any) -> tuple[Any, ...]:
    """A program some of whose variables are whole: c, A, b, low, high."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 9, (5, 8)).astype(float)
    sides = rng.integers(10, 40, 5).astype(float)
    costs = -rng.integers(1, 9, 8).astype(float)
    return costs, rows, sides, np.where(kinds >= 2, 1.5, 0.0), np.full(8, 6.0)


@pytest.mark.slow
def test_whole_variables_have_the_values_that_highs_finds() -> None:
    kinds = np.array([1, 1, 1, 1, 0, 0, 2, 3])

    def best(c: Any, A: Any, b: Any, low: Any, high: Any) -> Any:
        rows = LinearConstraint(A, -np.inf, b)
        return milp(c, integrality=kinds, bounds=Bounds(low, high), constraints=rows)

    with fxflow.config.override(x64=True):
        programs = [drawn_whole(seed, kinds) for seed in range(12)]
        many = fxflow.jit(fxflow.vmap(best))(*map(np.stack, zip(*programs)))
        for i, (c, A, b, low, high) in enumerate(programs):
            want = scipy.optimize.milp(
                c,
                integrality=kinds,
                bounds=scipy.optimize.Bounds(low, high),
                constraints=scipy.optimize.LinearConstraint(A, -np.inf, b),
            )
            assert int(many.status[i]) == want.status == 0
            np.testing.assert_allclose(many.fun[i], want.fun, rtol=1e-7)
            x = np.asarray(many.x[i])
            assert (np.abs(x[:4] - np.round(x[:4])) < 1e-9).all()
            np.testing.assert_allclose(many.mip_gap[i], 0, atol=1e-7)
        one = fxflow.tree.map(lambda v: v[0], many)
        alone = best(*programs[0])
        np.testing.assert_allclose(alone.x, one.x, atol=1e-9)
        assert int(alone.mip_node_count) == int(one.mip_node_count)
        assert int(many.mip_node_count.max()) > 5


@pytest.mark.slow
def test_whole_variables_in_linprog_equations_limits_and_derivatives() -> None:
    with fxflow.config.override(x64=True):
        c, A, b = np.array([-5.0, -4.0, -3.0]), np.array([[2.0, 3, 1]]), np.array([5.5])
        given = (c, A, b, np.array([[1.0, 1, 1]]), np.array([3.0]), (0, 2))
        want = scipy.optimize.linprog(*given, integrality=[1, 1, 0])
        found = linprog(*given, integrality=[1, 1, 0])
        np.testing.assert_allclose(found.x, want.x, atol=1e-9)
        np.testing.assert_allclose(found.con, 0, atol=1e-9)
        few = milp(
            c,
            integrality=1,
            bounds=(0, 2),
            constraints=[(A, -np.inf, b), (np.ones((1, 3)), 3.0, 3.0)],
            options={"node_limit": 1},
        )
        assert int(few.status) in (0, 1) and int(few.mip_node_count) == 1
        none = milp(
            c, integrality=1, constraints=([[2.0, 2, 2]], 3.0, 3.0), bounds=(0, 1)
        )
        assert int(none.status) == 2 and np.isnan(np.asarray(none.x)).all()
        endless = milp(c, integrality=1)
        assert int(endless.status) == 3

        # Whole variables stay, the others move with the right side.
        def value(b: Any, c: Any) -> Any:
            return linprog(c, A, b, *given[3:], integrality=[1, 1, 0]).fun

        slopes = fxflow.grad(value, (0, 1))(b, c)
        np.testing.assert_allclose(slopes[1], found.x, atol=1e-8)
        change = 1e-4
        moved = scipy.optimize.linprog(
            c, A, b + change, *given[3:], integrality=[1, 1, 0]
        )
        np.testing.assert_allclose(
            slopes[0], (moved.fun - want.fun) / change, atol=1e-6
        )


def test_wrong_whole_variables_are_refused() -> None:
    with pytest.raises(ArgumentError, match="integrality must be 0, 1, 2 or 3, got 4"):
        milp(C, integrality=4)
    with pytest.raises(ShapeError, match=r"integrality must be int\[2\]"):
        linprog(C, integrality=[1, 0, 1])
    with pytest.raises(ArgumentError, match="constraints must be LinearConstraint"):
        milp(C, constraints=[3.0])
    with pytest.raises(ShapeError, match=r"must be float\[m, 2\]"):
        milp(C, constraints=LinearConstraint(np.ones((1, 3))))
    with pytest.raises(ArgumentError, match="no options time_limit"):
        milp(C, options={"time_limit": 3})
