"""Donation: memory of values that a fragment is the last to take, for its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from typing import Any

from fxflow.core.ir.graph import Graph, Var
from fxflow.core.runtime.execute import donation_attributes
from fxflow.dataflow.placing import Place
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.tasks.devices import TaskPlace
from fxflow.transforms.stages import Traced

#: Smaller values are not donated: fragments that differ in it alone are two programs.
LEAST = 4096


def donations(plan: Plan, donated: Sequence[bool]) -> dict[int, set[Var]]:
    """Returns for each fragment the values whose memory it may use.

    That is what only this process can see, in one place, for the last time: a result of
    a fragment that no other place takes, a copy that was made for this place, or an
    argument that the caller donates and one place takes. What the whole returns is not
    among them.

    Args:
      plan: whose fragments run in this order in each place.
      donated: which arguments the caller donates.

    Returns:
      From indices of fragments to variables.
    """
    graph, fragments = plan.graph, plan.fragments
    arguments = graph.inputs[graph.num_consts :]
    given = {v for v, gives in zip(arguments, donated, strict=True) if gives}
    outputs = {atom for atom in graph.outputs if type(atom) is Var}
    maker = {v: f.place for f in fragments for v in f.results}
    sent = {edge.var for edge in plan.edges if edge.source is not None}
    last: dict[tuple[Var, Place], int] = {}
    places: dict[Var, set[Place]] = defaultdict(set)
    for fragment in fragments:
        for var in fragment.graph.inputs:
            last[var, fragment.place] = fragment.index
            places[var].add(fragment.place)
    found: dict[int, set[Var]] = defaultdict(set)
    for (var, place), index in last.items():
        source = maker.get(var)
        returned = var in outputs and source in (None, place)
        if returned or not _is_own(place) or var.aval.nbytes < LEAST:
            continue
        if source is None:
            ours = var in given and len(places[var]) == 1
        elif source is place:
            ours = var not in sent
        else:
            # Places that share a device may share the buffer.
            ours = _is_own(source) and place.device not in source.devices
        if ours:
            found[index].add(var)
    return found


def _is_own(place: Place) -> bool:
    """Returns whether a place is one device of this process."""
    return place.is_single and type(place) is not TaskPlace


def reused(graph: Graph, may: Set[Var]) -> list[bool]:
    """Returns which inputs of a fragment's program are donated.

    Args:
      graph: of the program.
      may: inputs that may be.

    Returns:
      For each input whether a result takes its memory: there is one of its type left.
    """
    free: Counter[Any] = Counter(aval.physical.strong() for aval in graph.out_avals)
    found = []
    for var in graph.inputs:
        kind = var.aval.physical.strong()
        found.append(var in may and free[kind] > 0)
        free[kind] -= found[-1]
    return found


def require_reusable(traced: Traced) -> None:
    """Checks that a result can take the memory of each donated argument.

    Args:
      traced: a function of arrays.

    Raises:
      DonationError: no result is left that can.
    """
    if any(traced.donated):
        graph = traced.graph
        consts = graph.num_consts
        donation_attributes(
            graph,
            [*[False] * consts, *traced.donated],
            lambda: [*[""] * consts, *traced.labels],
            traced.name,
            False,
            [None] * len(graph.inputs),
            None,
        )
