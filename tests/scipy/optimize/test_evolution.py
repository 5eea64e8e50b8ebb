"""Global minima by differential evolution."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize import Bounds, differential_evolution

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
    ):
        with pytest.raises(ArgumentError):
            differential_evolution(ackley, BOX, key=random.key(0), **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key"):
        differential_evolution(ackley, BOX)  # type: ignore[call-arg]
