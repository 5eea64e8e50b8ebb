"""Numbers of the connected parts of a shape, by one pass over its elements.

Elements are read in order. One takes the number of a neighbour before it, or a new one;
numbers that meet belong to one part, which has the least of them. XLA, which has no
such order, compares all neighbours in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import loop, when
from fxflow.kernels.calling import call


def connected_parts(
    inside: Any,
    back: Sequence[int],
    *,
    reference: Callable[[Any], tuple[Array, Array]],
) -> tuple[Array, Array]:
    """Returns the number of the part that each element belongs to.

    Args:
      inside: int32[n]: 0 for elements outside of the shape. Those without all of their
        neighbours are outside.
      back: how many elements before an element its neighbours are, of those before it.
      reference: a function of `inside` that returns the same in another way.

    Returns:
      int32[n], from 1 in the order of the first elements of parts, 0 outside of the
      shape; and int32[], how many parts there are.
    """
    n = typeof(inside).shape[0]

    def body(inside: Any, labels: Any, count: Any, *scratch: Any) -> None:
        numbers, up, used = scratch
        used[0] = np.uint32(0)
        up[0] = np.uint32(0)
        numbers[...] = fnp.zeros(n, dtypes.uint32)
        first = max(back, default=0)

        def top(k: Any) -> Any:
            return lax.while_loop(lambda k: up[k] != k, lambda k: up[k], k)

        @loop(first, n)
        def _(at: Any) -> None:
            i = at.astype(dtypes.uint32)

            @when(inside[i] != 0)
            def _() -> None:
                root = fnp.zeros((), dtypes.uint32)
                for step in back:
                    other = top(numbers[i - step])
                    low, high = fnp.minimum(root, other), fnp.maximum(root, other)
                    # Nothing changes where one of both is 0.
                    up[high] = fnp.where(low > 0, low, high)
                    root = fnp.where(low > 0, low, high)

                @when(root == 0)
                def _() -> None:
                    new = used[0] + 1
                    used[0] = new
                    up[new] = new
                    numbers[i] = new

                @when(root > 0)
                def _() -> None:
                    numbers[i] = root

        # A number hangs on a lesser one, whose place in the order is known then.
        def rank(k: Any, parts: Any) -> Any:
            i = k.astype(dtypes.uint32)
            above = up[i]
            own = above == i
            parts = parts + fnp.where(own, 1, 0).astype(dtypes.uint32)
            up[i] = fnp.where(own, parts, up[above])
            return parts

        last = used[0].astype(dtypes.int32) + 1
        parts = lax.fori_loop(1, last, rank, fnp.zeros((), dtypes.uint32))
        count[0] = parts.astype(dtypes.int32)

        @loop(0, n)
        def _(at: Any) -> None:
            i = at.astype(dtypes.uint32)
            labels[i] = up[numbers[i]].astype(dtypes.int32)

    integers = Aval((n,), np.dtype(np.int32))
    places = integers.update(dtype=np.dtype(np.uint32))
    run = call(
        body,
        [integers, integers.update(shape=(1,))],
        scratch=[places, places.update(shape=(n + 1,)), places.update(shape=(1,))],
        reference=lambda inside: _with_axis(*reference(inside)),
        name="connected_parts",
        platforms=("cpu",),
    )
    labels, count = run(inside)
    return labels, count[0]


def _with_axis(labels: Any, count: Any) -> tuple[Any, Any]:
    return labels, fnp.reshape(count, (1,))
