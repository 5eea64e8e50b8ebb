"""Samples of `fxflow.export.calls`: a function that has been exported and loaded."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from fxflow.export.calls import ExportedCall
from tests.conformance.harness import Sample, uniform


@cache
def _loaded(shape: tuple[int, ...], dtype: Any) -> export.Exported:
    def function(x: Any, y: Any) -> Any:
        return fnp.sin(x) * y

    spec = fxflow.ShapeDtypeStruct(shape, dtype)
    made = export.export(fxflow.jit(function), platforms=("cpu", "cuda", "tpu"))
    return export.deserialize(made(spec, spec).serialize())


def _call(x: Any, y: Any) -> Any:
    return ExportedCall.bind(x, y, exported=_loaded(x.shape, x.dtype))[0]


def _exported_call(rng: np.random.Generator) -> list[Sample]:
    args = (uniform(rng, (2, 3)), uniform(rng, (2, 3)))
    oracle = lambda x, y: np.sin(x) * y
    return [Sample(args, function=_call, oracle=oracle, diff=False)]


SAMPLES = {"exported_call": _exported_call}
