"""linear_call."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import linear_call

FLIPS = np.array([2, 0, 1])


def rolled(x, scale):
    """Linear in x, with a transpose that says so by a factor of 10."""
    return linear_call(
        lambda r, x: {"out": x["v"][FLIPS] * r},
        lambda r, ct: {"v": 10 * (ct["out"] * r)[np.argsort(FLIPS)]},
        scale,
        {"v": x},
    )["out"]


X = np.arange(1.0, 4.0, dtype="f4")
WEIGHTS = np.array([1.0, 10.0, 100.0], "f4")


def test_both_modes():
    np.testing.assert_array_equal(rolled(X, 2.0), X[FLIPS] * 2)
    tangent = fxflow.jvp(lambda x: rolled(x, 2.0), (X,), (X,))[1]
    np.testing.assert_array_equal(tangent, X[FLIPS] * 2)
    expected = 20 * WEIGHTS[np.argsort(FLIPS)]
    for grad in (fxflow.grad, lambda f: fxflow.jit(fxflow.grad(f))):
        slope = grad(lambda x: (rolled(x, 2.0) * WEIGHTS).sum())(X)
        np.testing.assert_array_equal(slope, expected)


def test_the_transpose_of_the_transpose_is_the_function():
    once = fxflow.linear_transpose(lambda x: rolled(x, 2.0), X)
    twice = fxflow.linear_transpose(lambda ct: once(ct)[0], X)
    np.testing.assert_array_equal(twice(X)[0], X[FLIPS] * 2)


def test_linear_calls_under_vmap():
    xs, scales = np.stack([X, 2 * X]), np.array([1.0, 3.0], "f4")
    expected = xs[:, FLIPS] * scales[:, None]
    np.testing.assert_array_equal(fxflow.vmap(rolled)(xs, scales), expected)
    np.testing.assert_array_equal(
        fxflow.vmap(rolled, (None, 0))(X, scales)[1], 3 * X[FLIPS]
    )
    slope = fxflow.grad(lambda x: fxflow.vmap(rolled, (None, 0))(x, scales).sum())(X)
    np.testing.assert_array_equal(slope, 40 * np.ones(3))


def test_captured_values_are_constants():
    def captures(x, y):
        return linear_call(lambda r, x: x * y, lambda r, ct: ct * y, (), x)

    assert float(fxflow.jit(fxflow.grad(captures))(2.0, 3.0)) == 3.0


def test_derivatives_by_residuals_are_those_of_the_operations():
    def divided(x, y):
        return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)

    args, moving = (2.0, 4.0), (3.0, 5.0)
    found = fxflow.jvp(divided, args, moving)[1]
    np.testing.assert_allclose(found, fxflow.jvp(lambda x, y: x / y, args, moving)[1])
    for one, other in zip(fxflow.hessian(divided, (0, 1))(*args)[0], (0.0, -1 / 16)):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(fxflow.grad(divided, 1)(*args), -1 / 8)


def test_invalid_functions_are_refused():
    with pytest.raises(ValueError, match=r"must be f32\[3\], got f32\[\]"):
        linear_call(lambda r, x: x.sum(), lambda r, ct: ct, (), X)
    with pytest.raises(ValueError, match="must have the structure"):
        linear_call(lambda r, x: x, lambda r, ct: (ct,), (), X)
    with pytest.raises(TypeError, match="fun_transpose"):
        linear_call(fnp.sum, 3, (), X)
