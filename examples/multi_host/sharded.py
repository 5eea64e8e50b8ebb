"""Trains on arrays that span all processes, with a jitted step.

fxflow launch -n 2 --devices-per-process 2 examples/multi_host/sharded.py

Each process creates its own rows of the batch; the parameters are on every device. The
step is written as for one device: XLA partitions it and inserts the all-reduces.
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
    """Returns the mean loss over the batch of all processes."""
    return fnp.mean((images @ weights - targets) ** 2)


@fxflow.jit
def step(weights, images, targets):
    """Runs one step of gradient descent."""
    value, gradient = fxflow.value_and_grad(loss)(weights, images, targets)
    return weights - 0.1 * gradient, value


for _ in range(100):
    weights, value = step(weights, images, targets)

# All processes must run each operation on an array that spans them. For work in one
# process, such as printing, fetch NumPy arrays first.
weights, value = fxflow.device_get((weights, value))
multihost.assert_equal(weights, "the processes have trained one model")
if fxflow.process_index() == 0:
    print(f"{len(images)} rows over {fxflow.device_count()} devices")
    print(f"loss {value:.1e}, weights {np.round(weights, 2).tolist()}")
