"""Shared memory that passes tensors between the server and a model's process.

A region is an anonymous file that the process inherits: its name cannot be guessed or
left behind, and the system frees it when both processes have exited. Either side grows
it as needed, up to a limit; the other side maps it again when it reads beyond its map.

A batch has one region. Each open stream of results has its own: the process writes a
result there when the server has read the previous one, and computes the next one in the
meantime. Backpressure thus applies per stream, and memory is bounded however long a
stream is. The process interleaves the steps of all open streams.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np

from fxflow.distributed.messages.channel import Message
from fxflow.errors import ServeError
from fxflow.serve.containers.models import Model
from fxflow.serve.signatures import ModelSignature, TensorSpec, from_bytes, to_bytes

#: Tensors start at multiples of a cache line.
ALIGNMENT = 64


def aligned(offset: int) -> int:
    """Rounds an offset up to a multiple of 64.

    Args:
      offset: the first free byte.

    Returns:
      The offset at which the next tensor starts.

    Example:
      >>> aligned(1), aligned(64)
      (64, 64)
    """
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Region:
    """A growable piece of shared memory.

    Args:
      fd: descriptor of an existing region; None: create one.
      limit: most bytes of the region.

    Attributes:
      fd: descriptor of the file.

    Raises:
      ServeError: `view` needs more than the limit.

    Example:
      >>> ours = Region(limit=1 << 20)
      >>> theirs = Region(os.dup(ours.fd), limit=1 << 20)
      >>> ours.view(4)[:] = b"abcd"
      >>> bytes(theirs.view(4)[:2])
      b'ab'
      >>> ours.close(), theirs.close()
      (None, None)
    """

    def __init__(self, fd: int | None = None, *, limit: int) -> None:
        if fd is None:
            if hasattr(os, "memfd_create"):
                fd = os.memfd_create("fxflow-serve")
            else:
                with tempfile.TemporaryFile() as file:
                    fd = os.dup(file.fileno())
        self.fd = fd
        self._limit = limit
        self._map: mmap.mmap | None = None

    def view(self, nbytes: int) -> memoryview:
        """Returns the first bytes of the region, which grows if it is smaller.

        Args:
          nbytes: number of bytes.

        Returns:
          A view of the shared memory.
        """
        if nbytes > self._limit:
            raise ServeError(
                f"a batch and its results need {nbytes} bytes, and the limit is "
                f"{self._limit}: set max_batch_bytes",
                413,
            )
        if self._map is None or len(self._map) < nbytes:
            size = os.fstat(self.fd).st_size
            if size < nbytes:
                size = min(self._limit, max(nbytes, 2 * size, 1 << 16))
                os.ftruncate(self.fd, size)
            # Views keep the old map alive; it is unmapped with the last one.
            self._map = mmap.mmap(self.fd, size)
        return memoryview(self._map)[:nbytes]

    def close(self) -> None:
        """Closes the file; views stay valid."""
        self._map = None
        os.close(self.fd)


# -- tensors in a region ---------------------------------------------------------------


def read_inputs(
    region: Region, tensors: Iterable[Sequence[Any]]
) -> tuple[list[np.ndarray[Any, Any]], int]:
    """Returns the inputs of a call.

    Args:
      region: the shared memory.
      tensors: datatype, shape, offset and number of bytes of each input.

    Returns:
      Arrays, and the offset after the last. The arrays are copies: a model may keep
      its inputs, and the memory is reused.
    """
    free, arrays = 0, []
    for datatype, shape, offset, nbytes in tensors:
        free = max(free, offset + nbytes)
        memory = region.view(offset + nbytes)[offset:]
        arrays.append(from_bytes(memory, datatype, tuple(shape)).copy())
    return arrays, free


def write_outputs(
    region: Region, outputs: Iterable[np.ndarray[Any, Any]], at: int
) -> list[list[Any]]:
    """Writes the outputs of a model.

    Args:
      region: the shared memory.
      outputs: arrays, in order.
      at: offset of the first output.

    Returns:
      The shape, offset and number of bytes of each output.
    """
    places: list[list[Any]] = []
    data = []
    for value in outputs:
        # Converting waits for computations on the device.
        data.append(to_bytes(np.ascontiguousarray(value)))
        places.append([list(value.shape), at, len(data[-1])])
        at = aligned(at + len(data[-1]))
    memory = region.view(max(at, 1))
    for text, (_, offset, nbytes) in zip(data, places, strict=True):
        memory[offset : offset + nbytes] = text
    return places


def read_outputs(
    region: Region, specs: Iterable[TensorSpec], places: Iterable[Sequence[Any]]
) -> list[np.ndarray[Any, Any]]:
    """Returns copies of the outputs that `write_outputs` wrote.

    Args:
      region: the shared memory.
      specs: specifications of the outputs, in order.
      places: the result of `write_outputs`.

    Returns:
      Arrays, in order.

    Raises:
      ValueError: the number of places differs from that of the outputs.
    """
    arrays = []
    for spec, (shape, offset, nbytes) in zip(specs, places, strict=True):
        memory = region.view(offset + nbytes)[offset:]
        arrays.append(from_bytes(memory, spec.datatype, tuple(shape)).copy())
    return arrays


# -- streams of results ----------------------------------------------------------------


class Stream:
    """The server's end of a stream.

    Args:
      number: number of the stream.
      slot: index of the region.
      region: the shared memory for results.
      signature: the model's signature.
      send: sends a message to the process.

    Attributes:
      number, slot: as given.
      over: set when the process has ended the stream and no longer uses the region.
    """

    def __init__(
        self,
        number: int,
        slot: int,
        region: Region,
        signature: ModelSignature,
        send: Callable[[Message], None],
    ) -> None:
        self.number: int = number
        self.slot: int = slot
        self.over: asyncio.Event = asyncio.Event()
        self._region, self._signature, self._send = region, signature, send
        self._messages: asyncio.Queue[Message] = asyncio.Queue()

    def on_message(self, message: Message) -> None:
        """Handles a message from the process.

        Args:
          message: ``result`` with its places, ``error`` with its text, or ``end``.
        """
        self._messages.put_nowait(message)
        if "result" not in message:
            self.over.set()

    def fail(self, why: str) -> None:
        """Discards unread results and fails the stream, after the process exited.

        Args:
          why: the reason.
        """
        while not self._messages.empty():
            self._messages.get_nowait()
        self.on_message({"error": why})

    async def next(self, timeout: float) -> list[np.ndarray[Any, Any]] | None:
        """Returns the next result.

        Args:
          timeout: seconds to wait.

        Returns:
          The outputs, or None after the last result.

        Raises:
          TimeoutError: there was no result in time.
          ServeError: status 500; the model raised or its process exited.
        """
        async with asyncio.timeout(timeout):
            message = await self._messages.get()
        if "error" in message:
            raise ServeError(f"the model failed: {message['error']}", 500)
        if "result" not in message:
            return None
        outputs = read_outputs(self._region, self._signature.outputs, message["result"])
        self._send({"stream": self.number, "more": True})
        return outputs

    def stop(self) -> None:
        """Requests the end of the stream, which sets `over`."""
        if not self.over.is_set():
            self._send({"stream": self.number, "stop": True})


class Streams:
    """The process's end of all streams, in its event loop.

    Args:
      model: a model whose function is a generator.
      regions: the region of each slot.
      send: sends a message to the server.
    """

    def __init__(
        self, model: Model, regions: Sequence[Region], send: Callable[[Message], None]
    ) -> None:
        self._model, self._regions, self._send = model, regions, send
        self._open: dict[int, tuple[asyncio.Task[Message], asyncio.Semaphore]] = {}

    def on_message(self, message: Message) -> None:
        """Handles a message from the server.

        Args:
          message: ``tensors`` starts a stream, ``more`` acknowledges a result, ``stop``
            ends the stream.
        """
        number = message["stream"]
        if "tensors" in message:
            room = asyncio.Semaphore(1)
            task = asyncio.get_running_loop().create_task(self._run(message, room))
            self._open[number] = task, room
            task.add_done_callback(lambda task: self._done(number, task))
        elif number in self._open:  # else it has just ended
            task, room = self._open[number]
            if "more" in message:
                room.release()
            else:
                task.cancel()

    async def _run(self, call: Message, room: asyncio.Semaphore) -> Message:
        number, region = call["stream"], self._regions[call["slot"]]
        try:
            inputs, _ = read_inputs(region, call["tensors"])
            results = self._model.stream(inputs, call["rows"])
            async with aclosing(results):
                async for outputs in results:
                    await room.acquire()
                    places = write_outputs(region, outputs, 0)
                    self._send({"stream": number, "result": places})
        except Exception as error:
            return {"stream": number, "error": error_text(error)}
        return {"stream": number, "end": True}

    def _done(self, number: int, task: asyncio.Task[Message]) -> None:
        # Also sends the end of a stream that was stopped before `_run` started.
        del self._open[number]
        ended = {"stream": number, "end": True}
        self._send(ended if task.cancelled() else task.result())


def error_text(error: BaseException) -> str:
    """Returns the text of a model's error for clients.

    Args:
      error: the error.

    Returns:
      Its class and message, truncated.
    """
    return f"{type(error).__name__}: {error}"[:2000]
