"""Connections of clients, on uvicorn's protocol class.

Connections limit the time and the size of a request's head, which uvicorn does not: a
client could send headers forever, slowly or quickly. `http` limits bodies where it
reads them. An `_Intake` limits how much is read before finished replies are sent, which
uvicorn does not limit either.

A request that has arrived whole is answered without uvicorn's task and ASGI messages,
which take as much time as a small model (`_Answer`); and if its head is that of an
earlier request, which is usual for clients that send many, without parsing it again
(`_Heads`).
"""

from __future__ import annotations

import asyncio
import bisect
import logging
import operator
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from fxflow.errors import ServeError
from fxflow.serve.protocol.asgi import Reply

_log = logging.getLogger("fxflow.serve")
#: Unread bytes of a connection above which it is paused.
_HELD = 1 << 16


class Later(NamedTuple):
    """Says that a request is to wait unread, as its model is overloaded.

    Attributes:
      model: what it waits for; requests that wait for the same model wait together.
      patience: seconds after its arrival at which it is refused.
    """

    model: Hashable
    patience: float


class _Intake:
    """Limits how many chunks of data are read per iteration of the event loop.

    An answer takes several iterations until it is sent. If each iteration read all
    pending data, answers would wait for hundreds of requests, even for refused ones:
    under overload all answers would be late.

    If the wait is long, the newest chunk goes first, because its request can still be
    answered in time; in order of arrival, all would eventually be late. One of every
    `_OLDEST` is still the oldest, so that every request is read, if only to be refused.

    A request that its model would refuse now (`Later`) waits: the newest is tried again
    from time to time, and each is refused when its patience ends. Until then its client
    sends no other request on that connection, so that a flood has fewer to refuse.

    Args:
      most: chunks per iteration.
    """

    #: Seconds of waiting after which the newest chunk goes first.
    _LONG = 0.04
    #: Even then, one of this many is the oldest.
    _OLDEST = 8
    #: Attempts within the patience of a request, and seconds between them.
    _ATTEMPTS, _SHORTEST, _LONGEST = 64, 0.001, 0.01

    def __init__(self, most: int) -> None:
        self._most = self._room = most
        self._waiting: deque[tuple[Any, float]] = deque()
        #: Requests that wait for a model, in order of arrival.
        self._later: dict[Later, list[tuple[float, Any]]] = {}
        self._counting = self._pausing = False
        self._next_attempt = 0.0
        self._taken = 0

    def enter(self, connection: Any, data: bytes) -> None:
        """Passes data to the connection's `take`, now or in a later iteration."""
        if connection.held:  # it waits already
            connection.hold(data)
        elif self._room > 0 and not self._waiting:
            self._room -= 1
            self._pass(connection, data, None, 0.0)
        else:
            self._waiting.append((connection, time.monotonic()))
            connection.hold(data)
        if not self._counting:
            self._counting = True
            connection.loop.call_soon(self._turn, connection.loop)

    def _pass(
        self, connection: Any, data: bytes, since: float | None, now: float
    ) -> bool:
        """Passes data that has waited since a time (None: it has not); whether taken.

        Otherwise it waits for its model.
        """
        try:
            later = connection.take(data, 0.0 if since is None else now - since)
        except Exception:  # the others are read on
            _log.exception("a connection failed")
            connection.transport.close()
            return True
        if later is None:
            return True
        connection.hold(data)
        arrived = time.monotonic() if since is None else since
        waiting = self._later.setdefault(later, [])
        bisect.insort(waiting, (arrived, connection), key=operator.itemgetter(0))
        return False

    def _pass_held(self, connection: Any, since: float, now: float) -> bool:
        data, connection.held = connection.held, b""
        if not data or connection.transport.is_closing():
            return True
        self._room -= 1
        return self._pass(connection, data, since, now)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room = self._most
        now = time.monotonic()
        for later, waiting in tuple(self._later.items()):
            while waiting and self._room > 0 and now - waiting[0][0] >= later.patience:
                since, connection = waiting.pop(0)
                self._pass_held(connection, since, now)
        while self._waiting and self._room > 0:
            self._taken += 1
            in_order = now - self._waiting[0][1] <= self._LONG
            if in_order or self._taken % self._OLDEST == 0:
                connection, since = self._waiting.popleft()
            else:
                connection, since = self._waiting.pop()
            self._pass_held(connection, since, now)
        if self._later and now >= self._next_attempt:
            self._attempt(now, loop)
        self._counting = self._room < self._most
        if self._counting:
            loop.call_soon(self._turn, loop)

    def _attempt(self, now: float, loop: asyncio.AbstractEventLoop) -> None:
        """Passes the newest requests to models that have room now."""
        for later, waiting in tuple(self._later.items()):
            while waiting and self._room > 0:
                since, connection = waiting.pop()
                if not self._pass_held(connection, since, now):
                    self._room += 1  # its model was only asked
                    break
            if not waiting:
                del self._later[later]
        if self._room > 0 and self._later:
            least = min(later.patience for later in self._later)
            pause = max(self._SHORTEST, min(least / self._ATTEMPTS, self._LONGEST))
            self._next_attempt = now + pause
            if not self._pausing:
                self._pausing = True
                loop.call_later(pause, self._resume, loop)

    def _resume(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pausing, self._next_attempt = False, 0.0
        if not self._counting:
            self._turn(loop)


class CorkedTransport:
    """A transport that sends everything written within a ``with`` block at once.

    A reply is written as a head and a body. A separate system call for each, which
    wakes the client, would cost a tenth of the time of a small request.

    Args:
      transport: the event loop's transport.
    """

    __slots__ = ("_kept", "_transport", "is_closing")

    is_closing: Any

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
        """Sends data, now or at the end of the block."""
        if self._kept is None:
            self._transport.write(data)
        else:
            self._kept.append(data)

    def close(self) -> None:
        """Closes the connection after sending what was written."""
        if self._kept is not None:
            self.__exit__()
        self._transport.close()


class _DefaultHeaders:
    """The headers that uvicorn adds to all replies, the date, as lines."""

    def __init__(self) -> None:
        self._known: Any = None
        self._lines = b""

    def lines(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Returns the lines; uvicorn makes another list every second."""
        if headers is not self._known:
            self._known = headers
            self._lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        return self._lines


class Prepared(Protocol):
    """Answers requests that have arrived whole, and whose heads are equal."""

    def answer(
        self, body: bytes, waited: float, client: Any, *, patient: bool = False
    ) -> Reply | Coroutine[Any, Any, Reply] | Later | None:
        """Begins to answer a request.

        Args:
          body: its body.
          waited: seconds that it waited until it was read.
          client: its client's address, as in a scope.
          patient: whether it can wait longer: the result may be a `Later`.

        Returns:
          The reply; or a coroutine that returns it, which waits only for futures and
          runs in no task; or None: the application answers, in a task.
        """


#: Returns what answers the POST request of a scope, and those with the same head; None:
#: the application does, in a task.
Prepare = Callable[[dict[str, Any]], Prepared | None]


class _Heads:
    """What answers requests, by their heads as they were received.

    A client that sends many requests repeats the head, which takes as long to parse as
    a small model takes to run. The oldest entries are dropped.
    """

    #: Number of heads that are kept, and the bytes of the longest one.
    _MOST, _LONGEST = 512, 2048

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Prepared, int]] = {}

    def find(self, data: bytes) -> tuple[Prepared, bytes] | None:
        """Returns what answers a request, and its body; None if it is not known.

        Args:
          data: what a connection has received since the end of the last request.
        """
        end = data.find(b"\r\n\r\n", 0, self._LONGEST) + 4
        found = self._known.get(data[:end])
        if found is None or len(data) != end + found[1]:
            return None
        return found[0], data[end:]

    def keep(self, data: bytes, prepared: Prepared, size: int) -> None:
        """Keeps what answers a request.

        Args:
          data: what a connection received between two requests and their ends.
          prepared: what answers the last request that ends in it.
          size: bytes of the body of that request.
        """
        end = data.find(b"\r\n\r\n", 0, self._LONGEST) + 4
        # Otherwise it is chunked, or there are several requests.
        if len(data) == end + size and data.startswith(b"POST "):
            if len(self._known) >= self._MOST:
                del self._known[next(iter(self._known))]
            self._known[data[:end]] = prepared, size


class _Gathered:
    """Limits how long connections wait for the rest of a body without a task.

    Beyond these limits the application waits for it, which has limits of its own.

    Attributes:
      bytes: of all bodies of which a part has arrived.
    """

    #: Most bytes of one body and of all, and seconds.
    MOST, ALL, SECONDS = 1 << 20, 64 << 20, 1.0

    def __init__(self) -> None:
        self.bytes = 0


class _Bodies:
    """Gathers the parts of a body that arrive one after the other, without a task."""

    loop: Any
    transport: Any
    #: All connections of a server share it.
    gathered: _Gathered

    #: Parts of the body of a request that no task answers yet, as the rest may arrive
    #: soon; None: there is no such request.
    _parts: list[bytes] | None = None
    #: Bytes of these parts, and how many of them count as gathered.
    _size = _counted = 0
    _rest_timer: asyncio.TimerHandle | None = None
    #: Lets the application answer the request whose body begins with some parts.
    _run: Callable[[list[bytes]], None]

    def _gather(self) -> None:
        """Waits for the rest of a body, within limits."""
        gathered = self.gathered
        gathered.bytes += self._size - self._counted
        self._counted = self._size
        if self._size > gathered.MOST or gathered.bytes > gathered.ALL:
            self._leave_rest()
        elif self._rest_timer is None:
            self._rest_timer = self.loop.call_later(gathered.SECONDS, self._leave_rest)

    def _leave_rest(self) -> None:
        """Lets the application wait for the rest of a body, within its limits."""
        parts = self._end_gathering()
        if parts is not None and not self.transport.is_closing():
            self._run(parts)

    def _end_gathering(self) -> list[bytes] | None:
        parts, self._parts = self._parts, None
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None
        self.gathered.bytes -= self._counted
        self._counted = 0
        return parts


class _Answer:
    """Runs the coroutine that answers a request, without a task.

    In place of uvicorn's cycle, it says whether the reply was sent: until then, later
    requests on the connection wait.

    Args:
      work: the coroutine.
      send: sends the reply.

    Attributes:
      response_complete: whether the reply was sent.
      disconnected: whether the client disconnected.
      keep_alive: whether the connection stays open after the reply.
    """

    __slots__ = ("_send", "_work", "disconnected", "keep_alive", "response_complete")

    def __init__(
        self, work: Coroutine[Any, Any, Reply], send: Callable[[Reply, bool], None]
    ) -> None:
        self._work, self._send = work, send
        self.response_complete = self.disconnected = False
        self.keep_alive = True

    @property
    def message_event(self) -> _Answer:
        """The event that uvicorn sets when the client disconnects."""
        return self

    def set(self) -> None:
        """Does nothing: the request runs on, and its reply is dropped."""

    def run(self, done: Any = None) -> None:
        """Runs until the coroutine waits for a future, or returns."""
        try:
            future = self._work.send(None)
        except StopIteration as end:
            reply = end.value
        except Exception:
            _log.exception("a request failed")
            reply = _failed()
        else:
            if future is None:  # another turn of the event loop
                asyncio.get_running_loop().call_soon(self.run)
                return
            future._asyncio_future_blocking = False  # as a task does
            future.add_done_callback(self.run)
            return
        self.response_complete = True
        self._send(reply, self.keep_alive)


def _failed() -> Reply:
    return Reply(b"{}", "application/json", status=500)


class _Replies:
    """Replies that need no task; uvicorn's protocol has the rest of a connection."""

    # uvicorn's attributes; `cycle` is an `_Answer` or uvicorn's, of the last request.
    cycle: Any
    client: Any
    flow: Any
    loop: Any
    pipeline: Any
    scope: Any
    server_state: Any
    timeout_keep_alive: float
    timeout_keep_alive_task: Any
    transport: Any
    on_response_complete: Callable[[], None]
    timeout_keep_alive_handler: Callable[[], None]

    #: Data that arrived and has not been read, and whether no more is to arrive.
    held = b""
    _stopped = False
    # All connections of a server share these.
    heads: _Heads
    defaults: _DefaultHeaders

    #: Whether the parser is at the beginning of a request.
    _between = True
    #: What answered the last request of a chunk, and the bytes of its body.
    _learnt: tuple[Prepared, int] | None = None
    #: When the last reply was sent, by the loop's clock.
    _replied = 0.0

    def hold(self, data: bytes) -> None:
        """Keeps data that is not to be read yet."""
        self.held += data
        if len(self.held) > _HELD and not self._stopped:
            self._stopped = True
            self.transport.pause_reading()

    def release(self) -> None:
        """Lets more data arrive."""
        if self._stopped:
            self._stopped = False
            if not self.flow.read_paused:
                self.transport.resume_reading()

    def answer_known(self, data: bytes, waited: float, patient: bool) -> bool | Later:
        """Answers a request with a known head; False: it must be parsed."""
        if not self._between or not self._is_free():
            return False
        found = self.heads.find(data)
        if found is None:
            return False
        return self._answer(*found, waited, patient and len(data) <= _HELD)

    def _is_free(self) -> bool:
        """Whether no other reply is to be sent before that of the next request."""
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not self.pipeline
            and not self.flow.write_paused
        )

    def _answer_parsed(self, prepare: Prepare, body: bytes) -> bool:
        """Answers a request without the application; returns whether it does."""
        try:
            prepared = prepare(self.scope)
        except Exception:
            _log.exception("a request failed")
            self._send(_failed(), True)
            return True
        waited = self.scope.get("fxflow.waited", 0.0)
        if prepared is None or not self._answer(prepared, body, waited):
            return False
        self._learnt = prepared, len(body)
        return True

    def _answer(
        self, prepared: Prepared, body: bytes, waited: float, patient: bool = False
    ) -> bool | Later:
        try:
            reply = prepared.answer(body, waited, self.client, patient=patient)
        except Exception:
            _log.exception("a request failed")
            reply = _failed()
        if reply is None:
            return False
        if isinstance(reply, Later):
            return reply
        if isinstance(reply, Reply):
            self._send(reply, True)
        else:
            self.cycle = _Answer(reply, self._send)
            self.cycle.run()
        return True

    def _send(self, reply: Reply, keep_alive: bool) -> None:
        if self.transport.is_closing():
            return
        lines = self.defaults.lines(self.server_state.default_headers)
        if not keep_alive:
            lines += b"connection: close\r\n"
        try:
            text = reply.to_bytes(lines)
        except Exception:
            _log.exception("a request failed")
            text = _failed().to_bytes(lines)
        self.transport.write(text)
        if not keep_alive:
            self.transport.close()
        self._replied = self.loop.time()
        if self.pipeline or self.flow.read_paused:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.timeout_keep_alive_task is None and keep_alive:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )


def _protocol(prepare: Prepare | None) -> Any:
    """Returns uvicorn's protocol class, with replies that need no task."""
    try:
        import httptools
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        raise ServeError(
            "serving needs uvicorn and httptools: pip install 'fxflow[serve]'"
        ) from None

    class Answering(_Replies, _Bodies, HttpToolsProtocol):
        heads, defaults, gathered = _Heads(), _DefaultHeaders(), _Gathered()

        def on_message_begin(self) -> None:
            self._between, self._learnt = False, None
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            if self._may_be_immediate():
                url = httptools.parse_url(self.url)
                path = url.path.decode("ascii")
                self.scope["method"] = "POST"
                self.scope["path"] = unquote(path) if "%" in path else path
                self.scope["query_string"] = url.query or b""
                self._parts, self._size = [], 0
            else:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self._parts is None:
                super().on_body(body)
            else:
                self._parts.append(body)
                self._size += len(body)

        def on_message_complete(self) -> None:
            parser = self.parser
            self._between = parser.should_keep_alive() and not parser.should_upgrade()
            parts = self._end_gathering()
            if parts is not None and prepare is not None:
                body = self.scope["fxflow.body"] = b"".join(parts)
                if self._answer_parsed(prepare, body):
                    return
                self._run(parts)
            super().on_message_complete()
            if self.cycle is not None:
                self.scope.setdefault("fxflow.body", self.cycle.body)

        def data_received(self, data: bytes) -> None:
            between = self._between
            super().data_received(data)
            if between and self._learnt is not None:
                self.heads.keep(data, *self._learnt)
            if self._parts is not None:
                self._gather()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_gathering()
            super().connection_lost(exc)

        def shutdown(self) -> None:
            self._leave_rest()
            super().shutdown()

        def timeout_keep_alive_handler(self) -> None:
            # Replies do not set the timer anew, which would take a microsecond.
            left = self._replied + self.timeout_keep_alive - self.loop.time()
            if self.held or not self._is_free():  # it is not idle
                left = self.timeout_keep_alive
            if left > 0:
                self.timeout_keep_alive_task = self.loop.call_later(
                    left, self.timeout_keep_alive_handler
                )
            else:
                super().timeout_keep_alive_handler()

        def _may_be_immediate(self) -> bool:
            """Whether a request may be answered without the application."""
            return (
                prepare is not None
                and self.parser.get_method() == b"POST"
                and self._is_free()
                and not self.root_path
                and self.parser.get_http_version() == "1.1"
                and self.parser.should_keep_alive()
                and not (self.parser.should_upgrade() or self.expect_100_continue)
            )

        def _run(self, parts: list[bytes]) -> None:
            """Lets the application answer the request; its body begins with `parts`."""
            super().on_headers_complete()
            if parts:
                super().on_body(b"".join(parts))

    return Answering


def bounded_protocol(
    head_bytes: int = 1 << 16,
    head_seconds: float = 10.0,
    intake: int = 16,
    prepare: Prepare | None = None,
) -> Any:
    """Returns a protocol class for uvicorn's ``http`` option.

    It adds keys to the scope of a request: ``fxflow.waited``, the seconds that it
    waited to be read, if any; ``fxflow.body``, the body, if it has arrived whole; and
    ``fxflow.corked``, a context manager that sends the parts of a reply together.

    Args:
      head_bytes: most bytes of the request line and the headers.
      head_seconds: seconds within which they must arrive, after the connection or the
        first byte.
      intake: chunks of data, of all connections, that are read in one iteration of the
        event loop.
      prepare: is called with the scope of a POST request that has arrived whole, with
        its body. Returns what answers it without a task, and later requests with the
        same head; None: the application answers it, as all other requests.

    Returns:
      The class.

    Raises:
      ServeError: uvicorn or httptools is not installed.
    """
    shared, base = _Intake(intake), _protocol(prepare)

    class Bounded(base):  # type: ignore[misc,valid-type]
        held: bytes
        _bytes = 0
        _waited = 0.0
        _is_head = True
        _others = False
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(CorkedTransport(transport))
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["fxflow.corked"] = self.transport
            self._stop()
            self._bytes, self._is_head = 0, True

        def on_headers_complete(self) -> None:
            if self._waited:
                self.scope["fxflow.waited"] = self._waited
            self._is_head = False
            self._stop()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            shared.enter(self, data)

        def take(
            self, data: bytes, waited: float = 0.0, patient: bool = True
        ) -> Later | None:
            self._waited = waited
            self.release()
            if answered := self.answer_known(data, waited, patient):
                self._is_head = False
                self._stop()
                return answered if isinstance(answered, Later) else None
            self._others = False
            super().data_received(data)
            if self._is_head:  # it is not complete, which is rare
                self._expect_head(data)
            return None

        def shutdown(self) -> None:
            if self.held:  # what has arrived is answered
                data, self.held = self.held, b""
                self.take(data, patient=False)
            super().shutdown()

        def _expect_head(self, data: bytes) -> None:
            if self._timer is None:
                self._wait()
            # Do not count data that also includes the end of another request.
            if not self._others:
                self._bytes += len(data)
                if self._bytes > head_bytes:
                    self._refuse(431, f"the head exceeds {head_bytes} bytes")

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
            self._refuse(408, f"the head did not arrive within {head_seconds:g} s")

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
