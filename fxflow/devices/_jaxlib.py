"""The pieces of jaxlib that fxflow stands on, under one roof.

The rest of `devices/` imports from here, and differences between jaxlib versions are
settled here and nowhere else. Importing this module loads numpy and jaxlib's extension
module (about 0.1 s together) and starts no backend.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import os
import sys
import threading

# PJRT logs its device count at INFO when a client is made; a library must not print.
# Read once, when the extension module is loaded: so it is set before.
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

#: jaxlib's own running number of its Python interface: 467 in 0.10.2, 495 in 0.11.2.
RUNTIME_VERSION: int = xla_client._version
jaxlib_version: str = jaxlib.version.__version__

if RUNTIME_VERSION < 467:
    raise ImportError(
        f"fxflow needs jaxlib >= 0.10.2, found jaxlib {jaxlib_version}; "
        "install a newer one with: pip install -U jaxlib"
    )

raw: Any = _jax

if TYPE_CHECKING:
    # jaxlib's extension module has no stubs: what users meet of it is said here, and
    # the rest is Any.
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
        """Every failure inside XLA or PJRT."""

    class _Opaque:
        """A class of the runtime: `isinstance` takes it, its members are Any."""

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
    #: An array as the runtime knows it: immutable memory on one or more devices.
    Buffer = _jax.ArrayImpl
    #: What every failure inside XLA or PJRT is raised as.
    RuntimeFailure = _jax.JaxRuntimeError

collect_garbage = _jax.collect_garbage
batched_block_until_ready = _jax.batched_block_until_ready
batched_device_put = _jax.batched_device_put
batched_copy_array_to_devices_with_sharding = (
    _jax.batched_copy_array_to_devices_with_sharding
)

# Every new array would otherwise capture the Python stack: 3 to 20 us each.
_jax.set_tracebacks_enabled(False)

# `batched_device_put` refuses to work until this is set. It is one slot for the
# process, which JAX fills with its own Config when it is imported; fxflow passes
# `enable_x64=True` where it matters and needs only *some* Config.
if "jax._src.config" not in sys.modules:
    jax_jit.set_enable_x64_state(_jax.config.Config("fxflow_x64", False))


class _Release(itertools.starmap):  # type: ignore[type-arg]
    """Lets go of Python objects that the runtime no longer needs.

    Threads of the runtime may not touch reference counts: what they are done with
    (NumPy memory a buffer aliased, exported buffers) waits until it is asked for, here
    at the start of each garbage collection.

    ``setattr(release, "start", info)`` calls `collect_garbage`, and no function of
    Python's: in one, an interrupt that has just come would be raised and, the caller
    being the garbage collector, dropped. That was one Ctrl-C of thirty.
    """

    start = property(fset=next)
    # What is called does nothing.
    stop = property(fset=operator.is_)  # type: ignore[arg-type]


gc.callbacks.append(
    functools.partial(setattr, _Release(collect_garbage, itertools.repeat(())))
)


class _NoJax:
    """A finder of modules by which one thread finds no jax."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Returns None: other finders may know."""
        if name == "jax" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(name)


def _without_jax(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function of the runtime that does not look for jax.

    It makes an array of each device's part, and wants jax for the type of each: that is
    50 us a part where there is no jax, and half a second where there is.
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
        # A view by Python's buffer protocol is 3 us, where the runtime's own way looks
        # for jax first: 60 us.
        try:
            return np.asarray(memoryview(buffer)), False
        except BufferError:  # bfloat16 and the like, not on a CPU, deleted, failed
            return _to_numpy(buffer)

else:
    HANDLER_OPTIONS = ()
    _to_numpy_and_keep = Buffer._to_np_array_did_copy

    def to_numpy(buffer: Any) -> Any:
        """Returns the values as a NumPy array, and whether they were copied."""
        # Here a buffer keeps the NumPy view it gave, and is then never donated in
        # place again. The clone (0.4 us) shares its memory and keeps it instead.
        return _to_numpy_and_keep(buffer.clone())
