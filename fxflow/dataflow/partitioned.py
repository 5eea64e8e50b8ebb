"""`dataflow.jit`: a function cut over devices, once for each signature."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from fxflow.core.arrays import Array, ArrayType, as_array, type_on
from fxflow.core.arrays.array import forget
from fxflow.core.boundary import boundary
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Literal, Var, subgraphs
from fxflow.core.ir.staging import with_literals
from fxflow.core.runtime.execute import LoweredProgram, Program
from fxflow.core.source import describe
from fxflow.dataflow.actions import Schedule
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.cutting import Fragment, is_cheap
from fxflow.dataflow.placing import Place, Places, place_name
from fxflow.dataflow.plan import Plan, saved_plan
from fxflow.dataflow.planning import Planner
from fxflow.dataflow.replanning import Replanned
from fxflow.dataflow.runner import Task, TaskInput, copied, run_step, thread_of
from fxflow.dataflow.saved import SavedPlan
from fxflow.dataflow.schedules import schedule_of
from fxflow.dataflow.texts import CutGraph
from fxflow.errors import ArgumentError
from fxflow.lax.callbacks import PythonCallback
from fxflow.lax.transfer import copied as copied_array
from fxflow.transforms.arguments import (
    as_indices,
    as_names,
    require_callable,
)
from fxflow.transforms.jit import JitFunction, JitOptions
from fxflow.transforms.passes.pipeline import optimized
from fxflow.transforms.stages import Runner, Traced, is_small, require_donated_once

P = ParamSpec("P")
R = TypeVar("R")


class Partitioned:
    """A traced function in fragments, each compiled for its place.

    Args:
      traced: the function.
      plan: of the function.

    Attributes:
      traced: the function.
      plan: what runs where.
    """

    def __init__(self, traced: Traced, plan: Plan) -> None:
        self.traced, self.plan = traced, plan
        self._consts = [as_array(c) for c in traced.arrays.consts]
        self._programs: dict[Any, Program] = {}
        self._prepare(plan.graph)

    # -- preparation -------------------------------------------------------------------

    def _prepare(self, graph: Graph) -> None:
        """Gives each value at each place a slot, and each fragment a task."""
        fragments = self.plan.fragments
        maker = {v: f for f in fragments for v in f.results}
        consts = dict(zip(graph.inputs, self._consts, strict=False))
        slots: dict[tuple[Var, Place | None], int] = {}

        def slot(var: Var, place: Place | None) -> int:
            return slots.setdefault((var, place), len(slots))

        # The arguments as they are given come first.
        for var in graph.inputs[graph.num_consts :]:
            slot(var, None)
        threads = self._threads(fragments)
        outputs = {a for a in graph.outputs if type(a) is Var}
        drafts: list[tuple[Fragment, Program, tuple[Array, ...], list[TaskInput]]] = []
        for fragment in fragments:
            program, constants, inputs = self._compile(fragment, consts)
            pulls = []
            for var in inputs:
                made = maker.get(var)
                source = None
                if made is None:
                    source = slot(var, None)
                elif made.place is not fragment.place:
                    source = slot(var, made.place)
                where = self._where(fragment, var)
                pulls.append(TaskInput(slot(var, fragment.place), source, where))
            drafts.append((fragment, program, constants, pulls))
        kept = {slot(v, maker[v].place) for v in outputs if v in maker}
        kept |= {slot(v, None) for v in graph.inputs[graph.num_consts :]}
        frees, drops, self._shared = _last_uses(drafts, slots, kept)
        self._rows: list[tuple[Any, list[Task]]] = []
        row_of: dict[Any, int] = {}
        for fragment in fragments:
            key = threads[fragment.place]
            if key not in row_of:
                row_of[key] = len(self._rows)
                name = " ".join(f"{d.platform}:{d.id}" for d in key)
                self._rows.append((thread_of(key, name), []))
        number = {f.index: row_of[threads[f.place]] for f in fragments}
        tells: dict[int, set[int]] = defaultdict(set)
        for fragment in fragments:
            for before in fragment.after:
                if number[before] != number[fragment.index]:
                    tells[before].add(number[fragment.index])
        self._awaited = 0
        for fragment, program, constants, pulls in drafts:
            index, own = fragment.index, number[fragment.index]
            gives = any(v in outputs for v in fragment.results)
            awaited = gives or bool(fragment.graph.effects)
            self._awaited += awaited
            task = Task(
                index,
                fragment.place,
                program,
                constants,
                tuple(pulls),
                tuple(slot(v, fragment.place) for v in fragment.results),
                tuple(frees[index]),
                tuple(drops[index]),
                tuple(i for i in fragment.after if number[i] != own),
                tuple(sorted(tells[index])),
                awaited,
                _described(self.plan.name, fragment),
            )
            self._rows[own][1].append(task)
        # Handing fragments to threads would take longer than running them.
        if all(is_cheap(f.graph) for f in fragments):
            tasks = sorted(task for _, row in self._rows for task in row)
            self._rows = [(self._rows[0][0], tasks)] if tasks else []
        self._empty = [None] * (len(slots) - len(self.traced.arrays.in_avals))
        self._results = [
            a.array
            if isinstance(a, Literal)
            else consts[a]
            if a in consts
            else slot(a, maker[a].place if a in maker else None)
            for a in graph.outputs
        ]
        # Arguments, constants and what is returned before have other owners.
        self._passed_on = [
            i
            for i, a in enumerate(graph.outputs)
            if a not in maker or a in graph.outputs[:i]
        ]
        donated = self.traced.arrays.donated
        self._donated = [i for i, gives in enumerate(donated) if gives]

    @staticmethod
    def _threads(fragments: Sequence[Fragment]) -> dict[Place, tuple[Any, ...]]:
        """Returns the devices of each place's thread; places that overlap have one."""
        groups: list[dict[Any, None]] = []
        for place in {f.place: None for f in fragments}:
            joined = dict.fromkeys(place.devices)
            for group in [g for g in groups if not joined.keys().isdisjoint(g)]:
                groups.remove(group)
                joined = {**group, **joined}
            groups.append(joined)
        found = {}
        for place in {f.place: None for f in fragments}:
            (group,) = (g for g in groups if place.devices[0] in g)
            found[place] = tuple(sorted(group, key=lambda d: (d.platform, d.id)))
        return found

    def _compile(
        self, fragment: Fragment, consts: Mapping[Var, Array]
    ) -> tuple[Program, tuple[Array, ...], list[Var]]:
        """Compiles a fragment.

        Returns:
          The program, the captured values that it takes first, and its other inputs.
        """
        place, graph = fragment.place, fragment.graph
        divided = self.plan.meshes.get(place)
        if divided is not None:
            graph = divided.constrained(fragment)
        graph = optimized(graph, native=place.is_single and place.platform == "cpu")
        held = {v: consts[v] for v in graph.inputs if v in consts}
        small = {v: c for v, c in held.items() if is_small(c)}
        if small:
            graph = with_literals(graph, small)
        first = [v for v in held if v not in small]
        inputs = [v for v in graph.inputs if v not in held]
        graph = Graph([*first, *inputs], graph.nodes, graph.outputs, self.plan.name)
        lowered = LoweredProgram(
            graph,
            [type_on(v.aval, self._where(fragment, v), True) for v in graph.inputs],
            name=self.plan.name,
            module_name=f"jit_{self.plan.name}",
            out_shardings=[self._where(fragment, v).sharding for v in fragment.results],
        )
        # Locations name scopes and lines: equal programs may differ in them. Callbacks
        # are numbers in the text.
        key = (place, lowered.text_without_locations, *_callbacks(graph))
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = lowered.compile(self.traced.options)
        constants = tuple(copied(held[v], self._where(fragment, v)) for v in first)
        return program, constants, inputs

    def _where(self, fragment: Fragment, var: Var) -> Place:
        """Returns where a fragment has a value: on a mesh, perhaps in parts."""
        divided = self.plan.meshes.get(fragment.place)
        return fragment.place if divided is None else divided.place(var)

    # -- calls -------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[tuple[Any, Sequence[Task]]]:
        """The fragments of each thread."""
        return self._rows

    def run(
        self,
        arrays: Sequence[Array],
        rows: Sequence[tuple[Any, Sequence[Task]]] | None = None,
    ) -> list[Array]:
        """Runs the fragments on the leaves of the arguments.

        Args:
          arrays: the leaves.
          rows: to run instead of `rows`, with equal results.
        """
        if self._donated:
            require_donated_once(self.traced, arrays)
        values = run_step(
            [*arrays, *self._empty], rows or self._rows, self._shared, self._awaited
        )
        outs: list[Array] = [
            values[r] if isinstance(r, int) else r for r in self._results
        ]
        for i in self._passed_on:
            outs[i] = copied_array(outs[i])
        for i in self._donated:
            forget(arrays[i])
        return outs

    def runner(self, arg_types: Sequence[ArrayType]) -> Runner:
        """Returns the way to run it from the short path; see `Compiled.runner`."""
        unflatten = self.traced.arrays.out_tree.unflatten
        return lambda leaves, _: unflatten(self.run(leaves)), True


def _callbacks(graph: Graph) -> list[int]:
    """Returns the identities of the Python functions that a graph calls."""
    found: list[int] = []
    for node in graph.nodes:
        if node.primitive.name == PythonCallback.name:
            found.append(id(node.params["function"]))
        for _, inner in subgraphs(node.params):
            found += _callbacks(inner)
    return found


def _last_uses(
    drafts: Sequence[Any], slots: Mapping[Any, int], kept: set[int]
) -> tuple[dict[int, list[int]], dict[int, list[int]], list[tuple[int, int]]]:
    """Returns what each fragment frees and drops, and the slots that several read."""
    readers: dict[int, dict[Place, int]] = defaultdict(dict)
    for fragment, _, _, pulls in drafts:
        for pull in pulls:
            readers[pull.slot][fragment.place] = fragment.index
            if pull.source is not None:
                readers[pull.source].setdefault(fragment.place, fragment.index)
        for var in fragment.results:
            readers[slots[var, fragment.place]].setdefault(
                fragment.place, fragment.index
            )
    frees: dict[int, list[int]] = defaultdict(list)
    drops: dict[int, list[int]] = defaultdict(list)
    shared: list[tuple[int, int]] = []
    for slot, last in readers.items():
        if slot in kept:
            continue
        if len(last) == 1:
            ((_, index),) = last.items()
            frees[index].append(slot)
        else:
            shared.append((slot, len(last)))
            for index in last.values():
                drops[index].append(slot)
    return frees, drops, shared


def _described(name: str, fragment: Fragment) -> Callable[[], str]:
    def text() -> str:
        node = fragment.graph.nodes[0]
        return (
            f"fragment {fragment.index} of {name} on {place_name(fragment.place)}, "
            f"which begins with {node.primitive.name} ({describe(node.source)})"
        )

    return text


class DataflowFunction(JitFunction[P, R]):
    """A function cut over devices for each signature. Made by `dataflow.jit`."""

    def __init__(
        self,
        fun: Callable[P, R],
        given: JitOptions,
        devices: Any,
        strict: bool,
        schedule: Any,
        plan: Any,
        costs: Costs | None,
        divides: bool,
    ) -> None:
        super().__init__(fun, given, Cache("calls of dataflow.jit"))
        options = (devices, strict, schedule, plan, costs, divides)
        self._arguments = (fun, given, *options)
        scheduler = schedule_of(schedule)
        places = Places(devices, scheduler.device)
        self._planner = Planner(
            places, strict, scheduler, saved_plan(plan), costs, divides
        )

    def __repr__(self) -> str:
        return f"<dataflow.jit of {self._name}>"

    def _compiled(self, traced: Traced, arg_types: Sequence[ArrayType]) -> Any:
        key = (traced, *arg_types)

        def compile() -> Any:
            plan = self._planner.plan(traced.arrays, arg_types)
            made: Any
            if self._planner.costs is None:
                made = Partitioned(traced, plan)
            else:
                made = Replanned(
                    plan,
                    lambda plan: Partitioned(traced, plan),
                    lambda effort: self._planner.plan(traced.arrays, arg_types, effort),
                    self._planner.costs,
                )
            self._caches.compiled.keep(key, made, 0)
            return made

        return self._caches.compiled.once(key, compile, patient=True)

    @boundary
    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Returns the plan for arguments of these types; compiles nothing.

        If steps have run that were placed by cost, it is the plan of the next step.

        Args:
          *args: arrays or `ShapeDtypeStruct`s.
          **kwargs: likewise.
        """
        traced = self.trace(*args, **kwargs)
        types = traced.arrays.arg_types
        for (known, *others), made in list(self._caches.compiled.items()):
            running: Any = made
            if (
                isinstance(running, Replanned)
                and known.graph is traced.graph
                and others == types
            ):
                return running.plan
        return self._planner.plan(traced.arrays, types)

    @boundary
    def cut_graph(self, *args: Any, **kwargs: Any) -> CutGraph:
        """Returns the graph in fragments: what `make_graph` makes of the function.

        Args:
          *args: arrays or `ShapeDtypeStruct`s.
          **kwargs: likewise.
        """
        traced = self.trace(*args, **kwargs).arrays
        plan = self._planner.plan(traced, traced.arg_types)
        return CutGraph(
            plan.graph, traced.consts, traced.in_tree, traced.out_tree, plan
        )


@overload
def jit(
    fun: Callable[P, R],
    *,
    devices: Any = None,
    place: str | Costs = "scopes",
    schedule: str | Schedule | Callable[[Fragment], Any] = "1f1b",
    plan: Plan | SavedPlan | str | os.PathLike[str] | None = None,
    strict: bool = False,
    auto_sharding: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> DataflowFunction[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    devices: Any = None,
    place: str | Costs = "scopes",
    schedule: str | Schedule | Callable[[Fragment], Any] = "1f1b",
    plan: Plan | SavedPlan | str | os.PathLike[str] | None = None,
    strict: bool = False,
    auto_sharding: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], DataflowFunction[P, R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    devices: Any = None,
    place: str | Costs = "scopes",
    schedule: str | Schedule | Callable[[Fragment], Any] = "1f1b",
    plan: Plan | SavedPlan | str | os.PathLike[str] | None = None,
    strict: bool = False,
    auto_sharding: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compiles a function in parts, each for the device that its scope names.

    The function is traced as by `fxflow.jit`. Its graph is cut where values pass from
    one device to another (see `on` for how operations are placed), and each part, a
    *fragment*, is compiled as a program of its own. In a call each device runs its
    fragments in order, each as soon as its arguments are there, and devices overlap.
    Values are those of `fxflow.jit`, to rounding.

    Differentiate inside: `jit(grad(f))`. A cotangent is computed where its primal was.
    Called in another transformation, a dataflow function is one of `fxflow.jit`.

    Args:
      fun: function of arrays or pytrees of them. Left out, `jit` returns a decorator.
      devices: what stages and labels mean: a sequence of devices, over which stages are
        spread, or a mapping from labels and stages to devices, their names or meshes.
        None: this process's devices.
      place: where operations without a scope run. "scopes": by the places of what they
        take and give. "cost": where a step ends soonest, by a model of what operations
        and transfers take, which the times of steps correct. A scope is a constraint; a
        part of a device's name leaves the devices that it fits. `Costs`: the same, by
        this model.
      schedule: in which order devices run the rounds of a loop (`scan`) whose body has
        scopes of several places. Such a loop is written out, so that its rounds
        overlap: micro-batches of a pipeline, say. "1f1b", "gpipe", "interleaved",
        "zb-h1", "zb-v", "breadth", or "search" for the shortest that is found; a table
        of actions, a `Schedule`; or a function from a `Fragment` to a sort key: the
        smallest goes first among those that can start. Interleaved schedules, those in
        the shape of a V and tables also say which device each stage runs on.
      plan: what runs where and in which order, instead of scopes and schedule: a plan
        of this function, a `SavedPlan` or the path of one. It is for arguments of the
        types for which it was made.
      strict: whether a scope that cannot be followed is an error, and a place that a
        path leaves and comes back to, too. Otherwise the plan notes it.
      auto_sharding: whether what is placed on a mesh (`on(mesh)`) is divided over it,
        as `auto_sharding` chooses. Otherwise each of its devices has all of it.
      static_argnums: see `fxflow.jit`.
      static_argnames: see `fxflow.jit`.
      donate_argnums: see `fxflow.jit`.
      donate_argnames: see `fxflow.jit`.
      compiler_options: see `fxflow.jit`.

    Returns:
      A function of the same arguments. Its results stay where they are computed. Its
      method `plan` returns the `Plan` for arguments of given types.

    Raises:
      PlacementError: a scope names no device.
      ArgumentError: an option names no parameter, or an argument is not an array.

    Example:
      >>> from fxflow.dataflow import on
      >>> @jit
      ... def f(x):
      ...     with on("/device:cpu:1"):
      ...         y = fnp.sin(x)
      ...     with on("/device:cpu:0"):
      ...         return y * 2
      >>> f(fnp.zeros(2))
      Array([0., 0.], dtype=float32)
    """
    given = JitOptions(
        as_indices(static_argnums, "static_argnums"),
        as_names(static_argnames, "static_argnames"),
        as_indices(donate_argnums, "donate_argnums"),
        as_names(donate_argnames, "donate_argnames"),
        compiler_options=dict(compiler_options) if compiler_options else None,
    )
    if not isinstance(strict, bool):
        raise ArgumentError(f"dataflow.jit: strict is a bool, got {strict!r}")

    if not isinstance(auto_sharding, bool):
        raise ArgumentError(
            f"dataflow.jit: auto_sharding is a bool, got {auto_sharding!r}"
        )
    if not isinstance(place, Costs) and place not in ("scopes", "cost"):
        raise ArgumentError(
            f"dataflow.jit: place is 'scopes', 'cost' or Costs, got {place!r}"
        )
    costs = place if isinstance(place, Costs) else Costs() if place == "cost" else None

    def decorate(function: Callable[..., Any]) -> DataflowFunction[..., Any]:
        require_callable(function, "dataflow.jit")
        return DataflowFunction(
            function, given, devices, strict, schedule, plan, costs, auto_sharding
        )

    return decorate if fun is None else decorate(fun)
