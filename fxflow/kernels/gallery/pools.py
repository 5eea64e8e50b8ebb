"""Pools of adjacent violators, by one pass over the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import loop
from fxflow.kernels.calling import call


def ascending_blocks(
    values: Any,
    weights: Any,
    *,
    reference: Callable[[Any, Any], tuple[Array, ...]],
) -> tuple[Array, ...]:
    """Returns the blocks of numbers whose weighted means ascend.

    Args:
      values: float[n], at least one.
      weights: float[n], positive.
      reference: a function of both that returns the same in another way.

    Returns:
      int32[n], where blocks begin, then n; int32[n], the block of each number; int32[],
      how many blocks there are; float[n], the mean of the block of each number;
      float[n], the weights of blocks, then 0.
    """
    n, dtype = typeof(values).shape[0], typeof(values).dtype
    one = np.uint32(1)

    def body(values: Any, weights: Any, begins: Any, labels: Any, *refs: Any) -> None:
        count, x, totals, means = refs

        def add(number: Any, used: Any) -> Any:
            i = number.astype(dtypes.uint32)

            def violates(carry: Any) -> Any:
                used, _, mean, _ = carry
                last = means[fnp.maximum(used, one) - one]
                return fnp.logical_and(used > 0, mean <= last)

            def merge(carry: Any) -> Any:
                used, _, mean, total = carry
                last = used - one
                both = totals[last] + total
                mean = (means[last] * totals[last] + mean * total) / both
                return last, begins[last], mean, both

            used, begin, mean, total = lax.while_loop(
                violates, merge, (used, number, values[i], weights[i])
            )
            begins[used], means[used], totals[used] = begin, mean, total
            return used + one

        used = lax.fori_loop(0, n, add, fnp.zeros((), dtypes.uint32))
        count[0] = used.astype(dtypes.int32)

        @loop(count[0], n)
        def _(i: Any) -> None:
            begins[i], totals[i] = np.int32(n), fnp.zeros((), dtype)

        def label(i: Any, block: Any) -> Any:
            after = fnp.minimum(block + 1, n - 1)
            ends = fnp.logical_and(after > block, begins[after] == i)
            block = fnp.where(ends, after, block)
            labels[i], x[i] = block, means[block]
            return block

        lax.fori_loop(0, n, label, fnp.zeros((), dtypes.int32))

    whole = Aval((n,), dtype)
    integers = Aval((n,), np.dtype(np.int32))
    run = call(
        body,
        [integers, integers, integers.update(shape=(1,)), whole, whole],
        scratch=[whole],
        reference=lambda *given: _with_axis(*reference(*given)),
        name="ascending_blocks",
        platforms=("cpu",),
    )
    begins, labels, count, x, totals = run(values, weights)
    return begins, labels, count[0], x, totals


def _with_axis(begins: Any, labels: Any, count: Any, *means: Any) -> tuple[Any, ...]:
    return begins, labels, fnp.reshape(count, (1,)), *means
