"""Samples of `linear_solve`: diagonal and triangular systems of two unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform


def diagonal(d: Any, b: Any) -> Any:
    return lax.custom_linear_solve(
        lambda x: lax.mul(d, x), b, lambda _, b: lax.div(b, d), symmetric=True
    )


def triangular(a: Any, b: Any) -> Any:
    """`(x, y) -> (x, a x + y)` and its transpose `(x, y) -> (x + a y, y)`."""

    def solve(matvec: Any, b: Any) -> Any:
        x, y = b
        return (x, lax.sub(y, lax.mul(a, x))), lax.sin(x)

    def transpose_solve(vecmat: Any, b: Any) -> Any:
        x, y = b
        return (lax.sub(x, lax.mul(a, y)), y), lax.sin(x)

    (x, y), _ = lax.custom_linear_solve(
        lambda v: (v[0], lax.add(lax.mul(a, v[0]), v[1])),
        (b, lax.sin(b)),
        solve,
        transpose_solve,
        has_aux=True,
    )
    return x, y


def _linear_solve(rng: np.random.Generator) -> list[Sample]:
    d, b = uniform(rng, (3,), low=0.5), uniform(rng, (3,))
    return [
        Sample((np.abs(d) + 1, b), function=diagonal),
        Sample((np.abs(d[0]) + 1, b[0]), function=diagonal, name="0-d"),
        Sample((np.abs(d.astype("f8")) + 1, b.astype("f8")), function=diagonal),
        Sample((d.astype("c8") + 3, b.astype("c8")), function=diagonal),
        Sample((d[:0], b[:0]), function=diagonal),
        Sample((d, b), function=triangular),
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "linear_solve": _linear_solve
}
