"""Streams of results over HTTP and gRPC, from real processes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import queue
import random
import select
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol.front import Front, RequestLimits
from fxflow.serve.protocol.http import application
from fxflow.serve.protocol.rpc import SERVICE, classes, start_grpc
from fxflow.serve.repository import Repository
from fxflow.serve.selection.policies import Exp3
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig
from fxflow.serve.telemetry import Tracing
from fxflow.serve.versions import RolloutPlan, VersionsConfig

from ..clients import triton
from ..server import running
from .spans import SPANS, TRACER

pytest.importorskip("starlette", reason="pip install 'fxflow[serve]'")
pytest.importorskip("google.protobuf", reason="pip install 'fxflow[serve]'")
grpc = pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")

KEY = "0123456789abcdef"
ZOO = "tests.serve.zoo"
COUNTER = ModelSource(
    f"{ZOO}:counter", factory=True, arguments={"asynchronous": True}, streams=2
)
MODELS = [
    ModelConfig("count", COUNTER, slo=4.0),
    ModelConfig("words", ModelSource(f"{ZOO}:WORDS"), slo=4.0),
    ModelConfig(
        "negative", ModelSource(f"{ZOO}:negative", inputs={"x": "f32[b]"}), slo=4.0
    ),
    ModelConfig("new words", ModelSource(f"{ZOO}:WORDS"), version="2", slo=4.0),
]
PAIR = ("words", "new words")
GROUPS = [
    VersionsConfig("tales", *PAIR, RolloutPlan(shares=(0.5,))),
    SelectorConfig("best", PAIR, policy=Exp3()),
    SelectorConfig("all", PAIR),
]


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """Servers in a thread: open, with keys, and with a short read timeout."""
    found: dict[str, int] = {}
    up = threading.Event()
    stop: list[Any] = []

    async def main() -> None:
        ending = asyncio.Event()
        stop.append((asyncio.get_running_loop(), ending))
        metrics = Metrics()
        repository = Repository(MODELS, metrics)
        (fault,) = await repository.configure(MODELS, GROUPS)
        assert "cannot combine streams" in fault
        servers, tasks = [], []
        hasty = RequestLimits(body_timeout=0.3)
        for name, options in {
            "open": {"tracing": Tracing(TRACER)},
            "keyed": {"keys": {"alice": KEY}},
            "hasty": {"limits": hasty},
        }.items():
            config = uvicorn.Config(
                application(Front(repository, metrics, **options)),  # type: ignore[arg-type]
                port=0,
                loop="asyncio",
                lifespan="off",
                log_config=None,
            )
            servers.append(uvicorn.Server(config))
            servers[-1].capture_signals = contextlib.nullcontext
            tasks.append(asyncio.create_task(servers[-1].serve()))
            while not servers[-1].started:
                await asyncio.sleep(0.01)
            found[name] = servers[-1].servers[0].sockets[0].getsockname()[1]
        calls = []
        for name, limits in {"rpc": None, "hasty rpc": hasty}.items():
            rpc, found[name] = await start_grpc(
                Front(repository, metrics, limits=limits), "127.0.0.1:0"
            )
            calls.append(rpc)
        up.set()
        await ending.wait()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)
        for rpc in calls:
            await rpc.stop(1)
        await repository.drain()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert up.wait(90)
    yield found
    loop, ending = stop[0]
    loop.call_soon_threadsafe(ending.set)
    thread.join()


class Asked:
    """A request whose reply is read as it arrives."""

    refusal = ""

    def __init__(self, port: int, path: str, value: Any, **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.connection.request("POST", path, data, headers)
        self.response = self.connection.getresponse()
        self.status, self.headers = self.response.status, self.response.headers
        if self.status != 200:
            self.refusal = self.one()["error"]

    def one(self) -> Any:
        """Returns the JSON body."""
        with contextlib.closing(self.connection):
            return json.loads(self.response.read())

    def events(self) -> list[Any]:
        """Yields all events as they arrive."""
        found = []
        with contextlib.closing(self.connection):
            while text := self.response.readline():
                assert text.startswith(b"data: ") and self.response.readline() == b"\n"
                found.append(json.loads(text[6:]))
        return found


def counted(most: int, fault: int = 0, pause: float = 0.0) -> dict[str, Any]:
    return {"x": [most, fault, pause, 10]}


def test_a_result_is_an_event(ports: dict[str, int]) -> None:
    path = "/v2/models/words/versions/1/generate_stream"
    text = {"text_input": "some good words", "id": "w"}
    asked = Asked(ports["open"], path, text)
    assert asked.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert "queue;dur=" in asked.headers["Server-Timing"]
    assert asked.headers["X-Request-Id"]
    head = {"model_name": "words", "model_version": "1", "id": "w"}
    assert asked.events() == [
        {**head, "text_output": word} for word in ("some", "good", "words")
    ]
    # The plain route, on a kept connection.
    asked = Asked(ports["open"], "/predict/count", [[2, 0, 0, 5]])
    assert [event["y"] for event in asked.events()] == [[[5]], [[6]]]
    assert Asked(ports["open"], "/predict/words", ["  "]).events() == []
    # A model that is not a generator gives one event.
    asked = Asked(ports["open"], "/v2/models/negative/generate_stream", {"x": 3})
    (event,) = asked.events()
    assert asked.status == 200 and event["output"] == -3
    asked = Asked(ports["open"], "/v2/models/negative/generate", {"x": [1, 2]})
    assert asked.one()["output"] == [-1, -2]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("models/count/generate_stream", b"{", 400, "not JSON"),
        ("models/count/generate_stream", [1], 400, "must be an object"),
        ("models/count/generate_stream", {}, 400, "input 'x' is missing"),
        ("models/count/generate_stream", {"x": [[[]]]}, 400, "shape [batch,n]"),
        ("models/count/generate_stream", {"x": "a"}, 400, "has an element 'a'"),
        (
            "models/words/generate_stream",
            {"text_input": "a", "parameters": {"temperature": 0}},
            400,
            "no input or parameter 'temperature'",
        ),
        (
            "models/words/generate_stream",
            {"text_input": "a", "parameters": {"text_input": "b"}},
            400,
            "'text_input' is given twice",
        ),
        (
            "models/words/generate_stream",
            {"text_input": "a", "parameters": {"priority": 10}},
            400,
            "'priority' must be",
        ),
        ("models/none/generate_stream", {}, 404, "unknown model 'none'"),
        ("models/words/generate", {"text_input": "a"}, 400, "with a stream of results"),
        ("models/count/generate_stream", counted(3, 1), 200, ""),
        ("models/count/generate_stream", counted(100, 0, 30), 504, "within 0.2 s"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else None,
)
def test_refusals_before_the_first_result(
    ports: dict[str, int], path: str, body: Any, status: int, words: str
) -> None:
    if status == 504:
        body = {**body, "parameters": {"timeout": 200_000}}
    asked = Asked(ports["open"], f"/v2/{path}", body)
    assert asked.status == status
    if status == 200:
        # A later failure is an event.
        *good, last = asked.events()
        assert [event["y"] for event in good] == [10, 11]
        assert last == {"error": "the model failed: ValueError: two is not liked"}
    else:
        assert words in asked.refusal


def test_a_crash_is_an_event_and_the_next_process_serves(ports: dict[str, int]) -> None:
    path = "/v2/models/count/generate_stream"
    *good, last = Asked(ports["open"], path, counted(9, 2)).events()
    assert len(good) == 2 and "ended by signal 9" in last["error"]
    end = time.monotonic() + 60
    while (asked := Asked(ports["open"], path, counted(1))).status != 200:
        assert asked.status == 503 and time.monotonic() < end
        time.sleep(0.05)
    assert [event["y"] for event in asked.events()] == [10]


@contextlib.contextmanager
def ends(port: int, count: int) -> Iterator[None]:
    """Waits until `count` generators that the block started have ended."""

    def closed() -> int:
        (event,) = Asked(port, "/predict/count", [[1, 0, 0, 0]]).events()
        return int(event["closed"][0])

    looked = closed() + 1  # itself
    yield
    end = time.monotonic() + 60
    while closed() < looked + count:
        assert time.monotonic() < end
        looked += 1
        time.sleep(0.02)


def logged(caplog: pytest.LogCaptureFixture, status: int | str) -> list[str]:
    """Returns the logged errors of requests with a status."""
    lines = [getattr(record, "details", {}) for record in caplog.records]
    return [line["error"] for line in lines if line.get("status") == status]


def got(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def numbers(port: int) -> dict[str, float]:
    """Returns the server's metrics."""
    lines = (line for line in got(port, "/metrics").splitlines() if line[0] != "#")
    return {name: float(value) for name, value in (x.rsplit(" ", 1) for x in lines)}


def begun(port: int, value: Any, connection: socket.socket) -> None:
    body = json.dumps(value).encode()
    head = "POST /v2/models/count/generate_stream HTTP/1.1\r\nHost: x\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    connection.connect(("127.0.0.1", port))
    connection.sendall(head.encode() + body)


def test_a_client_that_disconnects_ends_the_generator(
    ports: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    port = ports["open"]
    caplog.set_level("INFO", "fxflow.serve")
    streams = 'fxflow_serve_streams{model="count"}'
    with ends(port, 1), socket.socket() as one, socket.socket() as other:
        begun(port, counted(1_000_000, 0, 0.01), one)
        assert one.recv(100)
        # Disconnects before the first result, perhaps before the generator starts.
        begun(port, counted(1, 0, 30), other)
        with socket.create_connection(("127.0.0.1", port)) as early:
            early.sendall(b"POST /predict/count HTTP/1.1\r\nContent-Length: 9\r\n\r\n1")
        end = time.monotonic() + 60
        while numbers(port)[streams] < 2:
            assert time.monotonic() < end
    end = time.monotonic() + 60
    while len(gone := logged(caplog, 499)) < 3 or numbers(port)[streams]:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert gone == ["the client disconnected"] * 3


def test_a_client_that_does_not_read_is_not_waited_for(ports: dict[str, int]) -> None:
    with socket.socket() as connection, ends(ports["open"], 1):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        value = counted(1_000_000)
        value["x"] += [1 / 3] * 20_000
        begun(ports["hasty"], value, connection)
        assert select.select([connection], [], [], 30)[0]


def test_keys_metrics_and_traces(ports: dict[str, int]) -> None:
    path, value = "/v2/models/words/generate_stream", {"text_input": "a b c"}
    assert Asked(ports["keyed"], path, value).status == 401
    asked = Asked(ports["keyed"], path, value, Authorization=f"Bearer {KEY}")
    assert len(asked.events()) == 3
    if TRACER is not None:
        SPANS.clear()
    Asked(ports["open"], path, value).events()
    found, of = numbers(ports["open"]), '{model="words"}'
    assert found[f"fxflow_serve_results_total{of}"] >= 6
    first = found[f"fxflow_serve_first_result_seconds_count{of}"]
    assert found[f"fxflow_serve_next_result_seconds_count{of}"] > first
    paths = json.loads(got(ports["open"], "/openapi.json"))["paths"]
    assert "text/event-stream" in str(paths["/predict/words"])
    assert "text/event-stream" not in str(paths["/predict/negative"])
    if TRACER is not None:
        end = time.monotonic() + 30
        while len(spans := SPANS.get_finished_spans()) < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        *parts, span = spans[:3]
        assert [part.name for part in parts] == ["queue", "batch"]
        assert span.attributes["fxflow.results"] == 3


def test_a_rollout_streams(ports: dict[str, int]) -> None:
    place, found = "/v2/models/tales", {}
    for k in range(20):
        text = {"text_input": "a b", "id": f"{k}"}
        for _ in range(2):
            asked = Asked(ports["open"], f"{place}/generate_stream", text)
            (version,) = {event["model_version"] for event in asked.events()}
            assert found.setdefault(k, version) == version
            model = {"1": "words", "2": "new words"}[version]
            assert asked.headers["Models"] == model
            assert asked.headers["Request-Id"] == str(k)
    assert set(found.values()) == {"1", "2"}
    pinned = f"{place}/versions/2/generate_stream"
    events = Asked(ports["open"], pinned, {"text_input": "a b"}).events()
    assert [event["model_version"] for event in events] == ["2", "2"]
    assert Asked(ports["open"], f"{place}/generate", {"text_input": "a"}).status == 400


def test_a_selectors_stream_receives_feedback(ports: dict[str, int]) -> None:
    path, text = "/v2/models/best/generate_stream", {"text_input": "a b", "id": "s"}
    asked = Asked(ports["open"], path, text)
    assert [event["text_output"] for event in asked.events()] == ["a", "b"]
    told = {"id": "s", "label": ["b"]}
    joined = Asked(ports["open"], "/feedback/best", told).one()
    assert joined["losses"] == {asked.headers["Models"]: 0.0}
    assert Asked(ports["open"], "/feedback/best", told).status == 409


# -- gRPC ------------------------------------------------------------------------------


def message(name: str, array: Any, **fields: Any) -> Any:
    made = classes()
    text = array.dtype == object
    tensor = made["ModelInferRequest.InferInputTensor"](
        name="text_input" if text else "x",
        datatype="BYTES" if text else "FP32",
        shape=array.shape,
    )
    raw = struct.pack("<I", len(array[0])) + array[0] if text else array.tobytes()
    return made["ModelInferRequest"](
        model_name=name, inputs=[tensor], raw_input_contents=[raw], **fields
    )


def boolean(value: Any) -> Any:
    kind = "bool_param" if isinstance(value, bool) else "int64_param"
    return classes()["InferParameter"](**{kind: value})


@contextlib.contextmanager
def streamed(port: int) -> Iterator[tuple[queue.SimpleQueue[Any], Any]]:
    """A queue of requests (None: the end), and the call that answers them."""
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.stream_stream(
            f"/{SERVICE}/ModelStreamInfer",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=classes()["ModelStreamInferResponse"].FromString,
        )
        yield requests, method(iter(requests.get, None), timeout=60)
        requests.put(None)


def test_grpc(ports: dict[str, int]) -> None:
    with streamed(ports["rpc"]) as (requests, answers):
        ends = {"triton_enable_empty_final_response": boolean(True)}
        text = np.array([b"some words"], object)
        requests.put(message("words", text, id="a", parameters=ends))
        requests.put(message("words", text, id="b"))
        requests.put(message("negative", np.ones(1, np.float32), id="c"))
        faulty = np.array([[3, 1, 0, 10]], np.float32)
        requests.put(message("count", faulty, id="d"))
        wrong = {"triton_enable_empty_final_response": boolean(1)}
        requests.put(message("words", text, id="e", parameters=wrong))
        requests.put(None)
        found = list(answers)
    seen = [
        (
            answer.infer_response.id,
            len(answer.infer_response.outputs),
            answer.infer_response.parameters["triton_final_response"].bool_param,
        )
        for answer in found
    ]
    assert seen == [
        *(("a", 1, False), ("a", 1, False), ("a", 0, True)),
        *(("b", 1, False), ("b", 1, False), ("c", 1, True)),
        *(("d", 2, False), ("d", 2, False), ("d", 0, True), ("e", 0, True)),
    ]
    assert [a.infer_response.raw_output_contents[0][4:] for a in found[:2]] == [
        b"some",
        b"words",
    ]
    assert "two is not liked" in found[8].error_message
    assert "must be a bool_param" in found[9].error_message


def test_groups_by_grpc(ports: dict[str, int]) -> None:
    text = np.array([b"some words"], object)
    with streamed(ports["rpc"]) as (requests, answers):
        for name in ("tales", "best"):
            requests.put(message(name, text, id=name))
        requests.put(None)
        found = [answer.infer_response for answer in answers]
    assert [(answer.model_name, answer.id) for answer in found] == [
        *(("tales", "tales"), ("tales", "tales"), ("best", "best"), ("best", "best"))
    ]
    assert {answer.parameters["models"].string_param for answer in found} <= set(PAIR)


def test_a_grpc_client_that_cancels_ends_the_generator(ports: dict[str, int]) -> None:
    with ends(ports["open"], 1), streamed(ports["rpc"]) as (requests, answers):
        endless = np.array([[1_000_000, 0, 0.01, 10]], np.float32)
        requests.put(message("count", endless))
        next(answers)
        answers.cancel()


def test_a_grpc_client_that_does_not_read_is_not_waited_for(
    ports: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    with streamed(ports["hasty rpc"]) as (requests, answers), ends(ports["open"], 1):
        endless = np.full((1, 20_000), 0.5, np.float32)
        endless[0, :3] = 1_000_000, 0, 0
        requests.put(message("count", endless))
        next(answers)
    (words,) = logged(caplog, "CANCELLED")
    assert words == "no answer was read within 0.3 s"


def test_tritonclient(ports: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The unmodified client of another project."""
    module = triton(monkeypatch, "grpc")
    client = module.InferenceServerClient(f"127.0.0.1:{ports['rpc']}")
    answers: queue.Queue[Any] = queue.Queue()
    try:
        given = module.InferInput("text_input", [1], "BYTES")
        given.set_data_from_numpy(np.array([b"some good words"], object))
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer(
            "words", [given], enable_empty_final_response=True, request_id="r"
        )
        words = []
        while True:
            result, error = answers.get(timeout=30)
            assert error is None
            response = result.get_response()
            assert response.id == "r"
            if response.parameters["triton_final_response"].bool_param:
                break
            words += result.as_numpy("text_output").tolist()
        assert words == [b"some", b"good", b"words"]
        client.stop_stream()
    finally:
        client.close()


# -- soak ------------------------------------------------------------------------------


def client(port: int, seed: int, seconds: float, found: Counter[str]) -> None:
    """Requests streams; reads them completely, partly, slowly, or not at all."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end:
        fault = rng.choices([0, 1], [9, 1])[0]
        value = counted(rng.choice([1, 3, 50, 100_000]), fault, rng.choice([0, 0.01]))
        with contextlib.suppress(OSError), socket.socket() as connection:
            connection.settimeout(30)
            begun(port, value, connection)
            text = b""
            for _ in range(rng.choice([0, 1, 5, 1000])):
                part = connection.recv(rng.choice([100, 100_000]))
                text += part
                if not part or text.endswith(b"\r\n0\r\n\r\n"):
                    break
                time.sleep(rng.choice([0, 0, 0.01]))
            found[text[9:12].decode() or "not read"] += 1
            found["whole"] += text.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_soak(tmp_path: Path, seed: int) -> None:
    """Clients disconnect and processes are killed: no stream stays open."""
    path = tmp_path / "serving.toml"
    path.write_text(
        'slo = "1s"\n[models.count]\nsource = "tests.serve.zoo:counter"\n'
        "factory = true\narguments = {asynchronous = true}\nstreams = 4\n"
        'replicas = 2\nduration = "2s"\n'
    )
    found: Counter[str] = Counter()
    rng = random.Random(seed)
    with running(str(path), "--log-requests", "failed") as server:
        threads = [
            threading.Thread(
                target=client, args=(server.port, 16 * seed + k, 20, found)
            )
            for k in range(16)
        ]
        for thread in threads:
            thread.start()
        tasks = Path(f"/proc/{server.process.pid}/task")
        for _ in range(4):
            time.sleep(rng.uniform(2, 6))
            pids = " ".join(p.read_text() for p in tasks.glob("*/children")).split()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(rng.choice(pids)), signal.SIGKILL)
        for thread in threads:
            thread.join()
        end = time.monotonic() + 30
        while numbers(server.port)['fxflow_serve_streams{model="count"}']:
            assert time.monotonic() < end
            time.sleep(0.05)
        asked = Asked(server.port, "/predict/count", [[3, 0, 0, 10]])
        assert [event["y"] for event in asked.events()] == [[[10]], [[11]], [[12]]]
        server.until("ended by signal 9")
    assert found["whole"] > 50 and found["200"] > 100, found
    assert found.keys() <= {"200", "500", "503", "504", "not read", "whole"}, found
