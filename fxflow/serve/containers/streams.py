"""Streams the results of one request from a model's process to the server.

Each open stream has its own shared memory region. The process writes a result there
when the server has read the previous one, and computes the next one in the meantime.
Backpressure thus applies per stream, and memory is bounded however long a stream is.
The process interleaves the steps of all open streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np

from fxflow.distributed.messages.channel import Message
from fxflow.errors import ServeError
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.regions import (
    Region,
    read_inputs,
    read_outputs,
    write_outputs,
)
from fxflow.serve.signatures import ModelSignature


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
