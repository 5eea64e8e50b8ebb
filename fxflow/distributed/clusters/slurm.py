"""Slurm: one process for each task of a step (``srun``)."""

from __future__ import annotations

import re
from typing import ClassVar

from fxflow.distributed.clusters.base import (
    ClusterEnvironment,
    ClusterMembership,
    job_port,
)
from fxflow.errors import DistributedError


def first_host(nodes: str) -> str:
    """Returns the first host of a Slurm node list.

    Example:
      >>> first_host("gpu[003-007,11],login"), first_host("a1,a2")
      ('gpu003', 'a1')
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes.strip())
    text = first.group() if first else ""
    # Replace each range in brackets by its first number, with leading zeros.
    host = re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", text)
    if not host:
        raise DistributedError(f"slurm: cannot read the node list {nodes!r}")
    return host


class Slurm(ClusterEnvironment):
    """``SLURM_JOB_ID``, ``SLURM_STEP_NODELIST``, ``SLURM_NTASKS``, ``SLURM_PROCID``."""

    name = "slurm"
    variables: ClassVar[tuple[str, ...]] = (
        "SLURM_JOB_ID",
        "SLURM_STEP_NODELIST",
        "SLURM_PROCID",
    )

    def membership(self) -> ClusterMembership:
        """Returns the membership of this task; task 0 runs on the first node."""
        host = first_host(self.env["SLURM_STEP_NODELIST"])
        return ClusterMembership(
            f"{host}:{job_port(self.integer('SLURM_JOB_ID'))}",
            self.integer("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
            self.integer("SLURM_PROCID"),
            self.integer("SLURM_LOCALID") if self.env.get("SLURM_LOCALID") else None,
            source="Slurm",
        )
