"""Gradients with respect to the rows of a table that a batch uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.index import Ids

# Rounds with fewer ids, or fewer than one in so many, cost more than these one by one.
_FEW, _MANY = 8, 1024


def sum_rows(ids: Ids, gradients: npt.NDArray[Any]) -> tuple[Ids, npt.NDArray[Any]]:
    """Adds up the gradients of ids that occur several times, in the order given.

    Args:
      ids: int64[n].
      gradients: float[n, ...].

    Returns:
      The distinct ids from small to large, and a sum for each.

    Example:
      >>> ids, sums = sum_rows(np.array([5, 2, 5]), np.array([[1.0], [2.0], [3.0]]))
      >>> ids.tolist(), sums.tolist()
      ([2, 5], [[2.0], [4.0]])
    """
    if bool(np.all(ids[1:] > ids[:-1])):
        return ids, gradients
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    counts = np.diff(np.r_[starts, len(ids)])
    sums = gradients[order[starts]]
    # The nth of each is added in the nth round; few ids have many.
    again = np.flatnonzero(counts > 1)
    nth = 1
    while len(again) > max(_FEW, len(ids) // _MANY):
        sums[again] += gradients[order[starts[again] + nth]]
        nth += 1
        again = again[counts[again] > nth]
    for i in again.tolist():
        rest = gradients[order[starts[i] + nth : starts[i] + counts[i]]]
        # Not `sum`, which adds in pairs.
        sums[i] = np.add.accumulate(np.concatenate([sums[i : i + 1], rest]))[-1]
    return ids[starts], sums
