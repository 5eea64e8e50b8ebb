"""Second derivatives of losses, compared with optax 0.2.8."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ShapeError
from fxflow.optim import second_order

PARAMS = {"w": np.array([0.3, -0.2, 0.5], np.float32)}
INPUTS = np.arange(6, dtype=np.float32).reshape(2, 3) / 5
TARGETS = np.array([0.2, -0.1], np.float32)


def loss(params: Any, inputs: Any, targets: Any) -> Any:
    """Squared errors of a layer."""
    return fnp.mean((fnp.tanh(inputs @ params["w"]) - targets) ** 2)


def test_numbers_match_optax() -> None:
    given = PARAMS, INPUTS, TARGETS
    v = np.array([1, 2, 3], np.float32)
    product = fxflow.jit(second_order.hvp, static_argnums=0)(loss, v, *given)
    np.testing.assert_allclose(product["w"], [0.5294477, 1.0141176, 1.4987874], 1e-5)
    diagonal = second_order.hessian_diag(loss, *given)
    np.testing.assert_allclose(diagonal, [0.0610901, 0.1471281, 0.3237884], 1e-5)
    squares = second_order.fisher_diag(loss, *given)
    np.testing.assert_allclose(squares, [0.0715682, 0.1215458, 0.1846818], 1e-5)


def test_vectors_concatenate_the_arrays() -> None:
    params = {"b": np.ones((1, 1), np.float32), "a": np.ones(2, np.float32)}

    def cubes(params: Any, *_: Any) -> Any:
        return fnp.sum(params["a"] ** 3) + fnp.sum(params["b"] ** 3)

    product = second_order.hvp(cubes, np.arange(3, dtype=np.float32), params, 0, 0)
    assert product["a"].tolist() == [0, 6]
    assert product["b"].tolist() == [[12]]
    with pytest.raises(ShapeError, match=r"hvp: .*3 elements .*got f32\[2\]"):
        second_order.hvp(cubes, np.ones(2, np.float32), params, 0, 0)


def test_empty_parameters_give_empty_diagonals() -> None:
    def constant(params: Any, *_: Any) -> Any:
        return fnp.zeros(())

    assert second_order.hessian_diag(constant, {}, 0, 0).shape == (0,)
    assert second_order.fisher_diag(constant, {}, 0, 0).shape == (0,)
