"""What a server knows of the worker processes: their addresses, and waiting pulls."""

from __future__ import annotations

import dataclasses
import time
from typing import NamedTuple

from fxflow.distributed.parameter_server import messages


class WorkerProcess(NamedTuple):
    """A worker process.

    Attributes:
      name: the worker's name, for messages.
      peer: the process's address on the listener.
      heard: the time of its last message.
    """

    name: str
    peer: bytes
    heard: float


#: A worker that has not sent a message.
UNKNOWN = WorkerProcess("", b"", 0.0)


@dataclasses.dataclass
class PendingPull:
    """A pull that has not been answered yet."""

    peer: bytes
    worker: int
    fields: messages.Gradient | messages.Pull
    clock: int
    begun: int = dataclasses.field(default_factory=time.monotonic_ns)

    def __post_init__(self) -> None:
        self.shard, self.seen = self.fields.shard, self.fields.have
        self.end = time.monotonic() + self.fields.deadline
