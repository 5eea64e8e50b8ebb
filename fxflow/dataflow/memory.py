"""The memory that a plan needs on each device, by the order of its fragments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Var
from fxflow.dataflow.cutting import Edge, Fragment
from fxflow.dataflow.timelines import Timeline


def peak_bytes(
    graph: Graph,
    fragments: Sequence[Fragment],
    edges: Sequence[Edge],
    timeline: Timeline,
) -> dict[Any, int]:
    """Returns the most bytes of arguments and values that each place holds at once.

    Arguments count from the start to the end. A result counts from the start of its
    fragment to the end of the last one of its place that takes it, and until other
    places have taken it; a copy from the start of the first fragment that takes it to
    the end of the last. What programs need besides is not in it.

    Args:
      graph: the whole.
      fragments: its parts.
      edges: what is sent.
      timeline: when the fragments run.
    """
    ran = {r.work.index: r for row in timeline.rows.values() for r in row}
    whole = timeline.seconds
    outputs = {atom for atom in graph.outputs if type(atom) is Var}
    until: dict[tuple[Var, Any], float] = {}
    since: dict[tuple[Var, Any], float] = {}
    for fragment in fragments:
        start, end = ran[fragment.index].start, ran[fragment.index].end
        for var in fragment.results:
            key = var, fragment.place
            since[key] = start
            until[key] = whole if var in outputs else max(end, until.get(key, 0.0))
        for var in fragment.graph.inputs:
            key = var, fragment.place
            since.setdefault(key, start)
            until[key] = max(end, until.get(key, 0.0))
    place_of = {fragment.index: fragment.place for fragment in fragments}
    for edge in edges:
        if edge.source is None:
            since[edge.var, edge.place], until[edge.var, edge.place] = 0.0, whole
            continue
        key = edge.var, place_of[edge.source]
        pulled = min(ran[user].start for user in edge.users)
        until[key] = max(until[key], pulled)
    events: dict[Any, list[tuple[float, int]]] = defaultdict(list)
    for (var, place), start in since.items():
        nbytes = int(var.aval.nbytes)
        events[place] += [(start, nbytes), (until[var, place], -nbytes)]
    peaks = {}
    for place, changes in events.items():
        # What ends when something begins has made room for it.
        now = most = 0
        for _, change in sorted(changes):
            now += change
            most = max(most, now)
        peaks[place] = most
    return peaks


def link_bytes(
    fragments: Sequence[Fragment], edges: Sequence[Edge]
) -> dict[tuple[Any, Any], tuple[int, int]]:
    """Returns how many values, and bytes, each link sends.

    Args:
      fragments: the parts of a plan.
      edges: what is sent.

    Returns:
      From pairs of places to pairs of numbers.
    """
    place_of = {fragment.index: fragment.place for fragment in fragments}
    found: dict[tuple[Any, Any], tuple[int, int]] = {}
    for edge in edges:
        if edge.source is not None:
            link = place_of[edge.source], edge.place
            count, nbytes = found.get(link, (0, 0))
            found[link] = count + 1, nbytes + edge.nbytes
    return found
