"""A server of both protocols in a thread of the test."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.front import Front
from fxflow.serve.protocol.http import application
from fxflow.serve.protocol.rpc import start_grpc
from fxflow.serve.repository import Repository
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig

ZOO = "tests.serve.zoo"
MODELS = [
    ModelConfig(
        *("linear", ModelSource(f"{ZOO}:doubling", max_batch=4)),
        slo=2.0,
        delay=0.001,
        cache=10_000,
    ),
    ModelConfig(
        *("shouting", ModelSource(f"{ZOO}:shouting", inputs={"text": "bytes[b]"})),
        slo=2.0,
    ),
]


@contextlib.contextmanager
def both_protocols() -> Iterator[dict[str, int]]:
    """Runs the server; yields the port of each protocol."""
    import uvicorn

    found: dict[str, int] = {}
    up = threading.Event()
    stop: list[Any] = []

    async def main() -> None:
        ending = asyncio.Event()
        stop.append((asyncio.get_running_loop(), ending))
        repository, metrics = Repository(MODELS), Metrics()
        repository.meter = metrics
        group = SelectorConfig("mixed", ("linear", "absent"), slo=5.0)
        faults = await repository.configure(MODELS, [group])
        assert not faults, faults
        front = Front(repository, metrics)
        rpc, found["grpc"] = await start_grpc(front, "127.0.0.1:0")
        config = uvicorn.Config(
            application(front), port=0, log_config=None, lifespan="off"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        found["http"] = server.servers[0].sockets[0].getsockname()[1]
        up.set()
        await ending.wait()
        server.should_exit = True
        await serving
        await rpc.stop(1)
        await repository.drain()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert up.wait(90)
    yield found
    loop, ending = stop[0]
    loop.call_soon_threadsafe(ending.set)
    thread.join()
