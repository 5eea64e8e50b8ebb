"""Requests and answers that no framework handles look as those of one do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fxflow.serve.protocol.exchange import Exchange, Reply, Within, prediction_route


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/predict/", "/predict/a/b", "/predict", "/v2/models//infer"),
        *("/v2/models/infer", "/v2/models/m/versions/infer", "/v2/models/m/infer/"),
        *("/v2/models/m/versions//infer", "/v2/models/m/other/1/infer"),
    ],
)
def test_other_routes(path: str) -> None:
    assert prediction_route(path) is None


async def never(*messages: Any) -> Any:
    raise AssertionError


def exchange() -> Exchange:
    scope = {
        "method": "POST",
        "path": "/",
        "query_string": b"id=a%20b&context=%C3%A9&id=c",
        "headers": [(b"accept", b"first"), (b"accept", b"second"), (b"x-a", b"\xe9")],
    }
    return Exchange(scope, never, never, {})


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


def test_what_follows_the_path() -> None:
    assert exchange().query_params == {"id": "c", "context": "é"}


def test_bounds() -> None:
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
