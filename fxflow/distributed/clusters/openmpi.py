"""Open MPI: processes started by ``mpirun``."""

from __future__ import annotations

import re

from fxflow.devices.cluster import DistributedError

from .base import Cluster, Membership, job_port

__all__ = ["OpenMPI"]

# Open MPI 4 names its head process in the first, 5 (PRRTE) in one of the others.
_HEADS = ("OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI41", "PMIX_SERVER_URI4")


class OpenMPI(Cluster):
    """``OMPI_COMM_WORLD_SIZE``, ``…_RANK``, ``…_LOCAL_RANK`` and the head's address.

    Process 0 is taken to run on the machine of ``mpirun``, as it does by default; if it
    does not, set ``FXFLOW_COORDINATOR_ADDRESS``.
    """

    name = "openmpi"
    variables = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")

    def membership(self) -> Membership:
        """Return the rank's place."""
        local = self.env.get("OMPI_COMM_WORLD_LOCAL_RANK")
        return Membership(
            self.env.get("FXFLOW_COORDINATOR_ADDRESS") or self._head(),
            self.integer("OMPI_COMM_WORLD_SIZE"),
            self.integer("OMPI_COMM_WORLD_RANK"),
            int(local) if local and local.isdigit() else None,
            source="Open MPI",
        )

    def _head(self) -> str:
        # "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911" or
        # "prterun-node1-5120@0.0;tcp4://10.96.0.1:34911".
        uri = next((self.env[n] for n in _HEADS if self.env.get(n)), "")
        job, _, places = uri.partition(";")
        found = re.search(r"tcp4?://([^,:;/]+)", places)
        if not found:
            raise DistributedError(
                f"openmpi: cannot find the head's address in {uri!r}; set "
                "FXFLOW_COORDINATOR_ADDRESS=host:port of the machine of rank 0"
            )
        numbers = re.findall(r"\d+", job.partition("@")[0])
        return f"{found[1]}:{job_port(int(numbers[-1 if '@' in job else 0]))}"
