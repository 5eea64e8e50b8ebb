"""`jax.sharding`."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.devices.meshes import current_mesh, set_mesh

mirror(globals(), "fxflow.sharding")

from fxflow.sharding import AbstractMesh, SingleDeviceSharding  # noqa: E402
from fxflow.sharding import get_abstract_mesh as _types_of_mesh  # noqa: E402


def get_abstract_mesh() -> Any:
    """Returns the current mesh, or one without axes; in `shard_map` its types only.

    With devices, since programs make shardings of it, and constrain arrays to those.
    """
    if _entered.meshes:
        return _entered.meshes[-1]
    abstract, mesh = _types_of_mesh(), current_mesh()
    return mesh if mesh and mesh.axis_types == abstract.axis_types else abstract


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> Any:
    """Returns the sharding of one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class _Entered(threading.local):
    def __init__(self) -> None:
        self.meshes: list[Any] = []


_entered = _Entered()


@contextlib.contextmanager
def _use_types(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    _entered.meshes.append(mesh)
    try:
        yield mesh
    finally:
        _entered.meshes.pop()


def use_abstract_mesh(mesh: Any) -> Any:
    """Makes a mesh, or the types of one, what `get_abstract_mesh` returns.

    Args:
      mesh: an `AbstractMesh`, to which arrays cannot be moved, or a `Mesh`.

    Returns:
      A context manager.
    """
    return _use_types(mesh) if isinstance(mesh, AbstractMesh) else set_mesh(mesh)
