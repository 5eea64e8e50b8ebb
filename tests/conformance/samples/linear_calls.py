"""Samples of `linear_call`: transposes that are the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from tests.conformance.harness import Sample, uniform


def scaled(x: Any) -> Any:
    return fxflow.linear_call(
        lambda r, x: (lax.mul(x, r), lax.neg(x)),
        lambda r, cts: lax.sub(lax.mul(cts[0], r), cts[1]),
        fnp.array([1, 2, 3], x.dtype),
        x,
    )


def _linear_call(rng: np.random.Generator) -> list[Sample]:
    return [Sample((uniform(rng, (3,)),), function=scaled)]


SAMPLES = {"linear_call": _linear_call}
