"""Compiling a StableHLO module and running it.

The program comes as text: text and MLIR bindings cost the same to make, and text needs
no import of the bindings (16 ms) and gives the disk cache its key at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._jaxlib import (
    Buffer,
    CompileOptions,
    Device,
    DeviceAssignment,
    DeviceList,
    Executable as CompiledOnly,
    LoadedExecutable,
    RuntimeFailure,
)
from .buffers import Placement
from .errors import CompileError

__all__ = ["Executable", "compile"]

OptionValue = str | int | float | bool


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

    def _not_here(self, *_: object, **__: object) -> Any:
        raise RuntimeError(
            f"{self.name or 'the program'} was compiled ahead of time for "
            f"{self.devices[0].device_kind}, which is not here: it cannot be run"
        )

    def execute(self, buffers: Sequence[Buffer], handlers: Sequence[Any]) -> list[Any]:
        """Run the program; does not wait for it.

        Args:
            buffers: the arguments, each on the program's device.
            handlers: one `buffers.result_handler` for each result.

        Returns:
            What each handler made: a list of buffers.
        """
        results: list[Any] = self.launch(buffers).consume_with_handlers(handlers)
        return results

    def hlo_text(self) -> str:
        """Return the optimised HLO."""
        return "\n\n".join(m.to_string() for m in self._program.hlo_modules())

    def cost_analysis(self) -> dict[str, Any]:
        """Return XLA's estimates: ``flops``, ``bytes accessed``, ... Floats mostly."""
        try:
            return dict(self._program.cost_analysis())
        except RuntimeFailure:  # a plug-in need not have it
            return {}

    def memory_analysis(self) -> dict[str, int]:
        """Return the bytes of arguments, outputs, temporaries, aliases and code."""
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
        }

    def serialize(self) -> bytes:
        """Return the compiled program as bytes for the same jaxlib and device kind."""
        return bytes(self._program.serialize())

    def __repr__(self) -> str:
        return f"Executable({self.name or 'unnamed'} on {', '.join(map(str, self.devices))})"


def build_options(
    devices: Sequence[Device],
    options: Mapping[str, OptionValue] | None = None,
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_shardy: bool = False,
) -> CompileOptions:
    """Return XLA's options for a program.

    Args:
        devices: replica-major, ``num_replicas * num_partitions`` of them.
        options: names of XLA's debug options and build options and their values.
        num_replicas: copies of the program.
        num_partitions: parts of each copy.
        use_shardy: whether the program is partitioned by Shardy, not GSPMD.

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
    if options:
        overrides = []
        for name, value in options.items():
            if hasattr(build, name) and name != "debug_options":
                setattr(build, name, value)
            else:
                overrides.append((name, value))
        result.env_option_overrides = overrides
    return result


def compile(
    module_text: str | bytes,
    placement_or_devices: Placement | Sequence[Device],
    *,
    options: Mapping[str, OptionValue] | None = None,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_shardy: bool = False,
    name: str = "",
) -> Executable:
    """Compile a StableHLO module.

    Args:
        module_text: the module as text or bytecode, with ``func.func @main``.
        placement_or_devices: a placement, or devices in replica-major order.
        options: XLA's debug options and build options by name.
        num_replicas: copies of the program.
        num_partitions: parts of each copy.
        use_shardy: whether the program is partitioned by Shardy.
        name: for messages.

    Returns:
        The program. Compiled for a device of a topology, it cannot be run.

    Raises:
        CompileError: XLA refused the program; the message is its first useful line.
        ValueError: the number of devices does not fit.
    """
    devices = (
        placement_or_devices.devices
        if isinstance(placement_or_devices, Placement)
        else tuple(placement_or_devices)
    )
    settings = build_options(
        devices,
        options,
        num_replicas=num_replicas,
        num_partitions=num_partitions,
        use_shardy=use_shardy,
    )
    client: Any = devices[0].client
    try:
        if type(client).__name__ == "CompileOnlyPyClient":
            program = client.compile(module_text, DeviceList(devices), settings)
        else:
            program = client.compile_and_load(module_text, DeviceList(devices), settings)
    except (RuntimeFailure, ValueError) as error:
        raise _compile_error(error, module_text, name) from None
    return Executable(program, name, devices, from_cache=False)


def _compile_error(
    error: Exception, module_text: str | bytes, name: str
) -> CompileError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = next((x for x in lines if "error:" in x), lines[0] if lines else "")
    result = CompileError(f"XLA could not compile {name or 'the program'}: {useful}")
    result.module_text = module_text if isinstance(module_text, str) else None
    return result
