"""From a graph to StableHLO text.

Text, not bindings: writing a line of text costs less than building an operation through
the MLIR bindings, needs no import, and *is* the key of the compile cache. Each
primitive writes itself through a `Context`; a nested graph becomes a private function
(shared by all calls of it) or is inlined.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.caches import Cache, clear_caches
from fxflow.core.ir.discharge import discharge
from fxflow.core.ir.graph import Graph, Literal, Node, Var
from fxflow.core.ir.primitive import ORDERED, Primitive
from fxflow.core.ir.staging import trace_flat
from fxflow.core.sizes import OPEN, Size, scope_of, spelled_for_programs
from fxflow.core.spmd import partition
from fxflow.devices.meshes import explicit
from fxflow.errors import ArgumentError

TOKEN = "!stablehlo.token"
#: For a number and a dtype the text of the constant, and whether it is NaN.
_numbers: Cache[Any, tuple[str, bool]] = Cache("texts of numbers")


class Module:
    """A StableHLO module being written.

    Attributes:
      platform: `cpu`, `gpu` or `tpu`.
      functions: texts of the private functions.
      callbacks: what compiled code calls back, in the order of their indices.
      ordered: whether the program has ordered effects; then every call, loop and branch
        passes a token through.
      devices: that the program runs on, in order; () if it is one, whichever.
      spans_processes: whether they belong to several processes.
      out_shardings: of the results of a program for several devices, None where the
        compiler decides.
      memories: kinds of the memories of the results; None: all are the devices' own.
      manual: the axes, and their mesh, of the `shard_map`s being written.
      has_nan: whether a constant that is written already has a NaN.
      indices: SSA names of the device's index on each axis of a `shard_map` that is
        only partly manual, where `partition_id` does not tell it. A private function
        could not see them: then calls are inlined.
    """

    def __init__(
        self, platform: str, ordered: bool = False, devices: Sequence[Any] = ()
    ) -> None:
        self.platform: str = platform
        self.ordered: bool = ordered
        self.devices: tuple[Any, ...] = tuple(devices)
        self.spans_processes: bool = len({d.process_index for d in devices}) > 1
        self.out_shardings: Sequence[Any] = ()
        self.memories: Sequence[Any] | None = None
        self.manual: tuple[tuple[Any, Any], ...] = ()
        self.indices: dict[Any, str] = {}
        self._meshes: dict[Any, str] = {}
        self._channels = 0
        self._one_device = False
        self.has_nan: bool = False
        self.functions: list[str] = []
        self.callbacks: list[Any] = []
        self._called: dict[Any, str] = {}
        self._names: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Returns a name for a private function that is not taken."""
        name = "".join(c if c.isalnum() else "_" for c in name) or "f"
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count or name == "main" else name

    def mesh(self, mesh: Any) -> str:
        """Returns the symbol of a mesh, as in `@mesh`, declaring it if new.

        The types of its axes are not part of the program.
        """
        known = self._meshes.get(mesh)
        if known is None and explicit.used:
            same = (m for m in self._meshes if m.same_grid(mesh))
            known = self._meshes.get(next(same, None))
        if known is None:
            count = len(self._meshes)
            known = self._meshes[mesh] = f"@mesh_{count}" if count else "@mesh"
        return known

    def mesh_around(self) -> str | None:
        """Returns the symbol of a mesh of which the partitioner has axes, or None."""
        manual = dict(self.manual)
        for mesh, name in self._meshes.items():
            inside = not manual or mesh in manual.values()
            if inside and not manual.keys() >= set(mesh.axis_names):
                return name
        return None

    def meshes(self) -> list[str]:
        """Returns the declarations of all meshes."""
        listed = [
            f"sdy.mesh {name} = {partition.mesh_text(mesh, self.devices)}\n"
            for mesh, name in self._meshes.items()
        ]
        if self._one_device:
            listed.append("sdy.mesh @first_device = <[], device_ids=[0]>\n")
        return listed

    def on_first(self, count: int) -> str:
        """Returns the attribute of an operation that only the first device runs.

        Args:
          count: number of its results.

        Returns:
          "" in a program for one device, and inside a `shard_map`: there every device
          runs it.
        """
        if not self.devices or self.manual:
            return ""
        self._one_device = True
        each = ", ".join(["<@first_device, []>"] * max(count, 1))
        return f"sdy.sharding = #sdy.sharding_per_value<[{each}]>"

    @property
    def partitioned(self) -> bool:
        """Whether the partitioner divides what is being written over devices."""
        if not self.devices or not self.manual:
            return bool(self.devices)
        names = {name for name, _ in self.manual}
        return any(not names.issuperset(mesh.axis_names) for _, mesh in self.manual)

    def channel(self) -> int:
        """Returns a number for a collective that no other has."""
        self._channels += 1
        return self._channels

    def function(self, graph: Graph, scope: str) -> str:
        """Returns the name of the private function of a graph, writing it if new."""
        # Inside a `shard_map` the same graph is written for one device's part, and
        # a function may compute with the NaN that a later caller passes.
        key = (graph, self.manual, self.has_nan)
        name = self._called.get(key)
        if name is None:
            name = self._called[key] = self.unique(graph.name)
            self.functions.append(
                function_text(self, graph, f"private @{name}", scope=scope)
            )
        return name

    def helper(self, key: Any, name: str, write: Callable[[str], str]) -> str:
        """Returns the name of a private function that a primitive writes itself.

        Args:
          key: hashable; functions of one key are the same.
          name: to call it by, if that is not taken.
          write: from its name to its text (`func.func private @name ...`).
        """
        known = self._called.get(key)
        if known is None:
            known = self._called[key] = self.unique(name)
            self.functions.append(write(known))
        return known


class Context:
    """Writes operations into one block.

    Attributes:
      module: being written.
      inputs: of the current node.
      avals_in: their types.
      avals_out: types of its outputs.
      counter: counts the names of the function being written.
      scope: prefix of the operations' names in profiles.
      contracted: for the names of products the mesh axes along which each device has
        computed a part of the sum.
      unreduced: for the names of values of which devices hold parts of a sum how they
        are laid out; None where parts are added up at once.
      fills: names of constants that are one value repeated.
      made: for the names of floats what made them, where XLA would see through it (see
        `apart`): "exp", "power", "square", or a "sum" or "product" with a constant.
      shardings: of values without elements, of which XLA makes constants before
        it partitions the program, forgetting where they were to be.
    """

    module: Module
    scope: str
    loc: str
    path: str

    def __init__(self, module: Module, counter: list[int], scope: str = "") -> None:
        self.module, self.scope = module, scope
        self.counter: list[int] = counter
        self.lines: list[str] = []
        self.loc = self.path = ""
        self.inputs: Sequence[Var | Literal] = ()
        self.avals_in: list[Aval] = []
        self.avals_out: Sequence[Aval] = ()
        self.contracted: dict[str, frozenset[Any]] = {}
        self.unreduced: dict[str, Any] | None = None
        self.fills: set[str] = set()
        self.made: dict[str, str] = {}
        self.shardings: dict[str, Any] = {}
        self._token = ""

    @property
    def token(self) -> str:
        """The token that the next ordered effect takes; it sets the one it gives."""
        if not self._token:
            self._token = self.emit(f"stablehlo.create_token : {TOKEN}")
        return self._token

    @token.setter
    def token(self, name: str) -> None:
        self._token = name

    @property
    def platform(self) -> str:
        """The platform compiled for."""
        return self.module.platform

    def number(self) -> int:
        """Returns a number that no name of the function has yet."""
        self.counter[0] += 1
        return self.counter[0] - 1

    def emit(self, text: str) -> str:
        """Writes an operation of one result; returns the result's name.

        Args:
          text: as in `stablehlo.sine %0 : tensor<3xf32>`.
        """
        counter = self.counter
        # `number` written out: nearly every operation passes here.
        name = f"%{counter[0]}"
        counter[0] += 1
        self.lines.append(f"{name} = {text}{self.loc}")
        return name

    def emit_many(self, count: int, text: str) -> list[str]:
        """Writes an operation of `count` results; returns their names."""
        if count == 1:
            return [self.emit(text)]
        counter = self.counter
        name = f"%{counter[0]}"
        counter[0] += 1
        left = f"{name}:{count} = " if count else ""
        self.lines.append(f"{left}{text}{self.loc}")
        return [f"{name}#{i}" for i in range(count)]

    def apart(self, operands: Sequence[str], *kinds: str) -> tuple[str, ...]:
        """Returns a node's operands, those that were made so behind a barrier.

        XLA makes `log(exp(x))`, `sqrt(x * x)`, `x + 1e30 - 1e30` x or its size, which
        is not so where what is between overflows. A barrier keeps it from that, and
        costs nothing on CPUs; elsewhere it would part what is computed together.

        Args:
          operands: names of the current node's operands.
          kinds: as in `made`.
        """
        if self.platform != "cpu":
            return tuple(operands)
        return tuple(
            self.emit(f"stablehlo.optimization_barrier {x} : {aval.mlir}")
            if self.made.get(x) in kinds
            else x
            for x, aval in zip(operands, self.avals_in, strict=True)
        )

    def constant(self, value: Any, aval: Aval | None = None) -> str:
        """Writes a constant.

        Args:
          value: a NumPy array or scalar.
          aval: its type; if of more axes than a 0-d value, the value is repeated.
        """
        if type(value) is Size:
            kind = Aval((), np.dtype(np.int32)) if aval is None else aval
            return self.emit(f"stablehlo.constant dense<{value:d}> : {kind.mlir}")
        array = np.asarray(value)
        if aval is None:
            aval = Aval(array.shape, array.dtype)
        dtype = aval.physical.dtype
        if array.ndim:
            text = dense(array, dtype)
            has_nan = array.dtype.kind not in "biu" and bool((array != array).any())
        else:
            # A few numbers make most of a program's constants.
            key = array.dtype, array.tobytes(), dtype
            known = _numbers.get(key)
            if known is None:
                known = _numbers[key] = dense(array, dtype), bool(array != array)
            text, has_nan = known
        self.module.has_nan = self.module.has_nan or has_nan
        return self.emit(f"stablehlo.constant {text} : {aval.mlir}")

    def broadcast(self, name: str, aval: Aval, shape: tuple[int, ...]) -> str:
        """Repeats a 0-d operand to a shape."""
        out = aval.update(shape=shape)
        return self.emit(
            f"stablehlo.broadcast_in_dim {name}, dims = [] : "
            f"({aval.mlir}) -> {out.mlir}"
        )

    def region(
        self,
        avals: Sequence[Aval | str],
        body: Callable[[Context, list[str]], Sequence[str]],
        out_avals: Sequence[Aval | str],
        terminator: str = "stablehlo.return",
    ) -> str:
        """Returns the text of a region `{ ^bb0(...): ... }`.

        Args:
          avals: types of the block's arguments (as text where they are not arrays).
          body: writes the block; takes its context and the arguments' names.
          out_avals: types of what the block returns.
          terminator: the returning operation.
        """
        # A block may refer to values around it, so its names go on counting.
        inner = Context(self.module, self.counter, self.scope)
        inner.loc, inner.path = self.loc, self.path
        names = [f"%b{self.number()}" for _ in avals]
        head = ", ".join(
            f"{n}: {type_text(a)}" for n, a in zip(names, avals, strict=True)
        )
        results = list(body(inner, names))
        lines = "\n".join(inner.lines)
        block = f"^bb0({head}):\n" if names else ""
        values = ", ".join(results)
        types = ", ".join(map(type_text, out_avals))
        end = f"{terminator} {values} : {types}" if results else terminator
        return f"{{\n{block}{lines}\n{end}\n}}"

    def graph(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Inlines a graph; returns the names of its outputs."""
        # References made inside; those that it is given went before.
        if graph.facts.has_refs:
            graph = discharge(graph).graph
        # A rule may write a graph in the midst of its own operation.
        saved = self.inputs, self.avals_in, self.avals_out, self.loc, self.path
        names: dict[Any, str] = dict(zip(graph.inputs, operands, strict=True))

        def read(atom: Var | Literal) -> str:
            if type(atom) is Literal:
                return self.constant(atom.value, atom.aval)
            return names[atom]

        for node in graph.nodes:
            primitive = node.primitive
            self.path = "/".join((self.scope, *node.scope, primitive.name))
            self.loc = f' loc("{self.path}")'
            self.inputs = node.inputs
            self.avals_in = [a.aval for a in node.inputs]
            self.avals_out = [v.aval for v in node.outputs]
            own = primitive.lowerings.get(self.module.platform)
            lower: Callable[..., Any] = own or primitive.lower
            if primitive.repeats_numbers and Literal in map(type, node.inputs):
                self._repeat_numbers(node)
            names_in = [
                names[atom] if type(atom) is Var else self.constant(atom.value, aval)
                for atom, aval in zip(node.inputs, self.avals_in, strict=True)
            ]
            in_parts = self.unreduced and not primitive.names_layout
            if in_parts:
                in_parts = partition.summed_up(self, node, names_in)
            out = lower(self, *names_in, **node.params)
            if in_parts:
                (aval,) = self.avals_out
                out = partition.constrained(self, out, aval, aval.layout, True)
            if primitive.multi:
                names.update(zip(node.outputs, out, strict=True))
            else:
                names[node.outputs[0]] = out
        results = [read(atom) for atom in graph.outputs]
        self.inputs, self.avals_in, self.avals_out, self.loc, self.path = saved
        return results

    def _repeat_numbers(self, node: Node) -> None:
        """Gives 0-d literals of a node the shape of its result.

        XLA reads a constant that repeats a number as one number and a broadcast; as one
        operation it takes half the time to write.
        """
        out = self.avals_out[0]
        if not out.shape or out.is_symbolic or not out.size:
            return
        for i, atom in enumerate(node.inputs):
            aval = self.avals_in[i]
            if type(atom) is Literal and not aval.physical.shape:
                self.avals_in[i] = aval.update(shape=out.shape)

    def call(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Writes a call of a graph's private function; returns the results' names."""
        # See `Module.indices`.
        if self.module.indices:
            return self.graph(graph, operands)
        name = self.module.function(graph, self.scope)
        operands = list(operands)
        ins = [a.mlir for a in graph.in_avals]
        outs = [a.mlir for a in graph.out_avals]
        # All functions take the token, so that no caller has to ask which ones need it.
        if self.module.ordered:
            operands.append(self.token)
            ins.append(TOKEN)
            outs.append(TOKEN)
        results = self.emit_many(
            len(outs),
            f"func.call @{name}({', '.join(operands)}) : "
            f"({', '.join(ins)}) -> ({', '.join(outs)})",
        )
        if self.module.ordered:
            self.token = results.pop()
        return results

    def compose(
        self,
        function: Callable[..., Any],
        operands: Sequence[str],
        avals: Sequence[Aval] | None = None,
    ) -> list[str]:
        """Traces and lowers a function of arrays; returns the results' names.

        Args:
          function: of as many arrays as there are operands; returns one or a sequence.
          operands: names.
          avals: their types (None: those of the current node's inputs).
        """

        def flat(*values: Any) -> Sequence[Any]:
            out = function(*values)
            return out if isinstance(out, list | tuple) else [out]

        graph, consts = trace_flat(
            flat, list(self.avals_in if avals is None else avals)
        )
        # Small arrays of the rule itself, which no caller could pass.
        constants = [self.constant(np.asarray(c)) for c in consts]
        # Within the operation that is made of it, which profiles then name.
        outside, self.scope = self.scope, self.path or self.scope
        try:
            return self.graph(graph, [*constants, *operands])
        finally:
            self.scope = outside


def register_lowering(
    primitive: Primitive, lower: Callable[..., Any], platform: str
) -> None:
    """Makes a function write a primitive in programs for one platform.

    It takes the place of the primitive's own `lower`, in programs compiled from now on.
    An operation that NumPy runs, because it is small and eager, is not written at all.

    Args:
      primitive: the operation.
      lower: takes what `lower` takes: the `Context`, the names of the operands, and the
        parameters by name; returns the name of the result, or a list of names.
      platform: `cpu`, `gpu`, `tpu`, or the name of another plug-in's.

    Raises:
      ArgumentError: `primitive` is not a registered primitive, or `lower` no function.

    Example:
      >>> from fxflow.lax import sin
      >>> primitive = fxflow.make_graph(sin)(1.0).nodes[0].primitive
      >>> def lower(ctx, x):
      ...     return ctx.emit(f"my.sine {x} : {ctx.avals_out[0].mlir}")
      >>> register_lowering(primitive, lower, "tpu")
      >>> text = fxflow.jit(sin).trace(1.0).lower(platforms=("tpu",)).as_text()
      >>> "my.sine" in text
      True
      >>> primitive.lowerings = {}
    """
    if not isinstance(primitive, Primitive):
        raise ArgumentError(
            "register_lowering: primitive must be one that `register` made, got "
            f"{primitive!r}"
        )
    if not callable(lower):
        raise ArgumentError(
            f"register_lowering: lower must be a function, got {lower!r}"
        )
    platform = "gpu" if platform in ("cuda", "rocm") else platform
    primitive.lowerings = {**primitive.lowerings, platform: lower}
    clear_caches()


def type_text(aval: Aval | str) -> str:
    """Returns a type in StableHLO's notation."""
    return aval if isinstance(aval, str) else aval.mlir


def number(value: Any, dtype: Any) -> str:
    """Returns a number in StableHLO's notation, exact."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_integer(dtype):
        return str(int(value))
    if dtypes.is_complex(dtype):
        part = dtypes.to_real(dtype)
        return f"({number(value.real, part)}, {number(value.imag, part)})"
    as_float = float(value)
    if not math.isfinite(as_float):
        # MLIR has no literal for infinities and nan: their bits, the highest byte
        # first.
        bits = np.asarray(value, dtype).tobytes()[::-1].hex().upper()
        return f"0x{bits}"
    text = repr(as_float)
    # MLIR wants a decimal point, where Python writes 1e-07.
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def dense(array: np.ndarray[Any, Any], dtype: Any) -> str:
    """Returns the elements of a constant in StableHLO's notation."""
    if array.ndim == 0:
        return f"dense<{number(array[()], dtype)}>"
    if array.size == 0:
        return "dense<>"
    if dtypes.is_bool(dtype) or dtypes.bits(dtype) < 8 or array.size <= 16:
        return f"dense<{_nested(array, dtype)}>"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def _nested(array: np.ndarray[Any, Any], dtype: Any) -> str:
    if array.ndim == 0:
        return number(array[()], dtype)
    return "[" + ", ".join(_nested(row, dtype) for row in array) + "]"


def function_text(
    module: Module,
    graph: Graph,
    head: str,
    *,
    attributes: Sequence[Sequence[str]] = (),
    out_shardings: Sequence[Any] = (),
    scope: str = "",
) -> str:
    """Returns the text of a function.

    Args:
      module: it belongs to.
      graph: what it computes.
      head: visibility and name, as in `public @main`.
      attributes: of each argument, as in `["tf.aliasing_output = 0 : i32"]`.
      out_shardings: of each result, or None where the compiler decides.
      scope: prefix of the operations' names.
    """
    ctx = Context(module, [0], scope)
    names = [f"%a{i}" for i in range(len(graph.inputs))]
    arguments = ", ".join(
        f"{n}: {typed}"
        for n, typed in zip(names, _typed(graph.in_avals, attributes), strict=True)
    )
    private = head.startswith("private")
    # In loops and functions the partitioner gives wrong results for parts.
    ctx.unreduced = None if private else {}
    # `main` makes its own token (`Context.token`): the runtime passes none.
    passes_token = module.ordered and private
    if passes_token:
        ctx.token = "%token"
        arguments = f"{arguments}, %token: {TOKEN}" if names else f"%token: {TOKEN}"
    outs = ctx.graph(graph, names)
    out_avals = graph.out_avals
    types = results = ", ".join(a.mlir for a in out_avals)
    nothing = [None] * len(outs)
    if module.devices and not private:
        module.out_shardings = [
            wanted or ctx.shardings.get(out)
            for wanted, out in zip(out_shardings or nothing, outs, strict=True)
        ]
    if not private and (module.out_shardings or module.memories):
        result_attributes = [
            partition.attributes(module, *where)
            for where in zip(
                out_avals,
                module.out_shardings or nothing,
                module.memories or nothing,
                strict=True,
            )
        ]
        results = ", ".join(_typed(out_avals, result_attributes))
    if passes_token:
        outs.append(ctx.token)
        results = types = f"{types}, {TOKEN}" if types else TOKEN
    body = "\n".join(ctx.lines)
    end = f"return {', '.join(outs)} : {types}" if outs else "return"
    return f"func.func {head}({arguments}) -> ({results}) {{\n{body}\n{end}\n}}\n"


def _typed(avals: Sequence[Aval], attributes: Sequence[Sequence[str]]) -> list[str]:
    if not attributes:
        return [a.mlir for a in avals]
    return [
        f"{a.mlir} {{{', '.join(items)}}}" if items else a.mlir
        for a, items in zip(avals, attributes, strict=True)
    ]


def lower_graph(
    graph: Graph,
    *,
    name: str,
    platform: str,
    attributes: Sequence[Sequence[str]] = (),
    devices: Sequence[Any] = (),
    shardings: Sequence[Any] = (),
    out_shardings: Sequence[Any] = (),
    memories: tuple[Sequence[Any], Sequence[Any]] | None = None,
    labels: Callable[[], Sequence[str]] = tuple,
) -> tuple[str, Module]:
    """Writes a graph as a module whose public function is `main`.

    Args:
      graph: to write.
      name: of the module.
      platform: `cpu`, `gpu` or `tpu`.
      attributes: of each argument (see `function_text`).
      devices: that the program is for, in order, if they are several.
      shardings: of each argument, then.
      out_shardings: of each result, or None where the compiler decides.
      memories: kinds of the memories of arguments and results, if there are others than
        the devices' own (see `core/spmd/memories`).
      labels: gives what messages call the arguments.

    Returns:
      The module's text, and the module for its callbacks.
    """
    module = Module(platform, ORDERED in graph.effects, devices)
    # Taken before a user's function of that name is.
    module.unique("main")
    nothing: list[Any] = [None] * len(graph.inputs)
    kinds, module.memories = memories or (nothing, None)
    if shardings or memories:
        attributes = [
            [*given, *partition.attributes(module, *where)]
            for given, *where in zip(
                attributes or [()] * len(nothing),
                graph.in_avals,
                shardings or nothing,
                kinds,
                strict=True,
            )
        ]
    # In brackets where they are open, for `opened` to find.
    has_sizes = any(a.is_symbolic for a in (*graph.in_avals, *graph.out_avals))
    with spelled_for_programs() if has_sizes else nullcontext():
        main = function_text(
            module,
            graph,
            "public @main",
            attributes=attributes,
            out_shardings=out_shardings,
            scope=name,
        )
    label = "".join(c if c.isalnum() else "_" for c in name)
    text = "".join(
        (f"module @{label} {{\n", *module.meshes(), main, *module.functions, "}\n")
    )
    # No other character of a program is outside ASCII.
    if not text.isascii() and OPEN in text:
        # Imported here: its patterns take a millisecond to compile, and few need them.
        stablehlo = importlib.import_module("fxflow.core.sizes.stablehlo")
        text = stablehlo.opened(text, labels(), scope_of(graph.in_avals))
    return text, module
