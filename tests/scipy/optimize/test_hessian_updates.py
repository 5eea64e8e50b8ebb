"""`BFGS` and `SR1` beside SciPy's, and as models of `minimize`."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize

CASES = [
    ("BFGS", {}),
    ("BFGS", {"exception_strategy": "damp_update"}),
    ("BFGS", {"init_scale": 2.0, "min_curvature": 0.1}),
    ("SR1", {}),
    ("SR1", {"init_scale": np.diag([1.0, 2.0, 3.0])}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("kind", ["hess", "inv_hess"])
def test_estimates_are_those_of_scipy(name: str, options: Any, kind: str) -> None:
    rng = np.random.default_rng(0)
    square = rng.normal(size=(3, 3))
    square = square + square.T
    with fxflow.config.override(x64=True):
        ours, theirs = (
            getattr(module, name)(**options) for module in (optimize, scipy.optimize)
        )
        ours.initialize(3, kind)
        theirs.initialize(3, kind)
        for step in [*rng.normal(size=(6, 3)), np.zeros(3)]:
            change = square @ step
            ours.update(step, change)
            theirs.update(step, change)
            want = theirs.get_matrix()
            np.testing.assert_allclose(ours.get_matrix(), want, rtol=1e-9, atol=1e-9)
        p = rng.normal(size=3)
        np.testing.assert_allclose(ours.dot(p), theirs.dot(p), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BFGS", "SR1"])
def test_minimize_uses_the_estimate(name: str) -> None:
    circle = optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)

    def run(a: Any) -> Any:
        hess = getattr(optimize, name)()
        options = {"constraints": circle, "method": "trust-constr", "hess": hess}
        return optimize.minimize(lambda x: a * x[0] + x[1], fnp.zeros(2), **options)

    with fxflow.config.override(x64=True):
        found = fxflow.jit(run)(2.0)
        assert int(found.status) == 0
        np.testing.assert_allclose(found.x, -np.array([2, 1]) / 5**0.5, rtol=1e-6)
        # x₁ = -(1 + a²)^(-1/2).
        slope = fxflow.grad(lambda a: run(a).x[1])(2.0)
        np.testing.assert_allclose(slope, 2 * 5**-1.5, rtol=1e-5)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="exception_strategy must be"):
        optimize.BFGS("skip")
    with pytest.raises(ArgumentError, match="init_scale must be"):
        optimize.SR1(init_scale="one")
    estimate = optimize.SR1()
    with pytest.raises(ArgumentError, match='approx_type must be "hess"'):
        estimate.initialize(2, "inverse")
    estimate.initialize(2, "hess")
    with pytest.raises(ShapeError, match=r"delta_x must be float\[2\]"):
        estimate.update([1.0], [1.0])
    with pytest.raises(ArgumentError, match="BFGS takes no HessianUpdateStrategy"):
        optimize.minimize(fnp.sum, [1.0], method="BFGS", hess=estimate)
