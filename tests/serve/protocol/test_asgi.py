"""Plain ASGI requests and replies behave like those of a framework."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fxflow.serve.protocol.asgi import (
    HttpRequest,
    RepeatedReply,
    Reply,
    Within,
    prediction_route,
)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/predict/", "/predict/a/b", "/predict", "/v2/models//infer"),
        *("/v2/models/infer", "/v2/models/m/versions/infer", "/v2/models/m/infer/"),
        *("/v2/models/m/versions//infer", "/v2/models/m/other/1/infer"),
    ],
)
def test_other_paths_are_not_predictions(path: str) -> None:
    assert prediction_route(path) is None


async def never(*messages: Any) -> Any:
    raise AssertionError


def exchange() -> HttpRequest:
    scope = {
        "method": "POST",
        "path": "/",
        "query_string": b"id=a%20b&context=%C3%A9&id=c",
        "headers": [(b"accept", b"first"), (b"accept", b"second"), (b"x-a", b"\xe9")],
    }
    return HttpRequest(scope, never, never, {})


def test_requests() -> None:
    assert exchange().headers == {"accept": "first", "x-a": "é"}


def test_answers() -> None:
    sent = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    reply = Reply(b"{}", "application/json", {"X-One": "1"})
    reply.headers["X-Two"] = "2"
    asyncio.run(reply({}, None, send))
    assert sent[0]["status"] == reply.status == 200
    assert dict(sent[0]["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": b"2",
        b"x-one": b"1",
        b"x-two": b"2",
    }
    assert sent[1] == {"type": "http.response.body", "body": b"{}"}


def test_query_parameters_are_read() -> None:
    assert exchange().query_params == {"id": "c", "context": "é"}


def test_within_raises_after_its_seconds() -> None:
    async def body() -> None:
        with Within(5.0):
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError), Within(0.01):
            await asyncio.sleep(5)
        with pytest.raises(KeyError), Within(5.0):
            raise KeyError
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def cancelled() -> None:
        with Within(5.0):
            await asyncio.sleep(5)

    asyncio.run(body())


def test_replies_that_are_repeated_differ_in_the_id() -> None:
    reply = RepeatedReply(Reply(b"no", "text/plain", {"Retry-After": "1"}, 503))
    for id in ("a", "b"):
        reply.id = id
        text = reply.to_bytes(b"date: x\r\n")
        head, _, rest = text.partition(b"date: x\r\n")
        assert head == b"HTTP/1.1 503 Service Unavailable\r\n"
        lines = {b"retry-after: 1", b"content-length: 2", b"content-type: text/plain"}
        lines |= {b"x-request-id: " + id.encode(), b"", b"no"}
        assert lines == set(rest.split(b"\r\n")) and len(rest.split(b"\r\n")) == 6
