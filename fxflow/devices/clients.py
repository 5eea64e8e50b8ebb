"""Clients: the connections to the platforms' runtimes, made when first needed.

A client serves one platform ("cpu", "gpu", "tpu" or the name of a PJRT plug-in) and
owns its devices. Importing this module makes no client. A request for the CPU makes the
CPU client alone, so that host work never waits for an accelerator to start.

The default platform is the first of ``config.platforms`` if that is set; then a
platform that cannot be used is an error that says why. Otherwise it is the first
accelerator that starts, or the CPU; `fxflow.devices.doctor` explains why an accelerator
did not start.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from fxflow._config import config
from fxflow.devices import plugins
from fxflow.devices._jaxlib import Client, Device, RuntimeFailure, xla_client
from fxflow.devices.remote import RemoteDevice, refusal
from fxflow.errors import BackendError, PlacementError

_lock = threading.RLock()
_clients: dict[str, Client] = {}
_failures: dict[str, str] = {}
_order: list[str] | None = None
_on_clear: list[Callable[[], None]] = []
#: Arguments of `make_cpu_client` in addition to the number of devices: the distributed
#: runtime's client, this process's number and the collectives. See `configure_cpu`.
_cpu_arguments: dict[str, Any] = {}
#: Whether programs run in the thread that calls them. See `run_in_callers`.
_in_callers = False
#: Arguments of `plugins.make_client`. See `configure_plugins`.
_plugin_arguments: dict[str, Any] = {}

#: The custom call that XLA's GPU compiler makes a kernel of, given as Triton's IR.
TRITON = "__gpu$xla.gpu.triton"
# "gpu" means the first of these that is available.
_GPU = ("cuda", "rocm")


# -- making clients --------------------------------------------------------------------


def _number_of_cpu_devices(configured: int | None = None) -> int:
    configured = config.num_cpu_devices if configured is None else configured
    if configured:
        return configured
    found = re.findall(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    return max(1, int(found[-1])) if found else 1


def _require_not_late(configured: int) -> None:
    """Raises `BackendError` if the CPU client already has another number of devices."""
    started = _clients.get("cpu")
    wanted = _number_of_cpu_devices(configured)
    if started is not None and len(started.local_devices()) != wanted:
        raise BackendError(
            f"config.num_cpu_devices: the CPU client has started with "
            f"{len(started.local_devices())} devices and cannot get {wanted}: set it "
            "before the first use, or call fxflow.devices.clear_backends() first"
        )


config.guard("num_cpu_devices", _require_not_late)


def _require_undecided(platforms: str) -> None:
    """Raises `BackendError` if another default platform is already in use."""
    wanted = [_canonical(p) for p in platforms.split(",") if p.strip()]
    if _order is not None and wanted and wanted[0] != _order[0]:
        raise BackendError(
            f"config.platforms: {_order[0]} is in use as the default platform, so "
            f"{platforms!r} would have no effect: set it before the first use, or call "
            "fxflow.devices.clear_backends() first"
        )


config.guard("platforms", _require_undecided)


_COLLECTIVE_TIMEOUT = "--xla_cpu_collective_timeout_seconds"


def bound_collectives() -> None:
    """Sets the timeout of the CPU's collectives to ``config.collective_timeout``.

    XLA reads it only from the environment, when the first client is made. Without it,
    all other processes wait forever for one that is stuck.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _COLLECTIVE_TIMEOUT not in flags:
        seconds = max(1, round(config.collective_timeout))
        os.environ["XLA_FLAGS"] = f"{flags} {_COLLECTIVE_TIMEOUT}={seconds}".strip()


_before_joining: list[Callable[[], None]] = []


def before_joining(check: Callable[[], None]) -> None:
    """Calls `check` before a CPU client of several processes is made.

    Making the client waits for all processes: `check` raises if one of them is lost.
    """
    _before_joining.append(check)


def _check_joining() -> None:
    if "collectives" in _cpu_arguments:
        for check in _before_joining:
            check()


def _make(platform: str) -> Client:
    if platform == "cpu":
        if "collectives" in _cpu_arguments:
            bound_collectives()
        return xla_client.make_cpu_client(
            num_devices=_number_of_cpu_devices(),
            asynchronous=not _in_callers,
            **_cpu_arguments,
        )
    return plugins.make_client(platform, **_plugin_arguments)


def _start(platform: str) -> Client | None:
    """Returns the client of `platform`, starting it; None if that fails or failed."""
    with _lock:
        known = _clients.get(platform)
        if known is None and platform not in _failures:
            if platform == "cpu":
                _check_joining()
            try:
                known = _make(platform)
                if platform == "cpu":
                    _check_joining()  # a lost process's devices would be missing
                if not known.devices():
                    raise BackendError("it started but has no devices")
                _clients[platform] = known
            except (BackendError, RuntimeFailure, OSError, ImportError) as error:
                if platform == "cpu":
                    _check_joining()  # a process lost in the meantime is the cause
                known = None
                _failures[platform] = str(error) or type(error).__name__
        return known


def _canonical(platform: str) -> str:
    """Returns the name under which a platform's client is kept."""
    name = platform.strip().lower()
    if name == "gpu":
        available = [p for p in _GPU if p in _clients or plugins.is_present(p)]
        return available[0] if available else "cuda"
    return name


def requested() -> list[str]:
    """Returns the canonical names of the platforms in ``config.platforms``."""
    return [_canonical(p) for p in config.platforms.split(",") if p.strip()]


def platforms() -> tuple[str, ...]:
    """Returns the platforms in use, the default first; starts their clients.

    Raises:
      BackendError: a platform named by ``config.platforms`` cannot be used.
    """
    global _order
    if _refusals:
        raise _refusals[0]()
    if _order is not None:
        return tuple(_order)
    with _lock:
        if _order is None:
            named = requested()
            if named:
                for platform in named:
                    if _start(platform) is None:
                        raise BackendError(_why_not(platform, "config.platforms"))
                _order = list(dict.fromkeys(named))
            else:
                found = [p for p in plugins.present() if _start(p) is not None]
                _start("cpu")
                _order = [*found, "cpu"]
        return tuple(_order)


def _why_not(platform: str, asked_by: str) -> str:
    reason = _failures.get(platform, "unknown platform")
    known = ", ".join(sorted({"cpu", *plugins.present()}))
    return (
        f"platform {platform!r} was asked for by {asked_by} but cannot be used: "
        f"{reason}\nPlatforms installed here: {known}. "
        "fxflow.devices.doctor() explains more."
    )


def client(platform: str | None = None) -> Client:
    """Returns the client of a platform, starting it if necessary.

    Args:
      platform: ``"cpu"``, ``"gpu"``, ``"cuda"``, ``"tpu"`` or a plug-in's name; None
        is the default platform.

    Raises:
      BackendError: the platform cannot be used; the message says why.
    """
    if platform is None:
        return _clients[platforms()[0]]
    name = _canonical(platform)
    if _refusals:
        raise _refusals[0]()
    known = _clients.get(name) or _start(name)
    if known is None:
        raise BackendError(_why_not(name, "the caller"))
    return known


_refusals: list[Callable[[], Exception]] = []


def refuse(why: Callable[[], Exception]) -> None:
    """Makes every later request for a client raise.

    Args:
      why: returns the exception to raise.
    """
    _refusals.append(why)


def failures() -> dict[str, str]:
    """Returns the reason for each platform that did not start."""
    return dict(_failures)


def configure_cpu(**arguments: Any) -> None:
    """Sets the arguments of the next CPU client, for a run of several processes.

    Args:
      **arguments: ``distributed_client``, ``node_id``, ``num_nodes``, ``collectives``
        as jaxlib's ``make_cpu_client`` takes them; without any, one process.

    Raises:
      RuntimeError: the CPU client has started; call `clear_backends` first.
    """
    with _lock:
        if "cpu" in _clients:
            raise RuntimeError(
                "the CPU client has started already; call clear_backends() before "
                "configure_cpu()"
            )
        _cpu_arguments.clear()
        _cpu_arguments.update(arguments)


def run_in_callers() -> bool:
    """Lets the CPU run programs in the threads that call them, in the whole process.

    By default, a call starts its program in another thread and returns. A process that
    waits for each result, as one that serves does, only pays for the switch between the
    threads: half of the CPU time of a small program.

    Returns:
      Whether it has an effect: not if the CPU client has started already.
    """
    global _in_callers
    with _lock:
        _in_callers = _in_callers or "cpu" not in _clients
        return _in_callers


def configure_plugins(**arguments: Any) -> None:
    """Sets the arguments of the next plug-in's client, for a run of several processes.

    Args:
      **arguments: ``distributed_client``, ``node_id``, ``num_nodes``,
        ``visible_devices`` as `plugins.make_client` takes them; without any, one
        process.
    """
    with _lock:
        _plugin_arguments.clear()
        _plugin_arguments.update(arguments)


def started() -> tuple[str, ...]:
    """Returns the platforms whose client has started; starts none."""
    return tuple(_clients)


def on_clear(callback: Callable[[], None]) -> None:
    """Calls `callback` when the clients are dropped, to drop references to them."""
    _on_clear.append(callback)


def clear_backends() -> None:
    """Drops all clients; the next use makes new ones.

    Existing arrays and executables keep their old client alive and must not be mixed
    with new ones.
    """
    global _order
    with _lock:
        for callback in tuple(_on_clear):
            callback()
        _clients.clear()
        _failures.clear()
        _order = None
        _default.device = None


# -- devices ---------------------------------------------------------------------------


def devices(backend: str | None = None) -> list[Device]:
    """Returns the devices of a platform in all processes.

    Args:
      backend: the platform; None is the default platform.

    Returns:
      A new list, in the order of the devices' numbers.

    Raises:
      BackendError: the platform cannot be used.

    Example:
      >>> fxflow.devices("cpu")[0].platform
      'cpu'
    """
    return list(client(backend).devices())


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """Returns the devices that belong to one process.

    Args:
      process_index: the process; None is this process.
      backend: the platform; None is the default platform.
      host_id: older name of `process_index`.

    Returns:
      A new list, in the order of the devices' numbers.

    Raises:
      ValueError: there is no such process.
      BackendError: the platform cannot be used.

    Example:
      >>> fxflow.local_devices() == fxflow.devices()  # there is one process
      True
    """
    if process_index is None:
        process_index = host_id
    owner = client(backend)
    if process_index is None:
        return list(owner.local_devices())
    found = [d for d in owner.devices() if d.process_index == process_index]
    if not found:
        count = process_count(backend)
        raise ValueError(
            f"process_index {process_index} does not exist: there are {count} "
            f"processes, 0 to {count - 1}"
        )
    return found


def device_count(backend: str | None = None) -> int:
    """Returns the number of devices of a platform in all processes.

    Args:
      backend: the platform; None is the default platform.

    Returns:
      At least 1.

    Example:
      >>> fxflow.device_count() == len(fxflow.devices())
      True
    """
    return int(client(backend).device_count())


def local_device_count(backend: str | None = None) -> int:
    """Returns the number of devices of a platform in this process.

    Args:
      backend: the platform; None is the default platform.

    Returns:
      At least 1.

    Example:
      >>> fxflow.local_device_count("cpu") == len(fxflow.local_devices(backend="cpu"))
      True
    """
    return int(client(backend).local_device_count())


def process_index(backend: str | None = None) -> int:
    """Returns the number of this process.

    Args:
      backend: the platform; None is the default platform.

    Returns:
      From 0 to ``process_count(backend) - 1``.

    Example:
      >>> fxflow.process_index()
      0
    """
    return int(client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """Returns the number of processes that share the platform's devices.

    Args:
      backend: the platform; None is the default platform.

    Returns:
      1 unless this process joined others.

    Example:
      >>> fxflow.process_count()
      1
    """
    return 1 + max(int(d.process_index) for d in client(backend).devices())


def default_backend() -> str:
    """Returns the name of the default platform.

    Returns:
      ``"cpu"``, ``"gpu"``, ``"tpu"`` or the name of a plug-in.

    Example:
      >>> fxflow.default_backend() == fxflow.devices()[0].platform
      True
    """
    return str(client().platform)


def cpu_device(index: int = 0) -> Device:
    """Returns one of this process's CPU devices, starting only the CPU client."""
    device: Device = client("cpu").local_devices()[index]
    return device


# -- the default device ----------------------------------------------------------------


class _Default(threading.local):
    """The device that a ``with`` block of this thread chose; None outside of one."""

    chosen: Device | None = None


class _ProcessDefault:
    """The device that `set_default_device` chose."""

    __slots__ = ("device",)

    def __init__(self) -> None:
        self.device: Device | None = None


_thread = _Default()
_default = _ProcessDefault()


_NAME = (
    r"(?i)(?:/job:(?P<job>\w+))?(?:/replica:\d+)?(?:/task:(?P<task>\d+))?"
    r"/device:(?P<kind>\w+):(?P<index>\d+)$"
)


def resolve(device: Device | RemoteDevice | str) -> Device:
    """Returns the device that a name refers to.

    Args:
      device: a `Device` (returned as it is), ``"gpu"``, ``"gpu:1"`` (of this
        process), or ``"/job:worker/task:17/device:gpu:3"``: the fourth GPU of
        process 17; without a task, of this process. The job's name is ignored:
        fxflow numbers all processes consecutively.

    Raises:
      PlacementError: there is no such device, or it is a task's.
      BackendError: the platform cannot be used.
      TypeError: it is neither a device nor a string.
    """
    if isinstance(device, Device):
        return device
    if not isinstance(device, str):
        if isinstance(device, RemoteDevice):
            raise refusal([device])
        raise TypeError(
            f"a device must be a Device or its name, such as 'cpu:1' or "
            f"'/job:worker/task:0/device:cpu:1'; got {device!r}"
        )
    found = re.match(_NAME, device)
    if found:
        kind, index = found["kind"].lower(), int(found["index"])
        owner = client(kind)
        task = int(found["task"]) if found["task"] else owner.process_index()
        among: list[Device] = [d for d in owner.devices() if d.process_index == task]
    elif device.startswith("/"):
        raise PlacementError(
            f"{device!r} is not a device name: write "
            "'/job:worker/task:<process>/device:<platform>:<number>'"
        )
    else:
        kind, _, number = device.partition(":")
        if number and not number.isdigit():
            raise PlacementError(f"{device!r} is not a device name: write 'cpu:1'")
        index = int(number or 0)
        among = list(client(kind).local_devices())
    if index >= len(among):
        available = ", ".join(map(str, among)) or "none"
        raise PlacementError(f"no device {device!r}; available devices: {available}")
    return among[index]


def _as_device(device: Device | str | None) -> Device | None:
    return None if device is None else resolve(device)


class _DefaultDevice(ContextDecorator):
    """The context manager and decorator of `default_device`."""

    __slots__ = ("_before", "_device")

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._before: list[Device | None] = []

    def __enter__(self) -> Device | None:
        self._before.append(_thread.chosen)
        _thread.chosen = self._device
        return self._device

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _thread.chosen = self._before.pop()


_UNSET: Any = object()


def default_device(device: Device | str | None = _UNSET) -> Any:
    """Returns the default device, or a ``with`` block that changes it in this thread.

    New arrays for which no device is given, and the results of functions of them, are
    on the default device.

    Args:
      device: a `Device`, or the name of one (``"cpu"``, ``"gpu:1"``), or None for the
        process's default. If it is omitted, nothing changes.

    Returns:
      The current default `Device` if `device` is omitted, else a context manager.

    Raises:
      PlacementError: the platform has no such device.
      BackendError: the platform cannot be used.

    Example:
      >>> with fxflow.default_device("cpu:0"):
      ...     x = fnp.ones(3)
      >>> x.devices() == {fxflow.devices("cpu")[0]}
      True
    """
    if device is not _UNSET:
        return _DefaultDevice(_as_device(device))
    current = _thread.chosen or _default.device
    return client().local_devices()[0] if current is None else current


def set_default_device(device: Device | str | None) -> None:
    """Sets the default device of the process.

    Args:
      device: a `Device`, the name of one, or None for the first device of the default
        platform.

    Example:
      >>> fxflow.devices.set_default_device("cpu:0")
      >>> fxflow.default_device() == fxflow.devices("cpu")[0]
      True
      >>> fxflow.devices.set_default_device(None)
    """
    _default.device = _as_device(device)


def runs_triton(device: Device) -> bool:
    """Returns whether XLA compiles Triton's IR for a device.

    It does for NVIDIA's GPUs of compute capability 8.0 and above.
    """
    # An AMD GPU has a name here, such as gfx942.
    capability = str(getattr(device, "compute_capability", ""))
    return bool(re.fullmatch(r"\d+\.\d+", capability)) and float(capability) >= 8
