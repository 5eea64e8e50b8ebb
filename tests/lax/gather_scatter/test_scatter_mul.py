"""Products at computed indices: derivatives where factors are zero or coincide."""

from typing import Any

import numpy as np
import pytest

from fxflow import grad, hessian, lax, vmap

X = np.array([1, 2, 3, 4], "f4")
ELEMENTS = lax.ScatterDimensionNumbers((), (0,), (0,))
AT = np.array([[1], [3], [1], [9], [1]], "i4")


def product(x: Any, u: Any, at: Any = AT, **options: Any) -> Any:
    out = lax.scatter_mul(x, at, u, ELEMENTS, **options)
    return lax.reduce_sum(lax.mul(out, X), (0,))


def expected_gradient(u: np.ndarray) -> np.ndarray:
    a, _, c, _, d = u
    return np.array([4 * c * d, 16, 4 * a * d, 0, 4 * a * c], "f4")


@pytest.mark.parametrize(
    "u", [[5, 6, 2, 7, 3], [0, 6, 2, 7, 3], [0, 6, 0, 7, 3], [0, 0, 0, 0, 0]]
)
def test_gradients_are_right_where_factors_are_zero(u: list[float]) -> None:
    values = np.array(u, "f4")
    got = grad(product, 1)(X, values)
    np.testing.assert_allclose(got, expected_gradient(values), rtol=1e-6)
    of_x = np.array([1, 2 * u[0] * u[2] * u[4], 3, 4 * u[1]])
    np.testing.assert_allclose(grad(product)(X, values), of_x, rtol=1e-6)
    both = np.stack([values, values[::-1]])
    several = vmap(grad(product, 1), (None, 0))(X, both)
    expected = [expected_gradient(v) for v in both]
    np.testing.assert_allclose(several, expected, rtol=1e-6)


@pytest.mark.parametrize("u", [[5, 6, 2, 7, 3], [0, 6, 0, 7, 3], [0, 0, 0, 0, 0]])
def test_second_derivative(u: list[float]) -> None:
    a, _, c, _, d = u
    expected = np.zeros((5, 5))
    expected[0, 2] = expected[2, 0] = 4 * d
    expected[0, 4] = expected[4, 0] = 4 * c
    expected[2, 4] = expected[4, 2] = 4 * a
    got = hessian(product, 1)(X, np.array(u, "f4"))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_third_derivative_at_zero() -> None:
    def mixed(u: Any) -> Any:
        return hessian(product, 1)(X, u)[0, 2]

    got = grad(mixed)(np.zeros(5, "f4"))
    np.testing.assert_array_equal(got, [0, 0, 0, 0, 4])


def test_clipped_places_coincide_too() -> None:
    u = np.array([2, 3, 5, 7, 11], "f4")
    got = grad(lambda u: product(X, u, mode="clip"))(u)
    np.testing.assert_allclose(got, [220, 16 * 7, 88, 16 * 3, 40], rtol=1e-6)


def test_one_hot_is_a_mode_that_drops() -> None:
    u = np.array([2, 3, 5, 7, 11], "f4")
    np.testing.assert_array_equal(product(X, u, mode="one_hot"), product(X, u))
