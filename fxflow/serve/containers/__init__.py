"""Runs models in separate processes.

Reading order: `models` (a model's function and types), `loading` (models by name),
`regions` (tensors and streams
of results in shared memory), `worker` (the model's process), `replica` (places, starts,
calls and stops a worker).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.replica import Replica, ModelSource

__all__ = ["Model", "Replica", "ModelSource", "load_model"]

_public(globals(), __all__)
# fmt: on
