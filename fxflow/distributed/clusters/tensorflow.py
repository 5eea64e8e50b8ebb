"""``TF_CONFIG``, which Vertex AI, Kubeflow and others set."""

from __future__ import annotations

import json
from typing import ClassVar

from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership
from fxflow.errors import DistributedError

# The task types that compute, in the order of their process numbers.
_JOBS = ("chief", "master", "worker")


class TFConfig(ClusterEnvironment):
    """``TF_CONFIG``: ``{"cluster": {"worker": ["host:port", …]}, "task": {…}}``."""

    name = "tf_config"
    variables: ClassVar[tuple[str, ...]] = ("TF_CONFIG",)

    def membership(self) -> ClusterMembership:
        """Returns the membership of this task; the chief is process 0, then workers."""
        text = self.env["TF_CONFIG"]
        try:
            config = json.loads(text)
            cluster = dict(config.get("cluster") or {})
            task = config.get("task") or {}
            job, index = task.get("type", "worker"), int(task.get("index", 0))
        except (ValueError, TypeError, AttributeError):
            raise DistributedError(
                f"tf_config: cannot read TF_CONFIG: {text!r}"
            ) from None
        if job not in _JOBS:
            raise DistributedError(
                f"tf_config: task type {job!r} does not compute; start fxflow on "
                f"tasks of type {', '.join(_JOBS)} only"
            )
        tasks = [(j, k, a) for j in _JOBS for k, a in enumerate(cluster.get(j, ()))]
        if not tasks:
            return ClusterMembership(None, 1, 0, source="TF_CONFIG")
        mine = [n for n, (j, k, _) in enumerate(tasks) if (j, k) == (job, index)]
        if not mine:
            raise DistributedError(
                f"tf_config: task {job} {index} is not in the cluster {cluster}"
            )
        own = str(tasks[mine[0]][2]).rpartition(":")[0].strip("[]")
        return ClusterMembership(
            tasks[0][2], len(tasks), mine[0], source="TF_CONFIG", host=own
        )
