"""Lowering: fragments as programs.

A fragment is a graph like any other, so it takes the way of every graph: passes, small
captured values written into the text, StableHLO. Equal fragments are one program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from fxflow.core.arrays import Array, type_on
from fxflow.core.arrays.aval import mesh_of
from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.core.ir.staging import with_literals
from fxflow.core.runtime.execute import LoweredProgram
from fxflow.core.source import describe
from fxflow.dataflow.cutting import Fragment
from fxflow.dataflow.donation import reused
from fxflow.dataflow.placing import (
    Place,
    called,
    calls_python,
    first_callback,
    place_name,
)
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.rows import Draft
from fxflow.dataflow.tasks.devices import TaskPlace
from fxflow.devices.clients import runs_triton
from fxflow.errors import PlacementError
from fxflow.lax.callbacks import PythonCallback
from fxflow.transforms.passes.pipeline import optimized
from fxflow.transforms.stages import is_small


class LoweredFragment(NamedTuple):
    """A fragment as a program that is not compiled yet.

    Attributes:
      program: with the captured values as its first arguments.
      constants: the captured values.
      inputs: its other arguments.
      wheres: where it takes each argument: the place, or the parts that the devices of
        a mesh have.
      results: where its results are, likewise.
      key: equal for fragments that are one program.
    """

    program: LoweredProgram
    constants: list[Var]
    inputs: list[Var]
    wheres: list[Place]
    results: list[Place]
    key: tuple[Any, ...]


def lower(
    fragment: Fragment,
    consts: Mapping[Var, Array],
    plan: Plan,
    donated: Set[Var] = frozenset(),
) -> LoweredFragment:
    """Lowers a fragment for its place.

    Args:
      fragment: the fragment.
      consts: captured values.
      plan: of the whole.
      donated: inputs whose memory the program may use for its results.
    """
    place, graph, name = fragment.place, fragment.graph, plan.name
    divided = plan.meshes.get(place)
    if divided is not None:
        graph = divided.constrained(fragment)
    # Machine code is this process's own: a task has not got it.
    here = place.is_single and type(place) is not TaskPlace
    native = here and place.platform == "cpu"
    triton = here and runs_triton(place.device)
    graph = optimized(graph, native=native, triton=triton)
    held = {v: consts[v] for v in graph.inputs if v in consts}
    small = {v: c for v, c in held.items() if is_small(c)}
    if small:
        graph = with_literals(graph, small)
    first = [v for v in held if v not in small]
    inputs = [v for v in graph.inputs if v not in held]
    graph = Graph([*first, *inputs], graph.nodes, graph.outputs, name)
    types = [type_on(v.aval, plan.where(fragment, v), True) for v in graph.inputs]
    results = [plan.where(fragment, v) for v in fragment.results]
    program = LoweredProgram(
        graph,
        types,
        name=name,
        module_name=f"jit_{name}",
        out_shardings=[where.sharding for where in results],
        # Without arguments, nothing else would say that it runs there.
        mesh=None if place.is_single else mesh_of(place),
        donated=reused(graph, donated) if donated else (),
    )
    # Locations name scopes and lines: equal programs may differ in them. Callbacks are
    # numbers in the text.
    key = (place, program.text_without_locations, *_callbacks(graph))
    return LoweredFragment(program, first, inputs, program.placements, results, key)


def drafted(
    plan: Plan,
    consts: Mapping[Var, Array],
    donated: Mapping[int, Set[Var]] = MappingProxyType({}),
) -> tuple[list[LoweredFragment], list[Draft]]:
    """Lowers the fragments of a plan.

    Args:
      plan: of the whole.
      consts: captured values.
      donated: by index of a fragment, inputs whose memory it may use for its results.

    Returns:
      The fragments that differ as programs, and a draft of each fragment with the
      number of its program among them.
    """
    lowered: list[LoweredFragment] = []
    drafts: list[Draft] = []
    numbers: dict[Any, int] = {}
    for fragment in plan.fragments:
        found = lower(fragment, consts, plan, donated.get(fragment.index, frozenset()))
        number = numbers.setdefault(found.key, len(numbers))
        if number == len(lowered):
            lowered.append(found)
        text = described(plan.name, fragment)
        drafts.append(
            Draft(
                fragment,
                number,
                found.constants,
                found.inputs,
                found.wheres,
                found.results,
                text,
            )
        )
    return lowered, drafts


def _callbacks(graph: Graph) -> list[int]:
    """Returns the identities of the Python functions that a graph calls."""
    found: list[int] = []
    for node in graph.nodes:
        if node.primitive.name == PythonCallback.name:
            found.append(id(node.params["function"]))
        for _, inner in subgraphs(node.params):
            found += _callbacks(inner)
    return found


def described(name: str, fragment: Fragment) -> Callable[[], str]:
    """Returns the function that says what a fragment is, for messages.

    Args:
      name: of the whole.
      fragment: one of its fragments.
    """

    def text() -> str:
        node = fragment.graph.nodes[0]
        return (
            f"fragment {fragment.index} of {name} on {place_name(fragment.place)}, "
            f"which begins with {node.primitive.name} ({describe(node.source)})"
        )

    return text


def require_movable(plan: Plan) -> None:
    """Checks that what tasks are to run can run without this process.

    Args:
      plan: of a function.

    Raises:
      PlacementError: an operation on a task's device calls Python or has effects, or
        a value is larger than the device's memory.
    """
    for fragment in plan.fragments:
        if type(fragment.place) is not TaskPlace:
            continue
        for node in fragment.graph.nodes:
            if calls_python(node):
                raise PlacementError(_unmovable(node, fragment.place))
        _require_room(plan, fragment)


def _unmovable(node: Node, place: Place) -> str:
    """Returns why a task cannot run a node, and what to do."""
    inner = first_callback(node)
    told = f"{node.primitive.name} ({describe(node.source)})"
    where = "in a scope of this process, such as on(fxflow.devices()[0])"
    if inner is None:
        told += " has effects"
    elif inner is node:
        told = f"{called(node)}, by {told}, calls Python"
    else:
        told = f"{called(inner)} ({describe(inner.source)}) calls Python within {told}"
        where = f"outside of {node.primitive.name}, or that {where}"
    return f"{told}, and is on {place}: tasks run programs only. Put it {where}"


def _require_room(plan: Plan, fragment: Fragment) -> None:
    """Checks that each value that a task's fragment takes or returns fits there."""
    device: Any = fragment.place.device
    each = "" if fragment.place.is_single else " on each device"
    for var in (*fragment.graph.inputs, *fragment.results):
        nbytes = int(var.aval.nbytes)
        if 0 < device.memory < nbytes:
            counts, _ = plan.where(fragment, var).sharding.tiles(var.aval.ndim)
            nbytes //= math.prod(counts)
        if 0 < device.memory < nbytes:
            users = (
                node
                for node in fragment.graph.nodes
                if var in node.outputs or var in node.inputs
            )
            raise PlacementError(
                f"{var.aval} takes {nbytes:,} bytes{each}, more than the "
                f"{device.memory:,} of {device} ({describe(next(users).source)})"
            )
