"""The process of one model: reads calls, runs them, writes what came out.

    python -m fxflow.serve.containers.worker SOCKET REGION LIMIT

`Replica` starts it, with the numbers of two inherited files. Its first message says
what to load. It ends when the server does, even while the model runs.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
import traceback
from typing import Any

import numpy as np

from fxflow.serve.containers.channel import pack, receive
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.regions import Region, aligned
from fxflow.serve.signatures import from_bytes, to_bytes


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
    free = max(offset + nbytes for _, _, offset, nbytes in call["tensors"])
    memory = region.view(free)
    inputs = [
        # A copy: a model may keep its inputs, and the memory is written again.
        from_bytes(memory[offset : offset + nbytes], datatype, tuple(shape)).copy()
        for datatype, shape, offset, nbytes in call["tensors"]
    ]
    outputs = model.run(inputs, call["rows"])
    # On the device the work is done when the arrays are here.
    data = [to_bytes(np.ascontiguousarray(value)) for value in outputs]
    tensors: list[list[Any]] = []
    at = aligned(free)
    for value, text in zip(outputs, data, strict=True):
        tensors.append([list(value.shape), at, len(text)])
        at = aligned(at + len(text))
    memory = region.view(at)
    for text, (_, offset, nbytes) in zip(data, tensors, strict=True):
        memory[offset : offset + nbytes] = text
    seconds = time.perf_counter() - start
    return {"done": call["call"], "tensors": tensors, "seconds": seconds}


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]


def main(argv: list[str]) -> int:
    """Serves one model until the server is gone.

    Args:
      argv: numbers of the socket and of the region's file, and the region's limit.

    Returns:
      The exit status.
    """
    control = socket.socket(fileno=int(argv[0]))
    region = Region(int(argv[1]), limit=int(argv[2]))
    # What a model prints is not an answer to anything.
    os.dup2(2, 1)
    order = receive(control)
    try:
        most = order.pop("max_batch")
        model = load_model(**order)
        signature = model.prepare(most)
    except Exception as error:
        traceback.print_exc()
        control.sendall(pack({"failed": _words(error)}))
        return 1
    control.sendall(pack({"ready": signature.to_json()}))
    calls: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                calls.put(receive(control))
        except (OSError, EOFError, ValueError):
            os._exit(0)  # nobody waits for what the model is doing

    threading.Thread(target=listen, daemon=True).start()
    while True:
        call = calls.get()
        try:
            answer = run_call(model, region, call)
        except Exception as error:
            answer = {"error": call["call"], "message": _words(error)}
        control.sendall(pack(answer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
