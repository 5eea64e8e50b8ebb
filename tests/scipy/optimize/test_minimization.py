"""Minimization of known functions, beside SciPy's results."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import OptimizeResults, minimize


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
    for options in [{"method": "CG"}, {"method": "BFGS", "options": {"foo": 1}}]:
        with pytest.raises(ArgumentError):
            minimize(rosenbrock, np.ones(2), **options)
    with pytest.raises(ArgumentError, match="tuple"):
        minimize(rosenbrock, np.ones(2), 3.0, method="BFGS")  # type: ignore[arg-type]
    with pytest.raises(ShapeError):
        minimize(rosenbrock, np.ones((2, 2)), method="BFGS")
    with pytest.raises(ShapeError):
        minimize(lambda x: x, np.ones(2), method="BFGS")
