"""Plans: what runs where, in which order, and what is sent."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Var
from fxflow.core.source import describe
from fxflow.dataflow.actions import Schedule, schedule_from
from fxflow.dataflow.by_cost import Estimate
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.cutting import Edge, Fragment, Fragments, in_order
from fxflow.dataflow.gantt import gantt
from fxflow.dataflow.memory import link_bytes, peak_bytes
from fxflow.dataflow.placing import Place, place_name, place_order
from fxflow.dataflow.saved import SavedPlan
from fxflow.dataflow.schedules import schedule_of
from fxflow.dataflow.sharding.stages import DividedMesh
from fxflow.dataflow.tables import SHOWN, counted, more, table, time_text
from fxflow.dataflow.timelines import Timeline, simulate, trace_events
from fxflow.errors import ArgumentError, PlacementError

#: What a core of a CPU does in a second, and what starting a program takes; only their
#: ratio matters for the order of fragments.
_FLOPS, _START = 1e10, 1e-5


class Plan:
    """How a function is cut over devices, for arguments of given types.

    Attributes:
      name: of the function.
      graph: the whole, with calls written out.
      schedule: by which the fragments were ordered.
      fragments: in the order in which they are started.
      edges: what is sent: one for each value and place that needs it.
      notes: what was decided and may surprise.
      homes: where the function's arguments are before a step.
      costs: by which it was placed, or None.
      estimate: what placement by cost says about it, or None.
      predicted: when the fragments run, as it was simulated when the plan was made, or
        None. What steps measure later corrects `costs`, and so `simulate`.
      measured: seconds of a step as it ran, or None.
      meshes: how values are divided over each mesh, if they are.

    Example:
      >>> from fxflow import dataflow
      >>> def f(x):
      ...     with dataflow.on("/device:cpu:1"):
      ...         y = fnp.sin(x)
      ...     with dataflow.on("/device:cpu:0"):
      ...         return y * 2
      >>> print(dataflow.jit(f).plan(fnp.ones(3)))
      f: 2 fragments on 2 devices, 2 transfers of 24 bytes
      fragment  device  nodes  flops  after  operations
             0  cpu:1       1      3  -      sin
             1  cpu:0       1      3  0      mul
      from      to     bytes  value   for fragments
      argument  cpu:1     12  f32[3]  0
      0         cpu:0     12  f32[3]  1
      device  busy  peak bytes
      cpu:0    50%          24
      cpu:1    50%          24
      places: scopes, device_put inside, operands, uses, committed arguments
    """

    name: str
    graph: Graph
    schedule: str

    def __init__(self, name: str, graph: Graph, made: Fragments, schedule: str) -> None:
        self.name, self.graph, self.schedule = name, graph, schedule
        self.fragments: list[Fragment] = made.fragments
        self.edges: list[Edge] = made.edges
        self.notes: list[str] = list(dict.fromkeys(made.notes))
        self.homes: dict[Var, Place] = {}
        self.costs: Costs | None = None
        self.estimate: Estimate | None = None
        self.predicted: Timeline | None = None
        self.measured: float | None = None
        self.meshes: dict[Place, DividedMesh] = {}

    def where(self, fragment: Fragment, var: Var) -> Place:
        """Returns where a fragment has a value: on a mesh, perhaps in parts.

        Args:
          fragment: of the plan.
          var: the value.
        """
        divided = self.meshes.get(fragment.place)
        return fragment.place if divided is None else divided.place(var)

    @property
    def places(self) -> list[Place]:
        """The places in the order of their first fragment."""
        return list(dict.fromkeys(f.place for f in self.fragments))

    def place_of(self, var: Var) -> Place | None:
        """Returns where a variable of the graph is computed; None for an argument."""
        for fragment in self.fragments:
            if any(var in node.outputs for node in fragment.graph.nodes):
                return fragment.place
        return None

    @property
    def seconds(self) -> float:
        """Seconds of a step, as predicted."""
        return self.simulate().seconds

    def simulate(self, seconds: Callable[[Fragment], float] | None = None) -> Timeline:
        """Returns when each fragment runs, under a virtual clock.

        Args:
          seconds: that a fragment takes; None estimates it, by the costs that placed
            it or else from its flops.

        Raises:
          PlacementError: the order cannot be run.
        """
        if seconds is None and self.costs is not None:
            timeline = self._simulate(self.costs)
        else:
            timeline = simulate(self.fragments, seconds or estimated_seconds)
        return timeline.in_order(place_order)

    def scheduled(
        self, schedule: Any, seconds: Callable[[Fragment], float] | None = None
    ) -> Plan:
        """Returns a plan of the same fragments in the order of another schedule.

        Args:
          schedule: a name, a `Schedule` or a sort key; see `dataflow.jit`. It changes
            no places: those of interleaved schedules, of a V and of tables must be
            there.
          seconds: that a fragment takes, such as `Timeline.seconds_of` of a measured
            step; None: as `simulate`.

        Returns:
          A plan, for `dataflow.jit(plan=…)`.

        Raises:
          ArgumentError: unknown schedule.
          PlacementError: the order cannot be run.
        """
        scheduler = schedule_of(schedule)
        if seconds is None and self.costs is not None:
            seconds = self.costs.fragment_seconds
        timeline = scheduler.order(self.fragments, seconds or estimated_seconds)
        order = [work.index for work in timeline.works]
        made = in_order(Fragments(self.fragments, self.edges, self.notes), order)
        found = copy.copy(self)
        found.fragments, found.edges = made.fragments, made.edges
        found.schedule, found.measured, found.predicted = scheduler.name, None, None
        return found

    def _simulate(self, costs: Costs) -> Timeline:
        """Returns when each fragment runs, by costs of fragments and links."""
        sent = costs.sent(self.edges)
        return simulate(self.fragments, costs.fragment_seconds, sent=sent)

    def check(self) -> None:
        """Checks that the fragments can be run in their order.

        Raises:
          PlacementError: fragments wait for each other (the message shows the cycle),
            one takes a result of a later one, or an operation is left out.
        """
        self.predicted = self.simulate()
        made = set(self.graph.inputs)
        for fragment in self.fragments:
            for var in fragment.graph.inputs:
                if var not in made:
                    raise PlacementError(
                        f"{fragment.describe()} takes {var.aval}, which no fragment "
                        "before it computes"
                    )
            made.update(v for node in fragment.graph.nodes for v in node.outputs)
        lacking = [a for a in self.graph.outputs if type(a) is Var and a not in made]
        if lacking:
            raise PlacementError(f"no fragment computes the result {lacking[0].aval}")

    # -- saving and comparing ----------------------------------------------------------

    def saved(self) -> SavedPlan:
        """Returns the plan without its program.

        Returns:
          A value that can be edited, and given back to `dataflow.jit(plan=…)`.
        """
        return SavedPlan.of(
            self.name, self.graph, self.fragments, self.schedule, self.notes
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a file, as JSON.

        Args:
          path: of the file, which `dataflow.jit(plan=path)` follows.

        Raises:
          OSError: the file cannot be written.
        """
        self.saved().save(path)

    def to_json(self) -> str:
        """Returns the plan as JSON; see `SavedPlan.to_json`."""
        return self.saved().to_json()

    @staticmethod
    def load(path: str | os.PathLike[str]) -> SavedPlan:
        """Reads a plan that was saved.

        Args:
          path: of the file.

        Returns:
          The plan without its program, for `dataflow.jit(plan=…)`.

        Raises:
          ArgumentError: the file holds no plan.
          OSError: the file cannot be read.
        """
        return SavedPlan.load(path)

    def diff(self, other: Plan | SavedPlan) -> str:
        """Returns what differs in another plan, as text; empty if nothing does.

        Args:
          other: a plan of the same or of another function.
        """
        return self.saved().diff(other.saved() if isinstance(other, Plan) else other)

    def actions(self) -> Schedule:
        """Returns the order of a pipeline as a table of actions.

        Raises:
          PlacementError: no loop over stages was written out.
        """
        rows: dict[Any, list[Fragment]] = {}
        for fragment in self.fragments:
            rows.setdefault(fragment.place, []).append(fragment)
        return schedule_from(rows)

    # -- pictures ----------------------------------------------------------------------

    def to_svg(
        self,
        measured: Timeline | None = None,
        *,
        seconds: Callable[[Fragment], float] | None = None,
    ) -> str:
        """Returns a Gantt chart.

        Args:
          measured: when the fragments of a step ran; shown below what is simulated. See
            `DataflowFunction.measure`.
          seconds: that a fragment takes, for the simulation; see `simulate`.

        Returns:
          SVG.
        """
        return gantt(
            [*self._timelines(measured, seconds).items()],
            place_name,
            lambda fragment: str(fragment.action),
        )

    def save_trace(
        self,
        path: str | os.PathLike[str],
        measured: Timeline | None = None,
        *,
        seconds: Callable[[Fragment], float] | None = None,
    ) -> None:
        """Writes the timeline to a file that https://ui.perfetto.dev opens.

        Args:
          path: of the file, which is compressed if the path ends in ``.gz``.
          measured: see `to_svg`.
          seconds: see `to_svg`.

        Raises:
          OSError: the file cannot be written.
        """
        timelines = self._timelines(measured, seconds)
        trace_events(timelines, place_name, lambda f: str(f.action)).save(path)

    def _timelines(
        self,
        measured: Timeline | None,
        seconds: Callable[[Fragment], float] | None,
    ) -> dict[str, Timeline]:
        found = {"simulated": self.simulate(seconds)}
        return found if measured is None else found | {"measured": measured}

    # -- text --------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Plan of {self.name}: {self._summary()}>"

    @property
    def transfers(self) -> list[Edge]:
        """What each step sends: no arguments that are where they are used already."""
        captured = {*self.graph.inputs[: self.graph.num_consts]}

        def is_sent(edge: Edge) -> bool:
            if edge.source is not None:
                return True
            home = self.homes.get(edge.var)
            there = home is not None and home.devices == edge.place.devices
            return not there and edge.var not in captured

        return [edge for edge in self.edges if is_sent(edge)]

    def _summary(self) -> str:
        transfers = self.transfers
        between = [e for e in transfers if e.source is not None]
        sent = sum(edge.nbytes for edge in transfers)
        count, places = len(self.fragments), len(self.places)
        text = f"{counted(count, 'fragment')} on {counted(places, 'device')}, "
        if not transfers:
            return text + "nothing is sent"
        text += f"{counted(len(transfers), 'transfer')} of {sent:,} bytes"
        return text + ("" if between or count < 2 else ", none between fragments")

    def to_text(self, *, lines: bool = False, shown: int | None = SHOWN) -> str:
        """Returns the plan as text.

        Args:
          lines: whether to add the user's lines that the fragments come from.
          shown: rows of the tables of fragments and of transfers; None: all.
        """
        stages = any(f.microbatch is not None for f in self.fragments)
        rows: list[Sequence[str]] = [
            ("fragment", "device", "nodes", "flops", "after", "operations")
        ]
        for fragment in self.fragments[:shown]:
            nodes = fragment.graph.nodes
            names = [n.primitive.name for n in nodes]
            told = " ".join(names[:4]) + (" …" if len(names) > 4 else "")
            if lines:
                told += f"  # {describe(nodes[0].source)}"
            number = str(fragment.index)
            if fragment.stage is not None and fragment.microbatch is not None:
                number += f"  {fragment.action}"
            rows.append(
                (
                    number,
                    place_name(fragment.place),
                    str(len(nodes)),
                    f"{fragment.flops:,.0f}",
                    " ".join(map(str, fragment.after)) or "-",
                    told,
                )
            )
        right = (2, 3) if stages else (0, 2, 3)
        text = [f"{self.name}: {self._summary()}", *table(rows, right)]
        text += more(len(self.fragments), shown, "fragments")
        rows = [("from", "to", "bytes", "value", "for fragments")]
        transfers = self.transfers
        for edge in transfers[:shown]:
            rows.append(
                (
                    "argument" if edge.source is None else str(edge.source),
                    place_name(edge.place),
                    f"{edge.nbytes:,}",
                    str(edge.var.aval),
                    " ".join(map(str, edge.users)),
                )
            )
        text += table(rows, right=(2,)) if transfers else []
        text += more(len(transfers), shown, "transfers")
        links = link_bytes(self.fragments, self.edges)
        if sum(count for count, _ in links.values()) > len(links):
            rows = [("link", "transfers", "bytes")]
            for (source, target), (count, nbytes) in links.items():
                ends = f"{place_name(source)} → {place_name(target)}"
                rows.append((ends, str(count), f"{nbytes:,}"))
            text += table(rows, right=(1, 2))
        text += self._devices()
        if self.schedule:
            bubble = self._planned().bubble
            text.append(f"schedule: {self.schedule}, bubble {bubble:.0%} by flops")
        rules = "operands, uses, committed arguments"
        if self.estimate is not None:
            rules = "cost, uses"
            text += self._prediction(self.estimate)
        text.append(f"places: scopes, device_put inside, {rules}")
        text += [f"{place_name(p)}: {m.describe()}" for p, m in self.meshes.items()]
        text += [f"note: {note}" for note in self.notes]
        return "\n".join(text)

    def _planned(self) -> Timeline:
        return self.simulate() if self.predicted is None else self.predicted

    def _prediction(self, estimate: Estimate) -> list[str]:
        """Returns lines: how long a step takes, and how far the plan may be off.

        All are by what was known when the plan was made.
        """
        predicted = self._planned().seconds
        # Measured times of fragments may be less than those of their operations.
        bound = min(estimate.bound, predicted)
        text = f"step: {time_text(predicted)} predicted"
        if self.measured is not None:
            text += f", {time_text(self.measured)} measured"
        over = predicted / bound - 1 if bound else 0.0
        alone = f"{time_text(estimate.alone)} on one device"
        if estimate.alone == float("inf"):
            alone = "one device cannot hold it"
        return [
            f"{text}, {alone}",
            f"bound: {time_text(bound)} for any placement of "
            f"{counted(estimate.groups, 'group')}; this one is within {over:.0%} of it",
        ]

    def _devices(self) -> list[str]:
        """Returns a table of what each device does and holds, when simulated."""
        timeline = self._planned()
        peaks = self.peak_bytes(timeline)
        held = timeline.activations
        head = ["device", "busy", "peak bytes"]
        right = [1, 2]
        if any(f.microbatch is not None for f in self.fragments):
            head.append("activations")
            right.append(3)
        rows: list[Sequence[str]] = [head]
        for place in timeline.rows:
            busy = sum(ran.end - ran.start for ran in timeline.rows[place])
            row = [place_name(place), f"{busy / (timeline.seconds or 1):.0%}"]
            row.append(f"{peaks.get(place, 0):,}")
            rows.append([*row, str(held[place])][: len(head)])
        return table(rows, right) if rows[1:] else []

    def peak_bytes(self, timeline: Timeline | None = None) -> dict[Place, int]:
        """Returns the most bytes that each place holds at once.

        Args:
          timeline: when the fragments run; None: `simulate`.

        Returns:
          Bytes of arguments, values between fragments and copies. What programs need
          besides is not in it.
        """
        timeline = timeline or self.simulate()
        return peak_bytes(self.graph, self.fragments, self.edges, timeline)


def saved_plan(given: Any) -> SavedPlan | None:
    """Returns the argument `plan` of `dataflow.jit` as a plan without its program.

    Args:
      given: a `Plan`, a `SavedPlan`, the path of one, or None.

    Raises:
      ArgumentError: it is something else, or the file holds no plan.
      OSError: the file cannot be read.
    """
    if given is None or isinstance(given, SavedPlan):
        return given
    if isinstance(given, Plan):
        return given.saved()
    if isinstance(given, str | os.PathLike):
        return SavedPlan.load(given)
    raise ArgumentError(
        f"dataflow.jit: plan is a Plan, a SavedPlan or the path of one, got {given!r}"
    )


def estimated_seconds(fragment: Fragment) -> float:
    """Returns about how long a fragment takes, by its flops."""
    return _START + fragment.flops / _FLOPS
