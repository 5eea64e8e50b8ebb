"""Compiled graphs, ready to be called with arrays.

A `Program` is a graph compiled for a placement. Calling it moves what lies elsewhere,
hands the runtime its buffers and wraps the results.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core.arrays import (
    Array,
    ArrayType,
    Aval,
    buffer_of,
    dtypes,
    host_of,
    type_on,
)
from fxflow.core.arrays.array import require_alive
from fxflow.core.arrays.aval import common_placement, mesh_of
from fxflow.core.ir.graph import Graph, Node, Var, graph_name, subgraphs
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.lowering import lower_graph
from fxflow.core.spmd import partition
from fxflow.core.spmd.memories import Going, laid_out, wanted_of
from fxflow.devices import Device, RuntimeFailure, buffers, transfers
from fxflow.devices.callbacks import original_error, raise_original
from fxflow.devices.compile import (
    Executable,
    convolution_options,
    log_step,
    loop_options,
    quick_options,
)
from fxflow.devices.compile import compile as compile_text
from fxflow.devices.meshes import PartitionSpec, explicit
from fxflow.devices.process import require_not_forked, wait_for
from fxflow.devices.shardings import (
    REPLICATED,
    NamedSharding,
    SingleDeviceSharding,
    describe,
)
from fxflow.errors import CompileError, DonationError, NonFiniteError

_get_buffer = attrgetter("_buffer")
#: What a program takes, and more for each letter of its text (by the memory of
#: processes with some hundreds of programs, and by the size of serialized ones).
_PROGRAM_BYTES, _BYTES_PER_LETTER = 200_000, 14
#: Flops of a convolution from which XLA computes it better by itself (by the nets of
#: `benchmarks/cases/convnets.py`).
_LARGE = 5e9
_CONVOLUTION = "conv_general_dilated"


class Program:
    """A graph compiled for a placement.

    Attributes:
      executable: the runtime's.
      placements: where each argument must be.
      calls_python: whether it has host callbacks; then a call blocks until its end.
      out_types: types and placements of the results.
      text: the StableHLO module.
    """

    def __init__(
        self,
        executable: Executable,
        placements: Sequence[Any],
        out_types: Sequence[ArrayType],
        text: str,
        calls_python: bool = False,
    ) -> None:
        self.executable = executable
        self.placements: tuple[Any, ...] = tuple(placements)
        self.out_types: tuple[Any, ...] = tuple(out_types)
        self.text = text
        self.calls_python = calls_python
        #: From buffers to arrays.
        self.run: Callable[[list[Any]], list[Array]] = (
            self._waiting_runner() if calls_python else self._runner()
        )

    @property
    def nbytes(self) -> int:
        """Memory that it takes, about: the runtime does not tell."""
        return _PROGRAM_BYTES + _BYTES_PER_LETTER * len(self.text)

    def _runner(self) -> Callable[[list[Any]], list[Array]]:
        """Returns the cheapest function from buffers to arrays."""
        start, new = self.executable.launch, object.__new__
        out_types = self.out_types
        handlers = [array_type.handler for array_type in out_types]
        # `Array(buffer, array_type)` checks what users give, and takes longer.
        # One result is the commonest case, and spares the list of types.
        if len(out_types) == 1:
            (array_type,) = out_types

            def run_one(raw: list[Any]) -> list[Array]:
                array = new(Array)
                (array._buffer,) = start(raw).consume_with_handlers(handlers)
                array._type = array_type
                return [array]

            return run_one

        def run(raw: list[Any]) -> list[Array]:
            buffers = start(raw).consume_with_handlers(handlers)
            arrays = []
            for buffer, array_type in zip(buffers, out_types, strict=False):
                array = new(Array)
                array._buffer, array._type = buffer, array_type
                arrays.append(array)
            return arrays

        return run

    def _waiting_runner(self) -> Callable[[list[Any]], list[Array]]:
        """Returns the function for a program with host callbacks.

        It blocks until the end, and raises what a callback raised.
        """
        start = self.executable.launch
        out_types = self.out_types
        handlers = [array_type.handler for array_type in out_types]

        def run(raw: list[Any]) -> list[Array]:
            results = start(raw, with_tokens=True)
            token = results.consume_token()
            outs = results.consume_with_handlers(handlers)
            wait_for(token)
            return list(map(Array, outs, out_types))

        return run

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the program.

        Args:
          arrays: one for each input; they may lie elsewhere.
        """
        require_not_forked()
        raw = []
        for array, placement in zip(arrays, self.placements, strict=True):
            if array._type.placement is placement:
                raw.append(buffer_of(array))
            else:
                raw.append(buffer_at(array, placement))
        try:
            return self.run(raw)
        except RuntimeFailure as error:
            # Not before the call, where looking at each argument would cost every call.
            # A program whose callback fails has taken what is donated to it.
            if original_error(error) is None:
                require_alive(arrays)
            raise_original(error)
            raise


def buffer_at(array: Array, placement: Any) -> Any:
    """Returns a buffer of the elements at a placement, copied there if need be."""
    source = array._type.placement
    if source is placement:
        return buffer_of(array)
    aval = array.aval.physical
    if source.same_layout(placement, len(aval.shape)):
        buffer = buffer_of(array)
        if placement.is_single and not source.is_single:
            # The runtime may know it as part of an array of several processes.
            (buffer,) = buffers.parts(buffer)
        return buffer
    if transfers.on:
        transfers.guard(transfers.BETWEEN, array.aval, placement)
    if not hasattr(array, "_buffer"):
        return buffers.put(aval, host_of(array), placement)
    if (
        source.offloaded == placement.offloaded
        and source.devices == placement.devices
        and not (source.sharding.is_fully_addressable and source.platform == "cpu")
    ):
        # On the devices, and with those of other processes.
        return _reshard(array, placement)
    return buffers.move(aval, array._buffer, source, placement)


def _reshard(array: Array, placement: Any) -> Any:
    aval = array.aval
    # Kept with the placement, which goes when its client does.
    key = ("reshard", array._type, placement)
    program = placement.table.get(key)
    if program is None:
        var, out = Var(aval), Var(aval)
        params = {"to": placement.sharding, "memory": Going(placement.offloaded)}
        node = Node(table["device_put"], [var], [out], params)
        program = placement.table[key] = compile_graph(
            Graph([var], [node], [out], "reshard"),
            [array._type],
            name="reshard",
            out_shardings=[placement.sharding],
        )
    return program([array])[0]._buffer


# Elements of the results of a program for few numbers.
_FEW = 64


def compile_graph(
    graph: Graph,
    arg_types: Sequence[ArrayType],
    *,
    name: str,
    out_shardings: Sequence[Any] = (),
    options: Mapping[str, Any] | None = None,
    quick: bool = False,
) -> Program:
    """Compiles a graph for arguments of given types and placements.

    Args:
      graph: to compile.
      arg_types: of the arguments.
      name: of the program.
      out_shardings: of the results; none: the compiler decides.
      options: the compiler's, by name.
      quick: whether a program for few numbers is compiled fast, to run slower.
    """
    lowered = LoweredProgram(graph, arg_types, name=name, out_shardings=out_shardings)
    # Not by the arguments: tables of coefficients are some of them.
    if quick and sum(aval.size for aval in graph.out_avals) <= _FEW:
        options = {**quick_options(lowered.placement.devices[0]), **(options or {})}
    return lowered.compile(options)


class LoweredProgram:
    """A graph as StableHLO for arguments of given types and placements.

    It is how every graph becomes a program: that of an eager operation, of `jit`, of
    `pmap`.

    Args:
      graph: to compile.
      arg_types: of the arguments.
      name: of the program.
      module_name: of the StableHLO module; None: the same.
      platform: to lower for; None: that of the arguments.
      out_shardings: of the results, None where the compiler decides.
      mesh: that the program names besides its operations'.
      donated: which arguments are donated; none: none.
      labels: gives the names of the arguments, which messages use.

    Attributes:
      text: the module.
      placement: where it runs.
      placements: where each argument must be.

    Raises:
      ArgumentError: two arguments insist on different devices.
    """

    placement: Any
    placements: list[Any]
    text: str

    def __init__(
        self,
        graph: Graph,
        arg_types: Sequence[ArrayType],
        *,
        name: str,
        module_name: str | None = None,
        platform: str | None = None,
        out_shardings: Sequence[Any] = (),
        mesh: Any = None,
        donated: Sequence[bool] = (),
        labels: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._graph, self._name = graph, name
        start = time.perf_counter()
        # A result that is wanted on one device has the program run there.
        results = [
            type_on(aval, buffers.placement(where.devices[0]), True)
            for aval, where in zip(graph.out_avals, out_shardings, strict=False)
            if isinstance(where, SingleDeviceSharding)
        ]
        self.placement, self._committed = common_placement(
            [*arg_types, *results], name, graph.mesh or mesh
        )
        out_shardings = _as_typed(graph.out_avals, out_shardings, self.placement)
        self.placements = [
            self.placement
            if p.placement is self.placement
            else partition.argument_placement(p, self.placement)
            for p in arg_types
        ]
        several = not self.placement.is_single
        kinds = [p.offloaded for p in self.placements]
        laid, out_kinds = graph, None
        kept = (where.offloaded for where in out_shardings if where is not None)
        if graph.facts.names_memory or any(kinds) or any(kept):
            wanted = wanted_of(graph, self.placements, out_shardings)
            laid, out_kinds = laid_out(graph, kinds, wanted)
        attributes: list[list[str]] = []
        if any(donated):
            attributes = donation_attributes(
                graph, donated, labels, name, several, kinds, out_kinds
            )
        self.text, self._module = lower_graph(
            laid,
            name=graph_name(module_name or name),
            platform=platform or self.placement.platform,
            attributes=attributes,
            devices=self.placement.devices if several else (),
            shardings=[p.sharding for p in self.placements] if several else (),
            out_shardings=out_shardings if several else (),
            memories=(kinds, out_kinds) if out_kinds else None,
            labels=labels,
        )
        if config.log_compiles:
            log_step("lowered", self._name, start)

    @property
    def in_avals(self) -> list[Aval]:
        """Types of the arguments."""
        return self._graph.in_avals

    @property
    def out_avals(self) -> list[Aval]:
        """Types of the results."""
        return self._graph.out_avals

    def options_for(self, device: Any) -> dict[str, Any]:
        """Returns the compiler's options that suit the program.

        Args:
          device: that it is compiled for; only its platform counts.
        """
        return _options(self._graph, device, not self.placement.is_single)

    @property
    def text_without_locations(self) -> str:
        """The module, without where its operations come from."""
        return re.sub(r' loc\("[^"]*"\)', "", self.text)

    def compile(self, options: Mapping[str, Any] | None = None) -> Program:
        """Compiles the module.

        Args:
          options: the compiler's, by name.

        Raises:
          CompileError: the compiler rejects the program or an option.
        """
        placement, module, avals = self.placement, self._module, self._graph.out_avals
        for aval in self._graph.in_avals:
            if aval.is_symbolic:
                raise CompileError(
                    f"{self._name} cannot be compiled for {aval}: its sizes are known "
                    "only in a call. Export it, and call what export gives"
                )
        several = not placement.is_single
        wanted = list(module.out_shardings) or [None] * len(avals)
        options = {**self.options_for(placement.devices[0]), **(options or {})} or None
        executable = compile_text(
            self.text,
            placement,
            num_partitions=len(placement.devices),
            use_shardy=several,
            free_results=[w is None for w in wanted] if several else (),
            options=options,
            name=self._name,
            callbacks=module.callbacks,
        )
        kinds: list[str | None] = [None] * len(avals)
        if module.memories is not None:
            # What the compiler made of it: an array of no elements, say, is anywhere.
            kinds = executable.result_memory_kinds()
        if several:
            mesh = mesh_of(placement)
            found = executable.result_shardings() or [REPLICATED] * len(avals)
            outs = []
            for i, (aval, kind) in enumerate(zip(avals, kinds, strict=True)):
                where = wanted[i] or describe(mesh, found[i], len(aval.physical.shape))
                if where.offloaded != kind:
                    where = where.with_memory_kind(kind)
                outs.append(type_on(aval, buffers.placement_for(where), True))
        else:
            outs = [
                type_on(aval, in_kind(placement, kind), self._committed)
                for aval, kind in zip(avals, kinds, strict=True)
            ]
        calls_python = bool(module.callbacks)
        return Program(executable, self.placements, outs, self.text, calls_python)


def _options(graph: Graph, device: Device, several: bool) -> dict[str, Any]:
    """Returns the compiler's options that suit what a graph does on a device."""
    found = {}
    names = graph.facts.names
    if _CONVOLUTION in names and _most_flops(graph, _CONVOLUTION) > _LARGE:
        found.update(convolution_options(device))
    if "scan" in names and not several:
        found.update(loop_options(device))
    return found


def _most_flops(graph: Graph, name: str) -> float:
    """Returns the flops of the largest operation of a name, inside of others too."""
    if name not in graph.facts.names:
        return 0.0

    def most() -> float:
        found = [0.0]
        for node in graph.nodes:
            primitive, params = node.primitive, node.params
            found += [_most_flops(inner, name) for _, inner in subgraphs(params)]
            if primitive.name == name:
                cost = primitive.cost(*[a.aval for a in node.inputs], **params)
                found.append(cost["flops"])
        return max(found)

    # A function that is called often is looked at once.
    return graph.remembered(("most_flops", name), most)


def donation_attributes(
    graph: Graph,
    donated: Sequence[bool],
    labels: Callable[[], Sequence[str]],
    name: str,
    several: bool,
    kinds: Sequence[Any],
    out_kinds: Sequence[Any] | None,
) -> list[list[str]]:
    """Returns the attributes that make results reuse donated arguments.

    Args:
      graph: of the program.
      donated: which of its inputs are donated.
      labels: gives the names of the inputs.
      name: of the program.
      several: whether it is partitioned; then the compiler pairs them, since it also
        lays out the results.
      kinds: of the memories of the inputs.
      out_kinds: of those of the outputs; None: all the devices' own.

    Raises:
      DonationError: no result is left that can reuse a donated argument.
    """
    if out_kinds is None:
        out_kinds = [None] * len(graph.outputs)
    free: dict[Any, list[int]] = {}
    for i, (aval, kind) in enumerate(zip(graph.out_avals, out_kinds, strict=True)):
        free.setdefault((aval.physical.strong(), kind), []).append(i)
    attributes: list[list[str]] = [[] for _ in donated]
    for i, aval in enumerate(graph.in_avals):
        if not donated[i]:
            continue
        # Weak or not, the memory is the same.
        same = free.get((aval.physical.strong(), kinds[i]))
        if not same:
            where = f" in {kinds[i]} memory" if kinds[i] else ""
            raise DonationError(
                f"{name}: the donated argument {labels()[i]} {aval}{where} cannot be "
                f"reused: no result of that shape and dtype{where} is left; do not "
                "donate it (donate_argnums, donate_argnames), or return its new value"
            )
        # Each result can take the memory of one argument.
        target = same.pop(0)
        attributes[i].append(
            "jax.buffer_donor = true"
            if several
            else f"tf.aliasing_output = {target} : i32"
        )
    return attributes


def _as_typed(
    avals: Sequence[Any], shardings: Sequence[Any], placement: Any
) -> Sequence[Any]:
    """Returns the shardings of results with those that their types say."""
    if placement.is_single or not explicit.used:
        return shardings
    mesh = mesh_of(placement)
    whole = None
    if not mesh.auto_axes and mesh.explicit_axes:
        whole = NamedSharding(mesh, PartitionSpec())
    return [
        given
        or (aval.layout and NamedSharding(aval.layout.mesh, aval.layout.spec))
        or whole
        for given, aval in zip(shardings or [None] * len(avals), avals, strict=True)
    ]


def in_kind(placement: Any, kind: str | None) -> Any:
    """Returns a placement in a kind of memory, None being the devices' own."""
    if placement.offloaded == kind:
        return placement
    return buffers.placement_for(placement.sharding.with_memory_kind(kind))


def check_finite(name: str, arrays: Sequence[Array]) -> None:
    """Looks for NaN and infinity in results, as the configuration asks.

    Raises:
      NonFiniteError: it found one.
    """
    for array in arrays:
        if not dtypes.is_inexact(array.aval.dtype):
            continue
        value = host_of(array)
        if config.debug_nans and np.isnan(value).any():
            raise NonFiniteError(f"{name} gave nan in {array.aval}: {value}")
        if config.debug_infs and np.isinf(value).any():
            raise NonFiniteError(f"{name} gave inf in {array.aval}: {value}")
