"""Models in processes of their own.

To be read in this order: `regions` (tensors in shared memory), `channel` (control
messages), `models` (what is served), `exported` (`.fx` files as models), `loading`
(models by their names), `placement` (devices and cores), `streams` (results that come
one by one), `worker` (the model's process), `backoff` (when a dead one is started
again), `replica` (what starts it, calls it and ends it).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.replica import Replica, Source

__all__ = ["Model", "Replica", "Source", "load_model"]

_public(globals(), __all__)
# fmt: on
