"""fxflow's own variables, which ``fxflow launch`` sets."""

from __future__ import annotations

from typing import ClassVar

from fxflow.distributed.clusters.base import ClusterEnvironment, ClusterMembership


class Environment(ClusterEnvironment):
    """``FXFLOW_COORDINATOR_ADDRESS``, ``FXFLOW_NUM_PROCESSES``, ``FXFLOW_PROCESS_ID``.

    Also ``FXFLOW_LOCAL_PROCESS_ID``, ``FXFLOW_TOKEN`` (the run's secret) and
    ``FXFLOW_COORDINATOR_HOSTED=1`` if process 0 does not run the coordinator.
    """

    name = "fxflow"
    variables: ClassVar[tuple[str, ...]] = (
        "FXFLOW_COORDINATOR_ADDRESS",
        "FXFLOW_NUM_PROCESSES",
        "FXFLOW_PROCESS_ID",
    )

    def _maybe(self, name: str) -> int | None:
        return self.integer(name) if self.env.get(name) else None

    def membership(self) -> ClusterMembership:
        """Returns the membership; each of the variables may be missing."""
        return ClusterMembership(
            self.env.get("FXFLOW_COORDINATOR_ADDRESS") or None,
            self._maybe("FXFLOW_NUM_PROCESSES"),
            self._maybe("FXFLOW_PROCESS_ID"),
            self._maybe("FXFLOW_LOCAL_PROCESS_ID"),
            self.env.get("FXFLOW_COORDINATOR_HOSTED", "") in ("1", "true"),
            self.env.get("FXFLOW_TOKEN", ""),
            "the FXFLOW_* environment variables",
        )

    def over(self, other: ClusterMembership) -> ClusterMembership:
        """Returns `other`, overridden by the variables that are set."""
        own = self.membership()
        given = {
            name: value
            for name, value in own._asdict().items()
            if name != "source" and (value or (value == 0 and value is not False))
        }
        return other._replace(**given)
