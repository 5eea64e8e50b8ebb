"""`doctor`: reports which devices are used, and why others are not.

`problem_report` adds what a reader of a bug report needs.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator

import numpy as np

from fxflow._config import config
from fxflow._version import __version__
from fxflow.devices import cache, clients, memory, plugins, process
from fxflow.devices._jaxlib import jaxlib_version
from fxflow.errors import BackendError

#: Variables that change what fxflow and XLA do; and names of those that hold secrets.
_VARIABLES = re.compile(
    r"(FXFLOW|JAX|XLA|TF|CUDA|NCCL|NVIDIA|ROCR|HIP|TPU|LIBTPU|OMP|MKL|OPENBLAS|SLURM)_"
    r"|LD_LIBRARY_PATH$|LD_PRELOAD$|PYTHON"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
#: Packages that fxflow uses, and plug-ins.
_PACKAGES = re.compile(
    r"jax|jaxlib|numpy|scipy|ml-dtypes|opt-einsum|llvmlite|tensorstore|zlib-ng|fsspec"
    r"|pyzmq|lmdb|grpcio|protobuf|starlette|uvicorn|uvloop|ray|onnx|onnxruntime"
    r"|iree-base-.*|torch|tensorflow|jax-.*-(plugin|pjrt)|libtpu|nvidia-.*"
    r"|intel-extension-for-openxla"
)

_KNOWN = ("cuda", "rocm", "tpu")
_INSTALL = {
    "cuda": "pip install -e '.[cuda13]' in its folder (or [cuda12] for older drivers)",
    "rocm": f"install the wheel jax-rocm7-pjrt {jaxlib_version}",
    "tpu": "pip install -e '.[tpu]' in its folder",
}


def doctor(show: bool = True) -> str:
    """Reports which devices fxflow uses and why an accelerator is or is not used.

    Starts the clients if they have not started yet.

    Args:
      show: whether to print the report as well.

    Returns:
      The report.

    Example:
      >>> "cpu" in fxflow.devices.doctor(show=False)
      True
    """
    report = "\n".join(_lines())
    if show:
        print(report)
    return report


def problem_report() -> str:
    """Returns a text in Markdown to paste into a bug report.

    It has `doctor`'s report, the system, the versions of the packages that fxflow uses,
    and the environment variables that change what it does, without the values of those
    whose names look like secrets, and without the name of the home folder.
    """
    parts = ["### fxflow doctor", *_fenced(_lines()), "### System", *_fenced(_system())]
    parts += ["### Packages", *_fenced(_packages())]
    parts += ["### Environment", *_fenced(_variables())]
    text = "\n".join(parts)
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text


def _fenced(lines: Iterator[str]) -> list[str]:
    return ["", "```text", *lines, "```", ""]


def _system() -> Iterator[str]:
    import platform

    yield f"{platform.platform()}, {platform.machine()}"
    yield f"{platform.python_implementation()} {sys.version}".replace("\n", " ")
    yield f"processor: {_processor()}; {process.cores()} cores for this process"
    limit = memory.host_memory()
    yield f"memory: {memory.bytes_text(limit)}" if limit else "memory: unknown"


def _processor() -> str:
    import platform

    known = process.processor().get("model name")
    return known or platform.processor() or "unknown"


def _packages() -> Iterator[str]:
    import importlib.metadata  # late, as importing fxflow needs none of these

    for found in sorted(
        importlib.metadata.distributions(), key=lambda d: (d.name or "").lower()
    ):
        name = (found.name or "").lower().replace("_", "-")
        if _PACKAGES.fullmatch(name):
            yield f"{name} {found.version}"


def _variables() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if _VARIABLES.match(name):
            yield f"{name}={'(hidden)' if _SECRET.search(name) else value}"


def _lines() -> Iterator[str]:
    yield (
        f"fxflow {__version__}, jaxlib {jaxlib_version}, NumPy {np.__version__}, "
        f"Python {'.'.join(map(str, sys.version_info[:3]))} on {sys.platform}"
    )
    try:
        used = clients.platforms()
    except BackendError as error:
        used = ()
        yield f"NO BACKEND: {error}"
    for index, name in enumerate(used):
        found = clients.client(name).devices()
        kinds = ", ".join(sorted({str(d.device_kind) for d in found}))
        role = "the default" if index == 0 else "used on request"
        yield f"{name}: {len(found)} device(s) ({kinds}), {role}"
    yield ""
    try:
        installed = plugins.find()
    except BackendError as error:
        installed = {}
        yield str(error)
    for name in dict.fromkeys([*_KNOWN, *installed]):
        yield f"{name}: {_verdict(name, installed, used)}"
    yield ""
    yield from _settings()


def _verdict(
    name: str, installed: dict[str, plugins.Plugin], used: tuple[str, ...]
) -> str:
    plugin = installed.get(name)
    absent = plugins.missing_device(name)
    if name in used:
        assert plugin is not None
        return f"in use, from {plugin.source} {plugin.version}".rstrip()
    if plugin is None:
        if absent:
            return f"not used: {absent}; no plug-in is installed either"
        return (
            "not used: this machine may have a device, but no plug-in is installed: "
            f"{_INSTALL[name]}"
        )
    if config.platforms and name not in clients.requested():
        return f"not used: config.platforms is {config.platforms!r}"
    reason = clients.failures().get(name) or plugins.version_problem(plugin) or absent
    hints = "".join(f"; {hint}" for hint in _hints(name, plugin))
    return f"not used, though {plugin.source} is installed: {reason}{hints}"


def _hints(name: str, plugin: plugins.Plugin) -> Iterator[str]:
    """Yields other possible reasons why a plug-in did not start."""
    if name != "cuda":
        return
    if plugins.nvidia_folder("cudnn") is None and not os.environ.get("LD_LIBRARY_PATH"):
        yield "NVIDIA's libraries are not installed as wheels: " + _INSTALL["cuda"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        yield f"CUDA_VISIBLE_DEVICES is {visible!r}"
    if plugins.missing_device(name):
        return
    try:
        versions = importlib.import_module(f"{plugin.helper}._versions")
    except ImportError:
        yield f"{plugin.helper.replace('_', '-')} is not installed (solvers, callbacks)"
        return
    try:
        driver = versions.cuda_driver_get_version()
    except RuntimeError:
        yield "the NVIDIA driver does not report its version"
        return
    built = versions.cuda_runtime_build_version()
    if driver // 1000 < built // 1000:
        yield (
            f"the driver supports CUDA {driver // 1000}.{driver % 1000 // 10}, the "
            f"plug-in needs {built // 1000}.{built % 1000 // 10}: update the driver"
        )


def _settings() -> Iterator[str]:
    count = clients._number_of_cpu_devices()
    origin = (
        "config.num_cpu_devices"
        if config.num_cpu_devices
        else "XLA_FLAGS"
        if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
        else "the default"
    )
    yield f"CPU devices: {count} ({origin}); CPU cores: {process.cores()}"
    about = cache.info()
    state = "on" if about.enabled else "off"
    yield (
        f"compile cache: {state}, {about.directory}, {about.entries} programs, "
        f"{memory.bytes_text(about.nbytes)} of "
        f"{memory.bytes_text(config.cache_max_bytes)}; "
        f"this process: {about.hits} hits, {about.misses} misses"
    )
    yield f"XLA_FLAGS: {os.environ.get('XLA_FLAGS') or '(not set)'}"
    yield f"options that differ from their defaults: {config!r}"
