"""Eigenvalues and inverse roots, compared with optax 0.2.8 and NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import optim
from fxflow.errors import ArgumentError, ShapeError

A = np.array([[4, 1, 0], [1, 3, 0.5], [0, 0.5, 2]], np.float32)


@pytest.mark.parametrize("sign", [1, -1])
def test_power_iteration_matches_optax(sign: int) -> None:
    value, vector = fxflow.jit(optim.power_iteration)(sign * A)
    np.testing.assert_allclose(value, sign * 4.644973, rtol=1e-5)
    want = [0.83599, 0.53919, 0.10193]
    np.testing.assert_allclose(np.abs(np.asarray(vector)), want, atol=1e-3)


def test_power_iteration_stops_by_count_or_tolerance() -> None:
    ones = np.ones(3, np.float32)
    value, vector = optim.power_iteration(A, v0=ones, num_iters=3)
    np.testing.assert_allclose(value, 4.6284132, rtol=1e-6)
    np.testing.assert_allclose(vector, [0.8109953, 0.5694395, 0.1342581], rtol=1e-5)
    value, _ = optim.power_iteration(A, v0=ones, error_tolerance=0.1)
    np.testing.assert_allclose(value, 4.590435, rtol=1e-6)
    value, vector = optim.power_iteration(A, v0=7 * ones, num_iters=0)
    assert float(value) == 0
    np.testing.assert_allclose(vector, [0.6967331, 0.6270598, 0.3483665], rtol=1e-5)
    assert float(optim.power_iteration(0 * A)[0]) == 0


def test_power_iteration_of_a_function_of_pytrees() -> None:
    def product(v: Any) -> Any:
        return {"a": 2 * v["a"], "b": 5 * v["b"]}

    v0 = {"a": np.ones(2, np.float32), "b": np.ones(1, np.float32)}
    value, vector = optim.power_iteration(product, v0=v0)
    np.testing.assert_allclose(value, 5, rtol=1e-5)
    np.testing.assert_allclose(vector["b"], [1], rtol=1e-5)
    with pytest.raises(ArgumentError, match="power_iteration: pass v0"):
        optim.power_iteration(product)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_inverse_roots_match_numpy(p: int) -> None:
    root, error = optim.matrix_inverse_pth_root(A, p)
    values, vectors = np.linalg.eigh(A)
    want = vectors @ np.diag(values ** (-1 / p)) @ vectors.T
    np.testing.assert_allclose(root, want, atol=2e-5)
    assert float(error) < 1e-5
    both, _ = fxflow.vmap(lambda a: optim.matrix_inverse_pth_root(a, p))(np.array([A]))
    np.testing.assert_allclose(both[0], root, atol=1e-5)


def test_inverse_roots_by_ridge_and_number_of_steps() -> None:
    root, _ = optim.matrix_inverse_pth_root(A, 2, ridge_epsilon=0.1)
    want = [0.4850409, -0.0679348, 0.0096133]
    np.testing.assert_allclose(root[0], want, atol=2e-5)
    root, error = optim.matrix_inverse_pth_root(A, 2, 2)
    want = [0.5148053, -0.0812732, 0.0108122]
    np.testing.assert_allclose(root[0], want, atol=2e-4)
    np.testing.assert_allclose(error, 0.0407943, rtol=0.02)
    one, _ = optim.matrix_inverse_pth_root(np.array([[4.0]], np.float32), 2)
    np.testing.assert_allclose(one, [[0.5]], rtol=1e-5)
    singular = np.diag(np.array([1, 0], np.float32))
    root, _ = optim.matrix_inverse_pth_root(singular, 2)
    np.testing.assert_allclose(root, np.diag([1, 1000]), rtol=1e-2)


def test_other_shapes_and_exponents_are_refused() -> None:
    for f in (optim.power_iteration, lambda a: optim.matrix_inverse_pth_root(a, 2)):
        with pytest.raises(ShapeError, match=r"a square matrix, got f32\[2,3\]"):
            f(A[:2])
    for p in (0, 1.5):
        with pytest.raises(ArgumentError, match="p must be an int, 1 or more"):
            optim.matrix_inverse_pth_root(A, p)  # type: ignore[arg-type]
