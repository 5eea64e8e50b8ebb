"""Two passes of one function, each compiled once."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import tree
from fxflow.errors import ArgumentError

X, W = np.arange(6.0, dtype="f").reshape(2, 3), np.ones((3, 4), np.float32)


def model(x, w, scale):
    return {"y": fnp.tanh(x @ w["w"]) * scale}, fnp.sum(x)


@pytest.mark.parametrize("jitted", [True, False])
def test_as_vjp(jitted):
    fwd, bwd = fxflow.fwd_and_bwd(model, (0, -2), has_aux=True, jitted=jitted)
    y, residuals, aux = fwd(X, {"w": W}, 2.0)
    want, back, _ = fxflow.vjp(lambda x, w: model(x, w, 2.0), X, {"w": W}, has_aux=True)
    ct = {"y": fnp.cos(y["y"])}
    assert float(aux) == X.sum()
    for a, b in zip(
        tree.leaves((y, bwd(residuals, ct))), tree.leaves((want, back(ct))), strict=True
    ):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-4, 1e-6)


def test_each_is_traced_once():
    calls = []

    def f(x):
        calls.append(x)
        return fnp.sin(x)

    fwd, bwd = fxflow.fwd_and_bwd(f, 0)
    for i in range(3):
        _, residuals = fwd(float(i))
        (ct,) = bwd(residuals, 1.0)
        np.testing.assert_allclose(float(ct), np.cos(i), 1e-6)
    assert len(calls) == 1 and bwd.__name__ == "bwd_f"


def test_invalid_argnums_are_refused():
    with pytest.raises(ArgumentError, match="argnums takes an int"):
        fxflow.fwd_and_bwd(fnp.sin, 1.5)
    fwd, _ = fxflow.fwd_and_bwd(fnp.sin, 2)
    with pytest.raises(ArgumentError, match="argnums=2 is out of range"):
        fwd(1.0)
