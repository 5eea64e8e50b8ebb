"""The parts of jaxlib that fxflow uses.

The rest of `devices/` imports them from here, and only this module handles differences
between jaxlib versions. Importing it loads NumPy and jaxlib's extension module (about
0.1 s together) and starts no backend.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import os
import sys
import threading

# PJRT logs its device count at INFO when it makes a client; a library must not print.
# The extension module reads the variable once, while it loads: set it before.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jaxlib.version
import numpy as np
from jaxlib import _jax
from jaxlib import xla_client as xla_client
from jaxlib._jax import ffi as ffi
from jaxlib._jax import jax_jit
from jaxlib._jax import pytree as pytree

#: jaxlib's version number of its Python interface: 467 in 0.10.2, 495 in 0.11.2.
RUNTIME_VERSION: int = xla_client._version
jaxlib_version: str = jaxlib.version.__version__

if RUNTIME_VERSION < 467:
    raise ImportError(
        f"fxflow needs jaxlib >= 0.10.2, found jaxlib {jaxlib_version}; "
        "install a newer one with: pip install -U jaxlib"
    )

raw: Any = _jax

if TYPE_CHECKING:
    # jaxlib's extension module has no stubs: declare what users see of it; the rest is
    # Any.
    class Device:
        """A device of the runtime."""

        @property
        def id(self) -> int: ...
        @property
        def platform(self) -> str: ...
        @property
        def device_kind(self) -> str: ...
        @property
        def process_index(self) -> int: ...
        @property
        def task_id(self) -> int: ...
        @property
        def host_id(self) -> int: ...
        @property
        def local_hardware_id(self) -> int: ...
        @property
        def client(self) -> Any: ...
        def memory(self, kind: str, /) -> Any: ...
        def default_memory(self) -> Any: ...
        def addressable_memories(self) -> list[Any]: ...
        def memory_stats(self) -> dict[str, int] | None: ...
        def live_buffers(self) -> list[Any]: ...
        def get_stream_for_external_ready_events(self) -> int: ...

    class RuntimeFailure(RuntimeError):
        """A failure inside XLA or PJRT."""

    class _Opaque:
        """A class of the runtime that `isinstance` accepts; its members are Any."""

        def __getattr__(self, name: str) -> Any: ...

    class CompileOnlyClient(_Opaque): ...

    class LoadedExecutable(_Opaque): ...

    class PyTreeDef(_Opaque): ...

    class GSPMDSharding(_Opaque):
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    Client: TypeAlias = Any
    DeviceAssignment: TypeAlias = Any
    DeviceList: TypeAlias = Any
    DeviceTopology: TypeAlias = Any
    CompileOptions: TypeAlias = Any
    Executable: TypeAlias = Any
    HloSharding: TypeAlias = Any
    OpSharding: TypeAlias = Any
    HostBufferSemantics: TypeAlias = Any
    ArrayCopySemantics: TypeAlias = Any
    PyTreeRegistry: TypeAlias = Any
    Buffer: TypeAlias = Any
else:
    Client = _jax.Client
    Device = _jax.Device
    DeviceAssignment = _jax.DeviceAssignment
    DeviceList = _jax.DeviceList
    CompileOnlyClient = _jax.CompileOnlyPyClient
    DeviceTopology = _jax.DeviceTopology
    CompileOptions = _jax.CompileOptions
    Executable = _jax.Executable
    LoadedExecutable = _jax.LoadedExecutable
    GSPMDSharding = _jax.GSPMDSharding
    HloSharding = xla_client.HloSharding
    OpSharding = xla_client.OpSharding
    HostBufferSemantics = _jax.HostBufferSemantics
    ArrayCopySemantics = _jax.ArrayCopySemantics
    PyTreeDef = pytree.PyTreeDef
    PyTreeRegistry = pytree.PyTreeRegistry
    #: The runtime's array: immutable memory on one or more devices.
    Buffer = _jax.ArrayImpl
    #: The exception that XLA and PJRT raise for every failure.
    RuntimeFailure = _jax.JaxRuntimeError

collect_garbage = _jax.collect_garbage
batched_block_until_ready = _jax.batched_block_until_ready
batched_device_put = _jax.batched_device_put
batched_copy_array_to_devices_with_sharding = (
    _jax.batched_copy_array_to_devices_with_sharding
)

# Otherwise every new array captures the Python stack, which takes 3 to 20 us.
_jax.set_tracebacks_enabled(False)

# `batched_device_put` fails until this is set. The process has one slot, which JAX
# fills with its own Config when it is imported; fxflow passes `enable_x64=True` where
# it matters, so any Config will do.
if "jax._src.config" not in sys.modules:
    jax_jit.set_enable_x64_state(_jax.config.Config("fxflow_x64", False))


class _Release(itertools.starmap):  # type: ignore[type-arg]
    """Releases Python objects that the runtime no longer needs.

    Threads of the runtime must not change reference counts: they queue what they no
    longer need (NumPy memory that a buffer aliased, exported buffers). This class
    empties the queue at the start of each garbage collection.

    ``setattr(release, "start", info)`` calls `collect_garbage` without entering a
    Python function: there, Python would raise a pending KeyboardInterrupt, and the
    garbage collector would drop it (measured: one Ctrl-C in thirty).
    """

    start = property(fset=next)
    # `operator.is_` has no effect.
    stop = property(fset=operator.is_)  # type: ignore[arg-type]


gc.callbacks.append(
    functools.partial(setattr, _Release(collect_garbage, itertools.repeat(())))
)


class _NoJax:
    """A module finder that hides jax from one thread."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raises ModuleNotFoundError for jax; else leaves it to the other finders."""
        if name == "jax" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(name)


def _without_jax(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `function`, a function of the runtime, without its search for jax.

    It makes an array of each device's part and imports jax for the type of each: 50 us
    for each part if jax is not installed, and half a second if it is.
    """

    def call(buffer: Any) -> Any:
        if "jax" in sys.modules:
            return function(buffer)
        finder, finders = _NoJax(), sys.meta_path
        finders.insert(0, finder)
        try:
            return function(buffer)
        finally:
            finders.remove(finder)

    return call


def _parts_of(buffer: Any) -> Any:
    return buffer._arrays


parts_of = _without_jax(_parts_of)

array_result_handler = _jax.array_result_handler

if RUNTIME_VERSION < 495:
    # The fourth argument skips a comparison of avals that are interned already.
    HANDLER_OPTIONS: tuple[bool, ...] = (True,)

    _to_numpy = _without_jax(Buffer._single_device_array_to_np_array_did_copy)

    def to_numpy(buffer: Any) -> Any:
        """Returns the values as a NumPy array, and whether they were copied."""
        # A view by Python's buffer protocol takes 3 us; the runtime's own method takes
        # 60 us, because it looks for jax first.
        try:
            return np.asarray(memoryview(buffer)), False
        except BufferError:  # bfloat16 and the like, not on a CPU, deleted, failed
            return _to_numpy(buffer)

else:
    HANDLER_OPTIONS = ()
    _to_numpy_and_keep = Buffer._to_np_array_did_copy

    def to_numpy(buffer: Any) -> Any:
        """Returns the values as a NumPy array, and whether they were copied."""
        # This jaxlib keeps the NumPy view in the buffer, which is then never donated in
        # place again. A clone (0.4 us) shares the memory and keeps the view instead.
        return _to_numpy_and_keep(buffer.clone())
