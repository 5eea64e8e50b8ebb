"""Updates of rows of tables, in place: each row that a list names is updated once.

One program reads the list. Gradients of a repeated id are added up where a hash table
has the id; a row is then read, updated and written, with the rows of the optimizer's
state. So each array in memory is visited once for each distinct id, where operations on
whole arrays gather, update and scatter a row for each id of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.kernels.body import loop, when
from fxflow.kernels.calling import call

#: Multiplier of Fibonacci hashing: 2³² divided by the golden ratio, as an int32.
_MIX = np.int32(-1640531527)


def update_rows(
    update: Callable[[Sequence[Any], Any], Sequence[Any]],
    ids: Any,
    gradients: Any,
    workspace: Any,
    tables: Sequence[Any],
    *,
    reference: Callable[..., Any],
) -> list[Any]:
    """Returns the workspace, and tables with the rows of some ids updated.

    Args:
      update: `update(rows, gradient)` returns the new rows, one of each table.
      ids: int32[n]; those that are the number of rows, or more, are left out.
      gradients: float[n, ...]: added up by id.
      workspace: an array for the reference; the kernel leaves it as it is.
      tables: arrays of equal numbers of rows, whose memory is used again if nothing
        else reads them.
      reference: a function of ids, gradients, workspace and tables that returns the
        same in another way.
    """
    held = [workspace, *tables]
    number, count = typeof(ids).shape[0], typeof(tables[0]).shape[0]
    # At most half full, so that an id is found after a look or two.
    size = 1 << max(4, (2 * number - 1).bit_length())
    shift = np.int32(32 - (size.bit_length() - 1))

    def body(ids: Any, gradients: Any, *references: Any) -> None:
        results = references[len(held) + 1 : -3]
        # The place of an id in `named`, where its gradients are added up in `sums`.
        places, named, sums = references[-3:]
        places[...] = fnp.full((size,), -1, dtypes.int32)

        def add(i: Any, used: Any) -> Any:
            one = ids[i]
            hashed = lax.shift_right_logical(fnp.multiply(one, _MIX), shift)

            def is_other(at: Any) -> Any:
                place = fnp.maximum(at[1], 0)
                return fnp.logical_and(at[1] >= 0, fnp.not_equal(named[place], one))

            def following(at: Any) -> Any:
                after = fnp.bitwise_and(fnp.add(at[0], 1), size - 1)
                return after, places[after]

            at, place = lax.while_loop(is_other, following, (hashed, places[hashed]))
            inside, new = fnp.less(one, count), fnp.less(place, 0)
            begins = fnp.logical_and(inside, new)

            @when(begins)
            def _() -> None:
                places[at] = used
                named[used] = one
                sums[used] = gradients[i]

            @when(fnp.logical_and(inside, fnp.logical_not(new)))
            def _() -> None:
                sums[place] += gradients[i]

            return fnp.add(used, fnp.where(begins, 1, 0).astype(dtypes.int32))

        used = lax.fori_loop(0, number, add, fnp.zeros((), dtypes.int32))

        @loop(0, used)
        def _(j: Any) -> None:
            one = named[j]
            new = update([table[one] for table in results], sums[j])
            for table, row in zip(results, new, strict=True):
                table[one] = row

    avals = [typeof(x) for x in held]
    integers = Aval((number,), np.dtype(np.int32))
    run = call(
        body,
        avals,
        scratch=[integers.update(shape=(size,)), integers, typeof(gradients)],
        aliases={2 + i: i for i in range(len(held))},
        reference=reference,
        name="update_rows",
        platforms=("cpu",),
    )
    found: list[Any] = run(ids, gradients, *held)
    return found
