"""Samples of `fxflow.lax.foreign_calls`: a routine that every CPU has, LAPACK's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fxflow import ShapeDtypeStruct, ffi
from fxflow.devices import lapack
from tests.conformance.harness import Sample, uniform


def _via(method: str) -> Any:
    def function(x: Any) -> Any:
        """The factor in the lower half; what is above it is the operand's."""
        lapack.ensure()
        outs = (
            ShapeDtypeStruct(x.shape, x.dtype),
            ShapeDtypeStruct(x.shape[:-2], np.int32),
        )
        call = ffi.ffi_call(
            "lapack_spotrf_ffi",
            outs,
            vmap_method=method,
            input_layouts=[(1, 0)],
            output_layouts=[(1, 0), None],
            input_output_aliases={0: 0},
        )
        return call(x, uplo=np.uint8(ord("L")))[0]

    return function


def _oracle(x: Any) -> Any:
    return np.tril(np.linalg.cholesky(x)) + np.triu(x, 1)


def _ffi_call(rng: np.random.Generator) -> list[Sample]:
    a = uniform(rng, (3, 3))
    x = a @ a.T + 3 * np.eye(3, dtype=a.dtype)
    samples = [
        Sample((x,), name=method, function=_via(method), oracle=_oracle, diff=False)
        for method in ("sequential", "sequential_unrolled", "broadcast_all")
    ]
    return [replace(sample, platforms=("cpu",)) for sample in samples]


SAMPLES = {"ffi_call": _ffi_call}
