"""`jax.experimental.multihost_utils`."""

from __future__ import annotations

from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding
from fxflow.lax.global_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from fxflow.lax.pytree_transfer import device_put

__all__ = mirror(globals(), "fxflow.distributed.multihost")
__all__ += ["global_array_to_host_local_array", "host_local_array_to_global_array"]


def _with_specs(arrays: Any, pspecs: Any) -> tuple[list[Any], list[Any], Any]:
    leaves, treedef = tree.flatten(arrays)
    specs = tree.broadcast_prefix(
        pspecs,
        arrays,
        is_leaf=lambda x: x is None or isinstance(x, PartitionSpec),
        name="pspecs",
    )
    whole = PartitionSpec()
    return leaves, [whole if s is None else s for s in specs], treedef


def host_local_array_to_global_array(
    local_inputs: Any, global_mesh: Mesh, pspecs: Any
) -> Any:
    """Returns arrays over a mesh, of what each process has of them.

    Args:
      local_inputs: pytree of arrays: the shares of this process.
      global_mesh: over the devices of all processes.
      pspecs: how each array is divided; a prefix of the pytree.

    Returns:
      A pytree of arrays.
    """
    leaves, specs, treedef = _with_specs(local_inputs, pspecs)
    return treedef.unflatten(
        [
            make_array_from_process_local_data(NamedSharding(global_mesh, spec), leaf)
            for leaf, spec in zip(leaves, specs, strict=True)
        ]
    )


def global_array_to_host_local_array(
    global_inputs: Any, global_mesh: Mesh, pspecs: Any
) -> Any:
    """Returns what this process has of arrays over a mesh, as arrays of its own.

    Args:
      global_inputs: pytree of arrays over the mesh.
      global_mesh: over the devices of all processes.
      pspecs: how each array is divided; a prefix of the pytree.

    Returns:
      A pytree of arrays over `global_mesh.local_mesh`.
    """
    leaves, specs, treedef = _with_specs(global_inputs, pspecs)
    local_mesh = global_mesh.local_mesh

    def of_leaf(leaf: Any, spec: PartitionSpec) -> Any:
        divided = device_put(leaf, NamedSharding(global_mesh, spec))
        local = NamedSharding(local_mesh, spec)
        parts = [shard.data for shard in divided.addressable_shards]
        # An axis of the mesh that leaves the process is shorter in its own mesh.
        shares = local.shard_shape(divided.shape)
        lengths = zip(divided.shape, shares, parts[0].shape, strict=True)
        shape = tuple(n // (share // own) for n, share, own in lengths)
        return make_array_from_single_device_arrays(shape, local, parts)

    return treedef.unflatten(map(of_leaf, leaves, specs))
