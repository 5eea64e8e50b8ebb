"""Compiled functions whose parts run on the devices that they name.

In JAX, `device_put` to another device has no effect inside `jit`, nor has `device=` of
a creation function or of an inner `jit`. Programs that use them mean the operations
to run there; so they do here, as parts of a dataflow function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import ArrayType
from fxflow.dataflow.partitioned import Partitioned
from fxflow.dataflow.placing import Places
from fxflow.dataflow.planning import Planner
from fxflow.dataflow.schedules import schedule_of
from fxflow.dataflow.scopes import on as on
from fxflow.transforms.stages import Traced


def in_parts(traced: Traced, arg_types: Sequence[ArrayType]) -> Any:
    """Returns a traced function in parts, each compiled for its device.

    Args:
      traced: the function.
      arg_types: of the leaves of its arguments.
    """
    planner = Planner(Places(), False, schedule_of("1f1b"))
    return Partitioned(traced, planner.plan(traced.arrays, arg_types))
