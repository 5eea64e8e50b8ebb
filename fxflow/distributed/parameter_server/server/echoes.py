"""Since when a server has been known to be in the same view as another one.

Heartbeats carry the time of sending by the sender's clock, and the times of the last
heartbeats that the sender has received, as echoes. If the primary of a shard echoes a
heartbeat, it entered no later view before that heartbeat was sent. While a server holds
the shard in the primary's view, the primary acknowledges nothing that the server does
not have. So a copy has every entry that was acknowledged before the echoed heartbeat,
and no two clocks are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Echoes:
    """Heartbeats that this server has received, and that others have received of it.

    Args:
      number: the server's number.
      incarnation: the server's incarnation.

    Example:
      >>> one, two = Echoes(0, 11), Echoes(1, 12)
      >>> two.note(0, 11, sent=500, epoch=3, echoes=[])
      >>> one.note(1, 12, sent=900, epoch=3, echoes=two.heard())
      >>> one.confirmed(1, 12, epoch=3)
      500
      >>> one.confirmed(1, 12, epoch=4) is None
      True
    """

    def __init__(self, number: int, incarnation: int) -> None:
        self._own = [number, incarnation]
        #: Server → its incarnation, and when it sent its last heartbeat.
        self._heard: dict[int, tuple[int, int]] = {}
        #: Server → its incarnation, its epoch, and the last heartbeat that it echoed.
        self._echoed: dict[int, tuple[int, int, int]] = {}

    def note(
        self,
        server: int,
        incarnation: int,
        sent: int,
        epoch: int,
        echoes: Iterable[Sequence[int]],
    ) -> None:
        """Notes a heartbeat.

        Args:
          server: number of its sender.
          incarnation: the sender's incarnation.
          sent: when it was sent, by the sender's clock.
          epoch: the epoch of the sender's view.
          echoes: what `heard` returned to the sender, before it read the epoch.
        """
        self._heard[server] = incarnation, sent
        for *own, echoed in echoes:
            if own == self._own:
                self._echoed[server] = incarnation, epoch, echoed

    def heard(self) -> list[list[int]]:
        """Returns number, incarnation and time of the last heartbeat of each server."""
        return [[server, *last] for server, last in list(self._heard.items())]

    def confirmed(self, server: int, incarnation: int, epoch: int) -> int | None:
        """Returns a time at which a process had not left a view yet.

        Args:
          server: the server's number.
          incarnation: the process's incarnation.
          epoch: the epoch of the view.

        Returns:
          The time by this server's clock; None: it is not known to be in the view.
        """
        *process, echoed = self._echoed.get(server, (0, -1, 0))
        return echoed if process == [incarnation, epoch] else None
