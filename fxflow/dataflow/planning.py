"""Planning: from a traced function to its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fxflow.core.arrays import ArrayType, as_array
from fxflow.dataflow.cutting import Fragments, check, cut, in_order
from fxflow.dataflow.loops import unrolled
from fxflow.dataflow.placing import Places, place_nodes
from fxflow.dataflow.plan import Plan, estimated_seconds
from fxflow.dataflow.schedules import ScheduleRule, simulate
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.stages import Traced


class Planner(NamedTuple):
    """What plans follow, besides the function's scopes; see `dataflow.jit`.

    Attributes:
      places: what stages and labels mean.
      strict: whether scopes that cannot be followed are errors.
      schedule: orders the fragments if loops are written out.
    """

    places: Places
    strict: bool
    schedule: ScheduleRule

    def plan(self, traced: Traced, arg_types: Sequence[ArrayType]) -> Plan:
        """Returns the plan of a traced function; compiles nothing.

        Args:
          traced: the function, of arrays.
          arg_types: of the leaves of its arguments.

        Raises:
          PlacementError: a scope cannot be followed.
        """
        graph, rounds = unrolled(inlined(traced.graph, CALLS))
        types = [*(as_array(c)._type for c in traced.consts), *arg_types]
        placed = place_nodes(graph, rounds, self.places, types, strict=self.strict)
        made, schedule = cut(graph, placed, strict=self.strict), ""
        if any(rounds):
            made, schedule = _ordered(made, self.schedule), self.schedule.name
        check(made.fragments)
        return Plan(traced.name, graph, made, schedule)


def _ordered(made: Fragments, schedule: ScheduleRule) -> Fragments:
    """Returns fragments in the order of a schedule."""
    timeline = simulate(made.fragments, estimated_seconds, schedule)
    ran = [ran for row in timeline.rows.values() for ran in row]
    ran.sort(key=lambda r: (r.start, r.work.index))
    return in_order(made, [r.work.index for r in ran])
