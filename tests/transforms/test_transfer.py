"""device_put, device_get, block_until_ready."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import device_get, device_put


def test_there_and_back():
    tree = {"a": np.arange(3, dtype=np.float32), "b": (1, 2.5)}
    there = device_put(tree)
    assert not there["a"].committed
    back = device_get(there)
    assert isinstance(back["a"], np.ndarray) and back["a"].tolist() == [0, 1, 2]
    device = fxflow.devices()[0]
    put = device_put(fnp.ones(3), device)
    assert put.committed and put.devices() == {device}
    assert fxflow.block_until_ready(there) is there
    assert device_get("text") == "text"


def test_under_transformations():
    device = fxflow.devices()[0]
    fun = lambda x: fnp.sin(device_put(x, device)).sum()
    x = fnp.arange(3.0)
    np.testing.assert_allclose(fxflow.grad(fun)(x), np.cos(np.arange(3.0)), rtol=1e-6)
    np.testing.assert_allclose(fxflow.jit(fun)(x), fun(x), rtol=1e-6)
    assert fxflow.vmap(fun)(fnp.ones((2, 3))).shape == (2,)


def test_errors():
    with pytest.raises(TypeError, match="a Device or a device's name, got 7"):
        device_put(1.0, 7)
    with pytest.raises(ValueError, match="no device 'cpu:99'"):
        device_put(1.0, "cpu:99")
    with pytest.raises(TypeError, match="not an array"):
        device_put({"a": "x"})
    with pytest.raises(TypeError, match="concrete value"):
        fxflow.jit(device_get)(1.0)
