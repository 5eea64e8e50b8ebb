# %% [markdown]
# # MNIST: three models, logged to TensorBoard
#
# This notebook trains softmax regression, a perceptron and a convolutional net on
# handwritten digits. The same loop trains each, logs to TensorBoard, and figures show
# the results. A part of the data and a few epochs are enough here; on all of the data,
# `python examples/mnist.py --model cnn --logdir runs` reaches 92 % with softmax
# regression, 98 % with the perceptron and 99.2 % with the convolutional net.

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

import fxflow
from fxflow import optim, profiler, random, train, viz

places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/mnist.py").exists()]
assert examples, "examples/mnist.py was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.datasets import load_mnist
from mnist import MODELS, loss_of, scale

mnist = load_mnist()
images, labels = mnist.train_images[:12_800], mnist.train_labels[:12_800].astype(int)
test_images, test_labels = mnist.test_images[:2_000], mnist.test_labels[:2_000]
folder = Path(tempfile.mkdtemp()) / "runs"

# %% [markdown]
# ## The loop
#
# A step is a pure function of a state and a batch. `train.loop.run` calls it for each
# batch of a pipeline, and logs the values that it returns. The loop does not depend on
# the model: the models differ only in `MODELS[name].init` and `.apply`.


# %%
def trained(name, epochs=3):
    model, optimizer = MODELS[name], optim.adam(2e-3)
    loss = loss_of(model)

    @fxflow.jit
    def step(state, batch):
        params, memory = state
        value, gradients = fxflow.value_and_grad(loss)(params, *batch)
        updates, memory = optimizer.update(gradients, memory, params)
        return (optim.apply_updates(params, updates), memory), {"loss": value}

    @fxflow.jit
    def probabilities(params, images):
        return fxflow.nn.softmax(model.apply(params, scale(images)))

    params = model.init(random.key(0))
    batches = train.data.arrays((images, labels)).shuffle(seed=0).batch(128)
    losses = []

    @train.loop.every(epochs=1)
    def evaluate(progress):
        params = progress.state[0]
        found = train.metrics.accuracy(
            probabilities(params, test_images), test_labels.astype(int)
        )
        host = fxflow.tree.map(np.asarray, params)
        weights = train.logs.histograms(host, "params/")
        log(progress.step, {"test/accuracy": found, **weights})

    def keep(step, values):
        losses.append(float(values["loss"]))
        log(step, {"train/loss": values["loss"]})

    with train.logs.Logger(train.logs.tensorboard(folder / name)) as log:
        log(0, {"graph": train.logs.Graph(loss, params, images[:32], labels[:32])})
        state, _, _ = train.loop.run(
            step,
            (params, optimizer.init(params)),
            batches,
            epochs=epochs,
            hooks=[evaluate],
            log=keep,
            log_every=1,
        )
        guessed = np.asarray(probabilities(state[0], test_images))
        reached = float(np.mean(guessed.argmax(-1) == test_labels))
        settings = {"model": name, "epochs": epochs}
        log(
            len(losses),
            {"run": train.logs.HyperParameters(settings, {"accuracy": reached})},
        )
    return state[0], losses, guessed, reached


runs = {name: trained(name) for name in ("softmax", "mlp", "cnn")}
{name: f"{run[-1]:.1%}" for name, run in runs.items()}

# %% [markdown]
# The losses, smoothed as in TensorBoard:

# %%
viz.curves(
    {name: run[1] for name, run in runs.items()},
    smoothing=0.9,
    log=True,
    ylabel="training loss",
)

# %% [markdown]
# ## TensorBoard
#
# The logs are in event files, one folder for each run:
#
#     pip install tensorboard && tensorboard --logdir runs
#
# The page *Graphs* shows the model's scopes, *Distributions* and *Histograms* show its
# weights after each epoch, and *HParams* compares the runs.

# %%
for path in sorted(folder.rglob("events*")):
    print(path.parent.name, f"{path.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# ## Confusions
#
# The confusion matrix of the convolutional net, and its outputs as points in two
# dimensions:

# %%
guessed = runs["cnn"][2]
counts = train.metrics.confusion(guessed.argmax(-1), test_labels.astype(int), 10)
viz.confusion(counts.matrix)

# %%
viz.embedding(np.log(guessed[:500] + 1e-4), labels=test_labels[:500])

# %% [markdown]
# ## The graph, and where its time goes
#
# The loss of the convolutional net as a graph, with the scopes of its layers, and a
# profile of its gradient: the time of each scope and of each line.

# %%
params = runs["cnn"][0]
loss = loss_of(MODELS["cnn"])
viz.graph(loss, params, images[:128], labels[:128])

# %%
report = profiler.report(
    fxflow.value_and_grad(loss), params, images[:128], labels[:128], runs=5
)
print(report.table("scope"))

# %%
report.picture()

# %% [markdown]
# More layers are more accurate:

# %%
softmax, mlp, cnn = (runs[name][-1] for name in ("softmax", "mlp", "cnn"))
print(f"softmax {softmax:.1%}, mlp {mlp:.1%}, cnn {cnn:.1%}")
assert softmax > 0.85 and mlp > 0.9 and cnn > 0.94 and cnn > mlp > softmax
