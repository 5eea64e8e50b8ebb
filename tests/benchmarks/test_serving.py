"""The load generator tells the truth about a server that is slow or wrong."""

from __future__ import annotations

import base64
import importlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the generator waits with epoll"
)
FOLDER = Path(__file__).parents[2] / "benchmarks" / "serving"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("load")


def test_a_peer_is_measured_in_its_best_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script adds to it
    measure = importlib.import_module("measure")
    assert set(measure.HANDLERS["json"]) == set(measure.FORMS)
    assert set(measure.HANDLERS["binary"]) < set(measure.FORMS)
    asked = []

    @contextmanager
    def peer(name: str, model: str, form: str) -> Iterator[str]:
        asked.append(name)
        yield name

    rates = {"async": (0.0, 90.0), "lean": (50.0, 80.0), "threads": (50.0, 70.0)}

    def throughput(server: str, _: Any) -> dict[str, Any]:
        rate, closed = rates.get(server.partition("/")[2], (40.0, 95.0))
        times = {"p99": 1.0, "server_us": 1.0, "others_us": 1.0}
        return {"rate": rate, "closed": closed, **times}

    monkeypatch.setattr(measure, "peer", peer)
    monkeypatch.setattr(measure, "fxflow", lambda *_: peer("fxflow", "", ""))
    monkeypatch.setattr(measure, "throughput", throughput)
    found = measure.peers(["linear"], ["onnxruntime"], ["json"])
    assert asked == ["fxflow", *(f"onnxruntime/{form}" for form in measure.FORMS)]
    assert found["linear, json, onnxruntime"]["handler"] == "lean"


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """A server that answers one connection after the other; its port."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(1 << 16):
                try:
                    connection.sendall(answer(request))
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def reply(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def plan(load: Any, port: int, body: bytes = b"hello", **more: Any) -> Any:
    bodies = [base64.b64encode(body).decode()]
    return load.Run(load.Plan(port=port, path="/", bodies=bodies, **more))


def test_a_pause_counts_for_all_requests_due_meanwhile(load: Any) -> None:
    """One connection, and a server that stops once: the others wait for it."""
    begun = time.monotonic()

    def answer(request: bytes) -> bytes:
        if time.monotonic() - begun > 0.4 and not stopped:
            stopped.append(True)
            time.sleep(0.4)
        return reply(b"")

    stopped: list[bool] = []
    with answering(answer) as port:
        options = {"rate": 100, "seconds": 1.2, "poisson": False, "connections": 1}
        found = plan(load, port, series=True, **options).go()
    assert found["statuses"] == {"200": 120} and stopped
    late = [taken for _, taken, _ in found["series"] if taken > 0.05]
    # 40 were due while it stood still; a closed loop would have seen one of them.
    assert len(late) >= 25 and max(late) > 0.35
    assert found["p99"] > 300 and found["p50"] < 300


def test_requests_are_given_up_when_no_connection_becomes_free(load: Any) -> None:
    """The first answer comes when all others have waited for longer than they do."""

    def answer(request: bytes) -> bytes:
        while time.perf_counter() < run.start + 0.3:
            time.sleep(0.01)
        return reply(b"")

    with answering(answer) as port:
        options = {"rate": 100, "seconds": 0.1, "poisson": False, "connections": 1}
        run = plan(load, port, patience=0.1, grace=60, **options)
        found = run.go()
    assert found["statuses"] == {"-2": 9, "200": 1} and not found["unanswered"]


def test_what_fails_takes_forever(load: Any) -> None:
    count = iter(range(1000))

    def answer(request: bytes) -> bytes:
        return reply(b"", 503 if next(count) % 10 == 0 else 200)

    with answering(answer) as port:
        found = plan(load, port, rate=100, seconds=1.0, seed=1).go()
    assert found["statuses"]["503"] >= 5
    assert found["p99"] == float("inf") and found["good_p99"] < 1000


def test_answers_of_others_and_too_many_are_seen(load: Any) -> None:
    with answering(lambda request: reply(b"0000000007")) as port:
        found = plan(load, port, load.MARK, rate=50, seconds=0.2, poisson=False).go()
    assert found["faults"] == {"another request's answer": 9}
    with answering(lambda request: reply(b"") * 2) as port:
        found = plan(load, port, rate=20, seconds=0.2, poisson=False).go()
    assert "an answer without a request" in found["faults"]


def test_closed_loops_and_quantiles(load: Any) -> None:
    with answering(lambda request: reply(b"")) as port:
        found = plan(load, port, closed=4, seconds=0.3).go()
    assert found["statuses"]["200"] > 20 and found["connections"] == 4
    values = [float(k) for k in range(1, 101)]
    assert [load.quantile(values, s) for s in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert load.quantile(values, 0.99, 102) == float("inf")
