"""Cloud TPU: reads GKE pods' environment and GCE VMs' metadata server."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import ClassVar

from fxflow.devices import plugins
from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership
from fxflow.errors import DistributedError

_PORT = 8476
_METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/"


def _hosts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


class GkeTPU(ClusterEnvironment):
    """``TPU_WORKER_HOSTNAMES``, ``TPU_WORKER_ID``; ``MEGASCALE_*`` for several slices.

    A job over several slices has one process for each worker of each slice. Slice 0
    comes first; ``MEGASCALE_COORDINATOR_ADDRESS`` is the address of its worker 0.
    """

    name = "gke_tpu"
    variables: ClassVar[tuple[str, ...]] = ("TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID")

    def membership(self) -> ClusterMembership:
        """Returns the membership of this worker."""
        hosts = _hosts(self.env["TPU_WORKER_HOSTNAMES"])
        worker = self.integer("TPU_WORKER_ID")
        if not 0 <= worker < len(hosts):
            raise DistributedError(
                f"gke_tpu: TPU_WORKER_ID is {worker}, but TPU_WORKER_HOSTNAMES names "
                f"{len(hosts)} hosts"
            )
        first, count, number = hosts[0], len(hosts), worker
        if self.env.get("MEGASCALE_COORDINATOR_ADDRESS"):
            slices = self.integer("MEGASCALE_NUM_SLICES")
            number += self.integer("MEGASCALE_SLICE_ID") * count
            count *= slices
            first = self.env["MEGASCALE_COORDINATOR_ADDRESS"].partition(":")[0]
        return ClusterMembership(f"{first}:{_PORT}", count, number, source="GKE TPU")


def read_metadata(name: str, timeout: float = 1.0) -> str:
    """Returns an attribute of this VM.

    Raises:
      OSError: there is no metadata server, or it has no such attribute.
    """
    request = urllib.request.Request(
        _METADATA + name, headers={"Metadata-Flavor": "Google"}
    )
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return str(answer.read().decode())


class GceTPU(ClusterEnvironment):
    """TPU VMs: ``agent-worker-number`` and ``worker-network-endpoints``.

    The metadata server is queried only on a machine with a TPU, for at most one second.

    Args:
      environment: the variables to read.
      read: reads an attribute of the VM.
    """

    name = "gce_tpu"
    variables: ClassVar[tuple[str, ...]] = ("the metadata server of a TPU VM",)

    def __init__(
        self,
        environment: Mapping[str, str],
        read: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(environment)
        self._read = read

    def is_present(self) -> bool:
        """Returns whether this is a TPU VM."""
        if self._read is None:
            if self.env.get("TPU_SKIP_MDS_QUERY") or plugins.missing_device("tpu"):
                return False
            self._read = read_metadata
        try:
            return bool(self._read("agent-worker-number"))
        except (OSError, urllib.error.URLError):
            return False

    def membership(self) -> ClusterMembership:
        """Returns the membership of this VM."""
        read = self._read or read_metadata
        try:
            number = int(read("agent-worker-number"))
            # "unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3"
            hosts = [e.split(":")[-1] for e in _hosts(read("worker-network-endpoints"))]
        except (OSError, ValueError) as error:
            raise DistributedError(f"gce_tpu: the metadata server: {error}") from None
        if not 0 <= number < len(hosts):
            raise DistributedError(
                f"gce_tpu: worker {number} is not among {len(hosts)} endpoints"
            )
        return ClusterMembership(
            f"{hosts[0]}:{_PORT}", len(hosts), number, source="GCE TPU metadata"
        )
