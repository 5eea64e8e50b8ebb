"""Messages over connected sockets that are sent without waiting.

A `Stream` is one end of a connection: any thread may send, and no send waits for the
other end to read. A `Receiver` reads all streams of a process in one thread. Between
processes of one machine, large arrays travel through `shared_memory`. On one machine a
small message takes about 30 µs from thread to thread; the loop of `zeromq`, which
reconnects and encrypts, takes ten times as long.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from fxflow.distributed.messages.channel import readable
from fxflow.distributed.messages.codec import (
    LIMITS,
    Incoming,
    Limits,
    Message,
    decode,
    encode,
)
from fxflow.distributed.messages.shared_memory import (
    LEAST,
    SharedMemory,
    available,
    read_hello,
)
from fxflow.distributed.processes import require_posix
from fxflow.errors import MessageError

#: Bytes that are read at once; what an array lacks beyond that is read into its memory.
_PIECE = 1 << 16
#: The most parts that the kernel takes at once (IOV_MAX), with a margin.
_PARTS = 512
#: The most pieces that are read of one stream before the others have their turn.
_TURNS = 64
#: Seconds between two inspections of the memory that is shared with peers.
_SWEEP = 1.0


class Stream:
    """One end of a connection.

    Args:
      connection: a connected socket, which `close` closes.
      limits: the largest message that is sent or received.
      blocks: the most blocks of shared memory for large messages to the other end, if
        that is a process of this machine; 0: all arrays travel through the socket.

    Attributes:
      socket: the connection.
      sent: the number of messages that were sent.
      shared: the number of those whose arrays were in shared memory.
    """

    sent: int
    shared: int

    def __init__(
        self, connection: socket.socket, *, limits: Limits = LIMITS, blocks: int = 0
    ) -> None:
        self.socket = connection
        self.sent = self.shared = 0
        self._limits = limits
        self._lock = threading.Lock()
        self._outbox: deque[Any] = deque()
        self._sending = self._closed = False
        self._incoming = Incoming(limits)
        self._piece = memoryview(bytearray(_PIECE))
        self._pending: deque[Message] = deque()
        self._memory: SharedMemory | None = None
        self._memory_lock = threading.Lock()
        if blocks and available():
            with contextlib.suppress(OSError):
                self._memory = SharedMemory(blocks)
                hello = np.frombuffer(self._memory.hello(), np.uint8)
                self._send(encode(Message("memory", arrays={"hello": hello})), False)

    @property
    def shares_memory(self) -> bool:
        """Whether large arrays that this end sends travel through shared memory."""
        return self._memory is not None and self._memory.ready

    @property
    def closed(self) -> bool:
        """Whether the connection was closed by this end, or broke while sending."""
        return self._closed

    def fileno(self) -> int:
        """Returns the socket's file descriptor."""
        return self.socket.fileno()

    # -- sending -----------------------------------------------------------------------

    def post(self, message: Message, *, waits: bool = False) -> None:
        """Sends a message; it is dropped if the connection is closed.

        Args:
          message: the message. Its large arrays must not change until they are sent.
          waits: whether this thread may wait for the other end to read, which spares
            another thread.

        Raises:
          MessageError: the message cannot be encoded, or is too large.
        """
        parts = self._through_memory(message)
        if parts is None:
            parts = encode(message, limits=self._limits)
        self._send(parts, waits)

    def post_frames(self, frames: list[bytes | memoryview]) -> None:
        """Sends a small message that is encoded already; see `codec.Template`."""
        self._send(frames, False)

    def _through_memory(self, message: Message) -> list[bytes | memoryview] | None:
        """Returns the parts of a message that says where the arrays are."""
        memory = self._memory
        if memory is None or not memory.ready:
            return None
        size = sum(array.nbytes for array in message.arrays.values())
        if size < LEAST:
            return None
        whole = encode(message, limits=self._limits, chunk=size)
        with self._memory_lock:
            placed = None if self._closed else memory.place(whole[1:])
        if placed is None:
            return None
        self.shared += 1
        arrays = {
            "places": np.frombuffer(placed[1], np.uint8),
            "message": np.frombuffer(whole[0], np.uint8),
        }
        return encode(Message("placed", arrays=arrays))

    def _send(self, parts: list[bytes | memoryview], waits: bool) -> None:
        with self._lock:
            if self._closed:
                return
            self.sent += 1
            self._outbox.extend(parts)
            if self._sending:
                return
            self._sending = True
        self._drain(waits)

    def _drain(self, waits: bool) -> None:
        """Sends what waits; only one thread does at any time."""
        require_posix("messages between processes")
        outbox = self._outbox
        while True:
            with self._lock:
                if not outbox or self._closed:
                    outbox.clear()
                    self._sending = False
                    return
                parts = list(islice(outbox, _PARTS))
            try:
                sent = self.socket.sendmsg(parts, (), socket.MSG_DONTWAIT)
            except BlockingIOError:
                if not waits:
                    threading.Thread(
                        target=self._drain,
                        args=(True,),
                        name="fxflow-send",
                        daemon=True,
                    ).start()
                    return
                self._wait_writable()
                continue
            except OSError:
                self.end()
                continue
            for part in parts:
                if sent < len(part):
                    if sent:
                        outbox[0] = memoryview(part)[sent:]
                    break
                sent -= len(part)
                outbox.popleft()

    def _wait_writable(self) -> None:
        require_posix("messages between processes")
        with contextlib.suppress(OSError, ValueError):
            poll = select.poll()
            poll.register(self.socket, select.POLLOUT)
            poll.poll(1000)

    # -- receiving ---------------------------------------------------------------------

    def read(self) -> Iterator[Message]:
        """Yields the messages that have arrived; never waits.

        Raises:
          EOFError: the connection is closed.
          MessageError: the other end sent something else than messages.
        """
        while self._pending:
            yield self._pending.popleft()
        yield from self._arrived()

    def _arrived(self) -> Iterator[Message]:
        require_posix("messages between processes")
        for _ in range(_TURNS):
            incoming = self._incoming
            direct = not incoming.idle and len(incoming.missing) > _PIECE
            piece = incoming.missing if direct else self._piece
            try:
                count = self.socket.recv_into(piece, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                raise EOFError(str(error)) from None
            if not count:
                raise EOFError("the connection was closed")
            if direct:
                message = incoming.advance(count)
                yield from self._received([] if message is None else [message])
            else:
                yield from self._received(incoming.feed(piece[:count]))
                if count < _PIECE:
                    return

    def receive(self, seconds: float) -> Message:
        """Waits for the next message; for a thread that alone reads this stream.

        Raises:
          EOFError: the connection is closed, or no message came in time.
          MessageError: the other end sent something else than messages.
        """
        end = time.monotonic() + seconds
        while not self._pending:
            for message in self._arrived():
                self._pending.append(message)
            left = end - time.monotonic()
            if not self._pending and (left <= 0 or not readable(self.socket, left)):
                raise EOFError(f"no answer within {seconds:g} s")
        return self._pending.popleft()

    def _received(self, messages: Any) -> Iterator[Message]:
        for message in messages:
            if message.kind == "memory":
                self._meet(message)
            elif message.kind == "placed":
                yield self._found(message)
            else:
                yield message

    def _meet(self, message: Message) -> None:
        memory = self._memory
        frame = bytes(message.arrays.get("hello", np.empty(0, np.uint8)).data)
        hello = read_hello(frame)
        if memory is not None and memory.is_from_peer(hello):
            answer = memory.meet(hello)
            if answer is not None:
                arrays = {"hello": np.frombuffer(answer, np.uint8)}
                self._send(encode(Message("memory", arrays=arrays)), False)

    def _found(self, message: Message) -> Message:
        arrays = message.arrays
        if self._memory is None or arrays.keys() != {"places", "message"}:
            raise MessageError("memory", "the peer has not shared memory")
        with self._memory_lock:
            pieces = self._memory.find(arrays["places"].tobytes())
        frames: list[Any] = [arrays["message"].tobytes()]
        frames += [piece.data for piece in pieces]
        return decode(frames, limits=self._limits)

    # -- life --------------------------------------------------------------------------

    def sweep(self) -> None:
        """Frees shared memory that has not been used for a while."""
        if self._memory is not None:
            with self._memory_lock:
                if not self._closed:
                    self._memory.sweep()

    def end(self) -> None:
        """Ends the connection; what waits is dropped, and a reader wakes up."""
        with self._memory_lock:
            if not self._closed and self._memory is not None:
                self._memory.close()
            self._closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def flush(self, seconds: float) -> None:
        """Waits until everything is sent, for at most some seconds."""
        end = time.monotonic() + seconds
        while self._sending and not self._closed and time.monotonic() < end:
            time.sleep(1e-3)

    def close(self) -> None:
        """Closes the connection; for the thread that reads it."""
        self.end()
        self.socket.close()


class Receiver:
    """Reads all streams of a process, in the thread that calls `run`.

    Args:
      on_message: called with a stream and a message from it.
      on_end: called with a stream that has ended, which is closed afterwards, and why.
      on_tick: called every `tick` seconds.
      tick: seconds.
    """

    def __init__(
        self,
        on_message: Callable[[Stream, Message], None],
        on_end: Callable[[Stream, str], None],
        on_tick: Callable[[], None] = lambda: None,
        tick: float = 0.1,
    ) -> None:
        self._on_message, self._on_end, self._on_tick = on_message, on_end, on_tick
        self._tick = tick
        self._streams: dict[int, Stream] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._stopped = False
        self._poll = self._new_poll()

    def _new_poll(self) -> Any:
        require_posix("messages between processes")
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        return poll

    def add(self, stream: Stream) -> None:
        """Reads a stream from now; any thread may call it."""

        def begin() -> None:
            require_posix("messages between processes")
            self._streams[stream.fileno()] = stream
            self._poll.register(stream, select.POLLIN)
            self._read(stream)

        self.call(begin)

    def remove(self, stream: Stream) -> None:
        """Closes a stream; only in the receiver's thread."""
        number = stream.fileno()
        if self._streams.get(number) is stream:
            del self._streams[number]
            self._poll.unregister(number)
        stream.close()

    def call(self, function: Callable[[], None]) -> None:
        """Calls a function in the receiver's thread; any thread may call it."""
        self._calls.append(function)
        with contextlib.suppress(OSError):  # full, so already woken; or closed
            self._wake.send(b"\0")

    def stop(self) -> None:
        """Makes `run` return; any thread may call it."""

        def end() -> None:
            self._stopped = True

        self.call(end)

    def run(self) -> None:
        """Reads until `stop` is called, then closes all streams."""
        swept = ticked = time.monotonic()
        streams, woken = self._streams, self._woken.fileno()
        timeout = int(self._tick * 1000)
        try:
            while not self._stopped:
                for number, _ in self._poll.poll(timeout):
                    if number == woken:
                        with contextlib.suppress(BlockingIOError):
                            self._woken.recv(1 << 12)
                        while self._calls:
                            self._calls.popleft()()
                    elif (stream := streams.get(number)) is not None:
                        self._read(stream)
                now = time.monotonic()
                if now >= ticked + self._tick:
                    ticked = now
                    self._on_tick()
                if now >= swept + _SWEEP:
                    swept = now
                    for stream in list(streams.values()):
                        stream.sweep()
        finally:
            for stream in list(streams.values()):
                self.remove(stream)
            self._woken.close()
            self._wake.close()

    def _read(self, stream: Stream) -> None:
        try:
            for message in stream.read():
                self._on_message(stream, message)
                if stream.closed:
                    raise EOFError("the connection was closed")
        except (EOFError, MessageError) as error:
            if self._streams.get(stream.fileno()) is stream:
                self._on_end(stream, str(error))
                self.remove(stream)
