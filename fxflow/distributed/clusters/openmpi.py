"""Open MPI: processes started by ``mpirun``."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import ClassVar

from fxflow.distributed.clusters.base import (
    ClusterEnvironment,
    ClusterMembership,
    job_port,
)
from fxflow.errors import DistributedError


class OpenMPI(ClusterEnvironment):
    """``OMPI_COMM_WORLD_SIZE``, ``…_RANK``, ``…_LOCAL_RANK`` and the head's address.

    Open MPI 4 gives all ranks the address of ``mpirun``; Open MPI 5 only gives the name
    of its machine, in the run's name. Process 0 is assumed to run on that machine, as
    by default; otherwise set ``FXFLOW_COORDINATOR_ADDRESS`` (``mpirun -x``).
    """

    name = "openmpi"
    variables: ClassVar[tuple[str, ...]] = (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
    )

    def membership(self) -> ClusterMembership:
        """Returns the membership of this rank."""
        local = self.env.get("OMPI_COMM_WORLD_LOCAL_RANK")
        count = self.integer("OMPI_COMM_WORLD_SIZE")
        rank = self.integer("OMPI_COMM_WORLD_RANK")
        address = self.env.get("FXFLOW_COORDINATOR_ADDRESS")
        if not address:
            host, job = self._head()
            if self.env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == str(count):
                host = "127.0.0.1"  # all processes are on this machine
            elif rank == 0 and not is_here(host):
                raise DistributedError(
                    f"openmpi: mpirun runs on {host}, but process 0 on another machine "
                    f"({socket.gethostname()}), where the others cannot find it; "
                    "give mpirun -x FXFLOW_COORDINATOR_ADDRESS="
                    f"{socket.gethostname()}:{job_port(job)}"
                )
            address = f"{host}:{job_port(job)}"
        return ClusterMembership(
            address,
            count,
            rank,
            int(local) if local and local.isdigit() else None,
            source="Open MPI",
        )

    def _head(self) -> tuple[str, int]:
        """Returns the machine of ``mpirun`` and a number that identifies the run."""
        # Open MPI 4: "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911". The lower half of
        # the number counts the jobs of the run; the upper half identifies the run.
        uri = self.env.get("OMPI_MCA_orte_hnp_uri", "")
        if found := re.match(r"(\d+)\.\d+;tcp4?://([^,:;/]+)", uri):
            return found[2], int(found[1]) >> 16
        # Open MPI 5 (PRRTE): "prterun-node1-5120@1", mpirun's machine and process id.
        run = self.env.get("PMIX_NAMESPACE", "")
        if found := re.fullmatch(r"prte(?:run)?-(.+)-(\d+)@\d+", run):
            return found[1], int(found[2])
        raise DistributedError(
            f"openmpi: cannot find the head's address in {uri or run!r}; set "
            "FXFLOW_COORDINATOR_ADDRESS=host:port of the machine of rank 0"
        )


def is_here(host: str) -> bool:
    """Returns whether a name or address is this machine's; True if unknown."""
    if host == socket.gethostname():
        return True
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return True
    for family, kind, protocol, _, address in addresses:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as own:
            own.bind(address)
            return True
    return False
