"""fxflow: pure functions over arrays, traced into dataflow graphs, run by XLA.

Importing starts no backend. The core comes along, and what arrays' operators and
methods need of `fxflow.numpy`; all else is imported when first used.
"""

import typing as _typing

from fxflow._collector import Paused as _Paused

_paused = _Paused()

# fmt: off
from fxflow._config import config as config
from fxflow._version import __version__ as __version__
from fxflow.core.arrays import Array, ShapeDtypeStruct, typeof
from fxflow.core.arrays.dtypes import float0
from fxflow.core.boundary import public as _public
from fxflow.core.caches import clear_caches
from fxflow.devices import (
    Device, default_backend, default_device, device_count, local_device_count,
    local_devices, process_count, process_index,
)
from fxflow.devices.meshes import Mesh, P, PartitionSpec, get_mesh, make_mesh, set_mesh
from fxflow.devices.shardings import NamedSharding, Sharding, SingleDeviceSharding
from fxflow.core.ir.references import Ref
from fxflow.lax.callbacks import effects_barrier, io_callback, pure_callback
from fxflow.lax.pytree_transfer import (
    block_until_ready, device_get, device_put, live_arrays,
)
from fxflow.lax.references import freeze, new_ref
from fxflow.transforms.custom_function import SymbolicZero
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.custom_vjp import CustomVJPPrimal, custom_vjp
from fxflow.transforms.grad import (
    grad, hessian, jacfwd, jacobian, jacrev, value_and_grad,
)
from fxflow.transforms.inspection import (
    ensure_compile_time_eval, eval_shape, make_graph, named_call, named_scope,
)
from fxflow.transforms.jit import jit
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vjp import linear_transpose, linearize, vjp
from fxflow.transforms.vmap import vmap

from fxflow import numpy as numpy  # isort: skip (arrays get their operators there)

if _typing.TYPE_CHECKING:
    from fxflow import checkify as checkify
    from fxflow import custom_batching as custom_batching
    from fxflow import dataflow as dataflow
    from fxflow import debug as debug
    from fxflow.devices.package import devices as devices
    from fxflow import distributed as distributed
    from fxflow import dtypes as dtypes
    from fxflow import errors as errors
    from fxflow import export as export
    from fxflow import extend as extend
    from fxflow import ffi as ffi
    from fxflow import flatten_util as flatten_util
    from fxflow import image as image
    from fxflow import kernels as kernels
    from fxflow import lax as lax
    from fxflow import memory as memory
    from fxflow import nn as nn
    from fxflow import ops as ops
    from fxflow import optim as optim
    from fxflow import profiler as profiler
    from fxflow import ragged as ragged
    from fxflow import random as random
    from fxflow import ref as ref
    from fxflow import scipy as scipy
    from fxflow import serve as serve
    from fxflow import sharding as sharding
    from fxflow import sparse as sparse
    from fxflow import stages as stages
    from fxflow import train as train
    from fxflow import tree as tree
    from fxflow import typing as typing
    from fxflow import viz as viz
    from fxflow.lax.global_arrays import (
        make_array_from_callback, make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from fxflow.transforms.checkpoint import (
        checkpoint, checkpoint_name, checkpoint_policies,
    )
    from fxflow.transforms.custom_derivatives import closure_convert, custom_gradient
    from fxflow.transforms.debugging import (
        checking_leaks, debug_infs, debug_nans, disable_jit, log_compiles,
        transfer_guard, transfer_guard_device_to_device, transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from fxflow.transforms.fwd_and_bwd import fwd_and_bwd
    from fxflow.transforms.jet import jet
    from fxflow.transforms.linear_call import linear_call
    from fxflow.transforms.pmap import pmap
    from fxflow.transforms.shard_map import shard_map

__all__ = [
    "config",
    # compiling and mapping
    "jit", "pmap", "shard_map", "vmap", "disable_jit", "clear_caches",
    # gradients, Jacobians and Hessians
    "grad", "value_and_grad", "hessian", "jacobian", "jacfwd", "jacrev",
    # derivatives along directions
    "jvp", "vjp", "fwd_and_bwd", "linearize", "linear_transpose", "linear_call", "jet",
    # what derivatives keep
    "checkpoint", "checkpoint_name", "checkpoint_policies",
    # derivatives of your own
    "custom_gradient", "custom_jvp", "custom_vjp", "closure_convert",
        "CustomVJPPrimal", "SymbolicZero",
    # looking at functions
    "eval_shape", "make_graph", "named_call", "named_scope",
        "ensure_compile_time_eval",
    # finding mistakes
    "checking_leaks", "debug_infs", "debug_nans", "log_compiles", "transfer_guard",
        "transfer_guard_device_to_device", "transfer_guard_device_to_host",
        "transfer_guard_host_to_device",
    # calling Python
    "pure_callback", "io_callback", "effects_barrier",
    # mutable references
    "Ref", "new_ref", "freeze",
    # arrays
    "Array", "ShapeDtypeStruct", "typeof", "float0", "block_until_ready",
        "device_get", "device_put", "live_arrays",
    # arrays of several processes
    "make_array_from_callback", "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    # devices
    "Device", "default_backend", "default_device", "device_count",
        "local_device_count", "local_devices", "process_count", "process_index",
    # meshes and shardings
    "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
        "get_mesh", "make_mesh", "set_mesh",
]

_public(
    globals(),
    (*__all__, "numpy", "__version__"),
    lazy=(
        "checkify", "custom_batching", "dataflow", "debug", "devices", "distributed",
        "dtypes", "errors", "export", "extend", "ffi", "flatten_util", "image",
        "kernels", "lax", "memory", "nn", "ops", "optim", "profiler", "ragged",
        "random", "ref", "scipy", "serve", "sharding", "sparse", "stages", "train",
        "tree", "typing", "viz",
    ),
    elsewhere={
        "lax.global_arrays": (
            "make_array_from_callback make_array_from_process_local_data "
            "make_array_from_single_device_arrays"
        ),
        "transforms.checkpoint": "checkpoint checkpoint_name checkpoint_policies",
        "transforms.custom_derivatives": "closure_convert custom_gradient",
        "transforms.debugging": (
            "checking_leaks debug_infs debug_nans disable_jit log_compiles "
            "transfer_guard transfer_guard_device_to_device "
            "transfer_guard_device_to_host transfer_guard_host_to_device"
        ),
        "transforms.fwd_and_bwd": "fwd_and_bwd",
        "transforms.jet": "jet",
        "transforms.linear_call": "linear_call",
        "transforms.pmap": "pmap",
        "transforms.shard_map": "shard_map",
    },
)
# fmt: on
_paused.resume()
