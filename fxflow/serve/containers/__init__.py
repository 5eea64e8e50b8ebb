"""Models in processes of their own.

To be read in this order: `regions` (tensors in shared memory), `models` (what is
served), `placement` (devices and cores), `streams` (results of generators), `worker`
(the model's process), `replica` (starts, calls and stops it).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.containers.models import Model, load_model
from fxflow.serve.containers.replica import Replica, ModelSource

__all__ = ["Model", "Replica", "ModelSource", "load_model"]

_public(globals(), __all__)
# fmt: on
