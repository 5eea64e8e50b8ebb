"""Results of one request that come one after the other, in control messages.

Each open stream has a region of its own. The process writes a result there when the
server has taken the one before, and computes one more meanwhile; so a client that reads
slowly holds up its own stream, and memory is bounded whatever the stream's length is.
Between steps of one stream the process does those of others.
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
      number: of the stream.
      slot: the region's number.
      region: where results are.
      signature: of the model.
      send: sends a message to the process.

    Attributes:
      number, slot: as given.
      over: set when the process has ended it, and needs its region no more.
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

    def tell(self, message: Message) -> None:
        """Takes a message of the process in.

        Args:
          message: ``result`` with its places, ``error`` with words, or ``end``.
        """
        self._messages.put_nowait(message)
        if "result" not in message:
            self.over.set()

    def lost(self, why: str) -> None:
        """Gives up what the process has said: it ended, and its region with it.

        Args:
          why: in words.
        """
        while not self._messages.empty():
            self._messages.get_nowait()
        self.tell({"error": why})

    async def next(self, timeout: float) -> list[np.ndarray[Any, Any]] | None:
        """Returns the next result.

        Args:
          timeout: seconds that it may take.

        Returns:
          The outputs; None: there are no more.

        Raises:
          TimeoutError: it takes longer.
          ServeError: status 500; the model raised or its process ended.
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
        """Asks the process to end it, which `over` tells."""
        if not self.over.is_set():
            self._send({"stream": self.number, "stop": True})


class Streams:
    """The process's end of all streams, in its event loop.

    Args:
      model: whose function is a generator.
      regions: of each slot.
      send: sends a message to the server.
    """

    def __init__(
        self, model: Model, regions: Sequence[Region], send: Callable[[Message], None]
    ) -> None:
        self._model, self._regions, self._send = model, regions, send
        self._open: dict[int, tuple[asyncio.Task[Message], asyncio.Semaphore]] = {}

    def tell(self, message: Message) -> None:
        """Takes a message of the server in.

        Args:
          message: ``tensors`` begins a stream, ``more`` says that a result was taken,
            ``stop`` ends it.
        """
        number = message["stream"]
        if "tensors" in message:
            room = asyncio.Semaphore(1)
            task = asyncio.get_running_loop().create_task(self._run(message, room))
            self._open[number] = task, room
            task.add_done_callback(lambda task: self._done(number, task))
        elif number in self._open:  # it may just have ended
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
            return {"stream": number, "error": words_of(error)}
        return {"stream": number, "end": True}

    def _done(self, number: int, task: asyncio.Task[Message]) -> None:
        # Called also for one that is stopped before its first step, which never runs.
        del self._open[number]
        ended = {"stream": number, "end": True}
        self._send(ended if task.cancelled() else task.result())


def words_of(error: BaseException) -> str:
    """Returns the text of a model's error for clients.

    Args:
      error: that it raised.

    Returns:
      Its class and message, shortened.
    """
    return f"{type(error).__name__}: {error}"[:2000]
