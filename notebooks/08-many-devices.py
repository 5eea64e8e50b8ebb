# %% [markdown]
# # The same program on many devices
#
# A training step is written once, for one device. This notebook runs it on four: with
# the batch divided, with the parameters divided too, with communication written by
# hand, and in two processes. The result is the same each time, up to rounding.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import Mesh, NamedSharding, P, lax, nn, optim, random

# Without accelerators, the CPU counts as four devices. Set before first use.
fxflow.config.num_cpu_devices = 4

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.datasets import load_mnist

mnist = load_mnist()
images = mnist.train_images[:12_800].reshape(-1, 100, 784).astype(np.float32) / 255
labels = mnist.train_labels[:12_800].reshape(-1, 100).astype(np.int32)
print(fxflow.devices())

# %% [markdown]
# ## The step


# %%
def init(key):
    first, second = random.split(key)
    return [nn.linear_init(first, 784, 128), nn.linear_init(second, 128, 10)]


def loss(params, x, y):
    scores = nn.linear(params[1], nn.relu(nn.linear(params[0], x)))
    return fnp.mean(optim.losses.softmax_cross_entropy_with_integer_labels(scores, y))


optimizer = optim.adam(1e-3)


def step(state, x, y):
    params, memory = state
    value, slope = fxflow.value_and_grad(loss)(params, x, y)
    updates, memory = optimizer.update(slope, memory, params)
    return (optim.apply_updates(params, updates), memory), value


def start():
    params = init(random.key(0))
    return params, optimizer.init(params)


def run(step, state, place=lambda batch: batch):
    losses = []
    for x, y in zip(images, labels, strict=True):
        state, value = step(state, place(x), place(y))
        losses.append(value)
    return state, np.array([float(fnp.mean(value)) for value in losses])


curves = {}
_, curves["one device"] = run(fxflow.jit(step), start())

# %% [markdown]
# ## Divide the batch
#
# A *mesh* names the axes along which devices are arranged. A *sharding* says which axis
# of an array is divided along which axis of the mesh. The step does not change: it is
# compiled for the placement of its arguments, and XLA inserts the all-reduces that sum
# the gradients over the devices.

# %%
mesh = Mesh(fxflow.devices(), ("data",))
divided, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())


def over_devices(batch):
    return fxflow.device_put(batch, divided)


state = fxflow.device_put(start(), everywhere)
state, curves["batch divided"] = run(fxflow.jit(step), state, over_devices)
text = fxflow.jit(step).lower(state, *map(over_devices, (images[0], labels[0])))
text = text.compile().as_text()
print("sums over devices in the compiled step:", text.count(" all-reduce("))
fxflow.debug.visualize_array_sharding(over_devices(images[0]))

# %% [markdown]
# ## Divide the parameters too
#
# Now each device keeps a quarter of each matrix and of Adam's two moments. Again only
# the placement changes.


# %%
def quarter(leaf):
    spec = P("data") if leaf.ndim and leaf.shape[0] % 4 == 0 else P()
    return fxflow.device_put(leaf, NamedSharding(mesh, spec))


state, curves["parameters divided"] = run(
    fxflow.jit(step), fxflow.tree.map(quarter, start()), over_devices
)
first = state[0][0]["w"]
print(first.shape, "of which each device has", first.addressable_shards[0].data.shape)

# %% [markdown]
# ## Communicate by hand
#
# In `shard_map`, a function sees one device's part of each array and communicates
# explicitly: here it takes the mean of the gradients and of the loss over all devices.
# (`pmap` is the older form of the same idea.)


# %%
def local_step(state, x, y):
    params, memory = state
    # Each device differentiates with respect to its own copy: without `pcast`, the
    # gradient with respect to a shared value would already be the sum over devices.
    own = fxflow.tree.map(lambda p: lax.pcast(p, "data", to="varying"), params)
    value, slope = fxflow.value_and_grad(loss)(own, x, y)
    slope, value = lax.pmean((slope, value), "data")
    updates, memory = optimizer.update(slope, memory, params)
    return (optim.apply_updates(params, updates), memory), value


by_hand = fxflow.shard_map(
    local_step,
    mesh=mesh,
    in_specs=(P(), P("data"), P("data")),
    out_specs=(P(), P()),
)
_, curves["by hand"] = run(fxflow.jit(by_hand), start(), over_devices)

# %% [markdown]
# ## The same result
#
# Sums over devices add their terms in another order, so only the last digits differ.

# %%
for (name, curve), style in zip(curves.items(), ("-", "--", "-.", ":"), strict=True):
    print(f"{name:20} loss {curve[-1]:.6f}")
    plt.plot(curve, style, linewidth=1, label=name)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("training loss")
plt.legend()
plt.show()
differences = [abs(curve - curves["one device"]).max() for curve in curves.values()]
assert max(differences) < 1e-3, differences

# %% [markdown]
# ## Two processes
#
# `fxflow launch` starts processes, and `fxflow.distributed.initialize` connects them.
# Then `fxflow.devices()` lists the devices of all processes, and a mesh of them spans
# the processes: the rest of a program is as above. The same program runs on the hosts
# of a cluster ([guide](../docs/guides/multi-host.md)).

# %%
PROGRAM = """
import fxflow
import fxflow.numpy as fnp
from fxflow import Mesh, NamedSharding, P

fxflow.config.num_cpu_devices = 2
fxflow.distributed.initialize()
mesh = Mesh(fxflow.devices(), ("data",))
x = fxflow.device_put(fnp.arange(8.0), NamedSharding(mesh, P("data")))
total = fxflow.jit(fnp.sum)(x)
print("process", fxflow.process_index(), "of", fxflow.process_count(), "has", end=" ")
print([shard.data.tolist() for shard in x.addressable_shards], "sum", float(total))
"""
file = Path(tempfile.mkdtemp()) / "program.py"
file.write_text(PROGRAM)
launch = [sys.executable, "-m", "fxflow", "launch", "-n", "2", "--no-color", str(file)]
done = subprocess.run(launch, capture_output=True, text=True, check=True)
print(*sorted(line for line in done.stdout.splitlines() if "sum" in line), sep="\n")
assert done.stdout.count("sum 28.0") == 2

# %% [markdown]
# ## Next steps
#
# - `examples/mnist_sharded.py`: a sharded optimizer, also over processes.
# - `fxflow.distributed.elastic`: the run continues when a process dies or joins.
# - `examples/tensor_parallel.py`, `examples/sharded_transformer.py`: layers whose
#   features are divided over devices.
