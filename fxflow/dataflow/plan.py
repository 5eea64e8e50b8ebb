"""Plans: what runs where, in which order, and what is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fxflow.core.ir.graph import Graph, Var
from fxflow.core.source import describe
from fxflow.dataflow.cutting import Edge, Fragment, Fragments
from fxflow.dataflow.placing import Place
from fxflow.dataflow.schedules import Timeline, simulate
from fxflow.dataflow.tasks.devices import TaskPlace

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
      places: scopes, device_put inside, operands, uses, committed arguments
    """

    def __init__(self, name: str, graph: Graph, made: Fragments, schedule: str) -> None:
        self.name, self.graph, self.schedule = name, graph, schedule
        self.fragments: list[Fragment] = made.fragments
        self.edges: list[Edge] = made.edges
        self.notes: list[str] = made.notes

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

    def simulate(self, seconds: Callable[[Fragment], float] | None = None) -> Timeline:
        """Returns when each fragment runs, under a virtual clock.

        Args:
          seconds: that a fragment takes; None estimates it from its flops.
        """
        return simulate(self.fragments, seconds or estimated_seconds)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Plan of {self.name}: {self._summary()}>"

    def _summary(self) -> str:
        between = [e for e in self.edges if e.source is not None]
        count, places = len(self.fragments), len(self.places)
        sent = sum(edge.nbytes for edge in self.edges)
        return (
            f"{count} {'fragment' if count == 1 else 'fragments'} on {places} "
            f"{'device' if places == 1 else 'devices'}, {len(self.edges)} "
            f"{'transfer' if len(self.edges) == 1 else 'transfers'} of {sent:,} bytes"
            + ("" if between or count < 2 else ", none between fragments")
        )

    def to_text(self, *, lines: bool = False) -> str:
        """Returns the plan as text.

        Args:
          lines: whether to add the user's lines that the fragments come from.
        """
        rows: list[Sequence[str]] = [
            ("fragment", "device", "nodes", "flops", "after", "operations")
        ]
        for fragment in self.fragments:
            nodes = fragment.graph.nodes
            names = [n.primitive.name for n in nodes]
            shown = " ".join(names[:4]) + (" …" if len(names) > 4 else "")
            if lines:
                shown += f"  # {describe(nodes[0].source)}"
            rows.append(
                (
                    str(fragment.index),
                    place_name(fragment.place),
                    str(len(nodes)),
                    f"{fragment.flops:,.0f}",
                    " ".join(map(str, fragment.after)) or "-",
                    shown,
                )
            )
        text = [f"{self.name}: {self._summary()}", *table(rows, right=(0, 2, 3))]
        rows = [("from", "to", "bytes", "value", "for fragments")]
        for edge in self.edges:
            rows.append(
                (
                    "argument" if edge.source is None else str(edge.source),
                    place_name(edge.place),
                    f"{edge.nbytes:,}",
                    str(edge.var.aval),
                    " ".join(map(str, edge.users)),
                )
            )
        text += table(rows, right=(2,)) if self.edges else []
        if self.schedule:
            bubble = self.simulate().bubble
            text.append(f"schedule: {self.schedule}, bubble {bubble:.0%} by flops")
        text.append(
            "places: scopes, device_put inside, operands, uses, committed arguments"
        )
        text += [f"note: {note}" for note in self.notes]
        return "\n".join(text)


def estimated_seconds(fragment: Fragment) -> float:
    """Returns about how long a fragment takes, by its flops."""
    return _START + fragment.flops / _FLOPS


def place_name(place: Place) -> str:
    """Returns a place in a few letters: `cpu:1`, `task:1 cpu:0`."""
    if type(place) is TaskPlace:
        return str(place)
    names = [f"{d.platform}:{d.id}" for d in place.devices]
    return names[0] if len(names) == 1 else f"mesh of {' '.join(names)}"


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Returns rows as lines of aligned columns.

    Args:
      rows: the first is the header.
      right: columns aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
