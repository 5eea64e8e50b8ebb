"""One function on several devices: its dataflow graph cut by scopes.

`on` says where operations run; `jit` cuts the function's graph where values pass from
one device to another, and runs the parts; a `Plan` says what runs where.
"""

import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.dataflow.actions import Action, Schedule
from fxflow.dataflow.calibration import calibrate
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.rates import Rates
from fxflow.dataflow.cutting import Edge, Fragment
from fxflow.dataflow.partitioned import DataflowFunction, jit
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.saved import SavedFragment, SavedPlan
from fxflow.dataflow.scopes import DeviceSpec, Stage, colocate, on, stages
from fxflow.dataflow.sharding.automatic import auto_sharding
from fxflow.dataflow.sharding.plan import ShardingPlan
from fxflow.dataflow.tasks.remote import RemoteArray, fetch

if _typing.TYPE_CHECKING:
    from fxflow.dataflow.tasks.cluster import Cluster, connect, local_cluster
    from fxflow.dataflow.tasks.elastic import elastic

__all__ = [
    "Action",
    "Cluster",
    "Costs",
    "DataflowFunction",
    "DeviceSpec",
    "Edge",
    "Fragment",
    "Plan",
    "Rates",
    "RemoteArray",
    "SavedFragment",
    "SavedPlan",
    "Schedule",
    "ShardingPlan",
    "Stage",
    "auto_sharding",
    "calibrate",
    "colocate",
    "connect",
    "elastic",
    "fetch",
    "jit",
    "local_cluster",
    "on",
    "stages",
]

_public(
    globals(),
    __all__,
    elsewhere={
        "tasks.cluster": "Cluster connect local_cluster",
        "tasks.elastic": "elastic",
    },
)
