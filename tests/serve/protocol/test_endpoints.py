"""Refusals and answers of predictions that need no task."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import re
import time
from dataclasses import dataclass
from typing import Any

import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.connections import Later
from fxflow.serve.protocol.front import ClientLimits, Front, RequestLimits
from fxflow.serve.protocol.http import application
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelConfig, ModelService
from fxflow.serve.signatures import ModelSignature, TensorSpec

pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")

KEY = "0123456789abcdef"
ZOO = "tests.serve.zoo"


@dataclass
class Sent:
    """What a server sent, and the requests that it counted by status."""

    status: int
    headers: dict[str, str]
    body: bytes
    counted: dict[str, int]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Busy(ModelService):
    """A model without a ready process, which refuses all requests."""

    signature = ModelSignature((TensorSpec.parse("x", "f32[b]"),), (), batched=True)
    ready = False


def refused(body: bytes, *headers: tuple[bytes, bytes], **options: Any) -> Sent:
    """Returns a busy server's reply to a request that arrived whole."""
    config = ModelConfig("m", ModelSource("none:none"))
    repository = Repository([config], metrics := Metrics())
    repository._services["m"] = busy = Busy(config)
    busy._refused_at = time.monotonic()
    told: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    async def receive() -> Any:
        raise AssertionError("the body is there")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v2/models/m/infer",
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "fxflow.body": bytearray(body),
    }
    front = Front(repository, metrics, **options)
    asyncio.run(application(front)(scope, receive, send))
    headers = {k.decode(): v.decode() for k, v in told[0]["headers"]}
    counted = metrics.histograms()["m"]["statuses"]
    return Sent(told[0]["status"], headers, told[1]["body"], counted)


@pytest.mark.parametrize("kind", ["quick", "logged", "keyed", "limited"])
def test_requests_are_refused_unread(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {}
    if kind == "keyed":
        options["keys"] = {"alice": KEY}
        assert refused(b"", **options).status == 401
        caplog.clear()
    if kind == "limited":
        options["limits"] = RequestLimits(clients=ClientLimits(rate=1, burst=1))
    level = "INFO" if kind == "logged" else "WARNING"
    with caplog.at_level(level, "fxflow.serve.requests"):
        reply = refused(
            b"no JSON",
            (b"x-request-id", b"mine"),
            (b"x-api-key", KEY.encode()),
            **options,
        )
        assert reply.status == 503 and reply.counted == {"503": 1}
        assert "no replica of the model is ready" in reply.json["error"]
        assert (reply.headers["retry-after"], reply.headers["x-request-id"]) == (
            "1",
            "mine",
        )
        assert len(caplog.records) == (kind == "logged")
        key = (b"x-api-key", KEY.encode())
        own = refused(b"", key, **options).headers["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{8}-\d", own)


def scope_of(body: bytes, path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "fxflow.body": body,
    }


def immediate(app: Any, path: str, body: bytes, *headers: tuple[bytes, bytes]) -> Any:
    """Returns the reply without a task; None: there is none; True: it waits."""
    prepared = app.prepare(scope_of(body, path, *headers))
    return result_of(prepared.answer(body, 0.0, ("c", 1)))


def result_of(reply: Any) -> Any:
    if not asyncio.iscoroutine(reply):
        return reply
    try:
        reply.send(None)
    except StopIteration as end:
        return end.value
    reply.close()
    return True


def test_replies_without_a_task() -> None:
    """Refusals, and the answers of models in the server's process."""
    config = ModelConfig("m", ModelSource("none:none"))
    inline = ModelConfig(
        "act", ModelSource(f"{ZOO}:act", inputs={"x": "f32[b,2]"}), inline=True
    )

    async def main() -> None:
        repository = Repository([config, inline], metrics := Metrics())
        repository._services["m"] = busy = Busy(config)
        await repository.load("act")
        app = application(Front(repository, metrics))
        quiet = logging.getLogger("fxflow.serve.requests")
        before, quiet.level = quiet.level, logging.WARNING
        try:
            path = "/v2/models/m/infer"
            assert immediate(app, path, b"{}").status == 400  # it is not busy
            busy._refused_at = time.monotonic()
            reply = immediate(app, path, b"{}")
            assert reply.status == 503 and reply.headers["Retry-After"] == "1"
            prepared = app.prepare(scope_of(b"{}", path))
            ask = functools.partial(prepared.answer, b"{}", client=("c", 1))
            assert ask(waited=0.0, patient=True).status == 503  # it is not ready
            busy.ready = True
            later = ask(waited=0.0, patient=True)
            assert later == Later(busy, 0.9 * busy.deadline)
            assert ask(waited=later.patience, patient=True).status == 503
            assert ask(waited=0.0).status == 503
            for other in ("/", "/v2/models/act", "/v2/models/act/generate_stream"):
                assert app.prepare(scope_of(b"", other)) is None
            ask = functools.partial(immediate, app, "/predict/act")
            reply = ask(b"[[0, 2]]")
            assert json.loads(reply.body) == {"output": [[0.0, 2.0]]}
            assert reply.status == 200 and "batch" in reply.headers["Server-Timing"]
            assert ask(b"[[0]]").status == 400
            assert ask(b"[[1, 0]]").status == 500
            counted = metrics.histograms()["act"]["statuses"]
            assert counted == {"200": 1, "400": 1, "500": 1}
            image = (b"content-type", b"image/png")
            assert immediate(app, "/predict/act", b"", image).status == 415
            app = application(Front(repository, metrics, keys={"alice": KEY}))
            ask = functools.partial(immediate, app, "/predict/act", b"[[0, 2]]")
            assert ask().status == ask(image).status == 401
            assert ask((b"x-api-key", KEY.encode())).status == 200
            # What is prepared for a head follows the repository.
            app = application(Front(repository, metrics))
            prepared = app.prepare(scope_of(b"", "/predict/act"))
            for _ in range(2):
                reply = result_of(prepared.answer(b"[[0, 2]]", 0.0, ("c", 1)))
                assert reply.status == 200
                await repository.load("act")
                await asyncio.gather(*repository._draining)
            await repository.unload("act")
            assert prepared.answer(b"[[0, 2]]", 0.0, ("c", 1)) is None
            app = application(Front(repository, metrics, keys={"alice": KEY}))
            # A refusal needs the client, so it is a task's.
            assert immediate(app, path, b"{}") is None
        finally:
            quiet.level = before
            await repository.drain()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["priority", "timeout"])
def test_bodies_that_may_be_urgent_are_read(name: str) -> None:
    reply = refused(b'{"inputs": [], "parameters": {"%b": 1}}' % name.encode())
    assert reply.status == 400 and "'x' is missing" in reply.json["error"]
