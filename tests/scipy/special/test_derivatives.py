"""Derivatives in reverse of what loops compute."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.scipy.special._derivatives import by_forward


def root(x: fxflow.Array, y: fxflow.Array) -> fxflow.Array:
    """The square root of x y, by Newton's method."""
    product = x * y

    def going(state: tuple[fxflow.Array, fxflow.Array]) -> fxflow.Array:
        now, before = state
        return (abs(now - before) > 1e-12 * now).any()

    def step(state: tuple[fxflow.Array, fxflow.Array]) -> tuple[fxflow.Array, ...]:
        now, _ = state
        return (now + product / now) / 2, now

    start = lax.full_like(product, 1.5)
    return lax.while_loop(going, step, (start, start + 1))[0]


def test_reverse_of_any_order() -> None:
    made = by_forward(root, None, lambda x, y: 0.5 * lax.sqrt(x / y))
    with fxflow.config.override(x64=True):
        x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
        np.testing.assert_allclose(made(x, y), np.sqrt(x * y))
        total = lambda x, y: made(x, y).sum()
        by_x, by_y = fxflow.grad(total, (0, 1))(x, y)
        np.testing.assert_allclose(by_x, 0.5 * np.sqrt(y / x))
        np.testing.assert_allclose(by_y, 0.5 * np.sqrt(x / y))
        twice = fxflow.grad(lambda x: fxflow.grad(total)(x, y).sum())(x)
        np.testing.assert_allclose(twice, -0.25 * np.sqrt(y / x**3))
        with pytest.raises(fxflow.errors.FxflowError):
            fxflow.grad(lambda x: root(x, y).sum())(x)


def test_several_operands_in_one_program() -> None:
    alone = by_forward(root, None, None)
    made = by_forward(root, None, None, together=True)
    by_x = by_forward(root, lambda x, y: 0.5 * lax.sqrt(y / x), None, together=True)
    with fxflow.config.override(x64=True):
        at = (2.0, 5.0)
        want = np.array([[-0.25 * np.sqrt(5 / 8), 0.25 / np.sqrt(10)]] * 2)
        want[1] = want[0, 1], -0.25 * np.sqrt(2 / 125)
        for function in (alone, made, by_x):
            got = fxflow.hessian(function, (0, 1))(*at)
            np.testing.assert_allclose(np.array(got, float), want, 1e-12)
