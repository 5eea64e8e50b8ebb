"""Samples of `check`, of the kind that programs may hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import checkify, lax
from tests.conformance.harness import Sample, uniform


def watched(x: Any) -> Any:
    total = lax.reduce_sum(x, (0,))
    checkify.debug_check(lax.lt(total, 100.0), "the sum is {}", total)
    return lax.sin(x)


def _check(rng: np.random.Generator) -> list[Sample]:
    return [Sample((uniform(rng, (3,)),), function=watched)]


SAMPLES = {"check": _check}
