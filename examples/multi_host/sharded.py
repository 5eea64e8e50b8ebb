"""One array over all processes, and a jitted training step on it.

fxflow launch -n 2 --devices-per-process 2 examples/multi_host/sharded.py

Each process makes its own rows of the batch; the parameters are on every device. The
program is written as for one device: XLA partitions it and inserts the all-reduces.
"""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P
from fxflow.distributed import multihost

fxflow.distributed.initialize()
mesh = fxflow.make_mesh((fxflow.device_count(),), ("data",))
divided, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

# The data of this process: 64 rows, different ones in each.
random = np.random.default_rng(fxflow.process_index())
images = random.normal(size=(64, 8)).astype(np.float32)
targets = images @ np.arange(8, dtype=np.float32)

# All processes' rows make one array of 64 × (number of processes) rows.
images = fxflow.make_array_from_process_local_data(divided, images)
targets = fxflow.make_array_from_process_local_data(divided, targets)
weights = fxflow.device_put(np.zeros(8, np.float32), everywhere)


def loss(weights, images, targets):
    """The mean over the batch of all processes."""
    return fnp.mean((images @ weights - targets) ** 2)


@fxflow.jit
def step(weights, images, targets):
    """One step of gradient descent."""
    value, gradient = fxflow.value_and_grad(loss)(weights, images, targets)
    return weights - 0.1 * gradient, value


for _ in range(100):
    weights, value = step(weights, images, targets)

# Operations on arrays of all processes are programs of all processes. What one of them
# does alone, such as printing, it does with NumPy arrays.
weights, value = fxflow.device_get((weights, value))
multihost.assert_equal(weights, "the processes have trained one model")
if fxflow.process_index() == 0:
    print(f"{len(images)} rows over {fxflow.device_count()} devices")
    print(f"loss {value:.1e}, weights {np.round(weights, 2).tolist()}")
