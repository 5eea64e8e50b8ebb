"""Samples of `custom_vmap`: rules that are the true vectorized forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.custom_batching import custom_vmap
from tests.conformance.harness import Sample, uniform


@custom_vmap
def product(x: Any, y: Any) -> Any:
    return lax.mul(lax.sin(x), y), x


@product.def_vmap
def _product(size: int, in_batched: Any, x: Any, y: Any) -> Any:
    rows = [
        v if flag else lax.broadcast(v, (size,))
        for v, flag in zip((x, y), in_batched, strict=True)
    ]
    return (lax.mul(lax.sin(rows[0]), rows[1]), x), (True, in_batched[0])


def _custom_vmap(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [Sample((x, y), function=product)]


SAMPLES = {"custom_vmap_call": _custom_vmap}
