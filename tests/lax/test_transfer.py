"""Moving arrays: committed where they were put, never copied without need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import device_put, grad, jit, vmap
from fxflow.devices import buffers, local_devices
from fxflow.lax.transfer import put_array

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


def test_transformations():
    fun = lambda x: device_put(x, HERE) * 2.0
    assert float(grad(fun)(1.0)) == 2.0
    assert vmap(fun)(fnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    assert jit(fun)(fnp.ones(2)).tolist() == [2.0, 2.0]
    assert "device_put" in str(fxflow.make_graph(fun)(1.0))


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
