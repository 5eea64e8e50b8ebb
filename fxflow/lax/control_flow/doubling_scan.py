"""Running combinations along axes whose length only a call says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import typeof
from fxflow.core.ir import arith
from fxflow.core.sizes import to_array
from fxflow.core.sizes.bounds import most_bits
from fxflow.lax.comparison import ge, lt
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.dynamic_slicing import dynamic_slice_in_dim
from fxflow.lax.select import select


def doubling_scan(
    combine: Callable[[list[Any], list[Any]], list[Any]],
    values: list[Any],
    axes: Sequence[int],
) -> list[Any]:
    """Returns the combinations of the first k elements along axes of symbolic length.

    Each step combines every element with the one 1, 2, 4, … places before it: O(log n)
    steps on whole arrays. How many there are is known only in a call, so that a program
    has as many as an axis can be long, and skips those that reach over its end.

    Args:
      combine: associative; of two lists of arrays, element by element.
      values: arrays of one length along their axes.
      axes: one for each array.

    Source: Hillis and Steele 1986, "Data parallel algorithms".
    """
    length: Any = typeof(values[0]).shape[axes[0]]
    count = arith.cast(to_array(length), np.dtype(np.int32))

    def advance(shift: Any, values: list[Any]) -> list[Any]:
        # The first ones come round from the end, and what is made of them is dropped.
        before = [
            dynamic_slice_in_dim(concatenate([v, v], a), count - shift, length, a)
            for v, a in zip(values, axes, strict=True)
        ]
        return [
            select(ge(broadcasted_iota(np.int32, typeof(v).shape, a), shift), new, v)
            for new, v, a in zip(combine(before, values), values, axes, strict=True)
        ]

    def step(values: list[Any], shift: Any) -> tuple[list[Any], None]:
        return cond(lt(shift, count), advance, lambda _, v: v, shift, values), None

    shifts = np.int32(1) << np.arange(most_bits(length - 1), dtype=np.int32)
    found: list[Any] = scan(step, values, shifts)[0]
    return found
