"""Compiles StableHLO modules and runs them.

A module is text: text takes as long to write as a module of the MLIR bindings, needs no
import of the bindings (16 ms), and the disk cache can hash it directly.
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
from fxflow.devices.assignment import Assigned, assigned_buffers
from fxflow.devices.buffers import Placement
from fxflow.devices.callbacks import HostCallback, raise_original
from fxflow.devices.remote import RemoteDevice, refusal
from fxflow.errors import CompileError

OptionValue = str | int | float | bool

#: Build options, which XLA separates from its debug options. Not every jaxlib has the
#: first two.
_BUILD_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
)


#: The option for the order in which XLA:CPU runs independent operations.
_SCHEDULE = "xla_cpu_scheduler_type"

#: Whether XLA:CPU writes fused operations with MLIR, which is optimized more.
_EMITTERS = "xla_cpu_use_fusion_emitters"

#: Called before a program for devices of several processes is compiled.
_shared: list[Callable[[str, str, list[int]], None]] = []


def on_shared_program(listener: Callable[[str, str, list[int]], None]) -> None:
    """Calls a function before each program that several processes run together.

    Args:
      listener: takes the program's name, a digest that is equal in all processes if
        they compile the same program, and the numbers of the processes.
    """
    _shared.append(listener)


def log_step(done: str, name: str, start: float) -> None:
    """Logs a step towards a program, for `config.log_compiles`.

    Args:
      done: the step, as a past participle: "compiled".
      name: name of the program.
      start: `time.perf_counter` at the start of the step.
    """
    seconds = time.perf_counter() - start
    logging.getLogger("fxflow").warning("%s %s in %.4f s", done, name, seconds)


def _announce(name: str, module_text: str | bytes, devices: Sequence[Device]) -> None:
    processes = sorted({d.process_index for d in devices})
    if len(processes) < 2 or not _shared:
        return
    text = module_text.encode() if isinstance(module_text, str) else module_text
    # Not the settings: processes may dump their programs to different places.
    ids = ",".join(str(d.id) for d in devices)
    digest = cache.sha256(ids.encode() + b";" + text).hexdigest()
    for listener in _shared:
        listener(name, digest, processes)


class Executable:
    """A compiled program.

    Attributes:
      loaded: jaxlib's object; None if compiled for a device of a topology.
      launch: ``launch(buffers)`` starts the program and returns the raw results; then
        ``.consume_with_handlers(handlers)`` gives the list of buffers.
      name: its name in messages.
      devices: the devices it runs on.
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
            f"{self.devices[0].device_kind}, which this process does not have: it "
            "cannot be run"
        )

    def execute(self, buffers: Sequence[Buffer], handlers: Sequence[Any]) -> list[Any]:
        """Runs the program; does not wait for it.

        Args:
          buffers: the arguments, each on the program's device.
          handlers: one `buffers.result_handler` for each result.

        Returns:
          The results, a list of buffers.

        Raises:
          BaseException: the exception of a callback of the program.
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
        """Runs the program; also returns a token to wait for its effects.

        Args:
          buffers: the arguments, each on the program's device.
          handlers: one `buffers.result_handler` for each result.

        Returns:
          The results, and a token with ``block_until_ready()``.

        Raises:
          BaseException: the exception of a callback of the program.
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
        """Returns the sharding of each result; an empty list for one partition."""
        found = self._program.get_output_shardings()
        if found is None:
            return []
        return [HloSharding.from_proto(proto) for proto in found]

    def result_memory_kinds(self) -> list[str | None]:
        """Returns the memory kind of each result, None for the devices' default."""
        (kinds,) = self._program.get_output_memory_kinds()
        return [memory_kinds.check_kind(self.devices[0], kind) for kind in kinds]

    def hlo_text(self) -> str:
        """Returns the optimized HLO."""
        return "\n\n".join(m.to_string() for m in self._program.hlo_modules())

    def cost_analysis(self) -> dict[str, Any]:
        """Returns XLA's estimates: ``flops``, ``bytes accessed``, ... Mostly floats."""
        try:
            return dict(self._program.cost_analysis())
        except RuntimeFailure:  # not every plug-in has it
            return {}

    def memory_analysis(self) -> dict[str, int]:
        """Returns the bytes of arguments, outputs, temporaries, aliases and code.

        The bytes in host memory (``host_...``) are not counted as the device's.
        """
        try:
            stats = self._program.get_compiled_memory_stats()
        except RuntimeFailure:  # not every plug-in has it
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

    def assigned_buffers(self) -> list[Assigned]:
        """Returns the buffers of the program; none if the plug-in does not tell."""
        try:
            stats = self._program.get_compiled_memory_stats()
            assigned: bytes = stats.serialized_buffer_assignment_proto
        except (RuntimeFailure, AttributeError):
            return []
        (module, *_) = self._program.hlo_modules()
        return assigned_buffers(assigned, module.as_serialized_hlo_module_proto())

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
      options: XLA's debug options and build options, by name.
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
    """Returns options that make large convolutions faster than the defaults do.

    In jaxlib 0.10 XLA:CPU runs convolutions with YNNPACK, which is slow for long sums:
    8 images of 28 × 28 × 96 with windows of 5 × 5 and 256 features take 176 ms of CPU
    time, and 52 ms with XLA's own code; the gradient for windows of 3 × 3 over 112 ×
    112 takes 1,025 and 205 ms. For small convolutions YNNPACK is slightly faster. In
    jaxlib 0.11 both are equally fast.

    Args:
      device: the device that the program is for.
    """
    fault = faults.present("slow convolutions", device.platform)
    return dict(faults.chosen(fault.options)) if fault else {}


def loop_options(device: Device) -> dict[str, OptionValue]:
    """Returns options that make programs with loops over arrays take less memory.

    By default XLA:CPU runs independent operations concurrently, so it allocates and
    zeros a loop's stacked results long before the loop. Programs with loops gain little
    from concurrency. The option cuts the temporary memory of an LSTM's step from 10.2
    to 7.9 MB, and of other programs with loops by 5 to 25 %, in the same time.

    Args:
      device: the device that the program is for.
    """
    if device.platform != "cpu" or _SCHEDULE in os.environ.get("XLA_FLAGS", ""):
        return {}
    return {_SCHEDULE: "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def quick_options(device: Device) -> dict[str, OptionValue]:
    """Returns options that make long programs compile faster, and run slower.

    XLA:CPU takes some 10 ms for each fused operation, half of which is for code that is
    two to three times as fast over large arrays: where `gammaincinv` of 10 numbers is
    compiled in 1.7 s, it is in 0.9 s with the option, which jaxlib 0.11 lacks.

    Args:
      device: the device that the program is for.
    """
    if device.platform != "cpu" or _EMITTERS in os.environ.get("XLA_FLAGS", ""):
        return {}
    return {_EMITTERS: False} if faults.version() < (0, 11) else {}


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
      options: XLA's debug options and build options by name; they take precedence over
        the options against known faults (`faults`).
      num_replicas: copies of the program.
      num_partitions: parts of each copy.
      use_shardy: whether the program is partitioned by Shardy.
      free_results: for each result, whether the partitioner chooses its sharding.
      callbacks: the Python functions it calls; see `callbacks.custom_call`.
      name: its name in messages.

    Returns:
      The program. A program for a device of a topology cannot be run.

    Raises:
      CompileError: XLA rejected the program; the message is its first useful line.
      PlacementError: the devices are those of a task.
      ValueError: the number of devices does not fit.
    """
    process.require_not_forked()
    devices = (
        placement_or_devices.devices
        if isinstance(placement_or_devices, Placement)
        else tuple(placement_or_devices)
    )
    if devices and isinstance(devices[0], RemoteDevice):
        raise refusal(devices, f"the program {name or 'compiled here'}")
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
    """Returns the program and whether it came from the disk cache."""
    client: Any = devices[0].client
    if isinstance(client, CompileOnlyClient):
        # This client accepts only modules of the MLIR bindings.
        module = mlir_module(module_text)
        compiled = process.shielded(
            client.compile, module, DeviceList(devices), settings
        )
        return compiled, False
    # All processes of a program compile it together, so none may take it from the cache
    # alone. On CPUs each process compiles by itself, and the cache helps an elastic run
    # that returns to an earlier number of members.
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
        return program, False  # not every plug-in can serialize
    if cached:
        cache.store(key, payload)
    if callbacks:
        # `compile_and_load` accepts callbacks only with a module of the MLIR bindings,
        # whose import takes 16 ms. Loading accepts them always, and takes 0.5 ms.
        program = _load(payload, devices, settings, callbacks)
    return program, False


def mlir_module(module_text: str | bytes) -> Any:
    """Returns a module of the MLIR bindings.

    Imports the bindings, which running a program does not need.
    """
    return importlib.import_module("fxflow.devices.mlir").parse(module_text)


def hlo_computation(module_text: str | bytes) -> Any:
    """Returns a module as an `XlaComputation`, before any of XLA's passes."""
    return raw.mlir.mlir_module_to_xla_computation(
        module_text, use_tuple_args=False, return_tuple=False
    )


def load(payload: bytes, placement: Placement, name: str = "") -> Executable:
    """Returns the program for one device that `Executable.serialize` wrote.

    Args:
      payload: the program; it is machine code.
      placement: where it will run: a device of the kind it was compiled for.
      name: its name in messages.

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
