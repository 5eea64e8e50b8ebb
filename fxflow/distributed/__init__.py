"""Many processes, on one machine or many.

`initialize` joins the processes of a run; ``fxflow launch`` starts them. `multihost`
holds what they say to each other outside of programs. `elastic` is a loop that goes on
when processes come and go.
"""

from __future__ import annotations

# fmt: off
from fxflow._names import answer as _answer
from fxflow.distributed import compression, multihost, parameter_server
from fxflow.distributed.elastic import Outcome, World, elastic
from fxflow.distributed.session import initialize, is_initialized, shutdown
from fxflow.errors import DistributedError

__all__ = [
    "DistributedError", "Outcome", "World", "compression", "elastic", "initialize",
    "is_initialized", "multihost", "parameter_server", "shutdown",
]
# fmt: on

_answer(globals(), __all__)
