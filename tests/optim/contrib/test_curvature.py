"""Sophia, compared with optax; estimates of the Hessian's diagonal."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow import optim, random
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import curvature
from tests.optim import suite


def loss(x: Any) -> Any:
    return fnp.sum(x**4) + x[0] * x[1]


@pytest.mark.parametrize("name", suite.runs(curvature))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def test_mean_of_estimates_is_the_diagonal() -> None:
    x = fnp.array([1.0, -2.0, 0.5])
    tx = optim.contrib.hutchinson_estimator_diag_hessian()

    def one(key: Any) -> Any:
        state = optim.contrib.HutchinsonState(key)
        return tx.update(x, state, x, obj_fn=loss)[0]

    found = fxflow.jit(fxflow.vmap(one))(random.split(random.key(1), 400))
    want = np.diag(fxflow.hessian(loss)(x))
    np.testing.assert_allclose(np.mean(found, 0), want, atol=0.15)
    assert np.unique(np.round(found[:, 0], 3)).tolist() == [11.0, 13.0]


def test_steps_by_hand() -> None:
    twos = optim.stateless(lambda u, p: 2 * fnp.ones_like(u))
    g, x = fnp.array([4.5, -0.01]), fnp.ones(2)
    tx = optim.contrib.sophia(
        0.1, weight_decay=0.5, gamma=100.0, hessian_diagonal_fn=twos
    )
    u, state = fxflow.jit(tx.update)(g, tx.init(x), x)
    # h = 0.02, so that γ h = 2.
    np.testing.assert_allclose(u, [-0.1 * (1 + 0.5), -0.1 * (-0.005 + 0.5)], 1e-5)
    np.testing.assert_allclose(state[0].nu, [0.02, 0.02], 1e-5)
    free = optim.contrib.sophia(
        0.1,
        weight_decay=0.0,
        gamma=100.0,
        clip_threshold=None,
        hessian_diagonal_fn=twos,
    )
    u, _ = free.update(g, free.init(x), x)
    np.testing.assert_allclose(u, [-0.225, 0.0005], 1e-5)
    half = optim.contrib.sophia(0.1, mu_dtype="bfloat16").init(x)[0]
    assert (half.mu.dtype, half.nu.dtype) == ("bfloat16", "float32")


def test_a_missing_objective_or_parameters_are_refused() -> None:
    x = fnp.ones(2)
    tx = optim.contrib.sophia(0.1)
    with pytest.raises(ArgumentError, match=r"needs obj_fn: call update\(.*obj_fn="):
        tx.update(x, tx.init(x), x)
    with pytest.raises(ArgumentError, match="needs the parameters"):
        tx.update(x, tx.init(x), obj_fn=loss)
