"""Trains a network whose layers are spread over the tasks of a run.

fxflow launch --tasks 3 examples/multi_host/stages.py --steps 200

Kill a task meanwhile (its process id is in the first lines): the program continues with
the others, and with a new one after the next snapshot. The weights at the end are those
of a run without failures.
"""

import argparse

import numpy as np

import fxflow.numpy as fnp
from fxflow import dataflow, train
from fxflow.dataflow import on, stages

LAYERS, WIDTH, ROWS, ROUNDS = 6, 32, 64, 4

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--snapshot-every", type=int, default=10, metavar="STEPS")
options = parser.parse_args()


def loss(weights, batch):
    """Returns the loss of a part of the batch; each stage runs in a task."""
    x, targets = batch
    for stage, w in zip(stages(LAYERS), weights, strict=True):
        with on(stage):
            x = x + fnp.tanh(x @ w)
    return fnp.mean((x - targets) ** 2)


cluster = dataflow.connect()


@dataflow.jit(devices=cluster, schedule="1f1b")
def update(weights, batch):
    """Runs one step of gradient descent; the weights stay in their tasks."""
    value, gradients = train.accumulate_gradients(loss, ROUNDS)(weights, batch)
    return value, [w - 0.5 * g for w, g in zip(weights, gradients, strict=True)]


def step(weights, index):
    """Runs one step; the batch depends on the index alone."""
    rows = np.random.default_rng(index).normal(size=(ROWS, WIDTH)).astype(np.float32)
    value, weights = update(weights, (rows, -rows))
    if index % 50 == 0:
        print(f"step {index}: loss {float(value):.3f}, {len(cluster.devices)} devices")
    return weights


random = np.random.default_rng(0)
initial = [
    random.normal(0, 0.02, (WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)
]
with cluster:
    outcome = dataflow.elastic(
        step,
        initial,
        options.steps,
        cluster=cluster,
        snapshot_every=options.snapshot_every,
    )
size = float(np.sqrt(sum(np.sum(w * w) for w in outcome.state)))
print(f"done: {outcome.step} steps, norm of the weights {size:.3f}")
