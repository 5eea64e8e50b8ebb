"""Planning: from a traced function to its plan."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fxflow.core.arrays import ArrayType, as_array
from fxflow.core.ir.discharge import discharge
from fxflow.core.ir.graph import Graph
from fxflow.dataflow.assignment import EFFORT
from fxflow.dataflow.by_cost import Estimate, decided
from fxflow.dataflow.cloning import with_fewer_bytes
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.cutting import Fragments, cut, in_order
from fxflow.dataflow.loops import unrolled
from fxflow.dataflow.pipelining import pipelined
from fxflow.dataflow.placing import (
    Decisions,
    Place,
    Places,
    place_name,
    place_nodes,
    scopes_inside,
)
from fxflow.dataflow.plan import Plan, estimated_seconds
from fxflow.dataflow.saved import SavedPlan
from fxflow.dataflow.schedules import SCHEDULES, Scheduler
from fxflow.dataflow.scopes import Beside, Stage
from fxflow.dataflow.sharding.stages import divided_meshes
from fxflow.dataflow.tables import counted
from fxflow.errors import PlacementError
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.stages import Traced


class Planner(NamedTuple):
    """What plans follow, besides the function's scopes; see `dataflow.jit`.

    Attributes:
      places: what stages and labels mean.
      strict: whether scopes that cannot be followed are errors.
      schedule: orders the fragments if loops are written out.
      given: a saved plan to follow instead.
      costs: places what scopes leave open, or None.
      divides: whether what is placed on a mesh is divided over it by cost.
    """

    places: Places
    strict: bool
    schedule: Scheduler
    given: SavedPlan | None = None
    costs: Costs | None = None
    divides: bool = False

    def plan(
        self, traced: Traced, arg_types: Sequence[ArrayType], effort: int = EFFORT
    ) -> Plan:
        """Returns the plan of a traced function; compiles nothing.

        Args:
          traced: the function, of arrays.
          arg_types: of the leaves of its arguments.
          effort: of the search for places; see `assign`.

        Raises:
          PlacementError: a scope cannot be followed, values do not fit, or the given
            plan is for another program.
        """
        # References made inside become values, which pass between places.
        whole_graph = inlined(discharge(traced.graph).graph, CALLS)
        if self.given is None:
            self.places.require_known(whole_graph, traced.name)
        notes: list[str] = []
        graph, rounds = unrolled(whole_graph, notes)
        types = [*(as_array(c)._type for c in traced.consts), *arg_types]
        whole = _Whole(traced.name, graph, rounds, types)
        if self.given is not None:
            made = self.given.fragments_of(
                graph, rounds, self._finder(graph), estimated_seconds
            )
            plan = Plan(traced.name, graph, made, self.given.schedule)
        elif self.costs is None:
            plan = self._cut(whole)
        else:
            plan = self._placed_by_cost(whole, self.costs, effort)
        if self.given is None:  # whose notes say it already
            notes = [*notes, *plan.notes, *self._unused(graph)]
            plan.notes = list(dict.fromkeys(notes))
        homes = zip(graph.inputs, types, strict=True)
        plan.homes = {var: kind.placement for var, kind in homes}
        plan.check()
        if self.divides:
            plan.meshes = divided_meshes(plan.fragments, self.costs or Costs())
        return plan

    def _placed_by_cost(self, whole: _Whole, costs: Costs, effort: int) -> Plan:
        if any(whole.rounds):
            effort = 0  # scopes say where the loop runs
        estimate = decided(whole.graph, self.places, whole.types, costs, effort)
        plan = self._cut(whole, estimate)
        if estimate.fallback == estimate.decisions:
            estimate = estimate._replace(alone=plan.seconds)
            plan.estimate = estimate
        if plan.seconds > estimate.alone and estimate.fallback != estimate.decisions:
            estimate = estimate._replace(decisions=estimate.fallback)
            plan = min(plan, self._cut(whole, estimate), key=lambda p: p.seconds)
        found = None
        if not any(whole.rounds):
            found = pipelined(whole.graph, self.places, costs)
        if found is not None:
            notes: list[str] = []
            graph, rounds = unrolled(found.graph, notes)
            piped = self._cut(_Whole(whole.name, graph, rounds, whole.types))
            piped.notes[:0] = notes
            piped.costs = costs
            piped.estimate = estimate._replace(groups=found.items, bound=found.bound)
            error = max(costs.error(p.device) for p in piped.places)
            faster = piped.seconds < plan.seconds * (1 - error)
            if (faster or estimate.refusal) and _fits(piped, costs):
                return piped
        if estimate.refusal is not None:
            raise estimate.refusal
        return plan

    def _cut(self, whole: _Whole, estimate: Estimate | None = None) -> Plan:
        graph, rounds = whole.graph, whole.rounds
        decisions = None
        if estimate is not None:
            decisions = estimate.decisions
            if any(rounds):  # rounds of a loop are alike
                where = zip(decisions.places, rounds, strict=True)
                decisions = Decisions([None if r else p for p, r in where], ())
        placed = place_nodes(
            graph,
            rounds,
            self.places,
            whole.types,
            strict=self.strict,
            decisions=decisions,
        )
        if not self.strict:  # which follows scopes to the letter
            placed = with_fewer_bytes(graph, placed)
        made, schedule = cut(graph, placed, strict=self.strict), ""
        if any(rounds):
            made = _ordered(made, self.schedule, self.costs)
            schedule = self.schedule.name
        plan = Plan(whole.name, graph, made, schedule)
        if estimate is not None:
            plan.costs, plan.estimate = self.costs, estimate
        return plan

    def _unused(self, graph: Graph) -> list[str]:
        """Returns a note if stages leave devices without work."""
        stages = {w for w in scopes_inside(graph) if isinstance(w, Stage)}
        if not stages:
            return []
        devices, count = len(self.places.devices), max(s.count for s in stages)
        used = len({self.places.place(stage) for stage in stages})
        expected = devices if self.places.given else min(devices, count)
        if used >= expected:
            return []
        name, each = self.schedule.name, -(-count // max(used, 1))
        note = f"{counted(count, 'stage')} use {used} of {counted(devices, 'device')}"
        if self.schedule.device is SCHEDULES["zb-v"].device:
            note += f": {name} gives each device two; {2 * devices} stages use all"
        elif each > 1 or used < count:
            note += f" ({name})"
        return [note]

    def _finder(self, graph: Graph) -> Callable[[str], Place]:
        """Returns a function from the names of places in plans to the places."""
        named: dict[str, Place] = {}
        scopes = (where for where in scopes_inside(graph) if type(where) is not Beside)
        for where in (*self.places.devices, *scopes):
            # The plan goes before the scopes: their labels need not mean anything.
            with contextlib.suppress(PlacementError):
                place = self.places.place(where)
                named[place_name(place)] = place

        def find(name: str) -> Place:
            if name not in named and re.match(r"(job:\S+ )?task:\d+ ", name):
                raise PlacementError(
                    f"it names {name}, the device of a task: give the tasks, "
                    "dataflow.jit(devices=cluster, plan=...)"
                )
            return named.get(name) or self.places.place(name)

        return find


def _fits(plan: Plan, costs: Costs) -> bool:
    """Returns whether the values of a plan fit into the memories of its places."""
    for place, nbytes in plan.peak_bytes().items():
        limits = [costs.memory(device) for device in place.devices]
        if any(limit is not None and nbytes > limit for limit in limits):
            return False
    return True


class _Whole(NamedTuple):
    """What is placed and cut.

    Attributes:
      name: of the function.
      graph: with calls, and loops over places, written out.
      rounds: of the nodes.
      types: of the graph's inputs.
    """

    name: str
    graph: Graph
    rounds: list[int]
    types: list[ArrayType]


def _ordered(made: Fragments, schedule: Scheduler, costs: Costs | None) -> Fragments:
    """Returns fragments in the order of a schedule."""
    if costs is None:
        timeline = schedule.order(made.fragments, estimated_seconds)
    else:
        sent = costs.sent(made.edges)
        timeline = schedule.order(made.fragments, costs.fragment_seconds, sent)
    return in_order(made, [work.index for work in timeline.works])
