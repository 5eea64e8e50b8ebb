"""The parameter server: of devices in step, and of processes at their own pace.

`parameter_server(loss, optimizer)` shares parameters and optimizer state out over the
devices of one program. With a `consistency` (`bsp`, `ssp`, `asynchronous`, ...) servers
are processes, workers push gradients at their own pace, and any of them may die.
"""

from fxflow.distributed.parameter_server import monitor
from fxflow.distributed.parameter_server.api import parameter_server
from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    asynchronous,
    backup,
    bsp,
    elastic_averaging,
    local_sgd,
    softsync,
    ssp,
)
from fxflow.distributed.parameter_server.filters import Filter
from fxflow.distributed.parameter_server.placement import (
    Plan,
    Tensor,
    place,
    replan,
    tensors_of,
)
from fxflow.distributed.parameter_server.running import (
    Cluster,
    LocalServers,
    cluster_of,
)
from fxflow.distributed.parameter_server.simulator import simulate
from fxflow.distributed.parameter_server.synchronous.server import (
    Metrics,
    ParameterServer,
    ServerState,
)
from fxflow.distributed.parameter_server.synchronous.shards import Sharded
from fxflow.distributed.parameter_server.tables import TableSpec
from fxflow.distributed.parameter_server.worker.training import (
    AsynchronousServer,
    TrafficReport,
    WorkerState,
)

__all__ = [
    "AsynchronousServer",
    "Cluster",
    "Consistency",
    "Filter",
    "LocalServers",
    "Metrics",
    "ParameterServer",
    "Plan",
    "ServerState",
    "Sharded",
    "TableSpec",
    "Tensor",
    "TrafficReport",
    "WorkerState",
    "asynchronous",
    "backup",
    "bsp",
    "cluster_of",
    "elastic_averaging",
    "local_sgd",
    "monitor",
    "parameter_server",
    "place",
    "replan",
    "simulate",
    "softsync",
    "ssp",
    "tensors_of",
]
