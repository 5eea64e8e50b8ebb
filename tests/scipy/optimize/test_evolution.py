"""Global minima by differential evolution."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize import (
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
    differential_evolution,
)

BOX = [(-5.0, 5.0)] * 2


def ackley(x: Any, shift: Any = 0.0) -> Any:
    """Many local minima around the global one at `shift`."""
    x = x - shift
    waves = fnp.exp(fnp.cos(2 * fnp.pi * x).mean())
    return 20 - 20 * fnp.exp(-0.2 * fnp.sqrt((x**2).mean() + 1e-12)) - waves + fnp.e


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["best1bin", "rand1exp", "currenttobest1bin"])
def test_the_global_minimum_is_found(strategy: str) -> None:
    found = differential_evolution(
        ackley, BOX, (1.0,), strategy, maxiter=150, key=random.key(0)
    )
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-2)
    again = differential_evolution(
        ackley, BOX, (1.0,), strategy, maxiter=150, key=random.key(0)
    )
    assert found.x.tolist() == again.x.tolist()


@pytest.mark.slow
def test_bounds_first_points_and_derivatives() -> None:
    cost = lambda x, a: ((x - a) ** 2).sum()

    def lowest(a: Any) -> Any:
        bounds = Bounds(np.array([0.5, -1.0]), np.array([1.0, 1.0]))
        return differential_evolution(
            cost, bounds, (a,), maxiter=40, init="random", key=random.key(1)
        ).x

    found = lowest(0.25)
    np.testing.assert_allclose(found, [0.5, 0.25], atol=1e-4)
    np.testing.assert_allclose(fxflow.jacfwd(lowest)(0.25), [0, 1], atol=1e-5)
    few = differential_evolution(
        cost, BOX, (0.0,), maxiter=1, x0=np.zeros(2), polish=False, key=random.key(2)
    )
    assert float(few.fun) == 0 and few.jac is None and int(few.status) == 1


def test_arguments_that_do_not_fit_are_refused() -> None:
    for wrong in (
        {"strategy": "worst1bin"},
        {"init": "sobol"},
        {"init": np.ones((3, 2))},
        {"maxiter": 0},
        {"args": 3.0},
        {"updating": "later"},
        {"integrality": [True] * 3},
        {"callback": 3},
    ):
        with pytest.raises(ArgumentError):
            differential_evolution(ackley, BOX, key=random.key(0), **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key"):
        differential_evolution(ackley, BOX)  # type: ignore[call-arg]


@pytest.mark.slow
def test_constraints_integers_and_functions_of_many_points() -> None:
    seen: list[Any] = []

    def cost(x: Any, a: Any) -> Any:
        return (x[0] - a) ** 2 + (x[1] - 1.3) ** 2

    # x₀ + x₁ ≤ 2.3 and x₁ an integer, of which 1 is the best.
    line = LinearConstraint(np.ones((1, 2)), -np.inf, 2.3)

    def lowest(a: Any) -> Any:
        return differential_evolution(
            cost,
            BOX,
            (a,),
            maxiter=60,
            constraints=line,
            integrality=[False, True],
            vectorized=True,
            callback=seen.append,
            key=random.key(3),
        )

    with fxflow.config.override(x64=True):
        found = lowest(2.5)
        np.testing.assert_allclose(found.x, [1.3, 1], atol=1e-6)
        np.testing.assert_allclose(found.fun, cost([1.3, 1.0], 2.5), 1e-5)
        assert float(found.maxcv) < 1e-7
        fxflow.effects_barrier()
        assert len(seen) == int(found.nit)
        assert all(float(x[1]).is_integer() for x in seen)
        free = lambda a: lowest(a).x
        # Without the line in the way the point follows `a`.
        np.testing.assert_allclose(fxflow.jacfwd(free)(2.5), [0, 0], atol=1e-8)
        np.testing.assert_allclose(fxflow.jacfwd(free)(0.25), [1, 0], atol=1e-8)
        none = differential_evolution(
            cost,
            BOX,
            (0.0,),
            maxiter=3,
            polish=False,
            constraints=NonlinearConstraint(lambda x: x[0] ** 2, -9.0, -1.0),
            key=random.key(4),
        )
        assert int(none.status) == 4 and float(none.maxcv) >= 1


@pytest.mark.slow
def test_integers_without_constraints() -> None:
    cost = lambda x, a: ((x - a) ** 2).sum()
    whole = lambda a: (
        differential_evolution(
            cost, [(-3.4, 3.2), (-5, 5)], (a,), integrality=[1, 0], key=random.key(5)
        ).x
    )
    with fxflow.config.override(x64=True):
        found, slope = fxflow.value_and_grad(lambda a: fnp.sum(whole(a)))(3.6)
    np.testing.assert_allclose([found, slope], [3 + 3.6, 1], atol=1e-5)
