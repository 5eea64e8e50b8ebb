"""Connections that wait for their requests only so long, and take heads only so large.

Uvicorn bounds neither: a client could send headers for ever, slowly or quickly. Bodies
are bounded where they are read (`http`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from fxflow.errors import ServeError


def bounded_protocol(head_bytes: int = 1 << 16, head_seconds: float = 10.0) -> Any:
    """Returns the protocol for uvicorn's ``http``.

    Args:
      head_bytes: the most that the line and the headers of a request may have.
      head_seconds: in which they have to come, from the connection or the first byte.

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

    class Bounded(HttpToolsProtocol):
        _bytes = 0
        _is_head = True
        _others = False
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._stop()
            self._bytes, self._is_head = 0, True

        def on_headers_complete(self) -> None:
            self._is_head = False
            self._stop()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
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
