"""jvp: directions, structure, aux; errors are in test_vjp."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import grad, jit, jvp, vmap


def test_matches_the_gradient():
    x, d = fnp.array([0.1, 0.5]), fnp.array([1.0, -2.0])
    _, dy = jvp(lambda v: fnp.sum(fnp.exp(v) * v), (x,), (d,))
    g = grad(lambda v: fnp.sum(fnp.exp(v) * v))(x)
    assert float(dy) == pytest.approx(float((g * d).sum()), rel=1e-6)


def test_pytrees_aux_and_composition():
    def fun(p):
        return {"y": p["a"] * p["b"]}, p["a"] + 1

    p = {"a": fnp.array(2.0), "b": fnp.array(3.0)}
    t = {"a": fnp.array(1.0), "b": fnp.array(0.0)}
    y, dy, aux = jvp(fun, (p,), (t,), has_aux=True)
    assert float(y["y"]) == 6.0 and float(dy["y"]) == 3.0 and float(aux) == 3.0
    rows = vmap(lambda d: jvp(lambda v: v**2, (fnp.ones(2),), (d,))[1])(fnp.eye(2))
    assert rows.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    twice = jit(lambda x: jvp(lambda z: jvp(fnp.sin, (z,), (1.0,))[1], (x,), (1.0,))[1])
    assert float(twice(0.5)) == pytest.approx(-np.sin(0.5), rel=1e-6)


def test_no_dependence_gives_zero_and_integers_float0():
    assert float(jvp(lambda x: 3.0, (1.0,), (1.0,))[1]) == 0.0
    zero = np.zeros((), [("float0", "V")])
    y, dy = jvp(lambda n: n * 2, (3,), (zero,))
    assert int(y) == 6 and dy.dtype == zero.dtype
