"""Compiling a StableHLO module and running it.

The program comes as text: text and MLIR bindings cost the same to make, and text needs
no import of the bindings (16 ms) and gives the disk cache its key at once.
"""

from __future__ import annotations

import importlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.devices import cache, faults, inflight, memory_kinds, process
from fxflow.devices._jaxlib import (
    Buffer,
    CompileOnlyClient,
    CompileOptions,
    Device,
    DeviceAssignment,
    DeviceList,
    HloSharding,
    LoadedExecutable,
    RuntimeFailure,
    raw,
)
from fxflow.devices._jaxlib import (
    Executable as CompiledOnly,
)
from fxflow.devices.buffers import Placement
from fxflow.devices.callbacks import HostCallback, raise_original
from fxflow.errors import CompileError

OptionValue = str | int | float | bool

#: Options of the build, which XLA keeps apart from its debug options. The first two are
#: not in every jaxlib.
_BUILD_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
)


#: In which order XLA:CPU runs what does not depend on each other.
_SCHEDULE = "xla_cpu_scheduler_type"

#: Called before a program for devices of several processes is compiled.
_shared: list[Callable[[str, str, list[int]], None]] = []


def on_shared_program(listener: Callable[[str, str, list[int]], None]) -> None:
    """Calls a function before each program that several processes run together.

    Args:
      listener: takes the program's name, a digest that is the same in all processes
        if the program is, and the numbers of the processes.
    """
    _shared.append(listener)


def log_step(done: str, name: str, start: float) -> None:
    """Logs a step towards a program, for `config.log_compiles`.

    Args:
      done: what was done.
      name: of the program.
      start: of the step, as `time.perf_counter` says it.
    """
    seconds = time.perf_counter() - start
    logging.getLogger("fxflow").warning("%s %s in %.4f s", done, name, seconds)


def _announce(name: str, module_text: str | bytes, devices: Sequence[Device]) -> None:
    processes = sorted({d.process_index for d in devices})
    if len(processes) < 2 or not _shared:
        return
    text = module_text.encode() if isinstance(module_text, str) else module_text
    # Not the settings: where one process dumps its programs is its own affair.
    ids = ",".join(str(d.id) for d in devices)
    digest = cache.sha256(ids.encode() + b";" + text).hexdigest()
    for listener in _shared:
        listener(name, digest, processes)


class Executable:
    """A compiled program.

    Attributes:
      loaded: jaxlib's object; None if compiled for a device that is not here.
      launch: ``launch(buffers)`` starts the program and returns the raw results; then
        ``.consume_with_handlers(handlers)`` gives the list of buffers.
      name: for people.
      devices: what it runs on.
      from_cache: whether it came from the disk cache.
    """

    __slots__ = ("_program", "devices", "from_cache", "launch", "loaded", "name")

    devices: tuple[Device, ...]
    from_cache: bool
    name: str

    def __init__(
        self,
        program: LoadedExecutable | CompiledOnly,
        name: str,
        devices: tuple[Device, ...],
        from_cache: bool,
    ) -> None:
        self._program = program
        self.name, self.devices, self.from_cache = name, devices, from_cache
        self.loaded: LoadedExecutable | None = None
        self.launch: Callable[..., Any] = self._not_here
        if isinstance(program, LoadedExecutable):
            self.loaded = program
            self.launch = program.execute_sharded
            if (
                len(devices) > 1
                and devices[0].platform == "cpu"
                and inflight.has_collectives(self.hlo_text())
            ):
                self.launch = inflight.one_at_a_time(self.launch)

    def _not_here(self, *_: object, **__: object) -> Any:
        raise RuntimeError(
            f"{self.name or 'the program'} was compiled ahead of time for "
            f"{self.devices[0].device_kind}, which is not here: it cannot be run"
        )

    def execute(self, buffers: Sequence[Buffer], handlers: Sequence[Any]) -> list[Any]:
        """Runs the program; does not wait for it.

        Args:
          buffers: the arguments, each on the program's device.
          handlers: one `buffers.result_handler` for each result.

        Returns:
          What each handler made: a list of buffers.

        Raises:
          BaseException: what a callback of the program raised, if it did.
          RuntimeFailure: the runtime failed.
        """
        try:
            results: list[Any] = self.launch(buffers).consume_with_handlers(handlers)
        except RuntimeFailure as error:
            raise_original(error)
            raise
        return results

    def execute_with_token(
        self, buffers: Sequence[Buffer], handlers: Sequence[Any]
    ) -> tuple[list[Any], Any]:
        """Runs the program; also returns what to wait on until its effects are done.

        Args:
          buffers: the arguments, each on the program's device.
          handlers: one `buffers.result_handler` for each result.

        Returns:
          The results, and a token with ``block_until_ready()``.

        Raises:
          BaseException: what a callback of the program raised, if it did.
          RuntimeFailure: the runtime failed.
        """
        try:
            raw = self.launch(buffers, with_tokens=True)
            token = raw.consume_token()
            return raw.consume_with_handlers(handlers), token
        except RuntimeFailure as error:
            raise_original(error)
            raise

    def result_shardings(self) -> list[HloSharding]:
        """Returns how each result is laid over the devices."""
        found = self._program.get_output_shardings()
        if found is None:  # one partition: nothing to say
            return []
        return [HloSharding.from_proto(proto) for proto in found]

    def result_memory_kinds(self) -> list[str | None]:
        """Returns the kind of memory of each result, None for the devices' own."""
        (kinds,) = self._program.get_output_memory_kinds()
        return [memory_kinds.check_kind(self.devices[0], kind) for kind in kinds]

    def hlo_text(self) -> str:
        """Returns the optimised HLO."""
        return "\n\n".join(m.to_string() for m in self._program.hlo_modules())

    def cost_analysis(self) -> dict[str, Any]:
        """Returns XLA's estimates: ``flops``, ``bytes accessed``, ... Floats mostly."""
        try:
            return dict(self._program.cost_analysis())
        except RuntimeFailure:  # a plug-in need not have it
            return {}

    def memory_analysis(self) -> dict[str, int]:
        """Returns the bytes of arguments, outputs, temporaries, aliases and code.

        Those in host memory (``host_...``) are not among the device's.
        """
        try:
            stats = self._program.get_compiled_memory_stats()
        except RuntimeFailure:  # a plug-in need not have it
            return {}
        return {
            "argument_size_in_bytes": stats.argument_size_in_bytes,
            "output_size_in_bytes": stats.output_size_in_bytes,
            "temp_size_in_bytes": stats.temp_size_in_bytes,
            "alias_size_in_bytes": stats.alias_size_in_bytes,
            "generated_code_size_in_bytes": stats.generated_code_size_in_bytes,
            "peak_memory_in_bytes": stats.peak_memory_in_bytes,
            "host_argument_size_in_bytes": stats.host_argument_size_in_bytes,
            "host_output_size_in_bytes": stats.host_output_size_in_bytes,
            "host_temp_size_in_bytes": stats.host_temp_size_in_bytes,
            "host_alias_size_in_bytes": stats.host_alias_size_in_bytes,
        }

    def serialize(self) -> bytes:
        """Returns the compiled program as bytes for the same jaxlib and device kind."""
        return bytes(self._program.serialize())

    def __repr__(self) -> str:
        where = ", ".join(map(str, self.devices))
        return f"Executable({self.name or 'unnamed'} on {where})"


def build_options(
    devices: Sequence[Device],
    options: Mapping[str, OptionValue] | None = None,
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_shardy: bool = False,
    free_results: Sequence[bool] = (),
) -> CompileOptions:
    """Returns XLA's options for a program.

    Args:
      devices: replica-major, ``num_replicas * num_partitions`` of them.
      options: names of XLA's debug options and build options and their values.
      num_replicas: copies of the program.
      num_partitions: parts of each copy.
      use_shardy: whether the program is partitioned by Shardy, not GSPMD.
      free_results: for each result, whether the partitioner chooses its sharding.

    Raises:
      ValueError: the number of devices does not fit.
      CompileError: an option does not exist or has the wrong type.
    """
    if len(devices) != num_replicas * num_partitions:
        raise ValueError(
            f"compile: {num_replicas} replicas x {num_partitions} partitions need "
            f"{num_replicas * num_partitions} devices, got {len(devices)}"
        )
    result = CompileOptions()
    result.num_replicas = num_replicas
    result.num_partitions = num_partitions
    ids = np.array([d.id for d in devices]).reshape(num_replicas, num_partitions)
    result.device_assignment = DeviceAssignment.create(ids)
    build = result.executable_build_options
    build.use_shardy_partitioner = use_shardy
    if num_partitions > 1:
        build.use_spmd_partitioning = True
    if any(free_results):
        build.allow_spmd_sharding_propagation_to_output = list(free_results)
    overrides: list[tuple[str, OptionValue]] = []
    if options:
        for name, value in options.items():
            if name not in _BUILD_OPTIONS or not hasattr(build, name):
                overrides.append((name, value))
                continue
            try:
                setattr(build, name, value)
            except TypeError:
                raise CompileError(
                    f"compiler option {name!r} cannot be {value!r}"
                ) from None
    if overrides:
        result.env_option_overrides = overrides
    return result


def convolution_options(device: Device) -> dict[str, OptionValue]:
    """Returns options with which large convolutions take less time than by default.

    In jaxlib 0.10 XLA:CPU leaves them to YNNPACK, which is slow where many numbers are
    summed: 8 images of 28 × 28 × 96, windows of 5 × 5 and 256 features take 176 ms of
    CPU time, and 52 by XLA itself; the gradient of 3 × 3 windows over 112 × 112 1,025
    and 205. Small ones are a little quicker by YNNPACK. In 0.11 all are equal.

    Args:
      device: that the program is for.
    """
    fault = faults.present("slow convolutions", device.platform)
    return dict(faults.chosen(fault.options)) if fault else {}


def loop_options(device: Device) -> dict[str, OptionValue]:
    """Returns options with which programs with loops over arrays take less memory.

    XLA:CPU prefers to run what it can at once, and fills what a loop is going to stack
    with zeros long before. Programs with loops have little else to do meanwhile.
    Temporary memory of an LSTM's step falls from 10.2 to 7.9 MB, of other loads with
    loops by 5 to 25 %, in the same time.

    Args:
      device: that the program is for.
    """
    if device.platform != "cpu" or _SCHEDULE in os.environ.get("XLA_FLAGS", ""):
        return {}
    return {_SCHEDULE: "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def compile(
    module_text: str | bytes,
    placement_or_devices: Placement | Sequence[Device],
    *,
    options: Mapping[str, OptionValue] | None = None,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_shardy: bool = False,
    free_results: Sequence[bool] = (),
    callbacks: Sequence[HostCallback] = (),
    name: str = "",
) -> Executable:
    """Compiles a StableHLO module, or loads it from the disk cache.

    Args:
      module_text: the module as text or bytecode, with ``func.func @main``.
      placement_or_devices: a placement, or devices in replica-major order.
      options: XLA's debug options and build options by name, before those that keep
        the program from known faults (`faults`).
      num_replicas: copies of the program.
      num_partitions: parts of each copy.
      use_shardy: whether the program is partitioned by Shardy.
      free_results: for each result, whether the partitioner chooses its sharding.
      callbacks: the Python functions it calls; see `callbacks.custom_call`.
      name: for messages.

    Returns:
      The program. Compiled for a device of a topology, it cannot be run.

    Raises:
      CompileError: XLA refused the program; the message is its first useful line.
      ValueError: the number of devices does not fit.
    """
    process.require_not_forked()
    devices = (
        placement_or_devices.devices
        if isinstance(placement_or_devices, Placement)
        else tuple(placement_or_devices)
    )
    settings = build_options(
        devices,
        {**faults.options(devices[0].platform), **(options or {})},
        num_replicas=num_replicas,
        num_partitions=num_partitions,
        use_shardy=use_shardy,
        free_results=free_results,
    )
    _announce(name, module_text, devices)
    start = time.perf_counter()
    try:
        program, from_cache = _program(module_text, devices, settings, callbacks)
    except (RuntimeFailure, ValueError) as error:
        raise _compile_error(error, module_text, name) from None
    if config.log_compiles:
        done = "read from the cache" if from_cache else "compiled"
        log_step(done, name, start)
    return Executable(program, name, devices, from_cache)


def _program(
    module_text: str | bytes,
    devices: tuple[Device, ...],
    settings: CompileOptions,
    callbacks: Sequence[HostCallback],
) -> tuple[LoadedExecutable | CompiledOnly, bool]:
    """Returns the program and whether it came from the disk."""
    client: Any = devices[0].client
    if isinstance(client, CompileOnlyClient):
        # This client takes modules of the bindings only.
        module = mlir_module(module_text)
        compiled = process.shielded(
            client.compile, module, DeviceList(devices), settings
        )
        return compiled, False
    # Programs that span processes are compiled together by all of them; not on CPUs,
    # where each process compiles by itself and an elastic run comes back to a number of
    # members it had before.
    here = client.process_index()
    alone = devices[0].platform == "cpu" or all(
        d.process_index == here for d in devices
    )
    cached = config.cache and alone
    key = b""
    if cached:
        extra = f"{len(callbacks)} callbacks"
        key = cache.key(module_text, settings.SerializeAsString(), devices[0], extra)
        payload = cache.load(key)
        if payload is not None:
            try:
                return _load(payload, devices, settings, callbacks), True
            except RuntimeFailure:
                cache.discard(key)
    program = process.shielded(
        client.compile_and_load, module_text, DeviceList(devices), settings
    )
    if not cached and not callbacks:
        return program, False
    try:
        payload = bytes(program.serialize())
    except RuntimeFailure:
        if callbacks:
            raise
        return program, False  # a plug-in need not be able to
    if cached:
        cache.store(key, payload)
    if callbacks:
        # `compile_and_load` takes callbacks only with a module of the MLIR bindings,
        # which cost an import. Loading takes them with anything, in half a
        # millisecond.
        program = _load(payload, devices, settings, callbacks)
    return program, False


def mlir_module(module_text: str | bytes) -> Any:
    """Returns a module of the MLIR bindings.

    They cost an import that a process which runs its programs need not pay.
    """
    return importlib.import_module("fxflow.devices.mlir").parse(module_text)


def hlo_computation(module_text: str | bytes) -> Any:
    """Returns a module as XLA takes it in, before any pass: an `XlaComputation`."""
    return raw.mlir.mlir_module_to_xla_computation(
        module_text, use_tuple_args=False, return_tuple=False
    )


def load(payload: bytes, placement: Placement, name: str = "") -> Executable:
    """Returns the program that `Executable.serialize` gave, of one device.

    Args:
      payload: the program; it is machine code.
      placement: where it is to run: a device of the kind it was compiled for.
      name: for messages.

    Raises:
      RuntimeFailure: it is not a compiled program, or not for this device.
    """
    process.require_not_forked()
    devices = placement.devices
    program = process.shielded(_load, payload, devices, build_options(devices), ())
    return Executable(program, name, devices, True)


def _load(
    payload: bytes,
    devices: tuple[Device, ...],
    settings: CompileOptions,
    callbacks: Sequence[HostCallback],
) -> LoadedExecutable:
    client: Any = devices[0].client
    where = DeviceList(devices)
    more = (list(callbacks),) if callbacks else ()
    program: LoadedExecutable
    program = client.deserialize_executable(payload, where, settings, *more)
    return program


def _compile_error(
    error: Exception, module_text: str | bytes, name: str
) -> CompileError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = next((x for x in lines if "error:" in x), lines[0] if lines else "")
    result = CompileError(f"XLA could not compile {name or 'the program'}: {useful}")
    result.module_text = module_text if isinstance(module_text, str) else None
    return result
