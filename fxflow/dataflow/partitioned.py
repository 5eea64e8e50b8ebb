"""`dataflow.jit`: a function cut over devices, once for each signature."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar, overload

from fxflow.core.arrays import Array, ArrayType, as_array, typeof
from fxflow.core.arrays.array import forget, release
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Literal, Var
from fxflow.core.ir.references import Ref
from fxflow.dataflow.actions import Schedule
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.cutting import Fragment
from fxflow.dataflow.donation import donations, require_reusable
from fxflow.dataflow.lowering import drafted, require_movable
from fxflow.dataflow.measuring import Times, measured_timeline, timed
from fxflow.dataflow.placing import Places
from fxflow.dataflow.plan import Plan, saved_plan
from fxflow.dataflow.planning import Planner
from fxflow.dataflow.replanning import Replanned
from fxflow.dataflow.rows import Rows
from fxflow.dataflow.runner import Launch, copied, in_lanes, run_step
from fxflow.dataflow.saved import SavedPlan
from fxflow.dataflow.schedules import schedule_of
from fxflow.dataflow.tasks.devices import HERE, cluster_among
from fxflow.dataflow.tasks.remote import RemoteArray
from fxflow.dataflow.texts import CutGraph
from fxflow.dataflow.timelines import Timeline
from fxflow.errors import ArgumentError
from fxflow.lax.pytree_transfer import block_until_ready
from fxflow.lax.transfer import copied as copied_array
from fxflow.transforms.arguments import (
    Bound,
    as_indices,
    as_names,
)
from fxflow.transforms.jit import JitFunction, JitOptions
from fxflow.transforms.stages import Runner, Traced, require_donated_once

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

    traced: Traced
    plan: Plan

    def __init__(self, traced: Traced, plan: Plan) -> None:
        self.traced, self.plan = traced, plan
        self._consts = [as_array(c) for c in traced.arrays.consts]
        self._prepare(plan.graph)

    # -- preparation -------------------------------------------------------------------

    def _prepare(self, graph: Graph) -> None:
        """Gives each value at each place a slot, and each fragment a row."""
        consts = dict(zip(graph.inputs, self._consts, strict=False))
        donated = self.traced.arrays.donated
        owned = donations(self.plan, donated)
        lowered, drafts = drafted(self.plan, consts, owned)
        options = self.traced.options
        compiled = [found.program.compile(options) for found in lowered]
        count = len(graph.inputs) - graph.num_consts
        rows = Rows(graph, drafts, [None] * count)
        part, places = rows.parts[HERE], rows.places[HERE]
        self._programs = compiled
        self._shared = [(slot, n) for slot, n in part.shared]
        outputs = {a for a in graph.outputs if type(a) is Var}
        launches = []
        for row, draft in zip(part.fragments, drafts, strict=True):
            fragment, first = draft.fragment, len(draft.constants)
            gives = not outputs.isdisjoint(fragment.results)
            constants = zip(draft.constants, draft.wheres[:first], strict=True)
            launches.append(
                Launch(
                    row.number,
                    fragment.place,
                    compiled[row.program],
                    tuple(copied(consts[v], where) for v, where in constants),
                    row,
                    tuple(draft.wheres[first:]),
                    gives or bool(fragment.graph.effects),
                    draft.text,
                    tuple(row.needs),
                    tuple(row.tells),
                    tuple(row.drops),
                )
            )
        self._awaited = sum(launch.awaited for launch in launches)
        self._rows = in_lanes(part, places, launches)
        # Handing fragments to threads would take longer than running them.
        if part.cheap and launches:
            self._rows = [(self._rows[0][0], launches)]
        self._empty = [None] * (part.slots - count)
        self._results = [
            a.array
            if isinstance(a, Literal)
            else consts[a]
            if a in consts
            else rows.slots[a, rows.origin(a)]
            for a in graph.outputs
        ]
        # Arguments, constants and what is returned before have other owners.
        made = {v for draft in drafts for v in draft.fragment.results}
        self._passed_on = [
            i
            for i, a in enumerate(graph.outputs)
            if a not in made or a in graph.outputs[:i]
        ]
        self._donated = [i for i, gives in enumerate(donated) if gives]

    # -- calls -------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[tuple[Any, Sequence[Launch]]]:
        """The fragments of each thread."""
        return self._rows

    def timed(self, arrays: Sequence[Array]) -> tuple[list[Array], Times]:
        """Runs the fragments; returns the results, and when each fragment ran.

        Args:
          arrays: the leaves of the arguments.
        """
        times: Times = {}
        begun = time.perf_counter()
        rows = [(thread, timed(row, times, begun)) for thread, row in self._rows]
        outs = self.run(arrays, rows)
        # A thread may still be at a fragment for which no result waits.
        block_until_ready(outs)
        return outs, times

    def run(
        self,
        arrays: Sequence[Array],
        rows: Sequence[tuple[Any, Sequence[Launch]]] | None = None,
    ) -> list[Array]:
        """Runs the fragments on the leaves of the arguments.

        Args:
          arrays: the leaves.
          rows: the fragments of each thread, if not those that were compiled.
        """
        if self._donated:
            require_donated_once(self.traced, arrays)
            for i in self._donated:
                release(arrays[i])
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


class DataflowFunction(JitFunction[P, R]):
    """A function cut over devices for each signature. Made by `dataflow.jit`."""

    _kinds = (Array, Ref, RemoteArray)

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

        def make(plan: Plan) -> Any:
            given = [t.placement for t in arg_types]
            cluster = cluster_among([*plan.places, *given])
            if cluster is None:
                return Partitioned(traced, plan)
            cluster.used_by(self)
            return cluster.program(traced, plan, arg_types)

        def compile() -> Any:
            require_reusable(traced.arrays)
            self._require_one_cluster(traced, arg_types)
            plan = self._plan(traced.arrays, arg_types)
            made: Any
            if self._planner.costs is None:
                made = make(plan)
            else:
                made = Replanned(
                    plan,
                    make,
                    lambda effort: self._planner.plan(traced.arrays, arg_types, effort),
                    self._planner.costs,
                )
            self._caches.compiled.keep(key, made, 0)
            return made

        return self._caches.compiled.once(key, compile, patient=True)

    def _require_one_cluster(
        self, traced: Traced, arg_types: Sequence[ArrayType]
    ) -> None:
        """Checks that handles are of the cluster in which the function runs."""
        cluster, what = self._planner.places.cluster, "its devices are"
        for label, kind in zip(traced.arrays.labels, arg_types, strict=True):
            found = cluster_among([kind.placement])
            if None is not found is not cluster is not None:
                raise ArgumentError(
                    f"{self._name}: argument {label} is {kind.aval} on "
                    f"{kind.placement} of another cluster than {what} of: fetch it "
                    "(dataflow.fetch), and pass the value"
                )
            if cluster is None and found is not None:
                cluster, what = found, f"argument {label} is"

    def lower(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises an error: there is a program for each fragment, not one.

        Raises:
          ArgumentError: always.
        """
        raise ArgumentError(
            f"dataflow.jit of {self._name} has a program for each fragment, so it "
            "cannot be lowered to one; plan(...) returns the fragments, and "
            "fxflow.jit(f).lower(...) lowers the whole function for one place"
        )

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
        return self._plan(traced.arrays, types)

    def _plan(self, traced: Traced, arg_types: Sequence[ArrayType]) -> Plan:
        plan = self._planner.plan(traced, arg_types)
        require_movable(plan)
        return plan

    @boundary
    def measure(self, *args: Any, **kwargs: Any) -> Timeline:
        """Runs a step, and returns when each fragment ran.

        Each device waits for the end of a fragment before it starts the next one. The
        first call compiles the fragments, before the clock starts.

        Args:
          *args: of the function; what is donated is used up.
          **kwargs: likewise.

        Returns:
          A timeline, for `Plan.to_svg` and `Plan.save_trace`. The results of the step
          are dropped.

        Raises:
          ArgumentError: the function takes references, which the step would change.
        """
        bound = Bound(self, args, kwargs)
        traced = self._traced(bound, [typeof(leaf) for leaf in bound.leaves])
        if traced.call is not None:
            raise ArgumentError(
                f"measure: {self._name} takes references, which a step changes; "
                "measure a function of arrays"
            )
        arrays = self._arrays(bound)
        made = self._compiled(traced, [array._type for array in arrays])
        running = made.current if isinstance(made, Replanned) else made
        _, times = running.timed(arrays)
        return measured_timeline(running.plan, times)

    @boundary
    def cut_graph(self, *args: Any, **kwargs: Any) -> CutGraph:
        """Returns the graph in fragments: what `make_graph` makes of the function.

        Args:
          *args: arrays or `ShapeDtypeStruct`s.
          **kwargs: likewise.
        """
        traced = self.trace(*args, **kwargs).arrays
        plan = self._plan(traced, traced.arg_types)
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
      devices: what stages and labels mean: a sequence of devices, their names or
        meshes, over which stages are spread, or a mapping from labels and stages to
        these; or a cluster, over the devices of whose tasks stages are spread. None:
        this process's devices.
      place: where operations without a scope run. "scopes": by the places of what they
        take and give. "cost": where a step ends soonest, by a model of what operations
        and transfers take, which the times of steps correct. A scope is a constraint; a
        part of a device's name leaves the devices that it fits. `Costs`: the same, by
        this model.
      schedule: in which order devices run the rounds of a loop (`scan`) whose body has
        scopes of several places. Such a loop is written out, so that its rounds
        overlap: microbatches of a pipeline, say. "1f1b", "gpipe", "interleaved",
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
    if plan is not None and (place != "scopes" or schedule != "1f1b"):
        name = "place" if place != "scopes" else "schedule"
        raise ArgumentError(
            f"dataflow.jit: the plan says what runs where and in which order: give "
            f"plan= or {name}=, not both"
        )
    costs = place if isinstance(place, Costs) else Costs() if place == "cost" else None

    def decorate(function: Callable[..., Any]) -> DataflowFunction[..., Any]:
        require_callable(function, "dataflow.jit")
        return DataflowFunction(
            function, given, devices, strict, schedule, plan, costs, auto_sharding
        )

    return decorate if fun is None else decorate(fun)
