"""Samples of `fxflow.lax.callbacks`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fxflow import ShapeDtypeStruct, custom_jvp, lax, pure_callback
from tests.conformance.harness import Sample, uniform


def _host_sin(x: Any) -> Any:
    return np.sin(np.asarray(x))


def _like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def _via(method: str) -> Any:
    def function(x: Any) -> Any:
        return pure_callback(_host_sin, _like(x), x, vmap_method=method)

    return function


@custom_jvp
def _sine(x: Any) -> Any:
    return pure_callback(_host_sin, _like(x), x, vmap_method="expand_dims")


_sine.defjvp(lambda p, t: (_sine(p[0]), lax.mul(t[0], lax.cos(p[0]))))


def _two(x: Any, n: Any) -> Any:
    def both(x: Any, n: Any) -> Any:
        return {"sum": np.sum(x, -1), "n": np.asarray(n) + 1}

    shapes = {"sum": ShapeDtypeStruct((), x.dtype), "n": _like(n)}
    return pure_callback(both, shapes, x, n, vmap_method="sequential")


# The runtime calls Python from programs on these; TPUs would need a host transfer.
PLATFORMS = ("cpu", "gpu")


def _python_callback(rng: np.random.Generator) -> list[Sample]:
    x = uniform(rng, (3,))
    samples = [
        Sample((x,), name=method, function=_via(method), oracle=np.sin, diff=False)
        for method in (
            "sequential",
            "sequential_unrolled",
            "expand_dims",
            "broadcast_all",
        )
    ]
    n = np.arange(2, dtype=np.int32)
    samples += [
        Sample((x,), name="custom-jvp", function=_sine),
        Sample((x, n), name="two", function=_two, diff=False),
    ]
    return [replace(sample, platforms=PLATFORMS) for sample in samples]


SAMPLES = {"python_callback": _python_callback}
