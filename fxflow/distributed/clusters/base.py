"""What a cluster manager says about a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from fxflow.errors import DistributedError


class ClusterMembership(NamedTuple):
    """What is known about a process; None where it is not.

    Attributes:
      coordinator_address: ``host:port``.
      num_processes: how many there are.
      process_id: this one's number.
      local_process_id: this one's number among those of its machine.
      hosted: whether another process (a launcher) runs the coordinator.
      token: the run's secret.
      source: who says so, for messages.
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

    #: What `initialize(cluster_detection_method=)` calls it.
    name: ClassVar[str] = ""
    #: The variables it is known by.
    variables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.env = environment

    def is_present(self) -> bool:
        """Returns whether this process was started by the manager."""
        return all(self.env.get(name) for name in self.variables)

    def membership(self) -> ClusterMembership:
        """Returns what the manager says.

        Raises:
          DistributedError: it says what cannot be.
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
    """Returns a port that the processes of one job derive alike: 61440 to 65535.

    Above the ports that Linux gives out by itself (32768 to 60999), so that it is
    most likely free; two jobs on one machine differ unless their numbers agree
    modulo 4096.
    """
    return 61440 + job % 4096
