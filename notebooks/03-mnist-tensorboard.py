# %% [markdown]
# # MNIST: three models, logged to TensorBoard
#
# This notebook trains softmax regression, a perceptron and a convolutional net on
# handwritten digits. The same loop trains all three and logs to TensorBoard. A part of
# the data and a few epochs are enough here; on all of the data, `python
# examples/mnist.py --model NAME --logdir runs` reaches 92 % with softmax regression
# (`softmax`), 98 % with the perceptron (`mlp`) and 99.3 % with the convolutional net
# (`cnn`).

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, profiler, random, train, viz

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.datasets import load_mnist

mnist = load_mnist()
images, labels = mnist.train_images[:12_800], mnist.train_labels[:12_800].astype(int)
test_images, test_labels = mnist.test_images[:2_000], mnist.test_labels[:2_000]
folder = Path(tempfile.mkdtemp()) / "runs"

# %% [markdown]
# ## Three models
#
# A model is two functions: one makes the parameters, the other applies them. Softmax
# regression has one linear layer, the perceptron three. The convolutional net has two
# convolutions with 5 × 5 filters, each of which halves the resolution, and two linear
# layers. `named_scope` names the layers in graphs and profiles.


# %%
def softmax_init(key):
    return {"out": nn.linear_init(key, 784, 10)}


def softmax(params, x):
    with fxflow.named_scope("out"):
        return nn.linear(params["out"], x.reshape(-1, 784))


def mlp_init(key):
    keys = random.split(key, 3)
    return {
        "hidden1": nn.linear_init(keys[0], 784, 256),
        "hidden2": nn.linear_init(keys[1], 256, 128),
        "out": nn.linear_init(keys[2], 128, 10),
    }


def mlp(params, x):
    x = x.reshape(-1, 784)
    for name in ("hidden1", "hidden2"):
        with fxflow.named_scope(name):
            x = nn.relu(nn.linear(params[name], x))
    with fxflow.named_scope("out"):
        return nn.linear(params["out"], x)


def cnn_init(key):
    keys = random.split(key, 4)
    return {
        "conv1": nn.conv_init(keys[0], 1, 16, (5, 5)),
        "conv2": nn.conv_init(keys[1], 16, 32, (5, 5)),
        "hidden": nn.linear_init(keys[2], 7 * 7 * 32, 128),
        "out": nn.linear_init(keys[3], 128, 10),
    }


def cnn(params, x):
    x = x[..., None]
    for name in ("conv1", "conv2"):
        with fxflow.named_scope(name):
            x = nn.relu(nn.conv(params[name], x, strides=(2, 2)))
    with fxflow.named_scope("hidden"):
        x = nn.relu(nn.linear(params["hidden"], x.reshape(len(x), -1)))
    with fxflow.named_scope("out"):
        return nn.linear(params["out"], x)


MODELS = {
    "softmax": (softmax_init, softmax),
    "mlp": (mlp_init, mlp),
    "cnn": (cnn_init, cnn),
}


def scale(images):
    return images.astype("float32") / 255


def loss_of(model):
    def loss(params, images, labels):
        scores = model(params, scale(images))
        with fxflow.named_scope("loss"):
            return fnp.mean(
                optim.losses.softmax_cross_entropy_with_integer_labels(scores, labels)
            )

    return loss


# %% [markdown]
# ## The loop
#
# A step is a pure function of a state and a batch. `train.loop.run` calls it for each
# batch of a pipeline, and logs the values that it returns. The loop does not depend on
# the model: the models differ only in the two functions in `MODELS[name]`.


# %%
def trained(name, epochs=3):
    (init, model), optimizer = MODELS[name], optim.adam(2e-3)
    loss = loss_of(model)

    @fxflow.jit
    def step(state, batch):
        params, memory = state
        value, gradients = fxflow.value_and_grad(loss)(params, *batch)
        updates, memory = optimizer.update(gradients, memory, params)
        return (optim.apply_updates(params, updates), memory), {"loss": value}

    @fxflow.jit
    def probabilities(params, images):
        return nn.softmax(model(params, scale(images)))

    params = init(random.key(0))
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
# The tab *Graphs* shows the model's scopes, *Distributions* and *Histograms* show its
# weights after each epoch, and *HParams* compares the runs.

# %%
for path in sorted(folder.rglob("events*")):
    print(path.parent.name, f"{path.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# ## The confusion matrix
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
loss = loss_of(cnn)
viz.graph(loss, params, images[:128], labels[:128])

# %%
report = profiler.report(
    fxflow.value_and_grad(loss), params, images[:128], labels[:128], runs=5
)
print(report.table("scope"))

# %%
report.picture()

# %% [markdown]
# The more layers, the higher the accuracy:

# %%
reached = {name: run[-1] for name, run in runs.items()}
print(", ".join(f"{name} {accuracy:.1%}" for name, accuracy in reached.items()))
assert reached["softmax"] > 0.85 and reached["cnn"] > 0.94
assert reached["cnn"] > reached["mlp"] > reached["softmax"]
