"""Runs a program in several processes, on one machine or on many.

``fxflow launch`` starts the processes of a run; `initialize` connects them. `multihost`
exchanges host data between processes. `elastic` is a training loop that continues when
processes join and leave. `sharded_optimizer` shards parameters and optimizer state over
devices; `parameter_server` keeps them in server processes. These two are imported on
first use.
"""

from __future__ import annotations

# fmt: off
import importlib as _importlib
import typing as _typing

from fxflow._names import answer as _answer
from fxflow.distributed import compression, multihost
from fxflow.distributed.checkpointed import Outcome
from fxflow.distributed.elastic import World, elastic
from fxflow.distributed.session import initialize, is_initialized, shutdown
from fxflow.errors import DistributedError

__all__ = [
    "DistributedError", "Outcome", "World", "compression", "elastic", "initialize",
    "is_initialized", "multihost", "parameter_server", "sharded_optimizer", "shutdown",
    "zero",
]
# fmt: on

if _typing.TYPE_CHECKING:
    from fxflow.distributed import parameter_server, zero
    from fxflow.distributed.zero import sharded_optimizer


def _load(name: str) -> _typing.Any:
    if name == "sharded_optimizer":
        return _load("zero").sharded_optimizer
    return _importlib.import_module(f"fxflow.distributed.{name}")


_answer(globals(), __all__, ("parameter_server", "sharded_optimizer", "zero"), _load)
