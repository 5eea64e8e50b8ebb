"""device_put, device_get, block_until_ready."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import device_get, device_put, lax
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


def test_donation_is_for_each_leaf():
    mesh = fxflow.make_mesh((4,), ("x",))
    split, whole = (fxflow.NamedSharding(mesh, fxflow.P(*s)) for s in (["x"], []))
    for flags in ((True, False), (False, True), (False, False), True):
        x, y = (device_put(np.arange(8.0), split) for _ in range(2))
        a, b = device_put((x, y), whole, donate=flags)
        gone = flags if isinstance(flags, tuple) else (flags, flags)
        assert (x.is_deleted(), y.is_deleted()) == gone
        assert a.tolist() == b.tolist() == list(range(8))
    x = device_put(np.arange(8.0), split)
    a, b = device_put((x, x), whole, donate=True)
    assert x.is_deleted() and a.tolist() == b.tolist() == list(range(8))
    x = device_put(np.arange(8.0), split)
    assert device_put(x, split, donate=True).tolist() == list(range(8))
    with pytest.raises(ValueError, match="device_put: donate"):
        device_put((x, x), whole, donate=(True, False, True))


def pointers(x):
    return {shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards}


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_memory_is_not_shared_unless_it_may_be(source, target):
    mesh, one = fxflow.make_mesh((4,), ("x",)), fxflow.make_mesh((1,), ("x",))
    places = [
        None,
        fxflow.devices()[0],
        fxflow.NamedSharding(mesh, fxflow.P("x")),
        fxflow.NamedSharding(mesh, fxflow.P()),
        fxflow.NamedSharding(one, fxflow.P()),
    ]
    for x in (fnp.arange(64.0) + 1, fxflow.jit(lambda x: x + 1)(fnp.arange(64.0))):
        x = device_put(x, places[source])
        y, z = device_put((x, x), places[target], may_alias=(False, None))
        assert not pointers(x) & pointers(y)
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, z)
        x.delete()
        assert y[3] == 4


def where(x):
    return x.sharding, x.committed


@pytest.mark.parametrize("goal", ["device", "mesh", "other mesh", "here"])
@pytest.mark.parametrize("start", ["anywhere", "device", "mesh"])
def test_cotangents_go_back_to_their_devices(start, goal):
    wide = fxflow.make_mesh((2, 4), ("x", "y"))
    narrow = fxflow.make_mesh((2,), ("x",))
    places = {
        "anywhere": None,
        "device": fxflow.devices()[2],
        "mesh": fxflow.NamedSharding(wide, fxflow.P("y")),
        "other mesh": fxflow.NamedSharding(narrow, fxflow.P("x")),
        "here": fxflow.devices()[0],
    }
    whole = fxflow.NamedSharding(wide, fxflow.P())
    x = device_put(np.arange(4, dtype=np.float32), places[start])
    goal = places[goal]

    def cubed(x):
        y = device_put(x**2, goal)
        return fnp.sum(y * device_put(x, goal))

    for gradient in (
        fxflow.grad(cubed),
        lambda x: fxflow.vjp(cubed, x)[1](np.float32(1))[0],
        fxflow.grad(lambda x: fnp.sum(lax.with_sharding_constraint(cubed(x), whole))),
    ):
        slope = gradient(x)
        np.testing.assert_allclose(slope, 3 * np.arange(4) ** 2)
        assert where(slope) == where(x)
    second = fxflow.grad(lambda x: fnp.sum(fxflow.grad(cubed)(x) * 2))(x)
    np.testing.assert_allclose(second, 12 * np.arange(4))
    assert where(second) == where(x)
    np.testing.assert_allclose(
        fxflow.hessian(cubed)(x), np.diag(6 * np.arange(4)), rtol=1e-6
    )
    tangent = fxflow.jvp(cubed, (x,), (x,))[1]
    np.testing.assert_allclose(tangent, 3 * np.sum(np.arange(4) ** 3))


def test_cotangents_of_slices_go_back():
    wide = fxflow.make_mesh((2, 4), ("x", "y"))
    rows = np.arange(16, dtype=np.float32).reshape(4, 4)
    target = fxflow.NamedSharding(fxflow.make_mesh((2,), ("x",)), fxflow.P("x"))
    squared = lambda x: fnp.sum(device_put(x, target) ** 2)
    for place in (
        fxflow.devices()[2],
        fxflow.NamedSharding(wide, fxflow.P("x", "y")),
        fxflow.NamedSharding(wide, fxflow.P("y")),
    ):
        x = device_put(rows, place)
        for gradient in (
            fxflow.vmap(fxflow.grad(squared)),
            fxflow.grad(lambda x: fnp.sum(fxflow.vmap(squared)(x))),
        ):
            slopes = gradient(x)
            np.testing.assert_allclose(slopes, 2 * rows)
            assert slopes.devices() == x.devices()


def test_unknown_devices_and_values_that_are_not_arrays_are_refused():
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


def test_live_arrays():
    x = fnp.ones(3) * 2
    there = device_put(x, fxflow.devices()[1])
    live = {id(array) for array in fxflow.live_arrays()}
    assert {id(x), id(there)} <= live
    there.delete()
    assert id(there) not in {id(a) for a in fxflow.live_arrays("cpu")}
    with pytest.raises(RuntimeError):
        fxflow.live_arrays("nonsense")
