"""The parameter server: parameters and optimizer state shared out over the devices."""

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
from fxflow.distributed.parameter_server.placement import (
    Plan,
    Tensor,
    place,
    replan,
    tensors_of,
)
from fxflow.distributed.parameter_server.server import (
    Metrics,
    ParameterServer,
    ServerState,
    parameter_server,
)
from fxflow.distributed.parameter_server.shards import Sharded
from fxflow.distributed.parameter_server.simulator import simulate

__all__ = [
    "Metrics",
    "ParameterServer",
    "ServerState",
    "Sharded",
    "parameter_server",
    "Consistency",
    "asynchronous",
    "backup",
    "bsp",
    "elastic_averaging",
    "local_sgd",
    "softsync",
    "ssp",
    "Plan",
    "Tensor",
    "place",
    "replan",
    "tensors_of",
    "simulate",
]
