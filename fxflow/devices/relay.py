"""A relay: a local port that forwards its traffic to a peer that may die.

The runtime's coordination client ends its process (``LOG(FATAL)``) as soon as its
connection to the service breaks. The relay hides this: when the peer is lost, it
notifies its owner and keeps the client's side open, so that Python can raise, clean up
and exit. Its cost is within the noise of one operation of the store (0.33 ms).

It uses threads, not a selector: it has only one or two connections, with little
traffic.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from typing import Any


def pump(source: socket.socket, sink: socket.socket) -> bool:
    """Copies bytes until one side ends; returns whether it was `source`."""
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
    """Shuts sockets down and closes them; a thread that reads one of them wakes up."""
    for end in sockets:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def splice(left: socket.socket, right: socket.socket) -> None:
    """Joins two connections until either ends; returns when both are closed."""

    def back() -> None:
        pump(right, left)
        close(left, right)

    thread = threading.Thread(target=back, name="fxflow-splice", daemon=True)
    thread.start()
    pump(left, right)
    close(left, right)
    thread.join()


#: Errors of `accept` on a closed listener. Others are temporary: too many open files,
#: or a peer that has closed already.
_CLOSED = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)
_PAUSE = 0.05


def accept(listener: socket.socket) -> socket.socket | None:
    """Returns the next connection; None after a temporary error.

    Raises:
      EOFError: the listener is closed.
    """
    try:
        return listener.accept()[0]
    except BlockingIOError:
        return None
    except OSError as error:
        if listener.fileno() == -1 or error.errno in _CLOSED:
            raise EOFError("closed") from None
    time.sleep(_PAUSE)
    return None


def own_connections() -> dict[int, tuple[Any, Any]]:
    """Returns the own and the peer's address of this process's TCP sockets, by fd."""
    found = {}
    for folder in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(folder):
            break
    else:
        return {}
    for name in os.listdir(folder):
        try:
            descriptor = int(name)
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            copy = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue
        with copy:
            if copy.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            try:
                peer = copy.getpeername()
            except OSError:
                peer = None
            with contextlib.suppress(OSError):
                found[descriptor] = (copy.getsockname(), peer)
    return found


def is_own(connection: socket.socket) -> bool:
    """Returns whether the other end of a connection is in this process too."""
    here, there = map(_plain, (connection.getsockname(), connection.getpeername()))
    return any(
        (_plain(own), _plain(peer)) == (there, here)
        for own, peer in own_connections().values()
        if peer is not None
    )


def _plain(address: Any) -> tuple[str, int]:
    """Returns host and port, without the ::ffff: of an IPv4 address on IPv6."""
    return address[0].removeprefix("::ffff:"), address[1]


class Relay:
    """A local port that forwards to a peer and outlives it.

    The peer trusts every connection through the relay, so it serves only this process.

    Args:
      connect: makes a connection to the peer; raises OSError if it cannot.
      lost: called with the reason, once, from a thread of the relay, when the peer
        is lost while the client is still connected.

    Attributes:
      address: ``"127.0.0.1:port"``, to which the client connects.
    """

    address: str

    def __init__(
        self, connect: Callable[[], socket.socket], lost: Callable[[str], None]
    ) -> None:
        self._connect, self._lost = connect, lost
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._closed = self._notified = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(
            target=target, args=arguments, name="fxflow-relay", daemon=True
        ).start()

    def _accept(self) -> None:
        while True:
            try:
                client = accept(self._listener)
            except EOFError:
                return
            if client is not None:
                self._start(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        try:
            own = is_own(client)
        except OSError:
            own = False
        if not own:
            # Another process of this machine, which the peer would take for this one.
            close(client)
            return
        with self._lock:
            if self._closed:
                close(client)
                return
            self._open.append(client)
        try:
            peer = self._connect()
        except OSError as error:
            self._notify(str(error))
            return
        for end in (client, peer):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open.append(peer)
        ended = threading.Event()

        def lost() -> None:
            # Close only the peer's side: the client must not notice.
            self._notify("the connection was closed")
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

    def _notify(self, reason: str) -> None:
        with self._lock:
            if self._notified or self._closed:
                return
            self._notified = True
        self._lost(reason)

    def close(self) -> None:
        """Closes all sockets; a client that has not disconnected ends the process."""
        with self._lock:
            self._closed = True
            ends, self._open = self._open, []
        close(self._listener, *ends)
