"""Kubernetes: an Indexed Job (or a JobSet of one) with a headless service."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership
from fxflow.errors import DistributedError

_PORT = 8476
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Kubernetes(ClusterEnvironment):
    """``KUBERNETES_SERVICE_HOST`` and ``JOB_COMPLETION_INDEX``.

    The pods of an Indexed Job are called ``<job>-<index>`` and find each other through
    a headless service with the name of their ``subdomain``. Their number is
    ``FXFLOW_NUM_PROCESSES`` or, if that is not set, the job's ``completions``, which
    the API server returns if the pod may ``get`` jobs.
    """

    name = "kubernetes"
    variables: ClassVar[tuple[str, ...]] = (
        "KUBERNETES_SERVICE_HOST",
        "JOB_COMPLETION_INDEX",
    )

    def __init__(
        self, environment: Mapping[str, str], account: Path = _ACCOUNT
    ) -> None:
        super().__init__(environment)
        self._account = account

    def membership(self) -> ClusterMembership:
        """Returns the membership of this pod."""
        index = self.integer("JOB_COMPLETION_INDEX")
        host = self.env.get("HOSTNAME") or socket.gethostname()
        job = host.partition(".")[0].removesuffix(f"-{index}")
        domain = self.full_name(host).partition(".")[2]
        address = self.env.get("FXFLOW_COORDINATOR_ADDRESS")
        if not address:
            if not domain:
                raise DistributedError(
                    f"kubernetes: pod {host} has no subdomain, so pods cannot find "
                    "each other: give the pod template the subdomain of a headless "
                    "service, or set FXFLOW_COORDINATOR_ADDRESS"
                )
            address = f"{job}-0.{domain}:{_PORT}"
        if self.env.get("FXFLOW_NUM_PROCESSES"):
            count = self.integer("FXFLOW_NUM_PROCESSES")
        else:
            count = self.completions(job)
        # The address of a pod changes when it is restarted; its name does not.
        own = f"{job}-{index}.{domain}" if domain else ""
        return ClusterMembership(address, count, index, source="Kubernetes", host=own)

    def full_name(self, host: str) -> str:
        """Returns the pod's name with its domain."""
        return socket.getfqdn(host)

    def completions(self, job: str) -> int:
        """Returns the number of pods of the job, from the API server.

        Raises:
          DistributedError: the API server does not return it.
        """
        try:
            namespace = (self._account / "namespace").read_text().strip()
            token = (self._account / "token").read_text().strip()
            host = self.env["KUBERNETES_SERVICE_HOST"]
            port = self.env.get("KUBERNETES_SERVICE_PORT", "443")
            request = urllib.request.Request(
                f"https://{host}:{port}/apis/batch/v1/namespaces/{namespace}/jobs/{job}",
                headers={"Authorization": f"Bearer {token}"},
            )
            trust = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
            with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
                return int(json.load(answer)["spec"]["completions"])
        except (OSError, urllib.error.URLError, ValueError, KeyError) as error:
            raise DistributedError(
                f"kubernetes: cannot read the number of pods of job {job!r} ({error}); "
                "set FXFLOW_NUM_PROCESSES in the pod template"
            ) from None
