"""Authentication of connections to a port, by the run's secret.

A connection begins with a proof of fixed size (`channel.proof`). Until that is there a
peer is a stranger, and gets what a stranger should: no thread, no memory but for those
few bytes, ten seconds, and no word of what it says is interpreted. One thread waits for
all strangers; too many of them drive out the oldest. Having too many open files or
having lost a peer before it was let in does not stop the listener.
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
from fxflow.distributed.protocol import Refused, written
from fxflow.errors import DistributedError

#: Seconds for a proof to come, and how many are waited for at once.
_SECONDS = 10.0
_MOST = 256
#: How often it is looked whether the port is still open, in seconds.
_TICK = 1.0


def require_token(host: str, token: str) -> None:
    """Checks that a port that other machines reach has a secret.

    Raises:
      DistributedError: it has none.
    """
    if not token and not is_loopback(host):
        raise DistributedError(
            f"listening at {host}, where other machines reach it, needs a secret that "
            "keeps strangers out: set FXFLOW_TOKEN to the same text in all processes "
            "of the run, such as the output of `openssl rand -hex 16`"
        )


class _Stranger:
    """A connection that has not proven anything yet."""

    __slots__ = ("connection", "end", "given", "refused")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.end = time.monotonic() + _SECONDS
        self.given = b""
        self.refused = False

    def hear(self, expected: bytes) -> bool:
        """Reads what is there; returns whether the proof is whole and right.

        Raises:
          EOFError: there is nothing more to wait for.
        """
        try:
            data = self.connection.recv(
                1 << 12 if self.refused else len(expected) - len(self.given)
            )
        except BlockingIOError:
            return False
        except OSError as error:
            raise EOFError(str(error)) from None
        if not data:
            raise EOFError("the connection was closed")
        if self.refused:
            return False
        self.given += data
        if self.given[:4] != expected[: min(4, len(self.given))]:
            with contextlib.suppress(OSError):
                self.connection.recv(1 << 12)  # unread, it would be a reset
            raise EOFError("it is not a process of fxflow")
        if len(self.given) < len(expected):
            return False
        if hmac.compare_digest(self.given, expected):
            return True
        # Closed at once, with something unread, the other end might miss the reason.
        self.refused = True
        with contextlib.suppress(OSError):
            Channel(self.connection).send(
                written(Refused("it has another run's token"))
            )
            self.connection.shutdown(socket.SHUT_WR)
        return False


def admitted(listener: socket.socket, token: str) -> Iterator[socket.socket]:
    """Yields the connections that prove to know the secret, until `listener` is closed.

    Args:
      listener: listens.
      token: the run's secret.
    """
    expected = proof(token)
    strangers: dict[int, _Stranger] = {}  # the oldest first
    try:
        listener.setblocking(False)
    except OSError:  # closed before this thread came to it
        return

    def dismiss(number: int) -> None:
        strangers.pop(number).connection.close()

    try:
        while True:
            poll = select.poll()
            try:
                poll.register(listener, select.POLLIN)
            except ValueError:  # closed
                return
            for number in strangers:
                poll.register(number, select.POLLIN)
            ready = {number for number, _ in poll.poll(_TICK * 1000)}
            now = time.monotonic()
            for number, stranger in list(strangers.items()):
                try:
                    if number in ready and stranger.hear(expected):
                        del strangers[number]
                        stranger.connection.setblocking(True)
                        yield stranger.connection
                        continue
                except EOFError:
                    stranger.end = now
                if stranger.end <= now:
                    dismiss(number)
            if not ready.isdisjoint({listener.fileno()}):
                try:
                    connection = accept(listener)
                except EOFError:
                    return
                if connection is not None:
                    strangers[connection.fileno()] = _Stranger(connection)
                if strangers and (connection is None or len(strangers) > _MOST):
                    dismiss(next(iter(strangers)))
    finally:
        for number in list(strangers):
            dismiss(number)
