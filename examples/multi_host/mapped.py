"""Trains with `pmap`: a function for one device, and explicit collectives.

fxflow launch -n 2 --devices-per-process 2 examples/multi_host/mapped.py

The mapped axis covers this process's devices; the named axis "data" covers the devices
of all processes, so `pmean` is over the whole batch.
"""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.distributed import multihost

fxflow.distributed.initialize()
here = fxflow.local_device_count()

# The data of this process: a slice for each of its devices.
random = np.random.default_rng(fxflow.process_index())
images = random.normal(size=(here, 64 // here, 8)).astype(np.float32)
targets = images @ np.arange(8, dtype=np.float32)
weights = np.zeros((here, 8), np.float32)  # a copy for each device


def loss(weights, images, targets):
    """Returns the mean loss over one device's part."""
    return fnp.mean((images @ weights - targets) ** 2)


def step(weights, images, targets):
    """Runs one step of gradient descent on each device."""
    value, gradient = fxflow.value_and_grad(loss)(weights, images, targets)
    value, gradient = lax.pmean((value, gradient), "data")
    return weights - 0.1 * gradient, value


step = fxflow.pmap(step, axis_name="data")
for _ in range(100):
    weights, value = step(weights, images, targets)

multihost.assert_equal(weights[0], "the processes have trained one model")
if fxflow.process_index() == 0:
    print(f"{fxflow.device_count()} devices, {here} of them here")
    print(f"loss {float(value[0]):.1e}, weights {np.round(weights[0], 2).tolist()}")
