"""A short training run whose state, step and batches use random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import numpy as fnp
from fxflow import random
from fxflow.train import data

State = dict[str, Any]


def first_state() -> State:
    return {"w": fnp.zeros(3), "key": random.key(0), "seen": fnp.int32(0)}


@fxflow.jit
def step(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
    key, noise = random.split(state["key"])
    w = 0.9 * state["w"] + fnp.mean(batch) * random.normal(noise, (3,))
    return {"w": w, "key": key, "seen": state["seen"] + 1}, {"loss": fnp.sum(w)}


def batches() -> data.Dataset[Any]:
    rows = data.arrays(np.arange(40, dtype=np.float32)).shuffle(5).map(noisy, seed=3)
    return rows.batch(3).prefetch()


def noisy(row: Any, rng: np.random.Generator) -> Any:
    return row + rng.random(dtype=np.float32)


def bits(state: State) -> list[Any]:
    return [state["w"].tolist(), random.key_data(state["key"]).tolist()]
