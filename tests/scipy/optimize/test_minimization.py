"""Minimization of known functions, beside SciPy's results."""

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
    NonlinearConstraint,
    OptimizeResults,
    minimize,
)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x: Any) -> Any:
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS"])
@pytest.mark.parametrize(
    ("function", "start", "want"),
    [
        (rosenbrock, [-1.2, 1.0], [1, 1]),
        (himmelblau, [1.0, 1.0], [3, 2]),
        (matyas, [4.0, -3.0], [0, 0]),
    ],
)
def test_minima(function: Any, start: Any, want: Any, method: str) -> None:
    with fxflow.config.override(x64=True):
        run = fxflow.jit(lambda x: minimize(function, x, method=method))
        found = run(np.array(start))
        assert bool(found.success) and int(found.status) == 0
        np.testing.assert_allclose(found.x, want, atol=2e-4)
        assert float(np.abs(found.jac).max()) < 1e-5
        theirs = scipy.optimize.minimize(function, np.array(start), method="BFGS")
        assert int(found.nfev) < 2 * theirs.nfev
        assert float(found.fun) == pytest.approx(function(found.x))
        if method == "BFGS":
            hessian = np.asarray(fxflow.hessian(function)(found.x))
            eye = np.eye(len(want))
            np.testing.assert_allclose(found.hess_inv @ hessian, eye, atol=0.5)
    small = minimize(function, np.array(start, np.float32), method=method)
    np.testing.assert_allclose(small.x, want, atol=2e-2)
    assert small.x.dtype == np.float32


def test_many_at_once_and_arguments() -> None:
    def run(a: Any) -> OptimizeResults:
        shifted = lambda x, a, b: ((x - a) ** 2).sum() + b
        return minimize(shifted, np.zeros(3), (a, 2.0), method="bfgs", tol=1e-3)

    found = fxflow.vmap(run)(np.arange(6.0).reshape(2, 3))
    np.testing.assert_allclose(found.x, np.arange(6.0).reshape(2, 3), atol=1e-3)
    np.testing.assert_allclose(found.fun, [2, 2], atol=1e-3)
    assert run(np.zeros(3)).nit == 0  # it begins at the minimum


def test_limits_of_steps_end_the_search() -> None:
    start = np.array([-1.2, 1.0])
    few = minimize(rosenbrock, start, method="BFGS", options={"maxiter": 3})
    assert int(few.status) == 1 and int(few.nit) == 3 and not few.success
    assert float(few.fun) < float(rosenbrock(start))
    few = minimize(rosenbrock, start, method="L-BFGS", options={"maxfun": 5})
    assert int(few.status) == 1
    for name in ("maxfun", "maxgrad", "maxiter"):
        none = minimize(rosenbrock, start, method="L-BFGS", options={name: 0})
        assert (int(none.status), int(none.nit), int(none.nfev)) == (1, 0, 1)
    lost = minimize(lambda x: fnp.log(x).sum(), -np.ones(2), method="BFGS")
    assert int(lost.status) == 2
    once = {"line_search_maxiter": 1}
    none = minimize(rosenbrock, start, method="BFGS", options=once)
    assert int(none.status) in (0, 3)
    loose = minimize(rosenbrock, start, method="BFGS", options={"gtol": 10, "norm": 2})
    assert np.linalg.norm(loose.jac) < 10


def test_invalid_methods_options_and_shapes_are_refused() -> None:
    for options in [
        {"method": "COBYQA"},
        {"method": "BFGS", "options": {"foo": 1}},
        {"method": "CG", "bounds": [(0, 1)] * 2},
        {"method": "BFGS", "constraints": {"type": "eq", "fun": rosenbrock}},
        {"method": "BFGS", "jac": 3},
        {"method": "BFGS", "hess": 3},
        {"method": "BFGS", "hessp": 3},
        {"method": "L-BFGS-B", "options": {"maxcor": 0}},
    ]:
        with pytest.raises(ArgumentError):
            minimize(rosenbrock, np.ones(2), **options)
    with pytest.raises(ArgumentError, match="tuple"):
        minimize(rosenbrock, np.ones(2), 3.0, method="BFGS")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="pytree"):
        minimize(rosenbrock, np.ones((2, 2)), method="BFGS")
    with pytest.raises(ShapeError, match="initial_simplex"):
        minimize(
            rosenbrock,
            np.ones(2),
            method="Nelder-Mead",
            options={"initial_simplex": np.ones((2, 2))},
        )
    with pytest.raises(ShapeError):
        minimize(lambda x: x, np.ones(2), method="BFGS")


# -- methods ---------------------------------------------------------------------------


def beale(x: Any) -> Any:
    return (
        (1.5 - x[0] + x[0] * x[1]) ** 2
        + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2
        + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2
    )


METHODS = [
    *("CG", "Newton-CG", "TNC", "trust-ncg", "trust-krylov", "trust-exact"),
    *("Nelder-Mead", "Powell"),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("function", "start", "want"),
    [(rosenbrock, [-1.2, 1.0, 0.5], [1, 1, 1]), (beale, [1.0, 1.0], [3, 0.5])],
)
def test_minima_of_other_methods(
    function: Any, start: Any, want: Any, method: str
) -> None:
    with fxflow.config.override(x64=True):
        found = minimize(function, start, method=method)
        assert int(found.status) == 0
        np.testing.assert_allclose(found.x, want, atol=2e-4)
        derivatives = {
            "jac": lambda x: np.asarray(fxflow.grad(function)(x)),
            "hess": lambda x: np.asarray(fxflow.hessian(function)(x)),
        }
        given = {} if method in ("Nelder-Mead", "Powell") else derivatives
        if method in ("CG", "TNC"):
            del given["hess"]
        theirs = scipy.optimize.minimize(function, start, method=method, **given)
        assert int(found.nfev) < 1.5 * theirs.nfev + 5
    small = minimize(function, np.array(start, "f"), method=method)
    np.testing.assert_allclose(small.x, want, atol=5e-3)


@pytest.mark.slow
def test_derivatives_that_are_given_are_used() -> None:
    def both(x: Any) -> Any:
        return rosenbrock(x), fxflow.grad(rosenbrock)(x)

    gradient, hessian = fxflow.grad(rosenbrock), fxflow.hessian(rosenbrock)
    start = np.array([-1.2, 1.0])
    for method, given in (
        ("BFGS", {"jac": gradient}),
        ("trust-ncg", {"hessp": lambda x, p: hessian(x) @ p}),
        ("trust-exact", {"jac": gradient, "hess": hessian}),
        ("Newton-CG", {"hess": hessian}),
    ):
        found = minimize(rosenbrock, start, method=method, **given)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.x, [1, 1], atol=1e-2)
    found = minimize(both, start, jac=True)
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-2)


@pytest.mark.slow
def test_pytrees_and_lists() -> None:
    def squares(p: Any) -> Any:
        return ((p["w"] - 1) ** 2).sum() + (p["b"] - 2) ** 2

    found = minimize(squares, {"w": fnp.zeros((2, 2)), "b": 0.0})
    np.testing.assert_allclose(found.x["w"], np.ones((2, 2)), atol=1e-5)
    np.testing.assert_allclose(found.x["b"], 2, atol=1e-5)
    assert found.jac["w"].shape == (2, 2)
    assert minimize(lambda x: (x**2).sum(), [3.0, 4.0]).x.shape == (2,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["L-BFGS-B", "TNC", "SLSQP", "Nelder-Mead", "Powell"]
)
def test_bounds_are_kept_and_active_ones_found(method: str) -> None:
    with fxflow.config.override(x64=True):
        bounds = [(None, 0.8), (0.0, 2.0)]
        found = minimize(rosenbrock, np.array([0.5, 1.5]), method=method, bounds=bounds)
        assert int(found.status) == 0
        np.testing.assert_allclose(found.x, [0.8, 0.64], atol=1e-3)
        assert float(found.x[0]) <= 0.8


HS71 = {
    "bounds": [(1, 5)] * 4,
    "constraints": [
        {"type": "ineq", "fun": lambda x: x[0] * x[1] * x[2] * x[3] - 25},
        {"type": "eq", "fun": lambda x: (x**2).sum() - 40},
    ],
}


def hs43(x: Any) -> Any:
    squares = x @ (np.array([1.0, 1, 2, 1]) * x)
    return squares - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3]


def hs43_rows(x: Any) -> Any:
    a, b, c, d = x**2
    return fnp.stack(
        [
            8 - a - b - c - d - x[0] + x[1] - x[2] + x[3],
            10 - a - 2 * b - c - 2 * d + x[0] + x[3],
            5 - 2 * a - b - c - 2 * x[0] + x[1] + x[3],
        ]
    )


#: Problems of Hock and Schittkowski with their solutions and multipliers.
CONSTRAINED = {
    "hs6": (
        lambda x: (1 - x[0]) ** 2,
        [-1.2, 1.0],
        {"constraints": {"type": "eq", "fun": lambda x: 10 * (x[1] - x[0] ** 2)}},
        [1, 1],
        [[0]],
    ),
    "hs7": (
        lambda x: fnp.log(1 + x[0] ** 2) - x[1],
        [2.0, 2.0],
        {
            "constraints": {
                "type": "eq",
                "fun": lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4,
            }
        },
        [0, np.sqrt(3)],
        [[-1 / np.sqrt(12)]],
    ),
    "hs43": (
        hs43,
        [0.0] * 4,
        {"constraints": {"type": "ineq", "fun": hs43_rows}},
        [0, 1, 2, -1],
        [[1, 0, 2]],
    ),
    "hs71": (
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        [1.0, 5.0, 5.0, 1.0],
        HS71,
        [1, 4.7429994, 3.8211503, 1.3794082],
        [[0.5522937], [-0.1614686]],
    ),
    "maratos": (
        lambda x: 2 * (x @ x - 1) - x[0],
        [0.8, 0.6],
        {"constraints": NonlinearConstraint(lambda x: x @ x, 1.0, 1.0)},
        [1, 0],
        [[1.5]],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_constrained_minima_and_multipliers(name: str, method: str) -> None:
    function, start, given, want, multipliers = CONSTRAINED[name]
    with fxflow.config.override(x64=True):
        found = minimize(function, np.array(start), method=method, **given)  # type: ignore[arg-type]
        assert int(found.status) == 0 and float(found.maxcv) < 1e-6
        np.testing.assert_allclose(found.x, want, atol=2e-5)
        for ours, theirs in zip(found.multipliers, multipliers, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-4)
        assert int(found.nit) < 25
    small = minimize(function, np.array(start, "f"), method=method, **given)  # type: ignore[arg-type]
    np.testing.assert_allclose(small.x, want, atol=5e-3)


@pytest.mark.slow
def test_constraints_that_contradict_each_other_are_reported() -> None:
    rows = LinearConstraint(np.array([[1.0, 0.0], [1.0, 0.0]]), [1, -np.inf], [9, -1])
    found = minimize(lambda x: x @ x, np.ones(2), constraints=rows)
    assert int(found.status) == 4 and not found.success
    assert "constraints" in found.message and float(found.maxcv) > 0.9


# -- derivatives of solutions ----------------------------------------------------------


def test_derivatives_of_a_minimum_match_differences() -> None:
    with fxflow.config.override(x64=True):

        def lowest(a: Any) -> Any:
            cost = lambda x, b: ((x - a) ** 4).sum() + b * ((x - 1) ** 2).sum()
            return minimize(cost, np.zeros(2), (a,), tol=1e-9).x[0]

        h = 1e-3
        want = (lowest(0.8 + h) - lowest(0.8 - h)) / (2 * h)
        assert float(fxflow.grad(lowest)(0.8)) == pytest.approx(float(want), rel=1e-4)
        second = (fxflow.grad(lowest)(0.8 + h) - fxflow.grad(lowest)(0.8 - h)) / (2 * h)
        found = fxflow.jit(fxflow.hessian(lowest))(0.8)
        assert float(found) == pytest.approx(float(second), rel=1e-4)


@pytest.mark.slow
def test_derivatives_by_bounds_and_of_values() -> None:
    """An active bound moves its variable; the value moves by the gradient there."""
    squares = lambda x: ((x + 1) ** 2).sum()

    def found(low: Any) -> Any:
        return minimize(squares, np.zeros(2), bounds=Bounds(low, 5.0))

    assert float(fxflow.grad(lambda low: found(low).x[0])(0.5)) == 1
    assert float(fxflow.grad(lambda low: found(low).fun)(0.5)) == pytest.approx(6)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, "SLSQP", "trust-constr"])
def test_derivatives_do_not_depend_on_the_method(method: str) -> None:
    with fxflow.config.override(x64=True):

        def lowest(a: Any) -> Any:
            cost = lambda x: ((x - a) ** 4).sum() + a * ((x - 1) ** 2).sum()
            return minimize(cost, np.zeros(2), method=method, tol=1e-8).x

        want = [0.2186971] * 2
        np.testing.assert_allclose(fxflow.jacfwd(lowest)(0.8), want, rtol=1e-3)
        np.testing.assert_allclose(fxflow.jacrev(lowest)(0.8), want, rtol=1e-3)


@pytest.mark.slow
def test_derivatives_with_constraints_match_differences() -> None:
    with fxflow.config.override(x64=True):

        def lowest(t: Any) -> Any:
            inside = NonlinearConstraint(lambda x: t * (x @ x), -np.inf, 0.5)
            cost = lambda x: (x[0] - t) ** 2 + t * (x[1] - 1) ** 2
            found = minimize(
                cost, np.zeros(2), constraints=inside, options={"ftol": 1e-12}
            )
            return found.x[0], found.multipliers[0][0]

        h = 1e-4
        run = fxflow.jit(lowest)
        want = [(a - b) / (2 * h) for a, b in zip(run(0.8 + h), run(0.8 - h))]
        found = fxflow.jit(fxflow.jacrev(lowest))(0.8)
        np.testing.assert_allclose(found, want, rtol=1e-4)
        many = fxflow.vmap(lowest)(np.array([0.8, 0.9]))
        np.testing.assert_allclose(many[0][0], run(0.8)[0], rtol=1e-6)


def test_functions_without_a_gradient_are_minimized_by_values() -> None:
    def steps(x: Any) -> Any:
        return (
            fxflow.lax.while_loop(lambda v: v > 2.0, lambda v: v / 2, 4 + (x**2).sum())
            + (x**2).sum()
        )

    found = minimize(steps, np.ones(2), method="Nelder-Mead")
    np.testing.assert_allclose(found.x, 0, atol=1e-3)


def test_a_solver_that_does_not_converge_raises_under_checks() -> None:
    def run(x: Any) -> Any:
        return minimize(rosenbrock, x, options={"maxiter": 2}).x

    error, _ = fxflow.checkify.checkify(run)(np.array([-1.2, 1.0], "f"))
    assert "minimize: did not converge: status 1" in str(error.get())


@pytest.mark.parametrize(
    "method",
    ["BFGS", "trust-ncg", "L-BFGS-B"]
    + [pytest.param(m, marks=pytest.mark.slow) for m in ("SLSQP", "Powell")]
    + ["Nelder-Mead"],
)
def test_callbacks_see_each_iteration(method: str) -> None:
    """They are called with points like the start, eagerly and compiled."""
    seen: list[Any] = []
    run = lambda x: (
        optimize.minimize(
            lambda p: fnp.sum((p["a"] - 1) ** 2),
            {"a": x},
            method=method,
            bounds=optimize.Bounds(-5, 5) if method == "L-BFGS-B" else None,
            callback=seen.append,
        ).nit
    )
    steps = int(run(fnp.zeros(2)))
    fxflow.effects_barrier()
    assert len(seen) == steps > 0
    np.testing.assert_allclose(seen[-1]["a"], 1, atol=1e-2)
    if method == "BFGS":
        fxflow.jit(run)(fnp.zeros(2))
        fxflow.effects_barrier()
        assert len(seen) == 2 * steps


def test_callbacks_are_functions() -> None:
    with pytest.raises(ArgumentError, match="callback must be a function, got 3"):
        optimize.minimize(fnp.sum, [1.0], callback=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fun", "start", "rows", "bounds"),
    [
        # Powell's examples, an equation, and bounds that hold.
        (lambda x: x[0] * x[1], [1, 1], [lambda x: 1 - x @ x], None),
        (lambda x: -x.sum(), [1, 1], [lambda x: x[1] - x[0] ** 2], [(-2, 1)] * 2),
        (lambda x: (x**2).sum() + x[1] ** 2, [1.0, 0.7, -0.7], None, None),
        (lambda x: ((x - 2) ** 2).sum(), [0.2, 0.3], [], [(0, 1), (0.5, 0.5)]),
    ],
)
def test_cobyla_finds_what_scipy_finds(
    fun: Any, start: Any, rows: Any, bounds: Any
) -> None:
    row = {"type": "eq", "fun": lambda x: x[0] + x[1] + x[2] - 1}
    group = [row] if rows is None else [{"type": "ineq", "fun": f} for f in rows]
    given: Any = {"method": "COBYLA", "constraints": group, "bounds": bounds}
    want = scipy.optimize.minimize(fun, start, **given)
    with fxflow.config.override(x64=True):
        found = optimize.minimize(fun, fnp.asarray(start, float), **given)
    assert int(found.status) == 0
    np.testing.assert_allclose(found.fun, want.fun, atol=1e-4)
    assert found.jac is None and int(found.nfev) < 150


@pytest.mark.slow
def test_cobyla_has_a_derivative_and_limits() -> None:
    def run(a: Any, **options: Any) -> Any:
        row = {"type": "ineq", "fun": lambda x: a - x @ x}
        return optimize.minimize(
            *(lambda x: -x.sum(), fnp.array([0.1, 0.2])),
            method="COBYLA",
            constraints=row,
            options=options,
        )

    with fxflow.config.override(x64=True):
        # x = (a / 2)^(1/2).
        slope = fxflow.grad(lambda a: run(a, tol=1e-7).x[0])(2.0)
        np.testing.assert_allclose(slope, 0.25, rtol=1e-4)
        assert int(run(2.0, maxiter=5).status) == 1
        assert int(run(2.0, f_target=-1.0).status) == 0
    with pytest.raises(ArgumentError, match="0 < tol <= rhobeg"):
        run(1.0, rhobeg=1e-5)


@pytest.mark.slow
def test_programs_begin_where_an_equation_holds_but_for_rounding() -> None:
    # A violation of rounding errors let a step of values alone do nothing.
    row = {"type": "eq", "fun": lambda x: x[0] + x[1] + x[2] - 1}
    with fxflow.config.override(x64=True):
        found = optimize.minimize(
            lambda x: (x**2).sum() + x[1] ** 2,
            fnp.array([1.0, 0.7 - 2e-16, -0.7]),
            method="COBYLA",
            constraints=row,
        )
        np.testing.assert_allclose(found.x, [0.4, 0.2, 0.4], atol=1e-3)
