"""A function at the elements where it is defined."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, ShapeError

X = np.array([0.0, 4.0, -1.0, 1.0], np.float32)


def root(x: Any) -> Any:
    return lax.masked(x > 0, fnp.sqrt, x, otherwise=-1.0)


def test_values_and_derivatives_are_those_of_safe_elements() -> None:
    with fxflow.debug_nans(), fxflow.debug_infs():
        np.testing.assert_array_equal(root(X), [-1, 2, -1, 1])
        slopes = fxflow.jit(fxflow.grad(lambda x: root(x).sum()))(X)
        np.testing.assert_array_equal(slopes, [0, 0.25, 0, 0.5])
        second = fxflow.vmap(fxflow.grad(fxflow.grad(root)))(X)
        np.testing.assert_array_equal(second, [0, -1 / 32, 0, -1 / 4])
        _, tangent = fxflow.jvp(root, (X,), (np.ones_like(X),))
        np.testing.assert_array_equal(tangent, slopes)


def test_what_the_function_uses_from_outside_has_derivatives() -> None:
    def total(power: Any) -> Any:
        return lax.masked(X > 0, lambda x: x**power, X).sum()

    with fxflow.debug_nans():
        np.testing.assert_allclose(fxflow.grad(total)(2.0), 16 * np.log(4), 1e-5)


def test_several_operands_and_results() -> None:
    def both(x: Any, y: Any) -> Any:
        return {"ratio": x / y, "log": fnp.log(y)}

    x, y = np.ones((2, 3), np.float32), np.array([0.0, 1.0, 2.0], np.float32)[None]
    others = {"ratio": 7.0, "log": np.float32(-5)}
    got = lax.masked(y > 0, both, x, y, otherwise=others)
    np.testing.assert_allclose(got["ratio"], [[7, 1, 0.5]] * 2)
    np.testing.assert_allclose(got["log"], [[-5, 0, np.log(2)]] * 2, 1e-6)


def test_no_element_and_no_elements() -> None:
    none = fxflow.grad(lambda x: lax.masked(x > 9, fnp.sqrt, x).sum())(X)
    np.testing.assert_array_equal(none, np.zeros(4))
    assert lax.masked(X[:0] > 0, fnp.sqrt, X[:0]).shape == (0,)
    assert float(lax.masked(True, fnp.sqrt, 4.0)) == 2.0


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(DtypeError, match="condition must be boolean, got f32"):
        lax.masked(X, fnp.sqrt, X)
    with pytest.raises(ArgumentError, match="f must be a function"):
        lax.masked(X > 0, X, X)
    with pytest.raises(ArgumentError, match="an operand is"):
        lax.masked(X > 0, fnp.sqrt, "x")
    with pytest.raises(ShapeError, match="f must return the shape of its operands"):
        lax.masked(X > 0, fnp.sum, X)
    with pytest.raises(ShapeError, match="masked: operands must have one shape"):
        lax.masked(X > 0, fnp.sqrt, X[:3])
