"""Global minima: on grids, by hopping and by annealing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import optimize


def _waves(x: Any, a: Any = 0.0) -> Any:
    return fnp.sum((x - a) ** 2 - 2 * fnp.cos(7 * (x - a)))


def test_grids_are_those_of_scipy() -> None:
    ranges = (slice(-1, 1, 0.25), (-2.0, 3.0))
    bowl = lambda x: (x[0] - 0.3) ** 2 + x[0] * x[1] + x[1] ** 2
    with fxflow.config.override(x64=True):
        got = optimize.brute(bowl, ranges, Ns=9, full_output=True, finish=None)
        exact = want.brute(bowl, ranges, Ns=9, full_output=True, finish=None)
        for one, other in zip(got, exact, strict=True):
            np.testing.assert_allclose(one, other, 1e-12)
        x = optimize.brute(bowl, ranges, Ns=9)
        np.testing.assert_allclose(x, [0.4, -0.2], atol=1e-3)
        assert (
            optimize.brute(lambda x: x[0] ** 2, [(-1.0, 1.0)], finish=None).shape == ()
        )


def test_hopping_finds_the_lowest_basin() -> None:
    @fxflow.jit
    def found(a: Any, key: Any) -> Any:
        return optimize.basinhopping(
            _waves,
            fnp.asarray([1.9, -1.1]),
            niter=40,
            minimizer_kwargs={"method": "BFGS", "args": (a,)},
            key=key,
        )

    key = fxflow.random.key(1)
    got = found(0.2, key)
    np.testing.assert_allclose(got.x, [0.2, 0.2], atol=1e-3)
    assert got.success and got.nit == 40 and got.fun < -3.99
    slope = fxflow.jacfwd(lambda a: found(a, key).x)(0.2)
    np.testing.assert_allclose(slope, [1, 1], rtol=1e-3)


@pytest.mark.slow
def test_steps_and_tests_of_the_user() -> None:
    calls: list[tuple[Any, ...]] = []
    seen = optimize.basinhopping(
        _waves,
        [1.9],
        niter=30,
        callback=lambda *given: calls.append(given),
        minimizer_kwargs={"method": "L-BFGS-B", "bounds": [(-2.0, 2.0)]},
        take_step=lambda key, x: x + fxflow.random.normal(key, x.shape),
        accept_test=lambda f_new, x_new, f_old, x_old: x_new[0] > -1,
        niter_success=12,
        key=fxflow.random.key(2),
    )
    assert abs(seen.x[0]) < 1e-3 and seen.nit <= 30
    fxflow.effects_barrier()
    assert len(calls) == int(seen.nit)
    assert min(float(value) for _, value, taken in calls if taken) == seen.fun


def test_annealing_finds_the_lowest_basin() -> None:
    @fxflow.jit
    def found(a: Any, key: Any) -> Any:
        box = [(-3.0, 3.0), (-3.0, 3.0)]
        return optimize.dual_annealing(_waves, box, (a,), maxiter=60, key=key)

    key = fxflow.random.key(1)
    got = found(0.2, key)
    np.testing.assert_allclose(got.x, [0.2, 0.2], atol=1e-3)
    assert got.success and got.fun < -3.99 and got.nit == 60
    slope = fxflow.jacfwd(lambda a: found(a, key).x)(0.2)
    np.testing.assert_allclose(slope, [1, 1], rtol=1e-3)


@pytest.mark.slow
def test_annealing_alone_and_at_a_bound() -> None:
    key = fxflow.random.key(3)
    alone = optimize.dual_annealing(
        _waves, [(-3.0, 3.0)], maxiter=300, no_local_search=True, key=key
    )
    assert abs(alone.x[0]) < 0.05
    calls: list[tuple[Any, ...]] = []
    edge = optimize.dual_annealing(
        lambda x: x[0],
        [(1.0, 2.0)],
        maxiter=20,
        callback=lambda *given: calls.append(given),
        key=key,
    )
    assert edge.x[0] == 1
    fxflow.effects_barrier()
    assert len(calls) == 20 and [v.item() for v in calls[-1]] == [1, 1]


def test_bad_problems_are_refused() -> None:
    key = fxflow.random.key(0)
    with pytest.raises(ArgumentError, match="must have a range"):
        optimize.brute(_waves, [])
    with pytest.raises(ArgumentError, match="must be a pair"):
        optimize.brute(_waves, [3.0])
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        optimize.basinhopping(_waves, [1.0], stepwise_factor=2.0, key=key)
    with pytest.raises(ArgumentError, match=r"visit must be in \(1.0, 3.0\]"):
        optimize.dual_annealing(_waves, [(0.0, 1.0)], visit=4.0, key=key)
    for search in (optimize.basinhopping, optimize.dual_annealing):
        with pytest.raises(ArgumentError, match="callback must be a function"):
            search(_waves, [(0.0, 1.0)], callback=3, key=key)
    with pytest.raises(ArgumentError, match="bound"):
        optimize.dual_annealing(_waves, [(0.0, None)], key=key)
