"""Cluster managers: reads this process's rank and the run's size from the environment.

Each manager is a small class with `is_present` and `membership`. The variables
``FXFLOW_COORDINATOR_ADDRESS``, ``FXFLOW_NUM_PROCESSES`` and ``FXFLOW_PROCESS_ID``
override its values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership
from fxflow.distributed.clusters.fxflow import Environment
from fxflow.distributed.clusters.kubernetes import Kubernetes
from fxflow.distributed.clusters.openmpi import OpenMPI
from fxflow.distributed.clusters.slurm import Slurm
from fxflow.distributed.clusters.tensorflow import TFConfig
from fxflow.distributed.clusters.torchrun import Torchrun
from fxflow.distributed.clusters.tpu import GceTPU, GkeTPU
from fxflow.errors import DistributedError

__all__ = ["CLUSTERS", "ClusterEnvironment", "ClusterMembership", "detect"]

#: The managers in order of detection: a launcher that runs within another manager's job
#: (mpirun under Slurm) comes before that manager.
CLUSTERS: tuple[type[ClusterEnvironment], ...] = (
    Environment,
    Torchrun,
    OpenMPI,
    Slurm,
    TFConfig,
    GkeTPU,
    Kubernetes,
    GceTPU,
)


def detect(
    method: str | None = None, environment: Mapping[str, str] | None = None
) -> ClusterMembership | None:
    """Returns this process's membership, as the cluster manager sets it.

    Args:
      method: the manager's name; None tries all; ``"deactivate"`` tries none.
      environment: the variables; None for those of this process.

    Returns:
      The membership; None if no manager is found.

    Raises:
      ValueError: the manager is unknown.
      DistributedError: the manager is not found, or its variables are invalid.
    """
    env = os.environ if environment is None else environment
    own = Environment(env)
    if method in ("deactivate", "none"):
        return None
    if method is None:
        chosen = next((c(env) for c in CLUSTERS if c(env).is_present()), None)
        if chosen is None:
            return None
    else:
        known = {c.name: c for c in CLUSTERS}
        if method not in known:
            raise ValueError(
                f"cluster_detection_method {method!r} is unknown: it is one of "
                f"{', '.join(known)}, or 'deactivate'"
            )
        chosen = known[method](env)
        if not chosen.is_present():
            raise DistributedError(
                f"cluster_detection_method is {method!r}, but its "
                f"variables are not set: {', '.join(chosen.variables)}"
            )
    found = chosen.membership()
    return found if isinstance(chosen, Environment) else own.over(found)
