"""Sums of rows of a table: no array of all rows that are read.

A program adds up the rows of some bags. The gradient of the table is a kernel, too: a
program has some columns of the whole table, and adds each bag's cotangent to the rows
of the bag, so no two programs write to one number.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.primitive import Zero
from fxflow.kernels.body import loop, wide_dtype
from fxflow.kernels.notation import kernel, like
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.linear_call import linear_call

#: Bags of a program, and columns of a program of the gradient.
_BAGS, _COLUMNS = 64, 32
#: Numbers in all rows that are read for which a kernel is worth compiling.
_LEAST = 1 << 16


class Bags(NamedTuple):
    """Which rows are in which bag.

    Attributes:
      ids: int32[m]: rows of the table; those below 0 are skipped.
      starts: int32[n]: where the ids of a bag begin.
      stops: int32[n]: where they end.
    """

    ids: Any
    starts: Any
    stops: Any


def sums_of_rows(
    table: Any, bags: Bags, weights: Any, *, width: int | None = None
) -> Array:
    """Returns the sums of the rows in each bag.

    Args:
      table: float[v, d].
      bags: see `Bags`; ids are below v, and `starts` is ascending.
      weights: of the dtype of the table, [m]: a factor for each id.
      width: width of all bags, if each begins where the one before ends.

    Returns:
      float[n, d], like the table.
    """
    features, count = typeof(table).shape[1], typeof(bags.ids).shape[0]
    if count * features < _LEAST or not typeof(bags.starts).shape[0]:
        small: Array = _plain(bags, weights, table, width)
        return small
    out: Array = _sums(width)(table, bags, weights)
    return out


@functools.cache
def _sums(width: int | None) -> Any:
    """Returns the function of table, bags and weights, with its derivatives."""

    def of_table(given: Any, table: Any) -> Any:
        bags, weights = given
        return _gather(width)(*bags, weights, table)

    def to_table(like_table: int, given: Any, ct: Any) -> Any:
        bags, weights = given
        return _spread(bags, weights, ct, like_table, width)

    def of_weights(given: Any, weights: Any) -> Any:
        bags, table = given
        return _gather(width)(*bags, weights, table)

    def to_weights(given: Any, ct: Any) -> Any:
        bags, table = given
        # Each id's row times the cotangent of its bag; XLA makes no array of these.
        rows, inside = rows_of(table, bags.ids)
        bag, known = bag_of(bags, width)
        products = fnp.sum(rows * ct[fnp.clip(bag, 0, None)], -1)
        return fnp.where(fnp.logical_and(known, inside), products, 0)

    @custom_jvp
    def sums(table: Any, bags: Bags, weights: Any) -> Any:
        return _gather(width)(*bags, weights, table)

    def tangents(primals: Any, moving: Any) -> Any:
        table, bags, weights = primals
        d_table, _, d_weights = moving
        out = sums(table, bags, weights)
        count = typeof(table).shape[0]
        total: Any = fnp.zeros_like(out)
        if not isinstance(d_table, Zero):
            back = functools.partial(to_table, count)
            total = linear_call(of_table, back, (bags, weights), instantiate(d_table))
        if not isinstance(d_weights, Zero):
            more = instantiate(d_weights)
            total = total + linear_call(of_weights, to_weights, (bags, table), more)
        return out, total

    sums.defjvp(tangents, symbolic_zeros=True)
    return sums


# -- kernels ---------------------------------------------------------------------------


@functools.cache
def _gather(width: int | None) -> Any:
    """Returns the kernel of ids, starts, stops, weights and table."""

    def plain(ids: Any, starts: Any, stops: Any, weights: Any, table: Any) -> Any:
        return _plain(Bags(ids, starts, stops), weights, table, width)

    @kernel(
        f"m, n:{_BAGS}, n:{_BAGS}, m, v d -> n:{_BAGS} d",
        out=lambda ids, starts, stops, weights, table: like(
            table, shape=(starts.shape[0], table.shape[1])
        ),
        reference=plain,
        name="embedding_bag",
        platforms=("cpu",),
    )
    def gather(
        ids: Any, starts: Any, stops: Any, weights: Any, table: Any, out: Any
    ) -> None:
        wide = wide_dtype(table.dtype)
        zeros = fnp.zeros(table.shape[1], wide)

        @loop(0, starts.shape[0])
        def _(r: Any) -> None:
            def step(j: Any, total: Any) -> Any:
                row = weights[j].astype(wide) * table[ids[j]].astype(wide)
                return total + fnp.where(ids[j] >= 0, row, 0)

            total = lax.fori_loop(starts[r], stops[r], step, zeros)
            out[r] = total.astype(out.dtype)

    return gather


def _plain(bags: Bags, weights: Any, table: Any, width: int | None) -> Any:
    """Returns the sums of the rows, by operations on whole arrays."""
    rows, inside = rows_of(table, bags.ids)
    rows = fnp.where(inside[:, None], rows * weights[:, None], 0)
    count, features = bags.starts.shape[0], table.shape[1]
    if width is not None:
        return fnp.sum(fnp.reshape(rows, (count, width, features)), 1)
    bag, known = bag_of(bags, width)
    rows = fnp.where(known[:, None], rows, 0)
    out = fnp.zeros((count, features), table.dtype)
    return out.at[fnp.clip(bag, 0, None)].add(rows)


def _spread(bags: Bags, weights: Any, ct: Any, count: int, width: int | None) -> Any:
    """Returns the cotangent of a table of `count` rows, from that of the sums."""
    aval = typeof(ct)
    features = aval.shape[1]
    columns = _COLUMNS if features % _COLUMNS == 0 else features

    def plain(ids: Any, starts: Any, stops: Any, weights: Any, ct: Any) -> Any:
        bag, known = bag_of(Bags(ids, starts, stops), width)
        rows = ct[fnp.clip(bag, 0, None)] * weights[:, None]
        keep = fnp.logical_and(known, ids >= 0)
        rows = fnp.where(keep[:, None], rows, 0)
        out = fnp.zeros((count, features), ct.dtype)
        return out.at[fnp.clip(ids, 0, None)].add(rows)

    @kernel(
        f"m, n, n, m, n d:{columns} -> v d:{columns}",
        out=lambda ids, starts, stops, weights, ct: like(ct, shape=(count, features)),
        reference=plain,
        name="embedding_bag_gradient",
        platforms=("cpu",),
    )
    def spread(
        ids: Any, starts: Any, stops: Any, weights: Any, ct: Any, out: Any
    ) -> None:
        out[...] = fnp.zeros(out.shape, out.dtype)

        @loop(0, starts.shape[0])
        def _(r: Any) -> None:
            @loop(starts[r], stops[r])
            def _(j: Any) -> None:
                row = fnp.where(ids[j] >= 0, weights[j] * ct[r], 0)
                out[fnp.maximum(ids[j], 0)] += row

    return spread(*bags, weights, ct)


def rows_of(table: Any, ids: Any) -> tuple[Any, Any]:
    """Returns the rows of ids, and which ids are not skipped.

    Args:
      table: float[v, d].
      ids: see `Bags`.
    """
    inside = fnp.greater_equal(ids, 0)
    return table.at[fnp.clip(ids, 0, None)].get(mode="promise_in_bounds"), inside


def bag_of(bags: Bags, width: int | None) -> tuple[Any, Any]:
    """Returns the bag of each id, and whether it is in one.

    Args:
      bags: see `Bags`.
      width: see `sums_of_rows`.
    """
    at = fnp.arange(typeof(bags.ids).shape[0], dtype=dtypes.int32)
    if width is not None:
        return fnp.floor_divide(at, max(width, 1)), fnp.full(at.shape, True)
    bag = fnp.subtract(fnp.searchsorted(bags.starts, at, side="right"), 1)
    last = fnp.clip(bag, 0, None)
    known = fnp.logical_and(bag >= 0, at < fnp.asarray(bags.stops)[last])
    return bag, known
