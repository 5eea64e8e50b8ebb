"""Roots of systems and fixed points, beside SciPy's, and their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize
from fxflow.scipy.optimize import fixed_point, root


def cubic(x: Any, a: Any = 1.0) -> Any:
    return fnp.stack(
        [x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        *("hybr", "lm", "broyden1", "broyden2", "anderson", "krylov", "diagbroyden"),
        "df-sane",
    ],
)
def test_roots_of_all_methods(method: str) -> None:
    want = scipy.optimize.root(lambda x: np.asarray(cubic(x)), [0.0, 0.0]).x
    with fxflow.config.override(x64=True):
        found = root(cubic, np.zeros(2), method=method)
        assert bool(found.success) and int(found.nit) < 20
        np.testing.assert_allclose(found.x, want, atol=2e-5)
    small = root(cubic, np.zeros(2, "f"), method=method)
    np.testing.assert_allclose(small.x, want, atol=2e-4)


@pytest.mark.slow
def test_derivatives_and_many_at_once() -> None:
    with fxflow.config.override(x64=True):
        run = lambda a: root(cubic, np.zeros(2), (a,)).x
        x = run(1.0)
        want = np.linalg.solve(fxflow.jacfwd(cubic)(x), [1.0, 0.0])
        np.testing.assert_allclose(fxflow.jacrev(run)(1.0), want, rtol=1e-6)
        many = fxflow.jit(fxflow.vmap(fxflow.jacfwd(run)))(np.array([1.0, 2.0]))
        np.testing.assert_allclose(many[0], want, rtol=1e-6)


@pytest.mark.slow
def test_pytrees_overdetermined_systems_and_given_jacobians() -> None:
    def equations(p: Any) -> Any:
        return {"a": p["a"] ** 2 - 4, "b": p["b"] - p["a"]}

    found = root(equations, {"a": fnp.ones(2), "b": fnp.zeros(2)})
    np.testing.assert_allclose(found.x["b"], [2, 2], rtol=1e-4)
    more = root(lambda x: fnp.stack([x[0] - 1, x[0] - 2]), np.zeros(1), method="lm")
    np.testing.assert_allclose(more.x, [1.5], rtol=1e-5)
    both = lambda x: (x**2 - 2, fnp.diag(2 * x))
    np.testing.assert_allclose(root(both, np.ones(2), jac=True).x, np.sqrt([2, 2]))


def test_systems_without_a_root_say_so() -> None:
    found = root(lambda x: x**2 + 1, np.ones(1))
    assert not found.success and int(found.status) in (1, 3)
    lost = root(lambda x: fnp.log(x), -np.ones(1), method="broyden1")
    assert int(lost.status) == 2 and "finite" in lost.message


def test_fixed_points_match_scipy() -> None:
    with fxflow.config.override(x64=True):
        function = lambda x, c: (10 / (x + c)) ** 0.5
        start, c = np.array([1.2, 1.3]), np.array([10.0, 12.0])
        want = scipy.optimize.fixed_point(function, start, (c,))
        for method in ("del2", "iteration"):
            found = fixed_point(function, start, (c,), method=method)
            np.testing.assert_allclose(found, want, rtol=1e-7)
        slope = fxflow.grad(lambda a: fixed_point(lambda x: fnp.cos(a * x), 1.0))(1.0)
        x = fixed_point(fnp.cos, 1.0)
        want = -x * fnp.sin(x) / (1 + fnp.sin(x))
        assert float(slope) == pytest.approx(float(want), rel=1e-6)
    tree = fixed_point(lambda p: {"x": fnp.cos(p["x"])}, {"x": fnp.ones((2, 1))})
    np.testing.assert_allclose(tree["x"], np.full((2, 1), 0.7390851), rtol=1e-5)
    assert np.isnan(float(fixed_point(lambda x: x + 1, 1.0, maxiter=5)))


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = np.ones(2)
    for wrong in (
        {"method": "powell"},
        {"options": {"eps": 1}},
        {"jac": "exact"},
        {"args": 3.0},
    ):
        with pytest.raises(ArgumentError):
            root(cubic, x, **wrong)
    with pytest.raises(ShapeError, match="as many values"):
        root(lambda x: x[:1], x)
    with pytest.raises(ArgumentError, match="del2"):
        fixed_point(fnp.cos, 1.0, method="newton")
    with pytest.raises(ShapeError, match="must return 2 values"):
        fixed_point(lambda x: x[:1], x)


def test_callbacks_see_points_and_values() -> None:
    seen: list[Any] = []
    found = optimize.root(
        lambda x: x**2 - 2,
        [1.0],
        method="broyden1",
        callback=lambda x, f: seen.append((float(x[0]), float(f[0]))),
    )
    fxflow.effects_barrier()
    assert len(seen) == int(found.nit)
    assert seen[-1][0] == pytest.approx(2**0.5, abs=1e-3)
    assert abs(seen[-1][1]) < 1e-3
    with pytest.raises(ArgumentError, match="hybr takes no callback"):
        optimize.root(lambda x: x, [1.0], callback=print)


@pytest.mark.parametrize("method", ["linearmixing", "excitingmixing"])
def test_mixing_follows_falling_values(method: str) -> None:
    fall = lambda x: fnp.asarray([2.0, -1.0]) - x - 0.2 * fnp.sin(x)
    options = {"alpha": 0.5, "fatol": 1e-5}
    found = root(fall, np.zeros(2, "f"), method=method, options=options)
    assert bool(found.success)
    np.testing.assert_allclose(found.fun, 0, atol=1e-5)


@pytest.mark.parametrize(
    "method, most",
    [
        ("broyden2", 6),
        *(pytest.param(m, 1, marks=pytest.mark.slow) for m in ("broyden1", "anderson")),
    ],
)
def test_values_of_all_sizes_in_single_precision(method: str, most: int) -> None:
    # SciPy's broyden2 fails for 9 of them in double precision.
    rng = np.random.default_rng(0)
    n, count = 3, 40
    sizes = 10 ** rng.uniform(-1, 2, (2, count, 1))
    matrices = (3 * np.eye(n) + rng.normal(size=(count, n, n))) * sizes[0][..., None]
    right = rng.normal(size=(count, n)) * sizes[1]

    def found(a: Any, b: Any) -> Any:
        equations = lambda x: a @ x + 0.1 * x**3 - b
        return root(equations, fnp.zeros(n, "f"), method=method).success

    run = fxflow.jit(fxflow.vmap(found))
    good = run(matrices.astype("f"), right.astype("f"))
    assert int(fnp.sum(~good)) <= most


def test_fsolve_is_the_root() -> None:
    pair = lambda x, a: fnp.stack([x[0] * fnp.cos(x[1]) - a, x[0] * x[1] - x[1] - 5])
    rows = lambda x, a: fxflow.jacfwd(pair)(x, a).T
    want = scipy.optimize.fsolve(lambda x: np.asarray(pair(x, 4.0)), [1.0, 1.0])
    x, more = optimize.fsolve(
        *(pair, [1.0, 1.0], (4.0,)), rows, full_output=True, col_deriv=True
    )
    np.testing.assert_allclose(x, want, 1e-4)
    assert bool(more.success) and more.nfev < 50
    slope = fxflow.jacfwd(lambda a: optimize.fsolve(pair, [1.0, 1.0], a))(4.0)
    exact = np.linalg.solve(fxflow.jacfwd(pair)(x, 4.0), [1.0, 0.0])
    np.testing.assert_allclose(slope, exact, 1e-3)
    with pytest.raises(ShapeError, match="as many values"):
        optimize.fsolve(lambda x: x[:1], [1.0, 2.0])
    # Units do not change a root, however far they are from those of the Jacobian.
    scaled = optimize.fsolve(pair, [1.0, 1.0], 4.0, diag=[100.0, 0.01])
    np.testing.assert_allclose(scaled, want, 1e-4)
    with pytest.raises(ShapeError, match="diag must be like x0"):
        optimize.fsolve(pair, [1.0, 1.0], 4.0, diag=[1.0])
