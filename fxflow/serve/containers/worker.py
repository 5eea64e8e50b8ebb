"""The process of one model: reads calls, runs them, writes the results.

    python -m fxflow.serve.containers.worker SOCKET REGION,... LIMIT

`Replica` starts it with inherited file descriptors: a region for the batch, or one for
each stream of results. The first message names what to load. The process exits when the
server does, even while the model runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import socket
import sys
import threading
import time
import traceback
from typing import Any

from fxflow.distributed.messages.channel import AsyncChannel, Channel
from fxflow.errors import ExportError, ServeError
from fxflow.serve.containers.models import Model, load_model
from fxflow.serve.containers.regions import (
    Region,
    aligned,
    read_inputs,
    write_outputs,
)
from fxflow.serve.containers.streams import Streams, words_of

#: Objects made, and not freed, between two collections of the youngest generation.
#: Python's 700 are those of a few tens of waiting requests, none of them garbage.
_BETWEEN = 10_000


def freeze_heap() -> None:
    """Collects garbage, and exempts all remaining objects from later collections.

    Python's collector walks through all objects again and again: tens of milliseconds
    for the modules of a server or a model, in the middle of a batch. Call this when a
    process has loaded what it serves, and again after it has loaded something else:
    what was replaced is collected then.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_BETWEEN, *gc.get_threshold()[1:])


def run_call(model: Model, region: Region, call: dict[str, Any]) -> dict[str, Any]:
    """Runs one batch, whose tensors lie in the region, and writes the results there.

    Args:
      model: what to run.
      region: the shared memory.
      call: ``rows``, and ``tensors`` as (datatype, shape, offset, bytes).

    Returns:
      The answer: where the results lie and how many seconds all this took.
    """
    start = time.perf_counter()
    inputs, free = read_inputs(region, call["tensors"])
    outputs = model.run(inputs, call["rows"])
    tensors = write_outputs(region, outputs, aligned(free))
    seconds = time.perf_counter() - start
    return {"done": call["call"], "tensors": tensors, "seconds": seconds}


def main(argv: list[str]) -> int:
    """Serves one model until the server exits.

    Args:
      argv: numbers of the socket and of the regions' files, and a region's limit.

    Returns:
      The exit status.
    """
    control = socket.socket(fileno=int(argv[0]))
    regions = [Region(int(fd), limit=int(argv[2])) for fd in argv[1].split(",")]
    # What a model prints goes to the log.
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()
    with contextlib.suppress(EOFError):
        return _serve(control, regions)
    return 0


def _serve(control: socket.socket, regions: list[Region]) -> int:
    channel = Channel(control)
    order, _ = channel.receive()
    with asyncio.Runner() as runner:
        try:
            most = order.pop("max_batch")
            model = load_model(**order)
            signature = model.prepare(most, runner.run)
        except Exception as error:
            # Our errors explain themselves; others need a traceback.
            if not isinstance(error, ServeError | ExportError):
                traceback.print_exc()
            channel.send({"failed": words_of(error)})
            return 1
        freeze_heap()
        channel.send({"ready": signature.to_json()})
        if signature.streamed:
            runner.run(_stream(model, regions, control))
            return 0
    while True:
        call, _ = channel.receive()
        try:
            answer = run_call(model, regions[0], call)
        except Exception as error:
            answer = {"error": call["call"], "message": words_of(error)}
        channel.send(answer)


async def _stream(model: Model, regions: list[Region], control: socket.socket) -> None:
    """Runs generators until the server exits."""
    connection = AsyncChannel(lambda message: streams.tell(message))
    streams = Streams(model, regions, connection.send)
    await connection.open(control)
    await connection.over


def _end_with(control: socket.socket) -> None:
    """Exits with the server, even while the model runs."""
    hangup = select.poll()
    hangup.register(control, 0)  # a hang-up is reported in any case
    hangup.poll()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
