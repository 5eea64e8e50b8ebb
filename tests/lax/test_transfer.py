"""Moving arrays: committed where they were put, never copied without need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import (
    NamedSharding,
    P,
    SingleDeviceSharding,
    device_put,
    grad,
    jit,
    lax,
    vmap,
)
from fxflow.devices import buffers, local_devices
from fxflow.lax.transfer import put_array
from fxflow.memory import Space

HERE = local_devices()[0]


def test_put_where_it_is():
    x = jit(lambda x: x + 1)(fnp.ones(3))
    placement = buffers.placement(HERE)
    y = put_array(x, placement)
    assert y.committed and not x.committed
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    host = put_array(fnp.ones(3), placement)
    assert host.committed and host.tolist() == [1.0, 1.0, 1.0]


def test_results_of_committed_arrays_are_committed():
    x = device_put(fnp.ones(3), HERE)
    assert (x + 1).committed
    assert jit(lambda x: x * 2)(x).committed
    assert not (fnp.ones(3) + 1).committed


def test_transfers_are_transformed():
    fun = lambda x: device_put(x, HERE) * 2.0
    assert float(grad(fun)(1.0)) == 2.0
    assert vmap(fun)(fnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    assert jit(fun)(fnp.ones(2)).tolist() == [2.0, 2.0]
    assert "device_put" in str(fxflow.make_graph(fun)(1.0))


HOST = "pinned_host"


def kinds(tree):
    return [x.sharding.memory_kind for x in fxflow.tree.leaves(tree)]


def both(fun, *args):
    """The memories of the results, which are those of the function outside of jit."""
    got, want = jit(fun)(*args), fun(*args)
    for a, b in zip(fxflow.tree.leaves(got), fxflow.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    assert kinds(got) == kinds(want)
    return kinds(got)


X = fnp.arange(6.0).reshape(2, 3)
THERE = device_put(X, Space.Host)


def test_programs_put_results_in_host_memory():
    assert both(lambda x: device_put(x * 2, Space.Host), X) == [HOST]
    there = SingleDeviceSharding(HERE, memory_kind=HOST)
    assert both(lambda x: (device_put(x * 2, there), x + 1), X) == [HOST, "device"]
    text = jit(lambda x: device_put(x, there)).lower(X).as_text()
    assert "@annotate_device_placement" in text
    assert '{_xla_buffer_placement = "pinned_host"}' in text
    assert '-> (tensor<2x3xf32> {mhlo.memory_kind = "pinned_host"})' in text
    assert "annotate" not in jit(lambda x: device_put(x, HERE)).lower(X).as_text()


def test_arguments_in_host_memory_enter_there():
    text = jit(lambda x: x * 2).lower(THERE).as_text()
    assert '%a0: tensor<2x3xf32> {mhlo.memory_kind = "pinned_host"}' in text
    assert text.count('{_xla_buffer_placement = "device"}') == 1
    assert both(lambda x: x * 2, THERE) == ["device"]
    assert both(lambda x, y: x + y, THERE, X) == ["device"]
    assert both(lambda x: (x[1], x.sum()), THERE) == ["device", "device"]
    assert kinds(jit(lambda x: x)(THERE)) == [HOST]
    round_trip = lambda x: device_put(device_put(x, Space.Device) + 1, Space.Host)
    assert both(round_trip, THERE) == both(round_trip, X) == [HOST]


def test_memories_in_transformations():
    away = lambda x: device_put(lax.sin(x), Space.Host)
    assert both(vmap(away), X) == both(vmap(away), THERE) == [HOST]
    assert both(lambda x: fxflow.jvp(away, (x,), (x,)), X) == [HOST, HOST]
    loop = lambda x: lax.scan(lambda c, w: (c + w, away(w)), x[0], x)
    assert both(loop, X) == both(loop, THERE) == ["device", HOST]
    mesh = fxflow.make_mesh((2,), ("x",))
    part = fxflow.shard_map(away, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert both(part, X) == [HOST]
    lengthy = lambda x: lax.scan(lambda c, _: (c, away(c)), x, None, 1)[1]
    assert both(lengthy, X) == [HOST]


def test_cotangents_go_back_where_values_came_from():
    def loss(x):
        return (lax.sin(device_put(x, Space.Device)) ** 2).sum()

    def layers(x):
        body = lambda c, w: (c * device_put(w, Space.Device), None)
        return lax.scan(body, fnp.ones(3), x)[0].sum()

    for fun in (loss, layers, fxflow.checkpoint(loss), jit(loss), jit(layers)):
        assert both(grad(fun), THERE) == [HOST]
        assert both(grad(fun), X) == ["device"]
    through = lambda x: loss(device_put(lax.exp(x), Space.Host))
    assert both(grad(through), X) == ["device"]
    second = grad(lambda x: grad(loss)(x).sum())
    assert kinds(jit(second)(THERE)) == [HOST]
    assert both(grad(lambda x: (x**2).sum()), THERE) == ["device"]


def test_constraints_and_memories():
    mesh = fxflow.make_mesh((2,), ("x",))
    own = NamedSharding(mesh, P("x"))
    there = own.with_memory_kind(HOST)
    constrain = lax.with_sharding_constraint
    assert jit(lambda x: constrain(x * 2, there))(X).sharding == there
    # Without a kind it says nothing of the memory; outside of jit it moves.
    split = device_put(X, there)
    assert jit(lambda x: constrain(x, own))(split).sharding == there
    assert constrain(split, own).sharding == own
    assert constrain(split, there).sharding == there
    spread = jit(lambda x: constrain(x, NamedSharding(mesh, P())))(split)
    assert spread.sharding == NamedSharding(mesh, P(), memory_kind=HOST)
    np.testing.assert_array_equal(spread, X)
    batched = jit(vmap(lambda x: device_put(x, NamedSharding(mesh, P()))))(split)
    assert batched.sharding.memory_kind == "device"


def test_memories_in_graphs():
    text = str(fxflow.make_graph(lambda x: device_put(x, Space.Host))(1.0))
    assert "device_put[memory=pinned_host] a" in text
    text = str(fxflow.make_graph(grad(lambda x: device_put(x, Space.Device) ** 2))(1.0))
    assert "device_put[memory=device] a" in text
    assert "device_put[memory=where it came from]" in text


CODE = """
import numpy as np, fxflow, fxflow.numpy as fnp
from fxflow import device_put, jit, local_devices
a, b = local_devices()
x = device_put(fnp.arange(3.0), b)
assert x.device == b and x.devices() == {b} and x.committed
y = x + 1
assert y.device == b and y.tolist() == [1.0, 2.0, 3.0]
z = jit(lambda v: v * 2)(x)
assert z.device == b
free = fnp.ones(3)
assert free.device == a
assert (x + free).device == b
back = device_put(z, a)
assert back.device == a and back.tolist() == [0.0, 2.0, 4.0]
assert device_put(x, b).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
with fxflow.default_device(b):
    assert fnp.zeros(2).device == b
assert fnp.zeros(2).device == a
try:
    device_put(fnp.ones(3), a) + x
except TypeError as error:
    assert "committed to different devices" in str(error), error
else:
    raise AssertionError("no error")
big = device_put(fnp.ones(100000), b)
assert float((big * 2)[7]) == 2.0
assert np.asarray(big).sum() == 100000
g = fxflow.grad(lambda v: fnp.sin(v[0]) * v[1])(x)
assert g.device == b
print("fine")
"""


def test_two_devices():
    """In a fresh process: the first use fixes the number of devices."""
    root = str(Path(__file__).parent.parent.parent)
    env = {**os.environ, "FXFLOW_NUM_CPU_DEVICES": "2", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "fine\n", done.stderr


def test_numpy_goes_through():
    x = device_put(np.arange(3))
    assert x.dtype == np.int32 and x.tolist() == [0, 1, 2]
