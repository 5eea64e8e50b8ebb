"""The stages of compilation: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any, ClassVar

from fxflow.core import tree
from fxflow.core.arrays import (
    AbstractRef,
    Array,
    ArrayType,
    Aval,
    Shape,
    as_array,
    buffer_of,
    dtypes,
    is_arraylike,
    type_on,
)
from fxflow.core.arrays.array import forget, not_an_array, release
from fxflow.core.arrays.aval import struct_of
from fxflow.core.boundary import guard_methods
from fxflow.core.ir.graph import Graph, Node, any_node, has_refs, used_inputs
from fxflow.core.ir.higher_order import graph_cost
from fxflow.core.ir.references import Ref
from fxflow.core.ir.staging import with_literals
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.execute import LoweredProgram, Program, buffer_at
from fxflow.core.source import warn
from fxflow.core.spmd.partition import mesh_among
from fxflow.devices import buffers
from fxflow.devices.clients import TRITON, runs_triton
from fxflow.devices.compile import OptionValue, hlo_computation, mlir_module
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, CompileError, DonationError
from fxflow.transforms import memory_reports
from fxflow.transforms.copies import ArgumentCopy, argument_copies
from fxflow.transforms.memory_reports import SMALL_PROGRAM
from fxflow.transforms.passes.pipeline import optimized, with_compiled_parts
from fxflow.transforms.ref_calls import RefCall

# XLA's options by name.
CompilerOptions = Mapping[str, OptionValue]


@dataclass(frozen=True)
class ArgInfo:
    """What a program knows of one leaf of its arguments.

    Attributes:
      shape: lengths of the axes.
      dtype: dtype of the elements.
      donated: whether the call takes the array's memory.
    """

    shape: Shape
    dtype: Any
    donated: bool


@guard_methods
@dataclass(eq=False, repr=False, frozen=True)
class Traced:
    """A function traced for arguments of given types.

    Attributes:
      graph: the dataflow graph; its first inputs are captured values.
      consts: the captured values.
      in_tree: structure of `(args, kwargs)` without the static ones.
      out_tree: structure of the result.
      name: of the function.
      labels_of: gives the names of the leaves of the arguments, which messages use.
      donated: which leaves are donated.
      keep_unused: whether the program takes arguments that it does not need.
      in_shardings: where each leaf of the arguments is to be, or None.
      out_shardings: where each leaf of the result is to be, or None.
      reads_mesh: whether it depends on the current mesh.
      call: how it is called with contents in place of references; None if it has none.
      arrays: the same as a function of arrays; itself if it has no references.
    """

    graph: Graph
    consts: list[Any]
    in_tree: Any
    out_tree: Any
    name: str
    labels_of: Callable[[], list[str]]
    donated: tuple[bool, ...]
    keep_unused: bool
    options: Mapping[str, Any] | None
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    reads_mesh: bool = False
    _called_inside: ClassVar[tuple[str, ...]] = ("__init__",)

    @cached_property
    def call(self) -> RefCall | None:
        """See the class."""
        if not has_refs(self.graph.in_avals):
            return None
        return RefCall(self.graph, self.consts, self.name, self.labels)

    @property
    def arrays(self) -> Traced:
        """See the class."""
        # Not remembered where it is this: only the garbage collector would free it.
        return self if self.call is None else self._of_contents

    @cached_property
    def _of_contents(self) -> Traced:
        call = self.call
        assert call is not None
        count = len(call.captured)
        given = zip(self.donated, self.in_avals, strict=True)
        donated = [give and type(aval) is not AbstractRef for give, aval in given]
        donated += [False] * count
        for i in call.written:
            donated[i] = True
        return Traced(
            call.graph,
            call.consts,
            tree.structure(((0,) * len(donated), {})),
            tree.structure([0] * len(call.graph.outputs)),
            name=self.name,
            labels_of=lambda: call.labels,
            donated=tuple(donated),
            keep_unused=self.keep_unused,
            options=self.options,
            in_shardings=(*self.in_shardings, *[None] * count),
            out_shardings=(*[None] * len(call.written), *self.out_shardings),
            reads_mesh=self.reads_mesh,
        )

    def with_shardings(self, shardings: Sequence[Any]) -> Traced:
        """Returns the same for arguments that are somewhere.

        Args:
          shardings: where each leaf is, or None; `in_shardings` come first.
        """
        # The cached trace itself, which keeps its identity as a key of programs.
        if not any(shardings):
            return self
        pairs = zip(self.in_shardings, shardings, strict=True)
        return replace(self, in_shardings=tuple(own or given for own, given in pairs))

    @property
    def labels(self) -> list[str]:
        """Names of the leaves of the arguments."""
        return self.labels_of()

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        """Types of the leaves of the arguments."""
        return tuple(self.graph.in_avals[self.graph.num_consts :])

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """Types of the leaves of the result."""
        return tuple(self.graph.out_avals)

    @property
    def arg_types(self) -> list[ArrayType]:
        """Types and placements of the leaves of the arguments."""
        return [
            type_on(aval)
            if where is None
            else type_on(aval, buffers.placement_for(where), True)
            for aval, where in zip(self.in_avals, self.in_shardings, strict=True)
        ]

    @property
    def args_info(self) -> Any:
        """The arguments with an `ArgInfo` for each leaf."""
        return self.in_tree.unflatten(
            [
                ArgInfo(aval.shape, aval.dtype, donated)
                for aval, donated in zip(self.in_avals, self.donated, strict=True)
            ]
        )

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which leaves of the arguments are donated."""
        return tuple(i for i, donated in enumerate(self.donated) if donated)

    @property
    def out_info(self) -> Any:
        """The result with each leaf's shape and dtype."""
        return self.out_tree.unflatten([struct_of(a) for a in self.graph.out_avals])

    def lower(self, *, platforms: Sequence[str] | None = None) -> Lowered:
        """Writes the program as StableHLO.

        Args:
          platforms: one of `("cpu",)`, `("gpu",)`, `("tpu",)`; None is that of the
            default device.

        Returns:
          The lowered program.

        Raises:
          ArgumentError: several platforms, or a captured value is traced.
          DonationError: a donated leaf cannot be reused.
        """
        arg_types = self.arrays.arg_types
        if platforms is not None:
            if isinstance(platforms, str) or len(platforms) != 1:
                raise ArgumentError(
                    "lower takes one platform, as in platforms=('tpu',), got "
                    f"{platforms!r}"
                )
            (platform,) = platforms
            if platform not in ("cpu", "gpu", "cuda", "tpu"):
                raise ArgumentError(
                    f"unknown platform {platform!r}: use 'cpu', 'gpu' or 'tpu'"
                )
            return Lowered(self, arg_types, "gpu" if platform == "cuda" else platform)
        return Lowered(self, arg_types)


class _Stage:
    """What is known of a traced function when it is lowered and compiled, too."""

    traced: Traced
    _called_inside: ClassVar[tuple[str, ...]] = ("__init__", "run")

    @property
    def in_tree(self) -> Any:
        """Structure of the arguments."""
        return self.traced.in_tree

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        """Types of the leaves of the arguments."""
        return self.traced.in_avals

    @property
    def args_info(self) -> Any:
        """The arguments with an `ArgInfo` for each leaf."""
        return self.traced.args_info

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which leaves of the arguments are donated."""
        return self.traced.donate_argnums

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self.traced.out_tree

    @property
    def out_info(self) -> Any:
        """The result with each leaf's shape and dtype."""
        return self.traced.out_info


# A captured array of at most this many bytes is written into the program: XLA folds
# what is computed from it alone, and a call has one buffer less to pass.
WRITTEN_BYTES = 4096


def is_small(const: Array) -> bool:
    """Returns whether a captured array becomes a part of the program."""
    kind = const._type
    return (
        const.nbytes <= WRITTEN_BYTES
        and not kind.committed
        and kind.placement is buffers.default_placement()
        and not dtypes.is_key(kind.aval.dtype)
    )


def _shardings(
    consts: Sequence[Array], arg_types: Sequence[ArrayType]
) -> list[Sharding | None]:
    """Returns where captured arrays and arguments are; None: on one device."""
    places = [t.placement for t in (*(c._type for c in consts), *arg_types)]
    return [None if p.is_single else p.sharding for p in places]


@guard_methods
class Lowered(_Stage):
    """A program as StableHLO, not yet compiled.

    Args:
      traced: the traced function.
      arg_types: of the leaves (of a function with references, of `traced.arrays`).
      platform: to lower for; None: that of the arguments.
      triton: whether XLA may compile kernels by Triton, where it knows the device.
    """

    kept: list[int]
    constants: list[Array]
    program: LoweredProgram

    def __init__(
        self,
        traced: Traced,
        arg_types: Sequence[ArrayType],
        platform: str | None = None,
        *,
        triton: bool = True,
    ) -> None:
        self.traced: Traced = traced
        self._arg_types = arg_types
        triton = triton and platform is None
        call, traced = traced.call, traced.arrays
        out_shardings = list(traced.out_shardings)
        # New contents stay where the old ones were, whose memory they take.
        for out, i in enumerate(call.written if call else ()):
            placement = arg_types[i].placement
            if not placement.is_single:
                out_shardings[out] = placement.sharding
        for const in traced.consts:
            if isinstance(const, Tracer):
                raise ArgumentError(
                    f"{traced.name} captures a traced value {const.aval} and cannot be "
                    f"compiled by itself. {const.origin()} Pass it as an argument."
                )
        # Arguments that nothing reads are not sent to the device.
        graph, count = traced.graph, traced.graph.num_consts
        wanted = [*filter(None, (*traced.in_shardings, *traced.out_shardings))]
        mesh = mesh_among(wanted) if wanted else None
        consts = [as_array(c) for c in traced.consts]
        # Where the partitioner divides the work, the program stays as it was written.
        if mesh is None and all(t.placement.is_single for t in arg_types):
            where = [t.placement for t in arg_types] or [buffers.default_placement()]
            native = platform is None and all(p.platform == "cpu" for p in where)
            triton = triton and not native and all(runs_triton(p.device) for p in where)
            graph = optimized(graph, native=native, triton=triton)
            small = [is_small(c) for c in consts]
            if any(small) and graph.mesh is None:
                values = dict(compress(zip(graph.inputs, consts, strict=False), small))
                graph = with_literals(graph, values)
                count -= len(values)
                consts = [c for c, gone in zip(consts, small, strict=True) if not gone]
        elif platform is None:
            devices = [d for t in arg_types for d in t.placement.devices]
            on_cpus = all(d.platform == "cpu" for d in devices)
            triton = triton and not on_cpus and all(map(runs_triton, devices))
            if on_cpus or triton:
                shardings = _shardings(consts, arg_types)
                graph = with_compiled_parts(graph, shardings, triton=triton)
        self._has_triton = triton and any_node(graph, TRITON, _is_triton_call)
        self.constants = consts
        used = used_inputs(graph)
        # A donated argument stays, used or not: a result is to take its memory. So does
        # one that says what a size is.
        self.kept = [
            i
            for i, (u, aval) in enumerate(
                zip(used[count:], traced.in_avals, strict=True)
            )
            if u or traced.keep_unused or traced.donated[i] or aval.is_symbolic
        ]
        inputs = [*graph.inputs[:count], *(graph.inputs[count + i] for i in self.kept)]
        if count != graph.num_consts or len(inputs) != len(graph.inputs):
            graph = Graph(inputs, graph.nodes, graph.outputs, graph.name, count)
        constants = [c._type for c in consts]
        self.program = LoweredProgram(
            graph,
            [*constants, *(arg_types[i] for i in self.kept)],
            name=traced.name,
            module_name=f"jit_{traced.name}",
            platform=platform,
            out_shardings=out_shardings,
            mesh=mesh,
            donated=[False] * count + [traced.donated[i] for i in self.kept],
            labels=lambda: [""] * count + [traced.labels[i] for i in self.kept],
        )

    def as_text(self, dialect: str | None = None, *, debug_info: bool = True) -> str:
        """Returns the program as text.

        Args:
          dialect: `stablehlo` (None is the same), or `hlo`: before XLA's passes;
            optimised HLO is `.compile().as_text()`.
          debug_info: whether operations of StableHLO name where they come from.

        Raises:
          ArgumentError: another dialect is asked for.
        """
        if dialect == "hlo":
            return str(self.compiler_ir("hlo").as_hlo_text())
        if dialect not in ("stablehlo", None):
            raise ArgumentError(
                f"as_text: dialect is 'stablehlo' or 'hlo', got {dialect!r}; optimised "
                "HLO is .compile().as_text()"
            )
        program = self.program
        return program.text if debug_info else program.text_without_locations

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Returns the program as an object of the compiler's bindings.

        Args:
          dialect: `stablehlo` (None is the same): a module of the MLIR bindings, with
            `operation` and `body`, which prints as text; `hlo`: the same before XLA's
            passes, with `as_hlo_text()`.

        Raises:
          ArgumentError: another dialect is asked for.
        """
        if dialect in (None, "stablehlo"):
            return mlir_module(self.program.text)
        if dialect == "hlo":
            return hlo_computation(self.program.text)
        raise ArgumentError(
            f"compiler_ir: dialect is 'stablehlo' or 'hlo', got {dialect!r}"
        )

    def cost_analysis(self) -> dict[str, float]:
        """Returns an estimate of the work before compiling: `flops` and `bytes`.

        A `while_loop` counts as one round; `scan` as all of its steps. `bytes` is what
        goes in and out of each operation, as if none were fused.
        """
        return graph_cost(self.traced.graph)

    def compile(self, compiler_options: CompilerOptions | None = None) -> Compiled:
        """Compiles the program.

        Args:
          compiler_options: XLA's options by name.

        Returns:
          The compiled program, to be called with arguments of the same types.

        Raises:
          CompileError: the compiler rejects the program or an option.
        """
        # Those given here win over those of `jit`.
        options = {**(self.traced.options or {}), **(compiler_options or {})}
        try:
            return Compiled(self, self.program.compile(options or None))
        except CompileError as error:
            if not self._has_triton:
                raise
            failure = str(error)
        # Such as a block that needs more shared memory than the device has.
        plain = Lowered(self.traced, self._arg_types, triton=False)
        compiled = plain.compile(compiler_options)
        warn(
            f"{self.traced.name}: XLA could not compile its kernels for this GPU, so "
            f"they run as operations on whole arrays: {failure}"
        )
        return compiled


def _is_triton_call(node: Node) -> bool:
    return node.params.get("target") == TRITON


def require_donated_once(traced: Traced, arrays: Sequence[Array]) -> None:
    """Refuses donated memory that is passed as another argument, too.

    Args:
      traced: the function.
      arrays: the leaves of its arguments.

    Raises:
      DonationError: it is.
    """
    held = [getattr(array, "_buffer", array) for array in arrays]
    # Looked for only if some memory is passed twice, which is rare.
    if len({*map(id, held)}) == len(held):
        return
    labels, gives = traced.arrays.labels, traced.arrays.donated
    first: dict[int, int] = {}
    for i, memory in enumerate(held):
        j = first.setdefault(id(memory), i)
        donated = [k for k in (j, i) if gives[k]]
        if j == i or not donated:
            continue
        which = "both are" if len(donated) == 2 else f"{labels[donated[0]]} is"
        raise DonationError(
            f"{traced.name}: arguments {labels[j]} and {labels[i]} are the same array, "
            f"and {which} donated: pass a copy (x.copy()) or do not donate it"
        )


@guard_methods
class Compiled(_Stage):
    """A compiled program, called like the function it came from."""

    constants: list[Array]
    lowered: Lowered
    program: Program
    has_room: bool  # whether it is known to fit into the devices' memory

    def __init__(self, lowered: Lowered, program: Program) -> None:
        self.traced: Traced = lowered.traced
        self.lowered, self.program, self.constants = lowered, program, lowered.constants
        self.has_room = self.traced.arrays.graph.facts.size < SMALL_PROGRAM
        memory_reports.programs[next(memory_reports.numbers)] = self

    @property
    def input_shardings(self) -> Any:
        """Where the program takes its arguments, in their structure.

        None for an argument that it does not use.
        """
        lowered = self.lowered
        placements = self.program.placements[len(self.constants) :]
        where = dict(zip(lowered.kept, placements, strict=True))
        return self.in_tree.unflatten(
            [
                where[i].sharding if i in where else None
                for i in range(len(self.in_avals))
            ]
        )

    @property
    def output_shardings(self) -> Any:
        """Where the program leaves its results, in their structure."""
        return self.out_tree.unflatten(
            [p.placement.sharding for p in self.program.out_types]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Args:
          *args: of the types it was traced for, static ones left out.
          **kwargs: likewise.

        Raises:
          ArgumentError: structure or types differ.
        """
        traced = self.traced
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != traced.in_tree:
            raise ArgumentError(
                f"{traced.name} was compiled for arguments of the structure "
                f"{tree.written(traced.in_tree)}, got {tree.written(treedef)}"
            )
        arrays: list[Any] = []
        for leaf, aval, label in zip(leaves, self.in_avals, traced.labels, strict=True):
            is_ref = isinstance(leaf, Ref)
            if not is_arraylike(leaf) and not is_ref:
                raise not_an_array(leaf, f"{traced.name}: argument {label} is")
            array = leaf if is_ref else as_array(leaf, aval.dtype)
            given = array.aval
            if (
                given.shape != aval.shape
                or given.dtype != aval.dtype
                or type(given) is not type(aval)
            ):
                raise ArgumentError(
                    f"{traced.name} was compiled for {aval} as argument {label}, got "
                    f"{given}"
                )
            arrays.append(array)
        if any(isinstance(array, Tracer) for array in arrays):
            raise ArgumentError(
                f"the compiled program {traced.name} takes concrete arrays; inside a "
                "transformed function call the jitted function itself"
            )
        call = traced.call
        if call is None:
            return traced.out_tree.unflatten(self.run(arrays))
        outs = self.run(call.given(arrays))
        return traced.out_tree.unflatten(call.store(arrays, outs))

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the program on the leaves of its arguments; takes the donated ones."""
        # Compiled ahead of time, for devices that are not here.
        if self.program.executable.loaded is None:
            self.program.executable.launch()  # says why it cannot be run
        if not self.has_room:
            memory_reports.require_room(self)
        donated = self.traced.arrays.donated
        given = [a for a, give in zip(arrays, donated, strict=True) if give]
        if given:
            self.prepare_donation(given, arrays)
        outs = self.program([*self.constants, *(arrays[i] for i in self.lowered.kept)])
        for array in given:
            forget(array)
        return outs

    def runner(self, arg_types: Sequence[ArrayType]) -> Runner:
        """Returns the cheapest way to run the program.

        Args:
          arg_types: of the leaves as they are given.
        """
        if not self.has_room:
            memory_reports.require_room(self)
        placements = self.program.placements[len(self.constants) :]
        moving = {
            i: placement
            for i, placement in zip(self.lowered.kept, placements, strict=True)
            if not arg_types[i].placement.same_layout(
                placement, len(arg_types[i].aval.physical.shape)
            )
        }
        run = _run_in_place(self)
        if not moving:
            return run, False

        def run_moved(leaves: Sequence[Array], raw: list[Any]) -> Any:
            there = [
                buffer_of(leaf) if buffer is None and i not in moving else buffer
                for i, (leaf, buffer) in enumerate(zip(leaves, raw, strict=True))
            ]
            for i, placement in moving.items():
                there[i] = buffer_at(leaves[i], placement)
            return run(leaves, there)

        return run_moved, True

    def prepare_donation(self, given: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Drops host views of donated memory.

        Args:
          given: the donated arrays.
          arrays: all leaves of the arguments.

        Raises:
          DonationError: an array is passed twice and donated.
        """
        require_donated_once(self.traced, arrays)
        for array in given:
            if hasattr(array, "_host"):
                release(array)

    def as_text(self) -> str:
        """Returns the optimised HLO."""
        return self.program.executable.hlo_text()

    def copies(self) -> list[ArgumentCopy]:
        """Returns the copies that the program makes of its arguments.

        A copy costs a pass over the array's memory. The compiler makes one where an
        argument that it may not change is to be changed, and where a donated one is
        read after a part of it was written.

        Returns:
          An `ArgumentCopy` for each: `label`, `nbytes`, `donated`, `in_loop`.

        Example:
          >>> def f(x):
          ...     return x.at[0].add(1.0)
          >>> x = fnp.zeros(1000)
          >>> fxflow.jit(f).lower(x).compile().copies()
          [ArgumentCopy(label='x', nbytes=4000, donated=False, in_loop=False)]
          >>> fxflow.jit(f, donate_argnums=0).lower(x).compile().copies()
          []

        Source: operations `copy` of XLA's optimised HLO.
        """
        lowered, traced = self.lowered, self.traced.arrays
        count = len(self.constants)
        labels = [""] * count + [traced.labels[i] for i in lowered.kept]
        donated = [False] * count + [traced.donated[i] for i in lowered.kept]
        avals = lowered.program.in_avals
        return [
            ArgumentCopy(labels[i], avals[i].nbytes, donated[i], in_loop)
            for i, in_loop in argument_copies(self.as_text())
        ]

    def cost_analysis(self) -> dict[str, float]:
        """Returns the compiler's estimate of the work, such as `flops`.

        It knows nothing of calls of kernels, fxflow's own among them: `flops` are those
        of `Lowered.cost_analysis` then.
        """
        found = dict(self.program.executable.cost_analysis())
        if found.get("flops") == -1:
            found["flops"] = self.lowered.cost_analysis()["flops"]
        return found

    def memory_analysis(self) -> Any:
        """Returns the sizes of arguments, results, temporaries and code, in bytes."""
        return self.program.executable.memory_analysis()

    def memory_report(self) -> memory_reports.MemoryReport:
        """Returns what makes the peak of the program's memory, by line and scope.

        Example:
          >>> program = fxflow.jit(lambda x: (x @ x).sum()).lower(fnp.ones((64, 64)))
          >>> report = program.compile().memory_report()
          >>> sorted(row.name for row in report.rows("kind"))[0]
          'argument'

        Source: the buffers that XLA's buffer assignment holds at its peak, of a program
        that is compiled again with marks that lead back to lines.
        """
        types = self.lowered._arg_types
        compiled = lambda traced: Lowered(traced, types).compile()
        return memory_reports.report_of(self.traced.arrays, compiled)


# -- the short path --------------------------------------------------------------------

_get_type = attrgetter("_type")

Runner = tuple[Callable[[Sequence[Array], list[Any]], Any], bool]
"""A function from the leaves of the arguments and their buffers to the result; and
whether it takes None for the buffer of an array in host memory, which it puts where it
is needed itself."""


def ref_runner(
    compiled: Compiled,
    arg_types: Sequence[ArrayType],
    slow: Callable[[Sequence[Any]], Any],
) -> Runner:
    """Returns the cheapest way to run a program that is given references.

    Args:
      compiled: the program.
      arg_types: of the leaves and captured references, with contents in their place.
      slow: takes the leaves where the captured references have other types by now.
    """
    traced = compiled.traced
    call = traced.call
    assert call is not None
    run, puts = compiled.runner(arg_types)
    types = list(arg_types)
    unflatten = traced.out_tree.unflatten

    def run_refs(leaves: Sequence[Any], raw: list[Any]) -> Any:
        given = call.given(leaves)
        if [*map(_get_type, given)] != types:
            return slow(leaves)
        held = [None if puts else buffer_of(array) for array in given]
        return unflatten(call.store(leaves, run(given, held)))

    return run_refs, True


def _run_in_place(compiled: Compiled) -> Callable[[Sequence[Array], list[Any]], Any]:
    """Returns the function for leaves that are where the program takes them."""
    program = compiled.program
    run = program.run
    out_tree = compiled.traced.arrays.out_tree
    # The first placements are those of the constants.
    # The program keeps its constants, so their buffers are looked up once.
    constants = list(map(buffer_at, compiled.constants, program.placements))
    kept = compiled.lowered.kept  # in ascending order
    unflatten = out_tree.unflatten
    donated = [i for i, give in enumerate(compiled.traced.arrays.donated) if give]
    count = len(compiled.traced.arrays.in_avals)
    whole = not constants and kept == list(range(count))
    taken = set(kept)
    used = [i in taken for i in range(count)]
    if donated:

        def run_donated(leaves: Sequence[Array], raw: list[Any]) -> Any:
            given = [leaves[i] for i in donated]
            compiled.prepare_donation(given, leaves)
            outs = run(raw if whole else [*constants, *compress(raw, used)])
            for array in given:
                # The runtime owns the memory now; `_host` went in `prepare_donation`.
                del array._buffer
            return unflatten(outs)

        return run_donated
    if not whole:

        def run_some(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run([*constants, *compress(raw, used)]))

        return run_some
    # From here on the calls of `Program.run` are written out, to save a frame each.
    start, results = program.executable.launch, program.out_types
    handlers = [array_type.handler for array_type in results]
    if program.calls_python or len(results) != 1:

        def run_all(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run(raw))

        return run_all
    (array_type,) = results
    # As in `Program.run`.
    new = object.__new__
    if tree.treedef_is_leaf(out_tree):

        def run_leaf(leaves: Sequence[Array], raw: list[Any]) -> Any:
            array = new(Array)
            (array._buffer,) = start(raw).consume_with_handlers(handlers)
            array._type = array_type
            return array

        return run_leaf

    def run_one(leaves: Sequence[Array], raw: list[Any]) -> Any:
        array = new(Array)
        (array._buffer,) = start(raw).consume_with_handlers(handlers)
        array._type = array_type
        return unflatten((array,))

    return run_one
