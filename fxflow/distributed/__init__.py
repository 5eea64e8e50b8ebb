"""Many processes, on one machine or many.

`initialize` joins the processes of a run; ``fxflow launch`` starts them. `multihost`
holds what they say to each other outside of programs. `elastic` is a loop that goes on
when processes come and go.
"""

from __future__ import annotations

from fxflow.devices.cluster import DistributedError

from . import multihost
from .elastic import Outcome, World, elastic
from .session import initialize, is_initialized, shutdown

__all__ = [
    "DistributedError",
    "Outcome",
    "World",
    "elastic",
    "initialize",
    "is_initialized",
    "multihost",
    "shutdown",
]
