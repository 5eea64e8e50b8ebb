"""Private attributes of JAX's objects that packages read, on fxflow's classes.

They are added here when this package is imported, so that fxflow itself has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fxflow import checkpoint_policies
from fxflow.compat.jax._gradient_refs import with_refs
from fxflow.core.arrays import Array, Aval
from fxflow.core.ir.trace import Trace
from fxflow.devices.meshes import AbstractMesh
from fxflow.devices.shardings import Sharding, local_part
from fxflow.numpy import asarray
from fxflow.stages import Compiled
from fxflow.transforms.vjp import VJPFunction


def _with_axis_types(mesh: AbstractMesh, name_to_type: Mapping[Any, Any]) -> Any:
    """Returns an abstract mesh with other types of some axes."""
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(
        axis_types=[name_to_type.get(name, kind) for name, kind in pairs]
    )


_ATTRIBUTES: dict[type, dict[str, Any]] = {
    # equinox, to tell its own interpreter from others.
    Trace: {"main": property(lambda trace: trace)},
    Aval: {
        "at_least_vspace": Aval.tangent,
        "str_short": lambda aval, *short, **options: str(aval.strong()),
        "strip_weak_type": Aval.strong,
        "to_cotangent_aval": Aval.tangent,
        "to_tangent_aval": Aval.tangent,
    },
    Array: {
        "_committed": property(lambda array: array.committed),
        "byteswap": lambda array: asarray(np.asarray(array).byteswap()),
    },
    checkpoint_policies: {
        "checkpoint_dots": staticmethod(checkpoint_policies.dots_saveable),
        "checkpoint_dots_with_no_batch_dims": staticmethod(
            checkpoint_policies.dots_with_no_batch_dims_saveable
        ),
    },
    AbstractMesh: {"update_axis_types": _with_axis_types},
    Compiled: {
        "runtime_executable": lambda compiled: compiled.program.executable.loaded,
    },
    VJPFunction: {"with_refs": with_refs},
    # orbax
    Sharding: {
        "_device_assignment": property(lambda sharding: sharding.devices),
        "_addressable_device_assignment": property(
            lambda sharding: tuple(local_part(sharding.devices))
        ),
    },
}


def add_attributes() -> None:
    """Adds them; a second call changes nothing."""
    for kind, attributes in _ATTRIBUTES.items():
        for name, value in attributes.items():
            setattr(kind, name, value)
