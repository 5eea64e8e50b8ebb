"""A run of two processes with sharded data and a sharded state.

On request, one of them kills itself after a step.
"""

import os
import sys

import numpy as np

import fxflow
from fxflow import P, distributed, random
from fxflow import numpy as fnp
from fxflow.train import data, loop
from fxflow.train.checkpoint import Checkpointer
from tests.train.small_run import noisy


def main() -> None:
    """Runs in each process."""
    distributed.initialize()
    mesh = fxflow.make_mesh((2,), ("data",))
    divided = fxflow.NamedSharding(mesh, P("data"))
    rows = data.arrays(np.arange(40, dtype=np.float32)).shuffle(5).map(noisy, seed=3)
    batches = rows.shard().batch(4, drop_remainder=True).to_devices(divided)
    state = {
        "w": fxflow.device_put(np.zeros(4, np.float32), divided),
        "key": fxflow.device_put(random.key(0), fxflow.NamedSharding(mesh, P())),
    }

    @fxflow.jit
    def step(state, batch):
        key, noise = random.split(state["key"])
        w = 0.9 * state["w"] + fnp.mean(batch) * random.normal(noise, (4,))
        w = fxflow.lax.with_sharding_constraint(w, divided)
        return {"w": w, "key": key}, {"loss": fnp.sum(w)}

    dies = int(sys.argv[2])

    def die(progress):
        if progress.step == dies and fxflow.process_index() == dies % 2:
            os.kill(os.getpid(), 9)

    with Checkpointer(sys.argv[1], every=3) as checkpoints:
        outcome = loop.run(
            step, state, batches, epochs=4, hooks=[die], checkpointer=checkpoints
        )
    whole = distributed.multihost.process_allgather(outcome.state["w"], tiled=True)
    print("end", outcome.step, whole.tobytes().hex(), flush=True)


if __name__ == "__main__":
    main()
