"""device_put, device_get, block_until_ready."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import device_get, device_put
from fxflow.memory import Space


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


def test_to_another_memory():
    x = fnp.arange(3.0)
    there = device_put(x, Space.Host)
    assert there.sharding.memory_kind == "pinned_host" and not there.committed
    assert there.devices() == x.devices() and there.tolist() == [0, 1, 2]
    assert device_put(there) is there
    back = device_put(there, Space.Device)
    assert back.sharding.memory_kind == "device" and back.tolist() == [0, 1, 2]
    assert device_put(there, fxflow.devices()[0]).sharding.memory_kind == "device"
    tree = device_put({"a": x, "b": x}, {"a": Space.Host, "b": Space.Device})
    kinds = fxflow.tree.map(lambda x: x.sharding.memory_kind, tree)
    assert kinds == {"a": "pinned_host", "b": "device"}
    mesh = fxflow.make_mesh((2,), ("x",))
    split = device_put(np.ones(4), fxflow.NamedSharding(mesh, fxflow.P("x")))
    away = device_put(split, Space.Host)
    assert away.sharding == split.sharding.with_memory_kind("pinned_host")
    gone = device_put(away, Space.Device, donate=True)
    assert gone.sharding == split.sharding and away.is_deleted()
    key = fxflow.random.key(1)
    kept = device_put(key, Space.Host)
    assert kept.sharding.memory_kind == "pinned_host"
    assert fxflow.random.bits(kept) == fxflow.random.bits(key)


def test_src_says_where_the_cotangent_goes():
    def gradient(x, **src):
        fun = lambda x: fnp.sum(device_put(x, Space.Device, **src) ** 2)
        return fxflow.grad(fun)(x).sharding.memory_kind

    x = fnp.arange(3.0)
    there = device_put(x, Space.Host)
    assert gradient(x) == "device" and gradient(there) == "pinned_host"
    assert gradient(x, src=Space.Host) == "pinned_host"
    assert gradient(there, src=fxflow.devices()[0]) == "device"
    with pytest.raises(TypeError, match=r"device_put: src: expected.*got 7"):
        device_put(x, Space.Device, src=7)


def test_errors():
    with pytest.raises(TypeError, match="a Device or a device's name, got 7"):
        device_put(1.0, 7)
    with pytest.raises(ValueError, match="no device 'cpu:99'"):
        device_put(1.0, "cpu:99")
    with pytest.raises(TypeError, match="not an array"):
        device_put({"a": "x"})
    with pytest.raises(TypeError, match="concrete value"):
        fxflow.jit(device_get)(1.0)


def test_keys_stay_keys_on_the_host():
    keys = fxflow.random.split(fxflow.random.key(0), 3)
    back = device_get({"k": keys, "x": fnp.ones(1)})
    assert isinstance(back["x"], np.ndarray)
    assert back["k"].dtype == keys.dtype and (back["k"] == keys).all()
