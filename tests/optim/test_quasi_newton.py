"""L-BFGS: compared with optax; quadratic functions and Rosenbrock's function."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim
from fxflow.errors import ArgumentError
from fxflow.optim import quasi_newton
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(quasi_newton))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def minimized(tx, f, x, steps: int):
    def step(carry, _):
        x, state = carry
        value, grad = optim.value_and_grad_from_state(f)(x, state=state)
        u, state = tx.update(grad, state, x, value=value, grad=grad, value_fn=f)
        return (optim.apply_updates(x, u), state), value

    run = fxflow.jit(lambda x: lax.scan(step, (x, tx.init(x)), length=steps))
    (x, _), values = run(x)
    return x, np.asarray(values)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_lbfgs_minimizes_rosenbrocks_function() -> None:
    x, values = minimized(optim.lbfgs(), rosenbrock, fnp.array([-1.2, 1.0]), 40)
    np.testing.assert_allclose(x, [1, 1], atol=1e-3)
    assert values[-1] < 1e-8


@pytest.mark.slow
def test_lbfgs_of_a_tree_with_two_dtypes() -> None:
    def f(p):
        return ((p["a"] - 1) ** 2).sum() + ((p["b"] + 2.0) ** 2).astype("float32").sum()

    start = {"a": fnp.zeros(3), "b": fnp.zeros(2, "bfloat16")}
    p, _ = minimized(optim.lbfgs(memory_size=3), f, start, 6)
    assert p["b"].dtype == "bfloat16"
    np.testing.assert_allclose(p["a"], 1, atol=1e-3)
    np.testing.assert_allclose(p["b"].astype("float32"), -2, atol=2e-2)


def test_invalid_memory_sizes_and_missing_parameters_are_refused() -> None:
    with pytest.raises(ArgumentError, match="memory_size must be positive, got 0"):
        optim.scale_by_lbfgs(0)
    tx = optim.scale_by_lbfgs()
    with pytest.raises(ArgumentError, match="scale_by_lbfgs: needs the parameters"):
        tx.update(1.0, tx.init(fnp.ones(())))
