"""Eager execution: operations run at once.

A *plan* runs one operation, or one whole library function (`library`), on arguments of
given types and placements. On the CPU a small plan is NumPy: host memory is device
memory there, and NumPy's rule of an operation gives what XLA gives, in a microsecond
and without compiling. Any other plan is a compiled program. `runs_on_host` decides.
"""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, cast

import numpy as np

from fxflow._config import config
from fxflow.core import caches, source
from fxflow.core.arrays import (
    Array,
    ArrayType,
    Aval,
    Shape,
    as_array,
    dtypes,
    type_on,
)
from fxflow.core.arrays.array import host_of
from fxflow.core.arrays.aval import common_placement
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Literal, Node, Var, subgraphs, with_graphs
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.trace import State, Trace, Tracer, leaked, state
from fxflow.core.runtime.execute import Program, check_finite, compile_graph
from fxflow.devices.meshes import explicit
from fxflow.devices.process import forked_error, on_fork

# Above this many bytes in and out of one operation, XLA's threads and fused loops win
# over NumPy even though the call costs more (measured on 2 cores; see docs/design).
HOST_BYTES = 1 << 18
# Bytes of programs that are kept for all eager operations together.
PROGRAM_BYTES = 128 << 20
# Bytes of a plan without its program, about.
PLAN_BYTES = 4096
PLANS = caches.Room(64 << 20)
"""What the plans of all eager operations and functions take together."""

Plan = Callable[..., Any]


class EvalTrace(Trace):
    """Runs each operation at once.

    Attributes:
      plans: how, for each operation and types and placements of its arguments.
    """

    __slots__ = ("plans",)

    def __init__(self) -> None:
        self.plans: Cache[Any, Plan] = Cache("eager operations", room=PLANS)

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Runs one operation; see `Trace.process`."""
        arrays = [a if type(a) is Array else _concrete(a) for a in args]
        # One flat tuple: types are interned, so hashing it costs little.
        key = (primitive, *[a._type for a in arrays], *params.items())
        plan = self.plans.get(key)
        if plan is None:
            plan = self._plan(key, primitive, [a._type for a in arrays], params)
        return plan(*arrays)

    def _plan(
        self,
        key: tuple[Any, ...],
        primitive: Primitive,
        arg_types: list[ArrayType],
        params: dict[str, Any],
    ) -> Plan:
        """Returns a plan that is not in `plans`, and keeps it where it may be kept."""
        if not primitive.keeps_plan:
            return primitive_plan(primitive, arg_types, params)
        graphs = subgraphs(params)
        if not graphs:
            plan = primitive_plan(primitive, arg_types, params)
            return self.plans.keep(key, plan, PLAN_BYTES)
        # Kept by a graph for as long as all live: parameters may lead to arrays of the
        # user's (the rule of a derivative closes over some), which must go when the
        # graphs do. For the same reason the plan has copies, which lead to no memo.
        params = primitive.planned(params)
        (_, owner), *others = graphs
        key = (self, _programs.made, primitive, *arg_types, *_weakly(params))
        known = owner.memo.get(key)
        if known is None:
            copies = with_graphs(params, Graph.replace)
            plan = primitive_plan(primitive, arg_types, copies)
            of = weakref.ref(owner)

            def forget(_: Any) -> None:
                graph = of()
                if graph is not None:
                    graph.memo.pop(key, None)

            refs = [weakref.ref(g, forget) for _, g in others if g is not owner]
            known = owner.memo[key] = plan, refs
        plan, _ = known
        return plan


EVAL = EvalTrace()
"""The interpreter of threads without option overrides. Fast paths ask for it: in a
thread that overrides an option another one is current: everything goes the long way."""
State.trace = EVAL


class _Overridden(EvalTrace):
    """Runs each operation under the options that hold for the caller."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Runs one operation; see `Trace.process`."""
        given = options()
        trace = _overriding.get(given)
        if trace is None:
            trace = _overriding.setdefault(given, EvalTrace())
        return trace.process(primitive, args, params)


OVERRIDDEN = _Overridden()


_OPTIONS = (
    "x64",
    "explicit_x64_dtypes",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "default_matmul_precision",
    "eager",
    "disable_jit",
    "debug_nans",
    "debug_infs",
    "passes",
)
options_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*_OPTIONS)
"""Returns what `config` has of the options that plans and traces depend on."""


def options() -> tuple[Any, ...]:
    """Returns the options that plans depend on, and whether layouts are open."""
    return options_of(config), state.open_layouts


_in_force = [options()]
_overriding: dict[tuple[Any, ...], EvalTrace] = {}


def interpreter() -> EvalTrace:
    """Returns what runs operations at once under the options in force here."""
    if _FORKED:
        return _FORKED[0]
    return OVERRIDDEN if config.overridden() else EVAL


class open_layouts:
    """Has types in a `with` block leave open how results are divided (`spmd/layouts`).

    Args:
      wanted: None: the block changes nothing; False: types say it again.
    """

    __slots__ = ("_before", "_wanted")

    def __init__(self, wanted: Any) -> None:
        known = explicit.used and wanted is not None
        self._wanted = wanted is not False if known else None

    def __enter__(self) -> None:
        self._before = state.open_layouts, state.trace
        if self._wanted is not None:
            state.open_layouts = self._wanted
            # What was planned for eager operations says how results are divided.
            if state.trace is EVAL:
                state.trace = OVERRIDDEN

    def __exit__(self, *exc: object) -> None:
        state.open_layouts, state.trace = self._before


class _ForkedTrace(EvalTrace):
    """Refuses to work, in a process whose runtime has no threads; see `on_fork`."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Raises."""
        raise forked_error()


_FORKED: list[_ForkedTrace] = []


def _refuse() -> None:
    # Every fast path asks whether `EVAL` is current.
    _FORKED.append(_ForkedTrace())
    State.trace = state.trace = _FORKED[0]


on_fork(_refuse)


def _options_changed(_: Any) -> None:
    if not config.overridden() and _in_force[0] != options():
        _in_force[0] = options()
        _overriding.clear()
        caches.options_changed()
    current = interpreter()
    if isinstance(state.trace, EvalTrace):
        state.trace = current
    else:
        _run_by(state.trace, current)


def _run_by(trace: Any, current: EvalTrace) -> None:
    """Replaces the eager interpreter below the transformations in progress."""
    while trace is not None and not isinstance(trace, EvalTrace):
        parent = getattr(trace, "parent", None)
        if isinstance(parent, EvalTrace):
            trace.parent = current
            if hasattr(trace, "tape"):
                trace.tape.parent = current
        trace = parent


for _name in _OPTIONS:
    config.on_change(_name, _options_changed)


def _begin_anew() -> None:
    """Resets this thread's interpreter and named axes: no transformation is left."""
    overridden = bool(_FORKED) or options() != _in_force[0]
    state.trace = interpreter() if overridden else EVAL
    state.axes, state.tracked, state.spmd = (), frozenset(), ()
    state.open_layouts, state.scope, state.source = False, (), None


source.on_interrupt(_begin_anew)


def _weakly(params: dict[str, Any]) -> list[Any]:
    """Returns parameters as a part of a key that does not keep graphs alive."""

    def part(value: Any) -> Any:
        if isinstance(value, Graph):
            return weakref.ref(value)
        return tuple(map(part, value)) if type(value) is tuple else value

    return [(name, part(value)) for name, value in params.items()]


def _concrete(value: Any) -> Array:
    if isinstance(value, Tracer):
        raise leaked(value)
    return as_array(value)


# -- NumPy or XLA ----------------------------------------------------------------------


def runs_on_host(graph: Graph, placement: Any) -> bool:
    """Returns whether NumPy runs this graph when eager.

    Args:
      graph: of an operation or a library function.
      placement: where its arguments are.
    """
    if not placement.is_host or config.eager != "auto":
        return False
    for node in graph.nodes:
        primitive = node.primitive
        if primitive.inlines and runs_on_host(node.params["graph"], placement):
            continue
        if node.effects or not primitive.runs_on_host(node):
            return False
        if primitive.is_view:
            continue
        moved = sum(a.aval.nbytes for a in (*node.inputs, *node.outputs))
        if moved > (primitive.host_bytes or HOST_BYTES):
            return False
    return True


class _HostTypes(Cache[tuple[ArrayType, Shape], ArrayType | None]):
    """Types and placements of what NumPy makes of a host array without a plan.

    From the type of the array and the new shape; None where it is not NumPy that runs
    operations. For functions that are quicker than a plan: indexing and reshaping,
    whose results keep the dtype.
    """

    __slots__ = ()

    def __missing__(self, key: tuple[ArrayType, Shape]) -> ArrayType | None:
        source, shape = key
        aval = source.aval
        if (
            not source.placement.is_host
            or config.eager != "auto"
            or dtypes.is_key(aval.dtype)
        ):
            return None
        aval = Aval(shape, aval.dtype, aval.weak_type)
        return self.keep(key, type_on(aval, source.placement, source.committed))


host_types: _HostTypes = _HostTypes("types of host data")


def primitive_plan(
    primitive: Primitive,
    arg_types: Sequence[ArrayType],
    params: dict[str, Any],
    name: str = "",
) -> Plan:
    """Returns a plan of one operation.

    Args:
      primitive: the operation.
      arg_types: of the arguments.
      params: as bound.
      name: for messages and profiles, if it is not the operation's.
    """
    # Copies and callbacks need neither NumPy nor a program.
    own = primitive.plan(arg_types, params)
    if own is not None:
        return own
    inputs = [Var(p.aval) for p in arg_types]
    outputs = [Var(a) for a in primitive.out_avals([p.aval for p in arg_types], params)]
    node = Node(primitive, inputs, outputs, params)
    name = name or primitive.name
    graph = Graph(inputs, [node], outputs, name)
    return graph_plan(graph, arg_types, name, single=not primitive.multi)


def plans_of(function: Any) -> Cache[Any, Plan] | None:
    """Returns the plans of a library function; None for any other function."""
    return getattr(function, "plans", None)


def graph_plan(
    graph: Graph,
    arg_types: Sequence[ArrayType],
    name: str,
    single: bool = False,
    quick: bool = False,
) -> Plan:
    """Returns a function from arrays (one for each input) to the list of results.

    Args:
      graph: to run.
      arg_types: of the arguments.
      name: for messages and profiles.
      single: whether it returns the only result itself.
      quick: whether a program for few numbers is compiled fast, to run slower.
    """
    placement, committed = common_placement(arg_types, name, graph.mesh)
    check = config.debug_nans or config.debug_infs
    plan: Plan
    if runs_on_host(graph, placement):
        plan = host_plan(graph, placement, committed, single and not check)
        if single and not check:
            return plan
    else:
        for rewrite in _rewrites:
            graph = rewrite(graph, placement)
        plan = _CompiledPlan(graph, arg_types, name, quick)

    def checked(*arrays: Array) -> Any:
        outs: list[Array] = plan(*arrays)
        if check:
            # That of a node of a graph, or of the derivative of an operation.
            at = state.source
            line = source.describe(at) if at is not None else source.user_line()
            check_finite(f"{name} at {line}", outs)
        return outs[0] if single else outs

    return checked if check or single else plan


class _Programs:
    """The programs of plans, the least recently used first.

    A plan is not kept alive by having one: it goes with the graph or the cache that it
    belongs to.

    Attributes:
      made: how often all were dropped: what was made before holds no more.
      nbytes: that they take together.
    """

    def __init__(self) -> None:
        self.made, self.nbytes = 0, 0
        self._plans: OrderedDict[weakref.ref[_CompiledPlan], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._plans)

    def enter(self, plan: _CompiledPlan, nbytes: int) -> weakref.ref[_CompiledPlan]:
        """Adds one; those that were used least recently go if there are too many."""
        entered = weakref.ref(plan, self.drop)
        self._plans[entered] = nbytes
        self.nbytes += nbytes
        while self.nbytes > PROGRAM_BYTES and len(self._plans) > 1:
            try:
                ref, size = self._plans.popitem(last=False)
            except KeyError:  # other threads have let go of all
                break
            self.nbytes -= size
            old = ref()
            if old is not None:
                old.program = None
        return entered

    def used(self, ref: weakref.ref[_CompiledPlan]) -> None:
        """Notes a use: a compilation costs far more than that."""
        with suppress(KeyError):  # another thread has just let go of it
            self._plans.move_to_end(ref)

    def drop(self, ref: weakref.ref[_CompiledPlan]) -> None:
        """Takes one out, if it is there."""
        self.nbytes -= self._plans.pop(ref, 0)

    def clear(self) -> None:
        """Takes all out."""
        self.made += 1
        self.nbytes = 0
        self._plans.clear()


_programs = _Programs()
caches.on_clear(_programs.clear)


_rewrites: list[Callable[[Graph, Any], Graph]] = []


def on_compile(rewrite: Callable[[Graph, Any], Graph]) -> None:
    """Has a function rewrite the graphs of plans before they are compiled.

    Args:
      rewrite: of a graph and the placement where it will run; returns one of the same
        inputs and outputs.
    """
    _rewrites.append(rewrite)


class _CompiledPlan:
    """A plan that is a compiled program.

    If there are many, their graphs alone are kept: their programs are compiled, or read
    from the disk, when they are needed again.
    """

    __slots__ = (
        "__weakref__",
        "_arg_types",
        "_graph",
        "_name",
        "_quick",
        "program",
        "ref",
    )

    def __init__(
        self, graph: Graph, arg_types: Sequence[ArrayType], name: str, quick: bool
    ) -> None:
        self._graph, self._arg_types, self._name = graph, arg_types, name
        self._quick = quick
        self.program: Program | None = self._compile()

    def _compile(self) -> Program:
        program = compile_graph(
            self._graph, self._arg_types, name=self._name, quick=self._quick
        )
        self.program = program
        self.ref = _programs.enter(self, program.nbytes)
        return program

    def __call__(self, *arrays: Array) -> list[Array]:
        program = self.program
        if program is None:
            program = self._compile()
        else:
            _programs.used(self.ref)
        return program(arrays)


# -- NumPy -----------------------------------------------------------------------------


class _Quiet(threading.local):
    """Runs NumPy without floating-point warnings, as XLA has none.

    A context of its own for each thread: NumPy keeps the setting in a context variable,
    and entering a prepared context costs a tenth of `np.errstate`.
    """

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


quiet: _Quiet = _Quiet()


def host_plan(
    graph: Graph, placement: Any, committed: bool, single: bool = False
) -> Plan:
    """Returns a function that runs a graph with NumPy.

    It is written out as Python source, since interpreting the graph would cost more
    than the operations themselves.

    Args:
      graph: of operations with a NumPy rule.
      placement: the host's.
      committed: whether the results stay there.
      single: whether it returns the only result itself, not a list.
    """
    scope: dict[str, Any] = {
        "host_of": host_of,
        "new": object.__new__,
        "Array": Array,
        "asarray": np.asarray,
        "compact": compact,
        "quiet": quiet,
    }
    count = range(len(graph.inputs))
    names: dict[Any, str] = {var: f"h{i}" for i, var in enumerate(graph.inputs)}
    lines = []
    # Results of NumPy have `_host`; if one operand has not, all are asked for it.
    if names:
        fast = "; ".join(f"h{i} = a{i}._host" for i in count)
        slow = "; ".join(f"h{i} = host_of(a{i})" for i in count)
        lines += ["try:", f"  {fast}", "except AttributeError:", f"  {slow}"]

    def read(atom: Any) -> str:
        if type(atom) is Literal:
            name = f"c{len(scope)}"
            scope[name] = atom.value
            return name
        return names[atom]

    views: set[Var] = set()
    for n, node in enumerate(graph.nodes):
        primitive = node.primitive
        scope[f"f{n}"], noisy, constants, order = primitive.host_call(node)
        operands = [read(node.inputs[i]) for i in order or range(len(node.inputs))]
        for i, constant in enumerate(constants):
            scope[f"k{n}_{i}"] = constant
            operands.append(f"k{n}_{i}")
        call = f"f{n}({', '.join(operands)})"
        if noisy:
            call = f"quiet.run({', '.join([f'f{n}', *operands])})"
        targets = [f"v{n}_{i}" for i in range(len(node.outputs))]
        names.update(zip(node.outputs, targets, strict=True))
        left = ", ".join(targets) + ("," if primitive.multi else "")
        lines.append(f"{left} = {call}" if targets else call)
        if primitive.is_view:
            views.update(node.outputs)
    results = []
    for i, atom in enumerate(graph.outputs):
        scope[f"p{i}"] = type_on(atom.aval, placement, committed)
        value = read(atom)
        # NumPy's functions return scalars where results are 0-d.
        if type(atom) is Literal or not atom.aval.ndim:
            value = f"asarray({value})"
        if type(atom) is Var and atom in views:
            value = f"compact({value})"
        lines += [
            f"r{i} = new(Array)",
            f"r{i}._host = {value}",
            f"r{i}._type = p{i}",
        ]
        results.append(f"r{i}")
    head = ", ".join(f"a{i}" for i in count)
    body = "\n".join("  " + line for line in lines)
    listed = ", ".join(results)
    result = listed if single else f"[{listed}]"
    code = f"def plan({head}):\n{body}\n  return {result}\n"
    # By this file name its frames count as our own (`source.is_internal`).
    exec(compile(code, f"<fxflow host plan of {graph.name}>", "exec"), scope)
    return cast(Plan, scope["plan"])


def compact(view: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copies a small view of a large array, which it would keep alive."""
    base = view.base
    if (
        isinstance(base, np.ndarray)
        and base.nbytes > 4096
        and base.nbytes > 4 * view.nbytes
    ):
        return view.copy()
    return view
