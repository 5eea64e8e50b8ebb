"""``torchrun``, and other launchers that set its variables."""

from __future__ import annotations

from typing import ClassVar

from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership


class Torchrun(ClusterEnvironment):
    """``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``, ``LOCAL_RANK``."""

    name = "torchrun"
    variables: ClassVar[tuple[str, ...]] = (
        "RANK",
        "WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    )

    def membership(self) -> ClusterMembership:
        """Returns the membership of this rank."""
        port = self.integer("MASTER_PORT")
        if self.env.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true":
            port += 1  # the agent itself listens at MASTER_PORT
        return ClusterMembership(
            f"{self.env['MASTER_ADDR']}:{port}",
            self.integer("WORLD_SIZE"),
            self.integer("RANK"),
            self.integer("LOCAL_RANK") if self.env.get("LOCAL_RANK") else None,
            source="torchrun",
        )
