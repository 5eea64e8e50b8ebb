"""Target networks and averages of parameters."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.docs import shared
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.base import Params, cast_like
from fxflow.optim.numerics import rest_of, widened

_docs = shared("""
    Args:
      new_tensors: pytree of arrays to follow.
      old_tensors: pytree of the same structure.

    Returns:
      A pytree of the same structure, in the dtypes of `old_tensors`.

    Raises:
      TreeError: the structures differ.
""")


@_docs
def incremental_update(
    new_tensors: Params, old_tensors: Params, step_size: ArrayLike
) -> Params:
    r"""Returns arrays moved a step towards others: :math:`s\,x + (1 - s)\,y`.

    Keep `old_tensors` in float32: in 16 bits, small steps are rounded to 0.

    Args:
      step_size: s, 1 minus the decay of an average.

    Example:
      >>> float(optim.incremental_update({"w": 1.0}, {"w": 3.0}, 0.5)["w"])
      2.0

    Reference: Polyak and Juditsky 1992; Lillicrap et al. 2016.
    """

    def one(new: Any, old: Any) -> Any:
        ahead = fnp.multiply(step_size, widened(new))
        kept = fnp.multiply(rest_of(step_size, old), widened(old))
        return cast_like(fnp.add(ahead, kept), old)

    return tree.map(one, new_tensors, old_tensors)


@_docs
def periodic_update(
    new_tensors: Params, old_tensors: Params, steps: ArrayLike, update_period: int
) -> Params:
    """Returns the new arrays every `update_period` steps, otherwise the old ones.

    Args:
      steps: number of updates so far.
      update_period: number of steps from one replacement to the next.

    Example:
      >>> float(optim.periodic_update({"w": 1.0}, {"w": 3.0}, 5, 2)["w"])
      3.0

    Reference: Mnih et al. 2015, "Human-level control through deep reinforcement
    learning" (target networks).
    """
    now = fnp.equal(fnp.remainder(steps, update_period), 0)
    return tree.map(
        lambda new, old: fnp.where(now, cast_like(new, old), old),
        new_tensors,
        old_tensors,
    )
