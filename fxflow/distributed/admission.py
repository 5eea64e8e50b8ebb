"""Authenticates connections to a port by the run's secret.

A peer begins with a proof of fixed size (`channel.proof`). Until the proof is complete,
the peer gets no thread, no memory except for those few bytes, and at most ten seconds,
and nothing that it sends is interpreted. One thread serves all unauthenticated peers;
beyond a limit, it disconnects the oldest. The listener survives peers that disconnect
early and running out of file descriptors.
"""

from __future__ import annotations

import contextlib
import hmac
import select
import socket
import time
from collections.abc import Iterator

from fxflow.devices.relay import accept
from fxflow.distributed.addresses import is_loopback
from fxflow.distributed.messages.channel import Channel, proof
from fxflow.distributed.processes import require_posix
from fxflow.distributed.protocol import Refused, written
from fxflow.errors import DistributedError

#: Seconds within which a proof must arrive.
_SECONDS = 10.0
#: The largest number of unauthenticated peers.
_MOST = 256
#: Seconds between checks of whether the port is still open.
_TICK = 1.0


def require_token(host: str, token: str) -> None:
    """Checks that there is a secret if other machines can reach the host.

    Raises:
      DistributedError: there is none.
    """
    if not token and not is_loopback(host):
        raise DistributedError(
            f"listening at {host}, which other machines can reach, needs a secret: "
            "set FXFLOW_TOKEN to the same text in all processes "
            "of the run, such as the output of `openssl rand -hex 16`"
        )


class _Peer:
    """A connection that is not yet authenticated."""

    __slots__ = ("connection", "end", "received", "refused")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.end = time.monotonic() + _SECONDS
        self.received = b""
        self.refused = False

    def read(self, expected: bytes) -> bool:
        """Reads what has arrived; returns whether the proof is complete and right.

        Raises:
          EOFError: no proof will arrive.
        """
        try:
            data = self.connection.recv(
                1 << 12 if self.refused else len(expected) - len(self.received)
            )
        except BlockingIOError:
            return False
        except OSError as error:
            raise EOFError(str(error)) from None
        if not data:
            raise EOFError("the connection was closed")
        if self.refused:
            return False
        self.received += data
        if self.received[:4] != expected[: min(4, len(self.received))]:
            with contextlib.suppress(OSError):
                self.connection.recv(1 << 12)  # unread data would cause a reset
            raise EOFError("it is not an fxflow process")
        if len(self.received) < len(expected):
            return False
        if hmac.compare_digest(self.received, expected):
            return True
        # Closing at once, with unread data, might discard the reason in transit.
        self.refused = True
        with contextlib.suppress(OSError):
            Channel(self.connection).send(
                written(Refused("it has another run's token"))
            )
            self.connection.shutdown(socket.SHUT_WR)
        return False


def admitted(listener: socket.socket, token: str) -> Iterator[socket.socket]:
    """Yields authenticated connections until `listener` is closed.

    Args:
      listener: a listening socket.
      token: the run's secret.
    """
    expected = proof(token)
    peers: dict[int, _Peer] = {}  # the oldest first
    try:
        listener.setblocking(False)
    except OSError:  # closed before this thread started
        return

    def disconnect(number: int) -> None:
        peers.pop(number).connection.close()

    require_posix("messages between processes")
    try:
        while True:
            poll = select.poll()
            try:
                poll.register(listener, select.POLLIN)
            except ValueError:  # closed
                return
            for number in peers:
                poll.register(number, select.POLLIN)
            ready = {number for number, _ in poll.poll(_TICK * 1000)}
            now = time.monotonic()
            for number, peer in list(peers.items()):
                try:
                    if number in ready and peer.read(expected):
                        del peers[number]
                        peer.connection.setblocking(True)
                        yield peer.connection
                        continue
                except EOFError:
                    peer.end = now
                if peer.end <= now:
                    disconnect(number)
            if not ready.isdisjoint({listener.fileno()}):
                try:
                    connection = accept(listener)
                except EOFError:
                    return
                if connection is not None:
                    peers[connection.fileno()] = _Peer(connection)
                if peers and (connection is None or len(peers) > _MOST):
                    disconnect(next(iter(peers)))
    finally:
        for number in list(peers):
            disconnect(number)
