"""The programs that the tests of each front end run."""

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export


def step(state, x):
    slope = fxflow.grad(lambda w: fnp.mean((x @ w + state["b"]) ** 2))(state["w"])
    return {"w": state["w"] - 0.1 * slope, "b": state["b"]}, fnp.sum(slope)


def swapped(state, x):
    return {"w": state["w"] + 1, "b": state["b"] * 2}, x[0]


STATE = {"w": np.ones(3, np.float32), "b": np.zeros((), np.float32)}
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)


def write(path, **options):
    """Writes a file with two functions of three results each; returns its path."""
    functions = {
        name: export.export(fxflow.jit(f))(STATE, X)
        for name, f in (("step", step), ("swapped", swapped))
    }
    export.save(path, functions, params=STATE, **options)
    return path
