"""fxflow: pure functions over arrays, traced into dataflow graphs, run by XLA.

Importing starts no backend. `fxflow.numpy` comes along, since it gives arrays their
operators; everything else is imported when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from fxflow._config import config
from fxflow._version import __version__
from fxflow.core.boundary import guarded

# Public name -> module it lives in.
_HOMES = {
    "Array": "core.arrays.array",
    "CustomVJPPrimal": "transforms.custom_vjp",
    "Mesh": "devices.meshes",
    "NamedSharding": "devices.shardings",
    "P": "devices.meshes",
    "PartitionSpec": "devices.meshes",
    "Sharding": "devices.shardings",
    "SingleDeviceSharding": "devices.shardings",
    "get_mesh": "devices.meshes",
    "make_array_from_callback": "transforms.global_arrays",
    "make_array_from_process_local_data": "transforms.global_arrays",
    "make_array_from_single_device_arrays": "transforms.global_arrays",
    "make_mesh": "devices.meshes",
    "set_mesh": "devices.meshes",
    "shard_map": "transforms.shard_map",
    "Device": "devices",
    "ShapeDtypeStruct": "core.arrays.aval",
    "SymbolicZero": "transforms.custom_function",
    "block_until_ready": "transforms.transfer",
    "checkpoint": "transforms.checkpoint",
    "checkpoint_name": "transforms.checkpoint",
    "checkpoint_policies": "transforms.checkpoint",
    "clear_caches": "core.caches",
    "closure_convert": "transforms.custom_derivatives",
    "custom_gradient": "transforms.custom_derivatives",
    "custom_jvp": "transforms.custom_jvp",
    "custom_vjp": "transforms.custom_vjp",
    "debug_infs": "transforms.debugging",
    "debug_nans": "transforms.debugging",
    "checking_leaks": "transforms.debugging",
    "disable_jit": "transforms.debugging",
    "default_backend": "devices",
    "default_device": "devices",
    "device_count": "devices",
    "device_get": "transforms.transfer",
    "device_put": "transforms.transfer",
    "io_callback": "lax.callbacks",
    "effects_barrier": "lax.callbacks",
    "ensure_compile_time_eval": "transforms.inspection",
    "eval_shape": "transforms.inspection",
    "float0": "core.arrays.dtypes",
    "grad": "transforms.grad",
    "hessian": "transforms.grad",
    "jacfwd": "transforms.grad",
    "jacrev": "transforms.grad",
    "jit": "transforms.jit",
    "jvp": "transforms.jvp",
    "linear_transpose": "transforms.vjp",
    "linearize": "transforms.vjp",
    "local_device_count": "devices",
    "local_devices": "devices",
    "make_graph": "transforms.inspection",
    "named_scope": "transforms.inspection",
    "pmap": "transforms.pmap",
    "process_count": "devices",
    "process_index": "devices",
    "pure_callback": "lax.callbacks",
    "typeof": "core.arrays.convert",
    "value_and_grad": "transforms.grad",
    "vjp": "transforms.vjp",
    "vmap": "transforms.vmap",
}

_PACKAGES = frozenset(
    {
        "debug",
        "devices",
        "distributed",
        "errors",
        "image",
        "lax",
        "memory",
        "nn",
        "numpy",
        "ops",
        "optim",
        "random",
        "scipy",
        "sharding",
        "tree",
        "viz",
        "flatten_util",
    }
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"fxflow.{name}")
    module = _HOMES.get(name)
    if module is None:
        raise AttributeError(f"module 'fxflow' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fxflow.{module}"), name)
    value = guarded(value, "fxflow", name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_PACKAGES})


from fxflow import numpy  # noqa: E402 (arrays get their operators there)

__all__ = ["__version__", "config", "numpy", *_HOMES]
