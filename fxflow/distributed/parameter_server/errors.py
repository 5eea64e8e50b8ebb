"""Errors that servers and workers of a parameter server handle differently."""

from __future__ import annotations

from fxflow.distributed.messages.codec import Message
from fxflow.errors import DistributedError


class OtherRunError(DistributedError):
    """The files of this server belong to another run than the servers that it found."""


class OtherModelError(DistributedError):
    """A worker trains another model than the run."""


class NotServedError(Exception):
    """Another server serves the shard of a request."""


class LostCutError(DistributedError):
    """A server abandoned a cut: the worker may request another."""


class RejectedPushError(DistributedError):
    """A push is invalid: it changed nothing, and would be rejected again."""


class EntryError(DistributedError):
    """An entry cannot be applied here, so this copy of the shard is unusable.

    Faulty pushes are rejected before they become entries (`Shard.turn`). The cause is
    therefore a failure of this process, such as full memory or a full disk: other
    copies may have applied the entry, and this one would differ from them.

    Args:
      entry: the entry.
      why: what went wrong.

    Attributes:
      worker: number of the worker that sent the entry.
    """

    worker: int

    def __init__(self, entry: Message, why: str) -> None:
        number = f" {entry.sequence}" if entry.kind == "push" else ""
        super().__init__(f"{entry.kind}{number} of worker {entry.worker}: {why}")
        self.worker = entry.worker
