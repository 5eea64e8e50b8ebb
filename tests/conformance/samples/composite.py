"""Samples of `composite`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform

scaled = lax.composite(
    lambda x, y, *, factor: (lax.mul(lax.mul(lax.sin(x), y), factor), x),
    "test.scaled",
    version=2,
)


def _composite(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))

    def function(x: Any, y: Any) -> Any:
        return scaled(x, y, factor=3.0)

    return [Sample((x, y), function=function)]


SAMPLES = {"composite": _composite}
