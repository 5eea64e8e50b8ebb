"""PJRT plug-ins: accelerators' runtimes as shared libraries.

jaxlib contains only the CPU's runtime. The wheels ``jax-cuda13-pjrt``,
``jax-cuda12-pjrt`` (and the ones for ROCm) and ``libtpu`` contain the others. Their
Python modules import jax, so fxflow never imports them, but loads the library's file
directly. The environment variable
``PJRT_NAMES_AND_LIBRARY_PATHS="name:/path/to/plugin.so,..."`` names any other plug-in.

NVIDIA's own libraries (cuBLAS, cuDNN, ...) come from the wheels of the extra
``with-cuda``; fxflow loads them first, so that the plug-in finds these and not others.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fxflow.devices._jaxlib import Client, jaxlib_version, xla_client
from fxflow.errors import BackendError


class Plugin(NamedTuple):
    """An installed plug-in.

    Attributes:
      platform: ``"cuda"``, ``"rocm"``, ``"tpu"`` or its name in the environment.
      library: the shared library.
      source: the wheel or the environment variable it comes from.
      version: version of the wheel; empty if unknown.
      helper: the package with its custom call handlers, or empty.
    """

    platform: str
    library: Path
    source: str
    version: str = ""
    helper: str = ""


class _Wheel(NamedTuple):
    platform: str
    package: str
    file: str
    distribution: str
    helper: str = ""


# fxflow uses the first wheel for a platform that is installed and fits jaxlib.
_WHEELS = (
    _Wheel(
        "cuda",
        "jax_plugins.xla_cuda13",
        "xla_cuda_plugin.so",
        "jax-cuda13-pjrt",
        "jax_cuda13_plugin",
    ),
    _Wheel(
        "cuda",
        "jax_plugins.xla_cuda12",
        "xla_cuda_plugin.so",
        "jax-cuda12-pjrt",
        "jax_cuda12_plugin",
    ),
    _Wheel(
        "rocm",
        "jax_plugins.xla_rocm7",
        "xla_rocm_plugin.so",
        "jax-rocm7-pjrt",
        "jax_rocm7_plugin",
    ),
    _Wheel(
        "rocm",
        "jax_plugins.xla_rocm60",
        "xla_rocm_plugin.so",
        "jax-rocm60-pjrt",
        "jax_rocm60_plugin",
    ),
    _Wheel("tpu", "libtpu", "libtpu.so", "libtpu"),
)

_NAMES_AND_PATHS = "PJRT_NAMES_AND_LIBRARY_PATHS"
#: Wheels that are built together with jaxlib and share its version.
_VERSIONED = ("cuda",)
#: The order of preference; plug-ins named by the environment come after GPUs.
_PREFERENCE = {"cuda": 0, "rocm": 1, "tpu": 3}


# -- finding ---------------------------------------------------------------------------


def folder_of(package: str) -> Path | None:
    """Returns a package's folder, without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # its parent is not installed
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def _version(distribution: str) -> str:
    # Takes 18 ms: import it only if there are plug-ins.
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _from_wheels() -> list[Plugin]:
    found = []
    for wheel in _WHEELS:
        folder = folder_of(wheel.package)
        if folder is not None and (folder / wheel.file).exists():
            version = _version(wheel.distribution)
            found.append(
                Plugin(
                    wheel.platform,
                    folder / wheel.file,
                    wheel.distribution,
                    version,
                    wheel.helper,
                )
            )
    return found


def _from_environment() -> list[Plugin]:
    text = os.environ.get(_NAMES_AND_PATHS, "")
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, path = entry.partition(":")
        if not colon or not name or not path:
            raise BackendError(
                f"{_NAMES_AND_PATHS} must read name:path,name:path; got {text!r}"
            )
        found.append(Plugin(name.strip().lower(), Path(path), _NAMES_AND_PATHS))
    return found


def find() -> dict[str, Plugin]:
    """Returns the installed plug-ins by platform, best first.

    Raises:
      BackendError: ``PJRT_NAMES_AND_LIBRARY_PATHS`` cannot be parsed.
    """
    found: dict[str, Plugin] = {}
    for plugin in [*_from_environment(), *_from_wheels()]:
        known = found.get(plugin.platform)
        # Between two wheels for one platform, prefer the one that fits jaxlib.
        if known is None or (version_problem(known) and not version_problem(plugin)):
            found[plugin.platform] = plugin
    return dict(sorted(found.items(), key=lambda item: _PREFERENCE.get(item[0], 2)))


def present() -> tuple[str, ...]:
    """Returns the platforms with an installed plug-in, best first."""
    return tuple(find())


def is_present(platform: str) -> bool:
    """Returns whether the plug-in of `platform` is installed."""
    return platform in find()


# -- reasons not to load ---------------------------------------------------------------


def version_problem(plugin: Plugin) -> str:
    """Returns why a plug-in's version does not fit jaxlib's; empty if it fits."""
    if plugin.platform not in _VERSIONED or not plugin.version:
        return ""
    if _numbers(plugin.version) == _numbers(jaxlib_version):
        return ""
    return (
        f"{plugin.source} {plugin.version} does not fit jaxlib {jaxlib_version}: "
        f"install {plugin.source}=={jaxlib_version}"
    )


def _numbers(version: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+", version)[:3])


def missing_device(platform: str) -> str:
    """Returns why this machine has no device of `platform`; empty if it may have one.

    Only looks for files: loading a plug-in without a device takes time and prints.
    """
    if platform == "cuda":
        if (
            os.path.exists("/dev/dxg")
            or glob.glob("/dev/nvidia[0-9]*")
            or (
                glob.glob("/dev/nvhost-*gpu")  # Jetson
            )
        ):
            if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles"):
                shown = os.environ["CUDA_VISIBLE_DEVICES"]
                return f"CUDA_VISIBLE_DEVICES={shown!r} hides all GPUs"
            return ""
        return "this machine has no NVIDIA GPU or no driver (there is no /dev/nvidia0)"
    if platform == "rocm" and not os.path.exists("/dev/kfd"):
        return "this machine has no AMD GPU or no driver (there is no /dev/kfd)"
    if platform == "tpu" and not (
        glob.glob("/dev/accel[0-9]*") or glob.glob("/dev/vfio/[0-9]*")
    ):
        return "this machine has no TPU (there is no /dev/accel0 or /dev/vfio/0)"
    return ""


# -- loading ---------------------------------------------------------------------------

# NVIDIA's libraries in order of dependence: (folder in the `nvidia` namespace, file).
# CUDA 13 has one folder for most of them.
_NVIDIA_LIBRARIES = {
    "jax-cuda13-pjrt": (
        ("cu13", "libcudart.so.13"),
        ("cu13", "libnvrtc.so.13"),
        ("cu13", "libcublasLt.so.13"),
        ("cu13", "libcublas.so.13"),
        ("nccl", "libnccl.so.2"),
        ("cu13", "libcupti.so.13"),
        ("cu13", "libnvJitLink.so.13"),
        ("cu13", "libcusparse.so.12"),
        ("cu13", "libcusolver.so.12"),
        ("cu13", "libcufft.so.12"),
        ("nvshmem", "libnvshmem_host.so.3"),
        ("cudnn", "libcudnn.so.9"),
    ),
    "jax-cuda12-pjrt": (
        ("cuda_runtime", "libcudart.so.12"),
        ("cuda_nvrtc", "libnvrtc.so.12"),
        ("cublas", "libcublasLt.so.12"),
        ("cublas", "libcublas.so.12"),
        ("nccl", "libnccl.so.2"),
        ("cuda_cupti", "libcupti.so.12"),
        ("nvjitlink", "libnvJitLink.so.12"),
        ("cusparse", "libcusparse.so.12"),
        ("cusolver", "libcusolver.so.11"),
        ("cufft", "libcufft.so.11"),
        ("nvshmem", "libnvshmem_host.so.3"),
        ("cudnn", "libcudnn.so.9"),
    ),
}


def nvidia_folder(name: str) -> Path | None:
    """Returns the library folder of one of NVIDIA's wheels, without importing it."""
    try:
        spec = importlib.util.find_spec(f"nvidia.{name}")
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) / "lib" if folders else None


def _preload_nvidia(source: str) -> None:
    for name, file in _NVIDIA_LIBRARIES.get(source, ()):
        folder = nvidia_folder(name)
        if folder is not None and (folder / file).exists():
            try:
                ctypes.CDLL(str(folder / file))
            except OSError:
                # The plug-in then searches LD_LIBRARY_PATH and reports what is missing.
                continue


_loaded: dict[str, Any] = {}


def load(platform: str) -> Any:
    """Loads a plug-in's library, once in each process; returns its PJRT C API.

    Needs no device, so that programs can be compiled for a device elsewhere.

    Raises:
      BackendError: there is no such plug-in, or it cannot be loaded.
    """
    known = _loaded.get(platform)
    if known is not None:
        return known
    plugin = find().get(platform)
    if plugin is None:
        raise BackendError(f"no plug-in for {platform!r} is installed")
    if problem := version_problem(plugin):
        raise BackendError(problem)
    if not plugin.library.exists():
        raise BackendError(f"{plugin.source}: there is no file {plugin.library}")
    _preload_nvidia(plugin.source)
    try:
        api = xla_client.load_pjrt_plugin_dynamically(platform, str(plugin.library))
        _register_profiler(api)
        if plugin.helper:
            _register_handlers(plugin, api)
        if not xla_client.pjrt_plugin_initialized(platform):
            xla_client.initialize_pjrt_plugin(platform)
    except RuntimeError as error:
        raise BackendError(f"{plugin.library} cannot be loaded: {error}") from None
    _loaded[platform] = api
    return api


def make_client(
    platform: str,
    *,
    distributed_client: Any = None,
    node_id: int = 0,
    num_nodes: int = 1,
    visible_devices: Sequence[int] | None = None,
) -> Client:
    """Loads the plug-in of `platform` and returns a new client.

    Args:
      platform: the plug-in's platform.
      distributed_client: jaxlib's connection to the coordination service, through
        which the processes' clients find each other (on GPUs; a TPU's runtime finds
        its peers without it).
      node_id: this process's number.
      num_nodes: number of processes.
      visible_devices: ids of the machine's devices to use; None is all.

    Raises:
      BackendError: there is no such plug-in, no device for it, or it failed.
    """
    plugin = find().get(platform)
    if plugin is None:
        raise BackendError(_how_to_install(platform))
    reason = version_problem(plugin) or missing_device(platform)
    if reason:
        raise BackendError(reason)
    load(platform)
    options = _options(platform)
    if platform not in ("cuda", "rocm"):
        return xla_client.make_c_api_client(platform, options, None)
    if visible_devices is not None:
        options["visible_devices"] = list(visible_devices)
    if distributed_client is not None:
        options.update(node_id=node_id, num_nodes=num_nodes)
    return xla_client.make_c_api_client(platform, options, distributed_client)


def _how_to_install(platform: str) -> str:
    wheel = {
        "cuda": "install fxflow with its extra cuda13 (or cuda12), such as pip install "
        "-e '.[cuda13]' in its folder",
        "tpu": "install fxflow with its extra tpu, such as pip install -e '.[tpu]' in "
        "its folder",
        "rocm": "install the wheel jax-rocm7-pjrt of jaxlib's version",
    }.get(platform)
    return f"no plug-in for {platform!r} is installed: " + (
        wheel or f"name it in {_NAMES_AND_PATHS}=name:path"
    )


def _options(platform: str) -> dict[str, Any]:
    if platform not in ("cuda", "rocm"):
        return {}
    # Reads XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_MEM_FRACTION, ...
    options = dict(xla_client.generate_pjrt_gpu_plugin_options())
    if platform == "rocm":
        options["platform_name"] = "ROCM"
    return options


def _register_profiler(api: Any) -> None:
    try:
        profiler = importlib.import_module("jaxlib._profiler")
        profiler.register_plugin_profiler(api)
    except (ImportError, RuntimeError):
        return  # profiles lack this device; programs run


def _register_handlers(plugin: Plugin, api: Any) -> None:
    """Registers the plug-in's custom calls: Python callbacks, solvers, random bits."""
    name = plugin.platform.upper()
    try:
        extension = importlib.import_module(
            f"{plugin.helper}.{plugin.platform}_plugin_extension"
        )
    except ImportError:
        return  # only the pjrt wheel is installed: enough for programs without them
    xla_client.register_custom_type_handler(
        name, functools.partial(extension.register_custom_type, api)
    )
    xla_client.register_custom_call_handler(
        name, functools.partial(extension.register_custom_call_target, api)
    )
    for type_name, value in extension.ffi_types().items():
        xla_client.register_custom_type(type_name, value, platform=name)
    for target, value in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(
            target, value, platform=name, api_version=1
        )
    for module in ("gpu_solver", "gpu_linalg", "gpu_sparse", "gpu_prng"):
        registrations = importlib.import_module(f"jaxlib.{module}").registrations()
        for target, value, version in registrations.get(name, ()):
            xla_client.register_custom_call_target(
                target, value, platform=name, api_version=version
            )
