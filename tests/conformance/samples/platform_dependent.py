"""Samples of `platform_dependent`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform


def dependent(x: Any, y: Any) -> Any:
    return lax.platform_dependent(
        x,
        y,
        tpu=lambda x, y: (lax.sin(x), lax.mul(x, y)),
        default=lambda x, y: (lax.mul(lax.exp(x), y), x),
    )


def _dependent(rng: np.random.Generator) -> list[Sample]:
    return [Sample((uniform(rng, (3,)), uniform(rng, (3,))), function=dependent)]


SAMPLES = {"platform_dependent": _dependent}
