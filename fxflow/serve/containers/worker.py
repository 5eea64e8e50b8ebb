"""The process of one model: reads calls, runs them, writes the results.

    python -m fxflow.serve.containers.worker SOCKET REGION,... LIMIT

`Replica` starts it with inherited file descriptors: a region for the batch, or one for
each stream of results. The first message names the model to load. The process exits
when the server exits, even while the model runs.
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

from fxflow.devices.clients import run_in_callers
from fxflow.distributed.messages.channel import AsyncChannel, Channel
from fxflow.distributed.processes import require_posix
from fxflow.errors import ExportError, ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.regions import (
    Region,
    Streams,
    aligned,
    error_text,
    read_inputs,
    write_outputs,
)

#: Net allocations between two collections of the youngest generation. Python's default
#: of 700 is reached by a few dozen waiting requests, none of which is garbage.
_GC_THRESHOLD = 10_000


def freeze_heap() -> None:
    """Collects garbage, and exempts all remaining objects from later collections.

    A full collection traverses all objects, which takes tens of milliseconds for the
    modules of a server or a model, in the middle of a batch. Call this after loading,
    and again after reloading, to collect what was replaced.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])


def run_call(model: Model, region: Region, call: dict[str, Any]) -> dict[str, Any]:
    """Runs one batch from the region, and writes the results to the region.

    Args:
      model: the model to run.
      region: the shared memory.
      call: ``rows``, and ``tensors`` as (datatype, shape, offset, bytes).

    Returns:
      The reply: the places of the results, the seconds that the call took, and the age
      of the data that it used, if it changes.
    """
    start = time.perf_counter()
    inputs, free = read_inputs(region, call["tensors"])
    outputs = model.run(inputs, call["rows"])
    tensors = write_outputs(region, outputs, aligned(free))
    seconds = time.perf_counter() - start
    reply = {"done": call["call"], "tensors": tensors, "seconds": seconds}
    return reply if model.age is None else {**reply, "age": model.age}


def main(argv: list[str]) -> int:
    """Serves one model until the server exits.

    Args:
      argv: descriptors of the socket and the regions, and a region's limit in bytes.

    Returns:
      The exit status.
    """
    run_in_callers()  # this process waits for each result
    # A thread that reads rows must not delay a batch by Python's 5 ms.
    sys.setswitchinterval(1e-3)
    control = socket.socket(fileno=int(argv[0]))
    regions = [Region(int(fd), limit=int(argv[2])) for fd in argv[1].split(",")]
    # Send the model's prints to stderr, the log.
    os.dup2(2, 1)
    threading.Thread(target=_exit_with, args=(control,), daemon=True).start()
    with contextlib.suppress(EOFError):
        return _serve(control, regions)
    return 0


def _serve(control: socket.socket, regions: list[Region]) -> int:
    channel = Channel(control)
    load, _ = channel.receive()
    with asyncio.Runner() as runner:
        try:
            max_batch = load.pop("max_batch")
            model = load_model(**load)
            signature = model.prepare(max_batch, runner.run)
        except Exception as error:
            # Our errors explain themselves; others need a traceback.
            if not isinstance(error, ServeError | ExportError):
                traceback.print_exc()
            channel.send({"failed": error_text(error)})
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
            answer = {"error": call["call"], "message": error_text(error)}
            if isinstance(error, ServeError):
                answer["status"] = error.status
        channel.send(answer)


async def _stream(model: Model, regions: list[Region], control: socket.socket) -> None:
    """Runs generators until the server exits."""
    connection = AsyncChannel(lambda message: streams.on_message(message))
    streams = Streams(model, regions, connection.send)
    await connection.open(control)
    await connection.over


def _exit_with(control: socket.socket) -> None:
    """Exits when the server exits, even while the model runs."""
    require_posix("messages between processes")
    hangup = select.poll()
    hangup.register(control, 0)  # poll always reports hang-ups
    hangup.poll()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
