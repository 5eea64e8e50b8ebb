# %% [markdown]
# # Parts of a program on different devices
#
# A sharding runs *one* program on all devices. `dataflow.jit` runs *different* parts of
# a function on different devices. This notebook divides a small function, looks at the
# plan, and then trains a transformer in stages: a pipeline.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import SVG

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, nn, optim, random, train, viz
from fxflow.dataflow import on

# Without accelerators, the CPU counts as four devices. Set before first use.
fxflow.config.num_cpu_devices = 4
devices = fxflow.devices()

# %% [markdown]
# ## Scopes and a plan
#
# `on` says where the operations of a `with` block run. Here it takes labels, which
# `devices=` maps to devices. It changes neither values nor types.


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
# are computed where the encoder is. In the picture, each device has a colour; values
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
# ## A transformer in stages
#
# The model predicts the next character of Shakespeare. Each block has causal attention
# and a perceptron. A scope names the stage of each block; the first stage also has the
# embedding and the last one the head, and both use the same table.

# %%
WIDTH, HEADS, LENGTH = 32, 4, 32


def init(key, symbols, blocks, length=LENGTH):
    first, second, *keys = random.split(key, 2 + blocks)

    def weight(key, inputs, outputs):
        return random.normal(key, (inputs, outputs)) / fnp.sqrt(inputs)

    def block(key):
        k = random.split(key, 4)
        return {
            "qkv": weight(k[0], WIDTH, 3 * WIDTH),
            "out": weight(k[1], WIDTH, WIDTH),
            "up": weight(k[2], WIDTH, 4 * WIDTH),
            "down": weight(k[3], 4 * WIDTH, WIDTH),
        }

    return {
        "table": random.normal(first, (symbols, WIDTH)),
        "places": random.normal(second, (length, WIDTH)),
        "blocks": [block(k) for k in keys],
    }


def block(params, x):
    n, length, width = x.shape
    qkv = (nn.standardize(x) @ params["qkv"]).reshape(n, length, 3, HEADS, -1)
    q, k, v = fnp.moveaxis(qkv, (2, 3), (0, 2))
    seen = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + fnp.moveaxis(seen, 1, 2).reshape(n, length, width) @ params["out"]
    return x + nn.gelu(nn.standardize(x) @ params["up"]) @ params["down"]


def loss_in_stages(cuts):
    """Makes the loss whose stages have these numbers of blocks."""
    stages = dataflow.stages(len(cuts))
    stage_of = [s for s, count in zip(stages, cuts, strict=True) for _ in range(count)]

    def loss(params, tokens):
        known, following = tokens[:, :-1], tokens[:, 1:]
        with on(stages[0]):
            x = params["table"][known] + params["places"]
        for stage, weights in zip(stage_of, params["blocks"], strict=True):
            with on(stage):
                x = block(weights, x)
        with on(stages[-1]):
            scale = fnp.sqrt(x.shape[-1])
            log_p = nn.log_softmax(nn.standardize(x) @ params["table"].T / scale)
            return -fnp.mean(fnp.take_along_axis(log_p, following[..., None], -1))

    return loss


# %%
# The code that reads the texts is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.texts import load_shakespeare

characters = "\n".join(" ".join(words) for words in load_shakespeare()[:4])
symbols = sorted(set(characters))
number = {symbol: i for i, symbol in enumerate(symbols)}
text = np.array([number[symbol] for symbol in characters], np.int32)


def batches(count, size=16, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        start = rng.integers(0, len(text) - LENGTH, size)
        yield text[start[:, None] + np.arange(LENGTH + 1)]


print(f"{len(text):,} characters, {len(symbols)} different ones")

# %% [markdown]
# ## A pipeline
#
# `train.accumulate_gradients` divides a batch into microbatches and adds their
# gradients. With stages on several devices this is a pipeline: while one stage works on
# a microbatch, the next stage works on the one before. The optimizer's update needs no
# scopes: weights, gradients and Adam's state stay in their stage.

# %%
optimizer = optim.adam(3e-3)


def make_step(cuts, microbatches=8):
    gradient = train.accumulate_gradients(loss_in_stages(cuts), microbatches)

    def step(params, memory, tokens):
        value, gradients = gradient(params, tokens)
        updates, memory = optimizer.update(gradients, memory, params)
        return optim.apply_updates(params, updates), memory, value

    return step


def fit(cuts, devices):
    step = dataflow.jit(
        make_step(cuts), devices=devices, schedule="1f1b", donate_argnums=(0, 1)
    )
    params = init(random.key(0), len(symbols), sum(cuts))
    memory = optimizer.init(params)
    plan = step.plan(params, memory, next(batches(1)))
    losses = []
    for tokens in batches(10):
        params, memory, value = step(params, memory, tokens)
        losses.append(float(value))
    return losses, plan


losses, plan = fit([2, 2], devices[:2])
alone, _ = fit([4], devices[:1])
print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}")
assert max(abs(a - b) for a, b in zip(losses, alone, strict=True)) < 1e-3

# %% [markdown]
# The ten steps on two devices gave the same losses as on one. The schedule of the plan
# shows which microbatch each device works on and when, with times estimated from the
# work of the fragments:

# %%
SVG(plan.to_svg())

# %% [markdown]
# ## Bubbles
#
# At the beginning and at the end of a step, stages wait for each other. With p equal
# stages and m microbatches they are idle for (p − 1) / (m + p − 1) of the time; the
# zero-bubble schedule `zb-h1` fills a part of it with the gradients of weights.
# Planning neither compiles nor runs the program, so comparing plans is quick.


# %%
def bubble(stages, microbatches, schedule):
    loss = loss_in_stages([8 // stages] * stages)
    split = dataflow.jit(
        train.accumulate_gradients(loss, microbatches),
        devices=devices[:stages],
        schedule=schedule,
    )
    params = init(random.key(0), len(symbols), 8)
    tokens = next(batches(1, size=32))
    return split.plan(params, tokens).simulate().bubble


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
# With a vocabulary of a thousand words the head takes more work than a block. Simulate
# every way to divide six blocks over two stages: the best one gives the last stage
# fewer blocks.

# %%
params = fxflow.eval_shape(lambda: init(random.key(0), 1000, 6, length=16))
memory = fxflow.eval_shape(optimizer.init, params)
tokens = fxflow.ShapeDtypeStruct((16, 17), "int32")
seconds = {}
for count in range(7):
    cuts = (count, 6 - count)
    step = dataflow.jit(make_step(cuts), devices=devices[:2])
    seconds[cuts] = step.plan(params, memory, tokens).simulate().seconds
plt.bar([f"{a} | {b}" for a, b in seconds], [s * 1e3 for s in seconds.values()])
plt.xlabel("blocks of the two stages")
plt.ylabel("estimated ms of a step")
best = min(seconds, key=seconds.get)
assert best[0] > best[1], seconds

# %% [markdown]
# ## Next steps
#
# - The guide [Parts of a program on different devices](../docs/guides/dataflow.md)
#   describes all scopes, schedules and options, and how to run the parts in several
#   processes.
# - `examples/pipeline_transformer.py`: this model in full, also over processes;
#   `examples/unequal_stages.py` chooses the stages of a word-level model.
# - `examples/host_embedding.py`: a table on the host, the rest on the accelerator.
# - `examples/mnist_replicas.py`: losses on workers, averaged on a master, in one graph.
