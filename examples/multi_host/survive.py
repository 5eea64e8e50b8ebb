"""Runs a training loop that survives processes that die, stop or join.

fxflow launch --elastic 1:3 examples/multi_host/survive.py --steps 600

Kill a worker meanwhile: the others continue, a new one joins, and the weights at the
end are those of a run without failures. After SIGTERM the state is saved in the folder
--checkpoints, and the same command continues from there.
"""

import argparse
import os
import sys
import time

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P
from fxflow.distributed import elastic
from fxflow.train.checkpoint import Checkpointer

ROWS = 96  # divisible by the number of devices of each run

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--pause", type=float, default=0.01, help="seconds in each step")
parser.add_argument("--checkpoints", help="a folder that all processes see")
parser.add_argument("--checkpoint-every", type=int, default=0, metavar="STEPS")
options = parser.parse_args()


@fxflow.jit
def train(weights, images, targets):
    """Runs one step of gradient descent."""

    def loss(weights):
        return fnp.mean((images @ weights - targets) ** 2)

    value, gradient = fxflow.value_and_grad(loss)(weights)
    return weights - 0.05 * gradient, value


def step(world, state, index):
    """Runs one step; the batch depends only on the index, not on the workers."""
    images = np.random.default_rng(index).normal(size=(ROWS, 8)).astype(np.float32)
    targets = images @ np.arange(8, dtype=np.float32)
    divided = NamedSharding(world.mesh(), P("data"))
    batch = [
        fxflow.make_array_from_callback(rows.shape, divided, rows.__getitem__)
        for rows in (images, targets)
    ]
    weights, value = train(state, *batch)
    if world.rank == 0 and index % 100 == 0:
        print(f"step {index}: loss {float(value):.1e}, {world.size} processes")
    time.sleep(options.pause)  # leaves time to kill a worker
    return weights


def place(world, state):
    """Puts the weights on every device, at the start of each epoch."""
    return fxflow.device_put(state, NamedSharding(world.mesh(), P()))


checkpointer = None
if options.checkpoints:
    every = options.checkpoint_every or None
    checkpointer = Checkpointer(options.checkpoints, keep=2, every=every)
print(f"worker {os.environ.get('FXFLOW_PROCESS_ID', 0)} is process {os.getpid()}")
outcome = elastic(
    step,
    np.zeros(8, np.float32),
    options.steps,
    place=place,
    checkpointer=checkpointer,
)
if outcome.preempted:
    print(f"preempted; the state after step {outcome.step} is saved")
    sys.exit(75)  # "try again later": a cluster manager restarts the program
print(f"done: {outcome.step} steps, weights {np.round(outcome.state, 3).tolist()}")
