"""The parameter server: servers hold the parameters, workers push gradients.

`parameter_server(loss, optimizer, consistency=...)` returns a worker's
`ParameterServer`. Workers run at their own pace within the bounds of the consistency
(`bsp`, `ssp`, `asynchronous`, ...). Servers and workers may die and return during a
run.
"""

from fxflow.distributed.parameter_server import monitor
from fxflow.distributed.parameter_server.worker.training import parameter_server
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
from fxflow.distributed.parameter_server.moving import move_shard, rebalance_shards
from fxflow.distributed.parameter_server.placement import (
    PlacementPlan,
    Tensor,
    place,
    replan,
    tensors_of,
)
from fxflow.distributed.parameter_server.restarting import restart_servers
from fxflow.distributed.parameter_server.running import (
    Cluster,
    LocalServers,
    cluster_of,
)
from fxflow.distributed.parameter_server.simulator import simulate
from fxflow.distributed.parameter_server.tables import TableSpec
from fxflow.distributed.parameter_server.worker.training import (
    ParameterServer,
    WorkerState,
)
from fxflow.distributed.parameter_server.worker.saving import (
    load_snapshot,
    saved_snapshots,
)
from fxflow.distributed.parameter_server.worker.traffic import TrafficReport
from fxflow.distributed.parameter_server.worker.reader import ParameterReader, Reading
from fxflow.distributed.zero import StepMetrics

__all__ = [
    "Cluster",
    "Consistency",
    "Filter",
    "LocalServers",
    "ParameterReader",
    "ParameterServer",
    "PlacementPlan",
    "Reading",
    "StepMetrics",
    "TableSpec",
    "Tensor",
    "TrafficReport",
    "WorkerState",
    "asynchronous",
    "backup",
    "bsp",
    "cluster_of",
    "elastic_averaging",
    "load_snapshot",
    "local_sgd",
    "monitor",
    "move_shard",
    "parameter_server",
    "place",
    "rebalance_shards",
    "replan",
    "restart_servers",
    "saved_snapshots",
    "simulate",
    "softsync",
    "ssp",
    "tensors_of",
]
