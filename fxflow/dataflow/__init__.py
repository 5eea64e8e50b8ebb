"""One function on several devices: its dataflow graph cut by scopes.

`on` says where operations run; `jit` cuts the function's graph where values pass from
one device to another, and runs the parts; a `Plan` says what runs where.
"""

from fxflow.core.boundary import public as _public
from fxflow.dataflow.actions import Action, Schedule
from fxflow.dataflow.calibration import calibrate
from fxflow.dataflow.costs import Costs, Rates
from fxflow.dataflow.cutting import Edge, Fragment
from fxflow.dataflow.partitioned import DataflowFunction, jit
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.saved import SavedFragment, SavedPlan
from fxflow.dataflow.scopes import DeviceSpec, Stage, colocate, on, stages
from fxflow.dataflow.sharding.automatic import auto_sharding
from fxflow.dataflow.sharding.plan import ShardingPlan

__all__ = [
    "Action",
    "Costs",
    "DataflowFunction",
    "DeviceSpec",
    "Edge",
    "Fragment",
    "Plan",
    "Rates",
    "SavedFragment",
    "SavedPlan",
    "Schedule",
    "ShardingPlan",
    "Stage",
    "auto_sharding",
    "calibrate",
    "colocate",
    "jit",
    "on",
    "stages",
]

_public(globals(), __all__)
