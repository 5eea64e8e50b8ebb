# %% [markdown]
# # Parts of a program on different devices
#
# A sharding runs *one* program on all devices. `dataflow.jit` runs *different* parts of
# a function on different devices. This notebook cuts a small function, looks at the
# plan, and then trains a transformer in stages: a pipeline.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import SVG

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, random, viz
from fxflow.dataflow import on

# Without accelerators, the CPU counts as four devices. Set before first use.
fxflow.config.num_cpu_devices = 4
devices = fxflow.devices()
examples = next(
    folder / "examples"
    for folder in (Path.cwd(), *Path.cwd().parents)
    if (folder / "examples" / "pipeline_transformer.py").exists()
)
sys.path.insert(0, str(examples))

import pipeline_transformer as transformer
import unequal_stages
from helpers.texts import load_shakespeare

# %% [markdown]
# ## Scopes and a plan
#
# `on` says where the operations of a block run: here labels, which `devices=` resolves.
# It changes no value and no type.


# %%
def loss(params, x):
    with on("encoder"):
        h = fnp.tanh(x @ params["encoder"])
    with on("decoder"):
        y = fnp.tanh(h @ params["decoder"])
    return fnp.mean((y - x) ** 2)


params = {
    "encoder": random.normal(random.key(0), (64, 16)) / 8,
    "decoder": random.normal(random.key(1), (16, 64)) / 4,
}
x = random.normal(random.key(2), (32, 64))
step = dataflow.jit(
    fxflow.value_and_grad(loss), devices={"encoder": devices[1], "decoder": devices[2]}
)
print(step.plan(params, x))

# %% [markdown]
# Each row is a *fragment*, a program of its own. The gradients of the encoder's weights
# are computed where the encoder is. In the picture each device has its colour; values
# that pass between devices are sent and received.

# %%
viz.graph(step, params, x)

# %%
value, gradients = step(params, x)
expected = fxflow.jit(fxflow.value_and_grad(loss))(params, x)
print({name: leaf.devices() for name, leaf in gradients.items()})
fxflow.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7),
    (value, gradients),
    expected,
)

# %% [markdown]
# ## A pipeline
#
# `examples/pipeline_transformer.py` predicts the next character of Shakespeare. Each
# stage has some of the blocks. A batch is divided into microbatches: while one stage
# works on a microbatch, the next stage works on the one before. A few steps over two
# devices give the losses of one device.

# %%
text, symbols = transformer.characters(load_shakespeare()[:4])
settings = transformer.Settings(width=32, blocks=4, length=32, batch=16, steps=10)
losses, plan = transformer.fit(text, len(symbols), settings, devices[:2], "1f1b")
alone, _ = transformer.fit(text, len(symbols), settings, devices[:1], "1f1b")
print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}")
assert max(abs(a - b) for a, b in zip(losses, alone, strict=True)) < 1e-3

# %% [markdown]
# The plan's schedule: when each device works on which microbatch, by the estimated work
# of the fragments.

# %%
SVG(plan.to_svg())

# %% [markdown]
# ## Bubbles
#
# At the beginning and at the end of a step, stages wait for each other. With p equal
# stages and m microbatches they are idle for (p − 1) / (m + p − 1) of the time; `zb-h1`
# fills a part of it with the gradients of weights. Plans need no devices to run on and
# compile nothing: many can be compared quickly.


# %%
def bubble(stages, microbatches, schedule):
    changed = settings._replace(blocks=8, batch=32, microbatches=microbatches)
    labels = dataflow.stages(stages)
    loss = transformer.make_loss(changed.heads, transformer.even(8, stages), labels)
    gradient = fxflow.train.accumulate_gradients(loss, microbatches)
    split = dataflow.jit(gradient, devices=devices[:stages], schedule=schedule)
    params = transformer.init(random.key(0), len(symbols), changed)
    return (
        split.plan(params, next(transformer.batches(text, changed))).simulate().bubble
    )


counts = [2, 4, 8, 16]
for schedule, style in (("1f1b", "o-"), ("zb-h1", "s-")):
    found = [bubble(4, count, schedule) for count in counts]
    plt.plot(counts, found, style, label=schedule)
law = [3 / (count + 3) for count in counts]
plt.plot(counts, law, "k:", label="law of equal stages")
plt.xscale("log", base=2)
plt.xlabel("microbatches")
plt.ylabel("idle time of 4 devices")
_ = plt.legend()

# %% [markdown]
# ## Unequal stages
#
# With a vocabulary of a thousand words the head is more work than a block. The program
# `examples/unequal_stages.py` simulates every cut; the best one gives the last stage
# fewer blocks.

# %%
changed = settings._replace(blocks=6, length=16)
params = transformer.init(random.key(0), 1000, changed)
optimizer = fxflow.optim.adam(changed.rate)
state = transformer.State(params, optimizer.init(params))
tokens = np.zeros((changed.batch, changed.length + 1), np.int32)
seconds = unequal_stages.predictions(state, tokens, changed, devices[:2])
cuts = sorted(seconds)
plt.bar([f"{a} | {b}" for a, b in cuts], [seconds[cut] * 1e3 for cut in cuts])
plt.xlabel("blocks of the two stages")
plt.ylabel("estimated ms of a step")
best = next(iter(seconds))
assert best[0] > best[1], seconds

# %% [markdown]
# ## Next steps
#
# - The guide *Parts of a program on different devices* has all scopes, schedules and
#   options, and says how to run the parts in several processes.
# - `examples/host_embedding.py`: a table on the host, the rest on the accelerator.
# - `examples/mnist_replicas.py`: losses on workers, averaged on a master, in one graph.
