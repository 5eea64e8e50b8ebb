"""Planning: from a traced function to its plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fxflow.core.arrays import ArrayType, as_array
from fxflow.core.ir.graph import Graph
from fxflow.dataflow.cutting import Fragments, cut, in_order
from fxflow.dataflow.loops import unrolled
from fxflow.dataflow.placing import (
    Place,
    Places,
    place_name,
    place_nodes,
    scopes_inside,
)
from fxflow.dataflow.plan import Plan, estimated_seconds
from fxflow.dataflow.saved import SavedPlan
from fxflow.dataflow.schedules import Scheduler
from fxflow.dataflow.scopes import Beside
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.stages import Traced


class Planner(NamedTuple):
    """What plans follow, besides the function's scopes; see `dataflow.jit`.

    Attributes:
      places: what stages and labels mean.
      strict: whether scopes that cannot be followed are errors.
      schedule: orders the fragments if loops are written out.
      given: a saved plan to follow instead.
    """

    places: Places
    strict: bool
    schedule: Scheduler
    given: SavedPlan | None = None

    def plan(self, traced: Traced, arg_types: Sequence[ArrayType]) -> Plan:
        """Returns the plan of a traced function; compiles nothing.

        Args:
          traced: the function, of arrays.
          arg_types: of the leaves of its arguments.

        Raises:
          PlacementError: a scope cannot be followed, or the given plan is for another
            program.
        """
        graph, rounds = unrolled(inlined(traced.graph, CALLS))
        if self.given is not None:
            schedule = self.given.schedule
            made = self.given.fragments_of(
                graph, rounds, self._finder(graph), estimated_seconds
            )
        else:
            types = [*(as_array(c)._type for c in traced.consts), *arg_types]
            placed = place_nodes(graph, rounds, self.places, types, strict=self.strict)
            made, schedule = cut(graph, placed, strict=self.strict), ""
            if any(rounds):
                made, schedule = _ordered(made, self.schedule), self.schedule.name
        plan = Plan(traced.name, graph, made, schedule)
        plan.check()
        return plan

    def _finder(self, graph: Graph) -> Callable[[str], Place]:
        """Returns a function from the names of places in plans to the places."""
        named: dict[str, Place] = {}
        scopes = (where for where in scopes_inside(graph) if type(where) is not Beside)
        for where in (*self.places.devices, *scopes):
            place = self.places.place(where)
            named[place_name(place)] = place
        return lambda name: named.get(name) or self.places.place(name)


def _ordered(made: Fragments, schedule: Scheduler) -> Fragments:
    """Returns fragments in the order of a schedule."""
    timeline = schedule.order(made.fragments, estimated_seconds)
    return in_order(made, [work.index for work in timeline.works])
