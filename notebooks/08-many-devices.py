# %% [markdown]
# # The same program on many devices
#
# A training run of `examples/mnist.py` consists of a model, an optimizer, and a
# function `make_step` that compiles them. From one device to four, to a sharded
# optimizer, or to two processes, *only this argument* changes; the batches, the
# schedule, the loop and the result remain the same.

# %%
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import fxflow

# Without accelerators, the CPU counts as four devices. Set before first use.
fxflow.config.num_cpu_devices = 4
examples = next(
    folder / "examples"
    for folder in (Path.cwd(), *Path.cwd().parents)
    if (folder / "examples" / "mnist.py").exists()
)
sys.path.insert(0, str(examples))

import mnist
import mnist_pmap
import mnist_sharded
from helpers.datasets import load_mnist

fxflow.devices()

# %% [markdown]
# A part of MNIST is enough to show that the runs are the same.

# %%
whole = load_mnist()
part = mnist.Mnist(
    whole.train_images[:12_000],
    whole.train_labels[:12_000],
    whole.test_images[:2_000],
    whole.test_labels[:2_000],
)


def run(make_step):
    _, curve = mnist.fit(
        mnist.MODELS["mlp"],
        part,
        epochs=1,
        batch_size=128,
        learning_rate=1e-3,
        progress=False,
        make_step=make_step,  # the line that changes
    )
    return curve


# %% [markdown]
# The runs use one device; four devices with `pmap`, each with a copy of the state and a
# quarter of each batch; and four devices with a sharded optimizer, each with a quarter
# of every parameter and of Adam's state.

# %%
curves = {
    "one device": run(mnist.make_step),
    "pmap, 4 devices": run(
        lambda model, optimizer: mnist_pmap.make_step(model, optimizer, devices=4)
    ),
    "sharded optimizer, 4 devices": run(mnist_sharded.make_step),
}
for name, curve in curves.items():
    print(f"{name:28} {curve.accuracies[-1]:.2%}   loss {curve.losses[-1]:.6f}")

# %% [markdown]
# Sums over devices are added in a different order, so only the last digits differ.

# %%
reached = [curve.accuracies[-1] for curve in curves.values()]
assert max(reached) - min(reached) < 0.005, reached
for (name, curve), style in zip(curves.items(), ("-", "--", ":"), strict=True):
    plt.plot(curve.losses, style, linewidth=1, label=name)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("training loss")
_ = plt.legend()

# %% [markdown]
# ## Two processes
#
# `fxflow launch` starts the processes; the program calls
# `fxflow.distributed.initialize()`, by which they find each other. Here each has two
# devices, and the four devices share the parameters. The same works on the machines of
# a cluster (`docs/guides/multi-host.md`).

# %%
launch = [sys.executable, "-m", "fxflow", "launch", "-n", "2", "--no-color"]
program = [str(examples / "mnist_sharded.py"), "--devices", "2"]
program += ["--model", "softmax", "--epochs", "1"]
done = subprocess.run([*launch, *program], capture_output=True, text=True, check=True)
print(*(line for line in done.stdout.splitlines() if "accuracy" in line), sep="\n")

# %% [markdown]
# ## Next steps
#
# - `examples/mnist_multihost.py`: `pmap` over the devices of all processes.
# - `fxflow.distributed.elastic`: the run continues when a process dies or joins.
# - `jit` with `NamedSharding` divides arrays instead of giving each device its own
#   function: `examples/tensor_parallel.py`, `examples/sharded_transformer.py`.
