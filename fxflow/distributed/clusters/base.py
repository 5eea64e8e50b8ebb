"""The membership of a process, and the base class of cluster managers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from fxflow.errors import DistributedError


class ClusterMembership(NamedTuple):
    """A process's place in its run; None for unknown values.

    Attributes:
      coordinator_address: ``host:port``.
      num_processes: the number of processes.
      process_id: this process's number.
      local_process_id: its number among the processes on its machine.
      hosted: whether another process (a launcher) runs the coordinator.
      token: the run's secret.
      source: the manager's name, for messages.
      host: this process's own name, by which others reach it; empty if the manager sets
        none.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_process_id: int | None = None
    hosted: bool = False
    token: str = ""
    source: str = ""
    host: str = ""


class ClusterEnvironment:
    """The base class of cluster managers.

    Args:
      environment: the variables to read.
    """

    #: The manager's name for `initialize(cluster_detection_method=)`.
    name: ClassVar[str] = ""
    #: The variables by which the manager is detected.
    variables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.env = environment

    def is_present(self) -> bool:
        """Returns whether the manager started this process."""
        return all(self.env.get(name) for name in self.variables)

    def membership(self) -> ClusterMembership:
        """Returns this process's membership.

        Raises:
          DistributedError: a variable is missing or invalid.
        """
        raise DistributedError(f"{self.name} sets no membership")

    def integer(self, *names: str) -> int:
        """Returns the first of these variables that is set, as an integer.

        Raises:
          DistributedError: no variable is set, or it is not an integer.
        """
        for name in names:
            text = self.env.get(name)
            if text:
                try:
                    return int(text)
                except ValueError:
                    raise DistributedError(
                        f"{self.name}: environment variable {name} must be an "
                        f"integer, got {text!r}"
                    ) from None
        raise DistributedError(
            f"{self.name}: environment variable {' or '.join(names)} is not set"
        )


def job_port(job: int) -> int:
    """Returns a port, 61440 to 65535, that a job's processes derive from its number.

    Linux does not use it as an ephemeral port (32768 to 60999), so it is usually free.
    Two jobs on one machine have the same port only if their numbers agree modulo 4096.
    """
    return 61440 + job % 4096
