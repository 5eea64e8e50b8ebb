"""fxflow under the name of JAX 0.10.2: `install()`, then `import jax` finds this.

The modules here have JAX's names and JAX's meaning where fxflow's differ; most only
list fxflow's functions. Nothing else in fxflow knows of them. A program can be run so
without a change: `python -m fxflow.compat.jax program.py`.
"""

from typing import TYPE_CHECKING

from fxflow import process_count, process_index
from fxflow.compat.jax._api import (
    checkpoint,
    copy_to_host_async,
    device_put,
    eval_shape,
    host_count,
    host_id,
    host_ids,
    io_callback,
    jit,
    print_environment_info,
    process_indices,
    pure_callback,
    shard_map,
    smap,
)
from fxflow.compat.jax._attributes import add_attributes as _add_attributes
from fxflow.compat.jax._config import CONTEXTS as _CONTEXTS
from fxflow.compat.jax._config import config
from fxflow.compat.jax._gradient_refs import ad
from fxflow.compat.jax._install import install, installed
from fxflow.compat.jax._jaxprs import make_jaxpr
from fxflow.compat.jax._mirror import mirror as _mirror
from fxflow.compat.jax._composed import ds
from fxflow.compat.jax.version import __version__, __version_info__
from fxflow.core.arrays.array import Shard
from fxflow.core.arrays.protocol import accept as _accept
from fxflow.devices.clients import devices
from fxflow.lax.references import empty_ref, free_ref
from fxflow.transforms.axis_types import reshard

_accept("__jax_array__")

if TYPE_CHECKING:
    from fxflow import Array as Array

_add_attributes()

RENAMED = {"jacobian": "jacrev"}
remat = checkpoint

__all__ = [
    *_mirror(globals(), "fxflow", renamed=RENAMED),
    *_CONTEXTS,
    "Shard",
    "config",
    "checkpoint",
    "copy_to_host_async",
    "device_put",
    "ds",
    "devices",
    "eval_shape",
    "__version__",
    "__version_info__",
    "ad",
    "host_count",
    "host_id",
    "host_ids",
    "io_callback",
    "installed",
    "jit",
    "install",
    "make_jaxpr",
    "print_environment_info",
    "process_count",
    "pure_callback",
    "remat",
    "reshard",
    "process_index",
    "process_indices",
    "empty_ref",
    "free_ref",
    "shard_map",
    "smap",
]
__all__ = list(dict.fromkeys(__all__))
for _name, _option in _CONTEXTS.items():
    globals().setdefault(_name, _option)
