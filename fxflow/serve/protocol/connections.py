"""Connections that wait for their requests only so long, and take heads only so large.

Uvicorn bounds neither: a client could send headers for ever, slowly or quickly. Bodies
are bounded where they are read (`http`). Nor does it bound how much is taken in before
answers that are there are sent, for which there is an `_Intake`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from fxflow.errors import ServeError

#: Bytes of a connection that wait to be read, from which on nothing more is taken in.
_HELD = 1 << 16


class _Intake:
    """Lets few pieces of requests in at each turn of the event loop; others wait.

    An answer takes several turns until it is sent. If each of them read all that is
    there, answers would wait as long as hundreds of requests take, whatever becomes of
    these: under a flood all that is answered would be late.

    Where they have to wait for long the newest goes first, which can still be answered
    in time: in the order of their coming all would be too late in the end. But one in a
    few is the oldest, so that each is read, if only to be refused.

    Args:
      most: pieces at each turn.
    """

    #: Seconds of waiting from which on the newest goes first.
    _LONG = 0.04
    #: One in so many is the oldest, even then.
    _OLDEST = 8

    def __init__(self, most: int) -> None:
        self._most = self._room = most
        self._waiting: deque[tuple[Any, float]] = deque()
        self._counting = False
        self._taken = 0

    def enter(self, connection: Any, data: bytes) -> None:
        """Gives data to the connection's `take` now, or at a later turn."""
        if self._room > 0 and not self._waiting:
            self._room -= 1
            connection.take(data)
        else:
            if not connection.held:
                self._waiting.append((connection, time.monotonic()))
            connection.hold(data)
        if not self._counting:
            self._counting = True
            connection.loop.call_soon(self._turn, connection.loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room = self._most
        now = time.monotonic()
        while self._waiting and self._room > 0:
            self._taken += 1
            in_order = now - self._waiting[0][1] <= self._LONG
            if in_order or self._taken % self._OLDEST == 0:
                connection, since = self._waiting.popleft()
            else:
                connection, since = self._waiting.pop()
            data, connection.held = connection.held, b""
            if not connection.transport.is_closing():
                self._room -= 1
                connection.take(data, now - since)
        self._counting = self._room < self._most
        if self._counting:
            loop.call_soon(self._turn, loop)


class Joined:
    """A transport that, within a ``with`` block, sends all that is written at once.

    An answer is written as a head and a body. Each by itself takes a call into the
    kernel, which wakes the client: a tenth of what a small request costs.

    Args:
      transport: of the event loop.
    """

    __slots__ = ("_kept", "_transport", "is_closing")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._kept: list[bytes] | None = None
        self.is_closing = transport.is_closing

    def __enter__(self) -> None:
        self._kept = []

    def __exit__(self, *error: object) -> None:
        kept, self._kept = self._kept, None
        if kept:
            self._transport.write(b"".join(kept))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Sends it, now or at the block's end."""
        if self._kept is None:
            self._transport.write(data)
        else:
            self._kept.append(data)

    def close(self) -> None:
        """Closes the connection when what was written is sent."""
        if self._kept is not None:
            self.__exit__()
        self._transport.close()


def bounded_protocol(
    head_bytes: int = 1 << 16, head_seconds: float = 10.0, intake: int = 16
) -> Any:
    """Returns the protocol for uvicorn's ``http``.

    A request that had to wait until it was read has the key ``fxflow.waited`` in its
    scope: for how many seconds. One that came at once has ``fxflow.body``, which need
    not be waited for. All have ``fxflow.joined``, a block within which the parts of an
    answer are sent together.

    Args:
      head_bytes: the most that the line and the headers of a request may have.
      head_seconds: in which they have to come, from the connection or the first byte.
      intake: pieces of requests, of all connections, that are read in one turn of the
        event loop.

    Returns:
      A class.

    Raises:
      ServeError: uvicorn or httptools is not installed.
    """
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        raise ServeError(
            "serving needs uvicorn and httptools: pip install 'fxflow[serve]'"
        ) from None

    entrance = _Intake(intake)

    class Bounded(HttpToolsProtocol):
        _bytes = 0
        #: What came while others were read.
        held = b""
        _waited = 0.0
        _stopped = False
        _is_head = True
        _others = False
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(Joined(transport))
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["fxflow.joined"] = self.transport
            self._stop()
            self._bytes, self._is_head = 0, True

        def on_headers_complete(self) -> None:
            if self._waited:
                self.scope["fxflow.waited"] = self._waited
            self._is_head = False
            self._stop()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            entrance.enter(self, data)

        def hold(self, data: bytes) -> None:
            self.held += data
            if len(self.held) > _HELD and not self._stopped:
                self._stopped = True
                self.transport.pause_reading()
            self._unset_keepalive_if_required()  # it is not idle

        def take(self, data: bytes, waited: float = 0.0) -> None:
            self._waited = waited
            if self._stopped:
                self._stopped = False
                if not self.flow.read_paused:
                    self.transport.resume_reading()
            self._others = False
            super().data_received(data)
            if not self._is_head:  # it came at once, as nearly all do
                return
            if self._timer is None:
                self._wait()
            # What has the end of another request, too, is not counted.
            if not self._others:
                self._bytes += len(data)
                if self._bytes > head_bytes:
                    self._refuse(431, f"a head may have {head_bytes} bytes")

        def on_message_complete(self) -> None:
            self._others = True
            super().on_message_complete()
            self.scope["fxflow.body"] = self.cycle.body

        def _wait(self) -> None:
            self._timer = self.loop.call_later(head_seconds, self._late)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._refuse(408, f"the head did not come within {head_seconds:g} s")

        def _refuse(self, status: int, words: str) -> None:
            self._stop()
            if self.transport.is_closing():
                return
            text = f'{{"error":"{words}"}}'
            head = f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            self.transport.write((head + text).encode())
            self.transport.close()

    return Bounded
