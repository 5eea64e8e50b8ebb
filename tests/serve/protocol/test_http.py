"""The protocol over HTTP: a real server, and clients of other projects."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.front import ClientLimits, Front, RequestLimits
from fxflow.serve.protocol.http import application
from fxflow.serve.repository import GroupConfig, Repository
from fxflow.serve.selection.policies import Thompson
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig
from fxflow.serve.telemetry import Tracing
from fxflow.serve.versions import RolloutPlan, VersionsConfig

from ..browser import Browser
from ..clients import triton
from .spans import SPANS, TRACER

pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")

KEY = "0123456789abcdef"
ZOO = "tests.serve.zoo"
MODELS = [
    ModelConfig("linear", ModelSource(f"{ZOO}:doubling", max_batch=8), slo=2.0),
    ModelConfig(
        "shouting", ModelSource(f"{ZOO}:shouting", inputs={"text": "bytes[b]"}), slo=2.0
    ),
    ModelConfig(
        "act", ModelSource(f"{ZOO}:act", inputs={"x": "f32[b,2]"}, max_batch=4), slo=2.0
    ),
    ModelConfig(
        "linear-2",
        ModelSource(
            f"{ZOO}:linear", factory=True, arguments={"scale": 4.0}, max_batch=8
        ),
        version="2",
        slo=2.0,
        cache=100_000,
    ),
]
PAIR = ("linear", "linear-2")
GROUPS: list[GroupConfig] = [
    SelectorConfig("mixed", PAIR, combine="mean", slo=5.0, loss="zero_one"),
    SelectorConfig("chosen", PAIR, policy=Thompson(), slo=5.0),
    VersionsConfig("next", *PAIR, RolloutPlan(shares=(0.0, 1.0))),
]


def waited(app: Any) -> Any:
    """The application, behind a wait whose seconds a header gives."""

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        for name, value in scope["headers"]:
            if name == b"x-waited":
                scope["fxflow.waited"] = float(value)
        await app(scope, receive, send)

    return behind


class Serving:
    """A server in a thread: one repository behind several fronts."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._up.wait(90)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        metrics = Metrics()
        repository = Repository(MODELS, metrics)
        faults = await repository.configure(MODELS, GROUPS)
        assert not faults, faults
        doors: dict[str, dict[str, Any]] = {
            "open": {"control": True, "static": str(Path(__file__).parent)},
            "keyed": {"keys": {"alice": KEY}},
            "narrow": {"limits": RequestLimits(max_body=2000, body_timeout=0.3)},
            "traced": {"tracing": Tracing(TRACER)},
            "slow": {"limits": RequestLimits(clients=ClientLimits(rate=0.5, burst=2))},
        }
        servers, tasks = [], []
        for options in doors.values():
            static = options.pop("static", None)
            front = Front(repository, metrics, **options)
            config = uvicorn.Config(
                waited(application(front, static)),
                port=0,
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
            )
            servers.append(uvicorn.Server(config))
            servers[-1].capture_signals = contextlib.nullcontext
            tasks.append(asyncio.create_task(servers[-1].serve()))
        for name, server in zip(doors, servers, strict=True):
            while not server.started:
                await asyncio.sleep(0.01)
            self.ports[name] = server.servers[0].sockets[0].getsockname()[1]
        self._up.set()
        await self._stop.wait()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)
        await repository.drain()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    server = Serving()
    yield server
    server.close()


class Reply:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    serving: Serving,
    method: str,
    path: str,
    body: Any = None,
    door: str = "open",
    **headers: str,
) -> Reply:
    connection = http.client.HTTPConnection(
        "127.0.0.1", serving.ports[door], timeout=30
    )
    try:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, names)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def infer(data: Any, shape: list[int] | None = None, **more: Any) -> dict[str, Any]:
    shape = shape or [1, 3]
    x = {"name": "x", "datatype": "FP32", "shape": shape, "data": data}
    return {"inputs": [x], **more}


def test_health_and_metadata(serving: Serving) -> None:
    assert ask(serving, "GET", "/v2/health/live").json == {"live": True}
    assert ask(serving, "GET", "/v2/health/ready").json == {"ready": True}
    assert "binary_tensor_data" in ask(serving, "GET", "/v2").json["extensions"]
    found = ask(serving, "GET", "/v2/models/linear").json
    assert found["versions"] == ["1"]
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert ask(serving, "GET", "/v2/models/linear/versions/1/ready").status == 200
    index = ask(serving, "POST", "/v2/repository/index", {}).json
    states = {m["name"]: m["state"] for m in index}
    assert states == {m.name: "READY" for m in (*MODELS, *GROUPS)}


def test_predictions(serving: Serving) -> None:
    reply = ask(serving, "POST", "/v2/models/linear/infer", infer([1, 2, 3], id="a"))
    assert reply.status == 200
    assert reply.json == {
        "model_name": "linear",
        "model_version": "1",
        "id": "a",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [2, 4, 6]}
        ],
    }
    assert "queue;dur=" in reply.headers["Server-Timing"]
    reply = ask(serving, "POST", "/predict/shouting", {"text": ["hé", "x"]})
    assert reply.json == {"loud": ["Hé", "X"], "length": [3, 1]}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/v3", None, 404, "no such route"),
        (
            "GET",
            "/v2/models/linear/infer",
            None,
            405,
            "method GET is not allowed",
        ),
        ("GET", "/v2/model/linear", None, 404, "no such route; GET / lists"),
        ("GET", "/v2/models/none", None, 404, "unknown model 'none'"),
        ("GET", "/v2/models/linear/versions/7", None, 404, "no version '7'"),
        ("POST", "/v2/models/linear/infer", b"{", 400, "not JSON"),
        ("POST", "/v2/models/linear/infer", infer([1, 2]), 400, "has 2 elements"),
        ("POST", "/v2/models/linear/infer", infer([0] * 27, [9, 3]), 413, "8 rows"),
        ("POST", "/predict/linear", [[1, 2]], 400, "must have shape [batch,3]"),
        ("POST", "/predict/act", [[1, 0]], 500, "one is not liked"),
        ("POST", "/v2/repository/models/none/load", {}, 404, "unknown model 'none'"),
        ("POST", "/v2/repository/index", b"{", 400, "not JSON"),
    ],
)
def test_invalid_requests_are_refused(
    serving: Serving, method: str, path: str, body: Any, status: int, words: str
) -> None:
    reply = ask(serving, method, path, body)
    assert reply.status == status and words in reply.json["error"]


def test_invalid_headers_are_refused(serving: Serving) -> None:
    path = "/v2/models/linear/infer"
    for value in ("-1", "x", "9" * 500, "²"):
        headers = {"Inference_Header_Content_Length": value}
        assert ask(serving, "POST", path, infer([1, 2, 3]), **headers).status == 400
    reply = ask(serving, "POST", path, b"abc", Content_Encoding="gzip")
    assert reply.status == 415
    for kind, status in (
        ("image/png", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/grpc", 415),
        ("Application/JSON; charset=utf-8", 200),
        ("application/cloudevents+json", 200),
        ("text/plain;charset=UTF-8", 200),  # a browser's, for any text
    ):
        reply = ask(serving, "POST", path, infer([1, 2, 3]), Content_Type=kind)
        assert reply.status == status, reply.body
        assert status == 200 or f"got '{kind}'" in reply.json["error"]


@pytest.mark.parametrize("model", ["linear", "next", "mixed"])
def test_the_deadline_includes_the_wait_before_reading(
    serving: Serving, model: str
) -> None:
    """The deadline counts from arrival: 10 s, or 25 s for the selector."""
    deadline = 25 if model == "mixed" else 10
    x = [[1.0, 2.0, 3.0]]
    for path, body in (
        (f"/v2/models/{model}/infer", infer(x)),
        (f"/predict/{model}", {"x": x}),
    ):
        late = ask(serving, "POST", path, body, x_waited=str(deadline + 0.5))
        assert late.status == 503 and int(late.headers["Retry-After"]) >= deadline
        words = f"it waited {deadline}.500 s until it was read"
        assert words in late.json["error"]
        soon = ask(serving, "POST", path, body, x_waited="0.5")
        assert soon.status == 200
    # The remaining time is too short for any model.
    path = "/v2/models/linear/infer"
    nearly = ask(serving, "POST", path, infer(x), x_waited="9.999999999")
    assert nearly.status in (503, 504), nearly.body


def test_requests_need_a_key(serving: Serving) -> None:
    def status(path: str = "/v2/models/linear", **headers: str) -> int:
        return ask(serving, "GET", path, door="keyed", **headers).status

    assert status() == status(X_API_Key="wrong") == 401
    assert status(Authorization=f"Basic {KEY}") == status("/metrics") == 401
    assert status(Authorization=f"Bearer {KEY}") == status(X_API_Key=KEY) == 200
    assert status("/v2/health/live") == 200
    reply = ask(
        serving, "POST", "/v2/repository/models/act/unload", {}, "keyed", X_API_Key=KEY
    )
    assert reply.status == 403  # a key does not allow unloading models


def test_the_rate_of_a_client_is_limited(serving: Serving) -> None:
    replies = [ask(serving, "GET", "/v2", door="slow") for _ in range(3)]
    assert [r.status for r in replies] == [200, 200, 429]
    assert int(replies[2].headers["Retry-After"]) in (1, 2)


def test_large_or_slow_bodies_are_refused(serving: Serving) -> None:
    path = "/v2/models/linear/infer"
    assert ask(serving, "POST", path, b" " * 3000, "narrow").status == 413
    port = serving.ports["narrow"]
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n".encode()

    def raw(text: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(head + text)
            return connection.recv(4096)

    # It is refused for its declared length, before it sends the body.
    assert b" 413 " in raw(b"Content-Length: 99999999999\r\n\r\n")
    piece = b"3e8\r\n" + b" " * 1000 + b"\r\n"
    assert b" 413 " in raw(b"Transfer-Encoding: chunked\r\n\r\n" + piece * 4)
    start = time.monotonic()
    assert b" 408 " in raw(b"Content-Length: 100\r\n\r\n{")
    assert time.monotonic() - start < 5
    # A half-open connection does not delay others.
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head)
        assert ask(serving, "GET", "/v2/health/live", door="narrow").status == 200


def test_a_crash_costs_its_own_request(serving: Serving) -> None:
    reply = ask(serving, "POST", "/predict/act", [[2, 0]])
    assert reply.status == 500 and "signal 9" in reply.json["error"]
    assert ask(serving, "POST", "/predict/linear", [[1, 2, 3]]).status == 200
    end = time.monotonic() + 60
    while (again := ask(serving, "POST", "/predict/act", [[10, 0]])).status != 200:
        assert again.status == 503 and again.headers["Retry-After"] == "1"
        assert time.monotonic() < end
        time.sleep(0.05)


def test_models_are_loaded_by_requests(serving: Serving) -> None:
    root = "/v2/repository/models/shouting"
    for origin in ("https://elsewhere.org", "null", "http://["):
        foreign = ask(serving, "POST", f"{root}/unload", {}, Origin=origin)
        assert foreign.status == 403 and "from pages of" in foreign.json["error"]
    own = f"http://127.0.0.1:{serving.ports['open']}"
    assert ask(serving, "POST", f"{root}/load", {}, Origin=own).status == 200
    assert ask(serving, "POST", f"{root}/unload", {}).status == 200
    assert ask(serving, "POST", "/predict/shouting", ["a"]).status == 503
    assert ask(serving, "GET", "/v2/health/ready").status == 503
    ready = ask(serving, "POST", "/v2/repository/index", {"ready": True}).json
    assert "shouting" not in {m["name"] for m in ready}
    assert ask(serving, "POST", f"{root}/load", {}).status == 200
    assert ask(serving, "POST", "/predict/shouting", ["a"]).json["loud"] == ["A"]


def test_a_selector_and_feedback(serving: Serving) -> None:
    reply = ask(serving, "POST", "/predict/mixed?id=r1&context=al", [[1, 2, 3]])
    assert reply.json == {"y": [[3, 6, 9]]}
    assert reply.headers["Request-Id"] == "r1"
    assert reply.headers["Models"] == "linear, linear-2"
    assert reply.headers["Confidence"] == "1"
    body = {"id": "r1", "label": [2]}
    found = ask(serving, "POST", "/feedback/mixed", body)
    assert found.status == 200 and found.json["losses"] == {"linear": 0, "linear-2": 0}
    assert found.json["shared"] is None
    for _ in range(12):
        body = {"inputs": [[1, 5, 3]], "losses": {"linear": 1, "linear-2": 0}}
        assert ask(serving, "POST", "/feedback/mixed", body).status in (200, 404)
        ask(serving, "POST", "/predict/mixed", [[1, 5, 3]])
    weights = ask(serving, "GET", "/groups/mixed").json["models"]
    assert weights["linear-2"]["weight"] > 0.9
    weights = ask(serving, "GET", "/groups/mixed?context=al").json["models"]
    assert weights["linear"]["weight"] == 0.5
    assert ask(serving, "GET", "/groups/mixed?context=" + "x" * 300).status == 400
    # By the protocol, the server makes an id if the client sends none.
    body = infer([1, 2, 3], parameters={"context": "al"})
    reply = ask(serving, "POST", "/v2/models/chosen/infer", body)
    parameters = reply.json["parameters"]
    assert parameters["models"] in PAIR and "confidence" not in parameters
    body = {"id": reply.json["id"], "loss": 0.5}
    losses = ask(serving, "POST", "/feedback/chosen", body).json["losses"]
    assert losses == {parameters["models"]: 0.5}
    text = ask(serving, "GET", "/metrics").body.decode()
    assert 'fxflow_serve_group_weight{group="mixed",model="linear-2"} 0.9' in text


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/feedback/mixed", b"{", 400, "not JSON"),
        ("/feedback/mixed", [1], 400, "must be an object"),
        ("/feedback/mixed", {"idd": 1}, 400, "feedback has no member 'idd'"),
        ("/feedback/mixed", {"id": 1, "label": 1}, 400, "'id' must be of type str"),
        ("/feedback/mixed", {"id": "x", "losses": 1}, 400, "must be of type dict"),
        ("/feedback/mixed", {"label": 1}, 400, "either 'id' or 'inputs'"),
        ("/feedback/mixed", {"inputs": [[1]], "label": 1}, 400, "must have shape"),
        ("/feedback/mixed", b'{"id": "x", "loss": NaN}', 400, "NaN is not JSON"),
        ("/feedback/mixed", {"id": "x", "label": 1}, 404, "unknown prediction id 'x'"),
        (
            "/feedback/linear",
            {"id": "x", "label": 1},
            400,
            "'linear' takes no feedback",
        ),
        ("/feedback/next", {"id": "x", "label": 1}, 400, "'next' takes no feedback"),
        ("/feedback/none", {"id": "x", "label": 1}, 404, "unknown model 'none'"),
        ("/groups/linear/back", {}, 400, "'linear' is a model"),
        ("/groups/mixed/back", {}, 400, "'mixed' is a selector"),
        ("/predict/mixed?context=" + "x" * 300, [[1, 2, 3]], 400, "256 characters"),
    ],
)
def test_invalid_feedback_is_refused(
    serving: Serving, path: str, body: Any, status: int, words: str
) -> None:
    reply = ask(serving, "POST", path, body)
    assert reply.status == status and words in reply.json["error"]


def test_a_candidate_is_rolled_out(serving: Serving) -> None:
    def predict(path: str = "/predict/next") -> Reply:
        return ask(serving, "POST", path, [[1, 2, 3]])

    assert ask(serving, "GET", "/v2/models/next").json["versions"] == ["1", "2"]
    assert predict().json == {"y": [[2, 4, 6]]}
    assert ask(serving, "GET", "/groups/next").json["shadow"] is True
    reply = ask(serving, "POST", "/groups/next/forward", {}, "keyed", X_API_Key=KEY)
    assert reply.status == 403
    assert ask(serving, "POST", "/groups/next/forward", {}).json["share"] == 1.0
    reply = predict()
    assert reply.json == {"y": [[4, 8, 12]]} and reply.headers["Models"] == "linear-2"
    reply = ask(serving, "POST", "/v2/models/next/infer", infer([1, 2, 3], id="é"))
    assert reply.json["model_version"] == "2" and reply.json["id"] == "é"
    assert reply.headers["Request-Id"] == "%C3%A9"
    one = ask(serving, "POST", "/v2/models/next/versions/1/infer", infer([1, 2, 3]))
    assert one.json["outputs"][0]["data"] == [2, 4, 6]
    reply = ask(serving, "POST", "/groups/next/back", {})
    assert reply.json["rolled_back"] == "by request"
    assert predict().json == {"y": [[2, 4, 6]]}


def test_pages_and_metrics(serving: Serving) -> None:
    assert b"x: f32[batch,3]" in ask(serving, "GET", "/").body
    paths = ask(serving, "GET", "/openapi.json").json["paths"]
    assert "/predict/linear" in paths
    text = ask(serving, "GET", "/metrics").body.decode()
    assert 'fxflow_serve_replicas_ready{model="linear"} 1' in text
    ask(serving, "GET", "/v2/models/invented")
    assert "invented" not in ask(serving, "GET", "/metrics").body.decode()


def test_the_status_page(serving: Serving) -> None:
    reply = ask(serving, "GET", "/status")
    assert b"status.json" in reply.body
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    ask(serving, "POST", "/predict/linear", [[1, 2, 3]])
    found = {m["name"]: m for m in ask(serving, "GET", "/status.json").json["models"]}
    linear = found["linear"]
    assert linear["state"] == "READY" and linear["stats"]["replicas_ready"] == 1
    assert sum(linear["statuses"].values()) == sum(n for _, n in linear["seconds"])
    # The page needs no key; its data does.
    assert ask(serving, "GET", "/status", door="keyed").status == 200
    assert ask(serving, "GET", "/status.json", door="keyed").status == 401


def test_the_status_page_in_a_browser(serving: Serving, tmp_path: Path) -> None:
    with Browser() as browser:
        for value in range(3):
            ask(serving, "POST", "/predict/linear", [[value, 2, 3]] * (value + 1))
        browser.go(f"http://127.0.0.1:{serving.ports['open']}/status")
        browser.until(
            "document.querySelectorAll('section[data-model] svg').length >= 11"
        )
        text = browser.value("document.querySelector('[data-model=linear]').innerText")
        assert "linear, version 1 ready" in text and "1 of 1" in text
        bars = "document.querySelectorAll('[data-model=linear] svg')[1]"
        texts = f"[...{bars}.querySelectorAll('text')]"
        shown = browser.value(f"{texts}.map(t => +t.textContent)")
        counted = ask(serving, "GET", "/status.json").json["models"]
        (rows,) = (m["rows"] for m in counted if m["name"] == "linear")
        assert {n for _, n in rows if n} <= set(shown)
        mixed = browser.value(
            "document.querySelector('[data-model=mixed]').textContent"
        )
        assert "Weights of the models" in mixed and "linear-2" in mixed
        # It updates by itself.
        before = browser.value("document.getElementById('message').innerText")
        browser.until(f"document.getElementById('message').innerText != {before!r}")
        assert not browser.errors

        # With keys, it prompts for one.
        browser.go(f"http://127.0.0.1:{serving.ports['keyed']}/status")
        browser.until("!document.getElementById('ask').hidden")
        browser.send(
            "Runtime.evaluate", expression="document.getElementById('key').focus()"
        )
        browser.send("Input.insertText", text=KEY)
        browser.value("document.querySelector('#ask button').click()")
        browser.until("document.querySelectorAll('section').length == 7")
        assert browser.value("document.getElementById('ask').hidden")
        browser.screenshot(tmp_path / "status.png")
        assert (tmp_path / "status.png").stat().st_size > 10_000


def test_static_files_are_served(serving: Serving) -> None:
    assert b"Files of a folder" not in ask(serving, "GET", "/app/test_rpc.py").body
    assert ask(serving, "GET", "/app/test_http.py").status == 200
    for path in ("../zoo.py", "%2e%2e/zoo.py", "..%2fzoo.py", "/etc/passwd", "x"):
        assert ask(serving, "GET", f"/app/{path}").status == 404
    assert ask(serving, "GET", "/app/test_http.py", door="keyed").status == 404


def test_requests_have_ids(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    path = "/v2/models/linear/infer"
    with caplog.at_level("INFO", "fxflow.serve"):
        given = ask(serving, "POST", path, infer([1, 2, 3]), X_Request_Id="abc-1")
        other = ask(serving, "POST", path, infer([1, 2]), X_Request_Id="a b\tc")
    assert given.headers["X-Request-Id"] == "abc-1"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", other.headers["X-Request-Id"])
    lines = [record.details for record in caplog.records]  # type: ignore[attr-defined]
    good, bad = (line for line in lines if line["path"] == path)
    assert good["id"] == "abc-1" and good["seconds"] > 0
    assert (good["model"], good["version"], good["status"]) == ("linear", "1", 200)
    assert (bad["id"], bad["status"]) == (other.headers["X-Request-Id"], 400)
    assert "has 2 elements" in bad["error"] and "error" not in good


@pytest.mark.skipif(TRACER is None, reason="pip install 'fxflow[telemetry]'")
def test_requests_are_traced(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    parent = f"00-{trace}-b7ad6b7169203331-01"
    with caplog.at_level("INFO", "fxflow.serve"):
        for path, value in (("linear", [[1, 2, 3]]), ("none", [[1]])):
            ask(
                serving, "POST", f"/predict/{path}", value, "traced", Traceparent=parent
            )
    queue, batch, good, bad = SPANS.get_finished_spans()
    assert (queue.name, batch.name) == ("queue", "batch")
    assert {s.context.trace_id for s in (queue, batch, good, bad)} == {int(trace, 16)}
    assert queue.parent.span_id == batch.parent.span_id == good.context.span_id
    assert good.start_time <= queue.start_time <= batch.start_time < batch.end_time
    assert good.name == "POST /predict/{model}"
    assert good.attributes["fxflow.model"] == "linear"
    assert good.attributes["http.response.status_code"] == 200
    assert bad.attributes["http.response.status_code"] == 404
    lines = [record.details for record in caplog.records]  # type: ignore[attr-defined]
    assert {line["trace"] for line in lines} == {trace}
    assert good.attributes["fxflow.request_id"] == lines[0]["id"]


def test_mutated_requests(serving: Serving) -> None:
    """Each is answered, never with 500, and the server still works."""
    rng = random.Random(0)
    good = json.dumps(infer([1, 2, 3])).encode()
    connection = http.client.HTTPConnection("127.0.0.1", serving.ports["open"])
    statuses = set()
    for _ in range(300):
        body = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        connection.request("POST", "/v2/models/linear/infer", bytes(body))
        response = connection.getresponse()
        response.read()
        statuses.add(response.status)
    connection.close()
    assert statuses == {200, 400}
    assert ask(serving, "POST", "/predict/linear", [[1, 2, 3]]).status == 200


def test_tritonclient(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unmodified client of another project."""
    module = triton(monkeypatch, "http")
    refused = triton(monkeypatch, "utils").InferenceServerException
    client = module.InferenceServerClient(f"127.0.0.1:{serving.ports['open']}")
    try:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("linear", "1")
        assert client.get_server_metadata()["name"] == "fxflow"
        assert client.get_model_metadata("linear")["outputs"][0]["name"] == "y"
        index = client.get_model_repository_index()
        assert len(index) == len(MODELS) + len(GROUPS)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for binary_in in (True, False):
            for binary_out in (True, False):
                given = module.InferInput("x", [2, 3], "FP32")
                given.set_data_from_numpy(x, binary_data=binary_in)
                wanted = module.InferRequestedOutput("y", binary_data=binary_out)
                result = client.infer(
                    "linear",
                    [given],
                    outputs=[wanted],
                    request_id="r",
                    priority=1,
                    timeout=5_000_000,
                )
                np.testing.assert_array_equal(result.as_numpy("y"), x * 2)
                assert result.get_response()["id"] == "r"
        result = client.infer("linear", [given])  # no outputs named: all, binary
        np.testing.assert_array_equal(result.as_numpy("y"), x * 2)
        text = module.InferInput("text", [2], "BYTES")
        text.set_data_from_numpy(np.array([b"ab", b"c"], object))
        result = client.infer("shouting", [text])
        assert result.as_numpy("loud").tolist() == [b"AB", b"C"]
        assert result.as_numpy("length").tolist() == [2, 1]
        with pytest.raises(refused, match="no input 'text'"):
            client.infer("linear", [text])
    finally:
        client.close()
