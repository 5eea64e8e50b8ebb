"""Samples of `while`: values and vectorization (derivatives: `test_while_loop`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform


def growing(limit: Any, factor: Any, start: Any) -> Any:
    """A condition and a body with constants; slices stop at different times."""
    return lax.while_loop(
        lambda c: lax.lt(lax.reduce_max(lax.abs(c[0]), (0,)), limit),
        lambda c: (lax.mul(c[0], factor), lax.add(c[1], 1)),
        (start, 0),
    )


def counted(stop: Any, start: Any) -> Any:
    return lax.fori_loop(
        0, stop, lambda i, c: lax.add(c, lax.convert_element_type(i, c.dtype)), start
    )


def swapping(stop: Any, a: Any, b: Any) -> Any:
    def body(carry: Any) -> Any:
        i, x, y = carry
        return lax.add(i, 1), y, lax.mul(x, y)

    return lax.while_loop(lambda c: lax.lt(c[0], stop), body, (0, a, b))


def _while(rng: np.random.Generator) -> list[Sample]:
    start = uniform(rng, (3,), low=0.5, high=1.0)
    factor = np.full((3,), 1.5, np.float32)
    return [
        Sample(
            (np.float32(7.0), factor, start), function=growing, diff=False, batch=(1, 2)
        ),
        Sample(
            (np.float32(7.0), factor, start),
            function=growing,
            diff=False,
            batch=(0,),
            vary=lambda value, i: value + np.float32(2 * i),
            name="condition mapped",
        ),
        Sample(
            (np.float64(7.0), factor.astype("f8"), start.astype("f8")),
            function=growing,
            diff=False,
        ),
        Sample(
            (np.int32(4), start),
            function=counted,
            diff=False,
            vary=lambda value, i: value + value.dtype.type(i),
        ),
        Sample((np.int32(0), np.int32(5)), function=counted, name="no step"),
        Sample((np.int32(3), start, start + 1), function=swapping, diff=False),
        Sample(
            (np.int32(3), np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)),
            function=swapping,
            diff=False,
        ),
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {"while": _while}
