"""`stop_gradient`: the value without its derivative."""

from __future__ import annotations

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, jvp, vmap
from fxflow.lax import stop_gradient


def test_stop_gradient_has_no_derivative():
    fun = lambda x: x * stop_gradient(x)
    assert float(grad(fun)(3.0)) == 3.0
    assert float(jit(grad(fun))(3.0)) == 3.0
    assert float(grad(jit(fun))(3.0)) == 3.0
    out, tangent = jvp(fun, (3.0,), (1.0,))
    assert (float(out), float(tangent)) == (9.0, 3.0)
    assert float(grad(stop_gradient)(3.0)) == 0.0
    assert float(grad(grad(fun))(3.0)) == 0.0
    assert vmap(grad(fun))(fnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]


def test_stop_gradient_returns_its_argument():
    for value in (2.5, np.arange(3), np.ones(2, bool), 1j):
        out = stop_gradient(value)
        assert np.asarray(out).tolist() == np.asarray(value).tolist()
    assert stop_gradient(fnp.ones(2)).tolist() == [1.0, 1.0]


def test_pytrees_and_other_leaves():
    tree = {"a": fnp.ones(2), "n": 3, "s": "text", "none": None}
    out = stop_gradient(tree)
    assert out["a"].tolist() == [1.0, 1.0]
    assert (out["n"], out["s"], out["none"]) == (3, "text", None)


def test_keys_and_integers_pass():
    key = fxflow.random.key(0)
    assert stop_gradient(key) is key
    n = fnp.arange(3)
    assert stop_gradient(n) is n


def test_straight_through():
    fun = lambda x: x + stop_gradient(fnp.round(x) - x)
    assert float(fun(2.7)) == 3.0
    assert float(grad(fun)(2.7)) == 1.0


def test_nothing_is_left_in_the_program():
    text = jit(lambda x: stop_gradient(x) * 2).lower(1.0).as_text()
    assert text.count("stablehlo.") == jit(lambda x: x * 2).lower(1.0).as_text().count(
        "stablehlo."
    )
