"""Samples of `fxflow.lax.calls`: calls of jitted functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import jit, lax
from tests.conformance.harness import Sample, uniform


@jit
def swirl(x: Any, y: Any) -> Any:
    return {"a": lax.mul(lax.sin(x), y), "b": x, "c": lax.full((2,), 3.0)}


@jit
def deep(x: Any) -> Any:
    return lax.add(swirl(x, lax.cos(x))["a"], swirl(lax.exp(x), x)["b"])


def _jit(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    whole = np.arange(4, dtype=np.int32)
    return [
        Sample((x, y), name="tree", function=swirl, diff=False),
        Sample((x, y), name="product", function=lambda x, y: swirl(x, y)["a"]),
        Sample((x,), name="nested", function=deep),
        Sample((whole,), name="integers", function=jit(lambda n: lax.mul(n, n))),
        Sample((x,), name="nothing", function=jit(lambda x: lax.full((), 1.0))),
    ]


SAMPLES = {"jit": _jit}
