"""The membership of a process, and the base class of cluster managers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from fxflow.errors import DistributedError


class ClusterMembership(NamedTuple):
    """What is known about a process; None: unknown.

    Attributes:
      coordinator_address: ``host:port``.
      num_processes: the number of processes.
      process_id: this process's number.
      local_process_id: its number among those of its machine.
      hosted: whether another process (a launcher) runs the coordinator.
      token: the run's secret.
      source: the manager's name, for messages.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_process_id: int | None = None
    hosted: bool = False
    token: str = ""
    source: str = ""


class ClusterEnvironment:
    """A cluster manager.

    Args:
      environment: the variables to read.
    """

    #: Its name in `initialize(cluster_detection_method=)`.
    name: ClassVar[str] = ""
    #: The variables by which it is detected.
    variables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.env = environment

    def is_present(self) -> bool:
        """Returns whether this process was started by the manager."""
        return all(self.env.get(name) for name in self.variables)

    def membership(self) -> ClusterMembership:
        """Returns what the manager says.

        Raises:
          DistributedError: a variable is missing or invalid.
        """
        raise DistributedError(f"{self.name} says nothing")

    def integer(self, *names: str) -> int:
        """Returns the first of these variables that is set, as a number.

        Raises:
          DistributedError: none is set, or it is not a number.
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

    It is above Linux's ephemeral ports (32768 to 60999), so it is most likely free. Two
    jobs on one machine have different ports unless their numbers agree modulo 4096.
    """
    return 61440 + job % 4096
