"""A relay: a local port whose traffic goes to a peer that may die.

The runtime's coordination client ends its process (``LOG(FATAL)``) the moment its
connection to the service breaks. Through a relay it does not see that: when the peer
goes, the relay tells the owner and keeps the client's side open, so that Python can
raise, clean up and end in its own way. The cost is within the noise of one operation of
the store (0.33 ms).

Threads, not a selector: a relay carries one or two connections of the control plane.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

__all__ = ["Relay", "connections", "pump", "splice"]


def pump(source: socket.socket, sink: socket.socket) -> bool:
    """Copy bytes until one side ends; return whether it was `source`."""
    while True:
        try:
            data = source.recv(1 << 16)
        except OSError:
            return True
        if not data:
            return True
        try:
            sink.sendall(data)
        except OSError:
            return False


def close(*sockets: socket.socket) -> None:
    """Shut sockets down and close them; a thread that reads one of them wakes up."""
    for end in sockets:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def splice(left: socket.socket, right: socket.socket) -> None:
    """Join two connections until either ends; returns when both are closed."""

    def back() -> None:
        pump(right, left)
        close(left, right)

    thread = threading.Thread(target=back, name="fxflow-splice", daemon=True)
    thread.start()
    pump(left, right)
    close(left, right)
    thread.join()


def connections(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield what connects, until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        yield connection


class Relay:
    """A local port that forwards to a peer and outlives it.

    Args:
        connect: makes a connection to the peer; raises OSError if it cannot.
        lost: called with the reason, once, from a thread of the relay, when the peer
            is gone although the client is still there.

    Attributes:
        address: ``"127.0.0.1:port"``, what the client is to connect to.
    """

    def __init__(
        self, connect: Callable[[], socket.socket], lost: Callable[[str], None]
    ) -> None:
        self._connect, self._lost = connect, lost
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._closed = self._told = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(
            target=target, args=arguments, name="fxflow-relay", daemon=True
        ).start()

    def _accept(self) -> None:
        for client in connections(self._listener):
            self._start(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        with self._lock:
            if self._closed:
                close(client)
                return
            self._open.append(client)
        try:
            peer = self._connect()
        except OSError as error:
            self._tell(str(error))
            return
        for end in (client, peer):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open.append(peer)
        ended = threading.Event()

        def lost() -> None:
            # Only the peer's side is closed: the client must not notice.
            self._tell("the connection was closed")
            close(peer)

        def back() -> None:
            if pump(peer, client) and not ended.is_set():
                lost()

        self._start(back)
        if pump(client, peer):
            ended.set()
            close(peer)
        else:
            lost()

    def _tell(self, reason: str) -> None:
        with self._lock:
            if self._told or self._closed:
                return
            self._told = True
        self._lost(reason)

    def close(self) -> None:
        """End everything; the client must be gone before, or it ends the process."""
        with self._lock:
            self._closed = True
            ends, self._open = self._open, []
        close(self._listener, *ends)
