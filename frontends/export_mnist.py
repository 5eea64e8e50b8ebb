"""Writes what the examples of all front ends need: a net for MNIST, and the images.

    python frontends/export_mnist.py build

The folder then has `mnist.fx`, with the functions `init`, `step` and `predict` and the
initial state of training, and the images and labels as plain bytes. Prints what one
epoch in Python gives, which the examples print too.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export, nn, optim, random

BATCH = 100
OPTIMIZER = optim.adam(1e-3)


def init(key):
    """Returns the state of training: parameters and the optimizer's state."""
    first, second = random.split(key)
    params = {
        "hidden": {
            "w": random.normal(first, (784, 128)) * (2 / 784) ** 0.5,
            "b": fnp.zeros(128),
        },
        "output": {
            "w": random.normal(second, (128, 10)) * (1 / 128) ** 0.5,
            "b": fnp.zeros(10),
        },
    }
    return {"params": params, "optimizer": OPTIMIZER.init(params)}


def logits(params, images):
    """Returns logits `f32[batch, 10]` of images `u8[batch, 784]`."""
    x = images.astype("float32") / 255
    hidden = nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["output"]["w"] + params["output"]["b"]


def loss(params, images, labels):
    """Returns the mean cross-entropy of a batch."""
    scores = nn.log_softmax(logits(params, images))
    picked = fnp.take_along_axis(scores, labels[:, None].astype("int32"), axis=1)
    return -fnp.mean(picked)


def step(state, images, labels):
    """Returns the state after a step of Adam, and the loss before it."""
    value, grads = fxflow.value_and_grad(loss)(state["params"], images, labels)
    updates, optimizer = OPTIMIZER.update(grads, state["optimizer"], state["params"])
    params = optim.apply_updates(state["params"], updates)
    return {"params": params, "optimizer": optimizer}, {"loss": value}


def predict(state, images):
    """Returns the digits and the probabilities of images."""
    scores = logits(state["params"], images)
    return {
        "digits": fnp.argmax(scores, 1).astype("int32"),
        "probabilities": nn.softmax(scores),
    }


def bundle(folder, batch=BATCH):
    """Writes `mnist.fx`; returns the state and the exported functions."""
    state = fxflow.jit(init)(random.key(0))
    images, labels = np.zeros((batch, 784), "u1"), np.zeros(batch, "u1")
    functions = {
        "init": export.export(fxflow.jit(init))(random.key(0)),
        "step": export.export(fxflow.jit(step))(state, images, labels),
        "predict": export.export(fxflow.jit(predict))(state, images),
    }
    export.save(Path(folder, "mnist.fx"), functions, params=state)
    return state, functions


def train(functions, state, images, labels, batch=BATCH):
    """Trains one epoch with the exported step; returns the state and the mean loss."""
    jitted, losses = fxflow.jit(functions["step"].call), []
    for i in range(0, len(images) - batch + 1, batch):
        state, out = jitted(state, images[i : i + batch], labels[i : i + batch])
        losses.append(out["loss"])
    return state, float(fnp.mean(fnp.stack(losses)))


def accuracy(functions, state, images, labels, batch=BATCH):
    """Returns the share of images whose digit the exported function predicts."""
    jitted, right = fxflow.jit(functions["predict"].call), 0
    for i in range(0, len(images) - batch + 1, batch):
        digits = np.asarray(jitted(state, images[i : i + batch])["digits"])
        right += int((digits == labels[i : i + batch]).sum())
    return right / (len(images) // batch * batch)


def main() -> None:
    """Writes the folder and trains an epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=60_000, help="for training")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    from helpers.datasets import load_mnist

    data, count = load_mnist(), options.images
    tests = max(BATCH, count // 6 // BATCH * BATCH)
    parts = {
        "train-images": data.train_images[:count].reshape(count, 784),
        "train-labels": data.train_labels[:count],
        "test-images": data.test_images[:tests].reshape(-1, 784),
        "test-labels": data.test_labels[:tests],
    }
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, array in parts.items():
        np.asarray(array, "u1").tofile(options.folder / f"{name}.u8")
    state, functions = bundle(options.folder)
    state, mean = train(functions, state, parts["train-images"], parts["train-labels"])
    right = accuracy(functions, state, parts["test-images"], parts["test-labels"])
    print(f"loss {mean:.6f}, accuracy {right:.4f}")


if __name__ == "__main__":
    main()
