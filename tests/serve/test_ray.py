"""Models on Ray Serve: failures in the ingress, and a local cluster."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.config import ServerConfig, server_config
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.ray import _Remote, build, run_on_ray
from fxflow.serve.service import ModelConfig, Prediction, PredictionRequest
from fxflow.serve.signatures import ModelSignature
from tests.processes import check_gone

ROOT = Path(__file__).parents[2]
MODEL = ModelConfig("m", ModelSource("a:b"), slo=0.1, deadline=0.2)


class Handle:
    """A deployment's handle whose replica returns a given reply."""

    def __init__(self, reply: Any) -> None:
        self._reply, self.cancelled = reply, False
        self.submit = self

    def remote(self, *arguments: Any) -> Any:
        self.arguments = arguments
        return self

    def __await__(self) -> Any:
        async def answer() -> Any:
            if isinstance(self._reply, BaseException):
                raise self._reply
            if self._reply is None:
                await asyncio.sleep(60)
            return self._reply

        return answer().__await__()

    def cancel(self) -> None:
        self.cancelled = True


def ask(handle: Handle, **options: Any) -> Prediction:
    x = np.ones((1, 2), np.float32)
    remote = _Remote(MODEL, handle)
    remote.signature = ModelSignature((), (), batched=True)
    return asyncio.run(remote.submit(PredictionRequest({"x": x}, 1, **options)))


def test_replies_and_errors_of_replicas_are_returned() -> None:
    answer = ask(Handle(({"y": np.ones(1)}, 0.1, 0.2, 3)), priority=2, timeout=0.1)
    assert (answer.queued, answer.ran, answer.rows) == (0.1, 0.2, 3)
    with pytest.raises(ServeError, match="it would be late") as caught:
        ask(Handle(("it would be late", 503, 2.0)))
    assert (caught.value.status, caught.value.retry_after) == (503, 2.0)
    with pytest.raises(ServeError, match="did not answer: the actor died") as caught:
        ask(Handle(RuntimeError("Traceback…\nthe actor died")))
    assert caught.value.status == 503


def test_requests_to_a_lost_replica_time_out() -> None:
    handle, begun = Handle(None), time.monotonic()
    with pytest.raises(ServeError, match="no replica answered by the deadline"):
        ask(handle)
    assert handle.cancelled and time.monotonic() - begun < 5


class Stream:
    """A replica's stream of results as from Ray; the last may never arrive."""

    def __init__(self, *replies: Any) -> None:
        self._replies, self.cancelled = iter(replies), False
        self.stream = self

    def options(self, *, stream: bool) -> Any:
        assert stream
        return self

    def remote(self, *arguments: Any) -> Any:
        return self

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        reply = next(self._replies, StopAsyncIteration())
        if isinstance(reply, BaseException):
            raise reply
        if reply is None:
            await asyncio.sleep(60)
        return reply

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (None, "no replica answered by the deadline"),
        (("the model failed: it is bad", 500, 0.0), "it is bad"),
        (RuntimeError("Traceback…\nthe actor died"), "did not answer: the actor died"),
    ],
    ids=["late", "failed", "died"],
)
def test_streams_of_replicas(last: Any, words: str) -> None:
    parts = [({"y": np.full(1, k)}, 0.1, 0.2, 1) for k in range(2)]

    async def read() -> None:
        whole = _Remote(MODEL, Stream(*parts)).stream(PredictionRequest({}, 1))
        assert [answer.outputs["y"] async for answer in whole] == [0, 1]
        handle = Stream(*parts, last)
        results = _Remote(MODEL, handle).stream(PredictionRequest({}, 1))
        for part in parts:
            assert (await anext(results)).outputs == part[0]
        assert not handle.cancelled
        with pytest.raises(ServeError, match=words):
            await anext(results)
        assert handle.cancelled

    asyncio.run(read())


def test_a_generator_has_no_single_answer() -> None:
    remote = _Remote(MODEL, None)
    remote.signature = ModelSignature((), (), batched=True, streamed=True)
    with pytest.raises(ServeError, match="generate_stream") as caught:
        asyncio.run(remote.submit(PredictionRequest({}, 1)))
    assert caught.value.status == 400


def test_options_that_ray_does_not_take_are_refused() -> None:
    with pytest.raises(ServeError, match=r"give only config=serving\.toml"):
        build({"file": "x"})
    for options in ({"grpc_port": 0}, {"control": True}, {"tls_cert": "c"}):
        config = ServerConfig((MODEL,), **options)  # type: ignore[arg-type]
        with pytest.raises(ServeError, match="on Ray, fxflow serves plain HTTP only"):
            run_on_ray(config, "local", lambda: None)
    found = server_config(
        {"models": {"m": {"source": "a:b", "ray": {"max_ongoing_requests": 5}}}}
    )
    assert found.models[0].ray == {"max_ongoing_requests": 5}


# -- a local cluster -------------------------------------------------------------------

CONFIG = """
slo = "200ms"
deadline = "10s"
[models.linear]
source = "tests.serve.zoo:doubling"
max_batch = 8
replicas = 2
ray = {ray_actor_options = {num_cpus = 0.1}}
[models.act]
source = "tests.serve.zoo:act"
inputs = {x = "f32[b,2]"}
ray = {ray_actor_options = {num_cpus = 0.1}}
[models.count]
source = "tests.serve.zoo:counter"
factory = true
arguments = {asynchronous = true}
ray = {ray_actor_options = {num_cpus = 0.1}}
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Starts `fxflow serve`, waits until it serves, and collects its log."""
    with tempfile.TemporaryDirectory(prefix="r-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "serving.toml"
        path.write_text(CONFIG)
        process = subprocess.Popen(
            [sys.executable, "-m", "fxflow", "serve", str(path), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HOME": folder,  # where Ray keeps a token
                "RAY_TMPDIR": folder,
                "RAY_USAGE_STATS_ENABLED": "0",
            },
        )
        lines: list[str] = []
        assert process.stdout is not None
        reading = threading.Thread(target=lines.extend, args=(process.stdout,))
        reading.start()
        try:
            end = time.monotonic() + 300
            while not re.search("on Ray at", "".join(lines)):
                assert process.poll() is None and time.monotonic() < end, lines
                time.sleep(0.1)
            yield process, lines
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # Ray's own processes also write there while they run.
            reading.join(180)
            assert not reading.is_alive(), lines
            process.stdout.close()
            check_gone(folder)


def predict(port: int, model: str, value: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    with contextlib.closing(connection):
        connection.request("POST", f"/predict/{model}", json.dumps(value))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


@contextlib.contextmanager
def counted(port: int, most: int, pause: float) -> Iterator[Iterator[Any]]:
    """Yields the events of a stream; its client disconnects at the end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    with contextlib.closing(connection):
        value = json.dumps([[most, 0, pause, 10]])
        connection.request("POST", "/predict/count", value)
        reply = connection.getresponse()
        assert reply.status == 200 and "queue;dur=" in reply.headers["Server-Timing"]
        lines = (line for line in reply if line != b"\n")
        yield (json.loads(line.removeprefix(b"data: ")) for line in lines)


@pytest.mark.slow
def test_a_local_cluster() -> None:
    """An unchanged configuration file: answers, refusals, a crash, the end."""
    pytest.importorskip("ray.serve", reason="pip install 'fxflow[ray]'")
    pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
    port = free_port()
    with served("--ray", "local", "--port", str(port)) as (process, _):
        found: list[Any] = []
        threads = [
            threading.Thread(
                target=lambda k=k: found.append((k, predict(port, "linear", [[k] * 3])))
            )
            for k in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [(k, (200, {"y": [[2 * k] * 3]})) for k in range(16)]

        status, words = predict(port, "linear", [[1, 2]])
        assert status == 400 and "must have shape [batch,3]" in words["error"]
        assert predict(port, "none", [[1]])[0] == 404
        status, words = predict(port, "act", [[1, 0]])
        assert status == 500 and "one is not liked" in words["error"]
        # A generator's results are streamed; a disconnected client ends it.
        with counted(port, 3, 0.3) as events:
            times = [(event["y"], time.monotonic()) for event in events]
        assert [y for y, _ in times] == [[[10]], [[11]], [[12]]]
        assert times[2][1] - times[0][1] > 0.4
        with counted(port, 1_000_000, 0.01) as events:
            before = next(events)["closed"][0]
        with counted(port, 1, 0) as events:  # once there is room again
            assert next(events)["closed"][0] == before + 1
        # The model's process exits: its request fails, and it restarts.
        status, words = predict(port, "act", [[2, 0]])
        assert status == 500 and "signal 9" in words["error"]
        assert predict(port, "linear", [[1, 1, 1]])[0] == 200
        end = time.monotonic() + 180
        while (again := predict(port, "act", [[10, 0]]))[0] != 200:
            assert again[0] == 503 and time.monotonic() < end
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(180) == 0
