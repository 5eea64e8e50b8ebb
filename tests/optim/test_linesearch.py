"""Line searches: compared with optax on recorded runs; conditions; failures."""

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim import linesearch
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(linesearch))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def searched(tx, f, x, **extra):
    value, grad = fxflow.value_and_grad(f)(x)
    direction = fxflow.tree.map(fnp.negative, grad)
    state = tx.init(x)
    return tx.update(direction, state, x, value=value, grad=grad, value_fn=f, **extra)


def quartic(x):
    return ((x - 1) ** 4).sum()


def test_zoom_steps_satisfy_the_wolfe_conditions() -> None:
    x = fnp.array([3.0, 0.0])
    for guess in (1e-4, 1.0, 100.0):
        tx = optim.scale_by_zoom_linesearch(30, curv_rtol=0.1)
        state = tx.init(x)._replace(learning_rate=fnp.asarray(guess, "float32"))
        value, grad = fxflow.value_and_grad(quartic)(x)
        u, state = tx.update(-grad, state, x, value=value, grad=grad, value_fn=quartic)
        slope = float(fnp.vdot(grad, -grad))
        after, there = fxflow.value_and_grad(quartic)(x + u)
        assert float(after) <= float(value) + 1e-4 * float(state.learning_rate) * slope
        assert abs(float(fnp.vdot(there, -grad))) <= 0.1 * abs(slope)
        assert state.info.decrease_error == state.info.curvature_error == 0
        np.testing.assert_allclose(state.value, after, rtol=1e-6)
        np.testing.assert_allclose(state.grad, there, rtol=1e-4)


def test_zoom_steps_match_optax() -> None:
    u, state = searched(
        optim.scale_by_zoom_linesearch(10), quartic, fnp.array([3.0, 0])
    )
    np.testing.assert_allclose(u, [-2.6982205, 0.33727756], rtol=1e-5)
    assert int(state.info.num_linesearch_steps) == 5


def test_the_last_step_is_taken_if_no_step_decreases_the_loss() -> None:
    f = lambda x: x.sum()
    x = fnp.array([3.0, 0.0])
    tx = optim.scale_by_backtracking_linesearch(3)
    _, state = tx.update(
        fnp.ones(2), tx.init(x), x, value=0.0, grad=-fnp.ones(2), value_fn=f
    )
    np.testing.assert_allclose(state.learning_rate, 0.512)  # the last step
    assert int(state.info.num_linesearch_steps) == 4
    assert float(state.info.decrease_error) > 0


@pytest.mark.parametrize(
    "make",
    [optim.scale_by_backtracking_linesearch, optim.scale_by_zoom_linesearch],
)
def test_a_nonfinite_loss_gives_a_step_of_zero(make) -> None:
    x = fnp.array([2.0])
    f = lambda x: fnp.where(x[0] < 2.0, math.nan, x[0] ** 2)
    u, state = searched(make(4), f, x)
    assert u.tolist() == [0.0]
    assert float(state.info.decrease_error) == math.inf


def test_the_search_on_an_unbounded_function_ends() -> None:
    tx = optim.scale_by_zoom_linesearch(5, max_learning_rate=4.0)
    _, state = searched(tx, lambda x: -x.sum(), fnp.zeros(2))
    assert float(state.learning_rate) == 4.0


def test_extra_arguments_reach_the_loss() -> None:
    f = lambda x, target: ((x - target) ** 2).sum()
    x = fnp.zeros(2)
    tx = optim.chain(optim.sgd(1.0), optim.scale_by_backtracking_linesearch(20))
    value, grad = fxflow.value_and_grad(f)(x, 3.0)
    u, _ = tx.update(
        grad, tx.init(x), x, value=value, grad=grad, value_fn=f, target=3.0, other=1
    )
    assert float(f(x + u, 3.0)) < float(value)


def test_a_missing_gradient_and_invalid_options_are_refused() -> None:
    x = fnp.zeros(2)
    tx = optim.scale_by_zoom_linesearch(5)
    with pytest.raises(
        ArgumentError, match="scale_by_zoom_linesearch: needs grad: call"
    ):
        tx.update(x, tx.init(x), x, value=1.0)
    with pytest.raises(
        ArgumentError, match='initial_guess_strategy must be "keep" or "one"'
    ):
        optim.scale_by_zoom_linesearch(5, initial_guess_strategy="last")
    with pytest.raises(ArgumentError, match="an infinite increase_factor needs"):
        optim.scale_by_backtracking_linesearch(
            5, increase_factor=math.inf, max_learning_rate=None
        )
    with pytest.raises(ArgumentError, match="the state has no loss with a gradient"):
        optim.value_and_grad_from_state(quartic)(x, state=optim.adam(0.1).init(x))


def test_the_loss_in_the_state_is_reused() -> None:
    tx = optim.lbfgs()
    x = fnp.array([3.0, 0.0])
    state = tx.init(x)
    value, grad = fxflow.value_and_grad(quartic)(x)
    u, state = tx.update(grad, state, x, value=value, grad=grad, value_fn=quartic)
    # The result comes from the state: it is not that of this other function.
    other = optim.value_and_grad_from_state(lambda x: fnp.sum(x))
    assert float(other(x + u, state=state)[0]) == float(state[-1].value)
    assert float(other(x, state=tx.init(x))[0]) == 3.0
