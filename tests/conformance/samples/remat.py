"""Samples of `checkpoint` and `name`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import checkpoint, checkpoint_policies, lax
from fxflow.transforms.checkpoint import checkpoint_name
from tests.conformance.harness import Sample, uniform


def layers(x: Any, y: Any) -> Any:
    hidden = checkpoint_name(lax.sin(lax.mul(x, y)), "hidden")
    return lax.exp(lax.sin(hidden)), x


plain = checkpoint(layers)
named = checkpoint(layers, policy=checkpoint_policies.save_only_these_names("hidden"))
everything = checkpoint(layers, policy=checkpoint_policies.everything_saveable)


def in_scan(x: Any, y: Any) -> Any:
    step = checkpoint(lambda c: lax.sin(lax.mul(c, y)), prevent_cse=False)
    return lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]


def _checkpoint(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [
        Sample((x, y), function=plain),
        Sample((x.astype("f8"), y.astype("f8")), function=plain),
        Sample((x[0], y[0]), function=plain, name="0-d"),
        Sample((x[:0], y[:0]), function=plain),
        Sample((x, y), function=named),
        Sample((x, y), function=everything),
        Sample((x, y), function=in_scan, second=False),
    ]


def _name(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((uniform(rng, shape, dtype),), {"label": "a"})
        for shape in ((3,), (), (0, 2))
        for dtype in ("float32", "int32", "bfloat16", "complex64", "bool")
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "checkpoint": _checkpoint,
    "name": _name,
}
